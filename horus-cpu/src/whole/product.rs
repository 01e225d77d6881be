//! Matrix products.
//!
//! Columns of the second factor are packed, some terms at a time, into panels of two vectors. One panel stays in the
//! innermost cache while all rows of the first factor are multiplied by it, with the sums of a few rows in registers.
//! Each sum adds its terms in their order.

use super::{CpuOperation, OperationOutput, TypedInput, each_chunk, out, view};
use crate::simd::{Isa, Simd, Vector};
use crate::versions::{by_vectors, for_each_isa};
use horus_base::dispatch_float;
use horus_base::dtype::Pixel;
use horus_base::error::DeviceError;
use horus_host::device::{LaunchInput, Memory};
use horus_plan::ops::MatrixProduct;

impl CpuOperation for MatrixProduct {
    fn run(&self, inputs: &[LaunchInput<'_>], output: &mut Memory, to: &OperationOutput) -> Result<(), DeviceError> {
        dispatch_float!(to.geometry.dtype, T => product(view::<T>(inputs, 0)?, view(inputs, 1)?, out(output)?, to));
        Ok(())
    }
}

/// Terms of a panel: as many as fit the innermost cache, with two vectors each.
const DEEP: usize = 256;
/// Columns computed together: a few rows of them stay in the next cache while terms are added.
const WIDE: usize = 512;
/// Rows whose sums are in registers: with two vectors each, and a pair of factors, 15 of 16.
const TALL: usize = 6;
/// Multiply-adds of a task for another thread.
const GRAIN: usize = 1 << 18;
/// Parts of the work for each thread, so that threads that end early take parts of others.
const CHUNKS: usize = 4;

/// Computes the requested rows of a product.
fn product<T: Simd>(a: TypedInput<'_, T>, b: TypedInput<'_, T>, out: &mut [T], to: &OperationOutput) {
    let OperationOutput { geometry, rows, threads, isa } = *to;
    let (width, terms) = (geometry.shape.width, a.geometry.shape.width);
    if rows.is_empty() || geometry.shape.is_empty() {
        return;
    }
    let least = GRAIN / (width * terms).min(GRAIN);
    let tall = rows.len().div_ceil(CHUNKS * threads).max(least).next_multiple_of(TALL);
    for p in 0..geometry.shape.planes() {
        let from = &a.data[a.geometry.row(p, rows.start)..][..rows.len() * terms];
        let by = &b.data[b.geometry.row(p, 0)..][..terms * width];
        let to = &mut out[geometry.row(p, rows.start)..][..rows.len() * width];
        each_chunk(threads, to, tall * width, |k, to| {
            let from = &from[k * tall * terms..][..to.len() / width * terms];
            multiply(isa, from, by, width, to);
        });
    }
}

for_each_isa! {
    /// `from` times `by`, which has `width` columns.
    fn multiply[T: Simd][T](from: &[T], by: &[T], width: usize, to: &mut [T]) as multiply_body
}

#[inline(always)]
fn multiply_body<T: Simd>(isa: Isa, from: &[T], by: &[T], width: usize, to: &mut [T]) {
    by_vectors!(isa, T, multiply_by(from, by, width, to));
}

/// # Safety
/// The machine has the instruction set.
#[inline(always)]
unsafe fn multiply_by<V: Vector>(from: &[V::Elem], by: &[V::Elem], width: usize, to: &mut [V::Elem]) {
    let (terms, across) = (by.len() / width, 2 * V::LANES);
    let mut packed = vec![V::Elem::ZERO; DEEP.min(terms) * across];
    for left in (0..width).step_by(WIDE) {
        let columns = left..width.min(left + WIDE);
        for first in (0..terms).step_by(DEEP) {
            let deep = DEEP.min(terms - first);
            let panel = &mut packed[..deep * across];
            for x in columns.clone().step_by(across) {
                let n = across.min(width - x);
                for (line, k) in panel.chunks_exact_mut(across).zip(first..) {
                    line[..n].copy_from_slice(&by[k * width + x..][..n]);
                }
                for (top, to) in to.chunks_mut(TALL * width).enumerate() {
                    let from = &from[top * TALL * terms..];
                    // The last row replaces missing ones.
                    let last = to.len() / width - 1;
                    let mut lines = [from; TALL];
                    for (i, line) in lines.iter_mut().enumerate() {
                        *line = &from[i.min(last) * terms + first..][..deep];
                    }
                    // SAFETY: promised by the caller.
                    unsafe { add::<V>(&lines, panel, &mut to[x..], width, (last + 1, n), first == 0) }
                }
            }
        }
    }
}

/// Adds the products of `lines` and `panel` to the first `rows` rows and `n` columns of `to`, or stores them if they
/// are the first terms.
///
/// # Safety
/// The machine has the instruction set.
#[inline(always)]
unsafe fn add<V: Vector>(
    lines: &[&[V::Elem]; TALL],
    panel: &[V::Elem],
    to: &mut [V::Elem],
    width: usize,
    (rows, n): (usize, usize),
    begin: bool,
) {
    let across = 2 * V::LANES;
    // SAFETY: promised by the caller.
    let mut sums = [[unsafe { V::splat(V::Elem::ZERO) }; 2]; TALL];
    // Vectors of AVX-512.
    let mut edge = [V::Elem::ZERO; 2 * 16];
    if !begin {
        for (sums, to) in sums.iter_mut().zip(to.chunks(width)).take(rows) {
            edge[..n].copy_from_slice(&to[..n]);
            // SAFETY: `edge` has two vectors.
            *sums = unsafe { [V::load(edge.as_ptr()), V::load(edge[V::LANES..].as_ptr())] };
        }
    }
    for (k, pair) in panel.chunks_exact(across).enumerate() {
        // SAFETY: a pair has two vectors.
        let pair = unsafe { [V::load(pair.as_ptr()), V::load(pair[V::LANES..].as_ptr())] };
        for (sums, line) in sums.iter_mut().zip(lines) {
            // SAFETY: a line has as many terms as the panel.
            let factor = unsafe { V::splat(*line.get_unchecked(k)) };
            for (sum, v) in sums.iter_mut().zip(pair) {
                // SAFETY: promised by the caller.
                *sum = unsafe { factor.fma(v, *sum) };
            }
        }
    }
    for (sums, to) in sums.iter().zip(to.chunks_mut(width)).take(rows) {
        // SAFETY: `edge` has two vectors.
        unsafe {
            sums[0].store(edge.as_mut_ptr());
            sums[1].store(edge[V::LANES..].as_mut_ptr());
        }
        to[..n].copy_from_slice(&edge[..n]);
    }
}
