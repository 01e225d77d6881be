//! Candidates of a search for a better tuning, the likeliest first.

use horus_core::dtype::DType;
use horus_core::ir::kernel::Kernel;

use super::{TunedFamily, TunedKernelKind, Tuning, guess, lookup};

/// The values of each parameter worth trying for a kind.
struct TuningChoices {
    shapes: &'static [(usize, usize)],
    rows: &'static [usize],
    cols: &'static [usize],
    groups: &'static [usize],
    /// Most multiply-adds that are worth unrolling.
    unroll: usize,
    spans: &'static [usize],
}

impl TuningChoices {
    fn of(kind: TunedKernelKind) -> TuningChoices {
        let base = TuningChoices {
            shapes: &[(32, 4), (32, 8), (16, 8), (16, 16)],
            rows: &[1, 2, 4, 8],
            cols: &[1],
            groups: &[1],
            unroll: 0,
            spans: &[8],
        };
        match kind {
            TunedKernelKind::Pointwise => TuningChoices { shapes: &[(32, 4), (32, 8), (32, 16)], cols: &[4], ..base },
            TunedKernelKind::Gather => base,
            TunedKernelKind::Near => {
                TuningChoices { shapes: &[(32, 2), (32, 4), (32, 8)], cols: &[1, 2, 4, 8], unroll: 3000, ..base }
            }
            TunedKernelKind::Median => TuningChoices { rows: &[1, 2, 4], cols: &[1, 2], ..base },
            TunedKernelKind::Sparse => TuningChoices { rows: &[4, 8, 16], ..base },
            TunedKernelKind::Column => TuningChoices {
                shapes: &[(32, 4), (32, 8), (32, 16)],
                rows: &[4, 8, 16],
                cols: &[1, 2, 4],
                unroll: 3000,
                ..base
            },
            TunedKernelKind::Dense => {
                TuningChoices { rows: &[2, 4, 8, 16], cols: &[1, 2, 4, 8], groups: &[1, 2], unroll: 10_000, ..base }
            }
            TunedKernelKind::Separable => TuningChoices {
                rows: &[4, 8, 16],
                cols: &[2, 4],
                groups: &[1, 2],
                unroll: 1400,
                spans: &[4, 8, 16],
                ..base
            },
        }
    }
}

/// Number of likeliest candidates, which follow the first.
pub const LIKELY: usize = 12;

/// Combinations that earlier searches and the machine code favour, by kind.
fn likely(family: TunedFamily) -> Vec<Tuning> {
    let base =
        Tuning { bx: 16, by: 16, rows: 4, cols: 8, group: 1, unroll: 3000, piece: 0, chunk: 16, span: 8, blocks: 2 };
    match family.kind {
        // Two filters over the same pixels: each load of pixels serves twice the multiply-adds. A body of about 512 of
        // them (8 KiB of code) stays in the instruction cache next to the multiprocessor's schedulers.
        TunedKernelKind::Dense if family.filters > 1 => vec![
            Tuning { rows: 2, cols: 8, group: 2, piece: 16, ..base },
            Tuning { rows: 4, cols: 8, group: 1, piece: 16, ..base },
            Tuning { rows: 4, cols: 8, group: 2, piece: 8, blocks: 1, ..base },
            Tuning { bx: 16, by: 8, rows: 4, cols: 8, group: 2, piece: 8, blocks: 3, ..base },
            Tuning { rows: 2, cols: 8, group: 2, piece: 0, ..base },
            Tuning { rows: 8, cols: 8, group: 1, piece: 8, ..base },
            Tuning { rows: 2, cols: 8, group: 2, piece: 24, ..base },
            Tuning { rows: 4, cols: 4, group: 2, piece: 16, ..base },
            Tuning { rows: 4, cols: 8, group: 1, piece: 0, ..base },
            Tuning { bx: 16, by: 8, rows: 2, cols: 8, group: 2, piece: 16, blocks: 4, ..base },
            Tuning { bx: 16, by: 8, rows: 4, cols: 8, group: 1, piece: 16, blocks: 4, ..base },
            Tuning { rows: 4, cols: 8, group: 1, piece: 24, ..base },
        ],
        TunedKernelKind::Dense if family.size > 13 => vec![
            Tuning { piece: 16, ..base },
            Tuning { piece: 12, ..base },
            Tuning { piece: 8, ..base },
            Tuning { piece: 24, ..base },
            Tuning { piece: 0, ..base },
            Tuning { rows: 8, piece: 8, ..base },
            Tuning { rows: 8, piece: 12, ..base },
            Tuning { by: 8, piece: 16, blocks: 4, ..base },
            Tuning { by: 8, rows: 8, piece: 8, blocks: 4, ..base },
            Tuning { by: 8, rows: 8, piece: 8, blocks: 3, ..base },
            Tuning { piece: 16, blocks: 3, ..base },
            Tuning { bx: 32, by: 8, piece: 16, ..base },
        ],
        TunedKernelKind::Separable if family.filters == 1 => {
            let base = Tuning { cols: 4, unroll: 1400, ..base };
            // A tile of this height needs exactly three chunks.
            let chunk = |height: usize| (height + family.size - 1).div_ceil(3).min(64);
            vec![
                Tuning { bx: 32, by: 8, rows: 8, cols: 2, chunk: chunk(64), blocks: 4, ..base },
                Tuning { rows: 8, cols: 2, chunk: chunk(128), span: 4, blocks: 3, ..base },
                Tuning { rows: 4, cols: 2, chunk: chunk(64), blocks: 4, ..base },
                Tuning { bx: 8, by: 32, rows: 4, chunk: chunk(128), blocks: 3, ..base },
                Tuning { chunk: chunk(64), rows: 4, blocks: 2, ..base },
                Tuning { bx: 16, by: 8, rows: 8, span: 4, blocks: 4, ..base },
                Tuning { bx: 16, by: 8, rows: 8, span: 8, chunk: 8, blocks: 6, ..base },
                Tuning { bx: 32, by: 4, rows: 8, span: 8, blocks: 4, ..base },
                Tuning { bx: 32, by: 8, rows: 8, span: 8, blocks: 2, ..base },
                Tuning { bx: 32, by: 8, rows: 8, chunk: 8, span: 16, blocks: 2, ..base },
                Tuning { bx: 16, by: 16, rows: 8, span: 16, blocks: 3, ..base },
                Tuning { bx: 32, by: 4, rows: 16, span: 8, chunk: 8, blocks: 3, ..base },
            ]
        }
        TunedKernelKind::Separable => {
            let base = Tuning { cols: 2, group: 2, unroll: 0, ..base };
            vec![
                Tuning { bx: 32, by: 8, rows: 12, chunk: 23, blocks: 0, ..base },
                Tuning { rows: 8, chunk: 34, span: 4, blocks: 3, ..base },
                Tuning { rows: 12, chunk: 30, span: 4, blocks: 0, ..base },
                Tuning { bx: 8, by: 32, rows: 6, cols: 4, chunk: 30, span: 4, ..base },
                Tuning { rows: 6, cols: 4, chunk: 28, span: 4, ..base },
                Tuning { rows: 4, cols: 4, chunk: 22, span: 4, blocks: 3, ..base },
                Tuning { bx: 8, by: 32, rows: 8, chunk: 60, blocks: 0, ..base },
                Tuning { rows: 8, chunk: 25, span: 4, blocks: 3, ..base },
                Tuning { bx: 8, by: 32, rows: 8, cols: 4, chunk: 60, ..base },
                Tuning { bx: 32, by: 8, rows: 8, chunk: 18, span: 4, blocks: 3, ..base },
                Tuning { rows: 6, chunk: 23, blocks: 3, ..base },
                Tuning { bx: 64, by: 4, rows: 12, chunk: 15, blocks: 0, ..base },
            ]
        }
        _ => Vec::new(),
    }
}

/// Tiles for several iterations of a loop over elements of `dtype`: rows and columns of pixels per thread, warps below
/// one another, and blocks for which a multiprocessor has registers. The first is the present choice.
pub(crate) fn repeat_tunings(dtype: DType) -> Vec<Tuning> {
    let base = guess(TunedFamily { kind: TunedKernelKind::Sparse, size: 3, filters: 1, bytes: dtype.size() });
    let shapes: &[[usize; 4]] = match dtype.size() {
        8 => &[[8, 2, 8, 2], [4, 2, 16, 2], [8, 2, 16, 1], [8, 2, 8, 1]],
        _ => &[[8, 2, 8, 3], [4, 4, 16, 2], [4, 4, 16, 1], [8, 2, 8, 2], [8, 4, 8, 1], [4, 2, 16, 2]],
    };
    shapes.iter().map(|&[rows, cols, by, blocks]| Tuning { bx: 32, by, rows, cols, blocks, ..base }).collect()
}

/// The tunings worth measuring for a kernel: first the present choice, then the [`LIKELY`] most
/// promising ones.
pub fn candidates(kernel: &Kernel, dtype: DType, arch: u32) -> Vec<Tuning> {
    let now = lookup(kernel, dtype, arch);
    if matches!(kernel, Kernel::Repeat(_)) {
        return repeat_tunings(dtype);
    }
    let Kernel::Map(map) = kernel else { return vec![now] };
    let family = TunedFamily::of(map, dtype);
    let choices = TuningChoices::of(family.kind);
    let mut all = vec![now];
    // Varies one parameter after the other over all combinations so far.
    let vary = |from: Vec<Tuning>, f: &dyn Fn(Tuning) -> Vec<Tuning>| from.into_iter().flat_map(f).collect::<Vec<_>>();
    let mut found = vary(vec![now], &|t| choices.shapes.iter().map(|&(bx, by)| Tuning { bx, by, ..t }).collect());
    found = vary(found, &|t| choices.rows.iter().map(|&rows| Tuning { rows, ..t }).collect());
    found = vary(found, &|t| choices.cols.iter().map(|&cols| Tuning { cols, ..t }).collect());
    found = vary(found, &|t| {
        let groups = choices.groups.iter().filter(|&&g| g == 1 || family.filters > 1);
        groups.map(|&group| Tuning { group, ..t }).collect()
    });
    found = vary(found, &|t| {
        let taps = if family.kind == TunedKernelKind::Dense { family.size * family.size } else { family.size };
        let work = taps * t.rows * t.cols * t.group;
        let unrolled = (work <= choices.unroll).then_some(choices.unroll);
        std::iter::once(0).chain(unrolled).map(|unroll| Tuning { unroll, ..t }).collect()
    });
    found = vary(found, &|t| choices.spans.iter().map(|&span| Tuning { span, ..t }).collect());
    found = vary(found, &|t| [0, 2, 3].map(|blocks| Tuning { blocks, ..t }).to_vec());
    found.retain(|t| {
        let pixels = t.rows * t.cols * t.group;
        pixels <= 64 && t.bx * t.by * t.blocks <= 1024 && *t != now
    });
    let mut first = likely(family);
    first.retain(|t| *t != now);
    found.retain(|t| !first.contains(t));
    all.append(&mut first);
    all.append(&mut found);
    all
}

/// The tunings worth measuring besides the present one: the likeliest, then others spread over the whole space.
pub fn promising(kernel: &Kernel, dtype: DType, arch: u32) -> Vec<Tuning> {
    let mut likely = candidates(kernel, dtype, arch).split_off(1);
    let others = likely.split_off(likely.len().min(LIKELY));
    likely.extend((0..others.len()).map(|i| others[(i * 7919) % others.len()]));
    likely
}
