//! The options common to all programs over pictures.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args};
use horus::prelude::*;
use horus_core::io::{Format, Orientation};
use horus_core::machine::Machine;

use crate::execution::{Execution, ExplainForm, parse_count};

/// Options of a program over pictures; flatten them into its command line.
#[derive(Args, Clone, Debug)]
pub struct BatchOptions {
    /// Write DIR/NAME.png for each picture DIR2/NAME.EXT; the directory is created if it is missing
    #[arg(long, value_name = "DIR")]
    pub out_dir: Option<PathBuf>,

    /// Format to write: png, jpg, tif, pbm, pgm, ppm, pnm, pfm, bmp, qoi, exr, webp or npy (with --out-dir
    /// png if not given, else as OUTPUT's extension says)
    #[arg(long, value_name = "NAME", value_parser = parse_format)]
    pub format: Option<String>,

    /// Also read the pictures listed in a file, one path per line, or each ended by a zero byte as
    /// written by find -print0 (- for stdin); requires --out-dir
    #[arg(long, value_name = "LIST", requires = "out_dir")]
    pub files_from: Option<PathBuf>,

    /// Skip pictures whose output exists, to resume an interrupted series
    #[arg(long, requires = "out_dir")]
    pub skip_existing: bool,

    /// End the run between two steps after this many seconds
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub deadline: Option<Duration>,

    /// Run again on the CPU, in naive mode, or on one thread of the CPU (cpu, naive, 1), check that
    /// both results have the same bits, and print the user-perceived speedup with the share of each
    /// part
    #[arg(long, value_name = "WHAT", conflicts_with_all = ["out_dir", "dry_run_ranks"])]
    pub compare: Option<Comparison>,

    /// Read volumes: all pages of a TIFF file as levels, or the first axis of a three-dimensional
    /// npy array as the depth
    #[arg(long)]
    pub volume: bool,

    /// Page of a TIFF file, or time of a Zarr store, to read, counted from 0
    #[arg(long, value_name = "N")]
    pub page: Option<usize>,

    /// Reject pictures with more pixels
    #[arg(long, value_name = "N", default_value_t = OpenOptions::default().max_pixels)]
    pub max_pixels: u64,

    /// Read pictures on demand; see [`OpenOptions::on_demand`].
    #[arg(skip)]
    pub later: Option<bool>,

    /// Orientation stored in a file (EXIF, TIFF): apply rotates the picture upright, keep leaves
    /// rows and columns as stored
    #[arg(long, value_name = "HOW", default_value = "apply", value_parser = parse_orientation)]
    pub orientation: Orientation,

    /// Options of execution.
    #[command(flatten)]
    pub execution: Execution,

    /// Bits per sample of the output; 32 writes a float TIFF, unscaled
    #[arg(long, value_name = "BITS", default_value = "8", value_parser = parse_depth)]
    pub depth: Depth,

    /// Quality of JPEG output, 1 to 100 (default: 95); below 90, colours have half the rows and
    /// columns of the brightness
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub quality: Option<u8>,

    /// Values outside the range of the output, which are clipped to it: warn reports their number,
    /// error writes no file, allow reports nothing
    #[arg(long, value_name = "HOW", default_value = "warn", value_parser = parse_clipping)]
    pub clipping: Clipping,

    /// Tiles of TIFF output: the length of their sides, a multiple of 16 (default: strips); chunks
    /// of a Zarr store, of any length
    #[arg(long, value_name = "PIXELS", value_parser = parse_count)]
    pub tile: Option<NonZeroUsize>,

    /// Compression of TIFF output, and of a Zarr store: none, deflate, lzw (TIFF only) or zstd
    #[arg(long, value_name = "NAME", default_value = "none")]
    pub compression: Compression,

    /// Sizes of a Zarr store, or of a TIFF file, which is a cloud optimized GeoTIFF then: each is half
    /// as high and wide as the one before
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub sizes: Option<NonZeroUsize>,

    /// Pixels of smaller sizes, for each four: average, mode (the most frequent) or nearest (the first) (default: mode of
    /// masks, of 32-bit integers, as labels are, and of indices of a colour table, average of others)
    #[arg(long, value_name = "HOW", requires = "sizes")]
    pub resampling: Option<Downsampling>,

    /// Side of a pixel of a Zarr store, in micrometres
    #[arg(long, value_name = "UM", value_parser = parse_side)]
    pub pixel_size: Option<f64>,

    /// Write a trace of all ranks for chrome://tracing or Perfetto
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Write a page of HTML about the run: the program and what it became, times predicted and
    /// measured, memory over time, transfers and their reasons
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,

    /// Show thumbnails of the picture and of the result in the page of --report
    #[arg(long, requires = "report")]
    pub report_images: bool,

    /// A page of an earlier run, which --report shows beside this one
    #[arg(long, value_name = "FILE", requires = "report")]
    pub report_beside: Option<PathBuf>,

    /// Print the result's memory, file reads, time and regions without computing or writing
    /// anything
    #[arg(long, conflicts_with_all = ["out_dir", "compare", "dry_run_ranks"])]
    pub dry_run: bool,

    /// Print what N ranks would exchange, the time that they would take, and the step that limits
    /// it, without computing or writing anything
    #[arg(long, value_name = "N", value_parser = parse_count, conflicts_with = "out_dir")]
    pub dry_run_ranks: Option<NonZeroUsize>,

    /// For --dry-run-ranks: machines that are not here, such as h200x8-ib: a device (h200, h100,
    /// cpu16), the ranks on each host, and the network (ib, eth) (default: machines like this one)
    #[arg(long, value_name = "NAME", value_parser = Machine::named, requires = "dry_run_ranks")]
    pub machine: Option<(Machine, usize)>,

    /// For --dry-run-ranks: number of ranks per host (default: that of --machine, or 1)
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub ranks_per_host: Option<NonZeroUsize>,

    /// For --dry-run-ranks: latency of a message between hosts, in microseconds (default: the
    /// machine's profile)
    #[arg(long, value_name = "US", value_parser = parse_latency)]
    pub latency: Option<f64>,

    /// For --dry-run-ranks: bandwidth of a rank between hosts, in GB per second (default: the
    /// machine's profile)
    #[arg(long, value_name = "GB/S", value_parser = parse_bandwidth)]
    pub bandwidth: Option<f64>,

    /// Print nothing but errors
    #[arg(long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print the chosen device and where the time went; twice for debugging, which also logs the
    /// passes of --explain
    #[arg(short, long, action = ArgAction::Count)]
    pub verbose: u8,
}

/// The other run of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Comparison {
    /// All threads of the CPU.
    Cpu,
    /// The same device in naive mode: every operation on its own, with all its transfers.
    Naive,
    /// One thread of the CPU.
    #[value(name = "1")]
    One,
}

impl BatchOptions {
    /// The ranks of a dry run.
    pub fn cluster(&self, ranks: NonZeroUsize) -> Cluster {
        let known = Link::default();
        let network = (self.latency.is_some() || self.bandwidth.is_some()).then(|| Link {
            latency: self.latency.map_or(known.latency, |us| us * 1e-6),
            bandwidth: self.bandwidth.map_or(known.bandwidth, |gb| gb * 1e9),
        });
        let named = self.machine.as_ref().map_or(1, |(_, on_each_host)| *on_each_host);
        let on_each_host = self.ranks_per_host.map_or(named, NonZeroUsize::get);
        let machine = self.machine.as_ref().map(|(machine, _)| machine.clone());
        Cluster { ranks: ranks.get(), on_each_host, network, machine }
    }

    /// Options for saving results with this scaling.
    pub fn save_options(&self, scaling: Scaling) -> SaveOptions {
        let tile = self.tile.map(|side| (side.get(), side.get()));
        SaveOptions {
            depth: self.depth,
            scaling,
            tile,
            compression: self.compression,
            quality: self.quality,
            clipping: self.clipping,
            sizes: self.sizes.map_or(1, NonZeroUsize::get),
            resampling: self.resampling,
            nodata: None,
        }
    }

    /// Options for reading pictures.
    pub fn open_options(&self) -> OpenOptions {
        OpenOptions {
            page: self.page,
            volume: self.volume,
            max_pixels: self.max_pixels,
            orientation: self.orientation,
            on_demand: self.later,
            ..OpenOptions::default()
        }
    }

    /// Returns `true` if the run reports what its session does, which a session does from its beginning only.
    pub(crate) fn observes(&self) -> bool {
        self.verbose > 0 || self.execution.explain.is_some() || self.trace.is_some() || self.report.is_some()
    }

    /// Returns `true` if the run prints nothing about itself.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet || self.draws()
    }

    /// Returns `true` if the run prints drawings of its plans.
    pub(crate) fn draws(&self) -> bool {
        self.execution.explain == Some(ExplainForm::Svg)
    }

    /// The least severe messages to log.
    pub fn log_level(&self) -> log::LevelFilter {
        level(self.quiet, self.verbose)
    }
}

/// The least severe messages to log.
pub fn level(quiet: bool, verbose: u8) -> log::LevelFilter {
    match (quiet, verbose) {
        (true, _) => log::LevelFilter::Error,
        (false, 0) => log::LevelFilter::Warn,
        (false, 1) => log::LevelFilter::Info,
        (false, _) => log::LevelFilter::Debug,
    }
}

fn parse_format(text: &str) -> Result<String, String> {
    let name = text.to_ascii_lowercase();
    if Format::named(&name).is_ok() { Ok(name) } else { Err(Format::names()) }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    let wrong = || "seconds must be finite and not negative".to_owned();
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

fn parse_orientation(text: &str) -> Result<Orientation, String> {
    match text {
        "apply" => Ok(Orientation::Apply),
        "keep" => Ok(Orientation::Keep),
        _ => Err("apply or keep".to_owned()),
    }
}

fn parse_latency(text: &str) -> Result<f64, String> {
    let latency: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if latency >= 0.0 && latency.is_finite() {
        return Ok(latency);
    }
    Err("a latency must be finite and not negative".to_owned())
}

fn parse_side(text: &str) -> Result<f64, String> {
    let side: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if side > 0.0 && side.is_finite() {
        return Ok(side);
    }
    Err("the side of a pixel must be positive and finite".to_owned())
}

fn parse_bandwidth(text: &str) -> Result<f64, String> {
    let bandwidth: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if bandwidth > 0.0 && bandwidth.is_finite() {
        return Ok(bandwidth);
    }
    Err("a bandwidth must be positive and finite".to_owned())
}

/// The word for [`Depth::Auto`].
pub(crate) const AUTO: &str = "auto";

fn parse_depth(text: &str) -> Result<Depth, String> {
    match text {
        "8" => Ok(Depth::Eight),
        "16" => Ok(Depth::Sixteen),
        "32" => Ok(Depth::Float),
        // The default of programs whose results have various types.
        AUTO => Ok(Depth::Auto),
        _ => Err("8, 16 or 32".to_owned()),
    }
}

fn parse_clipping(text: &str) -> Result<Clipping, String> {
    match text {
        "warn" => Ok(Clipping::Warn),
        "error" => Ok(Clipping::Refuse),
        "allow" => Ok(Clipping::Allow),
        _ => Err("warn, error or allow".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::*;

    #[derive(Parser, Debug)]
    struct OptionsProgram {
        #[command(flatten)]
        options: BatchOptions,
    }

    fn parse(words: &[&str]) -> Result<BatchOptions, String> {
        let words = std::iter::once(&"program").chain(words);
        OptionsProgram::try_parse_from(words).map(|p| p.options).map_err(|e| e.to_string())
    }

    #[test]
    fn the_options_are_well_formed() {
        OptionsProgram::command().debug_assert();
    }

    #[test]
    fn defaults_and_values_are_parsed() {
        let options = parse(&[]).unwrap();
        assert_eq!(
            (options.depth, options.execution.session.mode, options.execution.session.device.clone()),
            (Depth::Eight, None, None)
        );
        assert_eq!(options.open_options(), OpenOptions::default());
        let options = parse(&["--mode", "lazy", "--depth", "16", "-vv", "--page", "2", "--max-pixels", "99"]).unwrap();
        assert_eq!((options.execution.session.mode, options.depth), (Some(Mode::Lazy), Depth::Sixteen));
        assert_eq!(options.log_level(), log::LevelFilter::Debug);
        let expected = OpenOptions { page: Some(2), max_pixels: 99, ..OpenOptions::default() };
        assert_eq!(options.open_options(), expected);
        let options = parse(&["--out-dir", "d", "--format", "TIF", "--deadline", "0.5", "--skip-existing"]).unwrap();
        assert_eq!(options.format.as_deref(), Some("tif"));
        assert_eq!(options.deadline, Some(Duration::from_millis(500)));
        assert_eq!(parse(&["--orientation", "keep"]).unwrap().open_options().orientation, Orientation::Keep);
        let saved = parse(&["--tile", "512", "--compression", "deflate"]).unwrap().save_options(Scaling::Range);
        assert_eq!((saved.tile, saved.compression), (Some((512, 512)), Compression::Deflate));
        assert_eq!(parse(&[]).unwrap().save_options(Scaling::Auto).tile, None);
        assert!(parse(&["--compression", "best"]).unwrap_err().contains("none, deflate, lzw or zstd"));
        assert!(parse(&["--orientation", "left"]).unwrap_err().contains("apply or keep"));
        let saved = parse(&["--quality", "80", "--clipping", "error"]).unwrap().save_options(Scaling::Auto);
        assert_eq!((saved.quality, saved.clipping), (Some(80), Clipping::Refuse));
        assert!(parse(&["--quality", "101"]).is_err() && parse(&["--clipping", "never"]).is_err());
        assert!(parse(&["--volume"]).unwrap().open_options().volume);
        assert_eq!(parse(&["--compare", "1"]).unwrap().compare, Some(Comparison::One));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_a_reason() {
        assert!(parse(&["--threads", "0"]).is_err());
        assert!(parse(&["--mode", "quick"]).unwrap_err().contains("naive"));
        assert!(parse(&["--depth", "12"]).unwrap_err().contains("8, 16 or 32"));
        assert!(parse(&["--dry-run-ranks", "0"]).is_err());
        assert!(parse(&["--bandwidth", "0"]).unwrap_err().contains("positive"));
        assert!(parse(&["--latency", "-1"]).is_err());
        assert!(parse(&["--quiet", "-v"]).is_err());
        assert!(parse(&["--page", "-1"]).is_err());
        assert!(parse(&["--format", "gif"]).unwrap_err().contains("png, jpg"));
        for seconds in ["-1", "NaN", "inf", "soon"] {
            assert!(parse(&[&format!("--deadline={seconds}")]).is_err(), "{seconds}");
        }
        assert!(parse(&["--files-from", "list"]).unwrap_err().contains("--out-dir"));
        assert!(parse(&["--skip-existing"]).unwrap_err().contains("--out-dir"));
        assert!(parse(&["--compare", "cpu", "--out-dir", "d"]).unwrap_err().contains("--compare"));
        assert!(parse(&["--compare", "gpu"]).unwrap_err().contains("naive"));
    }
}
