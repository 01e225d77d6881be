//! The ranks that run a program together, and the division of cores among them.

use std::num::NonZero;
use std::sync::Arc;

use horus_core::comm::{Communicator, SingleRankComm};
use horus_core::error::Result;
use horus_core::settings::{DEVICE, DeviceChoice};

use crate::devices::{RankOnNode, warm_up};

/// Variables set by launchers: Open MPI and PRRTE, PMI-1 and PMI-2 (MPICH, Slurm), Intel MPI,
/// MVAPICH.
const LAUNCHERS: [&str; 6] =
    ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE"];

/// The rank on its node, and the number of ranks there, in the variables of launchers: Open MPI, MPICH and Intel MPI,
/// MVAPICH.
const PLACES: [[&str; 2]; 3] = [
    ["OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"],
    ["MPI_LOCALRANKID", "MPI_LOCALNRANKS"],
    ["MV2_COMM_WORLD_LOCAL_RANK", "MV2_COMM_WORLD_LOCAL_SIZE"],
];

/// Returns the ranks that this process belongs to: the MPI ranks if a launcher such as `mpirun`
/// started it (and Horus was built with the feature `mpi`), else this process alone.
///
/// Sessions call this themselves. A program calls it to know its rank before it opens a session.
///
/// # Errors
/// [`Error::Config`](horus_core::error::Error::Config) if MPI cannot be used.
pub fn ranks() -> Result<Arc<dyn Communicator>> {
    joined(&DeviceChoice::Auto)
}

/// [`ranks`] for a program that will compute on a device of this name (default: `HORUS_DEVICE`). A GPU starts while the
/// process joins the others: each takes about a quarter of a second. Opening a session reports an unknown name.
///
/// # Errors
/// As [`ranks`].
pub fn ranks_beside(device: Option<&str>) -> Result<Arc<dyn Communicator>> {
    let named = device.map_or_else(|| DEVICE.get().ok().flatten(), |name| name.parse().ok());
    joined(&named.unwrap_or_default())
}

/// Joins the other ranks, while the GPU of this rank starts if `choice` names one.
pub(crate) fn joined(choice: &DeviceChoice) -> Result<Arc<dyn Communicator>> {
    let place = |[rank, ranks]: &[&str; 2]| {
        let number = |name| std::env::var(name).ok()?.parse().ok();
        Some(RankOnNode { rank: number(rank)?, ranks: number(ranks)? })
    };
    match (is_launched(), choice, PLACES.iter().find_map(place)) {
        (false, ..) => Ok(Arc::new(SingleRankComm)),
        (true, DeviceChoice::Cuda(ordinal), Some(local)) => std::thread::scope(|scope| {
            // Without a thread it starts when it is opened.
            let started = std::thread::Builder::new().spawn_scoped(scope, || warm_up(*ordinal, local));
            drop(started);
            under_launcher()
        }),
        _ => under_launcher(),
    }
}

/// Returns `true` if a launcher started this process and expects it to finalise MPI.
pub(crate) fn is_launched() -> bool {
    LAUNCHERS.iter().any(|name| std::env::var_os(name).is_some())
}

#[cfg(feature = "mpi")]
fn under_launcher() -> Result<Arc<dyn Communicator>> {
    use horus_core::error::Error;
    let comm = horus_mpi::join().map_err(|e| Error::Config(format!("cannot join the other ranks: {e}")))?;
    Ok(Arc::new(comm))
}

#[cfg(not(feature = "mpi"))]
fn under_launcher() -> Result<Arc<dyn Communicator>> {
    horus_core::warn!(
        "this build of Horus has no MPI: every process runs the whole program (build with `--features mpi`)"
    );
    Ok(Arc::new(SingleRankComm))
}

/// Number of threads for a CPU device when several ranks share its cores.
pub(crate) fn share_of_cores(comm: &dyn Communicator) -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    (comm.sharers() > 1).then(|| (cores / comm.sharers()).max(1))
}

#[cfg(test)]
mod tests {
    use horus_core::comm::threads::ThreadComm;

    use super::*;

    #[test]
    fn ranks_that_share_cores_divide_them() {
        assert_eq!(share_of_cores(&SingleRankComm), None);
        let shares = ThreadComm::run(1000, |c| share_of_cores(&c));
        assert!(shares.iter().all(|s| *s == Some(1)));
    }
}
