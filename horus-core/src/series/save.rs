//! Series whose results are written to files.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use horus_files::CollectedWarnings;

use super::distribution::{self, NumberedInputs};
use super::engine::{Finish, PictureOperation, Pipeline};
use super::queue::Bounds;
use super::{Input, Item, Series};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host::workers::Workers;
use crate::image::Image;
use crate::io::{
    self, AnyImage, FileSpec, FileTarget, Format, OpenOptions, SaveOptions, Saving, Scale, describe_file, each, on_root,
};
use crate::plan::ResultDelivery;
use crate::session::{Attributes, Handle, Session};

/// A result of an operation for [`Series::save`]: an image of any type, or an error.
pub trait Savable {
    /// Records the samples of a file at `path`.
    ///
    /// # Errors
    /// The error that the image carries; [`Error::File`] if the format does not support the image.
    fn saving(&self, path: &Path, options: &SaveOptions) -> Result<Saving>;
}

impl<T: Element> Savable for Image<T> {
    fn saving(&self, path: &Path, options: &SaveOptions) -> Result<Saving> {
        self.look()?;
        let failed = |cause: String| Error::write(path, cause);
        let format = Format::of(path, self.channels()).map_err(failed)?;
        Saving::record(self, format, options)?.map_err(failed)
    }
}

impl Savable for AnyImage {
    fn saving(&self, path: &Path, options: &SaveOptions) -> Result<Saving> {
        each!(self, image => image.saving(path, options))
    }
}

impl<S: Savable> Savable for Result<S> {
    fn saving(&self, path: &Path, options: &SaveOptions) -> Result<Saving> {
        self.as_ref().map_err(Clone::clone)?.saving(path, options)
    }
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Saved {
    /// Its path.
    pub path: PathBuf,
    /// Scaling of the values, if any.
    pub scale: Option<Scale>,
}

/// Writes the results of an operation.
struct SaveOperation<F, N> {
    operation: F,
    name: N,
    options: SaveOptions,
}

impl<F, N, S, P> PictureOperation for SaveOperation<F, N>
where
    F: Fn(&AnyImage) -> S,
    S: Savable,
    N: Fn(&Path) -> P,
    P: Into<PathBuf>,
{
    type Output = Saved;
    type Ready = (FileSpec, Option<Arc<Attributes>>);
    const WANT: ResultDelivery = ResultDelivery::Root;
    const HELD: bool = false;

    fn kind(&self, name: &Path) -> OsString {
        let path: PathBuf = (self.name)(name).into();
        path.extension().unwrap_or_default().to_owned()
    }

    fn record(&mut self, picture: &AnyImage, name: &Path) -> Result<(Vec<Handle>, Self::Ready)> {
        let path = (self.name)(name).into();
        let Saving { handles, draft, attributes } = (self.operation)(picture).saving(&path, &self.options)?;
        Ok((handles, (draft, attributes)))
    }

    fn attributes((_, attributes): &mut Self::Ready) -> Option<&mut Arc<Attributes>> {
        attributes.as_mut()
    }

    fn finish(&self, session: &Session, (mut draft, attributes): Self::Ready, name: &Path) -> Result<Finish<Saved>> {
        let path: PathBuf = (self.name)(name).into();
        if session.rank() == 0 {
            describe_file(attributes.as_ref(), &mut draft, &path);
        }
        // On one rank, the thread that writes the file checks that it can be created.
        let alone = session.ranks() == 1;
        let mut target = None;
        if !alone {
            let made = on_root(session, "creating a file for a picture", || {
                target = Some(FileTarget::new(&path)?);
                Ok(())
            })?;
            made.map_err(|cause| Error::write(&path, cause))?;
        }
        Ok(Box::new(move |fetched| {
            let encoder = draft.encoder(fetched);
            if let Some(warning) = encoder.warning() {
                crate::warn!("{}: {warning}", path.display());
            }
            let scale = encoder.scale();
            // Other threads process other pictures.
            let write = |target: FileTarget| target.fill(|to| encoder.write(to, &Workers::default()).map(drop));
            let target = match target {
                None if alone => FileTarget::new(&path),
                target => target.ok_or_else(|| "another rank writes it".to_owned()),
            };
            let written = target.and_then(write);
            written.map_err(|cause| Error::write(&path, cause))?;
            Ok(Saved { path, scale })
        }))
    }

    fn share_outcome(&self, session: &Session, own: Result<Saved>, name: &Path) -> Result<Saved> {
        let path: PathBuf = (self.name)(name).into();
        let told = on_root(session, "saving a picture", || match own {
            Ok(saved) => Ok(saved.scale.map(io::encode_scale)),
            Err(Error::File { cause, .. }) => Err(cause),
            Err(e) => Err(e.to_string()),
        })?;
        match told {
            Ok(scale) => Ok(Saved { path, scale: scale.map(io::decode_scale) }),
            Err(cause) => Err(Error::write(&path, cause)),
        }
    }
}

/// The files of a series, in order. See [`Series::save`]. They are written during the iteration.
#[must_use = "nothing is written until this is iterated"]
pub struct Saves<I, F, N> {
    state: SaveState<I, F, N>,
    observer: SavedObserver,
}

/// Called for each picture of this rank when it is finished.
type SavedObserver = Option<Box<dyn FnMut(&Item<Saved>)>>;

type SavePipeline<I, F, N> =
    Pipeline<NumberedInputs<I>, SaveOperation<F, N>, Saved, (FileSpec, Option<Arc<Attributes>>)>;

enum SaveState<I, F, N> {
    /// Not started.
    New(Box<Setup<I, F, N>>),
    /// All ranks process each picture together.
    Together(Box<SavePipeline<I, F, N>>),
    /// All pictures are finished, and all ranks know the outcomes.
    Dealt(VecDeque<Item<Saved>>),
}

/// The parameters of a series.
struct Setup<I, F, N> {
    session: Session,
    inputs: NumberedInputs<I>,
    make: SaveOperation<F, N>,
    open: OpenOptions,
    bounds: Bounds,
}

impl<I, F, N> Saves<I, F, N> {
    pub(super) fn new(series: Series<I, F>, name: N, options: SaveOptions) -> Saves<I, F, N>
    where
        I: Iterator,
        I::Item: Into<Input>,
    {
        let Series { session, inputs, operation, options: open, bounds } = series;
        let make = SaveOperation { operation, name, options };
        let inputs = NumberedInputs::all(inputs);
        Saves { state: SaveState::New(Box::new(Setup { session, inputs, make, open, bounds })), observer: None }
    }

    /// Sets a function that is called for each picture distributed to this rank as soon as it is
    /// finished. Distributed pictures are only yielded when all ranks are done.
    pub fn observe(mut self, observer: impl FnMut(&Item<Saved>) + 'static) -> Saves<I, F, N> {
        self.observer = Some(Box::new(observer));
        self
    }
}

impl<I, F, N, S, P> Saves<I, F, N>
where
    I: Iterator,
    I::Item: Into<Input>,
    F: Fn(&AnyImage) -> S,
    S: Savable,
    N: Fn(&Path) -> P,
    P: Into<PathBuf>,
{
    /// Writes all files.
    ///
    /// # Errors
    /// The first error of a picture, after all others are written.
    pub fn all(self) -> Result<Vec<Saved>> {
        let (mut saved, mut failed) = (Vec::new(), None);
        for item in self {
            match item.result {
                Ok(file) => saved.push(file),
                Err(e) => failed = failed.or(Some(e)),
            }
        }
        failed.map_or(Ok(saved), Err)
    }

    /// Decides on the distribution of pictures, and processes them if each rank has its own.
    fn begin(setup: Setup<I, F, N>, observer: &mut SavedObserver) -> Result<SaveState<I, F, N>> {
        let Setup { session, mut inputs, make, open, bounds } = setup;
        // Outcomes of distributed pictures are known only at the end, too late for a camera.
        if session.ranks() == 1 || bounds.pictures == Some(1) {
            return Ok(SaveState::Together(Box::new(Pipeline::new(session, inputs, make, open, bounds))));
        }
        let alone = session.alone()?;
        let free = |picture| {
            let path = (make.name)(Path::new("000000")).into();
            let made = (make.operation)(&AnyImage::from_picture(&alone, picture));
            // A single rank cannot use images of the session of all ranks.
            !matches!(made.saving(&path, &make.options), Err(Error::ForeignImage { .. }))
        };
        if !distribution::decide(&session, &mut inputs, &open, |path| (make.name)(path).into(), free)? {
            return Ok(SaveState::Together(Box::new(Pipeline::new(session, inputs, make, open, bounds))));
        }
        // Rank 0 logs the warnings that are logged once.
        let held = (session.rank() > 0).then(CollectedWarnings::begin);
        let inputs = inputs.dealt(session.rank(), session.ranks());
        let mut engine = Pipeline::new(alone.clone(), inputs, make, open, bounds);
        let told = |item: &Item<Saved>| {
            if let Some(observer) = observer {
                observer(item);
            }
        };
        let own: Vec<Item<Saved>> = engine.by_ref().inspect(told).collect();
        // Pictures of other ranks also have names, even after the last picture of this rank, or
        // after one that ended its series.
        let mut inputs = engine.into_inputs();
        inputs.by_ref().for_each(drop);
        session.absorb(&alone)?;
        let held = held.map(CollectedWarnings::end).unwrap_or_default();
        distribution::exchange_outcomes(&session, own, held, &inputs.into_paths())
            .map(|items| SaveState::Dealt(items.into()))
    }
}

impl<I, F, N, S, P> Iterator for Saves<I, F, N>
where
    I: Iterator,
    I::Item: Into<Input>,
    F: Fn(&AnyImage) -> S,
    S: Savable,
    N: Fn(&Path) -> P,
    P: Into<PathBuf>,
{
    type Item = Item<Saved>;

    fn next(&mut self) -> Option<Item<Saved>> {
        if let SaveState::New(_) = &self.state
            && let SaveState::New(setup) = std::mem::replace(&mut self.state, SaveState::Dealt(VecDeque::new()))
        {
            match Saves::begin(*setup, &mut self.observer) {
                Ok(state) => self.state = state,
                Err(e) => return Some(Item { number: 0, path: None, picture: None, result: Err(e) }),
            }
        }
        match &mut self.state {
            SaveState::Together(engine) => engine.next(),
            SaveState::Dealt(items) => items.pop_front(),
            SaveState::New(_) => None,
        }
    }
}
