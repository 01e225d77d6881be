//! Times of copies and kernels by a device's own clock, for traces and for comparison with predictions.
//!
//! A caller that wants times labels its thread ([`WorkLabel::enter`]) while it calls the device. The device finds the
//! label ([`WorkLabel::current`]), records start and end of the call's work, and returns them in
//! [`Device::recorded`](super::Device::recorded). Without a label, nothing is recorded, and a call costs one read of a
//! thread-local variable.

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

thread_local! {
    static CURRENT: Cell<Option<WorkLabel>> = const { Cell::new(None) };
}

/// Label of the origin of a device's work; unique in the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WorkLabel(NonZeroU64);

impl WorkLabel {
    /// A new label.
    #[expect(clippy::new_without_default, reason = "no two are equal")]
    pub fn new() -> WorkLabel {
        static LAST: AtomicU64 = AtomicU64::new(0);
        WorkLabel(NonZeroU64::MIN.saturating_add(LAST.fetch_add(1, Ordering::Relaxed)))
    }

    /// The label of this thread's device calls; `None` if they are not recorded.
    pub fn current() -> Option<WorkLabel> {
        CURRENT.get()
    }

    /// Labels this thread's calls until the returned guard is dropped.
    pub fn enter(self) -> LabelGuard {
        LabelGuard { before: CURRENT.replace(Some(self)), of_this_thread: PhantomData }
    }
}

/// Guard that labels the calls of its thread while it lives.
#[must_use]
#[derive(Debug)]
pub struct LabelGuard {
    before: Option<WorkLabel>,
    of_this_thread: PhantomData<*const ()>,
}

impl Drop for LabelGuard {
    fn drop(&mut self) {
        CURRENT.set(self.before);
    }
}

/// Queues of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceQueue {
    /// Copies from the host.
    Upload,
    /// Kernels, and copies within the device.
    Compute,
    /// Copies to the host.
    Download,
    /// Messages to and from other devices.
    Network,
}

/// The span of a device's work for a call, by the device's clock, in the host's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceSpan {
    /// The label of the call.
    pub label: WorkLabel,
    /// The queue.
    pub queue: DeviceQueue,
    /// Start.
    pub start: Instant,
    /// End.
    pub end: Instant,
}

/// Spans of a device whose calls return when their work is done, by the host's clock.
#[derive(Default)]
pub struct HostSpans(Mutex<Vec<DeviceSpan>>);

impl HostSpans {
    /// Does work, and records its span if this thread has a label.
    pub fn note<R>(&self, lane: DeviceQueue, work: impl FnOnce() -> R) -> R {
        let Some(label) = WorkLabel::current() else { return work() };
        let start = Instant::now();
        let result = work();
        let span = DeviceSpan { label, queue: lane, start, end: Instant::now() };
        self.spans().push(span);
        result
    }

    /// Takes the spans whose label is `own`.
    pub fn take(&self, own: &dyn Fn(WorkLabel) -> bool) -> Vec<DeviceSpan> {
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
        let (spans, mine, others) = (HostSpans::default(), WorkLabel::new(), WorkLabel::new());
        assert_ne!(mine, others);
        assert_eq!(spans.note(DeviceQueue::Compute, || 1), 1);
        {
            let _outer = mine.enter();
            spans.note(DeviceQueue::Upload, || ());
            {
                let _inner = others.enter();
                spans.note(DeviceQueue::Compute, || ());
                std::thread::scope(|scope| {
                    scope.spawn(|| assert_eq!(WorkLabel::current(), None, "another thread's calls have their own"));
                });
            }
            spans.note(DeviceQueue::Download, || ());
        }
        assert_eq!(WorkLabel::current(), None);
        let taken = spans.take(&|label| label == mine);
        assert_eq!(taken.iter().map(|s| s.queue).collect::<Vec<_>>(), [DeviceQueue::Upload, DeviceQueue::Download]);
        assert!(taken.iter().all(|s| s.start <= s.end) && taken[0].end <= taken[1].start);
        assert_eq!(spans.take(&|_| true).len(), 1);
        assert!(spans.take(&|_| true).is_empty());
    }
}
