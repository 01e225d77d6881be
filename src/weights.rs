//! Division of rows among ranks of unequal speed, according to `HORUS_WEIGHTS`.

use std::sync::Arc;
use std::time::Instant;

use horus_core::comm::Communicator;
use horus_core::comm::agree::agree_on;
use horus_core::device::Device;
use horus_core::error::Result;
use horus_core::image::samples;
use horus_core::session::Session;
use horus_core::settings::{NodeWeights, WEIGHTS, Weights};

/// Returns the weight of each rank according to `given`: a node's weight is divided among its
/// ranks, in rank order.
pub(crate) fn rank_weights(
    given: &Weights,
    comm: &dyn Communicator,
    open: &dyn Fn() -> Result<Box<dyn Device>>,
) -> Result<Vec<f64>> {
    let failed = |why: String| WEIGHTS.invalid_value_error(&given.to_string(), &why);
    match given {
        Weights::Measure => measure_rank_weights(comm, open),
        Weights::Nodes(nodes) => divide_among_ranks(nodes, &nodes_of_ranks(comm)?).map_err(failed),
        Weights::Ranks(given) if given.len() != comm.size() => {
            Err(failed(format!("{} weights for {} ranks", given.len(), comm.size())))
        }
        Weights::Ranks(given) => Ok(given.clone()),
    }
}

/// Returns the weight of each rank; rank `r` is on node `node_of[r]`.
fn divide_among_ranks(given: &[NodeWeights], node_of: &[usize]) -> Result<Vec<f64>, String> {
    let count = node_of.iter().max().map_or(0, |n| n + 1);
    if given.len() != count {
        return Err(format!("{} weights for {count} nodes", given.len()));
    }
    let mut weights = vec![0.0; node_of.len()];
    for (number, node) in given.iter().enumerate() {
        let ranks: Vec<usize> = (0..node_of.len()).filter(|r| node_of[*r] == number).collect();
        let within = node.within.clone().unwrap_or_else(|| vec![1.0; ranks.len()]);
        if within.len() != ranks.len() {
            return Err(format!("{} weights for the {} ranks of node {number}", within.len(), ranks.len()));
        }
        // Relative to the largest, so that their sum is finite.
        let largest = within.iter().copied().fold(0.0, f64::max);
        let sum: f64 = within.iter().map(|w| w / largest).sum();
        for (rank, w) in ranks.into_iter().zip(within) {
            weights[rank] = node.weight * (w / largest) / sum;
        }
    }
    Ok(weights)
}

/// The node of each rank.
fn nodes_of_ranks(comm: &dyn Communicator) -> Result<Vec<usize>> {
    agree_on(comm, "counting nodes")?;
    let nodes = comm.gather(comm.node() as u64).map_err(|e| e.during(comm.rank(), "counting nodes"))?;
    Ok(nodes.into_iter().map(|n| n as usize).collect())
}

/// The weight of each device of this process according to `given`.
pub(crate) fn device_weights(given: &Weights, devices: &[Arc<dyn Device>]) -> Result<Vec<f64>> {
    let failed = |why: String| WEIGHTS.invalid_value_error(&given.to_string(), &why);
    match given {
        Weights::Measure => {
            let speed = |device: &Arc<dyn Device>| {
                Ok(1.0 / measure_fastest(&Session::sharing(Arc::clone(device)).build()?, || Ok(()))?)
            };
            let speeds = devices.iter().map(speed).collect::<Result<Vec<f64>>>()?;
            log::info!("measured weights: {speeds:.1?}");
            Ok(speeds)
        }
        Weights::Ranks(given) if given.len() == devices.len() => Ok(given.clone()),
        Weights::Ranks(given) => Err(failed(format!("{} weights for {} devices", given.len(), devices.len()))),
        Weights::Nodes(_) => Err(failed("several devices of one process are divided by one weight for each".into())),
    }
}

/// Returns the least time in seconds of a fixed filter over several rounds; the first begins after
/// `ready`.
fn measure_fastest(session: &Session, ready: impl FnOnce() -> Result<()>) -> Result<f64> {
    const SIZE: usize = 512;
    const ROUNDS: usize = 4;
    let image = samples::worms(session, SIZE, SIZE);
    ready()?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let _filtered = image.gauss_2d(30.0, 3.0, 1.0, 0, 2);
        session.evaluate()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// Measures the speed of each rank in a fixed filter. All ranks measure concurrently, because they
/// compute concurrently.
fn measure_rank_weights(comm: &dyn Communicator, open: &dyn Fn() -> Result<Box<dyn Device>>) -> Result<Vec<f64>> {
    if comm.size() == 1 {
        return Ok(vec![1.0]);
    }
    let session = Session::on(open()?).build()?;
    let best = measure_fastest(&session, || agree_on(comm, "measuring speeds"))?;
    let all = comm.gather(best.to_bits()).map_err(|e| e.during(comm.rank(), "measuring speeds"))?;
    let speeds: Vec<f64> = all.into_iter().map(|bits| 1.0 / f64::from_bits(bits)).collect();
    log::info!("measured weights: {speeds:.1?}");
    Ok(speeds)
}

#[cfg(test)]
mod tests {
    use horus_core::comm::SingleRankComm;
    use horus_core::comm::threads::ThreadComm;
    use horus_core::cpu::device::CpuDevice;

    use super::*;

    fn cpu() -> Result<Box<dyn Device>> {
        Ok(Box::new(CpuDevice::new(Some(1))?))
    }

    /// The weights for this text.
    fn asked(text: &str, comm: &dyn Communicator) -> Result<Vec<f64>> {
        let given: Weights = text.parse().map_err(|why: String| WEIGHTS.invalid_value_error(text, &why))?;
        rank_weights(&given, comm, &cpu)
    }

    /// The weights on three ranks of one node.
    fn on_three(text: &str) -> Vec<f64> {
        let all = ThreadComm::run(3, |c| asked(text, &c).unwrap());
        assert!(all.iter().all(|w| *w == all[0]), "{text}: {all:?}");
        all[0].clone()
    }

    fn refused(text: &str) -> String {
        asked(text, &SingleRankComm).unwrap_err().to_string()
    }

    /// The weights on ranks of the given nodes.
    fn divided(text: &str, node_of: &[usize]) -> Result<Vec<f64>, String> {
        match format!("node:{text}").parse()? {
            Weights::Nodes(nodes) => divide_among_ranks(&nodes, node_of),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn weights_are_given_per_rank_per_node_or_for_both() {
        assert_eq!(on_three("1, 2,0"), [1.0, 2.0, 0.0]);
        assert_eq!(on_three("node:6"), [2.0; 3]);
        assert_eq!(on_three("node: 6 (1, 2,0)"), [2.0, 4.0, 0.0]);
        let nodes = [(2.0, Some(vec![1.0, 3.0])), (1.0, None)].map(|(weight, within)| NodeWeights { weight, within });
        assert_eq!("node:2(1,3), 1".parse(), Ok(Weights::Nodes(nodes.to_vec())));
    }

    #[test]
    fn a_node_is_divided_among_its_ranks_in_their_order_wherever_they_are() {
        assert_eq!(divided("2,1", &[0, 0, 1]).unwrap(), [1.0, 1.0, 1.0]);
        assert_eq!(divided("2(1,3),1", &[0, 0, 1, 1]).unwrap(), [0.5, 1.5, 0.5, 0.5]);
        // As placed by `mpirun --map-by node`.
        assert_eq!(divided("2(1,3),1", &[0, 1, 0, 1]).unwrap(), [0.5, 0.5, 1.5, 0.5]);
        assert_eq!(divided("6(1,1,4),8(3,1),5", &[0, 1, 2, 0, 1, 0]).unwrap(), [1.0, 6.0, 5.0, 1.0, 2.0, 4.0]);
        assert_eq!(divided("1,4(1,0),0(2,1)", &[0, 1, 2, 2, 1]).unwrap(), [1.0, 4.0, 0.0, 0.0, 0.0]);
    }

    #[test]
    fn weights_within_a_node_change_nothing_outside_it() {
        let node_of = [0, 1, 2, 1, 0, 1];
        for text in ["3,6,1", "3(1,2),6(1,2,3),1(9)", "3,6(0,0,1),1", "3(1e308,1.7e308),6,1(1e-300)"] {
            let weights = divided(text, &node_of).unwrap();
            for (node, expected) in [3.0, 6.0, 1.0].into_iter().enumerate() {
                let sum: f64 = (0..6).filter(|r| node_of[*r] == node).map(|r| weights[r]).sum();
                assert!((sum - expected).abs() < 1e-15 * 6.0, "{text}: {weights:?}"); // one rounding per rank
            }
        }
    }

    #[test]
    fn weights_that_make_no_sense_are_refused_with_a_reason() {
        assert_eq!(refused("1,2"), "HORUS_WEIGHTS=1,2: 2 weights for 1 ranks");
        assert!(refused("node:1,2").contains("2 weights for 1 nodes"));
        assert!(refused("NaN").contains("finite and not negative"));
        assert!(refused("-1").contains("finite and not negative"));
        assert!(refused("0").contains("all weights are zero"));
        assert!(refused("1,,2").contains("not a number"));
        assert!(refused("2(1)").contains("\"2(1)\" is not a number"), "nodes have parentheses, ranks do not");
    }

    #[test]
    fn weights_within_a_node_that_make_no_sense_are_refused_with_a_reason() {
        assert_eq!(refused("node:2(1,3)"), "HORUS_WEIGHTS=node:2(1,3): 2 weights for the 1 ranks of node 0");
        assert_eq!(divided("1,2(1,3)", &[0, 1, 0, 1, 1]).unwrap_err(), "2 weights for the 3 ranks of node 1");
        for (text, cause) in [
            ("node:2(1", "unmatched opening parenthesis"),
            ("node:2(1,3,1", "unmatched opening parenthesis"),
            ("node:2)1(", "unmatched closing parenthesis"),
            ("node:2(1)),1", "unmatched closing parenthesis"),
            ("node:2(1(1,1),3)", "nested parentheses"),
            ("node:2(0,0),1", "2(0,0): all weights are zero"),
            ("node:0(1,1),0", "all weights are zero"),
            ("node:2(1,-3)", "2(1,-3): -3 is not a weight"),
            ("node:2(NaN)", "finite and not negative"),
            ("node:inf(1)", "finite and not negative"),
            ("node:-2(1)", "finite and not negative"),
            ("node:2()", "2(): \"\" is not a number"),
            ("node:(1)", "\"\" is not a number"),
            ("node:2(1)3", "\"2(1)3\" is not a number"),
            ("node:2(1)(3)", "not a number"),
            ("node:2(1,)", "not a number"),
            ("node:", "not a number"),
            ("node:2(é)", "not a number"),
        ] {
            let message = refused(text);
            assert!(message.starts_with(&format!("HORUS_WEIGHTS={text}: ")) && message.contains(cause), "{message}");
            assert_eq!(message.lines().count(), 1, "{message}");
        }
    }

    #[test]
    fn measured_weights_are_the_same_on_all_ranks() {
        let all = ThreadComm::run(2, |c| asked("measure", &c).unwrap());
        assert_eq!(all[0], all[1]);
        assert!(all[0].iter().all(|w| w.is_finite() && *w > 0.0), "{all:?}");
    }

    #[test]
    fn devices_of_one_process_have_a_weight_each() {
        let devices: Vec<Arc<dyn Device>> = (0..2).map(|_| cpu().unwrap().into()).collect();
        let of = |text: &str| device_weights(&text.parse().unwrap(), &devices);
        assert_eq!(of("3,1").unwrap(), [3.0, 1.0]);
        assert!(of("measure").unwrap().iter().all(|w| w.is_finite() && *w > 0.0));
        assert_eq!(of("3,1,1").unwrap_err().to_string(), "HORUS_WEIGHTS=3,1,1: 3 weights for 2 devices");
        assert!(of("node:1").unwrap_err().to_string().contains("one weight for each"));
    }
}
