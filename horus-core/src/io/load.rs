//! From a path to the bytes of a picture file.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::Path;

use image::ImageFormat;

use super::bounds::MEMORY_LIMIT;
use super::target::{cause, special};

/// What a file is, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Tiff,
    Npy,
    /// One that the `image` crate reads.
    Image(ImageFormat),
}

/// Bytes that tell every format.
const HEAD: usize = 16;

impl Kind {
    pub(super) fn of(bytes: &[u8]) -> Result<Kind, String> {
        // Plain and large TIFF files of either byte order.
        const TIFF: [&[u8]; 4] = [b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"];
        const NPY: &[u8] = b"\x93NUMPY";
        if bytes.is_empty() {
            return Err("the file is empty".into());
        }
        if TIFF.iter().any(|magic| bytes.starts_with(magic)) {
            return Ok(Kind::Tiff);
        }
        if bytes.starts_with(NPY) {
            return Ok(Kind::Npy);
        }
        match image::guess_format(bytes) {
            Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Pnm | ImageFormat::Bmp)) => {
                Ok(Kind::Image(format))
            }
            Ok(other) => Err(format!("{other:?} files are not supported; use PNG, JPEG, TIFF, PNM, BMP or npy")),
            Err(_) => Err("not a PNG, JPEG, TIFF, PNM or BMP file, nor a NumPy array".into()),
        }
    }
}

/// Reads a regular file that looks like a picture. Nothing else is read from, as it may have no end or never answer.
pub(super) fn load(path: &Path) -> Result<(Kind, Vec<u8>), String> {
    // Before it is opened, which alone can have effects on a device.
    regular(&fs::metadata(path).map_err(cause)?)?;
    let mut options = File::options();
    options.read(true);
    // Should a pipe have taken its place, to open it does not wait for a writer.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    let file = options.open(path).map_err(cause)?;
    let found = file.metadata().map_err(cause)?;
    regular(&found)?;
    // A file that grows as it is read has an end, too.
    let mut rest = file.take(found.len());
    let mut bytes = Vec::new();
    rest.by_ref().take(HEAD as u64).read_to_end(&mut bytes).map_err(cause)?;
    let kind = Kind::of(&bytes)?;
    let size = found.len();
    if size > MEMORY_LIMIT {
        return Err(format!("the file has {size} bytes; at most {MEMORY_LIMIT} are read"));
    }
    let no_memory = || format!("there is no memory for its {size} bytes");
    bytes.try_reserve_exact(usize::try_from(size).map_err(|_| no_memory())?).map_err(|_| no_memory())?;
    rest.read_to_end(&mut bytes).map_err(cause)?;
    Ok((kind, bytes))
}

fn regular(found: &Metadata) -> Result<(), String> {
    if found.is_file() { Ok(()) } else { Err(format!("it is {}, not a file", special(found))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_tells_the_format() {
        assert_eq!(Kind::of(b"MM\0*________"), Ok(Kind::Tiff));
        assert_eq!(Kind::of(b"II+\0________"), Ok(Kind::Tiff));
        assert_eq!(Kind::of(b"\x93NUMPY\x01\0"), Ok(Kind::Npy));
        assert_eq!(Kind::of(b"P5 2 2 255 _"), Ok(Kind::Image(ImageFormat::Pnm)));
        assert!(Kind::of(b"GIF89a____________").unwrap_err().contains("Gif files are not supported"));
        assert!(Kind::of(b"something else").unwrap_err().contains("not a PNG"));
        assert_eq!(Kind::of(b"").unwrap_err(), "the file is empty");
    }

    #[test]
    fn a_file_of_holes_is_not_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().set_len(MEMORY_LIMIT + 1).unwrap();
        assert!(load(file.path()).unwrap_err().contains("not a PNG"));
        std::io::Write::write_all(&mut file.as_file(), b"\x93NUMPY\x01\0").unwrap();
        assert!(load(file.path()).unwrap_err().contains("8589934593 bytes; at most"));
    }
}
