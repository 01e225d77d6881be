//! Models fitted to measured times.

use super::super::{CopyTime, Efficiency, MachineProfile};
use crate::ir::kernel::{Family, KernelWork};

/// The median; `None` of an empty list.
pub(super) fn median(mut times: Vec<f64>) -> Option<f64> {
    times.retain(|t| t.is_finite());
    times.sort_by(f64::total_cmp);
    times.get(times.len() / 2).copied()
}

/// Fits a line to `(bytes, seconds)` of single copies, as in the thesis (section 5.4.1). The
/// shortest copy gives latency plus overhead; `overhead` is the host's part. All copies give the
/// time per byte.
pub(super) fn line(copies: &[(usize, f64)], overhead: f64) -> Option<CopyTime> {
    let (&(few, fixed), longer) = copies.split_first()?;
    let bytes: f64 = longer.iter().map(|(bytes, _)| (bytes - few) as f64).sum();
    let seconds: f64 = longer.iter().map(|(_, seconds)| seconds - fixed).sum();
    let sound = seconds > 0.0 && bytes > 0.0 && fixed >= 0.0;
    let overhead = overhead.clamp(0.0, fixed.max(0.0));
    sound.then(|| CopyTime { latency: fixed - overhead, overhead, gap: 0.0, bandwidth: bytes / seconds })
}

/// The efficiency of `family` with which `profile` best predicts the measured times, by least
/// squares of the logarithms of the errors.
pub(super) fn efficiency(
    profile: &MachineProfile,
    family: Family,
    measured: &[(KernelWork, f64)],
) -> Option<Efficiency> {
    /// Ratios of neighbouring grid points, coarse to fine, and their number on each side.
    const GRIDS: [(f64, i32); 3] = [(1.6, 8), (1.15, 4), (1.03, 5)];
    if measured.is_empty() || measured.iter().any(|(work, seconds)| *seconds <= 0.0 || work.bytes() == 0) {
        return None;
    }
    let mut trial = profile.clone();
    let mut error = |of: Efficiency| {
        trial.families.insert(family, of);
        measured.iter().map(|(work, seconds)| (trial.launch(work).seconds / seconds).ln().powi(2)).sum::<f64>()
    };
    let mut best = profile.efficiency(family);
    let mut least = error(best);
    for (factor, sides) in GRIDS {
        let centre = best;
        let mut grid: Vec<(i32, i32)> = (-sides..=sides).flat_map(|m| (-sides..=sides).map(move |a| (m, a))).collect();
        grid.sort_by_key(|(m, a)| m.abs() + a.abs());
        for (m, a) in grid {
            let at =
                Efficiency { memory: centre.memory * factor.powi(m), arithmetic: centre.arithmetic * factor.powi(a) };
            let found = error(at);
            // Parameters without influence stay unchanged.
            if found < least * 0.999 {
                (best, least) = (at, found);
            }
        }
    }
    Some(best)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;

    #[test]
    fn the_median_ignores_one_that_is_far_off() {
        assert_eq!(median(vec![3.0, 1.0, 900.0, 2.0, f64::NAN, 2.5]), Some(2.5));
        assert_eq!(median(Vec::new()), None);
    }

    #[test]
    fn a_line_is_found_again() {
        let known = CopyTime { latency: 6e-6, overhead: 3e-6, gap: 0.0, bandwidth: 55e9 };
        let copies = [64, 1 << 20, 16 << 20, 256 << 20].map(|bytes| (bytes, known.time(bytes)));
        let found = line(&copies, 3e-6).expect("a line");
        assert!((found.bandwidth / known.bandwidth - 1.0).abs() < 1e-9);
        assert!((found.time(1 << 24) / known.time(1 << 24) - 1.0).abs() < 1e-3);
        assert_eq!(found.overhead, 3e-6);
        assert!(line(&[(64, 1.0), (1 << 20, 0.5)], 0.0).is_none(), "more takes longer");
        assert!(line(&[], 0.0).is_none());
    }

    #[test]
    fn efficiencies_are_found_again() {
        let mut machine = MachineProfile::of_default(false);
        let hidden = Efficiency { memory: 0.31, arithmetic: 0.77 };
        let work = |megabytes: usize, madds: f64| KernelWork {
            read: megabytes << 20,
            written: megabytes << 20,
            multiply_adds: madds,
            pixels: 1 << 20,
            ..KernelWork::NONE
        };
        let kernels = [work(64, 0.0), work(64, 1e9), work(64, 3e10)];
        machine.families.insert(Family::Rank, hidden);
        let of = |w: &KernelWork| KernelWork { family: Family::Rank, dtype: DType::F32, ..*w };
        let measured: Vec<_> = kernels.iter().map(|w| (of(w), machine.launch(&of(w)).seconds)).collect();
        let found = efficiency(&MachineProfile::of_default(false), Family::Rank, &measured).expect("efficiencies");
        assert!((found.memory / hidden.memory - 1.0).abs() < 0.03, "{found:?}");
        assert!((found.arithmetic / hidden.arithmetic - 1.0).abs() < 0.03, "{found:?}");
        assert!(efficiency(&machine, Family::Rank, &[]).is_none());
        assert!(efficiency(&machine, Family::Rank, &[(measured[0].0, 0.0)]).is_none(), "nothing takes no time");
    }
}
