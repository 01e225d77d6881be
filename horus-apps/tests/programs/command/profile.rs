//! `horus profile`.

use std::fs;

use serde_json::Value;

use super::{fails, pictures, run, succeeds};
use crate::files::text;

const CHAIN: [&str; 3] = ["gauss", "2", "sobel"];

#[test]
fn a_profile_tells_the_time_of_each_kernel_and_what_bounds_it() {
    let dir = pictures();
    let dir = dir.path();
    let words = |first: &[&'static str], output, more: &[&'static str]| {
        [first, &["grey.png", output, "--device", "cpu"], more, &CHAIN].concat()
    };
    succeeds(dir, &words(&[], "plain.png", &[]));
    let out = run(dir, &words(&["profile"], "profiled.png", &["--json", "--counters"]));
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(fs::read(dir.join("plain.png")).unwrap() == fs::read(dir.join("profiled.png")).unwrap(), "the same result");
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let number = |of: &Value, name: &str| of[name].as_f64().unwrap_or_else(|| panic!("{name} of {of}"));
    let kernels = told["kernels"].as_array().unwrap();
    assert!(kernels.iter().any(|k| k["kernel"].as_str().unwrap().contains("correlate")), "{told}");
    let all: f64 = kernels.iter().map(|k| number(k, "ms") * number(k, "launches")).sum();
    assert!((all / number(&told, "ms") - 1.0).abs() < 1e-6, "{told}");
    let shares: f64 = kernels.iter().map(|k| number(k, "share")).sum();
    assert!((shares - 1.0).abs() < 1e-6, "{told}");
    for kernel in kernels {
        assert!(number(kernel, "launches") >= 1.0 && number(kernel, "bandwidth") > 0.0, "{kernel}");
        assert!(["launch", "memory", "arithmetic"].contains(&kernel["bound_by"].as_str().unwrap()), "{kernel}");
        // Counters of the processor, or the reason for their absence.
        assert_ne!(kernel["counters"].is_null(), told["no_counters"].is_null(), "{told}");
    }
    let table = text(&run(dir, &words(&["profile"], "profiled.png", &["--report", "page.html"])).stdout);
    let page = fs::read_to_string(dir.join("page.html")).unwrap();
    assert!(page.contains("<summary>profile</summary>") && page.contains("<summary>plan</summary>"), "{page}");
    assert!(page.contains("bound by") && page.contains("<svg"), "{page}");
    assert!(table.contains("bound by") && table.lines().count() > 2 * kernels.len(), "{table}");
    let numbers = run(dir, &["profile", "grey.png", "--device", "cpu", "gauss", "2", "mean"]);
    assert!(numbers.status.success() && text(&numbers.stdout).contains("bound by"), "{}", text(&numbers.stderr));
}

#[test]
fn a_profile_warns_once() {
    let dir = pictures();
    let words = ["profile", "wide.tif", "x.png", "--device", "cpu", "--depth", "8", "median", "3"];
    assert_eq!(text(&run(dir.path(), &words).stderr).matches("were clipped").count(), 1);
    assert_eq!(text(&run(dir.path(), &[&words[..], &["--quiet"]].concat()).stderr), "");
}

#[test]
fn what_cannot_be_profiled_is_refused() {
    let dir = pictures();
    let dir = dir.path();
    let profile = |more: &[&'static str]| [&["profile", "grey.png", "o.png", "--device", "cpu"], more, &CHAIN].concat();
    fails(dir, &profile(&["--trace", "t.json"]), 1, &["profile", "--trace"]);
    fails(dir, &profile(&["--compare", "naive"]), 1, &["profile", "--compare"]);
    fails(dir, &profile(&["--report", "o.png"]), 1, &["report", "different files"]);
    fails(dir, &["profile", "missing.png", "o.png", "--device", "cpu", "neg"], 1, &["missing.png"]);
    fails(dir, &["profile", "grey.png", "--out-dir", "d", "--device", "cpu", "neg"], 1, &["not a series"]);
    fails(dir, &["profile", "grey.png", "o.png", "--device", "cpu+cpu", "neg"], 1, &["one device"]);
}
