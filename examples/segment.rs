//! Segments and measures vessels, without a watershed: `cargo run --release --example segment`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let grey = session.open("assets/vessels.png")?.luminance();
    let labels = segment(&grey);
    let parts = grey.by_label(&labels, 2);
    let (means, variances) = session.get_all((parts.mean(), parts.variance()))?;
    for (label, shape) in labels.by_label(&labels, 2).shapes().get()?.iter().enumerate() {
        let ((y, x), pixels, deviation) = (shape.centre, shape.pixels, variances[label].sqrt());
        println!("{label}: {pixels} pixels around ({y:.1}, {x:.1}), {:.3} +- {deviation:.3}", means[label]);
    }
    let (dense, size) = (density(&labels, 16), (grey.height(), grey.width()));
    let shown = dense.resize(size.0, size.1, Interpolation::Nearest).convert::<f32>();
    labels.gt(0).select(1.0, (shown * 1.5).min(1.0)).save("segment.png")?;
    Ok(())
}

/// 1 on vessels, 0 elsewhere: dark and narrow parts of the smoothed picture by Otsu's threshold, without specks and
/// gaps.
pub(crate) fn segment(image: &Image<f32>) -> Image<u8> {
    let dark = image.gauss(1.0).black_hat(&Footprint::disc(6));
    let cross = Footprint::cross(1);
    dark.gt(dark.otsu()).opening(&cross).closing(&cross).convert()
}

/// The share of vessels in each tile.
pub(crate) fn density(labels: &Image<u8>, size: usize) -> Image<f64> {
    labels.tiles(size, size).mean()
}
