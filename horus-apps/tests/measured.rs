//! Measurements besides times: loops retain no memory, and a crossover is printed.

use std::process::Command;

fn runs(words: &[&str]) -> String {
    let out = Command::new(env!("CARGO_BIN_EXE_horus-loop-bench")).args(words).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8_lossy(&out.stdout).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn many_steps_take_no_more_memory_than_a_few() {
    let said = runs(&["--measure", "memory", "--device", "cpu", "--steps", "500,20000"]);
    let grown = said.split(": ").last().and_then(|end| end.trim().strip_suffix(" kB")?.parse::<i64>().ok());
    // One page per hundred steps would be 780.
    assert!(grown.is_some_and(|kb| kb < 600), "{said}");
}

#[test]
fn steps_that_do_not_fit_are_errors() {
    for steps in ["500,700", "7,7", "0,5", "9"] {
        let words = ["--measure", "memory", "--device", "cpu", "--steps", steps];
        let out = Command::new(env!("CARGO_BIN_EXE_horus-loop-bench")).args(words).output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(!out.status.success() && said.contains("--steps"), "{steps}: {said}");
    }
}

#[test]
fn loops_in_space_are_timed_when_they_are_named() {
    let space = ["--op", "jacobi-3d", "--size", "9", "--depth", "5", "--steps", "20,20020", "--runs", "1"];
    let said = runs(&[&space[..], &["--device", "cpu"]].concat());
    assert!(said.lines().any(|line| line.starts_with("jacobi-3d ")), "{said}");
}
