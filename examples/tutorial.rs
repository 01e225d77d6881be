//! The program of the book's tutorial, which marks blood vessels: `cargo run --release --example tutorial`.

use horus::prelude::*;

/// The pixels that are darker than the light around them.
pub(crate) fn vessels(image: Image<f32>) -> Image<bool> {
    let clean = image.median(5);
    let light = clean.gauss(8.0);
    (light - clean).gt(0.03)
}

pub(crate) fn mark(session: &Session) -> Result<()> {
    let image = session.open("assets/vessels.png")?.luminance();
    let vessels = vessels(image);
    let count = vessels.count().get()?;
    if session.rank() == 0 {
        println!("{count} pixels of vessels");
    }
    vessels.save("tutorial.png")?;
    Ok(())
}

fn main() -> Result<()> {
    let mut builder = Session::builder();
    if std::env::args().any(|argument| argument == "--explain") && horus::ranks()?.rank() == 0 {
        builder = builder.explain(|plan| println!("{plan}"));
    }
    mark(&builder.build()?)
}
