//! The edge detector of Canny (1986): `cargo run --release --example canny`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();
    canny(&image, 2.0, 0.03, 0.08).save("canny.png")?;
    Ok(())
}
