//! Messages between ranks by mpi4py, between memory of Horus.

use horus_core::comm::{CommError, Parcel, PendingExchange};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::ending::attached;
use crate::ranks::{Mpi4pyRanks, convert_call_result};

/// Most bytes of one call: counts are 32-bit integers before MPI 4.
pub(crate) const PIECE: usize = 1 << 30;
/// Tag of all messages, which are matched by sender and order.
const TAG: i32 = 1;

/// Flags of `PyMemoryView_FromMemory`, part of the stable ABI.
const READ: std::ffi::c_int = 0x100;
const WRITE: std::ffi::c_int = 0x200;

/// A memoryview of bytes.
///
/// # Safety
/// The bytes must live, and not be accessed otherwise, until the view is released; see [`released`].
unsafe fn view<'py>(
    py: Python<'py>,
    bytes: *mut u8,
    length: usize,
    flags: std::ffi::c_int,
) -> PyResult<Bound<'py, PyAny>> {
    let length = ffi::Py_ssize_t::try_from(length)?;
    // SAFETY: by the caller's promise; a new reference or null with an exception set.
    unsafe { Bound::from_owned_ptr_or_err(py, ffi::PyMemoryView_FromMemory(bytes.cast(), length, flags)) }
}

/// Invalidates a view, so that nobody can use its memory later.
fn released(view: &Bound<'_, PyAny>) -> PyResult<()> {
    view.call_method0("release").map(drop)
}

/// Calls `work` with a view of bytes that it may read.
pub(crate) fn with_readable<R>(
    py: Python<'_>,
    bytes: &[u8],
    work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
) -> PyResult<R> {
    // SAFETY: nobody writes to a view that is only readable; it is released before this returns.
    let view = unsafe { view(py, bytes.as_ptr().cast_mut(), bytes.len(), READ)? };
    let done = work(&view);
    released(&view)?;
    done
}

/// Calls `work` with a view of bytes that it may write.
pub(crate) fn with_writable<R>(
    py: Python<'_>,
    bytes: &mut [u8],
    work: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<R>,
) -> PyResult<R> {
    // SAFETY: the bytes are borrowed until this returns, and the view is released before.
    let view = unsafe { view(py, bytes.as_mut_ptr(), bytes.len(), WRITE)? };
    let done = work(&view);
    released(&view)?;
    done
}

/// Messages in flight.
struct MessageRequests {
    requests: Py<PyList>,
    views: Vec<Py<PyAny>>,
    /// For each request, the rank it receives from and the expected bytes; `None` for a send.
    receives: Vec<Option<(usize, usize)>>,
}

impl MessageRequests {
    /// Starts to receive and to send.
    ///
    /// # Safety
    /// The buffers must live and not move, and nobody may access them, until [`MessageRequests::wait`] has
    /// succeeded or the process ends.
    unsafe fn begin(
        ranks: &Mpi4pyRanks,
        sends: &[(usize, *const u8, usize)],
        receives: &[(usize, *mut u8, usize)],
    ) -> Result<MessageRequests, CommError> {
        let begun = attached(|py| -> PyResult<MessageRequests> {
            let requests = PyList::empty(py);
            let mut all =
                MessageRequests { requests: requests.clone().unbind(), views: Vec::new(), receives: Vec::new() };
            let comm = ranks.comm.bind(py);
            let pieces =
                |length: usize| (0..length).step_by(PIECE).map(move |start| (start, PIECE.min(length - start)));
            for (from, bytes, length) in receives {
                for (start, piece) in pieces(*length) {
                    // SAFETY: within the buffer, by the caller's promise.
                    let view = unsafe { view(py, bytes.add(start), piece, WRITE)? };
                    requests.append(comm.call_method1("Irecv", (&view, *from, TAG))?)?;
                    all.views.push(view.unbind());
                    all.receives.push(Some((*from, piece)));
                }
            }
            for (to, bytes, length) in sends {
                for (start, piece) in pieces(*length) {
                    // SAFETY: as above; the view is only readable.
                    let view = unsafe { view(py, bytes.add(start).cast_mut(), piece, READ)? };
                    requests.append(comm.call_method1("Isend", (&view, *to, TAG))?)?;
                    all.views.push(view.unbind());
                    all.receives.push(None);
                }
            }
            Ok(all)
        });
        convert_call_result("starting messages", begun)
    }

    /// Waits until all messages are sent and received, while other Python threads run.
    ///
    /// It polls, as MPI does internally: `Waitall` of Open MPI 4.1 may spin for ever on a message
    /// longer than its buffer.
    fn wait(&self, ranks: &Mpi4pyRanks) -> Result<(), CommError> {
        let statuses = convert_call_result(
            "waiting for messages",
            attached(|py| -> PyResult<Py<PyList>> {
                let status = ranks.mpi(py)?.getattr("Status")?;
                let all: PyResult<Vec<_>> = self.receives.iter().map(|_| status.call0()).collect();
                Ok(PyList::new(py, all?)?.unbind())
            }),
        )?;
        loop {
            let tested = attached(|py| -> PyResult<bool> {
                let request = ranks.mpi(py)?.getattr("Request")?;
                request.call_method1("Testall", (&self.requests, &statuses))?.is_truthy()
            });
            if convert_call_result("waiting for messages", tested)? {
                break;
            }
            std::thread::yield_now();
        }
        let checked = attached(|py| -> PyResult<Option<CommError>> {
            self.views.iter().try_for_each(|view| released(view.bind(py)))?;
            let byte = ranks.mpi(py)?.getattr("BYTE")?;
            for (status, receive) in statuses.bind(py).iter().zip(&self.receives) {
                let Some((from, expected)) = receive else { continue };
                let got: usize = status.call_method1("Get_count", (&byte,))?.extract()?;
                if got != *expected {
                    let me = ranks.rank;
                    let why = format!(
                        "rank {from} sent {got} bytes where rank {me} expected {expected}: the ranks run different programs"
                    );
                    return Ok(Some(CommError(why)));
                }
            }
            Ok(None)
        });
        convert_call_result("receiving messages", checked)?.map_or(Ok(()), Err)
    }
}

/// An exchange that blocks. A failure ends the job: MPI may still access the buffers.
pub(crate) fn exchange(
    ranks: &Mpi4pyRanks,
    sends: &[(usize, &[u8])],
    receives: &mut [(usize, &mut [u8])],
) -> Result<(), CommError> {
    let sent: Vec<_> = sends.iter().map(|(to, bytes)| (*to, bytes.as_ptr(), bytes.len())).collect();
    let received: Vec<_> = receives.iter_mut().map(|(from, bytes)| (*from, bytes.as_mut_ptr(), bytes.len())).collect();
    // SAFETY: the buffers are borrowed until this returns, which it does when all messages have
    // arrived; otherwise the process ends.
    let done = unsafe { MessageRequests::begin(ranks, &sent, &received) }.and_then(|requests| requests.wait(ranks));
    done.map_err(|error| ranks.end(&format!("exchange: {error}")))
}

/// An exchange under way, with its buffers.
pub(crate) struct Mpi4pyExchange<'a> {
    ranks: &'a Mpi4pyRanks,
    requests: MessageRequests,
    sends: Vec<Parcel>,
    receives: Vec<Parcel>,
    complete: bool,
}

impl<'a> Mpi4pyExchange<'a> {
    pub(crate) fn begin(
        ranks: &'a Mpi4pyRanks,
        sends: Vec<Parcel>,
        mut receives: Vec<Parcel>,
    ) -> Result<Mpi4pyExchange<'a>, CommError> {
        let sent: Vec<_> = sends.iter().map(|(to, b)| (*to, b.bytes().as_ptr(), b.len())).collect();
        let into = |(from, buffer): &mut Parcel| {
            let bytes = buffer.bytes_mut();
            (*from, bytes.as_mut_ptr(), bytes.len())
        };
        let received: Vec<_> = receives.iter_mut().map(into).collect();
        // SAFETY: nobody accesses the buffers, and their memory does not move, until the messages
        // have arrived: `finish` waits for them, and otherwise `drop` leaks the buffers. If not all
        // could be started, the process ends.
        let begun = unsafe { MessageRequests::begin(ranks, &sent, &received) };
        let requests = begun.map_err(|error| ranks.end(&format!("exchange: {error}")))?;
        Ok(Mpi4pyExchange { ranks, requests, sends, receives, complete: false })
    }
}

impl PendingExchange for Mpi4pyExchange<'_> {
    fn finish(mut self: Box<Self>) -> Result<Vec<Parcel>, CommError> {
        self.requests.wait(self.ranks)?;
        self.complete = true;
        Ok(std::mem::take(&mut self.receives))
    }
}

impl Drop for Mpi4pyExchange<'_> {
    /// MPI may still access the buffers of messages under way, so they are leaked. An exchange is
    /// left unfinished only after a failure, which ends the job.
    fn drop(&mut self) {
        if !self.complete {
            std::mem::forget((std::mem::take(&mut self.sends), std::mem::take(&mut self.receives)));
        }
    }
}
