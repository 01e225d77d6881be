//! Written samples are read again exactly.

use horus_core::dispatch;
use horus_core::dtype::{DType, Pixel};
use horus_core::image::Image;
use horus_core::io::Downsampling;
use horus_core::session::Session;
use horus_core::shape::{Axis, Shape};
use horus_zarr::{ZarrCodec, ZarrOptions, ZarrSaveOptions, is_store, open, save};

use super::{StoreFolder, files, session};

/// Distinct samples, including every power of two of a type, zeros of both signs, and NaN for
/// floats.
fn samples<T: Pixel>(shape: Shape) -> Vec<T> {
    let odd = [-0.0, f64::NAN, f64::INFINITY, -1.5, 1e30, 0.0];
    let value = |i: usize| if i % 7 == 3 { odd[i / 7 % odd.len()] } else { (i * i % 509) as f64 * 1.25 };
    (0..shape.len()).map(|i| T::from_f64(value(i))).collect()
}

fn image<T: Pixel>(session: &Session, shape: Shape) -> Image<T> {
    let Shape { depth, height, width, channels, .. } = shape;
    let values = samples::<T>(shape);
    let at = |z, y, x, c| (((z * height) + y) * width + x) * channels + c;
    let array = horus_core::ndarray::Array4::from_shape_fn((depth, height, width, channels), |(z, y, x, c)| {
        values[at(z, y, x, c)]
    });
    Image::from_volume_array(session, array.view())
}

fn bits<T: Pixel>(image: &Image<T>) -> Vec<u64> {
    image.to_vec().expect("pixels").into_iter().map(|v| v.to_f64().to_bits()).collect()
}

const CODECS: [ZarrCodec; 3] = [ZarrCodec::None, ZarrCodec::Gzip, ZarrCodec::Zstd];

#[test]
fn every_type_codec_and_extent() {
    let (session, folder) = (session(), StoreFolder::new());
    let shapes =
        [(1, 23, 31, 1), (1, 16, 16, 3), (5, 9, 11, 1), (3, 17, 8, 2), (1, 1, 1, 1), (1, 1, 40, 1), (2, 33, 1, 4)];
    let chunks = [[1, 8, 8], [2, 5, 7], [64, 512, 512]];
    for dtype in DType::ALL {
        for (n, (depth, height, width, channels)) in shapes.into_iter().enumerate() {
            let shape = Shape::volume(depth, height, width, channels);
            let options = ZarrSaveOptions {
                chunk: chunks[n % chunks.len()],
                codec: CODECS[n % CODECS.len()],
                shard: (n % 2 == 1).then(|| chunks[n % chunks.len()].map(|n| 2 * n)),
                ..ZarrSaveOptions::default()
            };
            dispatch!(dtype, T => {
                let path = folder.at("a.zarr");
                let image = image::<T>(&session, shape);
                save(&image, &path, &options).expect("saved");
                assert!(is_store(&path));
                let read = open(&session, &path, &ZarrOptions::default()).expect("opened");
                assert_eq!((read.dtype(), read.shape()), (dtype, shape));
                assert_eq!(bits(&read.convert::<T>()), bits(&image), "{dtype}, {shape}, {options:?}");
            });
        }
    }
    assert_eq!(folder.names(), ["a.zarr"]);
}

#[test]
fn masks_are_truth_values() {
    let (session, folder) = (session(), StoreFolder::new());
    let mask = Image::from_fn(&session, 30, 20, |y, x| (y * x % 7) as f32).gt(3.0);
    save(&mask, folder.at("mask.zarr"), &ZarrSaveOptions { sizes: 2, ..ZarrSaveOptions::default() }).unwrap();
    let read = open(&session, folder.at("mask.zarr"), &ZarrOptions::default()).unwrap();
    assert_eq!(read.convert::<u8>().to_vec().unwrap(), mask.convert::<u8>().to_vec().unwrap());
    for size in ["0", "1"] {
        let metadata = std::fs::read_to_string(folder.at("mask.zarr").join(size).join("zarr.json")).unwrap();
        assert!(metadata.contains(r#""data_type": "bool""#), "{metadata}");
    }
}

/// The attributes of a store.
fn multiscale(path: &std::path::Path) -> serde_json::Value {
    let metadata: serde_json::Value = serde_json::from_slice(&std::fs::read(path.join("zarr.json")).unwrap()).unwrap();
    metadata["attributes"]["ome"]["multiscales"][0].clone()
}

/// Scale and translation of a size, of as many axes.
fn placed(multiscale: &serde_json::Value, size: usize) -> [Vec<f64>; 2] {
    let all = multiscale["datasets"][size]["coordinateTransformations"].as_array().unwrap();
    let numbers = |kind: &str| -> Option<Vec<f64>> {
        let found = all.iter().find(|one| one["type"] == kind)?;
        Some(found[kind].as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect())
    };
    let scale = numbers("scale").expect("a scale");
    let translation = numbers("translation").unwrap_or_else(|| vec![0.0; scale.len()]);
    [scale, translation]
}

/// Channels that hold the level, the row and the column of each pixel, in sizes: they are where the metadata says.
#[test]
fn pixels_of_sizes_lie_where_the_metadata_says() {
    const SIDES: [f64; 3] = [2.0, 0.5, 0.25];
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("sizes.zarr");
    for (depth, height, width) in [(1, 37, 50), (3, 5, 37), (2, 1, 5), (1, 1, 1), (1, 64, 1)] {
        for (resampling, name) in
            [(None, "average"), (Some(Downsampling::Mode), "mode"), (Some(Downsampling::Nearest), "nearest")]
        {
            let [z, y, x] = [0, 1, 2].map(|axis| {
                let place = move |z, y, x| [z, y, x][axis] as f64;
                Image::from_volume_fn(&session, depth, height, width, place)
            });
            let image = Image::stack(&session, [&z, &y, &x], Axis::Channels);
            let (chunk, pixel) = ([1, 16, 16], Some(SIDES));
            let options = ZarrSaveOptions { sizes: 4, chunk, pixel, resampling, ..ZarrSaveOptions::default() };
            save(&image, &path, &options).unwrap();
            let told = multiscale(&path);
            let axes: Vec<&str> =
                told["axes"].as_array().unwrap().iter().map(|a| a["name"].as_str().unwrap()).collect();
            let mut shape = image.shape();
            for level in 0..4 {
                let [scale, translation] = placed(&told, level);
                let read = open(&session, &path, &ZarrOptions { level, ..ZarrOptions::default() }).unwrap();
                let what = format!("{name}, size {level} of {depth}x{height}x{width}");
                assert_eq!(read.shape(), shape, "{what}");
                let pixels = read.convert::<f64>().to_array::<horus_core::ndarray::Ix4>().unwrap();
                for ((k, y, x, c), value) in pixels.indexed_iter() {
                    // Blocks that the edge cuts are means of fewer pixels.
                    let side = 1 << level;
                    let whole = [height, width].into_iter().zip([y, x]).all(|(n, i)| n == 1 || (i + 1) * side <= n);
                    let Some(axis) = axes.iter().position(|axis| *axis == ["z", "y", "x"][c]) else { continue };
                    // The mode of four different values is the first, and not in the middle.
                    if !whole || (name == "mode" && level > 0) {
                        continue;
                    }
                    let at = translation[axis] + [k, y, x][c] as f64 * scale[axis];
                    assert_eq!(value * SIDES[c], at, "{what}: level {k}, row {y}, column {x}, axis {c}");
                }
                let of = |axis: &str| axes.iter().position(|a| *a == axis).map(|at| scale[at]);
                let pixel = horus_core::io::PixelSize::of([of("z"), of("y"), of("x")]);
                assert_eq!(horus_core::io::pixel_size(&read.convert::<f64>()), pixel, "{what}");
                shape = Shape { height: shape.height.div_ceil(2), width: shape.width.div_ceil(2), ..shape };
            }
        }
    }
    let [scale, translation] = {
        let image = Image::from_fn(&session, 37, 5, |y, x| (y + x) as u8);
        save(&image, &path, &ZarrSaveOptions { sizes: 3, ..ZarrSaveOptions::default() }).unwrap();
        placed(&multiscale(&path), 2)
    };
    assert_eq!((scale, translation), (vec![4.0, 4.0], vec![1.5, 1.5]), "not 37 / 10 and 5 / 2");
    let error = open(&session, &path, &ZarrOptions { level: 3, ..ZarrOptions::default() }).unwrap_err().to_string();
    assert!(error.contains("size 3 requested, but it has 3"), "{error}");
    let nothing = ZarrSaveOptions { pixel: Some([1.0, 0.0, 1.0]), ..ZarrSaveOptions::default() };
    let error = save(&Image::<u8>::zeros(&session, (2, 2)), folder.at("no.zarr"), &nothing).unwrap_err().to_string();
    assert!(error.contains("a side of a pixel is 0 micrometres"), "{error}");
}

/// The pixels of the next size, from the definition: the values of each block, row by row.
fn blocks<T: Copy, R>(pixels: &[T], (height, width): (usize, usize), of: impl Fn(&[T]) -> R) -> Vec<R> {
    let block = |y: usize, x: usize| {
        let rows = (2 * y)..(2 * y + 2).min(height);
        let values: Vec<T> =
            rows.flat_map(|y| (2 * x..(2 * x + 2).min(width)).map(move |x| pixels[y * width + x])).collect();
        of(&values)
    };
    (0..height.div_ceil(2))
        .flat_map(|y| (0..width.div_ceil(2)).map(move |x| (y, x)))
        .map(|(y, x)| block(y, x))
        .collect()
}

/// The most frequent value, the first of several.
fn mode<T: Copy + PartialEq>(values: &[T]) -> T {
    let count = |value: &T| values.iter().filter(|v| *v == value).count();
    let most = values.iter().map(count).max().unwrap();
    *values.iter().find(|value| count(value) == most).unwrap()
}

#[test]
fn sizes_of_pictures_are_means_and_those_of_labels_and_masks_are_modes() {
    fn second<T: horus_core::dtype::Element>(image: &Image<T>, resampling: Option<Downsampling>) -> Vec<f64> {
        let folder = StoreFolder::new();
        let path = folder.at("sizes.zarr");
        let options = ZarrSaveOptions { sizes: 2, chunk: [1, 16, 16], resampling, ..ZarrSaveOptions::default() };
        save(image, &path, &options).unwrap();
        let read = open(image.session(), &path, &ZarrOptions { level: 1, ..ZarrOptions::default() }).unwrap();
        read.convert::<f64>().to_vec().unwrap()
    }
    let session = session();
    let of = (37, 51);
    let value = |y: usize, x: usize| (y / 3 * 7 + x / 2 * 3 + y * x % 3) % 5 * 50;
    let pixels: Vec<f64> = (0..of.0 * of.1).map(|i| value(i / of.1, i % of.1) as f64).collect();
    let mean = |block: &[f64]| block.iter().sum::<f64>() / block.len() as f64;
    let rounded = |block: &[f64]| mean(block).round_ties_even();
    let (means, modes) = (blocks(&pixels, of, rounded), blocks(&pixels, of, mode));
    let firsts = blocks(&pixels, of, |block| block[0]);
    let image = Image::from_fn(&session, of.0, of.1, |y, x| value(y, x) as f64);
    let (byte, labels) = (image.convert::<u8>(), image.convert::<i32>());
    assert_eq!(second(&image, None), blocks(&pixels, of, mean));
    assert_eq!(second(&byte, None), means);
    assert_eq!(second(&labels, None), modes);
    assert_eq!(second(&image.convert::<u32>(), None), modes);
    assert_eq!(second(&labels, Some(Downsampling::Average)), means);
    assert_eq!(second(&byte, Some(Downsampling::Mode)), modes);
    assert_eq!(second(&byte, Some(Downsampling::Nearest)), firsts);
    let mask: Vec<f64> = pixels.iter().map(|v| f64::from(u8::from(*v > 90.0))).collect();
    assert_eq!(second(&image.gt(90.0), None), blocks(&mask, of, mode));
    assert_eq!(second(&image.gt(90.0), Some(Downsampling::Nearest)), blocks(&mask, of, |block| block[0]));
}

/// Stores say whether their pixels are labels, of whatever type, or truth values.
#[test]
fn labels_and_masks_that_are_read_are_halved_by_modes() {
    let (session, folder) = (session(), StoreFolder::new());
    let [from, to] = ["labels.zarr", "sizes.zarr"].map(|name| folder.at(name));
    let of = (13, 10);
    let value = |y: usize, x: usize| (y / 3 * 7 + x / 2 * 3 + y * x % 3) % 5;
    let second = |whole: &Image<u8>| {
        save(whole, &to, &ZarrSaveOptions { sizes: 2, ..ZarrSaveOptions::default() }).unwrap();
        let read = open(&session, &to, &ZarrOptions { level: 1, ..ZarrOptions::default() }).unwrap();
        read.convert::<u8>().to_vec().unwrap()
    };
    let opened = || open(&session, &from, &ZarrOptions::default()).unwrap().convert::<u8>();
    let image = Image::from_fn(&session, of.0, of.1, |y, x| value(y, x) as u8);
    let pixels = image.to_vec().unwrap();
    let mean = |block: &[u8]| {
        let sum: f64 = block.iter().map(|v| f64::from(*v)).sum();
        (sum / block.len() as f64).round_ties_even() as u8
    };
    save(&image, &from, &ZarrSaveOptions::default()).unwrap();
    assert_eq!(second(&opened()), blocks(&pixels, of, mean));
    let at = from.join("zarr.json");
    let mut metadata: serde_json::Value = serde_json::from_slice(&std::fs::read(&at).unwrap()).unwrap();
    metadata["attributes"]["ome"]["image-label"] = serde_json::json!({});
    std::fs::write(&at, metadata.to_string()).unwrap();
    assert_eq!(second(&opened()), blocks(&pixels, of, mode));
    let cropped = second(&opened().crop(0, 2, of.0, of.1 - 2));
    let part: Vec<u8> = pixels.chunks(of.1).flat_map(|row| &row[2..]).copied().collect();
    assert_eq!(cropped, blocks(&part, (of.0, of.1 - 2), mode));
    // Sums are no labels.
    let sums: Vec<u8> = pixels.iter().map(|v| v + 1).collect();
    assert_eq!(second(&(opened() + 1)), blocks(&sums, of, mean));
    save(&image.gt(2), &from, &ZarrSaveOptions::default()).unwrap();
    let mask: Vec<u8> = pixels.iter().map(|v| u8::from(*v > 2)).collect();
    assert_eq!(second(&opened()), blocks(&mask, of, mode));
}

#[test]
fn what_is_zero_is_not_stored() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    let corner = Image::from_fn(&session, 40, 40, |y, x| u8::from(y > 30 && x > 30));
    save(&corner, &path, &ZarrSaveOptions { chunk: [1, 10, 10], ..ZarrSaveOptions::default() }).unwrap();
    let names: Vec<_> = files(&path).into_iter().map(|(path, _)| path.display().to_string()).collect();
    assert_eq!(names, ["0/c/3/3", "0/zarr.json", "zarr.json"]);
    let read = open(&session, &path, &ZarrOptions::default()).unwrap().convert::<u8>();
    assert_eq!(read.to_vec().unwrap(), corner.to_vec().unwrap());
}

#[test]
fn bytes_do_not_depend_on_the_threads() {
    let folder = StoreFolder::new();
    let shards = ZarrSaveOptions { chunk: [1, 8, 8], shard: Some([1, 16, 16]), ..ZarrSaveOptions::default() };
    for options in [ZarrSaveOptions { chunk: [1, 16, 16], ..ZarrSaveOptions::default() }, shards] {
        let write = |threads: usize| {
            let session = super::builder(threads).build().unwrap();
            let path = folder.at(&format!("{threads}.zarr"));
            let image = Image::from_fn(&session, 100, 70, |y, x| (y * 31 + x * x) as u16);
            save(&image, &path, &options).unwrap();
            files(&path).into_iter().filter(|(path, _)| path.starts_with("0")).collect::<Vec<_>>()
        };
        assert_eq!(write(1), write(4));
    }
}

#[test]
fn a_store_can_replace_the_one_that_it_is_computed_from() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    save(&Image::from_fn(&session, 20, 30, |y, x| (y + x) as u8), &path, &ZarrSaveOptions::default()).unwrap();
    let image = open(&session, &path, &ZarrOptions::default()).unwrap();
    save(&(image.convert::<u8>() + 1), &path, &ZarrSaveOptions::default()).unwrap();
    let again = open(&session, &path, &ZarrOptions::default()).unwrap();
    assert_eq!(again.convert::<u8>().pixel((3, 4)).unwrap(), 8);
    assert_eq!(folder.names(), ["a.zarr"]);
}

#[test]
fn ranks_save_and_read_the_same() {
    use horus_core::comm::threads::ThreadComm;
    let folder = StoreFolder::new();
    let path = folder.at("a.zarr");
    let all = ThreadComm::run(3, |comm| {
        let session = super::builder(1).communicator(std::sync::Arc::new(comm)).build().unwrap();
        let image = Image::from_fn(&session, 50, 40, |y, x| (y * x) as f32);
        let options = ZarrSaveOptions { chunk: [1, 16, 16], sizes: 2, ..ZarrSaveOptions::default() };
        save(&image.gauss(1.0), &path, &options).unwrap();
        let read = open(&session, &path, &ZarrOptions::default()).unwrap().convert::<f32>();
        let missing = open(&session, folder.at("none.zarr"), &ZarrOptions::default()).unwrap_err().to_string();
        (bits(&read), bits(&image.gauss(1.0)), missing)
    });
    for (read, saved, missing) in &all {
        assert_eq!(read, saved);
        assert_eq!(missing, &all[0].2);
    }
}
