//! The Rust code of the book. `tests/guide.rs` runs each function and holds that every block of the book stands here, or in an
//! example, line by line.

use std::time::Instant;

use horus::prelude::*;

/// A chapter's name, and its programs.
pub(crate) type Chapter = (&'static str, fn() -> Result<()>);
/// All chapters that have programs.
pub(crate) const CHAPTERS: [Chapter; 11] = [
    ("introduction", introduction),
    ("crate, the tour", twelve_lines),
    ("crate", pictures),
    ("lazy", lazy),
    ("borders", borders),
    ("types", types),
    ("own", own),
    ("tolerance", tolerance),
    ("machines", machines),
    ("tuning", tuning),
    ("explain", explain),
];

fn introduction() -> Result<()> {
    use horus::prelude::*;

    fn main() -> Result<()> {
        let session = Session::new()?;
        let image = session.open("assets/vessels.png")?.luminance();
        let sharp = (&image + (&image - image.gauss(3.0)) * 1.5).clamp(0.0, 1.0);
        sharp.save("sharp.png")?;
        Ok(())
    }

    main()
}

#[rustfmt::skip]
fn twelve_lines() -> Result<()> {
    let session = Session::new()?;                              // a GPU, the CPU, or all ranks of mpirun
    let image = session.open("assets/vessels.png")?.luminance();   // files and sessions fail at once
    let smooth = image.gauss(2.0);                              // recording never fails
    let unit = (&smooth - smooth.min_value()) / (smooth.max_value() - smooth.min_value());
    let bright = unit.gt(0.5) & !unit.sobel(Axis::Columns).abs().lt(0.1);  // masks are images of bool
    let mut shown = bright.select(&unit, 0.0);                  // images and scalars
    shown *= [1.0, 0.8, 0.6];                                   // a value per channel; extents of 1 are repeated
    let (count, mean) = session.get_all((bright.count(), unit.over(&bright).mean()))?;   // one evaluation
    if session.rank() == 0 {
        println!("{count} pixels, {mean:.3} on average");       // get on every rank, print on one
    }
    shown.save("out.png")?;                                     // 0..=1 to the full range of the file
    Ok(())
}

fn pictures() -> Result<()> {
    let session = Session::new()?;
    let image = session.open("assets/vessels.png")?.luminance();

    let pixels: horus::ndarray::Array2<f32> = image.to_array()?;
    let again = Image::from_array(&session, pixels.view());
    assert_eq!(again.absdiff(&image).max_value().get()?, 0.0);

    let wrong = image.gauss(-1.0);
    let error = wrong.mean().get().unwrap_err();
    assert!(error.to_string().contains("sigma is -1; it must be positive and finite"));

    let marked = image.lt(0.2).select([1.0, 0.2, 0.2], &image);
    marked.save("marked.png")?;

    let paths = ["assets/vessels.png", "assets/small.png"];
    for item in session.series(paths, |picture| picture.luminance().gauss(2.0).mean()).values() {
        println!("{:.3}", item.result?);
    }
    Ok(())
}

fn lazy() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 64, 96);
    let smooth = image.gauss(2.0);
    let edges = smooth.sobel(Axis::Columns).hypot(smooth.sobel(Axis::Rows));
    assert_eq!(session.stats().evaluations, 0);
    let strongest = edges.max_value().get()?;
    assert_eq!(session.stats().evaluations, 1);

    let marked = edges.gt(strongest / 2.0).select(1.0, &image);

    let unit = (&image - image.min_value()) / (image.max_value() - image.min_value());

    let until = Until::below(1e-3, 1000);
    let heat = session.iterate(image.clone(), until, |u| u + u.laplace() * 0.2)?;
    println!("{} steps", heat.steps);
    assert!((1..1000).contains(&heat.steps));

    session.start();
    let other = image.mean().get()?;
    assert!(other > 0.0 && marked.max_value().get()? == 1.0 && unit.min_value().get()? == 0.0);
    Ok(())
}

fn borders() -> Result<()> {
    let session = Session::new()?;
    let image = Image::from_slice(&session, (1, 4), &[1.0f32, 2.0, 3.0, 4.0]);
    let mirrored = image.box_mean(3);
    let repeated = image.with_border(Border::Replicate).box_mean(3);
    assert!((mirrored.pixel((0, 0))? - 5.0 / 3.0).abs() < 1e-6);
    assert!((repeated.pixel((0, 0))? - 4.0 / 3.0).abs() < 1e-6);

    let white = Image::constant(&session, (9, 9), 1.0f32);
    assert_eq!(white.rotate(45.0, Interpolation::Bilinear).pixel((0, 0))?, 0.0);
    let mirrored = white.with_border(Border::Reflect101).rotate(45.0, Interpolation::Bilinear);
    assert!((mirrored.pixel((0, 0))? - 1.0).abs() < 1e-6);
    Ok(())
}

fn own() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 64, 96);
    let knee = 0.5; // |v| if v < knee { v } else { knee + (v - knee) / 4.0 }
    let soft = image.lt(knee).select(&image, (&image - knee) * 0.25 + knee);

    let bytes = Image::from_fn(&session, 64, 96, |y, x| (y * x % 256) as u8);
    let gamma: Vec<f32> = (0..256).map(|v| (v as f32 / 255.0).powf(0.45)).collect();
    let bright = bytes.lookup(&gamma);

    let y = Image::<f32>::index(&session, (64, 96), Axis::Rows);
    let x = Image::<f32>::index(&session, (64, 96), Axis::Columns);
    let vignette = ((y - 31.5).square() + (x - 47.5).square()) * -1e-4 + 1.0;
    let shaded = &image * vignette;

    let (values, softened) = (image.to_vec()?, soft.to_vec()?);
    for (v, s) in values.iter().zip(&softened) {
        let wanted = if *v < knee { *v } else { knee + (v - knee) / 4.0 };
        assert!((s - wanted).abs() < 1e-6);
    }
    assert_eq!(bright.pixel((1, 51))?, gamma[51]);
    assert!((shaded.pixel((0, 0))? - values[0] * (1.0 - 1e-4 * (31.5 * 31.5 + 47.5 * 47.5))).abs() < 1e-6);
    Ok(())
}

fn tolerance() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 300, 300);
    let template = filters::gauss_2d(30.0, 7.0, 2.0, 0, 2); // 43x43 taps
    let near = image.within(1e-5).correlate(&template);
    let magnitude: f64 = template.taps().iter().map(|tap| tap.abs()).sum();
    let off = f64::from(near.absdiff(image.correlate(&template)).max_value().get()?);
    assert!(off <= 2e-5 * f64::from(image.abs().max_value().get()?) * magnitude);
    Ok(())
}

fn types() -> Result<()> {
    let session = Session::new()?;
    let image = Image::from_slice(&session, (1, 3), &[10u8, 200, 250]);
    assert_eq!((&image + 100u8).to_vec()?, [110, 255, 255]);
    let smooth: Image<f32> = image.box_mean(3);
    assert_eq!(image.mean().get()?, 460.0 / 3.0);
    drop(smooth);

    assert_eq!(Image::from_slice(&session, (1, 3), &[0.5f32, 2.5, 300.0]).convert::<u8>().to_vec()?, [0, 2, 255]);
    assert!((image.to_unit().pixel((0, 2))? - 250.0 / 255.0).abs() < 1e-6);

    let bright = image.gt(100u8) & image.lt(220u8);
    assert_eq!(bright.count().get()?, 1);
    assert_eq!(bright.select(&image, 0u8).to_vec()?, [0, 200, 0]);
    Ok(())
}

fn machines() -> Result<()> {
    let session = Session::builder().device("cpu").threads(2).build()?;
    let image = session.open("assets/vessels.png")?.luminance();
    assert!(session.device_name().starts_with("CPU"));

    let mut frame = session.pixels::<f32>(48, 64, 1)?;
    frame.fill(0.25);
    let mut kept = session.pixels::<f32>(48, 64, 1)?;
    let result = Image::from_pixels(&session, frame.clone()).gauss(2.0);
    result.read_into(&mut kept)?;
    assert!((kept[0] - 0.25).abs() < 1e-6);

    let mean = image.mean().get()?; // on every rank
    if session.rank() == 0 {
        println!("mean {mean:.3}"); // on one
    }

    let image = session.open("assets/vessels.png")?.to_unit();
    let part = image.gauss(2.0).crop(100, 100, 50, 50);
    part.save("part.png")?;

    let options = OpenOptions { region: Some(Region::new(100, 200, 50, 60)), ..OpenOptions::default() };
    let window = AnyImage::open_with(&session, "assets/vessels.png", &options)?.luminance();
    assert_eq!((window.height(), window.width()), (50, 60));
    Ok(())
}

fn tuning() -> Result<()> {
    let session = Session::new()?;
    let image = samples::worms(&session, 256, 256);
    session.evaluate()?;
    let start = Instant::now();
    let smooth = image.gauss(2.0);
    session.evaluate()?;
    println!("{:.1} ms", start.elapsed().as_secs_f64() * 1e3);
    println!("{} launches", session.stats().made.launches);
    drop(smooth);
    Ok(())
}

fn explain() -> Result<()> {
    let session = Session::builder().device("cpu").explain(|plan| println!("{plan}")).build()?;
    let image = session.open("assets/vessels.png")?.luminance();
    image.gauss(2.0).sobel(Axis::Columns).save("edges.png")?;
    Ok(())
}
