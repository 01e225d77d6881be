//! Several iterations of a loop in one launch (`kernels/steps.cuh`): each block of threads has a tile of the state,
//! runs all iterations, and stores the part that is valid at the end.
//!
//! ```text
//!      halo            width of the tile - 2 halo           halo
//! | computed by the | computed by this block alone, and | computed by the |
//! | next block, too | stored | next block, too |
//! ```
//!
//! The halo is as wide as the reach of all iterations together, in whole vectors. The number of iterations and the taps
//! are parameters: one binary serves all.

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, Leaf, LeafOp, Repeat};
use horus_core::ops::edge::WarpEdge;
use horus_core::ops::geometric::Affine;
use horus_core::ops::neighbourhood::{Filter, OrderFilter, Reach};
use horus_core::shape::{Axis, Border, Window};

use super::cpp::{CppCall, Expr, Stmt, args, name, pixel, template, text};
use super::instructions::{Instructions, declare_extent};
use super::map::Helpers;
use super::params::KernelParams;
use super::{
    GATHER, Generated, KernelLimits, NEAR, PRELUDE, Pointer, STEPS, Shapes, assemble, blocks, border_name, defect,
    entry,
};
use super::{first_row, plane_at, rows_aligned};
use crate::tuning::{Tuning, repeat_tunings};

/// Most blocks of a launch in its second dimension.
const MOST_BLOCKS_DOWN: usize = 65_535;
/// Threads of a warp.
const WARP: usize = 32;

/// A tile: pixels of a thread, and warps below one another.
#[derive(Clone, Copy, Debug)]
struct RepeatTile {
    rows: usize,
    cols: usize,
    warps: usize,
    /// Reach of an iteration.
    reach: Reach,
    dtype: DType,
}

impl RepeatTile {
    fn width(self) -> usize {
        WARP * self.cols
    }

    fn height(self) -> usize {
        self.warps * self.rows
    }

    /// Reach of an iteration in either direction, in columns and in rows.
    fn furthest(self) -> [usize; 2] {
        let Reach { up, down, left, right } = self.reach;
        [left.max(right), up.max(down)]
    }

    /// Columns and rows around the stored part after so many iterations: whole vectors.
    fn halo(self, steps: usize) -> [usize; 2] {
        let [across, down] = self.furthest().map(|n| n * steps);
        [across.next_multiple_of(self.cols), down]
    }

    /// Elements of the rows that the warps exchange in an iteration.
    fn shown(self) -> usize {
        self.warps * self.rows.min(self.reach.up + self.reach.down) * self.width()
    }

    /// Bytes of shared memory: the exchanged rows of two iterations, and a tile at the edge of the image.
    fn bytes(self) -> usize {
        (2 * self.shown() + self.height() * self.width()) * self.dtype.size()
    }

    /// The tile of a tuning, or the largest if less than a quarter of the tuned tile is stored in one direction.
    fn of(repeat: &Repeat, tuning: &Tuning, limits: KernelLimits) -> Result<RepeatTile, DeviceError> {
        let dtype = repeat.body.result_type();
        let of = |t: Tuning| RepeatTile { rows: t.rows, cols: t.cols, warps: t.by, reach: repeat.reach(), dtype };
        let serves = |tile: RepeatTile, stored: usize| {
            let halo = tile.halo(repeat.iterations);
            let wide = |n: usize, halo: usize| n > 2 * halo && stored * (n - 2 * halo) >= n;
            wide(tile.width(), halo[0]) && wide(tile.height(), halo[1]) && tile.bytes() <= limits.shared
        };
        let tile = of(*tuning);
        if serves(tile, 4) {
            return Ok(tile);
        }
        let largest = repeat_tunings(dtype).into_iter().map(of).filter(|tile| serves(*tile, usize::MAX));
        largest.max_by_key(|tile| tile.width() * tile.height()).ok_or_else(|| {
            DeviceError::Limit(format!("{} steps need {} bytes of shared memory", repeat.iterations, tile.bytes()))
        })
    }
}

/// State of the generation of one kernel.
struct Generator<'a> {
    repeat: &'a Repeat,
    tile: RepeatTile,
    params: KernelParams,
    helpers: Helpers,
}

pub(super) fn generate(
    repeat: &Repeat,
    shapes: &Shapes<'_>,
    tuning: &Tuning,
    limits: KernelLimits,
) -> Result<Generated, DeviceError> {
    if let Some(fault) = repeat.fault() {
        return Err(defect(format_args!("steps that cannot be put together: {fault}")));
    }
    for l in &repeat.body.leaves {
        if matches!(l.op, LeafOp::Correlate(..)) && !l.dtype.is_float() {
            return Err(DeviceError::Unsupported { kernel: repeat.body.to_string(), dtype: l.dtype });
        }
    }
    let tile = RepeatTile::of(repeat, tuning, limits)?;
    let (params, helpers) = (KernelParams::default(), Helpers::default());
    let mut generator = Generator { repeat, tile, params, helpers };
    let mut body = Vec::new();
    let [across, down] = generator.declare(shapes);
    generator.run(shapes, &mut body)?;
    generator.finish(shapes, [across, down], tuning.blocks.max(1), &body)
}

impl Generator<'_> {
    /// Parameters that describe the output, the inputs and the iterations; returns the number of tiles across and down.
    fn declare(&mut self, shapes: &Shapes<'_>) -> [usize; 2] {
        let (p, output, tile) = (&mut self.params, shapes.output, self.tile);
        let halo = tile.halo(self.repeat.iterations);
        let tiles = [
            output.shape.width.div_ceil(tile.width() - 2 * halo[0]),
            shapes.rows.len().div_ceil(tile.height() - 2 * halo[1]),
        ];
        p.pointer(output.dtype.name(), "out", Pointer::Output { offset: 0 });
        p.long("out_plane", output.plane() as i64);
        let rows: Vec<Window> = shapes
            .inputs
            .iter()
            .enumerate()
            .map(|(i, g)| self.repeat.body.readable(i, g.window, g.shape.height))
            .collect();
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
        p.int("out_start", output.window.start);
        p.int("out_aligned", rows_aligned(&output) as isize);
        p.int("width", output.shape.width.cast_signed());
        p.int("row0", shapes.rows.start);
        p.int("row1", shapes.rows.end);
        declare_extent(&self.repeat.body, p, output.shape);
        p.int("steps", self.repeat.iterations.cast_signed());
        p.int("halo_x", halo[0].cast_signed());
        p.int("halo_y", halo[1].cast_signed());
        p.int("tiles_x", tiles[0].cast_signed());
        p.int("tiles_y", tiles[1].cast_signed());
        tiles
    }

    /// Emits the reads before the first iteration, the iterations and the store.
    fn run(&mut self, shapes: &Shapes<'_>, out: &mut Vec<Stmt>) -> Result<(), DeviceError> {
        let (repeat, RepeatTile { rows, cols, .. }) = (self.repeat, self.tile);
        let (body, state) = (&repeat.body, repeat.state);
        let planes = shapes.inputs.iter().enumerate();
        out.extend(planes.map(|(i, g)| plane(&format!("in{i}"), i, g, name("plane"))));
        let border = repeat.border();
        let around = border.unwrap_or(Border::Replicate);
        let value = self.border_value(around);
        self.load((&format!("in{state}"), state), "u", around, value.clone(), self.tile.dtype, out);
        let mut code = Instructions::new(body, rows, cols);
        let order = code.order();
        for &l in &order {
            if body.leaves[l].source() != FilterSource::Input(state) {
                self.read_before(l, shapes, out)?;
                code.define(l, &format!("l{l}"));
            }
        }
        // Values that are the same in all iterations are computed before the loop, unless a value takes two registers.
        // With a row times a column kept in f64, 8 iterations took 1.35 times as long on an H200 as with the product in
        // each iteration, when pixels were in shared memory.
        let eager = vec![false; body.leaves.len()];
        if self.tile.dtype.size() <= size_of::<f32>() {
            code.advance(out, &mut self.params, &eager)?;
        }
        let mut steps = Vec::new();
        if let Some(border) = border {
            self.surround(border, value, &mut steps);
        }
        for &l in &order {
            if body.leaves[l].source() == FilterSource::Input(state) {
                let array = self.read_state(l, &mut steps)?;
                code.define(l, &array);
            }
        }
        code.advance(&mut steps, &mut self.params, &eager)?;
        let result = code.result(&mut steps, &mut self.params, self.tile.dtype)?;
        steps.push(Stmt::fill((rows, cols), "u", pixel(result)));
        out.push(Stmt::For { variable: "k", first: 0.into(), end: name("p.steps"), step: 1, body: steps });
        let to = plane_at(name("p.out"), name("plane"), name("p.out_plane"));
        let store = args![to, "p.out_start", "p.width", "y", "x", "y1", "y2", "x1", "x2", "p.out_aligned", "u"];
        out.push(CppCall::new("hs_store_part", template![], store).into());
        Ok(())
    }

    /// Declares the pixels of a thread, and loads them from an image, a plane of this input.
    fn load(
        &self,
        (image, i): (&str, usize),
        array: &str,
        border: Border,
        value: Expr,
        dtype: DType,
        out: &mut Vec<Stmt>,
    ) {
        let tile = self.tile;
        out.push(Stmt::Array { dtype, name: array.to_owned(), extents: vec![tile.rows, tile.cols] });
        let inside = {
            let (y1, x1) = (name("y0") + tile.height(), name("x0") + tile.width());
            CppCall::new("hs_holds", template![], args![image, "y0", y1, "x0", x1])
        };
        let args = args![image, "y", "x", Expr::from(inside), format!("p.aligned{i}"), value, array];
        out.push(CppCall::new("hs_load_part", template![border_name(border)], args).into());
    }

    /// A leaf that is the same for all iterations.
    fn read_before(&mut self, l: usize, shapes: &Shapes<'_>, out: &mut Vec<Stmt>) -> Result<(), DeviceError> {
        let Leaf { op, dtype } = &self.repeat.body.leaves[l];
        let zero = name(format_args!("({})0", dtype.name()));
        let array = format!("l{l}");
        match op {
            LeafOp::Load(i) => self.load((&format!("in{i}"), *i), &array, Border::Replicate, zero, *dtype, out),
            LeafOp::LoadPlane(i, map) => {
                let c =
                    map.fixed().ok_or_else(|| defect(format_args!("leaf {l} reads other levels in other planes")))?;
                self.params.int(&format!("channel{l}"), c.cast_signed());
                let of = format!("of{l}");
                out.push(plane(&of, *i, &shapes.inputs[*i], name(format_args!("p.channel{l}"))));
                self.load((&of, *i), &array, Border::Replicate, zero, *dtype, out);
            }
            LeafOp::Warp(i, map, _, WarpEdge::Border(border)) => {
                let value = match border.constant() {
                    Some(v) => self.params.constant(Scalar::from_f64(*dtype, v), *dtype),
                    None => zero,
                };
                self.repeated(l, *i, map, *border, value, out);
            }
            _ => return Err(defect(format_args!("leaf {l} reads around a pixel of what stays"))),
        }
        Ok(())
    }

    /// A repeated row, column or pixel, which is read once for the rows and columns that share it.
    fn repeated(&mut self, l: usize, i: usize, map: &Affine, border: Border, value: Expr, out: &mut Vec<Stmt>) {
        let (dtype, RepeatTile { rows, cols, .. }) = (self.repeat.body.leaves[l].dtype, self.tile);
        let (array, image) = (format!("l{l}"), name(format_args!("in{i}")));
        out.push(Stmt::Array { dtype, name: array.clone(), extents: vec![rows, cols] });
        if let (Some(axis), Border::Replicate) = (map.repeated(), border) {
            // Whole vectors are inside the image or outside.
            let call = match axis {
                Axis::Rows => {
                    let args = args![image, "max(x, 0)", format!("p.aligned{i}"), array];
                    CppCall::new("hs_repeat_row", template![], args)
                }
                _ => CppCall::new("hs_repeat_column", template![], args![image, "y", array]),
            };
            return out.push(call.into());
        }
        let (still_down, still_across) = (map.xy == 0 && map.yy == 0, map.xx == 0 && map.yx == 0);
        let members = [("xx", map.xx), ("xy", map.xy), ("x0", map.x0), ("yx", map.yx), ("yy", map.yy), ("y0", map.y0)];
        for (member, v) in members {
            self.params.long(&format!("w{l}_{member}"), v);
        }
        let at = |to: &str| {
            let of = |of: &str| name(format_args!("p.w{l}_{to}{of}"));
            of("x") * (name("x") + "c") + of("y") * (name("y") + "r") + of("0")
        };
        let args = vec![image, at("y"), at("x"), value];
        let one = CppCall::new("hs_nearest", template![border_name(border)], args);
        let own = (if still_down { 1 } else { rows }, if still_across { 1 } else { cols });
        out.push(Stmt::fill(own, &array, one.into()));
        if own != (rows, cols) {
            let (r, c) = (if still_down { "0" } else { "r" }, if still_across { "0" } else { "c" });
            out.push(Stmt::fill((rows, cols), &array, name(format_args!("{array}[{r}][{c}]"))));
        }
    }

    /// Emits the values beyond the edges of the image, then the pixels around those of the thread.
    fn surround(&self, border: Border, value: Expr, out: &mut Vec<Stmt>) {
        let (tile, state) = (self.tile, self.repeat.state);
        let [height, width] = ["height", "width"].map(|m| name(format_args!("p.{m}{state}")));
        let args = args!["tile", "y0", "x0", "y", "x", height, width, value, "u"];
        let template = template![border_name(border), tile.height(), tile.width()];
        let then = vec![CppCall::new("hs_continue_part", template, args).into()];
        out.push(Stmt::If { condition: name("edge"), then, otherwise: vec![] });
        let Reach { up, down, left, right } = tile.reach;
        let extents = vec![up + tile.rows + down, left + tile.cols + right];
        out.push(Stmt::Array { dtype: tile.dtype, name: "w".into(), extents });
        let filters = self.repeat.body.leaves.iter().filter_map(|l| self.filter(l));
        let corners = filters.flat_map(Filter::offsets).any(|(y, x)| y != 0 && x != 0);
        let template = template![up, down, left, right, corners, tile.warps];
        let shown = name("shown") + name("(k & 1)") * tile.shown();
        out.push(CppCall::new("hs_surround", template, args![shown, "u", "w"]).into());
    }

    /// The filter of a leaf that reads around a pixel of the state.
    fn filter<'l>(&self, leaf: &'l Leaf) -> Option<&'l Filter> {
        match &leaf.op {
            LeafOp::Correlate(source, filter, _) if *source == FilterSource::Input(self.repeat.state) => Some(filter),
            LeafOp::OrderFilter(input, OrderFilter::Fold(g), _) if *input == self.repeat.state => Some(&g.window),
            _ => None,
        }
    }

    /// Reads a leaf from the result of the previous iteration; returns its array.
    fn read_state(&mut self, l: usize, out: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        let leaf = &self.repeat.body.leaves[l];
        if matches!(leaf.op, LeafOp::Load(_)) {
            return Ok("u".into());
        }
        let (Some(filter), RepeatTile { rows, cols, reach, .. }) = (self.filter(leaf), self.tile) else {
            return Err(defect(format_args!("leaf {l} reads the state elsewhere")));
        };
        let (array, step) = (format!("l{l}"), self.helpers.step(leaf));
        out.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![rows, cols] });
        let begin = CppCall::new(format_args!("{step}::init"), template![], args![]);
        out.push(Stmt::fill((rows, cols), &array, begin.into()));
        let taps = self.params.taps(leaf.dtype, filter.taps());
        let taps = taps.ok_or_else(|| defect(format_args!("leaf {l} has {} taps", filter.taps().len())))?;
        for (k, (y, x)) in filter.offsets().into_iter().enumerate() {
            let at = [(reach.up, y), (reach.left, x)].map(|(before, by)| before.cast_signed() + by);
            let args = args!["w", taps.clone() + k, array.as_str()];
            out.push(CppCall::new("hs_near", template![step, at[0], at[1]], args).into());
        }
        Ok(array)
    }

    fn border_value(&mut self, border: Border) -> Expr {
        let dtype = self.tile.dtype;
        match border.constant() {
            Some(v) => self.params.constant(Scalar::from_f64(dtype, v), dtype),
            None => name(format_args!("({})0", dtype.name())),
        }
    }

    /// The kernel around its body.
    fn finish(
        self,
        shapes: &Shapes<'_>,
        tiles: [usize; 2],
        blocks_at_once: usize,
        body: &[Stmt],
    ) -> Result<Generated, DeviceError> {
        let tile = self.tile;
        let planes = shapes.output.shape.planar().planes();
        let planar = planes == 1 && tiles[1] <= MOST_BLOCKS_DOWN;
        let (grid, place) = if planar {
            let place = "const int tile_x = blockIdx.x, tile_y = blockIdx.y, plane = 0;";
            (tiles.map(|n| blocks(n, "a kernel")), place)
        } else {
            let place = "const int tile_x = (int)(blockIdx.x % (u32)p.tiles_x), rest = (int)(blockIdx.x / (u32)p.tiles_x);\n    \
                         const int tile_y = rest % p.tiles_y, plane = rest / p.tiles_y;";
            ([blocks(tiles[0] * tiles[1] * planes, "a kernel"), Ok(1)], place)
        };
        let [across, down] = grid;
        let (width, height, t) = (tile.width(), tile.height(), tile.dtype.name());
        let frame = format!(
            "    {place}\n    \
             const int x0 = tile_x * ({width} - 2 * p.halo_x) - p.halo_x, y0 = p.row0 + tile_y * ({height} - 2 * p.halo_y) - p.halo_y;\n    \
             const int x = x0 + (int)(threadIdx.x % {WARP}) * {cols}, y = y0 + (int)(threadIdx.x / {WARP}) * {rows};\n    \
             const int y1 = y0 + p.halo_y, y2 = min(p.row1, y0 + {height} - p.halo_y);\n    \
             const int x1 = x0 + p.halo_x, x2 = min(p.width, x0 + {width} - p.halo_x);\n    \
             const bool edge = y0 < 0 || x0 < 0 || y0 + {height} > p.height{state} || x0 + {width} > p.width{state};\n    \
             {t}* const tile = reinterpret_cast<{t}*>(hs_smem);\n    \
             {t}* const shown = tile + {elements};\n{}",
            text(body),
            rows = tile.rows,
            cols = tile.cols,
            elements = width * height,
            state = self.repeat.state,
        );
        let (declaration, bytes, pointers) = self.params.finish();
        let threads = WARP * tile.warps;
        Ok(Generated {
            source: assemble(
                &[PRELUDE, GATHER, NEAR, STEPS, &self.helpers.text()],
                &declaration,
                &entry(format_args!("{threads}, {blocks_at_once}"), &frame),
            ),
            params: bytes,
            pointers,
            table: Vec::new(),
            grid: [across?, down?],
            block: threads as u32,
            shared: if self.repeat.border().is_some() { tile.bytes() as u32 } else { 0 },
            clear: false,
            early: false,
            cost: 0,
            sequence: None,
        })
    }
}

/// Declares a plane of an input.
fn plane(called: &str, i: usize, g: &Geometry, plane: Expr) -> Stmt {
    let member = |member: &str| name(format_args!("p.{member}{i}"));
    let first = plane_at(name(format_args!("p.in{i}")), plane, member("plane"));
    let members = vec![first, member("height"), member("width"), member("start"), member("end")];
    let ctype = format!("const hs_plane<{}>", g.dtype.name());
    Stmt::Let { ctype, name: called.to_owned(), value: Expr::Members(None, members) }
}
