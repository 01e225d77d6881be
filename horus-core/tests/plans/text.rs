//! The output of `--explain`.

use horus_core::dtype::DType;
use horus_core::ops::neighbourhood::Filter;
use horus_core::ops::pixel::PixelOp;
use horus_core::plan::Mode;
use horus_core::shape::Border;

use crate::recorder::{PlanRecorder, make, make_within};

fn line<'a>(text: &'a str, word: &str) -> &'a str {
    let is = |l: &&str| l.trim_start().trim_start_matches(|c: char| c.is_ascii_digit()).trim_start().starts_with(word);
    text.lines().find(is).unwrap_or_else(|| panic!("no {word} in\n{text}"))
}

#[test]
fn sizes_are_told_in_megabytes_and_the_notation_is_explained() {
    let mut p = PlanRecorder::new(1080, 1920);
    let a = p.source(DType::F32);
    let b = p.constant(PixelOp::Mul, a, 2.0);
    p.graph.roots = vec![b];
    let plan = make_within(p.graph, 1, false, Mode::Fused, Some(1 << 30));
    let text = plan.to_string();
    for word in ["upload", "launch", "download"] {
        assert!(line(&text, word).contains(", 8.3 MB    ["), "{text}");
    }
    assert!(text.contains("16.6 MB of images at most at once in the memory of the device\n"), "{text}");
    let told: Vec<&str> = plan.notation().into_iter().map(|(word, _)| word).collect();
    let first = ["%3 400x600x3 u8", "MB", "upload", "download", "launch", "deliver", "free", "[...]"];
    assert_eq!(told, first, "only what there is\n{text}");
}

#[test]
fn between_ranks_the_bytes_are_those_that_all_send() {
    let mut p = PlanRecorder::new(1000, 250);
    let a = p.source(DType::F32);
    let b = p.correlate(a, Filter::column(vec![1.0; 5]), Border::Replicate);
    let c = p.correlate(b, Filter::column(vec![2.0; 9]), Border::Replicate);
    p.graph.roots = vec![c];
    let plan = make(p.graph, 4, true, Mode::Lazy);
    let text = plan.to_string();
    // Three strips of a quarter each leave rank 0, and three come back; borders of 4 rows at three
    // seams, both ways.
    assert!(line(&text, "scatter").contains(", 0.8 MB    "), "{text}");
    assert!(line(&text, "gather").contains(", 0.8 MB    "), "{text}");
    assert!(text.contains("exchange"), "{text}");
    assert!(plan.notation().iter().any(|(word, told)| *word == "MB" && told.contains("all of them send together")));
}
