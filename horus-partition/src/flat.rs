//! Partitions without hierarchy: all devices form one line.

use crate::Blocks;
use crate::subset::shares;

/// Columns and rows for `parts` tasks, chosen for the shortest edges of the tasks' rectangles of
/// blocks. Tasks without blocks are avoided if possible.
fn tasks(blocks: &Blocks, parts: usize) -> (usize, usize) {
    let (wide, high) = (blocks.columns() * blocks.block().0, blocks.rows() * blocks.block().1);
    let edges = |across: usize| (wide * (parts / across) + high * across, across);
    let empty = |across: usize| across > blocks.columns() || parts / across > blocks.rows();
    let all = (1..=parts).filter(|across| parts.is_multiple_of(*across));
    let across = all.min_by_key(|across| (empty(*across), edges(*across))).unwrap_or(1);
    (across, parts / across)
}

/// The task at a position of the grid; tasks are numbered row by row.
fn task_at((column, row): (usize, usize), (across, down): (usize, usize), blocks: &Blocks) -> usize {
    row * down / blocks.rows() * across + column * across / blocks.columns()
}

/// The Cartesian partition: a grid of tasks with one rectangle of positions each; land blocks are
/// omitted afterwards.
pub(crate) fn cartesian(blocks: &Blocks, parts: usize) -> Vec<usize> {
    let grid = tasks(blocks, parts);
    (0..blocks.len()).map(|i| task_at(blocks.place(i), grid, blocks)).collect()
}

/// The Cartesian partition, raked along every row of tasks and then along every column (thesis,
/// section 4.1.2).
pub(crate) fn rake(blocks: &Blocks, parts: usize) -> Vec<usize> {
    let (across, down) = tasks(blocks, parts);
    let mut of = cartesian(blocks, parts);
    for row in 0..down {
        let line: Vec<usize> = (0..across).map(|x| row * across + x).collect();
        rake_line(&mut of, &line, |i| blocks.place(i));
    }
    for column in 0..across {
        let line: Vec<usize> = (0..down).map(|y| y * across + column).collect();
        rake_line(&mut of, &line, |i| {
            let (x, y) = blocks.place(i);
            (y, x)
        });
    }
    of
}

/// Passes a task's excess over the average of `line` to the next task, and from the last to the
/// first, until no task has an excess. The blocks furthest along the line (`key`) are passed first,
/// and blocks that came around the end last.
fn rake_line<K: Ord>(of: &mut [usize], line: &[usize], key: impl Fn(usize) -> K) {
    let mut held: Vec<Vec<usize>> =
        line.iter().map(|task| (0..of.len()).filter(|i| of[*i] == *task).collect()).collect();
    for blocks in &mut held {
        blocks.sort_by_key(|i| key(*i)); // the next to pass is last
    }
    let sum: usize = held.iter().map(Vec::len).sum();
    let bars = shares(sum, line.len());
    // One round fills the deficits after each task. Blocks passed from the last to the first may
    // require another round.
    for _ in 0..line.len() {
        for i in 0..held.len() {
            let next = (i + 1) % held.len();
            while held[i].len() > bars[i] {
                let Some(block) = held[i].pop() else { break };
                let position = if next == 0 { 0 } else { held[next].partition_point(|other| key(*other) < key(block)) };
                held[next].insert(position, block);
            }
        }
        if held.iter().zip(&bars).all(|(blocks, bar)| blocks.len() <= *bar) {
            break;
        }
    }
    for (task, blocks) in line.iter().zip(held) {
        for i in blocks {
            of[i] = *task;
        }
    }
}

/// Cuts a line through all blocks into parts of equal length. If the division is not even, the
/// first parts are one block longer.
pub(crate) fn cut(order: &[usize], parts: usize) -> Vec<usize> {
    let mut of = vec![0; order.len()];
    let mut rest = order.iter();
    for (part, share) in shares(order.len(), parts).into_iter().enumerate() {
        for i in rest.by_ref().take(share) {
            of[*i] = part;
        }
    }
    of
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Mask, Seams};

    fn blocks(rows: &[&str]) -> Blocks {
        Blocks::new(&Mask::drawn(rows).unwrap(), (1, 1), 1, Seams::default()).unwrap()
    }

    #[test]
    fn tasks_are_a_grid() {
        let sea = blocks(&["......"; 4]);
        assert_eq!(cartesian(&sea, 6)[..6], [0, 0, 1, 1, 2, 2]);
        assert_eq!(cartesian(&sea, 6)[18..], [3, 3, 4, 4, 5, 5]);
        let thesis = Blocks::new(&Mask::new(60, 40, vec![true; 2400]).unwrap(), (1, 1), 1, Seams::default()).unwrap();
        assert_eq!(tasks(&thesis, 256), (16, 16));
    }

    #[test]
    fn excess_is_raked_on() {
        // Three tasks in a line: 4, 2 and 0 blocks, 2 on average. The first passes two on, the
        // second two of its four.
        let row = blocks(&["......######"]);
        assert_eq!(cartesian(&row, 3), [0, 0, 0, 0, 1, 1]);
        assert_eq!(rake(&row, 3), [0, 0, 1, 1, 2, 2]);
        // The excess of the last is passed to the first.
        let row = blocks(&["######......"]);
        assert_eq!(rake(&row, 3), [1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn a_line_is_cut_evenly() {
        assert_eq!(cut(&[4, 3, 2, 1, 0], 2), [1, 1, 0, 0, 0]);
    }
}
