//! What images are made of: numbers, and the booleans of masks.

use std::fmt;

use bytemuck::{CheckedBitPattern, NoUninit};

use super::{DType, Pixel, Scalar};

mod sealed {
    pub trait Sealed {}
    impl<T: super::Pixel> Sealed for T {}
    impl Sealed for bool {}
}

/// An element type of images: the numbers that are [`Pixel`]s, and `bool` for masks, a byte a pixel. Sealed.
pub trait Element:
    sealed::Sealed + NoUninit + CheckedBitPattern + PartialEq + Default + fmt::Debug + fmt::Display + Send + Sync + 'static
{
    /// The tag of this type.
    const TAG: DType;

    /// As a constant of the type that memory holds: `u8` 0 or 1 for `bool`.
    fn stored(self) -> Scalar;
}

impl<T: Pixel> Element for T {
    const TAG: DType = T::DTYPE;

    fn stored(self) -> Scalar {
        self.scalar()
    }
}

impl Element for bool {
    const TAG: DType = DType::Bool;

    fn stored(self) -> Scalar {
        Scalar::U8(self.into())
    }
}
