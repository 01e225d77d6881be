//! The vegetation index of two satellite bands (Rouse et al. 1974): `cargo run --release --example ndvi`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    // Vegetation cover from nothing to forest, and the counts of the two bands; a strip was not seen.
    let cover = 1.0 - session.open("assets/vessels.png")?.to_unit().channel(1).crop(60, 200, 144, 192);
    let cover = (cover.gauss(1.0) - 0.35) * 2.0;
    let [y, x] = [Axis::Rows, Axis::Columns].map(|axis| Image::<f32>::index(&session, (144, 192), axis));
    let seen = (&y - &x * 0.2).absdiff(70.0).gt(3.0);
    let band = |counts: Image<f32>| seen.select(counts, 0.0).convert::<u16>();
    let (red, near) = (band(2200.0 - &cover * 1900.0), band(&cover * 3500.0 + 1800.0));
    let fields = (y / 48.0).floor() * 4.0 + (x / 48.0).floor();

    let index = ndvi(&red, &near);
    let means = by_field(&index, &(red.gt(0) & near.gt(0)), &fields.convert(), 12).get()?;
    if session.rank() == 0 {
        println!("fields: {means:.2?}");
    }
    // From brown to yellow, where the index is 0, to green.
    let level = ((index + 1.0) * 127.5).convert::<u8>();
    let colour = [[0.6, 1.0, 0.0], [0.4, 1.0, 0.5], [0.2, 0.6, 0.1]].map(|[low, middle, high]: [f32; 3]| {
        let ramp = |at: f32| {
            if at < 0.5 { low + (middle - low) * at * 2.0 } else { middle + (high - middle) * (at * 2.0 - 1.0) }
        };
        level.lookup(&(0..256).map(|i| ramp(i as f32 / 255.0)).collect::<Vec<_>>())
    });
    seen.select(Image::stack(&session, colour, Axis::Channels), 0.0).save("ndvi.png")?;
    Ok(())
}

/// The difference of near infrared and red divided by their sum, in -1..=1; 0 where neither was seen.
pub(crate) fn ndvi(red: &Image<u16>, near: &Image<u16>) -> Image<f32> {
    // Differences of `u16` would saturate at 0.
    let (red, near) = (red.convert::<f32>(), near.convert::<f32>());
    let sum = &near + &red;
    sum.gt(0.0).select((near - red) / &sum, 0.0)
}

/// The mean of the visible part of each field `0..count`.
pub(crate) fn by_field(index: &Image<f32>, seen: &Image<bool>, fields: &Image<u8>, count: usize) -> Value<Vec<f64>> {
    index.by_label(&seen.select(fields, u8::MAX), count).mean()
}
