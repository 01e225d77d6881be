//! Uniform images: an image of one pixel, repeated everywhere, becomes a constant of the kernel once its value is
//! known.

use super::plane::ExpressionInput;
use horus_base::dispatch;
use horus_base::dtype::{Pixel, Scalar};
use horus_plan::ir::kernel::{LeafOp, MapKernel, Val};
use horus_plan::ops::geometric::Interpolation;

/// The kernel with its samples of uniform images replaced by constants; `None` if it has no such sample.
pub(super) fn with_constants(kernel: &MapKernel, inputs: &[ExpressionInput<'_>]) -> Option<MapKernel> {
    let known: Vec<Option<Val>> = kernel.leaves.iter().map(|leaf| constant(&leaf.op, inputs).map(Val::Const)).collect();
    if known.iter().all(Option::is_none) {
        return None;
    }
    let mut kernel = kernel.clone();
    let values = kernel
        .code
        .iter_mut()
        .flat_map(|instr| &mut instr.args)
        .chain(&mut kernel.result)
        .chain(&mut kernel.additional_results);
    for value in values {
        if let Val::Leaf(l) = *value
            && let Some(constant) = known[l]
        {
            *value = constant;
        }
    }
    Some(kernel)
}

/// The value of a leaf that samples an image of one pixel, equal in all channels, which continues outside.
fn constant(leaf: &LeafOp, inputs: &[ExpressionInput<'_>]) -> Option<Scalar> {
    let LeafOp::Warp(i, map, Interpolation::Nearest, edge) = leaf else { return None };
    let ExpressionInput { memory, geometry, rows, .. } = inputs.get(*i)?;
    let one = (geometry.shape.height, geometry.shape.width) == (1, 1) && rows.contains(0);
    let still = (map.xx, map.xy, map.x0, map.yx, map.yy, map.y0) == (0, 0, 0, 0, 0, 0);
    if !one || !still || edge.constant().is_some() {
        return None;
    }
    dispatch!(geometry.dtype, T => {
        let pixels = memory.host()?.as_slice::<T>();
        let plane = |c: usize| pixels.get(geometry.row(c, 0)).map(|v| v.scalar());
        let first = plane(0)?;
        (1..geometry.shape.planes()).all(|c| plane(c) == Some(first)).then_some(first)
    })
}
