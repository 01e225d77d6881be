//! Copies between host and device.

use std::sync::Arc;
use std::time::Instant;

use super::fit::{line, median};
use super::{MeasurementEffort, kernels, timed};
use crate::device::{Device, DownloadStart, Geometry, Launch, LaunchInput, Memory, PreparedLaunch};
use crate::dtype::DType;
use crate::error::DeviceError;
use crate::host::StridedCopy;
use crate::host::buffer::{HostBuffer, Pool};
use crate::ir::kernel::Kernel;
use crate::machine::{CopyTime, MachineProfile};
use crate::shape::{Shape, Window};

/// Width of the images that kernels copy.
const WIDTH: usize = 4096;

/// A copy of a number of bytes.
type Copy<'a> = dyn FnMut(usize) -> Result<(), DeviceError> + 'a;

/// Fits lines for both directions with page-locked memory, pageable memory, and kernels that access
/// host memory. Measures concurrent copies.
pub(super) fn measure(
    device: &dyn Device,
    effort: MeasurementEffort,
    profile: &mut MachineProfile,
) -> Result<(), DeviceError> {
    let pool = Pool::new(effort.bytes);
    let most = effort.bytes;
    let (pinned, mut pageable) = (locked(device, &pool, most)?, vec![1u8; most]);
    let staging = device.staging();
    let (mut there, back) = (staging.allocate_for_upload(most)?, device.allocate(most)?);
    let each = sizes(most).into_iter().map(|bytes| locked(device, &pool, bytes));
    let mut buffers: Vec<HostBuffer> = each.collect::<Result<_, DeviceError>>()?;
    let of = |bytes: usize| move |buffer: &HostBuffer| buffer.len() == bytes;
    let upload = |source: &HostBuffer, there: &mut Memory, bytes: usize| {
        let ticket = staging.begin_upload(source, there, &[StridedCopy::run(0, 0, bytes)])?;
        staging.wait_for_upload(ticket, there)
    };
    let up = |there: &mut Memory, bytes: usize| {
        let source = buffers.iter().find(|buffer| buffer.len() == bytes).unwrap_or(&pinned);
        upload(source, there, bytes)
    };
    profile.upload.pinned = lines(effort, device, &mut |bytes| up(&mut there, bytes))?.unwrap_or(profile.upload.pinned);
    let staged = lines(effort, device, &mut |bytes| device.write(&pageable[..bytes], &mut there, 0))?;
    profile.upload.staged = staged.unwrap_or(profile.upload.staged);
    let workers = device.workers();
    let held = |bytes: usize| staging.start_download(&back, 0..bytes, &pool, DownloadStart::WithTarget);
    let mut down = |bytes: usize| match buffers.iter().position(of(bytes)) {
        Some(i) => held(bytes)?.copy_into(&mut buffers[i], workers),
        None => Ok(()),
    };
    profile.download.pinned = lines(effort, device, &mut down)?.unwrap_or(profile.download.pinned);
    let staged = lines(effort, device, &mut |bytes| device.read(&back, 0, &mut pageable[..bytes]))?;
    profile.download.staged = staged.unwrap_or(profile.download.staged);
    // Both directions concurrently, relative to the slower one. The difference to longer copies
    // excludes the fixed cost of a copy.
    let mut concurrent = |bytes: usize| -> Result<[f64; 2], DeviceError> {
        let mut target = locked(device, &pool, bytes)?;
        let source = buffers.iter().find(|buffer| buffer.len() == bytes).unwrap_or(&pinned);
        let alone = timed(effort.runs, || upload(source, &mut there, bytes).and_then(|()| device.synchronize()))?;
        let alone = alone.max(timed(effort.runs, || held(bytes)?.copy_into(&mut target, workers))?);
        let both = timed(effort.runs, || {
            // An unfinished download does not wait for later uploads.
            let landing = held(bytes)?;
            upload(source, &mut there, bytes)?;
            landing.copy_into(&mut target, workers)?;
            device.synchronize()
        })?;
        Ok([both, alone])
    };
    let few = sizes(most).into_iter().rev().nth(1).map_or(Ok([0.0; 2]), &mut concurrent)?;
    let [both, alone] = concurrent(most)?;
    // Sequential copies take at most twice the time of the slower one.
    profile.both_ways = if alone > few[1] { ((both - few[0]) / (alone - few[1])).clamp(1.0, 2.0) } else { 1.0 };
    drop((there, back, buffers));
    mapped(device, effort, pinned, profile)
}

/// Lines of kernels that access the host's memory directly, if they can.
fn mapped(
    device: &dyn Device,
    effort: MeasurementEffort,
    pinned: HostBuffer,
    profile: &mut MachineProfile,
) -> Result<(), DeviceError> {
    let most = pinned.len();
    let Ok(host) = device.staging().map(pinned) else { return Ok(()) };
    let (mut host, there) = (host, device.allocate(most)?);
    let MachineProfile { upload, download, .. } = profile;
    let pixels = (kernels::smallest(DType::F32), [&mut upload.mapped, &mut download.mapped]);
    let tiles = (kernels::wide_filter(DType::F32), [&mut upload.tiled, &mut download.tiled]);
    for (kernel, lines) in [pixels, tiles] {
        over_bus(device, effort, &kernel, (&mut host, &there), lines)?;
    }
    Ok(())
}

/// The lines of a kernel that reads the host's memory, and of one that writes it.
fn over_bus(
    device: &dyn Device,
    effort: MeasurementEffort,
    kernel: &Kernel,
    (host, there): (&mut Memory, &Memory),
    lines: [&mut CopyTime; 2],
) -> Result<(), DeviceError> {
    let most = there.len();
    let few = 64 << 10;
    let mut points = [Vec::new(), Vec::new(), Vec::new()];
    for bytes in [few, most / 4, most] {
        let shape = Shape::new((bytes / WIDTH / size_of::<f32>()).max(1), WIDTH, 1);
        let geometry = Geometry { shape, dtype: DType::F32, window: Window::whole(shape.height) };
        let inputs = vec![geometry];
        device.prepare(&[PreparedLaunch { kernel, inputs, output: geometry, rows: geometry.window }])?;
        let run = |from: &Memory, to: &mut Memory| {
            timed(effort.runs, || {
                let inputs = [LaunchInput { memory: from, geometry }];
                device.launch(Launch {
                    kernel,
                    inputs: &inputs,
                    output: to,
                    additional_outputs: &mut [],
                    geometry,
                    rows: geometry.window,
                })?;
                device.synchronize()
            })
        };
        let mut other = device.allocate(geometry.bytes())?;
        points[0].push((geometry.bytes(), run(host, &mut other)?));
        points[1].push((geometry.bytes(), run(there, host)?));
        points[2].push((geometry.bytes(), run(there, &mut other)?));
    }
    // The time to wait for a launch is not part of the bus.
    let around = points[2][0].1;
    for (points, line_of) in points.iter().zip(lines) {
        if let Some(found) = line(points, 0.0) {
            *line_of = CopyTime { latency: (found.latency - around).max(0.0), ..found };
        }
    }
    Ok(())
}

/// Page-locked memory, if the device provides it. Its pages are touched, because they would
/// otherwise be allocated during the first copy.
fn locked(device: &dyn Device, pool: &Arc<Pool>, bytes: usize) -> Result<HostBuffer, DeviceError> {
    let staging = device.staging();
    let mut buffer = match staging.page_locked(bytes)? {
        Some(memory) => pool.try_adopt(memory, bytes)?,
        None => staging.allocate_read_ahead(bytes, pool)?,
    };
    buffer.bytes_mut().fill(1);
    Ok(buffer)
}

/// Ascending sizes.
fn sizes(most: usize) -> Vec<usize> {
    let all = [64, 64 << 10, 1 << 20, 16 << 20];
    all.into_iter().filter(|b| *b < most).chain([most]).collect()
}

/// The line of a copy, and the gap between consecutive copies; `None` if longer copies do not take
/// longer.
fn lines(effort: MeasurementEffort, device: &dyn Device, copy: &mut Copy<'_>) -> Result<Option<CopyTime>, DeviceError> {
    const IN_TURN: usize = 16;
    let mut points = Vec::new();
    for bytes in sizes(effort.bytes) {
        let seconds = timed(effort.runs, || copy(bytes).and_then(|()| device.synchronize()))?;
        points.push((bytes, seconds));
    }
    let mut calls = Vec::new();
    for _ in 0..effort.runs {
        let start = Instant::now();
        copy(points[0].0)?;
        calls.push(start.elapsed().as_secs_f64());
        device.synchronize()?;
    }
    let Some(line) = line(&points, median(calls).unwrap_or_default()) else { return Ok(None) };
    let piece = points[1.min(points.len() - 1)].0;
    let seconds = timed(effort.runs, || {
        (0..IN_TURN).try_for_each(|_| copy(piece))?;
        device.synchronize()
    })?;
    let gap = (seconds - line.time(IN_TURN * piece)) / (IN_TURN - 1) as f64;
    Ok(Some(CopyTime { gap: gap.max(0.0), ..line }))
}
