//! Chains compute the same as the library.

use std::path::Path;

use horus::prelude::*;

use super::{bits, bytes, fails, pictures, run, session, succeeds};
use crate::files::{SMALL, text};

/// Asserts that the chain writes `expected`, to the bit.
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

#[test]
fn chains_compute_what_the_library_computes() {
    let dir = pictures();
    let dir = dir.path();
    let mirrored = Border::Reflect101;
    writes(dir, "colour.png", "luminance gauss 2 sobel", |p| {
        let smooth = p.luminance().gauss(2.0);
        smooth.sobel(Axis::Columns).hypot(smooth.sobel(Axis::Rows))
    });
    writes(dir, "grey.png", "gauss 1.5 border=wrap", |p| {
        let (row, column) = filters::gauss(1.5, 0, 0);
        bytes(p).with_border(Border::Wrap).separable(&row, &column)
    });
    // Anti-clockwise, each pixel in its place.
    writes(dir, "grey.png", "rotate 90", |p| {
        let image = bytes(p);
        let from = image.to_array::<horus::ndarray::Ix2>().unwrap();
        Image::from_fn(image.session(), image.width(), image.height(), |y, x| from[[x, from.dim().1 - 1 - y]])
    });
    writes(dir, "grey.png", "rotate -90 rotate 450", bytes);
    writes(dir, "grey.png", "median 9", |p| bytes(p).with_border(mirrored).median((9, 9)));
    writes(dir, "grey.png", "add 10 median 5 absdiff @dark.png", |p| {
        let dark = bytes(p.luminance_of("dark.png", dir));
        (bytes(p) + 10).with_border(mirrored).median(5).absdiff(dark)
    });
    writes(dir, "colour.png", "to_unit mul 1,0.5,0.25 clamp 0.1 0.4", |p| {
        (p.to_unit() * [1.0, 0.5, 0.25]).clamp(0.1, 0.4)
    });
    writes(dir, "grey.png", "erode disc 2 dilate rectangle 3 5 border=0 top_hat 3", |p| {
        let image = bytes(p).erode(&Footprint::disc(2));
        let image = image.with_border(Border::Constant(0.0)).dilate(&Footprint::rectangle(3, 5));
        image.top_hat(&Footprint::rectangle(3, 3))
    });
    writes(dir, "colour.png", "rotate -30 bicubic 7 flip both transpose crop 1 2 20 10 pad 1 0 0 3 replicate", |p| {
        let turned = bytes(p).with_border(Border::Constant(7.0)).rotate(-30.0, Interpolation::Bicubic);
        turned
            .flip([Axis::Rows, Axis::Columns])
            .transpose()
            .crop(1, 2, 20, 10)
            .with_border(Border::Replicate)
            .pad(1, 0, 0, 3)
    });
    writes(dir, "grey.png", "correlate -1,0,1/-2,0,2/-1,0,1 replicate convert i32", |p| {
        let taps = Filter::dense(3, 3, [-1.0, 0.0, 1.0, -2.0, 0.0, 2.0, -1.0, 0.0, 1.0]);
        bytes(p).with_border(Border::Replicate).correlate(&taps).convert::<i32>()
    });
    writes(dir, "grey.png", "convert i16 mul -200 median 5 convert i8", |p| {
        (bytes(p).convert::<i16>() * -200).median(5).convert::<i8>()
    });
    writes(dir, "grey.png", "convert u32 mul 20000000 dilate disc 1", |p| {
        (bytes(p).convert::<u32>() * 20_000_000).dilate(&Footprint::disc(1))
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
    writes(dir, "grey.png", "scale 0.5", |p| bytes(p).resize(17, 21, Resampling::Triangle));
    writes(dir, "grey.png", "resize 40 25 lanczos", |p| bytes(p).resize(40, 25, Resampling::Lanczos));
}

/// Opens another picture in the session of this one.
trait OpenSibling {
    fn luminance_of(&self, name: &str, dir: &Path) -> AnyImage;
}

impl OpenSibling for AnyImage {
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

/// A filtered integer picture keeps its brightness.
#[test]
fn floats_on_the_scale_of_integers_are_saved_on_it() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let open = |name: &str| bytes(session.open(dir.join(name)).unwrap());
    succeeds(dir, &["grey.png", "o.png", "gauss", "1"]);
    let want = open("grey.png").gauss(1.0).convert::<u8>();
    // If 255 times a quotient by 255 ends in a half, it may round the other way.
    assert!(open("o.png").absdiff(&want).max_value().get().unwrap() <= 1);
    assert!(open("o.png").ne(&want).count().get().unwrap() < 10);
    succeeds(dir, &["wide.tif", "o16.png", "gauss", "1", "--depth", "16"]);
    let got = Image::<u16>::open(&session, dir.join("o16.png")).unwrap();
    let want = Image::<u16>::open(&session, dir.join("wide.tif")).unwrap().gauss(1.0).convert::<u16>();
    assert!(got.absdiff(want).max_value().get().unwrap() <= 1);
    // Exact if files hold floats, and stretched on request.
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
        // Each channel has its own threshold.
        let channels = session.open(dir.join(input)).unwrap().convert::<f32>().unstack(Axis::Channels);
        let masks: Vec<Vec<bool>> = channels.iter().map(|channel| otsu(&channel.to_vec().unwrap())).collect();
        let want: Vec<bool> = (0..masks[0].len()).flat_map(|at| masks.iter().map(move |mask| mask[at])).collect();
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
    // In a picture of one value no pixel is above the threshold.
    let lines = succeeds(dir, &["grey.png", "mul", "0", "otsu", "count"]);
    assert_eq!(lines, "grey.png\t0\n");
}

#[test]
fn gaussians_are_as_wide_as_pixels_are_large() {
    let dir = pictures();
    let dir = dir.path();
    let session = session();
    let grey = session.open(dir.join("grey.png")).unwrap().convert::<u8>();
    let size = horus::io::PixelSize::of([None, Some(0.5), Some(0.25)]);
    horus::io::with_pixel_size(&grey, size).save(dir.join("sized.tif")).unwrap();
    for sigma in ["1um", "1000nm", "sigma=0.001mm"] {
        let out = run(dir, &["sized.tif", "o.npy", "gauss", sigma]);
        assert!(out.status.success(), "{}", text(&out.stderr));
        let got = session.open(dir.join("o.npy")).unwrap().convert::<f32>();
        let ((row, _), (_, column)) = (filters::gauss(4.0, 0, 0), filters::gauss(2.0, 0, 0));
        assert!(bits(&got) == bits(&grey.separable(&row, &column)), "{sigma}");
    }
    let lacking = ["sigma is 1 micrometres, and the size of the picture's pixels is not known"];
    fails(dir, &["grey.png", "o.npy", "gauss", "1um"], 1, &lacking);
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

/// The whole chain is one program.
#[test]
fn a_chain_is_fused() {
    let dir = pictures();
    let plan = run(dir.path(), &["grey.png", "o.npy", "luminance", "mul", "2", "exp", "gauss", "1", "--explain"]);
    let plan = text(&plan.stdout);
    assert!(plan.contains(" 1 launches, "), "{plan}");
    let out =
        run(dir.path(), &[SMALL, "o.npy", "gauss", "1", "--mode", "naive", "--threads", "2", "-v", "--device", "cpu"]);
    assert!(text(&out.stdout).contains("ms: start"), "{}", text(&out.stdout));
}
