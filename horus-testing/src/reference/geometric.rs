//! Geometric operations: affine maps, mirror images and transposition.

use super::{Image, Pixel};
use horus_base::dtype::{Arithmetic, Float};
use horus_base::shape::Shape;
use horus_plan::ops::edge::Edge;
use horus_plan::ops::geometric::{Affine, Flip, Interpolation, cubic_weights};

/// The image sampled at the positions of `map`, for an output of `shape` (its channels are the
/// image's).
pub fn warp(image: &Image, shape: Shape, map: &Affine, interpolation: Interpolation, edge: Edge) -> Image {
    let shape = Shape { height: shape.height, width: shape.width, ..image.shape };
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(shape, |c, y, x| {
        let value = beyond(&edge, y.cast_signed(), x.cast_signed());
        let (y, x) = map.at(y as i64, x as i64);
        value.unwrap_or_else(|| sample::<T>(interpolation, y, x, |y, x| image.read(c, y, x, edge.border())))
    }))
}

/// The constant at an output pixel beyond an edge that is not interpolated.
pub(super) fn beyond<T: Pixel>(edge: &Edge, y: isize, x: isize) -> Option<T> {
    match edge {
        Edge::Inside(inside) if !inside.holds(y, x) => Some(T::from_f64(inside.value)),
        _ => None,
    }
}

/// Interpolation of the pixels given by `read` at a fixed-point position.
pub(super) fn sample<T: Pixel>(how: Interpolation, y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    match how {
        Interpolation::Nearest => nearest(y, x, read),
        Interpolation::Bilinear => bilinear(y, x, read),
        Interpolation::Bicubic => bicubic(y, x, read),
    }
}

/// A fixed-point position split into the pixel at or before it, and the fraction.
fn split<F: Float>(position: i64) -> (isize, F) {
    ((position >> 32) as isize, F::from_fraction(position as u32))
}

/// The nearest pixel; halves go to the next.
fn nearest<T: Pixel>(y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    let round = |position: i64| ((position + (1 << 31)) >> 32) as isize;
    read(round(y), round(x))
}

/// Linear in x, then in y.
fn bilinear<T: Pixel>(y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    let (y, down) = split::<T::Interp>(y);
    let (x, right) = split::<T::Interp>(x);
    let lerp = |a: T::Interp, b: T::Interp, t: T::Interp| t.fma(b.sub(a), a);
    let pixel = |y: isize, x: isize| read(y, x).to_interp();
    let above = lerp(pixel(y, x), pixel(y, x + 1), right);
    let below = lerp(pixel(y + 1, x), pixel(y + 1, x + 1), right);
    T::from_interp(lerp(above, below, down))
}

/// Cubic in x along four rows, then in y.
fn bicubic<T: Pixel>(y: i64, x: i64, read: impl Fn(isize, isize) -> T) -> T {
    let (y, down) = split::<T::Interp>(y);
    let (x, right) = split::<T::Interp>(x);
    let blend = |v: [T::Interp; 4], w: [T::Interp; 4]| {
        let mut accumulator = T::Interp::ZERO;
        for (value, weight) in v.into_iter().zip(w) {
            accumulator = weight.fma(value, accumulator);
        }
        accumulator
    };
    let rows = [-1, 0, 1, 2].map(|dy| {
        let pixels = [-1, 0, 1, 2].map(|dx| read(y + dy, x + dx).to_interp());
        blend(pixels, cubic_weights(right))
    });
    T::from_interp(blend(rows, cubic_weights(down)))
}

/// The mirror image.
pub fn flip(image: &Image, flip: Flip) -> Image {
    let Shape { height, width, .. } = image.shape;
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(image.shape, |c, y, x| {
        let y = if flip.rows() { height - 1 - y } else { y };
        let x = if flip.columns() { width - 1 - x } else { x };
        image.at::<T>(c, y, x)
    }))
}

/// Rows and columns exchanged, plane by plane.
pub fn transpose(image: &Image) -> Image {
    let shape = Shape { height: image.shape.width, width: image.shape.height, ..image.shape };
    horus_base::dispatch!(image.dtype(), T => Image::from_fn(shape, |c, y, x| image.at::<T>(c, x, y)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::dtype::DType;
    use horus_base::shape::Border;
    use horus_plan::ops::geometric::rotation;

    fn image<T: Pixel>(height: usize, width: usize, v: &[T]) -> Image {
        Image::new(Shape::new(height, width, 1), v.to_vec())
    }

    /// A row of `n` pixels read at `from`, `from + step`, ...
    fn resample(row: &Image, n: usize, from: f64, step: f64, how: Interpolation, border: Border) -> Image {
        let shape = Shape::new(1, n, 1);
        let map = Affine::new([[step, 0.0, from], [0.0, 1.0, 0.0]], shape).unwrap();
        warp(row, shape, &map, how, border.into())
    }
    const ZERO: Border = Border::Constant(0.0);

    #[test]
    fn the_identity_and_quarter_turns_are_exact_for_every_type_and_interpolation() {
        for how in Interpolation::ALL {
            for dtype in DType::ALL {
                let square = super::super::convert(&image(3, 3, &[1u8, 2, 3, 4, 5, 6, 7, 8, 9]), dtype);
                let same = warp(&square, square.shape, &Affine::IDENTITY, how, ZERO.into());
                assert_eq!(same, square, "{how:?} {dtype}");
                let map = Affine::new(rotation(90.0, square.shape), square.shape).unwrap();
                // Anti-clockwise, as seen on the screen.
                let turned = super::super::convert(&image(3, 3, &[3u8, 6, 9, 2, 5, 8, 1, 4, 7]), dtype);
                assert_eq!(warp(&square, square.shape, &map, how, ZERO.into()), turned, "{how:?} {dtype}");
            }
        }
    }

    #[test]
    fn nearest_halves_go_up_on_both_sides_of_zero() {
        let row = image(1, 3, &[10u8, 20, 30]);
        let out = resample(&row, 5, -1.0, 0.5, Interpolation::Nearest, Border::Constant(7.0));
        // Positions -1, -0.5, 0, 0.5 and 1.
        assert_eq!(out, image(1, 5, &[7u8, 10, 10, 20, 20]));
    }

    #[test]
    fn bilinear_interpolates_with_the_border_and_rounds_to_even() {
        let row = image(1, 3, &[10u8, 21, 30]);
        // Positions -1, -0.5, 0, ..., 3: 0, 5, 10, 15.5 -> 16, 21, 25.5 -> 26, 30, 15, 0.
        let out = resample(&row, 9, -1.0, 0.5, Interpolation::Bilinear, ZERO);
        assert_eq!(out, image(1, 9, &[0u8, 5, 10, 16, 21, 26, 30, 15, 0]));
        let out = resample(&row, 9, -1.0, 0.5, Interpolation::Bilinear, Border::Reflect101);
        assert_eq!(out, image(1, 9, &[21u8, 16, 10, 16, 21, 26, 30, 26, 21]));
    }

    #[test]
    fn bicubic_overshoots_and_saturates() {
        let row = image(1, 4, &[0u8, 0, 255, 255]);
        // Halfway the weights are -1/16, 9/16, 9/16, -1/16: at 0.5 the value is -1/16 * 255, at 2.5
        // it is 17/16 * 255.
        let out = resample(&row, 3, 0.5, 1.0, Interpolation::Bicubic, Border::Replicate);
        assert_eq!(out, image(1, 3, &[0u8, 128, 255]));
        let float = super::super::convert(&row, DType::F32);
        let out = resample(&float, 3, 0.5, 1.0, Interpolation::Bicubic, Border::Replicate);
        assert_eq!(out, image(1, 3, &[-255.0 / 16.0, 127.5, 255.0 * 17.0 / 16.0f32]));
    }

    #[test]
    fn large_integers_survive_interpolation() {
        let row = image(1, 2, &[2_147_483_647i32, 2_147_483_645]);
        let out = resample(&row, 2, 0.0, 0.5, Interpolation::Bilinear, Border::Replicate);
        assert_eq!(out, image(1, 2, &[2_147_483_647i32, 2_147_483_646]));
    }

    #[test]
    fn single_precision_weights_are_cut_to_24_bits() {
        // A quarter of the last of 24 bits beyond one half: cut off for f32, kept for f64.
        let position = 0.5 + 2f64.powi(-26);
        let row = |dtype| super::super::convert(&image(1, 2, &[0.0f64, 1.0]), dtype);
        let at = |dtype| resample(&row(dtype), 1, position, 1.0, Interpolation::Bilinear, Border::Replicate);
        assert_eq!(at(DType::F32), image(1, 1, &[0.5f32]));
        assert_eq!(at(DType::F64), image(1, 1, &[position]));
    }

    #[test]
    fn an_infinite_neighbour_of_weight_zero_makes_a_nan() {
        // A consequence of a fixed footprint: fma(0, inf - a, a) is NaN. Backends must not skip the
        // read.
        let row = image(1, 2, &[1.0f32, f32::INFINITY]);
        assert!(
            warp(&row, row.shape, &Affine::IDENTITY, Interpolation::Bilinear, ZERO.into()).at::<f32>(0, 0, 0).is_nan()
        );
    }

    #[test]
    fn mirror_images_and_transposition_work_plane_by_plane() {
        let two = Image::new(Shape::new(2, 2, 2), vec![1u16, 2, 3, 4, 5, 6, 7, 8]);
        let new = |v: [u16; 8]| Image::new(Shape::new(2, 2, 2), v.to_vec());
        assert_eq!(flip(&two, Flip::Horizontal), new([2, 1, 4, 3, 6, 5, 8, 7]));
        assert_eq!(flip(&two, Flip::Vertical), new([3, 4, 1, 2, 7, 8, 5, 6]));
        assert_eq!(flip(&two, Flip::Both), new([4, 3, 2, 1, 8, 7, 6, 5]));
        assert_eq!(transpose(&image(1, 3, &[1u8, 2, 3])), image(3, 1, &[1u8, 2, 3]));
        assert_eq!(transpose(&two), new([1, 3, 2, 4, 5, 7, 6, 8]));
    }
}
