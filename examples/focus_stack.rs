//! One sharp picture from several with different focus: `cargo run --release --example focus_stack`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let scene = session.open("assets/vessels.png")?.to_unit().crop(60, 220, 144, 192);
    // Blur grows with the distance from the plane in focus.
    let depth = Image::<f32>::index(&session, Shape::new(144, 192, 1), Axis::Columns) / 64.0;
    let frames = [0.5, 1.5, 2.5].map(|focus| {
        let away = depth.absdiff(focus);
        away.lt(0.5).select(&scene, away.lt(1.0).select(scene.gauss(2.0), scene.gauss(3.5)))
    });
    let (sharp, _) = focus_stack(&frames, 2.0);
    // The first frame above, the stack below.
    sharp.paste(&frames[0].crop(0, 0, 72, 192), 0, 0).save("focus_stack.png")?;
    Ok(())
}

/// Each pixel of the frame that is sharpest there, and the number of that frame: the depth. Sharpness is the square of
/// the Laplacian, smoothed by a Gaussian of `sigma`.
pub(crate) fn focus_stack(frames: &[Image<f32>], sigma: f64) -> (Image<f32>, Image<f32>) {
    let sharpness = |frame: &Image<f32>| frame.luminance().laplace().square().gauss(sigma);
    let (mut stack, mut sharpest) = (frames[0].clone(), sharpness(&frames[0]));
    let mut depth = Image::zeros(sharpest.session(), sharpest.shape());
    for (number, frame) in frames.iter().enumerate().skip(1) {
        let here = sharpness(frame);
        let sharper = here.gt(&sharpest);
        stack = sharper.select(frame, stack);
        depth = sharper.select(number as f32, depth);
        sharpest = sharpest.max(here);
    }
    (stack, depth)
}
