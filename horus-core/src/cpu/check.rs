//! The entrance of a launch: whether its buffers, rows and types are what the kernel will take them for.
//!
//! Kernels read and write through pointers that follow from the geometry. A launch is public, so what it claims is
//! checked here, once, and trusted from here on.

use crate::device::{Geometry, Input, Launch, Memory};
use crate::dtype::DType;
use crate::error::DeviceError;
use crate::kernel::{Access, InstrOp, Kernel, LeafOp, MapKernel, Source, Val};
use crate::shape::Window;

/// Checks a launch.
///
/// # Errors
/// [`DeviceError::Driver`], saying what does not fit.
pub(super) fn check(launch: &Launch<'_>) -> Result<(), DeviceError> {
    let wrong = |what: String| DeviceError::Driver(format!("launch of {}: {what}", launch.kernel.name()));
    let Launch { kernel, inputs, output, geometry, rows } = launch;
    holds(output, geometry).map_err(|e| wrong(format!("output: {e}")))?;
    for (i, input) in inputs.iter().enumerate() {
        holds(input.memory, &input.geometry).map_err(|e| wrong(format!("input {i}: {e}")))?;
    }
    let counted = |shape_of: &Geometry| shape_of.window.covers(*rows) && within(*rows, shape_of.shape.height);
    let written = match (kernel, inputs.first()) {
        (Kernel::Source(_), _) => return Ok(()),
        (Kernel::Histogram { bins, .. }, Some(input)) => counted(&input.geometry) && geometry.plane() >= *bins,
        (Kernel::Histogram { .. } | Kernel::Fold(_), None) => false,
        (Kernel::Fold(_), Some(_)) => geometry.plane() > 0,
        _ => counted(geometry),
    };
    if !written {
        return Err(wrong(format!("rows {rows} of {} cannot be computed in rows {}", geometry.shape, geometry.window)));
    }
    if rows.is_empty() || geometry.shape.is_empty() {
        return Ok(());
    }
    if let Kernel::Map(map) = kernel {
        types(map, inputs, geometry).map_err(&wrong)?;
        extents(map, inputs, geometry).map_err(&wrong)?;
    }
    for (i, input) in inputs.iter().enumerate().filter(|_| !matches!(kernel, Kernel::Histogram { .. })) {
        let need = kernel.footprint(i, *rows, geometry.shape, input.geometry.shape);
        let Geometry { shape, window, .. } = input.geometry;
        let periodic = |y: isize| window.contains(y) || window.contains(y.rem_euclid(shape.height.cast_signed()));
        let held = window.covers(need)
            || match kernel.access(i) {
                Access::Rows { reach, wrap: true } => {
                    let read = rows.grown(reach.up, reach.down);
                    (read.start..read.end).all(periodic)
                }
                _ => false,
            };
        if !held {
            return Err(wrong(format!("input {i} holds rows {window}, rows {need} are read")));
        }
    }
    Ok(())
}

fn within(rows: Window, height: usize) -> bool {
    Window::whole(height).covers(rows)
}

/// Whether a buffer is in host memory and has room for what it is said to hold.
fn holds(memory: &Memory, geometry: &Geometry) -> Result<(), String> {
    let Geometry { shape, dtype, window } = *geometry;
    let host = memory.host().ok_or("the memory is not the host's")?;
    let bytes = [shape.width, shape.channels, dtype.size()].iter().try_fold(window.len(), |n, &m| n.checked_mul(m));
    match bytes {
        Some(bytes) if bytes <= host.len() => Ok(()),
        _ => Err(format!("rows {window} of {shape} {dtype} do not fit into {} bytes", host.len())),
    }
}

/// Whether every value of the kernel has the type that it is read as.
fn types(k: &MapKernel, inputs: &[Input<'_>], output: &Geometry) -> Result<(), String> {
    for chain in &k.chains {
        if !chain.is_pointwise() || !chain.chains.is_empty() {
            return Err("a chain is more than pixel operations".into());
        }
        let geometry = Geometry { dtype: chain.result_type(), ..*output };
        types(chain, inputs, &geometry)?;
    }
    for leaf in &k.leaves {
        if let LeafOp::Correlate(source, filter, _) = &leaf.op {
            let shaped = match source {
                Source::Input(_) | Source::Chain(_) => true,
                Source::Stage(s) => filter.is_column() && k.stages.get(*s).is_some_and(|s| s.filter.is_row()),
            };
            if !shaped || !leaf.dtype.is_float() || filter.taps().is_empty() {
                return Err(format!("no filter {filter} of {}", leaf.dtype));
            }
        }
        let dtype = match k.image(leaf) {
            Source::Input(i) => inputs.get(i).ok_or(format!("there is no input {i}"))?.geometry.dtype,
            Source::Chain(c) => k.chains.get(c).ok_or(format!("there is no chain {c}"))?.result_type(),
            Source::Stage(_) => return Err("a stage reads a stage".into()),
        };
        if dtype != leaf.dtype {
            return Err(format!("a leaf reads {} from {dtype}", leaf.dtype));
        }
    }
    let mut results: Vec<DType> = Vec::with_capacity(k.code.len());
    let value = |v: Val, results: &[DType]| match v {
        Val::Leaf(l) => k.leaves.get(l).map(|l| l.dtype).ok_or(format!("there is no leaf {l}")),
        Val::Instr(i) => results.get(i).copied().ok_or(format!("instruction {i} comes too late")),
        Val::Const(c) => Ok(c.dtype()),
    };
    for instr in &k.code {
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
    match k.result.map(|r| value(r, &results)).transpose()? {
        Some(dtype) if dtype == output.dtype => Ok(()),
        Some(dtype) => Err(format!("the result is {dtype}, the output {}", output.dtype)),
        None => Err("there is no result".into()),
    }
}

/// Whether the inputs have the extent of the output, as far as the kernel relies on it.
fn extents(k: &MapKernel, inputs: &[Input<'_>], output: &Geometry) -> Result<(), String> {
    k.chains.iter().try_for_each(|c| extents(c, inputs, output))?;
    for leaf in &k.leaves {
        let Source::Input(i) = k.image(leaf) else { continue };
        let shape = inputs[i].geometry.shape;
        let same = (shape.height, shape.width) == (output.shape.height, output.shape.width);
        let fits = match leaf.op {
            LeafOp::LoadChannel(_, c) => same && c < shape.channels,
            LeafOp::Warp(..) => shape.channels == output.shape.channels && !shape.is_empty(),
            _ => shape == output.shape,
        };
        if !fits {
            return Err(format!("an input of {shape} for an output of {}", output.shape));
        }
    }
    Ok(())
}
