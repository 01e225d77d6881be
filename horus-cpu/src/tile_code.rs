//! Compiler from an expression to a linear schedule: groups of filters, the order of steps, and the scratch slot of
//! every intermediate.

mod groups;

use std::sync::{Arc, Mutex, PoisonError};

use super::feed::RowStage;
use super::pixels::RUN;
use super::simd::Isa;
use horus_base::dispatch;
use horus_base::dtype::{Conversion, DType, Pixel, Scalar};
use horus_base::shape::Axis;
use horus_host::buffer::HostBuffer;
use horus_plan::ir::kernel::{FilterSource, InstrOp, Leaf, LeafOp, MapKernel, Val};
use horus_plan::ops::neighbourhood::Reach;
use horus_plan::ops::planes::PlaneMap;

use self::groups::{FilterGroups, source_type, weights};

pub(super) use self::groups::{FeedSpec, FilterGroup};

/// Storage of a value while a tile is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueStorage {
    /// A scratch slot.
    Slot(usize),
    /// An input's pixels: in the given plane, or in the plane being computed.
    Plane(usize, Option<usize>),
    /// An input's pixels in another plane, or a constant: an index into [`TileCode::levels`].
    Level(usize),
    /// A constant of [`TileCode::constants`].
    Constant(usize),
    /// The output of the result of this index.
    Output(usize),
}

/// The action of a step.
#[derive(Clone, Debug)]
pub(super) enum TileOperation {
    /// A group of filters: an index into [`TileCode::groups`].
    Group(usize),
    /// A leaf of the kernel other than a filter or a plain load.
    Leaf(usize),
    /// Pixels of an input of one row, one column or both, which repeat.
    Repeat(usize, [bool; 2], DType),
    /// Pixel coordinates along an axis, as numbers of this type.
    Index(Axis, DType),
    /// All samples of interleaved pixels of a plane of an input, of this type, each in its own storage.
    Split(usize, usize, DType),
    /// A sample of interleaved pixels, of this type: an index into [`TileCode::levels`].
    Sample(usize, DType),
    /// Interleaved pixels of these samples, of this type.
    Join(DType, Vec<ValueStorage>),
    /// A pixel operation, with the type of its operands and of its result.
    Run(InstrOp, DType, DType, Vec<ValueStorage>),
}

/// A step and the storage of its results: one, or one for each filter of a group.
#[derive(Clone, Debug)]
pub(super) struct TileInstruction {
    pub(super) operation: TileOperation,
    pub(super) targets: Vec<ValueStorage>,
}

/// A read of planes other than the one being computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MappedPlane {
    pub(super) input: usize,
    pub(super) map: PlaneMap,
    /// Index of the constant read beyond the input, in [`TileCode::constants`].
    pub(super) outside: usize,
}

/// A compiled kernel.
#[derive(Debug)]
pub(super) struct TileCode {
    pub(super) instructions: Vec<TileInstruction>,
    /// Samples of a pixel; columns are elements.
    pub(super) samples: usize,
    pub(super) slots: usize,
    /// Size in bytes of the largest element in a slot.
    pub(super) element: usize,
    pub(super) constants: Vec<HostBuffer>,
    pub(super) levels: Vec<MappedPlane>,
    pub(super) feeds: Vec<FeedSpec>,
    pub(super) groups: Vec<FilterGroup>,
    /// The taps of each stage, rounded to its type.
    pub(super) stages: Vec<HostBuffer>,
    /// Reach of each stage, in elements.
    reaches: Vec<Reach>,
    /// The kernel's chains.
    pub(super) chains: Vec<TileCode>,
}

struct TileCompiler<'a> {
    kernel: &'a MapKernel,
    /// Samples of the pixels of each input, if they are read one by one; otherwise empty.
    input_samples: &'a [usize],
    /// The kernel is a chain.
    chain: bool,
    schedule: TileCode,
    /// Group of each leaf.
    group_of: Vec<Option<usize>>,
    /// Storage of the value of each leaf and each instruction.
    leaves: Vec<Option<ValueStorage>>,
    results: Vec<Option<ValueStorage>>,
    /// Remaining reads of each value.
    leaf_uses: Vec<usize>,
    result_uses: Vec<usize>,
    free: Vec<usize>,
}

/// Schedules of the kernels launched last, the most recent last. (On a small image, compiling the schedule takes longer
/// than the call.)
struct TileCodeCache(Vec<(TileCodeKey, Arc<TileCode>)>);

/// A kernel, the types of its inputs, their samples if these are read one by one, and its variant.
type TileCodeKey = (MapKernel, Vec<DType>, Vec<usize>, KernelVariant);

/// The instruction set of a schedule, and the samples of pixels.
pub(super) type KernelVariant = (Isa, usize);

static TILE_CODE_CACHE: Mutex<TileCodeCache> = Mutex::new(TileCodeCache(Vec::new()));

impl TileCodeCache {
    /// Maximum number of schedules.
    const MOST: usize = 64;
    /// Maximum bytes of taps and constants of a schedule.
    const LARGE: usize = 1 << 16;

    /// Returns the schedule of a kernel over inputs of these types and makes it the most recent.
    fn find(
        &mut self,
        kernel: &MapKernel,
        dtypes: &[DType],
        apart: &[usize],
        how: KernelVariant,
    ) -> Option<Arc<TileCode>> {
        let same = |((k, types, samples, h), _): &(TileCodeKey, _)| {
            *h == how && types == dtypes && samples == apart && k == kernel
        };
        let at = self.0.iter().rposition(same)?;
        self.0[at..].rotate_left(1);
        self.0.last().map(|(_, schedule)| Arc::clone(schedule))
    }

    fn put(
        &mut self,
        kernel: &MapKernel,
        dtypes: &[DType],
        apart: &[usize],
        how: KernelVariant,
        schedule: &Arc<TileCode>,
    ) {
        if schedule.bytes() <= TileCodeCache::LARGE {
            if self.0.len() == TileCodeCache::MOST {
                self.0.remove(0);
            }
            let key = (kernel.clone(), dtypes.to_vec(), apart.to_vec(), how);
            self.0.push((key, Arc::clone(schedule)));
        }
    }
}

impl TileCode {
    /// [`TileCode::new`], cached for equal kernels.
    pub(super) fn of(kernel: &MapKernel, dtypes: &[DType], how: KernelVariant) -> Arc<TileCode> {
        TileCode::cached(kernel, dtypes, &[], how)
    }

    /// [`TileCode::of`] for a kernel that reads or makes single samples of pixels; `apart` has the samples of each
    /// input.
    pub(super) fn of_samples(kernel: &MapKernel, dtypes: &[DType], apart: &[usize], isa: Isa) -> Arc<TileCode> {
        TileCode::cached(kernel, dtypes, apart, (isa, 1))
    }

    fn cached(kernel: &MapKernel, dtypes: &[DType], apart: &[usize], (isa, samples): KernelVariant) -> Arc<TileCode> {
        let how = (isa, samples);
        let kept = || TILE_CODE_CACHE.lock().unwrap_or_else(PoisonError::into_inner);
        let known = kept().find(kernel, dtypes, apart, how);
        known.unwrap_or_else(|| {
            let schedule = Arc::new(TileCode::compiled(kernel, dtypes, apart, Some(isa), samples));
            kept().put(kernel, dtypes, apart, how, &schedule);
            schedule
        })
    }

    /// Bytes of taps and constants, including chains.
    fn bytes(&self) -> usize {
        let own = self.groups.iter().map(|g| &g.weights).chain(&self.stages).chain(&self.constants);
        own.map(HostBuffer::len).sum::<usize>() + self.chains.iter().map(TileCode::bytes).sum::<usize>()
    }

    /// Compiles `kernel` over inputs of types `dtypes`.
    #[cfg(test)]
    pub(super) fn new(kernel: &MapKernel, dtypes: &[DType], (isa, samples): KernelVariant) -> TileCode {
        TileCode::compiled(kernel, dtypes, &[], Some(isa), samples)
    }

    /// Compiles a kernel or a chain. A chain has no instruction set of its own: its filters are few.
    fn compiled(kernel: &MapKernel, dtypes: &[DType], apart: &[usize], isa: Option<Isa>, samples: usize) -> TileCode {
        let mut c = TileCompiler {
            kernel,
            input_samples: apart,
            chain: isa.is_none(),
            schedule: TileCode {
                instructions: Vec::new(),
                samples,
                slots: 0,
                element: 1,
                constants: Vec::new(),
                levels: Vec::new(),
                feeds: Vec::new(),
                groups: Vec::new(),
                stages: kernel
                    .stages
                    .iter()
                    .map(|s| weights(&[&s.filter], source_type(kernel, dtypes, s.source)))
                    .collect(),
                reaches: kernel.stages.iter().map(|s| s.filter.reach().in_samples(samples)).collect(),
                chains: kernel.chains.iter().map(|c| TileCode::of_chain(c, dtypes, samples)).collect(),
            },
            group_of: Vec::new(),
            leaves: vec![None; kernel.leaves.len()],
            results: vec![None; kernel.code.len()],
            leaf_uses: vec![0; kernel.leaves.len()],
            result_uses: vec![0; kernel.code.len()],
            free: Vec::new(),
        };
        c.count_uses();
        let FilterGroups { feeds, groups, of_leaf, .. } =
            FilterGroups::new(kernel, dtypes, (isa, samples), c.filters_in_order());
        (c.schedule.feeds, c.schedule.groups, c.group_of) = (feeds, groups, of_leaf);
        c.emit();
        c.schedule
    }

    /// Compiles a chain, whose rows are computed one at a time: the rows that its filters read are always in a ring.
    fn of_chain(chain: &MapKernel, dtypes: &[DType], samples: usize) -> TileCode {
        let mut schedule = TileCode::compiled(chain, dtypes, &[], None, samples);
        schedule.feeds.iter_mut().for_each(|f| f.copied = true);
        schedule
    }

    /// The row filters read by a feed.
    pub(super) fn row_stages(&self, feed: &FeedSpec) -> Vec<RowStage<'_>> {
        feed.stages.iter().map(|&s| RowStage::new(self.reaches[s], &self.stages[s])).collect()
    }

    /// Rows above and below together that filters read, including the filters of chains.
    pub(super) fn rows_around(&self) -> usize {
        let of_feed = |f: &FeedSpec| {
            let within = if let FilterSource::Chain(c) = f.source { self.chains[c].rows_around() } else { 0 };
            f.reach.up + f.reach.down + within
        };
        self.feeds.iter().map(of_feed).max().unwrap_or(0)
    }

    /// Returns `true` if the kernel consists of pixel operations only.
    pub(super) fn is_pointwise(&self) -> bool {
        let of_pixels = |action: &TileOperation| {
            matches!(
                action,
                TileOperation::Run(..) | TileOperation::Split(..) | TileOperation::Sample(..) | TileOperation::Join(..)
            )
        };
        self.instructions.iter().all(|s| of_pixels(&s.operation))
    }
}

impl TileCompiler<'_> {
    /// Counts the reads of every value that the results depend on.
    fn count_uses(&mut self) {
        let kernel = self.kernel;
        kernel.results().for_each(|v| self.read(v));
        for i in (0..kernel.code.len()).rev() {
            if self.result_uses[i] > 0 {
                kernel.code[i].args.iter().for_each(|a| self.read(*a));
            }
        }
    }

    fn read(&mut self, value: Val) {
        match value {
            Val::Leaf(l) => self.leaf_uses[l] += 1,
            Val::Instr(i) => self.result_uses[i] += 1,
            Val::Const(_) | Val::Index(..) => {}
        }
    }

    /// Filter leaves in the order in which the code first reads them.
    fn filters_in_order(&self) -> Vec<usize> {
        let args = self.kernel.code.iter().enumerate().filter(|(i, _)| self.result_uses[*i] > 0);
        let vals = args.flat_map(|(_, instr)| instr.args.iter().copied()).chain(self.kernel.results());
        let mut order = Vec::new();
        for v in vals {
            if let Val::Leaf(l) = v
                && matches!(self.kernel.leaves[l].op, LeafOp::Correlate(..) | LeafOp::Shift(..))
                && !order.contains(&l)
            {
                order.push(l);
            }
        }
        order
    }

    /// Emits every instruction as soon as its operands are available, and evaluates leaves only when no instruction is
    /// ready. So the values of a group of filters are consumed before the next group is evaluated.
    fn emit(&mut self) {
        let kernel = self.kernel;
        loop {
            let mut waiting = None;
            for (i, instr) in kernel.code.iter().enumerate() {
                if self.result_uses[i] == 0 || self.results[i].is_some() {
                    continue;
                }
                let missing = instr.args.iter().find(|a| !self.is_available(**a));
                match missing {
                    None => self.instruction(i),
                    Some(Val::Leaf(l)) if waiting.is_none() => waiting = Some(*l),
                    Some(_) => {}
                }
            }
            let of_result = |v| if let Val::Leaf(l) = v { Some(l) } else { None };
            let waiting =
                waiting.or_else(|| kernel.results().filter_map(of_result).find(|l| !self.is_available(Val::Leaf(*l))));
            match waiting {
                Some(l) => self.leaf(l),
                None => break,
            }
        }
        if kernel.woven {
            let samples = kernel.results().filter_map(|value| self.storage_of(value)).collect();
            return self.push(TileOperation::Join(kernel.result_type(), samples), vec![ValueStorage::Output(0)]);
        }
        for (k, value) in kernel.results().enumerate() {
            self.store(value, ValueStorage::Output(k));
        }
    }

    /// The storage of an available value; `None` for coordinates.
    fn storage_of(&mut self, value: Val) -> Option<ValueStorage> {
        match value {
            Val::Const(c) => Some(self.operand_of(c)),
            Val::Index(..) => None,
            Val::Leaf(l) => self.leaves[l],
            Val::Instr(i) => self.results[i],
        }
    }

    /// Copies a result that no step computes to its output.
    fn store(&mut self, value: Val, output: ValueStorage) {
        let dtype = self.kernel.type_of(value);
        let at = match value {
            Val::Const(c) => self.operand_of(c),
            Val::Index(axis, dtype) => return self.push(TileOperation::Index(axis, dtype), vec![output]),
            Val::Leaf(l) => self.leaves[l].unwrap_or(output),
            Val::Instr(i) => self.results[i].unwrap_or(output),
        };
        if at != output {
            self.push(TileOperation::Run(InstrOp::Convert(Conversion::Nearest), dtype, dtype, vec![at]), vec![output]);
        }
    }

    /// Returns `true` if a value is available; a plain load always is.
    fn is_available(&mut self, value: Val) -> bool {
        match value {
            Val::Const(_) | Val::Index(..) => true,
            Val::Instr(i) => self.results[i].is_some(),
            Val::Leaf(l) => {
                match self.kernel.leaves[l].op {
                    LeafOp::Load(i) => self.leaves[l] = Some(ValueStorage::Plane(i, None)),
                    LeafOp::LoadPlane(i, _) if self.samples(i) > 1 => {}
                    LeafOp::LoadPlane(i, map) => self.leaves[l] = Some(self.plane(i, map, self.kernel.leaves[l].dtype)),
                    _ => {}
                }
                self.leaves[l].is_some()
            }
        }
    }

    /// Storage of the planes read through a map.
    fn plane(&mut self, input: usize, map: PlaneMap, dtype: DType) -> ValueStorage {
        if let Some(plane) = map.fixed() {
            return ValueStorage::Plane(input, Some(plane));
        }
        ValueStorage::Level(self.level(input, map, dtype))
    }

    /// Index of the planes read through a map.
    fn level(&mut self, input: usize, map: PlaneMap, dtype: DType) -> usize {
        let outside = self.constant(Scalar::from_f64(dtype, map.border.constant().unwrap_or_default()));
        let level = MappedPlane { input, map, outside };
        let levels = &mut self.schedule.levels;
        levels.iter().position(|l| *l == level).unwrap_or_else(|| {
            levels.push(level);
            levels.len() - 1
        })
    }

    /// Samples of the pixels of an input, if they are read one by one.
    fn samples(&self, input: usize) -> usize {
        self.input_samples.get(input).copied().unwrap_or(1)
    }

    /// Emits the read of a sample of interleaved pixels; of all samples, if they are few and several are read.
    fn read_samples(&mut self, l: usize, input: usize, map: PlaneMap) {
        const FEW: usize = 4;
        let (kernel, samples) = (self.kernel, self.samples(input));
        let dtype = kernel.leaves[l].dtype;
        let sample = |l: usize| match kernel.leaves[l].op {
            LeafOp::LoadPlane(i, map) if i == input => map.fixed(),
            _ => None,
        };
        let plane = sample(l).filter(|_| samples <= FEW).map(|at| at / samples);
        let of_plane = |l: &usize| plane.is_some() && sample(*l).map(|at| at / samples) == plane;
        let all: Vec<usize> = (0..kernel.leaves.len())
            .filter(|l| self.leaf_uses[*l] > 0 && self.leaves[*l].is_none())
            .filter(of_plane)
            .collect();
        let Some(plane) = plane.filter(|_| all.len() > 1) else {
            let target = self.target(Val::Leaf(l), dtype);
            self.leaves[l] = Some(target);
            let level = self.level(input, map, dtype);
            return self.push(TileOperation::Sample(level, dtype), vec![target]);
        };
        let mut targets = Vec::with_capacity(samples);
        for at in 0..samples {
            let leaf = all.iter().copied().find(|l| sample(*l) == Some(plane * samples + at));
            targets.push(match leaf {
                Some(l) => self.target(Val::Leaf(l), dtype),
                None => ValueStorage::Slot(self.slot(dtype)),
            });
            leaf.into_iter().for_each(|l| self.leaves[l] = targets.last().copied());
        }
        // Unread samples are overwritten later.
        let unread = targets.iter().filter(|target| !all.iter().any(|l| self.leaves[*l] == Some(**target)));
        let unread: Vec<usize> =
            unread.filter_map(|t| if let ValueStorage::Slot(s) = t { Some(*s) } else { None }).collect();
        self.free.extend(unread);
        self.push(TileOperation::Split(input, plane, dtype), targets);
    }

    fn push(&mut self, action: TileOperation, targets: Vec<ValueStorage>) {
        self.schedule.instructions.push(TileInstruction { operation: action, targets });
    }

    /// Storage for a new value.
    fn target(&mut self, value: Val, dtype: DType) -> ValueStorage {
        let stored = self.kernel.results().position(|v| v == value).filter(|_| !self.kernel.woven);
        stored.map_or_else(|| ValueStorage::Slot(self.slot(dtype)), ValueStorage::Output)
    }

    /// A free slot.
    fn slot(&mut self, dtype: DType) -> usize {
        self.schedule.element = self.schedule.element.max(dtype.size());
        self.free.pop().unwrap_or_else(|| {
            self.schedule.slots += 1;
            self.schedule.slots - 1
        })
    }

    fn leaf(&mut self, l: usize) {
        let kernel = self.kernel;
        match self.group_of[l] {
            Some(g) => {
                let members = self.schedule.groups[g].leaves.clone();
                let targets: Vec<ValueStorage> =
                    members.iter().map(|&m| self.target(Val::Leaf(m), kernel.leaves[m].dtype)).collect();
                members.iter().zip(&targets).for_each(|(&m, &t)| self.leaves[m] = Some(t));
                self.push(TileOperation::Group(g), targets);
            }
            None => {
                if let LeafOp::LoadPlane(i, map) = kernel.leaves[l].op {
                    return self.read_samples(l, i, map);
                }
                let target = self.target(Val::Leaf(l), kernel.leaves[l].dtype);
                self.leaves[l] = Some(target);
                let task = match &kernel.leaves[l] {
                    Leaf { op: LeafOp::Warp(i, map, ..), dtype } if self.chain => {
                        map.broadcast().map_or(TileOperation::Leaf(l), |still| TileOperation::Repeat(*i, still, *dtype))
                    }
                    _ => TileOperation::Leaf(l),
                };
                self.push(task, vec![target]);
            }
        }
    }

    fn instruction(&mut self, i: usize) {
        let instr = &self.kernel.code[i];
        let target = self.target(Val::Instr(i), instr.result);
        // Coordinates are written for each reader, while the other operands still have their slots.
        let mut indices = Vec::new();
        for arg in &instr.args {
            indices.push(if let Val::Index(axis, dtype) = *arg {
                let slot = self.slot(dtype);
                self.push(TileOperation::Index(axis, dtype), vec![ValueStorage::Slot(slot)]);
                Some(slot)
            } else {
                None
            });
        }
        let operands = instr.args.iter().zip(&indices);
        let args: Vec<ValueStorage> =
            operands.filter_map(|(a, index)| index.map(ValueStorage::Slot).or_else(|| self.operand(*a))).collect();
        self.free.extend(indices.into_iter().flatten());
        self.results[i] = Some(target);
        self.push(TileOperation::Run(instr.op, instr.operand, instr.result, args), vec![target]);
    }

    /// Storage of an operand. Its slot becomes free after the last read.
    fn operand(&mut self, value: Val) -> Option<ValueStorage> {
        let (place, uses) = match value {
            Val::Const(c) => return Some(self.operand_of(c)),
            Val::Index(..) => return None, // written for each reader
            Val::Leaf(l) => (self.leaves[l], &mut self.leaf_uses[l]),
            Val::Instr(i) => (self.results[i], &mut self.result_uses[i]),
        };
        *uses -= 1;
        if let (Some(ValueStorage::Slot(s)), 0) = (place, *uses) {
            self.free.push(s);
        }
        place
    }

    /// A constant as an operand.
    fn operand_of(&mut self, value: Scalar) -> ValueStorage {
        ValueStorage::Constant(self.constant(value))
    }

    fn constant(&mut self, value: Scalar) -> usize {
        let splat = dispatch!(value.dtype(), T => HostBuffer::from_slice(&[T::from_scalar(value); RUN]));
        let constants = &mut self.schedule.constants;
        constants.iter().position(|c| c.bytes() == splat.bytes()).unwrap_or_else(|| {
            constants.push(splat);
            constants.len() - 1
        })
    }
}

#[cfg(test)]
mod tests;
