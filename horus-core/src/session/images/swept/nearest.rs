//! Offsets to the background on lines, by a sweep forth and one back over a temporary file.

use std::ops::Range;
use std::sync::Arc;

use super::{Sweep, SweepFailure, read_rows, write_rows};
use crate::cpu::simd::Isa;
use crate::cpu::sweeps::{NO_BACKGROUND, nearest_back, nearest_forth};
use crate::dispatch;
use crate::dtype::DType;
use crate::host::workers::Workers;
use crate::shape::Shape;
use horus_files::{RegionSource, TemporaryImage};

/// Bytes for each pixel that is processed: an input of any type, and an offset.
pub(super) const PIXEL: usize = 12;

/// The sweep of [`NearestOnLine`](crate::ops::NearestOnLine).
pub(super) struct NearestSweep {
    isa: Isa,
    of: DType,
    /// Steps forth; offsets in the end.
    file: TemporaryImage,
    /// Steps to the background along the lines: one line for each pixel of a row, or of a level.
    steps: Vec<i32>,
    rows: usize,
}

impl NearestSweep {
    pub(super) fn new(shape: Shape, of: DType, rows: usize, isa: Isa) -> Result<NearestSweep, String> {
        let lines = if shape.depth > 1 { shape.area() } else { shape.width };
        let file = TemporaryImage::new(shape, DType::I32)?;
        Ok(NearestSweep { isa, of, file, steps: vec![NO_BACKGROUND; lines], rows })
    }

    /// The steps of a row, counted over all levels.
    fn steps(&mut self, row: usize) -> &mut [i32] {
        let width = self.file.shape().width;
        let at = row * width % self.steps.len();
        &mut self.steps[at..at + width]
    }
}

impl Sweep for NearestSweep {
    fn take(&mut self, rows: Range<usize>, inputs: &[&[u8]], _: &Workers) -> Result<(), String> {
        let (width, isa) = (self.file.shape().width, self.isa);
        let mut offsets = vec![0; rows.len() * width];
        dispatch!(self.of, T => {
            let pixels = bytemuck::cast_slice::<u8, T>(inputs[0]).chunks_exact(width);
            for ((row, pixels), out) in rows.clone().zip(pixels).zip(offsets.chunks_exact_mut(width)) {
                nearest_forth(isa, pixels, self.steps(row), out);
            }
        });
        write_rows(&self.file, rows, bytemuck::cast_slice(&offsets))
    }

    fn finish(
        mut self: Box<Self>,
        workers: &Workers,
        stop: &dyn Fn() -> bool,
    ) -> Result<Arc<dyn RegionSource>, SweepFailure> {
        let (shape, isa) = (self.file.shape(), self.isa);
        self.steps.fill(NO_BACKGROUND);
        let mut end = shape.depth * shape.height;
        while end > 0 {
            if stop() {
                return Err(SweepFailure::Stopped);
            }
            let rows = end.saturating_sub(self.rows)..end;
            let mut offsets = vec![0i32; rows.len() * shape.width];
            read_rows(&self.file, rows.clone(), bytemuck::cast_slice_mut(&mut offsets), workers)?;
            for (row, out) in rows.clone().zip(offsets.chunks_exact_mut(shape.width)).rev() {
                nearest_back(isa, self.steps(row), out);
            }
            write_rows(&self.file, rows.clone(), bytemuck::cast_slice(&offsets))?;
            end = rows.start;
        }
        Ok(Arc::new(self.file))
    }
}
