//! The deconvolution of Richardson (1972) and Lucy (1974): `cargo run --release --example richardson_lucy`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.to_unit().channel(1);
    let psf = filters::gauss_2d(30.0, 5.0, 1.0, 0, 0);
    let blurred = image.correlate(&psf);
    let sharp = richardson_lucy(&blurred, &psf, 40)?;
    // Blurred on the left, restored on the right.
    let both = sharp.paste(&blurred.crop(0, 0, 384, 300), 0, 0).crop(60, 172, 192, 256);
    both.save_with("richardson_lucy.png", &SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() })?;
    Ok(())
}

/// The most likely source of `blurred` under convolution with `psf`, after so many steps. It is dark beyond the frame.
pub(crate) fn richardson_lucy(blurred: &Image<f32>, psf: &Filter, steps: usize) -> Result<Image<f32>> {
    let border = Border::Constant(0.0);
    let grey = Image::constant(blurred.session(), (blurred.height(), blurred.width()), 0.5);
    let step = |estimate: &Image<f32>| {
        let ratio = blurred / (estimate.with_border(border).convolve(psf) + 1e-12);
        estimate * ratio.with_border(border).correlate(psf)
    };
    let estimate = blurred.session().iterate(grey, steps, step)?.state;
    Ok(estimate.clamp(0.0, 1.0))
}
