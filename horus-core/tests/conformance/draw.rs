//! Choices for random programs: numbers that proptest makes and shrinks.

use horus_core::ops::neighbourhood::Filter;
use horus_core::shape::Border;

/// Numbers that define a step, used up one by one.
pub(crate) struct Draw<'a>(std::slice::Iter<'a, u8>);

impl<'a> Draw<'a> {
    pub(crate) fn new(numbers: &'a [u8]) -> Draw<'a> {
        Draw(numbers.iter())
    }

    /// A number less than `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::from(self.0.next().copied().unwrap_or(0)) % n.max(1)
    }

    pub(crate) fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub(crate) fn border(&mut self) -> Border {
        let value = self.below(4) as f64 * 1.25;
        self.one(&Border::all(value))
    }

    pub(crate) fn taps(&mut self, n: usize) -> Vec<f64> {
        let seed = self.below(256);
        (0..n).map(|i| (((i * 31 + seed * 7) % 23) as f64 - 9.0) / 16.0).collect()
    }

    /// Offsets on one side, on both, or far away.
    pub(crate) fn sparse(&mut self) -> Filter {
        let (far, side) = (self.one(&[1, 2, 6, 11]), self.below(4));
        let n = 1 + self.below(5);
        let offsets: Vec<(i32, i32)> = (0..n)
            .map(|_| {
                let (y, x) = (self.below(far + 1) as i32, self.below(far + 1) as i32);
                match side {
                    0 => (y, x - far as i32 / 2),
                    1 => (-y, x),
                    2 => (y, -x),
                    _ => (y - far as i32 / 2, x - far as i32 / 2),
                }
            })
            .collect();
        let taps = self.taps(n);
        Filter::sparse(offsets, taps)
    }
}
