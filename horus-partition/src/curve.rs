//! Space-filling curves: paths through all cells of a square in which successive cells are
//! neighbours.

use crate::Blocks;

/// The cells of a square of side 2, 3 or 5 in the order of the curve, from the corner (0, 0) to the
/// end of the first axis: Hilbert's curve, Peano's meandering one, and Cinco (Dennis 2003; thesis,
/// Figure 4.2).
const HILBERT: &[(usize, usize)] = &[(0, 0), (0, 1), (1, 1), (1, 0)];
const PEANO: &[(usize, usize)] = &[(0, 0), (0, 1), (0, 2), (1, 2), (2, 2), (2, 1), (1, 1), (1, 0), (2, 0)];
#[rustfmt::skip]
const CINCO: &[(usize, usize)] = &[
    (0, 0), (1, 0), (2, 0), (2, 1), (2, 2), (1, 2), (1, 1), (0, 1), (0, 2), (0, 3), (0, 4), (1, 4), (1, 3),
    (2, 3), (2, 4), (3, 4), (4, 4), (4, 3), (3, 3), (3, 2), (4, 2), (4, 1), (3, 1), (3, 0), (4, 0),
];

/// A corner of a square: 0 or 1 along each axis.
type Corner = (usize, usize);

/// The cells of a square whose side is the product of `factors` (2, 3 or 5; the first divides the
/// whole), in the order of the curve.
pub(crate) fn cells(factors: &[usize]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    visit(factors, (0, 0), (0, 0), (1, 0), &mut all);
    all
}

/// Appends the cells of the square at `origin`, from the corner `from` to the corner `to`, which
/// share an edge.
fn visit(factors: &[usize], origin: (usize, usize), from: Corner, to: Corner, all: &mut Vec<(usize, usize)>) {
    let Some((&factor, below)) = factors.split_first() else { return all.push(origin) };
    let pattern = match factor {
        2 => HILBERT,
        3 => PEANO,
        5 => CINCO,
        _ => unreachable!("a curve of {factor} cells"),
    };
    let size: usize = below.iter().product();
    // The pattern is rotated so that its first axis leads from `from` to `to`, and mirrored so that
    // it begins at `from`.
    let turned = from.0 == to.0;
    let place = |(a, b): (usize, usize), last: usize| {
        let (x, y) = if turned { (b, a) } else { (a, b) };
        (if from.0 == 1 { last - x } else { x }, if from.1 == 1 { last - y } else { y })
    };
    let ways = ways(pattern);
    for (cell, (enter, leave)) in pattern.iter().zip(ways) {
        let (x, y) = place(*cell, factor - 1);
        visit(below, (origin.0 + x * size, origin.1 + y * size), place(enter, 1), place(leave, 1), all);
    }
}

/// The corners at which the curve enters and leaves each cell of a pattern. It leaves at a corner
/// that touches the next cell.
fn ways(pattern: &[(usize, usize)]) -> Vec<(Corner, Corner)> {
    fn go(pattern: &[(usize, usize)], enter: Corner, ways: &mut Vec<(Corner, Corner)>) -> bool {
        let i = ways.len();
        for leave in [(1 - enter.0, enter.1), (enter.0, 1 - enter.1)] {
            let Some(next) = pattern.get(i + 1) else {
                if leave == (1, 0) {
                    ways.push((enter, leave));
                    return true;
                }
                continue;
            };
            let step = (next.0 as i64 - pattern[i].0 as i64, next.1 as i64 - pattern[i].1 as i64);
            let (touches, then) = match step {
                (1, 0) => (leave.0 == 1, (0, leave.1)),
                (-1, 0) => (leave.0 == 0, (1, leave.1)),
                (0, 1) => (leave.1 == 1, (leave.0, 0)),
                _ => (leave.1 == 0, (leave.0, 1)),
            };
            if touches {
                ways.push((enter, leave));
                if go(pattern, then, ways) {
                    return true;
                }
                ways.pop();
            }
        }
        false
    }
    let mut ways = Vec::with_capacity(pattern.len());
    let found = go(pattern, (0, 0), &mut ways);
    debug_assert!(found, "each pattern has a way");
    ways
}

/// All blocks along Hilbert's curve through the smallest square of 2^n x 2^n positions that
/// contains them.
pub(crate) fn hilbert(blocks: &Blocks) -> Vec<usize> {
    let side = blocks.columns().max(blocks.rows()).next_power_of_two();
    let factors = vec![2; side.trailing_zeros() as usize];
    along(blocks, &factors, (1, 1)).collect()
}

/// All blocks in the order of the Parallel Ocean Program (`create_distrb_spacecurve`): the common
/// factors 2, 3 and 5 of the numbers of columns and rows form the curve, 2 first; the remaining
/// factors form rectangles in it, traversed row by row. If the numbers have other factors, it is
/// Hilbert's curve.
pub(crate) fn pop(blocks: &Blocks) -> Vec<usize> {
    let (mut columns, mut rows) = (factors(blocks.columns()), factors(blocks.rows()));
    let smooth = |factors: &[usize], n: usize| factors.iter().product::<usize>() == n;
    if !smooth(&columns, blocks.columns()) || !smooth(&rows, blocks.rows()) {
        return hilbert(blocks);
    }
    let mut shared = Vec::new();
    columns.retain(|factor| {
        let Some(i) = rows.iter().position(|other| other == factor) else { return true };
        shared.push(rows.remove(i));
        false
    });
    along(blocks, &shared, (columns.iter().product(), rows.iter().product())).collect()
}

/// The factors 2, 3 and 5 of a number, in this order.
fn factors(mut number: usize) -> Vec<usize> {
    let mut all = Vec::new();
    for factor in [2, 3, 5] {
        while number.is_multiple_of(factor) {
            all.push(factor);
            number /= factor;
        }
    }
    all
}

/// The blocks along a curve from the south-west whose cells are rectangles of `cell` positions.
fn along(blocks: &Blocks, factors: &[usize], cell: (usize, usize)) -> impl Iterator<Item = usize> {
    let (columns, rows) = (blocks.columns(), blocks.rows());
    let of = move |(x, y): (usize, usize)| {
        (0..cell.1).flat_map(move |j| (0..cell.0).map(move |i| (x * cell.0 + i, y * cell.1 + j)))
    };
    let inside = move |(x, y): &(usize, usize)| *x < columns && *y < rows;
    cells(factors).into_iter().flat_map(of).filter(inside).filter_map(move |(x, y)| blocks.at(x, rows - 1 - y))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mask, Seams};

    #[test]
    fn curves_visit_every_cell_once_and_neighbours_in_turn() {
        for factors in [&[2][..], &[3], &[5], &[2, 2, 2], &[2, 3], &[3, 2], &[2, 2, 5], &[5, 5], &[2, 3, 5], &[5, 3, 2]]
        {
            let side: usize = factors.iter().product();
            let all = cells(factors);
            assert_eq!((all[0], all[all.len() - 1]), ((0, 0), (side - 1, 0)), "{factors:?}");
            for pair in all.windows(2) {
                let distance = pair[0].0.abs_diff(pair[1].0) + pair[0].1.abs_diff(pair[1].1);
                assert_eq!(distance, 1, "{factors:?}: {pair:?}");
            }
            let mut sorted = all.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), side * side, "{factors:?}");
        }
    }

    #[test]
    fn a_grid_is_walked_whole() {
        for (columns, rows) in [(60, 40), (12, 10), (7, 11), (1, 1), (5, 1)] {
            let mask = Mask::new(columns, rows, vec![true; columns * rows]).unwrap();
            let blocks = Blocks::new(&mask, (1, 1), 1, Seams::default()).unwrap();
            for mut order in [hilbert(&blocks), pop(&blocks)] {
                order.sort_unstable();
                assert!(order.into_iter().eq(0..columns * rows), "{columns} x {rows}");
            }
        }
    }

    #[test]
    fn the_curve_of_the_thesis_has_twenty_cells_of_three_by_two() {
        let mask = Mask::new(60, 40, vec![true; 2400]).unwrap();
        let blocks = Blocks::new(&mask, (1, 1), 1, Seams::default()).unwrap();
        let first: Vec<(usize, usize)> = pop(&blocks)[..7].iter().map(|i| blocks.place(*i)).collect();
        assert_eq!(first[..6], [(0, 39), (1, 39), (2, 39), (0, 38), (1, 38), (2, 38)]);
        assert!([(3, 39), (0, 37)].contains(&first[6]), "{first:?}");
    }
}
