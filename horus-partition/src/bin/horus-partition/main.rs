//! Divides a masked grid into blocks, distributes them over clusters, nodes and devices, and prints
//! the volumes of their exchanges.

mod pictures;
mod report;

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use horus::prelude::Error;
use horus_partition::{Blocks, Invalid, Levels, Mask, Scheme, Seams, volumes};

use report::Report;

/// Divides a masked grid (sea and land) into blocks, omits land blocks, distributes the others over
/// clusters, nodes and devices, and prints the number of halo points that cross between these in a
/// time step. Partitions are Cartesian, raked, along space-filling curves, by zigzag lines as in B.
/// van Werkhoven's thesis (section 4.1), and hierarchical
#[derive(Parser, Debug)]
#[command(name = "horus-partition", version, allow_negative_numbers = true)]
struct PartitionArgs {
    /// The mask: a picture (PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy); non-zero points are
    /// to be computed (in colour pictures those with any non-zero channel, regardless of opacity; NaN is 0). Its
    /// first row is the north
    #[arg(value_name = "MASK", required_unless_present = "synthetic", conflicts_with = "synthetic")]
    mask: Option<PathBuf>,

    /// A planet with continents instead of a picture: columns x rows of points, and the planet's
    /// seed
    #[arg(long, value_name = "WxH[:SEED]", value_parser = parse_planet)]
    synthetic: Option<SyntheticMask>,

    /// Number of parts into which each level divides a part of the level above: clusters : nodes :
    /// devices
    #[arg(long, value_name = "A:B:C", value_parser = parse_levels)]
    levels: Levels,

    /// Columns x rows of points in a block, or one number for both
    #[arg(long, value_name = "N|WxH", value_parser = parse_extent)]
    block: (usize, usize),

    /// Depth of the halo that a block receives, in points
    #[arg(long, value_name = "N", default_value = "2")]
    halo: u16,

    /// The column beyond the last is the first
    #[arg(long)]
    periodic: bool,

    /// The row beyond the northern row is the northern row, reversed: a tripolar grid
    #[arg(long)]
    tripole: bool,

    /// Write a partition: npy for the device of each block (-1 for land), else a picture, each
    /// cluster in its own hues
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// The partition that --out writes
    #[arg(long, value_name = "NAME", default_value = "hierarchical", value_parser = parse_scheme, requires = "out")]
    scheme: Scheme,

    /// Print JSON instead of a table
    #[arg(long)]
    json: bool,
}

/// The arguments of [`Mask::synthetic`].
#[derive(Clone, Debug, PartialEq, Eq)]
struct SyntheticMask {
    width: usize,
    height: usize,
    seed: u64,
}

fn parse_extent(text: &str) -> Result<(usize, usize), String> {
    let (width, height) = text.split_once('x').unwrap_or((text, text));
    match (width.parse(), height.parse()) {
        (Ok(width), Ok(height)) if width > 0 && height > 0 => Ok((width, height)),
        _ => Err("not a number of points from 1 on, or two as in 225x150".into()),
    }
}

fn parse_planet(text: &str) -> Result<SyntheticMask, String> {
    let (extent, seed) = text.split_once(':').unwrap_or((text, "1"));
    let (width, height) = parse_extent(extent)?;
    let seed = seed.parse().map_err(|_| format!("the seed `{seed}` is not a whole number"))?;
    if width.checked_mul(height).is_none_or(|points| points > 1 << 30) {
        return Err(format!("{width} x {height} points are more than {}", 1 << 30));
    }
    Ok(SyntheticMask { width, height, seed })
}

fn parse_levels(text: &str) -> Result<Levels, String> {
    text.parse().map_err(|e: Invalid| e.to_string())
}

fn parse_scheme(text: &str) -> Result<Scheme, String> {
    let names: Vec<&str> = Scheme::ALL.iter().map(|s| s.name()).collect();
    let found = Scheme::ALL.into_iter().find(|s| s.name() == text);
    found.ok_or_else(|| format!("no such partition; there are {}", names.join(", ")))
}

/// Reasons for a failure.
enum PartitionError {
    /// A picture cannot be read or written.
    Picture(Error),
    /// There is nothing to partition.
    Invalid(Invalid),
    /// Standard output is gone.
    Output(io::Error),
}

impl fmt::Display for PartitionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PartitionError::Picture(e) => e.fmt(f),
            PartitionError::Invalid(e) => e.fmt(f),
            PartitionError::Output(e) => write!(f, "cannot write to stdout: {e}"),
        }
    }
}

impl From<Error> for PartitionError {
    fn from(e: Error) -> PartitionError {
        PartitionError::Picture(e)
    }
}

impl From<Invalid> for PartitionError {
    fn from(e: Invalid) -> PartitionError {
        PartitionError::Invalid(e)
    }
}

fn run(args: &PartitionArgs) -> Result<(), PartitionError> {
    let mask = match (&args.mask, &args.synthetic) {
        (Some(path), _) => pictures::read(path)?,
        (None, Some(planet)) => Mask::synthetic(planet.width, planet.height, planet.seed)?,
        (None, None) => return Err(Error::Config("there is no mask".into()).into()),
    };
    let seams = Seams { periodic: args.periodic, tripole: args.tripole };
    let blocks = Blocks::new(&mask, args.block, usize::from(args.halo), seams)?;
    let mut found = Vec::new();
    for scheme in Scheme::ALL {
        let parts = scheme.partition(&blocks, &args.levels)?;
        found.push((scheme, volumes(&blocks, &args.levels, &parts)));
        if let Some(path) = args.out.as_ref().filter(|_| scheme == args.scheme) {
            pictures::write(path, &mask, &blocks, &args.levels, &parts)?;
        }
    }
    let report = Report { mask: &mask, blocks: &blocks, levels: &args.levels, found: &found };
    let text = if args.json { format!("{}\n", report.json()) } else { report.to_string() };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).map_err(PartitionError::Output)
}

fn main() -> ExitCode {
    let level = env_logger::Env::default().default_filter_or("warn");
    env_logger::Builder::from_env(level).format_target(false).init();
    match run(&PartitionArgs::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        PartitionArgs::command().debug_assert();
    }

    #[test]
    fn extents_and_planets_are_parsed() {
        assert_eq!((parse_extent("60"), parse_extent("225x150")), (Ok((60, 60)), Ok((225, 150))));
        assert_eq!(parse_planet("36x24"), Ok(SyntheticMask { width: 36, height: 24, seed: 1 }));
        assert_eq!(parse_planet("36x24:7"), Ok(SyntheticMask { width: 36, height: 24, seed: 7 }));
        for text in ["", "0", "x", "6x", "0x6", "-6", "6x6x6", "6.5"] {
            assert!(parse_extent(text).is_err(), "{text}");
        }
        for text in ["36x24:", "36x24:x", "99999999x99999999"] {
            assert!(parse_planet(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_partition_has_its_name() {
        for scheme in Scheme::ALL {
            assert_eq!(parse_scheme(scheme.name()), Ok(scheme));
        }
        assert!(
            parse_scheme("hilbert").unwrap_err().contains("cartesian, rake, curve, pop-curve, zigzag, hierarchical")
        );
    }
}
