//! The oracle compared with arrays computed by NumPy and SciPy: `tests/goldens`, written by its
//! `regenerate.py`.

mod composed;
mod detectors;
mod filters;
mod geometry;
mod mathematics;
mod on_host;
mod program;
mod reductions;

use std::path::PathBuf;

use horus_core::dtype::{DType, Pixel};
use horus_core::ops::neighbourhood::Filter;
use horus_core::shape::{Border, Shape};
use horus_testing::reference::{ReferenceImage, convert};
use ndarray::ArrayD;
use ndarray_npy::{ReadableElement, read_npy};

/// The value beyond the edge under a constant border.
const CONSTANT: f64 = 0.75;
const CONSTANT_U8: f64 = 77.0;

/// The borders in the order of the goldens' first axis.
fn borders(constant: f64) -> [Border; 5] {
    Border::all(constant)
}

fn load<T: ReadableElement>(name: &str) -> ArrayD<T> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../tests/goldens");
    read_npy(folder.join(format!("{name}.npy"))).unwrap_or_else(|e| panic!("golden {name}: {e}"))
}

/// A golden as an image; a third axis, in front, becomes the channels.
fn image<T: Pixel + ReadableElement>(name: &str) -> ReferenceImage {
    let array = load::<T>(name);
    let shape = match *array.shape() {
        [w] => Shape::new(1, w, 1),
        [h, w] => Shape::new(h, w, 1),
        [c, h, w] => Shape::new(h, w, c),
        ref other => panic!("golden {name} has shape {other:?}"),
    };
    ReferenceImage::new(shape, array.iter().copied().collect())
}

/// The taps of that name as a dense filter.
fn filter(name: &str) -> Filter {
    let taps = image::<f32>(name);
    Filter::dense(taps.shape.height, taps.shape.width, to_f64(&taps))
}

fn row(name: &str) -> Filter {
    Filter::row(to_f64(&image::<f32>(name)))
}

fn column(name: &str) -> Filter {
    Filter::column(to_f64(&image::<f32>(name)))
}

fn to_f64(image: &ReferenceImage) -> Vec<f64> {
    convert(image, DType::F64).as_slice::<f64>().to_vec()
}

/// Plane `c` of a golden.
fn plane(image: &ReferenceImage, c: usize) -> Vec<f64> {
    let area = image.shape.area();
    to_f64(image)[c * area..][..area].to_vec()
}

/// The largest and the mean difference.
#[track_caller]
fn difference(ours: &[f64], golden: &[f64]) -> (f64, f64) {
    assert_eq!(ours.len(), golden.len(), "number of pixels");
    let each: Vec<f64> = ours.iter().zip(golden).map(|(a, b)| (a - b).abs()).collect();
    assert!(each.iter().all(|d| !d.is_nan()), "a NaN");
    (each.iter().copied().fold(0.0, f64::max), each.iter().sum::<f64>() / each.len() as f64)
}

#[track_caller]
fn assert_close(ours: &ReferenceImage, golden: &[f64], tolerance: f64, what: &str) {
    let (largest, _) = difference(&to_f64(ours), golden);
    assert!(largest <= tolerance, "{what}: differs by {largest:e}, more than {tolerance:e}");
}
