//! Batches: their launches run in order, in memory that is fresh each time.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{
    Batch, BatchMemory, BatchedLaunch, Batching, Device, Geometry, Launch, LaunchInput, Memory, more_geometries,
};
use horus_plan::ir::kernel::Kernel;

use super::SimulatedDevice;
use super::memory::foreign;

/// The launches of a batch.
#[derive(Debug)]
struct SimulatedBatch(Vec<SimulatedLaunch>);

#[derive(Debug)]
struct SimulatedLaunch {
    kernel: Kernel,
    inputs: Vec<(BatchMemory, Geometry)>,
    outputs: Vec<BatchMemory>,
    geometry: Geometry,
    rows: Window,
}

impl Batch for SimulatedBatch {}

impl<D: Device> Batching for SimulatedDevice<D> {
    fn batch(&self, launches: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError> {
        let each = launches.iter().map(|l| SimulatedLaunch {
            kernel: l.kernel.clone(),
            inputs: l.inputs.clone(),
            outputs: l.outputs.clone(),
            geometry: l.geometry,
            rows: l.rows,
        });
        Ok(Some(Box::new(SimulatedBatch(each.collect()))))
    }

    fn submit(&self, batch: &mut dyn Batch, inputs: &[&Memory], outputs: &mut [Memory]) -> Result<bool, DeviceError> {
        let batch: &mut dyn Any = batch;
        let SimulatedBatch(launches) = batch.downcast_mut().ok_or_else(foreign)?;
        let mut held: HashMap<BatchMemory, SimulatedBatchMemory<'_>> = HashMap::new();
        held.extend(
            outputs
                .iter_mut()
                .enumerate()
                .map(|(i, memory)| (BatchMemory::Output(i), SimulatedBatchMemory::Result(memory))),
        );
        for SimulatedLaunch { outputs, geometry, kernel, .. } in &*launches {
            let all = std::iter::once(*geometry).chain(more_geometries(kernel, *geometry));
            for (slot, geometry) in
                outputs.iter().zip(all).filter(|(slot, _)| matches!(slot, BatchMemory::Intermediate(_)))
            {
                held.insert(*slot, SimulatedBatchMemory::Own(self.allocate(geometry.bytes())?));
            }
        }
        for SimulatedLaunch { kernel, inputs: read, outputs: written, geometry, rows } in launches {
            let mut targets =
                written.iter().map(|slot| held.remove(slot).ok_or_else(unknown)).collect::<Result<Vec<_>, _>>()?;
            let memory = |slot: &BatchMemory| match slot {
                BatchMemory::Input(i) => inputs.get(*i).copied(),
                slot => held.get(slot).map(SimulatedBatchMemory::memory),
            };
            let read = read.iter().map(|(slot, geometry)| {
                Ok(LaunchInput { memory: memory(slot).ok_or_else(unknown)?, geometry: *geometry })
            });
            let read = read.collect::<Result<Vec<_>, DeviceError>>()?;
            let mut all: Vec<&mut Memory> = targets.iter_mut().map(SimulatedBatchMemory::memory_mut).collect();
            let (output, more) = all.split_first_mut().ok_or_else(unknown)?;
            self.launch(Launch {
                kernel,
                inputs: &read,
                output,
                additional_outputs: more,
                geometry: *geometry,
                rows: *rows,
            })?;
            held.extend(written.iter().copied().zip(targets));
        }
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

/// The memory of an image while a batch runs.
enum SimulatedBatchMemory<'a> {
    Result(&'a mut Memory),
    Own(Memory),
}

impl SimulatedBatchMemory<'_> {
    fn memory(&self) -> &Memory {
        match self {
            SimulatedBatchMemory::Result(memory) => memory,
            SimulatedBatchMemory::Own(memory) => memory,
        }
    }

    fn memory_mut(&mut self) -> &mut Memory {
        match self {
            SimulatedBatchMemory::Result(memory) => memory,
            SimulatedBatchMemory::Own(memory) => memory,
        }
    }
}

fn unknown() -> DeviceError {
    DeviceError::Argument("a batch reads what no launch wrote, or writes it twice".into())
}
