//! Completeness of the facade: no signature requires another crate, and hidden parts are not
//! mentioned. The algebra stays small.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use horus::prelude::*;
use horus_core::ops::pixel::TABLE;

/// A program that takes everything from `horus`, including the types of crates in its signatures.
#[test]
fn signatures_need_no_other_crate() -> Result<()> {
    let session =
        Session::builder().device("cpu").communicator(std::sync::Arc::new(horus::comm::SingleRankComm)).build()?;
    let array = horus::ndarray::Array2::from_shape_fn((3, 4), |(y, x)| (4 * y + x) as f32);
    let image = Image::from_array(&session, array.view());
    let back: horus::ndarray::Array2<f32> = (&image + 1.0).to_array()?;
    assert_eq!(back, array + 1.0);
    let picture = horus::io::Picture::read(b"P5 2 1 255 ab", &OpenOptions::default())?;
    assert_eq!(AnyImage::from_picture(&session, picture).dtype(), DType::U8);
    let squared = image.square();
    assert_eq!(squared.pixel((1, 1))?, 25.0);
    let wrong = image.gauss(-1.0).check();
    assert!(matches!(wrong, Err(horus::error::Error::Parameter { .. })));
    Ok(())
}

/// The most public methods of an image.
const METHODS: usize = 137;

/// The names of public methods of images in the files at or under `path`, without hidden ones: `cargo public-api`, which lists
/// them in `docs/api`, needs a nightly toolchain.
fn methods(path: &Path) -> BTreeSet<String> {
    if path.is_dir() {
        let files = std::fs::read_dir(path).expect("a folder").map(|f| f.expect("a file").path());
        return files.flat_map(|file| methods(&file)).collect();
    }
    let text = std::fs::read_to_string(path).expect("a file");
    let (mut found, mut inside, mut hidden) = (BTreeSet::new(), false, false);
    for line in text.lines() {
        let code = line.trim_start();
        let name = |rest: &str| rest.split(|c: char| !(c.is_alphanumeric() || c == '_')).next().map(str::to_owned);
        if code.starts_with("impl") {
            inside = code.contains(" Image<") && !code.contains(" for ");
        } else if line.starts_with('}') {
            inside = false;
        } else if code.starts_with("#[doc(hidden)]") {
            hidden = true;
        } else if let Some(rest) = code.strip_prefix("pub fn ") {
            found.extend(name(rest).filter(|name| inside && !hidden && !name.is_empty()));
            hidden = false;
        } else if ["pub ", "fn ", "type ", "mod "].iter().any(|item| code.starts_with(item)) {
            hidden = false;
        }
    }
    found
}

#[test]
fn the_algebra_is_small() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("horus-core/src");
    let mut found: BTreeSet<String> = ["image", "io"].iter().flat_map(|folder| methods(&core.join(folder))).collect();
    // A macro makes them.
    found.extend(TABLE.iter().map(|row| row.described.method.to_owned()).filter(|name| !name.is_empty()));
    for known in ["min", "abs", "lt", "gauss", "lookup", "save", "rotate", "label", "over", "height"] {
        assert!(found.contains(known), "{known} is not counted: {found:?}");
    }
    assert!(found.len() <= METHODS, "an image has {} methods; the limit is {METHODS}: {found:?}", found.len());
}

/// Generic code names its bounds.
#[test]
fn bounds_have_names() -> Result<()> {
    fn brighter<T: horus::types::Element + Pixel>(image: &Image<T>, by: impl horus::types::Argument<T>) -> Image<T> {
        image + by
    }
    let session = Session::builder().device("cpu").build()?;
    let image = Image::<u8>::constant(&session, (2, 2), 250);
    assert_eq!(brighter(&image, 10).to_vec()?, [255; 4]);
    Ok(())
}

/// The first steps need no prelude.
#[test]
fn the_first_names_are_at_the_root() -> horus::Result<()> {
    let session = horus::Session::builder().device("cpu").build()?;
    let image: horus::Image<f32> = horus::samples::worms(&session, 8, 8);
    let any = horus::AnyImage::F32(image);
    assert_eq!(any.shape().to_string(), "8x8");
    Ok(())
}

/// The process examined by [`without_a_logger_warnings_go_to_standard_error`]. Tests install no
/// logger here.
#[test]
fn a_program_of_mistakes() -> Result<()> {
    let Some(folder) = std::env::var_os("SURFACE_FOLDER").map(PathBuf::from) else { return Ok(()) };
    let session = Session::builder().device("cpu").build()?;
    drop(samples::worms(&session, 8, 8).gauss(-1.0));
    (samples::worms(&session, 8, 8) * 9.0).save(folder.join("bright.png"))?;
    Image::from_volume_fn(&session, 3, 4, 5, |z, y, x| (z + y + x) as u8).save(folder.join("pages.tif"))?;
    let _ = session.open(folder.join("pages.tif"))?;
    // EXIF data before the picture of a JPEG file: a directory of one entry, the maker of a camera.
    let noted = folder.join("noted.jpg");
    samples::worms(&session, 8, 8).save(&noted)?;
    let jpeg = std::fs::read(&noted).expect("a file");
    let exif = b"\xff\xe1\0\x22Exif\0\0II*\0\x08\0\0\0\x01\0\x0f\x01\x02\0\x04\0\0\0Own\0\0\0\0\0";
    std::fs::write(&noted, [&jpeg[..2], exif, &jpeg[2..]].concat()).expect("a file");
    session.open(&noted)?.to_unit().save(folder.join("again.pgm"))?;
    Ok(())
}

#[test]
fn without_a_logger_warnings_go_to_standard_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut program = Command::new(std::env::current_exe().expect("this program"));
    program.args(["--exact", "a_program_of_mistakes", "--nocapture"]).env("SURFACE_FOLDER", folder.path());
    let told = String::from_utf8(program.output().expect("it runs").stderr).expect("text");
    for warning in [
        "an error was discarded with its image: gauss: sigma is -1",
        "bright.png: ",
        "pages.tif has 3 pages: ",
        "again.pgm: its EXIF data are not stored: only JPEG, PNG, TIFF and WebP files have them",
    ] {
        let line =
            told.lines().find(|l| l.contains(warning)).unwrap_or_else(|| panic!("{warning} is not told:\n{told}"));
        assert!(line.starts_with("horus: warning: "), "{line}");
    }
    let place = told.lines().find(|l| l.contains("sigma is -1")).expect("the line");
    assert!(place.contains("(at tests/surface.rs:"), "{place}");
}

/// The compiler's message for an invalid program.
fn compiled(body: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("wrong.rs");
    let program = format!(
        "#![allow(dead_code)]\nuse horus::prelude::*;\nfn program(session: &Session, image: Image<f32>, mask: Image<bool>) -> Result<()> {{\n{body}\nOk(())\n}}\nfn main() {{}}\n"
    );
    std::fs::write(&file, program).expect("a file");
    let built = std::env::current_exe().expect("this program").with_file_name("");
    let libraries = std::fs::read_dir(&built).expect("the folder of this program").flatten();
    let ours = |name: &str| name.starts_with("libhorus-") && name.ends_with(".rlib");
    let libraries = libraries.filter(|entry| entry.file_name().to_str().is_some_and(ours));
    let newest = libraries.max_by_key(|entry| entry.metadata().and_then(|m| m.modified()).ok()).expect("the library");
    let mut rustc = Command::new(std::env::var_os("RUSTC").unwrap_or("rustc".into()));
    rustc.args(["--edition", "2024", "--emit", "metadata", "--color", "never"]).arg(&file).current_dir(&folder);
    rustc.arg("--extern").arg(format!("horus={}", newest.path().display())).arg("-L").arg(&built);
    String::from_utf8(rustc.output().expect("a compiler").stderr).expect("text")
}

#[test]
fn the_compiler_explains_frequent_mistakes() {
    let right = compiled("println!(\"{}\", (image + 1.0).mean().get()?); session.evaluate()?; drop(mask);");
    assert_eq!(right, "");
    for (wrong, told) in [
        ("image + 1;", "is no operand of an image of `f32`"),
        ("&image * image.convert::<f64>();", "Image<f64>` is no operand of an image of `f32`"),
        ("let by: f64 = 2.0; image * by;", "scalars by `as f32`"),
        ("image.convert::<u8>() * 0.5;", "convert the image: `image.convert::<f32>() * 0.5`"),
        ("image.over(0);", "`over` takes an axis (`Axis::Rows`)"),
        ("image.gauss(2.0);", "it is computed when it is read or saved"),
        ("image - mask;", "Image<bool>` is no operand of an image of `f32`"),
        // The compiler has its own wording for missing operators and methods.
        ("mask + 1.0;", "Image<bool>`"),
        ("mask.sum();", "Pixel`"),
        ("println!(\"{}\", image.mean());", "Value<f64>` doesn't implement `std::fmt::Display`"),
    ] {
        let said = compiled(wrong);
        assert!(said.contains(told), "{wrong} says\n{said}");
    }
}
