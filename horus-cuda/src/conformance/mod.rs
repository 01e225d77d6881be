//! A representative set of launches, data for them, and their evaluation on the host.
//!
//! The same cases are compiled by NVRTC without a GPU, run by the host emulation of the kernels, and run on a GPU by
//! `horus-cuda-check`.

mod cases;
mod host;
mod recorder;

pub use cases::{
    Case, cases, conv2d, convrot, convrot_default, correlate, over, pixel_chain, product, rotate, separable,
    turned_back,
};
pub use host::{HostImage, bytes_of, evaluate};
pub use recorder::{Launched, Launches, Recorder};

use horus_core::device::Geometry;
use horus_core::dtype::{DType, Scalar};

impl HostImage {
    /// Repeatable floats of any size and sign, subnormal ones, infinities and NaNs, each beside others like it: whole
    /// rows of moderate size, too.
    pub fn wild(geometry: Geometry, seed: u64) -> HostImage {
        let mut image = HostImage::random(geometry, seed);
        for (i, v) in image.bytes.chunks_exact_mut(4).enumerate() {
            let noise = (i as u64).wrapping_add(seed << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let bits = ((noise ^ (noise >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) as u32;
            let moderate = (bits & 0x807f_ffff) | (96 + (bits >> 23) % 63) << 23;
            v.copy_from_slice(
                &if (i / geometry.shape.width).is_multiple_of(2) { bits } else { moderate }.to_ne_bytes(),
            );
        }
        image
    }

    /// Repeatable data of every kind: small and large values, zeros of both signs, and for floats infinities' absence,
    /// so that sums stay comparable to the bit.
    pub fn random(geometry: Geometry, seed: u64) -> HostImage {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state >> 33
        };
        let count = geometry.plane() * geometry.shape.channels;
        let bytes = (0..count)
            .flat_map(|_| {
                let n = next();
                let v = match n % 23 {
                    0 => 0.0,
                    1 => -0.0,
                    2 => 1e6,
                    _ => (n as f64 / (1u64 << 31) as f64 - 0.3) * if geometry.dtype.is_float() { 2.0 } else { 300.0 },
                };
                bytes_of(Scalar::from_f64(geometry.dtype, v))
            })
            .collect();
        HostImage { geometry, bytes }
    }

    /// The first pixel in which two images of one geometry differ: index, ours, theirs. NaNs are equal, since the
    /// payload of a computed NaN is the processor's.
    pub fn difference(&self, other: &HostImage) -> Option<(usize, String, String)> {
        let size = self.geometry.dtype.size();
        let show = |b: &[u8]| match self.geometry.dtype {
            DType::F32 => {
                let v = f32::from_ne_bytes(b.try_into().unwrap_or_default());
                (v.is_nan(), format!("{v:e} ({:#x})", v.to_bits()))
            }
            DType::F64 => {
                let v = f64::from_ne_bytes(b.try_into().unwrap_or_default());
                (v.is_nan(), format!("{v:e} ({:#x})", v.to_bits()))
            }
            _ => (false, format!("{b:?}")),
        };
        self.bytes.chunks(size).zip(other.bytes.chunks(size)).enumerate().filter(|(_, (a, b))| a != b).find_map(
            |(i, (a, b))| {
                let ((nan_a, a), (nan_b, b)) = (show(a), show(b));
                (!(nan_a && nan_b)).then_some((i, a, b))
            },
        )
    }
}
