//! The connection between the GPUs of several ranks: NCCL, if every rank has its own GPU and a trial exchange succeeds.
//!
//! Ranks decide together: if one rank cannot continue, none does. Each rank joins, sends and receives on its own
//! thread, as NCCL requires of ranks in one process. A rank that fails does not block the others.
//! [`FabricChoice`](horus_core::settings::FabricChoice) describes the values of `HORUS_FABRIC`. Design:
//! `docs/design/cuda.md`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use cudarc::driver::sys;
use horus_core::comm::{CommError, Communicator, share};
use horus_core::device::distinct;
use horus_core::error::DeviceError;

use crate::driver::{CudaStream, check};
use crate::memory::Core;
use crate::nccl::{Nccl, NcclComm, NcclId, RankMessage};

/// Time after which ranks that have not joined are given up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Interval at which a waiting rank checks for failures of others.
const ASK: Duration = Duration::from_millis(5);
/// With more ranks than this, each exchanges a trial message with its neighbours only.
const ALL_PAIRS: usize = 16;
/// Bytes of a trial message, deliberately unaligned.
const TRIAL: usize = 4099;

/// Operations by which ranks join each other.
trait JoinProtocol {
    type Group;
    /// The version of the library, which must be the same on all ranks.
    fn version(&self) -> Result<u64, String>;
    /// An identifier of the group, made on rank 0.
    fn name(&self) -> Result<Vec<u8>, String>;
    /// Joins the group and makes a trial exchange.
    fn join(&self, name: &[u8]) -> Result<Self::Group, String>;
}

/// Joins all ranks, or none with the reason. Collective.
fn join<W: JoinProtocol>(way: &W, comm: &dyn Communicator) -> Result<Result<W::Group, String>, CommError> {
    let told = |e: String| {
        horus_core::warn!("rank {}: {e}", comm.rank());
        e
    };
    let version = way.version().map_err(told);
    let versions = comm.gather(*version.as_ref().unwrap_or(&0))?;
    if let Some(rank) = versions.iter().position(|v| *v == 0) {
        return Ok(Err(version.err().unwrap_or(format!("rank {rank} has no NCCL"))));
    }
    if versions.iter().any(|v| *v != versions[0]) {
        return Ok(Err(format!("the ranks have different versions of NCCL: {versions:?}")));
    }
    let Some(name) = share(comm, 0, || way.name().map_err(told).ok())? else {
        return Ok(Err("rank 0 could not start".into()));
    };
    let group = way.join(&name).map_err(told);
    let joined = comm.gather(u64::from(group.is_ok()))?;
    Ok(match joined.iter().position(|ok| *ok == 0) {
        None => group,
        Some(rank) => Err(group.err().unwrap_or(format!("rank {rank} could not join"))),
    })
}

/// The ranks of an NCCL communicator. It is left by aborting, which waits for no other rank, and only when nothing is
/// under way or after a failure.
pub(crate) struct Clique {
    nccl: &'static Nccl,
    handle: NcclComm,
    /// `true` once the communicator was aborted.
    gone: AtomicBool,
    turn: Mutex<()>,
    /// Keeps the context in which the communicator was made.
    _core: Arc<Core>,
}

// SAFETY: a communicator may be used from any thread, one at a time (`turn`).
unsafe impl Send for Clique {}
// SAFETY: as above.
unsafe impl Sync for Clique {}

impl std::fmt::Debug for Clique {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Clique").field("gone", &self.gone).finish_non_exhaustive()
    }
}

/// A communicator, with this rank's address and those of all ranks.
type JoinedClique = (u64, Vec<u64>, Arc<Clique>);

/// Communicators for later sessions of the process: joining takes as long as many exchanges, and leaving would need
/// another collective call.
static GROUPS: Mutex<Vec<JoinedClique>> = Mutex::new(Vec::new());

/// Connects the GPUs of all ranks if possible; otherwise the inner `Err` has the reason. Collective: all ranks get the
/// same outcome.
pub(crate) fn connect(
    core: &Arc<Core>,
    comm: &dyn Communicator,
    own: u64,
    addresses: &[u64],
) -> Result<Result<Arc<Clique>, String>, CommError> {
    if addresses.contains(&0) {
        return Ok(Err("not every rank has a GPU and is allowed to use NCCL".into()));
    }
    if !distinct(addresses) {
        return Ok(Err("several ranks share a GPU".into()));
    }
    let known = || {
        let groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        let usable = |g: &Clique| !g.gone.load(Ordering::Relaxed);
        groups.iter().find(|(o, a, g)| *o == own && a == addresses && usable(g)).map(|(_, _, g)| Arc::clone(g))
    };
    let known = known();
    if comm.gather(u64::from(known.is_some()))?.iter().all(|k| *k == 1)
        && let Some(group) = known
    {
        return Ok(Ok(group));
    }
    let start = Instant::now();
    let way = NcclProtocol { core, rank: comm.rank(), size: comm.size() };
    let group = join(&way, comm)?;
    if let Ok(group) = &group {
        log::debug!("joined {} GPUs with NCCL in {:.0} ms", comm.size(), start.elapsed().as_secs_f64() * 1e3);
        let mut groups = GROUPS.lock().unwrap_or_else(PoisonError::into_inner);
        groups.retain(|(_, _, group)| !group.gone.load(Ordering::Relaxed));
        groups.push((own, addresses.to_vec(), Arc::clone(group)));
    }
    Ok(group)
}

struct NcclProtocol<'a> {
    core: &'a Arc<Core>,
    rank: usize,
    size: usize,
}

impl JoinProtocol for NcclProtocol<'_> {
    type Group = Arc<Clique>;

    fn version(&self) -> Result<u64, String> {
        Nccl::get().map(Nccl::version)
    }

    fn name(&self) -> Result<Vec<u8>, String> {
        Nccl::get()?.id().map(|id| id.0.to_vec()).map_err(|e| e.to_string())
    }

    fn join(&self, name: &[u8]) -> Result<Arc<Clique>, String> {
        let nccl = Nccl::get()?;
        let id = NcclId(name.try_into().map_err(|_| format!("a name of {} bytes", name.len()))?);
        let (rank, size, core) = (self.rank, self.size, Arc::clone(self.core));
        // A rank whose partners do not come would wait for ever, so it waits in a thread that can be abandoned.
        let (sender, receiver) = mpsc::channel();
        let join = move || {
            let joined = core.context.bind().and_then(|()| nccl.join(id, rank, size)).map(|h| h as usize);
            let _ = sender.send((joined, core)); // fails if the receiver stopped waiting
        };
        std::thread::Builder::new().spawn(join).map_err(|e| format!("cannot start a thread to join: {e}"))?;
        let (joined, core) =
            receiver.recv_timeout(PATIENCE).map_err(|_| format!("NCCL did not join the ranks in {PATIENCE:?}"))?;
        let handle = joined.map_err(|e| e.to_string())? as NcclComm;
        let group = Clique { nccl, handle, gone: AtomicBool::new(false), turn: Mutex::default(), _core: core };
        self.attempt(&group).map_err(|e| format!("a trial exchange failed: {e}"))?;
        Ok(Arc::new(group))
    }
}

impl NcclProtocol<'_> {
    /// Exchanges a few bytes with each other rank and compares them.
    fn attempt(&self, group: &Clique) -> Result<(), DeviceError> {
        let (me, size) = (self.rank, self.size);
        let near = |r: &usize| size <= ALL_PAIRS || *r == (me + 1) % size || (*r + 1) % size == me;
        let others: Vec<usize> = (0..size).filter(|r| *r != me).filter(near).collect();
        let pattern = |from: usize, to: usize| (0..TRIAL).map(move |i| (i * 31 + from * 7 + to * 13 + (i >> 8)) as u8);
        let outgoing: Vec<u8> = others.iter().flat_map(|r| pattern(me, *r)).collect();
        let expected: Vec<u8> = others.iter().flat_map(|r| pattern(*r, me)).collect();
        let (out, into) = (self.core.allocate(outgoing.len())?, self.core.allocate(expected.len())?);
        let part = |base: u64| {
            let at = move |i: usize| base + (i * TRIAL) as u64;
            others.iter().enumerate().map(move |(i, r)| RankMessage { rank: *r, address: at(i), bytes: TRIAL })
        };
        let (sends, receives): (Vec<RankMessage>, Vec<RankMessage>) =
            (part(out.address()).collect(), part(into.address()).collect());
        let stream = &self.core.stream;
        // SAFETY: the block holds as many bytes; the source lives until the copy, which is waited
        // for, is done.
        let code =
            unsafe { sys::cuMemcpyHtoDAsync_v2(out.address(), outgoing.as_ptr().cast(), outgoing.len(), stream.0) };
        check(code, || "preparing a trial exchange".into())?;
        stream.synchronize()?;
        group.exchange(self.core, stream, &sends, &receives)?;
        group.wait(&[stream], Some(PATIENCE))?;
        let mut got = vec![0u8; expected.len()];
        // SAFETY: the target has as many bytes, and is read after the copy is done.
        let code = unsafe { sys::cuMemcpyDtoHAsync_v2(got.as_mut_ptr().cast(), into.address(), got.len(), stream.0) };
        check(code, || "looking at a trial exchange".into())?;
        stream.synchronize()?;
        if got != expected {
            return Err(DeviceError::Driver("received data differs from what was sent".into()));
        }
        Ok(())
    }
}

impl Clique {
    /// Enqueues an exchange in a stream of a device.
    pub(crate) fn exchange(
        &self,
        core: &Core,
        stream: &CudaStream,
        sends: &[RankMessage],
        receives: &[RankMessage],
    ) -> Result<(), DeviceError> {
        core.context.bind()?;
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.gone.load(Ordering::Relaxed) {
            return Err(DeviceError::Driver("NCCL: the communicator was aborted after an earlier error".into()));
        }
        // SAFETY: the communicator was not given up; callers give memory that is freed in the order
        // of the stream.
        let done = unsafe { self.nccl.exchange(self.handle, stream, sends, receives) };
        if done.is_err() {
            self.give_up();
        }
        done
    }

    /// Waits for streams that may contain exchanges; fails if another rank failed, or after
    /// `patience`.
    pub(crate) fn wait(&self, streams: &[&CudaStream], patience: Option<Duration>) -> Result<(), DeviceError> {
        let start = Instant::now();
        let mut asked = start;
        loop {
            if streams.iter().try_fold(true, |idle, s| Ok::<bool, DeviceError>(idle && s.idle()?))? {
                return Ok(());
            }
            let now = Instant::now();
            if now - asked > ASK {
                asked = now;
                let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
                let failure = match self.gone.load(Ordering::Relaxed) {
                    true => {
                        Err(DeviceError::Driver("NCCL: the communicator was aborted after an earlier error".into()))
                    }
                    // SAFETY: the communicator was not given up.
                    false => unsafe { self.nccl.failure(self.handle) },
                };
                let late = patience.is_some_and(|p| now - start > p);
                let why = || DeviceError::Driver(format!("no data arrived within {:?}", now - start));
                if let Err(e) = if late { failure.and(Err(why())) } else { failure } {
                    self.give_up();
                    return Err(e);
                }
            }
            std::thread::yield_now();
        }
    }

    /// Aborts the communicator; kernels that wait for other ranks end.
    fn give_up(&self) {
        if !self.gone.swap(true, Ordering::Relaxed) {
            // SAFETY: nobody uses the communicator once `gone` is set; callers have the turn or are
            // in a panic.
            unsafe { self.nccl.abort(self.handle) };
        }
    }

    /// Aborts the communicator in a panic, so that ranks that wait for this one do not block it.
    pub(crate) fn abandon(&self) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        self.give_up();
    }
}

#[cfg(test)]
mod tests {
    use horus_core::comm::threads::ThreadComm;

    use super::*;

    /// A protocol that fails at a given operation.
    #[derive(Clone, Copy, Default)]
    struct FailingProtocol {
        rank: usize,
        no_library: Option<usize>,
        older: Option<usize>,
        no_name: bool,
        lost: Option<usize>,
    }

    impl JoinProtocol for FailingProtocol {
        type Group = usize;
        fn version(&self) -> Result<u64, String> {
            match self.no_library == Some(self.rank) {
                true => Err("NCCL was not found".into()),
                false => Ok(if self.older == Some(self.rank) { 21_000 } else { 22_000 }),
            }
        }
        fn name(&self) -> Result<Vec<u8>, String> {
            assert_eq!(self.rank, 0, "rank 0 names the group");
            if self.no_name { Err("no socket".into()) } else { Ok(vec![7; 128]) }
        }
        fn join(&self, name: &[u8]) -> Result<usize, String> {
            assert_eq!(name, [7; 128]);
            if self.lost == Some(self.rank) { Err("a trial exchange failed".into()) } else { Ok(self.rank) }
        }
    }

    fn outcome(fake: FailingProtocol) -> Vec<Result<usize, String>> {
        ThreadComm::run(3, |comm| join(&FailingProtocol { rank: comm.rank(), ..fake }, &comm).unwrap())
    }

    fn refused(fake: FailingProtocol, words: [&str; 3]) {
        for (got, words) in outcome(fake).into_iter().zip(words) {
            let why = got.unwrap_err();
            assert!(why.contains(words), "{why:?} does not say {words:?}");
        }
    }

    #[test]
    fn all_ranks_join_or_none_does() {
        assert_eq!(outcome(FailingProtocol::default()), [Ok(0), Ok(1), Ok(2)]);
        let missing = FailingProtocol { no_library: Some(1), ..FailingProtocol::default() };
        refused(missing, ["rank 1 has no NCCL", "not found", "rank 1 has no NCCL"]);
        refused(FailingProtocol { older: Some(2), ..FailingProtocol::default() }, ["different versions"; 3]);
        refused(FailingProtocol { no_name: true, ..FailingProtocol::default() }, ["rank 0 could not start"; 3]);
        let lost = FailingProtocol { lost: Some(2), ..FailingProtocol::default() };
        refused(lost, ["rank 2 could not join", "rank 2 could not join", "trial exchange failed"]);
    }
}
