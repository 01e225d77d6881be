//! Copies of many pieces in one launch.

use horus_core::host::StridedCopy;
use horus_cuda_kernels::PIECES as SOURCE;

use crate::codegen::{Generated, Pointer};

/// Equals the constant of the kernel.
const THREADS: u32 = 256;
/// Equals the constant of the kernel.
const CHUNK: usize = 16384;
/// Blocks that share a piece, at most.
const SPLIT: usize = 256;

/// The program that copies `pieces`, which lie inside both, from its only input to its output.
pub fn program(pieces: &[StridedCopy]) -> Generated {
    let units = pieces.iter().map(|p| p.rows * p.bytes.div_ceil(CHUNK)).max().unwrap_or_default();
    let split = units.clamp(1, SPLIT);
    let mut params = vec![0; 24];
    params.extend_from_slice(&(split as u64).to_ne_bytes());
    let words = |p: &StridedCopy| [p.from, p.to, p.bytes, p.rows, p.from_stride, p.to_stride];
    let table = pieces.iter().flat_map(words).flat_map(|w| (w as u64).to_ne_bytes()).collect();
    Generated {
        source: SOURCE.to_owned(),
        params,
        pointers: vec![
            (0, Pointer::Input { index: 0, offset: 0 }),
            (8, Pointer::Output { offset: 0 }),
            (16, Pointer::Table),
        ],
        table,
        grid: [u32::try_from(pieces.len()).unwrap_or(u32::MAX), split as u32],
        block: THREADS,
        shared: 0,
        clear: false,
        early: false,
        cost: 0,
        sequence: None,
    }
}
