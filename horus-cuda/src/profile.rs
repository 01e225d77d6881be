//! Times of a kernel and of its parts ([`KernelPart`]), and its occupancy of a multiprocessor, which show its
//! bottleneck.

use horus_core::device::{Device, Geometry, Launch, LaunchInput, Memory, more_geometries};
use horus_core::error::DeviceError;
use horus_core::host::StridedCopy;
use horus_core::ir::kernel::Kernel;

use crate::codegen::{KernelPart, Shapes};
use crate::driver::profiler;
use crate::measure::noise;
use crate::recorder::RecordedLaunch;
use crate::tuning::{LIKELY, Tuning, promising};
use crate::{CudaDevice, Resources};

/// Image sets in rotation, so that no set is in a cache when it is read again.
const SETS: usize = 4;
/// Bytes of shared memory that are added to a part until equally many blocks run at once.
const STEP: u32 = 1 << 10;

/// Measurements of a kernel, or of a part of it.
#[derive(Clone, Copy, Debug)]
pub struct KernelMeasurement {
    /// Median milliseconds of a launch.
    pub ms: f32,
    /// Its resources of a multiprocessor.
    pub resources: Resources,
    /// Fraction of a multiprocessor's threads that run at once.
    pub occupancy: f64,
}

/// A kernel and its parts, if it has them.
#[derive(Clone, Copy, Debug)]
pub struct KernelProfile {
    /// The kernel.
    pub whole: KernelMeasurement,
    /// [`KernelPart::Math`].
    pub math: Option<KernelMeasurement>,
    /// [`KernelPart::Memory`].
    pub memory: Option<KernelMeasurement>,
}

/// The images of a launch.
struct LaunchImages {
    inputs: Vec<Memory>,
    outputs: Vec<Memory>,
}

impl CudaDevice {
    /// Measures `repeats` launches of a kernel on random pixels, and equally many of each of its parts, which run as
    /// few threads of a multiprocessor at once as the kernel. `None` for a copy.
    ///
    /// # Errors
    /// If a kernel cannot be generated, compiled or run, or there is too little memory.
    pub fn profile(&mut self, launched: &RecordedLaunch, repeats: usize) -> Result<Option<KernelProfile>, DeviceError> {
        if launched.is_copy() {
            return Ok(None);
        }
        let mut sets = self.images(launched, SETS)?;
        let profiled = self.profiled(launched, &mut sets, repeats);
        self.set_part(None);
        profiled.map(Some)
    }

    /// The fastest other launch shape for a kernel that took `whole`, and its time, if it is faster by a fiftieth.
    ///
    /// # Errors
    /// Errors of the driver, and too little memory. Shapes that exceed a multiprocessor are skipped.
    pub fn faster(
        &mut self,
        launched: &RecordedLaunch,
        whole: KernelMeasurement,
        repeats: usize,
    ) -> Result<Option<(Tuning, KernelMeasurement)>, DeviceError> {
        /// Shapes that are compiled and measured.
        const TRIED: usize = 2 * LIKELY;
        const GAIN: f32 = 0.98;
        if !matches!(launched.kernel, Kernel::Map(_)) {
            return Ok(None);
        }
        let RecordedLaunch { kernel, inputs, output, rows } = launched;
        let dtype = inputs.first().map_or(output.dtype, |g| g.dtype);
        let mut tunings = promising(kernel, dtype, self.arch());
        tunings.truncate(TRIED);
        let shapes = &Shapes { inputs, output: *output, rows: *rows };
        std::thread::scope(|scope| {
            for tuning in &tunings {
                let this = &*self;
                // A shape that fails is compiled again, and skipped, when it is measured.
                scope.spawn(move || this.compile_ahead(kernel, shapes, tuning));
            }
        });
        let mut sets = self.images(launched, SETS)?;
        let mut best: Option<(Tuning, KernelMeasurement)> = None;
        for tuning in tunings {
            self.set_tuning(Some(tuning));
            if let Ok(timed) = self.measured(launched, &mut sets, repeats)
                && timed.ms < best.map_or(GAIN * whole.ms, |(_, best)| best.ms)
            {
                best = Some((tuning, timed));
            }
        }
        self.set_tuning(None);
        Ok(best)
    }

    /// Launches a kernel once on random pixels between `cuProfilerStart` and `cuProfilerStop`, so that a profiler that
    /// waits for them records nothing else. Returns the number of GPU kernels launched, 0 for a copy.
    ///
    /// # Errors
    /// If a kernel cannot be generated, compiled or run, or there is too little memory.
    pub fn launch_for_profiler(&self, launched: &RecordedLaunch) -> Result<usize, DeviceError> {
        if launched.is_copy() {
            return Ok(0);
        }
        let sets = &mut self.images(launched, 1)?;
        // The first launch compiles and copies tables.
        self.launch_on(launched, &mut sets[0])?;
        self.synchronize()?;
        let before = self.statistics().kernels;
        profiler(true)?;
        self.launch_on(launched, &mut sets[0])?;
        self.synchronize()?;
        profiler(false)?;
        Ok(self.statistics().kernels - before)
    }

    fn profiled(
        &mut self,
        launched: &RecordedLaunch,
        sets: &mut [LaunchImages],
        repeats: usize,
    ) -> Result<KernelProfile, DeviceError> {
        let whole = self.measured(launched, sets, repeats)?;
        if !matches!(launched.kernel, Kernel::Map(_)) {
            return Ok(KernelProfile { whole, math: None, memory: None });
        }
        let mut parts = [None; 2];
        for (timed, part) in parts.iter_mut().zip([KernelPart::Math, KernelPart::Memory]) {
            let mut shared = whole.resources.shared;
            self.set_part(Some((part, shared)));
            // Fewer registers would let more blocks run at once, which would hide latencies that the kernel has.
            while self.resources_of(launched)?.resident > whole.resources.resident
                && shared + STEP <= self.limits().shared as u32
            {
                shared += STEP;
                self.set_part(Some((part, shared)));
            }
            *timed = Some(self.measured(launched, sets, repeats)?);
        }
        let [math, memory] = parts;
        Ok(KernelProfile { whole, math, memory })
    }

    fn resources_of(&self, launched: &RecordedLaunch) -> Result<Resources, DeviceError> {
        let RecordedLaunch { kernel, inputs, output, rows } = launched;
        self.resources(kernel, &Shapes { inputs, output: *output, rows: *rows })
    }

    fn measured(
        &self,
        launched: &RecordedLaunch,
        sets: &mut [LaunchImages],
        repeats: usize,
    ) -> Result<KernelMeasurement, DeviceError> {
        const WARM: usize = 3;
        let resources = self.resources_of(launched)?;
        let occupancy =
            f64::from(resources.resident * resources.threads) / f64::from(self.multiprocessor()?.threads.max(1));
        self.start_timing();
        for i in 0..repeats.max(1) + WARM {
            let at = i % sets.len();
            self.launch_on(launched, &mut sets[at])?;
        }
        let mut times = self.stop_timing()?.0.split_off(WARM);
        times.sort_by(f32::total_cmp);
        Ok(KernelMeasurement { ms: times[times.len() / 2], resources, occupancy })
    }

    fn launch_on(&self, launched: &RecordedLaunch, images: &mut LaunchImages) -> Result<(), DeviceError> {
        let geometries = launched.inputs.iter();
        let inputs: Vec<LaunchInput<'_>> =
            images.inputs.iter().zip(geometries).map(|(memory, &geometry)| LaunchInput { memory, geometry }).collect();
        let mut outputs = images.outputs.iter_mut();
        let Some(output) = outputs.next() else { return Ok(()) };
        let more: &mut [&mut Memory] = &mut outputs.collect::<Vec<_>>();
        let RecordedLaunch { kernel, output: geometry, rows, .. } = launched;
        self.launch(Launch {
            kernel,
            inputs: &inputs,
            output,
            additional_outputs: more,
            geometry: *geometry,
            rows: *rows,
        })
    }

    /// Random images for launches: as many sets as fit into half of the free memory, but at most `most`.
    fn images(&self, launched: &RecordedLaunch, most: usize) -> Result<Vec<LaunchImages>, DeviceError> {
        let outputs: Vec<Geometry> =
            std::iter::once(launched.output).chain(more_geometries(&launched.kernel, launched.output)).collect();
        let bytes: usize = launched.inputs.iter().chain(&outputs).map(Geometry::bytes).sum();
        let room = self.free_memory()?.0 / 2;
        let mut sets: Vec<LaunchImages> = Vec::new();
        for _ in 0..(room / bytes.max(1)).clamp(1, most) {
            let mut inputs = Vec::new();
            for (i, geometry) in launched.inputs.iter().enumerate() {
                let mut memory = self.allocate(geometry.bytes())?;
                match sets.first() {
                    Some(first) => {
                        self.copy(&first.inputs[i], &mut memory, &[StridedCopy::run(0, 0, geometry.bytes())])?;
                    }
                    None => self.write(&noise(*geometry), &mut memory, 0)?,
                }
                inputs.push(memory);
            }
            let outputs = outputs.iter().map(|g| self.allocate(g.bytes())).collect::<Result<_, _>>()?;
            sets.push(LaunchImages { inputs, outputs });
        }
        Ok(sets)
    }
}
