//! Launches in two parts: rows independent of other ranks are computed during the halo exchange, the edges
//! afterwards.

use super::partition::Partition;
use super::state::Halo;
use super::step::{ComputedRows, LaunchPart};
use horus_base::shape::Window;

/// Minimum height of a strip computed in parts, as a multiple of the rows that its edges wait for. In a
/// thinner strip, reading the rows around the edges again costs more than the wait. A guess: no thinner strip
/// has been measured.
const TALL: usize = 8;

impl LaunchPart {
    /// The rows that rank `rank` computes in this part, of a result of `height` rows. Edges are two windows;
    /// any window may be empty.
    pub fn windows(self, rows: ComputedRows, partition: &Partition, rank: usize, height: usize) -> [Window; 2] {
        let all = rows.window(partition, rank, height);
        let none = Window::new(all.start, all.start);
        let interior = |reach| match rows {
            ComputedRows::All | ComputedRows::On(_) => none,
            ComputedRows::Strip(extend) => {
                interior(partition.strip(rank, height), height, reach, extend).unwrap_or(none)
            }
        };
        match self {
            LaunchPart::Whole => [all, none],
            LaunchPart::Interior(reach) => [interior(reach), none],
            LaunchPart::Edges(reach) => match interior(reach) {
                inner if inner.is_empty() => [all, none],
                inner => [Window::new(all.start, inner.start), Window::new(inner.end, all.end)],
            },
            LaunchPart::Band(band) => [band.of(all), none],
        }
    }
}

/// The rows of `strip` further than `reach` from its edges, if the strip is tall enough to gain. A launch
/// that computes the strip and `extend` reads rows to the depth of `reach` beyond these.
fn interior(strip: Window, height: usize, reach: Halo, extend: Halo) -> Option<Window> {
    let awaited = (reach.up + extend.up).max(reach.down + extend.down);
    let above = reach.wrap || strip.start > 0;
    let below = reach.wrap || strip.end < height.cast_signed();
    let top = if above { reach.up } else { 0 };
    let bottom = if below { reach.down } else { 0 };
    let tall = !strip.is_empty() && strip.len() >= TALL * awaited;
    tall.then(|| Window::new(strip.start + top.cast_signed(), strip.end - bottom.cast_signed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(part: LaunchPart, extend: Halo, ranks: usize, rank: usize, height: usize) -> [Window; 2] {
        part.windows(ComputedRows::Strip(extend), &Partition::equal(ranks), rank, height)
    }

    #[test]
    fn parts_are_all_rows_once() {
        for (up, down) in [(0, 0), (1, 1), (2, 0), (0, 3), (5, 5)] {
            for (extend, wrap) in [(0, false), (2, false), (0, true), (1, true)] {
                let (reach, extend) = (Halo { up, down, wrap }, Halo::even(extend));
                for (ranks, height) in [(1, 40), (2, 40), (3, 100), (5, 90), (7, 5)] {
                    for rank in 0..ranks {
                        let [all, _] = windows(LaunchPart::Whole, extend, ranks, rank, height);
                        let [inner, nothing] = windows(LaunchPart::Interior(reach), extend, ranks, rank, height);
                        let [above, below] = windows(LaunchPart::Edges(reach), extend, ranks, rank, height);
                        assert!(nothing.is_empty());
                        let rows =
                            (all.start..all.end).filter(|y| [above, inner, below].iter().any(|w| w.contains(*y)));
                        assert_eq!(rows.count(), all.len(), "{reach:?} rank {rank} of {ranks}, {height} rows");
                        assert_eq!(above.len() + inner.len() + below.len(), all.len());
                    }
                }
            }
        }
    }

    #[test]
    fn only_tall_strips_have_an_interior() {
        let reach = Halo::even(2);
        let inner = |ranks, rank, height| windows(LaunchPart::Interior(reach), Halo::NONE, ranks, rank, height)[0];
        assert_eq!(inner(3, 1, 48), Window::new(18, 30));
        assert_eq!(inner(3, 0, 48), Window::new(0, 14), "nothing comes from above the image");
        assert_eq!(inner(3, 2, 48), Window::new(34, 48));
        assert!(inner(3, 1, 45).is_empty(), "15 rows are less than 8 times 2");
        let deeper = windows(LaunchPart::Interior(reach), Halo::even(1), 3, 1, 48)[0];
        assert!(deeper.is_empty(), "3 rows are awaited where a halo of 1 is computed too");
        let wrapped = windows(LaunchPart::Interior(Halo { wrap: true, ..reach }), Halo::NONE, 3, 0, 48)[0];
        assert_eq!(wrapped, Window::new(2, 14));
    }
}
