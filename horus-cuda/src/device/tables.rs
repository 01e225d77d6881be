//! Device copies of tables that kernels read, such as taps, keyed by content.

use std::collections::HashMap;
use std::sync::Arc;

use horus_core::error::DeviceError;

use crate::cache::hash;
use crate::memory::{Core, CudaMemory};
use crate::transfers::GpuTransfers;

/// Most tables on the device; when there are more, or too little memory, all are dropped.
const MOST: usize = 512;

/// The key of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct TableKey(u128);

impl TableKey {
    pub(crate) fn of(bytes: &[u8]) -> TableKey {
        TableKey(hash(&[bytes]))
    }
}

/// Tables on the device.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<TableKey, Arc<CudaMemory>>);

impl Tables {
    /// The device copy of a program's table, if it has one.
    pub(super) fn get(
        &mut self,
        (key, bytes): (TableKey, &[u8]),
        core: &Arc<Core>,
        transfers: &GpuTransfers,
    ) -> Result<Option<Arc<CudaMemory>>, DeviceError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        if let Some(t) = self.0.get(&key) {
            return Ok(Some(Arc::clone(t)));
        }
        if self.0.len() >= MOST {
            self.clear();
        }
        let memory = match core.allocate(bytes.len()) {
            Err(DeviceError::OutOfMemory { .. }) => {
                self.clear();
                core.allocate(bytes.len())?
            }
            other => other?,
        };
        // SAFETY: the new block has as many bytes, and is freed in the order of the stream.
        unsafe { transfers.upload(bytes, memory.address()) }?;
        let memory = Arc::new(memory);
        self.0.insert(key, Arc::clone(&memory));
        Ok(Some(memory))
    }

    /// Returns `true` if there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Drops all tables.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
