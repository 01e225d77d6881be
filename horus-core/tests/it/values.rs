//! Results of the public algebra, on images small enough to check by hand.

use horus_core::cpu::device::CpuDevice;
use horus_core::error::Result;
use horus_core::filters::Footprint;
use horus_core::image::{Image, samples};
use horus_core::io::{Alpha, AnyImage};
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::{Combine, Filter, Generalized, Reduce};
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use ndarray::{Array2, Ix2, Ix3, array};

fn session() -> Session {
    let device = CpuDevice::new(Some(2)).expect("a CPU");
    Session::on(Box::new(device)).build().expect("a session on the CPU")
}

/// Rows `1 2 3` and `4 5 6`.
fn six<T: horus_core::dtype::Pixel>(s: &Session) -> Image<T> {
    Image::from_fn(s, 2, 3, |y, x| T::from_f64((3 * y + x + 1) as f64))
}

#[test]
fn operand_order_matters() -> Result<()> {
    let s = session();
    let a = six::<f32>(&s);
    assert_eq!((10.0 - &a).to_vec()?, [9.0, 8.0, 7.0, 6.0, 5.0, 4.0]);
    assert_eq!((&a - 1.0).to_vec()?, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    assert_eq!((12.0 / &a).to_vec()?, [12.0, 6.0, 4.0, 3.0, 2.4, 2.0]);
    assert_eq!((&(&a * 2.0) / &a).to_vec()?, [2.0; 6]);
    assert_eq!((&(&a * 2.0) - &a).to_vec()?, a.to_vec()?);
    assert_eq!((-&a).pixel((1, 2))?, -6.0);
    Ok(())
}

#[test]
fn named_operations_compute_what_they_say() -> Result<()> {
    let s = session();
    let a = six::<f64>(&s);
    let b = Image::constant(&s, (2, 3), 3.0);
    assert_eq!(a.max(&b).to_vec()?, [3.0, 3.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(a.min(3.0).to_vec()?, [1.0, 2.0, 3.0, 3.0, 3.0, 3.0]);
    assert_eq!(a.absdiff(&b).to_vec()?, [2.0, 1.0, 0.0, 1.0, 2.0, 3.0]);
    assert_eq!(a.absdiv(&(&b - &a), 0.5).to_vec()?, [0.5, 2.0, 0.0, 4.0, 2.5, 2.0]);
    assert_eq!(a.absdiv(-2.0, 0.5).to_vec()?, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]);
    assert_eq!(a.absdiv(0.1, 0.5).to_vec()?, [0.0; 6]);
    assert_eq!(a.gt(3.0).to_vec()?, [false, false, false, true, true, true]);
    assert_eq!(a.le(&b).to_vec()?, [true, true, true, false, false, false]);
    assert_eq!(a.eq(3.0).select(&b, &a).to_vec()?, a.to_vec()?);
    assert_eq!(a.ne(3.0).select(&a, -1.0).to_vec()?, [1.0, 2.0, -1.0, 4.0, 5.0, 6.0]);
    assert_eq!(a.clamp(2.0, 4.0).to_vec()?, [2.0, 2.0, 3.0, 4.0, 4.0, 4.0]);
    assert_eq!(a.threshold(4.0).to_vec()?, [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]);
    assert_eq!(a.pow(2.0).to_vec()?, a.square().to_vec()?);
    Ok(())
}

#[test]
fn integers_saturate_and_scale_to_unit() -> Result<()> {
    let s = session();
    let a = Image::from_slice(&s, (1, 3), &[0u8, 51, 255]);
    assert_eq!((&a + 250).to_vec()?, [250, 255, 255]);
    assert_eq!((10 - &a).to_vec()?, [10, 0, 0]);
    assert_eq!(a.to_unit().to_vec()?, [0.0, 0.2, 1.0]);
    assert_eq!(a.convert::<u16>().to_unit().pixel((0, 2))?, 255.0f32 / 65535.0);
    assert_eq!(Image::constant(&s, (1, 1), i32::MAX).to_unit().to_vec()?, [1.0]);
    assert_eq!(Image::constant(&s, (1, 1), 2.5f32).to_unit().to_vec()?, [2.5]);
    Ok(())
}

#[test]
fn channels_come_apart_and_together() -> Result<()> {
    let s = session();
    let (r, g) = (six::<u8>(&s), &six::<u8>(&s) * 10);
    let image = Image::stack(&s, [&r, &g, &r], Axis::Channels);
    assert_eq!(image.channel(1).to_vec()?, g.to_vec()?);
    assert_eq!(image.to_array::<Ix3>()?[[1, 2, 1]], 60);
    assert_eq!(image.pixel((0, 1, 2, 1))?, 60);
    assert_eq!(image.luminance().pixel((0, 0))?, (1.0 * 0.299f32 + 10.0 * 0.587 + 1.0 * 0.114) / 255.0);
    let two = AnyImage::U8(Image::stack(&s, [&r, &g], Axis::Channels));
    assert!(two.luminance().check().unwrap_err().to_string().contains("none of them known to be alpha"));
    let alpha = two.with_alpha(Some(Alpha::Unassociated));
    assert_eq!(alpha.luminance().to_vec()?, r.to_unit().to_vec()?);
    assert_eq!(alpha.convert::<u8>().luminance().to_vec()?, r.to_unit().to_vec()?);
    // One rule, whether the type is known or not.
    let known = [image.luminance(), image.convert::<u16>().luminance(), image.convert::<f64>().luminance()];
    let any = [AnyImage::U8(image.clone()), AnyImage::U16(image.convert()), AnyImage::F64(image.convert())];
    for (known, any) in known.iter().zip(any) {
        assert_eq!(known.to_vec()?, any.luminance().to_vec()?);
    }
    assert_eq!(image.convert::<f32>().luminance().pixel((0, 0))?, 1.0 * 0.299f32 + 10.0 * 0.587 + 1.0 * 0.114);
    Ok(())
}

#[test]
fn correlation_does_not_flip_and_convolution_does() -> Result<()> {
    let s = session();
    let dot = Image::from_slice(&s, (1, 5), &[0.0f32, 0.0, 1.0, 0.0, 0.0]);
    let filter = Filter::row([1.0, 2.0, 3.0]);
    let zero = Border::Constant(0.0);
    assert_eq!(dot.with_border(zero).correlate(&filter).to_vec()?, [0.0, 3.0, 2.0, 1.0, 0.0]);
    assert_eq!(dot.with_border(zero).convolve(&filter).to_vec()?, [0.0, 1.0, 2.0, 3.0, 0.0]);
    let even = Filter::row([1.0, 2.0]);
    assert_eq!(dot.with_border(zero).correlate(&even).to_vec()?, [0.0, 0.0, 2.0, 1.0, 0.0]);
    assert_eq!(dot.with_border(zero).convolve(&even).to_vec()?, [0.0, 1.0, 2.0, 0.0, 0.0]);
    Ok(())
}

#[test]
fn filters_of_integers_are_computed_in_floats() -> Result<()> {
    let s = session();
    let a = six::<u8>(&s);
    let mean = a.with_border(Border::Replicate).separable(&Filter::row([0.5, 0.5]), &Filter::column([1.0]));
    assert_eq!(mean.to_vec()?, [1.0, 1.5, 2.5, 4.0, 4.5, 5.5]);
    Ok(())
}

#[test]
fn oriented_filters_agree_where_they_are_axis_aligned() -> Result<()> {
    let s = session();
    let a = samples::worms(&s, 40, 31);
    for (ou, ov) in [(0, 0), (0, 2), (1, 1)] {
        let xy = a.gauss_xy(3.0, 1.0, ou, ov).to_vec()?;
        assert_eq!(a.gauss_2d(0.0, 3.0, 1.0, ou, ov).to_vec()?, xy);
        assert_eq!(a.gauss_uv(0.0, 3.0, 1.0, ou, ov).to_vec()?, xy);
        let turned = a.gauss_2d(90.0, 3.0, 1.0, ou, ov).to_vec()?;
        let decomposed = a.gauss_uv(90.0, 3.0, 1.0, ou, ov).to_vec()?;
        assert!(turned.iter().zip(&decomposed).all(|(p, q)| (p - q).abs() < 1e-5));
    }
    // At other angles the decomposition approximates the dense kernel.
    let (dense, decomposed) = (a.gauss_2d(30.0, 3.0, 1.5, 0, 0), a.gauss_uv(30.0, 3.0, 1.5, 0, 0));
    assert!(dense.absdiff(&decomposed).max_value().get()? < 0.05);
    Ok(())
}

#[test]
fn derivatives_have_the_sign_of_the_slope() -> Result<()> {
    let s = session();
    let ramp = Image::from_fn(&s, 31, 33, |y, x| (2 * x + 3 * y) as f32);
    let close =
        |image: Image<f32>, want: f32| image.pixel((15, 16)).map(|v| assert!((v - want).abs() < 0.1, "{v} {want}"));
    close(ramp.gauss_derivative(2.0, (0, 1)), 2.0)?;
    close(ramp.gauss_derivative(2.0, (1, 0)), 3.0)?;
    close(ramp.gauss(2.0), ramp.pixel((15, 16))?)?;
    close(ramp.sobel(Axis::Columns), 16.0)?;
    close(ramp.sobel(Axis::Rows), 24.0)?;
    close(ramp.laplace(), 0.0)?;
    close(ramp.box_mean(5), ramp.pixel((15, 16))?)?;
    Ok(())
}

#[test]
fn erosion_in_two_passes_is_erosion_in_one() -> Result<()> {
    let s = session();
    let a = samples::worms(&s, 23, 19);
    for (h, w) in [(3, 5), (1, 7), (9, 1), (1, 1)] {
        let rectangle = Footprint::rectangle(h, w);
        let window = Filter::dense(h, w, vec![0.0; h * w]);
        let extreme = |reduce| Generalized { window: window.clone(), combine: Combine::Pixel, reduce };
        let one = a.generalized(&extreme(Reduce::Min));
        assert_eq!(a.erode(&rectangle).to_vec()?, one.to_vec()?);
        let one = a.generalized(&extreme(Reduce::Max));
        assert_eq!(a.dilate(&rectangle).to_vec()?, one.to_vec()?);
    }
    Ok(())
}

#[test]
fn a_generalized_convolution_combines_and_reduces() -> Result<()> {
    let s = session();
    let a = six::<i32>(&s);
    let window = Filter::row([10.0, 0.0, 20.0]);
    let highest = Generalized { window, combine: Combine::Add, reduce: Reduce::Max };
    assert_eq!(a.with_border(Border::Replicate).generalized(&highest).to_vec()?, [22, 23, 23, 25, 26, 26]);
    Ok(())
}

#[test]
fn a_median_removes_a_dot() -> Result<()> {
    let s = session();
    let dot = Image::from_fn(&s, 7, 7, |y, x| if (y, x) == (3, 3) { 200u8 } else { 9 });
    assert_eq!(dot.median(3).to_vec()?, [9; 49]);
    assert_eq!(dot.median(5).to_vec()?, [9; 49]);
    Ok(())
}

#[test]
fn geometric_operations_move_pixels() -> Result<()> {
    let s = session();
    let a = six::<u8>(&s);
    assert_eq!(a.transpose().to_array()?, array![[1, 4], [2, 5], [3, 6]]);
    assert_eq!(a.flip(Axis::Columns).to_array()?, array![[3, 2, 1], [6, 5, 4]]);
    assert_eq!(a.flip(Axis::Rows).to_array()?, array![[4, 5, 6], [1, 2, 3]]);
    assert_eq!(a.flip([Axis::Rows, Axis::Columns]).to_array()?, array![[6, 5, 4], [3, 2, 1]]);
    assert_eq!(a.translate(1.0, 1.0).to_array()?, array![[0, 0, 0], [0, 1, 2]]);
    assert_eq!(a.translate(0.0, -0.5).to_array()?, array![[2, 2, 2], [4, 6, 3]]);
    assert_eq!(a.rotate(0.0, Interpolation::Bilinear).to_array::<Ix2>()?, a.to_array()?);
    assert_eq!(a.rotate(180.0, Interpolation::Bilinear).to_array()?, array![[6, 5, 4], [3, 2, 1]]);
    assert_eq!(
        a.resize(4, 6, Interpolation::Nearest).to_array::<Ix2>()?,
        Array2::from_shape_fn((4, 6), |(y, x)| (3 * (y / 2) + x / 2 + 1) as u8)
    );
    let corner = Image::from_slice(&s, (3, 3), &[0.0f32, 0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(corner.rotate(90.0, Interpolation::Bilinear).pixel((0, 0))?, 1.0, "anti-clockwise");
    let shifted = [[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]];
    assert_eq!(a.with_border(Border::Wrap).affine(shifted, (1, 4), Interpolation::Bilinear).to_vec()?, [2, 3, 1, 2]);
    Ok(())
}

#[test]
fn reductions_cover_the_whole_image() -> Result<()> {
    let s = session();
    let a = six::<u8>(&s);
    assert_eq!(a.sum().get()?, 21.0);
    assert_eq!(a.mean().get()?, 3.5);
    assert!((a.variance().get()? - 35.0 / 12.0).abs() < 1e-12);
    assert_eq!((a.min_value().get()?, a.max_value().get()?), (1, 6));
    assert_eq!(a.histogram(3, 1.0, 4.0).get()?, [1, 1, 2]);
    assert_eq!(a.over(Axis::Columns).sum().to_vec()?, [6.0, 15.0]);
    assert_eq!(a.over(Axis::Rows).sum().to_vec()?, [5.0, 7.0, 9.0]);
    let two = Image::stack(&s, [&a, &(&a * 2)], Axis::Channels);
    assert_eq!(two.sum().get()?, 63.0);
    assert_eq!(two.mean().get()?, 5.25);
    assert_eq!(two.over(Axis::Columns).sum().to_vec()?, [6.0, 12.0, 15.0, 30.0]);
    let gaps = Image::from_slice(&s, (1, 3), &[f32::NAN, 2.0, -1.0]);
    assert_eq!((gaps.min_value().get()?, gaps.max_value().get()?), (-1.0, 2.0));
    Ok(())
}

#[test]
fn constructors_lay_out_pixels_alike() -> Result<()> {
    let s = session();
    let want = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
    assert_eq!(six::<f64>(&s).to_array()?, want);
    assert_eq!(Image::from_array(&s, want.view()).to_array()?, want);
    assert_eq!(Image::from_array(&s, want.t()).to_array()?, want.t(), "a strided view");
    let colour = Image::from_slice(&s, Shape::new(1, 2, 2), &[1i32, 2, 3, 4]);
    assert_eq!(colour.to_array()?, array![[[1, 2], [3, 4]]]);
    assert_eq!(Image::from_array(&s, colour.to_array::<Ix3>()?.view()).to_vec()?, [1, 2, 3, 4]);
    assert_eq!(Image::<u16>::zeros(&s, (2, 2)).to_vec()?, [0; 4]);
    assert_eq!(Image::<i32>::zeros(colour.session(), colour.shape()).to_vec()?, [0; 4]);
    Ok(())
}
