//! Communication between ranks: the executor uses it for the planner's transfers.

pub mod agree;
mod communication_order;
mod first_ranks;
mod on_node;
pub mod threads;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::buffer::HostBuffer;
pub use communication_order::CommunicationOrder;
pub use first_ranks::FirstRanks;
pub use horus_base::error::CommError;
pub use on_node::OnNode;

/// A message and its peer, the receiving or sending rank.
pub type Parcel = (usize, HostBuffer);

/// An exchange in progress; see [`Communicator::begin`].
pub trait PendingExchange {
    /// Waits until all messages are sent and received. Returns the received ones in the order in which they were
    /// requested.
    ///
    /// # Errors
    /// If another rank failed or left.
    fn finish(self: Box<Self>) -> Result<Vec<Parcel>, CommError>;
}

/// An exchange that completed when it was started.
struct CompletedExchange(Vec<Parcel>);

impl PendingExchange for CompletedExchange {
    fn finish(self: Box<Self>) -> Result<Vec<Parcel>, CommError> {
        Ok(self.0)
    }
}

/// The ranks of one program. Every call is collective: all ranks make the same calls in the same order.
pub trait Communicator: Send + Sync {
    /// This rank, `0..size`.
    fn rank(&self) -> usize;

    /// Number of ranks.
    fn size(&self) -> usize;

    /// This rank's index among the ranks of its node, `0..local_size`, which selects its GPU. By default all ranks are
    /// on one node.
    fn local_rank(&self) -> usize {
        self.rank()
    }

    /// Number of ranks on this rank's node.
    fn local_size(&self) -> usize {
        self.size()
    }

    /// Index of this rank's node; nodes are numbered in the order of their first ranks.
    fn node(&self) -> usize {
        0
    }

    /// Number of ranks that share this rank's cores, including itself: the ranks of its node, unless the launcher binds
    /// each to its own cores.
    fn sharers(&self) -> usize {
        self.local_size()
    }

    /// Serialises the threads of this rank that communicate, if any thread can use the communicator, one at a time.
    /// Evaluations then run concurrently with the program (`Session::start`). `None`, the default, restricts
    /// communication to one thread: `Session::start` evaluates inside the call. All communicators on the same ranks
    /// return the same.
    fn communication_order(&self) -> Option<&CommunicationOrder> {
        None
    }

    /// Sends one message to each rank in `sends` and receives one from each in `receives`; returns when all are
    /// complete. A rank appears at most once in each list; this rank never appears. Messages are not empty, and a
    /// receive buffer has exactly the length of the message.
    ///
    /// # Errors
    /// If another rank failed or left.
    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError>;

    /// Starts a non-blocking exchange, otherwise like [`Communicator::exchange`]; `receives` are buffers with the
    /// lengths of the messages. Other calls may be made before [`PendingExchange::finish`]. Messages between two ranks
    /// match in the order in which their exchanges were started; a started exchange matches a blocking one. The default
    /// implementation blocks.
    ///
    /// # Errors
    /// If another rank failed or left.
    fn begin(&self, sends: Vec<Parcel>, mut receives: Vec<Parcel>) -> Result<Box<dyn PendingExchange + '_>, CommError> {
        let out: Vec<(usize, &[u8])> = sends.iter().map(|(rank, b)| (*rank, b.bytes())).collect();
        let mut into: Vec<(usize, &mut [u8])> = receives.iter_mut().map(|(rank, b)| (*rank, b.bytes_mut())).collect();
        self.exchange(&out, &mut into)?;
        Ok(Box::new(CompletedExchange(receives)))
    }

    /// Copies the root's bytes to every rank. Lengths may differ before the call and are equal afterwards.
    ///
    /// # Errors
    /// If another rank failed or left.
    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError>;

    /// Replaces `values` on every rank by their sum over all ranks, added in rank order (an allreduce of fixed order).
    ///
    /// # Errors
    /// If another rank failed or left.
    fn sum(&self, values: &mut [f64]) -> Result<(), CommError>;

    /// Every rank's value, in rank order, on every rank (an allgather of one word).
    ///
    /// # Errors
    /// If another rank failed or left.
    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError>;

    /// Aborts all ranks: their pending and later calls fail with `message`, or their processes end.
    fn abort(&self, message: &str);
}

/// The communicator of a single process.
#[derive(Debug, Clone, Copy, Default)]
pub struct SingleRankComm;

impl Communicator for SingleRankComm {
    fn rank(&self) -> usize {
        0
    }
    fn size(&self) -> usize {
        1
    }
    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        debug_assert!(sends.is_empty() && receives.is_empty(), "one rank has nobody to talk to");
        Ok(())
    }
    fn broadcast(&self, _root: usize, _bytes: &mut Vec<u8>) -> Result<(), CommError> {
        Ok(())
    }
    fn sum(&self, _values: &mut [f64]) -> Result<(), CommError> {
        Ok(())
    }
    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError> {
        Ok(vec![value])
    }
    fn abort(&self, _message: &str) {}
}

/// Calls `make` on rank `root` only, and returns its value on every rank.
///
/// # Errors
/// On all ranks if the value cannot be sent; if another rank failed or left; if `root` sent no such value.
pub fn share<T>(comm: &dyn Communicator, root: usize, make: impl FnOnce() -> T) -> Result<T, CommError>
where
    T: Serialize + DeserializeOwned,
{
    let mine = (comm.rank() == root).then(make);
    let mut bytes = mine.as_ref().map_or_else(Vec::new, encoded);
    comm.broadcast(root, &mut bytes)?;
    match mine {
        Some(value) if bytes.first() == Some(&0) => Ok(value),
        _ => decoded(root, &bytes),
    }
}

/// The value of the first rank that has one, on every rank; `None` if no rank has one.
///
/// # Errors
/// As [`share`].
pub fn share_first<T>(comm: &dyn Communicator, mine: Option<T>) -> Result<Option<T>, CommError>
where
    T: Serialize + DeserializeOwned,
{
    if comm.size() == 1 {
        return Ok(mine);
    }
    let has = comm.gather(u64::from(mine.is_some()))?;
    has.iter().position(|has| *has > 0).map_or(Ok(None), |first| share(comm, first, || mine))
}

/// The values of all ranks, in rank order, on every rank.
///
/// # Errors
/// As [`share`].
pub fn share_all<T: Serialize + DeserializeOwned>(comm: &dyn Communicator, mine: &T) -> Result<Vec<T>, CommError> {
    let gathered = gather_bytes(comm, &encoded(mine))?;
    let all: Vec<Vec<u8>> = share(comm, 0, || gathered.unwrap_or_default())?;
    all.iter().enumerate().map(|(rank, bytes)| decoded(rank, bytes)).collect()
}

/// Encodes a value as a message, or the reason why it cannot be encoded: other ranks wait for either. The first byte of
/// a value is 0.
fn encoded<T: Serialize>(value: &T) -> Vec<u8> {
    let failed = |e: postcard::Error| postcard::to_allocvec(&Err::<&T, _>(e.to_string())).unwrap_or_default();
    postcard::to_allocvec(&Ok::<_, String>(value)).unwrap_or_else(failed)
}

fn decoded<T: DeserializeOwned>(from: usize, bytes: &[u8]) -> Result<T, CommError> {
    let made: Result<Result<T, String>, _> = postcard::from_bytes(bytes);
    let made = made.map_err(|e| CommError(format!("a message of rank {from} cannot be understood: {e}")))?;
    made.map_err(|e| CommError(format!("rank {from} cannot send what it made: {e}")))
}

/// Gathers every rank's bytes, in rank order, on rank 0; `None` on other ranks.
///
/// # Errors
/// If another rank failed or left.
pub fn gather_bytes(comm: &dyn Communicator, mine: &[u8]) -> Result<Option<Vec<Vec<u8>>>, CommError> {
    let lengths = comm.gather(mine.len() as u64)?;
    if comm.rank() > 0 {
        let sends: &[(usize, &[u8])] = if mine.is_empty() { &[] } else { &[(0, mine)] };
        return comm.exchange(sends, &mut []).map(|()| None);
    }
    let mut all: Vec<Vec<u8>> = lengths.iter().map(|n| vec![0; *n as usize]).collect();
    all[0].copy_from_slice(mine);
    let others = all.iter_mut().enumerate().skip(1).filter(|(_, b)| !b.is_empty());
    let mut receives: Vec<_> = others.map(|(rank, b)| (rank, &mut b[..])).collect();
    comm.exchange(&[], &mut receives)?;
    Ok(Some(all))
}

/// Runs `work`, for which other ranks may wait. A panic aborts them.
pub fn guarded<R>(comm: &dyn Communicator, what: &str, work: impl FnOnce() -> R) -> R {
    struct Guard<'a>(&'a dyn Communicator, &'a str);
    impl Drop for Guard<'_> {
        fn drop(&mut self) {
            self.0.abort(&format!("panic in {}", self.1));
        }
    }
    let guard = Guard(comm, what);
    let result = work();
    std::mem::forget(guard);
    result
}

#[cfg(test)]
mod tests {
    use super::threads::ThreadComm;
    use super::*;

    #[test]
    fn values_are_shared_with_their_bits_and_other_messages_are_errors() {
        let value = (vec![-0.0f64, f64::INFINITY, 0.1], Err::<(), _>("ü\n\0".to_owned()), Some(u64::MAX));
        let made = |rank: usize| if rank == 1 { value.clone() } else { unreachable!("rank 1 makes it") };
        let told = ThreadComm::run(3, |comm| share(&comm, 1, || made(comm.rank())).unwrap());
        assert!(told.iter().all(|told| format!("{told:?}") == format!("{value:?}")), "{told:?}");
        let told = ThreadComm::run(2, |comm| match comm.rank() {
            0 => comm.broadcast(0, &mut vec![5, 1]).map(|()| None),
            _ => share::<Vec<f64>>(&comm, 0, Vec::new).map(Some),
        });
        let wrong = told[1].as_ref().unwrap_err().to_string();
        assert!(wrong.contains("a message of rank 0 cannot be understood"), "{wrong}");
        let told = ThreadComm::run(3, |comm| share_all(&comm, &vec![comm.rank(); comm.rank()]).unwrap());
        assert!(told.iter().all(|told| *told == [vec![], vec![1], vec![2, 2]]), "{told:?}");
    }

    /// A value whose length is not known in advance: it cannot be a message.
    #[derive(Debug, serde::Deserialize)]
    struct Endless;

    impl Serialize for Endless {
        fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            to.collect_seq(std::iter::from_fn(|| None::<u8>))
        }
    }

    #[test]
    fn what_cannot_be_sent_is_an_error_on_all_ranks() {
        let told = ThreadComm::run(3, |comm| share(&comm, 1, || Endless).map(|_| ()).unwrap_err().to_string());
        assert!(told.iter().all(|told| told.contains("rank 1 cannot send what it made")), "{told:?}");
    }
}
