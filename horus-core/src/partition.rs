//! How the rows of an image are divided among ranks.

use crate::shape::Window;

/// A division of images into strips of rows, one strip per rank, in rank order.
///
/// The same weights divide every image, each by its own height. A strip may be empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Partition {
    /// Ascending from 0 to 1: rank `r` has the share `bounds[r]..bounds[r + 1]`.
    bounds: Vec<f64>,
}

impl Partition {
    /// Equal strips for `ranks` ranks.
    pub fn equal(ranks: usize) -> Partition {
        Partition::weighted(&vec![1.0; ranks.max(1)])
    }

    /// Strips in proportion to `weights`. Weights that are not finite and positive count as nothing; if all are, the
    /// strips are equal.
    pub fn weighted(weights: &[f64]) -> Partition {
        let mut w: Vec<f64> = weights.iter().map(|w| if w.is_finite() && *w > 0.0 { *w } else { 0.0 }).collect();
        if w.iter().sum::<f64>() <= 0.0 {
            w = vec![1.0; weights.len().max(1)];
        }
        let total: f64 = w.iter().sum();
        let mut sum = 0.0;
        let mut bounds = vec![0.0];
        bounds.extend(w.iter().map(|w| {
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
        let p = Partition::weighted(&[3.0, 1.0, f64::NAN]);
        assert_eq!((0..3).map(|r| p.strip(r, 100).len()).collect::<Vec<_>>(), [75, 25, 0]);
    }
}
