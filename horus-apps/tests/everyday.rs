//! Predicted times of everyday operations, beside those measured on the machine of a stored profile.

use std::path::Path;
use std::process::Command;

/// Factors between predicted and measured times, and the rows that are within each.
const WITHIN: [(f64, usize); 3] = [(1.5, 120), (2.0, 150), (8.0, 184)];

#[test]
fn most_everyday_operations_take_what_is_predicted() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/everyday");
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
