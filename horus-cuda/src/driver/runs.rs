//! Copies of equally long and equally spaced runs, such as the same rows of all planes, between page-locked memory and
//! a device: one driver call each.

use std::ffi::c_void;
use std::ptr;

use cudarc::driver::sys::{self, CUDA_MEMCPY2D, CUdeviceptr, CUmemorytype, CUstream};
use horus_core::error::DeviceError;

use super::check;

/// The largest distance between runs that the driver accepts.
const MAX_PITCH: usize = i32::MAX as usize;

/// Runs of equal length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StridedHostCopy {
    /// Byte offset of the first run in host memory and on the device.
    host: usize,
    device: usize,
    /// Bytes of one run.
    bytes: usize,
    count: usize,
    /// Distance between runs on the host and on the device.
    pitch: [usize; 2],
}

impl StridedHostCopy {
    /// Appends the next run if it continues the pattern; otherwise returns `false`.
    fn take(&mut self, host: usize, device: usize, bytes: usize) -> bool {
        let steps = (host.checked_sub(self.host), device.checked_sub(self.device));
        let (Some(on_host), Some(on_device)) = steps else { return false };
        if self.count == 1 {
            self.pitch = [on_host, on_device];
        }
        let far = [on_host, on_device] == self.pitch.map(|p| p * self.count);
        let apart = self.pitch.iter().all(|p| (bytes..=MAX_PITCH).contains(p));
        let follows = bytes == self.bytes && far && apart;
        self.count += usize::from(follows);
        follows
    }

    /// Begins to copy to the device.
    ///
    /// # Safety
    /// The runs must lie in live memory, page-locked at `host` and on the device at `device`, which
    /// nobody writes or frees before `stream` has passed the copy.
    pub(crate) unsafe fn upload(
        &self,
        host: *const c_void,
        device: CUdeviceptr,
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        let (from, to) = (host.wrapping_byte_add(self.host), device + self.device as u64);
        let code = if self.count == 1 {
            // SAFETY: the caller's promise.
            unsafe { sys::cuMemcpyHtoDAsync_v2(to, from, self.bytes, stream) }
        } else {
            let copy = CUDA_MEMCPY2D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                srcHost: from,
                srcPitch: self.pitch[0],
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                dstDevice: to,
                dstPitch: self.pitch[1],
                ..self.nowhere()
            };
            // SAFETY: the caller's promise; the driver has read the description when this returns.
            unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream) }
        };
        check(code, || format!("uploading {} x {} bytes", self.count, self.bytes))
    }

    /// Begins to copy to the host.
    ///
    /// # Safety
    /// As for [`StridedHostCopy::upload`]; nobody may read the host memory before `stream` has passed the copy.
    pub(crate) unsafe fn download(
        &self,
        device: CUdeviceptr,
        host: *mut c_void,
        stream: CUstream,
    ) -> Result<(), DeviceError> {
        let (from, to) = (device + self.device as u64, host.wrapping_byte_add(self.host));
        let code = if self.count == 1 {
            // SAFETY: the caller's promise.
            unsafe { sys::cuMemcpyDtoHAsync_v2(to, from, self.bytes, stream) }
        } else {
            let copy = CUDA_MEMCPY2D {
                srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
                srcDevice: from,
                srcPitch: self.pitch[1],
                dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
                dstHost: to,
                dstPitch: self.pitch[0],
                ..self.nowhere()
            };
            // SAFETY: the caller's promise; the driver has read the description when this returns.
            unsafe { sys::cuMemcpy2DAsync_v2(&copy, stream) }
        };
        check(code, || format!("downloading {} x {} bytes", self.count, self.bytes))
    }

    /// The description of a copy without its endpoints.
    fn nowhere(&self) -> CUDA_MEMCPY2D {
        CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: ptr::null(),
            srcDevice: 0,
            srcArray: ptr::null_mut(),
            srcPitch: 0,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
            dstHost: ptr::null_mut(),
            dstDevice: 0,
            dstArray: ptr::null_mut(),
            dstPitch: 0,
            WidthInBytes: self.bytes,
            Height: self.count,
        }
    }
}

/// Offset of a run in host memory and on the device, and its length.
pub(crate) type ContiguousHostCopy = (usize, usize, usize);

/// Groups runs into as few driver calls as possible.
pub(crate) fn grouped(runs: impl IntoIterator<Item = ContiguousHostCopy>) -> Vec<StridedHostCopy> {
    let mut all: Vec<StridedHostCopy> = Vec::new();
    for (host, device, bytes) in runs.into_iter().filter(|(.., bytes)| *bytes > 0) {
        if !all.last_mut().is_some_and(|last| last.take(host, device, bytes)) {
            all.push(StridedHostCopy { host, device, bytes, count: 1, pitch: [0; 2] });
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All copied bytes: source and target offsets.
    fn bytes(all: &[StridedHostCopy]) -> Vec<(usize, usize)> {
        let of = |r: StridedHostCopy, i: usize| {
            (0..r.bytes).map(move |b| (r.host + i * r.pitch[0] + b, r.device + i * r.pitch[1] + b))
        };
        all.iter().flat_map(|r| (0..r.count).flat_map(|i| of(*r, i)).collect::<Vec<_>>()).collect()
    }

    #[test]
    fn runs_in_step_are_one_copy_and_no_byte_is_lost() {
        let cases: [(&[ContiguousHostCopy], usize); 8] = [
            (&[], 0),
            (&[(3, 5, 7)], 1),
            // The same rows of each plane; the host's planes may be closer together.
            (&[(10, 110, 4), (20, 130, 4), (30, 150, 4)], 1),
            // Consecutive runs with an empty one between them.
            (&[(0, 0, 4), (4, 4, 4), (9, 9, 0), (8, 8, 4)], 1),
            // Different length, irregular spacing, backwards, overlapping.
            (&[(0, 0, 4), (10, 10, 4), (20, 20, 3)], 2),
            (&[(0, 0, 4), (10, 10, 4), (21, 20, 4), (31, 30, 4)], 2),
            (&[(10, 10, 4), (0, 20, 4)], 2),
            (&[(0, 0, 4), (2, 10, 4)], 2),
        ];
        for (runs, copies) in cases {
            let all = grouped(runs.iter().copied());
            assert_eq!(all.len(), copies, "{runs:?}");
            let want: Vec<_> = runs.iter().flat_map(|&(h, d, n)| (0..n).map(move |b| (h + b, d + b))).collect();
            assert_eq!(bytes(&all), want, "{runs:?}");
        }
        assert_eq!(grouped([(0, 0, 4), (MAX_PITCH + 1, 8, 4)]).len(), 2);
    }
}
