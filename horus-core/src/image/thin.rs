//! Thinning.

use super::{Image, record};
use crate::error::{Call, Error};
use crate::ir::graph::Op;
use crate::ops::Thin;
use crate::ops::components::MOST_PIXELS;

/// Thins the true regions of a mask to connected lines one pixel wide: Guo and Hall, "Parallel
/// thinning with two-subiteration algorithms" (1989), as scikit-image's `morphology.thin`. Pixels
/// outside are false. Channels and levels are thinned separately.
///
/// Every rank computes the whole mask. A mask of more than 2^31 - 1 pixels is an error.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let bar = Image::from_fn(&session, 5, 9, |y, x| u8::from((1..4).contains(&y) && (1..8).contains(&x))).gt(0);
/// let line = thin(&bar);
/// assert_eq!(line.count().get()?, 5);
/// assert_eq!(line.convert::<u8>().over(Axis::Columns).max().to_vec()?, [0, 0, 1, 0, 0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[doc(alias = "thinning")]
#[track_caller]
pub fn thin(mask: &Image<bool>) -> Image<bool> {
    let (site, shape) = (Call::of("thin").site, mask.shape());
    mask.attempt(shape, || {
        if shape.len() > MOST_PIXELS {
            let message = format!("a mask of {shape} has {} pixels; the limit is {MOST_PIXELS}", shape.len());
            return Err(Error::parameter(Call { op: "thin", site }, message));
        }
        Ok(record(mask.session(), Op::from(Thin), &[mask.handle()], shape, site))
    })
}
