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
use super::threads::{FileJob, FileThreads};
use crate::dtype::DType;
use crate::error::{Call, Error, Result, Site};
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

/// What is known of pictures of one kind.
struct PictureRecording<T> {
    /// Programs to replay, by the number of pictures that they compute together.
    replays: Vec<(usize, Replay)>,
    /// Metadata and bytes of a result, of a program.
    ready: Option<(T, usize)>,
    /// The operation reads values, so that it depends on the picture; or the result is also part of
    /// others.
    looks: bool,
    /// Pictures are computed one by one.
    alone: bool,
}

impl<T> Default for PictureRecording<T> {
    fn default() -> Self {
        PictureRecording { replays: Vec::new(), ready: None, looks: false, alone: false }
    }
}

impl<T> PictureRecording<T> {
    /// The number of pictures to compute together of `count` that are there.
    fn together(&self, count: usize) -> usize {
        let known = self.replays.iter().map(|(of, _)| *of);
        match count {
            _ if self.replays.len() < COUNTS => count,
            count => known.filter(|of| *of <= count).max().unwrap_or(1),
        }
    }
}

/// An evaluation of a picture, or of several together, in progress.
struct Evaluation<T> {
    pending: Pending,
    /// Metadata of the first result.
    ready: T,
    /// Bytes of each result.
    bytes: usize,
    /// Number of pictures.
    count: usize,
}

/// Number of kinds whose recordings are cached, because recordings may hold kernels and tables.
/// Pictures of an evicted kind are recorded again.
const KINDS: NonZeroUsize = NonZeroUsize::new(64).unwrap();

/// Programs of a kind for different numbers of pictures. Planning one takes as long as computing many small pictures.
const COUNTS: usize = 8;

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
            self.queue.push(ReadingPicture { number, path, picture, everywhere });
        }
    }

    /// Gives the session a hint, so that a device is chosen for the whole series.
    fn expect(&self, first: &Content, path: Option<&Path>) {
        self.session.expect_pictures(1 + self.inputs.size_hint().0);
        if let (Content::File, Some(path)) = (first, path) {
            self.session.expect_file(std::fs::metadata(path).map_or(0, |found| found.len()));
        }
    }

    /// Places of the next picture and of others to evaluate together; `None` while they are being read.
    fn alike(&self) -> Option<Vec<usize>> {
        let known = self.queue.next().and_then(|next| self.recorded.peek(&self.kind_of(next)?));
        let is_alone = known.is_some_and(|known| known.looks || known.alone);
        self.queue.alike(&self.session, is_alone, self.all_taken)
    }

    /// The kind of a picture that is read, if pictures of a kind share a recording.
    fn kind_of(&self, ReadingPicture { number, path, picture, .. }: &ReadingPicture) -> Option<PictureKind> {
        let picture = picture.as_ref().filter(|_| self.once)?.as_ref().ok()?;
        Some(PictureKind::of(picture, self.make.kind(&name(path.as_deref(), *number))))
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

    /// Evaluates the picture at the first of these places, together with those of its kind at the others if possible.
    fn begin(&mut self, places: &[usize]) {
        let mut taken = self.queue.take(places).into_iter();
        let Some(first) = taken.next() else { return };
        let mut others: Vec<ReadingPicture> = taken.collect();
        let (number, path) = (first.number, first.path.clone());
        let mut begun =
            EvaluatingPicture { number, path, picture: None, bytes: 0, landed: true, result: None, to_tell: false };
        let evaluation = self.evaluate(first, &mut others, &mut begun);
        let landing = evaluation.and_then(|evaluation| self.land(evaluation, &mut begun, &others));
        match landing {
            Ok(others) => {
                begun.to_tell = self.session.ranks() > 1;
                others.into_iter().for_each(|other| self.queue.add(other));
            }
            Err(e) => {
                self.ended |= is_fatal(&e);
                (begun.landed, begun.bytes, begun.result) = (true, 0, Some(Err(e)));
                others.into_iter().for_each(|other| self.queue.put_back(other));
            }
        }
        self.queue.add(begun);
        if self.ended {
            self.queue.clear();
        }
    }

    /// Starts to evaluate a picture, and `others` that are evaluated together with it, from which the rest is put back.
    fn evaluate(
        &mut self,
        first: ReadingPicture,
        others: &mut Vec<ReadingPicture>,
        begun: &mut EvaluatingPicture<R>,
    ) -> Result<Evaluation<T>> {
        let kind = self.kind_of(&first);
        let ReadingPicture { number, path, picture, everywhere } = first;
        let name = name(path.as_deref(), number);
        let picture = match picture {
            Some(picture) if everywhere || self.session.ranks() == 1 => picture?,
            picture => {
                let image = AnyImage::from_root(&self.session, &name, self.site, || {
                    picture.ok_or("rank 0 did not read it")?.map_err(|e| match e {
                        Error::File { cause, .. } => cause,
                        other => other.to_string(),
                    })
                })?;
                begun.picture = Some((image.shape(), image.dtype()));
                return self.record(&name, image, None, None);
            }
        };
        begun.picture = Some((picture.shape(), picture.dtype()));
        let Some(kind) = kind else {
            let image = AnyImage::of_picture(&self.session, picture, self.site);
            return self.record(&name, image, None, None);
        };
        if !others.is_empty() {
            let (alike, rest) = others.drain(..).partition(|other| self.kind_of(other).as_ref() == Some(&kind));
            *others = alike;
            let count = self.known(&kind).together(1 + others.len());
            rest.into_iter()
                .chain(others.split_off(count - 1))
                .for_each(|other: ReadingPicture| self.queue.put_back(other));
        }
        if !others.is_empty() {
            let volume = self.volume(&picture, others);
            let together =
                volume.and_then(|volume| self.compute(&name, picture.clone(), &kind, Some(volume), 1 + others.len()));
            if let Ok(Evaluation { count, .. }) = &together {
                let rest = others.split_off(count - 1);
                rest.into_iter().for_each(|other| self.queue.put_back(other));
                return together;
            }
            if let Err(e) = together
                && is_fatal(&e)
            {
                return Err(e);
            }
            // Each picture has its own error.
            self.known(&kind).alone = true;
            others.drain(..).for_each(|other| self.queue.put_back(other));
        }
        self.compute(&name, picture, &kind, None, 1)
    }

    /// What is known of pictures of a kind.
    fn known(&mut self, kind: &PictureKind) -> &mut PictureRecording<T> {
        self.recorded.get_or_insert_mut(kind.clone(), PictureRecording::default)
    }

    /// The pixels of pictures of one shape, as the levels of a volume.
    fn volume(&self, first: &Picture, others: &[ReadingPicture]) -> Result<HostBuffer> {
        let others = others.iter().filter_map(|other| other.picture.as_ref()?.as_ref().ok());
        let pictures: Vec<HostBuffer> = [first].into_iter().chain(others).map(|p| p.clone().into_pixels()).collect();
        let room = self.session.room_ahead(pictures.iter().map(HostBuffer::len).sum());
        let call = Call { op: "computing pictures together", site: self.site };
        let mut volume = room.map_err(|source| self.session.at_host(call, source))?;
        let levels = volume.bytes_to_overwrite().chunks_mut(pictures[0].len().max(1));
        levels.zip(&pictures).for_each(|(level, picture)| level.copy_from_slice(picture.bytes()));
        Ok(volume)
    }

    /// Starts to compute a picture that every rank has, by replay or by recording; with `volume`, `count` pictures of
    /// its kind if possible.
    fn compute(
        &mut self,
        name: &Path,
        picture: Picture,
        kind: &PictureKind,
        volume: Option<HostBuffer>,
        count: usize,
    ) -> Result<Evaluation<T>> {
        let session = self.session.clone();
        let known = self.known(kind);
        let place = known.replays.iter().position(|(of, _)| *of == count);
        let (Some(place), Some((ready, bytes))) = (place, known.ready.clone()) else {
            let kind = (!known.looks).then_some(kind);
            let image = AnyImage::of_picture(&self.session, picture, self.site);
            return self.record(name, image, kind, volume);
        };
        let (shape, dtype, said) = (picture.shape(), picture.dtype(), picture.metadata().clone());
        let one = volume.is_some().then(|| picture.clone());
        let pixels = volume.unwrap_or_else(|| picture.into_pixels());
        let (_, mut replay) = known.replays.swap_remove(place);
        let repeated = session.repeat(&mut replay, vec![pixels]);
        self.known(kind).replays.push((count, replay));
        match repeated {
            Ok(pending) => {
                let mut ready = ready;
                if let Some(all) = M::attributes(&mut ready) {
                    *all = Arc::new(all.of_another(said));
                }
                Ok(Evaluation { pending, ready, bytes, count })
            }
            Err(refused) => {
                let FailedReplay { error, pixels } = *refused;
                let pixels = pixels.and_then(|mut pixels| pixels.pop());
                let again = error.as_ref().is_none_or(|e| e.is_out_of_memory() && self.wait_for_all());
                match (error, pixels) {
                    (_, Some(pixels)) if again => {
                        let (picture, volume) = match one {
                            Some(picture) => (picture, Some(pixels)),
                            None => (Picture::from_pixels(shape, dtype, pixels).with_metadata(said), None),
                        };
                        let image = AnyImage::of_picture(&self.session, picture, self.site);
                        self.record(name, image, Some(kind), volume)
                    }
                    (error, _) => {
                        Err(error.unwrap_or_else(|| Error::Lost("the pixels of a picture were already taken".into())))
                    }
                }
            }
        }
    }

    /// Records the operation on a picture and starts to compute it; with the pixels of a volume, on its levels if
    /// possible.
    fn record(
        &mut self,
        name: &Path,
        image: AnyImage,
        kind: Option<&PictureKind>,
        volume: Option<HostBuffer>,
    ) -> Result<Evaluation<T>> {
        let repeatable = kind.map(|kind| (kind, StandIns::new(&self.session, &[image.handle()], self.site)));
        let stand_in = repeatable.as_ref().and_then(|(_, stand_ins)| stand_ins.handles().first());
        let stand_in = stand_in.map(|handle| AnyImage::from_handle(handle.clone()));
        let (mut handles, mut ready) = self.make.record(stand_in.as_ref().unwrap_or(&image), name)?;
        drop(stand_in);
        let of = image.handle().attributes.as_ref();
        let is_replaced = M::attributes(&mut ready).zip(of).is_none_or(|(all, of)| all.follow(of));
        let looked_into = repeatable.as_ref().is_some_and(|(_, stand_ins)| stand_ins.looked_into());
        let mut repeatable = match repeatable {
            Some((kind, _)) if looked_into || !is_replaced => {
                self.known(kind).looks = true;
                None
            }
            other => other.filter(|(_, stand_ins)| !stand_ins.looked()),
        };
        let bytes = handles.iter().map(|h| size(h.shape, h.dtype)).sum();
        let mut count = 1;
        if let Some(pixels) = volume {
            let depth = pixels.len() / size(image.shape(), image.dtype()).max(1);
            let stacked = repeatable.as_ref().and_then(|(kind, one)| {
                let (shape, dtype) = (Shape { depth, ..image.shape() }, image.handle().dtype);
                let volume = self.session.source(shape, dtype, pixels, self.site);
                let stand_ins = StandIns::new(&self.session, &[&volume], self.site);
                let wanted: Vec<&Handle> = handles.iter().collect();
                let stacked = self.session.stacked(&wanted, one, stand_ins.handles().first()?)?;
                Some((stacked, (*kind, stand_ins)))
            });
            match stacked {
                Some((stacked, on_volume)) => (handles, repeatable, count) = (stacked, Some(on_volume), depth),
                None => kind.into_iter().for_each(|kind| self.known(kind).alone = true),
            }
        }
        let wanted: Vec<&Handle> = handles.iter().collect();
        let begin = |session: &Session| match &repeatable {
            Some((_, stand_ins)) => session.begin_repeatable(&wanted, stand_ins, M::WANT, ReplayInputKind::Pixels),
            None => Ok((session.begin_all(&wanted, M::WANT)?, None)),
        };
        let (pending, replay) = match begin(&self.session) {
            Err(e) if e.is_out_of_memory() && self.wait_for_all() => begin(&self.session)?,
            other => other?,
        };
        if let (Some((kind, _)), Some(replay)) = (repeatable, replay) {
            let known = self.known(kind);
            known.replays.retain(|(of, _)| *of != count);
            known.replays.push((count, replay));
            known.ready = Some((ready.clone(), bytes));
        }
        // The session may drop the picture and its results; results in flight no longer depend on
        // them.
        Ok(Evaluation { pending, ready, bytes, count })
    }

    /// Lets other threads finish the results of an evaluation: of a picture, and of `others`, which are returned.
    fn land(
        &mut self,
        Evaluation { pending, ready, bytes, count }: Evaluation<T>,
        begun: &mut EvaluatingPicture<R>,
        others: &[ReadingPicture],
    ) -> Result<Vec<EvaluatingPicture<R>>> {
        let first = self.make.finish(&self.session, ready.clone(), &name(begun.path.as_deref(), begun.number))?;
        (begun.landed, begun.bytes) = (false, bytes);
        let mut finishes = vec![(0, begun.number, first)];
        let mut landing = Vec::with_capacity(others.len());
        for (level, ReadingPicture { number, path, picture, .. }) in (1..).zip(others) {
            let mut ready = ready.clone();
            if let (Some(all), Some(Ok(picture))) = (M::attributes(&mut ready), picture) {
                *all = Arc::new(all.of_another(picture.metadata().clone()));
            }
            let finish = self.make.finish(&self.session, ready, &name(path.as_deref(), *number));
            let result = finish.map(|finish| finishes.push((level, *number, finish))).err().map(Err);
            let (path, picture) = (path.clone(), begun.picture);
            landing.push(EvaluatingPicture {
                number: *number,
                path,
                picture,
                bytes,
                landed: true,
                result,
                to_tell: false,
            });
        }
        let (events, number, at_once) = (self.events.0.clone(), begun.number, self.unified());
        let share = count.div_ceil(4 * self.threads());
        self.hands().land(at_once, move || {
            let fetched = pending.wait().map(|all| all.into_iter().collect::<Option<Vec<_>>>());
            let _ = events.send(PictureEvent::Landed(number));
            let mut levels = finishes.into_iter().peekable();
            let mut jobs: Vec<FileJob> = Vec::new();
            while levels.peek().is_some() {
                let own: Vec<_> = levels.by_ref().take(share).collect();
                let (events, mut fetched) = (events.clone(), Some(fetched.clone()));
                jobs.push(Box::new(move || {
                    for (level, number, finish) in own {
                        // A single result is passed on without a copy.
                        let result = if count == 1 { fetched.take() } else { fetched.clone() };
                        let done = catch_unwind(AssertUnwindSafe(|| {
                            let here = result.transpose()?.flatten();
                            here.map(|all| finish(level_of(all, level, count))).transpose()
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
                }));
            }
            drop(fetched);
            jobs
        });
        Ok(landing)
    }

    /// Waits until nothing is in flight or left to finish; returns `true` if there was anything.
    fn wait_for_all(&mut self) -> bool {
        if self.session.ranks() > 1 {
            return false;
        }
        let mut waited = false;
        while self.queue.awaits() {
            self.wait();
            waited = true;
        }
        waited
    }

    /// The outcome of the next picture to yield, if this rank knows it.
    fn take_done(&mut self) -> Option<Item<R>> {
        let front = self.queue.first_begun()?;
        let known = front.result.is_some() || (front.to_tell && !self.reads() && M::WANT == ResultDelivery::Root);
        if !known {
            return None;
        }
        let EvaluatingPicture { number, path, picture, result, to_tell, .. } = self.queue.pop_begun()?;
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
        let eager = self.session.ranks() > 1 || (self.queue.has_begun() && !self.unified());
        loop {
            self.note_all();
            self.read_ahead();
            if !eager && let Some(item) = self.take_done() {
                return Some(item);
            }
            if !self.ended && self.queue.may_begin(&self.session) {
                if let Some(places) = self.alike() {
                    self.begin(&places);
                    continue;
                }
                if self.session.ranks() > 1 && self.queue.has_read() {
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

/// The part of one picture of results of `count` pictures.
fn level_of(all: Vec<Arc<HostBuffer>>, level: usize, count: usize) -> Vec<Arc<HostBuffer>> {
    if count == 1 {
        return all;
    }
    let part = |buffer: Arc<HostBuffer>| {
        let bytes = buffer.len() / count;
        Arc::new(HostBuffer::from_slice(&buffer.bytes()[level * bytes..][..bytes]))
    };
    all.into_iter().map(part).collect()
}

/// The name of a picture: its path, or its number.
pub(super) fn name(path: Option<&Path>, number: usize) -> PathBuf {
    path.map_or_else(|| PathBuf::from(format!("{number:06}")), Path::to_owned)
}

/// Returns `true` if no further picture can be evaluated.
fn is_fatal(e: &Error) -> bool {
    matches!(e, Error::Lost(_) | Error::Communication { .. } | Error::Cancelled(_))
}
