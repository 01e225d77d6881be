//! Forecasts the cost of a program on other ranks.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::ir::graph::ValueId;
use crate::machine::Machine;
use crate::plan::ResultDelivery;
use crate::plan::forecast::{Cluster, Forecast, forecast};
use crate::plan::partition::Partition;
use crate::plan::state::{Halo, ImageState, Placement, Residency};
use crate::plan::verify::verify;
use crate::record::Extract;
use crate::session::{Handle, Session};

impl Session {
    /// Forecasts the delivery of a value to rank 0's host, on the number of ranks of a cluster that is predicted to
    /// take the least time.
    pub(crate) fn forecast_of(&self, value: &Handle, cluster: Cluster) -> Result<Forecast> {
        let ranks = cluster.ranks.max(1);
        let all = self.compared(ranks).into_iter().map(|among| self.forecast_among(value, among, cluster.clone()));
        let all = all.collect::<Result<Vec<Forecast>>>()?;
        let alone = self.forecast_among(value, 1, Cluster { ranks: 1, on_each_host: 1, ..cluster })?.makespan;
        let least = all.into_iter().min_by(|a, b| a.makespan.total_cmp(&b.makespan));
        let told = least.ok_or_else(|| Error::Config("a forecast for no rank".into()))?;
        Ok(Forecast { single_rank_seconds: (ranks > 1).then_some(alone), ..told })
    }

    /// Plans the delivery of a value to rank 0's host for ranks of equal speed, and forecasts that plan. Images are
    /// where they are now: pictures on rank 0, given images on every rank, results in strips.
    fn forecast_among(&self, value: &Handle, among: usize, cluster: Cluster) -> Result<Forecast> {
        let Cluster { ranks, on_each_host, network, machine: named } = cluster;
        let id = value.look()?;
        let mut state = self.lock("forecasting")?;
        let Extract { graph, records } = state.program.extract(&[id], self.room_to_keep(&state));
        let engine = self.choose_engine(&mut state, &graph)?;
        let mut wants = vec![ResultDelivery::Root];
        wants.resize(graph.roots.len(), ResultDelivery::Keep);
        let disposable = state.program.disposable(&graph, &records);
        let mut setting = self.setting(engine, Partition::equal(among));
        if let Some(named) = &named {
            let unified = named.of(0).is_unified();
            // NCCL connects the GPUs of all ranks, within a host and between hosts.
            (setting.unified, setting.direct) = (unified, !unified && among > 1);
            (setting.capacity, setting.machine) = (None, Arc::new(named.packed(among, on_each_host)));
        }
        let residency = if setting.unified { Residency::Both } else { Residency::Host };
        let found = |value: ValueId| {
            let placement = match state.images.given.get(&value) {
                _ if among == 1 => Placement::Replicated,
                Some(given) => *given,
                None => Placement::Strips(Halo::NONE),
            };
            Some((ImageState { residency, placement }, disposable.contains(&value)))
        };
        let plan = self.plan_of((&graph, &wants), &setting, (&found, &[]), &mut |_, _| ())?;
        verify(&plan)?;
        let machine = Machine::clone(&setting.machine);
        let machine = network.map_or(machine.clone(), |link| machine.networked_by(link));
        Ok(forecast(&plan, &machine, ranks, on_each_host))
    }
}
