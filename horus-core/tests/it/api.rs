//! Arguments that the public algebra accepts and refuses when recording, and files in and out.
//! Values are in `values.rs`.

use std::path::PathBuf;
use std::sync::Arc;

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::{DType, Element};
use horus_core::error::{Error, Result};
use horus_core::filters::{self, Footprint};
use horus_core::image::samples;
use horus_core::image::{Image, MovingWindow, Rank, Value};
use horus_core::io::{AnyImage, Depth, SaveOptions, Scaling};
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use ndarray::{Array2, Ix2, Ix3, array};

fn session() -> Session {
    let device = CpuDevice::new(Some(2)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

fn ramp(s: &Session, height: usize, width: usize) -> Image<f32> {
    Image::from_fn(s, height, width, |y, x| (y * width + x) as f32)
}

/// A value that may carry an error.
trait Carries {
    fn error(&self) -> Option<Error>;
}

impl<T: Element> Carries for Image<T> {
    fn error(&self) -> Option<Error> {
        self.check().err()
    }
}

impl<V> Carries for Value<V> {
    fn error(&self) -> Option<Error> {
        self.check().err()
    }
}

impl<T> Carries for Result<T> {
    fn error(&self) -> Option<Error> {
        self.as_ref().err().cloned()
    }
}

/// The operation that an error names, after a check that it names a line of this file.
fn op(result: impl Carries) -> &'static str {
    let (op, site) = match result.error().expect("an error") {
        Error::ShapeMismatch { op, site, .. }
        | Error::Empty { op, site, .. }
        | Error::Parameter { op, site, .. }
        | Error::ForeignImage { op, site } => (op, site),
        other => panic!("{other}"),
    };
    assert!(site.file().ends_with("tests/it/api.rs"), "{op} blames {site}");
    op
}

#[test]
fn images_of_different_sizes_do_not_meet() {
    let s = session();
    let (a, b) = (ramp(&s, 3, 4), ramp(&s, 4, 3));
    assert_eq!(op(&a + &b), "add");
    assert_eq!(op(a.clone() / b.clone()), "div");
    assert_eq!(op(a.max(&b)), "max");
    assert_eq!(op(a.lt(&b)), "lt");
    assert_eq!(op(a.absdiv(&b, 1e-3)), "absdiv");
    assert_eq!(op(a.gt(0.5).select(&b, 0.0)), "select");
    assert_eq!(op(a.gt(0.5).select(&a, &b)), "select");
    assert_eq!(op(Image::stack(&s, [&a, &b], Axis::Channels)), "stack");
    let message = (&a + &b).check().unwrap_err().to_string();
    assert!(message.starts_with("add: images differ in size, 3x4 and 4x3 (at "), "{message}");
}

#[test]
fn images_of_different_sessions_do_not_meet() {
    let s = session();
    let (a, b) = (ramp(&s, 3, 4), ramp(&session(), 3, 4));
    let foreign = |image: Image<f32>| match image.check() {
        Err(Error::ForeignImage { op, .. }) => op,
        other => panic!("{other:?}"),
    };
    assert_eq!(foreign(&a + &b), "add");
    assert_eq!(foreign(Image::stack(&s, [&a, &b], Axis::Channels)), "stack");
    assert_eq!(foreign(a.paste(&b, 0, 0)), "paste");
    assert!(matches!(s.get_all((a.sum(), b.sum())), Err(Error::ForeignImage { op: "get_all", .. })));
}

#[test]
fn images_larger_than_the_memory_are_errors() {
    let s = session();
    let message = Image::<u8>::from_fn(&s, 1 << 23, 1 << 24, |_, _| 0).check().unwrap_err().to_string();
    assert!(message.starts_with("from_fn (at ") && message.contains("140737488355328 bytes"), "{message}");
    let zeros = Image::<u8>::zeros(&s, (1 << 23, 1 << 24));
    let message = zeros.sum().get().unwrap_err().to_string();
    // The image and the known part of its rows.
    assert!(message.contains("out of memory: 140737555464320 bytes needed"), "{message}");
    let message = Image::<u8>::zeros(&s, (1 << 30, 1 << 30)).check().unwrap_err().to_string();
    assert!(message.starts_with("zeros: an image of 1073741824x1073741824 u8 pixels is too large (at "), "{message}");
}

#[test]
fn images_without_pixels_cannot_be_made() {
    let s = session();
    assert_eq!(op(Image::<u8>::zeros(&s, (0, 4))), "zeros");
    assert_eq!(op(Image::constant(&s, (4, 0), 1.0f32)), "constant");
    assert_eq!(op(Image::from_fn(&s, 0, 0, |_, _| 0u8)), "from_fn");
    assert_eq!(op(Image::<f32>::from_slice(&s, (0, 5), &[])), "from_slice");
    assert_eq!(op(Image::<f32>::from_slice(&s, Shape::new(2, 2, 0), &[])), "from_slice");
    assert_eq!(op(Image::from_array(&s, Array2::<i32>::zeros((0, 3)).view())), "from_array");
    assert_eq!(op(samples::worms(&s, 3, 0)), "worms");
    assert_eq!(op(Image::<u8>::stack(&s, Vec::<Image<u8>>::new(), Axis::Channels)), "stack");
    assert_eq!(op(ramp(&s, 3, 3).resize(0, 3, Interpolation::Bilinear)), "resize");
    assert_eq!(op(Image::<f64>::zeros(&s, (usize::MAX, 2))), "zeros");
    assert_eq!(op(Image::from_slice(&s, (2, 2), &[1u8, 2, 3])), "from_slice");
}

#[test]
fn parameters_outside_their_domain_are_refused() {
    let s = session();
    let a = ramp(&s, 8, 8);
    for sigma in [0.0, -2.0, f64::NAN, f64::INFINITY, 1e9] {
        assert_eq!(op(a.gauss(sigma)), "gauss");
        assert_eq!(op(a.gauss_xy(1.0, sigma, 0, 0)), "gauss_xy");
        assert_eq!(op(a.gauss_2d(30.0, sigma, 1.0, 0, 0)), "gauss_2d");
        assert_eq!(op(a.gauss_uv(30.0, sigma, 1.0, 0, 0)), "gauss_uv");
    }
    assert_eq!(op(a.gauss_derivative(1.0, (3, 0))), "gauss");
    assert_eq!(op(a.gauss_2d(f64::NAN, 1.0, 1.0, 0, 0)), "gauss_2d");
    assert_eq!(op(a.box_mean(0)), "box_mean");
    for (height, width) in [(0, 3), (3, 0), (usize::MAX, 1), (1 << 13, 1 << 12)] {
        assert_eq!(op(a.with_border(Border::Wrap).box_mean((height, width))), "box_mean");
    }
    assert_eq!(op(a.with_border(Border::Wrap).box_mean(MovingWindow::at((2, 2), (0, 2)))), "box_mean");
    let cross = Footprint::cross(1);
    assert_eq!(op(a.with_border(Border::Wrap).rank(&cross, Rank::Place(5))), "rank");
    assert_eq!(op(a.with_border(Border::Wrap).rank(&cross, Rank::Percent(100.5))), "rank");
    assert_eq!(op(a.with_border(Border::Wrap).rank(&cross, Rank::Percent(f64::NAN))), "rank");
    assert_eq!(op(a.with_border(Border::Wrap).median(&Footprint::rectangle(2, 3))), "Footprint::rectangle");
    assert_eq!(op(a.erode(&Footprint::rectangle(2, 3))), "Footprint::rectangle");
    assert_eq!(op(a.dilate(&Footprint::rectangle(3, 0))), "Footprint::rectangle");
    assert_eq!(op(a.opening(&Footprint::from_mask(1, 1, &[false]))), "Footprint::from_mask");
    assert_eq!(op(a.with_border(Border::Wrap).correlate(&Filter::dense(2, 2, vec![1.0; 3]))), "Filter::dense");
    assert_eq!(op(a.with_border(Border::Wrap).convolve(&Filter::sparse([(0, 0)], [1.0, 2.0]))), "Filter::sparse");
    assert_eq!(op(a.crop(0, 1, 8, 8)), "crop");
    assert_eq!(op(a.crop(usize::MAX, 0, 2, 2)), "crop");
    assert_eq!(op(a.crop(0, 0, 0, 2)), "crop");
    assert_eq!(op(a.with_border(Border::Wrap).pad(usize::MAX, 0, 0, 1)), "pad");
    assert_eq!(op(a.paste(&Image::stack(&s, [&a, &a], Axis::Channels), 0, 0)), "paste");
    assert_eq!(op(a.with_border(Border::Wrap).correlate(&Filter::row(Vec::new()))), "correlate");
    assert_eq!(op(a.with_border(Border::Wrap).convolve(&Filter::dense(0, 0, Vec::new()))), "convolve");
    assert_eq!(op(a.with_border(Border::Wrap).convolve(&Filter::row(Vec::new()))), "convolve");
    assert_eq!(op(a.with_border(Border::Wrap).convolve(&Filter::sparse([(0, i32::MIN)], [1.0]))), "convolve");
    assert_eq!(
        op(a.with_border(Border::Wrap).separable(&Filter::column([1.0, 2.0]), &Filter::column([1.0]))),
        "separable"
    );
    assert_eq!(op(a.rotate(f64::NAN, Interpolation::Bilinear)), "rotate");
    assert_eq!(op(a.translate(f64::INFINITY, 0.0)), "translate");
    assert_eq!(op(a.with_border(Border::Wrap).affine([[f64::NAN; 3]; 2], (4, 4), Interpolation::Nearest)), "affine");
    assert_eq!(op(a.clamp(1.0, 0.0)), "clamp");
    assert_eq!(op(a.clamp(f32::NAN, 0.0)), "clamp");
    assert_eq!(op(a.absdiv(&a, -1.0)), "absdiv");
    assert_eq!(op(a.absdiv(2.0, f32::NAN)), "absdiv");
    assert_eq!(op(a.channel(1)), "channel");
    assert_eq!(op(a.histogram(0, 0.0, 1.0)), "histogram");
    assert_eq!(op(a.histogram(4, 1.0, 1.0)), "histogram");
    assert_eq!(op(a.histogram(4, 0.0, f64::NAN)), "histogram");
    assert_eq!(op(a.pixel((8, 0))), "pixel");
    let five = Image::stack(&s, [&a; 5], Axis::Channels);
    assert_eq!(op(five.luminance()), "luminance");
    assert_eq!(op(five.to_array::<Ix2>()), "to_array");
}

#[test]
fn operations_know_the_type_and_the_size_of_their_result() {
    let s = session();
    let bytes = Image::from_fn(&s, 6, 9, |y, x| (y * x) as u8);
    assert_eq!(bytes.gauss(1.0).dtype(), DType::F32);
    assert_eq!(bytes.convert::<f64>().sobel(Axis::Columns).dtype(), DType::F64);
    assert_eq!(bytes.erode(&Footprint::rectangle(3, 3)).dtype(), DType::U8);
    assert_eq!(bytes.with_border(Border::Wrap).box_mean((3, 300)).dtype(), DType::F32);
    assert_eq!(bytes.convert::<f64>().with_border(Border::Wrap).box_mean((3, 3)).dtype(), DType::F64);
    assert_eq!(bytes.lt(3).with_border(Border::Wrap).median(&Footprint::disc(2)).dtype(), DType::Bool);
    assert_eq!(bytes.convert::<i32>().rotate(20.0, Interpolation::Bilinear).dtype(), DType::I32);
    assert_eq!(bytes.to_unit().dtype(), DType::F32);
    assert_eq!(bytes.convert::<f64>().lt(3.0).dtype(), DType::Bool);
    assert_eq!(bytes.transpose().shape(), Shape::new(9, 6, 1));
    assert_eq!(bytes.flip([Axis::Rows, Axis::Columns]).shape(), bytes.shape());
    assert_eq!(bytes.resize(3, 30, Interpolation::Bicubic).shape(), Shape::new(3, 30, 1));
    assert_eq!(bytes.over(Axis::Columns).sum().shape(), Shape::new(6, 1, 1));
    assert_eq!(bytes.over(Axis::Rows).sum().shape(), Shape::new(1, 9, 1));
    let colour = Image::stack(&s, [&bytes, &bytes, &bytes], Axis::Channels);
    assert_eq!((colour.channels(), colour.luminance().channels()), (3, 1));
}

#[test]
fn operators_take_images_and_scalars_owned_or_borrowed() -> Result<()> {
    let s = session();
    let (a, b) = (ramp(&s, 2, 2), ramp(&s, 2, 2));
    let _: Image<f32> = (&a + &b) - &b;
    let _: Image<f32> = (a.clone() * b.clone()) / 2.0;
    let _: Image<f32> = 1.0 - &(&a * 3.0);
    let _: Image<f32> = -&a + 0.5;
    let _: Image<f32> = -(2.0 / a.clone());
    let n = Image::constant(&s, (2, 2), 7u8);
    let _: Image<u8> = 3 + &n * 2;
    let _: Image<f32> = a.max(&b).min(1.0).pow(2.0).absdiff(&b);
    Ok(())
}

#[test]
fn pictures_survive_a_round_trip() -> Result<()> {
    let s = session();
    let folder = tempfile::tempdir().expect("a folder for pictures");
    let colour =
        Image::from_array(&s, ndarray::Array3::from_shape_fn((5, 7, 3), |(y, x, c)| (40 * y + 5 * x + c) as u8).view());
    let grey = Image::from_fn(&s, 5, 7, |y, x| (9000 * y + x) as u16);
    let floats = Image::from_fn(&s, 5, 7, |y, x| y as f32 - 0.1 * x as f32);
    let at = |name: &str| folder.path().join(name);
    for name in ["c.png", "c.tif", "c.ppm", "c.bmp", "c.pnm"] {
        assert_eq!(colour.save(at(name))?, None);
        let AnyImage::U8(read) = AnyImage::open(&s, at(name))? else { panic!("{name} has another type") };
        assert_eq!(read.to_array::<Ix3>()?, colour.to_array()?, "{name}");
    }
    let sixteen = SaveOptions { depth: Depth::Sixteen, ..SaveOptions::default() };
    for name in ["g.png", "g.tiff", "g.pgm"] {
        grey.save_with(at(name), &sixteen)?;
        let AnyImage::U16(read) = AnyImage::open(&s, at(name))? else { panic!("{name} has another type") };
        assert_eq!(read.to_array::<Ix2>()?, grey.to_array()?, "{name}");
    }
    floats.save_with(at("f.tif"), &SaveOptions { depth: Depth::Float, ..SaveOptions::default() })?;
    assert_eq!(Image::<f32>::open(&s, at("f.tif"))?.to_vec()?, floats.to_vec()?);
    floats.save(at("f.npy"))?;
    assert_eq!(ndarray_npy::read_npy::<_, Array2<f32>>(at("f.npy")).expect("an array"), floats.to_array::<Ix2>()?);
    let range = SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() };
    let scale = floats.save_with(at("f.png"), &range)?.expect("floats are scaled");
    assert_eq!((scale.low, scale.high, scale.full), (f64::from(0.0f32 - 0.1 * 6.0), 4.0, 255));
    let read = Image::<u8>::open(&s, at("f.png"))?;
    assert_eq!((read.pixel((0, 6))?, read.pixel((4, 0))?), (0, 255));
    colour.save(at("c.jpg"))?;
    assert_eq!(AnyImage::open(&s, at("c.jpg"))?.shape(), colour.shape());
    Ok(())
}

#[test]
fn unscaled_values_are_rounded() -> Result<()> {
    let s = session();
    let folder = tempfile::tempdir().expect("a folder for pictures");
    let path = folder.path().join("a.png");
    let image = Image::from_array(&s, array![[0.4f64, 2.5, 300.0], [-1.0, f64::NAN, 3.5]].view());
    assert_eq!(image.save_with(&path, &SaveOptions { scaling: Scaling::None, ..SaveOptions::default() })?, None);
    assert_eq!(Image::<u8>::open(&s, &path)?.to_array()?, array![[0, 2, 255], [0, 0, 4]]);
    Ok(())
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let s = session();
    let folder = tempfile::tempdir().expect("a folder for pictures");
    let cause = |path: PathBuf| match AnyImage::open(&s, path) {
        Err(Error::File { action: "read", cause, .. }) => cause,
        other => panic!("{other:?}"),
    };
    assert!(cause(folder.path().join("missing.png")).contains("No such file"));
    assert!(cause(folder.path().to_owned()).contains("directory"));
    let text = folder.path().join("text.png");
    std::fs::write(&text, "no picture at all").expect("a writable folder");
    assert!(cause(text).contains("not a PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP or JPEG 2000 file"));
}

#[test]
fn files_that_cannot_be_written_say_why_and_leave_nothing() -> Result<()> {
    let s = session();
    let folder = tempfile::tempdir().expect("a folder for pictures");
    let image = ramp(&s, 3, 3);
    for name in ["a.gif", "a", "missing/a.png"] {
        let failed = image.save(folder.path().join(name));
        assert!(matches!(failed, Err(Error::File { action: "write", .. })), "{name}: {failed:?}");
    }
    let sixteen = SaveOptions { depth: Depth::Sixteen, ..SaveOptions::default() };
    assert!(image.save_with(folder.path().join("a.jpg"), &sixteen).is_err());
    assert!(Image::stack(&s, [&image, &image], Axis::Channels).save(folder.path().join("a.bmp")).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);
    Ok(())
}

#[test]
fn an_output_that_cannot_be_made_costs_no_computation_on_any_rank() {
    let folder = tempfile::tempdir().expect("a folder for pictures");
    let (missing, there) = (folder.path().join("missing/a.png"), folder.path().join("a.png"));
    ThreadComm::run(2, |comm| {
        let device = CpuDevice::new(Some(1)).expect("a CPU");
        let s = Session::on(Box::new(device)).communicator(Arc::new(comm)).build().expect("a session");
        let image = ramp(&s, 6, 5).gauss(1.0);
        let error = image.save(&missing).expect_err("there is no such folder").to_string();
        assert!(error.contains("missing/a.png: cannot create a file in ") && !error.contains(".horus-"), "{error}");
        assert_eq!(s.stats().evaluations, 0);
        // The ranks still agree on the next operation.
        assert!(image.save(&there).expect("a folder").is_some());
    });
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
}

#[test]
fn border_constants_and_named_filters_combine_with_every_border() -> Result<()> {
    let s = session();
    let a = ramp(&s, 4, 4);
    let (row, column) = filters::gauss_xy(2.0, 1.0, 0, 2);
    for border in [Border::Reflect, Border::Replicate, Border::Wrap, Border::Constant(3.0)] {
        assert_eq!(a.with_border(border).separable(&row, &column).shape(), a.shape());
    }
    Ok(())
}

#[test]
fn named_operations_are_their_recipes_with_any_border() -> Result<()> {
    let s = session();
    let a = Image::from_fn(&s, 9, 7, |y, x| ((y * 31 + x * 17) % 23) as f32);
    for border in [Border::Reflect101, Border::Wrap, Border::Constant(7.0)] {
        let named = a.with_border(border);
        let separable = |(row, column): (Filter, Filter)| named.separable(&row, &column);
        let (u, v) = filters::gauss_uv(20.0, 2.0, 1.0, 0, 1);
        let pairs = [
            (named.gauss(1.5), separable(filters::gauss(1.5, 0, 0))),
            (named.gauss_derivative(1.5, (1, 2)), separable(filters::gauss(1.5, 1, 2))),
            (named.gauss_xy(1.0, 2.0, 0, 1), separable(filters::gauss_xy(1.0, 2.0, 0, 1))),
            (named.gauss_2d(20.0, 2.0, 1.0, 0, 1), named.correlate(&filters::gauss_2d(20.0, 2.0, 1.0, 0, 1))),
            (named.gauss_uv(20.0, 2.0, 1.0, 0, 1), named.correlate(&u).with_border(border).correlate(&v)),
            (named.sobel(Axis::Columns), separable(filters::sobel_x())),
            (named.sobel(Axis::Rows), separable(filters::sobel_y())),
            (named.laplace(), named.correlate(&filters::laplace())),
        ];
        for (i, (named, recipe)) in pairs.iter().enumerate() {
            assert_eq!(named.to_vec()?, recipe.to_vec()?, "pair {i}, {border}");
        }
        let (cross, line) = (Footprint::cross(1), Footprint::rectangle(1, 3));
        let opened = named.erode(&cross).with_border(border).dilate(&cross);
        assert_eq!(named.opening(&cross).to_vec()?, opened.to_vec()?, "{border}");
        // What is made of an image has no border of its own, even where it is the image itself.
        for result in [
            named.channel(0),
            named.flip(Axis::Channels),
            named.shift(0, 0, 0),
            named.slice(0..1),
            named.crop(0, 0, 9, 7),
        ] {
            assert_eq!(result.erode(&line).to_vec()?, a.erode(&line).to_vec()?, "{border}");
        }
    }
    Ok(())
}
