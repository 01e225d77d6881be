//! A profile as a readable table.

use std::fmt;

use super::profile::{CopyTime, CopyTimes, MachineProfile};
use crate::ir::kernel::Family;

/// Seconds as microseconds.
fn us(seconds: f64) -> String {
    format!("{:.1} us", seconds * 1e6)
}

/// Units per second, in billions.
fn giga(rate: f64) -> String {
    format!("{:.1}", rate / 1e9)
}

fn copies(f: &mut fmt::Formatter<'_>, direction: &str, copies: &CopyTimes) -> fmt::Result {
    let CopyTimes { pinned, staged, mapped, tiled } = copies;
    for (memory, line) in
        [("page-locked", pinned), ("pageable", staged), ("mapped", mapped), ("mapped, in tiles", tiled)]
    {
        let CopyTime { latency, overhead, gap, bandwidth } = *line;
        let (latency, overhead, gap) = (us(latency), us(overhead), us(gap));
        let what = format!("{direction}, {memory}");
        writeln!(f, "{what:28} {:>9} GB/s, latency {latency}, host {overhead}, gap {gap}", giga(bandwidth))?;
    }
    Ok(())
}

/// Rates with their sizes.
fn rates<'a>(of: &'a [(f64, f64)], size: impl Fn(f64) -> String + 'a) -> String {
    of.iter().map(|(s, rate)| format!("{} {}", size(*s), giga(*rate))).collect::<Vec<_>>().join(", ")
}

impl fmt::Display for MachineProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = if self.hardware.device.is_empty() { "any machine".to_owned() } else { self.hardware.to_string() };
        writeln!(f, "{named} ({})", self.origin)?;
        if self.upload.pinned.bandwidth >= MachineProfile::NO_COPY {
            writeln!(f, "nothing is copied between host and device, which are the same")?;
        } else {
            copies(f, "host to device", &self.upload)?;
            copies(f, "device to host", &self.download)?;
            writeln!(f, "{:28} {:>9.2} times as long", "both ways at once", self.both_ways)?;
        }
        let (host, device) = (us(self.launch.host), us(self.launch.device));
        writeln!(f, "{:28} host {host}, device {device}", "launch")?;
        writeln!(f, "{:28} host {} for an operation", "recording", us(self.recording))?;
        let megabytes = |bytes: f64| format!("{:.0} MiB", bytes / f64::from(1 << 20));
        writeln!(f, "{:28} GB/s: {}", "device memory", rates(&self.memory.0, megabytes))?;
        let (single, double) = (giga(self.arithmetic.f32), giga(self.arithmetic.f64));
        writeln!(f, "{:28} {single:>9} G/s in f32, {double} in f64", "multiply-adds")?;
        if self.arithmetic.fill > 0.0 {
            writeln!(f, "{:28} {:>9.0} pixels", "launches that fill it", self.arithmetic.fill)?;
        }
        for family in Family::ALL {
            let of = self.efficiency(family);
            let (memory, arithmetic) = (of.memory * 100.0, of.arithmetic * 100.0);
            writeln!(f, "{:28} {memory:8.0} % of memory, {arithmetic:.0} % of multiply-adds", family.name())?;
        }
        let threads = |n: f64| format!("{n:.0} thread{}", if n > 1.0 { "s" } else { "" });
        writeln!(f, "{:28} GB/s: {}", "host copies", rates(&self.host_copy.0, threads))?;
        writeln!(f, "{:28} {:>9} GB/s read, {} written", "files", giga(self.files.read), giga(self.files.write))?;
        let links =
            [("devices", self.links.peers), ("ranks of a host", self.links.host), ("hosts", self.links.network)];
        for (between, link) in links {
            let what = format!("messages between {between}");
            writeln!(f, "{what:32} {:>5} GB/s, latency {}", giga(link.bandwidth), us(link.latency))?;
        }
        Ok(())
    }
}
