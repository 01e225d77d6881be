//! Reconstruction in groups of rows, or of levels: each grows from what its neighbours have become, until nothing
//! changes.

use std::ops::Range;
use std::sync::Arc;

use super::{Sweep, SweepFailure, read_rows, write_rows};
use crate::cpu::sweeps::reconstruct_rows;
use crate::dispatch;
use crate::dtype::DType;
use crate::host::buffer::HostBuffer;
use crate::host::workers::Workers;
use crate::ops::reconstruction::Reconstruction;
use crate::shape::Shape;
use horus_files::{RegionSource, TemporaryImage};

/// Bytes for each pixel that is processed: marker, mask, result, and a queue, which doubles as it grows.
pub(super) fn pixel(of: DType) -> usize {
    3 * of.size() + 2 + 2 * size_of::<u32>()
}

/// Number of rows in which a row's neighbours are before it and after it.
fn reach(shape: Shape) -> usize {
    if shape.depth > 1 { shape.height } else { 1 }
}

/// Rows of a group of about as many: of a volume whole levels.
fn group_rows(shape: Shape, rows: usize) -> usize {
    (rows / reach(shape)).max(1) * reach(shape)
}

/// Rows that are in memory at once: of a group, and those beside it.
pub(super) fn rows_at_once(shape: Shape, rows: usize) -> usize {
    (group_rows(shape, rows) + 2 * reach(shape)).min(shape.depth * shape.height)
}

/// The sweep of [`Reconstruction`].
pub(super) struct GrowthSweep {
    how: Reconstruction,
    of: DType,
    /// The marker below the mask, which grows into the result.
    grown: TemporaryImage,
    mask: TemporaryImage,
    /// Rows of a group.
    rows: usize,
    reach: usize,
}

impl GrowthSweep {
    pub(super) fn new(shape: Shape, of: DType, how: Reconstruction, rows: usize) -> Result<GrowthSweep, String> {
        let (reach, rows) = (reach(shape), group_rows(shape, rows));
        let file = || TemporaryImage::new(shape, of);
        Ok(GrowthSweep { how, of, grown: file()?, mask: file()?, rows, reach })
    }

    /// Grows a group; returns whether its first and its last rows have changed.
    fn group(&self, rows: Range<usize>, workers: &Workers) -> Result<[bool; 2], String> {
        let shape = self.grown.shape();
        let all = rows.start.saturating_sub(self.reach)..(rows.end + self.reach).min(shape.depth * shape.height);
        let row = shape.width * self.of.size();
        let mut marker = HostBuffer::zeroed(all.len() * row);
        read_rows(&self.grown, all.clone(), marker.bytes_mut(), workers)?;
        // Rows beside the group stay as they are: their mask is what they have become.
        let mut mask = HostBuffer::zeroed(marker.len());
        mask.bytes_mut().copy_from_slice(marker.bytes());
        let own = (rows.start - all.start) * row..(rows.end - all.start) * row;
        read_rows(&self.mask, rows.clone(), &mut mask.bytes_mut()[own.clone()], workers)?;
        let mut out = HostBuffer::zeroed(marker.len());
        dispatch!(self.of, T => {
            let images = (marker.as_slice::<T>(), mask.as_slice::<T>());
            let (out, extent) = (out.as_mut_slice::<T>(), [shape.height, shape.width]);
            workers.help(|| reconstruct_rows(self.how, images, out, extent, workers.threads()));
        });
        let (before, after) = (&marker.bytes()[own.clone()], &out.bytes()[own]);
        if before != after {
            write_rows(&self.grown, rows, after)?;
        }
        let edge = (self.reach * row).min(after.len());
        let differs = |part: Range<usize>| before[part.clone()] != after[part];
        Ok([differs(0..edge), differs(after.len() - edge..after.len())])
    }
}

impl Sweep for GrowthSweep {
    fn take(&mut self, rows: Range<usize>, inputs: &[&[u8]], _: &Workers) -> Result<(), String> {
        let mut marker = HostBuffer::zeroed(inputs[0].len());
        dispatch!(self.of, T => {
            let [from, mask] = [0, 1].map(|k| bytemuck::cast_slice::<u8, T>(inputs[k]));
            for ((to, from), mask) in marker.as_mut_slice::<T>().iter_mut().zip(from).zip(mask) {
                *to = self.how.within(self.how.ordered(*from), self.how.ordered(*mask));
            }
        });
        write_rows(&self.grown, rows.clone(), marker.bytes())?;
        write_rows(&self.mask, rows, inputs[1])
    }

    fn finish(
        self: Box<Self>,
        workers: &Workers,
        stop: &dyn Fn() -> bool,
    ) -> Result<Arc<dyn RegionSource>, SweepFailure> {
        let shape = self.grown.shape();
        let rows = shape.depth * shape.height;
        let groups = rows.div_ceil(self.rows);
        let mut waits = vec![true; groups];
        // Each round changes a pixel, and pixels change at most once for each value of the mask: the rounds end.
        let mut rounds = 0;
        while waits.contains(&true) {
            let order = |k: usize| if rounds % 2 == 0 { k } else { groups - 1 - k };
            for k in (0..groups).map(order) {
                if !std::mem::replace(&mut waits[k], false) {
                    continue;
                }
                if stop() {
                    return Err(SweepFailure::Stopped);
                }
                let group = k * self.rows..rows.min((k + 1) * self.rows);
                let [first, last] = self.group(group, workers)?;
                if first && k > 0 {
                    waits[k - 1] = true;
                }
                if last && k + 1 < groups {
                    waits[k + 1] = true;
                }
            }
            rounds += 1;
        }
        log::info!("reconstruction: {groups} groups of rows in {rounds} rounds");
        Ok(Arc::new(self.grown))
    }
}
