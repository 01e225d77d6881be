//! Rotates and shifts a picture onto another (Lucas and Kanade 1981): `cargo run --release --example registration`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    let fixed = image.crop(60, 200, 144, 192);
    let moving = image.with_border(Border::Reflect101).rotate(3.0, Interpolation::Bicubic).crop(56, 207, 144, 192);
    let motion = register(&fixed, &moving, &[6.0, 3.0, 1.0])?;
    // Red and cyan where they differ: unregistered on the left, registered on the right.
    let both = |other: &Image<f32>| Image::stack(&session, [&fixed, other, other], Axis::Channels);
    both(&moved(&moving, motion)).paste(&both(&moving).crop(0, 0, 144, 96), 0, 0).save("registration.png")?;
    Ok(())
}

/// The picture sampled at positions rotated about the upper left corner, in radians, then shifted down and right.
pub(crate) fn moved(image: &Image<f32>, [turn, down, right]: [f64; 3]) -> Image<f32> {
    let map = [[turn.cos(), -turn.sin(), right], [turn.sin(), turn.cos(), down]];
    image.with_border(Border::Constant(-1.0)).affine(map, (image.height(), image.width()), Interpolation::Bilinear)
}

/// The motion of `moving` onto `fixed` with the least squared differences: Newton's steps, under ever narrower Gaussians.
pub(crate) fn register(fixed: &Image<f32>, moving: &Image<f32>, sigmas: &[f64]) -> Result<[f64; 3]> {
    let [mut turn, mut down, mut right] = [0.0; 3];
    let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| Image::index(fixed.session(), fixed.shape(), axis));
    for sigma in sigmas.iter().flat_map(|sigma| [*sigma; 10]) {
        let there = moved(&moving.gauss(sigma), [turn, down, right]);
        let seen = there.ge(0.0).erode(&Footprint::cross(1));
        let (gy, gx) = (there.sobel(Axis::Rows) / 8.0, there.sobel(Axis::Columns) / 8.0);
        let slopes = [&gy * &x - &gx * &y, gy, gx].map(|slope| seen.select(slope, 0.0));
        let sums = |other: &Image<f32>| slopes.each_ref().map(|slope| (slope * other).sum());
        let values = (slopes.each_ref().map(sums), sums(&(fixed.gauss(sigma) - there)));
        let (rows, change) = fixed.session().get_all(values)?;
        let solved = |i: usize| det(change, rows[(i + 1) % 3], rows[(i + 2) % 3]) / det(rows[0], rows[1], rows[2]);
        let [a, b, c] = [0, 1, 2].map(solved); // Cramer's rule
        (down, right) = (down + b * turn.cos() + c * turn.sin(), right + c * turn.cos() - b * turn.sin());
        turn += a;
    }
    Ok([turn, down, right])
}

fn det(a: [f64; 3], b: [f64; 3], c: [f64; 3]) -> f64 {
    (0..3).map(|i| a[i] * (b[(i + 1) % 3] * c[(i + 2) % 3] - b[(i + 2) % 3] * c[(i + 1) % 3])).sum()
}
