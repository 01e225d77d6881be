//! A division by halves: besides the thesis's zigzag, the other start of a refinement.

use crate::curve;
use crate::refine::refine_pair;
use crate::subset::{BlockSubset, Score};

/// Directions of the sweeps over a set of blocks: along rows, along columns and diagonally.
const DIRECTIONS: [(i64, i64); 8] = [(1, 0), (0, 1), (1, 1), (1, -1), (2, 1), (2, -1), (1, 2), (1, -2)];

/// Maximum number of first columns that are tried on a periodic grid.
const TURNS: usize = 60;

/// Number of best sweeps that are refined, for up to `MANY` blocks. For more blocks it is the
/// number that takes the same time, but at least a tenth of it.
const REFINED: usize = 32;
const MANY: usize = 4096;

/// Divides a set of blocks into `k` parts by halves. Sizes differ by at most one block.
pub(crate) fn halves(piece: &BlockSubset<'_>, k: usize) -> Vec<u32> {
    let mut of = vec![0; piece.len()];
    halve(piece, k, 0, &mut of, &(0..piece.len()).collect::<Vec<_>>());
    of
}

/// Divides `piece`, whose members are `whole` in the outer set, into the parts from `first` on.
fn halve(piece: &BlockSubset<'_>, k: usize, first: u32, of: &mut [u32], whole: &[usize]) {
    if k == 1 {
        whole.iter().for_each(|i| of[*i] = first);
        return;
    }
    let left = k / 2;
    let parts = best_halves(piece, left, k);
    for (side, k, first) in [(0, left, first), (1, k - left, first + left as u32)] {
        let chosen: Vec<usize> = (0..piece.len()).filter(|i| parts[*i] == side).collect();
        let members = chosen.iter().map(|i| piece.members[*i]).collect();
        let whole: Vec<usize> = chosen.iter().map(|i| whole[*i]).collect();
        halve(&BlockSubset::new(piece.blocks, members), k, first, of, &whole);
    }
}

/// Divides a set of blocks in two, so that one half can be divided into `left` parts and the other
/// into the rest of `k`.
fn best_halves(piece: &BlockSubset<'_>, left: usize, k: usize) -> Vec<u32> {
    let (each, longer) = (piece.len() / k, piece.len() % k);
    let (fewest, most) = (left * each + (longer + left).saturating_sub(k), left * each + longer.min(left));
    let middle = (piece.len() * left + k / 2) / k;
    let count = middle.clamp(fewest, most);
    let refined = (REFINED * MANY / piece.len().max(MANY)).max(REFINED / 10);
    let mut found: Vec<(Score, Vec<u32>)> = Vec::new();
    for line in lines(piece) {
        let mut of = vec![1; piece.len()];
        line[..count].iter().for_each(|i| of[*i] = 0);
        let score = piece.score(&of, 2);
        if found.len() < refined || found.last().is_some_and(|last| score < last.0) {
            let place = found.partition_point(|other| other.0 <= score);
            if place == 0 || found[place - 1].1 != of {
                found.insert(place, (score, of));
                found.truncate(refined);
            }
        }
    }
    let all: Vec<u32> = (0..piece.len() as u32).collect();
    let better = found.into_iter().map(|(_, mut of)| {
        refine_pair(piece, &mut of, 0, 1, &all, fewest..=most);
        (piece.score(&of, 2), of)
    });
    better.min().map(|(_, of)| of).unwrap_or_default()
}

/// The members in the order of every sweep: in each direction (on a periodic grid from many
/// columns) and along a curve.
fn lines<'a>(piece: &'a BlockSubset<'_>) -> impl Iterator<Item = Vec<usize>> + 'a {
    let blocks = piece.blocks;
    let (wide, high) = (blocks.block().0 as i64, blocks.block().1 as i64);
    let columns = blocks.columns();
    let turns = if blocks.seams().periodic { columns.min(TURNS) } else { 1 };
    let swept = (0..turns).flat_map(|turn| DIRECTIONS.map(|direction| (turn, direction)));
    let swept = swept.map(move |(turn, (dx, dy))| {
        let first = turn * columns / turns;
        let mut line: Vec<usize> = (0..piece.len()).collect();
        line.sort_by_cached_key(|i| {
            let (column, row) = piece.place(*i);
            let column = (column + columns - first) % columns;
            (dx * wide * column as i64 + dy * high * row as i64, row, column)
        });
        line
    });
    let curve = std::iter::once_with(move || {
        let mut rank = vec![0; blocks.len()];
        curve::hilbert(blocks).into_iter().enumerate().for_each(|(at, block)| rank[block] = at);
        let mut line: Vec<usize> = (0..piece.len()).collect();
        line.sort_by_key(|i| rank[piece.members[*i]]);
        line
    });
    swept.chain(curve)
}
