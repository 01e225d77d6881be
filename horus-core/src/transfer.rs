//! Moving pixels between ranks: every scatter, gather, exchange and footprint is one redistribution.
//!
//! Who sends what to whom is told by a [`Movement`]; there is one message per pair of ranks.

use crate::buffer::zeroed_bytes;
use crate::comm::{Begun, CommError, Communicator, Parcel};
use crate::movement::{Load, Movement, Need, overlap};
use crate::shape::Window;

/// Pixels under way from other ranks.
pub struct Arriving<'a> {
    begun: Box<dyn Begun + 'a>,
    /// What this rank needs of its own.
    own: Option<Parcel>,
    movement: Movement,
    me: usize,
    /// What this rank sent.
    pub sent: Load,
}

/// Brings every rank the pixels it needs from the ranks that have them. `read(channel, need, bytes)` copies pixels out of
/// this rank's memory, `write(channel, need, bytes)` stores pixels from (virtual) row `need.at`. Returns what this rank
/// sent.
///
/// # Errors
/// When communication fails, or reading and writing do.
pub fn redistribute<E: From<CommError>>(
    comm: &dyn Communicator,
    movement: &Movement,
    read: impl FnMut(usize, Need, &mut [u8]) -> Result<(), E>,
    write: impl FnMut(usize, Need, &[u8]) -> Result<(), E>,
) -> Result<Load, E> {
    order(comm, movement.clone(), read)?.finish(write)
}

/// Begins [`redistribute`]; what is sent has been read when this returns.
///
/// # Errors
/// When communication fails, or reading does.
pub fn order<E: From<CommError>>(
    comm: &dyn Communicator,
    movement: Movement,
    mut read: impl FnMut(usize, Need, &mut [u8]) -> Result<(), E>,
) -> Result<Arriving<'_>, E> {
    let Movement { size, have, needs } = &movement;
    let me = comm.rank();
    let mut outgoing: Vec<Parcel> = Vec::new();
    let bytes = |pieces: &[Need], rows: Window| {
        let area: usize = overlap(pieces, rows).map(|p| p.area()).sum();
        area * size.channels * size.pixel
    };
    for (rank, wanted) in needs.iter().enumerate() {
        let mut message = zeroed_bytes(bytes(wanted, have[me]));
        let mut rest = &mut message[..];
        for piece in overlap(wanted, have[me]) {
            for c in 0..size.channels {
                let (pixels, tail) = rest.split_at_mut(piece.area() * size.pixel);
                read(c, piece, pixels)?;
                rest = tail;
            }
        }
        if !message.is_empty() {
            outgoing.push((rank, message));
        }
    }
    let mut incoming: Vec<Parcel> = Vec::new();
    for (rank, theirs) in have.iter().enumerate() {
        let expected = bytes(&needs[me], *theirs);
        if expected > 0 && rank != me {
            incoming.push((rank, zeroed_bytes(expected)));
        }
    }
    let own = outgoing.iter().position(|(rank, _)| *rank == me).map(|i| outgoing.remove(i));
    let sent = Load { messages: outgoing.len(), bytes: outgoing.iter().map(|(_, m)| m.len()).sum() };
    let begun = comm.begin(outgoing, incoming)?;
    Ok(Arriving { begun, own, movement, me, sent })
}

impl Arriving<'_> {
    /// Waits for the pixels and stores them with `write`; see [`redistribute`].
    ///
    /// # Errors
    /// When communication fails, or writing does.
    pub fn finish<E: From<CommError>>(
        self,
        mut write: impl FnMut(usize, Need, &[u8]) -> Result<(), E>,
    ) -> Result<Load, E> {
        let Movement { size, have, needs } = &self.movement;
        for (rank, message) in self.begun.finish()?.into_iter().chain(self.own) {
            let mut rest = &message[..];
            for piece in overlap(&needs[self.me], have[rank]) {
                for c in 0..size.channels {
                    let (pixels, tail) = rest.split_at(piece.area() * size.pixel);
                    write(c, piece, pixels)?;
                    rest = tail;
                }
            }
        }
        Ok(self.sent)
    }
}
