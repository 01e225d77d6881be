//! The command `horus` as a user meets it, against the same operations recorded here.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use horus::prelude::*;

const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/small.png");

fn command(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_horus"));
    command.args(words);
    for name in ["HORUS_MODE", "HORUS_WEIGHTS", "HORUS_DEVICE", "RUST_LOG"] {
        command.env_remove(name);
    }
    command
}

/// Runs it in the folder.
fn run(dir: &Path, words: &[&str]) -> Output {
    command(words).current_dir(dir).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs it, without a summary.
fn quiet(dir: &Path, words: &[&str]) -> Output {
    run(dir, &[words, &["--quiet"]].concat())
}

#[track_caller]
fn succeeds(dir: &Path, words: &[&str]) -> String {
    let out = quiet(dir, words);
    assert!(out.status.success(), "{words:?}: {}", text(&out.stderr));
    assert!(out.stderr.is_empty(), "{words:?}: {}", text(&out.stderr));
    text(&out.stdout)
}

/// It fails with this status and one line of an error that has all causes.
#[track_caller]
fn fails(dir: &Path, words: &[&str], status: i32, causes: &[&str]) {
    let out = run(dir, words);
    let message = text(&out.stderr);
    assert_eq!(out.status.code(), Some(status), "{words:?}: {message}");
    let errors: Vec<&str> = message.lines().filter(|l| l.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{words:?}: {message}");
    assert!(!message.contains(".rs:"), "{words:?} names a line of ours: {message}");
    for cause in causes {
        assert!(errors[0].contains(cause), "{words:?}: {message} does not say {cause}");
    }
}

fn session() -> Session {
    Session::builder().device("cpu").threads(1).build().unwrap()
}

/// A folder with a picture in colour, one in grey, and others to stand beside them.
fn pictures() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let session = session();
    let at = |name: &str| dir.path().join(name);
    let plane = |a: usize| Image::from_fn(&session, 33, 41, move |y, x| ((y * y + a * x + x * y / 3) % 251) as u8);
    Image::stack(&session, [plane(3), plane(7), plane(11)]).save(at("colour.png")).unwrap();
    plane(5).save(at("grey.png")).unwrap();
    Image::from_fn(&session, 33, 41, |y, x| ((y + 2 * x) % 20) as u8).save(at("dark.png")).unwrap();
    Image::from_fn(&session, 33, 41, |y, x| (y * 41 + x) as u16 * 40).save(at("wide.tif")).unwrap();
    Image::from_fn(&session, 33, 41, |y, x| (y as f32 - x as f32) / 20.0).save(at("float.npy")).unwrap();
    dir
}

fn bits<T: Pixel>(image: &Image<T>) -> Vec<u64> {
    image.to_vec().unwrap().into_iter().map(|v| v.to_f64().to_bits()).collect()
}

/// The chain writes `expected`, to the bit.
#[track_caller]
fn writes<T: Pixel>(dir: &Path, input: &str, chain: &str, expected: impl FnOnce(AnyImage) -> Image<T>) {
    let words: Vec<&str> = [input, "out.npy"].into_iter().chain(chain.split(' ')).collect();
    let said = succeeds(dir, &words);
    assert!(said.is_empty(), "{said}");
    let session = session();
    let expected = expected(session.open(dir.join(input)).unwrap());
    let got = session.open(dir.join("out.npy")).unwrap();
    assert_eq!((got.dtype(), got.shape()), (T::DTYPE, expected.shape()), "{chain}");
    assert!(bits(&got.convert::<T>()) == bits(&expected), "{chain} has other pixels");
}

fn bytes(any: AnyImage) -> Image<u8> {
    match any {
        AnyImage::U8(image) => image,
        other => panic!("{other:?}"),
    }
}

#[test]
fn chains_compute_what_the_library_computes() {
    let dir = pictures();
    let dir = dir.path();
    let mirrored = Border::Reflect101;
    writes(dir, "colour.png", "luminance gauss 2 sobel", |p| {
        let smooth = p.luminance().gauss(2.0);
        smooth.sobel_x().hypot(smooth.sobel_y())
    });
    writes(dir, "grey.png", "gauss 1.5 border=wrap", |p| {
        let (row, column) = filters::gauss(1.5, 0, 0);
        bytes(p).separable(&row, &column, Border::Wrap)
    });
    writes(dir, "grey.png", "add 10 median 5 absdiff @dark.png", |p| {
        let dark = bytes(p.luminance_of("dark.png", dir));
        (bytes(p) + 10).median(MedianSize::Five, mirrored).absdiff(dark)
    });
    writes(dir, "colour.png", "to_unit mul 1,0.5,0.25 clamp 0.1 0.4", |p| {
        (p.to_unit() * [1.0, 0.5, 0.25]).clamp(0.1, 0.4)
    });
    writes(dir, "grey.png", "erode disc 2 dilate rectangle 3 5 border=0 top_hat 3", |p| {
        let image = bytes(p).erode(&Footprint::disc(2));
        let image = image.dilate_with(&Footprint::rectangle(3, 5), Border::Constant(0.0));
        image.top_hat(&Footprint::rectangle(3, 3))
    });
    writes(dir, "colour.png", "rotate -30 bicubic 7 flip both transpose crop 1 2 20 10 pad 1 0 0 3 replicate", |p| {
        let turned = bytes(p).rotate_with(-30.0, Interpolation::Bicubic, Border::Constant(7.0));
        turned.flip(Flip::Both).transpose().crop(1, 2, 20, 10).pad(1, 0, 0, 3, Border::Replicate)
    });
    writes(dir, "grey.png", "correlate -1,0,1/-2,0,2/-1,0,1 replicate convert i32", |p| {
        let taps = Filter::dense(3, 3, [-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0]);
        bytes(p).correlate(&taps, Border::Replicate).convert::<i32>()
    });
    writes(dir, "float.npy", "exp sub @in abs sqrt", |p| {
        let image = p.to_unit();
        (image.exp() - &image).abs().sqrt()
    });
    writes(dir, "colour.png", "convrot 45 sigma_u=2 sigma_v=1,1.5", |p| {
        let params = horus_apps::detectors::Params { theta_step: 45.0, sigma_u: vec![2.0], sigma_v: vec![1.0, 1.5] };
        horus_apps::detectors::convrot(&p.luminance(), &params)
    });
    writes(dir, "grey.png", "to_unit unsharp 2 1.5", |p| {
        let image = p.to_unit();
        (&image + (&image - image.gauss(2.0)) * 1.5).clamp(0.0, 1.0)
    });
    writes(dir, "grey.png", "scale 0.5", |p| bytes(p).resize_antialiased(17, 21));
}

/// Another picture of the session of this one.
trait Beside {
    fn luminance_of(&self, name: &str, dir: &Path) -> AnyImage;
}

impl Beside for AnyImage {
    fn luminance_of(&self, name: &str, dir: &Path) -> AnyImage {
        AnyImage::open(self.luminance().session(), dir.join(name)).unwrap()
    }
}

#[test]
fn pictures_beside_floats_are_brought_to_their_scale() {
    let dir = pictures();
    let dir = dir.path();
    let dark = |p: &AnyImage| bytes(p.luminance_of("dark.png", dir));
    // In 0..=1, and on the scale of bytes.
    writes(dir, "grey.png", "luminance sub @dark.png", |p| {
        p.luminance() - dark(&p).convert::<f32>() * (1.0f64 / 255.0) as f32
    });
    writes(dir, "grey.png", "gauss 1 sub @dark.png", |p| bytes(p.clone()).gauss(1.0) - dark(&p).convert::<f32>());
    writes(dir, "grey.png", "gauss 1 to_unit", |p| bytes(p).gauss(1.0) / 255.0);
    writes(dir, "wide.tif", "gauss 1 luminance", |p| p.convert::<u16>().gauss(1.0) / 65535.0);
    fails(
        dir,
        &["wide.tif", "o.png", "sub", "@dark.png"],
        1,
        &["operation 1, `sub @dark.png`: pixels are u16 and those of its argument u8"],
    );
}

/// A picture of integers is as bright after a filter as before.
#[test]
fn floats_on_the_scale_of_integers_are_saved_on_it() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let open = |name: &str| bytes(session.open(dir.join(name)).unwrap());
    succeeds(dir, &["grey.png", "o.png", "gauss", "1"]);
    let want = open("grey.png").gauss(1.0).convert::<u8>();
    // Where 255 times a quotient by 255 ends in a half, it may round the other way.
    assert!(open("o.png").absdiff(&want).max_value().get().unwrap() <= 1);
    assert!(open("o.png").ne(&want).count().get().unwrap() < 10);
    succeeds(dir, &["wide.tif", "o16.png", "gauss", "1", "--depth", "16"]);
    let got = Image::<u16>::open(&session, dir.join("o16.png")).unwrap();
    let want = Image::<u16>::open(&session, dir.join("wide.tif")).unwrap().gauss(1.0).convert::<u16>();
    assert!(got.absdiff(want).max_value().get().unwrap() <= 1);
    // Exact where files hold floats, and stretched on demand.
    succeeds(dir, &["grey.png", "o.tif", "gauss", "1"]);
    assert!(bits(&Image::<f32>::open(&session, dir.join("o.tif")).unwrap()) == bits(&open("grey.png").gauss(1.0)));
    succeeds(dir, &["grey.png", "r.png", "mul", "0", "add", "3", "max", "@grey.png", "--scaling", "range"]);
    let stretched = open("r.png");
    assert_eq!(session.get_all((stretched.min_value(), stretched.max_value())).unwrap(), (0, 255));
}

/// Otsu's threshold of a picture, from the definition.
fn otsu(pixels: &[f32]) -> Vec<bool> {
    let (low, high) = pixels.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(l, h), v| (l.min(*v), h.max(*v)));
    let level = |v: f32| ((v - low) / (high - low) * 255.0).round_ties_even() as usize;
    let between = |last: usize| {
        let class = |inside: &dyn Fn(usize) -> bool| {
            let levels: Vec<f64> = pixels.iter().map(|v| level(*v)).filter(|l| inside(*l)).map(|l| l as f64).collect();
            (levels.len() as f64, levels.iter().sum::<f64>() / levels.len() as f64)
        };
        let ((w0, m0), (w1, m1)) = (class(&|l| l <= last), class(&|l| l > last));
        if w0 * w1 > 0.0 { w0 * w1 * (m0 - m1).powi(2) } else { -1.0 }
    };
    let scores: Vec<f64> = (0..255).map(between).collect();
    // Gaps in a histogram give equal scores, and the same classes.
    let best = (0..255).fold(0, |best, i| if scores[i] > scores[best] * (1.0 + 1e-12) { i } else { best });
    pixels.iter().map(|v| level(*v) > best).collect()
}

#[test]
fn masks_are_saved_as_black_and_white_and_combine() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let holds = |name: &str| -> Vec<bool> {
        let values = bytes(session.open(dir.join(name)).unwrap()).to_vec().unwrap();
        assert!(values.iter().all(|v| [0, 255].contains(v)), "{name}");
        values.into_iter().map(|v| v == 255).collect()
    };
    for input in ["grey.png", "colour.png", "float.npy"] {
        succeeds(dir, &[input, "o.png", "otsu"]);
        let pixels = session.open(dir.join(input)).unwrap().convert::<f32>().to_vec().unwrap();
        let want = otsu(&pixels);
        assert!(want.iter().any(|v| *v) && want.iter().any(|v| !*v));
        let wrong = holds("o.png").iter().zip(&want).filter(|(a, b)| a != b).count();
        assert_eq!(wrong, 0, "{input}");
    }
    succeeds(dir, &["grey.png", "t.png", "threshold", "100"]);
    let grey = bytes(session.open(dir.join("grey.png")).unwrap()).to_vec().unwrap();
    assert!(holds("t.png").iter().zip(&grey).all(|(m, v)| *m == (*v > 100)));
    succeeds(dir, &["grey.png", "b.png", "lt", "200", "and", "@t.png"]);
    assert!(holds("b.png").iter().zip(&grey).all(|(m, v)| *m == (*v > 100 && *v < 200)));
    succeeds(dir, &["grey.png", "s.png", "threshold", "100", "select", "@in", "7"]);
    let chosen = bytes(session.open(dir.join("s.png")).unwrap()).to_vec().unwrap();
    assert!(chosen.iter().zip(&grey).all(|(s, v)| *s == if *v > 100 { *v } else { 7 }));
    // A picture of one value is above no threshold.
    let lines = succeeds(dir, &["grey.png", "mul", "0", "otsu", "count"]);
    assert_eq!(lines, "grey.png\t0\n");
}

#[test]
fn an_equalised_picture_has_as_many_pixels_below_each_value() {
    let dir = pictures();
    let dir = dir.path();
    succeeds(dir, &["grey.png", "o.npy", "equalize"]);
    let session = session();
    let grey = bytes(session.open(dir.join("grey.png")).unwrap()).to_vec().unwrap();
    let (low, high) = (*grey.iter().min().unwrap(), *grey.iter().max().unwrap());
    assert!(high - low > 240, "levels of the histogram tell nearly all values apart");
    let got = session.open(dir.join("o.npy")).unwrap().to_unit().to_vec().unwrap();
    for (v, share) in grey.iter().zip(&got) {
        let want = grey.iter().filter(|other| *other <= v).count() as f32 / grey.len() as f32;
        assert!((share - want).abs() < 0.01, "{v}: {share}, not {want}");
    }
}

/// The table has no row that nobody tried.
#[test]
fn every_operation_runs_on_grey_and_on_colour() {
    let dir = pictures();
    let dir = dir.path();
    let mut tried = 0;
    for (name, example) in horus_apps::command::examples() {
        let words: Vec<&str> = example.split(' ').collect();
        assert!(words.contains(&name), "`{example}` shows no {name}");
        // It ends in numbers if it writes nothing.
        let numbers = succeeds_or(dir, &[&["grey.png"][..], &words].concat());
        for input in ["grey.png", "colour.png"] {
            let three = name.starts_with("rgb_to") || name.ends_with("to_rgb");
            let files: &[&str] = if numbers { &[input] } else { &[input, "out.npy"] };
            if three && input == "grey.png" {
                let causes = [name, "1 channels; it must have 3"];
                fails(dir, &[files, &words].concat(), 1, &causes);
                continue;
            }
            let said = succeeds(dir, &[files, &words].concat());
            assert_eq!(said.starts_with(&format!("{input}\t")), numbers, "{example}: {said}");
            assert!(numbers || fs::metadata(dir.join("out.npy")).is_ok_and(|f| f.len() > 80), "{example}");
            let _ = fs::remove_file(dir.join("out.npy"));
            tried += 1;
        }
    }
    assert!(tried > 150, "{tried}");
}

fn succeeds_or(dir: &Path, words: &[&str]) -> bool {
    quiet(dir, words).status.success()
}

#[test]
fn numbers_are_printed_a_line_a_picture() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let grey = bytes(session.open(dir.join("grey.png")).unwrap());
    let colour = bytes(session.open(dir.join("colour.png")).unwrap());
    let mean = |image: &Image<u8>| image.mean().get().unwrap();
    let lines = succeeds(dir, &["grey.png", "colour.png", "mean"]);
    assert_eq!(lines, format!("grey.png\t{}\ncolour.png\t{}\n", mean(&grey), mean(&colour)));
    let above = grey.gt(100).count().get().unwrap();
    assert_eq!(succeeds(dir, &["grey.png", "threshold", "100", "count"]), format!("grey.png\t{above}\n"));
    assert_eq!(succeeds(dir, &["grey.png", "min", "50", "max"]), "grey.png\t50\n");
    let told = succeeds(dir, &["colour.png", "stats"]);
    assert_eq!(told.lines().count(), 3);
    for (i, line) in told.lines().enumerate() {
        let channel = colour.channel(i);
        let (low, high, sum) = session.get_all((channel.min_value(), channel.max_value(), channel.sum())).unwrap();
        let (mean, deviation) = (mean(&channel), channel.variance().get().unwrap().sqrt());
        assert_eq!(line, format!("colour.png\t{i}\t{low}\t{high}\t{mean}\t{deviation}\t{sum}"));
    }
    let counts = grey.histogram(4, 0.0, 256.0).get().unwrap().iter().map(u64::to_string).collect::<Vec<_>>().join("\t");
    assert_eq!(succeeds(dir, &["grey.png", "histogram", "4", "0", "256"]), format!("grey.png\t{counts}\n"));
    // One that fails is named, and the others are told.
    let out = quiet(dir, &["grey.png", "none.png", "colour.png", "count"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).ends_with("error: 3 of 3 pictures failed\n"), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("error: grey.png: operation 1, `count`: it takes a mask"));
    assert!(text(&out.stderr).contains("error: cannot read none.png: "));
    fs::write(dir.join("list"), "grey.png\ncolour.png\n").unwrap();
    assert_eq!(succeeds(dir, &["--files-from", "list", "max"]).lines().count(), 2);
}

#[test]
fn a_folder_of_results_is_written() {
    let dir = pictures();
    let dir = dir.path();
    let out = run(
        dir,
        &["grey.png", "colour.png", "--out-dir", "out", "luminance", "gauss", "1", "sub", "@dark.png", "otsu"],
    );
    assert!(out.status.success(), "{}", text(&out.stderr));
    for name in ["grey.png", "colour.png"] {
        succeeds(dir, &[name, "one.png", "luminance", "gauss", "1", "sub", "@dark.png", "otsu"]);
        assert_eq!(fs::read(dir.join("one.png")).unwrap(), fs::read(dir.join("out").join(name)).unwrap());
    }
    succeeds(dir, &[".", "--out-dir", "npy", "--format", "npy", "luminance"]);
    assert!(dir.join("npy/wide.npy").is_file() && dir.join("npy/dark.npy").is_file());
    let out = run(dir, &["grey.png", "none.png", "colour.png", "--out-dir", "part", "sobel", "div", "8"]);
    assert_eq!(out.status.code(), Some(1));
    assert!(text(&out.stderr).starts_with("error: cannot read none.png: "), "{}", text(&out.stderr));
    assert!(dir.join("part/colour.png").is_file() && dir.join("part/grey.png").is_file());
}

#[test]
fn a_picture_goes_through_pipes() {
    let dir = pictures();
    let dir = dir.path();
    let piped = |words: &[&str]| {
        let mut child = command(words).stdin(Stdio::piped()).stdout(Stdio::piped()).current_dir(dir).spawn().unwrap();
        child.stdin.take().unwrap().write_all(&fs::read(dir.join("grey.png")).unwrap()).unwrap();
        let out = child.wait_with_output().unwrap();
        assert!(out.status.success(), "{words:?}");
        out.stdout
    };
    succeeds(dir, &["grey.png", "o.png", "gauss", "2", "sobel"]);
    let got = piped(&["-", "-", "--format", "png", "gauss", "2", "sobel", "--quiet"]);
    assert!(got == fs::read(dir.join("o.png")).unwrap());
    assert_eq!(text(&piped(&["-", "max", "7", "min"])), "-\t7\n");
}

#[test]
fn what_is_wrong_is_told_with_its_place() {
    let dir = pictures();
    let dir = dir.path();
    let ok = ["grey.png", "o.png"];
    let chain = |words: &[&'static str]| [&ok[..], words].concat();
    fails(dir, &chain(&["guass", "2"]), 2, &["`guass` is neither a file nor an operation; did you mean `gauss`?"]);
    fails(
        dir,
        &chain(&["sobel", "gauss"]),
        2,
        &["operation 2, `gauss`: SIGMA is missing (a number)", "gauss SIGMA [border=reflect101]"],
    );
    fails(dir, &chain(&["median", "0"]), 2, &["operation 1, `median 0`: SIZE: `0` is not one of 3, 5"]);
    fails(dir, &chain(&["gauss", "2", "wrap", "much"]), 2, &["too many arguments: unexpected `much`"]);
    fails(
        dir,
        &chain(&["luminance", "gauss", "-1"]),
        1,
        &["operation 2, `gauss -1`: sigma is -1; it must be positive"],
    );
    fails(
        dir,
        &chain(&["mul", "0.5"]),
        1,
        &["operation 1, `mul 0.5`: pixels are u8, which cannot hold 0.5; put `to_unit`"],
    );
    fails(dir, &chain(&["add", "-300"]), 1, &["cannot hold -300"]);
    fails(dir, &chain(&["otsu", "gauss", "2"]), 1, &["operation 2, `gauss 2`: it takes numbers, not a mask"]);
    fails(dir, &chain(&["not"]), 1, &["operation 1, `not`: it takes a mask, not numbers"]);
    fails(dir, &chain(&["channel", "1"]), 1, &["operation 1, `channel 1`: channel 1 requested, but there are only 1"]);
    fails(dir, &chain(&["crop", "0", "0", "99", "1"]), 1, &["operation 1, `crop 0 0 99 1`: 99x1 pixels from row 0"]);
    fails(dir, &chain(&["transpose", "sub", "@dark.png"]), 1, &["`sub @dark.png`: pictures differ in size"]);
    fails(dir, &chain(&["sub", "@none.png"]), 1, &["operation 1, `sub @none.png`: cannot read none.png"]);
    fails(dir, &["grey.png", "colour.png", "--out-dir", "d", "sub", "@none.png"], 1, &["cannot read none.png"]);
    fails(dir, &["none.png", "o.png", "sobel"], 1, &["none.png"]);
    fails(dir, &["grey.png", "no/o.png", "sobel"], 1, &["no/o.png"]);
    fails(dir, &["grey.png", "o.xyz", "sobel"], 1, &["xyz"]);
    fails(dir, &["help", "guass"], 2, &["there is no operation `guass`; did you mean `gauss`?"]);
    assert!(!dir.join("o.png").exists());
}

#[test]
fn help_lists_every_operation_and_tells_of_each() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (all, short) = (text(&run(dir, &["help"]).stdout), text(&run(dir, &["--help"]).stdout));
    assert_eq!(all, text(&run(dir, &["operations"]).stdout));
    assert!(
        short.contains("--out-dir") && short.contains("--threads") && short.contains("horus in/*.tif --out-dir out")
    );
    for (name, example) in horus_apps::command::examples() {
        assert!(all.lines().any(|l| l.trim_start().split(' ').next() == Some(name)), "{name}");
        assert!(short.split_whitespace().any(|word| word == name), "{name}");
        let one = run(dir, &["help", name]);
        assert!(one.status.success() && text(&one.stdout).contains(&example), "{name}");
    }
    assert!(text(&run(dir, &["help", "gauss"]).stdout).contains("border=reflect101"));
}

#[test]
fn the_page_of_the_documentation_is_that_of_the_table() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/command.md");
    let page = horus_apps::command::page();
    let there_is = fs::read_to_string(&path).unwrap_or_default();
    assert!(there_is == page, "docs/command.md should be:\n{page}");
}

/// The whole chain is one program.
#[test]
fn a_chain_is_fused() {
    let dir = pictures();
    let plan = run(dir.path(), &["grey.png", "o.npy", "luminance", "mul", "2", "exp", "gauss", "1", "--explain"]);
    let plan = text(&plan.stdout);
    assert!(plan.contains("in 1 kernels;"), "{plan}");
    let out =
        run(dir.path(), &[SMALL, "o.npy", "gauss", "1", "--mode", "naive", "--threads", "2", "-v", "--device", "cpu"]);
    assert!(text(&out.stdout).contains("ms: start"), "{}", text(&out.stdout));
}
