//! Checkpoints of loops: the state and the number of iterations, written while the loop continues. A loop that was
//! interrupted continues from the last one, to the same bits as if it had not been. The design is in
//! `docs/design/loops.md`.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::iterate::{Ending, Iterated, StepWatcher, Until, handles};
use super::loop_state::LoopState;
use crate::dtype::DType;
use crate::error::{Call, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::plan::ResultDelivery;
use crate::session::{Handle, Session, on_root};
use crate::shape::Shape;

/// An image of a checkpoint.
#[derive(Clone, Debug)]
pub struct CheckpointImage {
    /// Its shape.
    pub shape: Shape,
    /// The type of its pixels.
    pub dtype: DType,
    /// Its pixels: level by level and row by row, the channels of each pixel next to each other.
    pub pixels: Arc<HostBuffer>,
}

/// The place of a loop's checkpoints, such as a Zarr store. Only rank 0 uses it.
pub trait CheckpointStore: Send + Sync {
    /// Its path, for messages.
    fn path(&self) -> &Path;

    /// Number of iterations of the last complete checkpoint; `None` if there is none.
    ///
    /// # Errors
    /// If there is something else, or its images have other shapes or types than `images`.
    fn last(&self, images: &[(Shape, DType)]) -> Result<Option<usize>, String>;

    /// Prepares the place for its first checkpoint.
    ///
    /// # Errors
    /// If it cannot be written.
    fn create(&self) -> Result<(), String>;

    /// Reads the pixels of the last complete checkpoint, in the order of [`CheckpointImage::pixels`].
    ///
    /// # Errors
    /// If they cannot be read.
    fn read(&self, to: &mut [&mut [u8]]) -> Result<(), String>;

    /// Replaces the last checkpoint. If it fails, or the process ends meanwhile, the previous checkpoint stays the last.
    ///
    /// # Errors
    /// If it cannot be written.
    fn write(&self, steps: usize, images: &[CheckpointImage]) -> Result<(), String>;
}

/// The checkpoints of a loop; see [`Session::iterate_checkpointed`].
#[derive(Clone)]
#[must_use]
pub struct Checkpoints {
    store: Arc<dyn CheckpointStore>,
    every: usize,
    resumes: bool,
}

impl Checkpoints {
    /// Checkpoints in a store after every `every` iterations. It must not contain one already.
    pub fn new(store: impl CheckpointStore + 'static, every: usize) -> Checkpoints {
        Checkpoints { store: Arc::new(store), every, resumes: false }
    }

    /// Continues from the last checkpoint if there is one.
    pub fn resume(self, resumes: bool) -> Checkpoints {
        Checkpoints { resumes, ..self }
    }

    /// Number of iterations of the checkpoint from which the loop continues, 0 for its beginning. Called on rank 0.
    fn begin(&self, kinds: &[(Shape, DType)]) -> Result<usize, String> {
        match self.store.last(kinds)? {
            Some(steps) if !self.resumes => {
                Err(format!("it has a checkpoint after {steps} steps: resume from it, or remove it"))
            }
            Some(steps) => Ok(steps),
            None => self.store.create().map(|()| 0),
        }
    }
}

/// A checkpoint that is being written.
#[derive(Default)]
struct CheckpointWriter(Option<JoinHandle<Result<(), String>>>);

impl CheckpointWriter {
    /// Waits for the checkpoint; called on rank 0.
    fn wait(&mut self) -> Result<(), String> {
        let written = self.0.take().map(JoinHandle::join);
        written.map_or(Ok(()), |ended| ended.unwrap_or_else(|_| Err("writing a checkpoint panicked".into())))
    }

    /// Begins to write the state, once the previous checkpoint is complete. Collective.
    fn begin<S: LoopState>(
        &mut self,
        session: &Session,
        (store, steps, state): (&Arc<dyn CheckpointStore>, usize, &S),
    ) -> Result<()> {
        let failed = |cause| Error::write(store.path(), cause);
        on_root(session, "writing a checkpoint", || self.wait())?.map_err(failed)?;
        let images = handles(state);
        let kinds: Vec<(Shape, DType)> = images.iter().map(|image| (image.shape, image.dtype)).collect();
        let pending = session.begin_all(&images, ResultDelivery::Root)?;
        let to = Arc::clone(store);
        let write = move || {
            let pixels = pending.wait().map_err(|e| e.to_string())?;
            let image = |((shape, dtype), pixels): ((Shape, DType), Option<Arc<HostBuffer>>)| {
                Some(CheckpointImage { shape, dtype, pixels: pixels? })
            };
            let images: Option<Vec<_>> = kinds.into_iter().zip(pixels).map(image).collect();
            to.write(steps, &images.ok_or("rank 0 has no pixels")?)
        };
        let begun = on_root(session, "writing a checkpoint", || {
            let thread = std::thread::Builder::new().name("horus-checkpoint".into()).spawn(write);
            self.0 = Some(thread.map_err(|e| format!("cannot start a thread: {e}"))?);
            Ok(())
        })?;
        begun.map_err(failed)
    }
}

impl Drop for CheckpointWriter {
    fn drop(&mut self) {
        let _ = self.wait(); // of a loop that failed, whose error counts
    }
}

impl Session {
    /// [`Session::iterate`] that writes its state and the number of iterations to a store at an interval, while the
    /// loop continues. Given the same state, `until` and `step`, a loop that was interrupted continues from its last
    /// checkpoint ([`Checkpoints::resume`]), and yields the same bits as without an interruption, on any number of
    /// ranks and any device. `until` counts all iterations, also those before.
    ///
    /// `watch` is an interval and what is called at it, as by [`Session::iterate_watched`]; also for a state from which the
    /// loop continues.
    ///
    /// Rank 0 writes. A state must fit in its memory. The next checkpoint waits until the previous one is complete. The
    /// last one stays when the loop ends.
    ///
    /// # Errors
    /// As [`Session::iterate`]; [`Error::File`] if there is a checkpoint and the loop does not resume, if the images of
    /// the checkpoint have other shapes or types than those of `state`, if it has more iterations than the loop, or if
    /// the store cannot be read or written, which is found before the first iteration where possible; also if the
    /// interval is 0, or the loop is [relaxed](crate::session::BlockMap::relaxed), whose bits depend on messages.
    #[track_caller]
    pub fn iterate_checkpointed<S: LoopState>(
        &self,
        state: S,
        until: impl Into<Until>,
        step: impl Fn(&S) -> S,
        checkpoints: &Checkpoints,
        mut watch: Option<(usize, StepWatcher<'_, S>)>,
    ) -> Result<Iterated<S>> {
        let call @ Call { site, .. } = Call::of("iterate");
        let Checkpoints { store, every, .. } = checkpoints;
        let refused = |why: &str| self.refused(Error::parameter(call, why));
        if *every == 0 || watch.as_ref().is_some_and(|(every, _)| *every == 0) {
            return refused("the state cannot be saved or watched every 0 steps");
        }
        if self.lock("iterate")?.blocks.as_ref().is_some_and(|(map, _)| map.age().is_some()) {
            return refused("a relaxed loop has no checkpoints: its bits depend on when messages arrive");
        }
        let kinds: Vec<(Shape, DType)> = handles(&state).iter().map(|image| (image.shape, image.dtype)).collect();
        let done = on_root(self, "reading a checkpoint", || checkpoints.begin(&kinds))?;
        let until = until.into();
        let done = done.and_then(|done| until.allows(done).map(|()| done));
        let done = done.map_err(|cause| Error::read(store.path(), cause)).or_else(|e| self.refused(e))?;
        let state = if done > 0 { self.restored(&**store, state, &kinds, call)? } else { state };
        let intervals = [Some(*every), watch.as_ref().map(|(every, _)| *every)];
        if let Some((every, watch)) = &mut watch
            && done > 0
            && done.is_multiple_of(*every)
            && watch(done, &state)?.is_break()
        {
            return Ok(Iterated { state, steps: done, change: None, ending: Ending::Stopped });
        }
        let mut writer = CheckpointWriter::default();
        let mut each = |steps: usize, state: &S| {
            if steps.is_multiple_of(*every) {
                writer.begin(self, (store, steps, state))?;
            }
            match &mut watch {
                Some((every, watch)) if steps.is_multiple_of(*every) => watch(steps, state),
                _ => Ok(ControlFlow::Continue(())),
            }
        };
        let ended = self.looped(state, until.after(done), step, Some((intervals, &mut each)), site)?;
        let written = on_root(self, "writing a checkpoint", || writer.wait())?;
        written.map_err(|cause| Error::write(store.path(), cause)).or_else(|e| self.refused(e))?;
        Ok(ended)
    }

    /// The state of the last checkpoint. Collective.
    fn restored<S: LoopState>(
        &self,
        store: &dyn CheckpointStore,
        initial: S,
        kinds: &[(Shape, DType)],
        Call { site, .. }: Call,
    ) -> Result<S> {
        let mut pixels: Vec<HostBuffer> = Vec::new();
        let read = on_root(self, "reading a checkpoint", || {
            let room = |(shape, dtype): &(Shape, DType)| self.room(shape.len() * dtype.size());
            pixels = kinds.iter().map(room).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
            store.read(&mut pixels.iter_mut().map(HostBuffer::bytes_mut).collect::<Vec<_>>())
        })?;
        read.map_err(|cause| Error::read(store.path(), cause)).or_else(|e| self.refused(e))?;
        let mut pixels = pixels.into_iter();
        let images = handles(&initial).into_iter().zip(kinds).map(|(before, (shape, dtype))| {
            let mut image = self.source_on_root(*shape, *dtype, pixels.next(), site);
            image.attributes.clone_from(&before.attributes);
            image
        });
        let images: Vec<Handle> = images.collect();
        Ok(initial.with(&mut images.into_iter()))
    }
}
