//! Pixel operations over tiles: executes the instructions of a compiled kernel on the storage of its operands and
//! results.

use std::ops::Range;

use super::correlate::{GROUP, TapPositions, TileFilterBank};
use super::pixels::{self, RunOperand};
use super::plane::{ExpressionInput, wrapped_row};
use super::simd::Isa;
use super::tile_code::{MappedPlane, TileCode, TileInstruction, ValueStorage};
use super::versions::moved;
use super::whole::interleave;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::{Axis, Shape, Window};
use horus_base::{dispatch, dispatch_float};
use horus_host::buffer::HostBuffer;
use horus_host::device::Geometry;
use horus_plan::ir::kernel::InstrOp;
use horus_plan::ops::neighbourhood::FilterLayout;

/// The rows and columns of a plane to compute, scratch for intermediates, and the output.
#[derive(Clone, Debug)]
pub(super) struct EvaluationTile {
    pub(super) rows: Window,
    pub(super) cols: Range<usize>,
    pub(super) channel: usize,
    /// Storage of the program's slots.
    pub(super) slots: *mut u8,
    /// Address of the first pixel of the first result, and its row stride in elements.
    pub(super) out: *mut u8,
    pub(super) stride: usize,
}

/// Storage of a result after the first.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExtraOutput {
    pub(super) bytes: *mut u8,
    pub(super) geometry: Geometry,
}

/// A program and its inputs.
#[derive(Clone, Copy)]
pub(super) struct Expression<'a> {
    pub(super) schedule: &'a TileCode,
    pub(super) inputs: &'a [ExpressionInput<'a>],
    /// Storage of the results after the first.
    pub(super) extra_outputs: &'a [ExtraOutput],
    /// The shape of the image.
    pub(super) shape: Shape,
    pub(super) slot_bytes: usize,
    pub(super) isa: Isa,
}

/// Bytes of a slot for tiles of `pixels` pixels.
pub(super) fn slot_bytes(schedule: &TileCode, pixels: usize) -> usize {
    (pixels * schedule.element).next_multiple_of(64) + 192
}

impl Expression<'_> {
    /// First address of a value of type `dtype` in the tile, and its row stride in elements (0 for a constant).
    pub(super) fn resolve(&self, place: ValueStorage, dtype: DType, at: &EvaluationTile) -> (*mut u8, Option<usize>) {
        match place {
            ValueStorage::Slot(s) => (at.slots.wrapping_add(s * self.slot_bytes), Some(at.cols.len())),
            ValueStorage::Constant(c) => (self.schedule.constants[c].bytes().as_ptr().cast_mut(), None),
            ValueStorage::Level(l) => {
                let MappedPlane { input, map, outside } = self.schedule.levels[l];
                let place =
                    map.at(at.channel).map_or(ValueStorage::Constant(outside), |p| ValueStorage::Plane(input, Some(p)));
                self.resolve(place, dtype, at)
            }
            ValueStorage::Plane(i, c) => {
                let ExpressionInput { memory, geometry, rows, .. } = &self.inputs[i];
                let bytes = memory.host().map_or(&[][..], HostBuffer::bytes);
                // Some inputs of a chain may have a wrapped row beyond the image in memory, others the row that it
                // copies.
                let y = at.rows.start;
                let y = wrapped_row(y, geometry.shape.height, *rows);
                let element = geometry.row(c.unwrap_or(at.channel), y) + at.cols.start;
                (bytes[element * dtype.size()..].as_ptr().cast_mut(), Some(geometry.shape.width))
            }
            ValueStorage::Output(0) => (at.out, Some(at.stride)),
            ValueStorage::Output(k) => {
                let ExtraOutput { bytes, geometry } = self.extra_outputs[k - 1];
                let element = geometry.row(at.channel, at.rows.start) + at.cols.start;
                (bytes.wrapping_add(element * dtype.size()), Some(at.stride))
            }
        }
    }

    /// Writes the pixels of an input with a single row or column (or both, as in `still`), which repeats.
    pub(super) fn repeat(
        &self,
        (input, still, dtype): (usize, [bool; 2], DType),
        target: ValueStorage,
        at: &EvaluationTile,
    ) {
        let (out, stride) = self.resolve(target, dtype, at);
        let (stride, n) = (stride.unwrap_or(0), at.cols.len());
        let ExpressionInput { memory, geometry, rows, samples } = &self.inputs[input];
        dispatch!(dtype, T => {
            let all = memory.host().map_or(&[][..], HostBuffer::as_slice::<T>);
            for (r, y) in (at.rows.start..at.rows.end).enumerate() {
                let y = wrapped_row(if still[0] { 0 } else { y }, geometry.shape.height, *rows);
                let from = &all[geometry.row(at.channel, y)..];
                let first = out.cast::<T>().wrapping_add(r * stride);
                // SAFETY: a row of the tile, in a free slot or in the output; nothing else refers to it now.
                let row = unsafe { std::slice::from_raw_parts_mut(first, n) };
                match (still[1], samples) {
                    (false, _) => row.copy_from_slice(&from[at.cols.clone()]),
                    (true, 1) => row.fill(from[0]),
                    (true, _) => row.iter_mut().zip(at.cols.clone()).for_each(|(v, x)| *v = from[x % samples]),
                }
            }
        });
    }

    /// The interleaved pixels of an input in a row of the tile, from its first column on.
    fn samples<T: Pixel>(&self, input: usize, plane: usize, at: &EvaluationTile) -> &[T] {
        let ExpressionInput { memory, geometry, rows, samples } = &self.inputs[input];
        debug_assert!(at.rows.len() == 1, "pixel operations go along one row");
        let y = wrapped_row(at.rows.start, geometry.shape.height, *rows);
        let all = memory.host().map_or(&[][..], HostBuffer::as_slice::<T>);
        &all[geometry.row(plane, y) + at.cols.start * samples..][..at.cols.len() * samples]
    }

    /// The storage of a row of the tile.
    ///
    /// # Safety
    /// The storage is a free slot or the output, and nothing else refers to it now.
    #[expect(clippy::mut_from_ref, reason = "places are not part of the expression")]
    unsafe fn written<T: Pixel>(&self, target: ValueStorage, dtype: DType, at: &EvaluationTile) -> &mut [T] {
        // SAFETY: promised by the caller; the storage is as large as the tile.
        unsafe { std::slice::from_raw_parts_mut(self.resolve(target, dtype, at).0.cast(), at.cols.len()) }
    }

    /// Writes all samples of a plane of interleaved pixels.
    pub(super) fn split(
        &self,
        (input, plane, dtype): (usize, usize, DType),
        targets: &[ValueStorage],
        at: &EvaluationTile,
    ) {
        moved!(dtype, T => {
            // SAFETY: each is another free slot, or the output.
            let mut to: Vec<&mut [T]> = targets.iter().map(|t| unsafe { self.written(*t, dtype, at) }).collect();
            interleave::split(self.samples(input, plane, at), &mut to);
        });
    }

    /// Writes one sample of interleaved pixels.
    pub(super) fn sample(&self, (level, dtype): (usize, DType), target: ValueStorage, at: &EvaluationTile) {
        let MappedPlane { input, map, outside } = self.schedule.levels[level];
        moved!(dtype, T => {
            // SAFETY: a free slot, or the output.
            let to: &mut [T] = unsafe { self.written(target, dtype, at) };
            match map.at(at.channel) {
                Some(plane) => {
                    let samples = self.inputs[input].samples;
                    let from = self.samples(input, plane / samples, at);
                    interleave::pick(&from[plane % samples..], samples, to);
                }
                None => to.fill(self.schedule.constants[outside].as_slice::<T>()[0]),
            }
        });
    }

    /// Interleaves samples to pixels.
    pub(super) fn join(&self, dtype: DType, samples: &[ValueStorage], target: ValueStorage, at: &EvaluationTile) {
        let (n, count) = (at.cols.len(), samples.len());
        moved!(dtype, T => {
            let out = self.resolve(target, dtype, at).0.cast::<T>();
            // SAFETY: the output is as large as the pixels of the tile, and is no input.
            let to = unsafe { std::slice::from_raw_parts_mut(out, n * count) };
            let run = |place: &ValueStorage| {
                let (first, apart) = self.resolve(*place, dtype, at);
                // SAFETY: a row of the tile, or a constant, of which one element is read.
                unsafe { std::slice::from_raw_parts(first.cast_const().cast::<T>(), if apart.is_some() { n } else { 1 }) }
            };
            let from: Vec<&[T]> = samples.iter().map(run).collect();
            if n == 1 || from.iter().all(|samples| samples.len() > 1) {
                interleave::join(&from, to);
                return;
            }
            for (c, samples) in from.iter().enumerate() {
                let to = to[c..].iter_mut().step_by(count);
                if let [constant] = samples { to.for_each(|to| *to = *constant) } else { to.zip(*samples).for_each(|(to, from)| *to = *from) }
            }
        });
    }

    /// Writes the coordinates of a tile's pixels along an axis.
    pub(super) fn index(&self, axis: Axis, dtype: DType, target: ValueStorage, at: &EvaluationTile) {
        let (out, stride) = self.resolve(target, dtype, at);
        let (stride, n) = (stride.unwrap_or(0), at.cols.len());
        dispatch!(dtype, T => {
            for (r, y) in (at.rows.start..at.rows.end).enumerate() {
                let first = out.cast::<T>().wrapping_add(r * stride);
                // SAFETY: a row of the tile, in a free slot or in the output; nothing else refers to it now.
                let row = unsafe { std::slice::from_raw_parts_mut(first, n) };
                match axis {
                    // A row beyond the image is a copy of another.
                    Axis::Rows => row.fill(T::from_f64(y.rem_euclid(self.shape.height.cast_signed()) as f64)),
                    Axis::Columns => row.iter_mut().zip(at.cols.clone()).for_each(|(v, x)| *v = T::from_f64(x as f64)),
                    Axis::Channels => row.fill(T::from_f64((at.channel % self.shape.channels) as f64)),
                    Axis::Depth => row.fill(T::from_f64((at.channel / self.shape.channels) as f64)),
                }
            }
        });
    }

    /// Runs one instruction.
    pub(super) fn run(
        &self,
        op: InstrOp,
        (operand, result): (DType, DType),
        args: &[ValueStorage],
        target: ValueStorage,
        at: &EvaluationTile,
    ) {
        let (out, stride) = self.resolve(target, result, at);
        let stride = stride.unwrap_or(0);
        let mut operands = [RunOperand { at: out, constant: true }; 3];
        let mut steps = [0; 3];
        let mut packed = stride == at.cols.len();
        for (i, place) in args.iter().enumerate() {
            let dtype = match op {
                InstrOp::Pixel(op) => op.operand(i, operand),
                InstrOp::Convert(_) => operand,
            };
            let (first, apart) = self.resolve(*place, dtype, at);
            operands[i] = RunOperand { at: first, constant: apart.is_none() };
            steps[i] = apart.unwrap_or(0) * dtype.size();
            packed &= apart.is_none_or(|s| s == at.cols.len());
        }
        let (lines, n) = if packed { (1, at.rows.len() * at.cols.len()) } else { (at.rows.len(), at.cols.len()) };
        for y in 0..lines {
            let mut line = operands;
            line.iter_mut().zip(steps).for_each(|(o, s)| o.at = o.at.wrapping_add(y * s));
            let out = out.wrapping_add(y * stride * result.size());
            // SAFETY: operands and results are rows of the tile, in inputs (the rows are in memory), slots and the
            // output, typed by the schedule; a slot is free when it is written, and the output is no input.
            unsafe {
                match op {
                    InstrOp::Pixel(op) => pixels::apply(op, operand, self.isa, &line, out, n),
                    InstrOp::Convert(rule) => pixels::convert(rule, operand, result, self.isa, &line, out, n),
                }
            }
        }
    }

    /// Runs filters of one geometry over the rows of `table`, in which the tile starts `along` columns after the reach.
    pub(super) fn group(
        &self,
        g: usize,
        step: &TileInstruction,
        at: &EvaluationTile,
        table: &[*const u8],
        along: usize,
    ) {
        let group = &self.schedule.groups[g];
        let layout = match group.layout {
            FilterLayout::Dense { height, width, .. } => TapPositions::Dense { height, width },
            FilterLayout::Sparse(_) => TapPositions::Sparse(&group.offsets),
        };
        macro_rules! out {
            ($t:ty, $dtype:expr) => {{
                let mut out = [(std::ptr::null_mut::<$t>(), 0); GROUP];
                for (o, target) in out.iter_mut().zip(&step.targets) {
                    let (first, stride) = self.resolve(*target, $dtype, at);
                    *o = (first.cast(), stride.unwrap_or(0));
                }
                out
            }};
        }
        macro_rules! bank {
            ($t:ty, $out:expr) => {
                TileFilterBank {
                    layout,
                    samples: self.schedule.samples,
                    weights: group.weights.as_slice::<$t>(),
                    start: group.start.as_slice::<$t>(),
                    // SAFETY: pointers to any element type are alike.
                    rows: unsafe { std::slice::from_raw_parts(table.as_ptr().cast::<*const $t>(), table.len()) },
                    along,
                    out: &$out[..step.targets.len()],
                    height: at.rows.len(),
                    width: at.cols.len(),
                }
            };
        }
        if let Some(dot) = group.dot {
            let out = out!(i32, DType::F32);
            let bank = bank!(i32, out);
            // SAFETY: as below; the feed has quads, and the machine has the instructions.
            return unsafe { bank.run_bytes(dot) };
        }
        let dtype = self.schedule.feeds[group.feed].dtype;
        dispatch_float!(dtype, T => {
            let out = out!(T, dtype);
            if group.moved {
                let (down, right) = group.offsets[0];
                for (r, row) in table[down..].iter().take(at.rows.len()).enumerate() {
                    let (from, to) = (row.cast::<T>().wrapping_add(along + right), out[0].0.wrapping_add(r * out[0].1));
                    // SAFETY: the source row and the target do not overlap, as below.
                    unsafe { std::ptr::copy_nonoverlapping(from, to, at.cols.len()) }
                }
                return;
            }
            let bank = bank!(T, out);
            // SAFETY: the table has the rows from the reach above the tile to the reach below, from the feed, which
            // contains the chunk's columns and their reach; the targets are free slots and the output.
            unsafe { bank.run(self.isa) }
        });
    }
}
