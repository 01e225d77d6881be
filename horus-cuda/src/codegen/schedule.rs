//! Groups of leaves that are computed together, their use of shared memory, and their order.

use horus_core::dtype::DType;
use horus_core::ir::kernel::{FilterSource, Leaf, LeafOp, MapKernel, RowFilterStage, Val};
use horus_core::ops::neighbourhood::{Filter, FilterLayout, OrderFilter, Reach};
use horus_core::shape::Border;

use super::{KernelLimits, vector};
use crate::tuning::Tuning;

/// Alignment in shared memory, in bytes.
pub(super) const REGION: usize = 128;

/// Most threads of a block.
const MOST_THREADS: usize = 1024;

/// Levels of a volume in one block of threads.
pub(super) const LEVELS: usize = 8;

/// The pixels of one block of threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct ThreadBlock {
    pub(super) bx: usize,
    pub(super) by: usize,
    pub(super) rows: usize,
    pub(super) cols: usize,
    /// Levels of a volume, each computed by `bx * by` threads.
    pub(super) levels: usize,
}

impl ThreadBlock {
    /// The block of a tuning. If pixels of other levels are read, and nothing is in shared memory, threads are spread
    /// over levels: they find in the first-level cache what others read.
    pub(super) fn of(kernel: &MapKernel, tuning: &Tuning, planes: usize) -> ThreadBlock {
        let Tuning { bx, by, rows, cols, .. } = *tuning;
        let plane = ThreadBlock { bx, by, rows, cols, levels: 1 };
        let mut leaves = kernel.leaves.iter().chain(kernel.chains.iter().flat_map(|c| &c.leaves));
        let across = leaves.any(|l| matches!(l.op, LeafOp::LoadPlane(..)));
        let alone = |l: &Leaf| {
            matches!(l.op, LeafOp::Load(_) | LeafOp::LoadPlane(..)) || l.at_offset().is_some() || l.repeats()
        };
        let filters = kernel.leaves.iter().enumerate().filter(|(_, leaf)| !alone(leaf));
        // On an H200, seven points of 512x512x512 `f32` took .93 of the time when spread over levels, and of 256x256x256
        // `f64` 1.06: hence at most 4 bytes.
        let near = filters.map(|(l, leaf)| leaf.dtype.size() <= 4 && registers(kernel, l, plane, tuning).is_some());
        let near: Vec<bool> = near.collect();
        // Filters from registers have fewer rows of threads.
        let by = if near.is_empty() { by } else { by.next_multiple_of(LEVELS) };
        let fits = by.is_multiple_of(LEVELS) && bx * by <= MOST_THREADS;
        let spread = across && planes >= LEVELS && fits && near.iter().all(|near| *near);
        if spread { ThreadBlock { by: by / LEVELS, levels: LEVELS, ..plane } } else { plane }
    }

    pub(super) fn threads(self) -> usize {
        self.bx * self.by * self.levels
    }
    pub(super) fn width(self) -> usize {
        self.bx * self.cols
    }
    pub(super) fn height(self) -> usize {
        self.by * self.rows
    }
}

/// A tile of an input in shared memory: the pixels of a block and their surroundings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InputTile {
    /// Rows above the block's first.
    pub(super) up: usize,
    /// Columns left of the block's first: a multiple of 16 bytes.
    pub(super) left: usize,
    /// Rows.
    pub(super) rows: usize,
    /// Columns: a multiple of 16 bytes.
    pub(super) cols: usize,
    /// Columns from row to row in shared memory.
    pub(super) pitch: usize,
    /// Size of an element.
    pub(super) size: usize,
    /// `true` if its extent is data of the kernel: tiles of other extents, but of the same pitch, share a binary.
    pub(super) loose: bool,
}

impl InputTile {
    pub(super) fn new(block: ThreadBlock, reach: Reach, dtype: DType) -> InputTile {
        let v = vector(dtype);
        let left = reach.left.next_multiple_of(v);
        let cols = (left + block.width() + reach.right).next_multiple_of(v);
        InputTile {
            up: reach.up,
            left,
            rows: block.height() + reach.up + reach.down,
            cols,
            pitch: cols,
            size: dtype.size(),
            loose: false,
        }
    }

    /// The tile with an extent that is data.
    fn loosened(self) -> InputTile {
        let line = 128 / self.size;
        InputTile { pitch: self.cols.next_multiple_of(line).max(3 * line), loose: true, ..self }
    }

    pub(super) fn bytes(self) -> usize {
        (self.rows * self.pitch * self.size).next_multiple_of(REGION)
    }
}

/// Identifies the stage that column filters read: a row filter with their border.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StageKey {
    pub(super) stage: usize,
    pub(super) border: Border,
}

/// The place of a stage in shared memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct StageSlot {
    pub(super) key: StageKey,
    /// Byte offset.
    pub(super) at: usize,
    /// Rows above the block's first.
    pub(super) up: usize,
    /// Chunks of the row filter.
    pub(super) chunks: usize,
    /// Elements from row to row.
    pub(super) pitch: usize,
    /// The columns of the input that the row filter reads, as a tile.
    pub(super) input: InputTile,
}

/// Computation of a group of leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Method {
    /// Dense filters of one size from a tile.
    Dense(InputTile),
    /// A dense filter of bytes by whole taps, from a tile of bytes, by products of matrices.
    Products(InputTile),
    /// A dense filter whose tile is too large: this many filter rows at a time.
    Chunked(usize),
    /// A filter with offsets, from a tile.
    Sparse(InputTile),
    /// A filter of few taps, from the pixels of the thread and this many around them in registers.
    Near(Reach),
    /// A filter without taps, such as a median, from a tile.
    Selection(InputTile),
    /// Column filters of one size over the slot of this index.
    Column(usize),
}

/// Leaves that are computed together.
#[derive(Clone, Debug)]
pub(super) struct LeafGroup {
    pub(super) method: Method,
    pub(super) leaves: Vec<usize>,
}

/// The order of work of a kernel.
#[derive(Debug)]
pub(super) struct KernelSchedule {
    pub(super) groups: Vec<LeafGroup>,
    /// For each leaf, `true` if it is read from global memory on demand.
    pub(super) lazy: Vec<bool>,
    pub(super) slots: Vec<StageSlot>,
    /// Bytes of all slots; the buffers of the row filter follow them.
    pub(super) slot_bytes: usize,
    /// Rows of a chunk of the row filter.
    pub(super) chunk: usize,
}

/// The source, filter and border of a leaf that reads an image through a footprint.
pub(super) fn window(leaf: &Leaf) -> Option<(FilterSource, Option<&Filter>, Border)> {
    match &leaf.op {
        LeafOp::Correlate(FilterSource::Stage(_), ..) => None,
        LeafOp::Correlate(image, f, b) => Some((*image, Some(f), *b)),
        // Sums in `f64` of pixels of another type have no tile.
        LeafOp::OrderFilter(_, OrderFilter::Truncated(_), _) => None,
        LeafOp::OrderFilter(_, filter, b) => Some((leaf.source(), filter.window(), *b)),
        LeafOp::Load(_) | LeafOp::LoadPlane(..) | LeafOp::Shift(..) | LeafOp::Warp(..) | LeafOp::Flip(..) => None,
    }
}

fn is_sparse(f: Option<&Filter>) -> bool {
    f.is_some_and(|f| matches!(f.layout(), FilterLayout::Sparse(_)))
}

/// The surroundings of a pixel that a leaf reads. Offsets of sparse filters are data: their extent is rounded up, so
/// that similar filters share a binary.
fn reach(leaf: &Leaf, kernel: &MapKernel) -> Reach {
    let r = leaf.reach(&kernel.stages).map_or(Reach::NONE, |(r, _)| r);
    match window(leaf) {
        Some((_, f, _)) if is_sparse(f) => Reach {
            up: r.up.next_multiple_of(4),
            down: r.down.next_multiple_of(4),
            left: r.left.next_multiple_of(4),
            right: r.right.next_multiple_of(4),
        },
        _ => r,
    }
}

/// Taps of a row of a dense filter in shared memory: whole vectors.
pub(super) fn tap_pitch(width: usize, dtype: DType) -> usize {
    width.next_multiple_of(vector(dtype))
}

fn same_group(a: &Leaf, b: &Leaf) -> bool {
    match (&a.op, &b.op) {
        (LeafOp::Correlate(s, f, x), LeafOp::Correlate(t, g, y)) => {
            s == t && x == y && f.layout() == g.layout() && !is_sparse(Some(f))
        }
        (LeafOp::OrderFilter(i, OrderFilter::Fold(g), x), LeafOp::OrderFilter(j, OrderFilter::Fold(h), y)) => {
            i == j
                && x == y
                && (g.combine, g.reduce) == (h.combine, h.reduce)
                && g.window.layout() == h.window.layout()
                && !is_sparse(Some(&g.window))
        }
        _ => false,
    }
}

/// Most taps of a filter that is computed from registers: a column and a row of five each.
const NEAR_TAPS: usize = 10;
/// [`NEAR_TAPS`] if each pixel is converted first: three each. Larger filters are faster from a tile.
const CONVERTED_TAPS: usize = 6;
/// The farthest pixels that such a filter reads.
const NEAR_REACH: usize = 2;

/// The border along the levels of a chain that is a plane of an input.
pub(super) fn plane(chain: &MapKernel) -> Option<Border> {
    match (chain.leaves.as_slice(), chain.result) {
        ([Leaf { op: LeafOp::LoadPlane(_, map), .. }], Some(Val::Leaf(0))) => Some(map.border),
        _ => None,
    }
}

/// A filter of few taps near the pixel, directly or through a row filter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NearFilter {
    pub(super) source: FilterSource,
    pub(super) border: Border,
    pub(super) reach: Reach,
    /// Its taps, including those of the row filter.
    taps: usize,
}

impl NearFilter {
    /// The filter of a leaf; `None` if it is faster from a tile.
    pub(crate) fn of(leaf: &Leaf, kernel: &MapKernel) -> Option<NearFilter> {
        let near = match &leaf.op {
            LeafOp::Correlate(FilterSource::Stage(s), column, border) => {
                let RowFilterStage { source, filter, border: of_rows } = &kernel.stages[*s];
                let (Reach { left, right, .. }, taps) = (filter.reach(), filter.taps().len() + column.taps().len());
                let near = NearFilter {
                    source: *source,
                    border: *border,
                    reach: Reach { left, right, ..column.reach() },
                    taps,
                };
                (of_rows == border).then_some(near)?
            }
            _ => {
                let (source, filter, border) = window(leaf)?;
                NearFilter { source, border, reach: filter?.reach(), taps: filter?.taps().len() }
            }
        };
        let most = match near.source {
            FilterSource::Input(_) => NEAR_TAPS,
            FilterSource::Chain(c) => near.of_chain(&kernel.chains[c]),
            FilterSource::Stage(_) => 0,
        };
        let Reach { up, down, left, right } = near.reach;
        (near.taps <= most && up.max(down).max(left).max(right) <= NEAR_REACH).then_some(near)
    }

    /// Most taps over a chain: a level, or pixels that are converted.
    fn of_chain(self, chain: &MapKernel) -> usize {
        let converts = chain.is_pointwise() && chain.chains.is_empty() && chain.leaves.len() == 1;
        match plane(chain).map(|along| (along.constant(), self.border.constant())) {
            // The level is constant, but not its surroundings.
            Some((Some(level), Some(around))) if level.to_bits() != around.to_bits() => 0,
            Some(_) => NEAR_TAPS,
            None if converts && chain.code.len() <= 1 => CONVERTED_TAPS,
            None => 0,
        }
    }
}

/// The pixels around its own that a thread keeps in registers for a leaf and for all others of the same image and
/// border; `None` if a filter of the kernel needs a tile. Pixels to the left and right come from the other threads of
/// the warp.
fn registers(kernel: &MapKernel, l: usize, block: ThreadBlock, tuning: &Tuning) -> Option<Reach> {
    let NearFilter { source, border, .. } = NearFilter::of(&kernel.leaves[l], kernel)?;
    let (mut all, mut taps) = (Reach::NONE, 0);
    for leaf in kernel.leaves.iter().filter(|l| matches!(l.op, LeafOp::Correlate(..) | LeafOp::OrderFilter(..))) {
        let near = NearFilter::of(leaf, kernel)?;
        taps += near.taps;
        if (near.source, near.border) == (source, border) {
            all = all.max(near.reach);
        }
    }
    // Chains compute whole vectors.
    let vectors = match source {
        FilterSource::Chain(c) => plane(&kernel.chains[c]).is_some() || block.cols == vector(kernel.leaves[l].dtype),
        _ => true,
    };
    let fits = all.left.max(all.right) <= block.cols && block.bx.is_multiple_of(32);
    (vectors && fits && taps * block.rows * block.cols <= tuning.unroll).then_some(all)
}

/// Schedules the leaves of `order`.
pub(super) fn schedule(
    kernel: &MapKernel,
    order: &[usize],
    block: ThreadBlock,
    tuning: &Tuning,
    limits: KernelLimits,
    reserved: usize,
) -> KernelSchedule {
    let room = limits.shared.saturating_sub(reserved);
    let mut lazy = vec![true; kernel.leaves.len()];
    let mut groups: Vec<LeafGroup> = Vec::new();

    // Tiles of one input and border are shared if the largest serves all.
    let loose = |l: usize| {
        window(&kernel.leaves[l]).is_some_and(|(image, f, _)| is_sparse(f) && matches!(image, FilterSource::Input(_)))
    };
    let own = |l: usize| {
        let tile = InputTile::new(block, reach(&kernel.leaves[l], kernel), kernel.leaves[l].dtype);
        if loose(l) { tile.loosened() } else { tile }
    };
    let taps = |l: usize| match window(&kernel.leaves[l]) {
        Some((_, Some(f), _)) => match *f.layout() {
            FilterLayout::Dense { height, width, .. } => {
                (height * tap_pitch(width, kernel.leaves[l].dtype) * kernel.leaves[l].dtype.size())
                    .next_multiple_of(REGION)
            }
            FilterLayout::Sparse(_) => 0,
        },
        _ => 0,
    };
    let fits = |l: usize| own(l).bytes() + taps(l) <= room;
    let shared = |l: usize| {
        let (input, _, border) = window(&kernel.leaves[l])?;
        let peers = order
            .iter()
            .copied()
            .filter(|&k| window(&kernel.leaves[k]).is_some_and(|(i, _, b)| (i, b) == (input, border)) && fits(k));
        let (mut all, mut most, mut any_loose) = (Reach::NONE, 0, false);
        for k in peers {
            all = all.max(reach(&kernel.leaves[k], kernel));
            most = most.max(taps(k));
            any_loose |= loose(k);
        }
        let tile = InputTile::new(block, all, kernel.leaves[l].dtype);
        let tile = if any_loose { tile.loosened() } else { tile };
        (tile.bytes() + most * tuning.group <= room).then_some(tile)
    };

    let near: Vec<_> = (0..kernel.leaves.len()).map(|l| registers(kernel, l, block, tuning)).collect();
    let of_tiles: Vec<usize> = order.iter().copied().filter(|&l| near[l].is_none()).collect();
    let stages = plan_stages(kernel, &of_tiles, block, tuning, room);
    for &l in order {
        let near = near[l];
        if groups.iter().any(|g| g.leaves.contains(&l)) {
            continue;
        }
        let leaf = &kernel.leaves[l];
        let tile = || shared(l).unwrap_or_else(|| own(l));
        let products = products(kernel, leaf, block, (limits, room));
        let method = match (&leaf.op, window(leaf), products.map(Method::Products).or(near.map(Method::Near))) {
            (.., Some(method)) => method,
            (LeafOp::Correlate(FilterSource::Stage(s), _, b), ..) => {
                let key = StageKey { stage: *s, border: *b };
                match stages.slots.iter().position(|x| x.key == key) {
                    Some(i) => Method::Column(i),
                    None => continue,
                }
            }
            (_, Some((_, None, _)), _) if fits(l) => Method::Selection(tile()),
            (_, Some((_, f, _)), _) if is_sparse(f) && fits(l) => Method::Sparse(tile()),
            (_, Some((_, Some(f), _)), _) => match *f.layout() {
                FilterLayout::Dense { .. } if fits(l) => Method::Dense(tile()),
                FilterLayout::Dense { height, width, .. } => {
                    match chunk_rows(height, width, own(l), block, leaf.dtype, room) {
                        0 => continue,
                        n => Method::Chunked(n),
                    }
                }
                FilterLayout::Sparse(_) => continue,
            },
            _ => continue,
        };
        let mut leaves = vec![l];
        // Only leaves that the code reads next join, so that no result waits long in registers; and only as many as
        // have space for their taps.
        let most = match method {
            Method::Dense(t) => tuning.group.min((room - t.bytes()) / taps(l).max(1)),
            Method::Column(_) => tuning.group,
            _ => 1,
        };
        let rest = order.iter().skip_while(|&&k| k != l).skip(1);
        for &k in rest.filter(|&&k| !matches!(kernel.leaves[k].op, LeafOp::Load(_) | LeafOp::LoadPlane(..))) {
            if leaves.len() >= most || !same_group(leaf, &kernel.leaves[k]) {
                break;
            }
            leaves.push(k);
        }
        leaves.iter().for_each(|&k| lazy[k] = false);
        groups.push(LeafGroup { method, leaves });
    }
    place_slots(groups, lazy, stages, room)
}

/// Taps from which a filter of bytes is computed by products of matrices: a filter of 5x11 then takes less time than
/// one of 5x7 or 5x9 otherwise.
const PRODUCTS: usize = 49;

/// Elements from row to row of the sums of a block: rows are in different banks.
pub(super) fn sum_pitch(block: ThreadBlock) -> usize {
    block.width() + 8
}

/// The tile of a filter that is computed by products of matrices of 16 x 8 sums; all warps of a block have equally
/// many.
fn products(
    kernel: &MapKernel,
    leaf: &Leaf,
    block: ThreadBlock,
    (limits, room): (KernelLimits, usize),
) -> Option<InputTile> {
    let (_, dtype) = kernel.bytes(leaf).filter(|_| limits.multiplies_bytes())?;
    let LeafOp::Correlate(_, filter, _) = &leaf.op else { return None };
    let (height, width) = (block.height(), block.width());
    let whole = height.is_multiple_of(16)
        && width.is_multiple_of(8)
        && (height / 16 * width / 8).is_multiple_of(block.threads() / 32)
        && block.levels == 1;
    let tile = InputTile::new(block, filter.reach(), dtype);
    let tile = InputTile { pitch: skewed_pitch(tile.cols, dtype), ..tile };
    let bytes = tile.bytes() + height * sum_pitch(block) * size_of::<f32>();
    (whole && filter.taps().len() >= PRODUCTS && bytes <= room).then_some(tile)
}

/// Rows of a dense filter that are applied at a time.
fn chunk_rows(height: usize, width: usize, whole: InputTile, block: ThreadBlock, dtype: DType, room: usize) -> usize {
    let need = |n: usize| {
        InputTile { rows: block.height() + n - 1, ..whole }.bytes() + n * tap_pitch(width, dtype) * dtype.size()
    };
    (1..height).rev().find(|&n| need(n) + REGION <= room).unwrap_or(0)
}

struct StagePlan {
    slots: Vec<StageSlot>,
    sizes: Vec<usize>,
    buffers: usize,
    chunk: usize,
}

/// Elements from row to row of a stage or its input: 16 bytes beyond a multiple of 128, see `separable.cuh`.
pub(super) fn skewed_pitch(cols: usize, dtype: DType) -> usize {
    let line = 128 / dtype.size();
    let v = vector(dtype);
    cols.saturating_sub(v).next_multiple_of(line) + v
}

/// The stages that column leaves read, each with its own slot; those that do not fit are left out.
fn plan_stages(kernel: &MapKernel, order: &[usize], block: ThreadBlock, tuning: &Tuning, room: usize) -> StagePlan {
    let mut found: Vec<(StageKey, Reach, DType)> = Vec::new();
    for &l in order {
        let leaf = &kernel.leaves[l];
        if let LeafOp::Correlate(FilterSource::Stage(stage), f, border) = &leaf.op {
            let key = StageKey { stage: *stage, border: *border };
            match found.iter_mut().find(|x| x.0 == key) {
                Some(x) => x.1 = x.1.max(f.reach()),
                None => found.push((key, f.reach(), leaf.dtype)),
            }
        }
    }
    let build = |chunk: usize| {
        let mut s = StagePlan { slots: Vec::new(), sizes: Vec::new(), buffers: 0, chunk };
        for &(key, reach, dtype) in &found {
            let pitch = skewed_pitch(block.width(), dtype);
            let chunks = (block.height() + reach.up + reach.down).div_ceil(chunk);
            let size = (chunks * chunk * pitch * dtype.size()).next_multiple_of(REGION);
            let input = InputTile::new(block, kernel.stages[key.stage].filter.reach(), dtype);
            let buffers = (2 * chunk * skewed_pitch(input.cols, dtype) * dtype.size()).next_multiple_of(REGION);
            if size + buffers <= room {
                s.slots.push(StageSlot { key, at: 0, up: reach.up, chunks, pitch, input });
                s.sizes.push(size);
                s.buffers = s.buffers.max(buffers);
            }
        }
        s
    };
    let first = build(tuning.chunk);
    if first.slots.len() == found.len() { first } else { build(4) }
}

/// Decides whether all stages stay in shared memory or take turns in one slot.
fn place_slots(groups: Vec<LeafGroup>, lazy: Vec<bool>, mut stages: StagePlan, room: usize) -> KernelSchedule {
    let sequence: Vec<usize> =
        groups.iter().filter_map(|g| if let Method::Column(s) = g.method { Some(s) } else { None }).collect();
    let turns = sequence.chunk_by(|a, b| a == b).count();
    let all: usize = stages.sizes.iter().sum();
    let one = stages.sizes.iter().copied().max().unwrap_or(0);
    let resident = turns > stages.slots.len() && all + stages.buffers <= room;
    let mut at = 0;
    for (slot, size) in stages.slots.iter_mut().zip(&stages.sizes) {
        slot.at = at;
        at += if resident { *size } else { 0 };
    }
    KernelSchedule {
        groups,
        lazy,
        slots: stages.slots,
        slot_bytes: if resident { all } else { one },
        chunk: stages.chunk,
    }
}
