//! Written samples are read again exactly.

use horus_core::dispatch;
use horus_core::dtype::{DType, Pixel};
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::shape::Shape;
use horus_zarr::{ZarrCodec, ZarrOptions, ZarrSaveOptions, is_store, open, save};

use super::{Folder, files, session};

/// Distinct samples, including every power of two of a type, zeros of both signs, and NaN for
/// floats.
fn samples<T: Pixel>(shape: Shape) -> Vec<T> {
    let odd = [-0.0, f64::NAN, f64::INFINITY, -1.5, 1e30, 0.0];
    let value = |i: usize| if i % 7 == 3 { odd[i / 7 % odd.len()] } else { (i * i % 509) as f64 * 1.25 };
    (0..shape.len()).map(|i| T::from_f64(value(i))).collect()
}

fn image<T: Pixel>(session: &Session, shape: Shape) -> Image<T> {
    let Shape { depth, height, width, channels } = shape;
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
    let (session, folder) = (session(), Folder::new());
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
    let (session, folder) = (session(), Folder::new());
    let mask = Image::from_fn(&session, 30, 20, |y, x| (y * x % 7) as f32).gt(3.0);
    save(&mask, folder.at("mask.zarr"), &ZarrSaveOptions { sizes: 2, ..ZarrSaveOptions::default() }).unwrap();
    let read = open(&session, folder.at("mask.zarr"), &ZarrOptions::default()).unwrap();
    assert_eq!(read.convert::<u8>().to_vec().unwrap(), mask.convert::<u8>().to_vec().unwrap());
    for size in ["0", "1"] {
        let metadata = std::fs::read_to_string(folder.at("mask.zarr").join(size).join("zarr.json")).unwrap();
        assert!(metadata.contains(r#""data_type": "bool""#), "{metadata}");
    }
}

#[test]
fn sizes_are_those_of_a_pyramid() {
    let (session, folder) = (session(), Folder::new());
    let path = folder.at("sizes.zarr");
    let image = Image::from_volume_fn(&session, 2, 37, 50, |z, y, x| ((z * 91 + y * 13 + x * 7) % 251) as u8);
    let pixel = Some([2.0, 0.5, 0.25]);
    let options = ZarrSaveOptions { sizes: 3, chunk: [1, 16, 16], pixel, ..ZarrSaveOptions::default() };
    save(&image, &path, &options).unwrap();
    let metadata = std::fs::read_to_string(path.join("zarr.json")).unwrap();
    let metadata: serde_json::Value = serde_json::from_str(&metadata).unwrap();
    let told = &metadata["attributes"]["ome"]["multiscales"][0];
    let units: Vec<_> = told["axes"].as_array().unwrap().iter().map(|axis| axis["unit"].as_str()).collect();
    assert_eq!(units, [Some("micrometer"); 3]);
    // 37x50, 19x25 and 10x13 pixels of the same extent.
    for (size, [height, width]) in [[37.0, 50.0], [19.0, 25.0], [10.0, 13.0]].into_iter().enumerate() {
        let scale = &told["datasets"][size]["coordinateTransformations"][0]["scale"];
        assert_eq!(*scale, serde_json::json!([2.0, 0.5 * (37.0 / height), 0.25 * (50.0 / width)]), "size {size}");
    }
    let nothing = ZarrSaveOptions { pixel: Some([1.0, 0.0, 1.0]), ..options };
    let error = save(&image, folder.at("no.zarr"), &nothing).unwrap_err().to_string();
    assert!(error.contains("a side of a pixel is 0 micrometres"), "{error}");
    let mut expected = image;
    for level in 0..3 {
        let read = open(&session, &path, &ZarrOptions { level, ..ZarrOptions::default() }).unwrap();
        assert_eq!(read.shape(), expected.shape());
        assert_eq!(read.convert::<u8>().to_vec().unwrap(), expected.to_vec().unwrap(), "size {level}");
        expected = expected.pyramid_down().convert::<u8>();
    }
    let error = open(&session, &path, &ZarrOptions { level: 3, ..ZarrOptions::default() }).unwrap_err().to_string();
    assert!(error.contains("size 3 requested, but it has 3"), "{error}");
}

#[test]
fn what_is_zero_is_not_stored() {
    let (session, folder) = (session(), Folder::new());
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
    let folder = Folder::new();
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
    let (session, folder) = (session(), Folder::new());
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
    let folder = Folder::new();
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
