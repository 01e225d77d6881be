//! Launch shapes: pixels per thread, threads per block, unrolling. They never change a result.
//!
//! A [`Tuning`] is found by [`TunedFamily`] in the user's table (see [`user_table`]) and in the tables of
//! `kernels/tuning/`, exactly or at the nearest architecture and size; if nothing fits, [`guess`] models the choice.
//! Tables are for large images; [`fitted`] has the shapes for small ones.

mod search;

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use horus_core::dtype::DType;
use horus_core::error::Error;
use horus_core::ir::kernel::{FilterSource, Kernel, LeafOp, MapKernel};
use horus_core::ops::neighbourhood::{FilterLayout, OrderFilter};
use horus_core::settings::TUNING;
use serde::{Deserialize, Serialize};

use crate::codegen::{NearFilter, Shapes};

pub(crate) use search::repeat_tunings;
pub use search::{LIKELY, candidates, promising};

/// The parameters of a generated kernel that affect its speed only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tuning {
    /// Threads per block in x.
    pub bx: usize,
    /// Threads per block in y.
    pub by: usize,
    /// Rows of pixels per thread.
    pub rows: usize,
    /// Consecutive columns of pixels per thread: 1, 2, 4 or 8.
    pub cols: usize,
    /// Most filters of one size that a thread applies at once.
    pub group: usize,
    /// Multiply-adds that are fully unrolled, with taps as kernel parameters; more become a loop.
    pub unroll: usize,
    /// Columns of a dense filter in the body of the loop over input rows, if there is one; 0 for all of them up to 48.
    #[serde(default)]
    pub piece: usize,
    /// Input rows per chunk of the row filter.
    pub chunk: usize,
    /// Outputs per thread along a row in the row filter: 1, 2, 4, 8 or 16.
    pub span: usize,
    /// Blocks per multiprocessor for which registers must suffice; 0 leaves the choice to the compiler.
    pub blocks: usize,
}

impl Tuning {
    /// Returns `true` if the generator accepts the tuning and its code has a size that compiles.
    pub(crate) fn is_sane(&self) -> bool {
        let threads = self.bx.checked_mul(self.by).unwrap_or(0);
        (32..=1024).contains(&threads)
            && threads.is_multiple_of(32)
            && self.unroll <= 1 << 16
            && self.blocks <= 32
            && [1, 2, 4, 8].contains(&self.cols)
            && [1, 2, 4, 8, 16].contains(&self.span)
            && (1..=64).contains(&self.rows)
            && (1..=8).contains(&self.group)
            && (1..=64).contains(&self.chunk)
            && self.piece <= 64
    }
}

/// Kinds of kernels that tuning distinguishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TunedKernelKind {
    /// Every leaf is the pixel itself.
    Pointwise,
    /// Dense filters, one or a bank.
    Dense,
    /// Linear filters of one column.
    Column,
    /// Column filters over row filters.
    Separable,
    /// Filters with explicit offsets.
    Sparse,
    /// Medians.
    Median,
    /// Affine maps and mirrors only.
    Gather,
    /// Filters of few taps near the pixel, from registers.
    Near,
}

/// A class of kernels that share a tuning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TunedFamily {
    /// The kind that dominates the kernel.
    pub kind: TunedKernelKind,
    /// The largest filter side (the larger for a rectangle), 0 without a filter.
    pub size: usize,
    /// Number of filter leaves, at most 2 of which matter.
    pub filters: usize,
    /// Bytes of an element of the input.
    pub bytes: usize,
}

impl TunedFamily {
    /// The family of a map kernel over elements of `dtype`.
    pub fn of(kernel: &MapKernel, dtype: DType) -> TunedFamily {
        let mut f = TunedFamily { kind: TunedKernelKind::Pointwise, size: 0, filters: 0, bytes: dtype.size() };
        let rank = |k: TunedKernelKind| match k {
            TunedKernelKind::Pointwise => 0,
            TunedKernelKind::Gather => 1,
            TunedKernelKind::Near => 2,
            TunedKernelKind::Median => 3,
            TunedKernelKind::Column => 4,
            TunedKernelKind::Dense => 5,
            TunedKernelKind::Separable => 6,
            TunedKernelKind::Sparse => 7,
        };
        for leaf in &kernel.leaves {
            let reach = leaf.reach(&kernel.stages).map_or(0, |(r, _)| (r.up + r.down).max(r.left + r.right) + 1);
            let kind = match &leaf.op {
                LeafOp::Load(_) | LeafOp::LoadPlane(..) => continue,
                _ if leaf.repeats() => continue,
                _ if NearFilter::of(leaf, kernel).is_some() => TunedKernelKind::Near,
                LeafOp::Warp(..) | LeafOp::Flip(..) | LeafOp::Shift(..) => TunedKernelKind::Gather,
                LeafOp::OrderFilter(_, OrderFilter::Truncated(_), _) => TunedKernelKind::Gather,
                LeafOp::OrderFilter(_, OrderFilter::Median(_), _) => TunedKernelKind::Median,
                LeafOp::Correlate(FilterSource::Stage(_), ..) => TunedKernelKind::Separable,
                LeafOp::Correlate(_, f, _) if matches!(f.layout(), FilterLayout::Sparse(_)) => TunedKernelKind::Sparse,
                LeafOp::OrderFilter(_, OrderFilter::Fold(g), _)
                    if matches!(g.window.layout(), FilterLayout::Sparse(_)) =>
                {
                    TunedKernelKind::Sparse
                }
                // Blocks of columns of bytes would be too narrow.
                LeafOp::Correlate(_, f, _) if f.is_column() && dtype.size() >= 4 => TunedKernelKind::Column,
                LeafOp::Correlate(..) | LeafOp::OrderFilter(..) => TunedKernelKind::Dense,
            };
            f.size = f.size.max(if kind == TunedKernelKind::Gather { 0 } else { reach });
            f.filters = (f.filters + 1).min(2);
            if rank(kind) > rank(f.kind) {
                f.kind = kind;
            }
        }
        f
    }
}

/// One row of a table: the tuning of a family on an architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TuningEntry {
    /// Compute capability, 90 for 9.0.
    pub arch: u32,
    /// The kernels.
    #[serde(flatten)]
    pub family: TunedFamily,
    /// Their tuning.
    #[serde(flatten)]
    pub tuning: Tuning,
}

/// The tables in the repository.
const TABLES: &[&str] = &[horus_cuda_kernels::SM_90];

fn tables() -> &'static [TuningEntry] {
    static ENTRIES: OnceLock<Vec<TuningEntry>> = OnceLock::new();
    ENTRIES.get_or_init(|| {
        let parse = |t: &&str| {
            serde_json::from_str::<Vec<TuningEntry>>(t).unwrap_or_else(|e| {
                // A test parses every table, so this is a damaged build; the model still works.
                horus_core::warn!("cannot read a tuning table: {e}");
                Vec::new()
            })
        };
        // The user's rows come first: among rows that fit equally well the first is taken.
        user_rows().into_iter().chain(TABLES.iter().flat_map(parse)).collect()
    })
}

/// The table that `horus-tune` writes and every program reads first: `HORUS_TUNING`, else
/// `horus/tuning.json` in `XDG_CONFIG_HOME` or `~/.config`.
pub fn user_table() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    TUNING.path().or_else(|| {
        let config = variable("XDG_CONFIG_HOME").or_else(|| variable("HOME").map(|h| h.join(".config")))?;
        Some(config.join("horus").join("tuning.json"))
    })
}

/// Checks the table that `HORUS_TUNING` names; the file need not exist yet.
///
/// # Errors
/// [`Error::Config`] if the file cannot be read, or has rows that cannot be run.
pub fn check() -> Result<(), Error> {
    let Some(path) = TUNING.path() else { return Ok(()) };
    rows_of(&path).map(drop).map_err(|why| TUNING.invalid_value_error(&path.display().to_string(), &why))
}

/// The rows of the user's table; empty without a table. An unusable table at the default place gives a warning; for one
/// that `HORUS_TUNING` names see [`check`].
fn user_rows() -> Vec<TuningEntry> {
    let Some(path) = user_table() else { return Vec::new() };
    rows_of(&path).unwrap_or_else(|e| {
        horus_core::warn!("{} is not used: {e}", path.display());
        Vec::new()
    })
}

/// The rows of a table; none if there is no file. The error describes what is wrong.
pub fn rows_of(path: &Path) -> Result<Vec<TuningEntry>, String> {
    /// Hundreds of times the size of a table.
    const MOST: u64 = 16 << 20;
    let mut text = String::new();
    match std::fs::File::open(path) {
        Ok(file) => file.take(MOST).read_to_string(&mut text).map_err(|e| e.to_string())?,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(e.to_string()),
    };
    let rows = serde_json::from_str::<Vec<TuningEntry>>(&text).map_err(|e| e.to_string())?;
    match rows.iter().find(|e| !e.tuning.is_sane()) {
        Some(e) => Err(format!("{:?} cannot be run", e.tuning)),
        None => Ok(rows),
    }
}

/// The type in which a kernel with a first input of type `dtype` computes: the type of its filters' input.
fn element(map: &MapKernel, dtype: DType) -> DType {
    let filter = map.leaves.iter().find(|l| !matches!(l.op, LeafOp::Load(_) | LeafOp::LoadPlane(..)));
    filter.map_or(dtype, |l| l.dtype)
}

/// The tuning of a launch on architecture `arch`: its family's, or one for a small image on a GPU of so many
/// multiprocessors.
pub fn fitted(kernel: &Kernel, shapes: &Shapes<'_>, arch: u32, multiprocessors: usize) -> Tuning {
    let dtype = shapes.inputs.first().map_or(shapes.output.dtype, |g| g.dtype);
    let shape = shapes.output.shape;
    let pixels = shapes.rows.len() * shape.width * shape.planes();
    let each = pixels as f64 / (multiprocessors.max(1) * THREADS) as f64;
    small(kernel, dtype, each).unwrap_or_else(|| lookup(kernel, dtype, arch))
}

/// The tunings of a kernel for images of all sizes, the tuning for a large image first.
pub fn all_sizes(kernel: &Kernel, dtype: DType, arch: u32) -> Vec<Tuning> {
    let mut all = vec![lookup(kernel, dtype, arch)];
    for each in STEPS {
        all.extend(small(kernel, dtype, each / 2.0).filter(|t| !all.contains(t)));
    }
    all
}

/// Pixels for each thread, below which [`small`] has other shapes.
const STEPS: [f64; 4] = [0.5, 2.0, 8.0, 24.0];

/// Threads that a multiprocessor runs at once.
const THREADS: usize = 2048;

/// The shape for an image that has `each` pixels for each thread that the GPU runs at once, if these are too few for
/// the tuned shape. Large blocks of a small image leave multiprocessors idle, and long code that is executed once waits
/// for its instructions.
///
/// Measured on an H200 from 64x64 to 2048x2048 (`docs/performance/gpu.md`).
fn small(kernel: &Kernel, dtype: DType, each: f64) -> Option<Tuning> {
    let Kernel::Map(map) = kernel else { return None };
    let TunedFamily { kind, size, filters, .. } = TunedFamily::of(map, element(map, dtype));
    let [tiny, little, medium, large] = STEPS;
    let bank = filters > 1;
    let (by, rows, cols) = match kind {
        TunedKernelKind::Separable if bank && each < tiny => (16, 1, 1),
        TunedKernelKind::Separable if bank && each < medium => (16, 2, 1),
        TunedKernelKind::Separable if bank && size < 40 && each < large => (8, 4, 2),
        TunedKernelKind::Separable if bank => return None,
        TunedKernelKind::Separable if size > 16 && each < tiny => (16, 1, 1),
        TunedKernelKind::Separable if size > 16 && each < little => (16, 2, 1),
        TunedKernelKind::Separable if size > 16 && each < medium => (16, 2, 2),
        TunedKernelKind::Separable if size > 16 && each < large => (16, 4, 2),
        TunedKernelKind::Separable if each < little => (8, 1, 1),
        TunedKernelKind::Separable if each < medium => (8, 2, 2),
        TunedKernelKind::Separable if each < large => (8, 4, 2),
        TunedKernelKind::Dense if size > 13 && each < little => (8, 2, 2),
        TunedKernelKind::Dense if size > 13 => return None,
        TunedKernelKind::Dense | TunedKernelKind::Near if each < little => (8, 1, 1),
        TunedKernelKind::Dense | TunedKernelKind::Near if each < medium => (8, 2, 2),
        TunedKernelKind::Sparse | TunedKernelKind::Median | TunedKernelKind::Column if each < tiny => (8, 1, 1),
        TunedKernelKind::Column if each < little => (8, 4, 1),
        TunedKernelKind::Sparse if each < little => (16, 2, 1),
        TunedKernelKind::Gather if each < little => (8, 1, 1),
        _ => return None,
    };
    let unrolled = !(kind == TunedKernelKind::Separable && size > 16 && rows == 4);
    Some(Tuning {
        bx: 32,
        by,
        rows,
        cols,
        group: 2,
        unroll: if unrolled { 3000 } else { 0 },
        piece: 0,
        chunk: 16 * rows.min(by / 8),
        span: if rows == 4 { 8 } else { 4 },
        blocks: 0,
    })
}

/// The tuning of a kernel whose first input is of type `dtype` on architecture `arch`, for a large
/// image.
pub fn lookup(kernel: &Kernel, dtype: DType, arch: u32) -> Tuning {
    if matches!(kernel, Kernel::Repeat(_)) {
        return search::repeat_tunings(dtype)[0];
    }
    let Kernel::Map(map) = kernel else {
        return guess(TunedFamily { kind: TunedKernelKind::Pointwise, size: 0, filters: 0, bytes: 4 });
    };
    let family = TunedFamily::of(map, element(map, dtype));
    let same = |e: &&TuningEntry| {
        let f = e.family;
        (f.kind, f.filters, f.bytes) == (family.kind, family.filters, family.bytes)
            // A similar size is good enough.
            && f.size.abs_diff(family.size) <= family.size / 6
    };
    tables()
        .iter()
        .filter(same)
        .min_by_key(|e| (e.arch.abs_diff(arch), e.family.size.abs_diff(family.size)))
        .map_or_else(|| guess(family), |e| e.tuning)
}

/// A choice from a model: enough pixels per thread that multiply-adds take longer than reads of shared memory, few
/// enough registers for 16 warps, tiles that fit twice into the shared memory of a multiprocessor.
pub fn guess(family: TunedFamily) -> Tuning {
    let base =
        Tuning { bx: 32, by: 8, rows: 4, cols: 4, group: 1, unroll: 3000, piece: 0, chunk: 16, span: 8, blocks: 2 };
    let cols = if family.bytes == 8 { 2 } else { 4 };
    let pair = family.filters > 1;
    let group = if pair { 2 } else { 1 };
    match family.kind {
        TunedKernelKind::Pointwise => Tuning { rows: 4, blocks: 0, ..base },
        TunedKernelKind::Gather => Tuning { rows: 4, cols: 1, blocks: 0, ..base },
        TunedKernelKind::Near => Tuning { by: 4, cols: (16 / family.bytes).min(8), blocks: 0, ..base },
        TunedKernelKind::Median => Tuning { rows: 2, cols: if family.size > 3 { 1 } else { 2 }, blocks: 0, ..base },
        TunedKernelKind::Sparse => Tuning { rows: 8, cols: 1, blocks: 0, ..base },
        TunedKernelKind::Dense if family.size <= 13 => Tuning { cols, group, ..base },
        // Taps are operands of the multiply-adds if all of them can be unrolled. Blocks are narrow, because most rows
        // of a tile surround its own rows.
        TunedKernelKind::Column => {
            let rows = [16, 8, 4].into_iter().find(|rows| rows * family.size <= base.unroll).unwrap_or(8);
            Tuning { rows: if pair { rows.min(8) } else { rows }, cols: 1, blocks: 0, ..base }
        }
        // Taps from shared memory should each serve many columns: a read of four taps serves 4 *
        // cols multiply-adds, a read of pixels rows * group times as many.
        TunedKernelKind::Dense => Tuning { bx: 16, by: 16, rows: 4 / group, cols: 2 * cols, group, ..base },
        // A loop over pairs of columns: its body and one division for all pixels fit the
        // instruction caches.
        TunedKernelKind::Separable if pair => {
            Tuning { rows: 24 / family.bytes * 2, cols: 2, group, unroll: 0, chunk: 24, blocks: 0, ..base }
        }
        TunedKernelKind::Separable => Tuning { rows: 8, cols, group, unroll: 700, ..base },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_parse_and_hold_sensible_shapes() {
        for t in TABLES {
            for e in serde_json::from_str::<Vec<TuningEntry>>(t).unwrap() {
                assert!(e.tuning.is_sane(), "{e:?}");
            }
        }
    }

    #[test]
    fn a_table_that_cannot_be_run_is_refused_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tuning.json");
        let read = |text: &[u8]| {
            std::fs::write(&path, text).unwrap();
            rows_of(&path)
        };
        assert_eq!(rows_of(&folder.path().join("none")), Ok(Vec::new()));
        let good: Vec<TuningEntry> = serde_json::from_str(TABLES[0]).unwrap();
        assert_eq!(read(TABLES[0].as_bytes()), Ok(good.clone()));
        let changes: [fn(&mut Tuning); 9] = [
            |t| (t.bx, t.by) = (1 << 32, 1 << 32),
            |t| (t.bx, t.by) = (usize::MAX, usize::MAX),
            |t| t.bx = 0,
            |t| t.rows = usize::MAX,
            |t| t.cols = 3,
            |t| t.unroll = usize::MAX,
            |t| t.blocks = 1 << 40,
            |t| t.chunk = 0,
            |t| t.span = 1 << 20,
        ];
        for (i, change) in changes.into_iter().enumerate() {
            let mut rows = good.clone();
            change(&mut rows[1].tuning);
            let told = read(serde_json::to_string(&rows).unwrap().as_bytes()).unwrap_err();
            assert!(told.contains("cannot be run"), "change {i}: {told}");
        }
        for text in [&b""[..], b"{}", b"[1]", &[b'['; 100_000], &[0xff; 10], &vec![b' '; 17 << 20]] {
            assert!(read(text).is_err(), "{} bytes", text.len());
        }
        assert!(rows_of(folder.path()).is_err(), "a folder");
    }
}
