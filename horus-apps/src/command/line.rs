//! The command line: options, files, operations.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{CommandFactory, Parser, ValueEnum};
use horus::prelude::*;
use horus_core::io::Format;

use super::chain::Chain;
use super::value::{AlphaTreatment, ResultFile};
use super::{help, table};
use crate::batch::{BatchOptions, RunFiles, STANDARD};

/// Applies image operations to pictures: `horus in.png out.png luminance gauss 2 sobel`.
#[derive(Parser, Debug)]
#[command(
    name = "horus",
    version,
    override_usage = "horus [OPTIONS] INPUT... (OUTPUT | --out-dir DIR) [OPERATION [ARGUMENT...]]...\n       \
                      horus help | info | compare | montage | profile | serve | manual | completions [ARGUMENT...]"
)]
pub(super) struct HorusArgs {
    /// Pictures to read (PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy; - is stdin; a Zarr
    /// store, if built with Zarr), any number of them and of folders with --out-dir, else the file to write (- is
    /// stdout; NAME.zarr); then, from the first word that is the name of an operation, operations
    /// with their arguments. A file of that name is written ./NAME
    #[arg(value_name = "WORD")]
    pub(super) words: Vec<OsString>,

    /// Conversion of values to integers: auto (floats from 0..=1, or from the scale of the integers
    /// that they were computed from, to the full range; integers as they are), none, unit, or range
    /// (the smallest value becomes 0, the largest white)
    #[arg(long, value_name = "HOW", default_value = "auto", hide_possible_values = true)]
    pub(super) scaling: ScaleOption,

    /// Alpha, the last channel where the file says so: keep sets it aside, moves it where geometry moves
    /// pixels, and saves it with the result; drop discards it; channel treats it like the others
    #[arg(long, value_name = "HOW", default_value = "keep", hide_possible_values = true)]
    pub(super) alpha: AlphaTreatment,

    /// Compute only this part of the result: WIDTH columns and HEIGHT rows from column X and row Y
    /// on, with the pixels that the whole has there. Of TIFF and npy files and Zarr stores only
    /// what it needs is read
    #[arg(long, value_name = "X,Y,WIDTH,HEIGHT", value_parser = parse_roi)]
    pub(super) roi: Option<Roi>,

    /// Print the numbers of each picture (mean, stats, ...) as an object of JSON in a line
    #[arg(long)]
    pub(super) json: bool,

    /// Send this command, or any other of horus, to the server on a socket (horus serve SOCKET), whose
    /// session is open
    #[arg(long, value_name = "SOCKET")]
    pub(super) server: Option<PathBuf>,

    /// The options of all programs over pictures.
    #[command(flatten)]
    pub(super) options: BatchOptions,
}

/// Column, row, columns and rows of a part of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Roi([usize; 4]);

fn parse_roi(text: &str) -> Result<Roi, String> {
    let wrong = || "four whole numbers: column, row, width and height".to_owned();
    let numbers: Vec<usize> = text.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
    match <[usize; 4]>::try_from(numbers).map_err(|_| wrong())? {
        [_, _, 0, _] | [_, _, _, 0] => Err("a part has at least one column and one row".into()),
        part => Ok(Roi(part)),
    }
}

impl Roi {
    /// The words of the operation that takes this part.
    fn words(self) -> [String; 5] {
        let Roi([x, y, width, height]) = self;
        ["crop".into(), y.to_string(), x.to_string(), height.to_string(), width.to_string()]
    }
}

/// [`Scaling`] as a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum ScaleOption {
    Auto,
    None,
    Unit,
    Range,
}

impl From<ScaleOption> for Scaling {
    fn from(scale: ScaleOption) -> Scaling {
        match scale {
            ScaleOption::Auto => Scaling::Auto,
            ScaleOption::None => Scaling::None,
            ScaleOption::Unit => Scaling::Unit,
            ScaleOption::Range => Scaling::Range,
        }
    }
}

/// The command, with its own help.
pub(super) fn command() -> clap::Command {
    let depth = "Bits per sample of the output: 8, 16, 32 (a float TIFF, unscaled), or auto, as the type of the result and, of floats, of the \
                 integers that they were computed from";
    HorusArgs::command()
        .mut_arg("depth", |arg| arg.default_value(crate::batch::AUTO).help(depth))
        // Numbers need no folder.
        .mut_arg("files_from", |arg| arg.requires(clap::builder::Resettable::Reset))
        .after_help(help::short())
}

/// The files and the operations on them.
///
/// # Errors
/// A message about missing, superfluous or misspelt words.
pub(super) fn divided(args: &HorusArgs) -> Result<(RunFiles, Chain), String> {
    let starts = |word: &OsString| word.to_str().is_some_and(table::is_name);
    let words: Vec<OsString> = args.words.iter().map(unmasked).collect();
    let begin = words.iter().position(starts).unwrap_or(words.len());
    let (files, operations) = words.split_at(begin);
    let words =
        operations.iter().map(|word| word.to_str().ok_or_else(|| format!("{} is not valid Unicode", word.display())));
    let paths: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    let options = &args.options;
    let mut chain = Chain::parse(&words.collect::<Result<Vec<&str>, String>>()?)?;
    if let Some(roi) = args.roi {
        let words = roi.words();
        let crop = Chain::parse(&words.each_ref().map(String::as_str))?;
        // Numbers are computed for the part only.
        let at = chain.calls.len() - usize::from(chain.ends_in_numbers());
        chain.calls.splice(at..at, crop.calls);
    }
    chain.alpha = args.alpha;
    if !chain.ends_in_numbers() {
        if options.files_from.is_some() && options.out_dir.is_none() {
            return Err("--files-from requires --out-dir DIR".into());
        }
        let unknown = unknown(&paths, options).map_or(Ok(()), Err);
        return RunFiles::of(paths, options).map(|work| (work, chain)).map_err(|e| unknown.err().unwrap_or(e));
    }
    if options.out_dir.is_some() || options.dry_run || options.dry_run_ranks.is_some() || options.compare.is_some() {
        let idle = "--out-dir, --dry-run, --dry-run-ranks and --compare do not apply";
        return Err(format!("the chain ends in numbers, which are printed: {idle}"));
    }
    if paths.is_empty() && options.files_from.is_none() {
        return Err("pictures are required".into());
    }
    Ok((RunFiles::Numbers { inputs: paths }, chain))
}

/// The message about a missing input whose name is not like a file's either, so that an operation was probably meant.
/// Reads the file system, so only the first of several ranks can call it.
pub(super) fn absent(work: &RunFiles, options: &BatchOptions) -> Option<String> {
    match work {
        // The name of an output determines its format.
        RunFiles::Single { input, output } => unknown(&[input.clone(), output.clone()], options),
        RunFiles::Series { inputs, .. } => unknown(inputs, options),
        RunFiles::Numbers { inputs } => unknown(inputs, options).or_else(|| {
            let last = inputs.last().filter(|_| inputs.len() > 1)?;
            let there = |path: &Path| path.exists() || path.as_os_str() == STANDARD;
            (!there(last) && inputs[..inputs.len() - 1].iter().all(|path| there(path))).then(|| {
                let last = last.display();
                format!("{last} does not exist; the chain ends in numbers, which are printed: all files are read")
            })
        }),
    }
}

/// The message for a word before the chain that is neither a file nor an operation.
fn unknown(paths: &[PathBuf], options: &BatchOptions) -> Option<String> {
    // With a format option, an output may have any name.
    let last = usize::from(options.format.is_some() && options.out_dir.is_none());
    let words = paths[..paths.len().saturating_sub(last)].iter().filter_map(|p| p.to_str());
    let mut bare = words.filter(|word| !word.contains(['.', '/', std::path::MAIN_SEPARATOR]) && *word != STANDARD);
    let word = bare.find(|word| !Path::new(word).exists())?;
    Some(format!("`{word}` is neither a file nor an operation{}", table::suggest(word)))
}

/// Replaces the sign of negative numbers while `clap` searches for options, because it would take `-1,0,1` for some.
const MINUS: char = '\u{2212}';

/// The words, with the signs of numbers replaced so that none looks like an option.
pub(super) fn masked(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let number = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.') || rest == "inf";
    let mask = |word: OsString| match word.to_str().and_then(|word| word.strip_prefix('-')).filter(|rest| number(rest))
    {
        Some(rest) => format!("{MINUS}{rest}").into(),
        None => word,
    };
    words.into_iter().map(mask).collect()
}

/// A word as it was given to [`masked`].
fn unmasked(word: &OsString) -> OsString {
    match word.to_str().and_then(|word| word.strip_prefix(MINUS)) {
        Some(rest) => format!("-{rest}").into(),
        None => word.clone(),
    }
}

/// The files for results. npy and Zarr have the exact values of floats; TIFF has them unless another depth or scaling
/// is requested.
pub(super) fn results(work: &RunFiles, options: &BatchOptions, save: &SaveOptions) -> ResultFile {
    let format = match (&options.format, work) {
        (Some(format), _) => format.clone(),
        (None, RunFiles::Single { output, .. }) => {
            output.extension().map(|e| e.to_string_lossy().to_ascii_lowercase()).unwrap_or_default()
        }
        (None, _) => "png".to_owned(),
    };
    let unscaled = save.depth == Depth::Float
        || (save.depth == Depth::Auto && matches!(save.scaling, Scaling::Auto | Scaling::None));
    let exact = match Format::named(&format) {
        Ok(format) => format.keeps_values() || (unscaled && format.stores(DType::F32)),
        Err(_) => format == "zarr",
    };
    ResultFile { format, exact }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<(RunFiles, Chain), String> {
        let words = masked(std::iter::once(&"horus").chain(words).map(OsString::from));
        let matches = command().try_get_matches_from(words).map_err(|e| e.to_string())?;
        divided(&clap::FromArgMatches::from_arg_matches(&matches).map_err(|e: clap::Error| e.to_string())?)
    }

    fn texts(words: &[&str]) -> Vec<String> {
        parse(words).unwrap().1.calls.into_iter().map(|call| call.text).collect()
    }

    fn fails(words: &[&str], cause: &str) {
        let error = parse(words).map(|_| ()).unwrap_err();
        assert!(error.contains(cause), "{words:?}: {error}");
    }

    #[test]
    fn the_command_is_well_formed() {
        command().debug_assert();
    }

    #[test]
    fn files_come_before_operations_and_options_anywhere() {
        let (work, chain) = parse(&["a.png", "--quiet", "b.png", "gauss", "2", "--threads", "1", "sobel"]).unwrap();
        assert_eq!(work, RunFiles::Single { input: "a.png".into(), output: "b.png".into() });
        assert_eq!(chain.calls.len(), 2);
        let (work, _) = parse(&["a.tif", "./gauss", "--out-dir", "d", "gauss", "2", "otsu"]).unwrap();
        assert_eq!(work, RunFiles::Series { inputs: vec!["a.tif".into(), "./gauss".into()], out_dir: "d".into() });
        assert!(parse(&["a.png", "b.npy"]).unwrap().1.calls.is_empty());
        assert_eq!(
            parse(&["a.png", "b.png", "luminance", "mean"]).unwrap().0,
            RunFiles::Numbers { inputs: vec!["a.png".into(), "b.png".into()] }
        );
        assert!(parse(&["--files-from", "list", "mean"]).is_ok());
    }

    #[test]
    fn a_part_is_taken_last() {
        assert_eq!(texts(&["a.png", "b.png", "--roi", "1,2,3,4", "gauss", "2"]), ["gauss 2", "crop 2 1 4 3"]);
        assert_eq!(texts(&["a.png", "--roi", "1,2,3,4", "neg", "mean"]), ["neg", "crop 2 1 4 3", "mean"]);
        assert_eq!(texts(&["a.png", "b.png", "--roi", "0,0,3,4"]), ["crop 0 0 4 3"]);
        fails(&["a.png", "b.png", "--roi", "1,2,3"], "four whole numbers");
        fails(&["a.png", "b.png", "--roi", "1,2,0,3"], "at least one column");
    }

    #[test]
    fn arguments_reach_to_the_next_operation() {
        let chain =
            ["i", "o.png", "translate", "-3", "-.5", "correlate", "-1,0,1", "erode", "disc", "2", "wrap", "otsu"];
        assert_eq!(texts(&chain), ["translate -3 -.5", "correlate -1,0,1", "erode disc 2 wrap", "otsu"]);
        assert_eq!(texts(&["i", "min", "3", "min"]), ["min 3", "min"]);
        // A word that the operation takes belongs to it, even if it is the name of another.
        let of = |words: &[&str]| texts(&[&["i", "o.png"], words].concat());
        assert_eq!(of(&["windows", "7", "7", "4", "4", "variance"]), ["windows 7 7 4 4 variance"]);
        assert_eq!(of(&["tiles", "8", "8", "max", "max", "7"]), ["tiles 8 8 max", "max 7"]);
        assert_eq!(texts(&["i", "tiles", "8", "8", "sum", "mean"]), ["tiles 8 8 sum", "mean"]);
        assert_eq!(texts(&["i", "tiles", "8", "8", "how=min", "mean"]), ["tiles 8 8 how=min", "mean"]);
        assert_eq!(of(&["generalized", "1,1", "add", "min", "mul", "2"]), ["generalized 1,1 add min", "mul 2"]);
        // An optional parameter is skipped for a word that only a later one takes.
        assert_eq!(of(&["rotate", "30", "wrap", "erode", "wrap"]), ["rotate 30 wrap", "erode wrap"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        fails(
            &["a.png", "b.png", "gauss"],
            "operation 1, `gauss`: SIGMA is missing (a number, or a length (2.5um)); usage: `gauss SIGMA",
        );
        fails(&["a.png", "b.png", "sobel", "gauss", "two"], "operation 2, `gauss two`: SIGMA: `two` is not a number");
        fails(&["a.png", "b.png", "sqrt", "2"], "it takes no arguments: unexpected `2`");
        fails(&["a.png", "b.png", "gauss", "2", "wrap", "3"], "too many arguments: unexpected `3`");
        fails(&["a.png", "b.png", "gauss", "2", "wrap", "sobl"], "did you mean `sobel`?");
        fails(&["a.png", "b.png", "gauss", "sgma=2"], "unknown argument `sgma`; did you mean `sigma`?");
        fails(&["a.png", "b.png", "gauss", "2", "sigma=2", "sigma=3"], "`sigma` is given more than once");
        fails(&["a.png", "b.png", "median", "two"], "SIZE: `two` is not a");
        fails(&["a.png", "b.png", "guass", "2"], "`guass` is neither a file nor an operation; did you mean `gauss`?");
        fails(&["a.png", "b.png", "c.png", "gauss", "2"], "--out-dir");
        fails(
            &["a.png", "b.png", "edge", "3"],
            "`edge` is neither a file nor an operation; close: `sobel`, `canny`; `prewitt`, `scharr` are in",
        );
        fails(
            &["a.png", "b.png", "sobel", "edge"],
            "`edge` is not a border mode (reflect101, reflect, replicate, wrap or a number (`horus help border`)); close: `sobel`",
        );
        fails(&["a.png", "gauss", "2"], "OUTPUT is required");
        fails(&["gauss", "2"], "INPUT and OUTPUT are required");
        fails(&["mean"], "pictures are required");
        fails(&["a.png", "min", "sobel"], "nothing can follow it (`min B` yields a picture)");
        fails(&["a.png", "mean", "--out-dir", "d"], "ends in numbers");
        fails(&["a.png", "b.png", "--quite", "sobel"], "a similar argument exists: '--quiet'");
        fails(&["--files-from", "list", "sobel"], "--files-from requires --out-dir");
    }
}
