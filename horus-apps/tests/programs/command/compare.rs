//! `horus compare`, `horus info`, and what else prints and computes no picture.

use std::fs;
use std::process::Command;

use horus::prelude::*;
use serde_json::Value as Json;

use super::{fails, pictures, run, session};
use crate::files::text;

fn first(y: usize, x: usize) -> usize {
    (7 * x + 13 * y + x * y) % 256
}

fn second(y: usize, x: usize) -> usize {
    (first(y, x) + (x + 2 * y) % 5).saturating_sub(2).min(255)
}

fn json(dir: &std::path::Path, words: &[&str], status: i32) -> Json {
    let out = run(dir, words);
    assert_eq!(out.status.code(), Some(status), "{}", text(&out.stderr));
    serde_json::from_slice(&out.stdout).unwrap()
}

#[track_caller]
fn near(found: &Json, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9 * expected.abs(), "{found} is not {expected}");
}

#[test]
fn differences_are_those_of_scikit_image() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let session = session();
    let plane = |f: fn(usize, usize) -> usize| Image::from_fn(&session, 33, 41, move |y, x| f(y, x) as u8);
    let (a, b) = (plane(first), plane(second));
    a.save(dir.join("a.png")).unwrap();
    b.save(dir.join("b.png")).unwrap();
    // peak_signal_noise_ratio and structural_similarity of scikit-image 0.26.
    let found = json(dir, &["compare", "a.png", "b.png", "--json"], 1);
    assert_eq!((&found["equal"], &found["different"], &found["largest"]), (&false.into(), &1078.into(), &2.0.into()));
    assert_eq!(found["at"], Json::from(vec![0, 0, 4, 0]));
    near(&found["psnr"], 45.14303101913594);
    near(&found["ssim"], 0.9998030264459812);
    let out = run(dir, &["compare", "a.png", "b.png"]);
    let told = "a.png b.png: 1078 of 1353 samples differ (79.675 %), by 2 at most, at row 0, column 4, channel 0; PSNR 45.14 dB, \
                SSIM 0.999803\n";
    assert_eq!((out.status.code(), text(&out.stdout)), (Some(1), told.to_owned()));
    let (inverse_a, inverse_b) = (plane(|y, x| 255 - first(y, x)), plane(|y, x| 255 - second(y, x)));
    Image::stack(&session, [a, b.clone(), inverse_a], Axis::Channels).save(dir.join("c.png")).unwrap();
    Image::stack(&session, [b.clone(), b, inverse_b], Axis::Channels).save(dir.join("d.png")).unwrap();
    let found = json(dir, &["compare", "c.png", "d.png", "--json"], 1);
    near(&found["psnr"], 46.90394360969275);
    near(&found["ssim"], 0.9998686839253578);
    let float = |y, x| first(y, x) as f64 / 100.0 - 1.0;
    Image::from_fn(&session, 33, 41, float).save(dir.join("e.npy")).unwrap();
    let other = move |y, x| float(y, x) + ((x + 2 * y) % 5) as f64 / 64.0 - 2.0 / 64.0;
    Image::from_fn(&session, 33, 41, other).save(dir.join("f.npy")).unwrap();
    let found = json(dir, &["compare", "e.npy", "f.npy", "--json"], 1);
    near(&found["psnr"], 41.24089445420201);
    near(&found["ssim"], 0.9995143988596416);
    let found = json(dir, &["compare", "e.npy", "f.npy", "--json", "--peak", "4"], 1);
    near(&found["psnr"], 45.151290672082155);
    near(&found["ssim"], 0.9995190746508759);
}

#[test]
fn the_status_tells_if_pictures_are_equal() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let status = |words: &[&str]| {
        let out = run(dir, &[&["compare"], words].concat());
        (out.status.code().unwrap(), text(&out.stdout))
    };
    assert_eq!(status(&["grey.png", "grey.png"]), (0, "grey.png grey.png: equal\n".into()));
    assert_eq!(status(&["grey.png", "dark.png", "--quiet"]), (1, String::new()));
    let (code, told) = status(&["grey.png", "colour.png"]);
    assert_eq!(code, 1);
    assert_eq!(told, "grey.png colour.png: 41 x 33 pixels, 1 channel, u8 and 41 x 33 pixels, 3 channels, u8\n");
    // Of other types, but of the same numbers.
    AnyImage::open(&session, dir.join("grey.png")).unwrap().convert::<u16>().save(dir.join("grey16.png")).unwrap();
    let (code, told) = status(&["grey.png", "grey16.png"]);
    assert_eq!((code, told.as_str()), (1, "grey.png grey16.png: u8 and u16\ngrey.png grey16.png: equal\n"));
    let numbers = |values: &[f64]| Image::from_slice(&session, (1, values.len()), values);
    numbers(&[0.0, f64::NAN, 2.0, f64::INFINITY]).save(dir.join("n.npy")).unwrap();
    numbers(&[0.5, f64::NAN, 2.0, f64::INFINITY]).save(dir.join("o.npy")).unwrap();
    numbers(&[0.0, 1.0, 2.0, f64::INFINITY]).save(dir.join("p.npy")).unwrap();
    assert_eq!(status(&["n.npy", "n.npy"]).0, 0);
    assert_eq!(
        (status(&["n.npy", "o.npy", "--within", "0.5"]).0, status(&["n.npy", "o.npy", "--within", "0.4"]).0),
        (0, 1)
    );
    let (code, told) = status(&["n.npy", "p.npy", "--within", "9"]);
    assert!(code == 1 && told.contains("1 NaN in one picture only") && !told.contains("SSIM"), "{told}");
    fails(dir, &["compare", "grey.png", "none.png"], 2, &["cannot read none.png"]);
    assert_eq!(run(dir, &["compare", "grey.png"]).status.code(), Some(2));
    assert_eq!(run(dir, &["compare", "grey.png", "grey.png", "--peak", "0"]).status.code(), Some(2));
}

#[test]
fn info_prints_tags_and_statistics_and_json() {
    let dir = pictures();
    let dir = dir.path();
    let told = |words: &[&str]| text(&run(dir, &[&["info"], words].concat()).stdout);
    let found = told(&["wide.tif", "--tags", "--statistics"]);
    let lines: Vec<&str> = found.lines().map(str::trim).collect();
    for line in ["ImageWidth: 41", "ImageLength: 33", "BitsPerSample: 16", "Compression: 1"] {
        assert!(lines.contains(&line), "{line} in {found}");
    }
    // 0, 40, 80 and so on.
    let n = (33 * 41) as f64;
    let expected = (40.0 * (n - 1.0) / 2.0, 40.0 * ((n * n - 1.0) / 12.0).sqrt());
    let statistics = lines.last().unwrap().strip_prefix("channel 0: from 0 to 54080, mean ").unwrap();
    let (mean, deviation) = statistics.split_once(", standard deviation ").unwrap();
    assert_eq!(mean.parse::<f64>().unwrap(), expected.0);
    assert!((deviation.parse::<f64>().unwrap() - expected.1).abs() < 1e-9 * expected.1);
    let object: Json = serde_json::from_str(&told(&["colour.png", "--json", "--statistics"])).unwrap();
    assert_eq!((&object["width"], &object["type"], &object["channels"]), (&41.into(), &"u8".into(), &3.into()));
    assert_eq!(object["statistics"].as_array().unwrap().len(), 3);
    // A text in a PNG file, before its pixels, which would clear a terminal.
    let png = fs::read(dir.join("grey.png")).unwrap();
    let mut chunk = b"tEXtTitle\0Ringed seal\x1b[2J".to_vec();
    let mut crc = !0u32;
    for byte in &chunk {
        crc ^= u32::from(*byte);
        (0..8).for_each(|_| crc = (crc >> 1) ^ (0xEDB8_8320 * (crc & 1)));
    }
    chunk.splice(0..0, u32::to_be_bytes(chunk.len() as u32 - 4));
    chunk.extend(u32::to_be_bytes(!crc));
    fs::write(dir.join("titled.png"), [&png[..33], &chunk, &png[33..]].concat()).unwrap();
    assert!(
        told(&["titled.png", "--tags"]).ends_with("\n  Title: Ringed seal\\u{1b}[2J\n"),
        "{}",
        told(&["titled.png", "--tags"])
    );
    let object: Json = serde_json::from_str(&told(&["titled.png", "--json"])).unwrap();
    assert_eq!(object["tags"]["Title"], "Ringed seal\u{1b}[2J");
    fails(dir, &["info", "none.png", "--statistics"], 1, &["cannot read none.png"]);
}

#[test]
fn versions_tell_features_and_devices() {
    let dir = tempfile::tempdir().unwrap();
    let told = text(&run(dir.path(), &["--version"]).stdout);
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], format!("horus {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(lines[1].contains("zarr"), cfg!(feature = "zarr"), "{told}");
    assert!(lines[2].starts_with("cpu: CPU (") && lines[2].contains("thread"), "{told}");
    assert_eq!(lines.iter().any(|line| line.starts_with("cuda")), cfg!(feature = "cuda"), "{told}");
}

/// The words that bash would offer for the last of these.
fn offered(dir: &std::path::Path, words: &[&str]) -> Option<Vec<String>> {
    let script = text(&run(dir, &["completions", "bash"]).stdout);
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    let asked = format!(
        "complete() {{ :; }}\n{script}\nCOMP_WORDS=({})\nCOMP_CWORD={}\n_horus\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1
    );
    // Shells in small containers have no completion.
    let out = Command::new("bash").args(["-c", &asked]).current_dir(dir).output().ok()?;
    assert!(out.status.success(), "{}", text(&out.stderr));
    Some(text(&out.stdout).lines().map(str::to_owned).collect())
}

#[test]
fn bash_completes_operations_options_and_files() {
    let dir = pictures();
    let dir = dir.path();
    let Some(found) = offered(dir, &["horus", "grey.png", "out.png", "gau"]) else { return };
    assert!(found.iter().any(|word| word == "gauss") && found.iter().all(|word| word.starts_with("gau")), "{found:?}");
    assert_eq!(offered(dir, &["horus", "grey.png", "--out-d"]).unwrap(), ["--out-dir"]);
    assert_eq!(offered(dir, &["horus", "inf"]).unwrap(), ["info"]);
    assert_eq!(offered(dir, &["horus", "a.png", "b.png", "sub", "@dar"]).unwrap(), ["@dark.png"]);
    assert_eq!(offered(dir, &["horus", "compare", "grey"]).unwrap(), ["grey.png"]);
    assert_eq!(offered(dir, &["horus", "completions", "z"]).unwrap(), ["zsh"]);
    assert_eq!(offered(dir, &["horus", "info", "a.png", "--sta"]).unwrap(), ["--statistics"]);
    assert_eq!(offered(dir, &["horus", "info", "a.png", "--dep"]).unwrap(), [""], "an option of chains");
    assert_eq!(offered(dir, &["horus", "montage", "o.png", "--ga"]).unwrap(), ["--gap"]);
    fails(dir, &["completions", "csh"], 2, &["usage: horus completions bash|zsh|fish"]);
    fails(dir, &["completions"], 2, &["usage: horus completions bash|zsh|fish"]);
}
