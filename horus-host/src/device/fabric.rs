//! Messages from device to device.

use super::{Memory, Ticket};
use crate::StridedCopy;
use crate::comm::Communicator;
use horus_base::error::DeviceError;

/// Messages between the devices of ranks, on one host or several, that bypass the memory of hosts.
pub trait Fabric {
    /// An identifier of this device, unique among all ranks; not 0.
    fn address(&self) -> u64;

    /// Predicted seconds of [`Fabric::connect`].
    fn seconds_to_connect(&self) -> f64 {
        0.0
    }

    /// Connects the devices of all ranks of `comm`, if possible. Returns `true` if [`Fabric::exchange`] works from now
    /// on. `addresses` are the [`Fabric::address`]es of all ranks, 0 for a rank without a fabric. Collective: all ranks
    /// that have a fabric call it and get the same answer. If an address is 0 or occurs twice, the answer is `false`
    /// without communication.
    ///
    /// # Errors
    /// If peer-to-peer exchange is required (`HORUS_FABRIC=nccl`) and not possible, or another rank
    /// failed or left.
    fn connect(&self, comm: &dyn Communicator, addresses: &[u64]) -> Result<bool, DeviceError>;

    /// Aborts exchanges with other devices after a failure: pending ones end, here and, if all devices call this,
    /// elsewhere. Later ones are refused until the devices are connected again. May be called on any thread.
    fn disconnect(&self) {}

    /// Starts a non-blocking exchange with the devices of other ranks, as `MPI_Isend` and `MPI_Irecv` do for host
    /// memory. Returns a ticket for [`Fabric::wait_for_exchange`]. Ranks whose `work` names each other must call this
    /// in the same order (pairwise collective), after [`Fabric::connect`] returned `true` on the same communicator.
    ///
    /// `reads` and `writes` are blocks of this device, numbered together: [`Message::block`] and [`BlockCopy`] count
    /// `reads` first, then `writes`.
    ///
    /// An implementation guarantees:
    /// - Order with earlier calls: sent and copied bytes are those left by all earlier calls
    ///   (launches, writes, copies, exchanges that have arrived).
    /// - Order within: all of `work.before`, then `work.sends` and `work.receives` together in any
    ///   order, then all of `work.after`. The k-th message from one rank to another matches the
    ///   k-th that the other receives from it; both have the same number of bytes.
    /// - Lifetime: it keeps the memory of `reads` and `writes` until the exchange completes, even
    ///   if the blocks are dropped before, or the exchange never arrives.
    /// - Progress: it may return before anything is sent, and may wait until the other ranks have
    ///   started theirs, but not for any of their later calls.
    ///
    /// A caller guarantees:
    /// - Targets of receives and of copies lie in `writes`. Within `work.receives`, and within each
    ///   list of copies, targets overlap neither each other nor sent bytes; a copy of `after` may
    ///   read results of `before` and received bytes.
    /// - Until [`Fabric::wait_for_exchange`], targets are neither read nor written, and sent or copied bytes
    ///   are not written. Launches may read those, and read and write everything else in the
    ///   blocks. Blocks of `reads` may be dropped.
    ///
    /// # Errors
    /// [`DeviceError::Argument`] if a copy or a message reaches beyond its block, names no block,
    /// or the device is not connected; driver errors; [`DeviceError::Communication`] if another
    /// rank failed or left.
    fn exchange(
        &self,
        comm: &dyn Communicator,
        reads: &[&Memory],
        writes: &mut [&mut Memory],
        work: &Exchange,
    ) -> Result<Ticket, DeviceError>;

    /// Completes an exchange: later calls see its writes to `writes`, the blocks with which it was started, in the same
    /// order. The host need not block: an order between queues suffices. Exchanges are completed in any order, each
    /// once. An exchange that is never completed is harmless (see the lifetime of [`Fabric::exchange`]).
    ///
    /// # Errors
    /// As [`Fabric::exchange`]; [`DeviceError::Argument`] if `writes` differ from those blocks.
    fn wait_for_exchange(&self, ticket: Ticket, writes: &mut [&mut Memory]) -> Result<(), DeviceError>;
}

/// A message between the devices of two ranks: a range of bytes of a block of this device's memory,
/// and the peer's rank; see [`Fabric::exchange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other rank.
    pub rank: usize,
    /// Index of the block: `reads[block]`, or `writes[block - reads.len()]` from `reads.len()` on.
    pub block: usize,
    /// The first byte.
    pub at: usize,
    /// Length in bytes, at least one.
    pub bytes: usize,
}

/// Bytes to copy from one block to another; blocks are numbered as in [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// Index of the source block.
    pub from: usize,
    /// Index of the target block: one of `writes`.
    pub to: usize,
    /// Pieces to copy; they do not overlap in the target.
    pub pieces: Vec<StridedCopy>,
}

/// The work of [`Fabric::exchange`], in this order: copies, then sends and
/// receives (concurrently), then copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Copies that pack data to send: complete before the first message leaves.
    pub before: Vec<BlockCopy>,
    /// Messages to other ranks, at most one for each.
    pub sends: Vec<Message>,
    /// Messages from other ranks, at most one from each.
    pub receives: Vec<Message>,
    /// Copies that unpack received data, and move this rank's own: they start when the last message
    /// has arrived.
    pub after: Vec<BlockCopy>,
}

/// Returns `true` if all addresses are distinct and not 0: their devices can be connected.
pub fn distinct(addresses: &[u64]) -> bool {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.first() != Some(&0) && sorted.windows(2).all(|w| w[0] != w[1])
}
