//! Forecasts: the cost of a program on other ranks.

use std::panic::Location;

use super::evaluate::source_of;
use super::{Handle, Session};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::image::Image;
use crate::ir::graph::NodeId;
use crate::ir::graph::ValueId;
use crate::machine::Machine;
use crate::optimize::optimize_for;
use crate::plan::forecast::{Cluster, Forecast, forecast};
use crate::plan::partition::Partition;
use crate::plan::state::{Halo, Placement, Residency, State};
use crate::plan::verify::verify;
use crate::plan::{Mode, Plan, Want, plan};
use crate::record::Extract;

impl Session {
    /// Forecasts the messages, the computation and their times on the ranks of a cluster that compute
    /// an image and gather it on rank 0, as a program that saves it does; nothing is computed. The
    /// number of ranks is independent of the session's, their machines are like the session's.
    /// `(ranks, link)` are ranks on a host each; a [`Cluster`] may have several on each host, and the
    /// network of their machines' profiles.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let smooth = Image::worms(&session, 64, 64).gauss(1.0);
    /// let told = session.forecast(&smooth, (4, Link::default()))?;
    /// // All ranks have the worms. What three of them filter, 16 rows of f32 each, goes to rank 0.
    /// assert_eq!(told.total.total.bytes, 3 * 16 * 64 * 4);
    /// let told = session.forecast(&smooth, Cluster { ranks: 8, on_each_host: 4, network: None })?;
    /// assert_eq!(told.computing.launches, 1);
    /// assert!(told.seconds() > told.total.time); // it computes, too
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries; if there are no ranks, or none on a host, or the image belongs to another session.
    #[track_caller]
    pub fn forecast<T: Element>(&self, image: &Image<T>, cluster: impl Into<Cluster>) -> Result<Forecast> {
        let (cluster, op, site) = (cluster.into(), "forecast", Location::caller());
        if cluster.ranks == 0 || cluster.on_each_host == 0 {
            return Err(Error::parameter(op, "no ranks", site));
        }
        if !self.same(image.session()) {
            return Err(Error::ForeignImage { op, site });
        }
        self.forecast_of(image.handle(), cluster)
    }

    /// Plans the delivery of a value to rank 0's host for ranks of equal speed, and forecasts the
    /// plan. Images are in their present places: pictures read on rank 0, images given everywhere,
    /// results in strips.
    fn forecast_of(&self, value: &Handle, cluster: Cluster) -> Result<Forecast> {
        let Cluster { ranks, on_each_host, network } = cluster;
        let id = value.look()?;
        let mut state = self.lock("forecasting")?;
        let Extract { graph, records } = state.program.extract(&[id], self.room_to_keep(&state));
        let engine = self.settled(&mut state, &graph)?;
        let mut wants = vec![Want::Root];
        wants.resize(graph.roots.len(), Want::Keep);
        let disposable = state.program.disposable(&graph, &records);
        let setting = self.setting(engine, Partition::equal(ranks));
        let residency = if setting.unified { Residency::Both } else { Residency::Host };
        let with = |fuse: bool| -> Result<Plan> {
            let kernels = optimize_for(graph.clone(), fuse, &self.aim(&setting), &mut |_, _| ())?;
            let sources: Vec<Option<ValueId>> = kernels.nodes.iter().map(|n| source_of(&n.op)).collect();
            let placement = |n: NodeId| match sources[n.0].and_then(|v| state.given.get(&v)) {
                _ if ranks == 1 => Placement::Replicated,
                Some(given) => *given,
                None => Placement::Strips(Halo::NONE),
            };
            let gone = |n: NodeId| sources[n.0].is_some_and(|v| disposable.contains(&v));
            plan(kernels, &wants, &setting, |n| State { residency, placement: placement(n) }, gone, &mut |_, _| ())
        };
        let fuse = self.0.mode == Mode::Fused;
        let mut plan = with(fuse)?;
        if fuse && !plan.fits {
            plan = with(false)?;
        }
        verify(&plan)?;
        let machine = Machine::clone(&setting.machine);
        let machine = network.map_or(machine.clone(), |link| machine.networked_by(link));
        Ok(forecast(&plan, &machine, on_each_host))
    }
}
