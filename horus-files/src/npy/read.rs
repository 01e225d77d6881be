//! NumPy arrays as pictures.
//!
//! The header is a Python literal. This is a small parser of NumPy's own output. Crates that parse any literal are
//! recursive: nested brackets in a corrupt file would overflow the stack.

use crate::interleave::copy_spaced;
use crate::{DecodeResources, OpenOptions, Picture, PictureSource, Raster, SampleConversion, check_size, pixel_bytes};
use horus_base::dtype::DType;
use horus_base::error::Audience;
use horus_base::shape::Shape;

/// Maximum number of channels of a picture; an array with more may be a volume.
const MOST_COLOURS: u64 = 4;

/// Decodes an array of shape `(height, width)`, `(height, width, channels)` or, for a volume, `(depth, height, width)`
/// or `(depth, height, width, channels)`.
pub(super) fn read(
    source: &PictureSource<'_>,
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Result<Picture, String> {
    let (raster, fortran) = raster(source, options)?;
    if !fortran {
        return raster.read(source, options.region, means);
    }
    // Column by column, and channel by channel; all levels of each row.
    let shape = raster.shape;
    let turned = Raster { shape: Shape::new(shape.width * shape.channels, shape.height * shape.depth, 1), ..raster };
    transposed(&turned.read(source, None, means)?, shape, means)?.cropped(options.region, means)
}

/// The layout of the pixels in a file; `true` if they are stored by columns.
pub(super) fn raster(source: &PictureSource<'_>, options: &OpenOptions) -> Result<(Raster, bool), String> {
    let (header, at) = header(source)?;
    let NpyHeader { descr, fortran, shape } = NpyHeader::parse(&header)?;
    let unsupported = || {
        format!(
            "NumPy arrays of type {descr} are not supported; use bool, uint8, uint16, uint32, int8, int16, int32, float32 or \
             float64"
        )
    };
    let [depth, height, width, channels] = match shape[..] {
        [height, width] => [1, height, width, 1],
        [depth, height, width] if options.volume => [depth, height, width, 1],
        [height, width, channels] => {
            if channels > MOST_COLOURS {
                let volume = Audience::now().select_wording("AnyImage::open_volume", "--volume", "volume=True");
                horus_base::warn!(
                    "{channels} channels of {height}x{width} pixels are read; {volume} reads {height} levels"
                );
            }
            [1, height, width, channels]
        }
        [depth, height, width, channels] => [depth, height, width, channels],
        _ => return Err(dimensions(&shape)),
    };
    let name = descr.get(1..).ok_or_else(unsupported)?;
    let mut types = DType::ALL.into_iter().chain([DType::Bool]);
    let dtype = types.find(|dtype| dtype.numpy() == name).ok_or_else(unsupported)?;
    let swap = match descr.as_bytes()[0] {
        b'|' if dtype.size() == 1 => false,
        b'<' => cfg!(target_endian = "big"),
        b'>' => cfg!(target_endian = "little"),
        b'=' => false,
        _ => return Err(unsupported()),
    };
    if options.region.is_none() {
        check_size(depth.saturating_mul(height), width, options)?;
    }
    // No memory is allocated unless the file can fill it.
    let needed = [height, width, channels, dtype.size() as u64].iter().try_fold(depth, |n, m| n.checked_mul(*m));
    if needed.is_none_or(|needed| needed > source.size() - at) {
        return Err(format!("the file is too short for a NumPy array of shape {} and type {descr}", Tuple(&shape)));
    }
    if needed == Some(0) {
        return Err(format!("a NumPy array of shape {} has no pixels", Tuple(&shape)));
    }
    let shape = Shape::volume(depth as usize, height as usize, width as usize, channels as usize);
    let order = match (dtype, swap) {
        (DType::Bool, _) => SampleConversion::Truth,
        (_, true) => SampleConversion::Swapped,
        (_, false) => SampleConversion::Unchanged,
    };
    Ok((Raster { at, shape, dtype, order, bottom_up: false }, fortran))
}

/// Transposes pictures stored by columns.
fn transposed(columns: &Picture, shape: Shape, means: DecodeResources<'_>) -> Result<Picture, String> {
    let Shape { depth, height, width, channels, .. } = shape;
    let (size, pixel) = (columns.dtype.size(), pixel_bytes(shape, columns.dtype));
    let mut pixels = (means.allocate)(columns.pixels.len()).map_err(|e| e.to_string())?;
    for (row, to) in pixels.bytes_mut().chunks_mut(width * pixel).enumerate() {
        let (z, y) = (row / height, row % height);
        for c in 0..channels {
            let first = (c * width * height + y) * depth + z;
            let from = &columns.pixels.bytes()[first * size..];
            copy_spaced(from, height * depth * size, &mut to[c * size..], pixel, size);
        }
    }
    Ok(Picture::from_pixels(shape, columns.dtype, pixels))
}

fn dimensions(shape: &[u64]) -> String {
    format!(
        "a NumPy array of shape {} is not a picture: expected (height, width), (height, width, channels), or of a volume (depth, height, width) or (depth, height, width, channels)",
        Tuple(shape)
    )
}

/// The text of the header, and the offset of the array.
fn header(source: &PictureSource<'_>) -> Result<(Vec<u8>, u64), String> {
    const MAGIC: usize = 6;
    let too_early = || "the header of the NumPy array is truncated".to_owned();
    let head = source.head();
    let (major, rest) = head.get(MAGIC).zip(head.get(MAGIC + 2..)).ok_or_else(too_early)?;
    // The length has two bytes, or four in later versions.
    let (length, at) = if *major == 1 {
        (rest.first_chunk().map(|b| u32::from(u16::from_le_bytes(*b))), MAGIC + 4)
    } else {
        (rest.first_chunk().map(|b| u32::from_le_bytes(*b)), MAGIC + 6)
    };
    let (length, at) = (u64::from(length.ok_or_else(too_early)?), at as u64);
    if length > source.size() - at {
        return Err(too_early());
    }
    // Longer than any header that NumPy writes or reads.
    const LONGEST: u64 = 1 << 20;
    if length > LONGEST {
        return Err(format!("the header of the NumPy array has {length} bytes; the limit is {LONGEST}"));
    }
    let mut header = vec![0; length as usize];
    source.read_at(at, &mut header)?;
    Ok((header, at + length))
}

#[derive(Debug, PartialEq)]
struct NpyHeader {
    descr: String,
    fortran: bool,
    shape: Vec<u64>,
}

impl NpyHeader {
    fn parse(text: &[u8]) -> Result<NpyHeader, String> {
        let text = str::from_utf8(text).map_err(|_| "the header of the NumPy array is not text")?;
        let mut rest = LiteralParser(text);
        NpyHeader::dictionary(&mut rest).ok_or_else(|| {
            let shown: String = text.trim_end().chars().take(80).collect();
            format!("a NumPy array with the header {shown} is not supported")
        })
    }

    /// Parses `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, in any order.
    fn dictionary(rest: &mut LiteralParser<'_>) -> Option<NpyHeader> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        rest.symbol('{')?;
        while rest.symbol('}').is_none() {
            let key = rest.string()?;
            rest.symbol(':')?;
            match key {
                "descr" => descr = Some(rest.string()?.to_owned()),
                "fortran_order" => fortran = Some(rest.truth()?),
                "shape" => shape = Some(rest.tuple()?),
                _ => return None,
            }
            if rest.symbol(',').is_none() {
                rest.symbol('}')?;
                break;
            }
        }
        // The bytes are parsed one by one; the first is the byte order.
        let descr = descr.filter(|d| d.is_ascii() && !d.is_empty())?;
        Some(NpyHeader { descr, fortran: fortran?, shape: shape? })
    }
}

/// The rest of a text to parse.
struct LiteralParser<'a>(&'a str);

impl<'a> LiteralParser<'a> {
    fn symbol(&mut self, symbol: char) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(symbol)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_start();
        let quote = rest.chars().next().filter(|c| "'\"".contains(*c))?;
        let (string, rest) = rest[1..].split_once(quote)?;
        self.0 = rest;
        (!string.contains('\\')).then_some(string)
    }

    fn truth(&mut self) -> Option<bool> {
        let rest = self.0.trim_start();
        let (truth, rest) = match rest.strip_prefix("True") {
            Some(rest) => (true, rest),
            None => (false, rest.strip_prefix("False")?),
        };
        self.0 = rest;
        Some(truth)
    }

    fn tuple(&mut self) -> Option<Vec<u64>> {
        // NumPy's limit.
        const DIMENSIONS: usize = 64;
        let mut values = Vec::new();
        self.symbol('(')?;
        while self.symbol(')').is_none() {
            let rest = self.0.trim_start();
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            values.push(rest[..end].parse().ok()?);
            // Long integers of Python 2 end with an L.
            self.0 = rest[end..].strip_prefix('L').unwrap_or(&rest[end..]);
            if values.len() > DIMENSIONS {
                return None;
            }
            if self.symbol(',').is_none() {
                self.symbol(')')?;
                break;
            }
        }
        Some(values)
    }
}

/// A shape in Python's notation.
struct Tuple<'a>(&'a [u64]);

impl std::fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values: Vec<String> = self.0.iter().map(u64::to_string).collect();
        write!(f, "({}{})", values.join(", "), if self.0.len() == 1 { "," } else { "" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_in_any_order_and_spacing() {
        let text = "{ \"shape\":(3,4L) , 'fortran_order':True,'descr' : '=f4'}";
        let want = NpyHeader { descr: "=f4".into(), fortran: true, shape: vec![3, 4] };
        assert_eq!(NpyHeader::parse(text.as_bytes()), Ok(want));
    }
}
