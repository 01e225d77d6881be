//! Kernels whose every leaf is the pixel itself, or one pixel that a whole plane shares (`kernels/pointwise.cuh`).
//!
//! Planes are read as lines of vectors, regardless of rows; samples of interleaved pixels are read one by one.

use horus_core::device::Geometry;
use horus_core::error::DeviceError;
use horus_core::ir::kernel::{FilterSource, InstrOp, Leaf, LeafOp, MapKernel};
use horus_core::ops::edge::WarpEdge;
use horus_core::ops::geometric::Interpolation;
use horus_core::shape::Border;

use super::cpp::{CppCall, Stmt, args, name, template, text};
use super::instructions::{Instructions, Leaves};
use super::params::KernelParams;
use super::planes::PlaneRead;
use super::schedule::LEVELS;
use super::{Generated, POINTWISE, PRELUDE, Pointer, Shapes};
use super::{assemble, blocks, defect, entry, first_row, outputs};
use crate::tuning::Tuning;

/// Most bytes of an image that a thread reads. Operations whose values take as many registers as an image count as
/// images: `state` of 42x1024x1024 `f64` takes .88 ms with 4 pixels per thread, 1.23 with 16; a copy .203 and .223
/// (H200).
const BYTES: usize = 64;
const CODE: usize = 8;

/// Reads leaves for `rows` vectors of `cols` elements per thread.
struct VectorReader<'a> {
    kernel: &'a MapKernel,
    /// Samples of the pixels of each input.
    samples: Vec<usize>,
    params: KernelParams,
    threads: usize,
    extents: (usize, usize),
}

impl Leaves for VectorReader<'_> {
    fn params(&mut self) -> &mut KernelParams {
        &mut self.params
    }

    fn read(&mut self, l: usize, out: &mut Vec<Stmt>) -> Result<String, DeviceError> {
        let leaf = &self.kernel.leaves[l];
        let read = match &leaf.op {
            LeafOp::LoadPlane(_, map) => PlaneRead::new(map, leaf.dtype, &l.to_string(), &mut self.params, out),
            _ => PlaneRead { plane: name("plane"), outside: None },
        };
        let FilterSource::Input(i) = leaf.source() else {
            return Err(defect("a pixel operation reads pixels of no image"));
        };
        let ((rows, cols), array) = (self.extents, format!("l{l}"));
        if is_shared(leaf) {
            let pixel = name(format_args!("p.in{i}[(i64)plane * p.plane{i}]"));
            out.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![rows, cols] });
            out.push(Stmt::fill((rows, cols), &array, pixel));
            return Ok(array);
        }
        if self.samples[i] > 1 {
            let samples = self.samples[i];
            let from = args![format!("p.in{i}"), read.plane.clone(), format!("p.plane{i}"), "block"];
            let from = CppCall::new("hs_sample", template![samples], from);
            out.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![rows, cols] });
            let args = args![from, "lane", "vectors", "left", array.as_str()];
            let load = CppCall::new("hs_load_samples", template![self.threads, samples], args);
            out.push(read.guarded((rows, cols), &array, load.into()));
            return Ok(array);
        }
        let from = name(format_args!("p.in{i}")) + read.plane.clone() * format!("p.plane{i}") + "block";
        out.push(Stmt::Array { dtype: leaf.dtype, name: array.clone(), extents: vec![rows, cols] });
        let args = args![from, "lane", "vectors", "left", array.as_str()];
        let load = CppCall::new("hs_load_pixels", template![self.threads], args);
        out.push(read.guarded((rows, cols), &array, load.into()));
        Ok(array)
    }
}

/// Returns true for kernels that can be generated here.
pub(super) fn serves(kernel: &MapKernel) -> bool {
    // Lines of vectors do not know their rows.
    let itself = |l: &Leaf| matches!(l.op, LeafOp::Load(_) | LeafOp::LoadPlane(..));
    !kernel.has_index() && kernel.leaves.iter().all(|l| itself(l) || is_shared(l))
}

/// Returns true if a leaf is the only pixel of an input, or of each of its planes.
fn is_shared(leaf: &Leaf) -> bool {
    matches!(leaf.op, LeafOp::Warp(_, map, Interpolation::Nearest, WarpEdge::Border(Border::Replicate)) if map.broadcast() == Some([true, true]))
}

pub(super) fn generate(kernel: &MapKernel, shapes: &Shapes<'_>, tuning: &Tuning) -> Result<Generated, DeviceError> {
    let out = shapes.output;
    let width = out.shape.width;
    let offset = |g: &Geometry| g.row(0, shapes.rows.start) * g.dtype.size();
    let stored = outputs(kernel, out, offset);
    let shared = |i: usize| kernel.leaves.iter().any(|l| is_shared(l) && l.source() == FilterSource::Input(i));
    let inputs = || shapes.inputs.iter().enumerate().filter(|(i, _)| !shared(*i)).map(|(_, g)| g);
    let largest = inputs().chain(stored.iter().map(|(_, g, _)| g)).map(|g| g.dtype.size());
    let largest = largest.max().unwrap_or(1);
    // Vectors of at least 4 elements keep narrow types busy next to wide ones. Long functions are inlined for each
    // pixel of a thread; more pixels would take seconds to compile.
    let long = kernel.code.iter().any(|i| matches!(i.op, InstrOp::Pixel(op) if op.is_transcendental()));
    let few = if kernel.code.len() > 8 * CODE { 2 } else { 4 };
    let (threads, cols) = (tuning.bx * tuning.by, if long { 4 } else { (16 / largest).max(few) });
    // Threads find pixels that threads of other levels read in the first-level cache.
    let planes = out.shape.planes();
    let across = kernel.leaves.iter().any(|l| matches!(&l.op, LeafOp::LoadPlane(_, map) if map.step != 0));
    let levels = if across && planes >= LEVELS && threads.is_multiple_of(32 * LEVELS) { LEVELS } else { 1 };
    let threads = threads / levels;
    // All reads are in registers at once, as are the values of a long code.
    let read = kernel.leaves.iter().filter(|l| !is_shared(l)).count();
    let held = read.max(kernel.code.len() / CODE).max(1);
    let rows = if long { 1 } else { tuning.rows.min(8 / held).min(BYTES / (cols * largest)).max(1) };
    let count = shapes.rows.len() * width;

    let mut params = KernelParams::default();
    let begins_aligned = |g: &Geometry| {
        let plane = if out.shape.planes() == 1 { 0 } else { g.plane() * g.dtype.size() };
        offset(g).is_multiple_of(16) && plane.is_multiple_of(16)
    };
    // Single samples need not be aligned.
    let apart = |g: &&Geometry| g.shape.samples == 1;
    let mut aligned = stored.iter().map(|(_, g, _)| g).chain(inputs()).filter(apart).all(begins_aligned);
    for (name, g, pointer) in &stored {
        params.pointer(g.dtype.name(), name, *pointer);
    }
    params.long("out_plane", out.plane() as i64);
    params.long("count", count as i64);
    for (i, g) in shapes.inputs.iter().enumerate() {
        params.pointer(
            &format!("const {}", g.dtype.name()),
            &format!("in{i}"),
            if shared(i) {
                first_row(i, g, kernel.readable(i, g.window, g.shape.height))
            } else {
                Pointer::Input { index: i, offset: offset(g) }
            },
        );
        params.long(&format!("plane{i}"), g.plane() as i64);
        // Another plane of an input may begin anywhere.
        let fixed = kernel.leaves.iter().any(|l| matches!(l.op, LeafOp::LoadPlane(j, _) if j == i));
        aligned &= !fixed || g.shape.samples > 1 || (g.plane() * g.dtype.size()).is_multiple_of(16);
    }
    params.int("aligned", aligned as isize);

    let samples = shapes.inputs.iter().map(|g| g.shape.samples).collect();
    let mut reader = VectorReader { kernel, samples, params, threads, extents: (rows, cols) };
    let mut body = Vec::new();
    let mut code = Instructions::new(kernel, rows, cols);
    // All reads come first, so that they overlap.
    for l in code.order() {
        let array = reader.read(l, &mut body)?;
        code.define(l, &array);
    }
    code.advance(&mut body, &mut reader, &vec![true; kernel.leaves.len()])?;
    let mut params = reader.params;
    let results = code.results(&mut body, &mut params)?;
    let woven = if kernel.woven { results.len() } else { 0 };
    for (k, result) in results.iter().take(woven).enumerate() {
        let to = name("p.out") + name("plane") * "p.out_plane" + name("block") * woven + k;
        let args = args![to, "lane", "vectors", "left", result.as_str()];
        body.push(CppCall::new("hs_store_samples", template![threads, woven], args).into());
    }
    for ((member, ..), result) in stored.iter().zip(results).filter(|_| woven == 0) {
        let to = name(format_args!("p.{member}")) + name("plane") * "p.out_plane" + "block";
        body.push(
            CppCall::new("hs_store_pixels", template![threads], args![to, "lane", "vectors", "left", result]).into(),
        );
    }
    let (lane, plane) = match levels {
        1 => ("threadIdx.x".to_owned(), "blockIdx.y;".to_owned()),
        n => {
            params.int("planes", planes.cast_signed());
            let at =
                format!("(int)blockIdx.y * {n} + (int)threadIdx.x / {threads};\n    if (plane >= p.planes) return;");
            (format!("threadIdx.x % {threads}"), at)
        }
    };
    let s = format!(
        "    const int lane = {lane}, plane = {plane}\n    \
         const i64 block = (i64)blockIdx.x * {};\n    \
         const i64 left = p.count - block;\n    \
         const bool vectors = p.aligned && left >= {0};\n{}",
        threads * rows * cols,
        text(&body),
    );
    let (declaration, bytes, pointers) = params.finish();
    Ok(Generated {
        source: assemble(&[PRELUDE, POINTWISE], &declaration, &entry(threads * levels, &s)),
        params: bytes,
        pointers,
        table: Vec::new(),
        grid: [
            blocks(count.div_ceil(threads * rows * cols), "a pixel kernel")?,
            blocks(planes.div_ceil(levels), "planes")?,
        ],
        block: (threads * levels) as u32,
        shared: 0,
        clear: false,
        early: false,
        cost: 0,
        sequence: None,
    })
}
