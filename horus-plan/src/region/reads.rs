//! Which regions operations read: from the results of a program backwards to its sources.

use super::{Rect, axis};
use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::neighbourhood::Reach;
use horus_base::shape::{Border, Shape, Window};

/// For each node, the region that is needed for these regions of the roots, in their order; `None` where nothing is.
pub fn needs(graph: &Graph<Op>, roots: &[Rect]) -> Vec<Option<Rect>> {
    let mut needs: Vec<Option<Rect>> = vec![None; graph.nodes.len()];
    let add = |needs: &mut Vec<Option<Rect>>, n: NodeId, region: Rect| {
        needs[n.0] = Some(needs[n.0].map_or(region, |had| had.hull(region)));
    };
    for (root, region) in graph.roots.iter().zip(roots) {
        add(&mut needs, *root, *region);
    }
    for (id, node) in graph.iter().rev() {
        let Some(need) = needs[id.0] else { continue };
        for (k, input) in node.inputs.iter().enumerate() {
            let region = read(node, k, need, graph.node(*input).shape);
            add(&mut needs, *input, region);
        }
    }
    needs
}

/// The region of input `k`, of shape `input`, that region `need` of a node is computed from: one pixel if it is none.
pub(super) fn read(node: &Node<Op>, k: usize, need: Rect, input: Shape) -> Rect {
    let whole = Rect::whole(input);
    match &node.op {
        Op::Lookup if k == 1 => whole,
        Op::Remap(..) if k == 0 => whole,
        Op::Pixel(..) | Op::Convert | Op::Planes(_) | Op::Merge | Op::Lookup | Op::Remap(..) | Op::RunningDepth => need,
        Op::Correlate(..) | Op::Separable { .. } | Op::Generalized(..) | Op::Median(..) | Op::Windowed(..) => {
            around(&node.op, need, input).unwrap_or(need)
        }
        Op::Warp(map, how, border) => sampled(map, *how, *border, need, input),
        Op::Flip(flip) => {
            let turned = |w: Window, n: usize| Window::new(n.cast_signed() - w.end, n.cast_signed() - w.start);
            let rows = if flip.rows() { turned(need.rows, input.height) } else { need.rows };
            let columns = if flip.columns() { turned(need.columns, input.width) } else { need.columns };
            Rect { rows, columns }
        }
        Op::Transpose => Rect { rows: need.columns, columns: need.rows },
        Op::RowReduce(_) if k == 0 => Rect { rows: need.rows, ..whole },
        Op::Running => Rect { rows: need.rows, columns: Window::new(0, need.columns.end) },
        Op::Tiles(grid, _) => {
            let line = |w: Window, step: usize, extent: usize, n: usize| {
                let at = |i: isize| i.saturating_mul(step.cast_signed());
                Window::new(at(w.start), at(w.end - 1).saturating_add_unsigned(extent)).clipped(n)
            };
            Rect {
                rows: line(need.rows, grid.down, grid.height, input.height),
                columns: line(need.columns, grid.across, grid.width, input.width),
            }
        }
        Op::Labels(how) if !how.adds_up() => Rect { rows: how.rows(need.rows).clipped(input.height), ..whole },
        Op::RowReduce(_)
        | Op::Fold(_)
        | Op::Histogram { .. }
        | Op::Labels(_)
        | Op::Components(_)
        | Op::Reconstruct(_) => whole,
        Op::Source(_) | Op::Fill(_) | Op::Index(_) => need,
    }
}

/// What a filter reads around region `need`, of an image of shape `input`; `None` of other operations.
pub(super) fn around(op: &Op, need: Rect, input: Shape) -> Option<Rect> {
    let (reach, border): (Reach, Border) = match op {
        Op::Correlate(f, b) => (f.reach(), *b),
        Op::Separable { row, column, border } => (row.reach().then(column.reach()), *border),
        Op::Generalized(g, b) => (g.window.reach(), *b),
        Op::Median(s, b) => (s.reach(), *b),
        Op::Windowed(how, b) => (how.reach(), *b),
        _ => return None,
    };
    let read = Rect {
        rows: axis::read(border, need.rows.grown(reach.up, reach.down), input.height),
        columns: axis::read(border, need.columns.grown(reach.left, reach.right), input.width),
    };
    Some(read.hull(need))
}

/// The region that an affine map samples; one pixel if all positions lie outside, where the constant is.
fn sampled(map: &Affine, how: Interpolation, border: Border, need: Rect, input: Shape) -> Rect {
    let [rows, columns] = positions(map, how, need);
    let rows = axis::read(border, rows, input.height);
    let columns = axis::read(border, columns, input.width);
    // Positions outside of the whole are outside of any pixel of it.
    let some = |w: Window, at: isize, n: usize| {
        if !w.is_empty() {
            return w;
        }
        let at = at.clamp(0, n.cast_signed() - 1);
        Window::new(at, at + 1)
    };
    let [y, x] = positions(map, how, need).map(|w| w.start);
    Rect { rows: some(rows, y, input.height), columns: some(columns, x, input.width) }
}

/// The rows and the columns that an affine map asks for, before any border handling.
fn positions(map: &Affine, how: Interpolation, need: Rect) -> [Window; 2] {
    // A map is linear: its extremes are at the corners, also in fixed point.
    let ends = |w: Window| [w.start as i64, w.end as i64 - 1];
    let corners = ends(need.rows).into_iter().flat_map(|y| ends(need.columns).map(|x| map.at(y, x)));
    let (before, after) = match how {
        Interpolation::Nearest => (0, 0),
        how => how.support(),
    };
    let pixel = |position: i64| match how {
        Interpolation::Nearest => ((position + (1 << 31)) >> 32) as isize,
        _ => (position >> 32) as isize,
    };
    let none = [Window::new(0, 0); 2];
    corners.fold(none, |[rows, columns], (y, x)| {
        let add = |w: Window, at: isize| w.union(Window::new(at - before, at + after + 1));
        [add(rows, pixel(y)), add(columns, pixel(x))]
    })
}
