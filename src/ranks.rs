//! The ranks that run a program together: who they are, and how cores and rows are divided among them.

use std::num::NonZero;
use std::sync::Arc;
use std::time::Instant;

use horus_core::agree::agree_on;
use horus_core::comm::{Alone, Communicator};
use horus_core::device::Device;
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::session::Session;

/// Variables that launchers set: Open MPI and PRRTE, PMI-1 and PMI-2 (MPICH, Slurm), Intel MPI, MVAPICH.
const LAUNCHERS: [&str; 6] =
    ["OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_SIZE"];

/// The ranks that this process was started among: those of MPI, if a launcher such as `mpirun` started the process (and
/// Horus was built with its feature `mpi`); else this process alone.
///
/// Sessions ask for themselves. A program does when it must know its rank before it opens one.
///
/// # Errors
/// [`Error::Config`] if MPI cannot be used.
pub fn ranks() -> Result<Arc<dyn Communicator>> {
    if LAUNCHERS.iter().all(|name| std::env::var_os(name).is_none()) {
        return Ok(Arc::new(Alone));
    }
    under_launcher()
}

#[cfg(feature = "mpi")]
fn under_launcher() -> Result<Arc<dyn Communicator>> {
    let comm = horus_mpi::join().map_err(|e| Error::Config(format!("cannot join the other ranks: {e}")))?;
    Ok(Arc::new(comm))
}

#[cfg(not(feature = "mpi"))]
fn under_launcher() -> Result<Arc<dyn Communicator>> {
    log::warn!("this build of Horus has no MPI: every process runs the whole program (build with `--features mpi`)");
    Ok(Arc::new(Alone))
}

/// Threads for a CPU device whose cores several ranks share.
pub(crate) fn share_of_cores(comm: &dyn Communicator) -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    (comm.sharers() > 1).then(|| (cores / comm.sharers()).max(1))
}

/// The weights that `text` (of `HORUS_WEIGHTS`) asks for: `1,2,1` is one per rank; `node:2,1` is one per node, divided
/// equally among its ranks; `measure` gives each rank its measured speed.
pub(crate) fn weights(
    text: &str,
    comm: &dyn Communicator,
    open: &dyn Fn() -> Result<Box<dyn Device>>,
) -> Result<Vec<f64>> {
    let failed = |why: String| Error::Config(format!("HORUS_WEIGHTS={text}: {why}"));
    if text == "measure" {
        return measured(comm, open);
    }
    let (given, per_node) = match text.strip_prefix("node:") {
        Some(rest) => (list(rest).map_err(failed)?, true),
        None => (list(text).map_err(failed)?, false),
    };
    let groups = if per_node { nodes(comm)? } else { (0..comm.size()).collect() };
    divide(&given, &groups).map_err(|count| {
        let what = if per_node { "nodes" } else { "ranks" };
        failed(format!("{} weights for {count} {what}", given.len()))
    })
}

fn list(text: &str) -> Result<Vec<f64>, String> {
    let number = |part: &str| match part.trim().parse::<f64>() {
        Ok(w) if w.is_finite() && w >= 0.0 => Ok(w),
        Ok(w) => Err(format!("{w} is no weight: weights are finite and not negative")),
        Err(_) => Err(format!("{part:?} is no number (write `1,2,1`, `node:2,1` or `measure`)")),
    };
    let weights = text.split(',').map(number).collect::<Result<Vec<f64>, String>>()?;
    if weights.iter().all(|w| *w == 0.0) {
        return Err("all weights are zero: somebody must do the work".into());
    }
    Ok(weights)
}

/// The weight of each rank, whose group is `groups[rank]`; each group's weight is divided equally among its ranks. Fails
/// with the number of groups.
fn divide(weights: &[f64], groups: &[usize]) -> Result<Vec<f64>, usize> {
    let count = groups.iter().max().map_or(0, |g| g + 1);
    if weights.len() != count {
        return Err(count);
    }
    let members = |group: usize| groups.iter().filter(|g| **g == group).count() as f64;
    Ok(groups.iter().map(|&g| weights[g] / members(g)).collect())
}

fn nodes(comm: &dyn Communicator) -> Result<Vec<usize>> {
    agree_on(comm, "counting nodes")?;
    let nodes = comm.gather(comm.node() as u64).map_err(|e| e.during(comm.rank(), "counting nodes"))?;
    Ok(nodes.into_iter().map(|n| n as usize).collect())
}

/// The speed of each rank in a fixed filter, all measuring at once as they will compute at once.
fn measured(comm: &dyn Communicator, open: &dyn Fn() -> Result<Box<dyn Device>>) -> Result<Vec<f64>> {
    const SIZE: usize = 512;
    const ROUNDS: usize = 4;
    if comm.size() == 1 {
        return Ok(vec![1.0]);
    }
    let session = Session::on(open()?).build()?;
    let image = Image::<f32>::worms(&session, SIZE, SIZE)?;
    agree_on(comm, "measuring speeds")?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let _filtered = image.gauss_2d(30.0, 3.0, 1.0, 0, 2)?;
        session.evaluate()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    let all = comm.gather(best.to_bits()).map_err(|e| e.during(comm.rank(), "measuring speeds"))?;
    let speeds: Vec<f64> = all.into_iter().map(|bits| 1.0 / f64::from_bits(bits)).collect();
    log::info!("measured weights: {speeds:.1?}");
    Ok(speeds)
}

#[cfg(test)]
mod tests {
    use horus_core::comm::threads::ThreadComm;
    use horus_core::cpu::device::CpuDevice;

    use super::*;

    fn cpu() -> Result<Box<dyn Device>> {
        Ok(Box::new(CpuDevice::new(Some(1))?))
    }

    fn refused(text: &str) -> String {
        weights(text, &Alone, &cpu).unwrap_err().to_string()
    }

    #[test]
    fn weights_are_given_per_rank_or_per_node() {
        let all = ThreadComm::run(3, |c| (weights("1, 2,0", &c, &cpu).unwrap(), weights("node:6", &c, &cpu).unwrap()));
        assert!(all.iter().all(|(ranks, node)| ranks == &[1.0, 2.0, 0.0] && node == &[2.0; 3]), "{all:?}");
        assert_eq!(divide(&[2.0, 1.0], &[0, 0, 1]).unwrap(), [1.0, 1.0, 1.0]);
    }

    #[test]
    fn weights_that_make_no_sense_are_refused_with_a_reason() {
        assert_eq!(refused("1,2"), "HORUS_WEIGHTS=1,2: 2 weights for 1 ranks");
        assert!(refused("node:1,2").contains("2 weights for 1 nodes"));
        assert!(refused("NaN").contains("finite and not negative"));
        assert!(refused("-1").contains("finite and not negative"));
        assert!(refused("0").contains("all weights are zero"));
        assert!(refused("1,,2").contains("no number"));
    }

    #[test]
    fn measured_weights_are_the_same_on_all_ranks() {
        let all = ThreadComm::run(2, |c| weights("measure", &c, &cpu).unwrap());
        assert_eq!(all[0], all[1]);
        assert!(all[0].iter().all(|w| w.is_finite() && *w > 0.0), "{all:?}");
    }

    #[test]
    fn ranks_that_share_cores_divide_them() {
        assert_eq!(share_of_cores(&Alone), None);
        let shares = ThreadComm::run(1000, |c| share_of_cores(&c));
        assert!(shares.iter().all(|s| *s == Some(1)));
    }
}
