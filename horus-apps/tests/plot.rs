//! `benches/plot.py`, which makes a table and plots of the benchmark's results.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../benches/plot.py");

fn python(script: &str, args: &[&Path]) -> Output {
    Command::new("python3").arg(script).args(args).output().unwrap()
}

/// The script's output for `files`: the text of each of its files, ordered by name.
fn plotted(dir: &Path, files: &[&Path]) -> Vec<String> {
    let out = dir.join("plots");
    fs::create_dir_all(&out).unwrap();
    let result = python(SCRIPT, &[&[out.join("scaling").as_path()], files].concat());
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    let mut names: Vec<PathBuf> = fs::read_dir(&out).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    names.iter().map(|n| fs::read_to_string(n).unwrap()).collect()
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
fn results_of_several_files_become_one_table_and_a_plot_for_each_size() {
    let dir = tempfile::tempdir().unwrap();
    let one = [sample(64, 1, "lazy", 20.0, 2, 0), sample(64, 1, "naive", 400.0, 1393, 0)];
    let two = [sample(64, 2, "lazy", 9.996, 2, 13), sample(128, 2, "lazy", 1234.5, 2, 13)];
    let (one, two) = (write(dir.path(), "1.json", "A <GPU>", &one), write(dir.path(), "2.json", "A <GPU>", &two));
    let files = plotted(dir.path(), &[&one, &two]);
    let [large, small, table] = &files[..] else { panic!("{files:?}") };
    for row in [
        "| ConvRot | 64 | 1 | naive | 400 | 1.00 | 1393 | 0 |",
        "| ConvRot | 64 | 1 | lazy | 20.0 | 20.0 | 2 | 0 |",
        "| ConvRot | 64 | 2 | lazy | 10.0 | 40.0 | 2 | 13 |",
        "| ConvRot | 128 | 2 | lazy | 1234 |  | 2 | 13 |",
    ] {
        assert_eq!(count(table, &[row]), 1, "{row} is not in {table}");
    }
    assert!(table.contains("(scaling-64.svg)") && table.contains("(scaling-128.svg)"), "{table}");
    for (plot, bars) in [(small, 3), (large, 1)] {
        assert_eq!(count(plot, &["<rect class=", "height=", " x="]) - count(plot, &["height=\"12\""]), bars, "{plot}");
        assert!(plot.contains("A &lt;GPU> on each rank") && plot.len() < 5000, "{plot}");
    }
    assert_eq!(plotted(dir.path(), &[&two, &one]), files, "the order of files changes nothing");
    let svg = dir.path().join("plots/scaling-64.svg");
    let parsed = Command::new("python3")
        .args(["-c", "import sys, xml.dom.minidom as m; print(m.parse(sys.argv[1]).documentElement.tagName)"])
        .arg(svg)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&parsed.stdout).trim(), "svg", "{}", String::from_utf8_lossy(&parsed.stderr));
}

#[test]
fn a_bar_is_as_high_as_the_logarithm_of_its_time() {
    let dir = tempfile::tempdir().unwrap();
    let results = [sample(64, 1, "naive", 1000.0, 0, 0), sample(64, 1, "lazy", 100.0, 0, 0)];
    let file = write(dir.path(), "1.json", "GPU", &[&results[..], &[sample(64, 1, "fused", 2.0, 0, 0)]].concat());
    let plot = &plotted(dir.path(), &[&file])[0];
    let height = |mode: &str| -> f64 {
        let bar = plot.lines().find(|l| l.contains(mode) && l.contains("width=\"25\"")).unwrap();
        bar.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
    };
    // From 1 to 1000 there are three decades.
    for (mode, decades) in [("naive", 3.0), ("lazy", 2.0), ("fused", 2.0f64.log10())] {
        let expected = height("naive") * decades / 3.0;
        assert!((height(mode) - expected).abs() < 0.2, "{mode}: {} is not {expected}", height(mode)); // rounded to 0.1
    }
}

#[test]
fn what_the_benchmark_writes_is_what_is_plotted() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("bench.json");
    let args = ["--op", "convrot,convuv", "--size", "24", "--mode", "naive,fused", "--from-host", "--runs", "1"];
    let bench = Command::new(env!("CARGO_BIN_EXE_horus-bench")).args(args).arg("--json").arg(&file).output().unwrap();
    assert!(bench.status.success(), "{}", String::from_utf8_lossy(&bench.stderr));
    let files = plotted(dir.path(), &[&file]);
    let [plot, table] = &files[..] else { panic!("{files:?}") };
    assert_eq!(count(table, &["| 24 | 1 | "]), 4, "{table}");
    assert!(table.contains("CPU (1 thread") && table.contains("from and to pixels on the host"), "{table}");
    assert!(plot.contains("ConvRot") && plot.contains("ConvUV"), "{plot}");
}

#[test]
fn results_that_cannot_be_plotted_are_refused_with_one_line() {
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
        let result = python(SCRIPT, &args);
        let message = String::from_utf8_lossy(&result.stderr).into_owned();
        assert_eq!(result.status.code(), Some(1), "{message}");
        assert!(message.starts_with("error: ") && message.contains(cause), "{message} does not say {cause}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(!out.with_extension("md").exists(), "nothing is written");
    }
}
