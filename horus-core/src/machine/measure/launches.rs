//! Launches: the smallest launch, copies within the device's memory, kernels of all families.

use crate::ops::Whole;
use std::time::Instant;

use super::fit::{efficiency, median};
use super::{MeasurementEffort, kernels, timed};
use crate::device::{Device, Geometry, Launch, LaunchInput, Memory, PreparedLaunch};
use crate::dtype::DType;
use crate::error::DeviceError;
use crate::host::StridedCopy;
use crate::ir::kernel::{Family, ImageExtent, Kernel, KernelWork};
use crate::machine::{MachineProfile, Rates};
use crate::shape::{Shape, Window};

/// Maximum number of launches timed together.
const MANY: usize = 512;

/// A kernel with images to launch it on.
struct LaunchBench<'a> {
    kernel: &'a Kernel,
    inputs: Vec<Geometry>,
    output: Geometry,
    memory: Memory,
    rows: Window,
}

fn whole(shape: Shape, dtype: DType) -> Geometry {
    Geometry { shape, dtype, window: Window::whole(shape.height) }
}

/// The announcement of a launch of `kernel`, for compilation.
fn announced(kernel: &Kernel, shape: Shape, dtype: DType) -> PreparedLaunch<'_> {
    let read = match kernel {
        Kernel::Map(m) => m.chains.first().and_then(|c| c.leaves.first()).map_or(dtype, |l| l.dtype),
        _ => dtype,
    };
    let (count, out) = match kernel {
        Kernel::Map(m) => (m.inputs, whole(shape, dtype)),
        Kernel::Whole(Whole::RowReduce(r)) => (1, whole(Shape { width: r.columns(), ..shape }, r.result(dtype))),
        Kernel::Whole(Whole::Histogram(how)) => (1, whole(Shape { height: 1, width: how.bins, ..shape }, DType::F64)),
        Kernel::Whole(Whole::Transpose(_)) => {
            (1, whole(Shape { height: shape.width, width: shape.height, ..shape }, dtype))
        }
        _ => (1, whole(shape, dtype)),
    };
    let rows = if kernel.goes_over_input() { Window::whole(shape.height) } else { out.window };
    PreparedLaunch { kernel, inputs: vec![whole(shape, read); count], output: out, rows }
}

impl<'a> LaunchBench<'a> {
    fn new(
        device: &dyn Device,
        kernel: &'a Kernel,
        shape: Shape,
        dtype: DType,
    ) -> Result<LaunchBench<'a>, DeviceError> {
        let ahead = announced(kernel, shape, dtype);
        device.prepare(std::slice::from_ref(&ahead))?;
        let PreparedLaunch { inputs, output, rows, .. } = ahead;
        Ok(LaunchBench { kernel, inputs, output, memory: device.allocate(output.bytes())?, rows })
    }

    fn launch(&mut self, device: &dyn Device, images: &[Memory]) -> Result<(), DeviceError> {
        let inputs: Vec<LaunchInput<'_>> =
            self.inputs.iter().zip(images).map(|(g, memory)| LaunchInput { memory, geometry: *g }).collect();
        let LaunchBench { kernel, output, memory, rows, .. } = self;
        device.launch(Launch {
            kernel,
            inputs: &inputs,
            output: memory,
            additional_outputs: &mut [],
            geometry: *output,
            rows: *rows,
        })
    }

    fn work(&self) -> KernelWork {
        let inputs: Vec<ImageExtent> = self.inputs.iter().map(|g| (g.shape, g.dtype)).collect();
        self.kernel.work(&inputs, (self.output.shape, self.output.dtype), self.rows)
    }

    /// Seconds per launch, among many.
    fn seconds(
        &mut self,
        device: &dyn Device,
        images: &[Memory],
        effort: MeasurementEffort,
    ) -> Result<f64, DeviceError> {
        let mut several = |n: usize| -> Result<f64, DeviceError> {
            let start = Instant::now();
            (0..n).try_for_each(|_| self.launch(device, images))?;
            device.synchronize()?;
            Ok(start.elapsed().as_secs_f64())
        };
        several(1)?;
        let first = several(1)?.max(1e-9);
        if first > effort.run {
            return Ok(first.min(several(1)?).max(1e-9));
        }
        let n = ((effort.run / first) as usize).clamp(2, MANY);
        let times = (0..effort.runs).map(|_| several(n)).collect::<Result<Vec<f64>, _>>()?;
        // The wait at the end is not part of a launch.
        let (all, half) = (median(times).unwrap_or_default(), several(n / 2)?);
        let each = (all - half) / (n - n / 2) as f64;
        Ok(if each > 0.5 * all / n as f64 { each } else { all / n as f64 })
    }
}

/// Images of reproducible noise in `0..1`.
fn noise(device: &dyn Device, shape: Shape, dtype: DType, count: usize) -> Result<Vec<Memory>, DeviceError> {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    let pixels = shape.len();
    let mut bytes = Vec::with_capacity(pixels * dtype.size());
    for _ in 0..pixels {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
        let value = (state >> 40) as f32 / 16_777_216.0;
        match dtype {
            DType::F64 => bytes.extend(f64::from(value).to_ne_bytes()),
            _ => bytes.extend(value.to_ne_bytes()),
        }
    }
    let one = |_| {
        let mut memory = device.allocate(bytes.len())?;
        match &mut memory {
            Memory::Host(buffer) => buffer.bytes_mut().copy_from_slice(&bytes),
            separate @ Memory::Device(_) => device.write(&bytes, separate, 0)?,
        }
        Ok(memory)
    };
    (0..count).map(one).collect()
}

/// Measures copies within the device's memory, by total bytes.
pub(super) fn memory(
    device: &dyn Device,
    effort: MeasurementEffort,
    profile: &mut MachineProfile,
) -> Result<(), DeviceError> {
    let mut rates = Vec::new();
    let most = device.memory().capacity().map_or(effort.bytes * 4, |c| (c / 4).min(effort.bytes * 8));
    for bytes in [1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 2 << 30usize] {
        if bytes > most {
            break;
        }
        let (from, mut to) = (device.allocate(bytes)?, device.allocate(bytes)?);
        let piece = [StridedCopy::run(0, 0, bytes)];
        let mut several = |n: usize| {
            timed(effort.runs, || {
                (0..n).try_for_each(|_| device.copy(&from, &mut to, &piece))?;
                device.synchronize()
            })
        };
        // The difference excludes the wait. Where launches are slower than copies, the copies are
        // long enough to hide them.
        let (few, many) = (2, if bytes < 64 << 20 { 34 } else { 6 });
        let seconds = (several(many)? - several(few)?) / (many - few) as f64 - profile.launch.device;
        if seconds > 0.0 {
            rates.push((2.0 * bytes as f64, 2.0 * bytes as f64 / seconds));
        }
    }
    // Bytes that are copied repeatedly stay in a GPU's L2 cache, but kernels find it filled with
    // other data.
    if !device.memory().is_unified()
        && let Some(&(_, beyond)) = rates.last()
    {
        rates.iter_mut().for_each(|(_, rate)| *rate = rate.min(beyond));
    }
    if !rates.is_empty() {
        profile.memory = Rates(rates);
    }
    Ok(())
}

/// Measures the smallest launches: the host's time, and the device's time between dependent
/// launches.
pub(super) fn empty(
    device: &dyn Device,
    effort: MeasurementEffort,
    profile: &mut MachineProfile,
) -> Result<(), DeviceError> {
    const LAUNCHES: usize = 64;
    let (dtype, tiny, large) = (DType::F32, Shape::new(16, 16, 1), Shape::new(effort.side, effort.side, 1));
    let (small, filter) = (kernels::smallest(dtype), kernels::arithmetic(dtype));
    let (mut small, mut filter) =
        (LaunchBench::new(device, &small, tiny, dtype)?, LaunchBench::new(device, &filter, large, dtype)?);
    let (pixels, images) = (noise(device, tiny, dtype, 1)?, noise(device, large, dtype, 1)?);
    let (mut calls, mut gaps) = (Vec::new(), Vec::new());
    let long = filter.seconds(device, &images, effort)?;
    for run in 0..=effort.runs {
        // Launches queue up behind a long kernel, which hides the host's time.
        let separate = !device.memory().is_unified();
        let ahead = if separate { (1e-3 / long).ceil().clamp(1.0, 64.0) as usize } else { 0 };
        let begun = Instant::now();
        (0..ahead).try_for_each(|_| filter.launch(device, &images))?;
        let start = Instant::now();
        (0..LAUNCHES).try_for_each(|_| small.launch(device, &pixels))?;
        let call = start.elapsed().as_secs_f64() / LAUNCHES as f64;
        device.synchronize()?;
        let all = begun.elapsed().as_secs_f64();
        if run > 0 {
            calls.push(call);
            gaps.push((all - ahead as f64 * long) / LAUNCHES as f64);
        }
    }
    let (call, gap) = (median(calls).unwrap_or_default(), median(gaps).unwrap_or_default());
    if device.memory().is_unified() {
        // The host computes within the call.
        (profile.launch.host, profile.launch.device) = (0.0, call);
    } else {
        (profile.launch.host, profile.launch.device) = (call, gap.clamp(0.5e-6, call.max(20e-6)));
    }
    Ok(())
}

/// Rows of a launch that leaves most of a GPU idle.
const FEW: usize = 16;

/// Measures multiply-adds in `f32` and `f64`, then the efficiency of each family.
pub(super) fn families(
    device: &dyn Device,
    effort: MeasurementEffort,
    profile: &mut MachineProfile,
) -> Result<(), DeviceError> {
    for dtype in [DType::F64, DType::F32] {
        let side = if dtype == DType::F64 { effort.side / 2 } else { effort.side };
        let shape = Shape::new(side, side, 1);
        let kernel = kernels::arithmetic(dtype);
        let mut bench = LaunchBench::new(device, &kernel, shape, dtype)?;
        let images = noise(device, shape, dtype, 1)?;
        let seconds = bench.seconds(device, &images, effort)?;
        let rate = bench.work().multiply_adds / seconds / profile.efficiency(Family::CorrelateLarge).arithmetic;
        if dtype == DType::F64 {
            profile.arithmetic.f64 = rate
        } else {
            profile.arithmetic.f32 = rate
        }
        if dtype == DType::F32 && !device.memory().is_unified() {
            // Few rows take as long as more, up to the number that fills the device.
            let strip = Shape::new(FEW, side, 1);
            let images = noise(device, strip, dtype, 1)?;
            let few = LaunchBench::new(device, &kernel, strip, dtype)?.seconds(device, &images, effort)?;
            let fixed = profile.launch.device;
            let fill = shape.len() as f64 * (few - fixed) / (seconds - fixed);
            profile.arithmetic.fill = if fill > strip.len() as f64 { fill } else { 0.0 };
        }
    }
    let (shape, dtype) = (Shape::new(effort.side, effort.side, 1), DType::F32);
    let images = noise(device, shape, dtype, 3)?;
    let mut measured: Vec<(KernelWork, f64)> = Vec::new();
    let kernels = kernels::all(shape, dtype);
    // Compiled together; failures are reported below.
    let ahead: Vec<PreparedLaunch<'_>> = kernels.iter().map(|k| announced(k, shape, dtype)).collect();
    if let Err(why) = device.prepare(&ahead) {
        log::debug!("kernels are made one by one: {why}");
    }
    for kernel in &kernels {
        match LaunchBench::new(device, kernel, shape, dtype)
            .and_then(|mut b| Ok((b.work(), b.seconds(device, &images, effort)?)))
        {
            Ok(found) => measured.push(found),
            Err(why) => crate::warn!("{} could not be measured: {why}", kernel.name()),
        }
    }
    for family in Family::ALL {
        let of: Vec<(KernelWork, f64)> = measured.iter().filter(|(w, _)| w.family == family).copied().collect();
        match efficiency(profile, family, &of) {
            Some(found) => {
                profile.families.insert(family, found);
            }
            None => crate::warn!("{} could not be measured and are assumed", family.name()),
        }
    }
    for (work, seconds) in &measured {
        let predicted = profile.launch(work).seconds;
        let (told, off) = (seconds * 1e3, (predicted / seconds - 1.0) * 100.0);
        log::debug!("{}: {told:.4} ms, predicted {:.4} ({off:+.0} %)", work.family.name(), predicted * 1e3);
    }
    Ok(())
}
