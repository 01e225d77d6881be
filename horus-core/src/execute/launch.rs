//! Launches, whole and in parts.

use super::{Run, Stored, missing};
use crate::device::{Geometry, Launch, LaunchInput, Memory};
use crate::error::{Error, Result};
use crate::ir::graph::{Node, NodeId};
use crate::ir::kernel::Kernel;
use crate::plan::movement::with_room;
use crate::plan::state::{Halo, Residency, State};
use crate::plan::{Part, Rows, Temp};
use crate::shape::Window;

impl Run<'_> {
    /// Computes the rows of one part of a launch: the interior, or the edges after it.
    pub(super) fn launch(&mut self, n: NodeId, which: Rows, room: Halo, part: Part) -> Result<()> {
        let node = self.plan.graph.node(n);
        let height = node.shape.height;
        let window = match which {
            Rows::All => Window::whole(height),
            Rows::Strip(extend) => with_room(self.strip(self.rank(), height), room.max(extend), height),
        };
        let geometry = Geometry { shape: node.shape, dtype: node.dtype, window };
        self.await_footprints(n)?;
        let mut output = match part {
            part if !part.begins() => self.images.take(n).and_then(|i| i.device).ok_or_else(|| missing(n))?,
            _ => match self.mapped.room_of(n) {
                Some(room) => room,
                None => self.allocate(|| launch_of(node), geometry.bytes())?,
            },
        };
        match part {
            Part::Whole => self.launch_on(n, &mut output, geometry, self.rows_of(n, which))?,
            _ => {
                for rows in part.windows(which, &self.plan.setting.partition, self.rank(), height) {
                    self.launch_on(n, &mut output, geometry, rows)?;
                }
            }
        }
        if part.ends() {
            self.incomplete.remove(&n);
            self.temps.retain(|t, _| t.consumer != n);
        }
        if part.begins() && !part.ends() {
            self.incomplete.insert(n);
        }
        let state = State { residency: Residency::Device, placement: which.placement() };
        self.images.put(n, Stored { geometry, state, host: None, device: Some(output) });
        Ok(())
    }

    /// Launches the kernel of `n` for `rows`, if there are any.
    fn launch_on(&self, n: NodeId, output: &mut Memory, geometry: Geometry, rows: Window) -> Result<()> {
        let node = self.plan.graph.node(n);
        // Counts are cleared by the launch, also where there is nothing to count.
        if rows.is_empty() && !node.op.launches_without_rows() {
            return Ok(());
        }
        let mut inputs = Vec::with_capacity(node.inputs.len());
        for (i, source) in node.inputs.iter().enumerate() {
            let input = match self.temps.get(&Temp { consumer: n, input: i }) {
                Some(fetched) => LaunchInput { memory: &fetched.memory, geometry: fetched.geometry },
                None => {
                    let image = self.images.get(*source)?;
                    let memory = image.device.as_ref().ok_or_else(|| missing(*source))?;
                    LaunchInput { memory, geometry: image.geometry }
                }
            };
            inputs.push(input);
        }
        // Launches take scratch memory.
        let launched = self.images.with_memory(|| {
            self.cx.device.launch(Launch { kernel: &node.op, inputs: &inputs, output, geometry, rows })
        });
        launched.map_err(|source| Error::Device { op: launch_of(node), device: self.cx.device.name(), source })
    }
}

/// An operation in messages.
pub(super) fn launch_of(node: &Node<Kernel>) -> String {
    format!("{} (recorded at {})", node.op.name(), node.site)
}
