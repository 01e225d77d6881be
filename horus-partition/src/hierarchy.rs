//! Hierarchical partitions: all blocks are divided into clusters, the blocks of each cluster into
//! nodes, and so on.

use crate::refine::refine;
use crate::subset::{BlockSubset, Score};
use crate::{Blocks, Levels, starts, zigzag};

/// A function that divides a set of blocks into parts.
type DivisionMethod = fn(&BlockSubset<'_>, usize) -> Vec<u32>;

/// The partition of the thesis (section 4.1.3).
pub(crate) fn zigzag(blocks: &Blocks, levels: &Levels) -> Vec<usize> {
    descend(blocks, levels, |piece, k| zigzag::divide(piece, k).0)
}

/// The thesis's hierarchy with refined divisions.
pub(crate) fn hierarchical(blocks: &Blocks, levels: &Levels) -> Vec<usize> {
    descend(blocks, levels, refined)
}

/// The better of the thesis's division and a division by halves, both refined. It is never worse
/// than the thesis's division.
fn refined(piece: &BlockSubset<'_>, k: usize) -> Vec<u32> {
    let (start, score) = zigzag::divide(piece, k);
    let better = |mut of: Vec<u32>| {
        refine(piece, &mut of, k);
        (piece.score(&of, k), of)
    };
    let mut best: (Score, Vec<u32>) = (score, start.clone());
    for found in [better(start), better(starts::halves(piece, k))] {
        if found.0 < best.0 {
            best = found;
        }
    }
    best.1
}

/// Divides all blocks, level by level.
fn descend(blocks: &Blocks, levels: &Levels, divide: DivisionMethod) -> Vec<usize> {
    let mut of = vec![0; blocks.len()];
    let mut pieces = vec![(0..blocks.len()).collect::<Vec<usize>>()];
    for &k in levels.counts() {
        let mut next = Vec::with_capacity(pieces.len() * k);
        for members in pieces {
            let mut parts = vec![Vec::new(); k];
            let piece = BlockSubset::new(blocks, members);
            let divided = if k == 1 { vec![0; piece.len()] } else { divide(&piece, k) };
            for (member, part) in piece.members.iter().zip(divided) {
                parts[part as usize].push(*member);
            }
            next.append(&mut parts);
        }
        pieces = next;
    }
    for (part, members) in pieces.into_iter().enumerate() {
        members.into_iter().for_each(|i| of[i] = part);
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mask, Seams};

    #[test]
    fn no_division_is_worse_than_its_start() {
        for seed in 0..6 {
            let mask = Mask::synthetic(120, 80, seed).unwrap();
            let seams = Seams { periodic: seed % 2 == 0, tripole: seed % 3 == 0 };
            let blocks = Blocks::new(&mask, (5, 4), 2, seams).unwrap();
            let piece = BlockSubset::new(&blocks, (0..blocks.len()).collect());
            for k in [2, 3, 5, 8, 10, 16, 31] {
                let (_, start) = zigzag::divide(&piece, k);
                let of = refined(&piece, k);
                assert!(piece.score(&of, k) <= start, "seed {seed}, {k} parts");
                let sizes: Vec<usize> = (0..k as u32).map(|p| of.iter().filter(|q| **q == p).count()).collect();
                let bounds = piece.len() / k..=piece.len().div_ceil(k);
                assert!(sizes.iter().all(|size| bounds.contains(size)), "{sizes:?}");
            }
        }
    }
}
