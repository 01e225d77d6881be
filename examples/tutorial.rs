//! The program of the book's tutorial, which marks blood vessels: `cargo run --release --example tutorial`.

use horus::prelude::*;

fn mark(session: &Session) -> Result<()> {
    let clean = session.open("assets/vessels.png")?.luminance().median(5);
    let light = clean.gauss(8.0);
    let vessels = (light - clean).gt(0.03);
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
