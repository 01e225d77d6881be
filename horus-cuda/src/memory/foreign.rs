//! Memory of other libraries on this GPU, and Horus's memory that they use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cudarc::driver::sys;
use horus_core::error::DeviceError;
use horus_core::host::external::DeviceArray;

use super::{Core, CudaMemory, GpuBlock};
use crate::driver::check;

impl Core {
    /// Makes later work of the stream wait for the present work of another library's stream.
    fn after_stream(&self, stream: u64) -> Result<(), DeviceError> {
        let now = self.now();
        now.record_in(stream as sys::CUstream)?;
        self.stream.after(&now)
    }

    /// Makes later work of other libraries' streams wait for the present work of the stream.
    fn before_streams(&self, streams: &[u64]) -> Result<(), DeviceError> {
        let now = self.now();
        now.record(&self.stream)?;
        streams.iter().try_for_each(|&stream| now.precedes(stream as sys::CUstream))
    }

    /// Adopts memory of another library, after the work that it must wait for. Memory that is not aligned to the
    /// vectors of kernels is copied.
    pub(crate) fn adopt(self: &Arc<Core>, array: &DeviceArray, copied: bool) -> Result<CudaMemory, DeviceError> {
        self.context.bind()?;
        let mut device: std::ffi::c_int = -1;
        let attribute = sys::CUpointer_attribute_enum::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL;
        // SAFETY: a pointer to a live integer, which is what the attribute is.
        let code = unsafe { sys::cuPointerGetAttribute((&raw mut device).cast(), attribute, array.address()) };
        check(code, || format!("looking for the GPU of memory at {:#x}", array.address()))?;
        if device != self.context.device {
            let text = format!("an array of GPU {device} was given to GPU {}", self.context.device);
            return Err(DeviceError::Argument(text));
        }
        if let Some(stream) = array.stream() {
            self.after_stream(stream)?;
        }
        let (core, owner, touched) = (Arc::clone(self), Some(Arc::clone(array.owner())), AtomicBool::new(true));
        let block = GpuBlock { core, at: array.address(), mapped: None, owner, touched };
        let adopted = CudaMemory { block: Arc::new(block), bytes: array.bytes() };
        let stream = array.stream().unwrap_or(DeviceArray::DEFAULT_STREAM);
        if !copied && array.address().is_multiple_of(VECTOR) {
            self.watched.fetch_or(!ordered_by_default(stream), Ordering::Relaxed);
            return Ok(adopted);
        }
        let copy = self.copy_of(&adopted)?;
        self.before_streams(&[stream])?;
        Ok(copy)
    }

    /// A copy in the GPU's memory.
    fn copy_of(self: &Arc<Core>, memory: &CudaMemory) -> Result<CudaMemory, DeviceError> {
        let copy = self.allocate(memory.bytes)?;
        // SAFETY: both blocks have as many bytes, and are held until the stream has passed the copy.
        let code = unsafe { sys::cuMemcpyDtoDAsync_v2(copy.address(), memory.address(), copy.bytes, self.stream.0) };
        check(code, || format!("copying memory at {:#x}", memory.address()))?;
        Ok(copy)
    }

    /// A block for another library, which is in the GPU's memory. Once `stream` has passed the launches so far, it may use the block, and it and the
    /// default stream may write the block's inputs; without a stream the launches have ended on return. Other streams
    /// of inputs may no longer exist and cannot wait: from the first of them on, every call waits for the launches. On
    /// return nothing owns the inputs any more.
    pub(crate) fn export_block(
        self: &Arc<Core>,
        memory: &CudaMemory,
        stream: Option<u64>,
    ) -> Result<DeviceArray, DeviceError> {
        self.context.bind()?;
        let copy = memory.host_buffer().map(|_| self.copy_of(memory)).transpose()?;
        let memory = copy.as_ref().unwrap_or(memory);
        let inputs = self.arrays();
        let ordered = match stream.filter(|_| !self.watched.load(Ordering::Relaxed)) {
            None => self.stream.synchronize(),
            Some(stream) if ordered_by_default(stream) => self.before_streams(&[DeviceArray::DEFAULT_STREAM]),
            Some(stream) => self.before_streams(&[DeviceArray::DEFAULT_STREAM, stream]),
        };
        if ordered.is_err() {
            self.retain_owner(Box::new(inputs));
        }
        ordered?;
        let lent = Arc::new(ExportedBlock(memory.block()));
        Ok(DeviceArray::ours(memory.address(), memory.bytes, stream, lent))
    }
}

/// Returns `true` for the default streams, of the process and of a thread, which wait for each other.
fn ordered_by_default(stream: u64) -> bool {
    stream <= 2
}

/// A block that other libraries may use in streams of their own.
struct ExportedBlock(Arc<GpuBlock>);

impl Drop for ExportedBlock {
    fn drop(&mut self) {
        // The memory is reused after their work in the default stream. The owner must wait for work in streams that do
        // not synchronise with the default stream before the release. An error here is an earlier one, which the next
        // call reports.
        let core = &self.0.core;
        if core.context.bind().is_ok() {
            let _ = core.after_stream(DeviceArray::DEFAULT_STREAM);
        }
    }
}

/// Alignment of the vectors that kernels read, in bytes.
const VECTOR: u64 = 16;
