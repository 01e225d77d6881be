//! What devices execute: lowered operations.
//!
//! Almost everything is a [`MapKernel`]: an expression evaluated at every pixel of the output, whose *leaves* read the
//! inputs (the pixel itself, a filter response, a sample of an affine map) and whose *code* combines them with pixel
//! operations. What filters read may itself be computed: by a row pass (a *stage*), by pixel operations (a *chain*), by
//! both. One recorded operation lowers to a kernel with one leaf or one instruction; fusion substitutes kernels into each
//! other. A device needs to know nothing else of the program.

use std::fmt;

use crate::dtype::{DType, Scalar};
use crate::ir::graph::{Graph, NodeId, ValueId};
use crate::ops::geometric::{Affine, Flip, Interpolation};
use crate::ops::neighbourhood::{Filter, Generalized, MedianSize, Reach};
use crate::ops::pixel::PixelOp;
use crate::ops::reduce::{Fold, RowReduce};
use crate::shape::{Border, Shape, Window};

/// A lowered operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Kernel {
    /// A value that exists; nothing is launched.
    Source(ValueId),
    /// An expression per pixel, applied to each plane.
    Map(MapKernel),
    /// The one-channel inputs as planes of the output.
    Merge,
    /// Rows and columns exchanged, per plane.
    Transpose,
    /// See [`crate::ir::graph::Op::Lookup`].
    Lookup,
    /// See [`crate::ir::graph::Op::RowReduce`].
    RowReduce(RowReduce),
    /// A row reduction of an expression that is never stored. Every leaf of the expression reads the pixel itself; the
    /// mean of a squared deviation is the input after the expression's.
    MapReduce(MapKernel, RowReduce),
    /// See [`crate::ir::graph::Op::Fold`].
    Fold(Fold),
    /// See [`crate::ir::graph::Op::Histogram`]. Counts only the rows it is launched on.
    Histogram {
        /// Number of bins.
        bins: usize,
        /// Lower end of the first bin.
        lo: f64,
        /// Upper end of the last bin.
        hi: f64,
    },
}

/// A value inside a [`MapKernel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Val {
    /// The leaf of this index.
    Leaf(usize),
    /// The result of the instruction of this index.
    Instr(usize),
    /// A constant.
    Const(Scalar),
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum InstrOp {
    /// A pixel operation on operands of type [`Instr::operand`].
    Pixel(PixelOp),
    /// Conversion from [`Instr::operand`] to [`Instr::result`].
    Convert,
}

/// One instruction of a [`MapKernel`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Instr {
    /// What it does.
    pub op: InstrOp,
    /// Type of the operands (of the two choices, for `Select`).
    pub operand: DType,
    /// Type of the result.
    pub result: DType,
    /// The operands: as many as the operation has.
    pub args: Vec<Val>,
}

/// What a filter reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The kernel's input of this index.
    Input(usize),
    /// The result of pixel operations: a chain of the same kernel.
    Chain(usize),
    /// The result of a row pass of the same kernel.
    Stage(usize),
}

/// A row filter whose result is read by column filters of the same kernel only, so that it is never stored whole.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Stage {
    /// What it reads: an input or a chain.
    pub source: Source,
    /// A dense filter of one row.
    pub filter: Filter,
    /// For this pass.
    pub border: Border,
}

/// How a leaf reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LeafOp {
    /// The pixel itself.
    Load(usize),
    /// The pixel itself in a fixed plane of an input.
    LoadChannel(usize, usize),
    /// Response of a linear filter. Over a [`Source::Stage`] the filter is a dense one of one column.
    Correlate(Source, Filter, Border),
    /// Generalized convolution.
    Generalized(usize, Generalized, Border),
    /// Median.
    Median(usize, MedianSize, Border),
    /// Sample of an affine map.
    Warp(usize, Affine, Interpolation, Border),
    /// Pixel of the mirror image.
    Flip(usize, Flip),
}

/// A leaf: how it reads, and the type it yields (the type of the input it reads).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Leaf {
    /// How it reads.
    pub op: LeafOp,
    /// What it yields.
    pub dtype: DType,
}

/// An expression per pixel. Instructions come in an order in which operands come first.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Default)]
pub struct MapKernel {
    /// Number of inputs.
    pub inputs: usize,
    /// Pixel operations whose results linear filters read, evaluated around the pixels that are computed and never stored
    /// whole. Each is pointwise, and its inputs are those of this kernel.
    pub chains: Vec<MapKernel>,
    /// Row passes that leaves read.
    pub stages: Vec<Stage>,
    /// Reads of the inputs.
    pub leaves: Vec<Leaf>,
    /// Pixel operations.
    pub code: Vec<Instr>,
    /// The value that is stored; `None` only in an unfinished kernel.
    pub result: Option<Val>,
}

/// How a kernel reads one of its inputs: what the planner must make valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// The rows it computes, and `reach` beyond; `wrap` if rows beyond the image are read periodically.
    Rows {
        /// Rows beyond those computed.
        reach: Reach,
        /// Whether some filter has [`Border::Wrap`].
        wrap: bool,
    },
    /// Rows that depend on where the output row is: see [`Kernel::footprint`].
    Footprint,
    /// All rows, everywhere.
    Whole,
}

impl Leaf {
    /// What the leaf reads.
    pub fn source(&self) -> Source {
        match self.op {
            LeafOp::Load(i)
            | LeafOp::LoadChannel(i, _)
            | LeafOp::Generalized(i, ..)
            | LeafOp::Median(i, ..)
            | LeafOp::Warp(i, ..)
            | LeafOp::Flip(i, _) => Source::Input(i),
            LeafOp::Correlate(source, ..) => source,
        }
    }

    /// Changes which kernel input the leaf reads (stages and chains are not touched).
    pub fn map_input(&mut self, f: impl Fn(usize) -> usize) {
        match &mut self.op {
            LeafOp::Load(i)
            | LeafOp::LoadChannel(i, _)
            | LeafOp::Generalized(i, ..)
            | LeafOp::Median(i, ..)
            | LeafOp::Warp(i, ..)
            | LeafOp::Flip(i, _)
            | LeafOp::Correlate(Source::Input(i), ..) => *i = f(*i),
            LeafOp::Correlate(Source::Stage(_) | Source::Chain(_), ..) => {}
        }
    }

    /// How far beyond its own rows a strip must reach for the leaf, and whether the leaf has [`Border::Wrap`]; `None` for
    /// a leaf that reads elsewhere.
    ///
    /// A reflecting border turns what is read above the image into rows below its first, so the reach counts for both
    /// sides.
    pub fn reach(&self, stages: &[Stage]) -> Option<(Reach, bool)> {
        let Some((reach, border)) = self.around(stages) else {
            let itself = matches!(self.op, LeafOp::Load(_) | LeafOp::LoadChannel(..));
            return itself.then_some((Reach::NONE, false));
        };
        let rows = reach.up.max(reach.down);
        let reach = match border {
            Border::Reflect | Border::Reflect101 => Reach { up: rows, down: rows, ..reach },
            _ => reach,
        };
        Some((reach, border == Border::Wrap))
    }

    /// What a filter reads around each pixel, before its border; `None` for a leaf that is no filter.
    fn around(&self, stages: &[Stage]) -> Option<(Reach, Border)> {
        match &self.op {
            LeafOp::Correlate(Source::Stage(s), f, b) => Some((stages[*s].filter.reach().then(f.reach()), *b)),
            LeafOp::Correlate(_, f, b) => Some((f.reach(), *b)),
            LeafOp::Generalized(_, g, b) => Some((g.window.reach(), *b)),
            LeafOp::Median(_, s, b) => Some((s.reach(), *b)),
            LeafOp::Load(_) | LeafOp::LoadChannel(..) | LeafOp::Warp(..) | LeafOp::Flip(..) => None,
        }
    }
}

impl MapKernel {
    /// What a leaf reads, or the stage that it reads: an input or a chain.
    pub fn image(&self, leaf: &Leaf) -> Source {
        match leaf.source() {
            Source::Stage(s) => self.stages[s].source,
            image => image,
        }
    }

    /// Whether a leaf reads input `i`, itself or through stages and chains.
    pub fn reads(&self, leaf: &Leaf, i: usize) -> bool {
        match self.image(leaf) {
            Source::Chain(c) => self.chains[c].leaves.iter().any(|l| l.source() == Source::Input(i)),
            image => image == Source::Input(i),
        }
    }

    /// How input `i` is read.
    pub fn access(&self, i: usize) -> Access {
        let mut rows = (Reach::NONE, false);
        for leaf in self.leaves.iter().filter(|l| self.reads(l, i)) {
            match leaf.reach(&self.stages) {
                Some((r, w)) => rows = (rows.0.max(r), rows.1 || w),
                None => return Access::Footprint,
            }
        }
        Access::Rows { reach: rows.0, wrap: rows.1 }
    }

    /// The type of the value that is stored.
    pub fn result_type(&self) -> DType {
        match self.result {
            Some(Val::Leaf(l)) => self.leaves[l].dtype,
            Some(Val::Instr(i)) => self.code[i].result,
            Some(Val::Const(s)) => s.dtype(),
            None => DType::F32,
        }
    }

    /// Whether every leaf reads just the pixel itself.
    pub fn is_pointwise(&self) -> bool {
        self.leaves.iter().all(|l| matches!(l.op, LeafOp::Load(_) | LeafOp::LoadChannel(..)))
    }

    fn footprint(&self, i: usize, rows: Window, out: Shape, input: Shape) -> Window {
        let mut need = Window::new(0, 0);
        for leaf in self.leaves.iter().filter(|l| self.reads(l, i)) {
            let window = match (&leaf.op, leaf.around(&self.stages)) {
                (LeafOp::Warp(_, map, how, border), _) => {
                    mapped_rows(*border, map.footprint(rows, out.width, *how), input.height)
                }
                (LeafOp::Flip(_, flip), _) if flip.rows() => {
                    let h = input.height.cast_signed();
                    Window::new(h.saturating_sub(rows.end), h.saturating_sub(rows.start))
                }
                (_, Some((r, border))) => mapped_rows(border, rows.grown(r.up, r.down), input.height),
                _ => rows,
            };
            need = need.union(window.clipped(input.height));
        }
        need
    }
}

/// The columns of input rows `block` that leaf reads of input `i` touch: see [`Kernel::columns`].
fn map_columns(
    m: &MapKernel,
    i: usize,
    rows: Window,
    out: Shape,
    input: Shape,
    block: Window,
) -> Option<(usize, usize)> {
    let mut need: Option<(usize, usize)> = None;
    for leaf in m.leaves.iter().filter(|l| m.reads(l, i)) {
        // Other borders bring pixels from elsewhere into the image.
        let LeafOp::Warp(_, map, how, Border::Constant(_)) = &leaf.op else { return None };
        let (left, right) = map.columns(rows, out.width, *how, block);
        let inside = |x: isize| x.clamp(0, input.width.cast_signed()).cast_unsigned();
        let (left, right) = (inside(left), inside(right));
        if left < right {
            need = Some(need.map_or((left, right), |(l, r)| (l.min(left), r.max(right))));
        }
    }
    Some(need.unwrap_or((0, 0)))
}

/// The image rows that a window, read with `border`, touches: the smallest range that holds them.
fn mapped_rows(border: Border, window: Window, height: usize) -> Window {
    let inside = window.clipped(height);
    if inside == window || matches!(border, Border::Constant(_)) || height == 0 {
        return inside;
    }
    // What is read goes up and down through the image, or begins anew, at multiples of `turn`, and is monotonic between
    // them (everywhere, where the edge is repeated). So the ends and the first turns tell all: two turns are a passage
    // through the whole image.
    let turn = match border {
        Border::Reflect101 => height - 1,
        _ => height,
    };
    let turn = turn.max(1).cast_signed();
    let Window { start, end } = window;
    let last = end - 1;
    // From the start to the first turn at or after it.
    let ahead = (turn - start.rem_euclid(turn)) % turn;
    let first = start.checked_add(ahead).filter(|t| *t < end);
    let second = first.and_then(|t| t.checked_add(turn)).filter(|t| *t < end);
    let turns = [first, second].into_iter().flatten().flat_map(|t| [t.saturating_sub(1), t]);
    let read = turns.filter(|y| window.contains(*y)).chain([start, last]).filter_map(|y| border.map(y, height));
    read.fold(inside, |w, y| w.union(Window::new(y.cast_signed(), y.cast_signed() + 1)))
}

impl Kernel {
    /// How input `i` is read.
    pub fn access(&self, i: usize) -> Access {
        match self {
            Kernel::Map(m) => m.access(i),
            Kernel::RowReduce(_) | Kernel::Lookup if i == 1 => Access::Whole,
            Kernel::MapReduce(m, _) if i < m.inputs => m.access(i),
            Kernel::MapReduce(..) => Access::Whole,
            Kernel::Source(_) | Kernel::Merge | Kernel::Lookup | Kernel::RowReduce(_) | Kernel::Histogram { .. } => {
                Access::Rows { reach: Reach::NONE, wrap: false }
            }
            Kernel::Transpose => Access::Whole,
            Kernel::Fold(_) => Access::Whole,
        }
    }

    /// The rows of input `i` (of shape `input`) that output rows `rows` (of an output of shape `out`) need, inside the
    /// image.
    pub fn footprint(&self, i: usize, rows: Window, out: Shape, input: Shape) -> Window {
        if rows.is_empty() {
            return Window::new(0, 0);
        }
        match (self, self.access(i)) {
            (Kernel::Map(m), _) => m.footprint(i, rows, out, input),
            (_, Access::Rows { .. }) => rows.clipped(input.height),
            _ => Window::whole(input.height),
        }
    }

    /// The columns `left..right` of rows `block` of input `i` that output rows `rows` need; `None` if all of them. The
    /// rows are among those of the footprint.
    pub fn columns(&self, i: usize, rows: Window, out: Shape, input: Shape, block: Window) -> Option<(usize, usize)> {
        match self {
            Kernel::Map(m) => map_columns(m, i, rows, out, input, block),
            _ => None,
        }
    }

    /// Short name for plans, traces and messages.
    pub fn name(&self) -> String {
        match self {
            Kernel::Source(v) => format!("image#{}", v.0),
            Kernel::Map(m) => m.to_string(),
            Kernel::Merge => "stack".into(),
            Kernel::Transpose => "transpose".into(),
            Kernel::Lookup => "lookup".into(),
            Kernel::RowReduce(r) => r.name().into(),
            Kernel::MapReduce(m, r) => format!("{m} + {}", r.name()),
            Kernel::Fold(f) => f.name().into(),
            Kernel::Histogram { bins, .. } => format!("histogram {bins}"),
        }
    }
}

impl fmt::Display for MapKernel {
    /// What the kernel does, in the order of evaluation, repetitions counted: `row 1x19 + 6 correlate 19x1 + absdiv ...`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let chains = self.chains.iter().map(|c| format!("({c})"));
        let stages = self.stages.iter().map(|s| format!("row {}", s.filter));
        let leaves = self.leaves.iter().filter_map(|l| match &l.op {
            LeafOp::Load(_) => None,
            LeafOp::LoadChannel(_, c) => Some(format!("channel {c}")),
            LeafOp::Correlate(_, k, _) => Some(format!("correlate {k}")),
            LeafOp::Generalized(_, g, _) => Some(format!("{:?}/{:?} {}", g.combine, g.reduce, g.window).to_lowercase()),
            LeafOp::Median(_, s, _) => Some(format!("median {0}x{0}", 2 * s.radius() + 1)),
            LeafOp::Warp(_, _, i, _) => Some(format!("warp {i:?}").to_lowercase()),
            LeafOp::Flip(_, x) => Some(format!("flip {x:?}").to_lowercase()),
        });
        let code = self.code.iter().map(|i| match i.op {
            InstrOp::Pixel(op) => op.to_string(),
            InstrOp::Convert => format!("to {}", i.result),
        });
        let mut parts: Vec<(String, usize)> = Vec::new();
        for part in chains.chain(stages).chain(leaves).chain(code) {
            match parts.iter_mut().find(|(p, _)| *p == part) {
                Some((_, n)) => *n += 1,
                None => parts.push((part, 1)),
            }
        }
        if parts.is_empty() {
            return match self.result {
                Some(Val::Const(c)) => write!(f, "fill {c}"),
                _ => f.write_str("copy"),
            };
        }
        let text: Vec<String> = parts.into_iter().map(|(p, n)| if n == 1 { p } else { format!("{n}x {p}") }).collect();
        f.write_str(&text.join(" + "))
    }
}

impl fmt::Display for Graph<Kernel> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (id, n) in self.iter() {
            let inputs: Vec<String> = n.inputs.iter().map(NodeId::to_string).collect();
            let root = if self.roots.contains(&id) { "  (wanted)" } else { "" };
            writeln!(f, "{id} = [{}]({}) : {} {}{root}", n.op.name(), inputs.join(", "), n.shape, n.dtype)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BORDERS: [Border; 5] =
        [Border::Reflect101, Border::Reflect, Border::Replicate, Border::Wrap, Border::Constant(0.0)];

    /// The smallest range of rows that holds all of `read`.
    fn hull(read: impl Iterator<Item = usize>) -> Window {
        read.fold(Window::new(0, 0), |w, y| w.union(Window::new(y.cast_signed(), y.cast_signed() + 1)))
    }

    #[test]
    fn mapped_rows_are_the_smallest_range_of_all_that_is_read() {
        for border in BORDERS {
            for h in 1..7usize {
                for start in -20..20isize {
                    for end in start + 1..21 {
                        let got = mapped_rows(border, Window::new(start, end), h);
                        let want = hull((start..end).filter_map(|y| border.map(y, h)));
                        let same = got == want || (got.is_empty() && want.is_empty());
                        assert!(same, "{border}, height {h}, rows {start}..{end}: {got} instead of {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn footprints_of_one_sided_filters_are_the_smallest() {
        let shape = |h| Shape::new(h, 3, 1);
        let f32 = DType::F32;
        for border in BORDERS {
            for (up, down) in [(0, 6), (6, 0), (1, 4), (9, 2), (0, 0), (3, 3)] {
                let filter = Filter::sparse([(-up, 0), (0, 0), (down, 0)], [1.0; 3]);
                let leaf = Leaf { op: LeafOp::Correlate(Source::Input(0), filter, border), dtype: f32 };
                let kernel =
                    MapKernel { inputs: 1, leaves: vec![leaf], result: Some(Val::Leaf(0)), ..MapKernel::default() };
                let kernel = Kernel::Map(kernel);
                let (up, down) = (up as isize, down as isize);
                for h in 1..9usize {
                    for start in 0..h.cast_signed() {
                        for end in start + 1..=h.cast_signed() {
                            let got = kernel.footprint(0, Window::new(start, end), shape(h), shape(h));
                            // The rows between the taps are read as well: a filter is fed by whole windows.
                            let want = hull((start - up..end + down).filter_map(|y| border.map(y, h)));
                            assert_eq!(got, want, "{border} {up} up, {down} down, rows {start}..{end} of {h}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn footprints_of_warps_are_the_smallest() {
        for border in BORDERS {
            for how in Interpolation::ALL {
                for (degrees, stretch, shift) in
                    [(0.0, 1.0, 0.0), (33.0, 1.0, 0.0), (90.0, 1.0, 2.0), (-100.0, 3.0, -11.0)]
                {
                    for h in [1, 2, 5, 8] {
                        let shape = Shape::new(h, 5, 1);
                        let mut m = crate::ops::geometric::rotation(degrees, shape);
                        m[1].iter_mut().for_each(|v| *v *= stretch);
                        m[1][2] += shift;
                        let map = Affine::new(m, shape).unwrap();
                        let leaf = Leaf { op: LeafOp::Warp(0, map, how, border), dtype: DType::F32 };
                        let kernel = MapKernel {
                            inputs: 1,
                            leaves: vec![leaf],
                            result: Some(Val::Leaf(0)),
                            ..MapKernel::default()
                        };
                        let (before, after) = how.support();
                        for start in 0..h.cast_signed() {
                            for end in start + 1..=h.cast_signed() {
                                let got =
                                    Kernel::Map(kernel.clone()).footprint(0, Window::new(start, end), shape, shape);
                                let rows = (start..end).flat_map(|y| (0..shape.width).map(move |x| (y, x)));
                                let middle = rows.map(|(y, x)| (map.at(y as i64, x as i64).0 >> 32) as isize);
                                // All rows between the first and the last that a pixel asks for: a range in the source
                                // before its border turns it.
                                let (lo, hi) = middle.fold((isize::MAX, isize::MIN), |(l, h), y| (l.min(y), h.max(y)));
                                let want = hull((lo - before..=hi + after).filter_map(|y| border.map(y, h)));
                                let same = got == want || (got.is_empty() && want.is_empty());
                                assert!(same, "{border} {how:?} {degrees} {start}..{end} of {h}: {got} for {want}");
                            }
                        }
                    }
                }
            }
        }
    }
}
