//! Statistics against numpy and scikit-image (`tests/goldens/statistics.py`), and on any number of
//! ranks.

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::device::Device;
use horus_core::dtype::Pixel;
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};
use horus_testing::simulated::SimulatedDevice;
use ndarray::{Array1, Array2, Array3, Ix2};
use ndarray_npy::{ReadableElement, read_npy};

const AXES: [(Axis, &str); 3] = [(Axis::Rows, "rows"), (Axis::Columns, "columns"), (Axis::Channels, "channels")];
/// Relative to the sum of magnitudes: numpy adds in another order.
const SUMMATION: f64 = 16.0 * f64::EPSILON;

/// The axes of a channel.
const CHANNEL: [Axis; 3] = [Axis::Rows, Axis::Columns, Axis::Depth];

fn path(name: &str) -> String {
    format!("{}/../tests/goldens/statistics/{name}.npy", env!("CARGO_MANIFEST_DIR"))
}

fn line<T: ReadableElement>(name: &str) -> Array1<T> {
    read_npy(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn plane<T: ReadableElement>(name: &str) -> Array2<T> {
    read_npy(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn colours<T: ReadableElement>(name: &str) -> Array3<T> {
    read_npy(path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn session() -> Session {
    Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
}

/// The result of `compute` on one rank, checked to have the same bits on up to five.
fn on_ranks<R: PartialEq + std::fmt::Debug + Send>(compute: impl Fn(&Session) -> R + Sync) -> R {
    let alone = compute(&session());
    for ranks in 2..=5 {
        let all = ThreadComm::run(ranks, |comm| {
            let cpu = CpuDevice::new(Some(1)).unwrap();
            // Every other time on devices with memory of their own.
            let device: Box<dyn Device> = match ranks % 2 {
                0 => Box::new(cpu),
                _ => Box::new(SimulatedDevice::new(cpu, usize::MAX / 2)),
            };
            compute(&Session::on(device).communicator(std::sync::Arc::new(comm)).build().unwrap())
        });
        assert!(all.iter().all(|one| *one == alone), "{ranks} ranks");
    }
    alone
}

fn bits(values: Vec<f64>) -> Vec<u64> {
    values.into_iter().map(f64::to_bits).collect()
}

fn numbers(bits: Vec<u64>) -> Vec<f64> {
    bits.into_iter().map(f64::from_bits).collect()
}

#[track_caller]
fn assert_close(ours: &[f64], golden: &[f64], most: f64, what: &str) {
    assert_eq!(ours.len(), golden.len(), "{what}");
    for (a, b) in ours.iter().zip(golden) {
        assert!((a - b).abs() <= most, "{what}: {a} instead of {b}, {most:e} is allowed");
    }
}

/// The pixels of an array of rows, columns and channels.
fn pixels<T: Copy>(array: &Array3<T>) -> Vec<T> {
    array.iter().copied().collect()
}

#[test]
fn sums_means_and_extremes_along_axes_are_those_of_numpy() {
    let colour = colours::<f32>("colour");
    let most = colour.iter().map(|v| f64::from(v.abs())).sum::<f64>() * SUMMATION;
    for (axis, name) in AXES {
        let [sum, mean, min, max] = on_ranks(|s| {
            let image = Image::from_array(s, colour.view());
            let exact = |image: Image<f32>| bits(image.convert::<f64>().to_vec().unwrap());
            [
                bits(image.over(axis).sum().to_vec().unwrap()),
                exact(image.over(axis).mean()),
                exact(image.over(axis).min()),
                exact(image.over(axis).max()),
            ]
        })
        .map(numbers);
        // A mean is rounded once to the type of the pixels.
        let once = most + f64::from(colour.fold(0.0f32, |most, v| most.max(v.abs())) * (f32::EPSILON / 2.0));
        for (ours, what, most) in [(sum, "sum", most), (mean, "mean", once), (min, "min", 0.0), (max, "max", 0.0)] {
            let name = format!("{what}_{name}");
            assert_close(&ours, &pixels(&colours::<f64>(&name)), most, &name);
        }
    }
    let channels = on_ranks(|s| {
        let image = Image::from_array(s, colour.view());
        let channels = image.over(CHANNEL);
        let (sums, means) = (channels.sum(), channels.mean());
        for c in 0..3 {
            let alone = image.channel(c).sum().get().unwrap();
            assert_eq!(sums.pixel((0, 0, 0, c)).unwrap().to_bits(), alone.to_bits(), "channel {c}");
        }
        let exact = |image: Image<f32>| image.convert::<f64>().to_vec().unwrap();
        let all = [sums.to_vec().unwrap(), exact(means), exact(channels.min()), exact(channels.max())];
        bits(all.concat())
    });
    let once = most + f64::from(colour.fold(0.0f32, |most, v| most.max(v.abs())) * (f32::EPSILON / 2.0));
    assert_close(&numbers(channels), plane::<f64>("channels").as_slice().unwrap(), once, "channels");
}

#[test]
fn what_is_reduced_along_an_axis_broadcasts_and_carries_errors() {
    let s = session();
    let image = Image::from_fn(&s, 3, 4, |y, x| (y * 10 + x) as f64);
    let centred = &image - image.over(Axis::Rows).mean();
    assert_eq!(centred.over(Axis::Rows).mean().to_vec().unwrap(), [0.0; 4]);
    // The reader of a mean converts it: no separate conversion remains.
    let floats = image.convert::<f32>();
    let (rows, planes) = (&floats - floats.over(Axis::Rows).mean(), &floats - floats.over(CHANNEL).mean());
    assert_eq!(rows.to_vec().unwrap(), centred.convert::<f32>().to_vec().unwrap());
    assert_eq!(planes.pixel((1, 0)).unwrap(), 10.0 - 11.5);
    let film = [&floats, &rows];
    assert_eq!((&floats - Image::of_all(&s, film).mean()).pixel((2, 1)).unwrap(), 21.0 - (21.0 + 10.0) / 2.0);
    let bytes: Image<f32> = image.convert::<u8>().over(Axis::Columns).mean();
    assert_eq!(bytes.to_vec().unwrap(), [1.5, 11.5, 21.5]);
    assert_eq!(image.over(Axis::Columns).sum().shape().to_string(), "3x1");
    assert_eq!(image.over(Axis::Channels).max().to_vec().unwrap(), image.to_vec().unwrap());
    let nothing = Image::<f32>::zeros(&s, (0, 3));
    for axis in AXES.map(|(axis, _)| axis) {
        let told = nothing.over(axis).mean().check().unwrap_err().to_string();
        assert!(told.starts_with("zeros: "), "{told}");
    }
    let nan = Image::from_slice(&s, (2, 2), &[f32::NAN, 1.0, f32::NAN, -2.0]);
    assert_eq!(nan.over(Axis::Rows).max().to_vec().unwrap(), [f32::NEG_INFINITY, 1.0]);
    let colour = Image::from_slice(&s, Shape::new(1, 2, 2), &[f32::NAN, f32::NAN, 1.0, -2.0]);
    assert_eq!(colour.over(Axis::Channels).min().to_vec().unwrap(), [f32::INFINITY, -2.0]);
}

fn median_of_a_film<T: Pixel + ReadableElement>(film: &str, golden: &str) {
    for count in [1, 2, 5, 8] {
        let frames = colours::<T>(&format!("{film}_{count}"));
        let ours = on_ranks(|s| {
            let frames: Vec<Image<T>> = frames.outer_iter().map(|frame| Image::from_array(s, frame)).collect();
            Image::of_all(s, &frames).median().to_array::<Ix2>().unwrap()
        });
        let golden = plane::<f64>(&format!("{golden}_{count}"));
        // NumPy does not round the means of bytes.
        let want = golden.mapv(T::from_f64);
        assert_eq!(ours, want, "{count} frames of {}", T::DTYPE);
    }
}

#[test]
fn medians_of_a_film_are_those_of_numpy() {
    median_of_a_film::<u8>("film_u8", "median_u8");
    let s = session();
    // Goldens of f32 are f32 themselves.
    for count in [1, 2, 5, 8] {
        let frames = colours::<f32>(&format!("film_{count}"));
        let frames: Vec<Image<f32>> = frames.outer_iter().map(|frame| Image::from_array(&s, frame)).collect();
        let ours = Image::of_all(&s, &frames).median().to_array::<Ix2>().unwrap();
        assert_eq!(ours, plane::<f32>(&format!("median_{count}")), "{count} frames");
    }
}

#[test]
fn films_are_reduced_frame_by_frame() {
    let frames = colours::<f32>("film_5");
    let (sum, mean, min, max) = on_ranks(|s| {
        let frames: Vec<Image<f32>> = frames.outer_iter().map(|frame| Image::from_array(s, frame)).collect();
        let (sum, mean) = (Image::of_all(s, &frames).sum(), Image::of_all(s, frames.iter().cloned()).mean());
        let (min, max) = (Image::of_all(s, &frames).min(), Image::of_all(s, &frames).max());
        (
            sum.to_array::<Ix2>().unwrap(),
            mean.to_array::<Ix2>().unwrap(),
            min.to_array::<Ix2>().unwrap(),
            max.to_array::<Ix2>().unwrap(),
        )
    });
    for ((y, x), sum) in sum.indexed_iter() {
        let values = frames.slice(ndarray::s![.., y, x]);
        let want = values.iter().fold(0.0, |sum, v| sum + f64::from(*v));
        assert_eq!((*sum, mean[[y, x]]), (want, (want / 5.0) as f32));
        assert_eq!(min[[y, x]], values.iter().copied().fold(f32::INFINITY, f32::min));
        assert_eq!(max[[y, x]], values.iter().copied().fold(-f32::INFINITY, f32::max));
    }
    let s = session();
    let none = Image::<u8>::of_all(&s, Vec::<Image<u8>>::new()).median().check().unwrap_err().to_string();
    assert!(none.starts_with("of_all: "), "{none}");
    let (a, b) = (Image::<u8>::zeros(&s, (2, 3)), Image::<u8>::zeros(&s, (3, 3)));
    assert!(Image::of_all(&s, [&a, &b]).max().check().unwrap_err().to_string().contains("differ in size, 2x3 and 3x3"));
    let other = Image::<u8>::zeros(&session(), (2, 3));
    assert!(Image::of_all(&s, [&a, &other]).sum().check().is_err());
}

#[test]
fn running_sums_are_those_of_numpy() {
    let colour = colours::<f32>("colour");
    let most = colour.iter().map(|v| f64::from(v.abs())).sum::<f64>() * SUMMATION;
    for (axis, name) in AXES {
        let sums = on_ranks(|s| bits(Image::from_array(s, colour.view()).over(axis).cumsum().to_vec().unwrap()));
        assert_close(&numbers(sums), &pixels(&colours::<f64>(&format!("cumsum_{name}"))), most, name);
    }
    let s = session();
    let large = Image::from_slice(&s, (1, 3), &[i32::MAX; 3]);
    assert_eq!(
        large.over(Axis::Columns).cumsum().to_vec().unwrap()[2],
        3.0 * f64::from(i32::MAX),
        "they do not saturate"
    );
}

fn order_of<T: Pixel + ReadableElement>(name: &str) {
    let grey = plane::<T>(name);
    let percents = line::<f64>("percents");
    let (places, found) = on_ranks(|s| {
        let image = Image::from_array(s, grey.view());
        let places = s.get_all((image.argmin(), image.argmax())).unwrap();
        let all: Vec<_> = percents.iter().map(|percent| image.percentile(*percent)).collect();
        (places, bits(s.get_all(&all[..]).unwrap()))
    });
    let golden = plane::<i64>(&format!("{name}_arg"));
    let place = |i: usize| Some([0, golden[[i, 0]] as usize, golden[[i, 1]] as usize, 0]);
    assert_eq!(places, (place(0), place(1)), "{name}");
    // Interpolated in f64, by the same steps.
    let goldens = line::<f64>(&format!("{name}_percentiles"));
    for ((ours, golden), percent) in numbers(found).into_iter().zip(goldens).zip(&percents) {
        let most = 1e-15 * golden.abs();
        assert!((ours - golden).abs() <= most, "{name}, percentile {percent}: {ours} instead of {golden}");
    }
}

#[test]
fn places_and_percentiles_are_those_of_numpy() {
    order_of::<u8>("u8");
    order_of::<u16>("u16");
    order_of::<u32>("u32");
    order_of::<i8>("i8");
    order_of::<i16>("i16");
    order_of::<i32>("i32");
    order_of::<f32>("f32");
    order_of::<f64>("f64");
}

#[test]
fn percentiles_of_whatever_pixels_there_are() {
    let s = session();
    let of =
        |values: &[f32], percent| Image::from_slice(&s, (1, values.len()), values).percentile(percent).get().unwrap();
    assert_eq!(of(&[5.0], 30.0), 5.0);
    // Both zeros are one number, and neighbours are found among equals.
    assert_eq!(of(&[0.0, -0.0, 5.0], 50.0), 0.0);
    assert_eq!(of(&[-0.0, 0.0, 5.0], 25.0), 0.0);
    assert_eq!(of(&[2.0, 2.0, 2.0, 7.0], 50.0), 2.0);
    assert_eq!(of(&[-f32::INFINITY, 1.0, f32::INFINITY], 50.0), 1.0);
    assert_eq!(of(&[f32::NAN, 4.0, f32::NAN, 2.0], 50.0), 3.0, "NaN are ignored");
    assert_eq!(of(&[f32::MAX, f32::MIN_POSITIVE], 0.0), f64::from(f32::MIN_POSITIVE));
    let channels = Image::from_slice(&s, Shape::new(1, 2, 2), &[9i32, i32::MAX, -70_000, 3]);
    assert_eq!(channels.percentile(50.0).get().unwrap(), 6.0);
    assert_eq!(channels.argmax().get().unwrap(), Some([0, 0, 0, 1]));
    let nan = Image::from_slice(&s, (1, 2), &[f64::NAN; 2]);
    assert_eq!((nan.argmin().get().unwrap(), nan.argmax().get().unwrap()), (None, None));
    // As `numpy.nanmedian` and `nanpercentile`.
    assert!(nan.percentile(50.0).get().unwrap().is_nan() && of(&[f32::NAN; 3], 20.0).is_nan());
    assert_eq!(of(&[-f32::INFINITY, f32::NAN], 80.0), f64::NEG_INFINITY);
    for wrong in [-1.0, 100.5, f64::NAN] {
        let told = channels.percentile(wrong).check().unwrap_err().to_string();
        assert!(told.starts_with(&format!("percentile: requested the percentile {wrong}; ")), "{told}");
    }
}

#[test]
fn thresholds_are_those_of_scikit_image() {
    let (narrow, wide, smooth) = (plane::<u8>("u8"), plane::<u16>("u16"), plane::<f32>("smooth"));
    let ours = on_ranks(|s| {
        let of = (
            Image::from_array(s, narrow.view()).otsu(),
            Image::from_array(s, wide.view()).otsu(),
            Image::from_array(s, smooth.view()).otsu(),
        );
        let (narrow, wide, smooth) = s.get_all(of).unwrap();
        [f64::from(narrow), f64::from(wide), f64::from(smooth)]
    });
    // Of bins of floats, the centres are rounded.
    assert_close(&ours, line::<f64>("otsu").as_slice().unwrap(), 1e-7, "otsu");
    let (narrow, wide) = (plane::<i8>("i8"), plane::<i16>("i16"));
    let ours = on_ranks(|s| {
        let of = (Image::from_array(s, narrow.view()).otsu(), Image::from_array(s, wide.view()).otsu());
        let (narrow, wide) = s.get_all(of).unwrap();
        [f64::from(narrow), f64::from(wide)]
    });
    assert_eq!(ours.as_slice(), line::<f64>("otsu_signed").as_slice().unwrap());
    let s = session();
    assert_eq!(Image::constant(&s, (4, 4), 7u8).otsu().get().unwrap(), 7);
    assert_eq!(Image::constant(&s, (4, 4), -7i8).otsu().get().unwrap(), -7);
    assert_eq!(Image::constant(&s, (4, 4), -7.5f64).otsu().get().unwrap(), -7.5);
    // What is no finite number does not count.
    let mut wild: Vec<f32> = smooth.iter().copied().collect();
    wild.extend([f32::INFINITY, f32::NAN, f32::NEG_INFINITY]);
    let threshold = Image::from_slice(&s, (1, wild.len()), &wild).otsu().get().unwrap();
    assert_eq!(threshold, Image::from_array(&s, smooth.view()).otsu().get().unwrap());
    let nothing = Image::from_slice(&s, (1, 3), &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
    assert!(nothing.otsu().get().unwrap().is_nan());
    assert!(Image::from_slice(&s, (1, 2), &[f32::NAN; 2]).otsu().get().unwrap().is_nan());
    assert_eq!(Image::from_slice(&s, (1, 3), &[f32::INFINITY, 3.0, 3.0]).otsu().get().unwrap(), 3.0);
}

#[test]
fn masked_statistics_are_those_of_numpy() {
    let (image, mask) = (plane::<u16>("u16"), plane::<u8>("mask"));
    let ours = on_ranks(|s| {
        let (image, mask) = (Image::from_array(s, image.view()), Image::from_array(s, mask.view()).gt(0));
        let floats = (image.over(&mask).sum(), image.over(&mask).mean(), image.over(&mask).variance());
        let (sum, mean, variance) = s.get_all(floats).unwrap();
        let (min, max) = s.get_all((image.over(&mask).min(), image.over(&mask).max())).unwrap();
        [sum, mean, variance, f64::from(min), f64::from(max)]
    });
    let golden = line::<f64>("masked");
    for (ours, golden) in ours.into_iter().zip(golden) {
        assert!((ours - golden).abs() <= 1e-12 * golden, "{ours} instead of {golden}");
    }
    let s = session();
    let colour = Image::from_slice(&s, Shape::new(1, 2, 2), &[1.0f32, 3.0, 50.0, 60.0]);
    let first = Image::from_slice(&s, (1, 2), &[1u8, 0]).gt(0);
    assert_eq!(colour.over(&first).variance().get().unwrap(), 1.0, "a mask of one channel holds for all");
    assert_eq!(colour.over(&(&first & !&first)).min().get().unwrap(), f32::INFINITY);
}

#[test]
fn what_is_asked_together_takes_one_pass() {
    let s = session();
    let image = Image::from_fn(&s, 50, 60, |y, x| (y * 31 + x * 17) as f32 % 7.5);
    let launched = |f: &dyn Fn()| {
        let before = s.stats().made.launches;
        f();
        s.stats().made.launches - before
    };
    let expression = || &image * &image;
    // One over the image, one over the results of rows, and one for each that is selected; the
    // product is not stored, because it has no handle.
    let extremes = |square: Image<f32>| (square.min_value(), square.max_value());
    let both = extremes(expression());
    let (low, high) = (expression().min_value().get().unwrap(), expression().max_value().get().unwrap());
    assert_eq!(low, 0.0);
    assert_eq!(launched(&|| assert_eq!(s.get_all((&both.0, &both.1)).unwrap(), (low, high))), 4);
    let square = expression();
    let together = s.get_all((square.mean(), square.variance())).unwrap();
    let alone = (expression().mean().get().unwrap(), expression().variance().get().unwrap());
    assert_eq!(together, alone, "the same bits");
}
