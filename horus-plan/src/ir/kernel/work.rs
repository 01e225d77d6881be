//! How much a launch has to do: bytes, multiply-adds and pixels, from which a machine profile predicts its time.

use serde::{Deserialize, Serialize};

use super::{InstrOp, Kernel, Leaf, LeafOp, MapKernel, Repeat, Source};
use crate::ops::geometric::Interpolation;
use crate::ops::neighbourhood::{Filter, Layout, MedianSize, median_network};
use crate::ops::pixel::PixelOp;
use crate::ops::windowed::Windowed;
use horus_base::dtype::DType;
use horus_base::shape::{Shape, Window};

/// Taps from which on a dense filter counts as large.
const LARGE: usize = 100;

/// Kinds of kernels that use a machine alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Family {
    /// Pixel operations, copies of planes, tables.
    Pixel,
    /// Linear filters of fewer than 100 taps.
    CorrelateSmall,
    /// Linear filters of 100 taps and more.
    CorrelateLarge,
    /// Linear filters with taps wherever they are told, as those along oblique lines.
    Sparse,
    /// Row and column passes in one kernel.
    Separable,
    /// Samples of affine maps, mirror images.
    Warp,
    /// Medians and generalized convolutions.
    Rank,
    /// Reductions, with the expression that is reduced.
    Reduction,
    /// Histograms.
    Histogram,
    /// Transpositions.
    Transpose,
}

impl Family {
    /// All families.
    pub const ALL: [Family; 10] = [
        Family::Pixel,
        Family::CorrelateSmall,
        Family::CorrelateLarge,
        Family::Sparse,
        Family::Separable,
        Family::Warp,
        Family::Rank,
        Family::Reduction,
        Family::Histogram,
        Family::Transpose,
    ];

    /// Whether its kernels read and write images tile by tile.
    pub const fn is_tiled(self) -> bool {
        match self {
            Family::CorrelateSmall | Family::CorrelateLarge | Family::Sparse | Family::Separable | Family::Rank => true,
            Family::Pixel | Family::Warp | Family::Reduction | Family::Histogram | Family::Transpose => false,
        }
    }

    /// Its name in words.
    pub const fn name(self) -> &'static str {
        match self {
            Family::Pixel => "pixel operations",
            Family::CorrelateSmall => "small filters",
            Family::CorrelateLarge => "large filters",
            Family::Sparse => "filters with scattered taps",
            Family::Separable => "separable filters",
            Family::Warp => "affine maps",
            Family::Rank => "rank filters",
            Family::Reduction => "reductions",
            Family::Histogram => "histograms",
            Family::Transpose => "transpositions",
        }
    }
}

/// What one launch does. Nothing in it depends on a machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KernelWork {
    /// Bytes of the inputs, each pixel that is read counted once.
    pub read: usize,
    /// Bytes of the result.
    pub written: usize,
    /// Multiply-adds, and other arithmetic counted as so many.
    pub multiply_adds: f64,
    /// Those of `multiply_adds` by which the steps of a loop read their neighbours, where there are several.
    pub taps: f64,
    /// Those of `multiply_adds` that compute row passes: where the work is divided into tiles, they are done again for the
    /// rows around each.
    pub staged: f64,
    /// Rows above and below those computed that filters read, together.
    pub reach: usize,
    /// How often pixel operations are evaluated around the pixels computed, because filters read them (once for each row pass over
    /// them); 0 if none are. Where the work is divided into tiles, they read the rows around each again.
    pub evaluations: usize,
    /// What chains that read around their pixels take where each evaluation reads the images itself, as on a GPU: reads and
    /// arithmetic, counted as multiply-adds. A processor computes rows of them once.
    pub straight: f64,
    /// Pixels computed, of all planes (for reductions and histograms: read).
    pub pixels: usize,
    /// Steps of a loop that are made one after the other, each within tiles of the device.
    pub steps: usize,
    /// The kind of kernel.
    pub family: Family,
    /// The type in which it computes: [`DType::F32`] or [`DType::F64`].
    pub dtype: DType,
}

impl KernelWork {
    /// A launch that does nothing.
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
        steps: 1,
        family: Family::Pixel,
        dtype: DType::F32,
    };

    /// Bytes of the images that a launch goes through.
    pub const fn bytes(&self) -> usize {
        self.read + self.written
    }
}

/// Extent and type of an image.
pub type Extent = (Shape, DType);

impl Kernel {
    /// What a launch of the kernel does that computes rows `rows` of `output` (as in a launch: for a kernel that
    /// [goes over its input](Kernel::goes_over_input) the rows of the input) from images like `inputs`.
    pub fn work(&self, inputs: &[Extent], output: Extent, rows: Window) -> KernelWork {
        let (out, out_type) = output;
        if matches!(self, Kernel::Source(_)) || (rows.is_empty() && !self.launches_without_rows()) {
            return KernelWork::NONE;
        }
        let over_input = self.goes_over_input();
        let first = inputs.first().map_or(out, |(shape, _)| *shape);
        let wide = |shape: Shape| shape.width * shape.planes();
        let read: usize = inputs.iter().enumerate().map(|(i, &input)| self.bytes_read(i, rows, out, input)).sum();
        let more: Vec<DType> = match self {
            Kernel::Map(m) => m.more.iter().map(|v| m.type_of(*v)).collect(),
            _ => Vec::new(),
        };
        let sizes = out_type.size() + more.iter().map(|t| t.size()).sum::<usize>();
        let written = if over_input { out.len() } else { rows.clipped(out.height).len() * wide(out) } * sizes;
        let (family, map) = match self {
            Kernel::Map(m) => (m.family(), Some(m)),
            Kernel::Repeat(r) => (r.body.family(), Some(&r.body)),
            Kernel::MapReduce(m, _) => (Family::Reduction, Some(m)),
            Kernel::RowReduce(_) | Kernel::Running | Kernel::RunningDepth | Kernel::Fold(_) | Kernel::Tiles(..) => {
                (Family::Reduction, None)
            }
            Kernel::Histogram { .. } | Kernel::Labels(_) => (Family::Histogram, None),
            Kernel::Windowed(Windowed::Mean(_), _) => (Family::Separable, None),
            Kernel::Windowed(Windowed::Rank(_), _) => (Family::Rank, None),
            Kernel::Transpose => (Family::Transpose, None),
            Kernel::Remap(..) => (Family::Warp, None),
            Kernel::Components(_) | Kernel::Reconstruct(_) => (Family::Histogram, None),
            Kernel::Source(_) | Kernel::Merge | Kernel::Lookup => (Family::Pixel, None),
        };
        let pixels = match self {
            Kernel::RowReduce(_) | Kernel::MapReduce(..) | Kernel::Histogram { .. } => rows.len() * wide(first),
            Kernel::Labels(how) => rows.len() * how.block().unwrap_or(1) * wide(first),
            Kernel::Fold(_) => first.len(),
            Kernel::Tiles(grid, _) => rows.len() * wide(out) * (grid.height * grid.width).min(first.area()),
            _ => rows.len() * wide(out),
        };
        let (per_pixel, staged, reach) = match self {
            Kernel::Windowed(how, _) => (how.steps(), 0.0, how.reach().up + how.reach().down),
            _ => map.map_or((0.0, 0.0, 0), MapKernel::arithmetic),
        };
        let steps = if let Kernel::Repeat(r) = self { r.steps } else { 1 };
        let own = match self {
            Kernel::Remap(how, _) => {
                (how.taps() * how.taps()) as f64 * if inputs.len() > 3 { how.taps() as f64 } else { 1.0 }
            }
            // Each pixel looks for its root several times.
            Kernel::Components(how) => 8.0 + how.before().count() as f64,
            // How often depends on the pixels.
            Kernel::Reconstruct(how) => 16.0 * how.neighbours.neighbours().count() as f64,
            _ => f64::from(u8::from(matches!(family, Family::Reduction | Family::Histogram))),
        };
        // All steps, with the rows around that those to come read. What stays is read once for all of them.
        let (again, once, taps) = match self {
            Kernel::Repeat(r) => {
                let state = Source::Input(r.state);
                let stays = r.body.leaves.iter().filter(|l| l.source() != state).map(of_leaf).sum::<f64>();
                let computed = (r.rows_computed(rows, out) * wide(out)) as f64;
                let taps = r.body.leaves.iter().map(of_leaf).sum::<f64>() - stays;
                ((per_pixel - stays) * computed, stays * pixels as f64, taps * computed)
            }
            _ => ((per_pixel + own) * pixels as f64, 0.0, 0.0),
        };
        let types = inputs.iter().map(|(_, t)| *t).chain([out_type]).chain(more);
        // Sums are kept in f64 and bound by memory all the same: what counts is the type of the pixels.
        let doubles = if family == Family::Reduction { inputs.first().map(|i| i.1) } else { types.max() };
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
            steps,
            family,
            dtype: if doubles == Some(DType::F64) { DType::F64 } else { DType::F32 },
        }
    }

    /// How often a launch reads each pixel of input `i` from where it lies, as far as no cache has it: filters of different
    /// extent, row passes and chains each go through it by themselves.
    pub fn times_read(&self, i: usize) -> usize {
        let (Kernel::Map(m) | Kernel::MapReduce(m, _)) = self else { return 1 };
        let reads = |source: Source| match source {
            Source::Input(input) => input == i,
            Source::Chain(c) => m.chains[c].reads_input(i),
            Source::Stage(_) => false, // told of the stage
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
        passes.len().max(1)
    }

    /// Bytes of input `i` that a launch reads, each counted once.
    pub(crate) fn bytes_read(&self, i: usize, rows: Window, out: Shape, (shape, dtype): Extent) -> usize {
        /// Blocks of rows in which the columns of a warped image are looked up, at most.
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
        area * self.planes_read(i, shape.planes(), out.planes()) * dtype.size()
    }

    /// How many of `planes` planes of input `i` are read for a result of `result` planes.
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
                    // Neighbouring levels are mostly the same planes.
                    None => moved = moved.max(map.count(result)),
                },
                _ if leaf.source() != Source::Input(i) && !matches!(leaf.source(), Source::Stage(_)) => {}
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
            _ if is(|op| matches!(op, LeafOp::Median(..) | LeafOp::Generalized(..))) => Family::Rank,
            _ if !self.stages.is_empty() => Family::Separable,
            // Tiles are as wide as the line is long, and no row of taps is like the next.
            1.. if is(|op| matches!(op, LeafOp::Correlate(_, f, _) if matches!(f.layout(), Layout::Sparse(_)))) => {
                Family::Sparse
            }
            LARGE.. => Family::CorrelateLarge,
            1.. => Family::CorrelateSmall,
            0 if is(|op| matches!(op, LeafOp::Warp(..) | LeafOp::Flip(..))) => Family::Warp,
            0 => Family::Pixel,
        }
    }

    /// Multiply-adds for each pixel, those of row passes among them, and the rows above and below that filters read.
    fn arithmetic(&self) -> (f64, f64, usize) {
        let filtered = |l: &&Leaf| {
            matches!(l.op, LeafOp::Correlate(..) | LeafOp::Shift(..) | LeafOp::Generalized(..) | LeafOp::Median(..))
        };
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

    /// How often chain `c` is evaluated for a pixel: by each row pass over it, and once for all filters that read it.
    pub(super) fn evaluations(&self, c: usize) -> usize {
        let chain = Source::Chain(c);
        let stages = self.stages.iter().filter(|s| s.source == chain).count();
        stages + usize::from(self.leaves.iter().any(|l| l.source() == chain))
    }
}

/// What an instruction counts as. Divisions and roots are rounded correctly, the other functions are polynomials.
pub(super) fn of_instruction(op: InstrOp) -> f64 {
    match op {
        InstrOp::Pixel(PixelOp::Div | PixelOp::Recip | PixelOp::Sqrt | PixelOp::AbsDiv) => 10.0,
        InstrOp::Pixel(PixelOp::Exp | PixelOp::Log | PixelOp::Sin | PixelOp::Cos | PixelOp::Hypot) => 25.0,
        InstrOp::Pixel(PixelOp::Pow | PixelOp::Atan2) => 60.0,
        InstrOp::Pixel(_) | InstrOp::Convert => 1.0,
    }
}

/// What the read of a leaf counts as, without the stage or the chain that it reads.
fn of_leaf(leaf: &Leaf) -> f64 {
    match &leaf.op {
        LeafOp::Load(_) | LeafOp::LoadPlane(..) | LeafOp::Shift(..) | LeafOp::Flip(..) => 0.0,
        LeafOp::Correlate(_, f, _) => f.taps().len() as f64,
        LeafOp::Generalized(_, g, _) => 2.0 * g.window.taps().len() as f64,
        // Each exchange takes a minimum and a maximum.
        LeafOp::Median(_, MedianSize::Three, _) => 2.0 * median_network(9).len() as f64,
        LeafOp::Median(_, MedianSize::Five, _) => 2.0 * median_network(25).len() as f64,
        // Positions are whole numbers of 64 bits.
        LeafOp::Warp(_, _, Interpolation::Nearest, _) => 6.0,
        LeafOp::Warp(_, _, Interpolation::Bilinear, _) => 14.0,
        LeafOp::Warp(_, _, Interpolation::Bicubic, _) => 50.0,
    }
}
