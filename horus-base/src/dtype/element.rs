//! Elements of images: numbers, and the booleans of masks.

use std::fmt;

use bytemuck::{CheckedBitPattern, NoUninit};

use super::{DType, Pixel, Scalar};

mod sealed {
    pub trait SealedElement {}
    impl<T: super::Pixel> SealedElement for T {}
    impl SealedElement for bool {}
}

/// An element type of images: the [`Pixel`] types, and `bool` for masks (one byte per pixel). Sealed.
pub trait Element:
    sealed::SealedElement
    + NoUninit
    + CheckedBitPattern
    + PartialEq
    + Default
    + fmt::Debug
    + fmt::Display
    + Send
    + Sync
    + 'static
{
    /// The tag of this type.
    const TAG: DType;

    /// The type in memory: `u8` for `bool`.
    #[doc(hidden)]
    type Stored: Pixel;

    /// The value as a constant of the type in memory; a `bool` becomes `u8` 0 or 1.
    fn stored(self) -> Scalar;

    /// The bytes of values, if every bit pattern is a valid value.
    #[doc(hidden)]
    fn bytes_mut(values: &mut [Self]) -> Option<&mut [u8]>;
}

/// Returns `true` if all bytes are 0 or 1, the representation of truth values. Tests many bytes at a time,
/// because a branch for each would take longer than a filter.
pub fn are_truths(bytes: &[u8]) -> bool {
    bytes.chunks(4096).all(|some| some.iter().fold(0, |all, byte| all | byte) <= 1)
}

impl<T: Pixel> Element for T {
    const TAG: DType = T::DTYPE;
    type Stored = T;

    fn stored(self) -> Scalar {
        self.scalar()
    }

    fn bytes_mut(values: &mut [T]) -> Option<&mut [u8]> {
        Some(bytemuck::cast_slice_mut(values))
    }
}

impl Element for bool {
    const TAG: DType = DType::Bool;
    type Stored = u8;

    fn stored(self) -> Scalar {
        Scalar::U8(self.into())
    }

    fn bytes_mut(_: &mut [bool]) -> Option<&mut [u8]> {
        None
    }
}
