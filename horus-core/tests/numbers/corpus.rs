//! A fixed corpus: reductions, filters and warps of a picture and a volume of each pixel type, whose hashes are kept in
//! `tests/goldens/corpus.txt`. `horus-cuda-check --numbers` includes this file.

use horus_core::digest::Digest;
use horus_core::dtype::{DType, Element, Pixel};
use horus_core::error::Result;
use horus_core::image::{Image, Rank, Taps};
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
use horus_core::ops::resize::Resampling;
use horus_core::ops::sampling::Sampling;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use horus_core::{dispatch, filters};
use horus_testing::pixels::noise;
use std::hash::Hasher as _;

/// The kept hashes: for each program, one per type in the order of [`DType::ALL`].
pub(crate) const KEPT: &str = include_str!("../../../tests/goldens/corpus.txt");

/// The results of a program, as hashes.
#[derive(Default)]
struct ResultHashes(Vec<(&'static str, u64)>);

impl ResultHashes {
    fn image<T: Element>(&mut self, name: &'static str, image: &Image<T>) -> Result<()> {
        let (pixels, Shape { channels, .. }) = (image.to_vec()?, image.shape());
        // The hashes are of one channel after the other.
        let levels = pixels.chunks(image.shape().area() * channels);
        let planes = levels.flat_map(|level| (0..channels).flat_map(move |c| level.iter().skip(c).step_by(channels)));
        self.bits(name, planes.map(|v| v.stored()).map(|v| if v.to_f64().is_nan() { u64::MAX } else { v.bits() }));
        Ok(())
    }

    fn numbers(&mut self, name: &'static str, numbers: &[f64]) {
        self.bits(name, numbers.iter().map(|v| if v.is_nan() { u64::MAX } else { v.to_bits() }));
    }

    fn bits(&mut self, name: &'static str, bits: impl Iterator<Item = u64>) {
        let mut digest = Digest::default();
        bits.for_each(|word| digest.word(word));
        self.0.push((name, digest.finish()));
    }
}

/// Every program of the corpus on pixels of one type.
fn results<T: Pixel>(session: &Session) -> Result<Vec<(&'static str, u64)>> {
    let (mut found, shape) = (ResultHashes::default(), Shape::new(61, 83, 2));
    let colours = |seed| {
        let planes = noise::<T>(shape.len(), seed, false);
        let pixels: Vec<T> =
            (0..shape.len()).map(|i| planes[i % shape.channels * shape.area() + i / shape.channels]).collect();
        Image::from_slice(session, shape, &pixels)
    };
    let (given, other) = (colours(37), colours(38));
    let picture = given.with_border(Border::Reflect101);
    let plane = picture.channel(0);
    let mask = given.channel(1).gt(T::from_f64(given.channel(1).mean().get()?));

    // Pixels: saturation, rounding, functions.
    found.image("arithmetic", &(&(&given + &other) * &other - &(&given / &other)))?;
    found.image("functions", &given.exp().atan2(given.sin()).hypot(given.abs().log() + given.cos()))?;
    found.image("powers", &given.abs().pow(other.abs()).max(given.abs().sqrt()))?;
    found.image("to_f32", &given.convert::<f32>())?;
    found.image("to_u8", &given.convert::<u8>())?;
    found.image("to_unit", &given.to_unit())?;

    // Reductions.
    let one = [
        given.sum().get()?,
        given.mean().get()?.to_f64(),
        given.variance().get()?.to_f64(),
        given.min_value().get()?.to_f64(),
        given.max_value().get()?.to_f64(),
        given.percentile(37.5).get()?,
        given.otsu().get()?.to_f64(),
        given.over(mask.clone()).variance().get()?,
    ];
    found.numbers("statistics", &one);
    found.image("sums_of_rows", &given.over(Axis::Columns).sum())?;
    found.image("means_of_columns", &given.over(Axis::Rows).mean())?;
    found.image("running_sums", &given.over(Axis::Columns).cumsum())?;
    found.image("sums_of_tiles", &given.tiles(7, 9).variance())?;
    let histogram = given.histogram(19, -8.0, 200.0).get()?;
    found.numbers("histogram", &histogram.iter().map(|n| *n as f64).collect::<Vec<f64>>());
    let labels = mask.label(Connectivity::EDGES);
    found.image("labels", &labels)?;
    found.numbers("by_label", &given.channel(0).by_label(&labels, 40).variance().get()?);

    // Filters.
    found.image("gauss", &picture.gauss(1.3))?;
    found.image("gauss_uv", &picture.gauss_uv(0.5, 2.5, 1.2, 2, 0))?;
    found.image("gauss_2d", &picture.gauss_2d(0.5, 2.5, 1.2, 0, 2))?;
    found.image("sobel", &picture.sobel(Axis::Columns).hypot(picture.sobel(Axis::Rows)))?;
    found.image("laplace", &picture.with_border(Border::Wrap).laplace())?;
    let whole = Filter::dense(5, 4, (0..20).map(|i| f64::from(i % 7 - 3)).collect::<Vec<f64>>());
    found.image("whole_taps", &picture.with_border(Border::Constant(3.0)).correlate(&whole))?;
    let wide = Filter::dense(27, 21, (0..567).map(|i| f64::from(i % 13 - 4) / 64.0).collect::<Vec<f64>>());
    found.image("wide_taps", &picture.correlate(&wide))?;
    found.image("within", &picture.within(1e-3).gauss_2d(30.0, 7.0, 2.0, 0, 2))?;
    found.image("without", &picture.gauss_2d(30.0, 7.0, 2.0, 0, 2))?;
    found.image("box_mean", &picture.box_mean(9))?;
    found.image("median_5", &picture.median(5))?;
    found.image("rank", &picture.rank(&filters::Footprint::disc(4), Rank::Percent(20.0)))?;
    found.image("opening", &picture.opening(&filters::Footprint::disc(3)))?;
    let weights = Filter::dense(3, 3, [1.0, 2.0, 1.0, 2.0, 4.0, 2.0, 1.0, 2.0, 1.0]);
    let weighted = Generalized { window: weights, combine: Combine::Add, reduce: Reduce::Max };
    found.image("weighted", &picture.generalized(&weighted))?;
    found.image("reconstruction", &plane.min(given.channel(1)).reconstruct(&plane, Connectivity::FACES))?;
    found.image("distances", &mask.distances().euclidean::<f64>())?;

    // Warps.
    for (name, how) in [
        ("rotate_nearest", Interpolation::Nearest),
        ("rotate_bilinear", Interpolation::Bilinear),
        ("rotate_bicubic", Interpolation::Bicubic),
    ] {
        found.image(name, &picture.rotate(33.0, how))?;
    }
    let shear = [[0.8, 0.3, -2.25], [-0.1, 1.1, 4.5]];
    found.image("affine", &picture.with_border(Border::Replicate).affine(shear, (50, 70), Interpolation::Bilinear))?;
    found.image("resize_lanczos", &picture.resize(40, 51, Resampling::Lanczos))?;
    found.image("resize_area", &picture.resize(20, 31, Resampling::Area))?;
    found.image("resize_bicubic", &picture.resize(100, 120, Interpolation::Bicubic))?;
    found.image("pyramid", &picture.pyramid_down().pyramid_up(61, 83))?;
    let at = Shape::new(61, 83, 1);
    let (y, x) = (Image::<f64>::index(session, at, Axis::Rows), Image::<f64>::index(session, at, Axis::Columns));
    let coefficients = picture.spline_coefficients([Axis::Rows, Axis::Columns], Sampling::Spline3);
    let swirl = [&(&y * 0.9 + (&x * 0.3).sin()), &(&x * 1.1 - 2.5)];
    found.image("splines", &coefficients.with_border(Border::Reflect101).remap(swirl, Sampling::Spline3))?;

    // A volume.
    let deep = Shape { depth: 7, ..Shape::new(19, 23, 1) };
    let volume = Image::from_slice(session, deep, &noise::<T>(deep.len(), 39, false)).with_border(Border::Reflect);
    found.image("volume_gauss", &volume.gauss((0.8, 1.1, 1.6)))?;
    found.image("volume_median", &volume.median(3))?;
    found.image("volume_depth", &volume.correlate(Taps::Depth(&[0.25, 0.5, 0.25])))?;
    found.image("volume_sums", &volume.over(Axis::Depth).sum())?;
    Ok(found.0)
}

/// The rows of `tests/goldens/corpus.txt`, as this session computes them.
pub(crate) fn rows(session: &Session) -> Result<Vec<String>> {
    let mut rows: Vec<String> = Vec::new();
    for dtype in DType::ALL {
        let found = dispatch!(dtype, T => results::<T>(session))?;
        rows.resize_with(found.len(), String::new);
        for (row, (name, hash)) in rows.iter_mut().zip(found) {
            if row.is_empty() {
                row.push_str(name);
            }
            row.push_str(&format!(" {hash:016x}"));
        }
    }
    Ok(rows)
}

/// Asserts that rows are those kept.
///
/// # Errors
/// Names the first program that differs.
pub(crate) fn compared(rows: &[String]) -> std::result::Result<(), String> {
    let kept: Vec<&str> = KEPT.lines().filter(|line| !line.starts_with('#')).collect();
    match rows.iter().zip(&kept).find(|(row, kept)| row != kept) {
        Some((row, kept)) => Err(format!("bits changed:\n{row}\nwere\n{kept}")),
        None if rows.len() != kept.len() => Err(format!("{} programs; {} are kept", rows.len(), kept.len())),
        None => Ok(()),
    }
}
