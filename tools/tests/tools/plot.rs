//! `benches/plot.py scaling`, which makes a table of the benchmark's results. Its plots, by matplotlib, are not tested.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/plot.py");

fn python(args: &[&Path]) -> Output {
    Command::new("python3").args([SCRIPT, "scaling"]).args(args).output().unwrap()
}

/// The table of `files`.
fn table(dir: &Path, files: &[&Path]) -> String {
    let out = dir.join("scaling");
    let result = python(&[&[out.as_path()], files].concat());
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    fs::read_to_string(out.with_extension("md")).unwrap()
}

fn sample(size: usize, ranks: usize, mode: &str, ms: f64, copies: usize, exchanges: usize) -> Value {
    json!({ "op": "convrot", "size": size, "ranks": ranks, "mode": mode, "median_ms": ms, "copies": copies,
            "exchanges": exchanges, "from_host": true })
}

fn write(dir: &Path, name: &str, device: &str, results: &[Value]) -> PathBuf {
    let path = dir.join(name);
    fs::write(&path, json!({ "device": device, "results": results }).to_string()).unwrap();
    path
}

/// Lines that contain all of `words`.
fn count(text: &str, words: &[&str]) -> usize {
    text.lines().filter(|l| words.iter().all(|w| l.contains(w))).count()
}

#[test]
fn results_of_several_files_become_one_table() {
    let dir = tempfile::tempdir().unwrap();
    let one = [sample(64, 1, "lazy", 20.0, 2, 0), sample(64, 1, "naive", 400.0, 1393, 0)];
    let two = [sample(64, 2, "lazy", 9.996, 2, 13), sample(128, 2, "lazy", 1234.5, 2, 13)];
    let (one, two) = (write(dir.path(), "1.json", "A <GPU>", &one), write(dir.path(), "2.json", "A <GPU>", &two));
    let text = table(dir.path(), &[&one, &two]);
    for row in [
        "| ConvRot | 64 | 1 | naive | 400 | 1.00 | 1393 | 0 |",
        "| ConvRot | 64 | 1 | lazy | 20.0 | 20.0 | 2 | 0 |",
        "| ConvRot | 64 | 2 | lazy | 10.0 | 40.0 | 2 | 13 |",
        "| ConvRot | 128 | 2 | lazy | 1234 |  | 2 | 13 |",
    ] {
        assert_eq!(count(&text, &[row]), 1, "{row} is not in {text}");
    }
    assert!(text.contains("(scaling-64.svg)") && text.contains("(scaling-128.svg)"), "{text}");
    assert!(text.contains("A <GPU> on each rank"), "{text}");
    assert_eq!(table(dir.path(), &[&two, &one]), text, "the order of files changes nothing");
}

#[test]
fn what_the_benchmark_writes_is_what_the_table_shows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bench.json");
    let args = ["--op", "convrot,convuv", "--size", "24", "--mode", "naive,fused", "--from-host", "--runs", "1"];
    let bench = Command::new(env!("CARGO_BIN_EXE_horus-bench")).args(args).arg("--json").arg(&file).output().unwrap();
    assert!(bench.status.success(), "{}", String::from_utf8_lossy(&bench.stderr));
    let text = table(dir.path(), &[&file]);
    assert_eq!(count(&text, &["| 24 | 1 | "]), 4, "{text}");
    assert!(text.contains("CPU (1 thread") && text.contains("from and to pixels on the host"), "{text}");
}

#[test]
fn results_that_make_no_table_are_refused_with_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let good = write(dir.path(), "good.json", "GPU", &[sample(64, 1, "lazy", 20.0, 2, 0)]);
    let other = write(dir.path(), "other.json", "CPU", &[sample(64, 2, "lazy", 20.0, 2, 0)]);
    let zero = write(dir.path(), "zero.json", "GPU", &[sample(64, 2, "lazy", 0.0, 2, 0)]);
    let none = write(dir.path(), "none.json", "GPU", &[]);
    let short = write(dir.path(), "short.json", "GPU", &[json!({ "op": "convrot" })]);
    let text = dir.path().join("text.json");
    fs::write(&text, "times").unwrap();
    let missing = dir.path().join("missing.json");
    for (files, cause) in [
        (&[&good, &good][..], "both have convrot, size 64, lazy on 1 rank"),
        (&[&good, &other], "cannot be compared"),
        (&[&zero], "makes no sense"),
        (&[&none], "nothing was measured"),
        (&[&short], "is not of `horus-bench --json`"),
        (&[&text], "cannot read"),
        (&[&missing], "cannot read"),
        (&[], "usage"),
    ] {
        let out = dir.path().join("out");
        let args: Vec<&Path> = std::iter::once(&out).chain(files.iter().copied()).map(PathBuf::as_path).collect();
        let result = python(&args);
        let message = String::from_utf8_lossy(&result.stderr).into_owned();
        assert_eq!(result.status.code(), Some(1), "{message}");
        assert!(message.starts_with("error: ") && message.contains(cause), "{message} does not say {cause}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(!out.with_extension("md").exists(), "nothing is written");
    }
}
