//! Messages between ranks.

use std::ffi::c_int;

use horus_core::comm::{CommError, CommunicationOrder, Communicator, Parcel, PendingExchange};
use mpi::ffi;

use crate::codes::{check, int, succeeded, text};
use crate::world::{World, gather};

/// Maximum bytes of one MPI call, because counts are 32-bit integers.
const PIECE: usize = 1 << 30;
/// Bytes that rank 0 gathers at a time for a sum.
const GATHERED: usize = 1 << 26;
/// Tag of all messages, which are matched by sender and order.
const TAG: c_int = 1;

/// The ranks of an MPI job.
///
/// If the last session on this communicator is dropped in a panic, the job is aborted, because the
/// other ranks would wait for this one.
pub struct MpiComm {
    world: &'static World,
    piece: usize,
}

impl MpiComm {
    pub(crate) fn of(world: &'static World) -> MpiComm {
        MpiComm { world, piece: PIECE }
    }

    /// Splits messages into pieces of `bytes` (at least 1, at most the default of 1 GiB). All ranks
    /// must use the same value.
    #[must_use]
    pub fn with_pieces_of(mut self, bytes: usize) -> MpiComm {
        self.piece = bytes.clamp(1, PIECE);
        self
    }

    fn broadcast_pieces(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        let root = int(root)?;
        for piece in bytes.chunks_mut(self.piece) {
            let count = int(piece.len())?;
            // SAFETY: the buffer holds `count` bytes, and lives until the call returns.
            let code =
                unsafe { ffi::MPI_Bcast(piece.as_mut_ptr().cast(), count, ffi::RSMPI_UINT8_T, root, self.world.comm) };
            check("MPI_Bcast", code)?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for MpiComm {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "rank {} of {} under MPI", self.world.rank, self.world.size)
    }
}

impl Drop for MpiComm {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.world.abort("a panic");
        }
    }
}

/// Messages in flight. Their buffers must not move until all are complete.
struct MpiRequests<'a> {
    world: &'static World,
    requests: Vec<ffi::MPI_Request>,
    /// For each request, the rank that it receives from and the expected bytes; `None` for a send.
    receives: Vec<Option<(usize, usize)>>,
    buffers: std::marker::PhantomData<&'a mut [u8]>,
}

impl<'a> MpiRequests<'a> {
    fn new(world: &'static World) -> MpiRequests<'a> {
        MpiRequests { world, requests: Vec::new(), receives: Vec::new(), buffers: std::marker::PhantomData }
    }

    fn receive(&mut self, from: usize, piece: &'a mut [u8]) -> Result<(), CommError> {
        let (count, rank) = (int(piece.len())?, int(from)?);
        // SAFETY: a constant of the MPI library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the buffer holds `count` bytes and is borrowed until the requests are complete.
        let code = unsafe {
            let (to, byte) = (piece.as_mut_ptr().cast(), ffi::RSMPI_UINT8_T);
            ffi::MPI_Irecv(to, count, byte, rank, TAG, self.world.comm, &raw mut request)
        };
        check("MPI_Irecv", code)?;
        self.requests.push(request);
        self.receives.push(Some((from, piece.len())));
        Ok(())
    }

    fn send(&mut self, to: usize, piece: &'a [u8]) -> Result<(), CommError> {
        let (count, rank) = (int(piece.len())?, int(to)?);
        // SAFETY: a constant of the MPI library.
        let mut request = unsafe { ffi::RSMPI_REQUEST_NULL };
        // SAFETY: the buffer holds `count` bytes and is borrowed until the requests are complete.
        let code = unsafe {
            let (from, byte) = (piece.as_ptr().cast(), ffi::RSMPI_UINT8_T);
            ffi::MPI_Isend(from, count, byte, rank, TAG, self.world.comm, &raw mut request)
        };
        check("MPI_Isend", code)?;
        self.requests.push(request);
        self.receives.push(None);
        Ok(())
    }

    /// Returns `true` if some message may still be in flight.
    fn is_pending(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Waits until all messages have arrived.
    ///
    /// It polls for completed messages in a loop, as MPI_Waitall does internally, because
    /// MPI_Waitall of Open MPI 4.1 may spin for ever on a message longer than its buffer.
    fn wait(&mut self) -> Result<(), CommError> {
        let count = int(self.requests.len())?;
        let mut indices = vec![0; self.requests.len()];
        // SAFETY: plain integers (and, in some libraries, padding): all zeros is a value.
        let mut statuses: Vec<ffi::MPI_Status> = vec![unsafe { std::mem::zeroed() }; self.requests.len()];
        let mut left = self.requests.len();
        while left > 0 {
            let mut done = 0;
            let (requests, statuses_at) = (self.requests.as_mut_ptr(), statuses.as_mut_ptr());
            // SAFETY: the arrays have `count` elements, and the buffers of the requests are
            // borrowed for `'a`.
            let code = unsafe { ffi::MPI_Testsome(count, requests, &raw mut done, indices.as_mut_ptr(), statuses_at) };
            // A negative number means that no request is active, which cannot happen while requests
            // are left.
            let (done, inactive) = (usize::try_from(done).unwrap_or(0), done < 0);
            let arrived = indices.iter().zip(&statuses).take(done);
            let arrived = arrived.map(|(i, status)| (&self.receives[usize::try_from(*i).unwrap_or(0)], status));
            if !succeeded(code) {
                let why = match arrived.into_iter().find(|(_, s)| !is_not_own_failure(s.MPI_ERROR)) {
                    Some((Some((from, bytes)), s)) => {
                        format!("{bytes} bytes expected from rank {from}: {}", text(s.MPI_ERROR))
                    }
                    Some((None, s)) => format!("a message sent: {}", text(s.MPI_ERROR)),
                    None => text(code),
                };
                return Err(CommError(format!("MPI_Testsome: {why}")));
            }
            if inactive {
                return Err(CommError(format!("MPI_Testsome: {left} messages were lost")));
            }
            for (expected, status) in arrived {
                self.check_length(*expected, status)?;
            }
            left -= done;
            if done == 0 {
                if World::is_aborting() {
                    // The thread that ends the job needs the lock.
                    return Err(CommError("another thread ended the job".into()));
                }
                std::thread::yield_now();
            }
        }
        self.requests.clear();
        Ok(())
    }

    /// Compares the received length with the expected one, if it was a receive.
    fn check_length(&self, expected: Option<(usize, usize)>, status: &ffi::MPI_Status) -> Result<(), CommError> {
        let Some((from, bytes)) = expected else { return Ok(()) };
        let mut got = 0;
        // SAFETY: the status is of a receive that is complete.
        let code = unsafe { ffi::MPI_Get_count(status, ffi::RSMPI_UINT8_T, &raw mut got) };
        check("MPI_Get_count", code)?;
        if usize::try_from(got).ok() == Some(bytes) {
            return Ok(());
        }
        Err(CommError(format!(
            "rank {from} sent {got} bytes where rank {} expected {bytes}: the ranks run different programs",
            self.world.rank
        )))
    }
}

/// An exchange in flight, with its buffers.
struct MpiExchange {
    /// The requests use the buffers below.
    requests: MpiRequests<'static>,
    sends: Vec<Parcel>,
    receives: Vec<Parcel>,
}

impl MpiExchange {
    fn begin(
        world: &'static World,
        piece: usize,
        sends: Vec<Parcel>,
        receives: Vec<Parcel>,
    ) -> Result<MpiExchange, CommError> {
        let _turn = world.lock_mpi()?;
        let mut exchange = MpiExchange { requests: MpiRequests::new(world), sends, receives };
        let MpiExchange { requests, sends, receives } = &mut exchange;
        for (from, buffer) in receives {
            let buffer = buffer.bytes_mut();
            // SAFETY: nobody accesses the buffer, and it does not move, until the requests are
            // complete: `finish` waits for them, and otherwise `drop` leaks the buffers.
            let buffer = unsafe { std::slice::from_raw_parts_mut(buffer.as_mut_ptr(), buffer.len()) };
            buffer.chunks_mut(piece).try_for_each(|p| requests.receive(*from, p))?;
        }
        for (to, buffer) in sends {
            let bytes = buffer.bytes();
            // SAFETY: as above; nobody writes to it.
            let bytes = unsafe { std::slice::from_raw_parts(bytes.as_ptr(), bytes.len()) };
            bytes.chunks(piece).try_for_each(|p| requests.send(*to, p))?;
        }
        Ok(exchange)
    }
}

impl PendingExchange for MpiExchange {
    fn finish(mut self: Box<Self>) -> Result<Vec<Parcel>, CommError> {
        let _turn = self.requests.world.lock_mpi()?;
        self.requests.wait()?;
        Ok(std::mem::take(&mut self.receives))
    }
}

impl Drop for MpiExchange {
    /// Leaks the buffers, because MPI may still access them. An exchange is unfinished only after a
    /// failure, which ends the job.
    fn drop(&mut self) {
        if self.requests.is_pending() {
            std::mem::forget((std::mem::take(&mut self.sends), std::mem::take(&mut self.receives)));
        }
    }
}

/// Returns `true` if the code of one of many requests is not its own failure: done, or pending when
/// another request failed.
fn is_not_own_failure(code: c_int) -> bool {
    succeeded(code) || code == ffi::MPI_ERR_PENDING as c_int
}

impl Communicator for MpiComm {
    fn rank(&self) -> usize {
        self.world.rank
    }

    fn size(&self) -> usize {
        self.world.size
    }

    fn local_rank(&self) -> usize {
        self.world.place.local_rank
    }

    fn local_size(&self) -> usize {
        self.world.place.local_size
    }

    fn node(&self) -> usize {
        self.world.place.node
    }

    fn sharers(&self) -> usize {
        self.world.place.sharers
    }

    fn communication_order(&self) -> Option<&CommunicationOrder> {
        self.world.allows_any_thread().then_some(&self.world.session_order)
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        let turn = self.world.lock_mpi()?;
        let mut requests = MpiRequests::new(self.world);
        let received = receives.iter_mut().try_for_each(|(from, buffer)| {
            buffer.chunks_mut(self.piece).try_for_each(|piece| requests.receive(*from, piece))
        });
        let sent = received.and_then(|()| {
            sends.iter().try_for_each(|(to, bytes)| bytes.chunks(self.piece).try_for_each(|p| requests.send(*to, p)))
        });
        match sent.and_then(|()| requests.wait()) {
            // The buffers of messages in flight must stay valid, so the job ends here.
            Err(e) if requests.is_pending() => {
                drop(turn); // aborting takes the lock itself
                self.world.abort(&format!("exchange: {e}"))
            }
            other => other,
        }
    }

    fn begin(&self, sends: Vec<Parcel>, receives: Vec<Parcel>) -> Result<Box<dyn PendingExchange + '_>, CommError> {
        Ok(Box::new(MpiExchange::begin(self.world, self.piece, sends, receives)?))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let _turn = self.world.lock_mpi()?;
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.broadcast_pieces(root, &mut length)?;
        let length = u64::from_le_bytes(length);
        bytes.resize(usize::try_from(length).map_err(|e| CommError(e.to_string()))?, 0);
        self.broadcast_pieces(root, bytes)
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        let _turn = self.world.lock_mpi()?;
        let size = self.world.size;
        let at_once = (GATHERED / size_of::<f64>() / size).max(1);
        let mut all = Vec::new();
        for part in values.chunks_mut(at_once) {
            let count = int(part.len())?;
            if self.world.rank == 0 {
                all.resize(part.len() * size, 0.0f64);
            }
            // SAFETY: on rank 0 the target holds the values of all ranks; on other ranks it is not
            // accessed.
            let code = unsafe {
                let (from, to, double) = (part.as_ptr().cast(), all.as_mut_ptr().cast(), ffi::RSMPI_DOUBLE);
                ffi::MPI_Gather(from, count, double, to, count, double, 0, self.world.comm)
            };
            check("MPI_Gather", code)?;
            for theirs in all.chunks_exact(part.len()).skip(1) {
                part.iter_mut().zip(theirs).for_each(|(sum, v)| *sum += v);
            }
            // SAFETY: `part` holds `count` doubles on every rank.
            let code =
                unsafe { ffi::MPI_Bcast(part.as_mut_ptr().cast(), count, ffi::RSMPI_DOUBLE, 0, self.world.comm) };
            check("MPI_Bcast", code)?;
        }
        Ok(())
    }

    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError> {
        let _turn = self.world.lock_mpi()?;
        // SAFETY: the communicator is valid until the process ends, and has `size` ranks.
        unsafe { gather(self.world.comm, self.world.size, value) }
    }

    fn abort(&self, message: &str) {
        self.world.abort(message);
    }
}
