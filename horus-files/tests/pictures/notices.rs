//! Notices of a reader.

use horus_files::{HeldNotices, tell_once};

#[test]
fn a_subject_is_told_once_and_can_be_left_to_another_rank() {
    let held = HeldNotices::begin();
    for path in ["a", "b"] {
        tell_once("a test of notices", || format!("{path} has none"));
    }
    let ours = |told: Vec<(String, String)>| -> Vec<String> {
        told.into_iter().filter(|(subject, _)| subject == "a test of notices").map(|(_, message)| message).collect()
    };
    assert_eq!(ours(held.end()), ["a has none"]);
    assert!(ours(HeldNotices::begin().end()).is_empty());
}
