//! Records the pixels that kernel definitions read, one by one: the reference for footprints.

use std::cell::RefCell;

use super::kernel::{HostImage, evaluate};
use horus_base::shape::Window;
use horus_plan::ir::kernel::Kernel;

/// A pixel read: input index, row and column.
pub type PixelRead = (usize, [isize; 2]);

/// A pixel written, by row and column, and the pixels read since the previous write.
pub type PixelWrite = ([isize; 2], Vec<PixelRead>);

#[derive(Default)]
struct AccessRecord {
    /// Addresses of the inputs' pixels.
    inputs: Vec<*const u8>,
    /// Reads since the last write.
    read: Vec<PixelRead>,
    written: Vec<PixelWrite>,
}

thread_local! {
    static RECORD: RefCell<Option<AccessRecord>> = const { RefCell::new(None) };
}

/// Records that a pixel of an image was read.
pub(super) fn record_read(image: &HostImage, at: [isize; 2]) {
    RECORD.with_borrow_mut(|record| {
        let Some(record) = record else { return };
        if let Some(input) = record.inputs.iter().position(|bytes| *bytes == image.bytes.as_ptr()) {
            record.read.push((input, at));
        }
    });
}

/// Returns true while reads are recorded.
pub(super) fn is_recording() -> bool {
    RECORD.with_borrow(Option::is_some)
}

/// Records that a pixel of the result was written.
pub(super) fn record_write(at: [isize; 2]) {
    RECORD.with_borrow_mut(|record| {
        let Some(record) = record else { return };
        record.written.push((at, std::mem::take(&mut record.read)));
    });
}

/// Evaluates a launch; returns the reads of each pixel written.
pub fn record_accesses(kernel: &Kernel, inputs: &[HostImage], output: &mut HostImage, rows: Window) -> Vec<PixelWrite> {
    let inputs_at = inputs.iter().map(|i| i.bytes.as_ptr()).collect();
    RECORD.set(Some(AccessRecord { inputs: inputs_at, ..AccessRecord::default() }));
    evaluate(kernel, inputs, output, rows);
    RECORD.take().map(|record| record.written).unwrap_or_default()
}
