//! Samples of an image mirrored beyond its edges. A neighbourhood inside one mirror image is read backwards, without
//! applying the border to every pixel.

use std::ops::Range;

use super::super::plane::Plane;
use super::line::WarpLine;
use super::sample::Sampler;
use super::widened;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;

/// Samples computed together.
const LANES: usize = 8;

/// A direction in which an axis is read: pixel `i` at `origin + sign * i`.
struct MirrorDirection {
    origin: i64,
    sign: i64,
    /// First pixels of the neighbourhoods that are entirely in this mirror image.
    firsts: Range<i64>,
}

/// The image and its mirror images on each side, along both axes.
pub(super) struct Mirrors {
    rows: [MirrorDirection; 3],
    cols: [MirrorDirection; 3],
}

impl Mirrors {
    /// The mirror images of a mirroring border, for neighbourhoods of `n x n` pixels.
    #[inline(always)]
    pub(super) fn of<P: Pixel>(border: Border, plane: &Plane<'_, P>, n: i64) -> Option<Mirrors> {
        let edge = border.mirror()? as i64;
        let folds = |len: usize| {
            let len = len as i64;
            let far = 2 * len - 2 + edge;
            [
                MirrorDirection { origin: 0, sign: 1, firsts: 0..len - n + 1 },
                MirrorDirection { origin: -edge, sign: -1, firsts: 1 - edge - len..1 - n },
                MirrorDirection { origin: far, sign: -1, firsts: len..far - n + 2 },
            ]
        };
        Some(Mirrors { rows: folds(plane.height), cols: folds(plane.width) })
    }

    /// Computes the samples at the start of `line` that are in the same mirror image as the first; returns their
    /// number.
    #[inline(always)]
    pub(super) fn sample<P: Pixel, T: Pixel, S: Sampler<N>, const N: usize>(
        &self,
        plane: &Plane<'_, P>,
        line: &WarpLine,
        out: &mut [T],
    ) -> usize {
        let (y, x) = line.at(0);
        let of = |folds: &'_ [MirrorDirection; 3], position: i64| {
            folds.iter().position(|f| f.firsts.contains(&((position >> 32) + S::FIRST)))
        };
        let (Some(row), Some(col)) = (of(&self.rows, y), of(&self.cols, x)) else { return 0 };
        let (row, col) = (&self.rows[row], &self.cols[col]);
        let positions = |f: &MirrorDirection| f.firsts.start - S::FIRST..f.firsts.end - S::FIRST;
        let run = line.run(out.len(), positions(row), positions(col));
        if run.is_empty() {
            return 0;
        }
        let (window, width) = (plane.window, plane.width as i64);
        // Rows change in one direction along the line: its ends have the outermost.
        let held = [0, run.end - 1].iter().all(|&i| {
            let first = (line.at(i).0 >> 32) + S::FIRST;
            [first, first + N as i64 - 1].iter().all(|r| window.contains((row.origin + row.sign * r) as isize))
        });
        if !held {
            return 0;
        }
        let data = plane.data();
        let (down, right) = (row.sign * width, col.sign);
        let (groups, rest) = out[..run.end].as_chunks_mut::<LANES>();
        let done = groups.len() * LANES;
        // The first pixel of a neighbourhood, and the fractions of its position.
        let at = |i: usize| {
            let (y, x) = line.at(i);
            let (top, left) = ((y >> 32) + S::FIRST, (x >> 32) + S::FIRST);
            let (top, left) = (row.origin + row.sign * top, col.origin + col.sign * left);
            ((top - window.start as i64) * width + left, y as u32, x as u32)
        };
        for (g, group) in groups.iter_mut().enumerate() {
            let (mut first, mut fy, mut fx) = ([0; LANES], [0; LANES], [0; LANES]);
            for l in 0..LANES {
                (first[l], fy[l], fx[l]) = at(g * LANES + l);
            }
            *group = S::sample(&fy, &fx, |k, j| {
                let mut pixels = [T::ZERO; LANES];
                for l in 0..LANES {
                    let at = (first[l] + k as i64 * down + j as i64 * right) as usize;
                    debug_assert!(at < data.len());
                    // SAFETY: `positions` has neighbourhoods whose mirrored columns are in the image, and their rows
                    // are in memory, as checked for the outermost.
                    pixels[l] = widened(unsafe { *data.get_unchecked(at) });
                }
                pixels
            });
        }
        for (i, out) in rest.iter_mut().enumerate() {
            let (first, y, x) = at(done + i);
            [*out] =
                S::sample(&[y], &[x], |k, j| [widened(data[(first + k as i64 * down + j as i64 * right) as usize])]);
        }
        run.end
    }
}
