//! The tile executor of [`MapKernel`]s.
//!
//! Blocks of rows run in parallel. A block is processed in chunks of columns, a chunk in tiles of a few rows. All steps
//! of the schedule run over a tile before the next, so that intermediates stay in the first levels of the cache. The
//! division does not affect the result. Design: `docs/design/cpu.md`.

mod compiled;

use std::cell::RefCell;
use std::ops::Range;

pub(super) use self::compiled::PlaneKernel;
use super::chains::{self, ChainRows};
use super::expression::{EvaluationTile, Expression, ExtraOutput, slot_bytes};
use super::feed::{END, Feed};
use super::order;
use super::parallel;
use super::plane::{ExpressionInput, OutputTile, Plane};
use super::simd::Isa;
use super::tile_code::{FeedSpec, TileCode, TileOperation, ValueStorage};
use super::{levels, masks, narrow, uniform, warp};
use horus_base::dtype::{DType, Pixel};
use horus_base::error::DeviceError;
use horus_base::shape::{Shape, Window};
use horus_base::{dispatch, dispatch_float, dispatch_narrow};
use horus_host::buffer::HostBuffer;
use horus_host::device::{Geometry, Launch};
use horus_plan::ir::kernel::{FilterSource, Kernel, LeafOp, MapKernel};
use horus_plan::ops::geometric::Interpolation;

/// Bytes of rings of a thread: they fit the second-level cache.
const RING_BYTES: usize = 640 << 10;
/// Elements of a tile row of a pointwise kernel.
const FLAT: usize = 1024;

/// Sizes into which a launch is divided.
#[derive(Clone, Copy, Debug)]
struct Tiling {
    block_rows: usize,
    chunk: usize,
    tile_rows: usize,
    tile: usize,
}

/// State shared by the blocks of a launch.
struct MapLaunch<'a> {
    kernel: &'a MapKernel,
    schedule: &'a TileCode,
    inputs: &'a [ExpressionInput<'a>],
    /// The output's bytes. Blocks write disjoint rows.
    output: *mut u8,
    geometry: Geometry,
    /// Storage of the results after the first. Blocks write disjoint rows here, too.
    extra_outputs: Vec<ExtraOutput>,
    tiling: Tiling,
    /// Bytes of scratch: for each feed, for the chain that it reads, for one slot, in total.
    feed_bytes: Vec<usize>,
    chain_bytes: Vec<usize>,
    slot_bytes: usize,
    scratch_bytes: usize,
    isa: Isa,
}

// SAFETY: the pointers are to the exclusively borrowed outputs; every block writes rows of its own.
unsafe impl Sync for MapLaunch<'_> {}

/// Runs `kernel` on the current thread pool (`threads` of it), or on the calling thread alone if
/// `threads` is 1.
///
/// The launch is one that [`check`](horus_host::device::check::check) accepts.
///
/// # Errors
/// [`DeviceError::Argument`] if a buffer is not in host memory, [`DeviceError::OutOfMemory`] if
/// scratch cannot be allocated.
pub(super) fn launch(launch: Launch<'_>, isa: Isa, threads: usize) -> Result<(), DeviceError> {
    let geometries: Vec<Geometry> = launch.additional_geometries().into_iter().map(Geometry::flat).collect();
    let Launch { kernel: Kernel::Map(kernel), inputs, output, additional_outputs: more, geometry, rows } = launch
    else {
        return Err(DeviceError::Argument(format!("{} is not a map", launch.kernel.name())));
    };
    let foreign = || DeviceError::Argument("a buffer is not in host memory".into());
    if rows.is_empty() || geometry.shape.is_empty() {
        return Ok(());
    }
    if inputs.iter().any(|i| i.memory.host().is_none()) {
        return Err(foreign());
    }
    let dtypes: Vec<DType> = inputs.iter().map(|i| i.geometry.dtype).collect();
    let samples = geometry.shape.samples;
    // Samples of pixels that are read or made one by one.
    let apart: Vec<usize> = inputs.iter().map(|i| i.geometry.shape.samples).collect();
    let apart = (kernel.woven || (samples == 1 && apart.iter().any(|n| *n > 1))).then_some(apart);
    let narrow = if apart.is_none() { narrow::IntegerFilterChain::of(kernel, &dtypes, (isa, samples)) } else { None };
    if let Some(plan) = narrow.filter(|plan| plan.reads(inputs, rows)) {
        return plan.launch(inputs, output, (geometry, rows), isa, threads);
    }
    // From here on, samples are pixels, some of which are neighbours, unless they are made one by one.
    let geometry = if kernel.woven { geometry } else { geometry.flat() };
    let output = output.host_mut().ok_or_else(foreign)?.bytes_mut();
    assert!(geometry.window.covers(rows) && geometry.bytes() <= output.len(), "the output holds the rows");
    if apart.is_none()
        && let Some(filter) = levels::LevelFilter::of(kernel)
        && filter.launch(inputs, output, (geometry, rows), isa, threads)
    {
        return Ok(());
    }
    if apart.is_none()
        && let Some(filter) = masks::MaskFilter::of(kernel, &dtypes)
        && filter.launch(inputs, output, (geometry, rows), 1, threads)
    {
        return Ok(());
    }
    let mut further = Vec::with_capacity(more.len());
    for (memory, geometry) in more.iter_mut().zip(geometries) {
        let bytes = memory.host_mut().ok_or_else(foreign)?.bytes_mut();
        assert!(geometry.bytes() <= bytes.len(), "every output holds the rows");
        further.push(ExtraOutput { bytes: bytes.as_mut_ptr(), geometry });
    }
    assert!(further.len() == kernel.further(), "every result has an output");
    let inputs = &ExpressionInput::all(kernel, inputs)[..];
    let with_constants = uniform::with_constants(kernel, inputs);
    let kernel = with_constants.as_ref().unwrap_or(kernel);
    let schedule = match &apart {
        Some(apart) => TileCode::of_samples(kernel, &dtypes, apart, isa),
        None => TileCode::of(kernel, &dtypes, (isa, samples)),
    };
    let tiling = tiling(kernel, &schedule, geometry, rows, threads);
    let job = MapLaunch::new((kernel, &schedule), inputs, (output.as_mut_ptr(), geometry, further), tiling, isa);
    let blocks = rows.len().div_ceil(tiling.block_rows);
    let run = |i: usize| {
        let start = rows.start + ((i % blocks) * tiling.block_rows).cast_signed();
        let end = rows.end.min(start + tiling.block_rows.cast_signed());
        job.block_in_scratch(i / blocks, Window::new(start, end))
    };
    let all = blocks * geometry.shape.planes();
    parallel::try_for_each(threads, all, run)
}

thread_local! {
    /// Memory of rings and slots, reused by later launches.
    static SCRATCH: RefCell<HostBuffer> = RefCell::new(HostBuffer::zeroed(0));
}

fn tiling(kernel: &MapKernel, schedule: &TileCode, geometry: Geometry, rows: Window, threads: usize) -> Tiling {
    let width = geometry.shape.width;
    let total = rows.len();
    if schedule.is_pointwise() {
        // Blocks of about 64 Ki pixels, but enough for all threads.
        let block_rows = total.div_ceil(threads * 2).min((1usize << 16).div_ceil(width)).max(1);
        let tile = if schedule.slots > 4 { FLAT / 2 } else { FLAT };
        return Tiling { block_rows, chunk: width, tile_rows: 1, tile };
    }
    // Surrounding rows that a window reads; tall windows process many rows at once.
    let windows = kernel.leaves.iter().filter_map(|l| match &l.op {
        LeafOp::OrderFilter(_, filter, _) => Some(filter.window().map_or(0, |w| w.reach().up + w.reach().down)),
        LeafOp::Load(_)
        | LeafOp::LoadPlane(..)
        | LeafOp::Correlate(..)
        | LeafOp::Shift(..)
        | LeafOp::Warp(..)
        | LeafOp::Flip(..) => None,
    });
    let aligned = kernel.leaves.iter().any(|l| match &l.op {
        LeafOp::Warp(_, map, how, _) => *how != Interpolation::Bicubic && (map.xy, map.yx) == (0, 0),
        _ => false,
    });
    let windows = windows.max();
    let (tile_rows, tile) = match (windows, schedule.groups.is_empty()) {
        (Some(around), _) => (if around < 8 { 32 } else { 64 }, 512),
        // Columns are looked up for many rows at once; intermediate results stay in the caches.
        (None, true) if aligned => (32, if schedule.slots > 0 { 256 } else { 512 }),
        (None, true) => (8, 512),
        (None, false) => (4, 256),
    };
    let reach = schedule.rows_around();
    let height = geometry.shape.height;
    let per_column: usize = schedule.feeds.iter().map(|f| Feed::bytes_per_column(f, tile_rows, height)).sum();
    // Blocks restart their rings, so they are several times as tall as the reach, unless threads would idle.
    let fair = total.div_ceil(threads);
    let fine = if threads == 1 { fair } else { total.div_ceil(threads * 4) };
    let block_rows = fine.max(reach.saturating_mul(4)).min(fair).next_multiple_of(tile_rows);
    let most = (RING_BYTES / per_column.max(1)).clamp(tile, 8 * tile);
    // Wide enough for the chunks at the edges, but no wider than the image.
    let sides = schedule.feeds.iter().map(|f| f.reach.left.max(f.reach.right)).max().unwrap_or(0);
    let chunk = width.div_ceil(width.div_ceil(most)).max(sides.min(width)).next_multiple_of(END);
    // A lone operation divides its rows itself, or looks its columns up once: it has no intermediate results.
    let alone = (windows.is_some() || aligned) && schedule.instructions.len() == 1;
    let (tile_rows, tile) = if alone { (block_rows, chunk) } else { (tile_rows, tile) };
    Tiling { block_rows, chunk, tile_rows, tile }
}

/// Scratch divided into feeds, the chain rows that they read, and slots.
struct TileScratch<'a> {
    feeds: Vec<(Feed<'a>, Option<ChainRows<'a>>)>,
    slots: *mut u8,
}

impl<'a> MapLaunch<'a> {
    fn new(
        (kernel, schedule): (&'a MapKernel, &'a TileCode),
        inputs: &'a [ExpressionInput<'a>],
        (output, geometry, more): (*mut u8, Geometry, Vec<ExtraOutput>),
        tiling: Tiling,
        isa: Isa,
    ) -> MapLaunch<'a> {
        let mut job = MapLaunch {
            kernel,
            schedule,
            inputs,
            output,
            geometry,
            extra_outputs: more,
            tiling,
            feed_bytes: Vec::new(),
            chain_bytes: Vec::new(),
            slot_bytes: 0,
            scratch_bytes: 0,
            isa,
        };
        job.measure();
        job
    }

    /// Computes rows of a plane with the calling thread's scratch.
    fn block_in_scratch(&self, channel: usize, rows: Window) -> Result<(), DeviceError> {
        SCRATCH.with_borrow_mut(|scratch| {
            if scratch.len() < self.scratch_bytes {
                *scratch = HostBuffer::try_zeroed(self.scratch_bytes)?;
            }
            self.block(channel, rows, scratch);
            Ok(())
        })
    }
}

impl MapLaunch<'_> {
    fn plane<T: Pixel>(&self, input: usize, channel: usize) -> Plane<'_, T> {
        self.inputs[input].plane(channel)
    }

    /// Computes the scratch size of a block.
    fn measure(&mut self) {
        let p = self.tiling;
        let height = self.geometry.shape.height;
        let scratch =
            |f: &FeedSpec| Feed::scratch(f, &self.schedule.row_stages(f), p.chunk, p.tile_rows, height) * f.element();
        self.feed_bytes = self.schedule.feeds.iter().map(scratch).collect();
        self.chain_bytes = self.schedule.feeds.iter().map(|f| self.chain_scratch(f)).collect();
        self.slot_bytes = slot_bytes(self.schedule, p.tile_rows * p.tile);
        let feeds = self.feed_bytes.iter().chain(&self.chain_bytes).sum::<usize>();
        self.scratch_bytes = self.slot_bytes * self.schedule.slots + feeds;
    }

    /// Bytes of scratch for the chain rows of a feed.
    fn chain_scratch(&self, feed: &FeedSpec) -> usize {
        match feed.source {
            FilterSource::Chain(c) => ChainRows::scratch(&self.schedule.chains[c], self.geometry.shape, feed.dtype),
            _ => 0,
        }
    }

    /// Address of the result at (`y`, `x`) of plane `channel`.
    fn output(&self, channel: usize, y: isize, x: usize) -> *mut u8 {
        let element = self.geometry.row(channel, y) + x * self.geometry.shape.samples;
        self.output.wrapping_add(element * self.geometry.dtype.size())
    }

    fn expression(&self) -> Expression<'_> {
        let shape = self.geometry.shape;
        Expression {
            schedule: self.schedule,
            inputs: self.inputs,
            extra_outputs: &self.extra_outputs,
            shape,
            slot_bytes: self.slot_bytes,
            isa: self.isa,
        }
    }

    /// Computes rows `rows` of plane `channel`, with scratch as measured.
    fn block(&self, channel: usize, rows: Window, scratch: &mut HostBuffer) {
        let p = self.tiling;
        let Shape { height, width, .. } = self.geometry.shape;
        let base = scratch.bytes_mut().as_mut_ptr();
        let slots = base.wrapping_add(self.feed_bytes.iter().chain(&self.chain_bytes).sum());
        if self.schedule.is_pointwise() {
            let n = rows.len() * width;
            for start in (0..n).step_by(p.tile) {
                let cols = start..n.min(start + p.tile);
                let out = self.output(channel, rows.start, start);
                let at = EvaluationTile {
                    rows: Window::new(rows.start, rows.start + 1),
                    cols,
                    channel,
                    slots,
                    out,
                    stride: width,
                };
                self.tile(&at, &[], 0);
            }
            return;
        }
        for cols in self.chunks() {
            let mut at = base;
            let mut feeds = Vec::with_capacity(self.schedule.feeds.len());
            for (i, spec) in self.schedule.feeds.iter().enumerate() {
                let passes = self.schedule.row_stages(spec);
                let feed = Feed::new(spec, passes, cols.clone(), (height, width), rows.start, p.tile_rows, at);
                let chain = at.wrapping_add(self.feed_bytes[i]);
                at = chain.wrapping_add(self.chain_bytes[i]);
                let rows = match spec.source {
                    FilterSource::Chain(c) => Some(self.chain(c, spec.dtype, channel, feed.columns(), chain)),
                    _ => None,
                };
                feeds.push((feed, rows));
            }
            self.chunk(channel, rows, cols, TileScratch { feeds, slots });
        }
    }

    /// The chunks of columns. A feed of the image's own rows pads them wherever filters reach beyond an edge. With
    /// narrow chunks at the edges (one block of the widest kernel), the middle is read in place.
    fn chunks(&self) -> Vec<Range<usize>> {
        let (width, chunk) = (self.geometry.shape.width, self.tiling.chunk);
        let feeds = &self.schedule.feeds;
        let left = feeds.iter().map(|f| f.reach.left).max().unwrap_or(0).next_multiple_of(END);
        let right = feeds.iter().map(|f| f.reach.right).max().unwrap_or(0).next_multiple_of(END);
        let apart =
            feeds.iter().all(|f| f.stages.is_empty() && !f.copied) && left + right > 0 && 2 * (left + right) <= width;
        let (from, to) = if apart { (left, width - right) } else { (0, width) };
        let middle = (from..to).step_by(chunk).map(|x| x..to.min(x + chunk));
        let ends = |cols: Range<usize>| std::iter::once(cols);
        ends(0..from).chain(middle).chain(ends(to..width)).filter(|c| !c.is_empty()).collect()
    }

    /// Columns `cols` of the rows of chain `c`, of type `dtype`.
    fn chain(&self, c: usize, dtype: DType, channel: usize, cols: Range<usize>, scratch: *mut u8) -> ChainRows<'_> {
        let geometry = Geometry { dtype, ..self.geometry };
        ChainRows::new(&self.schedule.chains[c], self.inputs, geometry, (channel, cols), scratch, self.isa)
    }

    fn chunk(&self, channel: usize, rows: Window, cols: Range<usize>, mut scratch: TileScratch<'_>) {
        let p = self.tiling;
        let mut tables: Vec<Vec<*const u8>> = vec![Vec::new(); self.schedule.groups.len()];
        let mut y = rows.start;
        while y < rows.end {
            let end = rows.end.min(y + p.tile_rows.cast_signed());
            for (feed, chain) in &mut scratch.feeds {
                match chain {
                    Some(rows) => chains::advance(feed, rows, end, self.isa),
                    None if feed.spec().is_bytes() => dispatch_narrow!(feed.spec().dtype, T => {
                        if let FilterSource::Input(i) = feed.spec().source {
                            feed.advance_bytes(&self.plane::<T>(i, channel), end);
                        }
                    }),
                    None => dispatch_float!(feed.spec().dtype, T => {
                        if let FilterSource::Input(i) = feed.spec().source {
                            // SAFETY: the rows are of the feed's type; the device checked the
                            // instruction set.
                            unsafe { feed.advance(&mut self.plane::<T>(i, channel), end, self.isa) }
                        }
                    }),
                }
            }
            for (group, table) in self.schedule.groups.iter().zip(&mut tables) {
                let (feed, chain) = &scratch.feeds[group.feed];
                let read = Window::new(y, end).grown(group.reach.up, group.reach.down);
                let x = cols.start.cast_signed() - group.reach.left.cast_signed();
                table.clear();
                if let (FilterSource::Input(i), true) = (feed.spec().source, feed.spec().is_bytes()) {
                    let window = self.inputs[i].rows;
                    let row = |y| feed.at::<i32>(None, window, group.part, y, x).cast::<u8>();
                    table.extend((read.start..read.end).map(row));
                    continue;
                }
                dispatch_float!(feed.spec().dtype, T => {
                    let (plane, window) = match (feed.spec().source, chain) {
                        (FilterSource::Input(i), _) => (Some(self.plane::<T>(i, channel)), self.inputs[i].rows),
                        (_, Some(rows)) => (None, rows.window()),
                        (_, None) => (None, Window::new(0, 0)),
                    };
                    let row = |y| feed.at(plane.as_ref(), window, group.part, y, x).cast::<u8>();
                    table.extend((read.start..read.end).map(row));
                });
            }
            for x in cols.clone().step_by(p.tile) {
                let tile = EvaluationTile {
                    rows: Window::new(y, end),
                    cols: x..cols.end.min(x + p.tile),
                    channel,
                    slots: scratch.slots,
                    out: self.output(channel, y, x),
                    stride: self.geometry.shape.width,
                };
                self.tile(&tile, &tables, x - cols.start);
            }
            y = end;
        }
    }

    /// Runs the schedule over a tile that starts `along` columns into its chunk.
    fn tile(&self, at: &EvaluationTile, tables: &[Vec<*const u8>], along: usize) {
        for step in &self.schedule.instructions {
            match &step.operation {
                TileOperation::Group(g) => self.expression().group(*g, step, at, &tables[*g], along),
                TileOperation::Leaf(l) => self.leaf(*l, step.targets[0], at),
                TileOperation::Repeat(i, still, dtype) => {
                    self.expression().repeat((*i, *still, *dtype), step.targets[0], at)
                }
                TileOperation::Index(axis, dtype) => self.expression().index(*axis, *dtype, step.targets[0], at),
                TileOperation::Split(input, plane, dtype) => {
                    self.expression().split((*input, *plane, *dtype), &step.targets, at);
                }
                TileOperation::Sample(level, dtype) => self.expression().sample((*level, *dtype), step.targets[0], at),
                TileOperation::Join(dtype, samples) => self.expression().join(*dtype, samples, step.targets[0], at),
                TileOperation::Run(op, operand, result, args) => {
                    self.expression().run(*op, (*operand, *result), args, step.targets[0], at);
                }
            }
        }
    }

    /// Copies the pixels of a tile to their storage.
    fn place<T: Pixel>(&self, target: ValueStorage, at: &EvaluationTile) -> OutputTile<'_, T> {
        let (first, stride) = self.expression().resolve(target, T::DTYPE, at);
        let stride = stride.unwrap_or(0);
        let length = (at.rows.len() - 1) * stride + at.cols.len();
        // SAFETY: the tile's rows of a free slot or of the output; nothing else refers to them now.
        let out = unsafe { std::slice::from_raw_parts_mut(first.cast::<T>(), length) };
        OutputTile { out, stride, rows: at.rows, cols: at.cols.clone() }
    }

    fn leaf(&self, l: usize, target: ValueStorage, at: &EvaluationTile) {
        let leaf = &self.kernel.leaves[l];
        let isa = self.isa;
        if let LeafOp::Warp(i, map, _, edge) = &leaf.op {
            let of = self.inputs[*i].geometry.dtype;
            if of != leaf.dtype {
                let c = at.channel;
                return dispatch_float!(leaf.dtype, T => {
                    let mut tile = self.place::<T>(target, at);
                    dispatch_narrow!(of, P => warp::linear(&self.plane::<P>(*i, c), map, edge, &mut tile, isa));
                });
            }
        }
        dispatch!(leaf.dtype, T => {
            let mut tile = self.place::<T>(target, at);
            match &leaf.op {
                LeafOp::OrderFilter(i, filter, b) => {
                    order::filter(|plane| self.plane(*i, plane), at.channel, filter, *b, &mut tile, isa);
                }
                LeafOp::Warp(i, map, how, edge) => {
                    warp::warp(&self.plane(*i, at.channel), map, *how, edge, &mut tile, isa);
                }
                LeafOp::Flip(i, flip) => order::flip(&self.plane(*i, at.channel), *flip, &mut tile),
                LeafOp::Load(_) | LeafOp::LoadPlane(..) | LeafOp::Correlate(..) | LeafOp::Shift(..) => {
                    debug_assert!(false, "loads are operands, and filters and shifts come in groups");
                }
            }
        });
    }
}
