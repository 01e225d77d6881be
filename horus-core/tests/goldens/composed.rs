//! Functions composed of other operations, on one to five ranks: `composed.py`.

use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::{Element, Pixel};
use horus_core::image::Image;
use horus_core::prelude::{
    Border, Connectivity, bilateral, canny, equalize_adapthist, equalize_hist, local_maxima, peak_local_max,
};
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};
use ndarray_npy::ReadableElement;

use crate::{difference, load};

/// A golden in a session: two axes are an image, three a volume.
fn held<T: Element + ReadableElement>(session: &Session, name: &str) -> Image<T> {
    let array = load::<T>(&format!("composed/{name}"));
    let shape = match *array.shape() {
        [h, w] => Shape::new(h, w, 1),
        [d, h, w] => Shape::from((d, h, w)),
        ref other => panic!("golden {name} has shape {other:?}"),
    };
    Image::from_slice(session, shape, &array.into_iter().collect::<Vec<_>>())
}

fn pixels<T: ReadableElement>(name: &str) -> Vec<T> {
    load::<T>(&format!("composed/{name}")).into_iter().collect()
}

/// Calls `check` with sessions on one to five ranks.
fn on_ranks(check: impl Fn(&Session) + Sync) {
    for ranks in 1..=5 {
        ThreadComm::run(ranks, |comm| {
            let cpu = Box::new(CpuDevice::new(Some(1)).unwrap());
            check(&Session::on(cpu).communicator(Arc::new(comm)).build().unwrap());
        });
    }
}

fn assert_edges<T: Pixel + ReadableElement>(session: &Session, of: &str) {
    let image = held::<T>(session, &format!("canny_image_{of}"));
    let white = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
    for sigma in [0.0, 1.0, 2.3] {
        let ours = canny(&image, sigma, 0.1 * white, 0.35 * white).to_vec().unwrap();
        assert!(ours == pixels::<bool>(&format!("canny_{of}_{sigma}")), "{of}, sigma {sigma}");
    }
}

#[test]
fn edges_are_those_of_scikit_image() {
    on_ranks(|s| {
        assert_edges::<u8>(s, "u8");
        assert_edges::<i16>(s, "i16");
        assert_edges::<f32>(s, "f32");
        ["f64", "step", "row", "two", "pixel"].into_iter().for_each(|of| assert_edges::<f64>(s, of));
        let image = held::<f64>(s, "canny_image_f64");
        for (border, of) in [(Border::Reflect101, "mirror"), (Border::Constant(0.5), "constant")] {
            let ours = canny(&image.with_border(border), 1.0, 0.1, 0.35).to_vec().unwrap();
            assert!(ours == pixels::<bool>(&format!("canny_f64_{of}")), "{of}");
        }
    });
}

/// Shares of pixels: of integers they are only rounded to `f32`, the bins of `f32` differ by a rounding.
fn assert_equalized<T: Pixel + ReadableElement, G: Pixel + ReadableElement>(session: &Session, of: &str) {
    let image = held::<T>(session, &format!("equalize_image_{of}"));
    let ours: Vec<f64> = equalize_hist(&image, 100).convert().to_vec().unwrap();
    let golden: Vec<f64> = pixels::<G>(&format!("equalize_{of}")).into_iter().map(Pixel::to_f64).collect();
    let (largest, _) = difference(&ours, &golden);
    let tolerance = if T::DTYPE == f64::DTYPE { 1e-12 } else { 1e-6 };
    assert!(largest <= tolerance, "{of}: {largest:e}");
}

#[test]
fn equalized_histograms_are_those_of_scikit_image() {
    on_ranks(|s| {
        assert_equalized::<u8, f64>(s, "u8");
        assert_equalized::<i16, f64>(s, "i16");
        assert_equalized::<u16, f64>(s, "u16");
        assert_equalized::<f32, f32>(s, "f32");
        ["f64", "flat", "pixel"].into_iter().for_each(|of| assert_equalized::<f64, f64>(s, of));
        let colour = held::<u8>(s, "equalize_image_colour");
        let colour = Image::stack(s, (0..3).map(|z| colour.slice(z)), Axis::Channels);
        let ours = equalize_hist(&colour, 256);
        for (c, golden) in pixels::<f64>("equalize_colour").chunks(colour.shape().area()).enumerate() {
            let golden: Vec<f32> = golden.iter().map(|v| *v as f32).collect();
            assert_eq!(ours.channel(c).to_vec().unwrap(), golden, "channel {c}");
        }
    });
}

fn assert_adapted<T: Pixel + ReadableElement>(session: &Session, of: &str)
where
    T::Linear: ReadableElement,
{
    let image = held::<T>(session, &format!("equalize_image_{of}"));
    for (tile, limit, bins) in
        [(None, 0.01, 256), (Some((7, 11)), 0.02, 64), (Some((100, 3)), 0.0, 256), (Some((16, 16)), 0.5, 1)]
    {
        let ours = equalize_adapthist(&image, tile, limit, bins).unwrap().to_vec().unwrap();
        let name = tile.map_or_else(|| "eighth".into(), |(height, _)| height.to_string());
        let golden = pixels::<T::Linear>(&format!("adapted_{of}_{name}"));
        assert!(ours == golden, "{of}, tiles {tile:?}");
    }
}

#[test]
fn adaptively_equalized_histograms_have_the_bits_of_scikit_image() {
    on_ranks(|s| {
        ["u8", "ramp", "steps"].into_iter().for_each(|of| assert_adapted::<u8>(s, of));
        assert_adapted::<u16>(s, "u16");
        assert_adapted::<f32>(s, "f32");
        ["f64", "flat", "pixel"].into_iter().for_each(|of| assert_adapted::<f64>(s, of));
    });
}

fn assert_maxima<T: Pixel + ReadableElement>(session: &Session, of: &str) {
    let image = held::<T>(session, &format!("maxima_image_{of}"));
    let all = [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS];
    let axes = if image.depth() > 1 { 3 } else { 2 };
    for (by, neighbours) in all.into_iter().enumerate().take(axes) {
        let ours = local_maxima(&image, neighbours).to_vec().unwrap();
        assert!(ours == pixels::<bool>(&format!("maxima_{of}_{}", by + 1)), "{of}, {neighbours:?}");
    }
    let place = |at: &[i32]| {
        let mut place = [0; 3];
        place[3 - axes..].copy_from_slice(&at.iter().map(|v| *v as usize).collect::<Vec<_>>());
        place
    };
    let golden = pixels::<i32>(&format!("peaks_{of}"));
    for distance in [0, 1, 2, 5] {
        for border in [0, 1, 4] {
            let ours = peak_local_max(&image, distance, None, border).get().unwrap();
            let here = golden.chunks(2 + axes).filter(|row| row[..2] == [distance as i32, border as i32]);
            let golden: Vec<[usize; 3]> = here.map(|row| place(&row[2..])).collect();
            assert_eq!(ours, golden, "{of}, distance {distance}, border {border}");
        }
    }
    let threshold = T::from_f64(image.max_value().get().unwrap().to_f64() - 1.0);
    let ours = peak_local_max(&image, 1, Some(threshold), 0).get().unwrap();
    let golden = pixels::<i32>(&format!("peaks_{of}_high"));
    assert_eq!(ours, golden.chunks(axes).map(place).collect::<Vec<_>>(), "{of}");
}

#[test]
fn maxima_are_those_of_scikit_image() {
    on_ranks(|s| {
        assert_maxima::<u8>(s, "u8");
        assert_maxima::<i32>(s, "i32");
        assert_maxima::<f32>(s, "f32");
        ["flat", "pixel", "row"].into_iter().for_each(|of| assert_maxima::<f64>(s, of));
        assert_maxima::<i16>(s, "volume");
    });
}

/// Sums of some hundred roundings.
fn assert_smooth<T: Pixel + ReadableElement>(session: &Session, of: &str, tolerance: f64) {
    let image = held::<T>(session, &format!("bilateral_image_{of}"));
    let channels = image.depth();
    let image = Image::stack(session, (0..channels).map(|z| image.slice(z)), Axis::Channels);
    let white = if T::DTYPE.is_float() { 1.0 } else { T::HIGHEST.to_f64() };
    let border = if image.height() > 1 { Border::Reflect101 } else { Border::Replicate };
    for (size, colour, space) in [(1, 0.1, 1.0), (5, 0.1, 1.5), (9, 0.3, 4.0)] {
        let ours = bilateral(&image.with_border(border), size, colour * white, space).convert::<f64>();
        let golden = pixels::<f64>(&format!("bilateral_{of}_{size}"));
        for (c, golden) in golden.chunks(image.shape().area()).enumerate() {
            let (largest, _) = difference(&ours.channel(c).to_vec().unwrap(), golden);
            assert!(largest <= tolerance * white, "{of}, size {size}: {largest:e}");
        }
    }
}

#[test]
fn the_bilateral_filter_is_its_formula() {
    on_ranks(|s| {
        ["f64", "pixel", "row"].into_iter().for_each(|of| assert_smooth::<f64>(s, of, 1e-14));
        ["f32", "colour"].into_iter().for_each(|of| assert_smooth::<f32>(s, of, 1e-6));
        assert_smooth::<u8>(s, "u8", 1e-6);
    });
}
