//! Large arrays of which only parts are in memory.

use std::ops::Range;

use horus::io::{FileTraffic, RegionSource, Workers};
use horus::prelude::{AnyImage, DType, Region, Shape};
use horus_core::host::StridedCopy;
use horus_core::host::external::External;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::any::Any;
use crate::arrays::in_place;
use crate::errors::detached;
use crate::image::PyImage;
use crate::session::PySession;

/// Blocks of an array, which do not overlap and contain everything that a program reads.
pub(crate) struct NumpyBlocks {
    shape: Shape,
    dtype: DType,
    parts: Vec<NumpyBlock>,
}

/// A block: its rows and columns, and its pixels, level by level and row by row, with adjacent samples of a pixel.
struct NumpyBlock {
    rows: Range<usize>,
    columns: Range<usize>,
    pixels: External,
}

impl NumpyBlocks {
    /// Blocks by row and column of their corner; pixels in C order with axes for levels, rows, columns
    /// and channels.
    pub(crate) fn new(
        shape: Shape,
        dtype: DType,
        blocks: &[(usize, usize, Bound<'_, PyAny>)],
    ) -> PyResult<NumpyBlocks> {
        let block = |(top, left, array): &(usize, usize, Bound<'_, PyAny>)| {
            let (levels, rows, columns, channels): (usize, usize, usize, usize) = array.getattr("shape")?.extract()?;
            let inside = (levels, channels) == (shape.depth, shape.channels)
                && top + rows <= shape.height
                && left + columns <= shape.width;
            match in_place(array, dtype)? {
                Some(pixels) if inside => {
                    Ok(NumpyBlock { rows: *top..top + rows, columns: *left..left + columns, pixels })
                }
                _ => Err(PyValueError::new_err(format!(
                    "a block of {levels}x{rows}x{columns}x{channels} at row {top}, column {left} is not contiguous, or not inside {shape}"
                ))),
            }
        };
        Ok(NumpyBlocks { shape, dtype, parts: blocks.iter().map(block).collect::<PyResult<_>>()? })
    }

    /// The image of an array, which reads its blocks when it is evaluated. Messages call it `name`.
    pub(crate) fn image(self, py: Python<'_>, session: &PySession, name: &str) -> PyResult<PyImage> {
        let picture = detached(py, || AnyImage::from_source(&session.open, name, || Ok(Box::new(self))))?;
        Ok(session.image(Any::try_from(picture)?))
    }
}

fn common(a: &Range<usize>, b: &Range<usize>) -> Range<usize> {
    let start = a.start.max(b.start);
    start..a.end.min(b.end).max(start)
}

impl RegionSource for NumpyBlocks {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn chunk(&self) -> (usize, usize) {
        (1, 1)
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        let (top, left) = (region.top, region.left);
        let (rows, columns) = (top..top + region.height, left..left + region.width);
        let shared = self.parts.iter().map(|part| (part, common(&part.rows, &rows), common(&part.columns, &columns)));
        let shared: Vec<_> = shared.filter(|(_, rows, columns)| !rows.is_empty() && !columns.is_empty()).collect();
        let here: usize = shared.iter().map(|(_, rows, columns)| rows.len() * columns.len()).sum();
        if here != region.height * region.width {
            let (last, end) = (rows.end - 1, columns.end - 1);
            return Err(format!("the blocks lack pixels of rows {top} to {last} and columns {left} to {end}"));
        }
        let pixel = self.shape.channels * self.dtype.size();
        for (part, rows, columns) in shared {
            let pieces = (0..self.shape.depth).map(|level| StridedCopy {
                from: ((level * part.rows.len() + rows.start - part.rows.start) * part.columns.len() + columns.start
                    - part.columns.start)
                    * pixel,
                to: ((level * region.height + rows.start - top) * region.width + columns.start - left) * pixel,
                bytes: columns.len() * pixel,
                rows: rows.len(),
                from_stride: part.columns.len() * pixel,
                to_stride: region.width * pixel,
            });
            workers.copy_pieces(part.pixels.bytes(), to, &pieces.collect::<Vec<_>>());
        }
        Ok(())
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic::default()
    }

    fn is_partial(&self) -> bool {
        true
    }
}
