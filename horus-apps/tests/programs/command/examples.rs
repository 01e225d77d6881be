//! Every example of the documentation, with its output checked.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use horus::prelude::*;

use super::{fails, pictures, session, succeeds};

/// Results of NumPy, SciPy and scikit-image (`tests/goldens/command.py`): one line per chain.
const EXPECTED: &str = include_str!("examples.txt");

fn is_near(got: f64, want: f64, within: f64) -> bool {
    (got - want).abs() <= within * want.abs().max(1.0)
}

/// Examples match other libraries. Without an oracle only the size is checked.
#[test]
fn every_example_gives_what_others_compute() {
    let dir = pictures();
    let dir = dir.path();
    let expected: BTreeMap<&str, &str> = EXPECTED.lines().map(|line| line.rsplit_once(": ").unwrap()).collect();
    let mut compared = 0;
    for (name, example) in horus_apps::command::examples() {
        let words: Vec<&str> = example.split(' ').collect();
        assert!(words.contains(&name), "`{example}` shows no {name}");
        let want = expected.get(&*example).unwrap_or_else(|| panic!("run tests/goldens/command.py for `{example}`"));
        compared += usize::from(*want != "-");
        match want.strip_prefix("numbers ") {
            Some(want) => numbers(dir, &words, want),
            None => picture(dir, &words, want),
        }
        if name.starts_with("rgb_to") || name.ends_with("to_rgb") {
            fails(dir, &[&["grey.png", "o.png"], &words[..]].concat(), 1, &[name, "1 channels; it must have 3"]);
        }
    }
    assert!(compared > 85, "{compared}");
}

fn numbers(dir: &Path, words: &[&str], want: &str) {
    let said = succeeds(dir, &[&["colour.png"], words].concat());
    let got: Vec<f64> = said
        .lines()
        .flat_map(|line| line.strip_prefix("colour.png\t").unwrap().split('\t'))
        .map(|v| v.parse().unwrap())
        .collect();
    let want: Vec<f64> = want.split(' ').map(|v| v.parse().unwrap()).collect();
    assert!(got.len() == want.len() && got.iter().zip(&want).all(|(g, w)| is_near(*g, *w, 1e-5)), "{words:?}: {said}");
}

fn picture(dir: &Path, words: &[&str], want: &str) {
    let said = succeeds(dir, &[&["colour.png", "out.npy"], words].concat());
    assert!(said.is_empty(), "{words:?}: {said}");
    let file = fs::read(dir.join("out.npy")).unwrap();
    let is_mask = file[..128].windows(5).any(|w| w == b"'|b1'");
    let got = session().open(dir.join("out.npy")).unwrap();
    let dtype = if is_mask { "bool".to_owned() } else { got.dtype().to_string() };
    let wide = got.convert::<f64>();
    let [mean, square] = [wide.mean(), wide.square().mean()].map(|v| v.get().unwrap());
    let Shape { height, width, channels, .. } = got.shape();
    assert!(mean.is_finite() && square.is_finite(), "{words:?} is not finite");
    fs::remove_file(dir.join("out.npy")).unwrap();
    let [kind, shape, a, b] = want.split(' ').collect::<Vec<_>>()[..] else {
        let size = match words[0] {
            "resize" | "scale" | "pyramid_down" => (17, 21),
            "pyramid_up" => (66, 82),
            _ => (33, 41),
        };
        assert_eq!((want, (height, width)), ("-", size), "{words:?}");
        // Digits of the order of bytes are 0.
        assert!(square > 0.0 || words[0] == "order_digit", "{words:?} is black");
        return;
    };
    assert_eq!((&*dtype, &*format!("{height}x{width}x{channels}")), (kind, shape), "{words:?}");
    // Interpolated integers are rounded in f32.
    let within = if kind == "u8" || kind == "bool" { 1e-3 } else { 2e-5 };
    let near = is_near(mean, a.parse().unwrap(), within) && is_near(square, b.parse().unwrap(), within);
    assert!(near, "{words:?}: mean {mean}, not {a}; of squares {square}, not {b}");
}

/// The examples of the documentation's page and of the help, verbatim, as split by shells.
#[test]
fn examples_of_whole_command_lines_run() {
    let dir = pictures();
    let dir = dir.path();
    for (from, to) in
        [("colour.png", "in.png"), ("colour.png", "picture.png"), ("wide.tif", "dark.tif"), ("wide.tif", "picture.tif")]
    {
        fs::copy(dir.join(from), dir.join(to)).unwrap();
    }
    fs::create_dir(dir.join("in")).unwrap();
    fs::copy(dir.join("wide.tif"), dir.join("in/a.tif")).unwrap();
    fs::copy(dir.join("colour.png"), dir.join("in/a.png")).unwrap();
    for (line, output) in [
        ("picture.png edges.png luminance gauss 2 sobel --clipping allow", Some("edges.png")),
        ("in/a.tif --out-dir out gauss 2 sobel otsu", Some("out/a.png")),
        ("picture.tif clean.tif sub @dark.tif median 3", Some("clean.tif")),
        ("in.png out.png windows 7 7 4 4 variance --clipping allow", Some("out.png")),
        ("in.png out.png tiles 8 8 mean", Some("out.png")),
        ("in/a.png luminance mean", None),
    ] {
        let said = succeeds(dir, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(said.is_empty(), output.is_some(), "{line}: {said}");
        if let Some(output) = output {
            assert!(fs::metadata(dir.join(output)).is_ok_and(|f| f.len() > 50), "{line}");
            let _ = fs::remove_file(dir.join(output));
        }
    }
}
