//! Moving pixels between ranks: every scatter, gather, exchange and footprint is one redistribution.
//!
//! Who sends what to whom is told by a [`Movement`]; there is one message per pair of ranks.

use crate::comm::{CommError, Communicator};
use crate::movement::{Load, Movement, Need, overlap};

/// Brings every rank the pixels it needs from the ranks that have them. `read(channel, need, bytes)` copies pixels out of
/// this rank's memory, `write(channel, need, bytes)` stores pixels from (virtual) row `need.at`. Returns what this rank
/// sent.
///
/// # Errors
/// When communication fails, or reading and writing do.
pub fn redistribute<E: From<CommError>>(
    comm: &dyn Communicator,
    movement: &Movement,
    mut read: impl FnMut(usize, Need, &mut [u8]) -> Result<(), E>,
    mut write: impl FnMut(usize, Need, &[u8]) -> Result<(), E>,
) -> Result<Load, E> {
    let Movement { size, have, needs } = movement;
    let me = comm.rank();
    let mut outgoing: Vec<(usize, Vec<u8>)> = Vec::new();
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
    let mut incoming: Vec<(usize, Vec<u8>)> = Vec::new();
    for (rank, theirs) in have.iter().enumerate() {
        let area: usize = overlap(&needs[me], *theirs).map(|p| p.area()).sum();
        if area > 0 && rank != me {
            incoming.push((rank, vec![0; area * size.channels * size.pixel]));
        }
    }
    let sends: Vec<(usize, &[u8])> = outgoing.iter().filter(|(r, _)| *r != me).map(|(r, m)| (*r, &m[..])).collect();
    let mut receives: Vec<(usize, &mut [u8])> = incoming.iter_mut().map(|(r, m)| (*r, &mut m[..])).collect();
    comm.exchange(&sends, &mut receives)?;
    let sent = Load { messages: sends.len(), bytes: sends.iter().map(|(_, m)| m.len()).sum() };
    let own = outgoing.into_iter().filter(|(r, _)| *r == me);
    for (rank, message) in incoming.into_iter().chain(own) {
        let mut rest = &message[..];
        for piece in overlap(&needs[me], have[rank]) {
            for c in 0..size.channels {
                let (pixels, tail) = rest.split_at(piece.area() * size.pixel);
                write(c, piece, pixels)?;
                rest = tail;
            }
        }
    }
    Ok(sent)
}
