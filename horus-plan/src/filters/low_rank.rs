//! Dense filters as sums of separable filters, by their singular values.
//!
//! The decomposition is one-sided Jacobi in a fixed order of `f64` operations without fused ones, so that
//! every machine finds the same taps.

/// One term of a matrix that is a sum of outer products, the largest first: `sum of column[y] * row[x]`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OuterProduct {
    pub(super) row: Vec<f64>,
    pub(super) column: Vec<f64>,
}

/// Maximum number of sweeps over all pairs of columns; ten suffice for matrices of hundreds of columns.
const SWEEPS: usize = 40;

/// The singular value decomposition of a row-major matrix. Rows are scaled by powers of two so that the sum
/// of absolute values of each is in `1/2..1`: the first filter then stays within the range of its pixels.
pub(super) fn decompose(matrix: &[f64], height: usize, width: usize) -> Vec<OuterProduct> {
    let mut columns: Vec<Vec<f64>> = (0..width).map(|x| (0..height).map(|y| matrix[y * width + x]).collect()).collect();
    let mut turned: Vec<Vec<f64>> =
        (0..width).map(|x| (0..width).map(|i| f64::from(u8::from(i == x))).collect()).collect();
    for _ in 0..SWEEPS {
        let mut rotated = false;
        for p in 0..width {
            for q in p + 1..width {
                let (a, b) = pair(&mut columns, p, q);
                let (aa, bb, ab) = (dot(a, a), dot(b, b), dot(a, b));
                if ab == 0.0 || ab.abs() <= f64::EPSILON * (aa * bb).sqrt() {
                    continue;
                }
                rotated = true;
                let zeta = (bb - aa) / (2.0 * ab);
                let tangent = zeta.signum() / (zeta.abs() + (1.0 + zeta * zeta).sqrt());
                let cos = 1.0 / (1.0 + tangent * tangent).sqrt();
                let sin = cos * tangent;
                rotate(a, b, cos, sin);
                let (a, b) = pair(&mut turned, p, q);
                rotate(a, b, cos, sin);
            }
        }
        if !rotated {
            break;
        }
    }
    let mut order: Vec<(f64, usize)> = columns.iter().map(|c| dot(c, c)).zip(0..).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let term = |(_, i): (f64, usize)| {
        let (mut row, mut column) = (std::mem::take(&mut turned[i]), std::mem::take(&mut columns[i]));
        // A power of two, so that the product does not change.
        let sum: f64 = row.iter().map(|v| v.abs()).sum();
        let mut scale = 1.0;
        while sum * scale >= 1.0 {
            scale *= 0.5;
        }
        row.iter_mut().for_each(|v| *v *= scale);
        column.iter_mut().for_each(|v| *v /= scale);
        OuterProduct { row, column }
    };
    order.into_iter().map(term).collect()
}

fn pair(columns: &mut [Vec<f64>], p: usize, q: usize) -> (&mut [f64], &mut [f64]) {
    let (left, right) = columns.split_at_mut(q);
    (&mut left[p], &mut right[0])
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).fold(0.0, |sum, (a, b)| sum + a * b)
}

fn rotate(a: &mut [f64], b: &mut [f64], cos: f64, sin: f64) {
    for (a, b) in a.iter_mut().zip(b) {
        (*a, *b) = (cos * *a - sin * *b, sin * *a + cos * *b);
    }
}

/// Returns `true` if the matrix seems to have a rank below `most`, with a remainder whose absolute values sum
/// to at most `allowed`. This estimate by elimination with the largest pivot finds a few terms at once, while
/// a decomposition finds all.
pub(super) fn seems_low(matrix: &[f64], width: usize, most: usize, allowed: f64) -> bool {
    let mut rest = matrix.to_vec();
    for _ in 0..most {
        let mut pivot = 0;
        (1..rest.len()).for_each(|i| pivot = if rest[i].abs() > rest[pivot].abs() { i } else { pivot });
        if rest[pivot] == 0.0 {
            return true;
        }
        let (py, px) = (pivot / width, pivot % width);
        let row: Vec<f64> = rest[py * width..][..width].to_vec();
        for y in 0..rest.len() / width {
            let by = rest[y * width + px] / row[px];
            rest[y * width..][..width].iter_mut().zip(&row).for_each(|(v, r)| *v -= by * r);
        }
        if rest.iter().map(|v| v.abs()).sum::<f64>() <= allowed {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(terms: &[OuterProduct], height: usize, width: usize) -> Vec<f64> {
        let at = |i: usize| terms.iter().map(|t| t.column[i / width] * t.row[i % width]).sum();
        (0..height * width).map(at).collect()
    }

    #[test]
    fn all_terms_are_the_matrix_and_few_are_the_nearest() {
        for (height, width) in [(1, 1), (1, 7), (7, 1), (5, 3), (3, 5), (17, 17)] {
            let at = |i: usize| ((i * 2_654_435_761) % 1009) as f64 / 504.5 - 1.0;
            let matrix: Vec<f64> = (0..height * width).map(at).collect();
            let terms = decompose(&matrix, height, width);
            let off =
                product(&terms, height, width).iter().zip(&matrix).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
            assert!(off < 1e-13, "{height}x{width}: {off}");
            let size = |t: &OuterProduct| (dot(&t.row, &t.row) * dot(&t.column, &t.column)).sqrt();
            assert!(terms.is_sorted_by(|a, b| size(a) >= size(b) * (1.0 - 1e-12)));
            for term in &terms {
                let sum: f64 = term.row.iter().map(|v| v.abs()).sum();
                assert!((0.5..1.0).contains(&sum), "{sum}");
            }
            // The sum of squares of the remainder equals the sum of squares of the omitted singular values.
            let cut: f64 = terms.iter().skip(2).map(|t| size(t).powi(2)).sum();
            let two = product(&terms[..terms.len().min(2)], height, width);
            let rest: f64 = two.iter().zip(&matrix).map(|(a, b)| (a - b).powi(2)).sum();
            assert!((cut - rest).abs() < 1e-12, "{height}x{width}");
        }
    }

    #[test]
    fn an_outer_product_has_one_term() {
        let matrix: Vec<f64> = (0..15).map(|i| f64::from(1 + i / 5) * f64::from(i % 5 - 2)).collect();
        let terms = decompose(&matrix, 3, 5);
        let one = product(&terms[..1], 3, 5);
        assert!(one.iter().zip(&matrix).all(|(a, b)| (a - b).abs() < 1e-14));
        assert!(seems_low(&matrix, 5, 1, 1e-12) && !seems_low(&matrix, 5, 0, 1e-12));
        let identity: Vec<f64> = (0..25).map(|i| f64::from(u8::from(i % 6 == 0))).collect();
        assert!(!seems_low(&identity, 5, 4, 0.5) && seems_low(&identity, 5, 5, 0.5));
    }
}
