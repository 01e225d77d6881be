//! Composite operations, against scikit-image and scipy (`tests/goldens/operations.py`).

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::filters::Footprint;
use horus_core::image::{Colour, Image, Rank};
use horus_core::ops::components::Connectivity;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::reconstruction::Reconstruction;
use horus_core::ops::resize::Resampling;
use horus_core::ops::sampling::Sampling;
use horus_core::plan::Mode;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border};
use ndarray::{Array2, Array3, Ix2, Ix3};

fn path(name: &str) -> String {
    format!("{}/../tests/goldens/operations/{name}.npy", env!("CARGO_MANIFEST_DIR"))
}

fn plane<T: ndarray_npy::ReadableElement>(name: &str) -> Array2<T> {
    ndarray_npy::read_npy(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn colours<T: ndarray_npy::ReadableElement>(name: &str) -> Array3<T> {
    ndarray_npy::read_npy(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

#[track_caller]
fn assert_close<'a>(ours: impl IntoIterator<Item = &'a f32>, golden: impl IntoIterator<Item = &'a f64>, most: f64) {
    let pairs = ours.into_iter().zip(golden);
    let worst = pairs.map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max);
    assert!(worst <= most, "differs by {worst:e}, {most:e} is allowed");
}

#[test]
fn colours_are_those_of_scikit_image_and_come_back() {
    let s = session();
    let rgb = colours::<f32>("rgb");
    let image = Image::from_array(&s, rgb.view());
    // f32 rounds at 6e-8; Lab multiplies by up to 500 and takes cube roots of values near 0.
    assert_close(&image.convert_colour(Colour::Rgb, Colour::Hsv).to_array::<Ix3>().unwrap(), &colours("hsv"), 1e-6);
    assert_close(&image.convert_colour(Colour::Rgb, Colour::YCbCr).to_array::<Ix3>().unwrap(), &colours("ycbcr"), 1e-6);
    assert_close(&image.convert_colour(Colour::Rgb, Colour::Lab).to_array::<Ix3>().unwrap(), &colours("lab"), 2e-3);
    let want = rgb.mapv(f64::from);
    assert_close(
        &image
            .convert_colour(Colour::Rgb, Colour::Hsv)
            .convert_colour(Colour::Hsv, Colour::Rgb)
            .to_array::<Ix3>()
            .unwrap(),
        &want,
        1e-6,
    );
    assert_close(
        &image
            .convert_colour(Colour::Rgb, Colour::YCbCr)
            .convert_colour(Colour::YCbCr, Colour::Rgb)
            .to_array::<Ix3>()
            .unwrap(),
        &want,
        1e-6,
    );
    // The inverse matrix has seven digits.
    assert_close(
        &image
            .convert_colour(Colour::Rgb, Colour::Lab)
            .convert_colour(Colour::Lab, Colour::Rgb)
            .to_array::<Ix3>()
            .unwrap(),
        &want,
        1e-4,
    );
    let two = Image::stack(&s, [image.channel(0), image.channel(1)], Axis::Channels);
    let told = two.convert_colour(Colour::Rgb, Colour::Lab).check().unwrap_err().to_string();
    assert!(told.starts_with("convert_colour: the image has 2 channels; it must have 3 (at "), "{told}");
}

#[test]
fn sizes_change_as_in_scikit_image() {
    let s = session();
    let grey = Image::from_array(&s, plane::<f32>("grey").view());
    for (height, width) in [(13, 20), (40, 21), (17, 80)] {
        let ours = grey.resize(height, width, Resampling::Gaussian).to_array::<Ix2>().unwrap();
        let golden = plane::<f64>(&format!("resized_{height}x{width}"));
        // Edges are sampled by other rules: the outermost pixels are excluded.
        let inside = ndarray::s![1..height - 1, 1..width - 1];
        assert_close(ours.slice(inside), golden.slice(inside), 2e-6);
    }
}

#[test]
fn kernels_are_those_of_pillow_and_areas_those_of_opencv() {
    let s = session();
    let grey = Image::from_array(&s, plane::<f32>("grey").view());
    for how in Resampling::ALL.into_iter().filter(|how| *how != Resampling::Gaussian) {
        for (height, width) in [(13, 20), (95, 77), (17, 80)] {
            // OpenCV's areas become interpolation where one axis grows and the other shrinks.
            if how == Resampling::Area && (height, width) == (17, 80) {
                continue;
            }
            let ours = grey.resize(height, width, how).to_array::<Ix2>().unwrap();
            let golden = plane::<f32>(&format!("resized_{}_{height}x{width}", how.name())).mapv(f64::from);
            // Sums of up to 24 x 24 pixels below 1 in f32, and Pillow's rounding between the passes.
            assert_close(&ours, &golden, 1e-6);
        }
    }
}

#[test]
fn resized_integers_are_rounded_sums_and_saturate() {
    let s = session();
    let steps = Image::from_slice(&s, (1, 8), &[0u8, 0, 0, 0, 255, 255, 255, 255]);
    let ringing = steps.convert::<f32>().resize(1, 24, Resampling::Lanczos).to_vec().unwrap();
    assert!(ringing.iter().any(|v| *v < -5.0) && ringing.iter().any(|v| *v > 260.0));
    let want: Vec<u8> = ringing.iter().map(|v| v.round_ties_even().clamp(0.0, 255.0) as u8).collect();
    assert_eq!(steps.resize(1, 24, Resampling::Lanczos).to_vec().unwrap(), want);
    let wide = steps.convert::<i32>() * 8_000_000;
    // Beyond the 24 bits of f32.
    assert_eq!(wide.resize(1, 1, Resampling::Area).to_vec().unwrap(), [1_020_000_000]);
    for how in Resampling::ALL {
        let same = steps.resize(1, 8, how);
        assert_eq!(same.to_vec().unwrap(), steps.to_vec().unwrap(), "{how:?}");
        let one = Image::constant(&s, (1, 1), 7u16).resize(3, 5, how);
        assert_eq!(one.to_vec().unwrap(), [7; 15], "{how:?}");
        assert!(steps.resize(0, 8, how).check().is_err() && steps.resize(1, usize::MAX, how).check().is_err());
    }
}

#[test]
fn a_crop_of_a_resized_image_computes_only_its_part() {
    let s = session();
    let image = Image::from_fn(&s, 90, 70, |y, x| ((y * 31 + x * 17) % 101) as f32);
    for how in Resampling::ALL {
        for (height, width) in [(200, 33), (41, 170)] {
            let resized = image.resize(height, width, how);
            let part = image.resize(height, width, how).crop(height / 3, width / 4, 11, 7).to_vec().unwrap();
            let whole = resized.to_array::<Ix2>().unwrap();
            let want = whole.slice(ndarray::s![height / 3..height / 3 + 11, width / 4..width / 4 + 7]);
            assert!(want.iter().eq(&part), "{how:?} {height}x{width}");
        }
    }
}

#[test]
fn morphology_is_that_of_scipy_for_any_footprint() {
    let s = session();
    let grey = Image::from_array(&s, plane::<f32>("grey").view());
    let odd = Footprint::from_mask(3, 3, &[true, true, false, false, true, false, false, false, false]);
    for (name, footprint) in [("disc", Footprint::disc(2)), ("odd", odd)] {
        let exact = |image: Image<f32>, golden: &str| {
            assert_eq!(image.to_array().unwrap(), plane::<f32>(&format!("{golden}_{name}")), "{golden} {name}");
        };
        exact(grey.opening(&footprint), "opening");
        exact(grey.closing(&footprint), "closing");
        exact(grey.morphological_gradient(&footprint), "gradient");
        exact(grey.top_hat(&footprint), "top_hat");
    }
}

/// The same numbers as in `tests/goldens/operations.py`.
fn noise(z: usize, y: usize, x: usize) -> u64 {
    (((z * 31 + y) * 40 + x) as u64 * 2_654_435_761 % (1 << 32)) >> 16
}

fn volume_of<T: ndarray_npy::ReadableElement + Clone>(name: &str) -> Vec<T> {
    let array: ndarray::ArrayD<T> = ndarray_npy::read_npy(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"));
    array.iter().cloned().collect()
}

/// A session of each kind of evaluation: whole, every operation by itself, and in strips of three
/// ranks.
fn everywhere<R: PartialEq + std::fmt::Debug + Send>(compute: impl Fn(&Session) -> R + Sync) -> R {
    let alone = compute(&session());
    let cpu = || Box::new(CpuDevice::new(Some(1)).unwrap());
    assert_eq!(compute(&Session::on(cpu()).mode(Mode::Naive).build().unwrap()), alone, "naive");
    let all = ThreadComm::run(3, |comm| compute(&Session::on(cpu()).communicator(Arc::new(comm)).build().unwrap()));
    assert!(all.iter().all(|one| *one == alone), "three ranks");
    alone
}

#[test]
fn labels_are_those_of_scipy() {
    let kinds = [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS];
    for (kind, how) in (1..).zip(kinds) {
        if kind < 3 {
            let labels = everywhere(|s| {
                let image = Image::from_fn(s, 31, 40, |y, x| (noise(0, y, x) % 100) as u8).lt(55);
                image.label(how).to_vec().unwrap()
            });
            let golden: Vec<i16> = volume_of(&format!("labels_image_{kind}"));
            assert!(labels.iter().zip(golden).all(|(a, b)| *a == i32::from(b)), "{how:?}");
        }
        let labels = everywhere(|s| {
            let volume = Image::from_volume_fn(s, 6, 31, 40, |z, y, x| (noise(z, y, x) % 100) as u8).lt(55);
            (0..6).flat_map(|z| volume.label(how).slice(z).to_vec().unwrap()).collect::<Vec<_>>()
        });
        let golden: Vec<i16> = volume_of(&format!("labels_volume_{kind}"));
        assert!(labels.iter().zip(golden).all(|(a, b)| *a == i32::from(b)), "{how:?} of the volume");
    }
}

#[test]
fn labels_of_what_is_there_and_of_part_of_it() {
    let s = session();
    let image = Image::from_slice(&s, (2, 4), &[f32::NAN, 0.0, -1.0, -0.0, 0.0, 3.0, 0.0, f32::MIN_POSITIVE]);
    let labels = image.label(Connectivity::default());
    assert_eq!(labels.to_vec().unwrap(), [1, 0, 2, 0, 0, 3, 0, 4]);
    // A crop is a part of the labels of the whole.
    assert_eq!(labels.crop(1, 1, 1, 3).to_vec().unwrap(), [3, 0, 4]);
    assert_eq!(Image::<bool>::constant(&s, (3, 3), false).label(Connectivity::CORNERS).max_value().get().unwrap(), 0);
    let two = Image::stack(&s, [&image, &image], Axis::Channels);
    let told = two.label(Connectivity::FACES).check().unwrap_err().to_string();
    assert!(told.starts_with("label: the image has 2 channels; take one (`channel`) (at "), "{told}");
    // Made by the program, so that there are no regions to read.
    let vast = Image::<u8>::constant(&s, (1 << 16, 1 << 15), 1).label(Connectivity::FACES);
    let told = vast.max_value().get().unwrap_err().to_string();
    assert!(told.contains("one that is not read from a file has at most 2147483647 pixels"), "{told}");
}

/// Distances of SciPy, with its bits, and its nearest pixels.
#[test]
fn distances_are_those_of_scipy() {
    let found = everywhere(|s| {
        let away = Image::from_fn(s, 31, 40, |y, x| (noise(0, y, x) % 100) as u8).lt(97).distances();
        let spaced = away.clone().spaced(0.7, 1.9);
        let floats = [away.euclidean::<f64>(), spaced.euclidean::<f64>()].map(|image| image.to_vec().unwrap());
        let [rows, columns] = away.nearest();
        (floats, [away.taxicab(), away.chessboard(), rows, columns].map(|image| image.to_vec().unwrap()))
    });
    assert_eq!(found.0, ["distances", "distances_spaced"].map(volume_of::<f64>));
    let golden = |name: &str| volume_of::<i16>(name).into_iter().map(i32::from).collect::<Vec<_>>();
    let names = ["distances_taxicab", "distances_chessboard", "distances_rows", "distances_columns"];
    assert_eq!(found.1, names.map(golden));
}

/// Ranks across levels of SciPy, of more pixels than are compared pairwise.
#[test]
fn ranks_across_levels_are_those_of_scipy() {
    let ball = |z: i32| {
        let inside = |y: i32, x: i32| 2 * z * z + y * y + x * x <= 5;
        let mask: Vec<bool> = (-2..3).flat_map(|y| (-2..3).map(move |x| inside(y, x))).collect();
        Footprint::from_mask(5, 5, &mask)
    };
    let ball = [-1, 0, 1].map(ball);
    let found = everywhere(|s| {
        let bytes = Image::from_volume_fn(s, 6, 31, 40, |z, y, x| (noise(z, y, x) % 251) as u8);
        let floats = Image::from_volume_fn(s, 6, 31, 40, |z, y, x| ((noise(z, y, x) % 997) as f64 / 31.0) as f32);
        let median = bytes.with_border(Border::Reflect101).median(5).to_vec().unwrap();
        let rank = floats.with_border(Border::Wrap).rank(&ball, Rank::Place(20)).to_vec().unwrap();
        let part = floats.with_border(Border::Constant(2.5)).rank((7, 3, 5), Rank::Percent(30.0)).to_vec().unwrap();
        (median, [rank, part])
    });
    assert_eq!(found.0, volume_of::<u8>("volume_median_5"));
    assert_eq!(found.1, ["volume_rank_ball", "volume_percentile"].map(volume_of::<f32>));
    let told = Image::<u8>::constant(&session(), (4, 4, 4), 1).median((2, 3, 3)).check().unwrap_err().to_string();
    assert!(told.starts_with("median: the footprint has 2 levels; their number must be odd (at "), "{told}");
}

/// Distances in volumes of SciPy, with its bits, and its nearest pixels.
#[test]
fn distances_in_volumes_are_those_of_scipy() {
    let found = everywhere(|s| {
        let away = Image::from_volume_fn(s, 6, 31, 40, |z, y, x| (noise(z, y, x) % 100) as u8).lt(97).distances();
        let spaced = away.clone().spaced(0.7, 1.9).spaced_levels(3.3);
        let floats = [away.euclidean::<f64>(), spaced.euclidean::<f64>()].map(|image| image.to_vec().unwrap());
        let [rows, columns] = away.nearest();
        let steps = [away.taxicab(), away.chessboard(), away.nearest_level(), rows, columns];
        (floats, steps.map(|image| image.to_vec().unwrap()))
    });
    assert_eq!(found.0, ["volume_distances", "volume_distances_spaced"].map(volume_of::<f64>));
    let golden = |name: &str| volume_of::<i16>(name).into_iter().map(i32::from).collect::<Vec<_>>();
    let names = ["taxicab", "chessboard", "levels", "rows", "columns"];
    assert_eq!(found.1, names.map(|name| golden(&format!("volume_distances_{name}"))));
}

/// Nothing is far from an image without background; strips of five ranks are thinner than a row.
#[test]
fn distances_of_little() {
    let of = |s: &Session, pixels: &[u8], size: (usize, usize)| {
        let away = Image::from_slice(s, size, pixels).distances();
        let [rows, columns] = away.nearest();
        let steps = [away.taxicab(), away.chessboard(), rows, columns].map(|image| image.to_vec().unwrap());
        (away.euclidean::<f32>().to_vec().unwrap(), steps)
    };
    let far = f32::INFINITY;
    let all =
        |s: &Session| [of(s, &[1], (1, 1)), of(s, &[0], (1, 1)), of(s, &[3, 0, 1, 1], (1, 4)), of(s, &[2, 0], (2, 1))];
    let found = all(&session());
    assert_eq!(found[0], (vec![far], [-1, -1, -1, -1].map(|v| vec![v])));
    assert_eq!(found[1], (vec![0.0], [0, 0, 0, 0].map(|v| vec![v])));
    let row = [vec![1, 0, 1, 2], vec![1, 0, 1, 2], vec![0; 4], vec![1; 4]];
    assert_eq!(found[2], (vec![1.0, 0.0, 1.0, 2.0], row));
    assert_eq!(found[3], (vec![1.0, 0.0], [vec![1, 0], vec![1, 0], vec![1, 1], vec![0, 0]]));
    for ranks in 2..=5 {
        let on = |comm| {
            let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
            all(&Session::on(cpu).communicator(Arc::new(comm)).build().unwrap())
        };
        assert!(ThreadComm::run(ranks, on).iter().all(|one| *one == found), "{ranks} ranks");
    }
    let s = session();
    let told = Image::<u8>::constant(&s, (2, 2), 1).distances().spaced(0.0, 1.0).euclidean::<f32>().check();
    let told = told.unwrap_err().to_string();
    assert!(told.starts_with("distances: pixels of 0 x 1; sizes must be positive and finite (at "), "{told}");
    let ones = Image::from_volume_fn(&s, 3, 2, 2, |_, _, _| 1u8).distances();
    assert_eq!(ones.nearest_level().to_vec().unwrap(), [-1; 12]);
    assert_eq!(ones.euclidean::<f32>().to_vec().unwrap(), [far; 12]);
    let told = ones.spaced_levels(-1.0).euclidean::<f32>().check().unwrap_err().to_string();
    assert!(told.starts_with("distances: pixels of -1 x 1 x 1; sizes must be positive and finite (at "), "{told}");
    let vast = Image::<u8>::constant(&s, (1 << 15, 1 << 15, 1), 1).distances().taxicab().check();
    let told = vast.unwrap_err().to_string();
    assert!(told.starts_with("distances: 32768 levels of 32768 rows are too many (at "), "{told}");
}

/// By `skimage.morphology.reconstruction` 0.26: with 4 and 8 neighbours, by dilation and, on
/// complements to 9, by erosion.
#[test]
fn reconstructions_are_those_of_scikit_image() {
    const MASK: [u8; 48] = [
        6, 8, 0, 8, 4, 5, 6, 2, 9, 0, 2, 3, 5, 4, 1, 0, 0, 0, 1, 9, 1, 6, 7, 2, 2, 4, 2, 9, 1, 8, 7, 8, 1, 3, 6, 4, 6,
        6, 6, 0, 9, 5, 9, 2, 3, 8, 1, 0,
    ];
    const MARKER: [u8; 48] = [
        0, 0, 0, 0, 0, 5, 0, 2, 0, 0, 2, 0, 0, 0, 1, 0, 9, 0, 1, 0, 0, 0, 0, 2, 2, 0, 2, 9, 0, 0, 0, 0, 0, 3, 0, 0, 0,
        0, 6, 9, 9, 0, 0, 0, 0, 8, 0, 0,
    ];
    const DILATED: [[u8; 48]; 2] = [
        [
            0, 0, 0, 4, 4, 5, 5, 2, 0, 0, 2, 3, 4, 4, 1, 0, 0, 0, 1, 9, 1, 6, 6, 2, 2, 3, 2, 9, 1, 6, 6, 6, 1, 3, 5, 4,
            6, 6, 6, 0, 9, 5, 5, 2, 3, 8, 1, 0,
        ],
        [
            2, 2, 0, 5, 4, 5, 5, 2, 2, 0, 2, 3, 5, 4, 1, 0, 0, 0, 1, 9, 1, 6, 6, 2, 2, 4, 2, 9, 1, 6, 6, 6, 1, 3, 6, 4,
            6, 6, 6, 0, 9, 5, 6, 2, 3, 8, 1, 0,
        ],
    ];
    const ERODED: [[u8; 48]; 2] = [
        [
            8, 8, 2, 8, 5, 5, 6, 5, 9, 0, 2, 3, 5, 5, 5, 5, 0, 0, 1, 9, 5, 6, 7, 5, 2, 4, 2, 9, 5, 8, 7, 8, 2, 3, 6, 6,
            6, 6, 6, 0, 9, 5, 9, 6, 6, 8, 1, 0,
        ],
        [
            6, 8, 0, 8, 4, 5, 6, 4, 9, 0, 2, 3, 5, 4, 4, 4, 0, 0, 1, 9, 3, 6, 7, 4, 2, 4, 2, 9, 3, 8, 7, 8, 2, 3, 6, 4,
            6, 6, 6, 0, 9, 5, 9, 4, 4, 8, 1, 0,
        ],
    ];
    for (k, how) in [Connectivity::FACES, Connectivity::CORNERS].into_iter().enumerate() {
        let found = everywhere(|s| {
            let [mask, marker] = [MASK, MARKER].map(|pixels| Image::from_slice(s, (6, 8), &pixels).convert::<f32>());
            let eroded = (9.0 - &marker).reconstruct(&mask, Reconstruction::by_erosion(how)).to_vec().unwrap();
            [marker.reconstruct(&mask, how).to_vec().unwrap(), eroded]
        });
        assert_eq!(found, [DILATED[k], ERODED[k]].map(|golden| golden.map(f32::from).to_vec()), "{how:?}");
    }
}

/// Reconstruction selects the components of the mask with a pixel of the marker; above the mask,
/// the same on complements.
#[test]
fn masks_are_reconstructed() {
    let (h, w) = (40, 53);
    let found = everywhere(|s| {
        let mask = Image::from_fn(s, h, w, |y, x| noise(0, y, x) % 5 < 3);
        let marker = Image::from_fn(s, h, w, |y, x| noise(1, y, x).is_multiple_of(30));
        [Connectivity::FACES, Connectivity::CORNERS].map(|how| {
            let above = (!&marker).reconstruct(&!&mask, Reconstruction::by_erosion(how));
            (
                mask.label(how).to_vec().unwrap(),
                marker.reconstruct(&mask, how).to_vec().unwrap(),
                above.to_vec().unwrap(),
            )
        })
    });
    let places = || (0..h).flat_map(|y| (0..w).map(move |x| (y, x)));
    for (labels, below, above) in found {
        let reached: Vec<i32> = places()
            .zip(&labels)
            .filter(|&((y, x), _)| noise(1, y, x).is_multiple_of(30))
            .map(|(_, label)| *label)
            .collect();
        let want: Vec<bool> = labels.iter().map(|label| *label != 0 && reached.contains(label)).collect();
        assert!(
            below == want
                && want.contains(&true)
                && labels.iter().zip(&want).any(|(label, there)| *label != 0 && !there)
        );
        assert!(above.iter().zip(&want).all(|(above, below)| above != below));
    }
}

#[test]
fn what_cannot_be_reconstructed_is_told() {
    let s = session();
    let [one, wide] = [3, 4].map(|width| Image::<u8>::constant(&s, (3, width), 1));
    let told = one.reconstruct(&wide, Connectivity::FACES).check().unwrap_err().to_string();
    assert!(
        told.starts_with("reconstruct: a marker of 3x3 for a mask of 3x4; their shapes must be equal (at "),
        "{told}"
    );
    let two = Image::stack(&s, [&one, &one], Axis::Channels);
    let told = two.reconstruct(&two, Reconstruction::by_erosion(Connectivity::FACES)).check().unwrap_err().to_string();
    assert!(told.starts_with("reconstruct: the image has 2 channels; take one (`channel`) (at "), "{told}");
    let other = Image::<u8>::constant(&session(), (3, 3), 1);
    assert!(one.reconstruct(&other, Connectivity::FACES).check().is_err());
}

/// Sampling positions of the goldens: levels, rows and columns.
fn places(s: &Session) -> [Image<f64>; 3] {
    let place = |a: f64, b: f64, c: f64| Image::from_fn(s, 17, 19, move |y, x| a * y as f64 - b * x as f64 - c);
    let columns = Image::from_fn(s, 17, 19, |y, x| 2.3 * x as f64 + 0.21 * y as f64 - 2.607);
    let levels = Image::from_fn(s, 17, 19, |y, x| 0.31 * y as f64 + 0.17 * x as f64 - 1.301);
    [levels, place(1.9, 0.13, 1.703), columns]
}

#[test]
fn samples_are_those_of_scipy() {
    let value = |z, y, x| (noise(z, y, x) % 1000) as f64 / 1000.0;
    let borders = [Border::Reflect101, Border::Reflect, Border::Wrap, Border::Constant(0.75)];
    for order in 0..6 {
        let how = Sampling::spline(order).unwrap();
        let golden: Vec<f64> = volume_of(&format!("sampled_{order}"));
        for (border, golden) in borders.into_iter().zip(golden.chunks(17 * 19)) {
            let ours = everywhere(|s| {
                let (image, [_, y, x]) = (Image::from_fn(s, 31, 40, |y, x| value(0, y, x)), places(s));
                image.with_border(border).remap([&y, &x], how).to_vec().unwrap()
            });
            let worst = ours.iter().zip(golden).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            // Sums of 36 products of numbers below 1, in another order.
            assert!(worst < 1e-13, "{} {border}: {worst:e}", how.name());
        }
        let ours = everywhere(|s| {
            let (image, [z, y, x]) = (Image::from_volume_fn(s, 6, 31, 40, value), places(s));
            image.with_border(Border::Reflect101).remap([&z, &y, &x], how).to_vec().unwrap()
        });
        let golden: Vec<f64> = volume_of(&format!("sampled_volume_{order}"));
        let worst = ours.iter().zip(golden).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst < 1e-13, "{} of the volume: {worst:e}", how.name());
    }
}

#[test]
fn coefficients_of_splines_are_those_of_scipy() {
    let value = |z, y, x| (noise(z, y, x) % 1000) as f64 / 1000.0;
    let far = |ours: &[f64], golden: &[f64]| {
        assert_eq!(ours.len(), golden.len());
        ours.iter().zip(golden).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    for order in 2..6 {
        let how = Sampling::spline(order).unwrap();
        let golden: Vec<f64> = volume_of(&format!("coefficients_{order}"));
        let borders = [Border::Reflect101, Border::Reflect, Border::Wrap];
        for (border, golden) in borders.into_iter().zip(golden.chunks(31 * 40)) {
            // Strips of ten rows, and filters that reach up to 49.
            let ours = everywhere(|s| {
                let image = Image::from_fn(s, 31, 40, |y, x| value(0, y, x));
                let single =
                    image.convert::<f32>().with_border(border).spline_coefficients([Axis::Rows, Axis::Columns], how);
                let along = image.with_border(border).spline_coefficients(Axis::Columns, how);
                let along = along.with_border(border).spline_coefficients(Axis::Rows, how);
                let (y, x) =
                    (Image::index(s, image.shape(), Axis::Rows), Image::index(s, image.shape(), Axis::Columns));
                let coefficients = image.with_border(border).spline_coefficients([Axis::Rows, Axis::Columns], how);
                let back = coefficients.with_border(border).remap::<f64>([&y, &x], how) - &image;
                [coefficients, single.convert(), along, back].map(|image| image.to_vec().unwrap())
            });
            // Coefficients are up to 11, sums of magnitudes up to 60; poles of SciPy's are
            // differences, good to 2e-15.
            let [double, single, along] = [&ours[0], &ours[1], &ours[2]].map(|ours| far(ours, golden));
            assert!(double < 3e-13 && along < 3e-13, "{} {border}: {double:e}, {along:e}", how.name());
            assert!(single < 1e-4, "{} {border} in f32: {single:e}", how.name());
            let back = far(&ours[3], &[0.0; 31 * 40]);
            assert!(back < 3e-14, "{} {border} at whole positions: {back:e}", how.name());
        }
        // Lines of one pixel along an axis are filtered along the other only.
        let golden: Vec<f64> = volume_of(&format!("coefficients_row_{order}"));
        let lines = everywhere(|s| {
            let row = Image::from_fn(s, 1, 40, |_, x| value(0, 30, x));
            let lines = [row.clone(), row.transpose()];
            lines.map(|line| {
                line.with_border(Border::Constant(7.0))
                    .spline_coefficients([Axis::Depth, Axis::Rows, Axis::Columns], how)
                    .to_vec()
                    .unwrap()
            })
        });
        for line in lines {
            assert!(far(&line, &golden) < 1e-13, "{} of a line", how.name());
        }
    }
    let ours = everywhere(|s| {
        let volume = Image::from_volume_fn(s, 6, 31, 40, value);
        let of = |border| {
            volume
                .with_border(border)
                .spline_coefficients([Axis::Depth, Axis::Rows, Axis::Columns], Sampling::Spline3)
                .to_vec()
                .unwrap()
        };
        assert_eq!(of(Border::Replicate), of(Border::Reflect));
        of(Border::Constant(7.0))
    });
    assert!(far(&ours, &volume_of::<f64>("coefficients_volume")) < 3e-13);
}

#[test]
fn what_has_no_coefficients_of_its_own_keeps_its_pixels() {
    let s = session();
    let image = Image::from_fn(&s, 4, 5, |y, x| (5 * y + x) as u8);
    for how in [Sampling::Nearest, Sampling::Linear, Sampling::Cubic] {
        let same = image.convert::<f32>().to_vec().unwrap();
        assert_eq!(
            image
                .with_border(Border::Wrap)
                .spline_coefficients([Axis::Depth, Axis::Rows, Axis::Columns], how)
                .to_vec()
                .unwrap(),
            same,
            "{how:?}"
        );
    }
    let dot = Image::from_slice(&s, (1, 1), &[0.3f64]);
    assert_eq!(
        dot.with_border(Border::Wrap)
            .spline_coefficients([Axis::Rows, Axis::Columns], Sampling::Spline5)
            .to_vec()
            .unwrap(),
        [0.3]
    );
    let none = image.with_border(Border::Wrap).spline_coefficients(Axis::Channels, Sampling::Spline3);
    let told = none.check().unwrap_err().to_string();
    let want = "spline_coefficients: splines along channels requested; they run along levels, rows or columns (at ";
    assert!(told.starts_with(want), "{told}");
}

#[test]
fn samples_at_positions_of_an_affine_map_are_its_samples() {
    let s = session();
    let image = Image::from_fn(&s, 31, 40, |y, x| noise(0, y, x) as u8);
    // Quarters of a pixel, which both represent exactly.
    let map = [[0.75, -0.25, 3.5], [0.5, 1.25, -2.25]];
    let row = |m: [f64; 3]| Image::from_fn(&s, 20, 24, move |y, x| (m[0] * x as f64 + m[1] * y as f64 + m[2]) as f32);
    let (y, x) = (row(map[1]), row(map[0]));
    for how in Interpolation::ALL {
        for border in [Border::Reflect, Border::Constant(9.0)] {
            let same = image.with_border(border).affine(map, (20, 24), how).to_vec().unwrap();
            assert_eq!(image.with_border(border).remap([&y, &x], how).to_vec().unwrap(), same, "{how:?} {border}");
        }
    }
}

/// Away from the edges: a polynomial of degree 2 between its pixels, and one of degree 1.
#[test]
fn interpolation_keeps_polynomials() {
    let s = session();
    let (h, w) = (31, 37);
    for (how, square) in [(Interpolation::Bilinear, 0.0), (Interpolation::Bicubic, 0.02)] {
        let value = |y: f64, x: f64| 3.0 - 0.7 * y + 0.4 * x + square * (0.5 * y * y - 1.3 * x * x + y * x);
        let image = Image::from_fn(&s, h, w, |y, x| value(y as f64, x as f64));
        let keeps = |moved: &Image<f64>, from: &dyn Fn(f64, f64) -> (f64, f64), what: &str| {
            let (columns, mut seen) = (moved.width(), 0);
            for (i, v) in moved.to_vec().unwrap().into_iter().enumerate() {
                let (y, x) = from((i / columns) as f64, (i % columns) as f64);
                if y >= 1.0 && x >= 1.0 && y <= (h - 3) as f64 && x <= (w - 3) as f64 {
                    // Positions are whole multiples of 2^-32, matrices have been rounded to them.
                    assert!((v - value(y, x)).abs() < 1e-6, "{what}, {how:?}: {v} for {} at {y}, {x}", value(y, x));
                    seen += 1;
                }
            }
            assert!(seen > 400, "{what} looks at {seen} pixels");
        };
        let map = [[0.9, 0.2, -1.3], [-0.15, 1.1, 0.342]];
        let affine = image.with_border(Border::Reflect101).affine(map, (h, w), how);
        let at = |y: f64, x: f64, row: [f64; 3]| row[0] * x + row[1] * y + row[2];
        keeps(&affine, &|y, x| (at(y, x, map[1]), at(y, x, map[0])), "affine");
        let shift = [[1.0, 0.0, -0.3], [0.0, 1.0, -0.342]];
        keeps(&image.with_border(Border::Replicate).affine(shift, (h, w), how), &|y, x| (y - 0.342, x - 0.3), "shift");
        let (sin, cos) = 20f64.to_radians().sin_cos();
        let about = ((h - 1) as f64 / 2.0, (w - 1) as f64 / 2.0);
        let turned = |y: f64, x: f64| {
            let (y, x) = (y - about.0, x - about.1);
            (about.0 + cos * y + sin * x, about.1 + cos * x - sin * y)
        };
        keeps(&image.rotate(20.0, how), &turned, "rotate");
        let larger = image.resize(50, 80, how);
        let scaled = |to: f64, from: usize, of: f64| (to + 0.5) * from as f64 / of - 0.5;
        keeps(&larger, &|y, x| (scaled(y, h, 50.0), scaled(x, w, 80.0)), "resize");
        if how == Interpolation::Bilinear {
            keeps(&image.translate(0.3, -2.6), &|y, x| (y - 0.3, x + 2.6), "translate");
        }
    }
}

#[test]
fn positions_that_do_not_fit_are_errors() {
    let s = session();
    let image = Image::<u8>::zeros(&s, (4, 5));
    let told = |found: Image<u8>| found.check().unwrap_err().to_string();
    let (y, x) = (Image::<f32>::zeros(&s, (3, 3)), Image::<f32>::zeros(&s, (3, 2)));
    let said = told(image.with_border(Border::Wrap).remap([&y, &x], Interpolation::Nearest));
    assert!(said.starts_with("remap: positions of 3x3 and 3x2 differ in size (at "), "{said}");
    let levels = Image::constant(&s, (2, 3, 3), 0.0f32);
    let said = told(image.with_border(Border::Wrap).remap([&levels, &levels], Interpolation::Nearest));
    assert!(said.starts_with("remap: positions are images of one channel and one level, not 2x3x3 (at "), "{said}");
    let pairs = Image::stack(&s, [&y, &y], Axis::Channels);
    let said = told(image.with_border(Border::Wrap).remap([&pairs, &pairs, &pairs], Interpolation::Nearest));
    assert!(said.starts_with("remap: positions are images of one channel, not 3x3x2 (at "), "{said}");
    let other = Image::<f32>::zeros(&session(), (3, 3));
    let said = told(image.with_border(Border::Wrap).remap([&y, &other], Interpolation::Nearest));
    assert!(said.starts_with("remap: "), "{said}");
}
