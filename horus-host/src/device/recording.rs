//! Times of copies and kernels by a device's own clock, for traces and for comparison with
//! predictions.
//!
//! A caller that wants them gives the calling thread a [`Label`] while it calls the device
//! ([`Label::enter`]). A device that finds one ([`Label::current`]) records the start and the end
//! of the call's work, and returns them later ([`Device::recorded`](super::Device::recorded)).
//! Without a label nothing is recorded, at the cost of reading one thread-local variable.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

thread_local! {
    static CURRENT: Cell<Option<Label>> = const { Cell::new(None) };
}

/// Identifies the origin of a device's work; unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(NonZeroU64);

impl Label {
    /// A new label.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Label {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Label(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)))
    }

    /// The label of this thread's device calls; `None` if they are not recorded.
    pub fn current() -> Option<Label> {
        CURRENT.get()
    }

    /// Labels this thread's calls until the returned guard is dropped.
    pub fn enter(self) -> Entered {
        Entered { before: CURRENT.replace(Some(self)), of_this_thread: PhantomData }
    }
}

/// Guard during whose lifetime calls of this thread have a [`Label`].
#[must_use]
#[derive(Debug)]
pub struct Entered {
    before: Option<Label>,
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Queues of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// Copies from the host.
    Upload,
    /// Kernels, and copies within the device.
    Compute,
    /// Copies to the host.
    Download,
    /// Messages to and from other devices.
    Network,
}

/// The span of a device's work for a call, by its own clock, in the host's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The label of the call.
    pub label: Label,
    /// The queue.
    pub lane: Lane,
    /// Start.
    pub start: Instant,
    /// End.
    pub end: Instant,
}

/// The spans of a device whose calls return when their work is done: by the host's clock.
#[derive(Default)]
pub struct HostSpans(Mutex<Vec<DeviceSpan>>);

impl HostSpans {
    /// Does work, and records its span if this thread has a label.
    pub fn note<R>(&self, lane: Lane, work: impl FnOnce() -> R) -> R {
        let Some(label) = Label::current() else { return work() };
        let start = Instant::now();
        let result = work();
        let span = DeviceSpan { label, lane, start, end: Instant::now() };
        self.spans().push(span);
        result
    }

    /// Takes the spans with a label that is `own`.
    pub fn take(&self, own: &dyn Fn(Label) -> bool) -> Vec<DeviceSpan> {
        self.spans().extract_if(.., |span| own(span.label)).collect()
    }

    fn spans(&self) -> MutexGuard<'_, Vec<DeviceSpan>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for HostSpans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} spans", self.spans().len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_label_is_noted_and_everyone_takes_their_own() {
        let (spans, mine, others) = (HostSpans::default(), Label::new(), Label::new());
        assert_ne!(mine, others);
        assert_eq!(spans.note(Lane::Compute, || 1), 1);
        {
            let _outer = mine.enter();
            spans.note(Lane::Upload, || ());
            {
                let _inner = others.enter();
                spans.note(Lane::Compute, || ());
                std::thread::scope(|scope| {
                    scope.spawn(|| assert_eq!(Label::current(), None, "another thread's calls have their own"));
                });
            }
            spans.note(Lane::Download, || ());
        }
        assert_eq!(Label::current(), None);
        let taken = spans.take(&|label| label == mine);
        assert_eq!(taken.iter().map(|s| s.lane).collect::<Vec<_>>(), [Lane::Upload, Lane::Download]);
        assert!(taken.iter().all(|s| s.start <= s.end) && taken[0].end <= taken[1].start);
        assert_eq!(spans.take(&|_| true).len(), 1);
        assert!(spans.take(&|_| true).is_empty());
    }
}
