//! A progress bar, omitted for short runs and for files.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use horus::prelude::*;
use indicatif::{ProgressBar, ProgressStyle};

/// Runs shorter than this show no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// A progress bar for the steps of the running plan, on a terminal.
pub(crate) struct Bar {
    started: Instant,
    enabled: bool,
    bar: Mutex<Option<ProgressBar>>,
}

impl Bar {
    /// A bar that appears if it is `wanted` and the run takes longer than a second.
    pub(crate) fn new(wanted: bool) -> Bar {
        Bar { started: Instant::now(), enabled: wanted, bar: Mutex::new(None) }
    }

    /// Records a step.
    pub(crate) fn update(&self, progress: &Progress<'_>) {
        if !self.enabled || self.started.elapsed() < PATIENCE {
            return;
        }
        let mut slot = self.bar.lock().unwrap_or_else(PoisonError::into_inner);
        let bar =
            slot.get_or_insert_with(|| ProgressBar::new(0).with_style(style()).with_elapsed(self.started.elapsed()));
        bar.set_length(progress.steps as u64);
        bar.set_position(progress.step as u64);
        bar.set_message((progress.text)());
    }

    /// Removes the bar from the terminal.
    pub(crate) fn finish(&self) {
        if let Some(bar) = self.bar.lock().unwrap_or_else(PoisonError::into_inner).take() {
            bar.finish_and_clear();
        }
    }
}

/// A progress bar for a series, on a terminal.
pub(crate) struct SeriesBar(Option<ProgressBar>);

impl SeriesBar {
    /// A bar over so many pictures, if it is `wanted`.
    pub(crate) fn new(wanted: bool, pictures: usize) -> SeriesBar {
        let style = ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg}");
        let style = style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("=> ");
        SeriesBar(wanted.then(|| ProgressBar::new(pictures as u64).with_style(style)))
    }

    /// Shows that so many pictures with so many bytes are done.
    pub(crate) fn update(&self, pictures: usize, bytes: u64) {
        if let Some(bar) = &self.0 {
            let seconds = bar.elapsed().as_secs_f64().max(1e-3);
            let (rate, megabytes) = (pictures as f64 / seconds, bytes as f64 / 1e6 / seconds);
            bar.set_message(format!("{rate:.1} pictures/s, {megabytes:.1} MB/s"));
            bar.set_position(pictures as u64);
        }
    }

    /// Prints something above the bar.
    pub(crate) fn suspend(&self, print: impl FnOnce()) {
        match &self.0 {
            Some(bar) => bar.suspend(print),
            None => print(),
        }
    }

    /// Removes the bar from the terminal.
    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn style() -> ProgressStyle {
    ProgressStyle::with_template("{elapsed_precise} [{wide_bar}] {pos}/{len} {msg:30!}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
