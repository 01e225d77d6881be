//! The chain of operations: words are parsed into calls, and calls record operations.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use horus::prelude::*;
use horus_core::error::{Audience, SourceLine};
use horus_core::image::{ValueReader, Values};
use horus_core::io::on_first;
use horus_core::ops::describe::{Accepts, Parameter};
use horus_core::session::{Handle, Session};

use super::arguments::Arguments;
use super::parameter::{OperandArgument, ParsedArgument, accepted, parse};
use super::table::{self, CommandOperation, RecordFunction};
use super::value::{AlphaTreatment, Current};
use crate::batch;

/// Operations in the order in which they are applied.
#[derive(Debug)]
pub(crate) struct Chain {
    pub(crate) calls: Vec<ChainCall>,
    /// Treatment of the pictures' alpha.
    pub(crate) alpha: AlphaTreatment,
}

/// An operation with its arguments.
#[derive(Debug)]
pub(crate) struct ChainCall {
    pub(crate) operation: &'static CommandOperation,
    /// The arguments, in the order of the operation's parameters.
    pub(super) arguments: Vec<ParsedArgument>,
    /// The call as it was written.
    pub(crate) text: String,
}

/// The result of a chain.
pub(crate) enum ChainResult {
    /// A picture, which is saved.
    Picture(Current),
    /// Numbers, which are printed.
    Numbers(Answer),
}

/// Numbers that are not computed yet, with their conversion to lines.
pub(crate) type Answer = Box<dyn Values<Output = Vec<String>>>;

/// Values, and their conversion to lines.
struct PrintedValues<V: Values> {
    values: V,
    lines: fn(V::Output) -> Vec<String>,
}

impl<V: Values> Values for PrintedValues<V> {
    type Output = Vec<String>;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.values.handles(to);
    }

    fn reader(&self) -> ValueReader<Vec<String>> {
        let (read, lines) = (self.values.reader(), self.lines);
        Arc::new(move |from| lines(read(from)))
    }
}

/// Names the operation that recorded these values, with its place in the chain, and what they depend on that has no name yet.
pub(super) fn record_by(handles: Vec<&Handle>, (place, call): (usize, &'static str)) {
    let word = SourceLine { file: "", line: place as u32, call };
    handles.into_iter().for_each(|handle| handle.recorded_at(word));
}

/// The answer that shows `values` in `lines`.
pub(crate) fn answer<V: Values + 'static>(values: V, lines: fn(V::Output) -> Vec<String>) -> Answer {
    Box::new(PrintedValues { values, lines })
}

/// The reason why an operation cannot be recorded.
pub(crate) enum ChainError {
    /// The operation does not fit the picture.
    Message(String),
    /// An error of the library.
    Core(Error),
}

impl From<Error> for ChainError {
    fn from(error: Error) -> ChainError {
        ChainError::Core(error)
    }
}

impl ChainError {
    /// The operation takes numbers but got a mask.
    pub(crate) fn of_mask() -> ChainError {
        ChainError::Message(
            "it takes numbers, not a mask; put `to_unit` or `convert TYPE` before it to get 0 and 1".into(),
        )
    }

    /// The operation takes a mask but got numbers.
    pub(crate) fn of_numbers() -> ChainError {
        ChainError::Message("it takes a mask, not numbers; put `threshold T`, `otsu` or a comparison before it".into())
    }

    /// The operation does not support the picture's type.
    pub(crate) fn unknown_type(image: &AnyImage) -> ChainError {
        ChainError::Message(format!("it does not support pixels of type {}", image.dtype()))
    }

    /// The message on one line, without the source line that recorded the operation.
    fn text(&self, name: &str) -> String {
        let named = |op: &str, message: &str| match op == name {
            true => message.to_owned(),
            false => format!("{}: {message}", Audience::Command.method_name(op)),
        };
        match self {
            ChainError::Message(message) => message.clone(),
            ChainError::Core(Error::Parameter { op, message, .. }) => named(op, message),
            ChainError::Core(Error::ShapeMismatch { op, left, right, .. }) => {
                named(op, &format!("pictures differ in size, {left} and {right}"))
            }
            ChainError::Core(Error::Empty { op, shape, .. }) => named(op, &format!("size {shape} has no pixels")),
            ChainError::Core(other) => other.to_string(),
        }
    }
}

/// The pictures that arguments name.
#[derive(Default)]
pub(crate) struct ArgumentFiles(BTreeMap<PathBuf, AnyImage>);

impl ArgumentFiles {
    /// The picture of a file that an argument names.
    pub(super) fn get(&self, path: &Path) -> Option<&AnyImage> {
        self.0.get(path)
    }
}

impl Chain {
    /// Parses `words`, the first of which is the name of an operation.
    pub(crate) fn parse(words: &[&str]) -> Result<Chain, String> {
        let mut calls = Vec::new();
        let mut rest = words;
        while let Some((name, after)) = rest.split_first() {
            let begins = |i: &usize| table::is_name(after[*i]) && !takes(name, &after[..*i], after[*i]);
            let (given, next) = after.split_at((0..after.len()).find(begins).unwrap_or(after.len()));
            let place = calls.len() + 1;
            calls.push(ChainCall::parse(name, given).map_err(|e| format!("operation {place}, {e}"))?);
            rest = next;
        }
        if let Some(place) = calls.iter().position(|c| c.yields_numbers()).filter(|place| place + 1 < calls.len()) {
            let text = &calls[place].text;
            return Err(format!(
                "operation {}, `{text}`: it yields numbers, so nothing can follow it{}",
                place + 1,
                table::hint_of_operand(text)
            ));
        }
        Ok(Chain { calls, alpha: AlphaTreatment::Keep })
    }

    /// Returns `true` if it ends in numbers instead of a picture.
    pub(crate) fn ends_in_numbers(&self) -> bool {
        self.calls.last().is_some_and(ChainCall::yields_numbers)
    }

    /// The pictures that its arguments name, each with its call and the call's index.
    fn files(&self) -> impl Iterator<Item = (usize, &ChainCall, &PathBuf)> {
        let calls = self.calls.iter().enumerate();
        calls.flat_map(|(i, call)| call.arguments.iter().map(move |argument| (i, call, argument))).filter_map(
            |(i, call, argument)| match argument {
                ParsedArgument::Operand(OperandArgument::File(path)) => Some((i, call, path)),
                _ => None,
            },
        )
    }

    /// Checks on rank 0 that the pictures named by arguments exist, once for a series. Calls `absent` there, and
    /// returns its result on all ranks.
    ///
    /// # Errors
    /// A message, on all ranks, about the first missing picture.
    pub(crate) fn present(&self, absent: impl Fn() -> Option<String>) -> Result<Option<String>, String> {
        let comm = horus::ranks().map_err(|e| e.to_string())?;
        let found = on_first(&*comm, "looking for the pictures that operations name", || {
            if let Some(message) = absent() {
                return Ok(Some(message));
            }
            for (i, call, path) in self.files() {
                std::fs::metadata(path).map_err(|e| call.at(i, Error::read(path, e).into()).to_string())?;
            }
            Ok(None)
        });
        found.map_err(|e| e.to_string())?
    }

    /// Reads the pictures that its arguments name, each once.
    pub(crate) fn open(&self, session: &Session, options: &OpenOptions) -> Result<ArgumentFiles> {
        let mut files = ArgumentFiles::default();
        for (i, call, path) in self.files() {
            if !files.0.contains_key(path) {
                let read = batch::open(session, path, options).map_err(|e| call.at(i, e.into()))?;
                let read = if self.alpha == AlphaTreatment::Channel { read } else { read.colours() };
                Current::read(read.clone()).recorded_by((0, "operand"));
                files.0.insert(path.clone(), read);
            }
        }
        Ok(files)
    }

    /// Records the chain on a picture. Computes nothing.
    pub(crate) fn record(&self, picture: AnyImage, files: &ArgumentFiles) -> Result<ChainResult> {
        Current::read(picture.clone()).recorded_by((0, "input"));
        let input = Current::opened(picture, self.alpha);
        let mut current = input.clone();
        for (i, call) in self.calls.iter().enumerate() {
            let told = |fault: ChainError| call.at(i, fault);
            let arguments = Arguments::new(call, files, &input);
            let recorded = |on: &Current| match call.operation.record {
                RecordFunction::Picture(record) => record(on, &arguments),
                RecordFunction::Pixel(op) => table::arithmetic::pixel(op, on, &arguments),
                RecordFunction::Numbers(_) => Ok(on.clone()),
            };
            if let RecordFunction::Numbers(record) = call.operation.record {
                let answer = record(&current, &arguments).map_err(told)?;
                let mut handles = Vec::new();
                answer.handles(&mut handles);
                record_by(handles, (i + 1, call.operation.name));
                return Ok(ChainResult::Numbers(answer));
            }
            let made = recorded(&current).map_err(told)?;
            made.recorded_by((i + 1, call.operation.name));
            made.check().map_err(|e| told(e.into()))?;
            let moved = |alpha: &Current| if call.operation.moves() { recorded(alpha) } else { Ok(alpha.clone()) };
            current = made.after(current, moved).map_err(told)?;
        }
        Ok(ChainResult::Picture(current))
    }
}

impl ChainCall {
    /// The error of this call, the `i`-th from 0.
    fn at(&self, i: usize, fault: ChainError) -> Error {
        let cause = fault.text(self.operation.name);
        Error::Config(format!("operation {}, `{}`: {cause}", i + 1, self.text))
    }

    fn yields_numbers(&self) -> bool {
        matches!(self.operation.record, RecordFunction::Numbers(_))
    }

    fn parse(name: &str, words: &[&str]) -> Result<ChainCall, String> {
        let text = [&[name], words].concat().join(" ");
        let told = |cause: String| format!("`{text}`: {cause}");
        let operation = table::find(name, words.len()).ok_or_else(|| told(table::no_such(name)))?;
        let arguments = parse_arguments(operation, words)
            .map_err(|cause| told(format!("{cause}; usage: `{}`", operation.signature())))?;
        Ok(ChainCall { operation, arguments, text })
    }
}

/// Returns `true` if the operation of this name, given these arguments, still takes this word, which is also the name
/// of an operation: in `windows 7 7 4 4 variance`, `variance` is the statistic of each window.
fn takes(name: &str, given: &[&str], word: &str) -> bool {
    table::named(name).any(|operation| {
        let Ok((arguments, rest)) = place_arguments(operation, given) else { return false };
        if !rest.is_empty() {
            return false;
        }
        let next = arguments.iter().zip(operation.parameters).find(|(argument, _)| argument.is_none());
        next.is_some_and(|(_, next)| matches!(next.kind, Accepts::Choice(words) if words().contains(&word)))
    })
}

/// The arguments of an operation, in the order of its parameters.
fn parse_arguments(operation: &CommandOperation, words: &[&str]) -> Result<Vec<ParsedArgument>, String> {
    let parameters = operation.parameters;
    let (arguments, rest) = place_arguments(operation, words)?;
    if let Some(word) = rest.first() {
        // A superfluous word may be a misspelt operation.
        let what = if parameters.is_empty() { "it takes no arguments" } else { "too many arguments" };
        return Err(format!("{what}: unexpected `{word}`{}", table::suggest(word)));
    }
    let complete =
        arguments.into_iter().zip(parameters).map(|(argument, parameter)| match (argument, parameter.default) {
            (Some(argument), _) => Ok(argument),
            (None, Some(word)) => {
                let words: Vec<&str> = word.split(' ').collect();
                parse(parameter.kind, &words).map(|(argument, _)| argument)
            }
            (None, None) => Err(format!("{} is missing ({})", parameter.name.to_uppercase(), accepted(parameter.kind))),
        });
    complete.collect()
}

/// The given arguments, in the order of the operation's parameters, and the superfluous words.
fn place_arguments<'w>(
    operation: &CommandOperation,
    words: &[&'w str],
) -> Result<(Vec<Option<ParsedArgument>>, Vec<&'w str>), String> {
    let parameters = operation.parameters;
    let mut arguments: Vec<Option<ParsedArgument>> = vec![None; parameters.len()];
    let mut positional = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.starts_with('@')) else {
            positional.push(*word);
            continue;
        };
        let at = parameters.iter().position(|p| p.name == name).ok_or_else(|| {
            let near = table::nearest(name, parameters.iter().map(|p| p.name));
            format!("unknown argument `{name}`{}", table::did_you_mean(near))
        })?;
        let words: Vec<&str> = match parameters[at].kind {
            Accepts::Footprint => value.split(',').collect(),
            _ => vec![value],
        };
        let (argument, taken) = parse(parameters[at].kind, &words).map_err(|e| of(&parameters[at], e))?;
        if taken < words.len() {
            return Err(of(&parameters[at], format!("unexpected `{value}`")));
        }
        if arguments[at].replace(argument).is_some() {
            return Err(format!("`{name}` is given more than once"));
        }
    }
    let mut rest = &positional[..];
    for (i, parameter) in parameters.iter().enumerate() {
        let Some(word) = rest.first().filter(|_| arguments[i].is_none()) else { continue };
        let (argument, taken) = match parse(parameter.kind, rest) {
            Ok(parsed) => parsed,
            // A word that only a later parameter takes belongs to that parameter: `rotate 30 wrap`.
            Err(_)
                if parameter.default.is_some()
                    && is_optional_argument(&parameters[i + 1..], &arguments[i + 1..], word) =>
            {
                continue;
            }
            // The word may be a misspelt operation.
            Err(e) if word.starts_with(char::is_alphabetic) => return Err(of(parameter, e + &table::suggest(word))),
            Err(e) => return Err(of(parameter, e)),
        };
        arguments[i] = Some(argument);
        rest = &rest[taken..];
    }
    Ok((arguments, rest.to_vec()))
}

/// Returns `true` if one of these parameters, all optional, takes a word that is not a number.
fn is_optional_argument(parameters: &[Parameter], arguments: &[Option<ParsedArgument>], word: &str) -> bool {
    let free = parameters.iter().zip(arguments).filter(|(_, argument)| argument.is_none());
    word.parse::<f64>().is_err()
        && free.take_while(|(p, _)| p.default.is_some()).any(|(p, _)| parse(p.kind, &[word]).is_ok())
}

fn of(parameter: &Parameter, cause: String) -> String {
    format!("{}: {cause}", parameter.name.to_uppercase())
}
