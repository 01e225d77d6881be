//! The pictures of a series in progress: read ahead, evaluated in order, finished by other threads.
//!
//! The number and the bytes of pictures in progress are limited. On several ranks the order of
//! evaluations and reports depends on counts only, never on what is ready first. The design is in
//! `docs/design/series.md`.

use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};

use lru::LruCache;

use super::Item;
use super::input::{Content, Input};
use super::queue::{Bounds, EvaluatingPicture, PictureEvent, PictureQueue, ReadingPicture, size};
use super::threads::FileThreads;
use crate::dtype::DType;
use crate::error::{Error, Result, Site};
use crate::host::buffer::HostBuffer;
use crate::io::{Alpha, AnyImage, Georeference, Metadata, OpenOptions, Picture};
use crate::plan::ResultDelivery;
use crate::session::{Attributes, FailedReplay, Handle, Pending, Replay, ReplayInputKind, Session, StandIns};
use crate::shape::Shape;

/// The processing of a picture.
pub(super) trait PictureOperation {
    type Output: Send + 'static;
    /// Metadata of a result, known once it is recorded, and the same for all pictures of one kind.
    type Ready: Clone;
    /// Receivers of the pixels.
    const WANT: ResultDelivery;
    /// Whether a result holds pixels.
    const HELD: bool;

    /// The part of a picture's path on which the recording depends.
    fn kind(&self, name: &Path) -> OsString;

    /// Records the operation on a picture and returns the values to download and the metadata.
    fn record(&mut self, picture: &AnyImage, name: &Path) -> Result<(Vec<Handle>, Self::Ready)>;

    /// Metadata of a result from its file, if any.
    fn attributes(_ready: &mut Self::Ready) -> Option<&mut Arc<Attributes>> {
        None
    }

    /// Prepares the function that creates the result from downloaded values, on another thread. On
    /// several ranks, all ranks call it together.
    fn finish(&self, session: &Session, ready: Self::Ready, name: &Path) -> Result<Finish<Self::Output>>;

    /// Shares the outcome of a picture that all ranks evaluated. `own` is the outcome on the rank
    /// that has the pixels; on other ranks it is ignored.
    fn share_outcome(&self, session: &Session, own: Result<Self::Output>, name: &Path) -> Result<Self::Output>;
}

pub(super) type Finish<R> = Box<dyn FnOnce(Vec<Arc<HostBuffer>>) -> Result<R> + Send>;

/// The kind of a picture. Pictures share a recording if they have equal shape, type, relevant
/// metadata and relevant part of the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct PictureKind {
    shape: Shape,
    dtype: DType,
    /// Bits of the size of pixels, if known.
    numbers: Option<([u64; 2], Option<u64>)>,
    /// Bits of the size of pixels in a print or scan.
    printed: Option<[u64; 2]>,
    /// Whether the picture has a georeference, EXIF data or texts, which differ between pictures.
    placed: bool,
    has_exif: bool,
    has_texts: bool,
    /// The value of missing pixels and the colour table.
    nodata: String,
    colours: Vec<u16>,
    /// Names of channels.
    names: Vec<String>,
    alpha: Option<Alpha>,
    profile: Option<Arc<[u8]>>,
    tile: Option<(usize, usize)>,
    name: OsString,
}

impl PictureKind {
    fn of(picture: &Picture, name: OsString) -> PictureKind {
        let Metadata { reference, pixel, names, alpha, profile, printed, exif, texts, tile } = picture.metadata();
        let bits = f64::to_bits;
        PictureKind {
            shape: picture.shape(),
            dtype: picture.dtype(),
            numbers: pixel.map(|size| ([size.rows, size.columns].map(bits), size.levels.map(bits))),
            printed: printed.map(|size| [size.rows, size.columns].map(bits)),
            has_exif: exif.is_some(),
            has_texts: texts.is_some(),
            placed: reference.as_ref().and_then(Georeference::place).is_some(),
            nodata: reference.as_ref().map(Georeference::nodata).unwrap_or_default().to_owned(),
            colours: reference.as_ref().map(Georeference::colours).unwrap_or_default().to_vec(),
            names: names.clone(),
            alpha: *alpha,
            profile: profile.clone(),
            tile: *tile,
            name,
        }
    }
}

/// The recording for pictures of one kind.
enum PictureRecording<T> {
    /// A program to replay.
    Program {
        replay: Box<Replay>,
        ready: T,
        /// Size of a result in bytes.
        bytes: usize,
    },
    /// The operation reads values, so that it depends on the picture; or the result is also part of
    /// others.
    Looks,
}

/// Number of kinds whose recordings are cached, because recordings may hold kernels and tables.
/// Pictures of an evicted kind are recorded again.
const KINDS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// A series in progress.
pub(super) struct Pipeline<I, M, R, T> {
    session: Session,
    inputs: I,
    /// The inputs are exhausted.
    all_taken: bool,
    make: M,
    options: OpenOptions,
    /// Whether the operation is recorded only once for pictures of one kind.
    once: bool,
    site: Site,
    hands: Option<FileThreads>,
    events: (Sender<PictureEvent<R>>, Receiver<PictureEvent<R>>),
    queue: PictureQueue<R>,
    /// Cached recordings.
    recorded: LruCache<PictureKind, PictureRecording<T>>,
    /// Whether an error made the session unusable.
    ended: bool,
}

impl<I, M, R, T> Pipeline<I, M, R, T>
where
    I: Iterator<Item = (usize, Input)>,
    M: PictureOperation<Output = R, Ready = T>,
    T: Clone,
    R: Send + 'static,
{
    pub(super) fn new(session: Session, inputs: I, make: M, options: OpenOptions, bounds: Bounds) -> Self {
        Pipeline {
            session,
            inputs,
            all_taken: false,
            make,
            options,
            once: bounds.once,
            site: bounds.site,
            hands: None,
            events: mpsc::channel(),
            queue: PictureQueue::new(bounds, M::HELD),
            recorded: LruCache::new(KINDS),
            ended: false,
        }
    }

    /// The inputs, after the series has ended.
    pub(super) fn into_inputs(self) -> I {
        self.inputs
    }

    fn threads(&self) -> usize {
        self.session.workers().threads()
    }

    fn hands(&mut self) -> &mut FileThreads {
        let threads = self.threads();
        self.hands.get_or_insert_with(|| FileThreads::new(threads))
    }

    /// Returns `true` if the device computes in host memory with the host's threads. Call it after
    /// the device was used.
    fn unified(&self) -> bool {
        self.session.device().is_some_and(|device| device.memory().is_unified())
    }

    /// Returns `true` if this rank reads files.
    fn reads(&self) -> bool {
        self.session.rank() == 0
    }

    /// Starts to read pictures as long as the limits allow.
    fn read_ahead(&mut self) {
        while !self.ended && !self.all_taken && self.queue.may_read(&self.session) {
            let Some((number, Input { path, content })) = self.inputs.next() else {
                self.all_taken = true;
                return;
            };
            let everywhere = matches!(content, Content::Picture(_));
            if self.queue.is_new() {
                self.expect(&content, path.as_deref());
            }
            let picture = match content {
                Content::Picture(picture) | Content::Read(picture) => Some(picture),
                // Rank 0 sends its pictures to the others.
                _ if !self.reads() => None,
                content => {
                    let (events, file, options) = (self.events.0.clone(), path.clone(), self.options);
                    let session = self.session.clone();
                    self.hands().read(move || {
                        let room = |bytes| session.room_ahead(bytes);
                        let read = || Input::open(content, file.as_deref(), &options, &room);
                        let picture = catch_unwind(AssertUnwindSafe(read));
                        // The receiver does not exist any more if the series was dropped.
                        let _ = events.send(PictureEvent::Read(number, picture));
                    });
                    None
                }
            };
            self.queue.reading.push_back(ReadingPicture { number, path, picture, everywhere });
        }
    }

    /// Gives the session a hint, so that a device is chosen for the whole series.
    fn expect(&self, first: &Content, path: Option<&Path>) {
        self.session.expect_pictures(1 + self.inputs.size_hint().0);
        if let (Content::File, Some(path)) = (first, path) {
            self.session.expect_file(std::fs::metadata(path).map_or(0, |found| found.len()));
        }
    }

    /// Returns `true` if the next picture is available.
    fn is_read(&self) -> bool {
        // Ranks that do not read receive the picture.
        self.queue.reading.front().is_some_and(|r| r.picture.is_some() || !self.reads())
    }

    fn note_all(&mut self) {
        while let Ok(event) = self.events.1.try_recv() {
            self.queue.note(event);
        }
    }

    /// Waits for an event of another thread.
    fn wait(&mut self) {
        // There is always a sender: this one.
        if let Ok(event) = self.events.1.recv() {
            self.queue.note(event);
        }
        self.note_all();
    }

    /// Evaluates the next picture, which must be available.
    fn begin(&mut self, reading: ReadingPicture) {
        let ReadingPicture { number, path, picture, everywhere } = reading;
        let name = name(path.as_deref(), number);
        let mut begun =
            EvaluatingPicture { number, path, picture: None, bytes: 0, landed: true, result: None, to_tell: false };
        match self.begin_or_fail(&name, picture, everywhere, &mut begun) {
            Ok(()) => begun.to_tell = self.session.ranks() > 1,
            Err(e) => {
                self.ended |= is_fatal(&e);
                begun.result = Some(Err(e));
            }
        }
        self.queue.begun.push_back(begun);
        if self.ended {
            self.queue.reading.clear();
        }
    }

    fn begin_or_fail(
        &mut self,
        name: &Path,
        picture: Option<Result<Picture>>,
        everywhere: bool,
        begun: &mut EvaluatingPicture<R>,
    ) -> Result<()> {
        let number = begun.number;
        let (pending, ready) = match picture {
            Some(picture) if everywhere || self.session.ranks() == 1 => self.compute(name, picture?, begun)?,
            picture => {
                let image = AnyImage::from_root(&self.session, name, self.site, || {
                    picture.ok_or("rank 0 did not read it")?.map_err(|e| match e {
                        Error::File { cause, .. } => cause,
                        other => other.to_string(),
                    })
                })?;
                self.record(name, image, begun, None)?
            }
        };
        begun.landed = false;
        let finish = self.make.finish(&self.session, ready, name)?;
        let events = self.events.0.clone();
        let at_once = self.unified();
        self.hands().land(at_once, move || {
            let fetched = pending.wait();
            let _ = events.send(PictureEvent::Landed(number));
            move || {
                let done = catch_unwind(AssertUnwindSafe(|| {
                    let here: Option<Vec<_>> = fetched?.into_iter().collect();
                    here.map(finish).transpose()
                }));
                let done = match done {
                    Ok(Ok(Some(result))) => Ok(Ok(result)),
                    Ok(Err(e)) => Ok(Err(e)),
                    Err(panic) => Err(panic),
                    // Another rank has the pixels and shares the outcome.
                    Ok(Ok(None)) => return,
                };
                let _ = events.send(PictureEvent::Done(number, done));
            }
        });
        Ok(())
    }

    /// Starts to compute a picture that every rank has, by replay or by recording.
    fn compute(&mut self, name: &Path, picture: Picture, begun: &mut EvaluatingPicture<R>) -> Result<(Pending, T)> {
        let (shape, dtype, said) = (picture.shape(), picture.dtype(), picture.metadata().clone());
        let kind = self.once.then(|| PictureKind::of(&picture, self.make.kind(name)));
        let (replay, ready) = match kind.as_ref().and_then(|kind| self.recorded.get_mut(kind)) {
            Some(PictureRecording::Program { replay, ready, bytes }) => {
                begun.bytes = *bytes;
                (replay, ready)
            }
            known => {
                let kind = kind.filter(|_| known.is_none());
                return self.record(name, AnyImage::of_picture(&self.session, picture, self.site), begun, kind);
            }
        };
        begun.picture = Some((shape, dtype));
        match self.session.repeat(replay, vec![picture.into_pixels()]) {
            Ok(pending) => {
                let mut ready = ready.clone();
                if let Some(all) = M::attributes(&mut ready) {
                    *all = Arc::new(all.of_another(said));
                }
                Ok((pending, ready))
            }
            Err(refused) => {
                let FailedReplay { error, pixels } = *refused;
                let pixels = pixels.and_then(|mut pixels| pixels.pop());
                let again = error.as_ref().is_none_or(|e| e.is_out_of_memory() && self.wait_for_all());
                match (error, pixels) {
                    (_, Some(pixels)) if again => {
                        let picture = Picture::from_pixels(shape, dtype, pixels).with_metadata(said);
                        self.record(name, AnyImage::of_picture(&self.session, picture, self.site), begun, kind)
                    }
                    (error, _) => {
                        Err(error.unwrap_or_else(|| Error::Lost("the pixels of a picture were already taken".into())))
                    }
                }
            }
        }
    }

    /// Records the operation on a picture and starts to compute it.
    fn record(
        &mut self,
        name: &Path,
        image: AnyImage,
        begun: &mut EvaluatingPicture<R>,
        kind: Option<PictureKind>,
    ) -> Result<(Pending, T)> {
        begun.picture = Some((image.shape(), image.dtype()));
        let repeatable = kind.map(|kind| (kind, StandIns::new(&self.session, &[image.handle()], self.site)));
        let stand_in = repeatable.as_ref().and_then(|(_, stand_ins)| stand_ins.handles().first());
        let stand_in = stand_in.map(|handle| AnyImage::from_handle(handle.clone()));
        let (handles, mut ready) = self.make.record(stand_in.as_ref().unwrap_or(&image), name)?;
        drop(stand_in);
        let of = image.handle().attributes.as_ref();
        let is_replaced = M::attributes(&mut ready).zip(of).is_none_or(|(all, of)| all.follow(of));
        let looked_into = repeatable.as_ref().is_some_and(|(_, stand_ins)| stand_ins.looked_into());
        let repeatable = match repeatable {
            Some((kind, _)) if looked_into || !is_replaced => {
                self.recorded.put(kind, PictureRecording::Looks);
                None
            }
            other => other.filter(|(_, stand_ins)| !stand_ins.looked()),
        };
        let wanted: Vec<&Handle> = handles.iter().collect();
        let begin = |session: &Session| match &repeatable {
            Some((_, stand_ins)) => session.begin_repeatable(&wanted, stand_ins, M::WANT, ReplayInputKind::Pixels),
            None => Ok((session.begin_all(&wanted, M::WANT)?, None)),
        };
        let (pending, replay) = match begin(&self.session) {
            Err(e) if e.is_out_of_memory() && self.wait_for_all() => begin(&self.session)?,
            other => other?,
        };
        begun.bytes = handles.iter().map(|h| size(h.shape, h.dtype)).sum();
        if let (Some((kind, _)), Some(replay)) = (repeatable, replay) {
            self.recorded.put(
                kind,
                PictureRecording::Program { replay: Box::new(replay), ready: ready.clone(), bytes: begun.bytes },
            );
        }
        // The session may drop the picture and its results; results in flight no longer depend on
        // them.
        Ok((pending, ready))
    }

    /// Waits until nothing is in flight or left to finish; returns `true` if there was anything.
    fn wait_for_all(&mut self) -> bool {
        if self.session.ranks() > 1 {
            return false;
        }
        let mut waited = false;
        while self.queue.begun.iter().any(|b| b.result.is_none()) {
            self.wait();
            waited = true;
        }
        waited
    }

    /// The outcome of the next picture to yield, if this rank knows it.
    fn take_done(&mut self) -> Option<Item<R>> {
        let front = self.queue.begun.front()?;
        let known = front.result.is_some() || (front.to_tell && !self.reads() && M::WANT == ResultDelivery::Root);
        if !known {
            return None;
        }
        let EvaluatingPicture { number, path, picture, result, to_tell, .. } = self.queue.begun.pop_front()?;
        let name = name(path.as_deref(), number);
        let result = match result {
            result if to_tell => {
                let own = result.unwrap_or_else(|| Err(Error::Lost("another rank has the pixels".into())));
                self.make.share_outcome(&self.session, own, &name)
            }
            result => result?,
        };
        Some(Item { number, path, picture, result })
    }
}

impl<I, M, R, T> Iterator for Pipeline<I, M, R, T>
where
    I: Iterator<Item = (usize, Input)>,
    M: PictureOperation<Output = R, Ready = T>,
    T: Clone,
    R: Send + 'static,
{
    type Item = Item<R>;

    fn next(&mut self) -> Option<Item<R>> {
        // Ranks evaluate and yield in one order, whatever is ready first. An asynchronous device
        // gets its next work before the program gets a result.
        let eager = self.session.ranks() > 1 || (!self.queue.begun.is_empty() && !self.unified());
        loop {
            self.note_all();
            self.read_ahead();
            if !eager && let Some(item) = self.take_done() {
                return Some(item);
            }
            if !self.ended && self.queue.may_begin(&self.session) {
                if self.is_read() {
                    if let Some(reading) = self.queue.reading.pop_front() {
                        self.begin(reading);
                    }
                    continue;
                }
                if self.session.ranks() > 1 && !self.queue.reading.is_empty() {
                    self.wait();
                    continue;
                }
            }
            if let Some(item) = self.take_done() {
                return Some(item);
            }
            if self.queue.is_empty() {
                return None;
            }
            self.wait();
        }
    }
}

/// The name of a picture: its path, or its number.
pub(super) fn name(path: Option<&Path>, number: usize) -> PathBuf {
    path.map_or_else(|| PathBuf::from(format!("{number:06}")), Path::to_owned)
}

/// Returns `true` if no further picture can be evaluated.
fn is_fatal(e: &Error) -> bool {
    matches!(e, Error::Lost(_) | Error::Communication { .. } | Error::Cancelled(_))
}
