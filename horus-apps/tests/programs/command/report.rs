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
        "<td class=w>deliver",
        ">gauss<",
        "rank 0: host memory",
    ] {
        assert!(page.contains(part), "{part} in {page}");
    }
    // The title is the command; nothing is loaded from elsewhere.
    assert!(page.contains("--report run.html luminance gauss 2 --quiet</title>"), "{page}");
    assert!(
        !page.contains("http") || page.matches("http").count() == page.matches("http://www.w3.org/2000/svg").count()
    );
    let spans = page.matches("<rect class=\"kernel\"").count() + page.matches("<rect class=\"predicted\"").count();
    assert!(spans > 1 && page.matches("</title></rect>").count() > 4, "{page}");
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
fn a_drawing_shows_the_words_of_the_chain() {
    let dir = pictures();
    let dir = dir.path();
    let chain = ["luminance", "gauss", "2", "gauss", "1", "sqrt"];
    let drawing = succeeds(dir, &[&["colour.png", "o.png", "--device", "cpu", "--explain=svg"], &chain[..]].concat());
    assert!(drawing.starts_with("<svg ") && drawing.trim_end().ends_with("</svg>"), "nothing else: {drawing}");
    assert_eq!(drawing.matches("<svg").count(), drawing.matches("</svg>").count());
    let (recorded, computed) = drawing.split_once("As computed").unwrap();
    for part in [recorded, computed] {
        for word in ["input", "luminance", "gauss", "sqrt"] {
            assert!(part.contains(&format!(">{word}<")) || part.contains(&format!("x {word}<")), "{word} in {part}");
        }
    }
    assert_eq!(recorded.matches(">gauss<").count(), 2 * 2, "two words, each with its hint: {recorded}");
    // The page of a report has the same drawing.
    succeeds(dir, &[&["colour.png", "o.png", "--device", "cpu", "--report", "run.html"], &chain[..]].concat());
    assert!(fs::read_to_string(dir.join("run.html")).unwrap().contains(drawing.trim_end()));
    fails(dir, &["colour.png", "--explain=svg", "mean"], 2, &["these operations print numbers"]);
}

#[test]
fn a_report_shows_thumbnails_and_an_earlier_run() {
    let dir = pictures();
    let dir = dir.path();
    let run = |more: &[&str]| {
        let words = ["colour.png", "o.png", "--device", "cpu", "--report", "run.html"];
        succeeds(dir, &[&words, more, &["gauss", "1"]].concat());
        fs::read_to_string(dir.join("run.html")).unwrap()
    };
    let page = run(&["--report-images"]);
    assert_eq!(page.matches("<img ").count(), 2, "{page}");
    assert!(page.contains("<figcaption>colour.png<") && page.contains("<figcaption>o.png<"));
    assert!(!page.contains("resize"), "thumbnails are no part of the run");
    fs::rename(dir.join("run.html"), dir.join("before.html")).unwrap();
    let both = run(&["--report-beside", "before.html"]);
    assert_eq!(both.matches("<iframe ").count(), 2);
    assert!(both.contains("<tr><td>kernels, measured, ms<td class=n>"), "{both}");
    let report = ["--report", "run.html"];
    let given = |words: &[&'static str], more: &[&'static str]| [words, &report, more].concat();
    let no_page = given(&["colour.png", "o.png"], &["--report-beside", "colour.png", "neg"]);
    fails(dir, &no_page, 1, &["colour.png"]);
    let absent = given(&["colour.png", "o.png"], &["--report-beside", "none.html", "neg"]);
    fails(dir, &absent, 1, &["none.html"]);
    fails(dir, &given(&["colour.png"], &["--report-images", "mean"]), 1, &["--report-images shows one picture"]);
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
