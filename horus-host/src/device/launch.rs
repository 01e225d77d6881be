//! Requests to a device: kernel launches.

use std::ops::Range;

use super::{Geometry, Memory};
use horus_base::shape::Window;
use horus_plan::ir::kernel::{Distribution, Kernel};

/// An input of a launch.
#[derive(Clone, Copy, Debug)]
pub struct LaunchInput<'a> {
    /// Its memory.
    pub memory: &'a Memory,
    /// Its geometry.
    pub geometry: Geometry,
}

/// One kernel launch: computes `rows` of the output from the inputs.
///
/// The inputs' windows contain every row that the kernel reads for these rows, after the border mode is applied, and
/// these rows are [readable](Kernel::readable). A kernel that reads copies of rows beyond the image prefers those in
/// the window.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The inputs.
    pub inputs: &'a [LaunchInput<'a>],
    /// The output: memory of this device.
    pub output: &'a mut Memory,
    /// The other outputs of a kernel with [several results](horus_plan::ir::kernel::MapKernel::additional_results), in
    /// the same order; empty otherwise.
    pub additional_outputs: &'a mut [&'a mut Memory],
    /// The geometry of the output. The other outputs differ only in their type.
    pub geometry: Geometry,
    /// The output rows to compute: inside the image and inside the output's window. For a kernel
    /// that [goes over its input](Kernel::goes_over_input), the rows of the *input*; for
    /// [`Fold`](horus_plan::ops::Fold), `0..1`.
    pub rows: Window,
}

impl Launch<'_> {
    /// The bytes written by a launch to an output of this geometry; `None` if it may write all.
    pub fn written(&self, geometry: &Geometry) -> Option<Vec<Range<usize>>> {
        let rows = self.kernel.distribution() == Distribution::Rows;
        let of_plane = |c| geometry.row_bytes(c, self.rows);
        rows.then(|| (0..geometry.shape.planes()).map(of_plane).collect())
    }

    /// The geometries of [`Launch::additional_outputs`].
    pub fn additional_geometries(&self) -> Vec<Geometry> {
        more_geometries(self.kernel, self.geometry)
    }
}

/// The geometries of the other outputs of a kernel that stores several results.
pub fn more_geometries(kernel: &Kernel, output: Geometry) -> Vec<Geometry> {
    match kernel {
        Kernel::Map(m) => {
            m.additional_results[..m.further()].iter().map(|v| Geometry { dtype: m.type_of(*v), ..output }).collect()
        }
        _ => Vec::new(),
    }
}

/// A future launch without its memory: everything that determines its kernel.
#[derive(Clone, Debug)]
pub struct PreparedLaunch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Geometries of the inputs.
    pub inputs: Vec<Geometry>,
    /// Geometry of the output.
    pub output: Geometry,
    /// The rows, as in [`Launch::rows`].
    pub rows: Window,
}
