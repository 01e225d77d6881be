//! The input positions of a row of output pixels: a line in fixed point.

use std::ops::Range;

use horus_plan::ops::geometric::Affine;

/// Input coordinates of a row of output pixels along one axis, with 32 fractional bits: pixel `i`
/// is at `start + step * i`.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearCoordinate {
    pub(super) start: i64,
    pub(super) step: i64,
}

impl LinearCoordinate {
    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> i64 {
        self.start + self.step * i as i64
    }

    /// The pixels among `0..n` whose integer coordinate is in `range`: one run, because coordinates are monotone.
    #[inline(always)]
    pub(super) fn run(&self, n: usize, range: &Range<i64>) -> Range<usize> {
        if n == 0 || range.is_empty() {
            return 0..0;
        }
        let (first, last) = (self.at(0) >> 32, self.at(n - 1) >> 32);
        if range.contains(&first) && range.contains(&last) {
            return 0..n;
        }
        if first.max(last) < range.start || first.min(last) >= range.end {
            return 0..0;
        }
        self.crossing(n, range)
    }

    /// [`Axis::run`] where the line enters or leaves the range: the step is not zero.
    fn crossing(&self, n: usize, range: &Range<i64>) -> Range<usize> {
        let start = i128::from(self.start);
        // Distances fit 64 bits in images of up to 2^30 pixels; others are divided slowly.
        let quotient = |distance: i128, step: i64| match i64::try_from(distance) {
            Ok(distance) => i128::from(distance.div_euclid(step)),
            Err(_) => distance.div_euclid(step.into()),
        };
        let [lo, hi] = [range.start, range.end].map(|bound| i128::from(bound) << 32);
        // The smallest i with start + step * i >= bound (rising) or < bound (falling).
        let (from, to) = if self.step > 0 {
            let ceil = |bound: i128| -quotient(start - bound, self.step);
            (ceil(lo), ceil(hi))
        } else {
            let below = |bound: i128| quotient(start - bound, -self.step) + 1;
            (below(hi), below(lo))
        };
        let clamp = |i: i128| i.clamp(0, n as i128) as usize;
        clamp(from)..clamp(to).max(clamp(from))
    }
}

/// Input positions of a row of output pixels.
#[derive(Clone, Copy, Debug)]
pub(super) struct WarpLine {
    pub(super) y: LinearCoordinate,
    pub(super) x: LinearCoordinate,
}

impl WarpLine {
    /// The positions of the pixels of row `y` from column `x` on.
    #[inline(always)]
    pub(super) fn of(map: &Affine, y: isize, x: usize) -> WarpLine {
        let (y, x) = map.at(y as i64, x as i64);
        WarpLine { y: LinearCoordinate { start: y, step: map.yx }, x: LinearCoordinate { start: x, step: map.xx } }
    }

    /// `(y, x)` of pixel `i`.
    #[inline(always)]
    pub(super) fn at(&self, i: usize) -> (i64, i64) {
        (self.y.at(i), self.x.at(i))
    }

    /// The same line from pixel `i` on.
    #[inline(always)]
    pub(super) fn from(&self, i: usize) -> WarpLine {
        let (y, x) = self.at(i);
        WarpLine { y: LinearCoordinate { start: y, ..self.y }, x: LinearCoordinate { start: x, ..self.x } }
    }

    /// The pixels among `0..n` whose integer position is in the rectangle `rows` x `cols`.
    #[inline(always)]
    pub(super) fn run(&self, n: usize, rows: Range<i64>, cols: Range<i64>) -> Range<usize> {
        let (a, b) = (self.y.run(n, &rows), self.x.run(n, &cols));
        let start = a.start.max(b.start);
        let end = a.end.min(b.end);
        if start < end { start..end } else { 0..0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_counting_finds() {
        let steps = [0, 1, -1, 1 << 31, (1 << 32) - 1, 1 << 32, -(1 << 32), 3_719_550_787, -2_147_483_648, 9 << 31];
        for step in steps {
            for start in [0, -1, 1, (5 << 32) - 1, 5 << 32, -(7 << 31), 11 << 32, (1 << 61) + 3, -(1 << 61)] {
                let axis = LinearCoordinate { start, step };
                for n in [0, 1, 2, 33] {
                    for range in [0..0, 0..1, -1..6, 5..7, 0..1 << 31] {
                        let hits: Vec<usize> = (0..n).filter(|&i| range.contains(&(axis.at(i) >> 32))).collect();
                        let want = hits.first().map_or(0..0, |&f| f..f + hits.len());
                        let run = axis.run(n, &range);
                        assert!(run == want || (run.is_empty() && want.is_empty()), "{axis:?} {n} {range:?} {run:?}");
                    }
                }
            }
        }
    }
}
