//! The Hough transform.

use std::convert::Infallible;

use super::{Image, Value};
use crate::error::{Call, Error};
use crate::host::elements::elements;

/// The Hough transform of a mask for straight lines (scikit-image's `transform.hough_line`): for each
/// direction, the number of true pixels on each line across it.
///
/// `normals` has a vector of length 1, `[x, y]`, for each direction: the cosine and the sine of an
/// angle. The line of the pixel in row `y` and column `x` has the distance
/// `normal[0] * x + normal[1] * y` from the pixel (0, 0), in pixels, rounded in `f64` to nearest,
/// halves away from zero. The counts of a direction are for distances `-r..=r`, where `r` is the
/// length of the diagonal rounded up: `counts[d + r]` is the count for distance `d`.
///
/// The mask is copied to the host of every rank, whose threads count. It is an error if the mask
/// has several channels or levels, or if a normal is longer than 1.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = Image::from_fn(&session, 30, 40, |y, x| y == 20 || x == 7);
/// let counts = hough_line(&image, &[[1.0, 0.0], [0.0, 1.0]]).get()?;
/// let reach = 50; // of 30 x 40 pixels
/// assert_eq!(counts[0].len(), 2 * reach + 1);
/// assert_eq!((counts[0][reach + 7], counts[1][reach + 20]), (30, 40)); // the column, and the row
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[doc(alias("HoughLines"))]
#[track_caller]
pub fn hough_line(mask: &Image<bool>, normals: &[[f64; 2]]) -> Value<Vec<Vec<u64>>> {
    /// A length of 1, rounded.
    const UNIT: f64 = 1.0 + 1e-9;
    let call = Call::of("hough_line");
    let shape = mask.shape();
    let checked = mask.attempt(shape, || {
        if shape.planes() != 1 {
            let message = format!("the mask has {} levels and {} channels; take one", shape.depth, shape.channels);
            return Err(Error::parameter(call, message));
        }
        if let Some([x, y]) = normals.iter().find(|[x, y]| x.hypot(*y).is_nan() || x.hypot(*y) > UNIT) {
            return Err(Error::parameter(call, format!("the normal is ({x}, {y}); its length must be 1")));
        }
        Ok(mask.plain())
    });
    let (session, normals) = (mask.session().clone(), normals.to_vec());
    Value::of(&checked, move |b| {
        let (height, width) = (shape.height as f64, shape.width as f64);
        let reach = (height * height + width * width).sqrt().ceil() as usize;
        let rows = elements::<bool>(b.bytes()).chunks(shape.width.max(1)).enumerate();
        // The columns of true pixels, row by row.
        let rows: Vec<(f64, Vec<u32>)> =
            rows.map(|(y, row)| (y as f64, (0..row.len() as u32).filter(|x| row[*x as usize]).collect())).collect();
        let mut counts = vec![vec![0; 2 * reach + 1]; normals.len()];
        let parts = normals.iter().zip(&mut counts).collect();
        let Ok(()) = session.workers().each(parts, |(): &mut (), (normal, counts)| {
            count(&rows, shape.width, *normal, counts);
            Ok::<(), Infallible>(())
        });
        counts
    })
}

/// Counts the true pixels on the lines of one direction.
///
/// The nearest line of most pixels is computed with integers in units of 2^-32 pixels. Their error
/// is below 4 units. Close to a half, and where `f64` cannot represent such units, the definition
/// is evaluated.
fn count(rows: &[(f64, Vec<u32>)], width: usize, [nx, ny]: [f64; 2], counts: &mut [u64]) {
    const UNITS: f64 = 4_294_967_296.0;
    const CLOSE: u32 = 8;
    let reach = counts.len() / 2;
    let coarse = reach >= 1 << 19;
    let across: Vec<i64> = (0..width).map(|x| (nx * x as f64 * UNITS) as i64).collect();
    for (y, columns) in rows {
        let down = ny * y;
        let begin = ((down + (reach as f64 + 0.5)) * UNITS) as i64;
        for x in columns {
            let at = begin.wrapping_add(across[*x as usize]);
            let line = match coarse | ((at as u32).wrapping_add(CLOSE) < 2 * CLOSE) {
                true => (nx * f64::from(*x) + down).round() as i64 + reach as i64,
                false => at >> 32,
            };
            counts[line as usize] += 1;
        }
    }
}
