//! Predicted times of a program on the CPU and on a GPU, for the choice between them.

use std::time::Duration;

use crate::machine::MachineProfile;
use crate::plan::work::ProgramWork;

/// Predicted time of a program on each device. It distinguishes seconds from milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct DeviceForecast {
    /// Time on the CPU.
    pub cpu: Duration,
    /// Time on a GPU, including its start.
    pub gpu: Duration,
}

impl DeviceForecast {
    /// The forecast for a CPU and a GPU with these profiles, on `ranks` ranks. `begun` is `true` if
    /// a GPU is open or is being opened.
    pub fn of(
        work: &ProgramWork,
        (cpu, gpu): &(MachineProfile, MachineProfile),
        ranks: usize,
        begun: bool,
    ) -> DeviceForecast {
        /// Seconds of a program's overhead, and of a GPU's start and release (16 cores of a server,
        /// an H100).
        const PROGRAM: f64 = 1e-3;
        const START: f64 = 0.3;
        let seconds = |s: f64| Duration::try_from_secs_f64(s).unwrap_or(Duration::MAX);
        let fixed = PROGRAM + if begun { 0.0 } else { START };
        DeviceForecast { cpu: seconds(work.seconds(cpu, ranks)), gpu: seconds(work.seconds(gpu, ranks) + fixed) }
    }
}

impl std::fmt::Display for DeviceForecast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (cpu, gpu) = (self.cpu.as_secs_f64(), self.gpu.as_secs_f64());
        write!(f, "predicted to take {cpu:.2} s on the CPU and {gpu:.2} s on a GPU, its start included")
    }
}
