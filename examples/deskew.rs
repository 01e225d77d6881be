//! Rotates a scanned page upright: `cargo run --release --example deskew`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    // Lines of words, scanned askew.
    let page = Image::from_fn(&session, 144, 192, |y, x| {
        let (line, word) = (y / 12, (x + y / 12 * 5) / 7);
        let letter = (x * 7 + line * 3 + y % 3) % 5 > 1;
        let inside = (12..132).contains(&y) && (16..176).contains(&x);
        if inside && y % 12 < 6 && (word * 31 + line * 17) % 6 > 0 && letter { 0.1 } else { 0.9 }
    });
    let scan = page.with_border(Border::Constant(0.9)).rotate(-4.25, Interpolation::Bilinear);

    let angles: Vec<f64> = (-32..=32).map(|step| f64::from(step) * 0.25).collect();
    let sharpness = profiles(&scan, &angles)?;
    let best = (0..angles.len()).max_by(|a, b| sharpness[*a].total_cmp(&sharpness[*b])).expect("angles");
    if session.rank() == 0 {
        println!("turned by {} degrees", angles[best]);
    }
    let upright = scan.with_border(Border::Constant(0.9)).rotate(angles[best], Interpolation::Bicubic);
    // The scan on the left, upright on the right.
    upright.paste(&scan.crop(0, 0, 144, 96), 0, 0).save("deskew.png")?;
    Ok(())
}

/// The variance of row sums of the page rotated by each of the angles, in degrees: largest where its lines lie along
/// rows.
pub(crate) fn profiles(page: &Image<f32>, angles: &[f64]) -> Result<Vec<f64>> {
    let ink = 1.0 - page;
    let variances =
        angles.iter().map(|angle| ink.rotate(*angle, Interpolation::Bilinear).over(Axis::Columns).sum().variance());
    // All angles in one evaluation.
    page.session().get_all(variances.collect::<Vec<_>>())
}
