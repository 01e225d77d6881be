//! `horus compare A B`: the difference of two pictures, with the exit status of `cmp`.

use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use horus::prelude::*;
use serde_json::{Map, json};

use super::CommandError;
use super::value::largest;
use crate::batch::open;
use crate::caller::Caller;
use crate::execution::Execution;
use crate::report::{Printer, count, describe_picture};

/// Side of the windows of SSIM, in pixels.
const WINDOW: usize = 7;

/// Compares two pictures: the number of samples that differ, the largest difference and its place, the peak signal-to-noise
/// ratio (PSNR), and the structural similarity (SSIM). The status is 0 if they are equal, 1 if they differ, 2 if they cannot be
/// compared
#[derive(Parser, Debug)]
#[command(name = "horus compare", bin_name = "horus compare", version, allow_negative_numbers = true)]
struct CompareArgs {
    /// A picture (PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy; a Zarr store, if built with Zarr)
    #[arg(value_name = "A")]
    first: PathBuf,

    /// The picture to compare with it
    #[arg(value_name = "B")]
    second: PathBuf,

    /// Largest difference of a pixel up to which pictures are taken as equal
    #[arg(long, value_name = "DIFFERENCE", default_value = "0", value_parser = not_negative)]
    within: f64,

    /// The number that stands for white, in decibels and SSIM (default: the largest number of an integer type; of floats 1, or
    /// the range of A's numbers where some lie outside of 0..=1)
    #[arg(long, value_name = "NUMBER", value_parser = positive)]
    peak: Option<f64>,

    /// Page of a TIFF file, or time of a Zarr store, counted from 0
    #[arg(long, value_name = "N")]
    page: Option<usize>,

    /// Read volumes: all pages of a TIFF file as levels, or the first axis of a three-dimensional npy array as the depth
    #[arg(long)]
    volume: bool,

    /// Print one object of JSON
    #[arg(long)]
    json: bool,

    /// Print nothing: the status tells
    #[arg(long, conflicts_with = "json")]
    quiet: bool,

    /// Options of execution.
    #[command(flatten)]
    execution: Execution,
}

fn not_negative(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value >= 0.0 { Ok(value) } else { Err("a difference must not be negative".into()) }
}

fn positive(text: &str) -> Result<f64, String> {
    let value: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err("it must be positive and finite".into()) }
}

/// The command, for its help.
pub(super) fn command() -> clap::Command {
    CompareArgs::command()
}

/// Runs `compare A B` if the words are this command; returns its text, and `true` if the pictures are equal.
pub(super) fn asked(caller: &Arc<Caller>) -> Option<Result<(String, bool), CommandError>> {
    (caller.words().first()? == "compare").then(|| {
        let args = CompareArgs::try_parse_from(caller.words())?;
        Ok(compared(caller, &args)?)
    })
}

/// The text, and `true` if the pictures are equal within the requested bound.
fn compared(caller: &Arc<Caller>, args: &CompareArgs) -> Result<(String, bool)> {
    // Plans go to stderr if a program reads stdout, or if nothing else is printed.
    let printer = Arc::new(if args.json || args.quiet { Printer::on_stderr(caller) } else { Printer::of(caller) });
    let session = caller.session_of(&args.execution, move |plan| printer.print(&plan))?;
    let options = OpenOptions { page: args.page, volume: args.volume, ..OpenOptions::default() };
    let a = open(&session, &args.first, &options)?;
    let b = open(&session, &args.second, &options)?;
    let names = format!("{} {}", args.first.display(), args.second.display());
    let told = |picture: &AnyImage| describe_picture(picture.shape(), picture.dtype());
    let same_type = a.dtype() == b.dtype();
    if a.shape() != b.shape() {
        let text = format!("{names}: {} and {}\n", told(&a), told(&b));
        let object = json!({ "equal": false, "a": extents(a.shape(), a.dtype()), "b": extents(b.shape(), b.dtype()) });
        return Ok((printed(args, text, object), false));
    }
    let found = Difference::of(&session, &a, &b, args.peak)?;
    let alike = (same_type || args.within > 0.0) && found.largest() <= args.within;
    let object = found.object(same_type, &a, &b);
    let mut text = if same_type { String::new() } else { format!("{names}: {} and {}\n", a.dtype(), b.dtype()) };
    text += &format!("{names}: {found}\n");
    Ok((printed(args, text, object), alike))
}

fn printed(args: &CompareArgs, text: String, object: serde_json::Value) -> String {
    match (args.quiet, args.json) {
        (true, _) => String::new(),
        (false, true) => format!("{object}\n"),
        (false, false) => text,
    }
}

/// Extents and type, for JSON.
pub(super) fn extents(shape: Shape, dtype: DType) -> serde_json::Value {
    let Shape { depth, height, width, channels, .. } = shape;
    json!({ "width": width, "height": height, "levels": depth, "channels": channels, "type": dtype.name() })
}

/// The difference of two pictures of one size.
struct Difference {
    pixels: usize,
    /// Number of pixels that differ; a NaN equals a NaN.
    different: u64,
    /// Number of pixels that are NaN in one picture only.
    unlike: u64,
    /// The largest difference of two numbers, and the first level, row, column and channel that has it.
    most: f64,
    at: Option<[usize; 4]>,
    volume: bool,
    /// Peak signal-to-noise ratio in decibels; infinite for pictures without a difference.
    psnr: f64,
    /// `None` for pictures smaller than a window.
    ssim: Option<f64>,
}

impl Difference {
    fn of(session: &Session, a: &AnyImage, b: &AnyImage, peak: Option<f64>) -> Result<Difference> {
        let (x, y) = (a.convert::<f64>(), b.convert::<f64>());
        let (no_x, no_y) = (x.ne(&x), y.ne(&y));
        let different = x.ne(&y) & !(&no_x & &no_y);
        let unlike = &no_x ^ &no_y;
        let numbers = &different & &!&unlike;
        let distance = numbers.select((&x - &y).abs(), 0.0);
        let shape = x.shape();
        let measured = (
            (different.count(), unlike.count(), distance.max_value(), distance.argmax()),
            ((&distance * &distance).mean(), x.min_value(), x.max_value()),
        );
        let ((different, unlike, most, at), (square, low, high)) = session.get_all(measured)?;
        let peak = peak.unwrap_or(match a.dtype() {
            DType::F32 | DType::F64 if low >= 0.0 && high <= 1.0 => 1.0,
            // Not without any number, or with one only: white is 1 then.
            DType::F32 | DType::F64 if high > low && (high - low).is_finite() => high - low,
            DType::F32 | DType::F64 => 1.0,
            integer => largest(integer),
        });
        let enough = shape.height >= WINDOW && shape.width >= WINDOW;
        let ssim = if enough { Some(similarity(&x, &y, peak).get()?) } else { None };
        Ok(Difference {
            pixels: shape.len(),
            different,
            unlike,
            most,
            at: at.filter(|_| most > 0.0),
            volume: shape.depth > 1,
            psnr: 10.0 * (peak * peak / square).log10(),
            ssim,
        })
    }

    /// The largest difference; a NaN is infinitely far from a number.
    fn largest(&self) -> f64 {
        if self.unlike > 0 { f64::INFINITY } else { self.most }
    }

    fn object(&self, same_type: bool, a: &AnyImage, b: &AnyImage) -> serde_json::Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: serde_json::Value| object.insert(name.to_owned(), value);
        put("equal", json!(same_type && self.different == 0));
        put("a", extents(a.shape(), a.dtype()));
        put("b", extents(b.shape(), b.dtype()));
        put("different", json!(self.different));
        put("nan_in_one", json!(self.unlike));
        put("largest", json!(self.most));
        put("at", json!(self.at));
        // Infinite numbers are null in JSON.
        put("psnr", json!(self.psnr));
        put("ssim", json!(self.ssim));
        object.into()
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.different == 0 {
            return write!(f, "equal");
        }
        let share = 100.0 * self.different as f64 / self.pixels as f64;
        write!(f, "{} of {} differ ({share:.3} %)", self.different, count(self.pixels, "sample"))?;
        if self.unlike > 0 {
            write!(f, ", {} NaN in one picture only", self.unlike)?;
        }
        if let Some([level, row, column, channel]) = self.at {
            let level = if self.volume { format!("level {level}, ") } else { String::new() };
            write!(f, ", by {} at most, at {level}row {row}, column {column}, channel {channel}", self.most)?;
        }
        write!(f, "; PSNR {:.2} dB", self.psnr)?;
        self.ssim.map_or(Ok(()), |ssim| write!(f, ", SSIM {ssim:.6}"))
    }
}

/// The mean structural similarity (Wang et al., "Image quality assessment", IEEE Transactions on Image Processing 13, 2004) of
/// each plane, in windows of 7x7 pixels that lie inside, with the covariance of samples, as scikit-image's default is.
fn similarity(x: &Image<f64>, y: &Image<f64>, peak: f64) -> Value<f64> {
    let mean = |image: &Image<f64>| image.box_mean((WINDOW, WINDOW));
    let samples = (WINDOW * WINDOW) as f64;
    let unbiased = samples / (samples - 1.0);
    let (c1, c2) = ((0.01 * peak).powi(2), (0.03 * peak).powi(2));
    let (ux, uy) = (mean(x), mean(y));
    let vx = (mean(&(x * x)) - &ux * &ux) * unbiased;
    let vy = (mean(&(y * y)) - &uy * &uy) * unbiased;
    let vxy = (mean(&(x * y)) - &ux * &uy) * unbiased;
    let above = (&ux * &uy * 2.0 + c1) * (vxy * 2.0 + c2);
    let below = (&ux * &ux + &uy * &uy + c1) * (vx + vy + c2);
    let side = WINDOW / 2;
    (above / below).crop(side, side, x.height() - 2 * side, x.width() - 2 * side).mean()
}
