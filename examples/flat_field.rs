//! Dark-frame and flat-field correction, for any camera: `cargo run --release --example flat_field`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let scene = session.open("assets/vessels.png")?.luminance().crop(60, 200, 144, 192);
    // A camera with vignetting, dust, a dead column, and some dark current.
    let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| Image::<f32>::index(&session, (144, 192), axis));
    let dust = (&y - 40.0).hypot(&x - 130.0).lt(7.0) | (&y - 100.0).hypot(&x - 40.0).lt(4.0);
    let light = 1.0 - (&y - 72.0).hypot(&x - 96.0).square() / 24_000.0;
    let falloff = x.eq(70.0).select(0.0, dust.select(&light * 0.5, &light));
    let frame = |light: &Image<f32>, seed: usize| {
        let hash = |y: usize, x: usize| ((y * 192 + x + seed).wrapping_mul(0x9e37_79b9) >> 12) % 512;
        let current = Image::from_fn(&session, 144, 192, |y, x| (300 + (y * x) % 200 + hash(y, x)) as f32);
        (light * 20_000.0 + current).convert::<u16>()
    };
    let black = Image::zeros(&session, (144, 192));
    let darks: Vec<_> = (0..5).map(|i| frame(&black, 30_000 * i)).collect();
    let flats: Vec<_> = (5..10).map(|i| frame(&falloff, 30_000 * i)).collect();
    let raw = frame(&(scene * falloff), 300_000);
    let even = correct(&raw, &darks, &flats) / 20_000.0;
    // The raw frame on the left, corrected on the right.
    let taken = raw.convert::<f32>() / 20_000.0;
    even.paste(&taken.crop(0, 0, 144, 96), 0, 0).save("flat_field.png")?;
    Ok(())
}

/// Subtracts the dark current and divides by the flat field, whose mean becomes 1, as if the light were even.
pub(crate) fn correct(raw: &Image<u16>, darks: &[Image<u16>], flats: &[Image<u16>]) -> Image<f32> {
    // The median of several frames is less noisy than one. Differences of `u16` would saturate at 0.
    let master = |frames: &[Image<u16>]| Image::of_all(raw.session(), frames).median().convert::<f32>();
    let dark = master(darks);
    let flat = master(flats) - &dark;
    let even = (raw.convert::<f32>() - dark) * flat.mean() / flat.max(1.0);
    // Nearly blind pixels take the median of their neighbourhood.
    flat.lt(flat.mean() * 0.1).select(even.median(3), &even)
}
