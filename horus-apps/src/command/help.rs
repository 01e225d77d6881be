//! Help generated from the table of operations.

use std::ffi::OsString;

use horus_core::ops::describe::{OperationGroup, Parameter};

use super::parameter::accepted;
use super::table::{self, CommandOperation, RecordFunction};

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
    for group in OperationGroup::ALL {
        let names = of(group).map(|row| row.name);
        text += &folded(&format!("{}:", short_title(group)), names, 2);
    }
    text
}

fn short_title(group: OperationGroup) -> &'static str {
    group.title().split(',').next().unwrap_or_default()
}

fn of(group: OperationGroup) -> impl Iterator<Item = &'static CommandOperation> {
    table::all().iter().filter(move |row| row.group == group)
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

/// The help that `words` request, if any: `help`, `operations`, or `help NAME...` with operations and topics.
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

/// All operations, by group.
fn all() -> String {
    let mut text = "\
horus INPUT... (OUTPUT | --out-dir DIR) OPERATION ARGUMENT... OPERATION ARGUMENT...

Arguments in brackets may be left out; each can be given by name, as in `gauss sigma=2 border=wrap`. Where
a number is an operand (B, T), so may be a number for each channel (1,0.5,1), a picture (@dark.tif),
or the picture as it was read (@in). More: `horus help` operands, types, depth, alpha, masks, numbers, footprint, border, filters.
"
    .to_owned();
    for group in OperationGroup::ALL {
        text += &format!("\n{}\n", group.title());
        for row in of(group) {
            let signature = row.signature();
            text += &format!("  {signature:<34} {}\n", row.summary.replace('`', ""));
        }
    }
    text
}

/// One operation in full.
fn one(row: &CommandOperation) -> String {
    let mut text = format!("{}\n  {}\n", row.signature(), row.summary.replace('`', ""));
    if !row.details.is_empty() {
        text += &format!("  {}\n", row.details.replace('`', ""));
    }
    if !row.aliases.is_empty() {
        text += &format!("  also called {}\n", row.aliases.join(", "));
    }
    if !row.parameters.is_empty() {
        text.push('\n');
    }
    for parameter in row.parameters {
        text += &format!("  {:<14} {}\n", parameter.name, about(parameter));
    }
    if !row.elsewhere.is_empty() {
        text += &format!("\n  {}; like {}\n", row.pattern.name(), row.elsewhere.join(", ").replace('`', ""));
    }
    text + &format!("\n  {}\n", example(row))
}

fn about(parameter: &Parameter) -> String {
    let mut text = accepted(parameter.kind);
    if !parameter.help.is_empty() {
        text = format!("{}: {text}", parameter.help);
    }
    if let Some(default) = parameter.default {
        text += &format!(" (default: {default})");
    }
    text
}

fn example(row: &CommandOperation) -> String {
    let output = if matches!(row.record, RecordFunction::Numbers(_)) { "" } else { " out.png" };
    format!("horus in.png{output} {}", row.example)
}

/// Topics with names of their own, which the page of the manual also contains.
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
**Alpha** is the last channel where the file says so: `ExtraSamples` of TIFF, the type of PNG, QOI, WebP, JPEG 2000 and PAM, a mask of BMP, `A` of OpenEXR. Operations leave
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
