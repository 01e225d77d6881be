//! Copies between pageable host memory and the device, through pinned buffers: while the GPU transfers one chunk, host
//! threads copy the next. One thread does not reach the speed of the bus.

use cudarc::driver::sys::{self, CUdeviceptr};
use horus_core::cpu::workers::Workers;
use horus_core::error::DeviceError;

use crate::driver::{Event, Pinned, Stream, check};

/// Buffers in flight.
const BUFFERS: usize = 4;
/// Bytes of a buffer.
const CHUNK: usize = 8 << 20;

#[derive(Debug)]
struct Buffer {
    memory: Pinned,
    /// Passed when the GPU is done with the buffer.
    free: Event,
}

/// The pinned buffers of a device.
#[derive(Debug, Default)]
pub(crate) struct Staging {
    buffers: Vec<Buffer>,
    next: usize,
}

impl Staging {
    /// The next buffer, free of transfers. Buffers are allocated as they are first needed.
    fn take(&mut self) -> Result<usize, DeviceError> {
        let i = self.next % BUFFERS;
        self.next += 1;
        if self.buffers.len() <= i {
            self.buffers.push(Buffer { memory: Pinned::new(CHUNK)?, free: Event::new(false)? });
        } else {
            self.buffers[i].free.wait()?;
        }
        Ok(i)
    }

    /// Copies `source` to the device; returns when `source` may change, the last chunks still on their way.
    pub(crate) fn upload(
        &mut self,
        workers: &Workers,
        stream: &Stream,
        source: &[u8],
        target: CUdeviceptr,
    ) -> Result<(), DeviceError> {
        for (k, chunk) in source.chunks(CHUNK).enumerate() {
            let i = self.take()?;
            let buffer = &mut self.buffers[i];
            workers.copy(chunk, &mut buffer.memory.bytes_mut()[..chunk.len()]);
            let at = target + (k * CHUNK) as u64;
            // SAFETY: the buffer is not touched before its event has passed; the caller gave room at `target`.
            let code =
                unsafe { sys::cuMemcpyHtoDAsync_v2(at, buffer.memory.bytes().as_ptr().cast(), chunk.len(), stream.0) };
            check(code, || format!("uploading {} bytes", source.len()))?;
            buffer.free.record(stream)?;
        }
        Ok(())
    }

    /// Copies from the device into `target`; returns when it is there.
    pub(crate) fn download(
        &mut self,
        workers: &Workers,
        stream: &Stream,
        source: CUdeviceptr,
        target: &mut [u8],
    ) -> Result<(), DeviceError> {
        let total = target.len();
        let mut flying: std::collections::VecDeque<(usize, &mut [u8])> = std::collections::VecDeque::new();
        for (k, chunk) in target.chunks_mut(CHUNK).enumerate() {
            if flying.len() == BUFFERS {
                self.land(workers, flying.pop_front())?;
            }
            let i = self.take()?;
            let buffer = &mut self.buffers[i];
            let at = source + (k * CHUNK) as u64;
            let to = buffer.memory.bytes_mut().as_mut_ptr().cast();
            // SAFETY: the buffer is not read before its event has passed; the source holds as many bytes.
            let code = unsafe { sys::cuMemcpyDtoHAsync_v2(to, at, chunk.len(), stream.0) };
            check(code, || format!("downloading {total} bytes"))?;
            buffer.free.record(stream)?;
            flying.push_back((i, chunk));
        }
        while !flying.is_empty() {
            self.land(workers, flying.pop_front())?;
        }
        Ok(())
    }

    fn land(&mut self, workers: &Workers, arrived: Option<(usize, &mut [u8])>) -> Result<(), DeviceError> {
        let Some((i, chunk)) = arrived else { return Ok(()) };
        self.buffers[i].free.wait()?;
        workers.copy(&self.buffers[i].memory.bytes()[..chunk.len()], chunk);
        Ok(())
    }
}
