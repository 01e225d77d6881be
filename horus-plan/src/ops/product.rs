//! Matrix products.

use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images,
};
use horus_base::position_map::PositionMap;
use horus_base::shape::{Shape, Window};

describe! {
    MATMUL = description("matmul", OperationGroup::Arithmetic, Pattern::WholeImage, "The matrix product")
        .elsewhere(&["np.matmul", "cv.gemm"])
        .differs("floats; the terms of a pixel are added in order");
}

/// The product of two images as matrices, per plane. Pixel (y, x) is the sum over k of pixel (y, k) of the first and
/// pixel (k, x) of the second, by `fma(first, second, sum)` from +0, in the order of k.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct;

/// Input index of the first factor; a row of the result reads one row of it.
const FIRST: usize = 0;

/// The division of a product into tiles on a GPU. A block of threads reads the rows of the first factor and the columns
/// of the second that its tile needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProductTiles {
    /// Rows and columns of the result that a thread computes.
    pub thread: [usize; 2],
    /// Number of tiles along the columns and along the rows of the result.
    pub count: [usize; 2],
}

impl ProductTiles {
    /// Threads along a side of a block.
    pub const SIDE: usize = 16;

    /// The largest tiles that occupy a large GPU, for `rows` rows of a result.
    pub fn of((shape, dtype): ImageExtent, rows: usize) -> ProductTiles {
        /// Fewest blocks that occupy a large GPU.
        const BUSY: usize = 128;
        let tiled = |thread: [usize; 2]| {
            let count = [shape.height.min(rows), shape.width];
            let [down, across] = [0, 1].map(|axis| count[axis].div_ceil(ProductTiles::SIDE * thread[axis]));
            ProductTiles { thread, count: [across, down] }
        };
        let large = [[8, if dtype.size() == 8 { 4 } else { 8 }], [4, 4]].map(tiled);
        let busy = |tiles: &ProductTiles| tiles.count[0] * tiles.count[1] * shape.planes() >= BUSY;
        large.into_iter().find(busy).unwrap_or(tiled([2, 2]))
    }
}

impl ImageOperation for MatrixProduct {
    fn kind(&self) -> &'static str {
        "matmul"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(a, dtype), (b, other)] = images(inputs)?;
        ensure(dtype.is_float() && dtype == other, || format!("a product of {dtype} and {other}"))?;
        let planes = (a.depth, a.channels) == (b.depth, b.channels);
        ensure(planes && a.width == b.height && a.width > 0, || format!("{a} times {b}"))?;
        ensure((Shape { width: b.width, ..a }, dtype) == output, || format!("{a} times {b} is not {}", output.0))
    }

    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead {
        InputRead::inside(match input {
            FIRST => Rect { columns: Window::whole(of.width), ..need },
            _ => Rect { rows: Window::whole(of.height), ..need },
        })
    }

    fn access(&self, input: usize) -> Access {
        if input == FIRST { Access::IN_PLACE } else { Access::Whole }
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        None
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn times_read(&self, input: usize, output: ImageExtent, rows: usize) -> usize {
        let [across, down] = ProductTiles::of(output, rows).count;
        if input == FIRST { across } else { down }
    }

    fn reads_in_pieces(&self, input: usize) -> bool {
        input == FIRST
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let terms = inputs.get(FIRST).map_or(0, |(shape, _)| shape.width);
        LaunchEffort::of_rows(Family::CorrelateLarge, output.0, rows, terms as f64)
    }
}

impl SampleOperations for MatrixProduct {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        let other = Shape { height: shape.width, width: 3, ..shape };
        vec![Instance::of(MatrixProduct, &[of.image, (other, dtype)], (Shape { width: 3, ..shape }, dtype))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::dtype::DType;

    #[test]
    fn each_factor_is_read_once_for_each_tile_of_the_other() {
        let read = |height, width, dtype, rows| {
            [0, 1].map(|input| MatrixProduct.times_read(input, (Shape::new(height, width, 1), dtype), rows))
        };
        assert_eq!(read(4096, 4096, DType::F32, 4096), [32, 32]);
        assert_eq!(read(4096, 4096, DType::F64, 4096), [64, 32], "tiles of 128 x 64");
        assert_eq!(read(4096, 1000, DType::F32, 2048), [8, 16], "some rows");
        assert_eq!(read(1024, 1024, DType::F32, 1024), [16, 16], "smaller tiles, to occupy the device");
        assert_eq!(read(40, 1, DType::F32, 40), [1, 2]);
    }
}
