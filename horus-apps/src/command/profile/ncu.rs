//! Hardware counters of a GPU, read by NVIDIA's `ncu` (Nsight Compute), if the driver permits them.
//!
//! `ncu` runs this program again. That process launches each kernel once between the calls that `ncu` waits for, and
//! lists the kernels in a file, because all have one name for `ncu`, and some are several kernels of the GPU.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use horus::prelude::*;
use horus_core::device::Device as _;

use super::observed::ObservedLaunch;
use super::verdict::{HardwareCounts, KernelRow};
use super::{failed, launched, measured};
use crate::batch::BatchJob;
use crate::caller::Caller;

/// Begins the first word of the program that `ncu` runs; the file of the list follows.
const LIST: &str = "--list=";

/// Metrics that are sums over one or several kernels.
const METRICS: [&str; 10] = [
    "gpu__time_duration.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_bytes.sum",
    "lts__t_sectors_lookup_hit.sum",
    "lts__t_sectors_lookup_miss.sum",
    "sm__inst_issued.sum",
    "sm__cycles_active.sum",
];
type MetricSums = [f64; METRICS.len()];

fn counted([ns, conflicts, wavefronts, read, written, l2, hits, misses, issued, cycles]: MetricSums) -> HardwareCounts {
    HardwareCounts {
        conflicts: conflicts / wavefronts,
        dram: 1e9 * (read + written) / ns,
        l2: 1e9 * l2 / ns,
        hits: hits / (hits + misses),
        per_cycle: issued / cycles,
    }
}

/// The file of the list, in the process that `ncu` runs, and the other words.
pub(super) fn listed(words: &[OsString]) -> (Option<PathBuf>, &[OsString]) {
    let list = words.first().and_then(|word| word.to_str()?.strip_prefix(LIST)).map(PathBuf::from);
    let others = usize::from(list.is_some());
    (list, &words[others..])
}

/// The launch of a row, on one line.
fn line(row: &KernelRow) -> String {
    let ObservedLaunch { kernel, inputs, output, rows, .. } = &row.first;
    format!("{:?}", (kernel.name(), inputs, output, rows.len()))
}

/// Launches each kernel of the program for `ncu`, and lists them: a line for each kernel of the GPU.
pub(super) fn launch(caller: &Caller, job: &BatchJob, list: &Path) -> Result<()> {
    let (profiled, rows) = measured(caller, job)?;
    let Some((ordinal, _)) = profiled.gpu else { return Ok(()) };
    let gpu = horus_cuda::CudaDevice::open(ordinal, None)?;
    let mut text = String::new();
    for row in &rows {
        let kernels = gpu.launch_for_profiler(&launched(row)).map_err(|e| failed(&gpu.names().name, e))?;
        text += &format!("{}\n", line(row)).repeat(kernels);
    }
    std::fs::write(list, text).map_err(|e| Error::write(list, e))
}

/// Counts in the launches of the program with these `words`.
///
/// # Errors
/// The reason why there are no counters.
pub(super) fn count(words: &[OsString], rows: &mut [KernelRow]) -> Result<(), String> {
    let text = |e: std::io::Error| e.to_string();
    let folder = tempfile::tempdir().map_err(text)?;
    let (list, log, program) = (folder.path().join("list"), folder.path().join("log"), std::env::current_exe());
    let (mut first, program) = (OsString::from(LIST), program.map_err(text)?);
    first.push(&list);
    let run = |ncu: &str| {
        let mut command = Command::new(ncu);
        command.args(["--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none"]);
        command.args(["--profile-from-start", "off", "--metrics", &METRICS.join(","), "--log-file"]).arg(&log);
        // Otherwise numbers are printed in the user's language.
        command.arg(&program).arg("profile").arg(&first).args(words).env("LC_ALL", "C").stdin(Stdio::null()).output()
    };
    let absent = |e: &std::io::Error| e.kind() == ErrorKind::NotFound;
    let out = run("ncu").or_else(|e| if absent(&e) { run("/usr/local/cuda/bin/ncu") } else { Err(e) });
    let out = out.map_err(|e| match absent(&e) {
        true => "NVIDIA's ncu (Nsight Compute) is neither on PATH nor in /usr/local/cuda/bin".to_owned(),
        false => format!("ncu: {e}"),
    })?;
    let log = std::fs::read_to_string(&log).unwrap_or_default();
    let told = [String::from_utf8_lossy(&out.stderr), String::from_utf8_lossy(&out.stdout), log.into()].join("\n");
    let kernels = parse(&told)?;
    let list = std::fs::read_to_string(&list).map_err(text)?;
    let all = list.lines().count();
    if kernels.len() != all {
        return Err(format!("ncu counted {} of {all} kernels", kernels.len()));
    }
    for row in rows {
        let launch = line(row);
        let own = list.lines().zip(&kernels).filter(|(of, _)| *of == launch).map(|(_, sums)| *sums);
        let sums = own.reduce(|all, one| std::array::from_fn(|i| all[i] + one[i]));
        if let Some(alone) = &mut row.isolated {
            alone.counted = Some(counted(sums.ok_or("the program ran other kernels under ncu")?));
        }
    }
    Ok(())
}

/// The fields of a line of CSV.
fn fields(line: &str) -> Vec<String> {
    let (mut all, mut field, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '"' => quoted = !quoted,
            ',' if !quoted => all.push(std::mem::take(&mut field)),
            c => field.push(c),
        }
    }
    all.push(field);
    all
}

/// The metrics of each kernel, in the order of launches, from the output of `ncu` and its program; NaN if the GPU has
/// no such metric.
fn parse(told: &str) -> Result<Vec<MetricSums>, String> {
    if told.contains("ERR_NVGPUCTRPERM") {
        let page = "https://developer.nvidia.com/ERR_NVGPUCTRPERM";
        return Err(format!("the driver does not permit this user to read them ({page})"));
    }
    let error = |line: &str| {
        let why = line.strip_prefix("error: ").or_else(|| line.strip_prefix("==ERROR== "))?;
        Some(format!("ncu: {why}"))
    };
    if let Some(why) = told.lines().find_map(error) {
        return Err(why);
    }
    let mut table = told.lines().skip_while(|line| !line.starts_with("\"ID\""));
    let heads = fields(table.next().ok_or("ncu printed no table")?);
    let columns = METRICS.map(|metric| heads.iter().position(|head| head == metric));
    // Units are below the heads; units of sums have no factors.
    let lines = table.skip(1).filter(|line| line.starts_with('"')).map(|line| {
        let fields = fields(line);
        columns.map(|at| at.and_then(|at| fields.get(at)?.replace(',', "").parse().ok()).unwrap_or(f64::NAN))
    });
    Ok(lines.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `ncu` 2025.3 on an H100, with fewer columns; the second kernel has no metrics of the cache.
    const TOLD: &str = r#"==WARNING== Note: Running with unmodified GPU clocks.
==PROF== Connected to process 1056 (/usr/bin/horus)
==PROF== Disconnected from process 1056
"ID","Kernel Name","Block Size","dram__bytes_read.sum","dram__bytes_write.sum","gpu__time_duration.avg","gpu__time_duration.sum","l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum","l1tex__data_pipe_lsu_wavefronts_mem_shared.sum","lts__t_bytes.sum","lts__t_sectors_lookup_hit.sum","sm__cycles_active.sum","sm__inst_issued.sum"
"","","","byte","byte","ns","ns","","","byte","sector","cycle","inst"
"0","hs_kernel","(256, 1, 1)","67,113,472","44,592,128","171,104","171,104","32,725,068","34,361,527","204,494,400","3,234,246","43,976,715","11,540,039"
"1","a ""b"", c","(256, 1, 1)","1,000","0","500.00","500.00","0","0","n/a","","200","100"
"#;

    #[test]
    fn a_table_of_ncu_is_read() {
        let kernels = parse(TOLD).unwrap();
        assert_eq!(kernels.len(), 2);
        let first = [171_104.0, 32_725_068.0, 34_361_527.0, 67_113_472.0, 44_592_128.0, 204_494_400.0, 3_234_246.0];
        assert_eq!(kernels[0][..7], first);
        assert!(kernels[0][7].is_nan(), "no column");
        assert_eq!(kernels[1][..5], [500.0, 0.0, 0.0, 1000.0, 0.0]);
        let HardwareCounts { conflicts, dram, l2, hits, per_cycle } = counted(kernels[1]);
        assert_eq!((dram, per_cycle), (2e9, 0.5));
        assert!([conflicts, l2, hits].iter().all(|number| number.is_nan()));
    }

    #[test]
    fn the_reason_for_the_absence_of_counters_is_told() {
        let refused = "==PROF== Connected to process 7 (/usr/bin/horus)\n\
                       ==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters";
        let cases = [
            (refused, "the driver does not permit"),
            ("error: a.png: no such file\n==ERROR== The application returned an error code (1).", "ncu: a.png"),
            ("==ERROR== Failed to initialize the profiler: LibraryNotLoaded", "ncu: Failed to initialize"),
            ("==WARNING== No kernels were profiled.", "ncu printed no table"),
        ];
        for (told, why) in cases {
            assert!(parse(told).unwrap_err().starts_with(why), "{told}");
        }
    }
}
