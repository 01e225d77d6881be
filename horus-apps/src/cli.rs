//! The command line shared by the detectors.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{ArgAction, Parser};
use horus::prelude::*;

use crate::detectors::Params;

/// The finest step between orientations, in degrees.
const FINEST_STEP: f64 = 0.01;

/// Finds lines in a picture.
#[derive(Parser, Clone, Debug)]
#[command(version, about, allow_negative_numbers = true)]
pub struct Args {
    /// Picture to read: PNG, JPEG, TIFF, PNM, BMP or npy; colour is reduced to luminance; float pictures should be in 0..=1
    pub input: PathBuf,

    /// File to write: png, jpg, tif, pgm or bmp, scaled to the range of the response; npy for the exact values. It may be
    /// the input: it is replaced when all is computed
    pub output: PathBuf,

    /// Page of a TIFF file to read, the first being 0
    #[arg(long, value_name = "N")]
    pub page: Option<usize>,

    /// Refuse pictures of more pixels
    #[arg(long, value_name = "N", default_value_t = OpenOptions::default().max_pixels)]
    pub max_pixels: u64,

    /// Angle between orientations
    #[arg(long, value_name = "DEG", default_value = "15", value_parser = parse_step)]
    pub theta_step: f64,

    /// Scales along the line, in pixels
    #[arg(long, value_name = "LIST", default_value = "3,5,7", value_delimiter = ',', value_parser = parse_sigma)]
    pub sigma_u: Vec<f64>,

    /// Scales across the line, in pixels
    #[arg(long, value_name = "LIST", default_value = "1,2,3", value_delimiter = ',', value_parser = parse_sigma)]
    pub sigma_v: Vec<f64>,

    /// Worker threads per rank (all cores, divided among the ranks that share them, if not given)
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub threads: Option<NonZeroUsize>,

    /// How much is optimised: naive, lazy or fused (HORUS_MODE if not given, else fused)
    #[arg(long)]
    pub mode: Option<Mode>,

    /// Device to run on: auto, cpu, cuda or cuda:N (HORUS_DEVICE if not given, else auto)
    #[arg(long)]
    pub device: Option<String>,

    /// Bits per sample of the output; 32 writes a float TIFF, unscaled
    #[arg(long, value_name = "BITS", default_value = "8", value_parser = parse_depth)]
    pub depth: Depth,

    /// Print the plan: each step, its image, and why it is needed (with -vv, what each pass made of the program, too)
    #[arg(long)]
    pub explain: bool,

    /// Write a trace of all ranks for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Print what N ranks would exchange, and compute and write nothing
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub dry_run_ranks: Option<NonZeroUsize>,

    /// For --dry-run-ranks: time of a message before its first byte, in microseconds
    #[arg(long, value_name = "US", default_value = "5", value_parser = parse_latency)]
    pub latency: f64,

    /// For --dry-run-ranks: bytes that a rank sends or receives, in GB per second
    #[arg(long, value_name = "GB/S", default_value = "20", value_parser = parse_bandwidth)]
    pub bandwidth: f64,

    /// Print nothing but errors
    #[arg(long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say which device was taken and where the time went; twice for debugging
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

impl Args {
    /// What the detector searches.
    pub fn params(&self) -> Params {
        Params { theta_step: self.theta_step, sigma_u: self.sigma_u.clone(), sigma_v: self.sigma_v.clone() }
    }

    /// How long messages take in a dry run.
    pub fn link(&self) -> Link {
        Link { latency: self.latency * 1e-6, bandwidth: self.bandwidth * 1e9 }
    }

    /// How the picture is read.
    pub fn open_options(&self) -> OpenOptions {
        OpenOptions { page: self.page, max_pixels: self.max_pixels }
    }

    /// How the response is saved.
    pub fn save_options(&self) -> SaveOptions {
        SaveOptions { depth: self.depth, scaling: Scaling::Range }
    }

    /// The least severe messages to log.
    pub fn log_level(&self) -> log::LevelFilter {
        match (self.quiet, self.verbose) {
            (true, _) => log::LevelFilter::Error,
            (false, 0) => log::LevelFilter::Warn,
            (false, 1) => log::LevelFilter::Info,
            (false, _) => log::LevelFilter::Debug,
        }
    }
}

fn parse_step(text: &str) -> Result<f64, String> {
    let step: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (FINEST_STEP..=180.0).contains(&step) {
        return Ok(step);
    }
    Err(format!("the step must be at least {FINEST_STEP} degrees and at most 180"))
}

fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a whole number from 1 on".to_owned())
}

fn parse_sigma(text: &str) -> Result<f64, String> {
    let sigma: f64 = text.trim().parse().map_err(|_| "not a number".to_owned())?;
    if sigma > 0.0 && sigma.is_finite() {
        return Ok(sigma);
    }
    Err("a scale must be positive and finite".to_owned())
}

fn parse_latency(text: &str) -> Result<f64, String> {
    let latency: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if latency >= 0.0 && latency.is_finite() {
        return Ok(latency);
    }
    Err("a latency must be finite and not negative".to_owned())
}

fn parse_bandwidth(text: &str) -> Result<f64, String> {
    let bandwidth: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if bandwidth > 0.0 && bandwidth.is_finite() {
        return Ok(bandwidth);
    }
    Err("a bandwidth must be positive and finite".to_owned())
}

fn parse_depth(text: &str) -> Result<Depth, String> {
    match text {
        "8" => Ok(Depth::Eight),
        "16" => Ok(Depth::Sixteen),
        "32" => Ok(Depth::Float),
        _ => Err("8, 16 or 32".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(options: &[&str]) -> Result<Args, String> {
        let words = ["convrot", "in.png", "out.png"].iter().chain(options);
        Args::try_parse_from(words).map_err(|e| e.to_string())
    }

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_thesis() {
        let args = parse(&[]).unwrap();
        assert_eq!(args.params(), Params::default());
        assert_eq!((args.depth, args.mode, args.device), (Depth::Eight, None, None));
    }

    #[test]
    fn lists_and_modes_are_parsed() {
        let args = parse(&["--sigma-u", "2.5, 4", "--sigma-v=1", "--mode", "lazy", "--depth", "16", "-vv"]).unwrap();
        assert_eq!((args.sigma_u.as_slice(), args.sigma_v.as_slice()), ([2.5, 4.0].as_slice(), [1.0].as_slice()));
        assert_eq!((args.mode, args.depth), (Some(Mode::Lazy), Depth::Sixteen));
        assert_eq!(parse(&[]).unwrap().open_options(), OpenOptions::default());
        let options = parse(&["--page", "2", "--max-pixels", "99"]).unwrap().open_options();
        assert_eq!(options, OpenOptions { page: Some(2), max_pixels: 99 });
        assert_eq!(args.log_level(), log::LevelFilter::Debug);
    }

    #[test]
    fn numbers_that_make_no_sense_are_refused_with_a_reason() {
        for step in ["0", "-15", "NaN", "inf", "0.001", "200", "x"] {
            assert!(parse(&["--theta-step", step]).is_err(), "{step}");
        }
        for sigma in ["0", "-1", "NaN", "inf", "3,,5", ""] {
            assert!(parse(&["--sigma-u", sigma]).unwrap_err().contains("--sigma-u"), "{sigma}");
        }
        assert!(parse(&["--theta-step", "-15"]).unwrap_err().contains("at least 0.01 degrees"));
        assert!(parse(&["--threads", "0"]).is_err());
        assert!(parse(&["--mode", "quick"]).unwrap_err().contains("naive"));
        assert!(parse(&["--depth", "12"]).unwrap_err().contains("8, 16 or 32"));
        assert!(parse(&["--dry-run-ranks", "0"]).is_err());
        assert!(parse(&["--bandwidth", "0"]).unwrap_err().contains("positive"));
        assert!(parse(&["--latency", "-1"]).unwrap_err().contains("not negative"));
        assert!(parse(&["--quiet", "-v"]).is_err());
        assert!(parse(&["--page", "-1"]).is_err());
    }
}
