//! Launches: a kernel's arguments, its tables and its place in the stream.

use horus_core::ops::Whole;
use std::cell::Cell;
use std::time::Instant;

use cudarc::driver::sys;
use horus_core::device::check::check as check_launch;
use horus_core::device::{DeviceQueue, Launch, LaunchInput};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::ir::kernel::Kernel;
use horus_core::ops::planes::stacked;
use horus_core::shape::Shape;

use super::CudaDevice;
use crate::codegen::{Generated, LaunchSequence, Pointer, Shapes};
use crate::driver::{self, CudaEvent, check};
use crate::launch_cache::LoadedKernel;
use crate::memory::CudaMemory;

/// First compute capability on which a kernel may begin while the previous one ends.
const EARLY_FROM: u32 = 90;

impl CudaDevice {
    /// Enqueues a launch in the stream.
    pub(super) fn start(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        check_launch(launch)?;
        self.core.context.bind()?;
        let name = || launch.kernel.name();
        if matches!(launch.kernel, Kernel::Source(_)) {
            return Ok(());
        }
        let read = launch.inputs.first().map(|input| input.geometry.shape);
        let counts_nothing = launch.kernel.goes_over_input() && read.is_some_and(Shape::is_empty);
        let nothing = launch.rows.is_empty() || launch.geometry.shape.is_empty() || counts_nothing;
        if matches!(launch.kernel, Kernel::Whole(Whole::Merge(_))) {
            return self.merge(launch);
        }
        let output = self.own(launch.output)?;
        self.core.order_write_of(output, launch.written(&launch.geometry).as_deref())?;
        let mut more = Vec::with_capacity(launch.additional_outputs.len());
        for (memory, geometry) in launch.additional_outputs.iter().zip(launch.additional_geometries()) {
            let memory = self.own(memory)?;
            self.core.order_write_of(memory, launch.written(&geometry).as_deref())?;
            more.push(memory);
        }
        if launch.kernel.launches_without_rows() {
            // SAFETY: the block holds at least the output's bytes, as checked.
            let code =
                unsafe { sys::cuMemsetD8Async(output.address(), 0, launch.geometry.bytes(), self.core.stream.0) };
            check(code, || format!("clearing the output of {}", name()))?;
        }
        if nothing {
            return Ok(());
        }
        let geometries: Vec<_> = launch.inputs.iter().map(|i| i.geometry).collect();
        let shapes = Shapes { inputs: &geometries, output: launch.geometry, rows: launch.rows };
        let start = Instant::now();
        let made = self.get_or_load_kernel(launch.kernel, &shapes)?;
        let LoadedKernel { program, function, table } = &*made;
        // A launch that waits for its rounds does not hold the lock: other threads make kernels meanwhile.
        let (table, timed) = {
            let mut state = self.lock();
            state.making += start.elapsed();
            (state.tables.get((*table, &program.table), &self.core, &self.transfers)?, state.timings.is_some())
        };
        // Freed in the order of the stream, after the launch.
        let scratch = program.sequence.map(|passes| self.core.allocate(passes.scratch)).transpose()?;
        let mut params = self.arguments(program, launch.inputs, output, &more, table.as_deref(), scratch.as_ref())?;
        let stream = &self.core.stream;
        let events = if timed { Some((CudaEvent::new(true)?, CudaEvent::new(true)?)) } else { None };
        if let Some((start, _)) = &events {
            start.record(stream)?;
        }
        let kernels = Cell::new(0);
        let launched = |params: &[u8]| {
            kernels.set(kernels.get() + 1);
            // SAFETY: the parameters were generated with the kernel; every buffer holds what its
            // geometry says, and is freed in stream order, after the launch.
            unsafe { function.launch(self.work(program), stream, params, name) }
        };
        self.core.clock.note(DeviceQueue::Compute, stream, || match program.sequence {
            None => launched(&params),
            Some(passes) => self.run_sequence(passes, scratch.as_ref(), |pass| {
                params[..4].copy_from_slice(&pass.to_ne_bytes());
                launched(&params)
            }),
        })?;
        let mut state = self.lock();
        if let Some((start, end)) = events {
            end.record(stream)?;
            state.timings.get_or_insert_default().push((start, end));
        }
        state.statistics.launches += 1;
        state.statistics.kernels += kernels.get();
        Ok(())
    }

    /// Runs the launches of a program. The repeated ones run until they leave the flag in `scratch` unchanged; the host
    /// waits for each round.
    fn run_sequence(
        &self,
        passes: LaunchSequence,
        scratch: Option<&CudaMemory>,
        mut run: impl FnMut(u32) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let LaunchSequence { count, repeated, scratch: bytes } = passes;
        (0..count).try_for_each(&mut run)?;
        let Some(flag) = scratch.filter(|_| repeated > 0 && bytes >= LaunchSequence::FLAG) else { return Ok(()) };
        let stream = &self.core.stream;
        loop {
            // SAFETY: the block has at least as many bytes, and is freed in the order of the
            // stream.
            let code = unsafe { sys::cuMemsetD8Async(flag.address(), 0, LaunchSequence::FLAG, stream.0) };
            check(code, || "clearing a flag".into())?;
            (count..count + repeated).try_for_each(&mut run)?;
            // Waits first, so that a rank whose partner failed notices it.
            self.wait_for_launches()?;
            let mut left = [0u8; LaunchSequence::FLAG];
            // SAFETY: as above; the copy to memory that is not page-locked has been made when the
            // call returns.
            let code =
                unsafe { sys::cuMemcpyDtoHAsync_v2(left.as_mut_ptr().cast(), flag.address(), left.len(), stream.0) };
            check(code, || "looking at a flag".into())?;
            stream.synchronize()?;
            if left == [0; LaunchSequence::FLAG] {
                return Ok(());
            }
        }
    }

    /// Waits for the stream of the launches; fails if another rank failed.
    fn wait_for_launches(&self) -> Result<(), DeviceError> {
        match self.peers() {
            Some(others) => others.group.wait(&[&self.core.stream], None),
            None => self.core.stream.synchronize(),
        }
    }

    /// Launch configuration of a program.
    pub(super) fn work(&self, program: &Generated) -> driver::LaunchConfig {
        let &Generated { grid, block, shared, early, .. } = program;
        driver::LaunchConfig { grid, block, shared, early: early && self.arch >= EARLY_FROM }
    }

    /// Copies the planes of an output from its inputs.
    fn merge(&self, launch: &Launch<'_>) -> Result<(), DeviceError> {
        let shapes = launch.inputs.iter().map(|input| input.geometry.shape);
        for (p, (i, plane)) in stacked(shapes, launch.geometry.shape).unwrap_or_default().into_iter().enumerate() {
            let input = &launch.inputs[i];
            let from = input.geometry.row_bytes(plane, launch.rows);
            let to = launch.geometry.row_bytes(p, launch.rows).start;
            self.copy_pieces(input.memory, launch.output, &[StridedCopy::run(from.start, to, from.len())])?;
        }
        Ok(())
    }

    /// Fills in the addresses of a program.
    pub(super) fn arguments(
        &self,
        program: &Generated,
        inputs: &[LaunchInput<'_>],
        output: &CudaMemory,
        more: &[&CudaMemory],
        table: Option<&CudaMemory>,
        scratch: Option<&CudaMemory>,
    ) -> Result<Vec<u8>, DeviceError> {
        let mut params = program.params.clone();
        for &(at, what) in &program.pointers {
            let address = match what {
                Pointer::Output { offset } => output.address() + offset as u64,
                Pointer::FurtherOutput { index, offset } => more[index].address() + offset as u64,
                Pointer::Input { index, offset } => self.own(inputs[index].memory)?.address() + offset as u64,
                Pointer::Table => table.map_or(0, CudaMemory::address),
                Pointer::Scratch => scratch.map_or(0, CudaMemory::address),
                Pointer::Total | Pointer::Done => 0,
            };
            params[at..at + 8].copy_from_slice(&address.to_ne_bytes());
        }
        Ok(params)
    }
}
