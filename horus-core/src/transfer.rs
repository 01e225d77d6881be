//! Moving pixels between ranks: every scatter, gather, exchange and footprint is one redistribution.
//!
//! Who sends what to whom is told by a [`Movement`]; there is one message per pair of ranks.

use crate::comm::{Begun, CommError, Communicator, Parcel};
use crate::movement::{Load, Movement, Need, overlap};

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
    for (rank, wanted) in needs.iter().enumerate() {
        let mut message = Vec::new();
        for piece in overlap(wanted, have[me]) {
            for c in 0..size.channels {
                let at = message.len();
                message.resize(at + piece.area() * size.pixel, 0);
                read(c, piece, &mut message[at..])?;
            }
        }
        if !message.is_empty() {
            outgoing.push((rank, message));
        }
    }
    let mut incoming: Vec<Parcel> = Vec::new();
    for (rank, theirs) in have.iter().enumerate() {
        let area: usize = overlap(&needs[me], *theirs).map(|p| p.area()).sum();
        if area > 0 && rank != me {
            incoming.push((rank, vec![0; area * size.channels * size.pixel]));
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
