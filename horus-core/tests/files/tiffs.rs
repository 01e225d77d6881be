//! Writes TIFF files tag by tag, as no available encoder writes planes, tiles and pages.

/// The value of missing pixels, as a text (GDAL).
pub(crate) const NODATA: u16 = 42113;

/// The meaning of a sample beyond the colours.
pub(crate) const EXTRA_SAMPLES: u16 = 338;

/// A page: its tags and the data of its strips or tiles.
#[derive(Clone, Default)]
pub(crate) struct TiffTestPage {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) bits: u32,
    /// 1 for unsigned integers, 2 for signed ones, 3 for floats.
    pub(crate) format: u32,
    pub(crate) samples: u32,
    pub(crate) planar: bool,
    pub(crate) compression: u32,
    /// 1 for grey, 2 for red, green and blue, 5 for inks, 6 for YCbCr.
    pub(crate) photometric: u32,
    /// Sides of tiles, or rows of a strip.
    pub(crate) tile: Option<(u32, u32)>,
    pub(crate) rows: u32,
    pub(crate) chunks: Vec<Vec<u8>>,
    /// Empty chunks are left out, as GDAL does with those of missing pixels.
    pub(crate) sparse: bool,
    /// `true` if it is a smaller copy of the preceding page.
    pub(crate) copy: bool,
    /// The value of the orientation tag, from 1; 0 if it is absent.
    pub(crate) orientation: u32,
    /// Other tags.
    pub(crate) tags: Vec<(u16, Vec<u32>)>,
}

impl TiffTestPage {
    /// One strip of unsigned grey bytes.
    pub(crate) fn grey(width: u32, height: u32, pixels: &[u8]) -> TiffTestPage {
        TiffTestPage {
            width,
            height,
            bits: 8,
            format: 1,
            samples: 1,
            compression: 1,
            photometric: 1,
            rows: height,
            chunks: vec![pixels.to_vec()],
            ..TiffTestPage::default()
        }
    }
}

/// A file of these pages, in either byte order.
pub(crate) fn file(pages: &[TiffTestPage], big_endian: bool) -> Vec<u8> {
    let short = |v: u16| if big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
    let long = |v: u32| if big_endian { v.to_be_bytes() } else { v.to_le_bytes() };
    let mut out = if big_endian { b"MM\0*".to_vec() } else { b"II*\0".to_vec() };
    let mut link = out.len();
    out.extend([0; 4]);
    for page in pages {
        let offsets: Vec<u32> = page
            .chunks
            .iter()
            .map(|chunk| {
                let at = if page.sparse && chunk.is_empty() { 0 } else { out.len() as u32 };
                out.extend(chunk);
                out.resize(out.len().next_multiple_of(2), 0);
                at
            })
            .collect();
        let counts: Vec<u32> = page.chunks.iter().map(|chunk| chunk.len() as u32).collect();
        let each = |v: u32| vec![v; page.samples as usize];
        let mut tags = vec![
            (256, vec![page.width]),
            (257, vec![page.height]),
            (258, each(page.bits)),
            (259, vec![page.compression]),
            (262, vec![page.photometric]),
            (277, vec![page.samples]),
            (284, vec![if page.planar { 2 } else { 1 }]),
            (339, each(page.format)),
        ];
        if page.copy {
            tags.push((254, vec![1]));
        }
        if page.orientation > 0 {
            tags.push((274, vec![page.orientation]));
        }
        tags.extend(page.tags.iter().cloned());
        match page.tile {
            Some((w, h)) => tags.extend([(322, vec![w]), (323, vec![h]), (324, offsets), (325, counts)]),
            None => tags.extend([(273, offsets), (278, vec![page.rows]), (279, counts)]),
        }
        tags.sort();
        // Values that do not fit into their entries.
        let mut entries = Vec::new();
        for (tag, values) in &tags {
            entries.extend(short(*tag));
            // A text of four letters, a small number (in little-endian files), or numbers.
            let (kind, count) = match *tag {
                NODATA => (2, 4),
                EXTRA_SAMPLES => (3, 1),
                _ => (4, values.len() as u32),
            };
            entries.extend(short(kind));
            entries.extend(long(count));
            match values[..] {
                [value] => entries.extend(long(value)),
                _ => {
                    entries.extend(long(out.len() as u32));
                    out.extend(values.iter().flat_map(|v| long(*v)));
                }
            }
        }
        let at = out.len() as u32;
        out[link..link + 4].copy_from_slice(&long(at));
        out.extend(short(tags.len() as u16));
        out.extend(entries);
        link = out.len();
        out.extend([0; 4]);
    }
    out
}

/// A file of one page whose tags come before its strips or tiles.
pub(crate) fn directory_first(page: &TiffTestPage) -> Vec<u8> {
    let bytes = file(std::slice::from_ref(page), false);
    let number = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().expect("four bytes"));
    // The pixels, which come first, move behind the rest.
    let header = 8;
    let pixels: usize = page.chunks.iter().map(|chunk| chunk.len().next_multiple_of(2)).sum();
    let rest = (bytes.len() - header - pixels) as u32;
    let moved = |at: u32| if (at as usize) < header + pixels { at + rest } else { at - pixels as u32 };
    let mut out = [&bytes[..header], &bytes[header + pixels..], &bytes[header..header + pixels]].concat();
    let mut set = |at: u32, value: u32| out[at as usize..at as usize + 4].copy_from_slice(&value.to_le_bytes());
    set(4, moved(number(4)));
    let directory = number(4) as usize;
    let entries = usize::from(bytes[directory]);
    for entry in (0..entries).map(|k| directory + 2 + 12 * k) {
        let (tag, count, value) = (number(entry) & 0xffff, number(entry + 4), number(entry + 8));
        let is_offset = [273, 324].contains(&tag);
        if count > 1 || is_offset {
            set(moved(entry as u32) + 8, moved(value));
        }
        if is_offset && count > 1 {
            for k in 0..count {
                set(moved(value) + 4 * k, moved(number(value as usize + 4 * k as usize)));
            }
        }
    }
    // A padding byte does not belong to a tile.
    let last = page.chunks.last().map_or(0, Vec::len);
    out.truncate(out.len() - last % 2);
    out
}
