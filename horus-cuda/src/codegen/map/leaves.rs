//! Leaves that are read pixel by pixel from global memory.

use horus_core::dtype::{DType, Scalar};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, LeafOp};
use horus_core::ops::edge::WarpEdge;
use horus_core::ops::geometric::{Affine, Flip, Interpolation};
use horus_core::ops::neighbourhood::{FilterLayout, OrderFilter, Pairing, Truncated};
use horus_core::shape::{Axis, Border};

use super::super::cpp::{CppCall, Expr, Operator, Stmt, args, name, pixel, template};
use super::super::planes::PlaneRead;
use super::super::schedule::window;
use super::super::{border_name, defect};
use super::chains::source_name;
use super::{MapGenerator, plane_of};

/// Approximate instructions per read.
const READ: usize = 6;

/// A filter truncated to the type of its pixels. Taps after the first multiply the sum of two pixels (`SIGN` 1) or
/// their difference (-1).
const TRUNCATED: &str = "\
struct hs_level_tap { f64 weight; int dy, dx, dz; };
template <int SIGN, int BORDER, class T>
HS_FN T hs_truncated(const hs_plane<T>& in, i64 size, int plane, const int (&levels)[5], int y, int x,
                     const hs_level_tap* taps, int count, T v) {
    const auto pixel = [&](const hs_level_tap& tap) {
        if (tap.dz == 0) return (f64)hs_pixel<BORDER, BORDER>(in, y + tap.dy, x + tap.dx, v);
        const int from = hs_plane_read<BORDER>(plane, levels, tap.dz);
        if (from < 0) return (f64)v;
        const hs_plane<T> level = {in.data + (from - plane) * size, in.height, in.width, in.start, in.end};
        return (f64)hs_pixel<BORDER, BORDER>(level, y + tap.dy, x + tap.dx, v);
    };
    f64 sum = 0.0;
    for (int k = 0; k < count; ++k) {
        const hs_level_tap tap = taps[k];
        f64 value = pixel(tap);
        if (SIGN != 0 && k > 0) {
            ++k;
            const f64 other = pixel(taps[k]);
            value = SIGN > 0 ? value + other : value - other;
        }
        const f64 product = tap.weight * value;
        sum = sum + product;
    }
    return hs_cast<T>(sum);
}
";

/// The row or column of pixel `[r][c]` of the thread.
fn here(origin: &str, offset: &str) -> Expr {
    name(origin) + offset
}

/// Assigns pixel `[r][c]` of an array if it exists.
fn where_it_exists(array: &str, value: impl Into<Expr>) -> Stmt {
    let rows = here("y", "r").with(Operator::Less, "p.row1");
    let condition = rows.with(Operator::And, here("x", "c").with(Operator::Less, "p.width"));
    Stmt::If { condition, then: vec![Stmt::Assign { to: pixel(array), value: value.into() }], otherwise: vec![] }
}

impl MapGenerator<'_> {
    /// Emits the values of a leaf as an array; returns its name.
    pub(super) fn read_leaf(&mut self, l: usize, out: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        let leaf = &self.kernel.leaves[l];
        let extents = (self.block.rows, self.block.cols);
        let t = leaf.dtype.name();
        let array = format!("l{l}");
        if let Some((source, ..)) = leaf.at_offset() {
            self.at_offsets(source, l, out)?;
            return Ok(array);
        }
        out.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![extents.0, extents.1] });
        let load = |plane: Expr, i: usize| {
            let args = args![plane, "y", "x", "p.row1", format!("p.aligned{i}"), array.as_str()];
            CppCall::new("hs_load_block", template![], args).into()
        };
        match &leaf.op {
            LeafOp::Load(i) => out.push(load(name(format_args!("in{i}")), *i)),
            LeafOp::LoadPlane(i, map) => {
                let read = PlaneRead::new(map, leaf.dtype, &l.to_string(), &mut self.params, out);
                let members = plane_of(*i, read.plane.clone());
                let load = load(Expr::Members(Some(format!("hs_plane<{t}>")), members), *i);
                out.push(read.guarded(extents, &array, load));
            }
            // A row or a column that repeats needs no pixel positions.
            &LeafOp::Warp(i, affine, Interpolation::Nearest, WarpEdge::Border(Border::Replicate))
                if affine.repeated().is_some() =>
            {
                let input = name(format_args!("in{i}"));
                let call = match affine.repeated() {
                    Some(Axis::Rows) => {
                        let args = args![input, "x", format!("p.aligned{i}"), array.as_str()];
                        CppCall::new("hs_repeat_row", template![], args)
                    }
                    _ => CppCall::new("hs_repeat_column", template![], args![input, "y", array.as_str()]),
                };
                out.push(call.into());
            }
            &LeafOp::Warp(i, affine, how, edge) => self.warp(l, i, affine, how, edge, out),
            &LeafOp::Flip(i, flip) => {
                let turned = |extent: &str, origin: &str, offset: &str| {
                    name(format_args!("p.{extent}{i}")) - 1 - origin - offset
                };
                let y = if flip.rows() { turned("height", "y", "r") } else { here("y", "r") };
                let x = if matches!(flip, Flip::Vertical) { here("x", "c") } else { turned("width", "x", "c") };
                let row = CppCall::new(format_args!("in{i}.row"), template![], args![y]);
                out.push(Stmt::each_pixel(extents, where_it_exists(&array, format!("{row}[{x}]"))));
            }
            LeafOp::Correlate(FilterSource::Stage(s), column, border) => {
                let stage = &self.kernel.stages[*s];
                let image = source_name(stage.source)?;
                let (h, w) = (column.taps().len(), stage.filter.taps().len());
                let (up, left) = (column.reach().up, stage.filter.reach().left);
                let row_taps = self.table_rows(leaf.dtype, w, w, stage.filter.taps());
                let column_taps = self.table_rows(leaf.dtype, h, h, column.taps());
                let value_y = self.border_value(*border, leaf.dtype);
                let value_x = self.border_value(stage.border, leaf.dtype);
                let (y, x) = (here("y", "r") - up, here("x", "c") - left);
                let value = CppCall::new(
                    "hs_direct_stage",
                    template![border_name(*border), border_name(stage.border)],
                    args![image, y, x, row_taps, w, column_taps, h, value_y, value_x],
                );
                out.push(Stmt::each_pixel(extents, where_it_exists(&array, value)));
            }
            LeafOp::Correlate(..) | LeafOp::OrderFilter(_, OrderFilter::Fold(_), _) => self.direct(l, &array, out)?,
            LeafOp::OrderFilter(input, OrderFilter::Truncated(t), border) => {
                self.truncated(l, (*input, t, *border), &array, out)?;
            }
            LeafOp::Shift(..) => return Err(defect("a shift has no offset")),
            LeafOp::OrderFilter(..) => {
                return Err(DeviceError::Internal("a tile of a median does not fit into shared memory".into()));
            }
        }
        Ok(array)
    }

    /// Reads the pixels of leaf `l` at a fixed offset. Unless some code is a loop, whose variables end with it, also
    /// reads all other such leaves of the image, with one test of edges.
    fn at_offsets(&mut self, source: FilterSource, l: usize, out: &mut Vec<Stmt>) -> Result<(), DeviceError> {
        let (kernel, together) = (self.kernel, !self.looped.contains(&true));
        let all = kernel.leaves.iter().enumerate().filter_map(|(of, leaf)| {
            let (image, by, border) = leaf.at_offset()?;
            (image == source && (together || of == l)).then_some((of, by, border))
        });
        let all: Vec<_> = all.collect();
        if all.iter().any(|&(l, ..)| std::mem::replace(&mut self.read[l], true)) {
            return Ok(());
        }
        self.cost += all.iter().map(|&(l, ..)| READ * self.reads(l)).sum::<usize>();
        let (rows, cols) = (self.block.rows, self.block.cols);
        let ends = |axis: usize| {
            let all = || all.iter().map(|(_, by, _)| by[axis]);
            [all().min().unwrap_or(0), all().max().unwrap_or(0)]
        };
        let mut corner = Vec::new();
        for (at, extent, [first, last]) in [("y", rows, ends(0)), ("x", cols, ends(1))] {
            for (end, by, beyond) in [("first", first, 0), ("last", last, extent)] {
                let parameter = format!("{end}_{at}{l}");
                self.params.int(&parameter, by);
                corner.push(name(at) + beyond + name(format_args!("p.{parameter}")));
            }
        }
        let image = name(source_name(source)?);
        let condition = CppCall::new("hs_holds", template![], std::iter::once(image.clone()).chain(corner).collect());
        let (mut then, mut otherwise) = (Vec::new(), Vec::new());
        for (l, [dy, dx], border) in all {
            let dtype = kernel.leaves[l].dtype;
            out.push(Stmt::Array { dtype, name: format!("l{l}"), extents: vec![rows, cols] });
            let value = self.border_value(border, dtype);
            let from = [("y", dy), ("x", dx)].map(|(at, by)| {
                self.params.int(&format!("by_{at}{l}"), by);
                name(at) + name(format_args!("p.by_{at}{l}"))
            });
            for (inside, to) in [(true, &mut then), (false, &mut otherwise)] {
                let [y, x] = from.clone();
                let args = args![image.clone(), y, x, value.clone(), format!("l{l}")];
                to.push(CppCall::new("hs_moved", template![inside, border_name(border)], args).into());
            }
        }
        out.push(Stmt::If { condition: condition.into(), then, otherwise });
        Ok(())
    }

    fn warp(
        &mut self,
        l: usize,
        input: usize,
        affine: Affine,
        how: Interpolation,
        edge: WarpEdge,
        out: &mut Vec<Stmt>,
    ) {
        let dtype = self.kernel.leaves[l].dtype;
        let map = [
            ("xx", affine.xx),
            ("xy", affine.xy),
            ("x0", affine.x0),
            ("yx", affine.yx),
            ("yy", affine.yy),
            ("y0", affine.y0),
        ];
        for (member, v) in map {
            self.params.long(&format!("w{l}_{member}"), v);
        }
        let coefficient = |member: &str| name(format_args!("p.w{l}_{member}"));
        let (border, plain) = (edge.border(), edge.constant().is_none());
        let value = self.border_value(border, dtype);
        let inside = self.inside(l, &edge);
        // The source position of the thread's first pixel.
        for to in ["y", "x"] {
            let [x, y, constant] = ["x", "y", "0"].map(|of| coefficient(&format!("{to}{of}")));
            let value = x * "x" + y * "y" + constant;
            out.push(Stmt::Let { ctype: "const i64".into(), name: format!("w{to}{l}"), value });
        }
        // If the map repeats rows or columns, the thread reads the same pixels for all of them, and the compiler merges
        // the reads.
        let (still_down, still_along) = (affine.xy == 0 && affine.yy == 0, affine.xx == 0 && affine.yx == 0);
        let at = |r: Expr, c: Expr| {
            let r = if still_down { Expr::from(0) } else { r };
            let c = if still_along { Expr::from(0) } else { c };
            let y = name(format_args!("wy{l}")) + r.clone() * coefficient("yy") + c.clone() * coefficient("yx");
            let x = name(format_args!("wx{l}")) + r * coefficient("xy") + c * coefficient("xx");
            [name(format_args!("in{input}")), y, x]
        };
        let (extents, array) = ((self.block.rows, self.block.cols), format!("l{l}"));
        let pixel_of = |function: &str, template: Vec<String>| {
            let mut args = at(name("r"), name("c")).to_vec();
            args.push(value.clone());
            let sample = Expr::from(CppCall::new(format_args!("hs_{function}"), template, args));
            match &inside {
                Some([holds, beyond]) => Expr::Conditional(Box::new([holds.clone(), sample, beyond.clone()])),
                None => sample,
            }
        };
        let b = border_name(border);
        match how {
            Interpolation::Bilinear => {
                let (rows, cols) = extents;
                let mut inside = (name("y") + rows)
                    .with(Operator::LessOrEqual, "p.row1")
                    .with(Operator::And, (name("x") + cols).with(Operator::LessOrEqual, "p.width"));
                for (r, c) in [(0, 0), (0, cols - 1), (rows - 1, 0), (rows - 1, cols - 1)] {
                    let corner = CppCall::new("hs_inside", template![], at(r.into(), c.into()).to_vec());
                    inside = inside.with(Operator::And, corner);
                }
                let whole = Stmt::fill(extents, &array, pixel_of("bilinear", template![b, true]));
                let edge = where_it_exists(&array, pixel_of("bilinear", template![b, false]));
                let otherwise = vec![Stmt::each_pixel(extents, edge)];
                out.push(Stmt::If { condition: inside, then: vec![whole], otherwise });
            }
            // Positions of threads beyond the image also map inside the image, as do rows that are the same for all.
            // One read serves all repetitions if none is conditional.
            Interpolation::Nearest if plain && still_down => {
                out.push(Stmt::fill(extents, &array, pixel_of("nearest", template![b])));
            }
            Interpolation::Nearest if plain && still_along => {
                let value = Stmt::Assign { to: pixel(&array), value: pixel_of("nearest", template![b]) };
                let condition = here("y", "r").with(Operator::Less, "p.row1");
                let each = Stmt::If { condition, then: vec![value], otherwise: vec![] };
                out.push(Stmt::each_pixel(extents, each));
            }
            // A function that the kernels do not define fails to compile, with its name.
            other => {
                let value = pixel_of(other.name(), template![b]);
                out.push(Stmt::each_pixel(extents, where_it_exists(&array, value)));
            }
        }
    }

    /// An expression that is true if the position of pixel `[r][c]` of the thread is sampled, and the value if it is
    /// not; `None` if all are sampled.
    fn inside(&mut self, l: usize, edge: &WarpEdge) -> Option<[Expr; 2]> {
        let WarpEdge::Inside(inside) = edge else { return None };
        let numbers: Vec<f64> = inside.along.iter().flat_map(|a| a.numbers()).collect();
        let along = format!("i{l}_along");
        self.params.doubles(&along, &numbers);
        let [y, x] = inside.origin;
        let [y, x] = [("y", "r", y), ("x", "c", x)].map(|(origin, offset, from)| {
            let first = format!("i{l}_{origin}");
            self.params.int(&first, from);
            here(origin, offset) + name(format_args!("p.{first}"))
        });
        let dtype = self.kernel.leaves[l].dtype;
        let beyond = self.params.constant(Scalar::from_f64(dtype, inside.value), dtype);
        let args = args![name(format_args!("p.{along}")), y, x];
        Some([CppCall::new("hs_within", template![], args).into(), beyond])
    }

    /// Image reads for a leaf without a tile.
    fn reads(&self, l: usize) -> usize {
        let source = self.kernel.leaves[l].source();
        let chain = if let FilterSource::Chain(c) = source { self.kernel.chains[c].reads_per_pixel() } else { 1 };
        chain * self.block.rows * self.block.cols
    }

    /// A filter whose tile does not fit in shared memory.
    fn direct(&mut self, l: usize, array: &str, out: &mut Vec<Stmt>) -> Result<(), DeviceError> {
        let leaf = &self.kernel.leaves[l];
        let Some((source, Some(filter), border)) = window(leaf) else {
            return Err(defect(format_args!("leaf {l} has no window")));
        };
        let image = source_name(source)?;
        let dtype = leaf.dtype;
        let step = self.helpers.step(leaf);
        let value = self.border_value(border, dtype);
        let template = template![step, border_name(border)];
        let (y, x) = (here("y", "r"), here("x", "c"));
        let call = match *filter.layout() {
            FilterLayout::Dense { height, width, anchor_y, anchor_x } => {
                let taps = self.table_rows(dtype, width, width, filter.taps());
                let args = args![image, y - anchor_y, x - anchor_x, height, width, taps, value];
                CppCall::new("hs_direct_dense", template, args)
            }
            FilterLayout::Sparse(ref offsets) => {
                let at = self.table.offsets(dtype, filter.taps(), offsets.iter().map(|&(y, x)| [y, x]));
                let [taps, count] = self.sparse_taps(l, at, filter.taps().len(), "hs_far_tap");
                CppCall::new("hs_direct_sparse", template, args![image, y, x, taps, count, value])
            }
        };
        out.push(Stmt::each_pixel((self.block.rows, self.block.cols), where_it_exists(array, call)));
        Ok(())
    }

    /// A filter truncated to the type of its pixels.
    fn truncated(
        &mut self,
        l: usize,
        (input, filter, border): (usize, &Truncated, Border),
        array: &str,
        out: &mut Vec<Stmt>,
    ) -> Result<(), DeviceError> {
        let window = &filter.window;
        let sign = match filter.pairing {
            Pairing::Single => 0,
            Pairing::Sum => 1,
            Pairing::Difference => -1,
        };
        self.helpers.define("hs_truncated", || TRUNCATED.into());
        let value = self.border_value(border, self.kernel.leaves[l].dtype);
        let offsets = window.offsets().into_iter().enumerate().map(|(k, (y, x))| [y as i32, x as i32, filter.level(k)]);
        let at = self.table.offsets(DType::F64, window.taps(), offsets);
        let [taps, count] = self.taps_at(l, at, window.taps().len(), "hs_level_tap".into());
        let image = source_name(FilterSource::Input(input))?;
        let [depth, channels] = filter.levels.as_ref().map_or([1, 1], |l| [l.depth as i32, l.channels as i32]);
        let levels = self.params.shared_ints("levels", [channels, depth, channels, -1, 1]);
        let size = name(format_args!("p.plane{input}"));
        let args = args![image, size, "plane", levels, here("y", "r"), here("x", "c"), taps, count, value];
        let call = CppCall::new("hs_truncated", template![sign, border_name(border)], args);
        out.push(Stmt::each_pixel((self.block.rows, self.block.cols), where_it_exists(array, call)));
        Ok(())
    }

    /// Taps with offsets in the table at `at`: their address and number, as parameters.
    pub(super) fn sparse_taps(&mut self, l: usize, at: usize, count: usize, tap: &str) -> [Expr; 2] {
        self.taps_at(l, at, count, format!("{tap}<{}>", self.kernel.leaves[l].dtype.name()))
    }

    fn taps_at(&mut self, l: usize, at: usize, count: usize, element: String) -> [Expr; 2] {
        self.params.int(&format!("taps{l}"), at.cast_signed());
        self.params.int(&format!("count{l}"), count.cast_signed());
        let taps = Expr::Table(element, Box::new(name(format_args!("p.taps{l}"))));
        [taps, name(format_args!("p.count{l}"))]
    }
}
