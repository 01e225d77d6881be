//! Random programs for measurements: everyday operations over images of `f32` of one size.

use std::fmt;

use horus::prelude::*;

/// Most inputs of a program.
const MOST_INPUTS: usize = 3;

/// A name, and an operation on two images of one size, or on the first of them.
type DrawnOperation = (&'static str, fn(&Image<f32>, &Image<f32>) -> Image<f32>);

/// Operations on one image, by kind. They have few constants, so that programs share kernels.
const OF_ONE: &[&[DrawnOperation]] = &[
    &[
        ("scale", |a, _| a * 0.5 + 0.25),
        ("abs", |a, _| (a - 0.5).abs()),
        ("sqrt", |a, _| a.abs().sqrt()),
        ("clamp", |a, _| a.clamp(0.0, 1.0)),
        ("sin", |a, _| a.sin()),
    ],
    &[("gauss 1", |a, _| a.gauss(1.0)), ("gauss 2", |a, _| a.gauss(2.0)), ("gauss 4", |a, _| a.gauss(4.0))],
    &[
        ("correlate 3", |a, _| correlate(a, 3)),
        ("correlate 5", |a, _| correlate(a, 5)),
        ("correlate 9", |a, _| correlate(a, 9)),
        ("correlate 17", |a, _| correlate(a, 17)),
    ],
    &[("erode 3", |a, _| a.erode(3)), ("dilate 3", |a, _| a.dilate(3)), ("median 3", |a, _| a.median(3))],
    &[
        ("rotate 3", |a, _| a.rotate(3.0, Interpolation::Bilinear)),
        ("rotate 30", |a, _| a.rotate(30.0, Interpolation::Bilinear)),
        ("translate", |a, _| a.translate(10.5, -20.25)),
    ],
    &[
        ("sobel", |a, _| a.sobel(Axis::Columns)),
        ("gradient", |a, _| a.sobel(Axis::Columns).hypot(a.sobel(Axis::Rows))),
        ("laplace", |a, _| a.laplace()),
    ],
];

/// Operations on two images.
const OF_TWO: &[DrawnOperation] = &[
    ("add", |a, b| a + b),
    ("multiply", |a, b| a * b),
    ("absdiff", |a, b| a.absdiff(b)),
    ("max", |a, b| a.max(b)),
    ("ratio", |a, b| a.absdiv(b, 1e-3)),
    ("where above", |a, b| a.gt(b).select(a, 0.0)),
];

/// Operations that halve an image.
const HALVING: &[DrawnOperation] = &[
    ("halve", |a, _| a.resize(a.height().div_ceil(2), a.width().div_ceil(2), Interpolation::Bilinear)),
    ("pyramid down", |a, _| a.pyramid_down()),
];

/// Correlation with `n` x `n` taps.
pub fn correlate(image: &Image<f32>, n: usize) -> Image<f32> {
    let taps: Vec<f64> = (0..n * n).map(|i| ((i * 7919 % 101) as f64 - 50.0) / (25.0 * (n * n) as f64)).collect();
    image.correlate(&Filter::dense(n, n, taps))
}

/// A sequence of numbers that follows from a seed (SplitMix64).
struct SplitMix64(u64);

impl SplitMix64 {
    /// The next number below `n`.
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n as u64) as usize
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// An operation and the two values that it reads, which may be the same. Values are the inputs, followed by the results
/// of the operations.
struct DrawnStep {
    operation: DrawnOperation,
    reads: [usize; 2],
}

/// A program drawn at random. It prints as its operations, with the inputs as `a`, `b`, `c`.
pub struct RandomProgram {
    inputs: usize,
    steps: Vec<DrawnStep>,
    summed: bool,
}

impl RandomProgram {
    /// The program of a number: two to eight operations over one to three images. All inputs are read, and the results
    /// of all operations except the last. One in eight ends in a sum, an image of one pixel.
    pub fn new(number: u64) -> RandomProgram {
        let mut random = SplitMix64(number);
        let (inputs, operations) = (1 + random.below(MOST_INPUTS), 2 + random.below(7));
        // Values that are not read yet, and all values of their size.
        let mut open: Vec<usize> = (0..inputs).collect();
        let mut alike = open.clone();
        let mut steps = Vec::new();
        for left in (1..=operations).rev() {
            let result = inputs + steps.len();
            // The operations that are left just suffice to join the open values.
            let must_join = open.len() > left;
            let a = open.swap_remove(random.below(open.len()));
            let others = if must_join { &open } else { &alike };
            let others: Vec<usize> = others.iter().copied().filter(|other| *other != a).collect();
            let (operation, b) = if must_join || (!others.is_empty() && random.below(3) == 0) {
                let b = random.one(&others);
                open.retain(|value| *value != b);
                (random.one(OF_TWO), b)
            } else if open.is_empty() && random.below(8) == 0 {
                alike.clear();
                (random.one(HALVING), a)
            } else {
                if open.len() + 1 < left && random.below(4) == 0 {
                    open.push(a); // to be read again
                }
                let kind = random.one(OF_ONE);
                (random.one(kind), a)
            };
            open.push(result);
            alike.push(result);
            steps.push(DrawnStep { operation, reads: [a, b] });
        }
        RandomProgram { inputs, steps, summed: random.below(8) == 0 }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Records the program over as many images as it has [inputs](RandomProgram::inputs).
    pub fn record(&self, given: &[Image<f32>]) -> Image<f32> {
        let mut values = given.to_vec();
        for DrawnStep { operation: (_, operation), reads: [a, b] } in &self.steps {
            values.push(operation(&values[*a], &values[*b]));
        }
        let last = &values[values.len() - 1];
        if self.summed { last.sum().to_image().convert() } else { last.clone() }
    }
}

impl fmt::Display for RandomProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = |value: usize| char::from(b'a' + value as u8);
        for (i, DrawnStep { operation: (name, _), reads: [a, b] }) in self.steps.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}{} = {name} {}", letter(self.inputs + i), letter(*a))?;
            if a != b {
                write!(f, " {}", letter(*b))?;
            }
        }
        if self.summed { f.write_str(", summed") } else { Ok(()) }
    }
}
