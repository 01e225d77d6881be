//! Help generated from the table of operations, for the terminal and as a page of the
//! documentation.

use std::ffi::OsString;
use std::fmt::Write;

use super::parameter::Parameter;
use super::table::{self, Family, Operation, Record};

/// Command lines to learn from.
pub(super) const EXAMPLES: [&str; 5] = [
    "horus picture.png edges.png luminance gauss 2 sobel",
    "horus in/*.tif --out-dir out gauss 2 sobel otsu",
    "horus picture.tif clean.tif sub @dark.tif median 3",
    "horus in/*.png luminance mean",
    "horus info picture.tif",
];

/// The texts of topics.
pub(super) fn topics() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|(_, text)| *text)
}

/// Text below the options.
pub(super) fn short() -> String {
    let examples: String = EXAMPLES.iter().map(|example| format!("  {example}\n")).collect();
    let mut text = format!("Examples:\n{examples}\nOperations (`horus help` describes all, `horus help gauss` one):\n");
    for family in Family::ALL {
        let names = of(family).map(|row| row.name);
        text += &folded(&format!("{}:", short_title(family)), names, 2);
    }
    text
}

fn short_title(family: Family) -> &'static str {
    family.title().split(',').next().unwrap_or_default()
}

fn of(family: Family) -> impl Iterator<Item = &'static Operation> {
    table::all().iter().filter(move |row| row.family == family)
}

/// Words in lines of at most 100 columns, with further indentation after the first.
fn folded(title: &str, words: impl Iterator<Item = &'static str>, indent: usize) -> String {
    const WIDTH: usize = 100;
    let mut text = String::new();
    let mut line = format!("{:indent$}{title}", "");
    for word in words {
        if line.len() + 1 + word.len() > WIDTH {
            text += &format!("{line}\n");
            line = format!("{:width$}", "", width = indent + 1);
        }
        line += &format!(" {word}");
    }
    text + &format!("{line}\n")
}

/// The help requested by `words`, if any: `help`, `operations`, `help NAME...`, of operations and
/// of topics.
pub(super) fn asked(words: &[OsString]) -> Option<Result<String, String>> {
    let (first, names) = words.split_first()?;
    if first != "help" && first != "operations" {
        return None;
    }
    if names.is_empty() {
        return Some(Ok(all()));
    }
    let parts = names.iter().map(|name| {
        let name = name.to_string_lossy();
        if let Some((_, text)) = TOPICS.iter().find(|(names, _)| names.contains(&&*name)) {
            return Ok(text.replace("**", "").replace('`', ""));
        }
        let rows: Vec<String> = table::named(&name).map(one).collect();
        if rows.is_empty() { Err(table::no_such(&name)) } else { Ok(rows.join("\n")) }
    });
    Some(parts.collect::<Result<Vec<_>, _>>().map(|parts| parts.join("\n")))
}

/// All operations, by family.
fn all() -> String {
    let mut text = "\
horus INPUT... (OUTPUT | --out-dir DIR) OPERATION ARGUMENT... OPERATION ARGUMENT...

Arguments in brackets may be left out; each can be given by name, as in `gauss sigma=2 border=wrap`. Where
a number is an operand (B, T), so may be a number for each channel (1,0.5,1), a picture (@dark.tif),
or the picture as it was read (@in). More: `horus help` operands, types, depth, alpha, masks, numbers, footprint, border, filters.
"
    .to_owned();
    for family in Family::ALL {
        text += &format!("\n{}\n", family.title());
        for row in of(family) {
            let signature = row.signature();
            text += &format!("  {signature:<34} {}\n", row.help.replace('`', ""));
        }
    }
    text
}

/// One operation in full.
fn one(row: &Operation) -> String {
    let mut text = format!("{}\n  {}\n", row.signature(), row.help.replace('`', ""));
    if !row.aliases.is_empty() {
        text += &format!("  also called {}\n", row.aliases.join(", "));
    }
    if !row.parameters.is_empty() {
        text.push('\n');
    }
    for parameter in row.parameters {
        text += &format!("  {:<14} {}\n", parameter.name, about(parameter));
    }
    text + &format!("\n  {}\n", example(row))
}

fn about(parameter: &Parameter) -> String {
    let mut text = parameter.kind.describe();
    if !parameter.help.is_empty() {
        text = format!("{}: {text}", parameter.help);
    }
    if let Some(default) = parameter.default {
        text += &format!(" (default: {default})");
    }
    text
}

fn example(row: &Operation) -> String {
    let output = if matches!(row.record, Record::Numbers(_)) { "" } else { " out.png" };
    format!("horus in.png{output} {}", row.example())
}

/// The page `docs/command.md`.
pub fn page() -> String {
    let topics: Vec<&str> = topics().collect();
    let mut text = format!("{PREFACE}\n{}", topics.join("\n"));
    for family in Family::ALL {
        let _ = write!(text, "\n## {}\n\n| operation | what | example |\n| --- | --- | --- |\n", family.title());
        for row in of(family) {
            let cell = |text: &str| text.replace('|', "\\|");
            let also: String = row.aliases.iter().map(|name| format!(" `{name}`")).collect();
            let (signature, help) = (cell(&row.signature()), cell(row.help));
            let _ = writeln!(text, "| `{signature}`{also} | {help} | `{}` |", row.example());
        }
    }
    text
}

const PREFACE: &str = "\
# The command `horus`

Image operations without a line of code: pictures, then operations with their arguments, in the order in which they are applied.

    horus picture.png edges.png luminance gauss 2 sobel
    horus in/*.tif --out-dir out gauss 2 sobel otsu
    horus picture.tif clean.tif sub @dark.tif median 3
    horus in/*.png luminance mean
    horus - - --format png rotate 30 < picture.png > turned.png

The whole chain is one program, optimised and run as one, on a GPU, the CPU, or many ranks under `mpirun`,
with the same bits. `horus --help` lists the options, which are those of the detectors; `horus help` the operations, `horus help gauss`
describes one, and `horus help types` a topic. This page is generated from the same table.

**Other commands.** `horus info FILE...` prints size, type, pages, tiles and smaller copies of files without reading their pixels, with `--tags` what TIFF and PNG files
say of themselves, with `--statistics` the range, mean and deviation of each channel. `horus compare A B` prints in how many samples pictures differ, by how much at
most and where, PSNR and SSIM, and ends with status 0 if they are equal, 1 if they differ (`--within D`: by more than D), 2 if they cannot be compared. Both print
JSON with `--json`. `horus montage OUTPUT PICTURE...` writes a picture of pictures, each resized to fit into a tile (`--columns`, `--tile`, `--gap`).
`horus profile INPUT OUTPUT OPERATION...` runs a chain and prints what bounds each of its kernels, also with `--json`: the page Tuning of the book explains it.
`horus --version` prints the features of the program and the devices that it finds; `horus completions bash` (or `zsh`, `fish`) prints a script
by which a shell completes operations and options, and `horus manual > horus.1` the page that `man ./horus.1` shows.

**A part.** `--roi X,Y,WIDTH,HEIGHT` computes only these columns and rows of the result, with the pixels that the whole has there: a filter reads its
surroundings. Of TIFF, npy and Zarr files only what the part needs is read. Numbers are those of the part.

**Georeference.** A GeoTIFF that is saved as TIFF keeps its tags, and the value of missing pixels if it keeps its type: results of filters and pixel operations lie where the
picture lies, and crops, resized, mirrored and turned pictures where their pixels lay. Several pictures together keep the place if it is the same, and the value of missing pixels
of the first that has one. A place, a size of pixels or names of channels that pictures do not share, as a picture and its mirror image have no place in common, are dropped: a
warning for each file that is written gives the reason. Pixels of a TIFF file with a colour table are the indices of one channel; the table is kept in TIFF and PNG files while pixels are only cut out, mirrored, turned or
sampled (`resize 512 512 nearest`), not computed.

**Sizes.** `--sizes 5` writes a TIFF file as a cloud optimized GeoTIFF, or a Zarr store as a pyramid: each size is half as high and wide as the one before, rounded
up, and has a pixel for each block of two rows and two columns. `--resampling average` takes the mean of a block, of its pixels that are not missing, `mode` its most frequent value, and `nearest`
its first pixel. By default masks, images of 32-bit integers, as labels are, and indices of a colour table have modes, others averages. The sizes of `.ome.tif` belong to its pages. With
`--compression deflate` and `--tile 512`: `horus in.tif out.tif --sizes 5 --tile 512 --compression deflate`.

**Size of pixels.** Zarr stores, OME-TIFF and ImageJ files (`--volume` reads their levels and channels, `--page` a time), TIFF files with a resolution per centimetre and PNG files with one per metre give it,
results keep it, and stores, `.ome.tif`, `.tif` and `.png` have it again; other formats have none, which is told for each file. `gauss 2.5um` is a Gaussian of that width, also where
pixels are not square. Channels keep their names between stores and OME-TIFF files, which have a page for each.

**Arguments.** The first word that is the name of an operation begins the chain; the words before it are files. With `--out-dir`
all are pictures or folders of pictures, else the last is the file to write. A file that has the name of an operation is written
`./NAME`, `-` is stdin or stdout. Words after the name of an operation are its arguments, up to the next name. Arguments in brackets may
be left out, and each can be given by name: `gauss sigma=2 border=wrap`. A word that is the name of an operation, too, is an argument where the
operation before it takes it: `tiles 8 8 max` has the largest pixel of each tile. Without any operation a picture is written in another format.

";

/// Topics with names of their own, which are also on the page.
const TOPICS: &[(&[&str], &str)] = &[
    (
        &["operand", "operands"],
        "\
**Other operands** (`B`, `T`, `C`) are a number, a number for each channel (`1,0.5,1`), a picture (`@dark.tif`), or the picture as it was
read (`@in`). Pictures of one channel, one row or one column are broadcast.
",
    ),
    (
        &["type", "types", "scales", "scaling"],
        "\
**Types and scales.** A picture has the type of its file (`u8`, `u16`, `u32`, `i8`, `i16`, `i32`, `f32`, `f64`), and operations keep it: integers
saturate, and are rounded where a geometric operation interpolates. Linear filters yield `f32`, on the scale of the integers: of an 8-bit picture
255 is still white, and so it is saved. `to_unit` and `luminance` make floats in which white is 1. Operands of floats are brought to their scale;
those of integers must have their type. A number that the type cannot hold (`mul 0.5` of bytes) is an error that says what to put before it.
",
    ),
    (
        &["depth", "clipping", "saving"],
        "\
**Depth and clipping.** A result is saved in its type; floats that were computed from integers of more than 8 bits are saved in 16 bits where the
format has them, others in 8, unless `--depth` says otherwise. npy files, and TIFF files of floats, hold the values as they are. In other
files values beyond black and white are clipped, with a warning that says how many; `--clipping error` writes no file then, `--scaling range`
stretches the values instead, and `--scaling unit` brings the range of an integer type to that of the file.
",
    ),
    (
        &["alpha", "opacity", "transparency"],
        "\
**Alpha** is the last channel where the file says so: `ExtraSamples` of TIFF, the type of PNG, QOI and PAM, a mask of BMP, `A` of OpenEXR. Operations leave
it aside and apply to the other channels only, but for geometry, which moves it with its pixels. It is saved with the result, or dropped with a
warning where the result has another size, is a mask, or is saved in a format that has no alpha. `--alpha drop` leaves it out, and `--alpha channel`
makes it a channel like the others, as all are of npy files, Zarr stores and TIFF files of bands.
",
    ),
    (
        &["mask", "masks"],
        "\
**Masks** are the results of thresholds and comparisons. They are saved as 0 and white; morphology and geometry that moves whole pixels
take them as they are, and `to_unit` converts them to numbers.
",
    ),
    (
        &["number", "numbers"],
        "\
**Numbers.** A chain that ends in a reduction writes no file: it prints `FILE<TAB>VALUE` for each picture, in
their order (a line break in a name is written `\\n`), or with `--json` an object of JSON in a line, with `file` and `numbers`.
",
    ),
    (
        &["footprint", "footprints"],
        "\
**Footprints** of morphology: `3` (3 x 3 pixels), `disc 2` (radius), `cross 1` (radius), `rectangle 3 5` (height, width).
",
    ),
    (
        &["border", "borders"],
        "\
**Border modes,** of a row abcd: `reflect101` (dcb|abcd|cba), `reflect` (cba|abcd|dcb), `replicate` (aaa|abcd|ddd), `wrap` (bcd|abcd|abc), or
a number, which is all that lies outside.
",
    ),
    (
        &["filter", "filters", "taps"],
        "\
**Filters:** columns separated by commas, rows by slashes: `1,2,1/2,4,2/1,2,1`.
",
    ),
];
