//! The programs that repeat a step under `mpirun`.
#![cfg(feature = "mpi")]

use std::fs;
use std::process::Output;

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
