//! The bilateral filter.

use super::Image;
use crate::dtype::Pixel;
use crate::error::{Call, Error, Result};
use crate::position_map::Relation;
use crate::shape::Axis;

/// The largest diameter; the cost grows with its square.
const MOST: usize = 63;

/// A bilateral filter, which smooths and keeps edges: Tomasi and Manduchi, "Bilateral filtering for
/// gray and color images" (1998), by the formula of OpenCV's `bilateralFilter`. Each pixel becomes
/// the mean of the pixels `q` of a disc around it, with the weights
/// `exp(-(y^2 + x^2) / (2 sigma_space^2) - d^2 / (2 sigma_colour^2))`. The disc has the diameter
/// `size`, an odd number: `q` is `y` rows and `x` columns away, `y^2 + x^2 <= (size / 2)^2`. The
/// difference of colour, `d`, is the sum of the absolute differences of all channels.
///
/// `sigma_space` is in pixels and `sigma_colour` in units of the pixels. Images of `f64` yield `f64`,
/// all others `f32`. OpenCV reads weights from a table and rounds results to the image's type. Pixels
/// are added from the centre on and then in raster order, by fused multiply-adds. The border mode is
/// [`Border::Reflect101`](crate::shape::Border::Reflect101), or set by [`Image::with_border`]. Each
/// level of a volume is filtered separately. A NaN spreads over the disc. It is an error if a sigma is
/// not positive and finite, or if `size` is even or larger than 63.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let noisy = Image::from_slice(&session, (1, 6), &[10.0f32, 12.0, 10.0, 90.0, 88.0, 90.0]);
/// let smooth = bilateral(&noisy, 3, 5.0, 1.0).to_vec()?;
/// assert!((11.0..11.5).contains(&smooth[1]), "between 10 and 12");
/// assert!(smooth[2] < 12.0 && smooth[3] > 88.0, "the edge stays");
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[doc(alias("bilateralFilter", "denoise_bilateral"))]
#[track_caller]
pub fn bilateral<T: Pixel>(image: &Image<T>, size: usize, sigma_colour: f64, sigma_space: f64) -> Image<T::Linear> {
    let call = Call::of("bilateral");
    if let Err(error) = check(call, size, [sigma_colour, sigma_space]) {
        return image.attempt(image.shape(), || Err(error));
    }
    let scale = |sigma: f64| -0.5 / (sigma * sigma);
    let (colour, space) = (T::Linear::from_f64(scale(sigma_colour)), scale(sigma_space));
    let (pixels, radius) = (image.linear(call.site), (size / 2).cast_signed());
    // The pixel itself has the weight 1.
    let (mut sum, mut weights) = (pixels.clone(), None);
    for y in -radius..=radius {
        for x in -radius..=radius {
            let away = y * y + x * x;
            if away == 0 || away > radius * radius {
                continue;
            }
            let other = pixels.with_border(image.border()).shift(0, -y, -x);
            let mut channels = other.absdiff(&pixels).unstack(Axis::Channels).into_iter();
            let Some(mut difference) = channels.next() else { break };
            for channel in channels {
                difference += channel;
            }
            let exponent = T::Linear::from_f64(away as f64 * space);
            let weight = difference.square().mul_add(colour, exponent).exp();
            sum = other.mul_add(&weight, &sum);
            weights = Some(match weights {
                None => weight + T::Linear::ONE,
                Some(weights) => weights + weight,
            });
        }
    }
    let mean = match weights {
        None => sum,
        Some(weights) => sum / weights,
    };
    mean.related(call.op, &[(image.handle(), Relation::identity())])
}

fn check(call: Call, size: usize, sigmas: [f64; 2]) -> Result<()> {
    if let Some(sigma) = sigmas.into_iter().find(|sigma| !(*sigma > 0.0 && sigma.is_finite())) {
        return Err(Error::parameter(call, format!("sigma is {sigma}; it must be positive and finite")));
    }
    if size.is_multiple_of(2) || size > MOST {
        return Err(Error::parameter(call, format!("the size is {size}; it must be odd and at most {MOST}")));
    }
    Ok(())
}
