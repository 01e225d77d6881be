//! The detectors under `mpirun`, with 1 to 5 ranks.
#![cfg(feature = "mpi")]

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::files::{SMALL, text};
use horus_testing::cases::part;

const CONVROT: &str = env!("CARGO_BIN_EXE_convrot");

/// Serialises jobs: they have more ranks than most machines have cores.
static TURN: Mutex<()> = Mutex::new(());

/// `mpirun` with `words` and some variables, one thread per rank. `MPIRUN` names another launcher.
fn mpirun(words: &[&str], variables: &[(&str, &str)]) -> Output {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    crate::launcher::mpirun().args(words).envs(variables.iter().copied()).output().unwrap()
}

/// The single error line of a job that must fail and end soon.
fn error(words: &[&str], variables: &[(&str, &str)]) -> String {
    let start = Instant::now();
    let out = mpirun(words, variables);
    let said = text(&out.stderr);
    assert!(!out.status.success(), "{said}");
    assert!(start.elapsed() < Duration::from_secs(10), "{:?}", start.elapsed());
    let errors: Vec<&str> = said.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{said}");
    errors[0].to_owned()
}

fn at(dir: &Path, name: &str) -> String {
    dir.join(name).to_str().unwrap().to_owned()
}

#[test]
fn every_number_of_ranks_writes_the_same_values() {
    let dir = tempfile::tempdir().unwrap();
    let programs =
        [("convrot", CONVROT), ("conv2d", env!("CARGO_BIN_EXE_conv2d")), ("convuv", env!("CARGO_BIN_EXE_convuv"))];
    let ranks = ["2", "3", "4", "5"].map(|n| (n, None));
    let weights = ["1,2,1", "0,1,0", "node:3", "node:3(1,0,2)", "measure"].map(|w| ("3", Some(("HORUS_WEIGHTS", w))));
    let ways: Vec<_> = ranks.into_iter().chain(weights).chain([("4", Some(("HORUS_MODE", "lazy")))]).collect();
    for (k, (program, path)) in programs.into_iter().enumerate() {
        let run = |ranks: &str, variables: &[(&str, &str)]| {
            let out = at(dir.path(), &format!("{program}-{ranks}.npy"));
            let result = mpirun(&["-n", ranks, path, SMALL, &out, "--theta-step", "45"], variables);
            assert!(result.status.success(), "{}", text(&result.stderr));
            let said = text(&result.stdout);
            assert_eq!(said.lines().count(), 3, "rank 0 alone sums up: {said}");
            assert!(said.contains(if ranks == "1" { "1 rank," } else { " ranks," }), "{said}");
            fs::read(out).unwrap()
        };
        let one = run("1", &[]);
        // The first program in each way, the others in some.
        let step = if k == 0 { 1 } else { 3 };
        for (ranks, variable) in part(ways.clone(), |all| all.into_iter().skip(k).step_by(step).collect()) {
            assert!(run(ranks, variable.as_slice()) == one, "{program} on {ranks} ranks, {variable:?}");
        }
    }
}

#[test]
fn without_mpirun_the_same_program_is_one_rank() {
    let dir = tempfile::tempdir().unwrap();
    let out = Command::new(CONVROT).args([SMALL, &at(dir.path(), "lines.png")]).output().unwrap();
    assert!(out.status.success() && text(&out.stdout).contains("1 rank,"), "{}", text(&out.stderr));
}

#[test]
fn a_bad_file_ends_all_ranks_with_one_message() {
    let dir = tempfile::tempdir().unwrap();
    let bytes = fs::read(SMALL).unwrap();
    let (truncated, out) = (at(dir.path(), "truncated.png"), at(dir.path(), "out.png"));
    fs::write(&truncated, &bytes[..bytes.len() / 2]).unwrap();
    assert!(error(&["-n", "3", CONVROT, "missing.png", &out], &[]).contains("cannot read missing.png"));
    assert!(error(&["-n", "3", CONVROT, &truncated, &out], &[]).contains("truncated.png"));
    let nowhere = at(dir.path(), "no/such/folder/out.png");
    assert!(error(&["-n", "3", CONVROT, SMALL, &nowhere], &[]).contains("cannot write"));
    assert!(error(&["-n", "2", CONVROT, SMALL], &[]).contains("required"));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "nothing is left behind");
}

#[test]
fn ranks_that_disagree_are_told_where() {
    let dir = tempfile::tempdir().unwrap();
    let out = at(dir.path(), "out.png");
    let other = ["-n", "1", CONVROT, SMALL, &out, ":", "-n", "2", CONVROT, SMALL, &out, "--theta-step", "30"];
    let message = error(&other, &[]);
    assert!(message.contains("the ranks run different programs: rank 0 reached `%"), "{message}");
    assert!(message.contains("rank 1") && message.contains("detectors.rs"), "{message}");
    let device = ["-n", "2", CONVROT, SMALL, &out, ":", "-n", "1", CONVROT, SMALL, &out, "--device", "tpu"];
    assert!(error(&device, &[]).contains("tpu"));
}

#[test]
fn weights_that_make_no_sense_are_refused() {
    for (weights, cause) in [
        ("1,2", "2 weights for 3 ranks"),
        ("1,NaN,1", "NaN"),
        ("0,0,0", "all weights are zero"),
        ("node:2(1,3)", "2 weights for the 3 ranks of node 0"),
        ("node:2(1,3", "unmatched opening parenthesis"),
    ] {
        let message = error(&["-n", "3", CONVROT, SMALL, "out.png"], &[("HORUS_WEIGHTS", weights)]);
        assert!(message.contains(cause), "{message}");
    }
}

#[test]
fn rank_0_alone_explains_and_traces() {
    let dir = tempfile::tempdir().unwrap();
    let (out, trace) = (at(dir.path(), "out.npy"), at(dir.path(), "trace.json"));
    let words = ["-n", "3", CONVROT, SMALL, &out, "--theta-step", "90", "--explain", "--trace", &trace];
    let result = mpirun(&words, &[]);
    let said = text(&result.stdout);
    assert_eq!(said.lines().filter(|line| *line == "plan:").count(), 1, "{said}");
    assert!(said.contains("scatter") || said.contains("replicate"), "{said}");
    let json: serde_json::Value = serde_json::from_slice(&fs::read(trace).unwrap()).unwrap();
    let names = json["traceEvents"].as_array().unwrap().iter().filter(|e| e["name"] == "process_name");
    let mut names: Vec<&str> = names.map(|e| e["args"]["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    assert_eq!(names, ["rank 0", "rank 0, predicted", "rank 1", "rank 2"], "a process for each rank");
}
