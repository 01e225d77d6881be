//! JPEG data with any sampling factors and scans, as ITU-T T.81 defines them (Huffman codes, 8 bits).
//!
//! The crate `zune-jpeg` is several times faster and decodes the usual files. It misplaces samples of a component in
//! its own scan, and colours that are finer than the luminance (also in release 0.5.16-rc3, which excludes `image`;
//! `jpeg-decoder` misplaces others). [`GeneralJpeg::of`] recognises these files.

use std::f32::consts::PI;

use super::segments::markers;
use crate::tiff::samples::{colour, invert, lights};
use crate::zeros;
use horus_base::dtype::DType;

/// Side of a block.
const SIDE: usize = 8;
/// Coefficients of a block.
const BLOCK: usize = SIDE * SIDE;
const MOST_COMPONENTS: usize = 4;

/// Position in a block of each coefficient, in the order of the file.
const ZIGZAG: [u8; BLOCK] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// Colour model of the components.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Model {
    /// Grey, or red, green and blue.
    Plain,
    /// Luminance, and the differences of blue and red from it.
    Luma,
    /// Cyan, magenta, yellow and black, stored as the light that they leave.
    Inks,
    /// Inks, of which the first three are stored as luminance and differences.
    LumaInks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JpegComponent {
    id: u8,
    /// Sampling factors: columns and rows of blocks of a unit.
    across: usize,
    down: usize,
    /// Number of its quantisation table.
    table: usize,
}

/// JPEG data whose header has been read.
#[derive(Clone, Debug)]
pub(crate) struct GeneralJpeg<'a> {
    bytes: &'a [u8],
    pub(super) height: usize,
    pub(super) width: usize,
    progressive: bool,
    components: Vec<JpegComponent>,
    model: Model,
}

impl<'a> GeneralJpeg<'a> {
    /// JPEG data that only this decoder reads correctly; `None` for other data, and for data that no decoder reads.
    pub(crate) fn of(bytes: &'a [u8]) -> Option<GeneralJpeg<'a>> {
        const SEQUENTIAL: [u8; 2] = [0xc0, 0xc1];
        const PROGRESSIVE: u8 = 0xc2;
        const SCAN: u8 = 0xda;
        const APP0: u8 = 0xe0;
        const APP14: u8 = 0xee;
        let (mut frame, mut adobe, mut jfif, mut first) = (None, None, false, 0);
        for (marker, body) in markers(bytes) {
            match marker {
                PROGRESSIVE => frame = frame.or(Some((true, body))),
                marker if SEQUENTIAL.contains(&marker) => frame = frame.or(Some((false, body))),
                APP0 => jfif |= body.starts_with(b"JFIF\0"),
                // The version and flags come first.
                APP14 if body.starts_with(b"Adobe") => adobe = body.get(11).copied(),
                SCAN => {
                    first = usize::from(*body.first()?);
                    break;
                }
                _ => {}
            }
        }
        let (progressive, body) = frame?;
        let (&[bits, h0, h1, w0, w1, count], list) = body.split_first_chunk()?;
        let (height, width) = (usize::from(u16::from_be_bytes([h0, h1])), usize::from(u16::from_be_bytes([w0, w1])));
        let list = list.as_chunks().0.get(..count.into())?;
        let component = |&[id, factors, table]: &[u8; 3]| JpegComponent {
            id,
            across: usize::from(factors >> 4),
            down: usize::from(factors & 15),
            table: table.into(),
        };
        let components: Vec<JpegComponent> = list.iter().map(component).collect();
        let fits = |c: &JpegComponent| (1..=4).contains(&c.across) && (1..=4).contains(&c.down) && c.table < 4;
        if bits != 8 || height * width == 0 || !matches!(count, 1 | 3 | 4) || !components.iter().all(fits) {
            return None;
        }
        let factors: Vec<(usize, usize)> = components.iter().map(|c| (c.across, c.down)).collect();
        let halved = |(across, down): (usize, usize)| across <= 2 && down <= 2;
        let usual = halved(factors[0])
            && (factors.iter().all(|f| *f == factors[0])
                || factors[1..].iter().enumerate().all(|(i, f)| *f == (1, 1) || (i == 2 && *f == factors[0])));
        if usual && (progressive || first == components.len()) {
            return None;
        }
        let model = match (&components[..], adobe) {
            ([_], _) => Model::Plain,
            // As in libjpeg: JFIF, Adobe's transform, identifiers.
            ([_, _, _], _) if jfif => Model::Luma,
            ([_, _, _], Some(0)) => Model::Plain,
            ([a, b, c], None) if [a.id, b.id, c.id] == *b"RGB" => Model::Plain,
            ([_, _, _], _) => Model::Luma,
            (_, Some(2)) => Model::LumaInks,
            _ => Model::Inks,
        };
        Some(GeneralJpeg { bytes, height, width, progressive, components, model })
    }

    /// Channels of the picture after conversion to grey or RGB.
    pub(super) fn channels(&self) -> usize {
        self.stored_channels().min(3)
    }

    /// Channels as stored.
    pub(super) fn stored_channels(&self) -> usize {
        self.components.len()
    }

    /// Decodes the pixels, interleaved, into memory of their size: grey, or red, green and blue.
    ///
    /// # Errors
    /// A message, if the data is corrupt.
    pub(super) fn read(&self, to: &mut [u8]) -> Result<(), String> {
        self.rows(to, self.channels(), |row, to| {
            let stored = self.stored_channels();
            if let Model::Luma | Model::LumaInks = self.model {
                colour(row, stored);
            }
            match self.model {
                Model::Plain | Model::Luma => return to.copy_from_slice(row),
                // Only black.
                Model::LumaInks => invert(&mut row[3..], stored, DType::U8),
                Model::Inks => invert(row, 1, DType::U8),
            }
            lights(row, stored, to, self.channels(), DType::U8);
        })
    }

    /// Decodes the pixels, interleaved, in the stored colours.
    ///
    /// # Errors
    /// As [`GeneralJpeg::read`].
    pub(super) fn read_as_stored(&self, to: &mut [u8]) -> Result<(), String> {
        self.rows(to, self.stored_channels(), |row, to| to.copy_from_slice(row))
    }

    /// Decodes the pixels row by row. `convert` makes a row of `channels` samples from a row of all components.
    fn rows(&self, to: &mut [u8], channels: usize, convert: impl Fn(&mut [u8], &mut [u8])) -> Result<(), String> {
        let planes = JpegScanDecoder::of(self)?.planes()?;
        let mut row = zeros(self.width * planes.len())?;
        for (y, to) in to.chunks_exact_mut(self.width * channels).take(self.height).enumerate() {
            for (c, plane) in planes.iter().enumerate() {
                plane.row(y, row.iter_mut().skip(c).step_by(planes.len()));
            }
            convert(&mut row, to);
        }
        Ok(())
    }

    /// The largest sampling factors.
    fn largest(&self) -> (usize, usize) {
        self.components.iter().fold((1, 1), |(across, down), c| (across.max(c.across), down.max(c.down)))
    }
}

/// The coefficients of a component.
struct ComponentCoefficients {
    component: JpegComponent,
    /// Blocks of a row in interleaved scans.
    columns: usize,
    /// Columns and rows of blocks that contain samples of the picture.
    own: (usize, usize),
    /// Columns and rows of samples.
    size: (usize, usize),
    coefficients: Vec<[i16; BLOCK]>,
    /// The quantisation table at its first scan.
    quantisation: Option<[u16; BLOCK]>,
}

/// Decoder of the scans of a file, one after the other.
struct JpegScanDecoder<'a> {
    file: &'a GeneralJpeg<'a>,
    /// Columns and rows of units.
    units: (usize, usize),
    blocks: Vec<ComponentCoefficients>,
    quantisation_tables: [Option<[u16; BLOCK]>; 4],
    dc_tables: [Option<JpegHuffmanTable>; 4],
    ac_tables: [Option<JpegHuffmanTable>; 4],
    restart: usize,
}

/// Components and coefficients of a scan.
struct Scan {
    /// The component, and its Huffman tables.
    components: Vec<(usize, usize, usize)>,
    first: usize,
    last: usize,
    /// The bit position sent before (0 in the first scan), and the one sent now.
    high: u8,
    low: u8,
}

/// State of a scan between blocks.
#[derive(Default)]
struct ScanState {
    dc_predictions: [i32; MOST_COMPONENTS],
    /// Number of following blocks without further coefficients.
    ended: u32,
}

impl<'a> JpegScanDecoder<'a> {
    /// Reads all scans.
    fn of(file: &'a GeneralJpeg<'a>) -> Result<JpegScanDecoder<'a>, String> {
        const CODES: u8 = 0xc4;
        const END: u8 = 0xd9;
        const SCAN: u8 = 0xda;
        const STEPS: u8 = 0xdb;
        const RESTART: u8 = 0xdd;
        /// Maximum number of scans: more than the bits of all coefficients require. Each scan takes time, however short
        /// it is.
        const MOST_SCANS: usize = 200;
        /// Maximum blocks for each byte: the most compressed files have over 8 blocks of 3 components in a byte, in
        /// about ten scans.
        const BLOCKS_OF_A_BYTE: usize = 512;
        let (across, down) = file.largest();
        let units = (file.width.div_ceil(SIDE * across), file.height.div_ceil(SIDE * down));
        let blocks = |component: &JpegComponent| {
            let size =
                ((file.width * component.across).div_ceil(across), (file.height * component.down).div_ceil(down));
            let (columns, rows) = (units.0 * component.across, units.1 * component.down);
            let mut coefficients = Vec::new();
            coefficients.try_reserve_exact(columns * rows).map_err(|e| e.to_string())?;
            coefficients.resize(columns * rows, [0; BLOCK]);
            let own = (size.0.div_ceil(SIDE), size.1.div_ceil(SIDE));
            Ok::<_, String>(ComponentCoefficients {
                component: *component,
                columns,
                own,
                size,
                coefficients,
                quantisation: None,
            })
        };
        let blocks = file.components.iter().map(blocks).collect::<Result<_, _>>()?;
        let none = || [const { None }; 4];
        let mut all = JpegScanDecoder {
            file,
            units,
            blocks,
            quantisation_tables: [None; 4],
            dc_tables: none(),
            ac_tables: none(),
            restart: 0,
        };
        let (mut scans, mut passed) = (0, 0);
        for (marker, rest) in markers(file.bytes) {
            // The length, two bytes, comes before.
            let body = || {
                let at = file.bytes.len() - rest.len();
                let length = usize::from(u16::from_be_bytes([file.bytes[at - 2], file.bytes[at - 1]]));
                length.checked_sub(2).and_then(|length| rest.split_at_checked(length)).ok_or_else(corrupt)
            };
            match marker {
                CODES => all.codes(body()?.0)?,
                STEPS => all.read_quantisation_tables(body()?.0)?,
                RESTART => {
                    let two = body()?.0.first_chunk().ok_or_else(corrupt)?;
                    all.restart = u16::from_be_bytes(*two).into();
                }
                SCAN => {
                    scans += 1;
                    if scans > MOST_SCANS {
                        return Err(format!("it has more than {MOST_SCANS} scans"));
                    }
                    let (head, coded) = body()?;
                    let scan = all.head(head)?;
                    passed += scan.components.iter().map(|(i, ..)| all.blocks[*i].coefficients.len()).sum::<usize>();
                    if passed > BLOCKS_OF_A_BYTE * file.bytes.len() {
                        return Err("its scans have more blocks of pixels than its bytes can encode".into());
                    }
                    all.scan(&scan, coded)?;
                }
                END => break,
                _ => {}
            }
        }
        Ok(all)
    }

    /// Reads quantisation tables.
    fn read_quantisation_tables(&mut self, mut body: &[u8]) -> Result<(), String> {
        while let Some((head, rest)) = body.split_first() {
            let wide = head >> 4 > 0;
            let (values, after) = rest.split_at_checked(BLOCK << u8::from(wide)).ok_or_else(corrupt)?;
            let mut steps = [0; BLOCK];
            for (i, at) in ZIGZAG.into_iter().enumerate() {
                let value =
                    if wide { u16::from_be_bytes([values[2 * i], values[2 * i + 1]]) } else { values[i].into() };
                steps[usize::from(at)] = value;
            }
            *self.quantisation_tables.get_mut(usize::from(head & 15)).ok_or_else(corrupt)? = Some(steps);
            body = after;
        }
        Ok(())
    }

    /// Reads Huffman tables.
    fn codes(&mut self, mut body: &[u8]) -> Result<(), String> {
        while let Some((head, rest)) = body.split_first() {
            let (lengths, rest) = rest.split_first_chunk::<16>().ok_or_else(corrupt)?;
            let count = lengths.iter().map(|n| usize::from(*n)).sum();
            let (symbols, after) = rest.split_at_checked(count).ok_or_else(corrupt)?;
            let tables = if head >> 4 == 0 { &mut self.dc_tables } else { &mut self.ac_tables };
            *tables.get_mut(usize::from(head & 15)).ok_or_else(corrupt)? =
                Some(JpegHuffmanTable::new(lengths, symbols)?);
            body = after;
        }
        Ok(())
    }

    /// Reads the header of a scan.
    fn head(&mut self, head: &[u8]) -> Result<Scan, String> {
        let (count, rest) = head.split_first().ok_or_else(corrupt)?;
        let (list, rest) = rest.split_at_checked(2 * usize::from(*count)).ok_or_else(corrupt)?;
        let &[first, last, bits] = rest.first_chunk().ok_or_else(corrupt)?;
        let mut components: Vec<(usize, usize, usize)> = Vec::new();
        for [id, tables] in list.as_chunks().0 {
            let found = self.blocks.iter().position(|blocks| blocks.component.id == *id);
            let i = found.filter(|i| components.iter().all(|(j, ..)| i != j)).ok_or_else(corrupt)?;
            components.push((i, usize::from(tables >> 4 & 3), usize::from(tables & 3)));
            let blocks = &mut self.blocks[i];
            blocks.quantisation = blocks.quantisation.or(self.quantisation_tables[blocks.component.table]);
        }
        let (first, last) = if self.file.progressive { (first.into(), last.into()) } else { (0, BLOCK - 1) };
        let (high, low) = if self.file.progressive { (bits >> 4, bits & 15) } else { (0, 0) };
        let fits =
            !components.is_empty() && last < BLOCK && first <= last && low < 14 && (high == 0 || high == low + 1);
        // Coefficients other than means are sent for one component, separately from the means.
        let apart = !self.file.progressive || if first == 0 { last == 0 } else { components.len() == 1 };
        (fits && apart).then_some(Scan { components, first, last, high, low }).ok_or_else(corrupt)
    }

    /// Reads the coefficients of a scan.
    fn scan(&mut self, scan: &Scan, coded: &[u8]) -> Result<(), String> {
        let mut bits = JpegBitReader { coded, buffer: 0, count: 0 };
        let mut state = ScanState::default();
        let mut left = self.restart;
        let mut begin = |bits: &mut JpegBitReader<'_>, state: &mut ScanState| {
            if self.restart > 0 {
                if left == 0 {
                    bits.restart()?;
                    *state = ScanState::default();
                    left = self.restart;
                }
                left -= 1;
            }
            Ok::<_, String>(())
        };
        if let [(i, mean, other)] = scan.components[..] {
            let ComponentCoefficients { own, columns, coefficients, .. } = &mut self.blocks[i];
            let codes = (self.dc_tables[mean].as_ref(), self.ac_tables[other].as_ref());
            for row in coefficients.chunks_exact_mut(*columns).take(own.1) {
                for block in &mut row[..own.0] {
                    begin(&mut bits, &mut state)?;
                    scan.block(&mut bits, block, &mut state, 0, codes)?;
                }
            }
            return Ok(());
        }
        for unit in 0..self.units.0 * self.units.1 {
            begin(&mut bits, &mut state)?;
            let (row, column) = (unit / self.units.0, unit % self.units.0);
            for (k, (i, mean, other)) in scan.components.iter().enumerate() {
                let ComponentCoefficients {
                    component: JpegComponent { across, down, .. }, columns, coefficients, ..
                } = &mut self.blocks[*i];
                let codes = (self.dc_tables[*mean].as_ref(), self.ac_tables[*other].as_ref());
                for y in 0..*down {
                    let at = (row * *down + y) * *columns + column * *across;
                    for block in &mut coefficients[at..at + *across] {
                        scan.block(&mut bits, block, &mut state, k, codes)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// The samples of all components.
    fn planes(self) -> Result<Vec<ComponentSamples>, String> {
        let (across, down) = self.file.largest();
        let wave = |x: usize, u: usize| {
            let scale = if u == 0 { 0.125f32.sqrt() } else { 0.5 };
            scale * ((2 * x + 1) as f32 * u as f32 * PI / 16.0).cos()
        };
        // The samples of each frequency.
        let waves: [[f32; SIDE]; SIDE] = std::array::from_fn(|u| std::array::from_fn(|x| wave(x, u)));
        let plane = |blocks: ComponentCoefficients| {
            let row = blocks.columns * SIDE;
            let mut samples = zeros(blocks.coefficients.len() * BLOCK)?;
            let steps = blocks.quantisation.ok_or("it lacks a component, or its table of quantisation")?;
            let of_row = blocks.coefficients.chunks_exact(blocks.columns).zip(samples.chunks_exact_mut(row * SIDE));
            for (blocks, to) in of_row {
                for (i, block) in blocks.iter().enumerate() {
                    for (line, to) in transformed(block, &steps, &waves).iter().zip(to.chunks_exact_mut(row)) {
                        to[i * SIDE..][..SIDE].copy_from_slice(line);
                    }
                }
            }
            let JpegComponent { across: h, down: v, .. } = blocks.component;
            let columns =
                (0..self.file.width).map(|x| InterpolatedPosition::new(x, h, across, blocks.size.0)).collect();
            Ok(ComponentSamples { samples, row, columns, down: (v, down), height: blocks.size.1 })
        };
        self.blocks.into_iter().map(plane).collect()
    }
}

/// The samples of a block.
fn transformed(block: &[i16; BLOCK], steps: &[u16; BLOCK], waves: &[[f32; SIDE]; SIDE]) -> [[u8; SIDE]; SIDE] {
    let mut across = [[0f32; SIDE]; SIDE];
    for (v, line) in across.iter_mut().enumerate() {
        for (u, wave) in waves.iter().enumerate() {
            let value = f32::from(block[v * SIDE + u]) * f32::from(steps[v * SIDE + u]);
            line.iter_mut().zip(wave).for_each(|(sum, wave)| *sum += value * wave);
        }
    }
    std::array::from_fn(|y| {
        let mut sums = [128.5f32; SIDE];
        for (line, wave) in across.iter().zip(waves) {
            sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += value * wave[y]);
        }
        // Saturates.
        sums.map(|sum| sum as u8)
    })
}

/// A position between two samples.
#[derive(Clone, Copy)]
struct InterpolatedPosition {
    at: [usize; 2],
    weights: [u32; 2],
}

impl InterpolatedPosition {
    /// The position of pixel `i` in a component of `n` samples, which has `factor` samples where the largest has
    /// `most`. The samples of a unit are centred.
    fn new(i: usize, factor: usize, most: usize, n: usize) -> InterpolatedPosition {
        // In fractions of a sample, from half a sample before the first.
        let parts = (2 * i + 1) * factor + most;
        let (next, part) = (parts / (2 * most), parts % (2 * most));
        let inside = |at: usize| at.min(n - 1);
        InterpolatedPosition {
            at: [inside(next.saturating_sub(1)), inside(next)],
            weights: [(2 * most - part) as u32, part as u32],
        }
    }
}

/// The samples of a component.
struct ComponentSamples {
    samples: Vec<u8>,
    /// Samples of a row, including those beyond the picture.
    row: usize,
    columns: Vec<InterpolatedPosition>,
    /// Vertical sampling factors: of this component, and the largest.
    down: (usize, usize),
    /// Rows of samples.
    height: usize,
}

impl ComponentSamples {
    /// Interpolates a row of the picture.
    fn row<'a>(&self, y: usize, to: impl Iterator<Item = &'a mut u8>) {
        let rows = InterpolatedPosition::new(y, self.down.0, self.down.1, self.height);
        let [upper, lower] = rows.at.map(|at| &self.samples[at * self.row..][..self.row]);
        for (to, InterpolatedPosition { at: [left, right], weights }) in to.zip(&self.columns) {
            let blend = |row: &[u8]| u32::from(row[*left]) * weights[0] + u32::from(row[*right]) * weights[1];
            let sum = blend(upper) * rows.weights[0] + blend(lower) * rows.weights[1];
            let all = weights.iter().sum::<u32>() * rows.weights.iter().sum::<u32>();
            *to = ((sum + all / 2) / all) as u8;
        }
    }
}

/// Bits of a scan, between markers.
struct JpegBitReader<'a> {
    coded: &'a [u8],
    /// The next bits are the low ones.
    buffer: u32,
    count: u32,
}

impl JpegBitReader<'_> {
    /// Fills the buffer to at least 16 bits, with zeros after the last.
    fn fill(&mut self) {
        while self.count <= 24 {
            let byte = match *self.coded {
                [0xff, 0, ..] => {
                    self.coded = &self.coded[2..];
                    0xff
                }
                // Markers end the bits.
                [0xff, ..] | [] => return,
                [byte, ..] => {
                    self.coded = &self.coded[1..];
                    byte
                }
            };
            self.buffer = self.buffer << 8 | u32::from(byte);
            self.count += 8;
        }
    }

    /// The next 16 bits, with zeros after the last.
    fn next(&mut self) -> u32 {
        if self.count < 16 {
            self.fill();
        }
        let wide = u64::from(self.buffer) << 16 >> self.count;
        (wide & 0xffff) as u32
    }

    fn skip(&mut self, n: u32) -> Result<(), String> {
        self.count = self.count.checked_sub(n).ok_or("its coded pixels end early")?;
        Ok(())
    }

    fn take(&mut self, n: u32) -> Result<u32, String> {
        let bits = self.next() >> (16 - n);
        self.skip(n)?;
        Ok(bits)
    }

    /// Reads a value of this many bits. If its first bit is 0, it is negative.
    fn value(&mut self, bits: u32) -> Result<i32, String> {
        if bits == 0 {
            return Ok(0);
        }
        let value = self.take(bits)? as i32;
        Ok(if value >> (bits - 1) == 0 { value + 1 - (1 << bits) } else { value })
    }

    fn symbol(&mut self, codes: Option<&JpegHuffmanTable>) -> Result<u8, String> {
        let (symbol, length) = codes.ok_or("it lacks a table of codes")?.symbol(self.next()).ok_or_else(corrupt)?;
        self.skip(length)?;
        Ok(symbol)
    }

    /// Skips a restart marker, which must come next.
    fn restart(&mut self) -> Result<(), String> {
        (self.buffer, self.count) = (0, 0);
        // A marker may be preceded by any number of these bytes.
        while let [0xff, 0xff, ..] = self.coded {
            self.coded = &self.coded[1..];
        }
        match self.coded {
            [0xff, 0xd0..=0xd7, rest @ ..] => {
                self.coded = rest;
                Ok(())
            }
            _ => Err("it lacks a restart marker".into()),
        }
    }
}

/// A Huffman table.
struct JpegHuffmanTable {
    /// Symbol and length of the code at the start of 8 bits; length 0 for longer codes.
    short: [(u8, u8); 256],
    /// For each length: the upper bound of codes, as 16 bits, and the offset from a code to its symbol.
    bounds: [(u32, i32); 17],
    symbols: Vec<u8>,
}

impl JpegHuffmanTable {
    fn new(lengths: &[u8; 16], symbols: &[u8]) -> Result<JpegHuffmanTable, String> {
        let mut codes = JpegHuffmanTable { short: [(0, 0); 256], bounds: [(0, 0); 17], symbols: symbols.to_vec() };
        let (mut code, mut at) = (0u32, 0);
        for (length, count) in (1u32..).zip(lengths) {
            let place = at as i32 - code as i32;
            for _ in 0..*count {
                if code >= 1 << length {
                    return Err(corrupt());
                }
                if length <= 8 {
                    let first = (code << (8 - length)) as usize;
                    codes.short[first..first + (1 << (8 - length))].fill((symbols[at], length as u8));
                }
                code += 1;
                at += 1;
            }
            codes.bounds[length as usize] = (code << (16 - length), place);
            code <<= 1;
        }
        Ok(codes)
    }

    /// The symbol and the length of the code at the start of 16 bits.
    fn symbol(&self, bits: u32) -> Option<(u8, u32)> {
        let (symbol, length) = self.short[(bits >> 8) as usize];
        if length > 0 {
            return Some((symbol, length.into()));
        }
        let length = (9..=16).find(|length| bits < self.bounds[*length as usize].0)?;
        let code = bits >> (16 - length);
        let at = code as i32 + self.bounds[length as usize].1;
        Some((*self.symbols.get(usize::try_from(at).ok()?)?, length))
    }
}

impl Scan {
    /// Reads the coefficients of a block of the `k`-th component of the scan.
    fn block(
        &self,
        bits: &mut JpegBitReader<'_>,
        block: &mut [i16; BLOCK],
        state: &mut ScanState,
        k: usize,
        (means, others): (Option<&JpegHuffmanTable>, Option<&JpegHuffmanTable>),
    ) -> Result<(), String> {
        const MOST_BITS: u8 = 15;
        if self.first == 0 {
            if self.high > 0 {
                block[0] |= (bits.take(1)? << self.low) as i16;
                return Ok(());
            }
            let size = bits.symbol(means)?.min(MOST_BITS);
            state.dc_predictions[k] = state.dc_predictions[k].wrapping_add(bits.value(size.into())?);
            block[0] = (state.dc_predictions[k] << self.low) as i16;
        }
        if self.last == 0 {
            return Ok(());
        }
        if self.high > 0 {
            return self.refine(bits, block, state, others);
        }
        if state.ended > 0 {
            state.ended -= 1;
            return Ok(());
        }
        let mut at = self.first.max(1);
        while at <= self.last {
            let symbol = bits.symbol(others)?;
            let (zeros, size) = (u32::from(symbol >> 4), u32::from(symbol & 15));
            match (zeros, size) {
                (15, 0) => at += 16,
                (_, 0) => {
                    // In sequential scans, only this block ends.
                    state.ended =
                        if self.last - self.first == BLOCK - 1 { 0 } else { (1 << zeros) - 1 + bits.take(zeros)? };
                    break;
                }
                _ => {
                    at += zeros as usize;
                    let place = ZIGZAG[..=self.last].get(at).ok_or_else(corrupt)?;
                    block[usize::from(*place)] = (bits.value(size)? << self.low) as i16;
                    at += 1;
                }
            }
        }
        Ok(())
    }

    /// Reads one more bit of coefficients.
    fn refine(
        &self,
        bits: &mut JpegBitReader<'_>,
        block: &mut [i16; BLOCK],
        state: &mut ScanState,
        others: Option<&JpegHuffmanTable>,
    ) -> Result<(), String> {
        let bit = 1i16 << self.low;
        let mut at = self.first;
        // Skips zeros and, reading a bit for each, known coefficients; stops at the zero after them.
        let pass = |bits: &mut JpegBitReader<'_>, block: &mut [i16; BLOCK], at: &mut usize, mut zeros: u32| {
            while *at <= self.last {
                let value = &mut block[usize::from(ZIGZAG[*at])];
                if *value == 0 {
                    if zeros == 0 {
                        break;
                    }
                    zeros -= 1;
                } else if bits.take(1)? == 1 && *value & bit == 0 {
                    *value = value.wrapping_add(if *value > 0 { bit } else { -bit });
                }
                *at += 1;
            }
            Ok::<_, String>(())
        };
        while state.ended == 0 && at <= self.last {
            let symbol = bits.symbol(others)?;
            let zeros = u32::from(symbol >> 4);
            let new = match (zeros, symbol & 15) {
                (15, 0) => 0,
                (_, 0) => {
                    state.ended = (1 << zeros) + bits.take(zeros)?;
                    break;
                }
                (_, 1) => [-bit, bit][bits.take(1)? as usize],
                _ => return Err(corrupt()),
            };
            pass(bits, block, &mut at, zeros)?;
            if at <= self.last {
                if new != 0 {
                    block[usize::from(ZIGZAG[at])] = new;
                }
                at += 1;
            }
        }
        if state.ended > 0 {
            pass(bits, block, &mut at, u32::MAX)?;
            state.ended -= 1;
        }
        Ok(())
    }
}

fn corrupt() -> String {
    "the JPEG data is corrupt".into()
}
