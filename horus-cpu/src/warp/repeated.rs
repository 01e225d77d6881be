//! Nearest pixels of maps that keep rows and columns separate, such as a change of scale: all rows of the output read
//! the same columns, and output rows that read the same input row are copies.
//!
//! Columns, which are elements, are looked up once per tile. Where an image is enlarged, sixteen bytes of the output
//! come from sixteen of the row: one load and one shuffle.

use super::line::WarpLine;
use super::sampled_part;
use crate::plane::{OutputTile, Plane};
use crate::versions::for_least_isa;
use horus_base::dtype::Pixel;
use horus_base::shape::Border;
use horus_plan::ops::edge::WarpEdge;
use horus_plan::ops::geometric::Affine;

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
    let border = rule.border();
    let constant = border.constant().map_or(T::ZERO, T::from_f64);
    let (cols, samples) = (tile.cols.clone(), plane.samples);
    let columns = ReadColumns::of(plane, map, border, tile);
    // Rows from which no pixel is read need not be in memory.
    let seen = columns.any();
    let sample = |row: &[T], line: &mut [T]| match &columns {
        ReadColumns::Run(from) => line.copy_from_slice(&row[*from..*from + line.len()]),
        ReadColumns::One(column) => line.fill(column.map_or(constant, |x| row[x])),
        ReadColumns::Each(columns, shuffles) => {
            let done = shuffles.apply(row, line);
            for (to, column) in line.iter_mut().zip(columns).skip(done) {
                *to = column.map_or(constant, |x| row[x as usize]);
            }
        }
    };
    // A row of the image, and the place of the output row that has all of its pixels.
    let mut known: Option<(isize, usize)> = None;
    // The row of the image whose pixels are in the line.
    let (mut line, mut sampled) = (Vec::new(), None);
    for (k, y) in (tile.rows.start..tile.rows.end).enumerate() {
        let at = k * tile.stride;
        let (start, out) = sampled_part(rule, y, &cols, samples, &mut tile.out[at..at + cols.len()]);
        if out.is_empty() {
            continue;
        }
        let row = plane.resolve((WarpLine::of(map, y, cols.start / samples).y.start >> 32) as isize, border);
        match row.filter(|_| seen) {
            None => out.fill(constant),
            Some(row) if out.len() < cols.len() => {
                if sampled != Some(row) {
                    line.resize(cols.len(), T::ZERO);
                    sample(plane.row(row), &mut line);
                    sampled = Some(row);
                }
                out.copy_from_slice(&line[start..start + out.len()]);
            }
            Some(row) => {
                if let Some((_, from)) = known.filter(|(of, _)| *of == row) {
                    tile.out.copy_within(from..from + cols.len(), at);
                } else {
                    sample(plane.row(row), out);
                    known = Some((row, at));
                }
            }
        }
    }
}

/// The elements of a row that the columns of a tile read; `None` for the constant.
enum ReadColumns {
    /// Consecutive ones, from this one on: a broadcast row.
    Run(usize),
    /// The same: a broadcast column.
    One(Option<usize>),
    /// One for each column.
    Each(Vec<Option<u32>>, Shuffles),
}

impl ReadColumns {
    #[inline(always)]
    fn of<T: Pixel>(plane: &Plane<'_, T>, map: &Affine, border: Border, tile: &OutputTile<'_, T>) -> ReadColumns {
        let (samples, wide) = (plane.samples, plane.width / plane.samples);
        let axis = WarpLine::of(map, tile.rows.start, tile.cols.start / samples).x;
        let first = (axis.start >> 32) as isize;
        if axis.step == 0 && samples == 1 {
            return ReadColumns::One(border.map(first, wide));
        }
        let from = first * samples.cast_signed() + (tile.cols.start % samples).cast_signed();
        if axis.step == Affine::IDENTITY.xx && first >= 0 && from.cast_unsigned() + tile.cols.len() <= plane.width {
            return ReadColumns::Run(from.cast_unsigned());
        }
        let columns = columns_read(plane, map, border, tile);
        let shuffles = Shuffles::of::<T>(&columns, plane.width);
        ReadColumns::Each(columns, shuffles)
    }

    fn any(&self) -> bool {
        match self {
            ReadColumns::Run(_) => true,
            ReadColumns::One(column) => column.is_some(),
            ReadColumns::Each(columns, _) => columns.iter().any(Option::is_some),
        }
    }
}

/// The element of a row that each column of a tile reads; `None` for the constant.
#[inline(always)]
fn columns_read<T: Pixel>(
    plane: &Plane<'_, T>,
    map: &Affine,
    border: Border,
    tile: &OutputTile<'_, T>,
) -> Vec<Option<u32>> {
    let (samples, wide) = (plane.samples, plane.width / plane.samples);
    let axis = WarpLine::of(map, tile.rows.start, tile.cols.start / samples).x;
    let (mut pixel, mut sample) = (0, tile.cols.start % samples);
    let mut read = border.map((axis.at(0) >> 32) as isize, wide);
    let mut columns = Vec::with_capacity(tile.cols.len());
    for _ in tile.cols.clone() {
        if sample == samples {
            (pixel, sample) = (pixel + 1, 0);
            read = border.map((axis.at(pixel) >> 32) as isize, wide);
        }
        columns.push(read.map(|x| (x * samples + sample) as u32));
        sample += 1;
    }
    columns
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
