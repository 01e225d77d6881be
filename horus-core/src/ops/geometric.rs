//! Geometric operations: affine maps with interpolation, flips and transposition.
//!
//! An affine map takes *output* pixel positions to *input* positions. It is held in fixed point with 32 fractional
//! bits, so that every backend computes the very same positions with integer arithmetic.

use crate::shape::{Shape, Window};

/// How an image is sampled between its pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// The nearest pixel (halves round up).
    Nearest,
    /// Linear in x, then in y: `lerp(a, b, t) = fma(t, b - a, a)`. The default.
    #[default]
    Bilinear,
    /// Cubic convolution over 4x4 pixels with a = -0.75 (as OpenCV), in x, then in y; see [`cubic_weights`].
    Bicubic,
}

impl Interpolation {
    /// All interpolations, for sweeps.
    pub const ALL: [Interpolation; 3] = [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic];

    /// Pixels read before and after the integer part of a position.
    pub const fn support(self) -> (isize, isize) {
        match self {
            Interpolation::Nearest => (0, 1),
            Interpolation::Bilinear => (0, 1),
            Interpolation::Bicubic => (1, 2),
        }
    }
}

/// Weights of the four pixels around fraction `t` (between the second and the third), a = -0.75, each computed with
/// `fma` in Horner form; a backend must follow these expressions exactly.
#[inline(always)]
pub fn cubic_weights<F: crate::dtype::Float>(t: F) -> [F; 4] {
    let c = |v: f64| F::from_f64(v);
    // |x| <= 1: (a + 2) x^3 - (a + 3) x^2 + 1;  1 < |x| < 2: a x^3 - 5a x^2 + 8a x - 4a.
    let near = |x: F| c(1.25).fma(x, c(-2.25)).mul(x).fma(x, c(1.0));
    let far = |x: F| c(-0.75).fma(x, c(3.75)).fma(x, c(-6.0)).fma(x, c(3.0));
    let one = F::ONE;
    [far(one.add(t)), near(t), near(one.sub(t)), far(c(2.0).sub(t))]
}

/// An affine map from output to input positions, in fixed point with 32 fractional bits:
/// `x_in = xx * x + xy * y + x0`, `y_in = yx * x + yy * y + y0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Affine {
    /// Input x per output x.
    pub xx: i64,
    /// Input x per output y.
    pub xy: i64,
    /// Input x of output (0, 0).
    pub x0: i64,
    /// Input y per output x.
    pub yx: i64,
    /// Input y per output y.
    pub yy: i64,
    /// Input y of output (0, 0).
    pub y0: i64,
}

impl Affine {
    /// The identity.
    pub const IDENTITY: Affine = Affine { xx: 1 << 32, xy: 0, x0: 0, yx: 0, yy: 1 << 32, y0: 0 };

    /// From a 2x3 matrix `[[xx, xy, x0], [yx, yy, y0]]`, for outputs up to `shape`. `None` if a coefficient is not
    /// finite or a position would leave the range of about 2^30 pixels.
    pub fn new(m: [[f64; 3]; 2], shape: Shape) -> Option<Affine> {
        let far = |r: [f64; 3]| r[0].abs() * shape.width as f64 + r[1].abs() * shape.height as f64 + r[2].abs();
        if !(far(m[0]) < (1u64 << 30) as f64 && far(m[1]) < (1u64 << 30) as f64) {
            return None;
        }
        let fix = |v: f64| (v * 4_294_967_296.0).round_ties_even() as i64;
        Some(Affine {
            xx: fix(m[0][0]),
            xy: fix(m[0][1]),
            x0: fix(m[0][2]),
            yx: fix(m[1][0]),
            yy: fix(m[1][1]),
            y0: fix(m[1][2]),
        })
    }

    /// Input position of output pixel (`y`, `x`) as fixed-point `(y_in, x_in)`.
    #[inline(always)]
    pub fn at(&self, y: i64, x: i64) -> (i64, i64) {
        (self.yx * x + self.yy * y + self.y0, self.xx * x + self.xy * y + self.x0)
    }

    /// The input rows (before any border handling) that output rows `rows` of an output of `width` columns read.
    pub fn footprint(&self, rows: Window, width: usize, interpolation: Interpolation) -> Window {
        if rows.is_empty() || width == 0 {
            return Window::new(0, 0);
        }
        let corners = [rows.start, rows.end - 1]
            .into_iter()
            .flat_map(|y| [0, width as i64 - 1].map(|x| (self.at(y as i64, x).0 >> 32) as isize));
        let (lo, hi) = corners.fold((isize::MAX, isize::MIN), |(lo, hi), y| (lo.min(y), hi.max(y)));
        let (before, after) = interpolation.support();
        Window::new(lo - before, hi + after + 1)
    }
}

/// A mirror image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flip {
    /// Left and right exchanged.
    Horizontal,
    /// Top and bottom exchanged.
    Vertical,
    /// Both: a half turn.
    Both,
}

impl Flip {
    /// Whether columns are reversed.
    pub const fn columns(self) -> bool {
        matches!(self, Flip::Horizontal | Flip::Both)
    }

    /// Whether rows are reversed.
    pub const fn rows(self) -> bool {
        matches!(self, Flip::Vertical | Flip::Both)
    }
}

/// The affine map of `rotate(degrees)` about the centre of `shape`, anti-clockwise as seen on the screen
/// (`getRotationMatrix2D((w-1)/2, (h-1)/2, degrees, 1)`), as an output-to-input matrix.
pub fn rotation(degrees: f64, shape: Shape) -> [[f64; 3]; 2] {
    let (sin, cos) = exact_sin_cos(degrees);
    let cx = (shape.width as f64 - 1.0) / 2.0;
    let cy = (shape.height as f64 - 1.0) / 2.0;
    // OpenCV's forward matrix is [[c, s], [-s, c]] about the centre; its inverse is [[c, -s], [s, c]].
    [[cos, -sin, cx - cos * cx + sin * cy], [sin, cos, cy - sin * cx - cos * cy]]
}

/// Sine and cosine of an angle in degrees, exact at multiples of 90.
pub fn exact_sin_cos(degrees: f64) -> (f64, f64) {
    match degrees.rem_euclid(360.0) {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        180.0 => (0.0, -1.0),
        270.0 => (-1.0, 0.0),
        _ => degrees.to_radians().sin_cos(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotation_by_zero_is_the_identity() {
        let shape = Shape::new(7, 12, 1);
        assert_eq!(Affine::new(rotation(0.0, shape), shape), Some(Affine::IDENTITY));
    }

    #[test]
    fn a_quarter_turn_maps_corners_onto_corners() {
        let shape = Shape::new(5, 5, 1);
        let a = Affine::new(rotation(90.0, shape), shape).unwrap();
        // Anti-clockwise: the output's top-left pixel comes from the input's top-right.
        assert_eq!(a.at(0, 0), (0, 4 << 32));
        assert_eq!(a.at(0, 4), (4 << 32, 4 << 32));
    }

    #[test]
    fn positions_out_of_range_are_refused() {
        let shape = Shape::new(8, 8, 1);
        assert_eq!(Affine::new([[1e10, 0.0, 0.0], [0.0, 1.0, 0.0]], shape), None);
        assert_eq!(Affine::new([[f64::NAN, 0.0, 0.0], [0.0, 1.0, 0.0]], shape), None);
    }

    #[test]
    fn cubic_weights_interpolate() {
        assert_eq!(cubic_weights(0.0f64), [0.0, 1.0, 0.0, 0.0]);
        let w = cubic_weights(0.25f64);
        assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }
}
