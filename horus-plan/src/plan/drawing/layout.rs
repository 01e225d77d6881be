//! Layered layout of a graph: each node is below the nodes that it reads, and lines never cross a box.

use std::collections::VecDeque;

/// Distance between layers, and between the boxes of a layer.
const GAP: [f64; 2] = [30.0, 18.0];
/// Width of a line that passes a layer.
const LINE: f64 = 10.0;
/// Sweeps over the layers that order boxes and move them.
const SWEEPS: usize = 8;

/// Places of boxes, and of the lines between them.
pub(super) struct Layout {
    /// The top left corner of each box.
    pub(super) at: Vec<[f64; 2]>,
    /// By edge: points of the line, alternately the ends of vertical pieces and of curves. Empty for an edge from a box
    /// to itself.
    pub(super) lines: Vec<Vec<[f64; 2]>>,
    /// By edge: set if it leads back, as in a loop.
    pub(super) leads_back: Vec<bool>,
    /// Width and height of everything.
    pub(super) size: [f64; 2],
}

/// Lays out boxes of these widths and heights, with edges from the first to the second.
pub(super) fn layout(boxes: &[[f64; 2]], edges: &[[usize; 2]]) -> Layout {
    let leads_back = backward(boxes.len(), edges);
    let down: Vec<[usize; 2]> =
        edges.iter().zip(&leads_back).map(|([a, b], back)| if *back { [*b, *a] } else { [*a, *b] }).collect();
    let layer = layers(boxes.len(), &down);
    let count = layer.iter().max().map_or(0, |last| last + 1);
    let mut heights = vec![0.0_f64; count];
    for (i, [_, height]) in boxes.iter().enumerate() {
        heights[layer[i]] = heights[layer[i]].max(*height);
    }
    // A place for each box, and one for each line in each layer that it passes.
    let mut widths: Vec<f64> = boxes.iter().map(|[width, _]| *width).collect();
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); count];
    (0..boxes.len()).for_each(|i| rows[layer[i]].push(i));
    let mut chains: Vec<Vec<usize>> = Vec::with_capacity(edges.len());
    for [a, b] in &down {
        let mut chain = vec![*a];
        if a != b {
            for row in &mut rows[layer[*a] + 1..layer[*b]] {
                row.push(widths.len());
                chain.push(widths.len());
                widths.push(LINE);
            }
            chain.push(*b);
        }
        chains.push(chain);
    }
    let (mut above, mut below) = (vec![Vec::new(); widths.len()], vec![Vec::new(); widths.len()]);
    for pair in chains.iter().flat_map(|chain| chain.windows(2)) {
        below[pair[0]].push(pair[1]);
        above[pair[1]].push(pair[0]);
    }
    order(&mut rows, &above, &below);
    let centres = centres(&rows, &widths, &above, &below);
    let mut tops = vec![0.0; count];
    for i in 1..count {
        tops[i] = tops[i - 1] + heights[i - 1] + GAP[0];
    }
    let at = (0..boxes.len()).map(|i| [centres[i] - widths[i] / 2.0, tops[layer[i]]]).collect();
    let width = centres.iter().zip(&widths).map(|(x, width)| x + width / 2.0).fold(0.0, f64::max);
    let lines = chains.iter().zip(&leads_back).map(|(chain, back)| {
        let mut points = Vec::new();
        for (step, pair) in chain.windows(2).enumerate() {
            let from = layer[chain[0]] + step;
            let start = if step == 0 { tops[from] + boxes[chain[0]][1] } else { tops[from] };
            points.extend([[centres[pair[0]], start], [centres[pair[0]], tops[from] + heights[from]]]);
            points.push([centres[pair[1]], tops[from + 1]]);
            if step + 2 == chain.len() {
                points.push([centres[pair[1]], tops[from + 1]]);
            }
        }
        // A piece that ends where the next begins is one point.
        points.dedup();
        if *back {
            points.reverse();
        }
        points
    });
    let lines = lines.collect();
    let height = tops.last().zip(heights.last()).map_or(0.0, |(top, height)| top + height);
    Layout { at, lines, leads_back, size: [width, height] }
}

/// Marks edges that close a cycle, in a search from the first nodes on.
fn backward(nodes: usize, edges: &[[usize; 2]]) -> Vec<bool> {
    let mut out: Vec<Vec<usize>> = vec![Vec::new(); nodes];
    edges.iter().enumerate().for_each(|(e, [a, _])| out[*a].push(e));
    let mut back = vec![false; edges.len()];
    // 0: not visited, 1: on the path, 2: done.
    let mut visited = vec![0_u8; nodes];
    for first in 0..nodes {
        let mut path = vec![(first, 0)];
        if visited[first] > 0 {
            continue;
        }
        visited[first] = 1;
        while let Some((node, next)) = path.last_mut() {
            let Some(&edge) = out[*node].get(*next) else {
                visited[*node] = 2;
                path.pop();
                continue;
            };
            *next += 1;
            let to = edges[edge][1];
            match visited[to] {
                0 => {
                    visited[to] = 1;
                    path.push((to, 0));
                }
                1 => back[edge] = true,
                _ => {}
            }
        }
    }
    back
}

/// The layer of each node: one more than that of the lowest node that it reads. Nodes that read nothing are directly
/// above their highest reader.
fn layers(nodes: usize, edges: &[[usize; 2]]) -> Vec<usize> {
    let mut layer = vec![0; nodes];
    let mut open = vec![0_usize; nodes];
    let proper = || edges.iter().filter(|[a, b]| a != b);
    proper().for_each(|[_, b]| open[*b] += 1);
    let reads: Vec<bool> = open.iter().map(|count| *count > 0).collect();
    let mut ready: VecDeque<usize> = (0..nodes).filter(|i| open[*i] == 0).collect();
    while let Some(node) = ready.pop_front() {
        for [_, b] in proper().filter(|[a, _]| *a == node) {
            layer[*b] = layer[*b].max(layer[node] + 1);
            open[*b] -= 1;
            if open[*b] == 0 {
                ready.push_back(*b);
            }
        }
    }
    for node in (0..nodes).filter(|node| !reads[*node]) {
        let readers = proper().filter(|[a, _]| *a == node).map(|[_, b]| layer[*b]);
        layer[node] = readers.min().map_or(0, |lowest| lowest - 1);
    }
    layer
}

/// Orders each layer by the middle of what its boxes are connected with, which avoids most crossings.
fn order(rows: &mut [Vec<usize>], above: &[Vec<usize>], below: &[Vec<usize>]) {
    let mut place = vec![0.0; above.len()];
    let set = |row: &[usize], place: &mut Vec<f64>| {
        row.iter().enumerate().for_each(|(i, node)| place[*node] = i as f64);
    };
    rows.iter().for_each(|row| set(row, &mut place));
    for sweep in 0..SWEEPS {
        let (near, downwards) = if sweep % 2 == 0 { (above, true) } else { (below, false) };
        let count = rows.len();
        for i in 0..count {
            let row = &mut rows[if downwards { i } else { count - 1 - i }];
            let mut keyed: Vec<(f64, usize)> = row.iter().map(|n| (mean(&near[*n], &place, place[*n]), *n)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            *row = keyed.into_iter().map(|(_, node)| node).collect();
            set(row, &mut place);
        }
    }
}

fn mean(nodes: &[usize], place: &[f64], otherwise: f64) -> f64 {
    if nodes.is_empty() { otherwise } else { nodes.iter().map(|n| place[*n]).sum::<f64>() / nodes.len() as f64 }
}

/// The horizontal middle of each place: near the middle of its neighbours, in the order of the layer, without overlap.
fn centres(rows: &[Vec<usize>], widths: &[f64], above: &[Vec<usize>], below: &[Vec<usize>]) -> Vec<f64> {
    let mut at = vec![0.0; widths.len()];
    for sweep in 0..SWEEPS {
        let near = if sweep % 2 == 0 { above } else { below };
        for i in 0..rows.len() {
            let row = &rows[if sweep % 2 == 0 { i } else { rows.len() - 1 - i }];
            // Distances between the middles are fixed at least: what remains is a sequence that must not decrease.
            let mut offset = 0.0;
            let mut offsets = Vec::with_capacity(row.len());
            for (k, node) in row.iter().enumerate() {
                if k > 0 {
                    offset += (widths[row[k - 1]] + widths[*node]) / 2.0 + GAP[1];
                }
                offsets.push(offset);
            }
            let wanted = row.iter().zip(&offsets).map(|(node, offset)| mean(&near[*node], &at, at[*node]) - offset);
            for ((node, offset), x) in row.iter().zip(&offsets).zip(ascending(wanted)) {
                at[*node] = x + offset;
            }
        }
    }
    let left = at.iter().zip(widths).map(|(x, width)| x - width / 2.0).fold(f64::INFINITY, f64::min);
    at.iter_mut().for_each(|x| *x -= left);
    at
}

/// The sequence that does not decrease and is nearest to `wanted` (pool adjacent violators).
fn ascending(wanted: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut pools: Vec<(f64, usize)> = Vec::new();
    for value in wanted {
        pools.push((value, 1));
        while let [.., (a, n), (b, m)] = pools[..]
            && a > b
        {
            pools.truncate(pools.len() - 2);
            pools.push(((a * n as f64 + b * m as f64) / (n + m) as f64, n + m));
        }
    }
    pools.into_iter().flat_map(|(value, count)| std::iter::repeat_n(value, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_do_not_overlap_and_lines_cross_none() {
        // A ladder with lines over many layers, a loop, a box without lines, and boxes of all sizes.
        let boxes: Vec<[f64; 2]> =
            (0..24).map(|i| [20.0 + f64::from(i * 37 % 90), 12.0 + f64::from(i * 13 % 50)]).collect();
        let mut edges: Vec<[usize; 2]> = (1..23).flat_map(|i| [[i / 2, i], [i / 3, i]]).collect();
        edges.extend([[0, 22], [1, 21], [22, 3], [7, 7]]);
        let made = layout(&boxes, &edges);
        let rect = |i: usize| [made.at[i][0], made.at[i][1], made.at[i][0] + boxes[i][0], made.at[i][1] + boxes[i][1]];
        for i in 0..boxes.len() {
            let [x, y, right, bottom] = rect(i);
            assert!(x >= -1e-6 && y >= 0.0 && right <= made.size[0] + 1e-6 && bottom <= made.size[1] + 1e-6);
            for j in 0..i {
                let [a, b, c, d] = rect(j);
                assert!(right <= a || c <= x || bottom <= b || d <= y, "{i} and {j}");
            }
        }
        for (e, line) in made.lines.iter().enumerate() {
            for pair in line.windows(2) {
                for k in 1..20 {
                    let [x, y] = [0, 1].map(|c| pair[0][c] + (pair[1][c] - pair[0][c]) * f64::from(k) / 20.0);
                    let inside = |i: &usize| {
                        let [a, b, c, d] = rect(*i);
                        a + 1e-6 < x && x < c - 1e-6 && b + 1e-6 < y && y < d - 1e-6
                    };
                    assert_eq!((0..boxes.len()).find(inside), None, "line {e} at {x} {y}");
                }
            }
        }
        // All but loops lead down. One line of the loop leads back, and the line from a box to itself.
        let back: Vec<[usize; 2]> = edges.iter().zip(&made.leads_back).filter(|(_, b)| **b).map(|(e, _)| *e).collect();
        assert!(back.contains(&[7, 7]) && (2..5).contains(&back.len()), "{back:?}");
        for (e, [a, b]) in edges.iter().enumerate() {
            assert!(made.leads_back[e] || made.at[*a][1] + boxes[*a][1] < made.at[*b][1], "{e}");
        }
    }

    #[test]
    fn a_sequence_is_made_ascending_by_the_least_change() {
        assert_eq!(ascending([1.0, 3.0, 2.0, 5.0].into_iter()), [1.0, 2.5, 2.5, 5.0]);
        assert_eq!(ascending([3.0, 2.0, 1.0].into_iter()), [2.0; 3]);
    }
}
