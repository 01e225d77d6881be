//! Moving objects in front of a running mean: `cargo run --release --example background_subtraction`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let scene = session.open("assets/vessels.png")?.luminance().crop(100, 0, 192, 256);
    let worm = samples::worms(&session, 192, 256).crop(0, 70, 100, 50);
    let mut background = scene.clone();
    for time in 0..60 {
        // A film: the picture, and a worm that crosses it.
        let frame = scene.max(Image::zeros(scene.session(), scene.shape()).paste(&worm, 40, 4 * time - 50));
        let moving = foreground(&mut background, &frame, 0.1, 0.05);
        if time == 40 {
            moving.select([0.0, 1.0, 0.0], frame).save("background_subtraction.png")?;
        }
        // Each frame is evaluated before the next: only the background is kept.
        session.evaluate()?;
    }
    Ok(())
}

/// Pixels of a frame that differ by more than `threshold` from the background, which is then updated at `rate`.
pub(crate) fn foreground(background: &mut Image<f32>, frame: &Image<f32>, threshold: f32, rate: f32) -> Image<bool> {
    let moving = frame.absdiff(&*background).gt(threshold).opening(&Footprint::cross(1));
    *background = &*background * (1.0 - rate) + frame * rate;
    moving
}
