//! Launches of whole strips, interiors and edges.

use super::{PlanExecution, RankImage, missing};
use crate::device::{Geometry, Launch, LaunchInput, Memory};
use crate::error::{DeviceError, Error, Result};
use crate::ir::graph::{Node, NodeId};
use crate::ir::kernel::Kernel;
use crate::plan::LaunchedNodes;
use crate::plan::movement::with_room;
use crate::plan::state::{Halo, ImageState, Residency};
use crate::plan::{ComputedRows, LaunchPart, Temp};
use crate::shape::Window;

impl PlanExecution<'_> {
    /// Computes the rows of one part of a launch: the interior, or the edges after it.
    pub(super) fn launch(
        &mut self,
        launched: &LaunchedNodes<'_>,
        which: ComputedRows,
        room: Halo,
        part: LaunchPart,
    ) -> Result<()> {
        let (plan, n) = (self.plan, launched.nodes[0]);
        let node = plan.graph.node(n);
        let height = node.shape.height;
        let window = match which {
            ComputedRows::All => Window::whole(height),
            ComputedRows::Strip(extend) => with_room(self.strip(self.rank(), height), room.max(extend), height),
            ComputedRows::On(_) => which.window(&plan.setting.partition, self.rank(), height),
        };
        let geometry = |n: NodeId| Geometry { dtype: plan.graph.node(n).dtype, shape: node.shape, window };
        self.await_footprints(n)?;
        let mut outputs = Vec::with_capacity(launched.nodes.len());
        for &n in launched.nodes {
            outputs.push(match part {
                part if !part.begins() => self.images.take(n).and_then(|i| i.device).ok_or_else(|| missing(n))?,
                _ => {
                    let memory = self.output_memory(n, geometry(n).bytes());
                    memory.map_err(self.failed(|| launch_of(plan.graph.node(n))))?
                }
            });
        }
        match part {
            LaunchPart::Whole => {
                self.launch_on(launched, &mut outputs, geometry(n), self.rows_of(n, which))?;
            }
            _ => {
                for rows in part.windows(which, &plan.setting.partition, self.rank(), height) {
                    self.launch_on(launched, &mut outputs, geometry(n), rows)?;
                }
            }
        }
        let state = ImageState { residency: Residency::Device, placement: which.placement() };
        for (&n, output) in launched.nodes.iter().zip(outputs) {
            if part.ends() {
                self.incomplete.remove(&n);
                self.temps.retain(|t, _| t.consumer != n);
            }
            if part.begins() && !part.ends() {
                self.incomplete.insert(n);
            }
            self.images.put(n, RankImage { geometry: geometry(n), state, host: None, device: Some(output) });
        }
        Ok(())
    }

    /// Memory for the launch that begins to compute `n`.
    pub(super) fn output_memory(&mut self, n: NodeId, bytes: usize) -> Result<Memory, DeviceError> {
        if let Some(room) = self.mapped.room_of(n) {
            return Ok(room);
        }
        let (device, pool) = (self.cx.device, self.cx.pool);
        let for_host =
            self.plan.is_written_to_host(n).then(|| device.staging().allocate_for_host(bytes, pool)).flatten();
        for_host.map_or_else(|| self.images.with_memory(|| device.allocate(bytes)), Ok)
    }

    /// Launches a kernel for `rows`, if there are any.
    fn launch_on(
        &self,
        &LaunchedNodes { nodes, kernel, inputs: sources }: &LaunchedNodes<'_>,
        outputs: &mut [Memory],
        geometry: Geometry,
        rows: Window,
    ) -> Result<()> {
        // The launch clears the counts, even if there is nothing to count.
        if rows.is_empty() && !kernel.launches_without_rows() {
            return Ok(());
        }
        let n = nodes[0];
        let mut inputs = Vec::with_capacity(sources.len());
        for (i, source) in sources.iter().enumerate() {
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
        let Some((output, more)) = outputs.split_first_mut() else { return Ok(()) };
        let mut more: Vec<&mut Memory> = more.iter_mut().collect();
        // Launches allocate scratch memory.
        let launched = self.images.with_memory(|| {
            // Each attempt reborrows the memory.
            let mut more: Vec<&mut Memory> = more.iter_mut().map(|m| &mut **m).collect();
            self.cx.device.launch(Launch {
                kernel,
                inputs: &inputs,
                output,
                additional_outputs: &mut more,
                geometry,
                rows,
            })
        });
        let node = self.plan.graph.node(n);
        launched.map_err(|source| Error::Device { op: launch_of(node), device: self.cx.device.names().name, source })
    }
}

/// Name of an operation in messages.
pub(super) fn launch_of(node: &Node<Kernel>) -> String {
    format!("{} (recorded at {})", node.op.name(), node.site)
}
