//! Kernels with leaves that read beyond the pixel.
//!
//! [`filters`], [`selection`] and [`row_passes`] compute leaves from shared memory, whose contents [`shared`] tracks;
//! [`leaves`] reads others pixel by pixel; [`loops`] combines similar iterations.

mod accumulate;
mod chains;
mod filters;
mod leaves;
mod loops;
mod row_passes;
mod selection;
mod shared;

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, Leaf, LeafOp, MapKernel, Val};
use horus_core::ops::neighbourhood::{Filter, OrderFilter};
use horus_core::shape::{Border, Window};

use super::cpp::{CppCall, Expr, Stmt, args, calls, name, template, text};
use super::instructions::{Instructions, Leaves, declare_extent};
use super::params::{ConstantTable, KernelParams};
use super::schedule::{KernelSchedule, LeafGroup, Method, REGION, ThreadBlock, schedule};
use super::similar::{GroupLoop, loops};
use super::{BYTES, DENSE, GATHER, Generated, KernelLimits, NEAR, PRELUDE, Pointer, Repeats, SEPARABLE, Shapes, TILE};
use super::{assemble, blocks, cost, defect, entry, first_row, outputs, parts, plane_at, rows_aligned};
use crate::tuning::Tuning;
pub(super) use accumulate::Helpers;
use chains::constant_bytes;
use loops::NEED_BYTES;
use shared::SharedMemory;

/// Most blocks that a launch may have in its second dimension.
const MOST_BLOCKS_DOWN: usize = 65_535;

/// The state of generating one kernel. Methods emit into the statements that they are given.
#[derive(Debug)]
struct MapGenerator<'a> {
    kernel: &'a MapKernel,
    block: ThreadBlock,
    tuning: &'a Tuning,
    schedule: &'a KernelSchedule,
    params: KernelParams,
    table: ConstantTable,
    /// Functions and types that leaves accumulate with.
    helpers: Helpers,
    shared: SharedMemory,
    /// Offsets in shared memory of the taps of looped column filters.
    column_taps: Vec<Option<usize>>,
    /// Number of tiles loaded so far whose extent is data.
    loose_tiles: usize,
    /// The images of which the thread has pixels around its own in registers.
    windows: Vec<(FilterSource, Border)>,
    /// Approximate number of instructions so far.
    cost: usize,
    /// For each leaf, `true` if it is computed in a loop over similar iterations.
    looped: Vec<bool>,
    /// For each leaf, `true` if it was read together with others.
    read: Vec<bool>,
}

pub(super) fn generate(
    kernel: &MapKernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
    repeats: Repeats,
) -> Result<Generated, DeviceError> {
    let (block, schedule) = scheduled(kernel, shapes, tuning, limits)?;
    emit(kernel, (block, &schedule), shapes, tuning, repeats)
}

/// The kernel and program of the reads and stores of another kernel, in the schedule of the other.
pub(super) fn memory_only(
    kernel: &MapKernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<(MapKernel, Generated), DeviceError> {
    let (block, mut schedule) = scheduled(kernel, shapes, tuning, limits)?;
    let moved = parts::memory_only(kernel, &mut schedule);
    let program = emit(&moved, (block, &schedule), shapes, tuning, Repeats::Inlined)?;
    Ok((moved, program))
}

fn scheduled(
    kernel: &MapKernel,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<(ThreadBlock, KernelSchedule), DeviceError> {
    for l in &kernel.leaves {
        if matches!(l.op, LeafOp::Correlate(..)) && !l.dtype.is_float() {
            return Err(DeviceError::Unsupported { kernel: kernel.to_string(), dtype: l.dtype });
        }
    }
    let block = ThreadBlock::of(kernel, tuning, shapes.output.shape.planar().planes());
    let order = Instructions::new(kernel, block.rows, block.cols).order();
    // Space for the taps of every column, looped or not.
    let column_taps: usize = kernel
        .leaves
        .iter()
        .map(|l| match &l.op {
            LeafOp::Correlate(FilterSource::Stage(_), f, _) => f.taps().len() * l.dtype.size() + 16,
            _ => 0,
        })
        .sum();
    Ok((block, schedule(kernel, &order, block, tuning, limits, column_taps.next_multiple_of(REGION))))
}

fn emit(
    kernel: &MapKernel,
    (block, schedule): (ThreadBlock, &KernelSchedule),
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    repeats: Repeats,
) -> Result<Generated, DeviceError> {
    let code = Instructions::new(kernel, block.rows, block.cols);
    let mut loops = loops(kernel, &schedule.groups, &code.sequence(&schedule.groups, &schedule.lazy));
    loops.retain(|l| l.work(kernel, &schedule.groups, block) > tuning.unroll);
    let mut looped = vec![false; kernel.leaves.len()];
    for l in &loops {
        schedule.groups[l.groups()].iter().flat_map(|g| &g.leaves).for_each(|&l| looped[l] = true);
    }
    // Only the first iteration of a loop is code.
    let again: Vec<usize> = loops.iter().flat_map(|l| &l.iterations[1..]).flat_map(|i| i.code.clone()).collect();
    let mut map = MapGenerator {
        kernel,
        block,
        tuning,
        schedule,
        params: KernelParams::default(),
        table: ConstantTable::default(),
        helpers: Helpers::default(),
        shared: SharedMemory::new(schedule.slots.len()),
        column_taps: vec![None; kernel.leaves.len()],
        loose_tiles: 0,
        windows: Vec::new(),
        cost: cost::code(kernel, (0..kernel.code.len()).filter(|i| !again.contains(i)), block),
        looped,
        read: vec![false; kernel.leaves.len()],
    };
    map.params.reserve(NEED_BYTES * loops.iter().map(|l| l.groups().len()).sum::<usize>());
    map.params.reserve(kernel.chains.iter().map(constant_bytes).sum());
    let mut body = Vec::new();
    map.declare(shapes, &mut body);
    let types = map.declare_chains(&mut body)?;
    map.run(code, &loops, shapes, &mut body)?;
    if repeats == Repeats::Called {
        map.cost = map.cost.saturating_sub(calls::share(&mut body));
    }
    map.finish(shapes, &types, &body)
}

impl Leaves for MapGenerator<'_> {
    fn params(&mut self) -> &mut KernelParams {
        &mut self.params
    }

    fn read(&mut self, l: usize, out: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        self.read_leaf(l, out)
    }
}

/// The members of the plane of input `i` that begins at `first`.
fn plane_of(i: usize, first: Expr) -> Vec<Expr> {
    let member = |member: &str| name(format_args!("p.{member}{i}"));
    vec![
        plane_at(name(format_args!("p.in{i}")), first, member("plane")),
        member("height"),
        member("width"),
        member("start"),
        member("end"),
    ]
}

impl MapGenerator<'_> {
    /// Parameters that describe the output and the inputs.
    fn declare(&mut self, shapes: &Shapes<'_>, out: &mut Vec<Stmt>) {
        let (p, output) = (&mut self.params, shapes.output);
        let stored = outputs(self.kernel, output, |_| 0);
        for (name, g, pointer) in &stored {
            p.pointer(g.dtype.name(), name, *pointer);
        }
        p.pointer("const unsigned char", "table", Pointer::Table);
        p.long("out_plane", output.plane() as i64);
        let inputs = shapes.inputs.iter().enumerate();
        let rows: Vec<Window> = inputs.map(|(i, g)| self.kernel.readable(i, g.window, g.shape.height)).collect();
        for (i, (g, rows)) in shapes.inputs.iter().zip(&rows).enumerate() {
            p.pointer(&format!("const {}", g.dtype.name()), &format!("in{i}"), first_row(i, g, *rows));
            p.long(&format!("plane{i}"), g.plane() as i64);
        }
        for (i, (g, rows)) in shapes.inputs.iter().zip(&rows).enumerate() {
            p.int(&format!("height{i}"), g.shape.height.cast_signed());
            p.int(&format!("width{i}"), g.shape.width.cast_signed());
            p.int(&format!("start{i}"), rows.start);
            p.int(&format!("end{i}"), rows.end);
            p.int(&format!("aligned{i}"), rows_aligned(g) as isize);
        }
        for (name, g, _) in &stored {
            p.int(&format!("{name}_aligned"), rows_aligned(g) as isize);
        }
        p.int("out_start", output.window.start);
        p.int("width", output.shape.width.cast_signed());
        if !self.kernel.chains.is_empty() {
            p.int("height", output.shape.height.cast_signed());
        }
        p.int("row0", shapes.rows.start);
        p.int("row1", shapes.rows.end);
        declare_extent(self.kernel, p, output.shape);
        p.int("tiles_x", output.shape.width.div_ceil(self.block.width()).cast_signed());
        p.int("tiles_y", shapes.rows.len().div_ceil(self.block.height()).cast_signed());
        if self.block.levels > 1 {
            p.int("planes", output.shape.planar().planes().cast_signed());
        }
        out.extend(shapes.inputs.iter().enumerate().map(|(i, g)| Stmt::Let {
            ctype: format!("const hs_plane<{}>", g.dtype.name()),
            name: format!("in{i}"),
            value: Expr::Members(None, plane_of(i, name("plane"))),
        }));
    }

    /// Emits every group, every instruction and the stores of the results.
    fn run(
        &mut self,
        mut code: Instructions<'_>,
        loops: &[GroupLoop],
        shapes: &Shapes<'_>,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let schedule = self.schedule;
        self.load_column_taps(out)?;
        code.advance(out, self, &schedule.lazy)?;
        for (n, group) in schedule.groups.iter().enumerate() {
            if let Some(l) = loops.iter().find(|l| l.groups().contains(&n)) {
                // All of its groups are emitted with the first.
                if n == l.groups().start {
                    self.emit_loop(l, &mut code, out)?;
                    code.advance(out, self, &schedule.lazy)?;
                }
                continue;
            }
            let array = format!("a{n}");
            self.declare_accumulators(group, &array, out);
            match group.method {
                Method::Dense(tile) => self.dense(group, tile, &array, out)?,
                Method::Products(tile) => self.products(group, tile, &array, out)?,
                Method::Chunked(rows) => self.chunked(group, rows, &array, out)?,
                Method::Sparse(tile) => self.sparse(group, tile, &array, out)?,
                Method::Near(reach) => self.near(group, reach, &array, out)?,
                Method::Selection(tile) => self.selection(group, tile, &array, out)?,
                Method::Column(slot) => self.column(group, slot, &array, out)?,
            }
            for (g, &l) in group.leaves.iter().enumerate() {
                code.define(l, &format!("{array}[{g}]"));
            }
            code.advance(out, self, &schedule.lazy)?;
        }
        // A result may be a leaf that no instruction reads.
        for value in self.kernel.results() {
            if let Val::Leaf(l) = value
                && schedule.lazy[l]
                && !code.is_defined(l)
            {
                let array = self.read_leaf(l, out)?;
                code.define(l, &array);
            }
        }
        let arrays = code.results(out, &mut self.params)?;
        for ((member, ..), array) in outputs(self.kernel, shapes.output, |_| 0).iter().zip(arrays) {
            let to = plane_at(name(format_args!("p.{member}")), name("plane"), name("p.out_plane"));
            let aligned = name(format_args!("p.{member}_aligned"));
            let args = args![to, "p.out_start", "p.width", "y", "x", "p.row1", aligned, array];
            out.push(CppCall::new("hs_store_block", template![], args).into());
        }
        Ok(())
    }

    /// Declares the accumulators of a group's leaves.
    fn declare_accumulators(&mut self, group: &LeafGroup, array: &str, out: &mut Vec<Stmt>) {
        let leaf = &self.kernel.leaves[group.leaves[0]];
        let step = self.helpers.step(leaf);
        let extents = vec![group.leaves.len(), self.block.rows, self.block.cols];
        out.push(Stmt::Array { dtype: leaf.dtype, name: array.to_owned(), extents });
        out.push(CppCall::new("hs_start", template![step], args![array]).into());
    }

    /// The filter of a leaf in a group of filters.
    fn filter(&self, l: usize) -> Result<&Filter, DeviceError> {
        match &self.kernel.leaves[l].op {
            LeafOp::Correlate(_, f, _) => Ok(f),
            LeafOp::OrderFilter(_, OrderFilter::Fold(g), _) => Ok(&g.window),
            _ => Err(defect(format_args!("leaf {l} is no filter"))),
        }
    }

    /// The constant of a border, in the type of the image that is read.
    fn border_value(&mut self, border: Border, dtype: DType) -> Expr {
        match border.constant() {
            Some(v) => self.params.constant(Scalar::from_f64(dtype, v), dtype),
            None => name(format_args!("({})0", dtype.name())),
        }
    }

    /// Taps for unrolled code: parameters if they fit.
    fn fixed_taps(&mut self, dtype: DType, taps: &[f64]) -> Expr {
        self.params.taps(dtype, taps).unwrap_or_else(|| self.table_rows(dtype, taps.len(), taps.len(), taps))
    }

    /// Adds rows of taps to the table and returns a pointer to them.
    fn table_rows(&mut self, dtype: DType, width: usize, pitch: usize, taps: &[f64]) -> Expr {
        let at = self.table.rows(dtype, width, pitch, taps);
        Expr::Table(dtype.name().into(), Box::new(at.into()))
    }

    /// The kernel around its body.
    fn finish(self, shapes: &Shapes<'_>, types: &str, body: &[Stmt]) -> Result<Generated, DeviceError> {
        let ThreadBlock { bx, by, rows, cols, levels } = self.block;
        let tiles_x = shapes.output.shape.width.div_ceil(self.block.width());
        let tiles_y = shapes.rows.len().div_ceil(self.block.height());
        // Divisions at the start of every block would cost a small kernel a few percent.
        let planar = shapes.output.shape.planar().planes() == 1 && tiles_y <= MOST_BLOCKS_DOWN;
        let (grid, tile) = if planar {
            let tile = "const int tile_x = blockIdx.x, tile_y = blockIdx.y, plane = 0;".to_owned();
            ([blocks(tiles_x, "a kernel")?, blocks(tiles_y, "a kernel")?], tile)
        } else {
            let plane = match levels {
                1 => "plane = rest / p.tiles_y;".to_owned(),
                n => format!(
                    "plane = rest / p.tiles_y * {n} + (int)threadIdx.x / {};\n    if (plane >= p.planes) return;",
                    bx * by
                ),
            };
            let tile = format!(
                "const int tile_x = (int)(blockIdx.x % (u32)p.tiles_x), rest = (int)(blockIdx.x / (u32)p.tiles_x);\n    \
                 const int tile_y = rest % p.tiles_y, {plane}"
            );
            let deep = shapes.output.shape.planar().planes().div_ceil(levels);
            ([blocks(tiles_x * tiles_y * deep, "a kernel")?, 1], tile)
        };
        // A warp over 8 x 4 pixels reads fewer cache lines of a rotated image than one over 32 x 1; it cannot store
        // vectors.
        let samples =
            |l: &Leaf| matches!(l.op, LeafOp::Warp(..) | LeafOp::Flip(..)) && l.at_offset().is_none() && !l.repeats();
        let gathers = self.schedule.groups.is_empty() && self.kernel.leaves.iter().any(samples);
        let square = gathers && cols == 1 && bx.is_multiple_of(8) && by.is_multiple_of(4);
        let place = if square {
            let across = bx / 8;
            format!(
                "const int t = threadIdx.x, tx = (t & 7) + 8 * ((t >> 5) % {across}), ty = ((t >> 3) & 3) + 4 * ((t >> 5) / {across});"
            )
        } else {
            format!("const int tx = threadIdx.x % {bx}, ty = threadIdx.x / {bx} % {by};")
        };
        let threads = self.block.threads();
        let bounds = match self.tuning.blocks {
            0 => threads.to_string(),
            n => format!("{threads}, {n}"),
        };
        let code = format!(
            "    {tile}\n    {place}\n    \
             const int x0 = tile_x * {}, y0 = p.row0 + tile_y * {};\n    \
             const int x = x0 + tx * {cols}, y = y0 + ty * {rows};\n{}",
            self.block.width(),
            self.block.height(),
            text(body),
        );
        let (declaration, bytes, pointers) = self.params.finish();
        let helpers = self.helpers.text();
        let code = format!("{types}{}", entry(bounds, &code));
        let mut headers = vec![PRELUDE, TILE, DENSE, SEPARABLE, GATHER];
        if self.schedule.groups.iter().any(|g| matches!(g.method, Method::Products(_))) {
            headers.push(BYTES);
        }
        if self.schedule.groups.iter().any(|g| matches!(g.method, Method::Near(_))) {
            headers.push(NEAR);
        }
        headers.push(&helpers);
        Ok(Generated {
            source: assemble(&headers, &declaration, &code),
            params: bytes,
            pointers,
            table: self.table.bytes,
            grid,
            block: threads as u32,
            shared: self.shared.bytes() as u32,
            clear: false,
            early: false,
            cost: self.cost,
            sequence: None,
        })
    }
}
