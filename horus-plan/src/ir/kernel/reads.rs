//! The rows and columns of their inputs that kernels read, known before a launch.

use super::{Access, Distribution, FilterSource, Kernel, Leaf, LeafOp, MapKernel, RowFilterStage};
use crate::ops::edge::WarpEdge;
use crate::ops::footprint::{InputRead, Rect, both_ways};
use crate::ops::neighbourhood::Reach;
use horus_base::shape::{Border, Shape, Window};

impl Leaf {
    /// The rows beyond its own that a strip must have for the leaf, and `true` if the leaf has
    /// [`Border::Wrap`]; `None` for a leaf that reads elsewhere.
    ///
    /// A reflecting border maps rows above the image to rows below its first row, so the reach applies to
    /// both sides.
    pub fn reach(&self, stages: &[RowFilterStage]) -> Option<(Reach, bool)> {
        let Some((reach, border)) = self.around(stages) else {
            let itself = matches!(self.op, LeafOp::Load(_) | LeafOp::LoadPlane(..));
            return itself.then_some((Reach::NONE, false));
        };
        Some((both_ways(reach, border), border == Border::Wrap))
    }

    /// The reach of a filter, and its border; `None` for a leaf that is no filter.
    fn around(&self, stages: &[RowFilterStage]) -> Option<(Reach, Border)> {
        match &self.op {
            LeafOp::Correlate(FilterSource::Stage(s), f, b) => Some((stages[*s].filter.reach().then(f.reach()), *b)),
            LeafOp::Correlate(_, f, b) => Some((f.reach(), *b)),
            LeafOp::OrderFilter(_, filter, b) => Some((filter.reach(), *b)),
            LeafOp::Shift(_, by, b) => Some((shifted(*by), *b)),
            LeafOp::Load(_) | LeafOp::LoadPlane(..) | LeafOp::Warp(..) | LeafOp::Flip(..) => None,
        }
    }
}

/// The reach of a shift.
fn shifted([y, x]: [isize; 2]) -> Reach {
    let ahead = |d: isize| d.max(0).unsigned_abs();
    Reach { up: ahead(-y), down: ahead(y), left: ahead(-x), right: ahead(x) }
}

/// See [`Kernel::readable`].
fn readable(access: Access, window: Window, height: usize) -> Window {
    let copies = !Window::whole(height).covers(window);
    if copies && !matches!(access, Access::Rows { wrap: true, .. }) { window.clipped(height) } else { window }
}

impl MapKernel {
    /// Access to input `i`.
    pub fn access(&self, i: usize) -> Access {
        let mut rows = (Reach::NONE, false);
        for leaf in self.leaves.iter().filter(|l| self.reads(l, i)) {
            let column = leaf.repeated_column().map(|(down, border)| (both_ways(shifted([down, 0]), border), false));
            let Some((mut reach, mut wrap)) = column.or_else(|| leaf.reach(&self.stages)) else {
                return Access::Footprint;
            };
            if let FilterSource::Chain(c) = self.image(leaf) {
                // Rows of the chain that a border takes from elsewhere come with their own neighbours.
                let Access::Rows { reach: more, wrap: inside } = self.chains[c].access(i) else {
                    return Access::Footprint;
                };
                (reach, wrap) = (reach.then(more), wrap || inside);
            }
            rows = (rows.0.max(reach), rows.1 || wrap);
        }
        Access::Rows { reach: rows.0, wrap: rows.1 }
    }

    /// See [`Kernel::readable`].
    pub fn readable(&self, i: usize, window: Window, height: usize) -> Window {
        readable(self.access(i), window, height)
    }

    pub(super) fn footprint(&self, i: usize, rows: Window, out: Shape, input: Shape) -> Window {
        let mut need = Window::new(0, 0);
        if rows.is_empty() {
            return need;
        }
        for leaf in self.leaves.iter().filter(|l| self.reads(l, i)) {
            let block = Rect { rows, columns: Window::whole(out.width) };
            let read = match (&leaf.op, leaf.around(&self.stages)) {
                _ if let Some((down, border)) = leaf.repeated_column() => {
                    InputRead::around(block, shifted([down, 0]), border)
                }
                (LeafOp::Warp(_, map, how, edge), _) => InputRead {
                    rect: Rect { rows: map.footprint(rows, out.width, *how), ..block },
                    border: Some(edge.border()),
                },
                (LeafOp::Flip(_, flip), _) if flip.rows() => {
                    let h = input.height.cast_signed();
                    let rows = Window::new(h.saturating_sub(rows.end), h.saturating_sub(rows.start));
                    InputRead::inside(Rect { rows, ..block })
                }
                (_, Some((reach, border))) => InputRead::around(block, reach, border),
                _ => InputRead::inside(block),
            };
            let window = match self.image(leaf) {
                // A chain has the shape of the result.
                FilterSource::Chain(c) => self.chains[c].footprint(i, read.rows(out.height), out, input),
                _ => read.rows(input.height),
            };
            need = need.union(window);
        }
        need
    }
}

/// The columns of input `i` that a leaf reads in input rows `block`: see [`Kernel::columns`].
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
        // Other borders map pixels from elsewhere into the image.
        let LeafOp::Warp(_, map, how, WarpEdge::Border(Border::Constant(_))) = &leaf.op else { return None };
        let (left, right) = map.columns(rows, out.width, *how, block);
        let inside = |x: isize| x.clamp(0, input.width.cast_signed()).cast_unsigned();
        let (left, right) = (inside(left), inside(right));
        if left < right {
            need = Some(need.map_or((left, right), |(l, r)| (l.min(left), r.max(right))));
        }
    }
    Some(need.unwrap_or((0, 0)))
}

impl Kernel {
    /// Access to input `i`.
    pub fn access(&self, i: usize) -> Access {
        match self {
            Kernel::Map(m) => m.access(i),
            Kernel::Repeat(r) => r.access(i),
            Kernel::MapReduce(m, _) if i < m.inputs => m.access(i),
            Kernel::MapReduce(..) => Access::Whole,
            Kernel::Source(_) => Access::IN_PLACE,
            Kernel::Whole(operation) => operation.access(i),
        }
    }

    /// The rows of input `i`, of `height` rows of which memory has the rows of `window`, that a launch may
    /// read. Rows beyond the image are copies, for kernels that read them as copies. Other kernels read only
    /// rows of the image, by their [footprint](Kernel::footprint): copies in the same memory may be out of
    /// date.
    pub fn readable(&self, i: usize, window: Window, height: usize) -> Window {
        readable(self.access(i), window, height)
    }

    /// Returns `true` if devices need input `i` in contiguous memory from the first row of the image to the
    /// last.
    pub(crate) fn takes_end_to_end(&self, i: usize) -> bool {
        matches!(self, Kernel::Whole(operation) if operation.requires_contiguous_input(i))
    }

    /// The rows of input `i` (of shape `input`), inside the image, that output rows `rows` require (of an
    /// output of shape `out`).
    pub fn footprint(&self, i: usize, rows: Window, out: Shape, input: Shape) -> Window {
        if rows.is_empty() {
            return Window::new(0, 0);
        }
        match self {
            Kernel::Map(m) => m.footprint(i, rows, out, input),
            Kernel::Repeat(r) => r.footprint(i, rows, out, input),
            Kernel::Whole(operation) if !matches!(operation.distribution(), Distribution::Partial(_)) => {
                operation.reads(i, Rect { rows, columns: Window::whole(out.width) }, input).rows(input.height)
            }
            Kernel::MapReduce(..) if self.access(i) == Access::Whole => Window::whole(input.height),
            // A launch iterates over these rows.
            Kernel::Source(_) | Kernel::MapReduce(..) | Kernel::Whole(_) => rows.clipped(input.height),
        }
    }

    /// The columns `left..right` of rows `block` of input `i` that output rows `rows` require; `None` for all
    /// columns. The rows are in the footprint.
    pub fn columns(&self, i: usize, rows: Window, out: Shape, input: Shape, block: Window) -> Option<(usize, usize)> {
        match self {
            Kernel::Map(m) => map_columns(m, i, rows, out, input, block),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::kernel::Val;
    use crate::ops::geometric::{Affine, Interpolation};
    use crate::ops::neighbourhood::Filter;
    use horus_base::dtype::DType;

    const BORDERS: [Border; 5] = Border::all(0.0);

    /// The smallest row range that contains all of `read`.
    fn hull(read: impl Iterator<Item = usize>) -> Window {
        read.fold(Window::new(0, 0), |w, y| w.union(Window::new(y.cast_signed(), y.cast_signed() + 1)))
    }

    #[test]
    fn footprints_of_one_sided_filters_are_the_smallest() {
        let shape = |h| Shape::new(h, 3, 1);
        let f32 = DType::F32;
        for border in BORDERS {
            for (up, down) in [(0, 6), (6, 0), (1, 4), (9, 2), (0, 0), (3, 3)] {
                let filter = Filter::sparse([(-up, 0), (0, 0), (down, 0)], [1.0; 3]);
                let leaf = Leaf { op: LeafOp::Correlate(FilterSource::Input(0), filter, border), dtype: f32 };
                let kernel =
                    MapKernel { inputs: 1, leaves: vec![leaf], result: Some(Val::Leaf(0)), ..MapKernel::default() };
                let kernel = Kernel::Map(kernel);
                let (up, down) = (up as isize, down as isize);
                for h in 1..9usize {
                    for start in 0..h.cast_signed() {
                        for end in start + 1..=h.cast_signed() {
                            let got = kernel.footprint(0, Window::new(start, end), shape(h), shape(h));
                            // Rows between the taps are also read: a filter is given whole windows.
                            let want = hull((start - up..end + down).filter_map(|y| border.map(y, h)));
                            assert_eq!(got, want, "{border} {up} up, {down} down, rows {start}..{end} of {h}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn a_repeated_column_is_read_row_by_row() {
        let shape = Shape::new(9, 5, 1);
        let access = |y: f64, x: f64, border: Border| {
            let map = Affine::new([[0.0, 0.0, x], [0.0, 1.0, y]], shape).unwrap();
            let op = LeafOp::Warp(0, map, Interpolation::Nearest, border.into());
            let leaves = vec![Leaf { op, dtype: DType::F32 }];
            let kernel = MapKernel { inputs: 1, leaves, result: Some(Val::Leaf(0)), ..MapKernel::default() };
            let kernel = Kernel::Map(kernel);
            (kernel.access(0), kernel.footprint(0, Window::new(3, 5), shape, shape))
        };
        let rows = |up, down| Access::Rows { reach: Reach { up, down, left: 0, right: 0 }, wrap: false };
        assert_eq!(access(0.0, 0.0, Border::Replicate), (rows(0, 0), Window::new(3, 5)));
        assert_eq!(access(2.0, 0.0, Border::Replicate), (rows(0, 2), Window::new(3, 7)));
        assert_eq!(access(-2.0, 0.0, Border::Constant(1.0)), (rows(2, 0), Window::new(1, 5)));
        // Other columns, parts of rows, and rows of the other end.
        for (y, x, border) in [(0.0, 1.0, Border::Replicate), (0.5, 0.0, Border::Replicate), (1.0, 0.0, Border::Wrap)] {
            assert_eq!(access(y, x, border).0, Access::Footprint, "{y}, {x}, {border}");
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
                        let leaf = Leaf { op: LeafOp::Warp(0, map, how, border.into()), dtype: DType::F32 };
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
                                // All rows between the first and the last that a pixel requests: a range in
                                // the source before its border mode applies.
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
