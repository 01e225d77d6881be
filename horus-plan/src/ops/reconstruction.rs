//! Morphological reconstruction of a mask from a marker.

use super::components::{Connectivity, MOST_PIXELS};
use super::describe::{OperationGroup, Pattern, describe, description};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Distribution, Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure,
    images, makes,
};
use horus_base::dtype::Pixel;
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

describe! {
    RECONSTRUCT = description("reconstruct", OperationGroup::Morphology, Pattern::WholeImage, "A marker grown within a mask: by dilation below it, or `Reconstruction::by_erosion` above it")
        .elsewhere(&["ski.morphology.reconstruction", "ndi.binary_propagation"])
        .differs("a marker beyond the mask is clamped to it; types are kept");
}

/// Morphological reconstruction: a marker dilated and limited by a mask until nothing changes; by erosion, the reverse.
/// The order of operations does not affect the result. Pixels are compared as [`Reconstruction::ordered`] orders them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reconstruction {
    /// Set for erosion, from above the mask; otherwise dilation, from below.
    pub erosion: bool,
    /// Neighbourhood of a pixel.
    pub neighbours: Connectivity,
}

/// Makes a reconstruction by dilation.
impl From<Connectivity> for Reconstruction {
    fn from(neighbours: Connectivity) -> Reconstruction {
        Reconstruction { erosion: false, neighbours }
    }
}

impl Reconstruction {
    /// A reconstruction by erosion, from above the mask.
    pub fn by_erosion(neighbours: Connectivity) -> Reconstruction {
        Reconstruction { erosion: true, neighbours }
    }

    /// Maps `v` into a total order, so that the result is unique: NaN is the lowest value (the highest by erosion), and
    /// zeros have no sign.
    #[inline(always)]
    pub fn ordered<T: Pixel>(self, v: T) -> T {
        let least = if self.erosion { T::HIGHEST } else { T::LOWEST };
        if v.is_nan() { least } else { v.add(T::ZERO) }
    }

    /// `v` limited by the mask. Here and below, both values are ordered.
    #[inline(always)]
    pub fn within<T: Pixel>(self, v: T, mask: T) -> T {
        if self.erosion { v.max(mask) } else { v.min(mask) }
    }

    /// The further grown of `v` and a neighbour.
    #[inline(always)]
    pub fn grown<T: Pixel>(self, v: T, neighbour: T) -> T {
        if self.erosion { v.min(neighbour) } else { v.max(neighbour) }
    }

    /// Returns `true` if a neighbour makes pixel `v` grow, within the mask of `v`.
    #[inline(always)]
    pub fn may_grow<T: Pixel>(self, v: T, neighbour: T, mask: T) -> bool {
        if self.erosion { v > neighbour && v > mask } else { v < neighbour && v < mask }
    }
}

impl ImageOperation for Reconstruction {
    fn kind(&self) -> &'static str {
        "reconstruct"
    }

    fn name(&self) -> String {
        if self.erosion { "reconstruct by erosion".into() } else { "reconstruct".into() }
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let both: [ImageExtent; 2] = images(inputs)?;
        both.into_iter().try_for_each(|image| makes(image, output))?;
        let shape = output.0;
        ensure(shape.channels == 1, || format!("{shape} is not of one channel"))
    }

    fn reads(&self, _: usize, _: Rect, of: Shape) -> InputRead {
        InputRead::whole(of)
    }

    fn access(&self, _: usize) -> Access {
        Access::Whole
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        Some(PositionMap::default())
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn distribution(&self) -> Distribution {
        Distribution::Whole
    }

    fn effort(&self, _: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        // The number of sweeps depends on the pixels.
        let steps = 16.0 * self.neighbours.neighbours().count() as f64;
        LaunchEffort::of_rows(Family::Histogram, output.0, rows, steps)
    }

    fn most_pixels(&self) -> usize {
        MOST_PIXELS
    }

    fn scratch(&self, shape: Shape) -> usize {
        shape.len().saturating_mul(size_of::<bool>())
    }
}

impl SampleOperations for Reconstruction {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let sample =
            |erosion, neighbours| Instance::of(Reconstruction { erosion, neighbours }, &[of.plane; 2], of.plane);
        vec![sample(false, Connectivity::FACES), sample(true, Connectivity::CORNERS)]
    }
}
