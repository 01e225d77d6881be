//! Row reductions of an expression: blocks of rows are evaluated into a buffer that stays in the cache, and reduced.

use std::sync::Arc;

use super::{OperationOutput, TypedInput, out, rows, view};
use crate::map;
use crate::parallel;
use crate::simd::Isa;
use horus_base::dispatch;
use horus_base::error::DeviceError;
use horus_base::shape::{Shape, Window};
use horus_host::buffer::Pool;
use horus_host::device::{Geometry, Launch, Memory};
use horus_plan::ir::kernel::{Kernel, MapKernel};
use horus_plan::ops::reduce::RowReduce;

/// Pixels of a block: with their operands, they fit the second-level cache.
const BLOCK: usize = 1 << 15;

/// Runs a [`Kernel::MapReduce`] on the current thread pool (`threads` of it).
///
/// # Errors
/// [`DeviceError::Argument`] for memory that is not the host's.
pub(crate) fn launch(
    launch: Launch<'_>,
    (expression, how): (&MapKernel, RowReduce),
    isa: Isa,
    threads: usize,
    pool: &Arc<Pool>,
) -> Result<(), DeviceError> {
    let Launch { inputs, output, geometry, rows, .. } = launch;
    let (images, scalars) = inputs.split_at(expression.inputs.min(inputs.len()));
    let Some(width) = images.first().map(|i| i.geometry.shape.width) else {
        return Err(DeviceError::Argument("a reduction of no image".into()));
    };
    let operand = match how.has_operand() {
        true => view::<f64>(scalars, 0)?.first().unwrap_or(0.0),
        false => 0.0,
    };
    let shape = Shape { width, ..geometry.shape };
    let dtype = expression.result_type();
    let kernel = Kernel::Map(expression.clone());
    let height = BLOCK.div_ceil(width.max(1));
    // One block's column of results.
    let block = |k: usize| -> Result<(Geometry, Memory), DeviceError> {
        let start = rows.start + (k * height).cast_signed();
        let window = Window::new(start, rows.end.min(start + height.cast_signed()));
        let values = Geometry { shape, dtype, window };
        let mut scratch = Memory::Host(pool.try_allocate(values.bytes())?);
        let part = Launch {
            kernel: &kernel,
            inputs: images,
            output: &mut scratch,
            additional_outputs: &mut [],
            geometry: values,
            rows: window,
        };
        map::launch(part, isa, 1)?;
        let column = Geometry { window, ..geometry };
        let mut results = Memory::Host(pool.try_allocate(column.bytes())?);
        let host = scratch.host().ok_or_else(super::foreign)?;
        dispatch!(dtype, T => {
            let view = TypedInput { data: host.as_slice::<T>(), geometry: values };
            let to = OperationOutput { geometry: column, rows: window, isa, threads: 1 };
            rows::reduce(how, view, || Ok(operand), &mut results, &to)?;
        });
        Ok((column, results))
    };
    let blocks = rows.len().div_ceil(height);
    let parts: Vec<(Geometry, Memory)> = parallel::map(threads, blocks, block).into_iter().collect::<Result<_, _>>()?;
    dispatch!(geometry.dtype, T => {
        let target = out::<T>(output)?;
        for (column, results) in &parts {
            let source = results.host().ok_or_else(super::foreign)?.as_slice::<T>();
            for c in 0..geometry.shape.planes() {
                let at = geometry.row(c, column.window.start);
                let from = column.row(c, column.window.start);
                target[at..at + column.plane()].copy_from_slice(&source[from..from + column.plane()]);
            }
        }
    });
    Ok(())
}
