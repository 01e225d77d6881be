//! The pictures of a series that are in progress: no more than its bounds allow, in order.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::path::PathBuf;

use crate::dtype::DType;
use crate::error::Result;
use crate::io::Picture;
use crate::session::Session;
use crate::shape::Shape;

/// Evaluations whose results are still on the device: one that is computed, one that is downloaded, one that waits.
const IN_FLIGHT: usize = 3;
/// On several ranks, pictures whose results are awaited: as many on every rank, at every moment.
const IN_STEP: usize = 4;
/// Pictures read at once before the size of the first is known.
const UNKNOWN: usize = 2;

/// Bounds of a series.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Pictures in progress.
    pub(super) pictures: Option<usize>,
    /// Bytes of pictures and results in progress, beyond those of one.
    pub(super) bytes: usize,
    /// Whether the operation is recorded once for pictures of one kind.
    pub(super) once: bool,
}

type Caught<R> = std::result::Result<R, Box<dyn Any + Send>>;

pub(super) enum Event<R> {
    Read(usize, Caught<Result<Picture>>),
    /// The pixels are on the host.
    Landed(usize),
    Done(usize, Caught<Result<R>>),
}

/// A picture that is being read, or was.
pub(super) struct Reading {
    pub(super) number: usize,
    pub(super) path: Option<PathBuf>,
    pub(super) picture: Option<Result<Picture>>,
    /// Whether every rank has it.
    pub(super) everywhere: bool,
}

/// A picture that is being evaluated, or was.
pub(super) struct Begun<R> {
    pub(super) number: usize,
    pub(super) path: Option<PathBuf>,
    pub(super) picture: Option<(Shape, DType)>,
    pub(super) bytes: usize,
    pub(super) landed: bool,
    pub(super) result: Option<Result<R>>,
    /// On several ranks: whether all must learn the outcome.
    pub(super) to_tell: bool,
}

/// The pictures in progress.
pub(super) struct Queue<R> {
    bounds: Bounds,
    /// Whether a result holds pixels.
    held: bool,
    /// In order, before `begun`.
    pub(super) reading: VecDeque<Reading>,
    /// In order.
    pub(super) begun: VecDeque<Begun<R>>,
    /// The most bytes that a picture of this series took.
    largest: Option<usize>,
}

impl<R> Queue<R> {
    /// None yet. `held` says whether a result holds pixels.
    pub(super) fn new(bounds: Bounds, held: bool) -> Queue<R> {
        Queue { bounds, held, reading: VecDeque::new(), begun: VecDeque::new(), largest: None }
    }

    /// Whether nothing is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.reading.is_empty() && self.begun.is_empty()
    }

    /// Whether there was no picture before.
    pub(super) fn is_new(&self) -> bool {
        self.largest.is_none() && self.is_empty()
    }

    /// The largest number of pictures in progress.
    fn most(&self, session: &Session) -> usize {
        self.bounds.pictures.unwrap_or(2 * session.workers().threads() + IN_FLIGHT).max(1)
    }

    /// Bytes of pictures and results on the host; those of pictures that are being read as far as can be guessed.
    fn bytes(&self) -> usize {
        let size = |r: &Reading| match &r.picture {
            Some(Ok(picture)) => size(picture.shape(), picture.dtype()),
            Some(Err(_)) => 0,
            None => self.largest.unwrap_or(0),
        };
        self.reading.iter().map(size).sum::<usize>() + self.begun.iter().map(|b| b.bytes).sum::<usize>()
    }

    /// Whether another picture may be read.
    pub(super) fn may_read(&self, session: &Session) -> bool {
        let under_way = self.reading.len() + self.begun.len();
        if under_way == 0 {
            return true;
        }
        // What a rank may start must not depend on what it has read.
        if session.ranks() > 1 && self.reading.is_empty() && self.begun.len() < IN_STEP {
            return true;
        }
        let unknown = self.largest.is_none() && self.reading.iter().filter(|r| r.picture.is_none()).count() >= UNKNOWN;
        under_way < self.most(session)
            && !unknown
            && self.bytes() + self.largest.unwrap_or(0) <= self.bounds.bytes.min(session.host_limit() / 4)
    }

    /// Takes note of what other threads have done.
    pub(super) fn note(&mut self, event: Event<R>) {
        match event {
            Event::Read(number, picture) => {
                let picture = picture.unwrap_or_else(|panic| resume_unwind(panic));
                if let Ok(picture) = &picture {
                    let bytes = size(picture.shape(), picture.dtype());
                    self.largest = Some(self.largest.unwrap_or(0).max(bytes));
                }
                if let Some(reading) = self.reading.iter_mut().find(|r| r.number == number) {
                    reading.picture = Some(picture);
                }
            }
            Event::Landed(number) => {
                if let Some(begun) = self.begun.iter_mut().find(|b| b.number == number) {
                    begun.landed = true;
                }
            }
            Event::Done(number, result) => {
                let result = result.unwrap_or_else(|panic| resume_unwind(panic));
                if let Some(begun) = self.begun.iter_mut().find(|b| b.number == number) {
                    begun.landed = true;
                    begun.bytes *= usize::from(self.held);
                    begun.result = Some(result);
                }
            }
        }
    }

    /// Whether the next picture may be evaluated, if it is there.
    pub(super) fn may_begin(&self, session: &Session) -> bool {
        if session.ranks() > 1 {
            return self.begun.len() < IN_STEP;
        }
        let in_flight = self.begun.iter().filter(|b| !b.landed).count();
        let room = self.begun.is_empty() || self.bytes() <= self.bounds.bytes;
        in_flight < IN_FLIGHT && self.begun.len() < self.most(session) && room
    }
}

/// Bytes of an image.
pub(super) fn size(shape: Shape, dtype: DType) -> usize {
    shape.len() * dtype.size()
}
