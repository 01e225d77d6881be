//! Partition of the rows of an image among ranks.

use std::fmt;
use std::hash::{Hash, Hasher};

use horus_base::shape::Window;

/// A partition of images into strips of rows, one strip per rank, in rank order.
///
/// The same weights apply to every image, whatever its height. A strip may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Ascending from 0 to 1: rank `r` has the share `bounds[r]..bounds[r + 1]`.
    bounds: Vec<f64>,
}

impl Partition {
    /// Equal strips for `ranks` ranks.
    pub fn equal(ranks: usize) -> Partition {
        Partition::in_proportion((0..ranks.max(1)).map(|_| 1.0))
    }

    /// Strips in proportion to `weights`, one per rank. A rank of weight 0 gets no rows.
    ///
    /// # Errors
    /// If there is no weight, a weight is negative or not finite, or all are zero.
    pub fn weighted(weights: &[f64]) -> Result<Partition, String> {
        if let Some((rank, w)) = weights.iter().enumerate().find(|(_, w)| !w.is_finite() || **w < 0.0) {
            return Err(format!("the weight of rank {rank} is {w}: weights must be finite, and not negative"));
        }
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if largest <= 0.0 {
            return Err("all weights are zero; at least one must be positive".into());
        }
        // Relative to the largest, so that the sum of weights is finite.
        Ok(Partition::in_proportion(weights.iter().map(|w| w / largest)))
    }

    fn in_proportion(weights: impl Iterator<Item = f64> + Clone) -> Partition {
        let total: f64 = weights.clone().sum();
        let mut sum = 0.0;
        let mut bounds = vec![0.0];
        bounds.extend(weights.map(|w| {
            sum += w;
            sum / total
        }));
        if let Some(last) = bounds.last_mut() {
            *last = 1.0;
        }
        Partition { bounds }
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The rows of rank `rank` of an image of `height` rows.
    pub fn strip(&self, rank: usize, height: usize) -> Window {
        let at = |b: f64| (b * height as f64).round() as isize;
        Window::new(at(self.bounds[rank]), at(self.bounds[rank + 1]))
    }
}

impl Hash for Partition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bounds.iter().for_each(|b| b.to_bits().hash(state));
    }
}

impl fmt::Display for Partition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shares: Vec<String> = self.bounds.windows(2).map(|b| format!("{:.1}%", 100.0 * (b[1] - b[0]))).collect();
        f.write_str(&shares.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strips_tile_the_image() {
        for ranks in 1..7 {
            for height in 0..40 {
                let p = Partition::equal(ranks);
                let strips: Vec<Window> = (0..ranks).map(|r| p.strip(r, height)).collect();
                assert_eq!(strips[0].start, 0);
                assert_eq!(strips[ranks - 1].end, height.cast_signed());
                assert!(strips.windows(2).all(|w| w[0].end == w[1].start));
                let sizes: Vec<usize> = strips.iter().map(|s| s.len()).collect();
                assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
            }
        }
    }

    #[test]
    fn weights_give_proportional_strips() {
        for weights in [[3.0, 1.0, 0.0], [f64::MAX, f64::MAX / 3.0, 0.0]] {
            let p = Partition::weighted(&weights).unwrap();
            assert_eq!((0..3).map(|r| p.strip(r, 100).len()).collect::<Vec<_>>(), [75, 25, 0]);
            assert_eq!(p.strip(2, 100), Window::new(100, 100));
        }
    }

    #[test]
    fn weights_that_make_no_sense_are_refused() {
        assert!(Partition::weighted(&[1.0, f64::NAN]).unwrap_err().contains("rank 1 is NaN"));
        assert!(Partition::weighted(&[1.0, -2.0]).unwrap_err().contains("rank 1 is -2"));
        assert!(Partition::weighted(&[f64::INFINITY]).unwrap_err().contains("finite"));
        assert!(Partition::weighted(&[0.0, 0.0]).unwrap_err().contains("all weights are zero"));
        assert!(Partition::weighted(&[]).is_err());
    }
}
