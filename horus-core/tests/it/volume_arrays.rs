//! Volumes from arrays of any strides and back, against the arrays themselves.

use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Element;
use horus_core::image::Image;
use horus_core::session::Session;
use ndarray::{Array2, Array3, Array4, ArrayD, ArrayView3, ShapeBuilder, s};

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).build().unwrap()
}

fn numbered<T: Element>(of: impl Fn(usize) -> T) -> Array3<T> {
    Array3::from_shape_fn((5, 6, 7), |(z, y, x)| of(100 * z + 10 * y + x))
}

fn goes_round<T: Element + PartialEq + std::fmt::Debug>(what: &str, array: ArrayView3<'_, T>) {
    let s = session();
    let volume = Image::from_volume_array(&s, array);
    let (d, h, w) = array.dim();
    let shape = volume.shape();
    assert_eq!((shape.depth, shape.height, shape.width, shape.channels), (d, h, w, 1), "{what}");
    assert_eq!(volume.to_volume_array().unwrap(), array, "{what}");
    // Level by level in row-major order, the iteration order of an array of any strides.
    assert_eq!(volume.to_vec().unwrap(), array.iter().copied().collect::<Vec<_>>(), "{what}");
    let any = Image::from_volume_array(&s, array.into_dyn());
    assert_eq!(any.to_volume_array().unwrap(), array, "{what}");
}

#[test]
fn volumes_of_any_strides_go_round() {
    let all = numbered(|i| i as f32 * 0.5);
    goes_round("as it is", all.view());
    goes_round("transposed", all.t());
    goes_round("axes turned", all.view().permuted_axes([1, 2, 0]));
    goes_round("upside down", all.slice(s![..;-1, ..;-1, ..;-1]));
    goes_round("columns backwards", all.slice(s![.., .., ..;-1]));
    goes_round("every second", all.slice(s![..;2, 1..;2, ..;3]));
    goes_round("from the end by steps", all.slice(s![..;-2, .., 1..6;-3]));
    goes_round("one level", all.slice(s![3..4, .., ..]));
    goes_round("one row", all.slice(s![.., 2..3, ..]));
    goes_round("one column", all.slice(s![.., .., 6..]));
    goes_round("one pixel", all.slice(s![4..;-1, 5.., 0..1]));
    let fortran = Array3::from_shape_fn((5, 6, 7).f(), |i| all[i]);
    goes_round("in the order of Fortran", fortran.view());
    let row = ndarray::Array1::from_iter((0..7).map(|i| i as f32));
    goes_round("repeated, of stride 0", row.broadcast((4, 3, 7)).unwrap());
    goes_round("bytes", numbered(|i| i as u8).slice(s![..;2, .., ..]));
    goes_round("masks", numbered(|i| i % 3 == 0).slice(s![.., ..;-1, ..]));
}

#[test]
fn levels_are_not_channels() {
    let (s, all) = (session(), numbered(|i| i as i32));
    let (volume, colours) = (Image::from_volume_array(&s, all.view()), Image::from_array(&s, all.view()));
    assert_eq!((volume.to_string(), colours.to_string()), ("5x6x7 i32 image".into(), "5x6x7 i32 image".into()));
    assert_eq!((volume.depth(), colours.depth(), colours.channels()), (5, 1, 7));
    assert_eq!(volume.slice(4).to_array().unwrap(), all.slice(s![4, .., ..]));
    assert_eq!(colours.channel(4).to_array().unwrap(), all.slice(s![.., .., 4]));
    let told = colours.to_volume_array().unwrap_err().to_string();
    assert!(told.starts_with("to_volume_array: the image has 7 channels; take four axes"), "{told}");
    assert!(told.contains("volume_arrays.rs:"), "{told}");
}

#[test]
fn as_many_axes_as_there_are() {
    let s = session();
    let plane = Array2::from_shape_fn((3, 4), |(y, x)| (10 * y + x) as u16);
    let image = Image::from_volume_array(&s, plane.t().into_dyn());
    assert_eq!(image.to_array().unwrap(), plane.t());
    assert_eq!(image.to_array().unwrap(), plane.t().into_dyn());
    let all = Array4::from_shape_fn((2, 3, 4, 5), |(z, y, x, c)| (1000 * z + 100 * y + 10 * x + c) as u16);
    let part = all.slice(s![.., ..;-1, 1..3, ..;2]);
    let image = Image::from_volume_array(&s, part.into_dyn());
    assert_eq!(image.to_array().unwrap(), part);
    assert_eq!(image.to_array().unwrap(), part.into_dyn());
    // Channels of one level stay the last of four axes.
    let colours = Image::from_array(&s, all.slice(s![1, .., .., ..]));
    assert_eq!(colours.to_array().unwrap(), all.slice(s![1..2, .., .., ..]).into_dyn());
    // A level of a volume is an image.
    let one = Image::from_volume_array(&s, all.slice(s![..1, .., .., 2]));
    assert_eq!(one.to_array().unwrap(), all.slice(s![0, .., .., 2]).into_dyn());
}

#[test]
fn arrays_that_are_no_images_are_errors() {
    let s = session();
    let told = |image: Image<f32>| image.to_vec().unwrap_err().to_string();
    for extents in [[0, 3, 4], [3, 0, 4], [3, 4, 0], [0, 0, 0]] {
        let empty = Array3::<f32>::zeros(extents);
        let [d, h, w] = extents;
        for (op, image) in [
            ("from_volume_array", Image::from_volume_array(&s, empty.view())),
            ("from_volume_array", Image::from_volume_array(&s, empty.slice(s![..;-1, .., ..;-1]))),
            ("from_volume_array", Image::from_volume_array(&s, empty.view().into_dyn())),
        ] {
            let said = told(image);
            assert!(
                said.starts_with(op) && said.contains(&format!("{d}x{h}x{w}")) && said.contains("volume_arrays.rs:"),
                "{said}"
            );
        }
    }
    for (axes, words) in [(0, "0 axes"), (1, "1 axis"), (5, "5 axes")] {
        let said = told(Image::from_volume_array(&s, ArrayD::zeros(vec![2; axes]).view()));
        let want =
            format!("from_volume_array: an array of {words}; an image has 2, a volume 3, and a volume with channels 4");
        assert!(said.starts_with(&want) && said.contains("volume_arrays.rs:"), "{said}");
    }
}
