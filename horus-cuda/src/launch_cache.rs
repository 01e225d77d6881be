//! Kernels and parameters of earlier launches: a program that runs again generates no source.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash as _, Hasher as _, RandomState};
use std::sync::Arc;

use horus_core::device::Geometry;
use horus_core::ir::kernel::{Kernel, LeafOp, MapKernel, Repeat};
use horus_core::shape::Window;

use crate::codegen::{Generated, KernelPart, Shapes};
use crate::device::TableKey;
use crate::driver::KernelFunction;
use crate::tuning::Tuning;

/// Most cached launches, and most bytes of their filters and tables; above either limit the cache is cleared. A large
/// program by regions has some thousands: a few extents, in bands.
pub(crate) const MOST: usize = 4096;
const MOST_BYTES: usize = 64 << 20;

/// A loaded kernel and the parameters of its launch.
#[derive(Debug)]
pub(crate) struct LoadedKernel {
    /// The program without its source.
    pub(crate) program: Generated,
    pub(crate) function: Arc<KernelFunction>,
    /// The key of the program's table on the device.
    pub(crate) table: TableKey,
}

/// Choices of searches and profiles for all kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct TuningOverrides {
    /// The tuning of every kernel.
    pub(crate) tuning: Option<Tuning>,
    /// The part of every kernel that has one, with at least so many bytes of shared memory.
    pub(crate) part: Option<(KernelPart, u32)>,
}

/// Everything that a program depends on.
#[derive(Debug, PartialEq)]
struct LaunchKey {
    kernel: Kernel,
    inputs: Vec<Geometry>,
    output: Geometry,
    rows: Window,
    forced: TuningOverrides,
}

/// Launches by a hash of their key. The crate `lru` could be asked only with a key that owns a kernel.
#[derive(Debug)]
pub(crate) struct LaunchCache<M = LoadedKernel> {
    entries: HashMap<u64, Vec<(LaunchKey, Arc<M>)>>,
    count: usize,
    bytes: usize,
    state: RandomState,
}

impl<M> Default for LaunchCache<M> {
    fn default() -> LaunchCache<M> {
        LaunchCache { entries: HashMap::new(), count: 0, bytes: 0, state: RandomState::new() }
    }
}

/// Bytes of the filters of a kernel.
fn bytes(kernel: &Kernel) -> usize {
    match kernel {
        Kernel::Map(map) | Kernel::MapReduce(map, _) | Kernel::Repeat(Repeat { body: map, .. }) => {
            size_of::<f64>() * taps(map)
        }
        Kernel::Whole(operation) => operation.shared_bytes(),
        Kernel::Source(_) => 0,
    }
}

/// The taps of all filters of a kernel and its chains.
fn taps(map: &MapKernel) -> usize {
    let leaf = |op: &LeafOp| match op {
        LeafOp::Correlate(_, f, _) => f.taps().len(),
        LeafOp::OrderFilter(_, filter, _) => filter.window().map_or(0, |w| w.taps().len()),
        _ => 0,
    };
    let leaves = map.leaves.iter().map(|l| leaf(&l.op)).sum::<usize>();
    let stages = map.stages.iter().map(|s| s.filter.taps().len()).sum::<usize>();
    leaves + stages + map.chains.iter().map(taps).sum::<usize>()
}

impl<M> LaunchCache<M> {
    fn hash(&self, kernel: &Kernel, shapes: &Shapes<'_>, forced: TuningOverrides) -> u64 {
        let mut state = self.state.build_hasher();
        std::mem::discriminant(kernel).hash(&mut state);
        match kernel {
            Kernel::Map(map) => map.hash(&mut state),
            Kernel::Repeat(repeat) => repeat.hash(&mut state),
            Kernel::MapReduce(map, how) => (map, how).hash(&mut state),
            Kernel::Whole(operation) => operation.hash(&mut state),
            Kernel::Source(_) => {}
        }
        (shapes.inputs, shapes.output, shapes.rows, forced).hash(&mut state);
        state.finish()
    }

    /// The cached result for this launch.
    pub(crate) fn get(&self, kernel: &Kernel, shapes: &Shapes<'_>, forced: TuningOverrides) -> Option<Arc<M>> {
        let same = |r: &LaunchKey| {
            (&r.kernel, &r.inputs[..], r.output, r.rows, r.forced)
                == (kernel, shapes.inputs, shapes.output, shapes.rows, forced)
        };
        let alike = self.entries.get(&self.hash(kernel, shapes, forced))?;
        alike.iter().find(|(r, _)| same(r)).map(|(_, made)| Arc::clone(made))
    }

    /// Caches the result for a launch with a table of so many bytes.
    pub(crate) fn put(
        &mut self,
        kernel: &Kernel,
        shapes: &Shapes<'_>,
        forced: TuningOverrides,
        made: &Arc<M>,
        table: usize,
    ) {
        let more = bytes(kernel) + table;
        if self.count == MOST || self.bytes + more > MOST_BYTES {
            (self.entries, self.count, self.bytes) = (HashMap::new(), 0, 0);
        }
        self.bytes += more;
        let key = self.hash(kernel, shapes, forced);
        let (output, rows) = (shapes.output, shapes.rows);
        let request = LaunchKey { kernel: kernel.clone(), inputs: shapes.inputs.to_vec(), output, rows, forced };
        self.entries.entry(key).or_default().push((request, Arc::clone(made)));
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use horus_core::dtype::DType;
    use horus_core::ir::kernel::Val;
    use horus_core::shape::{Border, Shape};

    use super::*;
    use crate::workloads::{convrot, correlate};
    use horus_core::ops::Transpose;

    #[test]
    fn launches_are_told_apart_by_all_they_depend_on() {
        let shape = Shape::new(8, 8, 1);
        let image = Geometry { shape, dtype: DType::F32, window: Window::whole(8) };
        let kernel = correlate(3, 3, DType::F32, Border::Reflect101);
        let shapes = Shapes { inputs: &[image], output: image, rows: image.window };
        let mut memo = LaunchCache::<u32>::default();
        memo.put(&kernel, &shapes, TuningOverrides::default(), &Arc::new(7), 0);
        assert_eq!(memo.get(&kernel, &shapes, TuningOverrides::default()).as_deref(), Some(&7));
        let upper = Shapes { rows: Window::new(0, 4), ..shapes };
        let strip = Geometry { window: Window::new(0, 4), ..image };
        let border = correlate(3, 3, DType::F32, Border::Wrap);
        assert!(memo.get(&kernel, &upper, TuningOverrides::default()).is_none());
        assert!(memo.get(&kernel, &Shapes { inputs: &[strip], ..shapes }, TuningOverrides::default()).is_none());
        assert!(memo.get(&kernel, &Shapes { output: strip, ..shapes }, TuningOverrides::default()).is_none());
        assert!(memo.get(&border, &shapes, TuningOverrides::default()).is_none());
        assert!(memo.get(&Kernel::from(Transpose), &shapes, TuningOverrides::default()).is_none());
        let tuned = TuningOverrides { tuning: Some(crate::tuning::lookup(&kernel, DType::F32, 90)), part: None };
        let parts =
            [KernelPart::Math, KernelPart::Memory].map(|part| TuningOverrides { tuning: None, part: Some((part, 0)) });
        assert!([tuned, parts[0], parts[1]].iter().all(|forced| memo.get(&kernel, &shapes, *forced).is_none()));
    }

    #[test]
    fn constants_are_told_apart_by_their_bits() {
        let shape = Shape::new(8, 8, 1);
        let image = Geometry { shape, dtype: DType::F32, window: Window::whole(8) };
        let shapes = Shapes { inputs: &[image], output: image, rows: image.window };
        let from = |start: f32| {
            let mut kernel = convrot(2, 11, false);
            if let Kernel::Map(m) = &mut kernel {
                m.code[2].args[0] = Val::Const(horus_core::dtype::Scalar::F32(start));
            }
            kernel
        };
        let mut memo = LaunchCache::<u32>::default();
        for (start, made) in [(0.0, 1), (-0.0, 2), (f32::NAN, 3)] {
            memo.put(&from(start), &shapes, TuningOverrides::default(), &Arc::new(made), 0);
        }
        let found = [0.0, -0.0, f32::NAN]
            .map(|start| memo.get(&from(start), &shapes, TuningOverrides::default()).as_deref().copied());
        assert_eq!(found, [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn the_memory_has_an_end() {
        let shape = Shape::new(8, 8, 1);
        let image = Geometry { shape, dtype: DType::F32, window: Window::whole(8) };
        let mut memo = LaunchCache::<usize>::default();
        for i in 1..=MOST + 1 {
            let kernel = correlate(1, 1, DType::F32, Border::Wrap);
            let shapes = Shapes { inputs: &[image], output: image, rows: image.window };
            memo.put(&kernel, &shapes, TuningOverrides::default(), &Arc::new(i), 0);
        }
        assert_eq!(memo.entries.values().map(Vec::len).sum::<usize>(), 1);
        for i in 0..10 {
            let kernel = correlate(3, 3 + i, DType::F32, Border::Wrap);
            let shapes = Shapes { inputs: &[image], output: image, rows: image.window };
            memo.put(&kernel, &shapes, TuningOverrides::default(), &Arc::new(i), MOST_BYTES / 4);
        }
        assert!(
            memo.entries.values().map(Vec::len).sum::<usize>() <= 3,
            "four of a quarter and their taps are too much"
        );
    }
}
