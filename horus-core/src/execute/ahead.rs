//! Announces the launches of a plan before it runs, so that a device that compiles kernels can build them together.

use crate::ops::Whole;
use std::collections::HashMap;

use super::RankImage;
use crate::device::{Device, Geometry, PreparedLaunch};
use crate::error::{DeviceError, Error, Result};
use crate::ir::graph::NodeId;
use crate::ir::kernel::Kernel;
use crate::plan::movement::{rows_of, with_room};
use crate::plan::{Action, ComputedRows, LaunchedNodes, Plan, Temp};
use crate::shape::Window;

/// Builds the kernels of a plan on the device of rank `rank`. `images` are the sources, by node.
///
/// # Errors
/// Errors of the device.
pub fn prepare(plan: &Plan, images: &[Option<RankImage>], device: &dyn Device, rank: usize) -> Result<()> {
    let windows = images.iter().map(|i| i.as_ref().map(|i| i.geometry.window)).collect();
    device.prepare(&launches(plan, windows, rank)).map_err(|source| match source {
        DeviceError::Communication(e) => e.during(rank, "building kernels"),
        source => Error::Device { op: "building kernels".into(), device: device.names().name, source },
    })
}

/// Launches of rank `rank`, in order. `windows` are the rows of each source that the rank has, by node.
fn launches<'a>(plan: &'a Plan, mut windows: Vec<Option<Window>>, rank: usize) -> Vec<PreparedLaunch<'a>> {
    let (graph, partition) = (&plan.graph, &plan.setting.partition);
    let height = |n: NodeId| graph.node(n).shape.height;
    let strip = |n: NodeId| partition.strip(rank, height(n));
    let mut temps: HashMap<Temp, Window> = HashMap::new();
    let mut found = Vec::new();
    let launches = plan.launches();
    for (i, step) in plan.steps.iter().enumerate() {
        match step.action {
            Action::UploadStrip { node, halo: room, .. } | Action::Scatter { node, room, .. } => {
                windows[node.0] = Some(with_room(strip(node), room, height(node)));
            }
            Action::Replicate { node, .. } | Action::Collect(node) => {
                windows[node.0] = Some(Window::whole(height(node)));
            }
            Action::Exchange { node, halo, .. } | Action::Begin { node, halo, .. } => {
                let held = with_room(strip(node), halo, height(node));
                windows[node.0] =
                    Some(windows[node.0].map_or(held, |w| if w.covers(held) { w } else { w.union(held) }));
            }
            Action::Fetch { node, temp, rows, .. } => {
                let consumer = graph.node(temp.consumer);
                let rows = rows_of(graph, partition, temp.consumer, rank, rows);
                let read = consumer.op.footprint(temp.input, rows, consumer.shape, graph.node(node).shape);
                temps.insert(temp, read);
            }
            Action::Launch { node: n, rows, room, part } => {
                let node = graph.node(n);
                let window = match rows {
                    ComputedRows::All => Window::whole(height(n)),
                    ComputedRows::Strip(extend) => with_room(strip(n), room.max(extend), height(n)),
                    ComputedRows::On(_) => rows.window(partition, rank, height(n)),
                };
                windows[n.0] = Some(window);
                // The launch before computes it.
                let Some(LaunchedNodes { kernel, inputs: sources, .. }) = launches.at(i) else { continue };
                let inputs = sources.iter().enumerate().map(|(input, source)| {
                    let window = temps.get(&Temp { consumer: n, input }).copied().or(windows[source.0]);
                    let of = graph.node(*source);
                    window.map(|window| Geometry { shape: of.shape, dtype: of.dtype, window })
                });
                // A missing image is an error of the launch, which reports it.
                let Some(inputs) = inputs.collect::<Option<Vec<Geometry>>>() else { continue };
                let output = Geometry { shape: node.shape, dtype: node.dtype, window };
                let each = match part {
                    crate::plan::LaunchPart::Whole => vec![rows_of(graph, partition, n, rank, rows)],
                    part => part.windows(rows, partition, rank, height(n)).to_vec(),
                };
                for rows in each.into_iter().filter(|rows| !rows.is_empty()) {
                    if !matches!(kernel, Kernel::Source(_) | Kernel::Whole(Whole::Merge(_))) {
                        found.push(PreparedLaunch { kernel, inputs: inputs.clone(), output, rows });
                    }
                }
            }
            _ => {}
        }
    }
    found
}
