//! Operations that are made of others, against scikit-image and scipy (`tests/goldens/operations.py`).

use horus_core::cpu::device::CpuDevice;
use horus_core::filters::Footprint;
use horus_core::image::Image;
use horus_core::session::Session;
use ndarray::{Array2, Array3};

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
    let image = Image::from_array3(&s, rgb.view());
    // f32 rounds at 6e-8; Lab multiplies by up to 500 and takes cube roots of values near 0.
    assert_close(&image.rgb_to_hsv().to_array3().unwrap(), &colours("hsv"), 1e-6);
    assert_close(&image.rgb_to_ycbcr().to_array3().unwrap(), &colours("ycbcr"), 1e-6);
    assert_close(&image.rgb_to_lab().to_array3().unwrap(), &colours("lab"), 2e-3);
    let want = rgb.mapv(f64::from);
    assert_close(&image.rgb_to_hsv().hsv_to_rgb().to_array3().unwrap(), &want, 1e-6);
    assert_close(&image.rgb_to_ycbcr().ycbcr_to_rgb().to_array3().unwrap(), &want, 1e-6);
    // The inverse matrix has seven digits.
    assert_close(&image.rgb_to_lab().lab_to_rgb().to_array3().unwrap(), &want, 1e-4);
    let two = Image::stack(&s, [image.channel(0), image.channel(1)]);
    let told = two.rgb_to_lab().check().unwrap_err().to_string();
    assert!(told.starts_with("rgb_to_lab: the image has 2 channels; it must have 3 (at "), "{told}");
}

#[test]
fn sizes_change_as_in_scikit_image() {
    let s = session();
    let grey = Image::from_array(&s, plane::<f32>("grey").view());
    for (height, width) in [(13, 20), (40, 21), (17, 80)] {
        let ours = grey.resize_antialiased(height, width).to_array().unwrap();
        let golden = plane::<f64>(&format!("resized_{height}x{width}"));
        // Edges are sampled by other rules: the outermost pixels are left out.
        let inside = ndarray::s![1..height - 1, 1..width - 1];
        assert_close(ours.slice(inside), golden.slice(inside), 2e-6);
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
