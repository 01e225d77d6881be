//! Thinning of masks to lines.

use super::components::MOST_PIXELS;
use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Distribution, Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure,
    images, stays,
};
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {
    THIN = description("thin", OperationGroup::Morphology, Pattern::WholeImage, "Thins the true parts of a mask to lines a pixel wide")
        .details("Two passes in turn, until none removes a pixel; of the neighbours to the right and on anti-clockwise: Guo and Hall 1989.")
        .elsewhere(&["ski.morphology.thin", "cv.ximgproc.thinning(THINNING_GUOHALL)"])
        .differs("a function; pixels outside are false; scikit-image's, to the pixel; OpenCV begins with the other pass and leaves the border; each channel and level by itself")
        .example("luminance otsu thin");
}

/// Thinning by Guo and Hall ("Parallel thinning with two-subiteration algorithms", 1989), per plane. Nonzero pixels
/// that remain have their value, others become 0.
///
/// ```
/// use horus_plan::ops::Thin;
///
/// // A pixel between a neighbour above and one below (bits 2 and 6) joins them; one at an edge of a block (bits 4 to 6) does not.
/// assert!(!Thin::removes(0b0100_0100, 0));
/// assert!(Thin::removes(0b0111_0000, 0));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thin;

impl Thin {
    /// Returns `true` if a pixel with these neighbours is removed in subiteration 0 or 1. Bits of neighbours are
    /// anti-clockwise, starting at the right.
    pub const fn removes(neighbours: u8, pass: usize) -> bool {
        let b = neighbours as u32 | (neighbours as u32) << 8;
        // The runs of neighbours that the pixel would join, and how many of the four pairs are in each of two pairings.
        let (mut runs, mut first, mut second, mut k) = (0, 0, 0, 0);
        while k < 8 {
            runs += (!b >> k & 1) & (b >> (k + 1) & 1 | b >> (k + 2) & 1);
            first += b >> k & 1 | b >> (k + 1) & 1;
            second += b >> (k + 1) & 1 | b >> (k + 2) & 1;
            k += 2;
        }
        let pairs = if first < second { first } else { second };
        // The second subiteration tests the opposite side.
        let b = b >> (4 * pass);
        let side = (b >> 1 & 1 | b >> 2 & 1 | !b >> 7 & 1) & b & 1;
        runs == 1 && (pairs == 2 || pairs == 3) && side == 0
    }

    /// The results of [`Thin::removes`] for all neighbours and each subiteration, one bit each.
    pub const REMOVED: [[u32; 8]; 2] = {
        let mut all = [[0; 8]; 2];
        let mut k = 0;
        while k < 512 {
            let (pass, neighbours) = (k / 256, k % 256);
            all[pass][neighbours / 32] |= (Thin::removes(neighbours as u8, pass) as u32) << (neighbours % 32);
            k += 1;
        }
        all
    };
}

impl ImageOperation for Thin {
    fn kind(&self) -> &'static str {
        "thin"
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [input] = images(inputs)?;
        ensure(input == output, || format!("it yields {} {}, wanted is {} {}", input.0, input.1, output.0, output.1))?;
        ensure(input.0.len() <= MOST_PIXELS, || format!("thinning of {}", input.0))
    }

    fn reads(&self, _: usize, _: Rect, of: Shape) -> InputRead {
        InputRead::whole(of)
    }

    fn access(&self, _: usize) -> Access {
        Access::Whole
    }

    fn position_map(&self, _: usize, from: Shape, to: Shape) -> Option<PositionMap> {
        stays(from, to)
    }

    fn in_place(&self, _: usize) -> bool {
        true
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn distribution(&self) -> Distribution {
        Distribution::Whole
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        // Two subiterations over parts of about 20 pixels across.
        LaunchEffort::of_rows(Family::Rank, output.0, rows, 20.0)
    }

    fn scratch(&self, shape: Shape) -> usize {
        // Two masks of a plane, with a margin of one pixel, and a number for each row.
        let rows = shape.height.saturating_add(2);
        rows.saturating_mul(shape.line().saturating_add(2 + size_of::<usize>()))
            .saturating_mul(2)
            .max(shape.len().saturating_mul(2))
    }
}

impl SampleOperations for Thin {
    fn samples(of: SampleImages) -> Vec<Instance> {
        vec![Instance::of(Thin, &[of.image], of.image)]
    }
}
