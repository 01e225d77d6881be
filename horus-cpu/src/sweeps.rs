//! Parts of operations on whole images that are computed group of rows by group of rows, for images that do not fit in
//! memory.

use crate::simd::Isa;
use crate::whole::distance;
use horus_base::dtype::Pixel;

pub use crate::whole::components::ComponentRuns;
pub use crate::whole::reconstruction::reconstruct_rows;

/// The steps from a pixel to a missing background pixel, for [`nearest_forth`] and [`nearest_back`].
pub const NO_BACKGROUND: i32 = distance::FAR;

/// The steps from each pixel back to the nearest background pixel on its line; `steps` are those of the pixels before,
/// at first [`NO_BACKGROUND`]. An instruction set was detected, so that the machine has the smallest.
pub fn nearest_forth<T: Pixel>(_: Isa, pixels: &[T], steps: &mut [i32], out: &mut [i32]) {
    distance::step_down(pixels, steps, out);
}

/// Replaces the steps of [`nearest_forth`] by the offsets of [`NearestOnLine`](horus_plan::ops::NearestOnLine); `steps`
/// are those from the pixels after to the nearest background after them.
pub fn nearest_back(_: Isa, steps: &mut [i32], out: &mut [i32]) {
    distance::step_up(steps, out);
}
