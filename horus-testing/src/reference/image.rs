//! Images of the oracle: plain vectors.

use super::{DType, Pixel, Shape};
use horus_base::shape::Border;

/// Pixels of any numeric type.
#[derive(Clone, Debug)]
pub enum TypedPixels {
    /// Unsigned 8-bit integers.
    U8(Vec<u8>),
    /// Unsigned 16-bit integers.
    U16(Vec<u16>),
    /// Unsigned 32-bit integers.
    U32(Vec<u32>),
    /// Signed 8-bit integers.
    I8(Vec<i8>),
    /// Signed 16-bit integers.
    I16(Vec<i16>),
    /// Signed 32-bit integers.
    I32(Vec<i32>),
    /// Single precision.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

/// A whole image: planes one after the other, each row-major.
///
/// Images are equal if shape, type and all bits are, so that +0 does not equal -0. All NaNs are
/// equal, as the processor chooses sign and payload of a computed NaN.
// Named like the type that it models; both occur in one file only where one is checked against the
// other.
#[derive(Clone, Debug)]
pub struct Image {
    /// Its extent.
    pub shape: Shape,
    /// Its `shape.len()` pixels.
    pub pixels: TypedPixels,
}

impl Image {
    /// An image of the given pixels.
    ///
    /// # Panics
    /// If the number of pixels is not `shape.len()`.
    pub fn new<T: Pixel>(shape: Shape, pixels: Vec<T>) -> Image {
        assert_eq!(pixels.len(), shape.len(), "an image of {shape} has {} pixels", shape.len());
        let pixels = match T::DTYPE {
            DType::U8 | DType::Bool => TypedPixels::U8(bytemuck::cast_slice(&pixels).to_vec()),
            DType::U16 => TypedPixels::U16(bytemuck::cast_slice(&pixels).to_vec()),
            DType::U32 => TypedPixels::U32(bytemuck::cast_slice(&pixels).to_vec()),
            DType::I8 => TypedPixels::I8(bytemuck::cast_slice(&pixels).to_vec()),
            DType::I16 => TypedPixels::I16(bytemuck::cast_slice(&pixels).to_vec()),
            DType::I32 => TypedPixels::I32(bytemuck::cast_slice(&pixels).to_vec()),
            DType::F32 => TypedPixels::F32(bytemuck::cast_slice(&pixels).to_vec()),
            DType::F64 => TypedPixels::F64(bytemuck::cast_slice(&pixels).to_vec()),
        };
        Image { shape, pixels }
    }

    /// An image whose pixel in plane `c`, row `y` and column `x` is `f(c, y, x)`.
    pub fn from_fn<T: Pixel>(shape: Shape, mut f: impl FnMut(usize, usize, usize) -> T) -> Image {
        let mut pixels = Vec::with_capacity(shape.len());
        for c in 0..shape.planes() {
            for y in 0..shape.height {
                for x in 0..shape.width {
                    pixels.push(f(c, y, x));
                }
            }
        }
        Image::new(shape, pixels)
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        match self.pixels {
            TypedPixels::U8(_) => DType::U8,
            TypedPixels::U16(_) => DType::U16,
            TypedPixels::U32(_) => DType::U32,
            TypedPixels::I8(_) => DType::I8,
            TypedPixels::I16(_) => DType::I16,
            TypedPixels::I32(_) => DType::I32,
            TypedPixels::F32(_) => DType::F32,
            TypedPixels::F64(_) => DType::F64,
        }
    }

    /// The pixels as bytes, for bitwise comparison and for filling buffers.
    pub fn bytes(&self) -> &[u8] {
        match &self.pixels {
            TypedPixels::U8(v) => v,
            TypedPixels::U16(v) => bytemuck::cast_slice(v),
            TypedPixels::U32(v) => bytemuck::cast_slice(v),
            TypedPixels::I8(v) => bytemuck::cast_slice(v),
            TypedPixels::I16(v) => bytemuck::cast_slice(v),
            TypedPixels::I32(v) => bytemuck::cast_slice(v),
            TypedPixels::F32(v) => bytemuck::cast_slice(v),
            TypedPixels::F64(v) => bytemuck::cast_slice(v),
        }
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
        let Shape { height, width, .. } = self.shape;
        assert!(y < height && x < width, "({y}, {x}) is outside {}", self.shape);
        self.as_slice()[(c * height + y) * width + x]
    }

    /// The value read with `border` at row `y` and column `x` of plane `c`, possibly outside the
    /// image.
    pub fn read<T: Pixel>(&self, c: usize, y: isize, x: isize, border: Border) -> T {
        match (border.map(y, self.shape.height), border.map(x, self.shape.width)) {
            (Some(y), Some(x)) => self.at(c, y, x),
            _ => border.constant().map_or(T::ZERO, T::from_f64), // only a constant border maps to nothing
        }
    }
}

impl PartialEq for Image {
    fn eq(&self, other: &Image) -> bool {
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
impl Eq for Image {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_lie_plane_by_plane_and_row_by_row() {
        let image = Image::from_fn(Shape::new(2, 3, 2), |c, y, x| (100 * c + 10 * y + x) as u8);
        assert_eq!(image.as_slice::<u8>(), &[0, 1, 2, 10, 11, 12, 100, 101, 102, 110, 111, 112]);
        assert_eq!(image.at::<u8>(1, 0, 2), 102);
    }

    #[test]
    fn equality_is_of_bits_and_all_nans_are_equal() {
        let one = |v: f32| Image::new(Shape::new(1, 1, 1), vec![v]);
        assert_eq!(one(f32::NAN), one(-f32::NAN));
        assert_ne!(one(f32::NAN), one(1.0));
        assert_ne!(one(0.0), one(-0.0));
        assert_ne!(one(1.0), Image::new(Shape::new(1, 1, 1), vec![1.0f64]));
    }

    #[test]
    fn a_constant_border_is_read_where_either_axis_leaves_the_image() {
        let image = Image::new(Shape::new(1, 2, 1), vec![1u8, 2]);
        let border = Border::Constant(300.0);
        let row: Vec<u8> = (-1..3).map(|x| image.read(0, 0, x, border)).collect();
        assert_eq!(row, [255, 1, 2, 255]);
        assert_eq!(image.read::<u8>(0, -1, 0, border), 255);
        assert_eq!(image.read::<u8>(0, -1, 2, Border::Reflect101), 1);
    }
}
