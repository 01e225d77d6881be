//! Three ways to find lines with oriented anisotropic Gaussians (thesis, section 2.4).
//!
//! Over orientations and scales (`sigma_u` along a line, `sigma_v` across), all compute the largest `|second derivative
//! across the line / smoothed image| * sigma_u * sigma_v`. They differ in what they rotate: the image, the filter, or
//! the directions along which the filter is decomposed. Images are scaled to `0..=1`.

use horus::prelude::*;

/// Brightness below which the smoothed image has no measurable contrast.
const DARK: f32 = 1e-3;

/// The orientations and scales that a detector searches.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Angle between orientations, in degrees.
    pub theta_step: f64,
    /// Scales along the line, in pixels.
    pub sigma_u: Vec<f64>,
    /// Scales across the line, in pixels.
    pub sigma_v: Vec<f64>,
}

impl Default for Params {
    fn default() -> Params {
        Params { theta_step: 15.0, sigma_u: vec![3.0, 5.0, 7.0], sigma_v: vec![1.0, 2.0, 3.0] }
    }
}

impl Params {
    /// The orientations in degrees: multiples of the angle below 180.
    pub fn orientations(&self) -> impl Iterator<Item = f64> {
        let step = self.theta_step;
        (0u32..).map(move |i| f64::from(i) * step).take_while(|theta| *theta < 180.0)
    }

    /// Fewest multiply-adds per pixel: two separable filters for each orientation and scale, within three sigma.
    pub fn steps_per_pixel(&self) -> f64 {
        let taps = |(su, sv): (f64, f64)| 2.0 * (2.0 * (3.0 * su.max(sv)).ceil() + 1.0);
        self.orientations().count() as f64 * self.scales().map(|s| 2.0 * taps(s)).sum::<f64>()
    }

    /// All pairs of a scale along and a scale across the line.
    pub fn scales(&self) -> impl Iterator<Item = (f64, f64)> {
        self.sigma_u.iter().flat_map(|&su| self.sigma_v.iter().map(move |&sv| (su, sv)))
    }
}

/// A line detector from a one-channel image in `0..=1` to the line response. The response carries an error if a scale
/// is not positive and finite, or the angle is not finite.
pub type Detector = fn(&Image<f32>, &Params) -> Image<f32>;

/// Rotates the image, reflected beyond its edges, filters along its axes, and rotates the response back (Figure 2.1).
pub fn convrot(image: &Image<f32>, params: &Params) -> Image<f32> {
    let mut result = Image::zeros(image.session(), image.shape());
    for theta in params.orientations() {
        // With another border, the frame of the picture would be its strongest line.
        let rotated = image.with_border(Border::Reflect101).rotate(theta, Interpolation::Bilinear);
        let mut contrast = Image::zeros(image.session(), image.shape());
        for (su, sv) in params.scales() {
            let filtered1 = rotated.gauss_xy(su, sv, 0, 2);
            let filtered2 = rotated.gauss_xy(su, sv, 0, 0);
            let detected = filtered1.absdiv(filtered2, DARK) * (su * sv) as f32;
            contrast = contrast.max(detected);
        }
        let back_rotated = contrast.rotate(-theta, Interpolation::Bilinear);
        result = result.max(back_rotated);
    }
    result
}

/// Filters the image with rotated two-dimensional kernels (Figure 2.7 with `gauss2D`).
pub fn conv2d(image: &Image<f32>, params: &Params) -> Image<f32> {
    let mut result = Image::zeros(image.session(), image.shape());
    for theta in params.orientations() {
        for (su, sv) in params.scales() {
            let filtered1 = image.gauss_2d(theta, su, sv, 0, 2);
            let filtered2 = image.gauss_2d(theta, su, sv, 0, 0);
            let contrast = filtered1.absdiv(filtered2, DARK) * (su * sv) as f32;
            result = result.max(contrast);
        }
    }
    result
}

/// Filters along and across the line, with samples between the pixels of the image (Figure 2.7 with `gaussUV`).
pub fn convuv(image: &Image<f32>, params: &Params) -> Image<f32> {
    let mut result = Image::zeros(image.session(), image.shape());
    for theta in params.orientations() {
        for (su, sv) in params.scales() {
            let filtered1 = image.gauss_uv(theta, su, sv, 0, 2);
            let filtered2 = image.gauss_uv(theta, su, sv, 0, 0);
            let contrast = filtered1.absdiv(filtered2, DARK) * (su * sv) as f32;
            result = result.max(contrast);
        }
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientations_cover_the_half_circle() {
        let angles: Vec<f64> = Params::default().orientations().collect();
        assert_eq!((angles.len(), angles[0], angles[11]), (12, 0.0, 165.0));
        let whole = Params { theta_step: 180.0, ..Params::default() };
        assert_eq!(whole.orientations().collect::<Vec<_>>(), [0.0]);
        let uneven = Params { theta_step: 70.0, ..Params::default() };
        assert_eq!(uneven.orientations().collect::<Vec<_>>(), [0.0, 70.0, 140.0]);
    }

    #[test]
    fn steps_are_those_of_separable_filters() {
        let one = Params { theta_step: 90.0, sigma_u: vec![3.0], sigma_v: vec![1.0] };
        assert_eq!(one.steps_per_pixel(), 2.0 * 2.0 * (19.0 + 19.0)); // orientations, filters, taps of rows and columns
    }

    #[test]
    fn scales_are_all_pairs() {
        let params = Params { sigma_u: vec![3.0, 5.0], sigma_v: vec![1.0, 2.0], ..Params::default() };
        assert_eq!(params.scales().collect::<Vec<_>>(), [(3.0, 1.0), (3.0, 2.0), (5.0, 1.0), (5.0, 2.0)]);
    }
}
