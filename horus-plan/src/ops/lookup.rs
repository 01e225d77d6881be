//! Table lookups.

use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images, stays,
};
use horus_base::dtype::DType;
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {
    LOOKUP = description("lookup", OperationGroup::Types, Pattern::Pixel, "The entry of a table at the value of each pixel")
        .elsewhere(&["np.take", "cv.LUT", "imageproc::map::map_subpixels"])
        .differs("tables of `u16`, `i8` and `i16` too, which begin with the smallest value");
}

/// For each pixel of the first input, the entry of the second (`1 x n x 1`) at that index, counted from the lowest
/// value of the pixel's type: `n` is 256 for 8-bit types and 65536 for 16-bit types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lookup;

/// Input index of the table.
const TABLE: usize = 1;

impl ImageOperation for Lookup {
    fn kind(&self) -> &'static str {
        "lookup"
    }

    /// The table must have an entry for every value of the index type, so that no lookup is out of bounds.
    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [image, table] = images(inputs)?;
        ensure(image.1.is_narrow(), || format!("a table for pixels of {}", image.1))?;
        let entries = 1 << (8 * image.1.size());
        let fits = table.0 == Shape::new(1, entries, 1) && (image.0, table.1) == output;
        ensure(fits, || {
            let [image, table, output] = [image, table, output].map(|(shape, dtype)| format!("{shape} {dtype}"));
            format!("a table of {table} for {image}, into {output}")
        })
    }

    fn reads(&self, input: usize, need: Rect, of: Shape) -> InputRead {
        if input == TABLE { InputRead::whole(of) } else { InputRead::inside(need) }
    }

    fn access(&self, input: usize) -> Access {
        if input == TABLE { Access::Whole } else { Access::IN_PLACE }
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, input: usize) -> bool {
        input != TABLE
    }

    fn is_table(&self, input: usize) -> bool {
        input == TABLE
    }

    fn requires_contiguous_input(&self, input: usize) -> bool {
        input == TABLE
    }

    fn by_levels(&self, input: usize) -> bool {
        input != TABLE
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        LaunchEffort::of_rows(Family::Pixel, output.0, rows, 0.0)
    }
}

impl SampleOperations for Lookup {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let table = (Shape::new(1, 256, 1), of.image.1);
        vec![Instance::of(Lookup, &[(of.image.0, DType::U8), table], of.image).loose()]
    }
}
