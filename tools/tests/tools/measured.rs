//! Measurements besides times: loops retain no memory, and a crossover is printed; the work of queues.

use std::process::Command;

use horus::prelude::*;
use horus_tools::everyday::noise;
use horus_tools::random_programs::RandomProgram;

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

#[test]
fn programs_are_measured_beside_their_queues() {
    let folder = tempfile::tempdir().unwrap();
    let tsv = folder.path().join("queues.tsv");
    let words = ["--device", "cpu", "--op", "correlate 3,ConvRot", "--random", "6", "--size", "65,130", "--runs", "1"];
    let out = Command::new(env!("CARGO_BIN_EXE_horus-strategies")).args(words).arg("--tsv").arg(&tsv).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(said.contains("8 programs at 130. Of the busiest queue: "), "{said}");
    let text = std::fs::read_to_string(tsv).unwrap();
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert_eq!(rows.len(), 1 + 2 * 8, "{text}");
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    for row in &rows[1..] {
        let number = |name: &str| row[column(name)].parse::<f64>().unwrap();
        assert_eq!((row.len(), row[column("busiest")]), (rows[0].len(), "compute"), "{row:?}");
        assert!(number("kernels") >= 1.0 && number("uploads") == 0.0, "a processor copies nothing: {row:?}");
        assert!(number("ratio").is_finite() && number("ratio") > 0.0, "{row:?}");
    }
}

/// Each value that a program is given or computes is read by a later step, save the last.
#[test]
fn drawn_programs_are_of_use() {
    let session = Session::builder().device("cpu").build().unwrap();
    let mut names = std::collections::BTreeSet::new();
    for number in 0..300 {
        let (drawn, again) = (RandomProgram::new(number), RandomProgram::new(number).to_string());
        let text = drawn.to_string();
        assert_eq!(text, again, "a number has one program");
        let steps: Vec<(&str, &str)> = text.split(", ").filter_map(|step| step.split_once(" = ")).collect();
        assert!((1..=3).contains(&drawn.inputs()) && (2..=8).contains(&steps.len()), "{text}");
        for value in ('a'..).take(drawn.inputs() + steps.len() - 1) {
            let reads = |made: &str| made.split(' ').any(|word| word == value.to_string());
            assert!(steps.iter().any(|(_, made)| reads(made)), "{value} of {text}");
        }
        names.insert(text.clone());
        let given: Vec<_> = (0..drawn.inputs()).map(|i| noise(&session, 40, i as u64)).collect();
        let result = drawn.record(&given).to_vec().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert!(if text.ends_with("summed") { result.len() == 1 } else { !result.is_empty() }, "{text}");
    }
    assert!(names.len() > 290, "{} different programs", names.len());
}
