//! Regions that operations read, propagated from the results of a program back to its sources.

use super::Rect;
use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::footprint::InputRead;
use crate::ops::geometric::{Affine, Interpolation};
use crate::ops::neighbourhood::Reach;
use horus_base::shape::{Border, Shape, Window};

/// The region required of each node for these regions of the roots (in their order); `None` if none is
/// required.
pub fn required_regions(graph: &Graph<Op>, roots: &[Rect]) -> Vec<Option<Rect>> {
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

/// The region of input `k` (of shape `input`) from which region `need` of a node is computed; one pixel if it
/// is empty.
pub(super) fn read(node: &Node<Op>, k: usize, need: Rect, input: Shape) -> Rect {
    match &node.op {
        Op::Source(_) | Op::Fill(_) | Op::Index(_) | Op::Pixel(..) | Op::Convert(_) | Op::Planes(_) => need,
        Op::Correlate(..) | Op::Separable { .. } | Op::OrderFilter(..) => around(&node.op, need, input).unwrap_or(need),
        Op::Warp(map, how, edge) => sampled(map, *how, edge.border(), need, input),
        Op::Flip(flip) => {
            let turned = |w: Window, n: usize| Window::new(n.cast_signed() - w.end, n.cast_signed() - w.start);
            let rows = if flip.rows() { turned(need.rows, input.height) } else { need.rows };
            let columns = if flip.columns() { turned(need.columns, input.width) } else { need.columns };
            Rect { rows, columns }
        }
        Op::Whole(operation) => match operation.reads(k, need, input) {
            read @ InputRead { border: Some(_), .. } => read.sufficient_part(input).hull(need),
            read => read.rect,
        },
    }
}

/// The pixels that a filter reads for region `need` of an image of shape `input`; `None` for other
/// operations.
pub(super) fn around(op: &Op, need: Rect, input: Shape) -> Option<Rect> {
    let (reach, border): (Reach, Border) = match op {
        Op::Correlate(f, b) => (f.reach(), *b),
        Op::Separable { row, column, border } => (row.reach().then(column.reach()), *border),
        Op::OrderFilter(filter, b) => (filter.reach(), *b),
        Op::Source(_)
        | Op::Fill(_)
        | Op::Index(_)
        | Op::Pixel(..)
        | Op::Convert(_)
        | Op::Planes(_)
        | Op::Warp(..)
        | Op::Flip(_)
        | Op::Whole(_) => return None,
    };
    Some(InputRead::around(need, reach, border).sufficient_part(input).hull(need))
}

/// The region that an affine map samples; one pixel if all positions lie outside, in the constant.
fn sampled(map: &Affine, how: Interpolation, border: Border, need: Rect, input: Shape) -> Rect {
    let [rows, columns] = positions(map, how, need);
    let Rect { rows, columns } =
        InputRead { rect: Rect { rows, columns }, border: Some(border) }.sufficient_part(input);
    // Positions outside the whole image are outside any of its pixels.
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

/// Rows and columns at which an affine map samples, before border handling.
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
