//! Pixel operations over tiles: the instructions of a compiled kernel, from the places where operands live to the places
//! where results go.

use std::ops::Range;

use super::pixels::{self, Lanes};
use super::plane::Rows;
use super::schedule::{Level, Place, Schedule, Task};
use super::simd::Isa;
use crate::device::{Geometry, LaunchInput};
use crate::dispatch;
use crate::dtype::{DType, Pixel};
use crate::host::buffer::HostBuffer;
use crate::ir::kernel::InstrOp;
use crate::shape::{Axis, Border, Shape, Window};

/// Elements of a row of a chain that are computed at a time.
const PIECE: usize = 1024;

/// The rows and columns of a plane that are computed, scratch for intermediates, and where the result goes.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    pub(super) rows: Window,
    pub(super) cols: Range<usize>,
    pub(super) channel: usize,
    /// Room for the program's slots.
    pub(super) slots: *mut u8,
    /// Where the first result of the first pixel goes, and elements from row to row there.
    pub(super) out: *mut u8,
    pub(super) stride: usize,
}

/// Where a result beside the first goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Further {
    pub(super) bytes: *mut u8,
    pub(super) geometry: Geometry,
}

/// A program over inputs.
#[derive(Clone, Copy)]
pub(super) struct Expression<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) inputs: &'a [LaunchInput<'a>],
    /// Where the results beside the first go.
    pub(super) more: &'a [Further],
    /// The extent of the image.
    pub(super) shape: Shape,
    pub(super) slot_bytes: usize,
    pub(super) isa: Isa,
}

/// Bytes of a slot for tiles of `pixels` pixels.
pub(super) fn slot_bytes(schedule: &Schedule, pixels: usize) -> usize {
    (pixels * schedule.element).next_multiple_of(64) + 192
}

impl Expression<'_> {
    /// Where a value of type `dtype` starts in the tile, and the distance of its rows in elements (none for a constant).
    pub(super) fn resolve(&self, place: Place, dtype: DType, at: &Spot) -> (*mut u8, Option<usize>) {
        match place {
            Place::Slot(s) => (at.slots.wrapping_add(s * self.slot_bytes), Some(at.cols.len())),
            Place::Constant(c) => (self.schedule.constants[c].bytes().as_ptr().cast_mut(), None),
            Place::Level(l) => {
                let Level { input, map, outside } = self.schedule.levels[l];
                let place = map.at(at.channel).map_or(Place::Constant(outside), |p| Place::Plane(input, Some(p)));
                self.resolve(place, dtype, at)
            }
            Place::Plane(i, c) => {
                let LaunchInput { memory, geometry } = &self.inputs[i];
                let bytes = memory.host().map_or(&[][..], HostBuffer::bytes);
                // Of the inputs of a chain, some may hold a wrapped row beyond the image, others the row that it is.
                let y = at.rows.start;
                let held = geometry.window.contains(y);
                let y = if held { y } else { y.rem_euclid(geometry.shape.height.cast_signed()) };
                let element = geometry.row(c.unwrap_or(at.channel), y) + at.cols.start;
                (bytes[element * dtype.size()..].as_ptr().cast_mut(), Some(geometry.shape.width))
            }
            Place::Output(0) => (at.out, Some(at.stride)),
            Place::Output(k) => {
                let Further { bytes, geometry } = self.more[k - 1];
                let element = geometry.row(at.channel, at.rows.start) + at.cols.start;
                (bytes.wrapping_add(element * dtype.size()), Some(at.stride))
            }
        }
    }

    /// Writes where the pixels of a tile are.
    pub(super) fn index(&self, axis: Axis, dtype: DType, target: Place, at: &Spot) {
        let (out, stride) = self.resolve(target, dtype, at);
        let (stride, n) = (stride.unwrap_or(0), at.cols.len());
        dispatch!(dtype, T => {
            for (r, y) in (at.rows.start..at.rows.end).enumerate() {
                let first = out.cast::<T>().wrapping_add(r * stride);
                // SAFETY: a row of the tile, in a free slot or in the output, which nothing else refers to now.
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
    pub(super) fn run(&self, op: InstrOp, (operand, result): (DType, DType), args: &[Place], target: Place, at: &Spot) {
        let (out, stride) = self.resolve(target, result, at);
        let stride = stride.unwrap_or(0);
        let mut operands = [Lanes { at: out, constant: true }; 3];
        let mut steps = [0; 3];
        let mut packed = stride == at.cols.len();
        for (i, place) in args.iter().enumerate() {
            let dtype = match op {
                InstrOp::Pixel(op) => op.operand(i, operand),
                InstrOp::Convert => operand,
            };
            let (first, apart) = self.resolve(*place, dtype, at);
            operands[i] = Lanes { at: first, constant: apart.is_none() };
            steps[i] = apart.unwrap_or(0) * dtype.size();
            packed &= apart.is_none_or(|s| s == at.cols.len());
        }
        let (lines, n) = if packed { (1, at.rows.len() * at.cols.len()) } else { (at.rows.len(), at.cols.len()) };
        for y in 0..lines {
            let mut line = operands;
            line.iter_mut().zip(steps).for_each(|(o, s)| o.at = o.at.wrapping_add(y * s));
            let out = out.wrapping_add(y * stride * result.size());
            // SAFETY: operands and results are rows of the tile, in inputs (the plan holds the rows), slots and the
            // output, typed by the schedule; a slot is free when it is written, and the output is no input.
            unsafe {
                match op {
                    InstrOp::Pixel(op) => pixels::apply(op, operand, self.isa, &line, out, n),
                    InstrOp::Convert => pixels::convert(operand, result, self.isa, &line, out, n),
                }
            }
        }
    }
}

/// The rows of a chain, computed when they are asked for.
pub(super) struct ChainRows<'a> {
    expression: Expression<'a>,
    channel: usize,
    height: usize,
    width: usize,
    /// The rows that some of the chain's inputs hold: then the others hold them, or what they are wrapped copies of.
    window: Window,
    /// One row of the result, then the slots.
    scratch: *mut u8,
    element: usize,
}

impl<'a> ChainRows<'a> {
    /// Bytes of scratch for rows of `width` elements of type `dtype`.
    pub(super) fn scratch(schedule: &Schedule, width: usize, dtype: DType) -> usize {
        Self::row_bytes(width, dtype.size()) + schedule.slots * slot_bytes(schedule, PIECE)
    }

    fn row_bytes(width: usize, element: usize) -> usize {
        (width * element).next_multiple_of(64) + 64
    }

    /// The rows of plane `channel` of the image of `schedule` over `inputs`. `geometry` is the image's extent and type (its
    /// window does not matter); `scratch` has room as told by [`ChainRows::scratch`].
    pub(super) fn new(
        schedule: &'a Schedule,
        inputs: &'a [LaunchInput<'a>],
        geometry: Geometry,
        channel: usize,
        scratch: *mut u8,
        isa: Isa,
    ) -> ChainRows<'a> {
        let read = schedule.steps.iter().flat_map(|s| match &s.action {
            Task::Run(_, _, _, args) => args.as_slice(),
            _ => &[],
        });
        let held = read.filter_map(|p| match p {
            Place::Plane(i, _) => Some(inputs[*i].geometry.window),
            Place::Level(l) => Some(inputs[schedule.levels[*l].input].geometry.window),
            _ => None,
        });
        let window = held.reduce(Window::union).unwrap_or(Window::whole(geometry.shape.height));
        let (height, width) = (geometry.shape.height, geometry.shape.width);
        let expression = Expression {
            schedule,
            inputs,
            more: &[],
            shape: geometry.shape,
            slot_bytes: slot_bytes(schedule, PIECE),
            isa,
        };
        ChainRows { expression, channel, height, width, window, scratch, element: geometry.dtype.size() }
    }

    /// The rows that can be computed.
    pub(super) fn window(&self) -> Window {
        self.window
    }
}

impl<T: Pixel> Rows<T> for ChainRows<'_> {
    fn resolve(&self, y: isize, border: Border) -> Option<isize> {
        super::plane::resolve(y, border, self.height, self.window)
    }

    fn row(&mut self, y: isize, cols: Range<usize>) -> &[T] {
        debug_assert_eq!(size_of::<T>(), self.element);
        let slots = self.scratch.wrapping_add(Self::row_bytes(self.width, self.element));
        for start in cols.clone().step_by(PIECE) {
            let spot = Spot {
                rows: Window::new(y, y + 1),
                cols: start..cols.end.min(start + PIECE),
                channel: self.channel,
                slots,
                out: self.scratch.wrapping_add(start * self.element),
                stride: self.width,
            };
            for step in &self.expression.schedule.steps {
                match &step.action {
                    Task::Run(op, operand, result, args) => {
                        self.expression.run(*op, (*operand, *result), args, step.targets[0], &spot);
                    }
                    Task::Index(axis, dtype) => self.expression.index(*axis, *dtype, step.targets[0], &spot),
                    Task::Group(_) | Task::Leaf(_) => debug_assert!(false, "a chain reads pixels themselves"),
                }
            }
        }
        // SAFETY: the scratch begins with a row; bytes of it that have not been computed are initialised memory.
        unsafe { std::slice::from_raw_parts(self.scratch.cast_const().cast::<T>(), self.width) }
    }
}
