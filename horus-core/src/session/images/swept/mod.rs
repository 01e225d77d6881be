//! Results of operations on whole images that do not fit in memory.
//!
//! Such an operation sweeps over the rows of its inputs, in raster order. It keeps what it needs of them in a temporary
//! file, from which regions of the result are read like those of a picture.

mod labels;
mod nearest;
mod reconstruction;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use crate::cpu::simd::Isa;
use crate::dtype::DType;
use crate::error::Call;
use crate::host::buffer::HostBuffer;
use crate::host::workers::Workers;
use crate::ir::graph::{Graph, Node, NodeId, Op};
use crate::ops::Whole;
use crate::ops::components::MOST_PIXELS;
use crate::session::images::on_demand::OnDemandImage;
use crate::shape::{Axis, Region, Shape};
use horus_files::{FileTraffic, RegionSource, TemporaryImage};

/// An operation that sweeps over its inputs.
trait Sweep: Send {
    /// Takes the next rows of the inputs, counted over all levels.
    ///
    /// # Errors
    /// A message, if the temporary file cannot be written.
    fn take(&mut self, rows: Range<usize>, inputs: &[&[u8]], workers: &Workers) -> Result<(), String>;

    /// The result, after all rows; `stop` returns `true` if the evaluation is to end.
    ///
    /// # Errors
    /// As [`Sweep::take`]; also if the result cannot be represented, or the evaluation is to end.
    fn finish(
        self: Box<Self>,
        workers: &Workers,
        stop: &dyn Fn() -> bool,
    ) -> Result<Arc<dyn RegionSource>, SweepFailure>;
}

/// Why a sweep has no result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum SweepFailure {
    /// The temporary file failed.
    File(String),
    /// The result cannot be represented.
    Result(String),
    /// The evaluation was to end.
    Stopped,
}

impl From<String> for SweepFailure {
    fn from(cause: String) -> SweepFailure {
        SweepFailure::File(cause)
    }
}

/// Returns `true` if a node's operation can sweep over its inputs.
pub(crate) fn is_swept(graph: &Graph<Op>, node: NodeId) -> bool {
    let Node { op, shape, .. } = graph.node(node);
    match op {
        Op::Whole(Whole::Components(_) | Whole::Reconstruct(_)) => true,
        Op::Whole(Whole::NearestOnLine(how)) => shape.planes() == shape.depth && how.along == line(*shape),
        _ => false,
    }
}

/// Keeps an image in a file.
struct KeepSweep(TemporaryImage);

impl Sweep for KeepSweep {
    fn take(&mut self, rows: Range<usize>, inputs: &[&[u8]], _: &Workers) -> Result<(), String> {
        write_rows(&self.0, rows, inputs[0])
    }

    fn finish(self: Box<Self>, _: &Workers, _: &dyn Fn() -> bool) -> Result<Arc<dyn RegionSource>, SweepFailure> {
        Ok(Arc::new(self.0))
    }
}

/// The axis along which the first sweep of distances goes.
fn line(shape: Shape) -> Axis {
    if shape.depth > 1 { Axis::Depth } else { Axis::Rows }
}

/// The result of an operation that sweeps over its inputs; it has pixels when the sweep is finished.
pub(crate) struct SweptImage {
    /// The operation; `None` to keep the input as it is.
    operation: Option<Whole>,
    shape: Shape,
    dtype: DType,
    /// The type of the inputs.
    of: DType,
    /// Number of the input that each operand is.
    operands: Vec<usize>,
    /// Maximum number of rows that are processed at once.
    rows: usize,
    call: Call,
    result: OnceLock<Arc<dyn RegionSource>>,
}

impl SweptImage {
    /// The result of a node that [sweeps](is_swept), on a host with this much memory, and the inputs; for any other node
    /// its pixels, which are kept in a file.
    pub(crate) fn of(graph: &Graph<Op>, node: NodeId, memory: usize) -> Option<(SweptImage, Vec<NodeId>)> {
        /// Pixels that are processed at once: bounds of a part of the memory. These are guesses.
        const LEAST: usize = 1 << 14;
        const MOST: usize = 1 << 24;
        const PARTS: usize = 128;
        let Node { op, inputs, shape, dtype, site } = graph.node(node);
        let operation = if is_swept(graph, node) { Some(op) } else { None };
        let inputs = operation.map_or(std::slice::from_ref(&node), |_| inputs);
        let mut different: Vec<NodeId> = Vec::new();
        for input in inputs {
            if !different.contains(input) {
                different.push(*input);
            }
        }
        let operands = inputs.iter().filter_map(|input| different.iter().position(|known| known == input)).collect();
        let of = graph.node(*inputs.first()?).dtype.stored();
        let operation = operation.and_then(|op| if let Op::Whole(whole) = op { Some(whole.clone()) } else { None });
        let call =
            Call { op: operation.as_ref().map_or("evaluating by regions", |whole| whole.kind()), site: site.site };
        let rows = ((memory / PARTS).clamp(LEAST, MOST) / shape.width.max(1)).max(1);
        let image = SweptImage {
            operation,
            shape: *shape,
            dtype: dtype.stored(),
            of,
            operands,
            rows,
            call,
            result: OnceLock::new(),
        };
        let at_once = reconstruction::rows_at_once(*shape, rows).saturating_mul(shape.width);
        let is_counted = !matches!(image.operation, Some(Whole::Reconstruct(_))) || at_once <= MOST_PIXELS;
        is_counted.then_some((image, different))
    }

    /// The image for programs that read it.
    pub(crate) fn on_demand(self: &Arc<Self>) -> OnDemandImage {
        OnDemandImage { is_shared: true, ..OnDemandImage::of(Arc::<SweptImage>::clone(self), "a temporary file") }
    }

    pub(crate) fn call(&self) -> Call {
        self.call
    }

    /// Bytes of memory that the sweep uses.
    pub(crate) fn scratch_bytes(&self) -> usize {
        let rows = self.rows.min(self.shape.depth * self.shape.height);
        let pixel = match self.operation {
            Some(Whole::Components(_)) => labels::PIXEL,
            Some(Whole::Reconstruct(_)) => reconstruction::pixel(self.of),
            _ => nearest::PIXEL,
        };
        let (line, rows) = match self.operation {
            Some(Whole::Reconstruct(_)) => (0, reconstruction::rows_at_once(self.shape, self.rows)),
            Some(Whole::NearestOnLine(_)) if self.shape.depth > 1 => (self.shape.area() * size_of::<i32>(), rows),
            _ => (self.shape.width * size_of::<i32>(), rows),
        };
        rows.saturating_mul(self.shape.width).saturating_mul(pixel).saturating_add(line)
    }

    /// Begins the sweep over inputs whose parts arrive in raster order or in another.
    ///
    /// # Errors
    /// A message, if there is no room for temporary files.
    pub(crate) fn begin(&self, in_order: bool) -> Result<RunningSweep, String> {
        let (shape, of, rows) = (self.shape, self.of, self.rows);
        // Kernels need the smallest instruction set, also beside a GPU.
        let isa = Isa::detect().map_err(|e| e.to_string())?;
        let sweep: Box<dyn Sweep> = match &self.operation {
            Some(Whole::Components(how)) => Box::new(labels::LabelSweep::new(shape, of, how.neighbours, how.value)?),
            Some(Whole::Reconstruct(how)) => Box::new(reconstruction::GrowthSweep::new(shape, of, *how, rows)?),
            None => Box::new(KeepSweep(TemporaryImage::new(shape, of)?)),
            _ => Box::new(nearest::NearestSweep::new(shape, of, rows, isa)?),
        };
        let inputs = if in_order { 0 } else { 1 + self.operands.iter().copied().max().unwrap_or(0) };
        let files = (0..inputs).map(|_| TemporaryImage::new(shape, of)).collect::<Result<Vec<_>, _>>()?;
        let out_of_order = (!in_order).then_some(files);
        Ok(RunningSweep { sweep, shape, of, operands: self.operands.clone(), rows, out_of_order })
    }

    /// Ends the sweep: the image has pixels.
    ///
    /// # Errors
    /// Of the operation, or if `stop` returns `true`.
    pub(crate) fn finish(
        &self,
        running: RunningSweep,
        workers: &Workers,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), SweepFailure> {
        let result = running.finish(workers, stop)?;
        // A schedule runs once.
        let _ = self.result.set(result);
        Ok(())
    }
}

/// A sweep that takes the parts of its inputs.
pub(crate) struct RunningSweep {
    sweep: Box<dyn Sweep>,
    shape: Shape,
    of: DType,
    operands: Vec<usize>,
    rows: usize,
    /// The inputs, if their parts do not arrive in raster order.
    out_of_order: Option<Vec<TemporaryImage>>,
}

impl RunningSweep {
    /// Takes whole rows of some levels of each input.
    ///
    /// # Errors
    /// A message of the operation.
    pub(crate) fn take(
        &mut self,
        levels: Range<usize>,
        region: Region,
        inputs: &[&[u8]],
        workers: &Workers,
    ) -> Result<(), String> {
        if let Some(files) = &self.out_of_order {
            return files.iter().zip(inputs).try_for_each(|(file, pixels)| file.put(levels.clone(), region, pixels));
        }
        let first = levels.start * self.shape.height + region.top;
        let row = self.shape.width * self.of.size();
        let count = inputs.first().map_or(0, |pixels| pixels.len() / row.max(1));
        for rows in groups(first..first + count, self.rows) {
            let part = (rows.start - first) * row..(rows.end - first) * row;
            let operands: Vec<&[u8]> = self.operands.iter().map(|input| &inputs[*input][part.clone()]).collect();
            self.sweep.take(rows, &operands, workers)?;
        }
        Ok(())
    }

    fn finish(mut self, workers: &Workers, stop: &dyn Fn() -> bool) -> Result<Arc<dyn RegionSource>, SweepFailure> {
        if let Some(files) = self.out_of_order.take() {
            for rows in groups(0..self.shape.depth * self.shape.height, self.rows) {
                let mut parts = Vec::with_capacity(files.len());
                if stop() {
                    return Err(SweepFailure::Stopped);
                }
                for file in &files {
                    let mut part = HostBuffer::zeroed(rows.len() * self.shape.width * self.of.size());
                    read_rows(file, rows.clone(), part.bytes_mut(), workers)?;
                    parts.push(part);
                }
                let operands: Vec<&[u8]> = self.operands.iter().map(|input| parts[*input].bytes()).collect();
                self.sweep.take(rows, &operands, workers)?;
            }
        }
        self.sweep.finish(workers, stop)
    }
}

/// Groups of consecutive rows.
fn groups(rows: Range<usize>, most: usize) -> impl Iterator<Item = Range<usize>> {
    rows.clone().step_by(most).map(move |first| first..rows.end.min(first + most))
}

/// Rows of an image that may be in several levels, counted over all levels, as parts of levels.
fn levels_of(rows: Range<usize>, height: usize) -> impl Iterator<Item = (usize, Range<usize>)> {
    let (first, last) = (rows.start / height, rows.end.div_ceil(height));
    (first..last).map(move |z| {
        let at = z * height;
        (z, rows.start.max(at) - at..rows.end.min(at + height) - at)
    })
}

/// Reads whole rows, counted over all levels.
fn read_rows(file: &TemporaryImage, rows: Range<usize>, to: &mut [u8], workers: &Workers) -> Result<(), String> {
    let shape = file.shape();
    let row = to.len() / rows.len().max(1);
    let mut to = to;
    for (z, rows) in levels_of(rows, shape.height) {
        let (part, rest) = to.split_at_mut(rows.len() * row);
        file.fill_levels(z..z + 1, Region::new(rows.start, 0, rows.len(), shape.width), part, workers)?;
        to = rest;
    }
    Ok(())
}

/// Writes whole rows, counted over all levels.
fn write_rows(file: &TemporaryImage, rows: Range<usize>, pixels: &[u8]) -> Result<(), String> {
    let shape = file.shape();
    let row = pixels.len() / rows.len().max(1);
    let mut pixels = pixels;
    for (z, rows) in levels_of(rows, shape.height) {
        let (part, rest) = pixels.split_at(rows.len() * row);
        file.put(z..z + 1, Region::new(rows.start, 0, rows.len(), shape.width), part)?;
        pixels = rest;
    }
    Ok(())
}

impl RegionSource for SweptImage {
    fn shape(&self) -> Shape {
        self.shape
    }

    fn dtype(&self) -> DType {
        self.dtype
    }

    fn chunk(&self) -> (usize, usize) {
        (1, self.shape.width)
    }

    fn levels(&self) -> usize {
        1
    }

    fn scratch_bytes(&self) -> usize {
        0
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.fill_levels(0..self.shape.depth, region, to, workers)
    }

    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        let result = self.result.get().ok_or("the image was not computed")?;
        result.fill_levels(levels, region, to, workers)
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic::default()
    }
}
