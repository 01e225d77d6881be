//! Hardware counters of the processor, if the system permits them.

/// Events of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadEvents {
    pub(super) cycles: u64,
    pub(super) instructions: u64,
    /// Reads and writes that missed the last cache.
    pub(super) misses: u64,
}

impl ThreadEvents {
    fn with(self, other: ThreadEvents, f: impl Fn(u64, u64) -> u64) -> ThreadEvents {
        ThreadEvents {
            cycles: f(self.cycles, other.cycles),
            instructions: f(self.instructions, other.instructions),
            misses: f(self.misses, other.misses),
        }
    }

    /// The events since `before`.
    pub(super) fn since(self, before: ThreadEvents) -> ThreadEvents {
        self.with(before, u64::saturating_sub)
    }

    /// The sum of both.
    pub(super) fn and(self, other: ThreadEvents) -> ThreadEvents {
        self.with(other, u64::saturating_add)
    }

    /// The mean of `n`.
    pub(super) fn over(self, n: u64) -> ThreadEvents {
        self.with(ThreadEvents::default(), |events, _| events / n.max(1))
    }

    /// Instructions per cycle.
    pub(super) fn per_cycle(self) -> f64 {
        self.instructions as f64 / self.cycles.max(1) as f64
    }
}

/// The counters of the thread that opens them, and of all threads that it starts afterwards.
pub(super) struct ThreadCounters {
    #[cfg(target_os = "linux")]
    of: [perf_event::Counter; 3],
}

#[cfg(target_os = "linux")]
impl ThreadCounters {
    /// Starts counting.
    ///
    /// # Errors
    /// The reason why the system permits none.
    pub(super) fn open() -> Result<ThreadCounters, String> {
        use perf_event::events::Hardware;
        let open = |event| {
            let mut builder = perf_event::Builder::new().kind(event);
            builder.inherit(true);
            let mut counter = builder.build()?;
            counter.enable().map(|()| counter)
        };
        let all = || Ok([open(Hardware::CPU_CYCLES)?, open(Hardware::INSTRUCTIONS)?, open(Hardware::CACHE_MISSES)?]);
        all().map(|of| ThreadCounters { of }).map_err(|e: std::io::Error| {
            let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
            format!("{e} (kernel.perf_event_paranoid is {}, and virtual machines may have none)", paranoid.trim())
        })
    }

    /// The events so far.
    pub(super) fn read(&mut self) -> Option<ThreadEvents> {
        let [cycles, instructions, misses] = &mut self.of;
        let (cycles, instructions) = (cycles.read().ok()?, instructions.read().ok()?);
        Some(ThreadEvents { cycles, instructions, misses: misses.read().ok()? })
    }
}

#[cfg(not(target_os = "linux"))]
impl ThreadCounters {
    /// Fails.
    ///
    /// # Errors
    /// Always: this is not Linux.
    pub(super) fn open() -> Result<ThreadCounters, String> {
        Err("they are read on Linux only".into())
    }

    /// Always `None`.
    pub(super) fn read(&mut self) -> Option<ThreadEvents> {
        None
    }
}
