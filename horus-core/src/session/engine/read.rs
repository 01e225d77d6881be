//! Results that may still be in transfer to the host.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::device::DownloadStart;
use crate::error::{Error, Result};
use crate::execute::Delivered;
use crate::host::buffer::HostBuffer;
use crate::ir::graph::NodeId;
use crate::plan::ResultDelivery;
use crate::record::RecordId;
use crate::session::engine::evaluate::EvaluationResults;
use crate::session::{Handle, Session, SessionState};

/// Results of an evaluation that may still be in transfer to the host; see [`Session::begin_all`]. Any thread may wait
/// for them or drop them.
#[must_use]
pub struct Pending {
    /// Node of each requested value.
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) delivered: HashMap<NodeId, Delivered>,
    pub(crate) device: Arc<str>,
}

impl Pending {
    /// Waits for the pixels, in the order of the request: row-major, the channels of each pixel next to each other;
    /// `None` if another rank has them.
    ///
    /// # Errors
    /// Errors of the device in the copies, and in launches before them.
    pub fn wait(self) -> Result<Vec<Option<Arc<HostBuffer>>>> {
        let Pending { nodes, delivered, device } = self;
        let land = |(n, result)| match result {
            Delivered::OnHost(host) => Ok((n, Arc::new(host))),
            Delivered::InFlight(landing) => match landing.wait() {
                Ok(host) => Ok((n, Arc::new(host))),
                Err(source) => {
                    Err(Error::Device { op: "download of a result".into(), device: device.to_string(), source })
                }
            },
        };
        let landed = delivered.into_iter().map(land).collect::<Result<HashMap<NodeId, Arc<HostBuffer>>>>()?;
        Ok(nodes.iter().map(|n| landed.get(n).cloned()).collect())
    }
}

impl fmt::Debug for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} results in flight from {}", self.nodes.len(), self.device)
    }
}

impl Session {
    /// Evaluates a value and copies its pixels to the host, on rank 0 or on every rank (then always `Some`). They are
    /// row-major, the channels of each pixel next to each other.
    pub(crate) fn fetch(&self, value: &Handle, want: ResultDelivery) -> Result<Option<Arc<HostBuffer>>> {
        Ok(self.fetch_all(&[value], want)?.pop().flatten())
    }

    /// [`Session::fetch`] for several values, in one evaluation. They must belong to this session; one may come twice.
    pub(crate) fn fetch_all(&self, values: &[&Handle], want: ResultDelivery) -> Result<Vec<Option<Arc<HostBuffer>>>> {
        self.look_at(&mut *self.lock("evaluating")?, values, want, DownloadStart::AtOnce)?.wait()
    }

    /// [`Session::fetch_all`] without waiting for the last copies to the host. The program continues while these and
    /// the kernels before them run. On the host's memory, and on several ranks, the pixels are complete on return.
    #[doc(hidden)]
    pub fn begin_all(&self, values: &[&Handle], want: ResultDelivery) -> Result<Pending> {
        // Several ranks synchronise for their results.
        let want = if self.ranks() == 1 { ResultDelivery::Requester } else { want };
        self.look_at(&mut *self.lock("evaluating")?, values, want, DownloadStart::AtOnce)
    }

    pub(crate) fn look_at(
        &self,
        state: &mut SessionState,
        values: &[&Handle],
        want: ResultDelivery,
        sending: DownloadStart,
    ) -> Result<Pending> {
        if let Some(e) = state.error.take() {
            return Err(e);
        }
        let ids: std::result::Result<Vec<RecordId>, _> = values.iter().map(|h| h.record.as_ref().copied()).collect();
        let ids = match ids {
            Ok(ids) => ids,
            Err(failure) => return self.fail(failure),
        };
        let mut targets = ids.clone();
        targets.sort_unstable();
        targets.dedup();
        let EvaluationResults { of_targets, delivered, .. } =
            self.run(state, &targets, &vec![want; targets.len()], sending)?;
        let node: HashMap<RecordId, NodeId> = targets.into_iter().zip(of_targets).collect();
        Ok(Pending { nodes: ids.iter().map(|id| node[id]).collect(), delivered, device: self.shared_device_name() })
    }
}
