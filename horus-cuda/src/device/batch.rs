//! Batches: launches that are known in advance are one graph of the driver; independent launches run at the same time.
//!
//! All batches of a device share one block for the images inside them, because they follow one another in its stream.
//! When a graph starts again, only launches whose inputs or results have moved are updated.
//! Design: `docs/design/cuda.md`.

use std::any::Any;
use std::collections::HashMap;
use std::sync::Arc;

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::device::check::part;
use horus_core::device::{
    Batch, BatchMemory, BatchedLaunch, Batching, Device as _, DeviceMemory as _, Memory, more_geometries,
};
use horus_core::error::DeviceError;
use horus_core::ir::kernel::Kernel;
use horus_core::ops::Whole;
use horus_core::shape::Window;

use super::CudaDevice;
use crate::codegen::{Pointer, Shapes};
use crate::driver::{CudaGraph, GraphTask, LaunchConfig, check};
use crate::launch_cache::LoadedKernel;
use crate::memory::{Core, CudaMemory};

/// Most bytes of the images inside a batch, and their largest share of the GPU's memory. Launches on larger images take
/// longer than starting them.
const MOST_INSIDE: usize = 256 << 20;
const SHARE_INSIDE: usize = 32;
/// Alignment of images inside: the driver's.
const ALIGN: usize = 256;
/// Bytes of a [`Pointer::Done`].
const DONE: usize = 4;

/// The launches of a batch.
#[derive(Debug)]
struct GraphBatch {
    /// Built when addresses are known. Dropped before its kernels.
    graph: Option<CudaGraph>,
    steps: Vec<GraphNode>,
    /// Number of launches.
    count: usize,
    /// Bytes of the images inside.
    inside: usize,
    /// Fewest bytes of each input and output.
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    /// Tables that the kernels read, and counters, owned by the batch.
    tables: Vec<Arc<CudaMemory>>,
    /// Dropped last: graph and kernels belong to its context.
    core: Arc<Core>,
}

impl Drop for GraphBatch {
    fn drop(&mut self) {
        if let Err(e) = self.core.context.bind() {
            log::debug!("a batch is dropped without its GPU: {e}");
        }
    }
}

impl Batch for GraphBatch {}

impl GraphBatch {
    /// The graph, with its current addresses.
    fn ready(&mut self, address: &impl Fn(AddressBase) -> CUdeviceptr) -> Result<&mut CudaGraph, DeviceError> {
        let context = &self.core.context;
        let changed: Vec<bool> = self.steps.iter_mut().map(|step| step.resolve(address)).collect();
        // Taken out: after an error, a graph with addresses of two runs is not used again.
        let graph = match self.graph.take() {
            Some(mut graph) => {
                let mut changed = changed.iter().enumerate().filter(|(_, changed)| **changed);
                changed.try_for_each(|(i, _)| graph.set(context, i, self.steps[i].task()))?;
                graph
            }
            None => {
                let tasks: Vec<_> = self.steps.iter().map(|step| (step.task(), &step.after[..])).collect();
                CudaGraph::new(context, &tasks)?
            }
        };
        Ok(self.graph.insert(graph))
    }
}

/// One node of the graph.
#[derive(Debug)]
struct GraphNode {
    what: NodeWork,
    /// The parameter of the kernel, with its current addresses, or the address of zeros.
    params: Vec<u8>,
    places: Vec<ParamAddress>,
    /// The nodes that come before it.
    after: Vec<usize>,
}

#[derive(Debug)]
enum NodeWork {
    Kernel(Arc<LoadedKernel>, LaunchConfig),
    /// Bytes of zeros.
    Clear(usize),
}

/// An address in a parameter.
#[derive(Clone, Copy, Debug)]
struct ParamAddress {
    at: usize,
    base: AddressBase,
    offset: usize,
}

#[derive(Clone, Copy, Debug)]
enum AddressBase {
    Input(usize),
    Output(usize),
    Inside,
    /// Memory of this address.
    Fixed(CUdeviceptr),
}

impl GraphNode {
    /// Fills in the addresses; returns `true` if one has changed.
    fn resolve(&mut self, address: &impl Fn(AddressBase) -> CUdeviceptr) -> bool {
        let mut changed = false;
        for ParamAddress { at, base, offset } in &self.places {
            let now = (address(*base) + *offset as u64).to_ne_bytes();
            let there = &mut self.params[*at..*at + now.len()];
            changed |= *there != now;
            there.copy_from_slice(&now);
        }
        changed
    }

    fn task(&self) -> GraphTask<'_> {
        match &self.what {
            NodeWork::Kernel(made, work) => GraphTask::Kernel(&made.function, *work, &self.params),
            NodeWork::Clear(bytes) => {
                let address = self.params.first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
                GraphTask::Clear(address, *bytes)
            }
        }
    }
}

/// A batch that is being built.
struct BatchBuilder<'a> {
    device: &'a CudaDevice,
    batch: GraphBatch,
    /// The place of each image inside.
    inside: HashMap<usize, usize>,
    /// The nodes after which an image can be read.
    written: HashMap<BatchMemory, Vec<usize>>,
    /// For each image, the node of the reduction along all its rows, and the kernel that folds its results.
    rows: HashMap<BatchMemory, (usize, Kernel)>,
}

impl BatchBuilder<'_> {
    /// Adds a launch; `false` if it cannot be part of a batch.
    fn add(&mut self, launch: &BatchedLaunch<'_>) -> Result<bool, DeviceError> {
        let &BatchedLaunch { kernel, ref inputs, ref outputs, geometry, rows } = launch;
        if matches!(kernel, Kernel::Source(_) | Kernel::Whole(Whole::Merge(_))) {
            return Ok(false);
        }
        let (mut read, mut after) = (Vec::with_capacity(inputs.len()), Vec::new());
        for (slot, of) in inputs {
            if let BatchMemory::Input(i) = *slot {
                note(&mut self.batch.inputs, i, of.bytes());
            } else {
                after.extend_from_slice(self.written.get(slot).ok_or_else(unwritten)?);
            }
            read.push(self.base(*slot)?);
        }
        after.sort_unstable();
        after.dedup();
        let all = std::iter::once(geometry).chain(more_geometries(kernel, geometry));
        let mut write = Vec::with_capacity(outputs.len());
        for (slot, of) in outputs.iter().zip(all) {
            match *slot {
                BatchMemory::Output(i) => note(&mut self.batch.outputs, i, of.bytes()),
                BatchMemory::Intermediate(i) => {
                    let at = self.take(of.bytes());
                    self.inside.insert(i, at);
                }
                BatchMemory::Input(_) => return Err(unwritten()),
            }
            write.push(self.base(*slot)?);
        }
        if kernel.launches_without_rows() {
            let (base, offset) = *write.first().ok_or_else(unwritten)?;
            let places = vec![ParamAddress { at: 0, base, offset }];
            self.push(NodeWork::Clear(geometry.bytes()), vec![0; 8], places, &mut after);
        }
        if let [(rows, _)] = inputs[..]
            && self.folded(kernel, rows, write[0], &after)?
        {
            self.written.insert(outputs[0], after);
            return Ok(true);
        }
        let geometries: Vec<_> = inputs.iter().map(|(_, geometry)| *geometry).collect();
        let counts_nothing = kernel.goes_over_input() && geometries.first().is_some_and(|g| g.shape.is_empty());
        if !(rows.is_empty() || geometry.shape.is_empty() || counts_nothing) {
            let shapes = Shapes { inputs: &geometries, output: geometry, rows };
            let made = self.device.get_or_load_kernel(kernel, &shapes)?;
            if made.program.sequence.is_some_and(|passes| passes.repeated > 0) {
                return Ok(false); // rounds that the host waits for
            }
            self.launch(&made, &read, &write, &mut after)?;
            if let (Some(fold), [step]) = (kernel.fold_of_rows(), &after[..])
                && rows == Window::whole(geometry.shape.height)
            {
                self.rows.insert(outputs[0], (*step, fold));
            }
        }
        self.written.extend(outputs.iter().map(|slot| (*slot, after.clone())));
        Ok(true)
    }

    /// Makes the launch that reduced rows fold them too, instead of a launch of its own; `false` if there is no such
    /// launch.
    fn folded(
        &mut self,
        fold: &Kernel,
        rows: BatchMemory,
        to: (AddressBase, usize),
        after: &[usize],
    ) -> Result<bool, DeviceError> {
        let reduced = self.rows.get(&rows).filter(|(step, by)| after == [*step] && by == fold);
        let step = reduced.map(|(step, _)| &mut self.batch.steps[*step]);
        let Some(GraphNode { what: NodeWork::Kernel(made, _), places, .. }) = step else { return Ok(false) };
        let place = |what| made.program.pointers.iter().position(|(_, pointer)| *pointer == what);
        let (Some(total), Some(done)) = (place(Pointer::Total), place(Pointer::Done)) else { return Ok(false) };
        if !matches!(places[total].base, AddressBase::Fixed(0)) {
            return Ok(false); // it folds them already
        }
        let core = &self.device.core;
        let counter = core.allocate(DONE)?;
        // SAFETY: the block has that many bytes, and stays with the batch.
        let code = unsafe { sys::cuMemsetD8Async(counter.address(), 0, DONE, core.stream.0) };
        check(code, || "clearing a counter".into())?;
        (places[total].base, places[total].offset) = to;
        places[done].base = AddressBase::Fixed(counter.address());
        self.batch.tables.push(Arc::new(counter));
        self.batch.count -= 1;
        Ok(true)
    }

    /// Adds the launches of a kernel.
    fn launch(
        &mut self,
        made: &Arc<LoadedKernel>,
        read: &[(AddressBase, usize)],
        write: &[(AddressBase, usize)],
        after: &mut Vec<usize>,
    ) -> Result<(), DeviceError> {
        let (device, program) = (self.device, &made.program);
        let table = device.lock().tables.get((made.table, &program.table), &device.core, &device.transfers)?;
        let address = table.as_ref().map_or(0, |table| table.address());
        let scratch = program.sequence.map(|passes| (AddressBase::Inside, self.take(passes.scratch)));
        let place = |&(at, what): &(usize, Pointer)| {
            let ((base, start), offset) = match what {
                Pointer::Output { offset } => (write[0], offset),
                Pointer::FurtherOutput { index, offset } => (write[index + 1], offset),
                Pointer::Input { index, offset } => (read[index], offset),
                Pointer::Table => ((AddressBase::Fixed(address), 0), 0),
                Pointer::Scratch => (scratch.unwrap_or((AddressBase::Fixed(0), 0)), 0),
                Pointer::Total | Pointer::Done => ((AddressBase::Fixed(0), 0), 0),
            };
            ParamAddress { at, base, offset: start + offset }
        };
        let places: Vec<ParamAddress> = program.pointers.iter().map(place).collect();
        for pass in 0..program.sequence.map_or(1, |passes| passes.count) {
            let mut params = program.params.clone();
            if program.sequence.is_some() {
                params[..4].copy_from_slice(&pass.to_ne_bytes());
            }
            let what = NodeWork::Kernel(Arc::clone(made), device.work(program));
            self.push(what, params, places.clone(), after);
        }
        self.batch.tables.extend(table);
        Ok(())
    }

    /// Adds a node after others; later nodes come after it.
    fn push(&mut self, what: NodeWork, params: Vec<u8>, places: Vec<ParamAddress>, after: &mut Vec<usize>) {
        let step = self.batch.steps.len();
        let after = std::mem::replace(after, vec![step]);
        self.batch.steps.push(GraphNode { what, params, places, after });
    }

    /// The offset of new memory inside.
    fn take(&mut self, bytes: usize) -> usize {
        let at = self.batch.inside;
        self.batch.inside = (at + bytes).next_multiple_of(ALIGN);
        at
    }

    /// The place of a slot.
    fn base(&self, slot: BatchMemory) -> Result<(AddressBase, usize), DeviceError> {
        match slot {
            BatchMemory::Input(i) => Ok((AddressBase::Input(i), 0)),
            BatchMemory::Output(i) => Ok((AddressBase::Output(i), 0)),
            BatchMemory::Intermediate(i) => {
                self.inside.get(&i).map(|at| (AddressBase::Inside, *at)).ok_or_else(unwritten)
            }
        }
    }
}

/// Notes that a slot has at least so many bytes.
fn note(sizes: &mut Vec<usize>, i: usize, bytes: usize) {
    sizes.resize(sizes.len().max(i + 1), 0);
    sizes[i] = sizes[i].max(bytes);
}

fn unwritten() -> DeviceError {
    DeviceError::Argument("a batch reads what no launch of it writes, or writes its input".into())
}

impl CudaDevice {
    /// The addresses of memory of at least these sizes.
    fn addresses<'a>(
        &self,
        memory: impl Iterator<Item = &'a Memory>,
        sizes: &[usize],
    ) -> Result<Vec<CUdeviceptr>, DeviceError> {
        let address = |(memory, bytes): (&Memory, &usize)| {
            part(0, *bytes, memory.len())?;
            Ok(self.own(memory)?.address())
        };
        let all = memory.zip(sizes).map(address).collect::<Result<Vec<_>, DeviceError>>()?;
        if all.len() == sizes.len() { Ok(all) } else { Err(unwritten()) }
    }

    /// The memory that batches share, at least so many bytes. An owner can submit work on it, even if another thread
    /// requests more.
    fn inside(&self, bytes: usize) -> Result<Arc<CudaMemory>, DeviceError> {
        let mut state = self.lock();
        if let Some(memory) = state.inside.as_ref().filter(|memory| memory.len() >= bytes) {
            return Ok(Arc::clone(memory));
        }
        state.inside = None;
        let memory = Arc::new(self.core.allocate(bytes)?);
        state.inside = Some(Arc::clone(&memory));
        Ok(memory)
    }
}

impl Batching for CudaDevice {
    fn batch(&self, launches: &[BatchedLaunch<'_>]) -> Result<Option<Box<dyn Batch>>, DeviceError> {
        if !self.graphs {
            return Ok(None);
        }
        self.core.context.bind()?;
        let (steps, tables, core) = (Vec::new(), Vec::new(), Arc::clone(&self.core));
        let batch = GraphBatch {
            graph: None,
            steps,
            count: launches.len(),
            inside: 0,
            inputs: Vec::new(),
            outputs: Vec::new(),
            tables,
            core,
        };
        let (inside, written, rows) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut builder = BatchBuilder { device: self, batch, inside, written, rows };
        for launch in launches {
            if !builder.add(launch)? {
                return Ok(None);
            }
        }
        let most = self.memory().capacity().map_or(MOST_INSIDE, |bytes| MOST_INSIDE.min(bytes / SHARE_INSIDE));
        let batch = builder.batch;
        Ok((batch.inside <= most).then(|| Box::new(batch) as Box<dyn Batch>))
    }

    fn submit(&self, batch: &mut dyn Batch, inputs: &[&Memory], outputs: &mut [Memory]) -> Result<bool, DeviceError> {
        self.core.context.bind()?;
        let batch: &mut dyn Any = batch;
        let batch: &mut GraphBatch = batch.downcast_mut().ok_or_else(|| {
            DeviceError::Argument(format!("a batch of another device was given to {}", self.about.name))
        })?;
        let read = self.addresses(inputs.iter().copied(), &batch.inputs)?;
        let written = self.addresses(outputs.iter(), &batch.outputs)?;
        for output in &*outputs {
            self.core.order_write(self.own(output)?)?;
        }
        let inside = if batch.inside > 0 { Some(self.inside(batch.inside)?) } else { None };
        let address = |base| match base {
            AddressBase::Input(i) => read[i],
            AddressBase::Output(i) => written[i],
            AddressBase::Inside => inside.as_ref().map_or(0, |memory| memory.address()),
            AddressBase::Fixed(at) => at,
        };
        let graph = match batch.ready(&address) {
            Ok(graph) => graph,
            Err(e) => {
                log::debug!("launches are made one by one: {e}");
                return Ok(false);
            }
        };
        // SAFETY: the parameters were generated with the kernels; every buffer holds what its
        // geometry says, and is freed in the order of the stream, after the graph.
        unsafe { graph.start(&self.core.stream) }?;
        self.lock().statistics.launches += batch.count;
        Ok(true)
    }
}
