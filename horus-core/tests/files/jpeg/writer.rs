//! A writer of JPEG files as ITU-T T.81 defines them: any sampling factors, scans and restart intervals, sequential
//! or progressive. Its tables of codes and of quantisation are the plainest that the standard allows.

use std::f64::consts::PI;
use std::sync::LazyLock;

/// A component: its sampling factors, and its samples as a function of the position in pixels of the picture.
pub(super) struct SampledComponent {
    pub(super) factors: (usize, usize),
    pub(super) at: fn(f64, f64) -> f64,
}

/// The scans of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JpegScanLayout {
    /// One with all components.
    Together,
    /// One for each component.
    Apart,
    /// Progressive: the means of all components, then for each two bands of frequencies.
    Progressive,
    /// Progressive, with the means of each component in its own scan.
    ProgressiveApart,
}

/// Order of the coefficients of a block.
const ZIGZAG: [usize; 64] = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21,
    28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54,
    47, 55, 62, 63,
];

/// Blocks of a component, in rows that are as long as the interleaved scan needs.
struct CoefficientBlocks {
    factors: (usize, usize),
    /// Rows and columns of blocks of a scan of its own.
    own: (usize, usize),
    columns: usize,
    coefficients: Vec<[i32; 64]>,
}

/// Of each frequency, the samples of a wave.
static WAVES: LazyLock<[[f64; 8]; 8]> = LazyLock::new(|| {
    let scale = |k: usize| if k == 0 { 0.125f64.sqrt() } else { 0.5 };
    let wave = |k: usize, n: usize| scale(k) * ((2 * n + 1) as f64 * k as f64 * PI / 16.0).cos();
    std::array::from_fn(|k| std::array::from_fn(|n| wave(k, n)))
});

/// The coefficients of a block in zigzag order, each quantised by 1.
fn transformed(samples: &[f64; 64]) -> [i32; 64] {
    let waves = &*WAVES;
    // Along the rows, then along the columns.
    let rows: [f64; 64] = std::array::from_fn(|i| (0..8).map(|x| samples[i / 8 * 8 + x] * waves[i % 8][x]).sum());
    let all: [f64; 64] = std::array::from_fn(|i| (0..8).map(|y| rows[y * 8 + i % 8] * waves[i / 8][y]).sum());
    ZIGZAG.map(|at| all[at].round() as i32)
}

#[derive(Default)]
struct JpegBitWriter {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl JpegBitWriter {
    fn put(&mut self, value: u32, count: u32) {
        for bit in (0..count).rev() {
            self.held = self.held << 1 | value >> bit & 1;
            self.count += 1;
            if self.count == 8 {
                self.bytes.push(self.held as u8);
                if self.held as u8 == 0xff {
                    self.bytes.push(0);
                }
                (self.held, self.count) = (0, 0);
            }
        }
    }

    /// Fills the last byte with ones.
    fn align(&mut self) {
        while self.count > 0 {
            self.put(1, 1);
        }
    }

    /// A symbol of the table of means: codes of 4 bits.
    fn mean(&mut self, symbol: u32) {
        self.put(symbol, 4);
    }

    /// A symbol of the other table: codes of 8 bits, and two of 9.
    fn other(&mut self, symbol: u32) {
        if symbol < 254 { self.put(symbol, 8) } else { self.put(508 + symbol - 254, 9) }
    }

    /// The bits of a value of a category.
    fn value(&mut self, value: i32, category: u32) {
        self.put(if value < 0 { value - 1 } else { value } as u32 & ((1 << category) - 1), category);
    }

    /// The coefficients `first..=last` of a block.
    fn block(&mut self, block: &[i32; 64], before: &mut i32, first: usize, last: usize) {
        let category = |value: i32| 32 - value.unsigned_abs().leading_zeros();
        if first == 0 {
            let difference = block[0] - *before;
            *before = block[0];
            self.mean(category(difference));
            self.value(difference, category(difference));
        }
        let mut zeros = 0;
        for value in &block[first.max(1)..=last.max(first.max(1) - 1)] {
            if *value == 0 {
                zeros += 1;
                continue;
            }
            while zeros > 15 {
                self.other(0xf0);
                zeros -= 16;
            }
            self.other(zeros << 4 | category(*value));
            self.value(*value, category(*value));
            zeros = 0;
        }
        if zeros > 0 {
            self.other(0);
        }
    }
}

fn segment(marker: u8, body: &[u8], to: &mut Vec<u8>) {
    to.extend([0xff, marker]);
    to.extend((body.len() as u16 + 2).to_be_bytes());
    to.extend(body);
}

/// The bytes of a file of `height` rows and `width` columns; of three or four components without a conversion of
/// colours if `plain`. A restart marker follows every `restart` units, if it is not 0.
pub(super) fn encode(
    (height, width): (usize, usize),
    components: &[SampledComponent],
    scans: JpegScanLayout,
    restart: usize,
    plain: bool,
) -> Vec<u8> {
    let most = |side: fn(&SampledComponent) -> usize| components.iter().map(side).max().expect("a component");
    let (tall, wide) = (most(|c| c.factors.1), most(|c| c.factors.0));
    let units = (height.div_ceil(8 * tall), width.div_ceil(8 * wide));
    let planes: Vec<CoefficientBlocks> = components
        .iter()
        .map(|component| {
            let (h, v) = component.factors;
            let (rows, columns) = (units.0 * v, units.1 * h);
            let own = ((height * v).div_ceil(tall).div_ceil(8), (width * h).div_ceil(wide).div_ceil(8));
            // The centre of a sample.
            let place = |i: usize, most: usize, n: usize| (i as f64 + 0.5) * most as f64 / n as f64 - 0.5;
            let sample = |y: usize, x: usize| {
                let (y, x) = (place(y, tall, v), place(x, wide, h));
                (component.at)(y.min(height as f64 - 0.5), x.min(width as f64 - 0.5)).round().clamp(0.0, 255.0) - 128.0
            };
            let block = |i: usize| {
                let (top, left) = (i / columns * 8, i % columns * 8);
                transformed(&std::array::from_fn(|k| sample(top + k / 8, left + k % 8)))
            };
            CoefficientBlocks { factors: (h, v), own, columns, coefficients: (0..rows * columns).map(block).collect() }
        })
        .collect();
    let progressive = matches!(scans, JpegScanLayout::Progressive | JpegScanLayout::ProgressiveApart);
    let mut file = vec![0xff, 0xd8];
    if plain {
        segment(0xee, b"Adobe\0\x64\0\0\0\0\0", &mut file);
    }
    segment(0xdb, &[&[0][..], &[1; 64]].concat(), &mut file);
    let mut frame = vec![8];
    frame.extend((height as u16).to_be_bytes());
    frame.extend((width as u16).to_be_bytes());
    frame.push(planes.len() as u8);
    for (i, plane) in planes.iter().enumerate() {
        frame.extend([i as u8 + 1, (plane.factors.0 << 4 | plane.factors.1) as u8, 0]);
    }
    segment(if progressive { 0xc2 } else { 0xc0 }, &frame, &mut file);
    let mut lengths = [0u8; 16];
    lengths[3] = 12;
    segment(0xc4, &[&[0][..], &lengths, &std::array::from_fn::<u8, 12, _>(|i| i as u8)].concat(), &mut file);
    (lengths[3], lengths[7], lengths[8]) = (0, 254, 2);
    segment(0xc4, &[&[0x10][..], &lengths, &std::array::from_fn::<u8, 256, _>(|i| i as u8)].concat(), &mut file);
    if restart > 0 {
        segment(0xdd, &(restart as u16).to_be_bytes(), &mut file);
    }
    let all: Vec<usize> = (0..planes.len()).collect();
    let single = |first: usize, last: usize| all.iter().map(move |i| (vec![*i], first, last)).collect::<Vec<_>>();
    let list = match scans {
        JpegScanLayout::Together => vec![(all.clone(), 0, 63)],
        JpegScanLayout::Apart => single(0, 63),
        JpegScanLayout::Progressive => [vec![(all.clone(), 0, 0)], single(1, 5), single(6, 63)].concat(),
        JpegScanLayout::ProgressiveApart => [single(0, 0), single(1, 5), single(6, 63)].concat(),
    };
    for (which, first, last) in list {
        let mut head = vec![which.len() as u8];
        which.iter().for_each(|i| head.extend([*i as u8 + 1, 0]));
        head.extend([first as u8, last as u8, 0]);
        segment(0xda, &head, &mut file);
        // The blocks of each unit.
        let order: Vec<Vec<(usize, usize)>> = if let [i] = which[..] {
            let (own, columns) = (planes[i].own, planes[i].columns);
            (0..own.0 * own.1).map(|k| vec![(i, k / own.1 * columns + k % own.1)]).collect()
        } else {
            let unit = |k: usize| {
                let (row, column) = (k / units.1, k % units.1);
                let of = |i: &usize| {
                    let (i, CoefficientBlocks { factors: (h, v), columns, .. }) = (*i, &planes[*i]);
                    let place = move |j: usize| (i, (row * v + j / h) * columns + column * h + j % h);
                    (0..h * v).map(place).collect::<Vec<_>>()
                };
                which.iter().flat_map(of).collect()
            };
            (0..units.0 * units.1).map(unit).collect()
        };
        let (mut bits, mut before) = (JpegBitWriter::default(), vec![0; planes.len()]);
        for (k, unit) in order.iter().enumerate() {
            if restart > 0 && k > 0 && k % restart == 0 {
                bits.align();
                bits.bytes.extend([0xff, 0xd0 + ((k / restart - 1) % 8) as u8]);
                before.fill(0);
            }
            for (i, at) in unit {
                bits.block(&planes[*i].coefficients[*at], &mut before[*i], first, last);
            }
        }
        bits.align();
        file.extend(bits.bytes);
    }
    file.extend([0xff, 0xd9]);
    file
}
