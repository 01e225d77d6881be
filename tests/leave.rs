//! A program that leaves its session ends at once, with its status and all its output.

use std::io::Write as _;
use std::process::{Command, Stdio};

use horus::prelude::*;

/// Set in the process that leaves.
const LEAVES: &str = "HORUS_TEST_LEAVES";

struct DropPrinter;

impl Drop for DropPrinter {
    fn drop(&mut self) {
        println!("a destructor ran");
    }
}

#[test]
fn what_was_said_is_there_and_nothing_else_runs() {
    if std::env::var_os(LEAVES).is_some() {
        let session = Session::builder().device("cpu").threads(2).build().unwrap();
        let _told = DropPrinter;
        let sum = Image::from_slice(&session, (1, 3), &[1.0f32, 2.0, 3.0]).sum().get().unwrap();
        print!("the sum is {sum}, without an end of line");
        std::io::stdout().lock().write_all(b"!").unwrap();
        session.leave(7);
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["what_was_said_is_there_and_nothing_else_runs", "--exact", "--nocapture"])
        .env(LEAVES, "1")
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(7), "{said}");
    assert!(said.ends_with("the sum is 6, without an end of line!"), "{said}");
}
