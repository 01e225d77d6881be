//! Resizing by kernels: each line of the result is a weighted sum of a run of lines.
//!
//! A pixel of the result is computed in the interpolation type of its image, by `fma` from +0: first down the rows of
//! its run, for each column of its run; then along these sums. The result is rounded once.

use super::describe::{Accepts, OperationGroup, Parameter, Pattern, describe, description, optional, required};
use std::ops::Range;

use super::Whole;
use super::footprint::{Access, InputRead, Rect};
use super::gaussian::gauss_taps;
use super::geometric::Interpolation;
use super::operation::{
    Family, ImageExtent, ImageOperation, Instance, LaunchEffort, SampleImages, SampleOperations, ensure, images,
};
use horus_base::dtype::Arithmetic;
use horus_base::position_map::PositionMap;
use horus_base::shape::{Border, Shape, Window};

const HEIGHT: Parameter = required("height", Accepts::Extent, "");
const WIDTH: Parameter = optional("width", Accepts::Extent, "auto", "");
const HOW: Parameter = optional("how", Accepts::Choice(ways), "bilinear", "");

/// The methods that sample, then those that average.
fn ways() -> Vec<&'static str> {
    let sampled = Interpolation::ALL.map(Interpolation::name);
    sampled.into_iter().chain(Resampling::ALL.map(Resampling::name)).collect()
}

describe! {
    RESIZE = description("resize", OperationGroup::Geometry, Pattern::Geometric, "Resizing: the first three sample, so that shrinking may alias; the others average all pixels")
        .takes(&[HEIGHT, WIDTH, HOW])
        .elsewhere(&["ski.transform.resize", "cv.resize", "image::imageops::resize"])
        .differs("pixel centres aligned (`ndi.zoom` aligns the outer pixels' centres); `box` to `lanczos` are Pillow's kernels, `area` is `INTER_AREA`, `gaussian` scikit-image's `anti_aliasing`; integers are rounded once, by Pillow and OpenCV between passes too")
        .example("resize 50% lanczos");
    SCALE = description("scale", OperationGroup::Geometry, Pattern::Geometric, "As `resize`, by a factor; sizes are rounded and at least 1")
        .called("resize")
        .takes(&[required("factor", Accepts::Number, "of height and width"), optional("how", Accepts::Choice(ways), "triangle", "")])
        .elsewhere(&["ski.transform.rescale"])
        .example("scale 0.5");
}

/// Averaging when an image is resized: over the pixels under a kernel, which widens by the factor by which an axis
/// shrinks. Weights sum to 1, and only pixels of the image have weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resampling {
    /// Pixels with centres under the target pixel, equally weighted (Pillow's `BOX`).
    Box,
    /// Linear, over 2 pixels (Pillow's `BILINEAR`).
    Triangle,
    /// Over 2 pixels, `sinc(x) (0.54 + 0.46 cos(pi x))` (Pillow's `HAMMING`).
    Hamming,
    /// The cubic of [`Interpolation::Bicubic`], over 4 pixels (Pillow's `BICUBIC`).
    Cubic,
    /// Over 6 pixels, `sinc(x) sinc(x / 3)` (Pillow's `LANCZOS`).
    Lanczos,
    /// The average of the exact area of the target pixel (OpenCV's `INTER_AREA`).
    Area,
    /// A Gaussian of sigma `(scale - 1) / 2` and radius `4 sigma`, edges mirrored, along axes that
    /// shrink by `scale`, then linear (scikit-image's `resize` with `anti_aliasing`).
    Gaussian,
}

impl Resampling {
    /// All kernels, for tests of each.
    pub const ALL: [Resampling; 7] = [
        Resampling::Box,
        Resampling::Triangle,
        Resampling::Hamming,
        Resampling::Cubic,
        Resampling::Lanczos,
        Resampling::Area,
        Resampling::Gaussian,
    ];

    /// The name in lower case.
    pub const fn name(self) -> &'static str {
        match self {
            Resampling::Box => "box",
            Resampling::Triangle => "triangle",
            Resampling::Hamming => "hamming",
            Resampling::Cubic => "cubic",
            Resampling::Lanczos => "lanczos",
            Resampling::Area => "area",
            Resampling::Gaussian => "gaussian",
        }
    }

    /// Half the width of the kernel, in pixels of the larger image.
    const fn support(self) -> f64 {
        match self {
            Resampling::Box | Resampling::Area => 0.5,
            Resampling::Triangle | Resampling::Hamming | Resampling::Gaussian => 1.0,
            Resampling::Cubic => 2.0,
            Resampling::Lanczos => 3.0,
        }
    }

    /// The value of the kernel at a distance within its support.
    fn at(self, x: f64) -> f64 {
        let sinc = |x: f64| if x == 0.0 { 1.0 } else { Arithmetic::sin(x) / x };
        let pi = std::f64::consts::PI * x;
        match self {
            Resampling::Box | Resampling::Area => 1.0,
            Resampling::Triangle | Resampling::Gaussian => (1.0 - x.abs()).max(0.0),
            Resampling::Hamming => sinc(pi) * (0.54 + 0.46 * Arithmetic::cos(pi)),
            Resampling::Cubic => {
                let x = x.abs();
                if x < 1.0 { (1.5 * x - 2.5) * x * x + 1.0 } else { ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0 }
            }
            Resampling::Lanczos => sinc(pi) * sinc(pi / 3.0),
        }
    }
}

/// The lines (rows or columns) of a resized image, from line [`first`](ResizedLines::first) on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResizedLines {
    /// Number of lines that the whole result covers.
    pub from: usize,
    /// Number of lines of the whole image. May be fewer than `from`: the last line of the result then covers lines
    /// beyond the edge, which have no weight.
    pub of: usize,
    /// Number of lines of the whole result.
    pub to: usize,
    /// The first line computed here; 0 unless a region is computed. The image begins with the run of this line.
    pub first: usize,
}

/// The lines that are summed for one line of the result.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedRun {
    /// The first of these lines.
    pub start: usize,
    /// Their weights, in [`WeightedRuns::weights`].
    pub weights: Range<usize>,
}

/// The weighted sums that give consecutive lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WeightedRuns {
    /// One per line of the result.
    pub runs: Vec<WeightedRun>,
    /// The weights of all runs.
    pub weights: Vec<f64>,
}

impl ResizedLines {
    /// Resizes `from` lines to `to`.
    pub const fn new(from: usize, to: usize) -> ResizedLines {
        ResizedLines { from, of: from, to, first: 0 }
    }

    /// Halves `of` lines: one line for each pair, and one for a last single line. A single line stays.
    pub const fn halved(of: usize) -> ResizedLines {
        let to = of.div_ceil(2);
        let from = if of > 1 { 2 * to } else { of };
        ResizedLines { from, of, to, first: 0 }
    }

    /// Lines of the image per line of the result.
    fn scale(self) -> f64 {
        self.from as f64 / self.to as f64
    }

    /// Width of the kernel relative to pixels of the image.
    fn widened(self) -> f64 {
        self.scale().max(1.0)
    }

    /// Sigma and radius of the Gaussian that precedes linear interpolation.
    fn smoothing(self) -> Option<(f64, usize)> {
        let sigma = (self.scale() - 1.0) / 2.0;
        // A narrower Gaussian has a single tap.
        (sigma > 0.1).then_some((sigma, (4.0 * sigma + 0.5) as usize))
    }

    /// The lines of the whole image that are summed for line `i` of the whole result.
    fn run(self, how: Resampling, i: usize) -> Range<usize> {
        if self.from == self.to {
            return i..i + 1;
        }
        if how == Resampling::Area {
            // Exact integers: the sums must not read a line without a share.
            let (i, from, to) = (i as u128, self.from as u128, self.to as u128);
            return (i * from / to) as usize..(((i + 1) * from).div_ceil(to) as usize).min(self.of);
        }
        let centre = (i as f64 + 0.5) * self.scale();
        if how == Resampling::Gaussian {
            let radius = self.smoothing().map_or(0, |(_, radius)| radius);
            let before = (centre - 0.5).floor();
            let start = (before - radius as f64).max(0.0) as usize;
            return start..((before + radius as f64) as isize + 2).cast_unsigned().min(self.of);
        }
        // Rounds as Pillow does.
        let support = how.support() * self.widened();
        (centre - support + 0.5).max(0.0) as usize..((centre + support + 0.5) as usize).min(self.of)
    }

    /// The lines of the image that lines `need` of the result read.
    fn reads(self, how: Resampling, need: Window) -> Window {
        if need.is_empty() {
            return Window::new(0, 0);
        }
        let line = |i: isize| self.run(how, self.first.saturating_add_signed(i));
        let base = self.run(how, self.first).start.cast_signed();
        Window::new(line(need.start).start.cast_signed() - base, line(need.end - 1).end.cast_signed() - base)
    }

    /// The sums that give lines `need` of the result; their lines are counted from the first line of the image here.
    pub fn runs(self, how: Resampling, need: Window) -> WeightedRuns {
        let base = self.run(how, self.first).start;
        let smoothing = self.smoothing().filter(|_| how == Resampling::Gaussian);
        let taps = smoothing.map(|(sigma, radius)| gauss_taps(sigma, 0, radius));
        let mut all = WeightedRuns::default();
        for i in need.start..need.end {
            let i = self.first.saturating_add_signed(i);
            let (run, first) = (self.run(how, i), all.weights.len());
            match &taps {
                _ if self.from == self.to => all.weights.push(1.0),
                Some(taps) => {
                    all.weights.resize(first + run.len(), 0.0);
                    self.smoothed(taps, i, run.start, &mut all.weights[first..]);
                }
                None => {
                    let weights = run.clone().map(|line| self.weight(how, i, line));
                    all.weights.extend(weights);
                    let sum: f64 = all.weights[first..].iter().sum();
                    all.weights[first..].iter_mut().for_each(|w| *w /= sum);
                }
            }
            all.runs.push(WeightedRun { start: run.start - base, weights: first..all.weights.len() });
        }
        all
    }

    /// The share of a line of the image in line `i` of the result, up to a common factor.
    fn weight(self, how: Resampling, i: usize, line: usize) -> f64 {
        if how == Resampling::Area {
            let (i, line, from, to) = (i as u128, line as u128, self.from as u128, self.to as u128);
            return (((i + 1) * from).min((line + 1) * to) - (i * from).max(line * to)) as f64;
        }
        if how == Resampling::Gaussian {
            let position = ((i as f64 + 0.5) * self.scale() - 0.5).max(0.0);
            return (1.0 - (line as f64 - position).abs()).max(0.0);
        }
        let centre = (i as f64 + 0.5) * self.scale();
        how.at((line as f64 + 0.5 - centre) / self.widened())
    }

    /// Adds the weights of line `i`, interpolated between two smoothed lines, to the weights of the lines from `start`
    /// on.
    fn smoothed(self, taps: &[f64], i: usize, start: usize, weights: &mut [f64]) {
        let position = (i as f64 + 0.5) * self.scale() - 0.5;
        let (before, t) = (position.floor() as isize, position - position.floor());
        let radius = (taps.len() / 2).cast_signed();
        for (line, share) in [(before, 1.0 - t), (before + 1, t)] {
            // Edges are repeated between smoothed lines and mirrored for smoothing.
            let line = line.clamp(0, self.of.cast_signed() - 1);
            for (k, tap) in (-radius..).zip(taps) {
                if let Some(at) = Border::default().map(line + k, self.of) {
                    weights[at - start] += share * tap;
                }
            }
        }
    }
}

/// An image resized along both axes, per plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Resize {
    /// Weighting of pixels.
    pub how: Resampling,
    /// Rows of the result.
    pub rows: ResizedLines,
    /// Columns of the result.
    pub columns: ResizedLines,
}

impl ImageOperation for Resize {
    fn kind(&self) -> &'static str {
        "resize"
    }

    fn name(&self) -> String {
        format!("resize {}", self.how.name())
    }

    fn check(&self, inputs: &[ImageExtent], output: ImageExtent) -> Result<(), String> {
        let [(shape, dtype)] = images(inputs)?;
        let fits = |lines: ResizedLines, n: usize, of: usize| {
            let inside = lines.first.checked_add(n).is_some_and(|end| end <= lines.to) && lines.of > 0;
            inside && lines.reads(self.how, Window::whole(n)).end <= of.cast_signed()
        };
        let planes = |of: Shape| (of.depth, of.channels, of.samples);
        let made = (planes(output.0), output.1) == (planes(shape), dtype);
        let holds =
            made && fits(self.rows, output.0.height, shape.height) && fits(self.columns, output.0.width, shape.width);
        ensure(holds, || {
            format!("{:?} and {:?} of {shape} {dtype} are not {} {}", self.rows, self.columns, output.0, output.1)
        })
    }

    fn reads(&self, _: usize, need: Rect, _: Shape) -> InputRead {
        let (rows, columns) = (self.rows.reads(self.how, need.rows), self.columns.reads(self.how, need.columns));
        InputRead::inside(Rect { rows, columns })
    }

    fn for_region(&self, region: Rect) -> Option<Whole> {
        let moved =
            |lines: ResizedLines, by: isize| ResizedLines { first: lines.first.saturating_add_signed(by), ..lines };
        let [top, left] = region.corner();
        Some(Resize { rows: moved(self.rows, top), columns: moved(self.columns, left), ..*self }.into())
    }

    fn access(&self, _: usize) -> Access {
        Access::Footprint
    }

    fn position_map(&self, _: usize, _: Shape, _: Shape) -> Option<PositionMap> {
        let first = PositionMap::shifted(self.rows.first as f64, self.columns.first as f64);
        Some(PositionMap::resized((self.rows.from, self.columns.from), (self.rows.to, self.columns.to)).then(&first))
    }

    fn in_place(&self, _: usize) -> bool {
        false
    }

    fn by_levels(&self, _: usize) -> bool {
        true
    }

    fn supports_samples(&self) -> bool {
        true
    }

    fn effort(&self, inputs: &[ImageExtent], output: ImageExtent, rows: usize) -> LaunchEffort {
        let image = inputs.first().unwrap_or(&output).0;
        let taps = |lines: ResizedLines| 1.0 + 2.0 * self.how.support() * lines.widened();
        let across = image.width as f64 / output.0.width.max(1) as f64;
        LaunchEffort::of_rows(Family::Warp, output.0, rows, taps(self.rows) * across + taps(self.columns))
    }
}

impl SampleOperations for Resize {
    fn samples(of: SampleImages) -> Vec<Instance> {
        let (shape, dtype) = of.image;
        let sizes = [
            (Resampling::Lanczos, 3, 2 * shape.width),
            (Resampling::Area, shape.height + 2, 2),
            (Resampling::Gaussian, 2, 3),
            (Resampling::Cubic, 5, 21),
        ];
        let sample = |(how, height, width)| {
            let resize = Resize {
                how,
                rows: ResizedLines::new(shape.height, height),
                columns: ResizedLines::new(shape.width, width),
            };
            Instance::of(resize, &[of.image], (Shape { height, width, ..shape }, dtype))
        };
        sizes.map(sample).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [(usize, usize); 12] =
        [(1, 1), (1, 7), (7, 1), (2, 3), (3, 2), (8, 2), (9, 4), (5, 23), (40, 39), (100, 7), (1000, 1), (6, 6)];

    fn all() -> impl Iterator<Item = (Resampling, ResizedLines)> {
        let resized = |how| SIZES.map(|(from, to)| (how, ResizedLines::new(from, to)));
        let halved = [1, 2, 5, 6, 37].map(|of| (Resampling::Area, ResizedLines::halved(of)));
        Resampling::ALL.into_iter().flat_map(resized).chain(halved)
    }

    #[test]
    fn runs_go_through_the_image_and_add_up_to_one() {
        for (how, lines) in all() {
            let runs = lines.runs(how, Window::whole(lines.to));
            let (mut start, mut end) = (0, 0);
            for run in &runs.runs {
                let weights = &runs.weights[run.weights.clone()];
                let of = format!("{} of {lines:?}: {run:?} {weights:?}", how.name());
                assert!(run.start >= start && run.start + weights.len() >= end && !weights.is_empty(), "{of}");
                (start, end) = (run.start, run.start + weights.len());
                assert!(end <= lines.of, "{of}");
                assert!((weights.iter().sum::<f64>() - 1.0).abs() < 1e-14, "{of}");
            }
            assert_eq!((runs.runs[0].start, end), (0, lines.of), "{} of {lines:?}: to the edges", how.name());
        }
    }

    #[test]
    fn a_part_has_the_runs_of_the_whole_from_its_first_line_on() {
        for (how, lines) in all() {
            let whole = lines.runs(how, Window::whole(lines.to));
            for first in 0..lines.to {
                let part = ResizedLines { first, ..lines };
                let need = Window::new(0, (lines.to - first).cast_signed());
                let runs = part.runs(how, need);
                let moved: Vec<_> = whole.runs[first..].iter().map(|r| r.start - whole.runs[first].start).collect();
                assert_eq!(runs.runs.iter().map(|r| r.start).collect::<Vec<_>>(), moved, "{} {part:?}", how.name());
                assert_eq!(runs.weights, whole.weights[whole.runs[first].weights.start..], "{} {part:?}", how.name());
            }
        }
    }

    fn weights(how: Resampling, from: usize, to: usize, i: usize) -> (usize, Vec<f64>) {
        let runs = ResizedLines::new(from, to).runs(how, Window::new(i.cast_signed(), i.cast_signed() + 1));
        (runs.runs[0].start, runs.weights)
    }

    #[test]
    fn weights_are_those_of_the_kernels() {
        assert_eq!(weights(Resampling::Box, 4, 2, 1), (2, vec![0.5, 0.5]));
        assert_eq!(weights(Resampling::Box, 2, 6, 2), (0, vec![1.0]));
        assert_eq!(weights(Resampling::Triangle, 4, 2, 0), (0, vec![3.0 / 7.0, 3.0 / 7.0, 1.0 / 7.0]));
        assert_eq!(weights(Resampling::Area, 5, 2, 1), (2, vec![0.2, 0.4, 0.4]));
        assert_eq!(weights(Resampling::Area, 2, 5, 2), (0, vec![0.5, 0.5]));
        assert_eq!(weights(Resampling::Area, 2, 5, 1), (0, vec![1.0]), "no pixel without a share");
        let halved = ResizedLines::halved(5).runs(Resampling::Area, Window::whole(3));
        assert_eq!(halved.runs.iter().map(|run| run.start).collect::<Vec<_>>(), [0, 2, 4]);
        assert_eq!(halved.weights, [0.5, 0.5, 0.5, 0.5, 1.0], "blocks from the first line on");
        assert_eq!(weights(Resampling::Gaussian, 3, 6, 1), (0, vec![0.75, 0.25]), "linear where it grows");
        let (start, cubic) = weights(Resampling::Cubic, 8, 16, 8);
        let want = [-0.0234375, 0.2265625, 0.8671875, -0.0703125];
        assert_eq!((start, cubic), (2, want.to_vec()));
        let (start, lanczos) = weights(Resampling::Lanczos, 8, 16, 8);
        let sinc = |x: f64| (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x);
        let want: Vec<f64> = (1..7).map(|k| f64::from(k) - 3.75).map(|x| sinc(x) * sinc(x / 3.0)).collect();
        let sum: f64 = want.iter().sum();
        assert_eq!((start, lanczos.len()), (1, 6));
        lanczos.iter().zip(want).for_each(|(a, b)| assert!((a - b / sum).abs() < 1e-15, "{a} {b}"));
    }
}
