//! Validation of launches and copies. Buffers, rows and types of a launch match the assumptions of the kernel; copied
//! bytes are inside their block.
//!
//! Kernels on CPU and GPU read and write addresses that follow from the geometry. A [`Launch`] is public, so every
//! device checks it here, once, and trusts it afterwards. No launch can make the check itself overflow.
// Long, because it contains the checks of all kernels.

use std::ops::Range;

use crate::device::{Geometry, Launch, LaunchInput, more_geometries};
use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::{Shape, Window};
use horus_plan::ir::kernel::{
    Access, Distribution, FilterSource, ImageExtent, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Val,
};
use horus_plan::ops::Whole;
use horus_plan::ops::geometric::Affine;
use horus_plan::ops::neighbourhood::OrderFilter;

/// Maximum distance of a row, column or plane. Sums of a few such numbers do not overflow, and no memory is as large.
const FAR: usize = 1 << 40;
/// Maximum reach of a filter; kernels count columns of a tile in 32 bits.
const REACH: usize = 1 << 30;

/// Checks a launch.
///
/// # Errors
/// [`DeviceError::Argument`], which names the mismatch.
pub fn check(launch: &Launch<'_>) -> Result<(), DeviceError> {
    let Launch { kernel, inputs, output, additional_outputs: more, geometry, rows } = launch;
    let of_more: Vec<usize> = more.iter().map(|m| m.len()).collect();
    fits(kernel, inputs, output.len(), &of_more, geometry, *rows)
        .map_err(|what| DeviceError::Argument(format!("launch of {}: {what}", kernel.name())))
}

/// The bytes `at..at + length` of a block of `size` bytes.
///
/// # Errors
/// [`DeviceError::Argument`] if they are not inside the block.
pub fn part(at: usize, length: usize, size: usize) -> Result<Range<usize>, DeviceError> {
    match at.checked_add(length) {
        Some(end) if end <= size => Ok(at..end),
        _ => Err(DeviceError::Argument(format!("{length} bytes at {at} are outside a buffer of {size}"))),
    }
}

fn fits(
    kernel: &Kernel,
    inputs: &[LaunchInput<'_>],
    room: usize,
    more: &[usize],
    output: &Geometry,
    rows: Window,
) -> Result<(), String> {
    if matches!(kernel, Kernel::Source(_)) {
        return Ok(()); // nothing is launched
    }
    check_capacity(room, output).map_err(|e| format!("output: {e}"))?;
    for (i, input) in inputs.iter().enumerate() {
        check_capacity(input.memory.len(), &input.geometry).map_err(|e| format!("input {i}: {e}"))?;
    }
    near(rows).map_err(|()| format!("invalid rows {rows}"))?;
    if output.shape.samples > 1 && !kernel.knows_samples() {
        return Err(format!("it does not know the samples of {}", output.shape));
    }
    let results = if let Kernel::Map(map) = kernel { map.further() } else { 0 };
    if more.len() != results {
        return Err(format!("{} outputs for {} results", 1 + more.len(), 1 + results));
    }
    match kernel {
        Kernel::Source(_) => {}
        Kernel::Map(map) => {
            count(inputs, map.inputs)?;
            pixels(map, inputs, &woven(map, output)?)?;
            // Every value exists and has a type at this point.
            for (room, geometry) in more.iter().zip(more_geometries(kernel, *output)) {
                check_capacity(*room, &geometry).map_err(|e| format!("output: {e}"))?;
            }
        }
        Kernel::Repeat(r) => {
            count(inputs, r.body.inputs).and_then(|()| pixels(&r.body, inputs, output))?;
            let other = |g: Geometry| (g.shape, g.dtype) != (output.shape, output.dtype);
            let several = (!r.body.additional_results.is_empty() || r.body.woven).then_some("several results");
            let fault = several
                .or_else(|| r.fault())
                .or_else(|| other(inputs[r.state].geometry).then_some("a state of another kind"));
            fault.map_or(Ok(()), |what| Err(format!("steps that cannot be put together: {what}")))?;
        }
        Kernel::Whole(operation) => whole(operation, inputs, output, rows)?,
        Kernel::MapReduce(map, how) => {
            let Some((images, operand)) = inputs.split_at_checked(map.inputs) else {
                return Err(format!("it reads {} images, got {}", map.inputs, inputs.len()));
            };
            let one = map.is_pointwise() && map.chains.is_empty() && map.additional_results.is_empty() && !map.woven;
            let one = one && images.iter().all(|i| i.geometry.shape.samples == 1);
            let (Some(first), true) = (images.first(), one) else {
                return Err("only pixel operations on images are reduced as they are computed".into());
            };
            let shape = Shape { width: first.geometry.shape.width, ..output.shape };
            let dtype = checked_result(map)?;
            pixels(map, images, &Geometry { shape, dtype, ..*output })?;
            let operand: Vec<ImageExtent> = operand.iter().map(|i| extent(&i.geometry)).collect();
            how.fits((shape, dtype), &operand, extent(output))?;
        }
    }
    // Some kernels write the whole output from the rows of their input.
    let over_input = kernel.goes_over_input();
    let computed = if over_input { inputs.iter().all(|i| counted(&i.geometry, rows)) } else { counted(output, rows) };
    if !computed {
        return Err(format!("rows {rows} of {} cannot be computed in rows {}", output.shape, output.window));
    }
    if rows.is_empty() || output.shape.is_empty() || over_input {
        return Ok(());
    }
    inputs.iter().enumerate().try_for_each(|(i, input)| rows_are_held(kernel, i, &input.geometry, output, rows))
}

/// Fails unless input `i` has every row that output rows `rows` read.
fn rows_are_held(kernel: &Kernel, i: usize, input: &Geometry, output: &Geometry, rows: Window) -> Result<(), String> {
    let Geometry { shape, window, .. } = *input;
    let need = kernel.footprint(i, rows, output.shape, shape);
    let wrapped = || match kernel.access(i) {
        Access::Rows { reach, wrap: true } => {
            let read = rows.grown(reach.up, reach.down);
            let held = |y: isize| window.contains(y) || window.contains(y.rem_euclid(shape.height.cast_signed()));
            // The rows repeat after one period.
            let period = read.start.saturating_add_unsigned(shape.height.max(window.len()));
            window.covers(read) || (!shape.is_empty() && (read.start..read.end.min(period)).all(held))
        }
        _ => false,
    };
    if window.covers(need) || wrapped() {
        return Ok(());
    }
    Err(format!("input {i} holds rows {window}, rows {need} are read"))
}

fn counted(geometry: &Geometry, rows: Window) -> bool {
    geometry.window.covers(rows) && Window::whole(geometry.shape.height).covers(rows)
}

fn near(window: Window) -> Result<(), ()> {
    let near = |y: isize| y.unsigned_abs() <= FAR;
    if near(window.start) && near(window.end) { Ok(()) } else { Err(()) }
}

/// Fails unless a buffer of `bytes` bytes can hold its geometry.
fn check_capacity(bytes: usize, geometry: &Geometry) -> Result<(), String> {
    let Geometry { shape, dtype, window } = *geometry;
    let extents = [shape.depth, shape.height, shape.width, shape.channels, shape.samples];
    // Checks the whole image and the part: both sizes are computed later.
    let size = |rows: usize| {
        let rest = [shape.width, shape.samples, shape.depth, shape.channels].map(|n| n.max(1));
        rest.iter()
            .chain(&[dtype.size()])
            .try_fold(rows, |n, m| n.checked_mul(*m))
            .filter(|n| isize::try_from(*n).is_ok())
    };
    if extents.iter().any(|n| *n > FAR) || near(window).is_err() || size(shape.height.max(1)).is_none() {
        return Err(format!("invalid image: {shape} {dtype} with rows {window}"));
    }
    let empty = Shape { height: 1, ..shape }.is_empty();
    match size(window.len()) {
        Some(n) if (n <= bytes || empty) && bytes.is_multiple_of(dtype.size()) => Ok(()),
        _ => Err(format!("rows {window} of {shape} {dtype} do not fit into {bytes} bytes")),
    }
}

fn count(inputs: &[LaunchInput<'_>], wanted: usize) -> Result<(), String> {
    if inputs.len() == wanted { Ok(()) } else { Err(format!("it reads {wanted} images, got {}", inputs.len())) }
}

const fn extent(geometry: &Geometry) -> ImageExtent {
    (geometry.shape, geometry.dtype)
}

/// Fails unless an operation fits its images, and images are whole where it requires that.
fn whole(operation: &Whole, inputs: &[LaunchInput<'_>], output: &Geometry, rows: Window) -> Result<(), String> {
    let extents: Vec<ImageExtent> = inputs.iter().map(|i| extent(&i.geometry)).collect();
    operation.check(&extents, extent(output))?;
    if output.shape.len() > operation.most_pixels() {
        return Err(format!("{} has more than {} pixels", output.shape, operation.most_pixels()));
    }
    let all = |name: &str, geometry: &Geometry, rows: Window| {
        let shape = geometry.shape;
        if rows == Window::whole(shape.height) {
            return Ok(());
        }
        Err(format!("rows {rows} of {shape}, the {name}, are not all of it"))
    };
    for (k, input) in inputs.iter().enumerate().filter(|(k, _)| operation.requires_contiguous_input(*k)) {
        all(&format!("input {k}"), &input.geometry, input.geometry.window)?;
    }
    match operation.distribution() {
        Distribution::Rows => Ok(()),
        Distribution::Partial(_) => all("output", output, output.window),
        Distribution::Whole => all("output", output, output.window).and_then(|()| all("output", output, rows)),
    }
}

/// The geometry of each result of an expression. If the expression makes the samples of pixels, a result has one
/// sample.
fn woven(map: &MapKernel, output: &Geometry) -> Result<Geometry, String> {
    if !map.woven {
        return Ok(*output);
    }
    let results = map.results().count();
    if results != output.shape.samples {
        return Err(format!("{results} samples of {}", output.shape));
    }
    // The check of the first value covers all values.
    checked_result(map)?;
    if map.results().any(|v| map.type_of(v) != output.dtype) {
        return Err(format!("a sample that is not {}", output.dtype));
    }
    Ok(Geometry { shape: Shape { samples: 1, ..output.shape }, ..*output })
}

/// Fails unless a per-pixel expression matches the types and shapes of its operands.
fn pixels(k: &MapKernel, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    types(k, inputs, output)?;
    extents(k, inputs, output)
}

/// Fails unless every value of the kernel has the type with which it is read.
fn types(k: &MapKernel, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    for chain in &k.chains {
        if !chain.additional_results.is_empty() || chain.woven {
            return Err("a chain has several results".into());
        }
        let geometry = Geometry { dtype: checked_result(chain)?, ..*output };
        types(chain, inputs, &geometry)?;
    }
    for stage in &k.stages {
        if !stage.filter.is_row() || stage.filter.taps().is_empty() || stage.filter.taps().len() > REACH {
            return Err(format!("{} is not a row pass", stage.filter));
        }
        if !image_type(k, stage.source, inputs)?.is_float() {
            return Err("a row pass reads integers".into());
        }
    }
    for leaf in &k.leaves {
        filter(k, leaf)?;
        let image = match leaf.source() {
            FilterSource::Stage(s) => k.stages.get(s).ok_or(format!("stage {s} does not exist"))?.source,
            image => image,
        };
        if matches!((&leaf.op, leaf.source()), (LeafOp::Shift(..), FilterSource::Stage(_))) {
            return Err("a shift of a row pass".into());
        }
        let dtype = image_type(k, image, inputs)?;
        if !leaf.reads_type(dtype) {
            return Err(format!("a leaf expects {}, its source is {dtype}", leaf.dtype));
        }
    }
    // All references are valid, as checked above.
    if let Some(fault) = k.chain_fault() {
        return Err(format!("a chain cannot be evaluated: {fault}"));
    }
    match checked_result(k)? {
        dtype if dtype == output.dtype => Ok(()),
        dtype => Err(format!("the result is {dtype}, the output {}", output.dtype)),
    }
}

/// The type of an input or a chain.
fn image_type(k: &MapKernel, image: FilterSource, inputs: &[LaunchInput<'_>]) -> Result<DType, String> {
    match image {
        FilterSource::Input(i) => Ok(inputs.get(i).ok_or(format!("input {i} does not exist"))?.geometry.dtype),
        FilterSource::Chain(c) => checked_result(k.chains.get(c).ok_or(format!("chain {c} does not exist"))?),
        FilterSource::Stage(_) => Err("a stage reads a stage".into()),
    }
}

/// Fails unless a leaf's filter can be applied.
fn filter(k: &MapKernel, leaf: &Leaf) -> Result<(), String> {
    let (filter, linear) = match &leaf.op {
        LeafOp::Correlate(_, f, _) => (f, true),
        LeafOp::OrderFilter(_, OrderFilter::Fold(g), _) => (&g.window, false),
        LeafOp::OrderFilter(_, OrderFilter::Truncated(t), _) if !t.is_paired() => {
            return Err(format!("filter {} has a pixel without its pair", t.window));
        }
        LeafOp::OrderFilter(_, OrderFilter::Truncated(t), _) => (&t.window, false),
        LeafOp::Shift(_, [y, x], _) if y.unsigned_abs().max(x.unsigned_abs()) > REACH => {
            return Err(format!("a shift by {y},{x}"));
        }
        _ => return Ok(()),
    };
    let shaped = match leaf.source() {
        FilterSource::Stage(s) => filter.is_column() && k.stages.get(s).is_some_and(|s| s.filter.is_row()),
        _ => true,
    };
    let reach = filter.reach();
    let levels = match &leaf.op {
        LeafOp::OrderFilter(_, OrderFilter::Truncated(t), _) => {
            t.levels().iter().map(|by| by.unsigned_abs() as usize).max()
        }
        _ => None,
    };
    let far = [reach.up, reach.down, reach.left, reach.right].into_iter().chain(levels).any(|r| r > REACH);
    if !shaped || far || (linear && !leaf.dtype.is_float()) || filter.taps().is_empty() {
        return Err(format!("filter {filter} cannot be applied to {}", leaf.dtype));
    }
    Ok(())
}

/// The type of the stored value, if every instruction has valid operands.
fn checked_result(map: &MapKernel) -> Result<DType, String> {
    let mut results: Vec<DType> = Vec::with_capacity(map.code.len());
    let value = |v: Val, results: &[DType]| match v {
        Val::Leaf(l) => map.leaves.get(l).map(|l| l.dtype).ok_or(format!("leaf {l} does not exist")),
        Val::Instr(i) => results.get(i).copied().ok_or(format!("instruction {i} is read before it is computed")),
        Val::Const(c) => Ok(c.dtype()),
        Val::Index(_, dtype) => Ok(dtype),
    };
    for instr in &map.code {
        let (arity, result) = match instr.op {
            InstrOp::Pixel(op) => (op.arity(), op.result(instr.operand)),
            InstrOp::Convert(_) => (1, instr.result),
        };
        if instr.args.len() != arity || instr.result != result {
            return Err(format!("{:?} has {} operands and yields {}", instr.op, instr.args.len(), instr.result));
        }
        for (i, &arg) in instr.args.iter().enumerate() {
            let want = match instr.op {
                InstrOp::Pixel(op) => op.operand(i, instr.operand),
                InstrOp::Convert(_) => instr.operand,
            };
            let got = value(arg, &results)?;
            if got != want {
                return Err(format!("{:?} takes {want}, not {got}", instr.op));
            }
        }
        results.push(instr.result);
    }
    map.additional_results.iter().try_for_each(|r| value(*r, &results).map(drop))?;
    map.result.map(|r| value(r, &results)).transpose()?.ok_or_else(|| "the kernel has no result".into())
}

/// Fails unless the inputs have the shape of the output, as far as the kernel relies on it.
fn extents(k: &MapKernel, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    k.chains.iter().try_for_each(|c| extents(c, inputs, output))?;
    let read = k.stages.iter().map(|s| (s.source, None)).chain(k.leaves.iter().map(|l| (k.image(l), Some(&l.op))));
    for (source, op) in read {
        let FilterSource::Input(i) = source else { continue };
        let shape = inputs[i].geometry.shape;
        let same = (shape.height, shape.width) == (output.shape.height, output.shape.width);
        let fits = match op {
            Some(LeafOp::LoadPlane(_, map)) => {
                map.fits(shape.planes() * shape.samples, output.shape.planes())?;
                same && (shape.samples == 1 || k.reads_samples())
            }
            Some(LeafOp::OrderFilter(_, OrderFilter::Truncated(t), _)) => {
                t.fits(shape.planes()) && shape == output.shape
            }
            Some(LeafOp::Warp(_, map, ..)) => {
                in_range(map, output.shape)?;
                (shape.depth, shape.channels) == (output.shape.depth, output.shape.channels) && !shape.is_empty()
            }
            _ => shape == output.shape,
        };
        if !fits {
            return Err(format!("an input of {shape} for an output of {}", output.shape));
        }
    }
    Ok(())
}

/// Fails unless all positions of a map, and the pixels around them, fit 64 bits.
fn in_range(map: &Affine, out: Shape) -> Result<(), String> {
    let far = |per_x: i64, per_y: i64, first: i64| {
        let (x, y) = (i128::from(per_x) * out.width as i128, i128::from(per_y) * out.height as i128);
        x.abs() + y.abs() + i128::from(first).abs() > (1 << 62) + (1 << 32)
    };
    if far(map.xx, map.xy, map.x0) || far(map.yx, map.yy, map.y0) {
        return Err(format!("positions of {map:?} are out of range"));
    }
    Ok(())
}
