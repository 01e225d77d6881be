//! Kernels that are compiled once and compute a few rows at a time.

use std::sync::Arc;

use super::{MapLaunch, tiling};
use crate::plane::ExpressionInput;
use crate::simd::Isa;
use crate::tile_code::TileCode;
use crate::uniform;
use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::Geometry;
use horus_plan::ir::kernel::MapKernel;

/// A compiled kernel that computes rows of a plane on the calling thread.
pub(crate) struct PlaneKernel {
    kernel: MapKernel,
    schedule: Arc<TileCode>,
    isa: Isa,
}

impl PlaneKernel {
    /// Compiles `kernel` over `inputs` and further inputs of types `more`. Inputs of a single pixel become constants.
    pub(crate) fn new(kernel: &MapKernel, inputs: &[ExpressionInput<'_>], more: &[DType], isa: Isa) -> PlaneKernel {
        let dtypes: Vec<DType> = inputs.iter().map(|i| i.geometry.dtype).chain(more.iter().copied()).collect();
        let kernel = uniform::with_constants(kernel, inputs).unwrap_or_else(|| kernel.clone());
        let samples = inputs.first().map_or(1, |i| i.samples);
        let schedule = TileCode::of(&kernel, &dtypes, (isa, samples));
        PlaneKernel { kernel, schedule, isa }
    }

    /// Computes rows of one plane.
    ///
    /// # Safety
    /// The arguments form a launch that [`check`](horus_host::device::check::check) accepts, in host memory. These rows
    /// of this plane of `output` are writable, as far as its geometry says, and nothing else refers to them.
    pub(crate) unsafe fn rows(
        &self,
        inputs: &[ExpressionInput<'_>],
        output: (*mut u8, Geometry),
        channel: usize,
        rows: Window,
    ) -> Result<(), DeviceError> {
        debug_assert!(output.1.window.covers(rows), "the output holds the rows");
        let tiling = tiling(&self.kernel, &self.schedule, output.1, rows, 1);
        let (first, geometry) = output;
        let output = (first, geometry, Vec::new());
        MapLaunch::new((&self.kernel, &self.schedule), inputs, output, tiling, self.isa).block_in_scratch(channel, rows)
    }
}
