//! Tables.

use super::describe::{Group, Pattern, describe, description};
use super::footprint::{Access, Reading, Rect};
use super::operation::{Effort, Extent, Family, ImageOperation, Instance, Sampled, Sizes, hold, images, stays};
use horus_base::dtype::DType;
use horus_base::placed::Placed;
use horus_base::shape::Shape;

describe! {
    LOOKUP = description("lookup", Group::Types, Pattern::Pixel, "The entry of a table at the value of each pixel")
        .elsewhere(&["np.take", "cv.LUT", "imageproc::map::map_subpixels"])
        .differs("tables of `u16`, `i8` and `i16` too, which begin with the smallest value");
}

/// The entry of the second input, `1 x n x 1`, indexed by the pixel of the first, counted from the
/// lowest value of its type: `n` is 256 for 8-bit types and 65536 for 16-bit types.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Lookup;

/// Input index of the table.
const TABLE: usize = 1;

impl ImageOperation for Lookup {
    fn kind(&self) -> &'static str {
        "lookup"
    }

    /// The table must have an entry for every value of the index type, so that no look-up is out of
    /// bounds.
    fn check(&self, inputs: &[Extent], output: Extent) -> Result<(), String> {
        let [image, table] = images(inputs)?;
        hold(image.1.is_narrow(), || format!("a table for pixels of {}", image.1))?;
        let entries = 1 << (8 * image.1.size());
        let fits = table.0 == Shape::new(1, entries, 1) && (image.0, table.1) == output;
        hold(fits, || {
            let [image, table, output] = [image, table, output].map(|(shape, dtype)| format!("{shape} {dtype}"));
            format!("a table of {table} for {image}, into {output}")
        })
    }

    fn reads(&self, input: usize, need: Rect, of: Shape) -> Reading {
        if input == TABLE { Reading::whole(of) } else { Reading::inside(need) }
    }

    fn access(&self, input: usize) -> Access {
        if input == TABLE { Access::Whole } else { Access::IN_PLACE }
    }

    fn placed(&self, _: usize, from: Shape, to: Shape) -> Option<Placed> {
        stays(from, to)
    }

    fn in_place(&self, input: usize) -> bool {
        input != TABLE
    }

    fn is_table(&self, input: usize) -> bool {
        input == TABLE
    }

    fn end_to_end(&self, input: usize) -> bool {
        input == TABLE
    }

    fn by_levels(&self, input: usize) -> bool {
        input != TABLE
    }

    fn effort(&self, _: &[Extent], output: Extent, rows: usize) -> Effort {
        Effort::of_rows(Family::Pixel, output.0, rows, 0.0)
    }
}

impl Sampled for Lookup {
    fn samples(of: Sizes) -> Vec<Instance> {
        let table = (Shape::new(1, 256, 1), of.image.1);
        vec![Instance::of(Lookup, &[(of.image.0, DType::U8), table], of.image).loose()]
    }
}
