//! The distance of plans to the best that an exhaustive search finds, under the same cost model.
//!
//! Small random programs, of up to seven operations, are planned by Horus and by an exhaustive
//! search over the vocabulary of plans, which shares with the planner only the steps, the checks of
//! `verify` and the prediction of a finished plan. [`ranks`] searches plans for two devices that
//! exchange messages, [`bands`] plans for one device in up to three bands.
//!
//! `HORUS_SHOW=1` prints each plan that is not the best, and a better one.
//! `HORUS_CASES=10000 cargo test --release -p horus-plan --test minimal -- --nocapture` prints the
//! distributions (`docs/performance/model.md`).

mod bands;
mod programs;
mod ranks;

/// Distances of many programs.
#[derive(Debug, Default)]
pub(crate) struct OptimalityGaps {
    /// Transfers beyond the least among plans that are as fast.
    pub(crate) transfers: Vec<usize>,
    /// Transfers beyond the least among all plans, however slow.
    pub(crate) beyond_least: Vec<usize>,
    /// Predicted time relative to the least, minus 1.
    pub(crate) makespan: Vec<f64>,
    /// Plans searched.
    pub(crate) searched: usize,
}

impl OptimalityGaps {
    /// The value below which this share of the makespans lies.
    pub(crate) fn makespan_at(&self, share: f64) -> f64 {
        let mut sorted = self.makespan.clone();
        sorted.sort_by(f64::total_cmp);
        sorted[((sorted.len() - 1) as f64 * share) as usize]
    }

    /// The share of programs whose predicted time is within `distance` of the least.
    pub(crate) fn within(&self, distance: f64) -> f64 {
        self.makespan.iter().filter(|d| **d <= distance).count() as f64 / self.makespan.len() as f64
    }

    pub(crate) fn print(&self, name: &str) {
        let histogram = |values: &[usize]| {
            let most = values.iter().copied().max().unwrap_or(0);
            let count = |n| values.iter().filter(|v| **v == n).count();
            (0..=most).map(|n| format!("{n}: {}", count(n))).collect::<Vec<_>>().join(", ")
        };
        println!("{name}: {} programs, {} plans searched", self.makespan.len(), self.searched);
        println!("  transfers beyond the least of plans as fast: {}", histogram(&self.transfers));
        println!("  transfers beyond the least of all plans:     {}", histogram(&self.beyond_least));
        let at = [0.5, 0.9, 0.95, 0.99, 1.0]
            .map(|share| format!("{:.0} %: {:.2} %", share * 100.0, self.makespan_at(share) * 100.0));
        println!("  makespan beyond the least, by share of programs: {}", at.join(", "));
        println!("  within 5 %: {:.1} % of programs", self.within(0.05) * 100.0);
    }
}

/// The number of programs: `HORUS_CASES`, or few.
pub(crate) fn cases(few: usize) -> usize {
    std::env::var("HORUS_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(few)
}
