//! Moving rows between ranks: every scatter, gather, exchange and footprint is one redistribution of rows.
//!
//! Each rank *has* a range of rows and *needs* others. Both lists are computed on every rank from the plan alone, so a
//! message carries nothing but pixels, and there is one message per pair of ranks.

use crate::comm::{CommError, Communicator};
use crate::shape::Window;

/// Rows that a rank needs: image rows `rows`, to be stored from (possibly virtual) row `at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Where the first row goes.
    pub at: isize,
    /// Which rows of the image.
    pub rows: Window,
}

/// The rows of a window, those beyond the image taken periodically.
pub fn needs_of(window: Window, height: usize) -> Vec<Need> {
    let h = height.cast_signed();
    let mut out = Vec::new();
    let mut y = window.start;
    while y < window.end {
        let row = y.rem_euclid(h);
        let n = (h - row).min(window.end - y);
        out.push(Need { at: y, rows: Window::new(row, row + n) });
        y += n;
    }
    out
}

/// The rows of `window` around `strip`: above and below it, without the strip itself.
pub fn needs_around(strip: Window, window: Window, height: usize) -> Vec<Need> {
    if strip.is_empty() {
        return Vec::new();
    }
    let mut out = needs_of(Window::new(window.start, strip.start), height);
    out.extend(needs_of(Window::new(strip.end, window.end), height));
    out
}

/// The part of each need that lies in `have`.
fn overlap(needs: &[Need], have: Window) -> impl Iterator<Item = Need> {
    needs.iter().filter_map(move |n| {
        let rows = n.rows.intersect(have);
        (!rows.is_empty()).then_some(Need { at: n.at + (rows.start - n.rows.start), rows })
    })
}

/// The size of rows in messages.
#[derive(Clone, Copy, Debug)]
pub struct RowSize {
    /// Bytes of one row of one plane.
    pub bytes: usize,
    /// Number of planes.
    pub channels: usize,
}

/// What a redistribution moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Messages this rank sent.
    pub messages: usize,
    /// Bytes this rank sent.
    pub bytes: usize,
}

/// Brings every rank the rows it needs from the ranks that have them. `read(channel, rows, bytes)` copies rows out of
/// this rank's memory, `write(channel, at, bytes)` stores rows from (virtual) row `at`. A row that several ranks have
/// must be listed by one of them only.
///
/// # Errors
/// When communication fails, or reading and writing do.
pub fn redistribute<E: From<CommError>>(
    comm: &dyn Communicator,
    size: RowSize,
    have: &[Window],
    needs: &[Vec<Need>],
    mut read: impl FnMut(usize, Window, &mut [u8]) -> Result<(), E>,
    mut write: impl FnMut(usize, isize, &[u8]) -> Result<(), E>,
) -> Result<Moved, E> {
    let me = comm.rank();
    let mut outgoing: Vec<(usize, Vec<u8>)> = Vec::new();
    for (rank, wanted) in needs.iter().enumerate() {
        let mut message = Vec::new();
        for piece in overlap(wanted, have[me]) {
            for c in 0..size.channels {
                let at = message.len();
                message.resize(at + piece.rows.len() * size.bytes, 0);
                read(c, piece.rows, &mut message[at..])?;
            }
        }
        if !message.is_empty() {
            outgoing.push((rank, message));
        }
    }
    let mut incoming: Vec<(usize, Vec<u8>)> = Vec::new();
    for (rank, theirs) in have.iter().enumerate() {
        let rows: usize = overlap(&needs[me], *theirs).map(|p| p.rows.len()).sum();
        if rows > 0 && rank != me {
            incoming.push((rank, vec![0; rows * size.channels * size.bytes]));
        }
    }
    let sends: Vec<(usize, &[u8])> = outgoing.iter().filter(|(r, _)| *r != me).map(|(r, m)| (*r, &m[..])).collect();
    let mut receives: Vec<(usize, &mut [u8])> = incoming.iter_mut().map(|(r, m)| (*r, &mut m[..])).collect();
    comm.exchange(&sends, &mut receives)?;
    let moved = Moved { messages: sends.len(), bytes: sends.iter().map(|(_, m)| m.len()).sum() };
    let own = outgoing.into_iter().filter(|(r, _)| *r == me);
    for (rank, message) in incoming.into_iter().chain(own) {
        let mut rest = &message[..];
        for piece in overlap(&needs[me], have[rank]) {
            for c in 0..size.channels {
                let (rows, tail) = rest.split_at(piece.rows.len() * size.bytes);
                write(c, piece.at, rows)?;
                rest = tail;
            }
        }
    }
    Ok(moved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_split_at_periods() {
        assert_eq!(
            needs_of(Window::new(-3, 5), 4),
            [
                Need { at: -3, rows: Window::new(1, 4) },
                Need { at: 0, rows: Window::new(0, 4) },
                Need { at: 4, rows: Window::new(0, 1) }
            ]
        );
        assert!(needs_of(Window::new(2, 2), 4).is_empty());
    }

    #[test]
    fn nothing_is_needed_around_an_empty_strip() {
        assert!(needs_around(Window::new(3, 3), Window::new(3, 3), 9).is_empty());
        assert_eq!(needs_around(Window::new(3, 5), Window::new(2, 6), 9).len(), 2);
    }
}
