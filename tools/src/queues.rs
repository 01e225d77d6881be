//! The work of a device's queues in one run of a program, from the trace of a session. No run is shorter than the work
//! of its busiest queue.

use horus::error::Result;
use horus_core::plan::Queue;
use horus_core::session::Session;
use serde_json::Value;

/// The queues of a device.
pub const QUEUES: [Queue; 3] = [Queue::Upload, Queue::Compute, Queue::Download];

/// Traced runs; the run whose busiest queue works least is used.
const RUNS: usize = 2;

/// The work of a queue in a run, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct QueueWork {
    /// Time of all its work.
    pub busy: f64,
    /// Start of the first copy or kernel.
    pub first: f64,
    /// End of the last one.
    pub last: f64,
    /// Number of copies or kernels.
    pub count: usize,
}

/// The work of each of [`QUEUES`] in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RunQueues(pub [QueueWork; 3]);

/// A copy or a kernel: the index of its queue, its start and its end in milliseconds.
type QueueSpan = (usize, f64, f64);

impl RunQueues {
    /// The work in a run of a program in `session`, which only records a trace. A run that is not counted makes the
    /// plan. `clock`: milliseconds that the device's clock adds to a kernel.
    ///
    /// # Errors
    /// Errors of the runs and of the trace.
    pub fn of(session: &Session, clock: f64, mut run: impl FnMut() -> Result<()>) -> Result<RunQueues> {
        run()?;
        let mut seen = spans(session)?.len();
        let mut least: Option<RunQueues> = None;
        for _ in 0..RUNS {
            run()?;
            let all = spans(session)?;
            let queues = RunQueues::over(all.get(seen..).unwrap_or_default(), clock);
            seen = all.len();
            if least.is_none_or(|least| queues.most() < least.most()) {
                least = Some(queues);
            }
        }
        Ok(least.unwrap_or_default())
    }

    /// The work of spans; spans of each queue are in order.
    fn over(spans: &[QueueSpan], clock: f64) -> RunQueues {
        let mut queues = [QueueWork::default(); 3];
        let mut until = [f64::NEG_INFINITY; 3];
        for &(queue, start, end) in spans {
            let clock = if QUEUES[queue] == Queue::Compute { clock } else { 0.0 };
            let work = &mut queues[queue];
            let took = (end - start - clock).max(0.0);
            // Overlapping spans are counted once.
            work.busy += (end - start.max(until[queue]) - clock).max(0.0);
            until[queue] = until[queue].max(end);
            if work.count == 0 {
                work.first = took;
            }
            work.last = took;
            work.count += 1;
        }
        RunQueues(queues)
    }

    /// The busiest queue.
    pub fn busiest(&self) -> Queue {
        let most = QUEUES.into_iter().zip(&self.0).max_by(|(_, a), (_, b)| a.busy.total_cmp(&b.busy));
        most.map_or(Queue::Compute, |(queue, _)| queue)
    }

    /// Milliseconds of work of the busiest queue.
    pub fn most(&self) -> f64 {
        self.0.iter().map(|work| work.busy).fold(0.0, f64::max)
    }

    /// [`RunQueues::most`], plus the copies during which that queue cannot work: the first upload comes before kernels
    /// and downloads, the last download after uploads and kernels.
    pub fn least(&self) -> f64 {
        let [upload, _, download] = &self.0;
        let before = if self.busiest() == Queue::Upload { 0.0 } else { upload.first };
        let after = if self.busiest() == Queue::Download { 0.0 } else { download.last };
        before + self.most() + after
    }
}

/// The device's spans so far, in the order in which they were collected.
fn spans(session: &Session) -> Result<Vec<QueueSpan>> {
    let trace: Value = serde_json::from_str(&session.trace_json()?.unwrap_or_default()).unwrap_or_default();
    let events = trace["traceEvents"].as_array().map_or(&[][..], Vec::as_slice);
    let span = |event: &Value| {
        let (row, start, length) = (event["tid"].as_u64()?, event["ts"].as_f64()?, event["dur"].as_f64()?);
        let queue = QUEUES.iter().position(|queue| *queue as u64 == row)?;
        Some((queue, start / 1e3, (start + length) / 1e3))
    };
    // Predictions belong to another process.
    Ok(events.iter().filter(|event| event["pid"].as_u64() == Some(0)).filter_map(span).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busiest_queue_is_that_with_most_work() {
        // Two overlapping uploads, kernels meanwhile, and a download at the end.
        let spans = [(0, 0.0, 2.0), (1, 1.0, 2.5), (0, 1.5, 3.0), (1, 3.0, 5.5), (2, 5.5, 6.0)];
        let queues = RunQueues::over(&spans, 0.5);
        assert_eq!(queues.0.map(|work| work.busy), [3.0, 3.0, 0.5]);
        assert_eq!(queues.0.map(|work| work.count), [2, 2, 1]);
        let [upload, kernels, _] = queues.0;
        assert_eq!((upload.first, upload.last, kernels.first, kernels.last), (2.0, 1.5, 1.0, 2.0));
        let queues = RunQueues::over(&spans, 0.0);
        assert_eq!((queues.busiest(), queues.most(), queues.least()), (Queue::Compute, 4.0, 2.0 + 4.0 + 0.5));
        let queues = RunQueues::over(&spans[..3], 0.0);
        assert_eq!((queues.busiest(), queues.least()), (Queue::Upload, 3.0), "nothing is downloaded");
        assert_eq!(RunQueues::over(&[], 0.0).least(), 0.0);
    }
}
