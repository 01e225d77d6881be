//! Division of an image into regions that are computed one after another.

use std::fmt;

use super::Rect;
use horus_base::shape::{Shape, Window};

/// Adjacent regions of equal size, clipped at the far edges of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Division {
    /// The divided image.
    pub of: Shape,
    /// Rows per region.
    pub height: usize,
    /// Columns per region.
    pub width: usize,
}

/// Minimum number of regions for overlap: one is read, one computed, and one written at the same time.
const FEWEST: usize = 12;
/// Minimum pixels of a region. Smaller regions cost more to plan and launch than to compute: an estimate.
const LEAST: usize = 1 << 16;
/// A narrower division must be cheaper by this factor: strips are contiguous in memory and in most files, and
/// have fewer different shapes, each of which needs its own plan and launches. A guess.
const NARROWER: f64 = 0.9;
/// Maximum number of regions across an image.
const MOST_ACROSS: usize = 256;

impl Division {
    /// Number of regions.
    pub fn count(&self) -> usize {
        self.of.height.div_ceil(self.height) * self.of.width.div_ceil(self.width)
    }

    /// Region `i`, row by row.
    pub fn region(&self, i: usize) -> Rect {
        let across = self.of.width.div_ceil(self.width);
        let line = |k: usize, extent: usize, n: usize| {
            let start = k * extent;
            Window::new(start.cast_signed(), start.saturating_add(extent).min(n).cast_signed())
        };
        Rect {
            rows: line(i / across, self.height, self.of.height),
            columns: line(i % across, self.width, self.of.width),
        }
    }

    /// One region of each kind: along each axis the first, one in the middle, the last that is not clipped,
    /// and the last.
    pub fn kinds(&self) -> Vec<Rect> {
        let some = |extent: usize, n: usize| {
            let last = n.div_ceil(extent).saturating_sub(1);
            let mut some = vec![0, last / 2, (n / extent).saturating_sub(1), last];
            some.sort_unstable();
            some.dedup();
            some
        };
        let across = self.of.width.div_ceil(self.width);
        let (lines, columns) = (some(self.height, self.of.height), some(self.width, self.of.width));
        lines.iter().flat_map(|y| columns.iter().map(move |x| y * across + x)).map(|i| self.region(i)).collect()
    }

    /// A cheap division of an image into regions that fit, and its total cost: strips of whole rows, or tiles
    /// if these are cheaper by a tenth. Rows and columns are multiples of `grain`. `cost` returns the cost of
    /// a region, or `None` if it does not fit. `None` if not even the smallest regions fit.
    pub fn cheapest(
        of: Shape,
        grain: (usize, usize),
        cost: &mut dyn FnMut(Rect) -> Option<f64>,
    ) -> Option<(f64, Division)> {
        let parts =
            std::iter::successors(Some(1), |across| Some(2 * across)).take_while(|across| *across <= MOST_ACROSS);
        let mut widths: Vec<usize> = parts.map(|across| up(of.width.div_ceil(across), grain.1, of.width)).collect();
        widths.dedup();
        Division::of_widths(of, grain.0, &widths, cost)
    }

    /// Same as [`Division::cheapest`], among regions of one of these widths (largest first) and multiples of
    /// `rows` rows.
    pub fn of_widths(
        of: Shape,
        rows: usize,
        widths: &[usize],
        cost: &mut dyn FnMut(Rect) -> Option<f64>,
    ) -> Option<(f64, Division)> {
        let mut best: Option<(f64, Division)> = None;
        for &width in widths {
            let of_rows = |steps: usize| Division { of, height: up(steps * rows, rows, of.height), width };
            // A region in the middle reads pixels on all sides.
            let mut total = |d: Division| {
                let (down, across) = (of.height.div_ceil(d.height), of.width.div_ceil(d.width));
                let region = d.region((down - 1) / 2 * across + (across - 1) / 2);
                Some(cost(region)? * (of.area() as f64 / region.area().max(1) as f64))
            };
            let few = (of.area() / FEWEST).max(LEAST);
            let most = (few / (width * rows)).clamp(1, of.height.div_ceil(rows));
            // Binary search for the largest region that fits: memory grows with the region.
            let (mut fits, mut fails) = (0, most + 1);
            if total(of_rows(most)).is_some() {
                fits = most;
            }
            while fits + 1 < fails && fits < most {
                let middle = usize::midpoint(fits, fails);
                *if total(of_rows(middle)).is_some() { &mut fits } else { &mut fails } = middle;
            }
            if fits == 0 {
                continue;
            }
            let division = of_rows(fits);
            if let Some(cost) = total(division)
                && best.is_none_or(|(least, _)| cost < NARROWER * least)
            {
                best = Some((cost, division));
            }
        }
        best
    }

    /// Regions of `rows` rows and `columns` columns.
    pub fn smallest(of: Shape, (rows, columns): (usize, usize)) -> Division {
        Division { of, height: up(1, rows, of.height), width: up(1, columns, of.width) }
    }
}

/// `n` rounded up to a multiple of `grain`, at most `all`.
fn up(n: usize, grain: usize, all: usize) -> usize {
    n.div_ceil(grain).max(1).saturating_mul(grain).min(all)
}

impl fmt::Display for Division {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, Division { of, height, width }) = (self.count(), *self);
        if width == of.width {
            return write!(f, "{n} strips of {height} rows of {of}");
        }
        write!(f, "{n} tiles of {height}x{width} of {of}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LARGE: Shape = Shape::new(20_000, 30_000, 1);

    #[test]
    fn regions_make_up_the_whole() {
        let of = Shape::new(70, 90, 1);
        for (height, width) in [(70, 90), (16, 90), (16, 32), (1, 1), (69, 89)] {
            let d = Division { of, height, width };
            let mut seen = vec![0; of.area()];
            for i in 0..d.count() {
                let r = d.region(i);
                for y in r.rows.start..r.rows.end {
                    (r.columns.start..r.columns.end).for_each(|x| seen[(y * 90 + x).cast_unsigned()] += 1);
                }
            }
            assert!(seen.iter().all(|n| *n == 1), "{d}");
        }
    }

    #[test]
    fn strips_where_they_fit_and_tiles_where_they_read_less() {
        let fits =
            |most: usize, read: usize| move |r: Rect| (read <= most).then_some(read as f64 + 0.0 * r.area() as f64);
        // A filter that reads 10 more rows and columns.
        let mut around = |r: Rect| {
            let read = (r.rows.len() + 20) * (r.columns.len() + 20);
            fits(4_000_000, read)(r)
        };
        let cheapest =
            |grain, cost: &mut dyn FnMut(Rect) -> Option<f64>| Division::cheapest(LARGE, grain, cost).unwrap().1;
        let d = cheapest((256, 256), &mut around);
        assert!(d.width < LARGE.width, "strips of 256 rows are too large: {d}");
        assert!(
            d.height.is_multiple_of(256)
                && d.width.is_multiple_of(256)
                && (d.height + 20) * (d.width + 20) <= 4_000_000,
            "{d}"
        );
        // A file in strips decodes whole rows.
        let d = cheapest((1, 1), &mut |r| fits(40_000_000, (r.rows.len() + 20) * LARGE.width)(r));
        assert_eq!(d.width, LARGE.width, "{d}");
        // A rotated region reads about as many rows as columns.
        let d = cheapest((256, 256), &mut |r| {
            let side = r.rows.len().max(r.columns.len());
            fits(40_000_000, side * side)(r)
        });
        assert!(d.width < LARGE.width && d.count() > FEWEST, "{d}");
    }

    #[test]
    fn where_nothing_fits_there_is_no_division() {
        assert_eq!(Division::cheapest(LARGE, (256, 512), &mut |_| None), None);
        let d = Division::smallest(LARGE, (256, 512));
        assert_eq!((d.height, d.width), (256, 512));
    }
}
