//! Images as NumPy arrays: the exact values.

use super::raster::{self, Order};
use super::target::{Sink, cause};
use horus_base::dtype::DType;
use horus_base::shape::Shape;
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

/// Writes an array of shape `(height, width)`, or `(height, width, channels)` if there are several,
/// or of a volume `(depth, height, width)` or `(depth, height, width, channels)`, from planes of
/// pixels.
pub(super) fn write(
    to: &mut dyn Sink,
    pixels: &HostBuffer,
    dtype: DType,
    shape: Shape,
    workers: &Workers,
) -> Result<(), String> {
    let header = header(dtype, shape);
    to.expect((header.len() + pixels.len()) as u64);
    to.write_all(&header).map_err(cause)?;
    raster::write(to, pixels, dtype, shape, Order::Kept, workers)
}

/// Magic, version, and the description of the array, as NumPy writes it: a Python literal, padded
/// with spaces to a multiple of 64 bytes, and a line feed.
pub(super) fn header(dtype: DType, shape: Shape) -> Vec<u8> {
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGNMENT: usize = 64;
    let order = match dtype.size() {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    let descr = format!("{order}{}", dtype.numpy());
    let Shape { depth, height, width, channels } = shape;
    let axes = [(depth != 1, depth), (true, height), (true, width), (channels != 1, channels)];
    let axes: Vec<String> = axes.iter().filter(|(there, _)| *there).map(|(_, n)| n.to_string()).collect();
    let shape = format!("({})", axes.join(", "));
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    let before = MAGIC.len() + size_of::<u16>();
    let length = (before + text.len() + 1).next_multiple_of(ALIGNMENT) - before;
    text.extend(std::iter::repeat_n(' ', length - text.len() - 1));
    text.push('\n');
    // Three numbers and a type take some hundred bytes.
    [MAGIC, &(length as u16).to_le_bytes(), text.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use ndarray::{Array2, Array3};
    use ndarray_npy::{ReadNpyExt, ReadableElement};

    use super::*;
    use horus_base::dtype::Pixel;

    fn written<T: Pixel>(pixels: &[T], dtype: DType, shape: Shape, threads: usize) -> Vec<u8> {
        let workers = Workers::new(Some(threads)).unwrap();
        let mut to = Cursor::new(Vec::new());
        write(&mut to, &HostBuffer::from_slice(pixels), dtype, shape, &workers).unwrap();
        to.into_inner()
    }

    fn as_others_read<T: Pixel + ReadableElement>(value: impl Fn(usize) -> T) {
        for (height, width) in [(1, 1), (3, 5), (70, 1001), (1, 123_456)] {
            let pixels: Vec<T> = (0..height * width).map(&value).collect();
            let bytes = written(&pixels, T::DTYPE, Shape::new(height, width, 1), 2);
            let length = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
            assert!(length % 64 == 0 && bytes[length - 1] == b'\n', "{height}x{width}");
            let want = Array2::from_shape_vec((height, width), pixels).unwrap();
            assert_eq!(Array2::<T>::read_npy(&bytes[..]).unwrap(), want);
            for channels in 2..6 {
                let shape = Shape::new(height, width, channels);
                let pixels: Vec<T> = (0..shape.len()).map(&value).collect();
                for threads in [1, 2, 5] {
                    let bytes = written(&pixels, T::DTYPE, shape, threads);
                    let read = Array3::<T>::read_npy(&bytes[..]).unwrap();
                    assert_eq!(read.dim(), (height, width, channels));
                    let alike =
                        |((y, x, c), v): ((usize, usize, usize), &T)| *v == pixels[c * shape.area() + y * width + x];
                    assert!(read.indexed_iter().all(alike), "{shape}, {threads} threads");
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
        let header = header(DType::F32, Shape::new(3, 4, 1));
        assert!(header.starts_with(want) && header.len() == 128);
        assert!(header[want.len()..127].iter().all(|b| *b == b' ') && header[127] == b'\n');
    }

    #[test]
    fn masks_are_truth_values() {
        let bytes = written(&[1u8, 0, 0, 1], DType::Bool, Shape::new(2, 2, 1), 1);
        assert_eq!(Array2::<bool>::read_npy(&bytes[..]).unwrap(), ndarray::array![[true, false], [false, true]]);
    }
}
