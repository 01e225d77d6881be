//! Stores written by Python's zarr; see `tests/goldens/make.py`.

use std::path::PathBuf;

use horus_core::dtype::DType;
use horus_core::shape::Shape;
use horus_zarr::{ZarrOptions, open};

use super::session;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name)
}

/// As in the script.
fn sample([t, c, z, y, x]: [usize; 5]) -> usize {
    (101 * t + 53 * c + 29 * z + 7 * y + 3 * x) % 251
}

/// Checks every sample of an image; `stored` maps a value to its stored sample.
fn check(name: &str, options: &ZarrOptions, dtype: DType, shape: Shape, stored: fn(usize) -> f64) {
    let session = session();
    let read = open(&session, golden(name), options).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((read.dtype(), read.shape()), (dtype, shape), "{name}");
    let values = read.convert::<f64>().to_array::<horus_core::ndarray::Ix4>().unwrap_or_else(|e| panic!("{e}"));
    for ((z, y, x, c), value) in values.indexed_iter() {
        let expected = stored(sample([options.time.unwrap_or(0), c, z, y, x]));
        assert_eq!(value.to_bits(), expected.to_bits(), "{name}: level {z}, row {y}, column {x}, channel {c}");
    }
}

fn same(n: usize) -> f64 {
    n as f64
}

#[test]
fn arrays_of_version_3() {
    let plain = ZarrOptions::default();
    check("zstd.zarr", &plain, DType::U16, Shape::new(13, 17, 1), same);
    check("gzip.zarr", &plain, DType::U8, Shape::volume(3, 11, 6, 1), same);
    check("shards.zarr", &plain, DType::F32, Shape::new(14, 21, 1), same);
    check("big.zarr", &plain, DType::I32, Shape::new(9, 10, 3), same);
    check("mask.zarr", &plain, DType::U8, Shape::new(7, 9, 1), |n| f64::from(u8::from(n % 2 == 0)));
}

#[test]
fn arrays_of_version_2() {
    let plain = ZarrOptions::default();
    check("v2-zstd.zarr", &plain, DType::U16, Shape::new(10, 12, 1), same);
    check("v2-zlib.zarr", &plain, DType::U8, Shape::new(10, 7, 3), same);
    check("v2-gzip.zarr", &plain, DType::I32, Shape::new(10, 12, 1), same);
}

#[test]
fn samples_of_64_and_of_16_bits_are_converted() {
    let (plain, shape) = (ZarrOptions::default(), Shape::new(10, 12, 1));
    check("int64.zarr", &plain, DType::I32, shape, same);
    check("v2-uint64.zarr", &plain, DType::U32, shape, same);
    check("float16.zarr", &plain, DType::F32, shape, same);
    check("v2-float16.zarr", &plain, DType::F32, shape, same);
}

#[test]
fn images_of_two_versions_of_ome_zarr() {
    for name in ["ome-0.4.zarr", "ome-0.5.zarr"] {
        for time in [0, 1] {
            for (level, (height, width)) in [(12, 9), (6, 5)].into_iter().enumerate() {
                let options = ZarrOptions { level, time: Some(time), ..ZarrOptions::default() };
                check(name, &options, DType::U8, Shape::volume(3, height, width, 2), same);
            }
        }
    }
}

#[test]
fn an_absent_chunk_is_the_fill_value() {
    let session = session();
    let image = open(&session, golden("absent.zarr"), &ZarrOptions::default()).unwrap().convert::<f64>();
    let values = image.to_vec().unwrap();
    for (i, value) in values.into_iter().enumerate() {
        let (y, x) = (i / 8, i % 8);
        assert_eq!(value, if y >= 4 && x >= 4 { same(sample([0, 0, 0, y, x])) } else { 0.5 });
    }
}

/// Success with the codec, a C library; otherwise an error that names it.
#[test]
fn blosc_is_read_where_it_is_compiled_in() {
    for name in ["v2-blosc.zarr", "v3-blosc.zarr"] {
        if cfg!(feature = "blosc") {
            check(name, &ZarrOptions::default(), DType::U16, Shape::new(10, 12, 1), same);
        } else {
            let error = open(&session(), golden(name), &ZarrOptions::default()).unwrap_err().to_string();
            assert!(error.contains("its feature `blosc`"), "{error}");
        }
    }
}

#[test]
fn what_horus_has_no_type_or_axes_for_is_told() {
    let session = session();
    let fails = |name: &str, options: ZarrOptions, cause: &str| {
        let error = open(&session, golden(name), &options).unwrap_err().to_string();
        assert!(error.contains(cause) && error.contains(name), "{error}");
    };
    let plain = ZarrOptions::default();
    fails("complex.zarr", plain, "it has complex64 samples; supported are uint8, ");
    fails("ome-0.5.zarr", plain, "it has 2 times, of which one is read: choose it");
    fails("ome-0.5.zarr", ZarrOptions { time: Some(2), ..plain }, "time 2 requested, but it has 2");
    fails("ome-0.4.zarr", ZarrOptions { level: 2, time: Some(0), ..plain }, "size 2 requested, but it has 2");
    fails("zstd.zarr", ZarrOptions { level: 1, ..plain }, "size 1 requested, but an array has one");
    fails("zstd.zarr", ZarrOptions { max_pixels: 220, ..plain }, "exceed the limit of 220");
    fails("v2-zlib.zarr", ZarrOptions { time: Some(1), ..plain }, "time 1 requested, but it has 1");
}
