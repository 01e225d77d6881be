//! Connected components, and the neighbourhoods that define them.

use super::describe::{Accepts, OperationGroup, Parameter, Pattern, describe, description, optional};
use super::footprint::{Access, InputRead, Rect};
use super::operation::{
    Distribution, Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure,
    images, makes,
};
use horus_base::dtype::DType;
use horus_base::position_map::PositionMap;
use horus_base::shape::Shape;

pub(crate) const NEIGHBOURS: Parameter = optional("neighbours", Accepts::Choice(|| vec!["4", "8"]), "4", "");

describe! {
    LABEL = description("label", OperationGroup::Morphology, Pattern::WholeImage, "The number of each pixel's connected component, from 1 on; 0 where the picture is 0")
        .also(&["components"])
        .takes(&[NEIGHBOURS])
        .elsewhere(&["ndi.label", "ski.measure.label", "cv.connectedComponents", "imageproc::region_labelling::connected_components"])
        .differs("in raster order; nonzero pixels; scikit-image separates different values. `Connectivity::FACES` is 4 or 6 neighbours, `CORNERS` 8 or 26")
        .example("luminance otsu label 8 convert u16");
    COMPONENT_SIZES = description("component_sizes", OperationGroup::Morphology, Pattern::WholeImage, "The number of pixels of each pixel's connected component; 0 where the picture is 0")
        .takes(&[NEIGHBOURS])
        .elsewhere(&["np.bincount", "cv.connectedComponentsWithStats"])
        .example("luminance otsu component_sizes convert u16");
}

/// Maximum number of pixels of an image in memory whose pixels are counted in `i32`.
pub const MOST_PIXELS: usize = i32::MAX as usize;

/// The neighbours of a pixel along levels, rows and columns: a symmetric structure of 3x3x3 pixels.
/// The default is [`Connectivity::FACES`], as in SciPy. In an image of one level only the
/// neighbours within the level count.
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// assert_eq!(Connectivity::FACES.neighbours().count(), 6);
/// assert_eq!(Connectivity::EDGES.neighbours().count(), 18);
/// assert_eq!(Connectivity::CORNERS.neighbours().count(), 26);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Connectivity(u16);

/// Neighbours that precede a pixel in raster order; the others are their mirror images.
const BEFORE: usize = 13;

impl Connectivity {
    /// Pixels that share a face: 4 neighbours in an image, 6 in a volume.
    pub const FACES: Connectivity = Connectivity::within(1);
    /// Pixels that share a face or an edge: 8 neighbours in an image, 18 in a volume.
    pub const EDGES: Connectivity = Connectivity::within(2);
    /// Pixels that touch: 8 neighbours in an image, 26 in a volume.
    pub const CORNERS: Connectivity = Connectivity::within(3);

    /// Neighbours by level, row and column of a structure centred on the pixel at `[1][1][1]`.
    /// Neighbourhood is symmetric: if two opposite entries differ, both count. The centre is
    /// ignored.
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// let mut along_rows = [[[false; 3]; 3]; 3];
    /// along_rows[1][1][2] = true;
    /// let neighbours: Vec<[isize; 3]> = Connectivity::new(along_rows).neighbours().collect();
    /// assert_eq!(neighbours, [[0, 0, -1], [0, 0, 1]]);
    /// ```
    pub const fn new(structure: [[[bool; 3]; 3]; 3]) -> Connectivity {
        let (mut bits, mut k) = (0, 0);
        while k < BEFORE {
            let opposite = 26 - k;
            let one = structure[k / 9][k / 3 % 3][k % 3];
            let other = structure[opposite / 9][opposite / 3 % 3][opposite % 3];
            if one || other {
                bits |= 1 << k;
            }
            k += 1;
        }
        Connectivity(bits)
    }

    /// Neighbours whose positions differ along at most `axes` axes.
    const fn within(axes: usize) -> Connectivity {
        let (mut bits, mut k) = (0, 0);
        while k < BEFORE {
            let along = (k / 9 != 1) as usize + (k / 3 % 3 != 1) as usize + (k % 3 != 1) as usize;
            if along <= axes {
                bits |= 1 << k;
            }
            k += 1;
        }
        Connectivity(bits)
    }

    /// Offsets (level, row, column) of the neighbours that precede the pixel in raster order.
    pub fn before(self) -> impl Iterator<Item = [isize; 3]> {
        let place = |k: usize| [k / 9, k / 3 % 3, k % 3].map(|at| at.cast_signed() - 1);
        (0..BEFORE).filter(move |k| self.0 >> k & 1 == 1).map(place)
    }

    /// Offsets (level, row, column) of all neighbours.
    pub fn neighbours(self) -> impl Iterator<Item = [isize; 3]> {
        self.before().chain(self.before().map(|by| by.map(|d| -d)))
    }

    /// Bit `9 (z + 1) + 3 (y + 1) + x + 1` is set if the preceding pixel at offset `(z, y, x)` is a neighbour.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

impl Default for Connectivity {
    fn default() -> Connectivity {
        Connectivity::FACES
    }
}

/// What a pixel becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ComponentValue {
    /// The number of its component, from 1 on in raster order of the components' first pixels.
    Label,
    /// The number of pixels of its component.
    Size,
}

/// Connected components of the nonzero pixels of one channel. Yields `i32`, 0 for the other pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Components {
    /// Neighbourhood of a pixel.
    pub neighbours: Connectivity,
    /// What a pixel of a component becomes.
    pub value: ComponentValue,
}

impl Components {
    /// Labels.
    pub const fn labels(neighbours: Connectivity) -> Components {
        Components { neighbours, value: ComponentValue::Label }
    }

    /// Sizes.
    pub const fn sizes(neighbours: Connectivity) -> Components {
        Components { neighbours, value: ComponentValue::Size }
    }
}

impl ImageOperation for Components {
    fn kind(&self) -> &'static str {
        match self.value {
            ComponentValue::Label => "label",
            ComponentValue::Size => "component sizes",
        }
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, _)] = images(inputs)?;
        makes((shape, DType::I32), output)?;
        ensure(shape.channels == 1, || format!("labels of {shape}"))
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
        // Runs of pixels search for their roots.
        LaunchEffort::of_rows(Family::Histogram, output.0, rows, 1.0 + self.neighbours.before().count() as f64)
    }

    fn most_pixels(&self) -> usize {
        MOST_PIXELS
    }

    fn scratch(&self, shape: Shape) -> usize {
        // Runs and components of pixels that alternate, and their values.
        shape.len().saturating_mul(2 * size_of::<i32>())
    }
}

impl SampleOperations for Components {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let of = |how: Components| Instance::of(how, &[of.plane], (of.plane.0, DType::I32));
        vec![of(Components::labels(Connectivity::FACES)), of(Components::sizes(Connectivity::CORNERS))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_is_symmetric_and_has_no_centre() {
        let mut structure = [[[false; 3]; 3]; 3];
        structure[1][1][1] = true;
        assert_eq!(Connectivity::new(structure).neighbours().count(), 0);
        structure[2][0][1] = true;
        let found: Vec<_> = Connectivity::new(structure).neighbours().collect();
        assert_eq!(found, [[-1, 1, 0], [1, -1, 0]]);
        assert_eq!(Connectivity::new([[[true; 3]; 3]; 3]), Connectivity::CORNERS);
    }

    #[test]
    fn what_comes_before_has_a_smaller_place() {
        for by in Connectivity::CORNERS.before() {
            assert!(by < [0, 0, 0], "{by:?}");
        }
        let flat = |how: Connectivity| how.neighbours().filter(|by| by[0] == 0).count();
        assert_eq!([Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS].map(flat), [4, 8, 8]);
    }
}
