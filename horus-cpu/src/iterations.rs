//! Several iterations of a loop in one launch ([`Repeat`]): blocks of rows go through all iterations in the cache.
//!
//! Each thread processes its own blocks. Within a block, iterations follow each other as a wave: a few rows of the
//! first, then the rows of the second whose surroundings are complete, and so on. A few rows of every result but the
//! last are in a buffer whose window moves down the image. At the ends of a block, iterations also compute rows of the
//! neighbouring blocks.
//!
//! The executor of single iterations computes every row: the bits are the same.

mod hoisted;

use std::cell::RefCell;

use self::hoisted::hoisted;
use super::map::PlaneKernel;
use super::masks;
use super::parallel;
use super::plane::ExpressionInput;
use super::simd::Isa;
use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::Window;
use horus_host::buffer::HostBuffer;
use horus_host::device::{Geometry, Launch, Memory};
use horus_plan::ir::kernel::Repeat;
use horus_plan::ops::neighbourhood::Reach;

/// Bytes of all buffers of a thread: they fit the second-level cache.
const CACHED: usize = 1 << 20;
/// Smallest and largest number of rows of an iteration computed at a time.
const BAND: (usize, usize) = (4, 64);
/// Minimum height of a block, as a multiple of the surrounding rows that are computed twice.
const TALL: usize = 8;

/// Runs `repeat` on the current thread pool (`threads` of it), or on the calling thread alone if
/// `threads` is 1.
///
/// The launch is one that [`check`](horus_host::device::check::check) accepts.
///
/// # Errors
/// [`DeviceError::Argument`] if a buffer is not in host memory, [`DeviceError::OutOfMemory`] if intermediate rows
/// cannot be allocated.
pub(super) fn launch(launch: Launch<'_>, repeat: &Repeat, isa: Isa, threads: usize) -> Result<(), DeviceError> {
    let Launch { inputs, output, geometry, rows, .. } = launch;
    let foreign = || DeviceError::Argument("a buffer is not in host memory".into());
    if rows.is_empty() || geometry.shape.is_empty() {
        return Ok(());
    }
    if inputs.iter().any(|i| i.memory.host().is_none()) {
        return Err(foreign());
    }
    let (samples, geometry) = (geometry.shape.samples, geometry.flat());
    let output = output.host_mut().ok_or_else(foreign)?.bytes_mut();
    assert!(geometry.window.covers(rows) && geometry.bytes() <= output.len(), "the output holds the rows");
    let types: Vec<DType> = inputs.iter().map(|i| i.geometry.dtype).collect();
    if let Some(filter) = masks::MaskFilter::of(&repeat.body, &types)
        && filter.launch(inputs, output, (geometry, rows), repeat.iterations, threads)
    {
        return Ok(());
    }
    let inputs = &ExpressionInput::all(&repeat.body, inputs)[..];
    let (body, before) = hoisted(repeat);
    let types: Vec<DType> = before.iter().map(|m| m.result_type()).collect();
    let wave = Wave {
        repeat,
        iteration: PlaneKernel::new(&body, inputs, &types, isa),
        before: before.iter().map(|m| (PlaneKernel::new(m, inputs, &[], isa), m.result_type())).collect(),
        inputs,
        output: output.as_mut_ptr(),
        geometry,
        samples,
        reach: repeat.reach(),
    };
    let tall = (TALL * repeat.iterations * (wave.reach.up + wave.reach.down)).max(BAND.0);
    let block = rows.len().div_ceil((rows.len() / tall).clamp(1, if threads <= 1 { 1 } else { 2 * threads }));
    let blocks = rows.len().div_ceil(block);
    let run = |i: usize| {
        let start = rows.start + ((i % blocks) * block).cast_signed();
        wave.block(i / blocks, Window::new(start, rows.end.min(start + block.cast_signed())))
    };
    let all = blocks * geometry.shape.planes();
    parallel::try_for_each(threads, all, run)
}

/// State shared by all blocks.
struct Wave<'a> {
    repeat: &'a Repeat,
    /// An iteration. It reads the values hoisted out of all iterations after its own inputs.
    iteration: PlaneKernel,
    /// Values that are the same in all iterations, with their types.
    before: Vec<(PlaneKernel, DType)>,
    inputs: &'a [ExpressionInput<'a>],
    /// The output's bytes. Blocks write disjoint rows.
    output: *mut u8,
    /// Samples are pixels.
    geometry: Geometry,
    samples: usize,
    reach: Reach,
}

// SAFETY: the pointer is to the exclusively borrowed output; every block writes rows of its own.
unsafe impl Sync for Wave<'_> {}

thread_local! {
    /// Buffers of earlier launches, for reuse.
    static SPARE: RefCell<Vec<HostBuffer>> = const { RefCell::new(Vec::new()) };
}

/// Available rows of an intermediate result: a window of an image.
struct IntermediateRows {
    memory: Memory,
    geometry: Geometry,
}

impl IntermediateRows {
    fn new(geometry: Geometry) -> Result<IntermediateRows, DeviceError> {
        let spare = SPARE.with_borrow_mut(Vec::pop).filter(|b| b.len() >= geometry.bytes());
        // Whole elements of any type.
        let new = || HostBuffer::try_zeroed(geometry.bytes().next_multiple_of(64));
        Ok(IntermediateRows { memory: Memory::Host(spare.map_or_else(new, Ok)?), geometry })
    }

    fn as_input(&self, samples: usize) -> ExpressionInput<'_> {
        ExpressionInput { memory: &self.memory, geometry: self.geometry, samples, rows: self.geometry.window }
    }

    /// Moves the window down to `first`, unless it already contains the rows below `end`. Rows `first` to `done` of a
    /// plane are retained.
    fn move_window(&mut self, channel: usize, first: isize, done: isize, end: isize) {
        let window = self.geometry.window;
        if end <= window.end {
            return;
        }
        let first = first.max(window.start);
        let live = self.geometry.row_bytes(channel, Window::new(first, done));
        self.geometry.window = Window::new(first, first + window.len().cast_signed());
        debug_assert!(end <= self.geometry.window.end, "rows below {end} are not in {}", self.geometry.window);
        if let (Some(memory), false) = (self.memory.host_mut(), live.is_empty()) {
            memory.bytes_mut().copy_within(live, self.geometry.row(channel, first) * self.geometry.dtype.size());
        }
    }
}

impl Drop for IntermediateRows {
    fn drop(&mut self) {
        if let Memory::Host(buffer) = std::mem::replace(&mut self.memory, Memory::Host(HostBuffer::zeroed(0)))
            && buffer.len() <= CACHED
        {
            SPARE.with_borrow_mut(|spare| spare.push(buffer));
        }
    }
}

impl Wave<'_> {
    /// Computes rows `rows` of plane `channel`.
    fn block(&self, channel: usize, rows: Window) -> Result<(), DeviceError> {
        let shape = self.geometry.shape;
        let windows = self.repeat.windows(rows, shape);
        let Reach { up, down, .. } = self.reach;
        let last = windows.len() - 1;
        let row = shape.width * self.geometry.dtype.size();
        // Hoisted values have as many rows in memory as the first and the last iteration are apart.
        let apart = last * (up + down);
        let around = apart * (1 + self.before.len());
        let buffers = last + self.before.len();
        let band = (CACHED / row.max(1)).saturating_sub(around) / (2 * buffers.max(1));
        let band = band.clamp(BAND.0, BAND.1);
        let room = |w: &Window, rows: usize| Window::new(w.start, w.start + w.len().min(rows + 2 * band).cast_signed());
        let kept = |w: &Window, rows: usize, dtype| {
            IntermediateRows::new(Geometry { window: room(w, rows), dtype, ..self.geometry })
        };
        let on_the_way = windows[..last].iter().map(|w| kept(w, up + down, self.geometry.dtype));
        let mut on_the_way = on_the_way.collect::<Result<Vec<_>, _>>()?;
        let before = self.before.iter().map(|(_, dtype)| kept(&windows[0], apart, *dtype));
        let mut before = before.collect::<Result<Vec<_>, _>>()?;
        let mut done: Vec<isize> = windows.iter().map(|w| w.start).collect();
        while done[last] < windows[last].end {
            for step in 0..=last {
                // Rows whose surroundings are complete.
                let there = match step.checked_sub(1) {
                    Some(before) if done[before] < windows[before].end => done[before].saturating_sub_unsigned(down),
                    _ => windows[step].end,
                };
                let end = there.min(windows[step].end).min(done[step].saturating_add_unsigned(band));
                let now = Window::new(done[step], end);
                if now.is_empty() {
                    continue;
                }
                if step == 0 {
                    for ((compiled, _), kept) in self.before.iter().zip(&mut before) {
                        kept.move_window(channel, done[last], done[0], end);
                        self.compute(compiled, self.inputs, Some(kept), channel, now)?;
                    }
                }
                if step < last {
                    let first = done[step + 1].saturating_sub_unsigned(up);
                    on_the_way[step].move_window(channel, first, done[step], end);
                }
                let (earlier, later) = on_the_way.split_at_mut(step);
                let mut inputs = self.inputs.to_vec();
                if let Some(kept) = earlier.last() {
                    inputs[self.repeat.state] = kept.as_input(self.samples);
                }
                inputs.extend(before.iter().map(|kept| kept.as_input(self.samples)));
                self.compute(&self.iteration, &inputs, later.first_mut(), channel, now)?;
                done[step] = end;
            }
        }
        Ok(())
    }

    /// Computes rows of a plane into the output or an intermediate buffer.
    fn compute(
        &self,
        compiled: &PlaneKernel,
        inputs: &[ExpressionInput<'_>],
        kept: Option<&mut IntermediateRows>,
        channel: usize,
        rows: Window,
    ) -> Result<(), DeviceError> {
        let (to, geometry) = match kept {
            Some(IntermediateRows { memory, geometry }) => {
                (memory.host_mut().map(|m| m.bytes_mut().as_mut_ptr()), *geometry)
            }
            None => (Some(self.output), self.geometry),
        };
        let Some(to) = to else {
            return Err(DeviceError::Internal("a buffer of a step is not in host memory".into()));
        };
        // SAFETY: a launch of one iteration has the types of the whole launch, which was checked; `windows` are the
        // rows that iterations read of each other. Only this block writes its rows of the output, and only this thread
        // uses the intermediate rows.
        unsafe { compiled.rows(inputs, (to, geometry), channel, rows) }
    }
}
