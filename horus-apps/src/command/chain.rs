//! The chain of operations: words are parsed into calls, calls record.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use horus::core::image::{Reader, Values};
use horus::core::io::on_first;
use horus::core::session::{Handle, Session};
use horus::prelude::*;

use super::parameter::{Argument, Operand, Parameter};
use super::table::{self, Operation, Record};
use super::value::Current;
use crate::batch::Response;

/// Operations in the order in which they are applied.
#[derive(Debug, Default)]
pub(crate) struct Chain {
    pub(crate) calls: Vec<Call>,
}

/// An operation with its arguments.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) operation: &'static Operation,
    /// In the order of the operation's parameters.
    arguments: Vec<Argument>,
    /// As it was written.
    pub(crate) text: String,
}

/// What a chain ends in.
pub(crate) enum Outcome {
    /// A picture, which is saved.
    Picture(Current),
    /// Numbers, which are printed.
    Numbers(Answer),
}

/// Numbers not yet computed, and the lines that show them.
pub(crate) type Answer = Box<dyn Values<Output = Vec<String>>>;

/// Values, and the lines that tell them.
struct Told<V: Values> {
    values: V,
    lines: fn(V::Output) -> Vec<String>,
}

impl<V: Values> Values for Told<V> {
    type Output = Vec<String>;

    fn handles<'a>(&'a self, to: &mut Vec<&'a Handle>) {
        self.values.handles(to);
    }

    fn reader(&self) -> Reader<Vec<String>> {
        let (read, lines) = (self.values.reader(), self.lines);
        Arc::new(move |from| lines(read(from)))
    }
}

/// The answer that shows `values` in `lines`.
pub(crate) fn answer<V: Values + 'static>(values: V, lines: fn(V::Output) -> Vec<String>) -> Answer {
    Box::new(Told { values, lines })
}

/// Why an operation cannot be recorded.
pub(crate) enum Fault {
    /// It does not fit the picture.
    Said(String),
    /// The library says so.
    Core(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Fault {
        Fault::Core(error)
    }
}

impl Fault {
    /// It takes numbers and got a mask.
    pub(crate) fn of_mask() -> Fault {
        Fault::Said("it takes numbers, not a mask; put `to_unit` or `convert TYPE` before it to get 0 and 1".into())
    }

    /// It takes a mask and got numbers.
    pub(crate) fn of_numbers() -> Fault {
        Fault::Said("it takes a mask, not numbers; put `threshold T`, `otsu` or a comparison before it".into())
    }

    /// It does not know the type of the picture.
    pub(crate) fn unknown_type(image: &AnyImage) -> Fault {
        Fault::Said(format!("it does not support pixels of type {}", image.dtype()))
    }

    /// In one line, without the line of our source where it was recorded.
    fn text(&self, name: &str) -> String {
        let named = |op: &str, message: &str| match op == name {
            true => message.to_owned(),
            false => format!("{op}: {message}"),
        };
        match self {
            Fault::Said(message) => message.clone(),
            Fault::Core(Error::Parameter { op, message, .. }) => named(op, message),
            Fault::Core(Error::ShapeMismatch { op, left, right, .. }) => {
                named(op, &format!("pictures differ in size, {left} and {right}"))
            }
            Fault::Core(Error::Empty { op, shape, .. }) => named(op, &format!("size {shape} has no pixels")),
            Fault::Core(other) => other.to_string(),
        }
    }
}

/// The pictures that arguments name, read.
#[derive(Default)]
pub(crate) struct Files(BTreeMap<PathBuf, AnyImage>);

/// The arguments of a call, and what they refer to.
pub(crate) struct Arguments<'a> {
    call: &'a Call,
    files: &'a Files,
    input: &'a Current,
}

/// An operand beside an image of type `T`.
pub(crate) enum Term<T: Pixel> {
    Scalar(T),
    Two([T; 2]),
    Three([T; 3]),
    Four([T; 4]),
    Image(Image<T>),
}

/// Evaluates `$body` with `$term` bound to whatever the [`Term`] is.
macro_rules! with_term {
    ($from:expr, $term:ident => $body:expr) => {
        match $from {
            $crate::command::chain::Term::Scalar($term) => $body,
            $crate::command::chain::Term::Two($term) => $body,
            $crate::command::chain::Term::Three($term) => $body,
            $crate::command::chain::Term::Four($term) => $body,
            $crate::command::chain::Term::Image($term) => $body,
        }
    };
}
pub(crate) use with_term;

impl Chain {
    /// Parses `words`, the first of which is the name of an operation.
    pub(crate) fn parse(words: &[&str]) -> Result<Chain, String> {
        let mut calls = Vec::new();
        let mut rest = words;
        while let Some((name, after)) = rest.split_first() {
            let end = after.iter().position(|w| table::is_name(w)).unwrap_or(after.len());
            let (given, next) = after.split_at(end);
            let place = calls.len() + 1;
            calls.push(Call::parse(name, given).map_err(|e| format!("operation {place}, {e}"))?);
            rest = next;
        }
        if let Some(place) = calls.iter().position(|c| c.ends()).filter(|place| place + 1 < calls.len()) {
            let text = &calls[place].text;
            return Err(format!(
                "operation {}, `{text}`: it yields numbers, so nothing can follow it{}",
                place + 1,
                table::hint_of_operand(text)
            ));
        }
        Ok(Chain { calls })
    }

    /// Whether it ends in numbers and not in a picture.
    pub(crate) fn ends_in_numbers(&self) -> bool {
        self.calls.last().is_some_and(Call::ends)
    }

    /// The pictures that its arguments name, each with the call that it stands in, and the place of that.
    fn files(&self) -> impl Iterator<Item = (usize, &Call, &PathBuf)> {
        let calls = self.calls.iter().enumerate();
        calls.flat_map(|(i, call)| call.arguments.iter().map(move |argument| (i, call, argument))).filter_map(
            |(i, call, argument)| match argument {
                Argument::Operand(Operand::File(path)) => Some((i, call, path)),
                _ => None,
            },
        )
    }

    /// Checks, on rank 0, that the pictures that its arguments name exist: once, rather than for each picture of a
    /// series.
    ///
    /// # Errors
    /// A message, on all ranks, about the first that does not.
    pub(crate) fn present(&self) -> Result<(), String> {
        if self.files().next().is_none() {
            return Ok(());
        }
        let comm = horus::ranks().map_err(|e| e.to_string())?;
        let found = on_first(&*comm, "looking for the pictures that operations name", || {
            for (i, call, path) in self.files() {
                std::fs::metadata(path).map_err(|e| call.at(i, Error::read(path, e).into()).to_string())?;
            }
            Ok(Vec::new())
        });
        found.map_err(|e| e.to_string())?.map(drop)
    }

    /// Reads the pictures that its arguments name, each once.
    pub(crate) fn open(&self, session: &Session, options: &OpenOptions) -> Result<Files> {
        let mut files = Files::default();
        for (i, call, path) in self.files() {
            if !files.0.contains_key(path) {
                let read = AnyImage::open_with(session, path, options).map_err(|e| call.at(i, e.into()))?;
                files.0.insert(path.clone(), read);
            }
        }
        Ok(files)
    }

    /// Records the chain on a picture. Nothing is computed.
    pub(crate) fn record(&self, picture: AnyImage, files: &Files) -> Result<Outcome> {
        let input = Current::read(picture);
        let mut current = input.clone();
        for (i, call) in self.calls.iter().enumerate() {
            let told = |fault: Fault| call.at(i, fault);
            let arguments = Arguments { call, files, input: &input };
            current = match call.operation.record {
                Record::Numbers(record) => return record(&current, &arguments).map(Outcome::Numbers).map_err(told),
                Record::Picture(record) => record(&current, &arguments),
                Record::Pixel(op) => table::arithmetic::pixel(op, &current, &arguments),
            }
            .map_err(told)?;
            current.check().map_err(|e| told(e.into()))?;
        }
        Ok(Outcome::Picture(current))
    }
}

impl Call {
    /// The fault of this call, which stands at place `i`, counted from 0.
    fn at(&self, i: usize, fault: Fault) -> Error {
        let cause = fault.text(self.operation.name);
        Error::Config(format!("operation {}, `{}`: {cause}", i + 1, self.text))
    }

    fn ends(&self) -> bool {
        matches!(self.operation.record, Record::Numbers(_))
    }

    fn parse(name: &str, words: &[&str]) -> Result<Call, String> {
        let text = [&[name], words].concat().join(" ");
        let told = |cause: String| format!("`{text}`: {cause}");
        let operation = table::find(name, words.len()).ok_or_else(|| told(table::no_such(name)))?;
        let arguments = understood(operation, words)
            .map_err(|cause| told(format!("{cause}; usage: `{}`", operation.signature())))?;
        Ok(Call { operation, arguments, text })
    }
}

/// The arguments of an operation, in the order of its parameters.
fn understood(operation: &Operation, words: &[&str]) -> Result<Vec<Argument>, String> {
    let parameters = operation.parameters;
    let mut arguments: Vec<Option<Argument>> = vec![None; parameters.len()];
    let mut positional = Vec::new();
    for word in words {
        let Some((name, value)) = word.split_once('=').filter(|(name, _)| !name.starts_with('@')) else {
            positional.push(*word);
            continue;
        };
        let at = parameters.iter().position(|p| p.name == name).ok_or_else(|| {
            let near = table::nearest(name, parameters.iter().map(|p| p.name));
            format!("unknown argument `{name}`{}", table::meant(near))
        })?;
        let words: Vec<&str> = match parameters[at].kind {
            super::parameter::Kind::Footprint => value.split(',').collect(),
            _ => vec![value],
        };
        let (argument, taken) = parameters[at].kind.parse(&words).map_err(|e| of(&parameters[at], e))?;
        if taken < words.len() {
            return Err(of(&parameters[at], format!("unexpected `{value}`")));
        }
        if arguments[at].replace(argument).is_some() {
            return Err(format!("`{name}` is given more than once"));
        }
    }
    let mut rest = &positional[..];
    for (slot, parameter) in arguments.iter_mut().zip(parameters) {
        if slot.is_none() && !rest.is_empty() {
            let (argument, taken) = parameter.kind.parse(rest).map_err(|e| of(parameter, e))?;
            *slot = Some(argument);
            rest = &rest[taken..];
        }
    }
    if let Some(word) = rest.first() {
        // A word too many may be an operation that is misspelt.
        let near = table::nearest(word, table::names());
        let what = if parameters.is_empty() { "it takes no arguments" } else { "too many arguments" };
        return Err(format!("{what}: unexpected `{word}`{}", table::meant(near)));
    }
    let complete =
        arguments.into_iter().zip(parameters).map(|(argument, parameter)| match (argument, parameter.default) {
            (Some(argument), _) => Ok(argument),
            (None, Some(word)) => {
                let words: Vec<&str> = word.split(' ').collect();
                parameter.kind.parse(&words).map(|(argument, _)| argument)
            }
            (None, None) => {
                Err(format!("{} is missing ({})", parameter.name.to_uppercase(), parameter.kind.describe()))
            }
        });
    complete.collect()
}

fn of(parameter: &Parameter, cause: String) -> String {
    format!("{}: {cause}", parameter.name.to_uppercase())
}

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident $variant:ident $t:ty;)*) => {$(
        $(#[$doc])*
        pub(crate) fn $name(&self, name: &str) -> $t {
            match self.argument(name) {
                Argument::$variant(value) => value.clone(),
                other => unreachable!("{name} is {other:?}"),
            }
        }
    )*};
}

impl Arguments<'_> {
    accessors! {
        /// A number.
        number Number f64;
        /// A whole number from 0 on.
        count Count usize;
        /// A whole number.
        offset Offset isize;
        /// Numbers.
        numbers Numbers Vec<f64>;
        /// Which of the words of a choice.
        choice Choice usize;
        /// An edge mode.
        border Border Border;
        /// A footprint.
        footprint Footprint Footprint;
        /// The taps of a filter.
        taps Taps Filter;
    }

    /// The order of a derivative.
    pub(crate) fn order(&self, name: &str) -> u32 {
        u32::try_from(self.count(name)).unwrap_or(u32::MAX)
    }

    /// The argument of a parameter; that rows ask for parameters of theirs is tested by running each.
    fn argument(&self, name: &str) -> &Argument {
        let at = self.call.operation.parameters.iter().position(|p| p.name == name);
        &self.call.arguments[at.expect("a row asks for its own parameters")]
    }

    fn as_operand(&self, name: &str) -> &Operand {
        match self.argument(name) {
            Argument::Operand(operand) => operand,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The picture that an argument names, if it is one.
    pub(crate) fn picture(&self, name: &str) -> Option<Current> {
        match self.as_operand(name) {
            Operand::Input => Some(self.input.clone()),
            Operand::File(path) => self.files.0.get(path).cloned().map(Current::read),
            Operand::Number(_) | Operand::Channels(_) => None,
        }
    }

    /// The mask of a picture that an argument names: where it is not 0.
    pub(crate) fn mask(&self, name: &str) -> Result<Image<bool>, Fault> {
        let picture = self.picture(name).ok_or_else(|| Fault::Said("it takes a picture".into()))?;
        match &picture.pixels {
            Response::Mask(mask) => Ok(mask.clone()),
            Response::Picture(image) => Ok(image.convert::<f32>().ne(0.0)),
        }
    }

    /// The operand beside `image`, on the scale on which `white` is white.
    pub(crate) fn term<T: Pixel>(&self, _image: &Image<T>, name: &str, white: f64) -> Result<Term<T>, Fault> {
        match self.as_operand(name) {
            Operand::Number(value) => Ok(Term::Scalar(pixel(*value)?)),
            Operand::Channels(values) => {
                let values = values.iter().map(|v| pixel(*v)).collect::<Result<Vec<T>, _>>()?;
                Ok(match values[..] {
                    [a, b] => Term::Two([a, b]),
                    [a, b, c] => Term::Three([a, b, c]),
                    [a, b, c, d] => Term::Four([a, b, c, d]),
                    _ => unreachable!("{name} has 2 to 4 numbers"),
                })
            }
            Operand::File(_) | Operand::Input => self.image(name, white).map(Term::Image),
        }
    }

    /// The picture that an argument names, in type `T`. Beside floats, integers are brought to the scale on which `white` is white;
    /// floats are taken as they are.
    pub(crate) fn image<T: Pixel>(&self, name: &str, white: f64) -> Result<Image<T>, Fault> {
        let picture = self.picture(name).ok_or_else(|| Fault::Said("it takes a picture".into()))?;
        let (has, wanted) = (picture.dtype(), T::DTYPE);
        let Response::Picture(image) = &picture.pixels else { return Err(Fault::of_mask()) };
        if has == wanted {
            return Ok(image.convert());
        }
        if !wanted.is_float() {
            let message = format!(
                "pixels are {wanted} and those of its argument {has}; put `to_unit` or `convert {has}` before it"
            );
            return Err(Fault::Said(message));
        }
        let image = image.convert::<T>();
        let factor = white / picture.white();
        Ok(if has.is_float() || factor == 1.0 { image } else { image * T::from_f64(factor) })
    }
}

/// The number as a pixel of `image`, if there is such a one.
pub(crate) fn exact<T: Pixel>(_image: &Image<T>, value: f64) -> Result<T, Fault> {
    pixel(value)
}

fn pixel<T: Pixel>(value: f64) -> Result<T, Fault> {
    let pixel = T::from_f64(value);
    if T::DTYPE.is_float() || pixel.to_f64() == value {
        return Ok(pixel);
    }
    let name = T::DTYPE;
    Err(Fault::Said(format!("pixels are {name}, which cannot hold {value}; put `to_unit` or `convert f32` before it")))
}
