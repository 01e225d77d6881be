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
/// Bytes of small pictures that are computed together: an estimate. On a GPU, the launches of an evaluation take as long
/// as the work for about a MiB.
const TOGETHER: usize = 8 << 20;
/// The same on the host's memory, where launches take less time, and results are to come early.
const TOGETHER_ON_HOST: usize = 1 << 18;
/// The largest number of pictures that are computed together.
const MOST_TOGETHER: usize = 1 << 10;

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
    /// The pixels of an evaluation, named by its first picture, have arrived on the host.
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
    /// Whether no evaluation that begins with this picture is in flight.
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
    /// In order.
    reading: VecDeque<ReadingPicture>,
    /// In order. Pictures that were evaluated together with an earlier one may come after some of `reading`.
    begun: VecDeque<EvaluatingPicture<R>>,
    /// Largest number of bytes of a picture of this series.
    largest: Option<usize>,
    /// Number of pictures being read, bytes of pictures already read, and bytes of results.
    unread: usize,
    read: usize,
    results: usize,
    /// Evaluations that have not landed.
    in_flight: usize,
}

impl<R> PictureQueue<R> {
    /// An empty queue. `held` is `true` if results hold pixels.
    pub(super) fn new(bounds: Bounds, held: bool) -> PictureQueue<R> {
        let (reading, begun) = (VecDeque::new(), VecDeque::new());
        PictureQueue { bounds, held, reading, begun, largest: None, unread: 0, read: 0, results: 0, in_flight: 0 }
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
        let together = self.largest.map_or(0, |bytes| IN_FLIGHT * self.most_together(session, bytes));
        self.bounds.pictures.unwrap_or(together.max(2 * session.workers().threads() + IN_FLIGHT)).max(1)
    }

    /// The largest number of pictures of this size that are evaluated together.
    fn most_together(&self, session: &Session, bytes: usize) -> usize {
        if !self.bounds.once || session.ranks() > 1 {
            return 1;
        }
        let on_host = session.device().is_none_or(|device| device.memory().is_unified());
        let most = if on_host { TOGETHER_ON_HOST } else { TOGETHER };
        (most / bytes.max(1)).min(self.bounds.pictures.unwrap_or(MOST_TOGETHER)).clamp(1, MOST_TOGETHER)
    }

    /// On several ranks, the number of pictures whose results are awaited.
    fn in_step(&self) -> usize {
        self.bounds.pictures.map_or(IN_STEP, |pictures| pictures.clamp(1, IN_STEP))
    }

    /// Bytes of pictures and results on the host; estimated for pictures being read.
    fn bytes(&self) -> usize {
        self.read + self.unread * self.largest.unwrap_or(0) + self.results
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
        let unknown = self.largest.is_none() && self.unread >= UNKNOWN;
        under_way < self.most(session)
            && !unknown
            && self.bytes() + self.largest.unwrap_or(0) <= self.bounds.bytes.min(session.host_limit() / 4)
    }

    /// Adds a picture that is read, or being read.
    pub(super) fn push(&mut self, reading: ReadingPicture) {
        if let Some(Ok(picture)) = &reading.picture {
            self.note_size(picture);
        }
        self.put_back(reading);
    }

    /// Puts a picture back that was taken.
    pub(super) fn put_back(&mut self, reading: ReadingPicture) {
        match &reading.picture {
            Some(picture) => self.read += picture.as_ref().map_or(0, bytes),
            None => self.unread += 1,
        }
        let place = self.reading.partition_point(|r| r.number < reading.number);
        self.reading.insert(place, reading);
    }

    /// Returns `true` if pictures are read, or being read.
    pub(super) fn has_read(&self) -> bool {
        !self.reading.is_empty()
    }

    /// The next picture to evaluate.
    pub(super) fn next(&self) -> Option<&ReadingPicture> {
        self.reading.front()
    }

    /// Places of the next picture to evaluate and of others of its shape and type to evaluate together, if not
    /// `is_alone`. `None` while the next one is being read, or while more of the others will come; `all_taken` is `true`
    /// after the last input.
    pub(super) fn alike(&self, session: &Session, is_alone: bool, all_taken: bool) -> Option<Vec<usize>> {
        let first = self.reading.front()?;
        let Some(Ok(picture)) = &first.picture else {
            // Ranks that do not read receive the picture.
            return (first.picture.is_some() || session.rank() > 0).then(|| vec![0]);
        };
        let kind = (picture.shape(), picture.dtype());
        let most = self.most_together(session, bytes(picture));
        if is_alone || most == 1 || kind.0.depth > 1 {
            return Some(vec![0]);
        }
        let is_alike = |r: &ReadingPicture| matches!(&r.picture, Some(Ok(p)) if (p.shape(), p.dtype()) == kind);
        let alike = self.reading.iter().enumerate().filter(|(_, r)| is_alike(r)).take(most);
        let alike: Vec<usize> = alike.map(|(place, _)| place).collect();
        let is_last = all_taken || self.begun.is_empty() || self.is_behind();
        (alike.len() == most || (self.unread == 0 && is_last)).then_some(alike)
    }

    /// Takes the pictures at these places, which ascend.
    pub(super) fn take(&mut self, places: &[usize]) -> Vec<ReadingPicture> {
        let taken: Vec<ReadingPicture> = match places {
            [0] => self.reading.pop_front().into_iter().collect(),
            _ => {
                let all = std::mem::take(&mut self.reading).into_iter().enumerate();
                let (taken, left): (Vec<_>, Vec<_>) = all.partition(|(place, _)| places.binary_search(place).is_ok());
                self.reading = left.into_iter().map(|(_, reading)| reading).collect();
                taken.into_iter().map(|(_, reading)| reading).collect()
            }
        };
        for reading in &taken {
            match &reading.picture {
                Some(picture) => self.read -= picture.as_ref().map_or(0, bytes),
                None => self.unread -= 1,
            }
        }
        taken
    }

    /// Discards pictures that are not evaluated.
    pub(super) fn clear(&mut self) {
        self.reading.clear();
        (self.unread, self.read) = (0, 0);
    }

    /// Adds a picture that is being evaluated, or has failed.
    pub(super) fn add(&mut self, begun: EvaluatingPicture<R>) {
        self.results += begun.bytes;
        self.in_flight += usize::from(!begun.landed);
        let place = self.begun.partition_point(|b| b.number < begun.number);
        self.begun.insert(place, begun);
    }

    /// The first picture that is being evaluated, if no earlier one is still to be.
    pub(super) fn first_begun(&self) -> Option<&EvaluatingPicture<R>> {
        self.begun.front().filter(|_| !self.is_behind())
    }

    /// Takes that picture.
    pub(super) fn pop_begun(&mut self) -> Option<EvaluatingPicture<R>> {
        let begun = self.begun.pop_front()?;
        self.results -= begun.bytes;
        self.in_flight -= usize::from(!begun.landed);
        Some(begun)
    }

    /// Returns `true` if a picture is being evaluated.
    pub(super) fn has_begun(&self) -> bool {
        !self.begun.is_empty()
    }

    /// Returns `true` if a result is awaited.
    pub(super) fn awaits(&self) -> bool {
        self.begun.iter().any(|b| b.result.is_none())
    }

    /// Returns `true` if the next picture to evaluate is earlier than all that are being evaluated.
    fn is_behind(&self) -> bool {
        self.reading.front().zip(self.begun.front()).is_some_and(|(r, b)| r.number < b.number)
    }

    fn note_size(&mut self, picture: &Picture) {
        self.largest = Some(self.largest.unwrap_or(0).max(bytes(picture)));
    }

    /// The picture of this number that is being evaluated. It has landed.
    fn landed(&mut self, number: usize) -> Option<&mut EvaluatingPicture<R>> {
        let place = self.begun.binary_search_by_key(&number, |b| b.number).ok()?;
        let begun = self.begun.get_mut(place)?;
        self.in_flight -= usize::from(!begun.landed);
        begun.landed = true;
        Some(begun)
    }

    /// Records an event of another thread.
    pub(super) fn note(&mut self, event: PictureEvent<R>) {
        match event {
            PictureEvent::Read(number, picture) => {
                let picture = picture.unwrap_or_else(|panic| resume_unwind(panic));
                if let Ok(picture) = &picture {
                    self.note_size(picture);
                }
                if let Ok(place) = self.reading.binary_search_by_key(&number, |r| r.number) {
                    self.unread -= 1;
                    self.read += picture.as_ref().map_or(0, bytes);
                    self.reading[place].picture = Some(picture);
                }
            }
            PictureEvent::Landed(number) => {
                self.landed(number);
            }
            PictureEvent::Done(number, result) => {
                let result = result.unwrap_or_else(|panic| resume_unwind(panic));
                let held = self.held;
                if let Some(begun) = self.landed(number) {
                    begun.result = Some(result);
                    let freed = if held { 0 } else { std::mem::take(&mut begun.bytes) };
                    self.results -= freed;
                }
            }
        }
    }

    /// Returns `true` if the next picture may be evaluated once it is available.
    pub(super) fn may_begin(&self, session: &Session) -> bool {
        if session.ranks() > 1 {
            return self.begun.len() < self.in_step();
        }
        let room = self.begun.len() < self.most(session) && self.bytes() <= self.bounds.bytes;
        self.in_flight < IN_FLIGHT && (self.begun.is_empty() || self.is_behind() || room)
    }
}

/// Size of a picture in bytes.
fn bytes(picture: &Picture) -> usize {
    size(picture.shape(), picture.dtype())
}

/// Size of an image in bytes.
pub(super) fn size(shape: Shape, dtype: DType) -> usize {
    shape.len() * dtype.size()
}
