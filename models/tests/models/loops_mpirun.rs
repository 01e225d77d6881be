//! The programs that repeat a step under `mpirun`.
#![cfg(feature = "mpi")]

use std::fs;
use std::process::{Output, Stdio};
use std::time::Duration;

use crate::files::{SMALL, text};

const JACOBI: &str = env!("CARGO_BIN_EXE_jacobi");

fn mpirun(ranks: &str, words: &[&str]) -> Output {
    crate::launcher::mpirun().args(["-n", ranks]).args(words).output().unwrap()
}

#[test]
fn every_number_of_ranks_writes_the_same_values_and_one_summary() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.npy");
    let path = file.to_str().unwrap();
    let jacobi = [JACOBI, "--size", "37", "--steps", "100", "--tolerance", "1e-9", "--out", path];
    let perona_malik = [env!("CARGO_BIN_EXE_perona_malik"), SMALL, path, "--steps", "15"];
    for words in [&jacobi[..], &perona_malik] {
        let run = |ranks: &str| {
            let out = mpirun(ranks, words);
            let (said, log) = (text(&out.stdout), text(&out.stderr));
            assert!(out.status.success(), "{log}");
            assert_eq!(said.matches("largest change in the last one").count(), 1, "{said}");
            assert_eq!(log.matches("did not converge").count(), usize::from(words[0] == JACOBI), "{log}");
            fs::read(&file).unwrap()
        };
        let one = run("1");
        for ranks in ["2", "3"] {
            assert!(run(ranks) == one, "{} on {ranks} ranks", words[0]);
        }
    }
}

#[test]
fn relaxed_ranks_write_the_same_values_in_each_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("u.npy");
    let run = |ranks: &str, age: &str| {
        let jacobi = [JACOBI, "--size", "37", "--steps", "100", "--out", file.to_str().unwrap(), "--relaxed", age];
        let out = mpirun(ranks, &jacobi);
        assert!(out.status.success(), "{}", text(&out.stderr));
        assert_eq!(text(&out.stdout).matches("largest change in the last one").count(), 1);
        fs::read(&file).unwrap()
    };
    let in_order = run("1", "0");
    assert!(run("3", "0") == in_order, "ranks that wait");
    let relaxed = run("3", "4");
    assert!(relaxed == run("3", "4") && relaxed != in_order, "ranks that do not");
}

#[test]
fn an_error_is_told_once() {
    let nowhere = ["--size", "8", "--steps", "3", "--out", "no/such/folder/u.npy"];
    for words in [&nowhere[..], &["--size", "0"], &[&nowhere[..], &["--relaxed", "1"]].concat()] {
        let out = mpirun("3", &[&[JACOBI], words].concat());
        let said = text(&out.stderr);
        assert!(!out.status.success());
        assert_eq!(said.matches("error: ").count(), 1, "{said}");
    }
}

/// Kills all ranks at moments of the loop, and continues on other numbers of ranks.
#[test]
fn a_killed_loop_continues_on_other_ranks_to_the_same_bits() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (file, store) = (path("u.npy"), path("jacobi.zarr"));
    let words = ["--size", "150", "--steps", "6000", "--f64", "--out", &file, "--checkpoint-every", "100"];
    let run = |ranks: &str, store: &str| {
        let mut command = crate::launcher::mpirun();
        command.args(["-n", ranks, JACOBI]).args(words).args(["--checkpoint", store, "--resume"]);
        command
    };
    let out = run("1", &path("whole.zarr")).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let want = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    let mut killed = 0;
    for (ranks, steps) in [("2", 300), ("1", 1500), ("3", 3000)] {
        let mut job = run(ranks, &store).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let complete = || {
            let about = fs::read_to_string(dir.path().join("jacobi.zarr/zarr.json")).unwrap_or_default();
            let about: serde_json::Value = serde_json::from_str(&about).unwrap_or_default();
            about["attributes"]["horus_checkpoint"]["steps"].as_u64().unwrap_or(0)
        };
        while complete() < steps && job.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        killed += usize::from(job.try_wait().unwrap().is_none());
        job.kill().unwrap();
        let _ = job.wait().unwrap();
    }
    assert!(killed > 0, "the loop always ended before it could be killed");
    let out = run("2", &store).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(fs::read(&file).unwrap() == want, "other bits after {killed} kills");
    let other = [JACOBI, "--size", "150", "--steps", "9", "--out", &file, "--checkpoint", &store];
    for (more, words) in [(&["--f64"][..], "after"), (&["--resume"], "another program")] {
        let out = mpirun("2", &[&other[..], more].concat());
        let said = text(&out.stderr);
        assert!(!out.status.success() && said.matches("error: ").count() == 1 && said.contains(words), "{said}");
    }
}
