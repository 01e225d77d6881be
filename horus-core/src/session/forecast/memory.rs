//! Forecasts memory use and file reads of a value without computing it.

use std::collections::HashMap;
use std::fmt;

use crate::error::Result;
use crate::ir::graph::ValueId;
use crate::record::{Extract, RecordId};
use crate::region::{CropRule, Division, Rect, RegionSupply, restrict};
use crate::session::compile::memory::{bytes, counted};
use crate::session::compile::schedule::{Grain, ProgramSchedule, ResultDestination, ScheduleStage};
use crate::session::images::on_demand::unread;
use crate::session::{Handle, Session, SessionState};
use crate::shape::Region;

/// Memory use and file reads of a value; see [`Session::forecast_memory`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryForecast {
    /// Bytes of pixels read from files, or region by region from memory. Repeated reads for several regions or
    /// reductions count again.
    pub read: usize,
    /// Bytes of the result.
    pub result: usize,
    /// Peak bytes of images if the value were computed as a whole.
    pub whole: usize,
    /// Bytes of host memory available for images.
    pub host: usize,
    /// Bytes of the device's own memory available for images; `None` if it has none.
    pub device: Option<usize>,
    /// Number of times that sources are read for reductions before the result is computed, if the images do not fit.
    pub passes: usize,
    /// Regions of the result, computed one after the other; `None` if it is computed as a whole.
    pub division: Option<Division>,
}

impl fmt::Display for MemoryForecast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: usize| format!("{:.1} MB", bytes as f64 / 1e6);
        writeln!(f, "reads {}, makes {}", mb(self.read), mb(self.result))?;
        write!(f, "takes {} as a whole; images may take {} of the host", mb(self.whole), mb(self.host))?;
        if let Some(device) = self.device {
            write!(f, " and {} of the device", mb(device))?;
        }
        let passes = |n: usize| if n == 1 { "a pass".to_owned() } else { format!("{n} passes") };
        match (self.passes, &self.division) {
            (_, None) => write!(f, "\ncomputed as a whole"),
            (0, Some(division)) => write!(f, "\ncomputed in {division}"),
            (n, Some(division)) => write!(f, "\ncomputed in {} for reductions, then {division}", passes(n)),
        }
    }
}

/// Records the regions of sources that a program reads.
#[derive(Default)]
struct Noting(HashMap<ValueId, Rect>);

impl RegionSupply for Noting {
    fn source(&mut self, value: ValueId, region: Rect) -> Option<ValueId> {
        self.0.entry(value).and_modify(|had| *had = had.hull(region)).or_insert(region);
        None
    }

    fn number(&mut self, _: i32) -> Option<ValueId> {
        None
    }
}

impl Session {
    /// The region of each of these on-demand images that an evaluation of a value reads; `None` for an image of which
    /// it reads nothing. The regions depend only on the program, not on the device.
    ///
    /// # Errors
    /// Errors of failed values.
    #[doc(hidden)]
    pub fn reads(&self, value: &Handle, sources: &[&Handle]) -> Result<Vec<Option<Region>>> {
        let id = value.look()?;
        let of = sources.iter().map(|source| source.look()).collect::<Result<Vec<_>>>()?;
        let state = self.lock("forecasting")?;
        let Extract { mut graph, .. } = state.program.extract(&[id], 0);
        graph.roots.truncate(1);
        let graph = graph.without_dead();
        let whole = [Rect::whole(graph.node(graph.roots[0]).shape)];
        let mut noting = Noting::default();
        restrict(&graph, &whole, CropRule::Always, &mut noting);
        let region = |id| state.program.value(id).and_then(|value| noting.0.get(&value)).map(|rect| rect.inside());
        Ok(of.into_iter().map(region).collect())
    }

    /// Forecasts the memory use of a value. Collective.
    pub(crate) fn memory_of(&self, value: &Handle) -> Result<MemoryForecast> {
        let id = value.look()?;
        self.comm(); // after started evaluations: ranks communicate in one order
        let mut state = self.lock("forecasting")?;
        let told = self.memory_of_record(&mut state, id);
        state.images.restore_sources();
        told
    }

    fn memory_of_record(&self, state: &mut SessionState, id: RecordId) -> Result<MemoryForecast> {
        let Extract { mut graph, records } = state.program.extract(&[id], 0);
        let gone = state.program.disposable(&graph, &records);
        graph.roots.truncate(1);
        let graph = graph.without_dead();
        let engine = match self.engine() {
            Some(engine) => engine,
            None => self.choose_engine(state, &graph)?,
        };
        let limits = self.limits(state, engine, &graph)?;
        let need = self.need_of(state, engine, &graph, &gone)?;
        let mut told = MemoryForecast {
            read: need.later,
            result: need.results,
            whole: need.peak,
            host: limits.host,
            device: limits.device,
            passes: 0,
            division: None,
        };
        if limits.fit(need) {
            return Ok(told);
        }
        let sink = ResultDestination::Regions(&[Grain::DEEP]);
        let limits = self.replace_sources_if_exceeded(state, engine, &graph, &gone, sink)?.unwrap_or(limits);
        if unread(state, &graph).next().is_none() {
            return Ok(told);
        }
        let schedule = self.scheduled(state, engine, (&graph, &gone), sink, limits)?;
        let ProgramSchedule { stages, rest, taken, own } = schedule;
        told.read = 0;
        for ScheduleStage { graph, .. } in &stages {
            told.passes += 1;
            match self.need_of(state, engine, &graph.clone().without_dead(), &gone) {
                Ok(need) => told.read += need.later,
                Err(e) => {
                    state.images.forget(own);
                    return Err(e);
                }
            }
        }
        told.division = taken.map(|taken| taken.division);
        let regions = told.division.iter().flat_map(|division| (0..division.count()).map(|i| division.region(i)));
        told.read += regions.map(|region| counted(state, &rest, region).read).sum::<usize>();
        told.result = bytes(&rest, rest.roots[0]);
        state.images.forget(own);
        Ok(told)
    }
}
