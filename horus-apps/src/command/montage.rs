//! `horus montage OUTPUT PICTURE...`: pictures side by side, each within a tile of one size.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{CommandFactory, Parser};
use horus::prelude::*;

use super::CommandError;
use crate::batch::open;
use crate::caller::Caller;
use crate::execution::{Execution, parse_count};
use crate::report::Printer;

/// Writes a picture of pictures: each is resized to fit into a tile, and tiles lie side by side, in the order of the files
#[derive(Parser, Debug)]
#[command(name = "horus montage", bin_name = "horus montage", version)]
struct MontageArgs {
    /// The picture to write
    #[arg(value_name = "OUTPUT")]
    output: PathBuf,

    /// The pictures (a Zarr store, if built with Zarr)
    #[arg(value_name = "PICTURE", required = true)]
    pictures: Vec<PathBuf>,

    /// Tiles beside each other (default: about as many as below each other)
    #[arg(long, value_name = "N", value_parser = parse_count)]
    columns: Option<NonZeroUsize>,

    /// Side of a tile, in pixels
    #[arg(long, value_name = "PIXELS", default_value = "256", value_parser = parse_count)]
    tile: NonZeroUsize,

    /// Pixels between tiles
    #[arg(long, value_name = "PIXELS", default_value = "4")]
    gap: usize,

    /// Brightness of what no picture covers, from 0 to 1
    #[arg(long, value_name = "NUMBER", default_value = "0", value_parser = brightness)]
    background: f32,

    /// Page of TIFF files, or time of Zarr stores, counted from 0
    #[arg(long, value_name = "N")]
    page: Option<usize>,

    /// Options of execution.
    #[command(flatten)]
    execution: Execution,
}

fn brightness(text: &str) -> Result<f32, String> {
    let value: f32 = text.parse().map_err(|_| "not a number".to_owned())?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("a brightness is from 0 to 1".into()) }
}

/// The command, for its help.
pub(super) fn command() -> clap::Command {
    MontageArgs::command()
}

/// The answer to `montage OUTPUT PICTURE...`, if the words are this command.
pub(super) fn asked(caller: &Arc<Caller>) -> Option<Result<String, CommandError>> {
    (caller.words().first()? == "montage").then(|| {
        made(caller, &MontageArgs::try_parse_from(caller.words())?)?;
        Ok(String::new())
    })
}

/// Tiles in rows and columns.
struct Sheet {
    columns: usize,
    tile: usize,
    gap: usize,
    size: (usize, usize),
}

impl Sheet {
    fn of(args: &MontageArgs) -> Result<Sheet> {
        /// Most pixels of a montage.
        const MOST: usize = 1 << 30;
        let (count, tile, gap) = (args.pictures.len(), args.tile.get(), args.gap);
        let columns = args.columns.map_or((count as f64).sqrt().ceil() as usize, NonZeroUsize::get).min(count);
        let long = |n: usize| n.checked_mul(tile)?.checked_add((n - 1).checked_mul(gap)?);
        let size = long(count.div_ceil(columns)).zip(long(columns));
        let size = size.filter(|(rows, columns)| rows.checked_mul(*columns).is_some_and(|pixels| pixels <= MOST));
        let large =
            || Error::Config(format!("{count} tiles of {tile} pixels with gaps of {gap} are more than {MOST} pixels"));
        Ok(Sheet { columns, tile, gap, size: size.ok_or_else(large)? })
    }

    /// The first row and column of a picture of this size, centred in tile `i`.
    fn place(&self, i: usize, (height, width): (usize, usize)) -> (usize, usize) {
        let step = self.tile + self.gap;
        let middle = |n: usize| (self.tile - n) / 2;
        (i / self.columns * step + middle(height), i % self.columns * step + middle(width))
    }
}

fn made(caller: &Arc<Caller>, args: &MontageArgs) -> Result<()> {
    let printer = Printer::of(caller);
    let session = caller.session_of(&args.execution, move |plan| printer.print(&plan))?;
    let sheet = Sheet::of(args)?;
    let (rows, columns) = sheet.size;
    let options = OpenOptions { page: args.page, ..OpenOptions::default() };
    let mut tiles = Vec::new();
    for path in &args.pictures {
        let picture = open(&session, path, &options)?.colours();
        let Shape { depth, height, width, channels, .. } = picture.shape();
        if depth > 1 || !matches!(channels, 1 | 3) {
            let why = format!("{}: a montage has pictures of one level, grey or of three colours", path.display());
            return Err(Error::Config(why));
        }
        let side = |n: usize| (n * sheet.tile / height.max(width)).max(1);
        let (height, width) = (side(height), side(width));
        let small = picture.to_unit().resize(height, width, Resampling::Area).clamp(0.0, 1.0);
        tiles.push((small.to_array::<horus::ndarray::Ix3>()?, channels));
    }
    let colours = if tiles.iter().any(|(_, channels)| *channels == 3) { 3 } else { 1 };
    let mut all = horus::ndarray::Array3::from_elem((rows, columns, colours), args.background);
    for (i, (tile, channels)) in tiles.iter().enumerate() {
        let (height, width, _) = tile.dim();
        let (top, left) = sheet.place(i, (height, width));
        for ((y, x, c), pixel) in
            all.slice_mut(horus::ndarray::s![top..top + height, left..left + width, ..]).indexed_iter_mut()
        {
            *pixel = tile[(y, x, c % channels)];
        }
    }
    Image::<f32>::from_array(&session, all.view()).save(&args.output).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sheet(words: &[&str]) -> Sheet {
        Sheet::of(&MontageArgs::try_parse_from([&["montage", "o.png"], words].concat()).unwrap()).unwrap()
    }

    #[test]
    fn tiles_fill_rows() {
        let five = sheet(&["a", "b", "c", "d", "e", "--tile", "10", "--gap", "2"]);
        assert_eq!((five.columns, five.size), (3, (22, 34)));
        assert_eq!(five.place(4, (10, 4)), (12, 15));
        assert_eq!(sheet(&["a", "b", "--columns", "7", "--tile", "8"]).size, (8, 20), "no more columns than pictures");
    }

    #[test]
    fn options_are_well_formed() {
        command().debug_assert();
        assert!(MontageArgs::try_parse_from(["montage", "o.png", "a", "--background", "2"]).is_err());
    }
}
