//! The operations of the command: the library's descriptions, each with a function that records it.
//!
//! Pixel operations come from [`horus_core::ops::pixel::TABLE`]; a new row there is an operation here. Every other
//! group has a file, including compositions that only the command has.

pub(super) mod arithmetic;
mod colour;
mod detectors;
mod filters;
mod geometry;
mod morphology;
mod reductions;
mod statistics;
mod thresholds;

use std::ops::Deref;
use std::sync::LazyLock;

use horus_core::ops::describe::{Description, OperationGroup};
use horus_core::ops::pixel::PixelOp;

use super::arguments::Arguments;
use super::chain::{Answer, ChainError};
use super::value::Current;

/// An operation of the command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandOperation {
    pub(crate) described: &'static Description,
    pub(crate) record: RecordFunction,
}

/// Recording function of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordFunction {
    /// Yields a picture or a mask.
    Picture(fn(&Current, &Arguments<'_>) -> Result<Current, ChainError>),
    /// Yields numbers, which end a chain.
    Numbers(fn(&Current, &Arguments<'_>) -> Result<Answer, ChainError>),
    /// An operation of one or two operands of the library's table.
    Pixel(PixelOp),
}

impl Deref for CommandOperation {
    type Target = Description;

    fn deref(&self) -> &Description {
        self.described
    }
}

/// All operations, by group.
pub(crate) fn all() -> &'static [CommandOperation] {
    static TABLE: LazyLock<Vec<CommandOperation>> = LazyLock::new(|| {
        let mut rows = [
            colour::ROWS,
            &arithmetic::rows(),
            thresholds::ROWS,
            filters::ROWS,
            morphology::ROWS,
            geometry::ROWS,
            detectors::ROWS,
            statistics::ROWS,
            reductions::ROWS,
        ]
        .concat();
        // Rows of this command replace rows of the library's table with the same name.
        let own: Vec<&str> =
            rows.iter().filter(|r| matches!(r.record, RecordFunction::Picture(_))).map(|r| r.name).collect();
        rows.retain(|row| !matches!(row.record, RecordFunction::Pixel(_)) || !own.contains(&row.name));
        rows.sort_by_key(|row| OperationGroup::ALL.iter().position(|group| *group == row.group));
        rows
    });
    &TABLE
}

impl CommandOperation {
    /// An operation that yields a picture or a mask.
    const fn picture(
        described: &'static Description,
        record: fn(&Current, &Arguments<'_>) -> Result<Current, ChainError>,
    ) -> CommandOperation {
        CommandOperation { described, record: RecordFunction::Picture(record) }
    }

    /// An operation that yields numbers.
    const fn numbers(
        described: &'static Description,
        record: fn(&Current, &Arguments<'_>) -> Result<Answer, ChainError>,
    ) -> CommandOperation {
        CommandOperation { described, record: RecordFunction::Numbers(record) }
    }

    /// Returns `true` if the operation moves pixels, and their alpha with them.
    pub(crate) fn moves(&self) -> bool {
        self.group == OperationGroup::Geometry
    }

    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }
}

/// Returns `true` if an operation has this name.
pub(crate) fn is_name(word: &str) -> bool {
    all().iter().any(|row| row.is_named(word))
}

/// The names of all operations.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    all().iter().flat_map(|row| std::iter::once(row.name).chain(row.aliases.iter().copied()))
}

/// The rows of this name: `min` and `max` are binary operations and also reductions.
pub(crate) fn named(name: &str) -> impl Iterator<Item = &'static CommandOperation> {
    all().iter().filter(move |row| row.is_named(name))
}

/// The operation of this name; of several, the one that takes so many words.
pub(crate) fn find(name: &str, words: usize) -> Option<&'static CommandOperation> {
    let ends = |row: &&CommandOperation| matches!(row.record, RecordFunction::Numbers(_));
    named(name).find(|row| ends(row) == (words == 0)).or_else(|| named(name).next())
}

/// The message for an unknown operation, with a suggestion.
pub(crate) fn no_such(name: &str) -> String {
    format!("there is no operation `{name}`{}; `horus help` lists them", suggest(name))
}

/// Names in other libraries, operations here with a similar effect, and functions of the Python package with a similar
/// effect.
const ELSEWHERE: &[(&[&str], &[&str], &[&str])] = &[
    (&["edge", "edges", "prewitt", "scharr", "roberts"], &["sobel", "canny"], &["prewitt", "scharr"]),
    (&["ridge", "ridges", "frangi", "sato", "meijering", "vesselness"], &["convrot", "convuv"], &["frangi", "sato"]),
    (&["smooth", "denoise", "nlm"], &["gauss", "median", "bilateral"], &[]),
    (&["average", "uniform"], &["box_filter", "mean"], &[]),
    (&["brightness", "brighten", "darken", "lighten", "plus"], &["add", "gamma"], &[]),
    (&["contrast", "autocontrast", "autolevel", "rescale"], &["normalize", "equalize"], &[]),
    (&["minus"], &["sub"], &[]),
    (&["times"], &["mul"], &[]),
    (&["grayscale", "greyscale", "bw", "mono"], &["luminance"], &[]),
    (&["binarize", "binary", "binarise"], &["threshold", "otsu"], &["threshold_li", "threshold_yen"]),
    (&["adaptive", "local"], &["sauvola"], &["threshold_local"]),
    (&["hysteresis"], &["threshold"], &["apply_hysteresis_threshold"]),
    (&["std", "stddev", "deviation"], &["stats", "variance"], &[]),
    (&["hist"], &["histogram"], &[]),
    (&["mirror", "flop"], &["flip"], &[]),
    (&["turn", "deskew"], &["rotate"], &[]),
    (&["shift", "move", "roll"], &["translate"], &[]),
    (&["thumbnail", "shrink", "enlarge", "zoom", "downscale", "upscale"], &["scale", "resize"], &[]),
    (&["cut", "extract", "roi"], &["crop"], &[]),
    (&["dilation"], &["dilate"], &[]),
    (&["erosion"], &["erode"], &[]),
    (&["laplacian"], &["laplace"], &[]),
    (&["dog"], &["gauss"], &["difference_of_gaussians"]),
    (&["segment", "blobs", "connected"], &["label"], &[]),
    (&["cast", "astype"], &["convert"], &[]),
    (&["lab", "hsv", "ycbcr"], &["rgb_to_lab", "rgb_to_hsv", "rgb_to_ycbcr"], &[]),
];

/// A suggestion for an unknown operation: an operation with a similar name, or others with a similar effect.
pub(crate) fn suggest(name: &str) -> String {
    if let Some((_, here, python)) = ELSEWHERE.iter().find(|(words, ..)| words.contains(&name)) {
        let quoted = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let verb = if python.len() == 1 { "is" } else { "are" };
        let python = if python.is_empty() { String::new() } else { format!("; {} {verb} in Python", quoted(python)) };
        return format!("; close: {}{python}", quoted(here));
    }
    // The name of a function of another library, such as `GaussianBlur`.
    let like = all().iter().find(|row| row.elsewhere.iter().any(|other| function(other).eq_ignore_ascii_case(name)));
    like.map_or_else(|| did_you_mean(nearest(name, names())), |row| format!("; close: `{}`", row.name))
}

/// The function in a name of another library: `gaussian_filter` of `ndi.gaussian_filter`.
fn function(name: &str) -> &str {
    let called = name.split_once('(').map_or(name, |(called, _)| called);
    called.rsplit(['.', ':']).next().unwrap_or_default()
}

/// A hint where numbers end a chain too early: the binary operation of the same name.
pub(super) fn hint_of_operand(text: &str) -> String {
    let other = named(text).find(|row| !matches!(row.record, RecordFunction::Numbers(_)));
    other.map_or(String::new(), |row| format!(" (`{}` yields a picture)", row.signature()))
}

/// The word that was probably intended.
pub(crate) fn nearest<'a>(word: &str, among: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    /// Similarity from which clap suggests names of options.
    const ALIKE: f64 = 0.8;
    let scored = among.map(|name| (strsim::jaro_winkler(word, name), name)).filter(|(score, _)| *score > ALIKE);
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

/// The question at the end of a message.
pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or(String::new(), |name| format!("; did you mean `{name}`?"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use horus_core::ops::pixel::TABLE;

    use super::*;
    use crate::command::parameter::parse;

    #[test]
    fn names_are_words_and_no_arguments() {
        let mut seen = BTreeSet::new();
        for row in all() {
            for name in std::iter::once(&row.name).chain(row.aliases) {
                let ends = matches!(row.record, RecordFunction::Numbers(_));
                assert!(seen.insert((*name, ends)), "{name} is there twice");
                assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
                assert!(!["help", "operations"].contains(name));
            }
            assert!(row.summary.len() <= 100 && !row.summary.ends_with('.'), "{}: {}", row.name, row.summary);
        }
        for (words, here, python) in ELSEWHERE {
            assert!(words.iter().all(|word| !is_name(word)), "{words:?} are operations");
            assert!(here.iter().all(|name| is_name(name)), "{here:?} are no operations");
            // The sources of the Python package are absent from this crate's archive.
            let package = concat!(env!("CARGO_MANIFEST_DIR"), "/../horus-python/python/horus_image/filters.pyi");
            if let Ok(package) = std::fs::read_to_string(package) {
                let has = |name: &&str| package.contains(&format!("\"{name}\""));
                assert!(python.iter().all(has), "{python:?} are not in Python");
            }
        }
        for word in ["disc", "cross", "rectangle", "wrap", "reflect", "reflect101", "replicate"] {
            assert!(!is_name(word));
        }
    }

    #[test]
    fn defaults_and_order_of_parameters_make_sense() {
        for row in all() {
            let first = row.parameters.iter().position(|p| p.default.is_some()).unwrap_or(row.parameters.len());
            assert!(row.parameters[first..].iter().all(|p| p.default.is_some()), "{}", row.signature());
            for parameter in row.parameters {
                if let Some(word) = parameter.default {
                    let words: Vec<&str> = word.split(' ').collect();
                    let parsed = parse(parameter.kind, &words).map(|(_, taken)| taken);
                    assert_eq!(parsed, Ok(words.len()), "{} of {}", parameter.name, row.name);
                }
            }
        }
    }

    #[test]
    fn every_operation_of_the_librarys_table_is_an_operation_here() {
        // `mul_add` takes two more images.
        for row in TABLE.iter().filter(|row| row.op != PixelOp::MulAdd) {
            assert!(is_name(row.name), "{}", row.name);
        }
    }

    #[test]
    fn misspelt_names_are_recognised() {
        assert!(no_such("guass").contains("did you mean `gauss`?"));
        assert!(no_such("sobelx").contains("did you mean `sobel_x`?"));
        assert!(!no_such("qqq").contains("did you mean"));
        assert!(no_such("GaussianBlur").contains("; close: `gauss`") && no_such("divide").contains("`div`"));
        assert!(
            no_such("edge")
                .contains("`edge`; close: `sobel`, `canny`; `prewitt`, `scharr` are in Python; `horus help`")
        );
    }

    #[test]
    fn what_two_operations_are_called_is_settled_by_arguments() {
        let numbers = |words| matches!(find("min", words).map(|row| row.record), Some(RecordFunction::Numbers(_)));
        assert!(numbers(0) && !numbers(1));
    }
}
