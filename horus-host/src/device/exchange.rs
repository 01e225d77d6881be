//! Exchanges between devices; see [`Device::exchange`](super::Device::exchange).

use crate::host::Piece;

/// A message between the devices of two ranks: a range of bytes of a block of this device's memory,
/// and the peer's rank; see [`Device::exchange`](super::Device::exchange).
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
    pub pieces: Vec<Piece>,
}

/// The work of [`Device::exchange`](super::Device::exchange), in this order: copies, then sends and
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

/// Returns `true` if all addresses are distinct and nonzero, so that their devices can be
/// connected.
pub fn distinct(addresses: &[u64]) -> bool {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.first() != Some(&0) && sorted.windows(2).all(|w| w[0] != w[1])
}
