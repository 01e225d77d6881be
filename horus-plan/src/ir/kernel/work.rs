//! The work of a launch: bytes, multiply-adds and pixels, from which a machine profile predicts its time.

use super::{Family, FilterKind, FilterSource, ImageExtent, InstrOp, Kernel, Leaf, LeafOp, MapKernel, Repeat};
use crate::ops::geometric::Interpolation;
use crate::ops::neighbourhood::{Filter, FilterLayout};
use crate::ops::operation::LaunchEffort;
use horus_base::dtype::DType;
use horus_base::shape::{Shape, Window};

/// Fraction of an image that each evaluation of a chain after the first reads from memory: an estimate,
/// between the values for three row filters over one image, which pay, and for two over two images, which do
/// not.
pub(crate) const CACHED: f64 = 0.45;

/// Minimum number of taps of a large dense filter.
const LARGE: usize = 100;

/// The work of one launch, independent of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelWork {
    /// Bytes of the inputs, each pixel counted once.
    pub read: usize,
    /// Bytes of the result.
    pub written: usize,
    /// Multiply-adds, with other arithmetic converted to multiply-adds.
    pub multiply_adds: f64,
    /// The part of `multiply_adds` with which several iterations of a loop read their neighbours.
    pub taps: f64,
    /// The part of `multiply_adds` in row filters. In tiled work it is repeated for the rows around each tile.
    pub staged: f64,
    /// Total rows above and below the computed ones that filters read.
    pub reach: usize,
    /// Number of evaluations of pixel operations around the computed pixels for filters (one for each row
    /// pass over them); 0 if there are none. In tiled work they are repeated for the rows around each tile.
    pub evaluations: usize,
    /// Cost in multiply-adds of chains that read around their pixels if each evaluation reads images
    /// directly, as on a GPU. A CPU computes each of their rows once.
    pub straight: f64,
    /// Pixels computed, of all planes (for reductions and histograms: pixels read).
    pub pixels: usize,
    /// Number of consecutive iterations of a loop, each within tiles of the device.
    pub iterations: usize,
    /// Kernel family.
    pub family: Family,
    /// The part of `multiply_adds` that a CPU saves because it slides extremes along lines.
    pub slid: f64,
    /// The widest type in the computation. A CPU computes more values of a narrow type at once.
    pub dtype: DType,
}

impl KernelWork {
    /// An empty launch.
    pub const NONE: KernelWork = KernelWork {
        read: 0,
        written: 0,
        multiply_adds: 0.0,
        taps: 0.0,
        staged: 0.0,
        reach: 0,
        evaluations: 0,
        straight: 0.0,
        pixels: 0,
        iterations: 1,
        family: Family::Pixel,
        slid: 0.0,
        dtype: DType::F32,
    };

    /// Bytes of the images that a launch reads and writes.
    pub const fn bytes(&self) -> usize {
        self.read + self.written
    }
}

impl Kernel {
    /// The work of a launch for rows `rows` of `output`, from images like `inputs`. As in a launch, `rows`
    /// are rows of the input for a kernel that [goes over its input](Kernel::goes_over_input).
    pub fn work(&self, inputs: &[ImageExtent], output: ImageExtent, rows: Window) -> KernelWork {
        let (out, out_type) = output;
        if matches!(self, Kernel::Source(_)) || (rows.is_empty() && !self.launches_without_rows()) {
            return KernelWork::NONE;
        }
        let over_input = self.goes_over_input();
        let first = inputs.first().map_or(out, |(shape, _)| *shape);
        let wide = |shape: Shape| shape.line() * shape.planes();
        let read: usize = inputs.iter().enumerate().map(|(i, &input)| self.bytes_read(i, rows, out, input)).sum();
        let more: Vec<DType> = match self {
            Kernel::Map(m) => m.additional_results[..m.further()].iter().map(|v| m.type_of(*v)).collect(),
            _ => Vec::new(),
        };
        let sizes = out_type.size() + more.iter().map(|t| t.size()).sum::<usize>();
        let written = if over_input { out.len() } else { rows.clipped(out.height).len() * wide(out) } * sizes;
        // One addition per reduced pixel.
        let reduced = LaunchEffort::of_rows(Family::Reduction, first, rows.len(), 1.0);
        let computed = |m: &MapKernel| LaunchEffort::of_rows(m.family(), out, rows.len(), 0.0);
        let (effort, map) = match self {
            Kernel::Map(m) => (computed(m), Some(m)),
            Kernel::Repeat(r) => (computed(&r.body), Some(&r.body)),
            Kernel::MapReduce(m, _) => (reduced, Some(m)),
            Kernel::Source(_) => (LaunchEffort::of_rows(Family::Pixel, out, rows.len(), 0.0), None),
            Kernel::Whole(operation) => (operation.effort(inputs, output, rows.len()), None),
        };
        let LaunchEffort { family, pixels, cost: own, reach: around } = effort;
        let (per_pixel, staged, reach) = map.map_or((0.0, 0.0, around), MapKernel::arithmetic);
        let steps = if let Kernel::Repeat(r) = self { r.iterations } else { 1 };
        // All iterations, with the surrounding rows that later iterations read. Constant inputs are read once
        // for all of them.
        let (again, once, taps) = match self {
            Kernel::Repeat(r) => {
                let state = FilterSource::Input(r.state);
                let stays = r.body.leaves.iter().filter(|l| l.source() != state).map(of_leaf).sum::<f64>();
                let computed = (r.rows_computed(rows, out) * wide(out)) as f64;
                let taps = r.body.leaves.iter().map(of_leaf).sum::<f64>() - stays;
                ((per_pixel - stays) * computed, stays * pixels as f64, taps * computed)
            }
            _ => ((per_pixel + own) * pixels as f64, 0.0, 0.0),
        };
        let widest = |types: &mut dyn Iterator<Item = DType>| types.max_by_key(|t| (t.size(), t.is_float()));
        let read_types = || inputs.iter().map(|(_, t)| *t);
        let dtype = match map {
            Some(m) if family != Family::Reduction => widest(&mut m.types()),
            _ if family == Family::Histogram => widest(&mut read_types()),
            // Sums are in f64.
            _ => widest(&mut read_types().chain([out_type])),
        };
        KernelWork {
            read,
            written,
            multiply_adds: again + once,
            taps,
            staged: staged * pixels as f64,
            reach: reach * steps,
            evaluations: map.map_or(0, |m| (0..m.chains.len()).map(|c| m.evaluations(c)).max().unwrap_or(0)),
            straight: map.map_or(0.0, MapKernel::straight) * pixels as f64,
            pixels,
            iterations: steps,
            family,
            slid: map.map_or(0.0, MapKernel::slid) * pixels as f64,
            dtype: dtype.unwrap_or(DType::F32),
        }
    }

    /// Number of reads of each pixel of input `i` over the bus to the host's memory, for `rows` rows of a
    /// result. Filters of different shape, row filters and chains each read it separately; a cache serves part
    /// of these reads, but none of those of a product.
    pub(crate) fn times_read(&self, i: usize, output: ImageExtent, rows: usize) -> f64 {
        let m = match self {
            Kernel::Map(m) | Kernel::MapReduce(m, _) => m,
            Kernel::Whole(operation) => return operation.times_read(i, output, rows) as f64,
            Kernel::Source(_) | Kernel::Repeat(_) => return 1.0,
        };
        let reads = |source: FilterSource| match source {
            FilterSource::Input(input) => input == i,
            FilterSource::Chain(c) => m.chains[c].reads_input(i),
            FilterSource::Stage(_) => false, // counted for the stage
        };
        let extent = |f: &Filter| {
            let reach = f.reach();
            (reach.up, reach.down, reach.left, reach.right)
        };
        let mut passes: Vec<_> = m.stages.iter().filter(|s| reads(s.source)).map(|s| Some(extent(&s.filter))).collect();
        passes.extend(m.leaves.iter().filter(|l| reads(l.source())).map(|l| match &l.op {
            LeafOp::Correlate(_, f, _) => Some(extent(f)),
            _ => None,
        }));
        passes.sort_unstable();
        passes.dedup();
        1.0 + passes.len().saturating_sub(1) as f64 * CACHED
    }

    /// Bytes of input `i` that a launch reads, each counted once.
    pub(crate) fn bytes_read(&self, i: usize, rows: Window, out: Shape, (shape, dtype): ImageExtent) -> usize {
        /// Maximum number of row blocks for which the columns of a warped image are computed.
        const BLOCKS: usize = 64;
        let lines = if self.goes_over_input() && i == 0 {
            rows.clipped(shape.height)
        } else {
            self.footprint(i, rows, out, shape)
        };
        let block = lines.len().div_ceil(BLOCKS).max(1);
        let mut area = 0;
        let mut at = lines.start;
        while at < lines.end {
            let part = Window::new(at, (at + block.cast_signed()).min(lines.end));
            let columns = self.columns(i, rows, out, shape, part).map_or(shape.width, |(l, r)| r.saturating_sub(l));
            area += part.len() * columns;
            at = part.end;
        }
        area * self.planes_read(i, shape.planes(), out.planes()) * shape.pixel_bytes(dtype)
    }

    /// Number of planes of input `i`, out of `planes`, read for a result of `result` planes.
    fn planes_read(&self, i: usize, planes: usize, result: usize) -> usize {
        let (Kernel::Map(m) | Kernel::MapReduce(m, _) | Kernel::Repeat(Repeat { body: m, .. })) = self else {
            return planes;
        };
        let (mut fixed, mut moved) = (Vec::new(), 0);
        for (m, leaf) in m.all_leaves() {
            match leaf.op {
                LeafOp::LoadPlane(input, _) if input != i => {}
                LeafOp::LoadPlane(_, map) => match map.fixed() {
                    Some(plane) => fixed.push(plane),
                    // Neighbouring levels read mostly the same planes.
                    None => moved = moved.max(map.count(result)),
                },
                _ if leaf.source() != FilterSource::Input(i) && !matches!(leaf.source(), FilterSource::Stage(_)) => {}
                _ if m.reads(leaf, i) => return planes,
                _ => {}
            }
        }
        fixed.sort_unstable();
        fixed.dedup();
        (fixed.len() + moved).min(planes)
    }
}

impl MapKernel {
    fn family(&self) -> Family {
        let is = |which: fn(&LeafOp) -> bool| self.leaves.iter().any(|l| which(&l.op));
        let taps = |l: &Leaf| match &l.op {
            LeafOp::Correlate(_, f, _) => f.taps().len(),
            LeafOp::Shift(..) => 1,
            _ => 0,
        };
        match self.leaves.iter().map(taps).max().unwrap_or(0) {
            _ if self.leaves.iter().any(|l| l.filter_kind() == Some(FilterKind::OrderFilter)) => Family::Rank,
            _ if !self.stages.is_empty() => Family::Separable,
            // Tiles are as wide as the line is long, and rows of taps differ.
            1.. if is(
                |op| matches!(op, LeafOp::Correlate(_, f, _) if matches!(f.layout(), FilterLayout::Sparse(_))),
            ) =>
            {
                Family::Sparse
            }
            1.. if self.leaves.iter().filter(|l| taps(l) > 0).all(|l| self.bytes(l).is_some()) => {
                Family::CorrelateBytes
            }
            LARGE.. => Family::CorrelateLarge,
            1.. => Family::CorrelateSmall,
            0 if is(|op| matches!(op, LeafOp::Warp(..) | LeafOp::Flip(..))) => Family::Warp,
            0 => Family::Pixel,
        }
    }

    /// The types of leaves, operands and results; samples between pixels are of floats.
    fn types(&self) -> impl Iterator<Item = DType> + '_ {
        let of = |l: &Leaf| match l.op {
            LeafOp::Warp(_, _, Interpolation::Bilinear | Interpolation::Bicubic, _) => l.dtype.interpolation(),
            _ => l.dtype,
        };
        let code = self.code.iter().flat_map(|i| [i.operand, i.result]);
        let chains = self.chains.iter().flat_map(move |c| c.leaves.iter().map(of).chain([c.result_type()]));
        self.leaves.iter().map(of).chain(code).chain(chains)
    }

    /// Multiply-adds per pixel saved by sliding extremes.
    fn slid(&self) -> f64 {
        let spared = |l: &Leaf| match &l.op {
            LeafOp::OrderFilter(_, filter, _) => filter.cost() - filter.sliding(),
            _ => 0.0,
        };
        self.leaves.iter().map(spared).sum()
    }

    /// Multiply-adds per pixel, row filters included, and the rows above and below that filters read.
    fn arithmetic(&self) -> (f64, f64, usize) {
        let filtered = |l: &&Leaf| matches!(l.filter_kind(), Some(FilterKind::Linear | FilterKind::OrderFilter));
        let reach = self.leaves.iter().filter(filtered).filter_map(|l| l.reach(&self.stages));
        let reach = reach.map(|(r, _)| r.up + r.down).max().unwrap_or(0);
        let within = self.chains.iter().map(|c| c.arithmetic().2).max().unwrap_or(0);
        let staged: f64 = self.stages.iter().map(|s| s.filter.taps().len() as f64).sum();
        let chained =
            self.chains.iter().enumerate().map(|(c, chain)| self.evaluations(c) as f64 * chain.arithmetic().0);
        let chained: f64 = chained.sum();
        let leaves: f64 = self.leaves.iter().map(of_leaf).sum();
        let code: f64 = self.code.iter().map(|i| of_instruction(i.op)).sum();
        (staged + chained + leaves + code, staged + chained, reach + within)
    }

    /// Evaluations of chain `c` per pixel: one by each row filter over it, and one for all filters that read
    /// it.
    pub(super) fn evaluations(&self, c: usize) -> usize {
        let chain = FilterSource::Chain(c);
        let stages = self.stages.iter().filter(|s| s.source == chain).count();
        stages + usize::from(self.leaves.iter().any(|l| l.source() == chain))
    }
}

/// Cost of an instruction.
pub(super) fn of_instruction(op: InstrOp) -> f64 {
    match op {
        InstrOp::Pixel(op) => op.cost(),
        InstrOp::Convert(_) => 6.0,
    }
}

/// Cost of a leaf, without the stage or chain that it reads.
fn of_leaf(leaf: &Leaf) -> f64 {
    match &leaf.op {
        LeafOp::Load(_) | LeafOp::LoadPlane(..) | LeafOp::Shift(..) | LeafOp::Flip(..) => 0.0,
        LeafOp::Correlate(_, f, _) => f.cost(),
        LeafOp::OrderFilter(_, filter, _) => filter.cost(),
        // Integers are converted and rounded one by one where rows and columns mix.
        LeafOp::Warp(_, map, how, _) if !leaf.dtype.is_float() && (map.xy, map.yx) != (0, 0) => how.cost() + 33.0,
        LeafOp::Warp(_, _, how, _) => how.cost(),
    }
}
