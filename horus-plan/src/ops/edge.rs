//! The edges of warps: pixels of the result whose positions are beyond the edges of the input.

use std::hash::{Hash, Hasher};
use std::ops::Range;

use horus_base::shape::{Border, Shape};

/// The rule of a warp for positions beyond the edges of its input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WarpEdge {
    /// Interpolates between the pixels that the border mode gives, including a constant.
    Border(Border),
    /// A constant, without interpolation (SciPy's mode `constant`). Neighbours of positions inside are mirrored, as by
    /// [`Border::Reflect101`].
    Inside(InsidePixels),
}

impl From<Border> for WarpEdge {
    fn from(border: Border) -> WarpEdge {
        WarpEdge::Border(border)
    }
}

impl WarpEdge {
    /// The border mode of the pixels around sampled positions.
    pub const fn border(&self) -> Border {
        match self {
            WarpEdge::Border(border) => *border,
            WarpEdge::Inside(_) => Border::Reflect101,
        }
    }

    /// The value of pixels outside the input, if it is a constant.
    pub fn constant(&self) -> Option<f64> {
        match self {
            WarpEdge::Border(border) => border.constant(),
            WarpEdge::Inside(inside) => Some(inside.value),
        }
    }

    /// The same rule for an output that begins at this row and column of the original output.
    #[must_use]
    pub fn cut(self, [y, x]: [isize; 2]) -> WarpEdge {
        match self {
            WarpEdge::Border(_) => self,
            WarpEdge::Inside(i) => WarpEdge::Inside(InsidePixels { origin: [i.origin[0] + y, i.origin[1] + x], ..i }),
        }
    }
}

/// The pixels of an output whose positions are between the centres of the first and the last pixel of the input, and
/// the value of all other pixels.
///
/// The rounded fixed-point positions of a warp cannot decide this. These positions are computed in `f64`, with each
/// operation rounded, in the order of SciPy. Rounding preserves the order of positions, so that the pixels of a row are
/// one run.
#[derive(Clone, Copy, Debug)]
pub struct InsidePixels {
    /// Row and column of this output's first pixel in the original output, to which positions refer.
    pub origin: [isize; 2],
    /// Positions along the rows and along the columns of the input.
    pub along: [WarpPositions; 2],
    /// The value elsewhere.
    pub value: f64,
}

/// Positions along an axis: `((y + before[0]) * per[0] + (x + before[1]) * per[1]) + offset`; inside if from 0 to
/// `last`.
#[derive(Clone, Copy, Debug)]
pub struct WarpPositions {
    /// Added to the row and to the column.
    pub before: [f64; 2],
    /// Position per row and per column.
    pub per: [f64; 2],
    /// Added to the sum.
    pub offset: f64,
    /// The last pixel of the input.
    pub last: f64,
}

impl WarpPositions {
    /// All numbers, in the order of their declaration.
    pub const fn numbers(&self) -> [f64; 6] {
        let WarpPositions { before, per, offset, last } = self;
        [before[0], before[1], per[0], per[1], *offset, *last]
    }

    /// The position of a pixel.
    #[inline(always)]
    pub fn at(&self, y: f64, x: f64) -> f64 {
        let WarpPositions { before, per, offset, .. } = self;
        ((y + before[0]) * per[0] + (x + before[1]) * per[1]) + offset
    }

    #[inline(always)]
    fn holds(&self, position: f64) -> bool {
        0.0 <= position && position <= self.last
    }

    /// The pixels between two columns of row `y` that are inside.
    fn run(&self, y: f64, [left, right]: [isize; 2]) -> [isize; 2] {
        if left >= right || [left, right - 1].iter().all(|&x| self.holds(self.at(y, x as f64))) {
            return [left, right];
        }
        let rising = self.per[1] >= 0.0;
        let early = |p: f64| if rising { p < 0.0 } else { p > self.last };
        let late = |p: f64| if rising { p > self.last } else { p < 0.0 };
        let (low, high) = if rising { (0.0, self.last) } else { (self.last, 0.0) };
        let start = self.first(y, [left, right], low, |p| !early(p));
        [start, self.first(y, [start, right], high, late)]
    }

    /// The first column of row `y` where `holds` is true of the position (and stays true); it changes near position
    /// `limit`.
    #[inline(always)]
    fn first(&self, y: f64, [mut low, mut high]: [isize; 2], limit: f64, holds: impl Fn(f64) -> bool) -> isize {
        // The column up to rounding. This column and its neighbours nearly always end the search.
        let near = ((limit - self.at(y, 0.0)) / self.per[1]) as i32 as isize;
        for x in [near, near + 1, near - 1] {
            if (low..high).contains(&x) {
                if holds(self.at(y, x as f64)) { high = x } else { low = x + 1 }
            }
        }
        while low < high {
            let middle = low + (high - low) / 2;
            if holds(self.at(y, middle as f64)) { high = middle } else { low = middle + 1 }
        }
        low
    }
}

impl InsidePixels {
    /// The positions of a matrix, as in [`Affine::new`](super::geometric::Affine::new), in an input of this shape.
    pub fn of(matrix: [[f64; 3]; 2], input: Shape, value: f64) -> InsidePixels {
        let [columns, rows] = matrix;
        let along = |[per_x, per_y, offset]: [f64; 3], n: usize| WarpPositions {
            before: [0.0; 2],
            per: [per_y, per_x],
            offset,
            last: n as f64 - 1.0,
        };
        InsidePixels { origin: [0, 0], along: [along(rows, input.height), along(columns, input.width)], value }
    }

    fn numbers(&self) -> impl Iterator<Item = u64> {
        let [rows, columns] = self.along.map(|a| a.numbers());
        rows.into_iter().chain(columns).chain([self.value]).map(f64::to_bits)
    }

    /// Returns `true` if the position of a pixel is inside.
    pub fn holds(&self, y: isize, x: isize) -> bool {
        let (y, x) = ((y + self.origin[0]) as f64, (x + self.origin[1]) as f64);
        self.along.iter().all(|along| along.holds(along.at(y, x)))
    }

    /// The pixels among `columns` of row `y` whose positions are inside: one run.
    pub fn run(&self, y: isize, columns: Range<usize>) -> Range<usize> {
        let [top, left] = self.origin;
        let (y, start) = ((y + top) as f64, columns.start.cast_signed());
        let [mut from, mut to] = [start + left, columns.end.cast_signed() + left];
        for along in &self.along {
            [from, to] = along.run(y, [from, to]);
        }
        let column = |x: isize| (x - left).cast_unsigned();
        if from < to { column(from)..column(to) } else { columns.start..columns.start }
    }

    /// Returns `true` if all positions of an output of this shape are inside, because those of its corners are.
    pub fn everywhere(&self, shape: Shape) -> bool {
        let ends = |n: usize| [0, n.cast_signed() - 1];
        ends(shape.height).into_iter().all(|y| ends(shape.width).into_iter().all(|x| self.holds(y, x)))
    }
}

impl PartialEq for InsidePixels {
    fn eq(&self, other: &InsidePixels) -> bool {
        self.origin == other.origin && self.numbers().eq(other.numbers())
    }
}
impl Eq for InsidePixels {}
impl Hash for InsidePixels {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.origin.hash(state);
        self.numbers().for_each(|bits| bits.hash(state));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_counting_finds() {
        let along =
            |before: f64, per: [f64; 2], offset: f64| WarpPositions { before: [0.0, before], per, offset, last: 6.0 };
        let still = along(0.0, [1.0, 0.0], 0.0);
        let all = [
            along(0.0, [0.0, 1.0], 0.0),
            along(-2.5, [0.0, 1.0], 0.0),
            along(0.1, [0.0, 0.3], 0.0),
            along(0.0, [0.5, -0.866], 4.0),
            along(0.0, [0.5, 0.866], -3.0),
            along(0.0, [0.0, 0.0], 7.0),
            along(0.0, [0.0, -6.0], 6.0),
            along(0.0, [0.1, 1e-17], 0.3),
        ];
        for (columns, rows) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))).chain([(all[1], still)]) {
            for origin in [[0, 0], [3, -2]] {
                let inside = InsidePixels { origin, along: [rows, columns], value: 0.0 };
                for y in 0..9 {
                    for range in [0..0, 0..1, 0..12, 5..9] {
                        let hits: Vec<usize> = range.clone().filter(|&x| inside.holds(y, x as isize)).collect();
                        let want = hits.first().map_or(0..0, |&f| f..f + hits.len());
                        let run = inside.run(y, range.clone());
                        assert!(run == want || run.is_empty() && want.is_empty(), "{inside:?} {y} {range:?}: {run:?}");
                        assert!(run.start >= range.start && run.end <= range.end);
                    }
                }
                let shape = Shape::new(9, 12, 1);
                let each = (0..9).all(|y| (0..12).all(|x| inside.holds(y, x)));
                assert_eq!(inside.everywhere(shape), each, "{inside:?}");
            }
        }
    }
}
