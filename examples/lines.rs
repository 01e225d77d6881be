//! Finds lines in a picture: `cargo run --release --example lines`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    let mut lines = Image::<f32>::zeros(&session, image.shape());
    for theta in [0.0, 45.0, 90.0, 135.0] {
        let turned = image.with_border(Border::Reflect101).rotate(theta, Interpolation::Bilinear);
        let across = turned.gauss_xy(5.0, 2.0, 0, 2);
        let smooth = turned.gauss_xy(5.0, 2.0, 0, 0);
        let contrast = across.absdiv(smooth, 1e-3) * 40.0;
        lines = lines.max(contrast.rotate(-theta, Interpolation::Bilinear));
    }
    println!("strongest response: {}", lines.max_value().get()?);
    lines.save("lines.png")?;
    Ok(())
}
