//! Batches: their launches are made in order, in memory that is fresh each time.

use std::any::Any;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::device::{
    Batch, BatchedLaunch, Batching, Device, Geometry, Launch, LaunchInput, Memory, Slot, more_geometries,
};
use horus_plan::ir::kernel::Kernel;

use super::Simulated;
use super::memory::foreign;

/// The launches of a batch.
#[derive(Debug)]
struct Launches(Vec<Each>);

#[derive(Debug)]
struct Each {
    kernel: Kernel,
    inputs: Vec<(Slot, Geometry)>,
    outputs: Vec<Slot>,
    geometry: Geometry,
    rows: Window,
}

impl Batch for Launches {}

impl<D: Device> Batching for Simulated<D> {
    fn batch(&self, launches: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError> {
        let each = launches.iter().map(|l| Each {
            kernel: l.kernel.clone(),
            inputs: l.inputs.clone(),
            outputs: l.outputs.clone(),
            geometry: l.geometry,
            rows: l.rows,
        });
        Ok(Some(Box::new(Launches(each.collect()))))
    }

    fn submit(&self, batch: &mut dyn Batch, inputs: &[&Memory], outputs: &mut [Memory]) -> Result<bool, DeviceError> {
        let batch: &mut dyn Any = batch;
        let Launches(launches) = batch.downcast_mut().ok_or_else(foreign)?;
        let mut held: HashMap<Slot, Held<'_>> = HashMap::new();
        held.extend(outputs.iter_mut().enumerate().map(|(i, memory)| (Slot::Output(i), Held::Result(memory))));
        for Each { outputs, geometry, kernel, .. } in &*launches {
            let all = std::iter::once(*geometry).chain(more_geometries(kernel, *geometry));
            for (slot, geometry) in outputs.iter().zip(all).filter(|(slot, _)| matches!(slot, Slot::Inside(_))) {
                held.insert(*slot, Held::Own(self.allocate(geometry.bytes())?));
            }
        }
        for Each { kernel, inputs: read, outputs: written, geometry, rows } in launches {
            let mut targets =
                written.iter().map(|slot| held.remove(slot).ok_or_else(unknown)).collect::<Result<Vec<_>, _>>()?;
            let memory = |slot: &Slot| match slot {
                Slot::Input(i) => inputs.get(*i).copied(),
                slot => held.get(slot).map(Held::memory),
            };
            let read = read.iter().map(|(slot, geometry)| {
                Ok(LaunchInput { memory: memory(slot).ok_or_else(unknown)?, geometry: *geometry })
            });
            let read = read.collect::<Result<Vec<_>, DeviceError>>()?;
            let mut all: Vec<&mut Memory> = targets.iter_mut().map(Held::memory_mut).collect();
            let (output, more) = all.split_first_mut().ok_or_else(unknown)?;
            self.launch(Launch { kernel, inputs: &read, output, more, geometry: *geometry, rows: *rows })?;
            held.extend(written.iter().copied().zip(targets));
        }
        self.counters.batches.fetch_add(1, Ordering::Relaxed);
        Ok(true)
    }
}

/// The memory of an image while a batch runs.
enum Held<'a> {
    Result(&'a mut Memory),
    Own(Memory),
}

impl Held<'_> {
    fn memory(&self) -> &Memory {
        match self {
            Held::Result(memory) => memory,
            Held::Own(memory) => memory,
        }
    }

    fn memory_mut(&mut self) -> &mut Memory {
        match self {
            Held::Result(memory) => memory,
            Held::Own(memory) => memory,
        }
    }
}

fn unknown() -> DeviceError {
    DeviceError::Argument("a batch reads what no launch wrote, or writes it twice".into())
}
