//! Nearest pixels of maps that keep rows and columns separate, such as a change of scale: all rows of the output read
//! the same columns, and output rows that read the same input row are copies.
//!
//! Columns, which are elements, are looked up once per tile. Where an image is enlarged, sixteen bytes of the output
//! come from sixteen of the row: one load and one shuffle.

use std::ops::Range;

use super::line::WarpLine;
use super::sampled_part;
use crate::plane::{OutputTile, Plane};
use crate::versions::for_least_isa;
use horus_base::dtype::Pixel;
use horus_plan::ops::edge::WarpEdge;
use horus_plan::ops::geometric::Affine;

/// Maximum number of columns looked up at once.
const WIDTH: usize = 512;
/// Bytes of a shuffle.
const BYTES: usize = 16;

for_least_isa! {
    /// The pixels at the floors of the positions of `map`.
    pub(super) fn sampled[T: Pixel][T](
        plane: &Plane<'_, T>, map: &Affine, rule: &WarpEdge, tile: &mut OutputTile<'_, T>
    ) as rows
}

#[inline(always)]
fn rows<T: Pixel>(plane: &Plane<'_, T>, map: &Affine, rule: &WarpEdge, tile: &mut OutputTile<'_, T>) {
    let all = tile.cols.clone();
    for from in all.clone().step_by(WIDTH) {
        part(plane, map, rule, tile, from..all.end.min(from + WIDTH));
    }
}

/// Columns `cols` of a tile, at most [`WIDTH`].
#[inline(always)]
fn part<T: Pixel>(
    plane: &Plane<'_, T>,
    map: &Affine,
    rule: &WarpEdge,
    tile: &mut OutputTile<'_, T>,
    cols: Range<usize>,
) {
    let border = rule.border();
    let constant = border.constant().map_or(T::ZERO, T::from_f64);
    let (samples, first) = (plane.samples, cols.start % plane.samples);
    let axis = WarpLine::of(map, tile.rows.start, cols.start / samples).x;
    let wide = plane.width / samples;
    let mut columns = [None; WIDTH];
    let (mut pixel, mut sample) = (0, first);
    let mut read = border.map((axis.at(0) >> 32) as isize, wide);
    for column in &mut columns[..cols.len()] {
        if sample == samples {
            (pixel, sample) = (pixel + 1, 0);
            read = border.map((axis.at(pixel) >> 32) as isize, wide);
        }
        *column = read.map(|x| (x * samples + sample) as u32);
        sample += 1;
    }
    let columns = &columns[..cols.len()];
    // Rows from which no pixel is read need not be in memory.
    let seen = columns.iter().any(Option::is_some);
    let shuffles = Shuffles::of::<T>(columns, plane.width);
    let mut line = [T::ZERO; WIDTH];
    let line = &mut line[..cols.len()];
    let mut known = None;
    for y in tile.rows.start..tile.rows.end {
        let left = cols.start - tile.cols.start;
        let out = &mut tile.row_mut(y)[left..left + cols.len()];
        let (start, out) = sampled_part(rule, y, &cols, samples, out);
        if out.is_empty() {
            continue;
        }
        let row = plane.resolve((WarpLine::of(map, y, cols.start / samples).y.start >> 32) as isize, border);
        let Some(row) = row.filter(|_| seen) else {
            out.fill(constant);
            continue;
        };
        if known != Some(row) {
            known = Some(row);
            let row = plane.row(row);
            let done = shuffles.apply(row, line);
            for (to, column) in line.iter_mut().zip(columns).skip(done) {
                *to = column.map_or(constant, |x| row[x as usize]);
            }
        }
        out.copy_from_slice(&line[start..start + out.len()]);
    }
}

/// For each sixteen bytes of a line: the first byte of the row that is loaded, and the indices of the loaded bytes.
struct Shuffles(Vec<(u32, [u8; BYTES])>);

impl Shuffles {
    /// As many shuffles as fit these columns of a row of some width, from the first on.
    #[inline(always)]
    fn of<T: Pixel>(columns: &[Option<u32>], width: usize) -> Shuffles {
        let size = size_of::<T>();
        let last = (width * size).checked_sub(BYTES).filter(|_| cfg!(target_arch = "x86_64"));
        let shuffle = |group: &[Option<u32>]| {
            let first = (*group.iter().flatten().min()? as usize * size).min(last?);
            let mut bytes = [0; BYTES];
            for (bytes, column) in bytes.chunks_exact_mut(size).zip(group) {
                let from = (*column)? as usize * size - first;
                bytes.iter_mut().zip(from..).for_each(|(byte, at)| *byte = at.min(BYTES) as u8);
            }
            bytes.iter().all(|at| usize::from(*at) < BYTES).then_some((first as u32, bytes))
        };
        Shuffles(columns.chunks_exact(BYTES / size).map_while(shuffle).collect())
    }

    /// Shuffles a row into the beginning of a line; returns the number of pixels.
    #[inline(always)]
    fn apply<T: Pixel>(&self, row: &[T], line: &mut [T]) -> usize {
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::*;
            let (row, line) = (bytemuck::cast_slice::<T, u8>(row), bytemuck::cast_slice_mut::<T, u8>(line));
            for ((first, bytes), to) in self.0.iter().zip(line.as_chunks_mut::<BYTES>().0) {
                let from = &row[*first as usize..][..BYTES];
                // SAFETY: sixteen bytes each, and kernels run with AVX2.
                unsafe {
                    let found =
                        _mm_shuffle_epi8(_mm_loadu_si128(from.as_ptr().cast()), _mm_loadu_si128(bytes.as_ptr().cast()));
                    _mm_storeu_si128(to.as_mut_ptr().cast(), found);
                }
            }
        }
        let _ = (row, line);
        self.0.len() * BYTES / size_of::<T>()
    }
}
