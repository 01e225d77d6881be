//! The chunks of a PNG file, found without reading its pixels. Metadata may be before or after the pixels.

use crate::PictureSource;

const SIGNATURE: u64 = 8;
/// Bytes of a chunk's length (which counts the body only) and name.
const HEAD: usize = 8;
const SUM: usize = 4;

/// A chunk of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct PngChunk {
    pub(super) name: [u8; 4],
    at: u64,
    length: usize,
}

impl PngChunk {
    /// The body; `None` if it is too long for metadata, incomplete, or differs from its checksum.
    pub(super) fn body(&self, source: &PictureSource<'_>) -> Option<Vec<u8>> {
        const LONGEST: usize = 16 << 20;
        if self.length > LONGEST || self.at + (HEAD + self.length + SUM) as u64 > source.size() {
            return None;
        }
        let mut body = vec![0; self.length + SUM];
        source.read_at(self.at + HEAD as u64, &mut body).ok()?;
        let sum = body.split_off(self.length);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.name);
        hasher.update(&body);
        (sum == hasher.finalize().to_be_bytes()).then_some(body)
    }
}

/// The chunks of a file, up to its end mark.
pub(super) fn chunks<'a>(source: &'a PictureSource<'_>) -> impl Iterator<Item = PngChunk> + 'a {
    /// Bytes read at a time: several short chunks, but few pixels.
    const WINDOW: usize = 512;
    let (mut at, mut window, mut start) = (SIGNATURE, Vec::new(), 0);
    std::iter::from_fn(move || {
        let inside = |window: &Vec<u8>, start: u64| {
            let from = usize::try_from(at.checked_sub(start)?).ok()?;
            window.get(from..)?.first_chunk::<HEAD>().copied()
        };
        let head = match inside(&window, start) {
            Some(head) => head,
            None => {
                let left = usize::try_from(source.size().checked_sub(at)?).unwrap_or(usize::MAX);
                window.resize(left.min(WINDOW), 0);
                start = at;
                source.read_at(at, &mut window).ok()?;
                inside(&window, start)?
            }
        };
        let [a, b, c, d, name @ ..] = head;
        let length = u32::from_be_bytes([a, b, c, d]);
        let chunk = PngChunk { name, at, length: length as usize };
        at = if &name == b"IEND" { u64::MAX } else { at + u64::from(length) + (HEAD + SUM) as u64 };
        Some(chunk)
    })
}

/// The EXIF data of a file.
pub(super) fn exif(source: &PictureSource<'_>) -> Option<Vec<u8>> {
    chunks(source).filter(|chunk| &chunk.name == b"eXIf").find_map(|chunk| chunk.body(source))
}

/// A file with only the header and the chunks of these names, before the missing pixels.
pub(super) fn without_pixels(source: &PictureSource<'_>, names: &[&[u8; 4]]) -> Vec<u8> {
    /// Maximum bytes of all chunks.
    const MOST: usize = 64 << 20;
    /// Chunks that have no meaning after the pixels.
    const BEFORE: [&[u8; 4]; 3] = [b"PLTE", b"iCCP", b"pHYs"];
    let mut file = source.head()[..source.head().len().min(SIGNATURE as usize)].to_vec();
    let mut behind = false;
    for chunk in chunks(source) {
        behind |= &chunk.name == b"IDAT";
        if behind && BEFORE.contains(&&chunk.name) {
            continue;
        }
        if &chunk.name != b"IHDR" && !names.contains(&&chunk.name) {
            continue;
        }
        if let Some(body) = chunk.body(source).filter(|body| file.len() + body.len() <= MOST) {
            super::write::chunk(&chunk.name, &body, &mut file);
        }
    }
    file.extend([0, 0, 0, 0]);
    file.extend(b"IDAT");
    file
}
