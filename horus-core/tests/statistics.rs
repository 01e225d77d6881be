//! Statistics against numpy and scikit-image (`tests/goldens/statistics.py`), and on any number of ranks.

use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Pixel;
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::Axis;
use ndarray::{Array2, Array3};
use ndarray_npy::{ReadableElement, read_npy};

const AXES: [(Axis, &str); 3] = [(Axis::Rows, "rows"), (Axis::Columns, "columns"), (Axis::Channels, "channels")];
/// Relative to the sum of magnitudes: numpy adds in another order.
const SUMMATION: f64 = 16.0 * f64::EPSILON;

fn path(name: &str) -> String {
    format!("{}/../tests/goldens/statistics/{name}.npy", env!("CARGO_MANIFEST_DIR"))
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

/// What `compute` gives on one rank, and that it gives the same bits on up to five.
fn on_ranks<R: PartialEq + std::fmt::Debug + Send>(compute: impl Fn(&Session) -> R + Sync) -> R {
    let alone = compute(&session());
    for ranks in 2..=5 {
        let all = ThreadComm::run(ranks, |comm| {
            let device = CpuDevice::new(Some(1)).unwrap();
            compute(&Session::on(Box::new(device)).communicator(std::sync::Arc::new(comm)).build().unwrap())
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

/// An array of rows, columns and channels, in the order of our pixels: channel by channel.
fn pixels<T: Copy>(array: &Array3<T>) -> Vec<T> {
    array.view().permuted_axes([2, 0, 1]).iter().copied().collect()
}

#[test]
fn sums_means_and_extremes_along_axes_are_those_of_numpy() {
    let colour = colours::<f32>("colour");
    let most = colour.iter().map(|v| f64::from(v.abs())).sum::<f64>() * SUMMATION;
    for (axis, name) in AXES {
        let [sum, mean, min, max] = on_ranks(|s| {
            let image = Image::from_array3(s, colour.view());
            let exact = |image: Image<f32>| bits(image.convert::<f64>().to_vec().unwrap());
            [
                bits(image.sum_axis(axis).to_vec().unwrap()),
                bits(image.mean_axis(axis).to_vec().unwrap()),
                exact(image.min_axis(axis)),
                exact(image.max_axis(axis)),
            ]
        })
        .map(numbers);
        for (ours, what, most) in [(sum, "sum", most), (mean, "mean", most), (min, "min", 0.0), (max, "max", 0.0)] {
            let name = format!("{what}_{name}");
            assert_close(&ours, &pixels(&colours::<f64>(&name)), most, &name);
        }
    }
    let channels = on_ranks(|s| {
        let image = Image::from_array3(s, colour.view());
        let (sums, means) = (image.channel_sums(), image.channel_means());
        for c in 0..3 {
            let alone = image.channel(c).sum().get().unwrap();
            assert_eq!(sums.pixel_at(0, 0, c).unwrap().to_bits(), alone.to_bits(), "channel {c}");
        }
        let exact = |image: Image<f32>| image.convert::<f64>().to_vec().unwrap();
        let all =
            [sums.to_vec().unwrap(), means.to_vec().unwrap(), exact(image.channel_min()), exact(image.channel_max())];
        bits(all.concat())
    });
    assert_close(&numbers(channels), plane::<f64>("channels").as_slice().unwrap(), most, "channels");
}

#[test]
fn what_is_reduced_along_an_axis_broadcasts_and_carries_errors() {
    let s = session();
    let image = Image::from_fn(&s, 3, 4, |y, x| (y * 10 + x) as f64);
    let centred = &image - image.mean_axis(Axis::Rows);
    assert_eq!(centred.mean_axis(Axis::Rows).to_vec().unwrap(), [0.0; 4]);
    assert_eq!(image.sum_axis(Axis::Columns).shape().to_string(), "3x1");
    assert_eq!(image.max_axis(Axis::Channels).to_vec().unwrap(), image.to_vec().unwrap());
    let nothing = Image::<f32>::zeros(&s, 0, 3);
    for axis in AXES.map(|(axis, _)| axis) {
        let told = nothing.mean_axis(axis).check().unwrap_err().to_string();
        assert!(told.starts_with("zeros: "), "{told}");
    }
    let nan = Image::from_slice(&s, 2, 2, &[f32::NAN, 1.0, f32::NAN, -2.0]);
    assert_eq!(nan.max_axis(Axis::Rows).to_vec().unwrap(), [f32::NEG_INFINITY, 1.0]);
    let planes = Image::from_planes(&s, 1, 2, &[&[f32::NAN, 1.0], &[f32::NAN, -2.0]]);
    assert_eq!(planes.min_axis(Axis::Channels).to_vec().unwrap(), [f32::INFINITY, -2.0]);
}

fn median_of_a_film<T: Pixel + ReadableElement>(film: &str, golden: &str) {
    for count in [1, 2, 5, 8] {
        let frames = colours::<T>(&format!("{film}_{count}"));
        let ours = on_ranks(|s| {
            let frames: Vec<Image<T>> = frames.outer_iter().map(|frame| Image::from_array(s, frame)).collect();
            Image::median_of(s, &frames).to_array().unwrap()
        });
        let golden = plane::<f64>(&format!("{golden}_{count}"));
        // Of bytes, NumPy's means are not rounded.
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
        let ours = Image::median_of(&s, &frames).to_array().unwrap();
        assert_eq!(ours, plane::<f32>(&format!("median_{count}")), "{count} frames");
    }
}

#[test]
fn films_are_reduced_frame_by_frame() {
    let frames = colours::<f32>("film_5");
    let (sum, mean, min, max) = on_ranks(|s| {
        let frames: Vec<Image<f32>> = frames.outer_iter().map(|frame| Image::from_array(s, frame)).collect();
        let (sum, mean) = (Image::sum_of(s, &frames), Image::mean_of(s, frames.iter().cloned()));
        let (min, max) = (Image::min_of(s, &frames), Image::max_of(s, &frames));
        (sum.to_array().unwrap(), mean.to_array().unwrap(), min.to_array().unwrap(), max.to_array().unwrap())
    });
    for ((y, x), sum) in sum.indexed_iter() {
        let values = frames.slice(ndarray::s![.., y, x]);
        let want = values.iter().fold(0.0, |sum, v| sum + f64::from(*v));
        assert_eq!((*sum, mean[[y, x]]), (want, want / 5.0));
        assert_eq!(min[[y, x]], values.iter().copied().fold(f32::INFINITY, f32::min));
        assert_eq!(max[[y, x]], values.iter().copied().fold(-f32::INFINITY, f32::max));
    }
    let s = session();
    let none = Image::<u8>::median_of(&s, Vec::<Image<u8>>::new()).check().unwrap_err().to_string();
    assert!(none.starts_with("median_of: "), "{none}");
    let (a, b) = (Image::<u8>::zeros(&s, 2, 3), Image::<u8>::zeros(&s, 3, 3));
    assert!(Image::max_of(&s, [&a, &b]).check().unwrap_err().to_string().contains("differ in size, 2x3 and 3x3"));
    let other = Image::<u8>::zeros(&session(), 2, 3);
    assert!(Image::sum_of(&s, [&a, &other]).check().is_err());
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
    // One over the image, one over the results of rows; the product is not stored, because nobody holds it.
    let (both, moments) = (expression().min_max(), expression().mean_and_variance());
    assert_eq!(launched(&|| assert_eq!(both.get().unwrap().0, 0.0)), 2);
    assert_eq!(launched(&|| assert!(moments.get().unwrap().1 > 0.0)), 2);
    // And one for each that is picked out.
    let extremes = |square: Image<f32>| (square.min_value(), square.max_value());
    let apart = extremes(expression());
    assert_eq!(launched(&|| assert_eq!(s.get_all((&apart.0, &apart.1)).unwrap(), both.get().unwrap())), 4);
    let square = expression();
    let together = s.get_all((square.mean(), square.variance())).unwrap();
    let alone = (expression().mean().get().unwrap(), expression().variance().get().unwrap());
    assert_eq!(together, alone, "the same bits");
    assert_eq!(together, expression().mean_and_variance().get().unwrap());
}
