//! The order of steps that waits and queues guarantee.
//!
//! Vector clocks: for each queue, the steps of every other queue that are complete when its next step begins.

use crate::ir::graph::NodeId;
use crate::plan::queue::Queue;
use crate::plan::step::{Band, PlanStep};
use horus_base::shape::Window;

const QUEUES: usize = Queue::ALL.len();

/// For each queue, the position in the plan before which all its steps are complete.
type VectorClock = [usize; QUEUES];

/// Follows the steps of a plan on one rank.
pub(super) struct StepOrder<'a> {
    steps: &'a [PlanStep],
    /// Clock of each queue.
    known: [VectorClock; QUEUES],
    /// Clock at the start of each step, itself included.
    at: Vec<VectorClock>,
    /// Writers of rows of each device copy.
    writers: Vec<Vec<(Window, usize)>>,
    /// Gathers of parts of each image's strips.
    gathered: Vec<Vec<(Window, usize)>>,
}

impl<'a> StepOrder<'a> {
    pub(super) fn new(steps: &'a [PlanStep], images: usize) -> StepOrder<'a> {
        let nobody = vec![Vec::new(); images];
        StepOrder { steps, known: [[0; QUEUES]; QUEUES], at: Vec::new(), writers: nobody.clone(), gathered: nobody }
    }

    fn queue(&self, step: usize) -> Queue {
        self.steps[step].action.queue()
    }

    /// Starts the next step.
    pub(super) fn begin(&mut self) -> Result<(), String> {
        let step = self.at.len();
        let queue = self.queue(step);
        for &wait in &self.steps[step].waits {
            let before = self.at.get(wait).ok_or_else(|| format!("waits for step {wait}, which comes later"))?;
            let known = &mut self.known[queue as usize];
            known.iter_mut().zip(before).for_each(|(known, before)| *known = (*known).max(*before));
        }
        // Queues ordered with this one share its clock and the clock of its waits.
        let mut now = self.known[queue as usize];
        now[queue as usize] = step + 1;
        for other in Queue::ALL.into_iter().filter(|other| queue.in_order_with(*other)) {
            self.known[other as usize].iter_mut().zip(now).for_each(|(known, now)| *known = (*known).max(now));
        }
        self.at.push(now);
        Ok(())
    }

    /// Records that the current step writes rows of the device copy of an image.
    pub(super) fn writes(&mut self, n: NodeId, rows: Window) {
        if rows.is_empty() {
            return;
        }
        let step = self.at.len() - 1;
        self.writers[n.0].push((rows, step));
    }

    /// Records that the current step gathers a band of every strip.
    pub(super) fn gathers(&mut self, n: NodeId, band: Band) {
        let step = self.at.len() - 1;
        self.gathered[n.0].push((Window::new(band.from.into(), band.to.into()), step));
    }

    /// Records that the device copy of an image is new or removed.
    pub(super) fn forget(&mut self, n: NodeId) {
        self.writers[n.0].clear();
    }

    /// Fails unless all writes to these rows (to all rows if `None`) of the device copy precede the current
    /// step.
    pub(super) fn sees(&self, n: NodeId, rows: Option<Window>) -> Result<(), String> {
        match self.unseen(&self.writers[n.0], rows) {
            None => Ok(()),
            Some((written, writer)) => {
                Err(format!("does not wait for step {writer}, which writes rows {written} of {n}"))
            }
        }
    }

    /// Fails unless a band of every strip has been gathered before the current step.
    pub(super) fn sees_gathered(&self, n: NodeId, band: Band) -> Result<(), String> {
        match self.unseen(&self.gathered[n.0], Some(Window::new(band.from.into(), band.to.into()))) {
            None => Ok(()),
            Some((_, writer)) => Err(format!("does not wait for step {writer}, which gathers rows of {n}")),
        }
    }

    /// A write to some of these rows (any row if `None`) that may not precede the current step.
    fn unseen(&self, writers: &[(Window, usize)], rows: Option<Window>) -> Option<(Window, usize)> {
        let step = self.at.len() - 1;
        let meets = |written: Window| rows.is_none_or(|rows| !rows.intersect(written).is_empty());
        let over = |writer: usize| self.at[step][self.queue(writer) as usize] > writer;
        writers.iter().find(|(written, writer)| meets(*written) && !over(*writer)).copied()
    }
}
