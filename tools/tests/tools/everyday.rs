//! Predicted times of everyday operations, beside those measured on the machine of a stored profile;
//! the sweep of filters.

use std::path::Path;
use std::process::Command;

/// Factors between predicted and measured times, and the rows that are within each.
const WITHIN: [(f64, usize); 3] = [(1.5, 120), (2.0, 150), (8.0, 184)];

#[test]
fn most_everyday_operations_take_what_is_predicted() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tools/everyday");
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("predicted.json");
    let done = Command::new(env!("CARGO_BIN_EXE_horus-bench"))
        .args(["--op", "everyday", "--runs", "0", "--threads", "2", "--size", "512,2048", "--json"])
        .arg(&json)
        .env("HORUS_PROFILE", here.join("profile.json"))
        .env_remove("HORUS_ISA")
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let predicted: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let predicted = predicted.as_array().unwrap();
    let measured = std::fs::read_to_string(here.join("measured.csv")).unwrap();
    let rows: Vec<_> = measured.lines().skip(1).map(|line| line.rsplitn(3, ',').collect::<Vec<_>>()).collect();
    assert_eq!(rows.len(), predicted.len());
    let mut errors = Vec::new();
    for (row, told) in rows.iter().zip(predicted) {
        let [seconds, size, name] = row[..] else { panic!("{row:?}") };
        assert_eq!((told["op"].as_str().unwrap(), told["size"].to_string()), (name, size.to_owned()));
        let (seconds, predicted): (f64, f64) = (seconds.parse().unwrap(), told["predicted"].as_f64().unwrap());
        let error = (seconds / predicted).max(predicted / seconds);
        println!("{name:32} {size:>5} {:9.4} ms, predicted {:9.4}: {error:.2}", 1e3 * seconds, 1e3 * predicted);
        errors.push(error);
    }
    for (most, rows) in WITHIN {
        let found = errors.iter().filter(|e| **e <= most).count();
        assert!(found >= rows, "{found} of {} rows are predicted within a factor of {most}", errors.len());
    }
}

fn sweep(args: &[&str]) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_horus-bench"))
        .args(["--op", "sweep", "--threads", "1", "--size", "96", "--runs", "1"])
        .args(args)
        .env("HORUS_PROFILE", "default")
        .output()
        .unwrap()
}

#[test]
fn a_sweep_times_every_filter_by_each_algorithm() {
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("sweep.json");
    for dtype in ["f32", "u8"] {
        let done = sweep(&["--type", dtype, "--sides", "1,4,33", "--json", json.to_str().unwrap()]);
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        assert!(text.contains(&format!("96 x 96 pixels of {dtype}, within 1e-5")), "{text}");
        assert!(text.contains("of 8 filters"), "{text}");
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&json).unwrap()).unwrap();
        let filters = all[0]["filters"].as_array().unwrap();
        assert_eq!(filters.len(), 8, "a single tap is no filter");
        for filter in filters {
            let ways = filter["ways"].as_array().unwrap();
            assert!(ways[0]["name"] == "direct" && ways.len() > 1, "{filter}");
            assert!(ways.iter().any(|way| way["name"] == filter["chosen"]), "{filter}");
            let time = |way: &serde_json::Value, which: &str| way[which].as_f64().is_some_and(|t| t > 0.0);
            assert!(ways.iter().all(|way| time(way, "measured") && time(way, "predicted")), "{filter}");
        }
        let largest = &filters[7];
        assert_eq!((&largest["rows"], &largest["columns"]), (&33.into(), &33.into()));
        let other = if dtype == "f32" { largest["chosen"] != "direct" } else { largest["chosen"] == "direct" };
        assert!(other, "bytes by whole taps are filtered directly up to larger windows: {largest}");
    }
}

#[test]
fn a_sweep_of_no_filters_is_an_error() {
    for (args, message) in [
        (["--type", "bool"], "no pixels of type \"bool\" are filtered"),
        (["--sides", "0"], "filters of 0 taps; they have 1 to 65536"),
    ] {
        let done = sweep(&args);
        let text = String::from_utf8_lossy(&done.stderr);
        assert!(!done.status.success() && text.contains(message), "{text}");
    }
}
