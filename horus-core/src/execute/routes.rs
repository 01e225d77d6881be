//! Layout of messages: runs of bytes in the blocks of the ranks that send and receive them.

#[cfg(test)]
pub(crate) mod testing;

use crate::device::Geometry;
use crate::host::StridedCopy;
use crate::plan::movement::{Movement, RequiredPixels, RowSize, overlap, required_pixels};
use crate::shape::Window;

/// Runs of bytes at equal distances in one block of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ByteRuns {
    /// Start of the first run.
    pub(crate) at: usize,
    /// Length of each run.
    pub(crate) bytes: usize,
    /// Number of runs.
    pub(crate) rows: usize,
    /// Distance between the starts of runs.
    pub(crate) stride: usize,
}

impl ByteRuns {
    /// Total bytes.
    pub(crate) fn total(self) -> usize {
        self.bytes * self.rows
    }

    /// Bytes from the start of the first run to the end of the last.
    pub(crate) fn extent(self) -> usize {
        (self.rows - 1) * self.stride + self.bytes
    }

    /// Returns `true` if the runs are contiguous.
    pub(crate) fn together(self) -> bool {
        self.rows == 1 || self.bytes == self.stride
    }
}

/// Bytes exchanged with one rank, in the order of the messages.
pub(crate) struct Route {
    /// The other rank, or this one for its own pixels.
    pub(crate) rank: usize,
    /// Bytes to send, in the given block.
    pub(crate) out: Vec<ByteRuns>,
    /// Bytes to receive, in the wanted block.
    pub(crate) into: Vec<ByteRuns>,
}

/// Routes between rank `me` and each rank. `me` has pixels in a block of geometry `given`, and needs others in a block
/// of geometry `wanted`.
pub(crate) fn routes(
    movement: &Movement,
    me: usize,
    given: Geometry,
    wanted: Geometry,
) -> impl Iterator<Item = Route> + '_ {
    let Movement { size, have, required: needs } = movement;
    (0..have.len()).map(move |rank| {
        let out: Vec<RequiredPixels> = overlap(&needs[rank], have[me]).collect();
        let into: Vec<RequiredPixels> = overlap(&needs[me], have[rank]).collect();
        Route { rank, out: runs(&out, *size, given, |n| n.rows.start), into: runs(&into, *size, wanted, |n| n.at) }
    })
}

/// Runs of the pixels of `needs`, each from row `row(need)` on.
fn runs(
    needs: &[RequiredPixels],
    size: RowSize,
    geometry: Geometry,
    row: impl Fn(&RequiredPixels) -> isize,
) -> Vec<ByteRuns> {
    let stride = size.width * size.pixel;
    let of = |need: &RequiredPixels, c| {
        let at = geometry.row(c, row(need)) * geometry.dtype.size() + need.left * size.pixel;
        ByteRuns { at, bytes: need.width() * size.pixel, rows: need.rows.len(), stride }
    };
    let some = needs.iter().filter(|n| n.area() > 0);
    some.flat_map(|n| (0..size.planes).map(move |c| of(n, c))).collect()
}

/// Runs of the rows of `wanted` in a block of geometry `given` of the same image, and in their own block.
pub(crate) fn rows(given: Geometry, wanted: Geometry) -> (Vec<ByteRuns>, Vec<ByteRuns>) {
    some_rows(given, wanted, wanted.window)
}

/// Runs of the rows `window` in two blocks of the same image that contain them. In `given`, rows beyond the edges wrap
/// around.
pub(crate) fn some_rows(given: Geometry, wanted: Geometry, window: Window) -> (Vec<ByteRuns>, Vec<ByteRuns>) {
    let Geometry { shape, dtype, .. } = wanted;
    let size = RowSize { width: shape.width, pixel: shape.pixel_bytes(dtype), planes: shape.planes() };
    let needs = required_pixels(window, shape.height, shape.width);
    (runs(&needs, size, given, |n| n.rows.start), runs(&needs, size, wanted, |n| n.at))
}

/// Total bytes of all runs.
pub(crate) fn total(runs: &[ByteRuns]) -> usize {
    runs.iter().map(|r| r.total()).sum()
}

/// Start of the single range that the runs fill in their order; `None` if they do not.
pub(crate) fn together(runs: &[ByteRuns]) -> Option<usize> {
    let first = runs.first()?.at;
    let mut end = first;
    for r in runs {
        if r.at != end || !r.together() {
            return None;
        }
        end += r.total();
    }
    Some(first)
}

/// Equal runs that are contiguous from byte `at`.
pub(crate) fn in_turn(runs: &[ByteRuns], mut at: usize) -> Vec<ByteRuns> {
    let next = |r: &ByteRuns| {
        let from = at;
        at += r.total();
        ByteRuns { at: from, stride: r.bytes, ..*r }
    };
    runs.iter().map(next).collect()
}

/// Copies from runs to a block where they are contiguous from byte `at`.
pub(crate) fn packed(runs: &[ByteRuns], at: usize) -> Vec<StridedCopy> {
    between(runs, &in_turn(runs, at))
}

/// Copies to runs from a block where they are contiguous from byte `at`.
pub(crate) fn unpacked(runs: &[ByteRuns], at: usize) -> Vec<StridedCopy> {
    between(&in_turn(runs, at), runs)
}

/// Copies from runs to equal runs in another block.
pub(crate) fn between(from: &[ByteRuns], to: &[ByteRuns]) -> Vec<StridedCopy> {
    let piece = |(from, to): (&ByteRuns, &ByteRuns)| {
        debug_assert_eq!((from.bytes, from.rows), (to.bytes, to.rows), "what is needed is what is given");
        let ByteRuns { at, bytes, rows, stride } = *from;
        StridedCopy { from: at, to: to.at, bytes, rows, from_stride: stride, to_stride: to.stride }
    };
    from.iter().zip(to).map(piece).collect()
}
