//! Refinement of a division by the method of Fiduccia and Mattheyses, between pairs of parts, with
//! equal loads.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::RangeInclusive;

use crate::subset::BlockSubset;

/// Maximum number of attempts for a pair of parts. An attempt without gain is the last.
const ATTEMPTS: usize = 20;

/// Maximum number of rounds over all pairs of parts.
const ROUNDS: usize = 20;

/// Moves blocks between the `k` parts of a division as long as that lowers its volume. Loads stay
/// between `piece.len() / k` rounded down and rounded up, if they are at the start.
pub(crate) fn refine(piece: &BlockSubset<'_>, of: &mut [u32], k: usize) {
    let bounds = piece.len() / k..=piece.len().div_ceil(k);
    // Parts that changed since their pairs were last examined.
    let mut changed = vec![true; k];
    for _ in 0..ROUNDS {
        let mut pairs = BTreeSet::new();
        for i in 0..piece.len() {
            for edge in piece.edges(i) {
                let (a, b) = (of[i], of[edge.to as usize]);
                if a < b && (changed[a as usize] || changed[b as usize]) {
                    pairs.insert((a, b));
                }
            }
        }
        changed.fill(false);
        for (a, b) in pairs {
            let members: Vec<u32> = (0..piece.len() as u32).filter(|i| [a, b].contains(&of[*i as usize])).collect();
            // Sizes of the first part for which the second part also satisfies the bounds.
            let (low, high) = (members.len().saturating_sub(*bounds.end()), members.len() - bounds.start());
            let may = low.max(*bounds.start())..=high.min(*bounds.end());
            if refine_pair(piece, of, a, b, &members, may) {
                (changed[a as usize], changed[b as usize]) = (true, true);
            }
        }
        if changed.iter().all(|changed| !changed) {
            return;
        }
    }
}

/// Moves `members` between their parts `a` and `b` if that improves the division, and returns
/// `true` then. Afterwards the size of `a` is in `may`.
pub(crate) fn refine_pair(
    piece: &BlockSubset<'_>,
    of: &mut [u32],
    a: u32,
    b: u32,
    members: &[u32],
    may: RangeInclusive<usize>,
) -> bool {
    let mut better = false;
    for _ in 0..ATTEMPTS {
        if !move_once(piece, of, a, b, members, &may) {
            break;
        }
        better = true;
    }
    better
}

/// One attempt. In each move, the member with the greatest gain (which may be negative) changes
/// parts, unless its part would become too small; each member moves at most once. Then all moves
/// after the best division are undone.
fn move_once(
    piece: &BlockSubset<'_>,
    of: &mut [u32],
    a: u32,
    b: u32,
    members: &[u32],
    may: &RangeInclusive<usize>,
) -> bool {
    // The gain of moving each member, and heaps of gains for both parts. Outdated entries are
    // skipped when popped.
    let mut gains = vec![0i64; piece.len()];
    let mut free = vec![false; piece.len()];
    let mut heaps = [BinaryHeap::new(), BinaryHeap::new()];
    let side = |part: u32| usize::from(part == b);
    let mut count = 0;
    for &i in members {
        let at = i as usize;
        for edge in piece.edges(at) {
            let other = of[edge.to as usize];
            if other == a || other == b {
                gains[at] += if other == of[at] { -(edge.both as i64) } else { edge.both as i64 };
            }
        }
        free[at] = true;
        count += usize::from(of[at] == a);
        heaps[side(of[at])].push((gains[at], Reverse(i)));
    }
    let patience = 200.max(members.len() / 4);
    let mut moves: Vec<u32> = Vec::new();
    let (mut gained, mut best, mut kept) = (0i64, 0i64, 0);
    while moves.len() < kept + patience {
        for (which, heap) in heaps.iter_mut().enumerate() {
            while let Some((gain, Reverse(i))) = heap.peek() {
                let at = *i as usize;
                if free[at] && side(of[at]) == which && gains[at] == *gain {
                    break;
                }
                heap.pop();
            }
        }
        let tops = [0, 1].map(|which| heaps[which].peek().map(|(gain, Reverse(i))| (*gain, *i)));
        let from_first = match (tops[0], tops[1]) {
            (Some(_), _) if count > *may.end() => tops[0],
            (_, Some(_)) if count < *may.start() => tops[1],
            (Some(first), Some(second)) => Some(if first.0 >= second.0 { first } else { second }),
            (first, second) => first.or(second),
        };
        let Some((gain, i)) = from_first else { break };
        let at = i as usize;
        let to = if of[at] == a { b } else { a };
        count = if to == a { count + 1 } else { count - 1 };
        of[at] = to;
        free[at] = false;
        gained += gain;
        moves.push(i);
        for edge in piece.edges(at) {
            let other = edge.to as usize;
            if free[other] {
                let change = 2 * edge.both as i64;
                gains[other] += if of[other] == to { -change } else { change };
                heaps[side(of[other])].push((gains[other], Reverse(edge.to)));
            }
        }
        if gained > best && may.contains(&count) {
            (best, kept) = (gained, moves.len());
        }
    }
    for i in &moves[kept..] {
        let at = *i as usize;
        of[at] = if of[at] == a { b } else { a };
    }
    best > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocks, Mask, Seams};

    /// Alternating parts on a strip of 2 x 8 become its two halves, the best division.
    #[test]
    fn the_best_division_of_a_strip_is_found() {
        let sea = Mask::new(16, 4, vec![true; 64]).unwrap();
        let blocks = Blocks::new(&sea, (2, 2), 1, Seams::default()).unwrap();
        let piece = BlockSubset::new(&blocks, (0..16).collect());
        let mut of: Vec<u32> = (0..16).map(|i| i % 2).collect();
        refine(&piece, &mut of, 2);
        // Two edges of two points and two corners of one, both ways.
        assert_eq!(piece.score(&of, 2).volume, 2 * (2 * 2 + 2));
        assert_eq!(of.iter().filter(|part| **part == 0).count(), 8);
    }
}
