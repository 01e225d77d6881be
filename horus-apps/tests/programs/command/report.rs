//! `--report` and `--explain`.

use std::fs;

use super::{fails, pictures, run, succeeds};
use crate::files::text;

#[test]
fn a_report_is_one_page_with_plan_timeline_memory_and_transfers() {
    let dir = pictures();
    let dir = dir.path();
    succeeds(dir, &["colour.png", "o.png", "--device", "cpu", "--report", "run.html", "luminance", "gauss", "2"]);
    let page = fs::read_to_string(dir.join("run.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>"));
    for part in [
        "<h2>Times of rank 0",
        "<svg ",
        "rank 0, predicted: compute",
        "<h2>Memory",
        "<h2>Transfers",
        "<h2>Plans",
        "<td>deliver",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // The title is the command; nothing is loaded from elsewhere.
    assert!(page.contains("--report run.html luminance gauss 2 --quiet</title>"), "{page}");
    assert!(
        !page.contains("http") || page.matches("http").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    let rectangles = page.matches("<rect ").count();
    assert!(rectangles > 4 && rectangles == page.matches("</rect>").count());
    // Of numbers and of a series, too.
    succeeds(dir, &["colour.png", "--report", "mean.html", "mean"]);
    succeeds(dir, &["colour.png", "grey.png", "--out-dir", "d", "--report", "series.html", "neg"]);
    for name in ["mean.html", "series.html"] {
        assert!(fs::read_to_string(dir.join(name)).unwrap().contains("<svg "), "{name}");
    }
    fails(
        dir,
        &["grey.png", "o.png", "--report", "o.png", "neg"],
        1,
        &["the report and the result must be different files"],
    );
    let both = ["grey.png", "o.png", "--trace", "x", "--report", "./x", "neg"];
    fails(dir, &both, 1, &["the trace and the report must be different files (./x)"]);
    fails(dir, &["grey.png", "--report", "grey.png", "mean"], 1, &["grey.png", "it is also a picture of this run"]);
    fails(dir, &["grey.png", "o.png", "--report", "none/run.html", "neg"], 1, &["none/run.html"]);
}

#[test]
fn notation_is_told_once() {
    let dir = pictures();
    let out =
        run(dir.path(), &["grey.png", "colour.png", "--out-dir", "d", "--device", "cpu", "--explain", "gauss", "2"]);
    let told = text(&out.stdout);
    assert!(told.matches("plan:\n").count() >= 2, "{told}");
    assert_eq!(told.matches("image 3 of a plan").count(), 1, "{told}");
    assert_eq!(told.matches("one kernel computes").count(), 1, "{told}");
}
