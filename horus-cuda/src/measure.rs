//! Timing of kernels with CUDA events, and the search for the fastest tuning, for `horus-cuda-bench` and `horus-tune`.

use std::time::{Duration, Instant};

use horus_core::device::{Device, Geometry, Launch, LaunchInput, Memory};
use horus_core::dtype::DType;
use horus_core::error::{DeviceError, Error};
use horus_core::host::StridedCopy;
use horus_core::ir::kernel::Kernel;
use horus_core::shape::{Shape, Window};

use crate::codegen::Shapes;
use crate::tuning::{Tuning, lookup, promising};
use crate::{CudaDevice, Resources};

/// Shape of the measured images.
pub const SHAPE: Shape = Shape::new(4096, 4096, 1);
/// Image sets in rotation: 4 x 64 MiB and more do not fit any L2 cache.
const SETS: usize = 4;

/// A kernel over images of [`SHAPE`].
#[derive(Clone, Debug)]
pub struct TimedKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// Number of inputs, at most 3.
    pub inputs: usize,
    /// Geometry of its output.
    pub output: Geometry,
}

/// A tuning and its measurements.
#[derive(Clone, Copy, Debug)]
pub struct TuningMeasurement {
    /// Median milliseconds.
    pub ms: f32,
    /// The tuning.
    pub tuning: Tuning,
    /// Registers per thread.
    pub registers: i32,
    /// Bytes of spills per thread.
    pub spills: i32,
    /// Bytes of shared memory per block.
    pub shared: u32,
}

/// Makes and drops a context on a GPU: the least time of any process that uses one.
///
/// # Errors
/// [`Error::Config`] if there is no such GPU, or it cannot be used.
pub fn context(ordinal: usize) -> Result<(), Error> {
    CudaDevice::count()?;
    crate::driver::CudaContext::new(ordinal).map(drop).map_err(|e| Error::Config(e.to_string()))
}

/// The geometry of a whole image of `shape`.
pub fn whole(shape: Shape, dtype: DType) -> Geometry {
    Geometry { shape, dtype, window: Window::whole(shape.height) }
}

/// A GPU with images to measure on.
#[derive(Debug)]
pub struct KernelBench {
    device: CudaDevice,
    sets: Vec<Vec<Memory>>,
    geometry: Geometry,
}

impl KernelBench {
    /// Opens a GPU and fills images of `dtype` with random pixels.
    ///
    /// # Errors
    /// If there is no usable GPU, or it has too little memory.
    pub fn new(ordinal: usize, dtype: DType) -> Result<KernelBench, Error> {
        let device = CudaDevice::open(ordinal, None)?;
        let geometry = whole(SHAPE, dtype);
        let sets = KernelBench::images(&device, geometry).map_err(|source| Error::Device {
            op: "preparing the images of a benchmark".into(),
            device: device.names().name,
            source,
        })?;
        Ok(KernelBench { device, sets, geometry })
    }

    fn images(device: &CudaDevice, geometry: Geometry) -> Result<Vec<Vec<Memory>>, DeviceError> {
        let bytes = geometry.bytes();
        let mut sets: Vec<Vec<Memory>> = Vec::new();
        for _ in 0..SETS {
            let mut memories: Vec<Memory> = Vec::new();
            for _ in 0..4 {
                let mut m = device.allocate(bytes)?;
                // One upload of random data; the others are copies.
                match sets.first().map_or(memories.first(), |s| Some(&s[0])) {
                    Some(first) => device.copy(first, &mut m, &[StridedCopy::run(0, 0, bytes)])?,
                    None => device.write(&noise(geometry), &mut m, 0)?,
                }
                memories.push(m);
            }
            sets.push(memories);
        }
        Ok(sets)
    }

    /// The GPU.
    pub fn device(&self) -> &CudaDevice {
        &self.device
    }

    fn launch(&mut self, work: &TimedKernel, set: usize) -> Result<(), DeviceError> {
        let geometry = self.geometry;
        let (inputs, output) = self.sets[set % SETS].split_at_mut(3);
        let inputs: Vec<LaunchInput<'_>> =
            inputs.iter().take(work.inputs).map(|memory| LaunchInput { memory, geometry }).collect();
        let rows = Window::whole(work.output.shape.height);
        let (kernel, output) = (&work.kernel, &mut output[0]);
        self.device.launch(Launch {
            kernel,
            inputs: &inputs,
            output,
            additional_outputs: &mut [],
            geometry: work.output,
            rows,
        })
    }

    /// Median milliseconds of `repeats` launches.
    ///
    /// # Errors
    /// If the kernel cannot be generated, compiled or run.
    pub fn time(&mut self, work: &TimedKernel, repeats: usize) -> Result<f32, DeviceError> {
        let warm = 2.min(repeats);
        self.device.start_timing();
        for i in 0..repeats + warm {
            self.launch(work, i)?;
        }
        let mut times = self.device.stop_timing()?.0.split_off(warm);
        times.sort_by(f32::total_cmp);
        Ok(times[times.len() / 2])
    }

    /// The output of a launch.
    fn output(&mut self, work: &TimedKernel) -> Result<Vec<u8>, DeviceError> {
        self.launch(work, 0)?;
        let mut bytes = vec![0; work.output.bytes()];
        self.device.read(&self.sets[0][3], 0, &mut bytes)?;
        Ok(bytes)
    }

    /// Measures the present tuning, then up to `others` candidates until `limit` has passed. Returns the present tuning
    /// at index 0, then the fastest first. With `check`, a candidate whose output differs from the present tuning's in
    /// a single bit is an error: a defect of the generator.
    ///
    /// # Errors
    /// If the present tuning cannot be run, or if `check` finds a difference.
    pub fn search(
        &mut self,
        work: &TimedKernel,
        others: &[Tuning],
        limit: Duration,
        check: bool,
    ) -> Result<(TuningMeasurement, Vec<TuningMeasurement>), DeviceError> {
        self.device.set_tuning(None);
        let present = self.measure(work, self.present(work))?;
        let expected = if check { self.output(work)? } else { Vec::new() };
        let start = Instant::now();
        let mut found = vec![present];
        // Compilations run in parallel, measurements alone.
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        for batch in others.chunks(threads) {
            if start.elapsed() > limit {
                break;
            }
            self.compile(work, batch);
            for &tuning in batch {
                // Skips a candidate that needs more registers or shared memory than the GPU has.
                let Ok(measured) = self.measure(work, tuning) else { continue };
                if check && self.output(work)? != expected {
                    return Err(DeviceError::Internal(format!("{tuning:?} changes the result")));
                }
                found.push(measured);
            }
        }
        self.device.set_tuning(None);
        found.sort_by(|a, b| a.ms.total_cmp(&b.ms));
        Ok((present, found))
    }

    /// The tuning that a program would use.
    pub fn present(&self, work: &TimedKernel) -> Tuning {
        lookup(&work.kernel, self.geometry.dtype, self.device.arch())
    }

    /// The tunings worth measuring besides the present one: the likeliest, then others spread over the whole space.
    pub fn candidates(&self, work: &TimedKernel) -> Vec<Tuning> {
        promising(&work.kernel, self.geometry.dtype, self.device.arch())
    }

    /// Compiles candidates in parallel. Those that fail are compiled again, and skipped, when they
    /// are measured.
    fn compile(&self, work: &TimedKernel, tunings: &[Tuning]) {
        let inputs = vec![self.geometry; work.inputs];
        let rows = Window::whole(work.output.shape.height);
        let shapes = &Shapes { inputs: &inputs, output: work.output, rows };
        std::thread::scope(|s| {
            for tuning in tunings {
                s.spawn(move || self.device.compile_ahead(&work.kernel, shapes, tuning));
            }
        });
    }

    fn measure(&mut self, work: &TimedKernel, tuning: Tuning) -> Result<TuningMeasurement, DeviceError> {
        self.device.set_tuning(Some(tuning));
        let inputs = vec![self.geometry; work.inputs];
        let rows = Window::whole(work.output.shape.height);
        let shapes = Shapes { inputs: &inputs, output: work.output, rows };
        let Resources { registers, spills, shared, .. } = self.device.resources(&work.kernel, &shapes)?;
        self.time(work, 3)?;
        Ok(TuningMeasurement { ms: self.time(work, 15)?, tuning, registers, spills, shared })
    }
}

/// Repeatable pixels between -0.5 and 0.5, or over the lower half of an integer type's bytes.
pub fn noise(geometry: Geometry) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut bytes = Vec::with_capacity(geometry.bytes());
    while bytes.len() < geometry.bytes() {
        let n = next();
        let unit = f64::from(n) / f64::from(u32::MAX >> 1) - 0.5;
        match geometry.dtype {
            DType::F32 => bytes.extend((unit as f32).to_ne_bytes()),
            DType::F64 => bytes.extend(unit.to_ne_bytes()),
            _ => bytes.push((n & 0x7f) as u8),
        }
    }
    bytes
}
