//! Alpha, depth and clipping, which no operation handles itself.

use std::fs;

use horus::prelude::*;

use super::{bytes, fails, pictures, run, session, succeeds};
use crate::files::text;

/// A picture of three colours and alpha.
fn with_alpha(dir: &std::path::Path) -> Image<u8> {
    let session = session();
    let colours = bytes(session.open(dir.join("colour.png")).unwrap());
    let alpha = Image::from_fn(&session, 33, 41, |y, x| (255 - 3 * y - 2 * x) as u8);
    let picture = Image::stack(&session, [&colours, &alpha], Axis::Channels);
    picture.save(dir.join("alpha.png")).unwrap();
    Image::stack(&session, [&colours.channel(0), &alpha], Axis::Channels).save(dir.join("grey_alpha.png")).unwrap();
    picture
}

fn open(dir: &std::path::Path, name: &str) -> Image<u8> {
    bytes(session().open(dir.join(name)).unwrap())
}

#[track_caller]
fn same(a: &Image<u8>, b: &Image<u8>) {
    assert_eq!((a.shape(), a.to_vec().unwrap()), (b.shape(), b.to_vec().unwrap()));
}

#[test]
fn operations_leave_alpha_aside_and_geometry_moves_it() {
    let dir = pictures();
    let dir = dir.path();
    let alpha = with_alpha(dir).channel(3);
    // The result with alpha equals the result without, and alpha is unchanged or moved with its
    // pixels.
    for (chain, moved) in [
        ("invert", alpha.clone()),
        ("median 5", alpha.clone()),
        ("gauss 1.5 mul 0.5", alpha.clone()),
        ("luminance sobel", alpha.clone()),
        ("add @alpha.png absdiff @in", alpha.clone()),
        ("flip both invert", alpha.flip([Axis::Rows, Axis::Columns])),
        ("crop 2 3 8 9", alpha.crop(2, 3, 8, 9)),
        ("rotate 30", alpha.rotate(30.0, Interpolation::Bilinear)),
        ("resize 50% nearest", alpha.resize(17, 21, Interpolation::Nearest)),
    ] {
        let words: Vec<&str> = chain.split(' ').chain(["--clipping", "allow"]).collect();
        succeeds(dir, &[&["alpha.png", "with.png"], &words[..]].concat());
        let plain: Vec<String> = words.iter().map(|w| w.replace("@alpha.png", "@colour.png")).collect();
        let plain: Vec<&str> = plain.iter().map(String::as_str).collect();
        succeeds(dir, &[&["colour.png", "without.png"], &plain[..]].concat());
        let (with, without) = (open(dir, "with.png"), open(dir, "without.png"));
        assert_eq!(with.channels(), without.channels() + 1, "{chain}");
        let colours: Vec<_> = (0..without.channels()).map(|i| with.channel(i)).collect();
        same(&Image::stack(with.session(), &colours, Axis::Channels), &without);
        same(&with.channel(without.channels()), &moved);
    }
    succeeds(dir, &["grey_alpha.png", "o.png", "invert"]);
    same(&open(dir, "o.png").channel(1), &alpha);
    // 8 bits of alpha with colours of 16.
    succeeds(dir, &["alpha.png", "o.png", "convert", "u16", "mul", "257"]);
    let wide = Image::<u16>::open(&session(), dir.join("o.png")).unwrap().channel(3);
    assert_eq!(wide.to_vec().unwrap(), (alpha.convert::<u16>() * 257).to_vec().unwrap());
}

#[test]
fn alpha_is_dropped_with_a_word_or_is_a_channel_on_demand() {
    let dir = pictures();
    let dir = dir.path();
    let picture = with_alpha(dir);
    let numbers = |words: &[&str]| succeeds(dir, words).split_once('\t').unwrap().1.trim().to_owned();
    let mean = open(dir, "colour.png").mean().get().unwrap();
    assert_eq!(numbers(&["alpha.png", "mean"]), mean.to_string());
    assert_eq!(numbers(&["alpha.png", "mean", "--alpha", "channel"]), picture.mean().get().unwrap().to_string());
    for (words, why, channels) in [
        (&["alpha.png", "o.png", "otsu"][..], "the result is a mask", 3),
        (&["alpha.png", "o.jpg"], "a jpg file has none", 3),
        (&["alpha.png", "o.npy", "invert"], "a npy file has none", 3),
        (&["alpha.png", "o.png", "tiles", "8", "8", "max"], "the result has 6 x 5 pixels, alpha 41 x 33", 3),
    ] {
        let said = text(&run(dir, words).stderr);
        assert!(said.contains("alpha is not saved: ") && said.contains(why), "{words:?}: {said}");
        assert_eq!(session().open(dir.join(words[1])).unwrap().shape().channels, channels, "{words:?}");
    }
    succeeds(dir, &["alpha.png", "o.png", "invert", "--alpha", "drop"]);
    assert_eq!(open(dir, "o.png").channels(), 3);
    succeeds(dir, &["alpha.png", "o.png", "invert", "--alpha", "channel"]);
    same(&open(dir, "o.png").channel(3), &picture.channel(3).absdiff(255));
    // TIFF files have alpha beside any number of channels.
    succeeds(dir, &["alpha.png", "o.tif", "channel", "0"]);
    same(&open(dir, "o.tif").channel(1), &picture.channel(3));
    succeeds(dir, &["o.tif", "o.png", "invert"]);
    same(&open(dir, "o.png").channel(1), &picture.channel(3));
    // Bands that are not said to be alpha are channels, as arrays have them.
    for bands in [&picture, &Image::stack(picture.session(), [picture.channel(0), picture.channel(3)], Axis::Channels)]
    {
        bands.save(dir.join("bands.tif")).unwrap();
        succeeds(dir, &["bands.tif", "o.tif", "median", "3"]);
        same(&open(dir, "o.tif"), &bands.median(3));
        let channels = bands.channels();
        let told = format!(
            "operation 1, `luminance`: an image of {channels} channels, none of them known to be alpha, has no luminance: take one of them (`channel 0`)"
        );
        fails(dir, &["bands.tif", "o.png", "luminance"], 1, &[&told]);
    }
    picture.save(dir.join("four.npy")).unwrap();
    assert_eq!(numbers(&["four.npy", "mean"]), picture.mean().get().unwrap().to_string());
    succeeds(dir, &["four.npy", "o.npy", "invert"]);
    same(&open(dir, "o.npy"), &picture.absdiff(255));
    // Also in a series.
    succeeds(dir, &["alpha.png", "grey_alpha.png", "--out-dir", "d", "invert"]);
    same(&open(dir, "d/alpha.png").channel(3), &picture.channel(3));
    same(&open(dir, "d/grey_alpha.png").channel(1), &picture.channel(3));
}

#[test]
fn floats_keep_the_depth_of_the_integers_that_they_come_from() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let wide = Image::<u16>::open(&session, dir.join("wide.tif")).unwrap();
    wide.save(dir.join("wide.png")).unwrap();
    let dtype = |name: &str| session.open(dir.join(name)).unwrap().dtype();
    for (input, chain, output, depth) in [
        ("wide.png", "gauss 1", "o.png", DType::U16),
        ("wide.png", "luminance gauss 1 mul 0.5", "o.pgm", DType::U16),
        ("wide.png", "luminance otsu", "o.png", DType::U8),
        ("wide.png", "gauss 1", "o.jpg", DType::U8),
        ("wide.png", "gauss 1", "o.tif", DType::F32),
        ("wide.png", "gauss 1 --depth 8", "o.png", DType::U8),
        ("wide.png", "div 257 convert u8 gauss 1", "o.png", DType::U8),
        ("grey.png", "gauss 1", "o.png", DType::U8),
        ("float.npy", "abs mul 0.1", "o.png", DType::U8),
    ] {
        let words: Vec<&str> = [input, output].into_iter().chain(chain.split(' ')).collect();
        succeeds(dir, &words);
        assert_eq!(dtype(output), depth, "{words:?}");
    }
    succeeds(dir, &["wide.png", "o.png", "gauss", "1"]);
    let got = Image::<u16>::open(&session, dir.join("o.png")).unwrap();
    assert!(got.absdiff(wide.gauss(1.0).convert::<u16>()).max_value().get().unwrap() <= 1);
    succeeds(dir, &["wide.png", "grey.png", "--out-dir", "d", "gauss", "1"]);
    assert_eq!((dtype("d/wide.png"), dtype("d/grey.png")), (DType::U16, DType::U8));
}

#[test]
fn what_is_clipped_is_told_or_refused() {
    let dir = pictures();
    let dir = dir.path();
    let wide = Image::<u16>::open(&session(), dir.join("wide.tif")).unwrap().to_vec().unwrap();
    let lost = wide.iter().filter(|v| **v > 255).count();
    let words = ["wide.tif", "x.png", "--depth", "8"];
    let said = text(&run(dir, &words).stderr);
    let what =
        format!("x.png: {lost} of 1353 values lie outside 0..=255 (99.5 %) and were clipped; --scaling unit scales");
    assert!(said.contains(&what) && said.contains("0..=65535") && !said.contains("Scaling::"), "{said}");
    fs::remove_file(dir.join("x.png")).unwrap();
    let refused = format!("cannot write x.png: {lost} of 1353 values lie outside 0..=255");
    fails(dir, &[&words[..], &["--clipping", "error"]].concat(), 1, &[&refused, "--clipping allow clips"]);
    let series = run(dir, &["wide.tif", "--out-dir", "d", "--depth", "8", "--clipping", "error"]);
    assert!(text(&series.stderr).contains("cannot write d/wide.png: 1346 of 1353 values"), "{}", text(&series.stderr));
    assert!(!dir.join("x.png").exists() && !dir.join("d/wide.png").exists());
    for allowed in
        [&["--clipping", "allow"][..], &["--scaling", "unit"], &["--scaling", "range", "--clipping", "error"]]
    {
        let said = text(&run(dir, &[&words[..], allowed].concat()).stderr);
        assert!(!said.contains("x.png"), "{allowed:?}: {said}");
    }
    let said = text(&run(dir, &["grey.png", "x.png", "sobel"]).stderr);
    assert!(said.contains("values lie outside 0..=1 ("), "{said}");
    fails(dir, &["wide.tif", "x.jpg"], 1, &["save as png, tif, pgm, npy, or ask for --depth 8 with --scaling unit"]);
}
