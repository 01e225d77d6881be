//! Files for other decoders.

use std::io::Cursor;
use std::sync::Arc;

use horus_base::dtype::{DType, Pixel};
use horus_base::shape::Shape;
use horus_files::{FileSpec, Format, SaveOptions};
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;
use image::{ExtendedColorType, ImageFormat};
use ndarray::{Array2, Array3};
use ndarray_npy::{ReadNpyExt, ReadableElement};

fn written<T: Pixel>(format: Format, pixels: &[T], dtype: DType, shape: Shape, threads: usize) -> Vec<u8> {
    let draft = FileSpec::new(format, dtype, shape, &SaveOptions::default()).unwrap();
    let mut to = Cursor::new(Vec::new());
    let encoder = draft.encoder(vec![Arc::new(HostBuffer::from_slice(pixels))]);
    encoder.write(&mut to, &Workers::new(Some(threads)).unwrap()).unwrap();
    to.into_inner()
}

#[test]
fn bitmaps_are_written_as_ever() {
    for (channels, color) in [(1, ExtendedColorType::L8), (3, ExtendedColorType::Rgb8), (4, ExtendedColorType::Rgba8)] {
        for (height, width) in [(1, 1), (5, 7), (4, 8), (9, 6)] {
            let shape = Shape::new(height, width, channels);
            let pixels: Vec<u8> = (0..shape.len()).map(|i| (i * 37) as u8).collect();
            let (w, h) = (width as u32, height as u32);
            let mut want = Cursor::new(Vec::new());
            image::write_buffer_with_format(&mut want, &pixels, w, h, color, ImageFormat::Bmp).unwrap();
            let got = written(Format::Bmp, &pixels, DType::U8, shape, 1);
            assert!(got == want.into_inner(), "{shape}");
        }
    }
}

#[test]
fn colours_of_words_are_what_others_read() {
    let shape = Shape::new(300, 401, 3);
    let pixels: Vec<u16> = (0..shape.len()).map(|i| (i * 977) as u16).collect();
    let formats = [(Format::Ppm, ImageFormat::Pnm), (Format::Tiff, ImageFormat::Tiff), (Format::Png, ImageFormat::Png)];
    for ((format, theirs), threads) in formats.into_iter().flat_map(|format| [(format, 1), (format, 3)]) {
        let file = written(format, &pixels, DType::U16, shape, threads);
        let read = image::load_from_memory_with_format(&file, theirs).unwrap();
        assert!(*read.as_rgb16().unwrap().as_raw() == pixels, "{theirs:?}, {threads} threads");
    }
}

fn as_others_read<T: Pixel + ReadableElement>(value: impl Fn(usize) -> T) {
    for (height, width) in [(1, 1), (3, 5), (70, 1001), (1, 123_456)] {
        let pixels: Vec<T> = (0..height * width).map(&value).collect();
        let bytes = written(Format::Npy, &pixels, T::DTYPE, Shape::new(height, width, 1), 2);
        let length = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        assert!(length % 64 == 0 && bytes[length - 1] == b'\n', "{height}x{width}");
        let want = Array2::from_shape_vec((height, width), pixels).unwrap();
        assert_eq!(Array2::<T>::read_npy(&bytes[..]).unwrap(), want);
        for channels in 2..6 {
            let shape = Shape::new(height, width, channels);
            let pixels: Vec<T> = (0..shape.len()).map(&value).collect();
            for threads in [1, 2, 5] {
                let bytes = written(Format::Npy, &pixels, T::DTYPE, shape, threads);
                let read = Array3::<T>::read_npy(&bytes[..]).unwrap();
                assert_eq!(read.dim(), (height, width, channels));
                assert!(read.iter().eq(&pixels), "{shape}, {threads} threads");
            }
        }
    }
}

#[test]
fn arrays_are_what_others_read() {
    as_others_read(|i| i as u8);
    as_others_read(|i| i as u16);
    as_others_read(|i| i as i32 - 7);
    as_others_read(|i| i as f32 * 0.1);
    as_others_read(|i| i as f64 * 0.1);
}

#[test]
fn headers_are_those_of_numpy() {
    let want = b"\x93NUMPY\x01\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
    let file = written(Format::Npy, &[0.0f32; 12], DType::F32, Shape::new(3, 4, 1), 1);
    assert!(file.starts_with(want) && file.len() == 128 + 12 * 4);
    assert!(file[want.len()..127].iter().all(|b| *b == b' ') && file[127] == b'\n');
}

#[test]
fn masks_are_truth_values() {
    let bytes = written(Format::Npy, &[1u8, 0, 0, 1], DType::Bool, Shape::new(2, 2, 1), 1);
    assert_eq!(Array2::<bool>::read_npy(&bytes[..]).unwrap(), ndarray::array![[true, false], [false, true]]);
}
