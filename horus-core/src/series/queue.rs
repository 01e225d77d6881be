//! The pictures of a series in progress, in order and within the limits.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::path::PathBuf;

use crate::dtype::DType;
use crate::error::{Result, Site};
use crate::io::Picture;
use crate::session::Session;
use crate::shape::Shape;

/// Evaluations whose results are still on the device: one computing, one downloading, one waiting.
const IN_FLIGHT: usize = 3;
/// On several ranks, the number of pictures whose results are awaited, unless the program limits it
/// further. It is the same on every rank at every moment.
const IN_STEP: usize = 4;
/// Pictures read concurrently before the size of the first is known.
const UNKNOWN: usize = 2;

/// Limits of a series, and its place in the user's program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Limit on pictures in progress.
    pub(super) pictures: Option<usize>,
    /// Limit on bytes of pictures and results in progress, not counting the first.
    pub(super) bytes: usize,
    /// Whether the operation is recorded only once for pictures of one kind.
    pub(super) once: bool,
    /// The call that began the series, named in errors of its pictures.
    pub(super) site: Site,
}

type Caught<R> = std::result::Result<R, Box<dyn Any + Send>>;

pub(super) enum PictureEvent<R> {
    Read(usize, Caught<Result<Picture>>),
    /// The pixels have arrived on the host.
    Landed(usize),
    Done(usize, Caught<Result<R>>),
}

/// A picture being read, or already read.
pub(super) struct ReadingPicture {
    pub(super) number: usize,
    pub(super) path: Option<PathBuf>,
    pub(super) picture: Option<Result<Picture>>,
    /// Whether every rank has the picture.
    pub(super) everywhere: bool,
}

/// A picture being evaluated, or already evaluated.
pub(super) struct EvaluatingPicture<R> {
    pub(super) number: usize,
    pub(super) path: Option<PathBuf>,
    pub(super) picture: Option<(Shape, DType)>,
    pub(super) bytes: usize,
    pub(super) landed: bool,
    pub(super) result: Option<Result<R>>,
    /// Whether the outcome must be sent to all ranks.
    pub(super) to_tell: bool,
}

/// The pictures in progress.
pub(super) struct PictureQueue<R> {
    bounds: Bounds,
    /// Whether results hold pixels.
    held: bool,
    /// In order, before `begun`.
    pub(super) reading: VecDeque<ReadingPicture>,
    /// In order.
    pub(super) begun: VecDeque<EvaluatingPicture<R>>,
    /// Largest number of bytes of a picture of this series.
    largest: Option<usize>,
}

impl<R> PictureQueue<R> {
    /// An empty queue. `held` is `true` if results hold pixels.
    pub(super) fn new(bounds: Bounds, held: bool) -> PictureQueue<R> {
        PictureQueue { bounds, held, reading: VecDeque::new(), begun: VecDeque::new(), largest: None }
    }

    /// Returns `true` if no picture is in progress.
    pub(super) fn is_empty(&self) -> bool {
        self.reading.is_empty() && self.begun.is_empty()
    }

    /// Returns `true` before the first picture.
    pub(super) fn is_new(&self) -> bool {
        self.largest.is_none() && self.is_empty()
    }

    /// The largest number of pictures in progress.
    fn most(&self, session: &Session) -> usize {
        self.bounds.pictures.unwrap_or(2 * session.workers().threads() + IN_FLIGHT).max(1)
    }

    /// On several ranks, the number of pictures whose results are awaited.
    fn in_step(&self) -> usize {
        self.bounds.pictures.map_or(IN_STEP, |pictures| pictures.clamp(1, IN_STEP))
    }

    /// Bytes of pictures and results on the host; estimated for pictures being read.
    fn bytes(&self) -> usize {
        let size = |r: &ReadingPicture| match &r.picture {
            Some(Ok(picture)) => size(picture.shape(), picture.dtype()),
            Some(Err(_)) => 0,
            None => self.largest.unwrap_or(0),
        };
        self.reading.iter().map(size).sum::<usize>() + self.begun.iter().map(|b| b.bytes).sum::<usize>()
    }

    /// Returns `true` if another picture may be read.
    pub(super) fn may_read(&self, session: &Session) -> bool {
        let under_way = self.reading.len() + self.begun.len();
        if under_way == 0 {
            return true;
        }
        // The work that a rank starts must not depend on the pictures that it has read.
        if session.ranks() > 1 && self.reading.is_empty() && self.begun.len() < self.in_step() {
            return true;
        }
        let unknown = self.largest.is_none() && self.reading.iter().filter(|r| r.picture.is_none()).count() >= UNKNOWN;
        under_way < self.most(session)
            && !unknown
            && self.bytes() + self.largest.unwrap_or(0) <= self.bounds.bytes.min(session.host_limit() / 4)
    }

    /// Records an event of another thread.
    pub(super) fn note(&mut self, event: PictureEvent<R>) {
        match event {
            PictureEvent::Read(number, picture) => {
                let picture = picture.unwrap_or_else(|panic| resume_unwind(panic));
                if let Ok(picture) = &picture {
                    let bytes = size(picture.shape(), picture.dtype());
                    self.largest = Some(self.largest.unwrap_or(0).max(bytes));
                }
                if let Some(reading) = self.reading.iter_mut().find(|r| r.number == number) {
                    reading.picture = Some(picture);
                }
            }
            PictureEvent::Landed(number) => {
                if let Some(begun) = self.begun.iter_mut().find(|b| b.number == number) {
                    begun.landed = true;
                }
            }
            PictureEvent::Done(number, result) => {
                let result = result.unwrap_or_else(|panic| resume_unwind(panic));
                if let Some(begun) = self.begun.iter_mut().find(|b| b.number == number) {
                    begun.landed = true;
                    begun.bytes *= usize::from(self.held);
                    begun.result = Some(result);
                }
            }
        }
    }

    /// Returns `true` if the next picture may be evaluated once it is available.
    pub(super) fn may_begin(&self, session: &Session) -> bool {
        if session.ranks() > 1 {
            return self.begun.len() < self.in_step();
        }
        let in_flight = self.begun.iter().filter(|b| !b.landed).count();
        let room = self.begun.is_empty() || self.bytes() <= self.bounds.bytes;
        in_flight < IN_FLIGHT && self.begun.len() < self.most(session) && room
    }
}

/// Size of an image in bytes.
pub(super) fn size(shape: Shape, dtype: DType) -> usize {
    shape.len() * dtype.size()
}
