//! `horus info FILE...`: properties of files, found without reading their pixels.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Parser;
use horus::io::FileInfo;
use horus::prelude::*;

use crate::batch::is_store;
use crate::report::{count, held};

/// Prints the properties of pictures: size, type, pages, tiles, smaller copies.
#[derive(Parser, Debug)]
#[command(name = "horus info", version, about)]
struct Args {
    /// The files
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Page of a TIFF file, counted from 0
    #[arg(long, value_name = "N")]
    page: Option<usize>,

    /// Read volumes: all pages of a TIFF file as levels, or the first axis of a three-dimensional
    /// npy array as the depth
    #[arg(long)]
    volume: bool,
}

/// The answer to `info FILE...`, if `words` are that.
pub(super) fn asked(words: &[OsString]) -> Option<Result<String, String>> {
    let (first, rest) = words.split_first()?;
    if first != "info" {
        return None;
    }
    let args = match Args::try_parse_from(std::iter::once(first).chain(rest)) {
        Ok(args) => args,
        Err(e) => e.exit(),
    };
    let options = OpenOptions { page: args.page, volume: args.volume, ..OpenOptions::default() };
    let lines: Result<Vec<String>, String> = args.files.iter().map(|path| one(path, &options)).collect();
    Some(lines.map(|lines| lines.concat()))
}

/// A line about a file.
fn one(path: &Path, options: &OpenOptions) -> Result<String, String> {
    if is_store(path) {
        return Err(format!("cannot read {}: it is a Zarr store", path.display()));
    }
    let info = FileInfo::open(path, options).map_err(|e| e.to_string())?;
    let (shape, (rows, columns)) = (info.shape, info.tile);
    let mut text = format!("{}: {}", path.display(), held(shape, info.dtype));
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
    Ok(format!("{text}, {:.1} MB decoded\n", bytes as f64 / 1e6))
}
