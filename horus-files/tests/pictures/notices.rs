//! Notices of a reader.

use horus_files::{CollectedWarnings, warn_once};

#[test]
fn a_subject_is_told_once_and_can_be_left_to_another_rank() {
    let held = CollectedWarnings::begin();
    for path in ["a", "b"] {
        warn_once("a test of notices", || format!("{path} has none"));
    }
    let ours = |told: Vec<(String, String)>| -> Vec<String> {
        told.into_iter().filter(|(subject, _)| subject == "a test of notices").map(|(_, message)| message).collect()
    };
    assert_eq!(ours(held.end()), ["a has none"]);
    assert!(ours(CollectedWarnings::begin().end()).is_empty());
}
