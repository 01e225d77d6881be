//! Options of execution, common to all programs.

use std::num::NonZeroUsize;

use clap::Args;
use horus::Builder;
use horus::prelude::*;

/// Options of a session; the environment sets the defaults.
#[derive(Args, Clone, Debug, Default)]
pub struct SessionOptions {
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
}

impl SessionOptions {
    /// Applies the options to a session.
    pub fn apply(&self, mut builder: Builder) -> Builder {
        if let Some(threads) = self.threads {
            builder = builder.threads(threads.get());
        }
        if let Some(mode) = self.mode {
            builder = builder.mode(mode);
        }
        if let Some(device) = &self.device {
            builder = builder.device(device);
        }
        builder
    }

    /// Checks that a session with these options is what a run with the options `asked` asks for.
    ///
    /// # Errors
    /// A message about the first option that differs.
    pub(crate) fn allow(&self, asked: &SessionOptions) -> std::result::Result<(), String> {
        let text = |threads: Option<NonZeroUsize>| threads.map(|threads| threads.to_string());
        let mode = |mode: Option<Mode>| mode.map(|mode| format!("{mode:?}").to_lowercase());
        for (flag, own, asked) in [
            ("--threads", text(self.threads), text(asked.threads)),
            ("--mode", mode(self.mode), mode(asked.mode)),
            ("--device", self.device.clone(), asked.device.clone()),
        ] {
            let Some(asked) = asked.filter(|asked| own.as_ref() != Some(asked)) else { continue };
            let own = own.map_or_else(|| format!("no {flag}"), |own| format!("{flag} {own}"));
            return Err(format!("{flag} {asked}: the server was started with {own}, which holds for all its requests"));
        }
        Ok(())
    }
}

/// Execution of a program.
#[derive(Args, Clone, Debug, Default)]
pub struct Execution {
    /// Options of the session.
    #[command(flatten)]
    pub session: SessionOptions,

    /// Print the plan: each step, its image, and why it is needed. svg draws the program as recorded and
    /// what it became, and prints nothing else
    #[arg(long, value_name = "FORM", num_args = 0..=1, require_equals = true, default_missing_value = "text")]
    pub explain: Option<ExplainForm>,
}

/// The form of explained plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExplainForm {
    /// Lines of text.
    Text,
    /// A drawing of each plan.
    Svg,
}

impl Execution {
    /// Applies the options to a session; the rank that prints passes requested plans to `print`.
    pub fn apply(&self, builder: Builder, prints: bool, print: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        let builder = self.session.apply(builder);
        if prints { self.explained(builder, print) } else { builder }
    }

    /// Lets a session pass requested plans to `print`.
    pub(crate) fn explained(&self, builder: Builder, print: impl Fn(&str) + Send + Sync + 'static) -> Builder {
        match self.explain {
            None => builder,
            Some(ExplainForm::Text) => builder.explain(print),
            Some(ExplainForm::Svg) => builder.explain_drawings(print),
        }
    }
}

pub(crate) fn parse_count(text: &str) -> std::result::Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "a whole number from 1 on".to_owned())
}
