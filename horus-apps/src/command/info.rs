//! `horus info FILE...`: properties of files. Pixels are read only for statistics.

use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser};
use horus::io::FileInfo;
use horus::prelude::*;
use horus_core::warning::plain;
use serde_json::{Map, Value as Json, json};

use super::CommandError;
use super::compare::extents;
use crate::batch::{described, is_store, is_url, open};
use crate::caller::Caller;
use crate::execution::SessionOptions;
use crate::report::{count, describe_picture};

/// Prints the properties of pictures: size, type, pages, tiles, smaller copies, tags, and statistics of their pixels
#[derive(Parser, Debug)]
#[command(name = "horus info", bin_name = "horus info", version)]
struct InfoArgs {
    /// The files (a Zarr store, if built with Zarr)
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Page of a TIFF file, or time of a Zarr store, counted from 0
    #[arg(long, value_name = "N")]
    page: Option<usize>,

    /// Read volumes: all pages of a TIFF file as levels, or the first axis of a three-dimensional
    /// npy array as the depth
    #[arg(long)]
    volume: bool,

    /// Also print the tags of TIFF files and the texts of PNG files, a line each
    #[arg(long)]
    tags: bool,

    /// Also read the pixels, and print of each channel the smallest, the largest, their mean and
    /// their deviation
    #[arg(long)]
    statistics: bool,

    /// Print an object of JSON for each file, with its tags, in a line
    #[arg(long)]
    json: bool,
}

/// The command, for its help.
pub(super) fn command() -> clap::Command {
    InfoArgs::command()
}

/// The answer to `info FILE...`, if the words are this command.
pub(super) fn asked(caller: &Caller) -> Option<Result<String, CommandError>> {
    (caller.words().first()? == "info").then(|| {
        let args = InfoArgs::try_parse_from(caller.words())?;
        let lines: Result<Vec<String>> = args.files.iter().map(|path| one(caller, path, &args)).collect();
        Ok(lines?.concat())
    })
}

/// Facts about a file.
struct FileFacts {
    info: FileInfo,
    tags: Vec<(String, String)>,
    /// For each channel: the smallest number, the largest, mean and standard deviation.
    statistics: Vec<[f64; 4]>,
}

impl FileFacts {
    fn of(caller: &Caller, path: &Path, args: &InfoArgs) -> Result<FileFacts> {
        let options = OpenOptions { page: args.page, volume: args.volume, ..OpenOptions::default() };
        let (info, tags) = match is_store(path) {
            true => described(path, &options)?,
            false if is_url(path) => return Err(Error::read(path, "of servers, only stores are described")),
            false if args.tags || args.json => (FileInfo::open(path, &options)?, FileInfo::tags(path, &options)?),
            false => (FileInfo::open(path, &options)?, Vec::new()),
        };
        let statistics = if args.statistics {
            let session = caller.session(&SessionOptions::default(), false, |builder| builder)?;
            measured(&session, &open(&session, path, &options)?)?
        } else {
            Vec::new()
        };
        Ok(FileFacts { info, tags, statistics })
    }
}

/// For each channel: the smallest number, the largest, mean and standard deviation.
fn measured(session: &Session, picture: &AnyImage) -> Result<Vec<[f64; 4]>> {
    let channels = picture.convert::<f64>().unstack(Axis::Channels);
    let values: Vec<_> = channels.iter().map(|c| (c.min_value(), c.max_value(), c.mean(), c.variance())).collect();
    let values = session.get_all(values)?;
    Ok(values.into_iter().map(|(low, high, mean, variance)| [low, high, mean, variance.sqrt()]).collect())
}

fn one(caller: &Caller, path: &Path, args: &InfoArgs) -> Result<String> {
    let found = FileFacts::of(caller, path, args)?;
    Ok(if args.json { format!("{}\n", object(path, &found)) } else { text(path, &found) })
}

/// A line about a file, and a line for each of its tags and channels.
fn text(path: &Path, FileFacts { info, tags, statistics }: &FileFacts) -> String {
    let (shape, (rows, columns)) = (info.shape, info.tile);
    let mut text = format!("{}: {}", path.display(), describe_picture(shape, info.dtype));
    text += &match (rows, columns) {
        whole if whole == (shape.height, shape.width) => String::new(),
        (rows, columns) if columns == shape.width => format!(", in strips of {}", count(rows, "row")),
        (rows, columns) => format!(", in tiles of {columns} x {rows}"),
    };
    if info.pages > 1 {
        text += &format!(", {}", count(info.pages, "page"));
    }
    if let [_, copies @ ..] = &info.levels[..]
        && !copies.is_empty()
    {
        let sizes: Vec<String> = copies.iter().map(|(height, width)| format!("{width} x {height}")).collect();
        text += &format!(", smaller copies {}", sizes.join(", "));
    }
    let bytes = shape.len() * info.dtype.size();
    text += &format!(", {:.1} MB decoded\n", bytes as f64 / 1e6);
    for (name, value) in tags {
        text += &plain(&format!("  {name}: {}\n", value.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    for (channel, [low, high, mean, deviation]) in statistics.iter().enumerate() {
        text += &format!("  channel {channel}: from {low} to {high}, mean {mean}, standard deviation {deviation}\n");
    }
    text
}

fn object(path: &Path, FileFacts { info, tags, statistics }: &FileFacts) -> Json {
    let size = |(height, width): &(usize, usize)| json!({ "width": width, "height": height });
    let Json::Object(mut object) = extents(info.shape, info.dtype) else { return Json::Null };
    object.insert("file".into(), json!(path.display().to_string()));
    object.insert("tile".into(), size(&info.tile));
    object.insert("pages".into(), json!(info.pages));
    object.insert("sizes".into(), info.levels.iter().map(size).collect());
    object.insert(
        "tags".into(),
        tags.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>().into(),
    );
    let channel = |[low, high, mean, deviation]: &[f64; 4]| json!({ "min": low, "max": high, "mean": mean, "standard_deviation": deviation });
    object.insert("statistics".into(), statistics.iter().map(channel).collect());
    object.into()
}
