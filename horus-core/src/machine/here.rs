//! The profile of this process's machine: its hardware, the location of profiles, and the machines
//! of all ranks.

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{Hardware, Machine, MachineProfile};
use crate::comm::{CommError, Communicator, share};
use crate::device::{Device, DeviceNames};
use crate::digest::Digest;
use crate::error::{Error, Result};
use crate::settings::{CACHE, PROFILE};

/// The hardware of `device` and of its host.
pub fn hardware(device: &dyn Device) -> Hardware {
    let DeviceNames { hardware, driver, .. } = device.names();
    Hardware { device: hardware, driver, host: processor(), threads: device.workers().threads() }
}

/// A hash of the hardware, the same in every process.
pub fn number(hardware: &Hardware) -> u64 {
    let mut digest = Digest::default();
    hardware.hash(&mut digest);
    digest.finish()
}

/// The file name of the profile of `hardware`.
fn file(hardware: &Hardware) -> String {
    let words: String = hardware.device.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    format!("{}-{:016x}.json", words.trim_matches('-').to_ascii_lowercase(), number(hardware))
}

/// The model of the host's processor.
fn processor() -> String {
    let told = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = told.lines().find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, model)| model.trim().to_owned())
}

/// A number that identifies the cores that this process may use, equal in all processes with the
/// same cores. Launchers may bind each rank to different cores.
pub fn cores() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut digest = Digest::default();
    status.lines().find(|line| line.starts_with("Cpus_allowed_list")).hash(&mut digest);
    digest.finish()
}

/// Bytes of memory available to this process now, if the system reports them.
pub(crate) fn available_memory() -> Option<usize> {
    let of_machine = || {
        let told = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = told.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        kib.checked_mul(1024)
    };
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    [of_machine(), left_in_groups(Path::new("/sys/fs/cgroup"), &groups)].into_iter().flatten().min()
}

/// Bytes that a process may still allocate within the limits of its control groups (version 2),
/// which containers and batch systems set. `told` names the group of the process.
fn left_in_groups(root: &Path, told: &str) -> Option<usize> {
    let path = told.lines().find_map(|line| line.strip_prefix("0::"))?;
    let left = |group: &Path| {
        let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
        let most: usize = read("memory.max")?.trim().parse().ok()?;
        let used: usize = read("memory.current")?.trim().parse().ok()?;
        // Clean pages of files can be reclaimed.
        let stat = read("memory.stat").unwrap_or_default();
        let idle = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.trim().parse().ok());
        Some(most.saturating_sub(used.saturating_sub(idle.unwrap_or(0))))
    };
    let group = root.join(path.trim_start_matches('/'));
    group.ancestors().take_while(|g| g.starts_with(root)).filter_map(left).min()
}

/// The folder of profiles: `machine` in `HORUS_CACHE`, else `horus/machine` in `XDG_CACHE_HOME` or
/// `~/.cache`; `None` if files are disabled.
fn folder() -> Option<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    match CACHE.path() {
        Some(v) if v.as_os_str() == "off" => None,
        Some(v) => Some(v.join("machine")),
        None => {
            let cache = variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|h| h.join(".cache")));
            cache.map(|c| c.join("horus").join("machine"))
        }
    }
}

/// The profile of `device`: named by `HORUS_PROFILE`, measured on this hardware, shipped with
/// Horus, or the default, in this order.
///
/// # Errors
/// [`Error::Config`] if `HORUS_PROFILE` names a file that cannot be used.
pub fn profile(device: &dyn Device) -> Result<MachineProfile> {
    let hardware = hardware(device);
    let unified = device.memory().is_unified();
    match PROFILE.path() {
        Some(path) if path.as_os_str() == "default" => return Ok(assumed(hardware, unified)),
        Some(path) => {
            let found = read(&path).and_then(|profile| of_memory(profile, unified));
            return found.map_err(|why| PROFILE.invalid_value_error(&path.display().to_string(), &why));
        }
        None => {}
    }
    let kept = folder().map(|f| f.join(file(&hardware))).filter(|path| path.exists());
    let kept = kept.and_then(|path| match read(&path).and_then(|p| of_hardware(p, &hardware)) {
        Ok(profile) => Some(profile),
        Err(why) => {
            tell(&path, &why);
            None
        }
    });
    let shipped = || {
        let shipped = MachineProfile::shipped(&hardware.device)?;
        let hardware = Hardware { threads: hardware.threads, ..shipped.hardware };
        Some(MachineProfile { hardware, ..shipped })
    };
    Ok(kept.or_else(shipped).unwrap_or_else(|| assumed(hardware.clone(), unified)))
}

/// Returns `true` if `HORUS_PROFILE` names the profile.
pub(crate) fn is_told() -> bool {
    PROFILE.path().is_some()
}

/// Checks that a profile is for a device that shares the memory of its host, or not, according to
/// `unified`. One kind may not support the kernels of the other.
fn of_memory(profile: MachineProfile, unified: bool) -> std::result::Result<MachineProfile, String> {
    let own = |unified| if unified { "a processor" } else { "a GPU" };
    match profile.is_unified() == unified {
        true => Ok(profile),
        false => Err(format!("it is of {}, for {}", own(!unified), own(unified))),
    }
}

/// Reports that a profile is not used, once per process.
fn tell(path: &Path, why: &str) {
    static TOLD: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let first = TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(path.to_owned());
    match format!("{} is not used: {why}; horus-machine measures again", path.display()) {
        told if first => crate::warn!("{told}"),
        told => log::debug!("{told}"),
    }
}

/// The profiles of this host's processor with `threads` threads and of its GPU, before a device is
/// opened: measured profiles if they are stored, else assumed ones. The kind of GPU is not known
/// yet; a host is assumed to have GPUs of one kind.
pub fn candidates(threads: usize) -> (MachineProfile, MachineProfile) {
    let asked = PROFILE.path().is_none().then(folder).flatten();
    let files = asked.and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let host = processor();
    let mut files: Vec<_> = files.map(|file| (file.metadata().and_then(|m| m.modified()).ok(), file.path())).collect();
    // If there are profiles for several drivers of a device, the latest.
    files.sort_by(|a, b| b.cmp(a));
    let mut kept: Vec<MachineProfile> = files.iter().filter_map(|(_, path)| read(path).ok()).collect();
    kept.retain(|p| p.hardware.host == host && p.hardware.threads == threads);
    kept.sort_by(|a, b| a.hardware.device.cmp(&b.hardware.device));
    let find = |cpu: bool| kept.iter().find(|p| p.hardware.device.starts_with("CPU") == cpu).cloned();
    let (cpu, gpu) = (find(true), find(false));
    (cpu.unwrap_or_else(|| MachineProfile::of_cores(threads)), gpu.unwrap_or_else(|| MachineProfile::of_default(false)))
}

/// The assumed profile of this hardware.
pub(super) fn assumed(hardware: Hardware, unified: bool) -> MachineProfile {
    let profile = if unified { MachineProfile::of_cores(hardware.threads) } else { MachineProfile::of_default(false) };
    MachineProfile { hardware, ..profile }
}

fn of_hardware(profile: MachineProfile, hardware: &Hardware) -> Result<MachineProfile, String> {
    if profile.hardware == *hardware {
        return Ok(profile);
    }
    Err(format!("it is of other hardware ({}) than this ({hardware})", profile.hardware))
}

/// Reads a profile; the error is the cause.
fn read(path: &Path) -> Result<MachineProfile, String> {
    /// A hundred times the size of a profile.
    const MOST: u64 = 1 << 20;
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|e| e.to_string())?;
    file.take(MOST).read_to_string(&mut text).map_err(|e| e.to_string())?;
    let profile: MachineProfile =
        serde_json::from_str(&text).map_err(|e| format!("it is damaged, or of another version ({e})"))?;
    profile.fault().map_or(Ok(profile), |what| Err(format!("it is damaged, or of another version: {what}")))
}

/// Stores a profile where sessions on this hardware find it, or in the file `out`, and returns the
/// path.
///
/// # Errors
/// [`Error::Config`] if files are disabled (`HORUS_CACHE=off`), and an error that names the file if
/// it cannot be written.
pub fn keep(profile: &MachineProfile, out: Option<&Path>) -> Result<PathBuf> {
    let path = match out {
        Some(path) => path.to_owned(),
        None => {
            let folder = folder().ok_or_else(|| Error::Config("there is no folder to keep the profile in".into()))?;
            std::fs::create_dir_all(&folder).map_err(|e| Error::write(&folder, e))?;
            folder.join(file(&profile.hardware))
        }
    };
    let text = serde_json::to_string_pretty(profile).map_err(|e| Error::write(&path, e))?;
    let failed = |e: std::io::Error| Error::write(&path, e);
    // Atomically: sessions may be reading it.
    let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(beside).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)?;
    file.persist(&path).map_err(|e| failed(e.error))?;
    Ok(path)
}

/// Gathers the machines of all ranks; `mine` is the profile of this rank. Collective.
///
/// # Errors
/// [`Error::Communication`] if another rank failed or left.
pub(crate) fn gather(comm: &dyn Communicator, mine: MachineProfile) -> Result<Machine> {
    if comm.size() == 1 {
        return Ok(Machine::alike(mine));
    }
    let failed = |e: CommError| e.during(comm.rank(), "opening a session");
    let text = serde_json::to_string(&mine).unwrap_or_default();
    let mut digest = Digest::default();
    text.hash(&mut digest);
    let digests = comm.gather(digest.finish()).map_err(failed)?;
    let hosts = comm.gather(comm.node() as u64).map_err(failed)?;
    let mut known: Vec<(u64, MachineProfile)> = Vec::new();
    for (rank, digest) in digests.iter().enumerate() {
        if known.iter().any(|(d, _)| d == digest) {
            continue;
        }
        let profile = share(comm, rank, || mine.clone()).map_err(failed)?;
        let sound = profile.fault().is_none();
        known.push((*digest, if sound { profile } else { MachineProfile::of_default(false) }));
    }
    let of = |digest: &u64| known.iter().find(|(d, _)| d == digest).map(|(_, p)| p.clone());
    let ranks = digests.iter().zip(hosts).filter_map(|(d, host)| Some((of(d)?, host as usize)));
    Ok(Machine::of_ranks(ranks.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_of_the_other_kind_of_device_is_refused() {
        let of = |kind, device| of_memory(MachineProfile::of_default(kind), device).err();
        assert_eq!((of(true, true), of(false, false)), (None, None));
        assert_eq!(of(true, false).as_deref(), Some("it is of a processor, for a GPU"));
        assert_eq!(of(false, true).as_deref(), Some("it is of a GPU, for a processor"));
    }

    #[test]
    fn the_tightest_group_bounds_memory() {
        let root = tempfile::tempdir().unwrap();
        let job = root.path().join("batch/job");
        std::fs::create_dir_all(&job).unwrap();
        let write = |folder: &Path, most: &str, used: &str| {
            std::fs::write(folder.join("memory.max"), most).unwrap();
            std::fs::write(folder.join("memory.current"), used).unwrap();
        };
        let left = || left_in_groups(root.path(), "0::/batch/job\n");
        assert_eq!(left(), None);
        write(&job, "max\n", "300\n");
        assert_eq!(left(), None);
        write(&root.path().join("batch"), "1000\n", "300\n");
        assert_eq!(left(), Some(700));
        write(&job, "500\n", "450\n");
        assert_eq!(left(), Some(50));
        std::fs::write(job.join("memory.stat"), "anon 50\ninactive_file 400\n").unwrap();
        assert_eq!(left(), Some(450));
        // More than the limit, for a moment.
        write(&job, "500\n", "1450\n");
        assert_eq!(left(), Some(0));
        assert_eq!(left_in_groups(root.path(), "4:memory:/batch\n"), None);
    }
}
