//! Diffusion of heat in a plate: `cargo run --release --example heat`.

use std::ops::ControlFlow::Continue;

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let wires = samples::worms(&session, 192, 256).crop(0, 110, 192, 64);
    // Side by side: the initial state, and after 16, 32 and 48 steps.
    let mut times = Image::zeros(&session, (192, 256)).paste(&wires, 0, 0);
    session.iterate_watched(
        wires,
        48,
        |u| heat(u, 0.2),
        16,
        |steps, u| {
            times = times.paste(u, 0, steps as isize * 4);
            Ok(Continue(()))
        },
    )?;
    times.save("heat.png")?;
    Ok(())
}

/// A step of the heat equation, stable for a `rate` of up to 0.25. No heat leaves the plate.
pub(crate) fn heat(u: &Image<f32>, rate: f32) -> Image<f32> {
    let laplacian = Filter::sparse([(-1, 0), (0, -1), (0, 0), (0, 1), (1, 0)], [1.0, 1.0, -4.0, 1.0, 1.0]);
    u + u.with_border(Border::Replicate).correlate(&laplacian) * rate
}
