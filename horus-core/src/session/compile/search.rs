//! Chooses the number of ranks, or of devices of this process, that compute a program: as many of the first ones as are
//! predicted to take the least time.
//!
//! A plan for some ranks is the plan of a session with that many; the others take no part. A plan for another number
//! finds the images on rank 0, or on the shared host, once they have been transferred there. That transfer counts for
//! its time, so more ranks are never predicted to take longer than fewer. All ranks predict the same, because all have
//! all profiles; if only some have devices with their own memory, the first of these chooses. See `docs/design/devices.md`.

use crate::comm::agree::agree_on;
use crate::error::{Error, Result};
use crate::ir::graph::{Node, ValueId};
use crate::machine::HostSide;
use crate::plan::movement::Load;
use crate::plan::partition::Partition;
use crate::plan::state::{Hosts, ImageState, Placement};
use crate::plan::work::ProgramWork;
use crate::plan::{Mode, Plan, ResultDelivery, Setting};
use crate::session::cache::{CachedPlan, PlanRequest};
use crate::session::devices::Engine;
use crate::session::images::image::on_host;
use crate::session::{Session, SessionState};
use crate::settings::Ranks;

/// Seconds to start a device of a process and to wait for its end, apart from its predicted plan: to create and join a
/// thread, and to synchronise at each exchange. An estimate. A pixel operation on images on two H200 took 0.14 ms
/// longer than on one (`docs/performance/scaling.md`).
const STARTED: f64 = 50e-6;

/// A plan for some ranks or devices.
struct Candidate {
    /// `true` if the plan does not fit in memory.
    fails: bool,
    seconds: f64,
    /// Seconds to connect the devices first.
    start: f64,
    plan: Plan,
}

/// Numbers of ranks that are compared if there are `all`.
fn numbers(all: usize) -> Vec<usize> {
    /// Every number up to this one is compared, and powers of two above: each takes the time of a plan.
    const EACH: usize = 8;
    let mut numbers: Vec<usize> = (1..=all.min(EACH)).collect();
    numbers.extend(std::iter::successors(Some(2 * EACH), |n| n.checked_mul(2)).take_while(|n| *n < all));
    if all > EACH {
        numbers.push(all);
    }
    numbers
}

impl Session {
    /// Number of ranks, or of devices of this process.
    pub(crate) fn all(&self, engine: &Engine) -> usize {
        self.ranks().max(engine.device_count())
    }

    /// Numbers of ranks, up to `all`, that are compared for a program.
    pub(crate) fn compared(&self, all: usize) -> Vec<usize> {
        let settings = &self.0.settings;
        match settings.ranks {
            Ranks::Auto if settings.weights.is_none() && settings.mode != Mode::Naive => numbers(all),
            Ranks::First(first) => vec![first.get().min(all)],
            Ranks::Auto | Ranks::All => vec![all],
        }
    }

    /// Setting of plans for the first `among` ranks, or devices of this process.
    pub(crate) fn setting_among(&self, engine: &Engine, among: usize, work: impl Fn() -> ProgramWork) -> Setting {
        let partition = match engine.device_count() {
            1 if among == self.ranks() => self.0.partition.clone(),
            1 => Partition::equal(among),
            _ => engine.divided(among).cloned().unwrap_or_else(|| engine.shares(among, &work())),
        };
        let setting = self.setting(engine, partition);
        let hosts = if among > 1 { engine.hosts() } else { Hosts::Separate };
        let (direct, capacity) = (setting.direct && among > 1, engine.capacity_among(among));
        Setting { hosts, direct, capacity, machine: engine.machine_among(among), ..setting }
    }

    /// The plan for a request that is predicted to take the least time, of those for `among` ranks if that is given; and
    /// an explanation of the choice.
    pub(crate) fn cheapest(
        &self,
        engine: &Engine,
        state: &SessionState,
        request: &PlanRequest,
        among: Option<usize>,
    ) -> Result<(CachedPlan, String)> {
        let all = self.all(engine);
        let compared = among.map_or_else(|| self.compared(all), |among| vec![among]);
        let connecting = engine.seconds_to_connect();
        let mut found: Vec<Candidate> = Vec::new();
        for &among in &compared {
            let setting = self.setting_among(engine, among, || ProgramWork::of(&request.graph));
            let plan = self.plan_for(engine, request, setting)?;
            let seconds = plan.predicted + self.beside(engine, state, request, among);
            let start = if plan.steps.iter().any(|step| step.action.is_direct()) { connecting } else { 0.0 };
            found.push(Candidate { fails: plan.shortfall.is_some() || !plan.fits, seconds, start, plan });
        }
        let by_time = |a: &usize, b: &usize| {
            let (a, b) = (&found[*a], &found[*b]);
            a.fails.cmp(&b.fails).then((a.seconds + a.start).total_cmp(&(b.seconds + b.start)))
        };
        let best = (0..found.len()).min_by(by_time).unwrap_or(0);
        let mut said = String::new();
        if compared.len() > 1 {
            let what = if engine.device_count() > 1 { "devices" } else { "ranks" };
            for (i, (among, Candidate { seconds, start, .. })) in compared.iter().zip(&found).enumerate() {
                let connect =
                    if *start > 0.0 { format!(" and {:.0} ms to connect them", start * 1e3) } else { String::new() };
                let least = if i == best { ", the least" } else { "" };
                said += &format!("      {:.3} ms on {among} of {all} {what}{connect}{least}\n", seconds * 1e3);
            }
        }
        let unconnected = found.iter().filter(|other| !other.fails && other.start > 0.0);
        let forgone = unconnected.map(|other| found[best].seconds - other.seconds).fold(0.0, f64::max);
        let Candidate { plan, .. } = found.swap_remove(best);
        if engine.device_count() > 1 && plan.setting.has_shared_host() {
            for (lane, device) in engine.devices().take(plan.setting.partition.ranks()).enumerate() {
                said += &format!("      device {}  {}\n", lane + 1, device.names().name);
            }
            said += &format!("      rows divided as {}\n", plan.setting.partition);
        }
        Ok((CachedPlan { forgone, ..CachedPlan::from(plan) }, said))
    }

    /// The number of ranks for a program, if ranks may choose differently because only some have devices with their own
    /// memory: the choice of the first of these, which knows what fits. `mine` is 0 if this rank has no plan. Collective.
    pub(crate) fn agreed_choice(&self, engine: &Engine, mine: usize) -> Result<usize> {
        let own_memory = (0..self.ranks()).find(|rank| !engine.machine.of(*rank).is_unified());
        let Some(first) = own_memory.filter(|_| engine.machine.is_mixed()) else { return Ok(mine) };
        let comm = &*self.0.comm;
        agree_on(comm, "choosing ranks")?;
        let all = comm.gather(mine as u64).map_err(|e| e.during(comm.rank(), "choosing ranks"))?;
        match all.iter().position(|among| *among == 0) {
            Some(rank) => Err(Error::Config(format!("rank {rank} has no plan for the program"))),
            None => Ok(all[first] as usize),
        }
    }

    /// Seconds of a plan for `among` ranks or devices apart from its steps: to transfer images to where the plan finds
    /// them, to start devices, and to send results to the other ranks.
    fn beside(&self, engine: &Engine, state: &SessionState, request: &PlanRequest, among: usize) -> f64 {
        let bytes = |value: &ValueId| {
            state
                .images
                .in_memory
                .get(value)
                .map_or(0, |image| image.geometry.shape.len() * image.geometry.dtype.size())
        };
        let first = engine.machine.of(0);
        let moved = request.sources.iter().zip(&request.laid).filter_map(|((value, at, _), laid)| {
            let at = (*at)?;
            let found = at.usable_by(among, engine.hosts(), *laid);
            let part = if matches!(at.placement, Placement::Strips(_)) { bytes(value) / laid } else { bytes(value) };
            let download = if at.residency.host() { 0.0 } else { first.download(part, HostSide::Staged) };
            let is_gathered = engine.device_count() == 1 && matches!(at.placement, Placement::Strips(_));
            let load = Load { messages: laid - 1, bytes: part * (laid - 1) };
            let gathered = if is_gathered { engine.machine.link(false).time(load) } else { 0.0 };
            found.is_none().then_some(download + gathered)
        });
        let started = if engine.device_count() > 1 && among > 1 { STARTED * among as f64 } else { 0.0 };
        let everywhere =
            request.graph.roots.iter().zip(&request.wants).filter(|(_, want)| **want == ResultDelivery::Everyone);
        let others = self.ranks() - among.min(self.ranks());
        let given = everywhere.map(|(root, _)| {
            let Node { shape, dtype, .. } = request.graph.node(*root);
            engine.machine.link(false).time(Load { messages: others, bytes: others * shape.len() * dtype.size() })
        });
        moved.sum::<f64>() + started + if others > 0 { given.sum() } else { 0.0 }
    }

    /// State in which a plan for `among` ranks or devices finds an image.
    pub(crate) fn arranged(&self, engine: &Engine, at: ImageState, laid: usize, among: usize) -> ImageState {
        let brought = ImageState {
            placement: if among == 1 || engine.device_count() > 1 { Placement::Replicated } else { Placement::ROOT },
            ..on_host(engine.unified())
        };
        at.usable_by(among, engine.hosts(), laid).unwrap_or(brought)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_of_few_ranks_is_compared() {
        assert_eq!(numbers(1), [1]);
        assert_eq!(numbers(5), [1, 2, 3, 4, 5]);
        assert_eq!(numbers(9), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_eq!(numbers(40), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 40]);
        assert_eq!(numbers(64), [1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64]);
    }
}
