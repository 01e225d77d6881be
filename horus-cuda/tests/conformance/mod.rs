//! Launches of every kind, data for them, and a device that records launches.
//!
//! The same cases are compiled by NVRTC without a GPU, run by the host emulation of the kernels, and run on a GPU by
//! `horus-cuda-check`; [`horus_testing::reference::kernel`] evaluates them.

pub(crate) mod cases;
pub(crate) mod planes;

use std::collections::HashSet;

use cases::{ConformanceLaunch, cases};
use horus_core::ir::kernel::Kernel;
use horus_core::ops::Whole;
use horus_testing::cases::part;

/// The cases of kernels that are compiled.
pub(crate) fn compiled() -> Vec<ConformanceLaunch> {
    let is_compiled =
        |case: &ConformanceLaunch| !matches!(case.kernel, Kernel::Whole(Whole::Merge(_)) | Kernel::Source(_));
    cases().into_iter().filter(is_compiled).collect()
}

/// Those with `HORUS_CASE` in their names, all with `HORUS_CASES`, or a part: of those whose names have a new word (an operation, a type,
/// a border, a size) one in `every[0]`, of the others one in `every[1]`.
pub(crate) fn some(every: [usize; 2]) -> Vec<ConformanceLaunch> {
    if let Ok(only) = std::env::var("HORUS_CASE") {
        return compiled().into_iter().filter(|case| case.name.contains(&only)).collect();
    }
    let (mut words, mut seen) = (HashSet::new(), [0; 2]);
    let mut is_in = |case: &ConformanceLaunch| {
        let new = case.name.split(' ').filter(|word| words.insert((*word).to_owned())).count();
        let kind = usize::from(new == 0);
        seen[kind] += 1;
        usize::is_multiple_of(seen[kind], every[kind])
    };
    let some = part(compiled(), |all| all.into_iter().filter(|case| is_in(case)).collect());
    println!("{} of {seen:?} cases", some.len());
    some
}
