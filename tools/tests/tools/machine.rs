//! Stored machine profiles: measured ones are found again; damaged ones, and those of other
//! hardware or another version, are reported in one line and ignored.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

/// Runs `horus-machine` on two threads with its own folder; measures unless `--show` is given.
fn machine(cache: &Path, options: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horus-machine"));
    command.env_remove("HORUS_PROFILE").env_remove("RUST_LOG").env("HORUS_CACHE", cache);
    let output = command.args(["--device", "cpu", "--threads", "2"]).args(options).output().expect("it starts");
    assert!(output.status.success(), "{output:?}");
    output
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("text")
}

/// The only profile of a folder.
fn kept(cache: &Path) -> PathBuf {
    let files: Vec<_> = fs::read_dir(cache.join("machine")).expect("a folder").map(|f| f.unwrap().path()).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files[0].clone()
}

#[test]
fn what_is_measured_is_found_again_and_what_cannot_be_used_is_told_and_measured_again() {
    let cache = tempfile::tempdir().unwrap();
    let nothing = machine(cache.path(), &["--show"]);
    assert!(printed(&nothing).contains("(default)") && nothing.stderr.is_empty(), "{nothing:?}");
    let measured = printed(&machine(cache.path(), &["--quick"]));
    let file = kept(cache.path());
    let (table, path) = measured.split_once("kept in ").expect("it says where");
    assert_eq!(Path::new(path.trim_end()), file);
    let shown = machine(cache.path(), &["--show"]);
    assert!(table.contains("(measured)") && shown.stderr.is_empty(), "{shown:?}");
    assert_eq!(printed(&shown), table, "all numbers survive the journey");

    let good = fs::read_to_string(&file).unwrap();
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut profile: Value = serde_json::from_str(&good).unwrap();
        change(&mut profile);
        profile.to_string().into_bytes()
    };
    let cases: [(&str, Vec<u8>, &str); 11] = [
        ("empty", Vec::new(), "it is damaged, or of another version"),
        ("cut in the middle", good.as_bytes()[..good.len() / 2].to_vec(), "it is damaged, or of another version"),
        ("without its last byte", good.trim_end().as_bytes()[..good.trim_end().len() - 1].to_vec(), "it is damaged"),
        ("no text", vec![0xff; 300], "UTF-8"),
        ("another document", b"[1, 2, {\"version\": 2}]".to_vec(), "it is damaged, or of another version"),
        ("nested without end", [b'['; 100_000].to_vec(), "it is damaged, or of another version"),
        ("an earlier version", changed(&|p| p["version"] = 1.into()), "its version is another"),
        ("without the driver", changed(&|p| drop(p["hardware"].as_object_mut().unwrap().remove("driver"))), "driver"),
        ("a rate of 0", changed(&|p| p["arithmetic"]["f32"] = 0.into()), "multiply-adds"),
        ("other hardware", changed(&|p| p["hardware"]["threads"] = 99.into()), "it is of other hardware"),
        ("another driver", changed(&|p| p["hardware"]["driver"] = "driver 1.0".into()), "it is of other hardware"),
    ];
    for (name, bytes, why) in cases {
        fs::write(&file, bytes).unwrap();
        let shown = machine(cache.path(), &["--show"]);
        let told = String::from_utf8(shown.stderr.clone()).expect("text");
        assert!(printed(&shown).contains("(default)"), "{name}: {shown:?}");
        assert_eq!(told.lines().count(), 1, "{name}: {told}");
        assert!(told.contains(why) && told.contains(file.to_str().unwrap()), "{name}: {told}");
        assert!(told.contains("horus-machine measures again"), "{name}: {told}");
    }
    let again = machine(cache.path(), &["--quick"]);
    assert!(printed(&again).contains("(measured)"), "{again:?}");
    assert_eq!(kept(cache.path()), file, "in the place of the one that was of no use");
    assert!(machine(cache.path(), &["--show"]).stderr.is_empty());

    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    let shown = machine(cache.path(), &["--show"]);
    assert!(printed(&shown).contains("(default)") && !shown.stderr.is_empty(), "{shown:?}");
}

#[test]
fn nothing_is_kept_where_that_is_not_wanted() {
    let none = Path::new("off");
    let mut command = Command::new(env!("CARGO_BIN_EXE_horus-machine"));
    command.env("HORUS_CACHE", none).args(["--device", "cpu", "--threads", "1", "--quick"]);
    let output = command.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success() && told.contains("no folder to keep the profile in"), "{told}");
}

#[test]
fn a_damaged_table_of_launch_shapes_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("tuning.json");
    fs::write(&table, "[{\"arch\": ").unwrap();
    let tune = || Command::new(env!("CARGO_BIN_EXE_horus-tune"));
    for output in [tune().arg("--output").arg(&table).output(), tune().env("HORUS_TUNING", &table).output()] {
        let output = output.expect("it starts");
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && told.contains("not a table of launch shapes"), "{told}");
        assert_eq!(fs::read_to_string(&table).unwrap(), "[{\"arch\": ");
    }
}
