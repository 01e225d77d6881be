//! The program as its user runs it.

use std::path::Path;
use std::process::{Command, Output};

use horus::prelude::*;
use serde_json::Value;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_horus-partition")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn path(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn session() -> Session {
    Session::builder().device("cpu").build().unwrap()
}

/// Sea of 12 x 8 points with land in the middle two columns and the north-west block of 2 x 2.
fn island(y: usize, x: usize) -> bool {
    !(5..7).contains(&x) && (x > 1 || y > 1)
}

#[test]
fn masks_of_every_kind_say_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let file = |name: &str| folder.path().join(name);
    let bytes = Image::from_fn(&session, 8, 12, |y, x| if island(y, x) { 255u8 } else { 0 });
    bytes.save(file("mask.png")).unwrap();
    bytes.save(file("mask.pgm")).unwrap();
    // -0.0 and NaN are land.
    let zeros = [0.0, -0.0, f32::NAN];
    let floats = Image::from_fn(&session, 8, 12, |y, x| if island(y, x) { -0.25 } else { zeros[(x + y) % 3] });
    floats.save(file("mask.npy")).unwrap();
    // Blue is sea, and land is opaque.
    let plane = |f: &dyn Fn(usize, usize) -> u8| (0..96).map(|i| f(i / 12, i % 12)).collect::<Vec<u8>>();
    let (none, blue, opaque) = (plane(&|_, _| 0), plane(&|y, x| u8::from(island(y, x))), plane(&|_, _| 255));
    Image::from_slice(
        &session,
        Shape::new(8, 12, 4),
        &(0..96).flat_map(|i| [none[i], none[i], blue[i], opaque[i]]).collect::<Vec<u8>>(),
    )
    .save(file("colours.png"))
    .unwrap();
    let mut all = Vec::new();
    for name in ["mask.png", "mask.pgm", "mask.npy", "colours.png"] {
        let out = run(&[path(&file(name)), "--levels", "2:2", "--block", "2", "--halo", "1", "--json"]);
        assert!(out.status.success() && out.stderr.is_empty(), "{name}: {}", text(&out.stderr));
        let found: Value = serde_json::from_slice(&out.stdout).unwrap();
        assert_eq!(
            (&found["sea"], &found["blocks"], &found["left_out"]),
            (&76.into(), &23.into(), &1.into()),
            "{name}"
        );
        all.push(found);
    }
    assert!(all.iter().all(|found| *found == all[0]));
    let names: Vec<&str> = all[0]["partitions"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["cartesian", "rake", "curve", "pop-curve", "zigzag", "hierarchical"]);
    let levels = &all[0]["partitions"][5]["levels"];
    assert_eq!((&levels[0]["level"], &levels[1]["level"]), (&"nodes".into(), &"devices".into()));
    assert_eq!((&levels[0]["blocks"], &levels[1]["parts"]), (&serde_json::json!([11, 12]), &4.into()));
}

#[test]
fn a_planet_is_told_in_a_table_and_painted() {
    let folder = tempfile::tempdir().unwrap();
    let (picture, numbers) = (folder.path().join("parts.png"), folder.path().join("parts.npy"));
    let planet = ["--synthetic", "90x60:3", "--levels", "2:3", "--block", "5x4", "--periodic", "--tripole"];
    let out = run(&[&planet[..], &["--out", path(&picture)]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let table = text(&out.stdout);
    for words in
        ["90 x 60 points", "18 x 15 blocks of 5 x 4", "periodic, tripole", "2 nodes", "6 devices", "between nodes than"]
    {
        assert!(table.contains(words), "{words} in {table}");
    }
    assert_eq!(table.lines().filter(|l| l.starts_with("hierarchical  ")).count(), 1, "{table}");
    let session = session();
    let painted = AnyImage::open(&session, &picture).unwrap().shape();
    assert_eq!((painted.height, painted.width, painted.channels), (60, 90, 3));

    let out = run(&[&planet[..], &["--out", path(&numbers), "--scheme", "curve", "--json"]].concat());
    assert!(out.status.success(), "{}", text(&out.stderr));
    let told: Value = serde_json::from_slice(&out.stdout).unwrap();
    let parts = AnyImage::open(&session, &numbers).unwrap();
    assert_eq!((parts.shape().height, parts.shape().width, parts.dtype()), (15, 18, DType::I32));
    let parts = parts.convert::<i32>().to_vec().unwrap();
    let land = parts.iter().filter(|part| **part == -1).count();
    assert_eq!(Some(land as u64), told["left_out"].as_u64());
    assert!((0..6).all(|part| parts.contains(&part)) && parts.iter().all(|part| (-1..6).contains(part)));
}

/// One line, and the exit status common to all programs: 1 for the content of files, 2 for the
/// command line.
#[test]
fn what_cannot_be_done_is_said_in_one_error() {
    let folder = tempfile::tempdir().unwrap();
    let session = session();
    let file = |name: &str| folder.path().join(name);
    Image::from_slice(&session, (4, 4), &[0u8; 16]).save(file("land.png")).unwrap();
    Image::from_slice(&session, (4, 4), &[9u8; 16]).save(file("sea.png")).unwrap();
    std::fs::write(file("no.png"), "no picture").unwrap();
    let (land, sea, no, none) = (file("land.png"), file("sea.png"), file("no.png"), file("none.png"));
    let fails = |arguments: &[&str], status: i32, cause: &str| {
        let out = run(arguments);
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(status), "{arguments:?}: {said}");
        assert!(said.starts_with("error: ") && said.contains(cause) && out.stdout.is_empty(), "{arguments:?}: {said}");
        assert!(status == 2 || said.lines().count() == 1, "{said}");
    };
    let two = ["--levels", "2", "--block", "2"];
    fails(&[&[path(&none)], &two[..]].concat(), 1, "cannot read");
    fails(&[&[path(&no)], &two[..]].concat(), 1, "cannot read");
    fails(&[&[path(&land)], &two[..]].concat(), 1, "the mask has no sea");
    fails(&[path(&sea), "--levels", "2:4", "--block", "2"], 1, "2:4 are 8 parts, but only 4 blocks have sea");
    let nowhere = file("nowhere").join("parts.png");
    fails(&[&[path(&sea)], &two[..], &["--out", path(&nowhere)]].concat(), 1, "cannot write");
    for (levels, cause) in
        [("2:x", "`x` is not a whole number"), ("2:0", "a level of 0 parts"), ("", "not a whole number")]
    {
        fails(&[path(&sea), "--levels", levels, "--block", "2"], 2, cause);
    }
    fails(&[path(&sea), "--levels", "2", "--block", "0"], 2, "--block");
    fails(&[path(&sea), "--levels", "2", "--block", "2", "--halo", "-1"], 2, "--halo");
    fails(&[path(&sea), "--levels", "2"], 2, "--block");
    fails(&two, 2, "MASK");
    fails(&[&[path(&sea), "--synthetic", "9x9"], &two[..]].concat(), 2, "--synthetic");
    fails(&[&[path(&sea)], &two[..], &["--out", "a.png", "--scheme", "metis"]].concat(), 2, "no such partition");
}
