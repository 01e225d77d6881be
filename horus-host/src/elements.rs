//! Memory as the elements of images: numbers of any bits, or truth values, whose bytes are checked many at a time.

use bytemuck::checked;
use horus_base::dtype::{DType, Element, are_truths};

/// Panics unless bytes are elements of a type. `T` is `bool` for truth values, because [`Element`] is sealed.
fn check<T: Element>(bytes: &[u8]) {
    assert!(T::TAG != DType::Bool || are_truths(bytes), "bytes of a mask are 0 or 1");
}

/// The elements in bytes.
///
/// # Panics
/// If the bytes are not aligned, not a whole number of elements, or neither 0 nor 1 for `bool`.
pub fn elements<T: Element>(bytes: &[u8]) -> &[T] {
    if T::TAG != DType::Bool {
        return checked::cast_slice(bytes);
    }
    check::<T>(bytes);
    // SAFETY: `T` is `bool`, and each byte is 0 or 1.
    unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len()) }
}

/// The elements in mutable bytes.
///
/// # Panics
/// As [`elements`].
pub fn elements_mut<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    if T::TAG != DType::Bool {
        return checked::cast_slice_mut(bytes);
    }
    check::<T>(bytes);
    // SAFETY: `T` is `bool`, and each byte is 0 or 1.
    unsafe { std::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), bytes.len()) }
}

/// The elements that a vector of values in memory holds, without a copy.
///
/// # Panics
/// If bytes of a mask are neither 0 nor 1.
pub fn of_stored<T: Element>(stored: Vec<T::Stored>) -> Vec<T> {
    check::<T>(bytemuck::cast_slice(&stored));
    let mut stored = std::mem::ManuallyDrop::new(stored);
    let (at, len, capacity) = (stored.as_mut_ptr(), stored.len(), stored.capacity());
    // SAFETY: `T` is `T::Stored`, or it is `bool` for `u8`, whose values are 0 or 1: both have one layout.
    unsafe { Vec::from_raw_parts(at.cast(), len, capacity) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_what_is_stored() {
        let words = [1u16, 2, 65535];
        assert_eq!(elements::<u16>(bytemuck::cast_slice(&words)), words);
        assert_eq!(elements::<bool>(&[0, 1, 1]), [false, true, true]);
        assert!(elements::<bool>(&[]).is_empty());
        let mut bytes = [0, 1];
        elements_mut::<bool>(&mut bytes)[0] = true;
        assert_eq!(bytes, [1, 1]);
        assert_eq!(of_stored::<f32>(vec![1.5, -2.0]), [1.5, -2.0]);
        let long: Vec<u8> = (0..10_000).map(|i| (i % 3 == 0).into()).collect();
        let want: Vec<bool> = long.iter().map(|byte| *byte != 0).collect();
        assert_eq!(of_stored::<bool>(long), want);
    }

    #[test]
    #[should_panic(expected = "bytes of a mask are 0 or 1")]
    fn other_bytes_than_those_of_truths_are_refused() {
        let mut bytes = vec![1; 5000];
        bytes[4999] = 2;
        elements::<bool>(&bytes);
    }

    #[test]
    #[should_panic(expected = "bytes of a mask are 0 or 1")]
    fn a_vector_of_other_bytes_is_refused() {
        of_stored::<bool>(vec![0, 3]);
    }
}
