//! Options of execution, common to all programs.

use std::num::NonZeroUsize;

use clap::Args;
use horus::Builder;
use horus::prelude::Mode;

/// Execution of a program; the environment sets the defaults.
#[derive(Args, Clone, Debug, Default)]
pub struct Execution {
    /// Worker threads per rank (default: all cores, divided among the ranks that share them)
    #[arg(long, value_name = "N", value_parser = parse_count)]
    pub threads: Option<NonZeroUsize>,

    /// Optimisation: naive, lazy or fused (default: HORUS_MODE, else fused)
    #[arg(long)]
    pub mode: Option<Mode>,

    /// Device to run on: auto, cpu, cuda, cuda:N, or several: cuda:all, cuda:0+cpu (default:
    /// HORUS_DEVICE, else auto)
    #[arg(long)]
    pub device: Option<String>,

    /// Print the plan: each step, its image, and why it is needed
    #[arg(long)]
    pub explain: bool,
}

impl Execution {
    /// Applies the options to a session; the rank that prints passes requested plans to `print`.
    pub fn apply(&self, mut builder: Builder, prints: bool, print: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        if let Some(threads) = self.threads {
            builder = builder.threads(threads.get());
        }
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        if let Some(device) = &self.device {
            builder = builder.device(device);
        }
        if self.explain && prints { builder.explain(print) } else { builder }
    }
}

pub(crate) fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a whole number from 1 on".to_owned())
}
