//! Functions that the host computes, which have no oracle besides these arrays, and thinning.

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::{Element, Pixel};
use horus_core::image::Image;
use horus_core::prelude::{Connectivity, hough_line, thin, watershed};
use horus_core::session::Session;
use horus_core::shape::Shape;
use ndarray_npy::ReadableElement;

use crate::load;

/// A golden of `on_host/` in a session: two axes are an image, three a volume.
fn held<T: Element + ReadableElement>(session: &Session, name: &str) -> Image<T> {
    let array = load::<T>(&format!("on_host/{name}"));
    let shape = match *array.shape() {
        [h, w] => Shape::new(h, w, 1),
        [d, h, w] => Shape::from((d, h, w)),
        ref other => panic!("golden {name} has shape {other:?}"),
    };
    Image::from_slice(session, shape, &array.into_iter().collect::<Vec<_>>())
}

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

const NEIGHBOURS: [Connectivity; 3] = [Connectivity::FACES, Connectivity::EDGES, Connectivity::CORNERS];

fn assert_medians<T: Pixel + ReadableElement>(of: &str) {
    let s = session();
    let (image, labels) = (held::<T>(&s, &format!("median_image_{of}")), held::<i16>(&s, "labels"));
    let mut ours = image.by_label(&labels, 13).median().get().unwrap();
    assert!(ours.remove(5).is_nan(), "nothing has label 5");
    assert_eq!(ours, load::<f64>(&format!("on_host/median_{of}")).into_iter().collect::<Vec<_>>(), "{of}");
}

#[test]
fn medians_of_labels_are_those_of_scipy() {
    assert_medians::<u8>("u8");
    assert_medians::<f32>("f32");
    assert_medians::<f64>("f64");
}

fn assert_watershed<T: Pixel>(image: &Image<T>, markers: &Image<i32>, mask: Option<&Image<bool>>, of: &str) {
    let by = of.trim_end_matches("_mask").chars().last().and_then(|c| c.to_digit(10)).unwrap() as usize - 1;
    let ours = watershed(image, markers, NEIGHBOURS[by], mask).unwrap().to_vec().unwrap();
    let golden = load::<i32>(&format!("on_host/watershed_{of}"));
    assert_eq!(ours, golden.into_iter().collect::<Vec<_>>(), "{of}");
}

#[test]
fn watersheds_are_those_of_scikit_image() {
    let s = session();
    let (markers, mask) = (held(&s, "watershed_markers"), held(&s, "watershed_mask"));
    let (flat, rough) = (held::<u8>(&s, "watershed_image_u8"), held::<f32>(&s, "watershed_image_f32"));
    for by in 1..=2 {
        assert_watershed(&flat, &markers, None, &format!("u8_{by}"));
        assert_watershed(&flat, &markers, Some(&mask), &format!("u8_{by}_mask"));
        assert_watershed(&rough, &markers, None, &format!("f32_{by}"));
        assert_watershed(&rough, &markers, Some(&mask), &format!("f32_{by}_mask"));
    }
    let (volume, seeds) = (held::<i16>(&s, "watershed_volume"), held(&s, "watershed_volume_markers"));
    for by in 1..=3 {
        assert_watershed(&volume, &seeds, None, &format!("volume_{by}"));
    }
}

#[test]
fn counts_of_lines_are_those_of_scikit_image() {
    let normals = load::<f64>("on_host/line_normals");
    let normals: Vec<[f64; 2]> = normals.outer_iter().map(|normal| [normal[0], normal[1]]).collect();
    let ours = hough_line(&held(&session(), "line_mask"), &normals).get().unwrap();
    let golden = load::<u16>("on_host/line_counts");
    assert_eq!(golden.shape(), [normals.len(), ours[0].len()]);
    assert_eq!(ours.concat(), golden.into_iter().map(u64::from).collect::<Vec<_>>());
}

#[test]
fn thinned_masks_are_those_of_scikit_image() {
    let s = session();
    for name in ["blobs", "noise"] {
        let ours = thin(&held::<bool>(&s, &format!("thin_mask_{name}"))).to_vec().unwrap();
        assert_eq!(ours, load::<bool>(&format!("on_host/thin_{name}")).into_iter().collect::<Vec<_>>(), "{name}");
    }
}
