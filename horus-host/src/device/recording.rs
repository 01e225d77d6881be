//! When copies and kernels run by a device's own clock, for traces and for what is told beside predictions.
//!
//! Whoever wants to know gives the calling thread a [`Label`] while it calls the device ([`Label::enter`]). A device that
//! finds one ([`Label::current`]) notes when the work of the call begins and ends, and hands that out later
//! ([`Device::recorded`](super::Device::recorded)). Without a label nothing is noted, which costs one look at a variable of
//! the thread.

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

/// What work of a device belongs to, different from all others of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(NonZeroU64);

impl Label {
    /// A label that nothing has yet.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> Label {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Label(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)))
    }

    /// The label of what this thread calls a device for; `None` if nobody wants to know.
    pub fn current() -> Option<Label> {
        CURRENT.get()
    }

    /// Gives this thread's calls the label, until what is returned goes.
    pub fn enter(self) -> Entered {
        Entered { before: CURRENT.replace(Some(self)), of_this_thread: PhantomData }
    }
}

/// While it lives, calls of this thread have a [`Label`].
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

/// What a device does one after the other.
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

/// When a device worked for a call, by its own clock, told in the host's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// What the call was made for.
    pub label: Label,
    /// Where it was done.
    pub lane: Lane,
    /// When it began.
    pub start: Instant,
    /// When it was over.
    pub end: Instant,
}

/// The spans of a device that has done its work when its calls return: by the host's clock.
#[derive(Default)]
pub struct HostSpans(Mutex<Vec<DeviceSpan>>);

impl HostSpans {
    /// Does work, and notes when if this thread has a label.
    pub fn note<R>(&self, lane: Lane, work: impl FnOnce() -> R) -> R {
        let Some(label) = Label::current() else { return work() };
        let start = Instant::now();
        let result = work();
        let span = DeviceSpan { label, lane, start, end: Instant::now() };
        self.spans().push(span);
        result
    }

    /// Takes those with a label that is `own`.
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
