//! Kernels with leaves that read beyond the pixel: the frame of the kernel, and its groups in shared memory.

use std::fmt::Write as _;

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::kernel::{LeafOp, MapKernel, Source};
use horus_core::shape::Border;

use super::alike::{Run, runs};
use super::calls::Calls;
use super::chain::constant_bytes;
use super::cost;
use super::expr::Code;
use super::params::{Params, Table};
use super::rolled::NEED_BYTES;
use super::schedule::{Block, How, REGION, Schedule, Tile, schedule};
use super::{DENSE, GATHER, Limits, PRELUDE, Pointer, Program, Repeats, SEPARABLE, Shapes, TILE, assemble, blocks};
use super::{leaves, rows_aligned};
use crate::tuning::Tuning;

/// Most blocks that a launch may have in its second dimension.
const MOST_BLOCKS_DOWN: usize = 65_535;

/// The state of generating one kernel.
#[derive(Debug)]
pub(super) struct Map<'a> {
    pub(super) kernel: &'a MapKernel,
    pub(super) block: Block,
    pub(super) params: Params,
    pub(super) table: Table,
    /// Functions before the kernel.
    pub(super) helpers: String,
    /// Types before the kernel that know its parameters.
    pub(super) types: String,
    /// The kernel's body.
    pub(super) body: String,
    pub(super) tuning: &'a Tuning,
    pub(super) schedule: Schedule,
    /// Bytes at the beginning of shared memory that stay, for taps of column filters.
    pub(super) kept: usize,
    pub(super) shared: usize,
    /// The tile that is loaded.
    pub(super) tile: Option<(Source, Border, Tile)>,
    /// Which slots hold their stage.
    pub(super) valid: Vec<bool>,
    /// Whether something may still be reading shared memory.
    pub(super) busy: bool,
    /// Where the taps of column filters lie in shared memory, for those that are looped over.
    pub(super) column_taps: Vec<Option<usize>>,
    /// Tiles loaded so far whose extent is data.
    pub(super) loose_tiles: usize,
    /// About how many instructions there are so far.
    pub(super) cost: usize,
    /// Which leaves are computed in loops over alike steps.
    pub(super) rolled: Vec<bool>,
    /// Templates that the body instantiates.
    pub(super) calls: Calls,
}

pub(super) fn generate(
    kernel: &MapKernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: Limits,
    repeats: Repeats,
) -> Result<Program, DeviceError> {
    for l in &kernel.leaves {
        if matches!(l.op, LeafOp::Correlate(..)) && !l.dtype.is_float() {
            return Err(DeviceError::Unsupported { kernel: kernel.to_string(), dtype: l.dtype });
        }
    }
    let block = Block { bx: tuning.bx, by: tuning.by, rows: tuning.rows, cols: tuning.cols };
    let code = Code::new(kernel);
    let order = code.order();
    // Room for every column tap, looped over or not.
    let column_taps: usize = kernel
        .leaves
        .iter()
        .map(|l| match &l.op {
            LeafOp::Correlate(Source::Stage(_), f, _) => f.taps().len() * l.dtype.size() + 16,
            _ => 0,
        })
        .sum();
    let kept = column_taps.next_multiple_of(REGION);
    let schedule = schedule(kernel, &order, block, tuning, limits, kept);
    let valid = vec![false; schedule.slots.len()];
    let runs = runs(kernel, &schedule.groups, &code.sequence(&schedule.groups, &schedule.lazy));
    let runs: Vec<Run> = runs.into_iter().filter(|r| r.work(kernel, &schedule.groups, block) > tuning.unroll).collect();
    let mut is_rolled = vec![false; kernel.leaves.len()];
    for run in &runs {
        schedule.groups[run.groups()].iter().flat_map(|g| &g.leaves).for_each(|&l| is_rolled[l] = true);
    }
    let mut map = Map {
        kernel,
        block,
        params: Params::default(),
        table: Table::default(),
        helpers: String::new(),
        types: String::new(),
        body: String::new(),
        tuning,
        schedule,
        kept: 0,
        shared: 0,
        tile: None,
        valid,
        busy: false,
        column_taps: vec![None; kernel.leaves.len()],
        loose_tiles: 0,
        cost: 0,
        rolled: is_rolled,
        calls: Calls::default(),
    };
    let again = runs.iter().flat_map(|run| &run.steps[1..]).flat_map(|s| &s.code);
    let once = (0..kernel.code.len()).filter(|i| !again.clone().any(|j| j == i));
    map.cost = cost::code(kernel, once, block);
    map.params.reserve(NEED_BYTES * runs.iter().map(|r| r.groups().len()).sum::<usize>());
    map.params.reserve(kernel.chains.iter().map(constant_bytes).sum());
    map.declare(shapes);
    map.declare_chains()?;
    map.run(code, &runs)?;
    if repeats == Repeats::Called {
        let saved = map.calls.share(&mut map.body);
        map.cost = map.cost.saturating_sub(saved);
    }
    map.finish(shapes)
}

impl Map<'_> {
    /// Parameters that describe the output and the inputs.
    fn declare(&mut self, shapes: &Shapes<'_>) {
        let (p, out) = (&mut self.params, shapes.output);
        p.pointer(out.dtype.name(), "out", Pointer::Output { offset: 0 });
        p.pointer("const unsigned char", "table", Pointer::Table);
        p.long("out_plane", out.plane() as i64);
        for (i, g) in shapes.inputs.iter().enumerate() {
            p.pointer(&format!("const {}", g.dtype.name()), &format!("in{i}"), Pointer::Input { index: i, offset: 0 });
            p.long(&format!("plane{i}"), g.plane() as i64);
        }
        for (i, g) in shapes.inputs.iter().enumerate() {
            p.int(&format!("height{i}"), g.shape.height.cast_signed());
            p.int(&format!("width{i}"), g.shape.width.cast_signed());
            p.int(&format!("start{i}"), g.window.start);
            p.int(&format!("end{i}"), g.window.end);
            p.int(&format!("aligned{i}"), rows_aligned(g) as isize);
        }
        p.int("out_aligned", rows_aligned(&out) as isize);
        p.int("out_start", out.window.start);
        p.int("width", out.shape.width.cast_signed());
        p.int("row0", shapes.rows.start);
        p.int("row1", shapes.rows.end);
        p.int("tiles_x", out.shape.width.div_ceil(self.block.width()).cast_signed());
        p.int("tiles_y", shapes.rows.len().div_ceil(self.block.height()).cast_signed());
        for (i, g) in shapes.inputs.iter().enumerate() {
            let _ = writeln!(
                self.body,
                "    const hs_plane<{t}> in{i} = {{p.in{i} + plane * p.plane{i}, p.height{i}, p.width{i}, p.start{i}, p.end{i}}};",
                t = g.dtype.name()
            );
        }
    }

    fn run(&mut self, mut code: Code<'_>, runs: &[Run]) -> Result<(), DeviceError> {
        self.load_column_taps();
        let lazy = self.schedule.lazy.clone();
        self.advance(&mut code, &lazy)?;
        for (n, group) in self.schedule.groups.clone().iter().enumerate() {
            if let Some(run) = runs.iter().find(|r| r.groups().contains(&n)) {
                if n == run.groups().start {
                    self.rolled(run, &mut code)?;
                    self.advance(&mut code, &lazy)?;
                }
                continue;
            }
            let array = format!("a{n}");
            let step = self.step(group.leaves[0]);
            let _ = writeln!(
                self.body,
                "    {} {array}[{}][{}][{}];\n    hs_start<{}>({array});",
                self.kernel.leaves[group.leaves[0]].dtype.name(),
                group.leaves.len(),
                self.block.rows,
                self.block.cols,
                step,
            );
            match group.how {
                How::Dense(tile) => self.dense(group, tile, &array),
                How::Chunked(rows) => self.chunked(group, rows, &array),
                How::Sparse(tile) => self.sparse(group, tile, &array),
                How::Median(tile) => self.median(group, tile, &array),
                How::Column(slot) => self.column(group, slot, &array),
            }
            for (g, &l) in group.leaves.iter().enumerate() {
                code.define(l, &format!("{array}[{g}]"));
            }
            self.advance(&mut code, &lazy)?;
        }
        // A kernel may be a single leaf.
        if let Some(horus_core::kernel::Val::Leaf(l)) = self.kernel.result
            && lazy[l]
        {
            let array = self.read(l)?;
            code.define(l, &array);
        }
        let dtype = self.kernel.result_type();
        let array = code.result(&mut self.body, &mut self.params, dtype, self.block.rows, self.block.cols);
        let _ = writeln!(
            self.body,
            "    hs_store_block(p.out + plane * p.out_plane, p.out_start, p.width, y, x, p.row1, p.out_aligned, {array});"
        );
        Ok(())
    }

    fn advance(&mut self, code: &mut Code<'_>, lazy: &[bool]) -> Result<(), DeviceError> {
        let mut body = std::mem::take(&mut self.body);
        let mut params = std::mem::take(&mut self.params);
        let (rows, cols) = (self.block.rows, self.block.cols);
        let done = code.advance(&mut body, &mut params, rows, cols, lazy, |l, body, params| {
            // Leaves write through the same state as groups do.
            std::mem::swap(&mut self.body, body);
            std::mem::swap(&mut self.params, params);
            let array = self.read(l);
            std::mem::swap(&mut self.body, body);
            std::mem::swap(&mut self.params, params);
            array
        });
        self.body = body;
        self.params = params;
        done
    }

    pub(super) fn read(&mut self, l: usize) -> Result<String, DeviceError> {
        leaves::read(self, l)
    }

    /// The type that says how a leaf accumulates.
    pub(super) fn step(&mut self, l: usize) -> String {
        leaves::step(self.kernel, l, &mut self.helpers)
    }

    /// The constant of a border, in the type of the image it is read from.
    pub(super) fn border_value(&mut self, border: Border, dtype: DType) -> String {
        match border.constant() {
            Some(v) => self.params.constant(Scalar::from_f64(dtype, v), dtype),
            None => format!("({})0", dtype.name()),
        }
    }

    /// Taps for code that is unrolled: parameters if there is room.
    pub(super) fn fixed_taps(&mut self, dtype: DType, taps: &[f64]) -> String {
        self.params.taps(dtype, taps).unwrap_or_else(|| {
            let at = self.table.rows(dtype, taps.len(), taps.len(), taps);
            self.table_at(dtype, at)
        })
    }

    /// A pointer into the table.
    pub(super) fn table_at(&self, dtype: DType, at: usize) -> String {
        format!("reinterpret_cast<const {}*>(p.table + {at})", dtype.name())
    }

    fn finish(self, shapes: &Shapes<'_>) -> Result<Program, DeviceError> {
        let Block { bx, by, rows, cols } = self.block;
        let tiles_x = shapes.output.shape.width.div_ceil(self.block.width());
        let tiles_y = shapes.rows.len().div_ceil(self.block.height());
        // Divisions at the beginning of every block would cost a few hundredths of a light kernel.
        let planar = shapes.output.shape.channels == 1 && tiles_y <= MOST_BLOCKS_DOWN;
        let (grid, tile) = if planar {
            let tile = "const int tile_x = blockIdx.x, tile_y = blockIdx.y, plane = 0;";
            ([blocks(tiles_x, "a kernel")?, blocks(tiles_y, "a kernel")?], tile)
        } else {
            let tile = "const int tile_x = (int)(blockIdx.x % (u32)p.tiles_x), rest = (int)(blockIdx.x / (u32)p.tiles_x);\n    \
                        const int tile_y = rest % p.tiles_y, plane = rest / p.tiles_y;";
            ([blocks(tiles_x * tiles_y * shapes.output.shape.channels, "a kernel")?, 1], tile)
        };
        // A warp over 8 x 4 pixels touches fewer lines of a turned image than one over 32 x 1; it cannot store vectors.
        let square = self.schedule.groups.is_empty() && cols == 1 && bx.is_multiple_of(8) && by.is_multiple_of(4);
        let place = if square {
            let across = bx / 8;
            format!(
                "const int t = threadIdx.x, tx = (t & 7) + 8 * ((t >> 5) % {across}), ty = ((t >> 3) & 3) + 4 * ((t >> 5) / {across});"
            )
        } else {
            format!("const int tx = threadIdx.x % {bx}, ty = threadIdx.x / {bx};")
        };
        let threads = self.block.threads();
        let bounds = match self.tuning.blocks {
            0 => threads.to_string(),
            n => format!("{threads}, {n}"),
        };
        let code = format!(
            "{}extern \"C\" __global__ void __launch_bounds__({bounds}) hs_kernel(const __grid_constant__ hs_params p) {{\n    {tile}\n    {place}\n    \
             const int x0 = tile_x * {}, y0 = p.row0 + tile_y * {};\n    \
             const int x = x0 + tx * {cols}, y = y0 + ty * {rows};\n{}}}\n",
            self.types,
            self.block.width(),
            self.block.height(),
            self.body,
        );
        let (declaration, bytes, pointers) = self.params.finish();
        let headers = [PRELUDE, TILE, DENSE, SEPARABLE, GATHER, &self.helpers];
        Ok(Program {
            source: assemble(&headers, &declaration, &code),
            params: bytes,
            pointers,
            table: self.table.bytes,
            grid,
            block: threads as u32,
            shared: self.shared as u32,
            clear: false,
            early: false,
            cost: self.cost,
        })
    }
}
