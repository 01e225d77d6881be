//! The parameters of operations, and how arguments are parsed.

use std::path::PathBuf;

use horus::prelude::*;
use horus_core::ops::describe::Accepts;

/// The second operand of a binary operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum OperandArgument {
    Number(f64),
    Channels(Vec<f64>),
    File(PathBuf),
    /// The original picture.
    Input,
}

/// A length in the picture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Length {
    Pixels(f64),
    Micrometres(f64),
}

/// The height or width of a result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ResultExtent {
    Pixels(usize),
    Percent(f64),
    /// Scaled by the factor of the other extent.
    Auto,
}

/// The word for a value that follows from other arguments.
const AUTO: &str = "auto";

/// A parsed word.
#[derive(Clone, Debug)]
pub(crate) enum ParsedArgument {
    Number(f64),
    Length(Length),
    Count(usize),
    Offset(isize),
    Extent(ResultExtent),
    Limit(Option<f64>),
    Numbers(Vec<f64>),
    Operand(OperandArgument),
    Choice(usize),
    Border(Border),
    Footprint(Footprint),
    Taps(Filter),
}

/// The border modes without a parameter.
fn borders() -> impl Iterator<Item = Border> {
    Border::all(0.0).into_iter().filter(|b| b.constant().is_none())
}

/// A description of accepted arguments.
pub(crate) fn accepted(kind: Accepts) -> String {
    match kind {
        Accepts::Number => "a number".into(),
        Accepts::Length => "a number, or a length (2.5um)".into(),
        Accepts::Count => "a whole number".into(),
        Accepts::Offset => "a whole number, which may be negative".into(),
        Accepts::Extent => "a number of pixels, a percentage (50%), or auto, as the other one".into(),
        Accepts::Limit => "a number, or auto".into(),
        Accepts::Numbers => "numbers, separated by commas".into(),
        Accepts::Operand => "a number, a number for each channel (1,0.5,1), a picture (@FILE), or @in".into(),
        Accepts::File => "a picture (@FILE), or @in".into(),
        Accepts::Choice(names) => names().join(", "),
        Accepts::Border => {
            let names: Vec<&str> = borders().map(Border::name).collect();
            format!("{} or a number (`horus help border`)", names.join(", "))
        }
        Accepts::Footprint => "N (N x N pixels), disc R, cross R, or rectangle HEIGHT WIDTH".into(),
        Accepts::Taps => "numbers, columns separated by commas and rows by / (1,2,1/2,4,2/1,2,1)".into(),
    }
}

/// Parses an argument from the start of `words`; returns it and the number of words it took, or
/// a message.
pub(crate) fn parse(kind: Accepts, words: &[&str]) -> Result<(ParsedArgument, usize), String> {
    let word = *words.first().ok_or("a value is missing")?;
    let one = |argument| Ok((argument, 1));
    match kind {
        Accepts::Number => one(ParsedArgument::Number(number(word)?)),
        Accepts::Length => one(ParsedArgument::Length(match horus::io::length(word) {
            Some(micrometres) => Length::Micrometres(micrometres),
            None => Length::Pixels(number(word).map_err(|e| format!("{e}, and no length with a unit (2.5um)"))?),
        })),
        Accepts::Count => {
            one(ParsedArgument::Count(word.parse().map_err(|_| format!("`{word}` is not a whole number"))?))
        }
        Accepts::Offset => {
            one(ParsedArgument::Offset(word.parse().map_err(|_| format!("`{word}` is not a whole number"))?))
        }
        Accepts::Extent => one(ParsedArgument::Extent(extent(word)?)),
        Accepts::Limit if word == AUTO => one(ParsedArgument::Limit(None)),
        Accepts::Limit => one(ParsedArgument::Limit(Some(number(word)?))),
        Accepts::Numbers => one(ParsedArgument::Numbers(list(word)?)),
        Accepts::Operand => one(ParsedArgument::Operand(operand(word)?)),
        Accepts::File => match operand(word)? {
            OperandArgument::Number(_) | OperandArgument::Channels(_) => {
                Err(format!("`{word}` is not a picture; pictures are written @FILE"))
            }
            picture => one(ParsedArgument::Operand(picture)),
        },
        Accepts::Choice(names) => {
            let names = names();
            let found = names.iter().position(|name| *name == word);
            one(ParsedArgument::Choice(found.ok_or_else(|| format!("`{word}` is not one of {}", names.join(", ")))?))
        }
        Accepts::Border => match borders().find(|b| b.name() == word) {
            Some(border) => one(ParsedArgument::Border(border)),
            None => {
                let value = number(word).map_err(|_| format!("`{word}` is not a border mode ({})", accepted(kind)))?;
                one(ParsedArgument::Border(Border::Constant(value)))
            }
        },
        Accepts::Footprint => footprint(words),
        Accepts::Taps => one(ParsedArgument::Taps(taps(word)?)),
    }
}

fn number(word: &str) -> Result<f64, String> {
    let value: f64 = word.parse().map_err(|_| format!("`{word}` is not a number"))?;
    if value.is_nan() { Err(format!("`{word}` is not a number")) } else { Ok(value) }
}

fn extent(word: &str) -> Result<ResultExtent, String> {
    if word == AUTO {
        return Ok(ResultExtent::Auto);
    }
    let Some(percent) = word.strip_suffix('%') else {
        let pixels = word.parse().map_err(|_| format!("`{word}` is neither a whole number nor a percentage (50%)"))?;
        return Ok(ResultExtent::Pixels(pixels));
    };
    match number(percent)? {
        percent if percent > 0.0 && percent.is_finite() => Ok(ResultExtent::Percent(percent)),
        percent => Err(format!("requested {percent} %; it must be positive and finite")),
    }
}

fn list(word: &str) -> Result<Vec<f64>, String> {
    word.split(',').map(|w| number(w.trim())).collect()
}

fn operand(word: &str) -> Result<OperandArgument, String> {
    /// The largest number of values in an argument of one number per channel.
    const CHANNELS: usize = 4;
    if let Some(file) = word.strip_prefix('@') {
        return match file {
            "" => Err("a file is missing after @".into()),
            "in" => Ok(OperandArgument::Input),
            _ => Ok(OperandArgument::File(file.into())),
        };
    }
    let numbers = list(word).map_err(|e| match std::path::Path::new(word).extension() {
        Some(_) => format!("{e}; a picture is given as @{word}"),
        None => e,
    })?;
    match numbers[..] {
        [value] => Ok(OperandArgument::Number(value)),
        _ if numbers.len() <= CHANNELS => Ok(OperandArgument::Channels(numbers)),
        _ => Err(format!("`{word}` has too many numbers; the limit is {CHANNELS}")),
    }
}

/// The widest footprint; it keeps tables small.
const WIDEST: usize = 1 << 12;

fn footprint(words: &[&str]) -> Result<(ParsedArgument, usize), String> {
    let size = |i: usize, what: &str| -> Result<usize, String> {
        let word = words.get(i).ok_or_else(|| format!("`{}` is missing its {what}", words[0]))?;
        let size: usize = word.parse().map_err(|_| format!("`{word}` is not a {what} of a footprint"))?;
        if size > WIDEST { Err(format!("requested a {what} of {size}; the limit is {WIDEST}")) } else { Ok(size) }
    };
    let (made, taken) = match words[0] {
        "disc" => (Footprint::disc(size(1, "radius")?), 2),
        "cross" => (Footprint::cross(size(1, "radius")?), 2),
        "rectangle" => (Footprint::rectangle(size(1, "height")?, size(2, "width")?), 3),
        word if word.parse::<usize>().is_ok() => (Footprint::rectangle(size(0, "size")?, size(0, "size")?), 1),
        word => return Err(format!("`{word}` is not a footprint ({})", accepted(Accepts::Footprint))),
    };
    Ok((ParsedArgument::Footprint(made), taken))
}

fn taps(word: &str) -> Result<Filter, String> {
    let rows = word.split('/').map(list).collect::<Result<Vec<_>, _>>()?;
    let width = rows[0].len();
    if rows.iter().any(|row| row.len() != width) {
        return Err(format!("the rows of `{word}` differ in length"));
    }
    let height = rows.len();
    let taps: Vec<f64> = rows.into_iter().flatten().collect();
    Ok(match (height, width) {
        (1, _) => Filter::row(taps),
        (_, 1) => Filter::column(taps),
        _ => Filter::dense(height, width, taps),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(kind: Accepts, words: &[&str]) -> String {
        parse(kind, words).map(|_| ()).unwrap_err()
    }

    #[test]
    fn operands_are_numbers_lists_and_pictures() {
        assert_eq!(operand("-1.5"), Ok(OperandArgument::Number(-1.5)));
        assert_eq!(operand("1,0.5,-2"), Ok(OperandArgument::Channels(vec![1.0, 0.5, -2.0])));
        assert_eq!(operand("@dark.tif"), Ok(OperandArgument::File("dark.tif".into())));
        assert_eq!(operand("@in"), Ok(OperandArgument::Input));
        assert_eq!(operand("@./in"), Ok(OperandArgument::File("./in".into())));
        assert!(operand("dark.tif").unwrap_err().contains("@dark.tif"));
        assert!(operand("nan").is_err() && operand("1,,2").is_err() && operand("1,2,3,4,5").is_err());
        assert!(fails(Accepts::File, &["3"]).contains("@FILE"));
    }

    #[test]
    fn footprints_take_as_many_words_as_they_need() {
        let taken = |words: &[&str]| parse(Accepts::Footprint, words).map(|(_, taken)| taken);
        assert_eq!((taken(&["3"]), taken(&["disc", "2", "7"]), taken(&["rectangle", "3", "5"])), (Ok(1), Ok(2), Ok(3)));
        assert!(fails(Accepts::Footprint, &["disc"]).contains("`disc` is missing its radius"));
        assert!(fails(Accepts::Footprint, &["square", "3"]).contains("is not a footprint (N (N x N pixels)"));
        assert!(fails(Accepts::Footprint, &["999999"]).contains("the limit is"));
    }

    #[test]
    fn taps_are_rows_of_numbers() {
        assert_eq!(taps("1,2,1"), Ok(Filter::row([1.0, 2.0, 1.0])));
        assert_eq!(taps("-1/0/1"), Ok(Filter::column([-1.0, 0.0, 1.0])));
        assert_eq!(taps("1,2/3,4"), Ok(Filter::dense(2, 2, [1.0, 2.0, 3.0, 4.0])));
        assert!(taps("1,2/3").unwrap_err().contains("differ in length"));
    }

    #[test]
    fn borders_are_names_or_numbers() {
        let border = |word| match parse(Accepts::Border, &[word]) {
            Ok((ParsedArgument::Border(border), 1)) => border,
            other => panic!("{other:?}"),
        };
        assert_eq!((border("wrap"), border("0.5")), (Border::Wrap, Border::Constant(0.5)));
        assert!(fails(Accepts::Border, &["mirror"]).contains("reflect101"));
    }
}
