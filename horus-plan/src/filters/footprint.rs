//! Footprints (structuring elements) of morphological operations.

use std::sync::Arc;

use super::{MAX_DENSE_TAPS, check_size, check_taps};
use crate::ops::neighbourhood::Filter;
use horus_base::error::{Call, Error, Result};

/// The pixels read by an erosion or a dilation around each pixel: SciPy's footprint, OpenCV's
/// structuring element.
///
/// Construction never fails: with an invalid size, the image that it is applied to carries the
/// error.
///
/// ```
/// # use horus_core::{self as horus, prelude::*};
/// assert_eq!(Footprint::cross(1), Footprint::from_mask(3, 3, &[false, true, false, true, true, true, false, true, false]));
/// assert_eq!(Footprint::disc(2).len(), 13);
/// ```
#[derive(Clone, Debug)]
pub struct Footprint {
    pixels: FootprintPixels,
    /// The reason why it cannot be applied, if any.
    fault: Option<Arc<Error>>,
}

#[derive(Clone, Debug)]
enum FootprintPixels {
    /// A full rectangle of `height x width`: rows and columns can be processed one after the other.
    Rectangle(usize, usize),
    /// Offsets `(dy, dx)` in row-major order.
    Any(Arc<[(i32, i32)]>),
}

impl Footprint {
    /// All pixels of a rectangle. Both sizes must be odd, so that it has a centre.
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// assert_eq!(Footprint::rectangle(3, 5).len(), 15);
    /// assert!(Footprint::rectangle(2, 5).is_empty(), "it has no centre, and cannot be applied");
    /// ```
    #[doc(alias = "getStructuringElement")]
    #[track_caller]
    pub fn rectangle(height: usize, width: usize) -> Footprint {
        let checked = check(Call::of("Footprint::rectangle"), height, width);
        Footprint { pixels: FootprintPixels::Rectangle(height, width), fault: checked.err().map(Arc::new) }
    }

    /// The pixels at most `radius` from the centre (scikit-image's `disk`).
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// assert_eq!(Footprint::disc(1), Footprint::cross(1));
    /// assert_eq!(Footprint::disc(3).len(), 29);
    /// ```
    #[track_caller]
    pub fn disc(radius: usize) -> Footprint {
        let r = radius as u64;
        Footprint::square("Footprint::disc", radius, |y, x| y.unsigned_abs().pow(2) + x.unsigned_abs().pow(2) <= r * r)
    }

    /// The pixels at most `radius` away in the row and in the column of the centre. With radius 1: the
    /// four neighbours and the centre.
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// assert_eq!(Footprint::cross(2).len(), 9);
    /// ```
    #[track_caller]
    pub fn cross(radius: usize) -> Footprint {
        Footprint::square("Footprint::cross", radius, |y, x| y == 0 || x == 0)
    }

    /// The pixels where `mask`, `height x width` values in row-major order, is true. Both sizes
    /// must be odd, and at least one value true.
    ///
    /// ```
    /// # use horus_core::{self as horus, prelude::*};
    /// let diagonal = Footprint::from_mask(3, 3, &[true, false, false, false, true, false, false, false, true]);
    /// assert_eq!(diagonal.len(), 3);
    /// ```
    #[track_caller]
    pub fn from_mask(height: usize, width: usize, mask: &[bool]) -> Footprint {
        let call = Call::of("Footprint::from_mask");
        Footprint::made(check(call, height, width).and_then(|()| {
            if mask.len() != height * width {
                return Err(Error::parameter(call, format!("{} values for {height}x{width} pixels", mask.len())));
            }
            if !mask.contains(&true) {
                return Err(Error::parameter(call, "the footprint has no pixels"));
            }
            let at = |i: usize, size: usize| i as i32 - (size / 2) as i32; // sizes are below 2^17
            let inside = mask.iter().enumerate().filter(|(_, m)| **m);
            Ok(inside.map(|(i, _)| (at(i / width, height), at(i % width, width))).collect())
        }))
    }

    #[track_caller]
    fn square(op: &'static str, radius: usize, holds: impl Fn(i64, i64) -> bool) -> Footprint {
        let size = radius.saturating_mul(2).saturating_add(1);
        Footprint::made(check(Call::of(op), size, size).map(|()| {
            let r = radius as i32; // at most 2^15
            let all = (-r..=r).flat_map(|y| (-r..=r).map(move |x| (y, x)));
            all.filter(|&(y, x)| holds(y.into(), x.into())).collect()
        }))
    }

    fn made(offsets: Result<Vec<(i32, i32)>>) -> Footprint {
        match offsets {
            Ok(offsets) => Footprint { pixels: FootprintPixels::Any(offsets.into()), fault: None },
            Err(e) => Footprint { pixels: FootprintPixels::Any(Arc::new([])), fault: Some(Arc::new(e)) },
        }
    }

    /// Number of pixels; 0 if the footprint cannot be applied.
    pub fn len(&self) -> usize {
        match (&self.pixels, &self.fault) {
            (_, Some(_)) => 0,
            (FootprintPixels::Rectangle(height, width), _) => height * width,
            (FootprintPixels::Any(offsets), _) => offsets.len(),
        }
    }

    /// Returns `true` if the footprint has no pixels and so cannot be applied.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The windows to apply one after another; for a dilation, rotated by 180 degrees.
    pub fn windows(&self, turned: bool) -> Result<Vec<Filter>> {
        if let Some(fault) = &self.fault {
            return Err((**fault).clone());
        }
        Ok(match &self.pixels {
            &FootprintPixels::Rectangle(height, width) => {
                let lines = [Filter::row(vec![0.0; width]), Filter::column(vec![0.0; height])];
                lines.into_iter().filter(|line| line.taps().len() > 1).collect()
            }
            FootprintPixels::Any(offsets) => {
                let window = Filter::sparse(Arc::clone(offsets), vec![0.0; offsets.len()]);
                vec![if turned { window.flipped() } else { window }]
            }
        })
    }

    /// The offsets of the pixels, if the footprint can be applied.
    pub fn applied(&self) -> Result<Vec<(i32, i32)>> {
        match &self.fault {
            Some(fault) => Err((**fault).clone()),
            None => Ok(self.offsets()),
        }
    }

    /// The offsets `(dy, dx)` of the pixels in row-major order.
    fn offsets(&self) -> Vec<(i32, i32)> {
        match &self.pixels {
            &FootprintPixels::Rectangle(height, width) => {
                let around = |size: usize| -((size / 2) as i32)..=(size / 2) as i32;
                around(height).flat_map(|y| around(width).map(move |x| (y, x))).collect()
            }
            FootprintPixels::Any(offsets) => offsets.to_vec(),
        }
    }
}

/// Footprints are equal if they contain the same pixels.
impl PartialEq for Footprint {
    fn eq(&self, other: &Footprint) -> bool {
        self.len() == other.len() && (self.is_empty() || self.offsets() == other.offsets())
    }
}

fn check(call: Call, height: usize, width: usize) -> Result<()> {
    check_size(call, height, width)?;
    if height.is_multiple_of(2) || width.is_multiple_of(2) {
        return Err(Error::parameter(call, format!("the footprint is {height}x{width}; both sizes must be odd")));
    }
    check_taps(call, height, width)
}

const _: () = assert!(MAX_DENSE_TAPS < i32::MAX as usize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn footprints_hold_the_pixels_of_their_names() {
        let plus = [false, true, false, true, true, true, false, true, false];
        assert_eq!(Footprint::disc(1), Footprint::from_mask(3, 3, &plus));
        assert_eq!(Footprint::rectangle(3, 1), Footprint::from_mask(3, 1, &[true; 3]));
        assert_ne!(Footprint::rectangle(3, 1), Footprint::rectangle(1, 3));
        assert_eq!((Footprint::disc(0).len(), Footprint::cross(3).len(), Footprint::disc(5).len()), (1, 13, 81));
    }

    #[test]
    fn what_cannot_be_applied_says_why() {
        let cause = |f: Footprint| f.windows(false).expect_err("a fault").to_string();
        assert!(
            cause(Footprint::rectangle(2, 3)).starts_with("Footprint::rectangle: the footprint is 2x3; both sizes")
        );
        assert!(cause(Footprint::rectangle(0, 3)).contains("has no pixels"));
        assert!(cause(Footprint::disc(usize::MAX)).starts_with("Footprint::disc: a radius"));
        assert!(cause(Footprint::from_mask(1, 3, &[true])).contains("1 values for 1x3 pixels"));
        assert!(cause(Footprint::from_mask(1, 3, &[false; 3])).contains("no pixels"));
    }
}
