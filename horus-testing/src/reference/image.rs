//! Images of the oracle: plain vectors.

use std::fmt;

use super::{DType, Pixel, Shape};
use horus_base::shape::Border;

/// A whole image: planes one after the other, each row-major.
///
/// Images are equal if shape, type and all bits are equal: +0 does not equal -0. All NaNs are equal, because the
/// processor chooses sign and payload of a computed NaN.
// Named like the type that it models; both occur in one file only where one is checked against the
// other.
#[derive(Clone)]
pub struct ReferenceImage {
    /// Its extent.
    pub shape: Shape,
    dtype: DType,
    /// The memory of its `shape.len()` pixels, aligned for all types.
    words: Vec<u64>,
}

impl ReferenceImage {
    /// An image of the given pixels.
    ///
    /// # Panics
    /// If the number of pixels is not `shape.len()`.
    pub fn new<T: Pixel>(shape: Shape, pixels: Vec<T>) -> ReferenceImage {
        assert_eq!(pixels.len(), shape.len(), "an image of {shape} has {} pixels", shape.len());
        let bytes = bytemuck::cast_slice::<T, u8>(&pixels);
        let mut words = vec![0; bytes.len().div_ceil(size_of::<u64>())];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        ReferenceImage { shape, dtype: T::DTYPE, words }
    }

    /// An image whose pixel in plane `c`, row `y` and column `x` is `f(c, y, x)`; of interleaved samples, `x` counts these.
    pub fn from_fn<T: Pixel>(shape: Shape, mut f: impl FnMut(usize, usize, usize) -> T) -> ReferenceImage {
        ReferenceImage::computed(shape, &mut f)
    }

    fn computed<T: Pixel>(shape: Shape, f: &mut dyn FnMut(usize, usize, usize) -> T) -> ReferenceImage {
        let mut pixels = Vec::with_capacity(shape.len());
        for c in 0..shape.planes() {
            for y in 0..shape.height {
                for x in 0..shape.line() {
                    pixels.push(f(c, y, x));
                }
            }
        }
        ReferenceImage::new(shape, pixels)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The pixels as bytes, for bitwise comparison and for filling buffers.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.shape.len() * self.dtype.size()]
    }

    /// The pixels.
    ///
    /// # Panics
    /// If the pixels are not of type `T`.
    pub fn as_slice<T: Pixel>(&self) -> &[T] {
        assert_eq!(self.dtype(), T::DTYPE, "the image has another type");
        bytemuck::cast_slice(self.bytes())
    }

    /// The pixel in plane `c`, row `y` and column `x`.
    ///
    /// # Panics
    /// If it lies outside, or is not of type `T`.
    pub fn at<T: Pixel>(&self, c: usize, y: usize, x: usize) -> T {
        let (height, line) = (self.shape.height, self.shape.line());
        assert!(y < height && x < line, "({y}, {x}) is outside {}", self.shape);
        self.as_slice()[(c * height + y) * line + x]
    }

    /// The pixel in plane `c`, row `y` and column `x` as a number, which represents all types exactly.
    ///
    /// # Panics
    /// If it lies outside.
    pub fn number(&self, c: usize, y: usize, x: usize) -> f64 {
        horus_base::dispatch!(self.dtype, T => self.at::<T>(c, y, x).to_f64())
    }

    /// All pixels as numbers.
    pub fn numbers(&self) -> Vec<f64> {
        horus_base::dispatch!(self.dtype, T => self.as_slice::<T>().iter().map(|p| p.to_f64()).collect())
    }

    /// The value read with `border` at row `y` and column `x` of plane `c`, possibly outside the
    /// image.
    pub fn read<T: Pixel>(&self, c: usize, y: isize, x: isize, border: Border) -> T {
        match (border.map(y, self.shape.height), border.map(x, self.shape.width)) {
            (Some(y), Some(x)) => self.at(c, y, x),
            _ => border.constant().map_or(T::ZERO, T::from_f64), // only a constant border maps to nothing
        }
    }

    /// [`ReferenceImage::read`] as a number.
    pub fn read_number(&self, c: usize, y: isize, x: isize, border: Border) -> f64 {
        horus_base::dispatch!(self.dtype, T => self.read::<T>(c, y, x, border).to_f64())
    }
}

impl fmt::Debug for ReferenceImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        horus_base::dispatch!(self.dtype, T => write!(f, "{} {} {:?}", self.shape, self.dtype, self.as_slice::<T>()))
    }
}

impl PartialEq for ReferenceImage {
    fn eq(&self, other: &ReferenceImage) -> bool {
        fn same<T: Pixel>(a: T, b: T) -> bool {
            bytemuck::bytes_of(&a) == bytemuck::bytes_of(&b) || (a.is_nan() && b.is_nan())
        }
        self.shape == other.shape
            && self.dtype() == other.dtype()
            && horus_base::dispatch!(self.dtype(), T => {
                self.as_slice::<T>().iter().zip(other.as_slice::<T>()).all(|(&a, &b)| same(a, b))
            })
    }
}
impl Eq for ReferenceImage {}
