//! What a request has printed and its client has not yet received.
//!
//! A request never waits for its client to read, up to a limit. Beyond it, a client that reads nothing for a while is
//! taken as gone, so that it cannot block the server.

use std::io;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes that wait for a client at most.
const MOST: usize = 64 << 20;
/// Bytes of a frame at most.
const FRAME: usize = 1 << 16;
/// Time that a request waits for a client that reads nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// A standard stream, by the kind of its frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output = 1,
    Error = 2,
}

/// The kind of the last frame, with the exit status.
pub(crate) const END: u8 = 3;

/// The first bytes of a frame.
pub(crate) fn header(kind: u8, length: usize) -> [u8; 5] {
    let [a, b, c, d] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [kind, a, b, c, d]
}

/// Frames for a client, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    frames: Mutex<Frames>,
    changed: Condvar,
}

#[derive(Default)]
struct Frames {
    waiting: Vec<u8>,
    /// The last frame is among them.
    ended: bool,
    /// Nobody reads: the client is gone or has everything.
    closed: bool,
}

impl Outbox {
    fn lock(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds bytes of a stream.
    ///
    /// # Errors
    /// A closed pipe if the client is gone.
    pub(crate) fn push(&self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        bytes.chunks(FRAME).try_for_each(|chunk| self.add(stream as u8, chunk))
    }

    /// Adds the last frame.
    #[cfg_attr(not(unix), expect(dead_code, reason = "there are no servers"))]
    pub(crate) fn end(&self, status: u8) {
        // The status of a client that is gone is lost.
        drop(self.add(END, &[status]));
        self.lock().ended = true;
        self.changed.notify_all();
    }

    fn add(&self, kind: u8, bytes: &[u8]) -> io::Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut frames = self.lock();
        while frames.waiting.len() >= MOST && !frames.closed {
            let left = until.saturating_duration_since(Instant::now());
            frames.closed = left.is_zero();
            frames = self.changed.wait_timeout(frames, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        if frames.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        frames.waiting.extend_from_slice(&header(kind, bytes.len()));
        frames.waiting.extend_from_slice(bytes);
        self.changed.notify_all();
        Ok(())
    }
}

#[cfg(unix)]
impl Outbox {
    /// Waits for frames and removes them; `None` after the last, or if the client is gone.
    pub(crate) fn take(&self) -> Option<Vec<u8>> {
        let mut frames = self.lock();
        while frames.waiting.is_empty() && !frames.ended && !frames.closed {
            frames = self.changed.wait(frames).unwrap_or_else(PoisonError::into_inner);
        }
        let taken = std::mem::take(&mut frames.waiting);
        self.changed.notify_all();
        (!taken.is_empty() && !frames.closed).then_some(taken)
    }

    /// Drops what waits and all that follows.
    pub(crate) fn close(&self) {
        let mut frames = self.lock();
        (frames.closed, frames.waiting) = (true, Vec::new());
        self.changed.notify_all();
    }

    /// Returns `true` if the client is gone or has everything.
    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Waits until the client has everything, or is gone, or this time is over.
    pub(crate) fn wait_until_closed(&self, most: Duration) {
        let frames = self.lock();
        drop(self.changed.wait_timeout_while(frames, most, |frames| !frames.closed));
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn frames_have_a_kind_a_length_and_bytes() {
        let outbox = Outbox::default();
        outbox.push(Stream::Error, b"no").unwrap();
        outbox.push(Stream::Output, &vec![7; FRAME + 1]).unwrap();
        outbox.end(1);
        let frames = outbox.take().unwrap();
        assert_eq!(frames[..7], *b"\x02\0\0\0\x02no");
        assert_eq!(frames[7..12], [1, 0, 1, 0, 0]);
        assert_eq!(frames[12 + FRAME..], [1, 0, 0, 0, 1, 7, 3, 0, 0, 0, 1, 1]);
        assert_eq!(outbox.take(), None);
    }

    #[test]
    fn nothing_is_kept_for_a_client_that_is_gone() {
        let outbox = Outbox::default();
        outbox.push(Stream::Output, b"lost").unwrap();
        outbox.close();
        assert_eq!(outbox.push(Stream::Output, b"lost").unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        outbox.end(0);
        assert!(outbox.take().is_none() && outbox.is_closed());
    }
}
