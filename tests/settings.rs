//! Environment variables at the opening of a session, each in a process of its own: errors are the
//! same on every device.

use std::ffi::OsStr;
use std::process::Command;

use horus::prelude::*;

/// Marks a process that was started by these tests.
const OPENS: &str = "SETTINGS_TEST_OPENS";

/// Opens a session and makes two images of 4 MiB; prints any error.
#[test]
fn a_session_opens() {
    if std::env::var_os(OPENS).is_none() {
        return; // set only in the started processes
    }
    let work = || -> Result<()> {
        let session = Session::new()?;
        let image = samples::worms(&session, 1024, 1024);
        let kept = image.sqrt();
        session.evaluate()?;
        drop(image);
        drop(kept);
        Ok(())
    };
    match work() {
        Ok(()) => println!("outcome: done"),
        Err(e) => println!("outcome: {e}"),
    }
}

fn outcome(variables: &[(&str, &OsStr)]) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_session_opens", "--nocapture"]).env(OPENS, "1");
    for variable in horus::settings::VARIABLES {
        command.env_remove(variable.name());
    }
    command.envs(variables.iter().copied());
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = said.lines().find_map(|l| l.split_once("outcome: "));
    line.unwrap_or_else(|| panic!("{said}")).1.to_owned()
}

#[test]
fn a_value_that_cannot_be_used_is_an_error_on_every_device() {
    for device in ["cpu", "auto"] {
        let device = ("HORUS_DEVICE", OsStr::new(device));
        assert_eq!(outcome(&[device]), "done");
        for (name, value) in [
            ("HORUS_FABRIC", "overlap"),
            ("HORUS_RANKS", "some"),
            ("HORUS_OVERLAP", "zz"),
            ("HORUS_TRANSFER", "streams:0"),
            ("HORUS_STEPS", "65"),
            ("HORUS_STENCIL", "zz"),
            ("HORUS_GPU_MEMORY", "zz"),
            ("HORUS_HOST_MEMORY", "zz"),
            ("HORUS_THREADS", "zz"),
            ("HORUS_MODE", "zz"),
            ("HORUS_ISA", "zz"),
            ("HORUS_WEIGHTS", "zz"),
        ] {
            let said = outcome(&[device, (name, OsStr::new(value))]);
            assert!(said.starts_with(&format!("{name}={value}: ")), "{said}");
        }
    }
    for (device, why) in [
        ("zz", "expected auto, cpu, cuda or cuda:N"),
        ("cpu,", "expected auto"),
        ("cpu+", "expected auto"),
        ("cuda:0,", "expected auto"),
        ("cuda:0,0", "GPU 0 is named twice"),
        ("cuda:1+cpu+cuda:1", "GPU 1 is named twice"),
        ("cuda:all+cuda:0", "GPU 0 is one of all GPUs"),
    ] {
        let said = outcome(&[("HORUS_DEVICE", OsStr::new(device))]);
        assert!(said.starts_with(&format!("HORUS_DEVICE={device}: {why}")), "{said}");
    }
    // A missing GPU, or missing GPUs only.
    for device in ["cuda:99+cpu", "cuda:98,99"] {
        let said = outcome(&[("HORUS_DEVICE", OsStr::new(device))]);
        assert!(said.contains("no CUDA device"), "{said}");
    }
    assert_eq!(outcome(&[("HORUS_DEVICE", OsStr::new("cpu+cpu"))]), "done");
    let weights = ("HORUS_WEIGHTS", OsStr::new("1,2"));
    assert_eq!(outcome(&[("HORUS_DEVICE", OsStr::new("cpu+cpu")), weights]), "done");
    let said = outcome(&[("HORUS_DEVICE", OsStr::new("cpu+cpu+cpu")), weights]);
    assert_eq!(said, "HORUS_WEIGHTS=1,2: 2 weights for 3 devices");
}

#[test]
#[cfg(feature = "cuda")]
fn a_table_of_launch_shapes_that_is_none_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("tuning.json");
    let open = |path: &std::path::Path| outcome(&[("HORUS_TUNING", path.as_os_str())]);
    assert_eq!(open(&table), "done", "horus-tune is going to write it");
    std::fs::write(&table, "[1]").unwrap();
    for path in [&table, folder.path()] {
        let said = open(path);
        assert!(said.starts_with(&format!("HORUS_TUNING={}: ", path.display())), "{said}");
    }
}

#[test]
#[cfg(unix)]
fn a_value_that_is_no_text_is_an_error() {
    use std::os::unix::ffi::OsStrExt as _;
    for variable in horus::settings::VARIABLES {
        let said = outcome(&[(variable.name(), OsStr::from_bytes(b"cpu\xff"))]);
        assert!(said.starts_with(variable.name()) && said.ends_with("not valid Unicode"), "{said}");
    }
}

#[test]
fn host_memory_bounds_the_images_of_the_cpu() {
    let cpu = ("HORUS_DEVICE", OsStr::new("cpu"));
    let bounded = |bytes: &str| outcome(&[cpu, ("HORUS_HOST_MEMORY", OsStr::new(bytes))]);
    assert_eq!(bounded("64M"), "done");
    // At the first image, and before a region of the second is computed beside it.
    for (bytes, words) in [
        (
            "1M",
            "out of memory: 4194304 bytes needed, 0 of the 1048576 bytes that HORUS_HOST_MEMORY allows are in use; at least 5M are needed",
        ),
        (
            "6M",
            "out of memory: 3276700 bytes needed, 4194368 of the 6291456 bytes that HORUS_HOST_MEMORY allows are in use; at least 9M are needed",
        ),
    ] {
        let said = bounded(bytes);
        assert!(said.contains(words), "{said}");
    }
    assert_eq!(bounded("9M"), "done", "the limit that was named");
}
