//! Copies between host and device.

use std::sync::Arc;
use std::time::Instant;

use super::fit::{line, median};
use super::{Effort, timed};
use crate::device::{Device, Memory};
use crate::error::DeviceError;
use crate::host::Piece;
use crate::host::buffer::{HostBuffer, Pool};
use crate::machine::profile::{Line, Profile};

/// A copy of so many bytes.
type Copy<'a> = dyn FnMut(usize) -> Result<(), DeviceError> + 'a;

/// Lines of both directions for page-locked and pageable memory, and what both at once take. Copies by kernels (mapped memory) keep
/// their assumed lines.
pub(super) fn measure(device: &dyn Device, effort: Effort, profile: &mut Profile) -> Result<(), DeviceError> {
    let pool = Pool::new(effort.bytes);
    let most = effort.bytes;
    let (pinned, mut pageable) = (locked(device, &pool, most)?, vec![1u8; most]);
    let (mut there, back) = (device.allocate_for_upload(most)?, device.allocate(most)?);
    let each = sizes(most).into_iter().map(|bytes| locked(device, &pool, bytes));
    let mut buffers: Vec<HostBuffer> = each.collect::<Result<_, DeviceError>>()?;
    let of = |bytes: usize| move |buffer: &HostBuffer| buffer.len() == bytes;
    let upload = |source: &HostBuffer, there: &mut Memory, bytes: usize| {
        let ticket = device.begin_upload(source, there, &[Piece::run(0, 0, bytes)])?;
        device.arrive(ticket, &mut [there])
    };
    let up = |there: &mut Memory, bytes: usize| {
        let source = buffers.iter().find(|buffer| buffer.len() == bytes).unwrap_or(&pinned);
        upload(source, there, bytes)
    };
    profile.upload.pinned = lines(effort, device, &mut |bytes| up(&mut there, bytes))?.unwrap_or(profile.upload.pinned);
    let staged = lines(effort, device, &mut |bytes| device.write(&pageable[..bytes], &mut there, 0))?;
    profile.upload.staged = staged.unwrap_or(profile.upload.staged);
    let workers = device.workers();
    let mut down = |bytes: usize| match buffers.iter().position(of(bytes)) {
        Some(i) => device.hold(&back, 0, bytes, &pool)?.land_in(&mut buffers[i], workers),
        None => Ok(()),
    };
    profile.download.pinned = lines(effort, device, &mut down)?.unwrap_or(profile.download.pinned);
    let staged = lines(effort, device, &mut |bytes| device.read(&back, 0, &mut pageable[..bytes]))?;
    profile.download.staged = staged.unwrap_or(profile.download.staged);
    // Both ways at once, against the slower of them alone.
    let alone = timed(effort.runs, || upload(&pinned, &mut there, most).and_then(|()| device.synchronize()))?;
    let alone = alone.max(timed(effort.runs, || down(most))?);
    let both = timed(effort.runs, || {
        upload(&pinned, &mut there, most)?;
        down(most)?;
        device.synchronize()
    })?;
    profile.both_ways = (both / alone).max(1.0);
    Ok(())
}

/// Page-locked memory, if the device has any. Its pages are touched: they would otherwise be made in the middle of the first
/// copy.
fn locked(device: &dyn Device, pool: &Arc<Pool>, bytes: usize) -> Result<HostBuffer, DeviceError> {
    let mut buffer = match device.page_locked(bytes)? {
        Some(memory) => pool.try_adopt_uncounted(memory, bytes)?,
        None => device.room(bytes, pool)?,
    };
    buffer.bytes_mut().fill(1);
    Ok(buffer)
}

/// Few bytes, then more and more.
fn sizes(most: usize) -> Vec<usize> {
    let all = [64, 64 << 10, 1 << 20, 16 << 20];
    all.into_iter().filter(|b| *b < most).chain([most]).collect()
}

/// The line of a copy and the gap between copies in turn; none if longer copies do not take longer.
fn lines(effort: Effort, device: &dyn Device, copy: &mut Copy<'_>) -> Result<Option<Line>, DeviceError> {
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
    Ok(Some(Line { gap: gap.max(0.0), ..line }))
}
