//! The division of the thesis (section 4.1.3): slices along one axis, each cut along the other, by
//! zigzag lines.

use crate::subset::{BlockSubset, Score, shares};

/// Maximum number of orders of slices of different widths that are tried.
const ORDERS: usize = 1000;

/// Divides a set of blocks into `k` parts whose sizes differ by at most one block. Slices are
/// columns or rows, in every order of their widths, cut by zigzag lines from either end. The
/// division with the least volume is chosen; among equals, the division whose largest part receives
/// least.
pub(crate) fn divide(piece: &BlockSubset<'_>, k: usize) -> (Vec<u32>, Score) {
    let mut slices = slices(k);
    slices.sort_unstable();
    let mut best = in_order(piece, &slices);
    for _ in 1..ORDERS {
        if !next_order(&mut slices) {
            break;
        }
        let found = in_order(piece, &slices);
        if found.1 < best.1 {
            best = found;
        }
    }
    best
}

/// The number of parts in each slice, for `k` parts in about a square. Let `c` be the square root
/// of `k` rounded up and `f` rounded down: there are `c` slices of `c` or `f` parts, less one part
/// in as many slices as there are parts too many (thesis, Figure 4.4).
fn slices(k: usize) -> Vec<usize> {
    let floor = k.isqrt();
    let ceil = if floor * floor == k { floor } else { floor + 1 };
    let each = if k <= floor * ceil { floor } else { ceil };
    let surplus = ceil * each - k;
    (0..ceil).map(|i| each - usize::from(i >= ceil - surplus)).collect()
}

/// The next permutation, if there is one; the first is ascending.
fn next_order(numbers: &mut [usize]) -> bool {
    let Some(i) = (1..numbers.len()).rev().find(|i| numbers[*i - 1] < numbers[*i]) else { return false };
    let Some(j) = (i..numbers.len()).rev().find(|j| numbers[*j] > numbers[i - 1]) else { return false };
    numbers.swap(i - 1, j);
    numbers[i..].reverse();
    true
}

/// The best division into these slices in this order. The parts of the first slice are numbered
/// first.
fn in_order(piece: &BlockSubset<'_>, slices: &[usize]) -> (Vec<u32>, Score) {
    let ways = [(true, false), (true, true), (false, false), (false, true)];
    let mut all = ways.into_iter().map(|(columns, reverse)| sliced(piece, slices, columns, reverse));
    let first = all.next().unwrap_or_default();
    all.fold(first, |best, next| if next.1 < best.1 { next } else { best })
}

/// The best division into slices cut from one zigzag line.
fn sliced(piece: &BlockSubset<'_>, slices: &[usize], columns: bool, reverse: bool) -> (Vec<u32>, Score) {
    let k: usize = slices.iter().sum();
    let sizes = shares(piece.len(), k);
    let line = zigzag(piece, (0..piece.len()).collect(), columns, reverse);
    let mut of = vec![0; piece.len()];
    let mut score = Score::default();
    let (mut from, mut part) = (0, 0);
    let mut ranges = Vec::new();
    for count in slices {
        let sizes = &sizes[part..part + count];
        let to = from + sizes.iter().sum::<usize>();
        ranges.push((&line[from..to], sizes, part));
        line[from..to].iter().for_each(|i| of[*i] = part as u32);
        (from, part) = (to, part + count);
    }
    // The volume between slices does not depend on the cuts within them, so each slice is cut in
    // its own best way.
    for (slice, sizes, part) in ranges {
        let mut best: Option<(Score, Vec<usize>)> = None;
        for reverse in [false, true] {
            let line = zigzag(piece, slice.to_vec(), !columns, reverse);
            assign(&line, sizes, part, &mut of);
            let found = piece.score_of(slice.iter().copied(), &of, k);
            if best.as_ref().is_none_or(|(score, _)| found < *score) {
                best = Some((found, line));
            }
        }
        if let Some((found, line)) = best {
            assign(&line, sizes, part, &mut of);
            score = Score { volume: score.volume + found.volume, most: score.most.max(found.most) };
        }
    }
    (of, score)
}

/// Assigns the members along a line to parts of these sizes, beginning with `part`.
fn assign(line: &[usize], sizes: &[usize], part: usize, of: &mut [u32]) {
    let mut rest = line.iter();
    for (i, size) in sizes.iter().enumerate() {
        rest.by_ref().take(*size).for_each(|member| of[*member] = (part + i) as u32);
    }
}

/// Members column by column, alternately downwards and upwards (upwards first if `reverse`), or
/// likewise row by row.
fn zigzag(piece: &BlockSubset<'_>, mut members: Vec<usize>, columns: bool, reverse: bool) -> Vec<usize> {
    let axes = |i: usize| {
        let (column, row) = piece.place(i);
        if columns { (column, row) } else { (row, column) }
    };
    let first = members.iter().map(|i| axes(*i).0).min().unwrap_or(0);
    members.sort_by_key(|i| {
        let (line, along) = axes(*i);
        let back = ((line - first) % 2 == 1) != reverse;
        (line, if back { usize::MAX - along } else { along })
    });
    members
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Blocks, Mask, Seams};

    /// Figure 4.4 of the thesis.
    #[test]
    fn squares_are_divided_into_4_6_8_and_10() {
        assert_eq!([4, 6, 8, 10].map(slices), [vec![2, 2], vec![2, 2, 2], vec![3, 3, 2], vec![3, 3, 2, 2]]);
        assert_eq!([1, 2, 3, 16].map(slices), [vec![1], vec![1, 1], vec![2, 1], vec![4; 4]]);
        for k in 1..300 {
            assert_eq!(slices(k).iter().sum::<usize>(), k);
        }
    }

    #[test]
    fn all_orders_are_tried() {
        let mut numbers = vec![2, 2, 3, 3];
        let mut all = vec![numbers.clone()];
        while next_order(&mut numbers) {
            all.push(numbers.clone());
        }
        assert_eq!(all.len(), 6);
        all.dedup();
        assert_eq!((all.len(), &all[5]), (6, &vec![3, 3, 2, 2]));
    }

    /// The example of the thesis (section 4.1.3, Figure 4.3): 1200 x 1000 points in blocks of 100 x
    /// 100; 20 of 120 blocks are land. The figure only shows them; the positions of the land blocks
    /// come from the test topography of the authors' own tool (eSalsa-Tools, `CreateTestTopo`),
    /// whose first row is the south. East and west are connected.
    const EXAMPLE: [&str; 10] = [
        "#####.....##",
        "##........#.",
        "#........##.",
        "............",
        "............",
        "............",
        "............",
        "...........#",
        "..........##",
        "...##.....##",
    ];

    /// Blocks with their sizes in points, without the points.
    fn example() -> Blocks {
        let points: Vec<String> =
            EXAMPLE.iter().map(|row| row.chars().map(|c| c.to_string().repeat(100)).collect()).collect();
        let rows: Vec<&str> = points.iter().flat_map(|row| [row.as_str(); 100]).collect();
        Blocks::new(&Mask::drawn(&rows).unwrap(), (100, 100), 2, Seams { periodic: true, tripole: false }).unwrap()
    }

    /// Table 4.1 of the thesis, in its order: the slices, and the least, mean and most points that
    /// a task receives.
    const TABLE: [([usize; 4], [u64; 3]); 6] = [
        ([3, 3, 2, 2], [1440, 2186, 2888]),
        ([2, 3, 3, 2], [1244, 2187, 2888]),
        ([2, 2, 3, 3], [1240, 2188, 3100]),
        ([2, 3, 2, 3], [1240, 2188, 3300]),
        ([3, 2, 2, 3], [1240, 2229, 3720]),
        ([3, 2, 3, 2], [1440, 2265, 2876]),
    ];

    /// Points that each of ten tasks receives, counted block by block on the drawing of the
    /// example.
    ///
    /// `missed` counts as the authors' tool does: for the second column it searches the block to
    /// the north-west at the other end of the row (`Neighbours.getMessageSizeNorthWest` tests
    /// `x <= 0` instead of `x < 0`), which misses a corner of 4 points.
    fn count(of: &[u32], missed: bool) -> [u64; 3] {
        let sea = |x: usize, y: usize| EXAMPLE[y].as_bytes()[x] != b'#';
        let mut task = [[None; 12]; 10];
        let mut next = of.iter();
        for (y, row) in task.iter_mut().enumerate() {
            for (_, task) in row.iter_mut().enumerate().filter(|(x, _)| sea(*x, y)) {
                *task = next.next().copied();
            }
        }
        let mut received = [0u64; 10];
        for y in 0..10 {
            for x in (0..12).filter(|x| sea(*x, y)) {
                for (dx, dy) in (0..9).map(|i| (i % 3, i / 3)).filter(|d| *d != (1, 1)) {
                    let (nx, ny) = ((x + 12 + dx - 1) % 12, (y + dy).wrapping_sub(1));
                    if ny >= 10 || task[ny][nx] == task[y][x] {
                        continue;
                    }
                    let seen = if missed && x == 1 && (dx, dy) == (0, 2) { (11, ny) } else { (nx, ny) };
                    if sea(seen.0, seen.1) {
                        received[task[y][x].unwrap() as usize] += if dx == 1 || dy == 1 { 200 } else { 4 };
                    }
                }
            }
        }
        let mean = received.iter().sum::<u64>() as f64 / 10.0;
        [received.iter().copied().min().unwrap(), mean.round() as u64, received.iter().copied().max().unwrap()]
    }

    #[test]
    fn the_example_of_the_thesis_is_reproduced() {
        let blocks = example();
        assert_eq!((blocks.in_all(), blocks.len()), (120, 100));
        let piece = BlockSubset::new(&blocks, (0..100).collect());
        let mut found: Vec<([usize; 4], Score)> = Vec::new();
        for (slices, of_table) in TABLE {
            let (of, score) = in_order(&piece, &slices);
            assert!((0..10).all(|part| of.iter().filter(|p| **p == part).count() == 10), "10 blocks per task");
            // Counted as by the authors' tool, all 18 numbers of the table agree.
            assert_eq!(count(&of, true), of_table, "{slices:?}");
            // Counted correctly, one task of each has four points more; in two cases it is the
            // largest.
            let [least, _, most] = count(&of, false);
            assert_eq!((least, most), (of_table[0], score.most), "{slices:?}");
            assert!(score.most - of_table[2] <= 4, "{slices:?}");
            found.push((slices, score));
        }
        let volumes: Vec<u64> = found.iter().map(|(_, score)| score.volume).collect();
        assert_eq!(volumes, [21864, 21872, 21880, 21880, 22296, 22656]);
        // "The topmost entry provides the best solution", and it is chosen.
        let (of, score) = divide(&piece, 10);
        assert_eq!((Some(&score), score.most), (found.iter().map(|(_, s)| s).min(), 2888));
        assert_eq!(piece.score(&of, 10), score);
        assert_eq!(in_order(&piece, &[3, 3, 2, 2]).1, score);
    }
}
