//! A threshold with hysteresis: `cargo run --release --example hysteresis`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance().gauss(1.0);
    let dark = image.black_hat(&Footprint::disc(6));
    let (weak, strong) = (dark.gt(0.03), dark.gt(0.075));
    let vessels = hysteresis(&weak, &strong)?;
    // White is kept, grey is rejected.
    vessels.select(1.0, weak.select(0.35, Image::zeros(dark.session(), dark.shape()))).save("hysteresis.png")?;
    Ok(())
}

/// The parts of `weak` that are connected, by the sides of pixels, to a pixel of `strong`, which grows within `weak`
/// until nothing changes.
pub(crate) fn hysteresis(weak: &Image<bool>, strong: &Image<bool>) -> Result<Image<bool>> {
    let cross = Footprint::disc(1);
    // A changed pixel of a mask changes by 1.
    let until = Until::below(1.0, usize::MAX);
    Ok(weak.session().iterate(weak & strong, until, |kept| kept.dilate(&cross) & weak)?.state)
}
