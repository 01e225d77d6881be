//! Writing of images as NumPy arrays: the exact values.

use horus_base::dtype::DType;
use horus_base::shape::Shape;

/// Magic, version, and the description of the array, as NumPy writes it: a Python literal, padded with spaces to a
/// multiple of 64 bytes, and a line feed. The shape is `(height, width)`, with several channels `(height, width,
/// channels)`, for a volume `(depth, height, width)` or `(depth, height, width, channels)`.
pub(super) fn header(dtype: DType, shape: Shape) -> Vec<u8> {
    const MAGIC: &[u8] = b"\x93NUMPY\x01\x00";
    const ALIGNMENT: usize = 64;
    let order = match dtype.size() {
        1 => '|',
        _ if cfg!(target_endian = "little") => '<',
        _ => '>',
    };
    let descr = format!("{order}{}", dtype.numpy());
    let Shape { depth, height, width, channels, .. } = shape;
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
