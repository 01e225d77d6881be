//! Reconstruction: what of a mask a marker reaches.

use super::components::Connectivity;
use horus_base::dtype::Pixel;

/// How a marker grows within a mask until nothing changes: the largest image below both that has no pixel above its neighbours and its
/// own pixel of the marker, or the reverse. Whatever the steps are, they lead to the same image. Pixels of both are taken as
/// [`Reconstruction::ordered`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reconstruction {
    /// Whether it is by erosion: from above the mask, else from below it.
    pub erosion: bool,
    /// Which pixels are neighbours.
    pub neighbours: Connectivity,
}

impl Reconstruction {
    /// `v` in an order of all numbers, so that there is one image in the end: a NaN is the lowest, by erosion the highest, and zeros have no
    /// sign.
    #[inline(always)]
    pub fn ordered<T: Pixel>(self, v: T) -> T {
        let least = if self.erosion { T::HIGHEST } else { T::LOWEST };
        if v.is_nan() { least } else { v.add(T::ZERO) }
    }

    /// `v`, not beyond the mask. Both are ordered, here and below.
    #[inline(always)]
    pub fn within<T: Pixel>(self, v: T, mask: T) -> T {
        if self.erosion { v.max(mask) } else { v.min(mask) }
    }

    /// `v`, or a neighbour that is further.
    #[inline(always)]
    pub fn grown<T: Pixel>(self, v: T, neighbour: T) -> T {
        if self.erosion { v.min(neighbour) } else { v.max(neighbour) }
    }

    /// Whether pixel `v` takes something of a neighbour within its mask.
    #[inline(always)]
    pub fn may_grow<T: Pixel>(self, v: T, neighbour: T, mask: T) -> bool {
        if self.erosion { v > neighbour && v > mask } else { v < neighbour && v < mask }
    }

    /// Its name in plans.
    pub const fn name(self) -> &'static str {
        if self.erosion { "reconstruct by erosion" } else { "reconstruct" }
    }
}
