//! Recording never fails: errors are carried to the reader of a value. Argument types,
//! broadcasting, masks.

use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::DType;
use horus_core::error::{Error, Result};
use horus_core::filters::Footprint;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::ops::neighbourhood::Filter;
use horus_core::session::Session;
use horus_core::shape::{Axis, Border, Shape};
use ndarray::{Array2, Array3, Axis as ArrayAxis, Ix2, Ix3, Zip};

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

fn on(comm: ThreadComm) -> Session {
    Session::on(Box::new(CpuDevice::new(Some(1)).unwrap())).communicator(Arc::new(comm)).build().unwrap()
}

fn ramp(s: &Session, height: usize, width: usize) -> Image<f32> {
    Image::from_fn(s, height, width, |y, x| (y * width + x) as f32)
}

#[test]
fn an_error_travels_through_every_operation_and_nothing_is_executed() {
    let s = session();
    let a = ramp(&s, 4, 5);
    let line = line!() + 1;
    let bad = a.gauss(-1.0);
    let after = bad
        .sobel(Axis::Columns)
        .max(&a)
        .rotate(10.0, Interpolation::Bilinear)
        .gt(2.0)
        .select(&a, 0.0)
        .transpose()
        .median(3);
    let both = Image::stack(&s, [&after.transpose(), &bad], Axis::Channels).luminance().opening(&Footprint::disc(1));
    let value = both.crop(1, 1, 2, 2).mean() * 2.0;
    let wants = format!("gauss: sigma is -1; it must be positive and finite (at horus-core/tests/algebra.rs:{line}:");
    let told = [
        both.check().unwrap_err(),
        both.to_vec().unwrap_err(),
        both.to_array::<Ix3>().unwrap_err(),
        both.pixel((0, 0)).unwrap_err(),
        both.save("never.png").unwrap_err(),
        value.get().unwrap_err(),
        s.get_all((a.sum(), value.clone())).unwrap_err(),
        s.evaluate().unwrap_err(),
    ];
    for error in told {
        assert!(error.to_string().starts_with(&wants), "{error}");
    }
    assert!(!std::path::Path::new("never.png").exists());
    assert_eq!(s.stats().evaluations, 0, "nothing was executed for it");
    // Known properties are reported; nothing else is affected.
    assert_eq!((after.shape(), after.dtype()), (Shape::new(5, 4, 1), DType::F32));
    assert_eq!(after.to_string(), "5x4 f32 image that failed");
    assert_eq!(
        (a.to_string(), format!("{value:?}").as_str()),
        ("4x5 f32 image".into(), "Value(f64, failed: check() tells why)")
    );
    assert_eq!(format!("{:?}", a.sum()), "Value(f64, recorded: get() computes it)");
    assert_eq!(a.sum().get().unwrap(), 190.0);
    drop((bad, after, both, value));
    s.evaluate().unwrap();
}

#[test]
fn the_first_error_is_the_one_that_is_told() {
    let s = session();
    let a = ramp(&s, 3, 3);
    let (first, second) = (a.gauss(0.0), a.rotate(f64::NAN, Interpolation::Bilinear));
    let told = |image: Image<f32>| image.check().unwrap_err().to_string();
    assert!(told(&first + &second).starts_with("gauss"));
    assert!(told(&second + &first).starts_with("rotate"));
    // An image of unknown size combines with any other: its own error is the cause.
    assert!(told(a.crop(0, 0, 9, 9) + &a).starts_with("crop"));
    assert!(told(second.clamp(1.0, 0.0)).starts_with("rotate"));
    assert!(
        told(a.with_border(Border::Wrap).correlate(&Filter::dense(2, 2, vec![0.0])))
            .starts_with("Filter::dense: 1 taps")
    );
}

#[test]
fn results_too_large_by_type_or_channels_are_errors_where_they_are_recorded() {
    let s = session();
    let huge = Image::<u8>::zeros(&s, (1 << 23, 1 << 22));
    let four = Image::stack(&s, [&huge, &huge, &huge, &huge], Axis::Channels);
    four.check().unwrap();
    let told = four.convert::<f64>().check().unwrap_err().to_string();
    assert!(told.contains("too large") && told.contains(file!()), "{told}");
    assert!(four.gauss(1.0).check().is_err());
    let line = Image::<f32>::zeros(&s, (1, 1 << 30));
    let column = Image::<f64>::zeros(&s, (1 << 30, 1));
    assert!((line.convert::<f64>() + column).check().is_err());
}

#[test]
fn ranks_that_all_failed_go_on_and_one_that_failed_alone_is_told() {
    let alike = ThreadComm::run(3, |comm| {
        let s = on(comm);
        let bad = ramp(&s, 6, 4).box_mean(0);
        let told = bad.sum().get().unwrap_err().to_string();
        (told, s.evaluate().is_err(), ramp(&s, 6, 4).sum().get().unwrap())
    });
    for (told, all, sum) in alike {
        assert!(told.starts_with("box_mean: size 0x0") && all, "{told}");
        assert_eq!(sum, 276.0, "the session lives");
    }
    let unlike = ThreadComm::run(3, |comm| {
        let sigma = if comm.rank() == 1 { -1.0 } else { 1.0 };
        let s = on(comm);
        ramp(&s, 6, 4).gauss(sigma).to_vec().unwrap_err().to_string()
    });
    for (rank, told) in unlike.iter().enumerate() {
        assert!(told.contains("rank 1 reached `a value that failed: gauss: sigma is -1"), "rank {rank}: {told}");
    }
}

struct Captured(Mutex<Vec<String>>);
impl log::Log for Captured {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &log::Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }
    fn flush(&self) {}
}
static LOG: Captured = Captured(Mutex::new(Vec::new()));

#[test]
fn an_error_that_nobody_looked_at_is_logged_once() {
    log::set_logger(&LOG).unwrap();
    log::set_max_level(log::LevelFilter::Warn);
    let s = session();
    let of =
        |s: &Session| ramp(s, 2, 2).with_border(Border::Wrap).affine([[f64::NAN; 3]; 2], (31, 41), Default::default());
    let seen = of(&s);
    seen.check().unwrap_err();
    drop(seen);
    let unseen = of(&s);
    let more = unseen.abs() + 1.0;
    drop((unseen, more));
    // Of two errors that meet, the first is carried on and the second is dropped.
    let sum = of(&s) + of(&s);
    sum.check().unwrap_err();
    drop(sum);
    let logged = LOG.0.lock().unwrap();
    let about: Vec<_> = logged.iter().filter(|l| l.contains("affine: ")).collect();
    assert!(about.len() == 1 && about[0].contains("was discarded"), "{about:?}");
}

#[test]
fn operands_are_images_scalars_reductions_and_a_value_per_channel() -> Result<()> {
    let s = session();
    let (a, mut b) = (ramp(&s, 2, 3), ramp(&s, 2, 3) + 1.0);
    let want: Vec<f32> = (0..6).map(|v| (v * v + v * (v + 1)) as f32).collect();
    assert_eq!((&a * &a + &a * &b).to_vec()?, want);
    assert_eq!((a.clone() * &a + a.clone() * &mut b).to_vec()?, want);
    assert_eq!(a.max(&mut b).to_vec()?, b.to_vec()?);
    // Reductions on either side, rounded to the image's type.
    assert_eq!((&a / a.max_value()).to_vec()?, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    assert_eq!((&a - a.mean()).to_vec()?, [-2.5, -1.5, -0.5, 0.5, 1.5, 2.5]);
    assert_eq!((a.max_value() - &a).to_vec()?, [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]);
    let unit = (&a - a.min_value()) / (a.max_value() - a.min_value());
    assert_eq!(unit.to_vec()?, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]);
    assert_eq!((1.0 / (a.max_value() * 2.0)).get()?, 0.1);
    assert_eq!(a.clamp(1.0, 4.0).absdiv(a.max_value(), 1e-3).max_value().get()?, 0.8);
    // Assignment operators.
    let mut c = a.clone();
    c += &b;
    c -= 1.0;
    c *= c.clone();
    c /= b.max_value();
    let want: Vec<f32> = (0..6).map(|v| (4 * v * v) as f32 / 6.0).collect();
    assert_eq!(c.to_vec()?, want);
    // One value per channel.
    let colour = Image::stack(&s, [&a, &b], Axis::Channels) * [10.0, 100.0];
    assert_eq!(colour.channel(1).to_vec()?, (&b * 100.0).to_vec()?);
    assert_eq!((&a + [0.0, 1.0]).to_vec()?, Image::stack(&s, [&a, &b], Axis::Channels).to_vec()?);
    assert!(matches!((colour * [1.0, 2.0, 3.0]).check(), Err(Error::ShapeMismatch { op: "mul", .. })));
    Ok(())
}

#[test]
fn several_values_take_one_evaluation() -> Result<()> {
    let s = session();
    let a = ramp(&s, 20, 30).gauss(2.0);
    let mask = a.gt(300.0);
    let (low, high, count, bins) =
        s.get_all((a.min_value(), &a.max_value(), mask.count(), a.histogram(4, 0.0, 600.0)))?;
    assert_eq!(s.stats().evaluations, 1);
    assert_eq!((low, high), (a.min_value().get()?, a.max_value().get()?));
    assert_eq!((count, bins.iter().sum::<u64>()), (mask.count().get()?, 600));
    let rows: Vec<_> = (0..3).map(|y| a.crop(y, 0, 1, 30).sum()).collect();
    assert_eq!(s.get_all(&rows)?, [rows[0].get()?, rows[1].get()?, rows[2].get()?]);
    assert_eq!(s.get_all([a.sum(), a.sum()])?, [a.sum().get()?; 2]);
    Ok(())
}

/// An array with these extents, channels last.
fn array(shape: [usize; 3], seed: usize) -> Array3<f32> {
    Array3::from_shape_fn(shape, |(y, x, c)| ((y * 31 + x * 17 + c * 7 + seed) % 23) as f32 - 5.0)
}

#[test]
fn extents_of_one_are_repeated_as_numpy_does_on_any_number_of_ranks() {
    let shapes = [[9, 7, 3], [9, 7, 1], [1, 7, 3], [9, 1, 1], [1, 1, 3], [1, 1, 1], [1, 7, 1], [9, 1, 3]];
    for (i, &left) in shapes.iter().enumerate() {
        for &right in &shapes[i..] {
            let (a, b) = (array(left, 1), array(right, 2));
            let shape: [usize; 3] = std::array::from_fn(|k| left[k].max(right[k]));
            let full = |a: &Array3<f32>| a.broadcast(shape).unwrap().to_owned();
            let mut want = full(&a);
            Zip::from(&mut want).and(&full(&b)).for_each(|w, b| *w = *w * 2.0 - *b);
            for ranks in [1, 2, 4] {
                let got = ThreadComm::run(ranks, |comm| {
                    let s = on(comm);
                    let image = |a: &Array3<f32>| Image::from_array(&s, a.view());
                    // A computed image is broadcast like a given one.
                    (image(&a) * 2.0 - (image(&b) + 1.0)).to_array::<Ix3>().unwrap() + 1.0
                });
                for got in got {
                    assert_eq!(got, want, "{left:?} {right:?} on {ranks} ranks");
                }
            }
        }
    }
}

#[test]
fn repeated_images_are_filtered_and_reduced_like_whole_ones() -> Result<()> {
    let s = session();
    let (grey, row) = (ramp(&s, 8, 9), ramp(&s, 1, 9));
    let colour = Image::stack(&s, [&grey, &(&grey * 2.0), &(&grey * 3.0)], Axis::Channels);
    let whole = Image::stack(&s, [&grey, &grey, &grey], Axis::Channels);
    let want = (&colour * &whole).gauss(1.0);
    assert_eq!((&colour * &grey).gauss(1.0).to_vec()?, want.to_vec()?);
    assert_eq!((&colour * &grey).sum().get()?, (&colour * &whole).sum().get()?);
    let tall = Image::from_fn(&s, 8, 9, |_, x| x as f32);
    assert_eq!((&grey + &row).median(3).to_vec()?, (&grey + &tall).median(3).to_vec()?);
    Ok(())
}

#[test]
fn masks_combine_choose_and_are_saved_in_black_and_white() -> Result<()> {
    let s = session();
    let a = ramp(&s, 2, 4);
    let (low, odd) = (a.lt(4.0), Image::from_fn(&s, 2, 4, |_, x| x % 2 == 1));
    let check = |mask: Image<bool>, f: fn(bool, bool) -> bool| -> Result<()> {
        let want: Vec<bool> = (0..8).map(|i| f(i < 4, i % 2 == 1)).collect();
        assert_eq!((mask.dtype(), mask.to_vec()?), (DType::Bool, want));
        Ok(())
    };
    check(&low & &odd, |l, o| l && o)?;
    check(low.clone() | &odd, |l, o| l || o)?;
    check(&low ^ odd.clone(), |l, o| l != o)?;
    check(!&low, |l, _| !l)?;
    let mut all = low.clone();
    all |= &odd;
    all &= !&low;
    all ^= &odd;
    check(all, |l, o| (!l && o) != o)?;
    assert_eq!((odd.count().get()?, a.over(&odd).sum().get()?, a.over(&odd).mean().get()?), (4, 16.0, 4.0));
    assert!(a.over(&a.lt(-1.0)).mean().get()?.is_nan());
    let colour = Image::stack(&s, [&a, &a], Axis::Channels);
    assert_eq!(colour.over(&odd).mean().get()?, 4.0, "one channel of a mask stands for all");
    assert_eq!(odd.select(&colour, [7.0, 8.0]).to_array::<Ix3>()?[[0, 0, 1]], 8.0);
    assert_eq!(odd.convert::<i32>().to_vec()?, [0, 1, 0, 1, 0, 1, 0, 1]);
    assert_eq!(low.erode(&Footprint::rectangle(3, 1)).count().get()?, 0);
    assert_eq!(low.dilate(&Footprint::cross(1)).transpose().crop(1, 0, 2, 2).count().get()?, 4);
    assert!(low.with_border(Border::Constant(1.0)).pad(1, 0, 0, 0).pixel((0, 3))?);
    let folder = tempfile::tempdir().unwrap();
    let (picture, exact) = (folder.path().join("m.png"), folder.path().join("m.npy"));
    odd.save(&picture)?;
    assert_eq!(Image::<u8>::open(&s, &picture)?.to_vec()?, [0, 255, 0, 255, 0, 255, 0, 255]);
    odd.save(&exact)?;
    let read: Array2<bool> = ndarray_npy::read_npy(&exact).unwrap();
    assert_eq!(read, odd.to_array::<Ix2>()?);
    Ok(())
}

#[test]
fn crops_pads_and_pastes_are_numpys_on_any_number_of_ranks() {
    let source = array([11, 8, 2], 3).map(|v| *v as i32);
    let stamp = array([3, 4, 2], 5).map(|v| *v as i32);
    let mut pasted = source.clone();
    for (y, x) in (0..3).flat_map(|y| (0..4).map(move |x| (y, x))) {
        let (to_y, to_x) = (y as isize + 9, x as isize - 2);
        if (0..11).contains(&to_y) && (0..8).contains(&to_x) {
            let to = ndarray::s![to_y, to_x, ..];
            pasted.slice_mut(to).assign(&stamp.slice(ndarray::s![y, x, ..]));
        }
    }
    for ranks in [1, 2, 3, 5] {
        ThreadComm::run(ranks, |comm| {
            let s = on(comm);
            let image = Image::from_array(&s, source.view());
            let cropped = image.crop(2, 1, 6, 5).to_array::<Ix3>().unwrap();
            assert_eq!(cropped, source.slice(ndarray::s![2..8, 1..6, ..]));
            let smooth = image.median(3);
            let whole = smooth.to_array::<Ix3>().unwrap();
            for (rows, columns) in [(1, 1), (2, 2), (3, 1), (1, 5), (4, 7), (11, 8), (50, usize::MAX)] {
                let [down, across] = [rows, columns].map(|step| step.min(99) as isize);
                let every = ndarray::s![..;down, ..;across, ..];
                assert_eq!(image.step((rows, columns)).to_array().unwrap(), source.slice(every), "{rows} {columns}");
                assert_eq!(image.median(3).step((rows, columns)).to_array().unwrap(), whole.slice(every));
                let mask = image.gt(100).step((rows, columns)).to_array::<Ix3>().unwrap();
                assert_eq!(mask, source.slice(every).mapv(|v| v > 100));
            }
            assert_eq!(image.paste(&Image::from_array(&s, stamp.view()), 9, -2).to_array().unwrap(), pasted);
            for border in Border::all(-7.0) {
                let padded = image.with_border(border).pad(13, 2, 1, 30).to_array::<Ix3>().unwrap();
                assert_eq!(padded.dim(), (26, 39, 2));
                for ((y, x, c), v) in padded.indexed_iter() {
                    let at = (border.map(y as isize - 13, 11), border.map(x as isize - 1, 8));
                    let want = if let (Some(y), Some(x)) = at { source[[y, x, c]] } else { -7 };
                    assert_eq!(*v, want, "{border} {y} {x} on {ranks} ranks");
                }
            }
            let tables: Vec<f64> = (0..256).map(|v| f64::from(v) * 0.5).collect();
            let bytes = image.clamp(0, 255).convert::<u8>();
            let halves = bytes.lookup(&tables).to_array::<Ix3>().unwrap();
            assert_eq!(halves, source.map(|v| f64::from((*v).max(0)) * 0.5), "on {ranks} ranks");
            let parts = image.unstack(Axis::Channels);
            assert_eq!(parts[1].to_array().unwrap(), source.index_axis(ArrayAxis(2), 1));
        });
    }
    let s = session();
    let short = Image::<u16>::zeros(&s, (2, 2)).lookup(&[0u8; 256]).check().unwrap_err().to_string();
    assert!(short.starts_with("lookup: the table has 256 entries; it must have 65536 (at "), "{short}");
}
