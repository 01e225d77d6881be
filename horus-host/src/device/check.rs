//! Validation of launches and copies: buffers, rows and types of a launch match the assumptions of
//! the kernel, and copied bytes lie inside their block.
//!
//! Kernels read and write through addresses that follow from the geometry, on the CPU and on a GPU
//! alike. A [`Launch`] is public, so every device checks its claims here, once, and trusts them
//! afterwards. No launch can make the check itself overflow.
// Long because the checks of all kernels are in one place.

use std::ops::Range;

use crate::device::{Geometry, Launch, LaunchInput, more_geometries};
use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::{Shape, Window};
use horus_plan::ir::kernel::{Access, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Source, Val};
use horus_plan::ops::components::MOST_PIXELS as MOST_LABELLED;
use horus_plan::ops::geometric::Affine;
use horus_plan::ops::labels::{LabelReduce, MOST_PIXELS};
use horus_plan::ops::planes::stacked;
use horus_plan::ops::reduce::{Fold, RowReduce};
use horus_plan::ops::windowed::Windowed;

/// The largest distance of a row, column or plane: sums of a few such numbers do not overflow, and
/// no memory holds as many.
const FAR: usize = 1 << 40;
/// The largest reach of a filter; kernels count columns of a tile with 32 bits.
const REACH: usize = 1 << 30;

/// Checks a launch.
///
/// # Errors
/// [`DeviceError::Argument`], which names the mismatch.
pub fn check(launch: &Launch<'_>) -> Result<(), DeviceError> {
    let Launch { kernel, inputs, output, more, geometry, rows } = launch;
    let of_more: Vec<usize> = more.iter().map(|m| m.len()).collect();
    fits(kernel, inputs, (output.len(), &of_more), geometry, *rows)
        .map_err(|what| DeviceError::Argument(format!("launch of {}: {what}", kernel.name())))
}

/// The bytes `at..at + length` of a block of `size` bytes.
///
/// # Errors
/// [`DeviceError::Argument`] if they are not inside it.
pub fn part(at: usize, length: usize, size: usize) -> Result<Range<usize>, DeviceError> {
    match at.checked_add(length) {
        Some(end) if end <= size => Ok(at..end),
        _ => Err(DeviceError::Argument(format!("{length} bytes at {at} are outside a buffer of {size}"))),
    }
}

fn fits(
    kernel: &Kernel,
    inputs: &[LaunchInput<'_>],
    (room, more): (usize, &[usize]),
    output: &Geometry,
    rows: Window,
) -> Result<(), String> {
    if matches!(kernel, Kernel::Source(_)) {
        return Ok(()); // nothing is launched
    }
    holds(room, output).map_err(|e| format!("output: {e}"))?;
    for (i, input) in inputs.iter().enumerate() {
        holds(input.memory.len(), &input.geometry).map_err(|e| format!("input {i}: {e}"))?;
    }
    near(rows).map_err(|()| format!("invalid rows {rows}"))?;
    let results = if let Kernel::Map(map) = kernel { map.more.len() } else { 0 };
    if more.len() != results {
        return Err(format!("{} outputs for {} results", 1 + more.len(), 1 + results));
    }
    match kernel {
        Kernel::Source(_) => {}
        Kernel::Map(map) => {
            count(inputs, map.inputs)?;
            pixels(map, inputs, output)?;
            // Every value exists and has a type by now.
            for (room, geometry) in more.iter().zip(more_geometries(kernel, *output)) {
                holds(*room, &geometry).map_err(|e| format!("output: {e}"))?;
            }
        }
        Kernel::Repeat(r) => {
            count(inputs, r.body.inputs).and_then(|()| pixels(&r.body, inputs, output))?;
            let other = |g: Geometry| (g.shape, g.dtype) != (output.shape, output.dtype);
            let several = (!r.body.more.is_empty()).then_some("several results");
            let fault = several
                .or_else(|| r.fault())
                .or_else(|| other(inputs[r.state].geometry).then_some("a state of another kind"));
            fault.map_or(Ok(()), |what| Err(format!("steps that cannot be put together: {what}")))?;
        }
        Kernel::Merge => merge(inputs, output)?,
        Kernel::Transpose => transpose(inputs, output)?,
        Kernel::Lookup => lookup(inputs, output)?,
        Kernel::Remap(..) => sampled(inputs, output)?,
        Kernel::Components(_) => components(inputs, output, rows)?,
        Kernel::Reconstruct(_) => reconstructed(inputs, output, rows)?,
        Kernel::Windowed(how, _) => windowed(how, inputs, output)?,
        Kernel::RowReduce(how) => {
            let image = reduced(*how, inputs, 1)?[0].geometry;
            column(*how, image.shape, image.dtype, output)?;
        }
        Kernel::MapReduce(map, how) => {
            let images = reduced(*how, inputs, map.inputs)?;
            let one = map.is_pointwise() && map.chains.is_empty() && map.more.is_empty();
            let (Some(first), true) = (images.first(), one) else {
                return Err("only pixel operations on images are reduced as they are computed".into());
            };
            let shape = Shape { width: first.geometry.shape.width, ..output.shape };
            let dtype = checked_result(map)?;
            pixels(map, images, &Geometry { shape, dtype, ..*output })?;
            column(*how, shape, dtype, output)?;
        }
        Kernel::Running | Kernel::RunningDepth => {
            count(inputs, 1)?;
            if (inputs[0].geometry.shape, DType::F64) != (output.shape, output.dtype) {
                let Geometry { shape, dtype, .. } = inputs[0].geometry;
                return Err(format!("sums along {shape} {dtype} in {} {}", output.shape, output.dtype));
            }
        }
        Kernel::Fold(how) => fold(*how, inputs, output)?,
        Kernel::Labels(how) => labelled(*how, inputs, output, rows)?,
        Kernel::Tiles(grid, how) => {
            count(inputs, 1)?;
            let Geometry { shape, dtype, .. } = inputs[0].geometry;
            if !grid.covers(shape, output.shape) || output.dtype != how.result(dtype) {
                return Err(format!("{grid:?} of {shape} {dtype} is not {} {}", output.shape, output.dtype));
            }
        }
        Kernel::Histogram { bins, .. } => histogram(*bins, inputs, output)?,
    }
    // Some write everything, from the rows of their input.
    let over_input = kernel.goes_over_input();
    let computed =
        if over_input { inputs.first().is_some_and(|i| counted(&i.geometry, rows)) } else { counted(output, rows) };
    if !computed {
        return Err(format!("rows {rows} of {} cannot be computed in rows {}", output.shape, output.window));
    }
    if rows.is_empty() || output.shape.is_empty() || over_input {
        return Ok(());
    }
    inputs.iter().enumerate().try_for_each(|(i, input)| rows_are_held(kernel, i, &input.geometry, output, rows))
}

/// Fails unless input `i` holds every row that is read for rows `rows`.
fn rows_are_held(kernel: &Kernel, i: usize, input: &Geometry, output: &Geometry, rows: Window) -> Result<(), String> {
    let Geometry { shape, window, .. } = *input;
    let need = kernel.footprint(i, rows, output.shape, shape);
    let wrapped = || match kernel.access(i) {
        Access::Rows { reach, wrap: true } => {
            let read = rows.grown(reach.up, reach.down);
            let held = |y: isize| window.contains(y) || window.contains(y.rem_euclid(shape.height.cast_signed()));
            // The rows repeat after a whole period.
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
fn holds(bytes: usize, geometry: &Geometry) -> Result<(), String> {
    let Geometry { shape, dtype, window } = *geometry;
    let extents = [shape.depth, shape.height, shape.width, shape.channels];
    // The whole image as well as the part: sizes of both are computed later.
    let size = |rows: usize| {
        let planes = [shape.width.max(1), shape.depth.max(1), shape.channels.max(1), dtype.size()];
        planes.iter().try_fold(rows, |n, m| n.checked_mul(*m)).filter(|n| isize::try_from(*n).is_ok())
    };
    if extents.iter().any(|n| *n > FAR) || near(window).is_err() || size(shape.height.max(1)).is_none() {
        return Err(format!("invalid image: {shape} {dtype} with rows {window}"));
    }
    let empty = shape.width == 0 || shape.depth == 0 || shape.channels == 0;
    match size(window.len()) {
        Some(n) if (n <= bytes || empty) && bytes.is_multiple_of(dtype.size()) => Ok(()),
        _ => Err(format!("rows {window} of {shape} {dtype} do not fit into {bytes} bytes")),
    }
}

fn count(inputs: &[LaunchInput<'_>], wanted: usize) -> Result<(), String> {
    if inputs.len() == wanted { Ok(()) } else { Err(format!("it reads {wanted} images, got {}", inputs.len())) }
}

/// The images that a row reduction reads, of which there are `images`, before its operand if it takes one.
fn reduced<'a, 'b>(
    how: RowReduce,
    inputs: &'b [LaunchInput<'a>],
    images: usize,
) -> Result<&'b [LaunchInput<'a>], String> {
    count(inputs, images.saturating_add(usize::from(how.has_operand())))?;
    if let [operand] = &inputs[images..]
        && (operand.geometry.shape, operand.geometry.dtype) != (Shape::new(1, 1, 1), DType::F64)
    {
        return Err(format!("an operand of {} {}", operand.geometry.shape, operand.geometry.dtype));
    }
    Ok(&inputs[..images])
}

/// Whether `output` has the row results of an image.
fn column(how: RowReduce, image: Shape, dtype: DType, output: &Geometry) -> Result<(), String> {
    let wanted = (Shape { width: how.columns(), ..image }, how.result(dtype));
    if wanted == (output.shape, output.dtype) {
        return Ok(());
    }
    Err(format!("{image} {dtype} has row results of {} {}, not {} {}", wanted.0, wanted.1, output.shape, output.dtype))
}

fn merge(inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    if let Some(other) = inputs.iter().map(|i| i.geometry).find(|g| g.dtype != output.dtype) {
        return Err(format!("planes of {} {} for {} {}", other.shape, other.dtype, output.shape, output.dtype));
    }
    match stacked(inputs.iter().map(|i| i.geometry.shape), output.shape) {
        Some(_) => Ok(()),
        None => Err(format!("{} images are not the planes of {}", inputs.len(), output.shape)),
    }
}

fn transpose(inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    count(inputs, 1)?;
    let Geometry { shape, dtype, .. } = inputs[0].geometry;
    let turned = Shape { height: shape.width, width: shape.height, ..shape };
    if (turned, dtype) == (output.shape, output.dtype) {
        return Ok(());
    }
    Err(format!("{shape} {dtype} transposed is not {} {}", output.shape, output.dtype))
}

/// Whether the table has an entry for every value of the index type, so that no look-up is out of bounds.
fn lookup(inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    count(inputs, 2)?;
    let (image, table) = (inputs[0].geometry, inputs[1].geometry);
    let entries = match image.dtype {
        DType::U8 | DType::I8 => 1 << 8,
        DType::U16 | DType::I16 => 1 << 16,
        other => return Err(format!("a table for pixels of {other}")),
    };
    let whole = (Shape::new(1, entries, 1), Window::whole(1));
    if (table.shape, table.window) != whole || (image.shape, table.dtype) != (output.shape, output.dtype) {
        let (shape, dtype) = (output.shape, output.dtype);
        return Err(format!(
            "a table of {} {} for {} {}, into {shape} {dtype}",
            table.shape, table.dtype, image.shape, image.dtype
        ));
    }
    Ok(())
}

/// Whether positions are those of the output, and the image that is sampled is all there.
fn sampled(inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    count(inputs, inputs.len().clamp(3, 4))?;
    let (image, volume) = (inputs[0].geometry, inputs.len() == 4);
    let depth = if volume { output.shape.depth } else { image.shape.depth };
    let wanted = Shape { depth, channels: image.shape.channels, ..output.shape };
    if (wanted, image.dtype) != (output.shape, output.dtype) || image.shape.is_empty() {
        let Geometry { shape, dtype, .. } = image;
        return Err(format!("samples of {shape} {dtype} in {} {}", output.shape, output.dtype));
    }
    let at = Shape { depth: if volume { output.shape.depth } else { 1 }, channels: 1, ..output.shape };
    let dtype = inputs[1].geometry.dtype;
    match inputs[1..].iter().map(|i| i.geometry).find(|g| (g.shape, g.dtype) != (at, dtype) || !dtype.is_float()) {
        Some(other) => Err(format!("positions of {} {} for {} {dtype}", other.shape, other.dtype, output.shape)),
        None => Ok(()),
    }
}

/// Whether labels of a whole image fit into the output, all of which is written.
fn components(inputs: &[LaunchInput<'_>], output: &Geometry, rows: Window) -> Result<(), String> {
    count(inputs, 1)?;
    let Geometry { shape, window, .. } = inputs[0].geometry;
    let whole = Window::whole(shape.height);
    if (output.shape, output.dtype) != (shape, DType::I32) || shape.channels != 1 || shape.len() > MOST_LABELLED {
        return Err(format!("labels of {shape} in {} {}", output.shape, output.dtype));
    }
    if [window, output.window, rows] != [whole; 3] {
        return Err(format!("rows {rows} of {shape}, of which {window} are read, are not all of it"));
    }
    Ok(())
}

/// Whether marker, mask and output are whole images of one kind.
fn reconstructed(inputs: &[LaunchInput<'_>], output: &Geometry, rows: Window) -> Result<(), String> {
    count(inputs, 2)?;
    let Geometry { shape, dtype, window } = *output;
    if let Some(other) = inputs.iter().map(|i| i.geometry).find(|g| g != output) {
        let Geometry { shape: of, dtype: with, window: held } = other;
        return Err(format!("rows {held} of {of} {with} for rows {window} of {shape} {dtype}"));
    }
    if shape.channels != 1 || shape.len() > MOST_LABELLED || [window, rows] != [Window::whole(shape.height); 2] {
        return Err(format!("rows {rows} of {shape}, of which {window} are there, are not all of one channel"));
    }
    Ok(())
}

/// Whether the window is one that kernels can go through, and the output is of what it makes.
fn windowed(how: &Windowed, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    /// The largest reach, and the most pixels of a window: sums of pixels stay exact, and tables of spans small.
    const FARTHEST: usize = 1 << 16;
    count(inputs, 1)?;
    let reach = how.reach();
    if [reach.up, reach.down, reach.left, reach.right].into_iter().any(|r| r > FARTHEST) {
        return Err(format!("a window that reaches more than {FARTHEST} pixels"));
    }
    if let Windowed::Rank(rank) = how
        && let Some(fault) = rank.fault()
    {
        return Err(fault.into());
    }
    let Geometry { shape, dtype, .. } = inputs[0].geometry;
    if shape == output.shape && how.yields(dtype, output.dtype) {
        return Ok(());
    }
    Err(format!("{} of {shape} {dtype} is not {} {}", how.kind(), output.shape, output.dtype))
}

fn fold(how: Fold, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    count(inputs, 1)?;
    let Geometry { shape, dtype, window } = inputs[0].geometry;
    let columns = how.columns();
    if (output.shape, output.dtype) != (Shape::new(1, columns, 1), dtype) {
        return Err(format!("{shape} {dtype} is folded to {columns} pixels, not to {} {}", output.shape, output.dtype));
    }
    if (columns > 1 && shape.width != columns) || (how == Fold::Moments && dtype != DType::F64) {
        return Err(format!("{} of {shape} {dtype}", how.name()));
    }
    // It reads the buffer from end to end.
    if window != Window::whole(shape.height) || inputs[0].memory.len() != inputs[0].geometry.bytes() {
        return Err(format!("rows {window} of {shape} in {} bytes are not all of it", inputs[0].memory.len()));
    }
    Ok(())
}

fn histogram(bins: usize, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    count(inputs, 1)?;
    let wanted = (Shape::new(1, bins, 1), DType::F64, Window::whole(1));
    if bins == 0 || wanted != (output.shape, output.dtype, output.window) {
        return Err(format!("{bins} bins in {} {}", output.shape, output.dtype));
    }
    Ok(())
}

/// Whether labels and image fit each other, and the output what is made of them.
fn labelled(how: LabelReduce, inputs: &[LaunchInput<'_>], output: &Geometry, rows: Window) -> Result<(), String> {
    count(inputs, how.inputs())?;
    let (labels, image) = (inputs[0].geometry, inputs[how.inputs() - 1].geometry);
    if !LabelReduce::labels(labels.dtype) || labels.shape != image.shape {
        return Err(format!("{} {} are no labels of {}", labels.shape, labels.dtype, image.shape));
    }
    if !how.suits(labels.shape, image.dtype) {
        return Err(format!("{how:?} of {} {}", labels.shape, image.dtype));
    }
    let (height, width) = how.extent(labels.shape.height);
    let whole = !how.adds_up() || (output.window == Window::whole(height) && labels.shape.len() <= MOST_PIXELS);
    if how.count() == 0 || (output.shape, output.dtype) != (Shape::new(height, width, 1), DType::F64) || !whole {
        return Err(format!("{how:?} of {} in {} {}", image.shape, output.shape, output.dtype));
    }
    if how.adds_up() && !counted(&image, rows) {
        return Err(format!("rows {rows} are read, of which the image holds {}", image.window));
    }
    Ok(())
}

/// Fails unless an expression per pixel matches the types and extents of its operands.
fn pixels(k: &MapKernel, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    types(k, inputs, output)?;
    extents(k, inputs, output)
}

/// Fails unless every value of the kernel has the type that it is read as.
fn types(k: &MapKernel, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    for chain in &k.chains {
        if !chain.more.is_empty() {
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
            Source::Stage(s) => k.stages.get(s).ok_or(format!("stage {s} does not exist"))?.source,
            image => image,
        };
        if matches!((&leaf.op, leaf.source()), (LeafOp::Shift(..), Source::Stage(_))) {
            return Err("a shift of a row pass".into());
        }
        let dtype = image_type(k, image, inputs)?;
        if dtype != leaf.dtype {
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
fn image_type(k: &MapKernel, image: Source, inputs: &[LaunchInput<'_>]) -> Result<DType, String> {
    match image {
        Source::Input(i) => Ok(inputs.get(i).ok_or(format!("input {i} does not exist"))?.geometry.dtype),
        Source::Chain(c) => checked_result(k.chains.get(c).ok_or(format!("chain {c} does not exist"))?),
        Source::Stage(_) => Err("a stage reads a stage".into()),
    }
}

/// Fails unless a leaf's filter can be applied.
fn filter(k: &MapKernel, leaf: &Leaf) -> Result<(), String> {
    let (filter, linear) = match &leaf.op {
        LeafOp::Correlate(_, f, _) => (f, true),
        LeafOp::Generalized(_, g, _) => (&g.window, false),
        LeafOp::Shift(_, [y, x], _) if y.unsigned_abs().max(x.unsigned_abs()) > REACH => {
            return Err(format!("a shift by {y},{x}"));
        }
        _ => return Ok(()),
    };
    let shaped = match leaf.source() {
        Source::Stage(s) => filter.is_column() && k.stages.get(s).is_some_and(|s| s.filter.is_row()),
        _ => true,
    };
    let reach = filter.reach();
    let far = [reach.up, reach.down, reach.left, reach.right].into_iter().any(|r| r > REACH);
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
            InstrOp::Convert => (1, instr.result),
        };
        if instr.args.len() != arity || instr.result != result {
            return Err(format!("{:?} has {} operands and yields {}", instr.op, instr.args.len(), instr.result));
        }
        for (i, &arg) in instr.args.iter().enumerate() {
            let want = match instr.op {
                InstrOp::Pixel(op) => op.operand(i, instr.operand),
                InstrOp::Convert => instr.operand,
            };
            let got = value(arg, &results)?;
            if got != want {
                return Err(format!("{:?} takes {want}, not {got}", instr.op));
            }
        }
        results.push(instr.result);
    }
    map.more.iter().try_for_each(|r| value(*r, &results).map(drop))?;
    map.result.map(|r| value(r, &results)).transpose()?.ok_or_else(|| "the kernel has no result".into())
}

/// Fails unless the inputs have the extent of the output, as far as the kernel relies on it.
fn extents(k: &MapKernel, inputs: &[LaunchInput<'_>], output: &Geometry) -> Result<(), String> {
    k.chains.iter().try_for_each(|c| extents(c, inputs, output))?;
    let read = k.stages.iter().map(|s| (s.source, None)).chain(k.leaves.iter().map(|l| (k.image(l), Some(&l.op))));
    for (source, op) in read {
        let Source::Input(i) = source else { continue };
        let shape = inputs[i].geometry.shape;
        let same = (shape.height, shape.width) == (output.shape.height, output.shape.width);
        let fits = match op {
            Some(LeafOp::LoadPlane(_, map)) => {
                map.fits(shape.planes(), output.shape.planes())?;
                same
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

/// Fails unless all positions of a map fit 64 bits, with room for the pixels around them.
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
