//! Filters of PNG: residuals of a row of bytes predicted from neighbouring bytes.

use super::simd::Isa;
use super::versions::for_least_isa;

/// Number of filters considered, by their numbers in the format. Filter 0, which leaves rows unchanged, is excluded
/// because it is never best here.
const FILTERS: usize = 4;
const SUB: u8 = 1;
const UP: u8 = 2;
const AVERAGE: u8 = 3;
const PAETH: u8 = 4;

/// Bytes per sampled piece, and the stride of sampled pieces.
const PIECE: usize = 64;
const LOOKED_AT: usize = 4;
const LANES: usize = 32;

/// Writes the number of the filter with the smallest residual, and the row filtered by it. `before` is the previous row,
/// or zeros; pixels have `step` bytes, 1 to 8. An instruction set was detected, so that the machine has the smallest.
pub fn filter(_: Isa, row: &[u8], before: &[u8], step: usize, to: &mut [u8]) {
    filter_row(row, before, step, to);
}

for_least_isa! { fn filter_row[][](row: &[u8], before: &[u8], step: usize, to: &mut [u8]) as chosen }

#[inline(always)]
fn chosen(row: &[u8], before: &[u8], step: usize, to: &mut [u8]) {
    let filter = least(row, before, step);
    let (first, rest) = row.split_at(step.min(row.len()));
    let (number, to) = to.split_at_mut(1);
    let (to_first, to) = to.split_at_mut(first.len());
    number[0] = filter;
    // The first pixel has no left neighbour.
    for ((to, x), b) in to_first.iter_mut().zip(first).zip(before) {
        *to = match filter {
            SUB => *x,
            AVERAGE => x.wrapping_sub(b / 2),
            _ => x.wrapping_sub(*b),
        };
    }
    let n = rest.len();
    let (left, above, corner) = (&row[..n], &before[first.len()..], &before[..n]);
    match filter {
        SUB => each(to, rest, left, above, corner, |a, _, _| a),
        UP => each(to, rest, left, above, corner, |_, b, _| b),
        AVERAGE => each(to, rest, left, above, corner, |a, b, _| average(a, b)),
        _ => each(to, rest, left, above, corner, paeth),
    }
}

#[inline(always)]
fn each(to: &mut [u8], x: &[u8], a: &[u8], b: &[u8], c: &[u8], foreseen: impl Fn(u8, u8, u8) -> u8) {
    let n = to.len();
    let (x, a, b, c) = (&x[..n], &a[..n], &b[..n], &c[..n]);
    for i in 0..n {
        to[i] = x[i].wrapping_sub(foreseen(a[i], b[i], c[i]));
    }
}

/// The filter with the smallest sum of absolute residuals, as signed bytes, over a sample of the row.
#[inline(always)]
fn least(row: &[u8], before: &[u8], step: usize) -> u8 {
    let n = row.len().saturating_sub(step);
    let (x, a, b, c) = (&row[row.len() - n..], &row[..n], &before[row.len() - n..], &before[..n]);
    let stride = if n < 2 * PIECE * LOOKED_AT { PIECE } else { PIECE * LOOKED_AT };
    let mut sums = [0u64; FILTERS];
    // As many as a 16-bit sum can represent.
    for few in (0..n).step_by(stride * 256) {
        let mut lanes = [[0u16; LANES]; FILTERS];
        for at in (few..n.min(few + stride * 256)).step_by(stride) {
            let piece = at..n.min(at + PIECE);
            costs(&x[piece.clone()], &a[piece.clone()], &b[piece.clone()], &c[piece], &mut lanes);
        }
        sums.iter_mut().zip(lanes).for_each(|(sum, lanes)| *sum += lanes.into_iter().map(u64::from).sum::<u64>());
    }
    // Ties go to the filter that is fastest to undo.
    [UP, SUB, AVERAGE, PAETH].into_iter().min_by_key(|f| sums[usize::from(*f) - 1]).unwrap_or(UP)
}

/// Adds the residuals of each filter.
#[inline(always)]
fn costs(x: &[u8], a: &[u8], b: &[u8], c: &[u8], lanes: &mut [[u16; LANES]; FILTERS]) {
    let ((x, xs), (a, az)) = (x.as_chunks::<LANES>(), a.as_chunks::<LANES>());
    let ((b, bs), (c, cs)) = (b.as_chunks::<LANES>(), c.as_chunks::<LANES>());
    for (((x, a), b), c) in x.iter().zip(a).zip(b).zip(c) {
        add(x, a, b, c, lanes);
    }
    if !xs.is_empty() {
        let whole = |rest: &[u8]| {
            let mut all = [0; LANES];
            all[..rest.len()].copy_from_slice(rest);
            all
        };
        // Zeros leave no residual.
        add(&whole(xs), &whole(az), &whole(bs), &whole(cs), lanes);
    }
}

type ScanlineBytes = [u8; LANES];

#[inline(always)]
fn add(
    x: &ScanlineBytes,
    a: &ScanlineBytes,
    b: &ScanlineBytes,
    c: &ScanlineBytes,
    lanes: &mut [[u16; LANES]; FILTERS],
) {
    let [sub, up, mean, corner] = lanes;
    let left = |x: u8, foreseen: u8| u16::from((x.wrapping_sub(foreseen) as i8).unsigned_abs());
    for i in 0..LANES {
        sub[i] += left(x[i], a[i]);
    }
    for i in 0..LANES {
        up[i] += left(x[i], b[i]);
    }
    for i in 0..LANES {
        mean[i] += left(x[i], average(a[i], b[i]));
    }
    for i in 0..LANES {
        corner[i] += left(x[i], paeth(a[i], b[i], c[i]));
    }
}

/// The mean, rounded down.
#[inline(always)]
fn average(a: u8, b: u8) -> u8 {
    (a & b) + ((a ^ b) >> 1)
}

/// Paeth's predictor: the nearest of left, above and the corner to left + above - corner.
#[inline(always)]
fn paeth(a: u8, b: u8, c: u8) -> u8 {
    // Without wider integers: the distances from a and b are the distances of b and a from the corner; the third is
    // their sum or, if the corner is between them, not the smallest.
    let (pa, pb) = (b.abs_diff(c), a.abs_diff(c));
    let pc = if (a < c) == (c < b) { pa.abs_diff(pb) } else { u8::MAX };
    let near = if pb <= pc { b } else { c };
    if pa <= pb && pa <= pc { a } else { near }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The predictor as the format defines it.
    fn predictor(a: u8, b: u8, c: u8) -> u8 {
        let (a, b, c) = (i32::from(a), i32::from(b), i32::from(c));
        let p = a + b - c;
        let (pa, pb, pc) = ((p - a).abs(), (p - b).abs(), (p - c).abs());
        (if pa <= pb && pa <= pc {
            a
        } else if pb <= pc {
            b
        } else {
            c
        }) as u8
    }

    fn undone(filtered: &[u8], before: &[u8], step: usize) -> Vec<u8> {
        let mut row: Vec<u8> = Vec::new();
        for (i, x) in filtered[1..].iter().enumerate() {
            let (a, c) = if i < step { (0, 0) } else { (row[i - step], before[i - step]) };
            let b = before[i];
            row.push(x.wrapping_add(match filtered[0] {
                1 => a,
                2 => b,
                3 => ((u16::from(a) + u16::from(b)) / 2) as u8,
                4 => predictor(a, b, c),
                other => panic!("filter {other}"),
            }));
        }
        row
    }

    #[test]
    fn the_predictor_is_that_of_the_format() {
        for abc in 0..1u32 << 24 {
            let [a, b, c, _] = abc.to_le_bytes();
            assert_eq!(paeth(a, b, c), predictor(a, b, c), "{a} {b} {c}");
        }
    }

    #[test]
    fn rows_are_undone() {
        let mut chosen = [false; 5];
        let isa = Isa::detect().unwrap();
        for step in [1, 2, 3, 4, 6, 8] {
            for pixels in [1, 2, 7, 33, 100, 1000, 5000] {
                for kind in 0..5 {
                    let noise = |i: usize| ((i as u32 + 1).wrapping_mul(2_654_435_761) >> 24) as u8;
                    let before: Vec<u8> = (0..pixels * step).map(noise).collect();
                    let mut row: Vec<u8> = Vec::new();
                    for i in 0..before.len() {
                        let (a, c) = if i < step { (0, 0) } else { (row[i - step], before[i - step]) };
                        let b = before[i];
                        // As a filter predicts, up to noise; or unpredictable.
                        let foreseen = [a, b, average(a, b), predictor(a, b, c), noise(7919 * i)][kind];
                        row.push(foreseen.wrapping_add((i % 3) as u8));
                    }
                    let mut to = vec![9; row.len() + 1];
                    filter(isa, &row, &before, step, &mut to);
                    chosen[usize::from(to[0])] = true;
                    assert_eq!(undone(&to, &before, step), row, "{step} {pixels} {kind}");
                }
            }
        }
        assert_eq!(chosen, [false, true, true, true, true]);
    }

    #[test]
    fn what_leaves_least_is_chosen() {
        let ramp: Vec<u8> = (0..200).collect();
        let mut to = vec![0; 201];
        filter(Isa::detect().unwrap(), &ramp, &[0; 200], 1, &mut to);
        assert_eq!(to[..4], [SUB, 0, 1, 1]);
        filter(Isa::detect().unwrap(), &ramp, &ramp, 1, &mut to);
        assert_eq!(to, [&[UP][..], &[0; 200]].concat());
    }
}
