//! What devices send each other: see [`Device::exchange`](super::Device::exchange).

use crate::host::Piece;

/// A message between the devices of two ranks: a range of bytes of a block of this device's memory, and the rank that it
/// is sent to or received from; see [`Device::exchange`](super::Device::exchange).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The other rank.
    pub rank: usize,
    /// Index of the block: `reads[block]`, or `writes[block - reads.len()]` if that is not negative.
    pub block: usize,
    /// The first byte.
    pub at: usize,
    /// How many bytes, at least one.
    pub bytes: usize,
}

/// Bytes to copy from one block to another; blocks are numbered as in [`Message`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockCopy {
    /// Index of the block that is read.
    pub from: usize,
    /// Index of the block that is written: one of `writes`.
    pub to: usize,
    /// What is copied; the pieces do not overlap in the target.
    pub pieces: Vec<Piece>,
}

/// The work of [`Device::exchange`](super::Device::exchange), in this order: copies, sends and receives (at once), copies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exchange {
    /// Copies that pack what is sent: complete before the first message leaves.
    pub before: Vec<BlockCopy>,
    /// Messages to other ranks, at most one for each.
    pub sends: Vec<Message>,
    /// Messages from other ranks, at most one from each.
    pub receives: Vec<Message>,
    /// Copies that unpack what was received, and move what this rank has itself: begun when the last message is there.
    pub after: Vec<BlockCopy>,
}

/// Whether no address is 0 and no two are equal: whether devices at them can be connected.
pub fn distinct(addresses: &[u64]) -> bool {
    let mut sorted = addresses.to_vec();
    sorted.sort_unstable();
    sorted.first() != Some(&0) && sorted.windows(2).all(|w| w[0] != w[1])
}
