//! What bounds a kernel, from its measurements and the model of the machine, and advice.

use std::fmt::Write as _;

use horus_core::device::Geometry;
use horus_core::machine::{LaunchBottleneck as ModelBound, MachineProfile};
use serde_json::{Value as Json, json};

use super::counters::ThreadEvents;
use super::observed::ObservedLaunch;

/// Measurements of a kernel alone on a GPU, in seconds of a launch.
#[derive(Clone, Debug, Default)]
pub(super) struct IsolatedKernel {
    pub(super) whole: f64,
    /// Times of its arithmetic without its traffic, and of its traffic without its arithmetic, if it has these parts.
    pub(super) parts: Option<[f64; 2]>,
    pub(super) registers: i32,
    /// Bytes per thread.
    pub(super) spills: i32,
    /// Bytes per block.
    pub(super) shared: u32,
    pub(super) threads: u32,
    /// Blocks on a multiprocessor at once, the fraction of its threads, and the resource that admits no more.
    pub(super) resident: u32,
    pub(super) occupancy: f64,
    pub(super) limiter: &'static str,
    /// A faster launch shape, and its time.
    pub(super) faster: Option<(String, f64)>,
    pub(super) counted: Option<HardwareCounts>,
}

/// Events of a launch, counted by the hardware of a GPU; NaN without such a counter.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct HardwareCounts {
    /// Fraction of the wavefronts of shared memory that are bank conflicts.
    pub(super) conflicts: f64,
    /// Bytes per second of the GPU's memory and of its second-level cache, and the fraction of hits in the cache.
    pub(super) dram: f64,
    pub(super) l2: f64,
    pub(super) hits: f64,
    /// Instructions that a multiprocessor issues per cycle.
    pub(super) per_cycle: f64,
}

/// Columns of [`HardwareCounts`].
const COUNTED: [&str; 5] = ["conflicts", "DRAM GB/s", "L2 GB/s", "L2 hits", "per cycle"];

impl HardwareCounts {
    fn cells(self) -> [String; 5] {
        let cell = |number: f64, text: String| if number.is_finite() { text } else { "-".to_owned() };
        let share = |fraction| cell(fraction, percent(fraction));
        let rate = |bytes| cell(bytes, format!("{:.0}", 1e-9 * bytes));
        let HardwareCounts { conflicts, dram, l2, hits, per_cycle } = self;
        [share(conflicts), rate(dram), rate(l2), share(hits), cell(per_cycle, format!("{per_cycle:.2}"))]
    }

    fn json(self) -> Json {
        json!({
            "conflicts": self.conflicts, "dram_bytes_per_s": self.dram, "l2_bytes_per_s": self.l2,
            "l2_hits": self.hits, "ipc": self.per_cycle,
        })
    }
}

/// The bottleneck of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bottleneck {
    Launch,
    Memory,
    Arithmetic,
    /// Memory and arithmetic overlap, and each takes nearly all of the time.
    Both,
    /// Memory and arithmetic follow one another.
    Latency,
}

impl Bottleneck {
    /// The bottleneck, by the times of the whole and of its parts (Brodtkorb et al., Figure 7), and the least time of a
    /// launch.
    fn measured(whole: f64, [math, memory]: [f64; 2], launch: f64) -> Bottleneck {
        /// A part that takes this fraction of the whole bounds it.
        const NEARLY: f64 = 0.8;
        match (math >= NEARLY * whole, memory >= NEARLY * whole) {
            _ if whole <= 2.0 * launch => Bottleneck::Launch,
            (true, true) => Bottleneck::Both,
            (true, false) => Bottleneck::Arithmetic,
            (false, true) => Bottleneck::Memory,
            (false, false) => Bottleneck::Latency,
        }
    }

    fn predicted(bound: ModelBound) -> Bottleneck {
        match bound {
            ModelBound::Launch => Bottleneck::Launch,
            ModelBound::Memory | ModelBound::Bus => Bottleneck::Memory,
            ModelBound::Arithmetic => Bottleneck::Arithmetic,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Bottleneck::Launch => "launch",
            Bottleneck::Memory => "memory",
            Bottleneck::Arithmetic => "arithmetic",
            Bottleneck::Both => "both",
            Bottleneck::Latency => "latency",
        }
    }
}

/// The launches of one kernel for images of one size.
pub(super) struct KernelRow {
    /// The first of them.
    pub(super) first: ObservedLaunch,
    /// Seconds of each launch.
    times: Vec<f64>,
    counts: Option<ThreadEvents>,
    pub(super) isolated: Option<IsolatedKernel>,
}

impl KernelRow {
    /// The row of a first launch.
    pub(super) fn of(seen: ObservedLaunch) -> KernelRow {
        let counts = seen.counts.map(|_| ThreadEvents::default());
        let mut row = KernelRow { first: seen.clone(), times: Vec::new(), counts, isolated: None };
        row.add(seen);
        row
    }

    /// Returns `true` if the launch belongs to the row.
    pub(super) fn is_of(&self, seen: &ObservedLaunch) -> bool {
        let of = &self.first;
        (&of.inputs, of.output, of.rows.len()) == (&seen.inputs, seen.output, seen.rows.len())
            && of.kernel.name() == seen.kernel.name()
    }

    pub(super) fn add(&mut self, seen: ObservedLaunch) {
        self.times.push(seen.seconds.unwrap_or(0.0));
        self.counts = self.counts.zip(seen.counts).map(|(all, one)| all.and(one));
    }

    /// The median time of a launch.
    fn median(&self) -> f64 {
        let mut times = self.times.clone();
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).copied().unwrap_or(0.0)
    }

    /// The time of all launches, if each takes the median.
    pub(super) fn seconds(&self) -> f64 {
        self.median() * self.times.len() as f64
    }

    /// The result of `runs` runs whose launches took `all` seconds each.
    pub(super) fn verdict(&self, machine: &MachineProfile, runs: usize, all: f64) -> Verdict {
        let of = |g: &Geometry| (g.shape, g.dtype);
        let ObservedLaunch { kernel, inputs, output, rows, .. } = &self.first;
        let work = kernel.work(&inputs.iter().map(of).collect::<Vec<_>>(), of(output), *rows);
        let cost = machine.launch(&work);
        let (seconds, launches) = (self.median(), self.times.len());
        let of_time = |ideal: f64| if seconds > 0.0 { ideal / seconds } else { 0.0 };
        let parts = self.isolated.as_ref().and_then(|alone| Some((alone.whole, alone.parts?)));
        let bound = match parts {
            Some((whole, parts)) => Bottleneck::measured(whole, parts, machine.launch.device),
            None => Bottleneck::predicted(cost.bound),
        };
        let verdict = Verdict {
            name: kernel.name(),
            launches: launches as f64 / runs.max(1) as f64,
            seconds,
            share: self.seconds() / runs.max(1) as f64 / all.max(f64::MIN_POSITIVE),
            predicted: cost.seconds,
            bandwidth: of_time(work.bytes() as f64 / machine.memory.at(work.bytes().max(1) as f64)),
            arithmetic: of_time(work.multiply_adds / machine.rate(work.dtype)),
            alone: self.isolated.clone(),
            counts: self.counts.map(|counts| counts.over(launches as u64)),
            bound,
            advice: Vec::new(),
        };
        Verdict { advice: verdict.advised(), ..verdict }
    }
}

/// A row of the result.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    name: String,
    /// Launches of a run.
    pub(super) launches: f64,
    /// Median time of a launch in the program, its share of all launches, and its prediction.
    seconds: f64,
    share: f64,
    predicted: f64,
    /// Fractions of the time that a copy of its bytes, and its multiply-adds at the peak, would take.
    bandwidth: f64,
    arithmetic: f64,
    alone: Option<IsolatedKernel>,
    /// Events of a launch.
    counts: Option<ThreadEvents>,
    bound: Bottleneck,
    advice: Vec<String>,
}

fn percent(fraction: f64) -> String {
    format!("{:.0} %", 100.0 * fraction)
}

impl Verdict {
    fn advised(&self) -> Vec<String> {
        /// Fraction of the machine's speed above which there is little to gain.
        const GOOD: f64 = 0.7;
        /// Fraction of threads that hides latencies.
        const ENOUGH: f64 = 0.5;
        /// Ratio of a prediction to a time from which the prediction is wrong.
        const WRONG: f64 = 1.3;
        /// Fraction of the wavefronts of shared memory from which bank conflicts matter.
        const CONFLICTS: f64 = 0.1;
        let mut all = Vec::new();
        match self.bound {
            Bottleneck::Launch => {
                all.push("as short as a launch: larger images, or several evaluated together".to_owned())
            }
            Bottleneck::Memory if self.bandwidth >= GOOD => {
                all.push("near the speed of a copy: only fewer bytes help, by fusion or narrower types".to_owned());
            }
            // Kernels without parts have no other measurements.
            Bottleneck::Memory if self.alone.as_ref().is_none_or(|alone| alone.parts.is_none()) => {}
            Bottleneck::Memory => {
                let of = percent(self.bandwidth);
                all.push(format!(
                    "its pixels take {of} of its time at the speed of a copy; the rest are pixels read again"
                ));
            }
            Bottleneck::Arithmetic if self.arithmetic >= GOOD => {
                all.push(
                    "near the peak of multiply-adds: only fewer help, as of separable filters or within a tolerance"
                        .to_owned(),
                );
            }
            Bottleneck::Arithmetic | Bottleneck::Both => {}
            Bottleneck::Latency => {
                all.push("memory and arithmetic wait for one another: neither takes this time alone".to_owned());
            }
        }
        if let Some(alone) = &self.alone {
            let IsolatedKernel { registers, threads, resident, occupancy, limiter, shared, spills, counted, .. } =
                alone;
            let waits = matches!(self.bound, Bottleneck::Latency | Bottleneck::Arithmetic | Bottleneck::Both);
            if waits && *occupancy < ENOUGH && self.arithmetic < GOOD {
                let takes = match *limiter {
                    "registers" => format!("registers: {registers} for each of {threads} threads"),
                    "shared memory" => format!("shared memory: {} KiB for each block", shared.div_ceil(1024)),
                    other => format!("{other}: {threads} in each block"),
                };
                let blocks = crate::report::count(*resident as usize, "block");
                let of = percent(*occupancy);
                all.push(format!("limited by {takes}, so that {blocks} ({of} of the threads) run at once: horus-tune"));
            }
            if *spills > 0 {
                all.push(format!(
                    "{spills} bytes of registers per thread are spilled to memory: smaller launch shapes, horus-tune"
                ));
            }
            if let Some(HardwareCounts { conflicts, .. }) = counted
                && *conflicts > CONFLICTS
            {
                let of = percent(*conflicts);
                all.push(format!(
                    "{of} of the wavefronts of shared memory are bank conflicts: other launch shapes, horus-tune"
                ));
            }
            if let Some((shape, seconds)) = &alone.faster {
                let gain = percent(1.0 - seconds / alone.whole);
                all.push(format!("{shape} is {gain} faster: horus-tune"));
            }
        }
        if self.seconds > 0.0 && self.bound != Bottleneck::Launch {
            let ratio = self.predicted / self.seconds;
            if !(1.0 / WRONG..=WRONG).contains(&ratio) {
                let ms = 1e3 * self.predicted;
                all.push(format!("{ms:.3} ms were predicted: horus-machine measures this machine"));
            }
        }
        all
    }

    /// The verdict as a JSON object.
    pub(super) fn json(&self) -> Json {
        let alone = self.alone.as_ref().map(|alone| {
            let [math, memory] = alone.parts.map_or([None; 2], |parts| parts.map(|s| Some(s * 1e3)));
            json!({
                "ms": alone.whole * 1e3, "math_ms": math, "memory_ms": memory, "registers": alone.registers,
                "spills": alone.spills, "shared": alone.shared, "threads": alone.threads, "blocks": alone.resident,
                "occupancy": alone.occupancy, "limited_by": alone.limiter,
                "faster": alone.faster.as_ref().map(|(shape, s)| json!({ "shape": shape, "ms": s * 1e3 })),
            })
        });
        let counts = self.counts.map(|c| {
            json!({ "cycles": c.cycles, "instructions": c.instructions, "ipc": c.per_cycle(), "cache_misses": c.misses })
        });
        let counts = counts.or_else(|| Some(self.alone.as_ref()?.counted?.json()));
        json!({
            "kernel": self.name, "launches": self.launches, "ms": self.seconds * 1e3, "share": self.share,
            "predicted_ms": self.predicted * 1e3, "bandwidth": self.bandwidth, "arithmetic": self.arithmetic,
            "alone": alone, "counters": counts, "bound_by": self.bound.name(), "advice": self.advice,
        })
    }
}

/// The rows as a table, each followed by its kernel and advice.
pub(super) fn table(rows: &[Verdict]) -> String {
    let on_gpu = rows.iter().any(|row| row.alone.is_some());
    let counted = rows.iter().any(|row| row.counts.is_some());
    let counted_on_gpu = rows.iter().any(|row| row.alone.as_ref().is_some_and(|alone| alone.counted.is_some()));
    let mut heads = vec!["launches", "ms each", "share", "predicted", "bandwidth", "arithmetic"];
    if on_gpu {
        heads.extend(["alone", "math", "memory", "registers", "spills", "shared", "occupancy"]);
    }
    if counted_on_gpu {
        heads.extend(COUNTED);
    }
    if counted {
        heads.extend(["cycles", "per cycle", "misses"]);
    }
    heads.push("bound by");
    let mut text = String::new();
    heads.iter().for_each(|head| text += &format!(" {head:>10}"));
    text.push('\n');
    for row in rows {
        let ms = |seconds: f64| format!("{:.4}", seconds * 1e3);
        let mut cells = vec![format!("{:.0}", row.launches), ms(row.seconds), percent(row.share), ms(row.predicted)];
        cells.extend([percent(row.bandwidth), percent(row.arithmetic)]);
        match &row.alone {
            Some(alone) => {
                let [math, memory] = alone.parts.map_or([None; 2], |parts| parts.map(Some));
                let part = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), ms);
                cells.extend([ms(alone.whole), part(math), part(memory), alone.registers.to_string()]);
                cells.extend([alone.spills.to_string(), alone.shared.to_string(), percent(alone.occupancy)]);
            }
            None if on_gpu => cells.extend(vec!["-".to_owned(); 7]),
            None => {}
        }
        if counted_on_gpu {
            let of_gpu = row.alone.as_ref().and_then(|alone| alone.counted);
            cells.extend(of_gpu.map_or_else(|| COUNTED.map(|_| "-".to_owned()), HardwareCounts::cells));
        }
        match row.counts {
            Some(c) => cells.extend([c.cycles.to_string(), format!("{:.2}", c.per_cycle()), c.misses.to_string()]),
            None if counted => cells.extend(vec!["-".to_owned(); 3]),
            None => {}
        }
        cells.push(row.bound.name().to_owned());
        cells.iter().for_each(|cell| text += &format!(" {cell:>10}"));
        let _ = writeln!(text, "\n    {}", row.name);
        row.advice.iter().for_each(|advice| text += &format!("      {advice}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_that_takes_the_time_of_the_whole_bounds_it() {
        // The four kernels of Figure 7, and one that is as short as a launch.
        let cases = [
            ([0.95, 0.9], Bottleneck::Both),
            ([0.5, 0.6], Bottleneck::Latency),
            ([0.3, 0.97], Bottleneck::Memory),
            ([0.99, 0.2], Bottleneck::Arithmetic),
        ];
        for (parts, bound) in cases {
            assert_eq!(Bottleneck::measured(1.0, parts, 0.01), bound, "{parts:?}");
            assert_eq!(Bottleneck::measured(1.0, parts, 0.5), Bottleneck::Launch, "{parts:?}");
        }
    }

    /// The advice on a kernel that takes a millisecond and is predicted to take all of it.
    fn advice(bound: Bottleneck, [bandwidth, arithmetic]: [f64; 2], alone: Option<IsolatedKernel>) -> String {
        let verdict = Verdict {
            name: "a kernel".into(),
            launches: 1.0,
            seconds: 1e-3,
            share: 1.0,
            predicted: 1e-3,
            bandwidth,
            arithmetic,
            alone,
            counts: None,
            bound,
            advice: Vec::new(),
        };
        verdict.advised().join("\n")
    }

    #[test]
    fn advice_follows_from_what_was_measured() {
        let registers = IsolatedKernel {
            whole: 1e-3,
            registers: 124,
            threads: 256,
            resident: 2,
            occupancy: 0.25,
            limiter: "registers",
            faster: Some(("8x32 threads of 4x2 pixels".into(), 0.94e-3)),
            ..IsolatedKernel::default()
        };
        let told = advice(Bottleneck::Arithmetic, [0.1, 0.4], Some(registers.clone()));
        assert_eq!(
            told,
            "limited by registers: 124 for each of 256 threads, so that 2 blocks (25 % of the threads) run at once: horus-tune\n\
             8x32 threads of 4x2 pixels is 6 % faster: horus-tune"
        );
        let near =
            advice(Bottleneck::Arithmetic, [0.1, 0.9], Some(IsolatedKernel { faster: None, ..registers.clone() }));
        assert!(near.starts_with("near the peak of multiply-adds") && !near.contains("registers"), "{near}");
        let spilled = IsolatedKernel { spills: 64, faster: None, occupancy: 1.0, ..registers };
        assert!(advice(Bottleneck::Memory, [0.9, 0.1], Some(spilled)).contains("64 bytes of registers"));
        assert!(advice(Bottleneck::Memory, [0.9, 0.1], None).starts_with("near the speed of a copy"));
        assert_eq!(advice(Bottleneck::Memory, [0.5, 0.1], None), "");
        let conflicts = |conflicts| Some(HardwareCounts { conflicts, ..HardwareCounts::default() });
        let shared = IsolatedKernel { counted: conflicts(0.25), ..IsolatedKernel::default() };
        assert!(advice(Bottleneck::Memory, [0.9, 0.1], Some(shared.clone())).contains("25 % of the wavefronts"));
        let few = IsolatedKernel { counted: conflicts(0.05), ..shared };
        assert!(!advice(Bottleneck::Memory, [0.9, 0.1], Some(few)).contains("wavefronts"));
        let traffic = IsolatedKernel { parts: Some([0.2e-3, 0.9e-3]), ..IsolatedKernel::default() };
        assert!(advice(Bottleneck::Memory, [0.5, 0.1], Some(traffic)).contains("50 %"));
    }
}
