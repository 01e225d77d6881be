//! Geometric operations: affine maps with interpolation, and flips.
//!
//! An affine map takes *output* positions to *input* positions. It is in fixed point with 32 fractional bits, so that
//! all backends compute identical positions in integer arithmetic.

use super::describe::{Accepts, OperationGroup, Parameter, Pattern, describe, description, optional, required};
use horus_base::dtype::Arithmetic;
use horus_base::position_map::PositionMap;
use horus_base::shape::{Axis, Shape, Window};

const HEIGHT: Parameter = required("height", Accepts::Count, "");
const WIDTH: Parameter = required("width", Accepts::Count, "");
const TOP: Parameter = required("top", Accepts::Count, "rows");
const LEFT: Parameter = required("left", Accepts::Count, "columns");
const INTERPOLATION: Parameter = optional("interpolation", Accepts::Choice(interpolations), "bilinear", "");
const OUTSIDE: Parameter = optional("border", Accepts::Border, "0", "border mode");

fn interpolations() -> Vec<&'static str> {
    Interpolation::ALL.map(Interpolation::name).to_vec()
}

describe! {
    ROTATE = description("rotate", OperationGroup::Geometry, Pattern::Geometric, "Rotation about the centre; quarter turns move whole pixels, and turn the size with them")
        .takes(&[required("degrees", Accepts::Number, "anti-clockwise"), INTERPOLATION, OUTSIDE, optional( "canvas", Accepts::Choice(|| vec!["auto", "keep", "grow"]), "auto", "its size; grow holds all corners, auto those of quarter turns", )])
        .elsewhere(&["ndi.rotate", "cv.warpAffine", "imageproc::geometric_transformations::rotate_about_center"])
        .differs("degrees, anti-clockwise as ndi (`reshape=False`) and OpenCV (`getRotationMatrix2D`); imageproc: radians, clockwise; the method keeps the size, the command may grow it")
        .example("rotate 30 grow");
    TRANSLATE = description("translate", OperationGroup::Geometry, Pattern::Geometric, "Translation, bilinear where the offsets are not whole; outside is 0")
        .takes(&[required("dy", Accepts::Number, "pixels down"), required("dx", Accepts::Number, "pixels to the right")])
        .elsewhere(&["ndi.shift", "cv.warpAffine", "imageproc::geometric_transformations::translate"])
        .differs("y before x")
        .example("translate -1.5 4");
    AFFINE = description("affine", OperationGroup::Geometry, Pattern::Geometric, "A general affine map; the size is kept")
        .takes(&[required("matrix", Accepts::Numbers, "xx,xy,x0,yx,yy,y0: x and y of the output to x and y of the input"), INTERPOLATION, OUTSIDE])
        .elsewhere(&["ndi.affine_transform", "cv.warpAffine(WARP_INVERSE_MAP)", "imageproc::geometric_transformations::warp"])
        .differs("output to input, as ndi; imageproc and `cv.warpAffine` take the opposite map; the method takes a size")
        .example("affine 1,0.2,0,0,1,0");
    FLIP = description("flip", OperationGroup::Geometry, Pattern::Geometric, "Mirrored")
        .takes(&[required("how", Accepts::Choice(|| vec!["horizontal", "vertical", "both"]), "horizontal swaps left and right")])
        .elsewhere(&["np.flip", "np.fliplr", "np.flipud", "cv.flip", "image::imageops::flip_horizontal", "image::imageops::flip_vertical"])
        .differs("along axes: `flip(Axis::Columns)` exchanges left and right")
        .example("flip horizontal");
    CROP = description("crop", OperationGroup::Geometry, Pattern::Geometric, "The rectangle from row `top` and column `left` on")
        .takes(&[TOP, LEFT, HEIGHT, WIDTH])
        .elsewhere(&["np: `a[y:y + h, x:x + w]`", "cv: `Mat(Rect(x, y, w, h))`", "image::imageops::crop"])
        .differs("top, left, height, width")
        .example("crop 2 3 8 9");
    STEP = description("step", OperationGroup::Geometry, Pattern::Geometric, "Every so many rows and columns, the first ones included")
        .takes(&[required("rows", Accepts::Count, ""), required("columns", Accepts::Count, "")])
        .elsewhere(&["np: `a[::k, ::l]`"])
        .example("step 2 3");
    PAD = description("pad", OperationGroup::Geometry, Pattern::Geometric, "Adds rows and columns on each side")
        .takes(&[TOP, required("bottom", Accepts::Count, "rows"), LEFT, required("right", Accepts::Count, "columns"), optional("border", Accepts::Border, "reflect101", "border mode")])
        .elsewhere(&["np.pad", "cv.copyMakeBorder"])
        .example("pad 1 2 3 4 wrap");
    SHIFT = description("shift", OperationGroup::Geometry, Pattern::Geometric, "The pixels so many levels, rows and columns away")
        .elsewhere(&["ndi.shift(order=0)", "np.roll"])
        .differs("whole pixels; levels, rows, columns");
}

/// Interpolation between pixels. Away from the edges all modes preserve constants (up to rounding), bilinear and
/// bicubic preserve ramps, and bicubic preserves parabolas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Interpolation {
    /// The nearest pixel (halves round up).
    Nearest,
    /// Linear in x, then in y: `lerp(a, b, t) = fma(t, b - a, a)`. The default.
    #[default]
    Bilinear,
    /// Cubic convolution over 4x4 pixels in x, then in y, with a = -0.5 (Keys 1981; Catmull-Rom),
    /// as in imageproc and Pillow: exact for polynomials of degree 2. OpenCV uses a = -0.75, which
    /// is sharper but distorts ramps. See [`cubic_weights`].
    Bicubic,
}

impl Interpolation {
    /// All interpolations, for tests of each.
    pub const ALL: [Interpolation; 3] = [Interpolation::Nearest, Interpolation::Bilinear, Interpolation::Bicubic];

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Interpolation::Nearest => "nearest",
            Interpolation::Bilinear => "bilinear",
            Interpolation::Bicubic => "bicubic",
        }
    }

    /// Cost per pixel in multiply-adds. Positions are 64-bit integers.
    pub const fn cost(self) -> f64 {
        match self {
            Interpolation::Nearest => 6.0,
            Interpolation::Bilinear => 14.0,
            Interpolation::Bicubic => 50.0,
        }
    }

    /// Pixels read before and after the integer part of a position.
    pub const fn support(self) -> (isize, isize) {
        match self {
            Interpolation::Nearest => (0, 1),
            Interpolation::Bilinear => (0, 1),
            Interpolation::Bicubic => (1, 2),
        }
    }
}

/// The weights of the four pixels around fraction `t` (between the second and the third), for a = -0.5, each evaluated
/// with `fma` in Horner form. Backends must follow these expressions exactly.
#[inline(always)]
pub fn cubic_weights<F: horus_base::dtype::Float>(t: F) -> [F; 4] {
    let c = |v: f64| F::from_f64(v);
    // |x| <= 1: (a + 2) x^3 - (a + 3) x^2 + 1;  1 < |x| < 2: a x^3 - 5a x^2 + 8a x - 4a.
    let near = |x: F| c(1.5).fma(x, c(-2.5)).mul(x).fma(x, c(1.0));
    let far = |x: F| c(-0.5).fma(x, c(2.5)).fma(x, c(-4.0)).fma(x, c(2.0));
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
    pub const IDENTITY: Affine = Affine { xx: Self::ONE, xy: 0, x0: 0, yx: 0, yy: Self::ONE, y0: 0 };
    /// One pixel in fixed point.
    const ONE: i64 = 1 << 32;

    /// Rows down and columns right of each source pixel, if the map is a translation by whole pixels.
    pub fn shift(&self) -> Option<[isize; 2]> {
        let Affine { xx, xy, x0, yx, yy, y0 } = *self;
        let still = (xx, xy, yx, yy) == (Self::ONE, 0, 0, Self::ONE) && x0 % Self::ONE == 0 && y0 % Self::ONE == 0;
        still.then_some([(y0 / Self::ONE) as isize, (x0 / Self::ONE) as isize])
    }

    /// The axes (rows, columns) along which the input is repeated, if the map is the identity along the others: an
    /// image of one row, one column or one pixel is broadcast.
    pub fn broadcast(&self) -> Option<[bool; 2]> {
        let Affine { xx, xy, x0, yx, yy, y0 } = *self;
        let whole = |v: i64| v == 0 || v == Self::ONE;
        let plain = (xy, x0, yx, y0) == (0, 0, 0, 0) && whole(xx) && whole(yy);
        (plain && (xx == 0 || yy == 0)).then_some([yy == 0, xx == 0])
    }

    /// Returns `true` if all rows or all columns of the output equal one row, column or pixel of the input.
    pub const fn repeats(&self) -> bool {
        (self.xx == 0 && self.yx == 0) || (self.xy == 0 && self.yy == 0)
    }

    /// The axis along which the map repeats the first row or column of its input unchanged; `None` for any other map.
    pub fn repeated(&self) -> Option<Axis> {
        let Affine { xx, xy, x0, yx, yy, y0 } = *self;
        match (xx, yy) {
            _ if (xy, x0, yx, y0) != (0, 0, 0, 0) => None,
            (Self::ONE, 0) => Some(Axis::Rows),
            (0, Self::ONE) => Some(Axis::Columns),
            _ => None,
        }
    }

    /// The rows down of each read row, if the map repeats the first column of its input.
    pub fn repeated_column(&self) -> Option<isize> {
        let Affine { xx, xy, x0, yx, yy, y0 } = *self;
        let is_column = (xx, xy, x0, yx, yy) == (0, 0, 0, 0, Self::ONE) && y0 % Self::ONE == 0;
        is_column.then_some((y0 / Self::ONE) as isize)
    }

    /// The map of a 2x3 matrix `[[xx, xy, x0], [yx, yy, y0]]`, for outputs up to `shape`. `None` if a coefficient is
    /// not finite or a position would leave the range of about 2^30 pixels.
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

    /// The map from the output's pixels to positions in the input.
    pub fn placed(&self) -> PositionMap {
        let row = |row: [i64; 3]| row.map(|v| v as f64 / Self::ONE as f64);
        PositionMap::of([row([self.xx, self.xy, self.x0]), row([self.yx, self.yy, self.y0])])
    }

    /// The input position of output pixel (`y`, `x`), as fixed-point `(y_in, x_in)`.
    #[inline(always)]
    pub fn at(&self, y: i64, x: i64) -> (i64, i64) {
        (self.yx * x + self.yy * y + self.y0, self.xx * x + self.xy * y + self.x0)
    }

    /// The input rows, before border handling, that output rows `rows` read, in an output of `width` columns.
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

    /// The input columns `left..right`, before border handling, that output rows `rows` read within input rows `block`,
    /// in an output of `width` columns. The range may be one or two columns too wide, never too narrow; it is empty if
    /// nothing is read.
    ///
    /// The positions fill a parallelogram. Within a row range it is widest at its corners or where its edges enter the
    /// range.
    pub fn columns(&self, rows: Window, width: usize, interpolation: Interpolation, block: Window) -> (isize, isize) {
        if rows.is_empty() || width == 0 || block.is_empty() {
            return (0, 0);
        }
        let (before, after) = interpolation.support();
        let pixels = |v: i64| v as f64 / 4_294_967_296.0;
        let corner = |y: isize, x: usize| {
            let (y, x) = self.at(y as i64, x as i64);
            (pixels(y), pixels(x))
        };
        let (first, last) = (rows.start, rows.end - 1);
        let corners = [corner(first, 0), corner(first, width - 1), corner(last, width - 1), corner(last, 0)];
        // Positions whose samples read some row of the block, plus one row for the rounding of this computation.
        let (top, bottom) = ((block.start - after - 1) as f64, (block.end + before + 1) as f64);
        let (mut lo, mut hi) = (f64::INFINITY, f64::NEG_INFINITY);
        for i in 0..4 {
            let ((y0, x0), (y1, x1)) = (corners[i], corners[(i + 1) % 4]);
            if y0.max(y1) < top || y0.min(y1) > bottom {
                continue;
            }
            for limit in [top, bottom] {
                let y = limit.clamp(y0.min(y1), y0.max(y1));
                let t = if y1 == y0 { 0.0 } else { (y - y0) / (y1 - y0) };
                let x = x0 + t * (x1 - x0);
                (lo, hi) = (lo.min(x), hi.max(x));
                if y1 == y0 {
                    (lo, hi) = (lo.min(x1), hi.max(x1));
                }
            }
        }
        if lo > hi {
            return (0, 0);
        }
        (lo.floor() as isize - before - 1, hi.floor() as isize + after + 2)
    }
}

/// A mirror image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flip {
    /// Left and right exchanged.
    Horizontal,
    /// Top and bottom exchanged.
    Vertical,
    /// Both: rotation by 180 degrees.
    Both,
}

impl Flip {
    /// The map from the pixels of a mirrored image of this shape to the original.
    pub fn placed(&self, of: Shape) -> PositionMap {
        let axis = |reversed: bool, n: usize| if reversed { (-1.0, n as f64 - 1.0) } else { (1.0, 0.0) };
        let ((x, x0), (y, y0)) = (axis(self.columns(), of.width), axis(self.rows(), of.height));
        PositionMap::of([[x, 0.0, x0], [0.0, y, y0]])
    }

    /// Returns `true` if columns are reversed.
    pub const fn columns(self) -> bool {
        matches!(self, Flip::Horizontal | Flip::Both)
    }

    /// Returns `true` if rows are reversed.
    pub const fn rows(self) -> bool {
        matches!(self, Flip::Vertical | Flip::Both)
    }
}

/// The affine map of `rotate(degrees)` about the centre of `shape`, anti-clockwise as seen on the
/// screen (`getRotationMatrix2D((w-1)/2, (h-1)/2, degrees, 1)`), as an output-to-input matrix.
pub fn rotation(degrees: f64, shape: Shape) -> [[f64; 3]; 2] {
    let (sin, cos) = exact_sin_cos(degrees);
    let cx = (shape.width as f64 - 1.0) / 2.0;
    let cy = (shape.height as f64 - 1.0) / 2.0;
    // OpenCV's forward matrix is [[c, s], [-s, c]] about the centre;
    // its inverse is [[c, -s], [s, c]].
    [[cos, -sin, cx - cos * cx + sin * cy], [sin, cos, cy - sin * cx - cos * cy]]
}

/// The sine and cosine of an angle in degrees, exact at multiples of 90.
pub fn exact_sin_cos(degrees: f64) -> (f64, f64) {
    match degrees.rem_euclid(360.0) {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        180.0 => (0.0, -1.0),
        270.0 => (-1.0, 0.0),
        _ => {
            let radians = degrees.to_radians();
            (Arithmetic::sin(radians), Arithmetic::cos(radians))
        }
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
    fn columns_hold_every_pixel_that_is_read_and_few_more() {
        let shape = Shape::new(40, 61, 1);
        let mut spared = 0;
        for (i, degrees) in [0.0, 1.0, 15.0, 45.0, 90.0, 100.0, 179.0, -30.0, 270.0].into_iter().enumerate() {
            let mut m = rotation(degrees, shape);
            m[i % 2][i % 2] *= 1.0 + 0.2 * i as f64; // not just rotations
            let map = Affine::new(m, shape).unwrap();
            for how in Interpolation::ALL {
                let (before, after) = how.support();
                for rows in [Window::new(0, 1), Window::new(0, 10), Window::new(17, 25), Window::new(0, 40)] {
                    for block in (-20..70).step_by(7).map(|y| Window::new(y, y + 7)) {
                        let (left, right) = map.columns(rows, shape.width, how, block);
                        spared += 61 - (right.min(61) - left.max(0)).clamp(0, 61);
                        for y in rows.start..rows.end {
                            for x in 0..shape.width {
                                let (sy, sx) = map.at(y as i64, x as i64);
                                // Nearest adds half a pixel first.
                                for (sy, sx) in [(sy, sx), (sy + (1 << 31), sx + (1 << 31))] {
                                    let (sy, sx) = ((sy >> 32) as isize, (sx >> 32) as isize);
                                    let read = Window::new(sy - before, sy + after + 1);
                                    if how != Interpolation::Nearest
                                        && sy != (map.at(y as i64, x as i64).0 >> 32) as isize
                                    {
                                        continue;
                                    }
                                    if !read.intersect(block).is_empty() {
                                        assert!(
                                            left <= sx - before && sx + after < right,
                                            "{degrees} {how:?} {rows:?} {block:?}: {sx} not in {left}..{right}"
                                        );
                                    }
                                }
                            }
                        }
                    }
                }
            }
        }
        assert!(spared > 0);
    }

    #[test]
    fn cubic_weights_interpolate() {
        assert_eq!(cubic_weights(0.0f64), [0.0, 1.0, 0.0, 0.0]);
        let w = cubic_weights(0.25f64);
        assert!((w.iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }
}
