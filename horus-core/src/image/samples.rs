//! Sample images for demonstrations and tests.

use super::create::source;
use super::{Image, image_or_failure};
use crate::error::Call;
use crate::session::Session;
use crate::shape::Shape;

/// Pixels of the picture per worm.
const AREA_PER_WORM: usize = 2600;
/// Seed of the random numbers.
const SEED: u64 = 7;
/// Distance between the points of a worm, in pixels.
const STEP: f64 = 0.5;
/// Spacing of the background's shading, in pixels.
const SHADING: f64 = 96.0;

/// A picture for demonstrations and tests: thin, curved, bright worms on a darker, slightly uneven and
/// noisy background, with values in `0..=1`. A size always gives the same picture, to the bit and on
/// every machine: it uses only sums, products, quotients and square roots.
///
/// ```
/// # use horus_core::{cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let image = samples::worms(&session, 64, 96);
/// assert!(image.max_value().get()? <= 1.0);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[track_caller]
pub fn worms(session: &Session, height: usize, width: usize) -> Image<f32> {
    let shape = Shape::new(height, width, 1);
    let paint = |pixels: &mut [u8]| paint(bytemuck::cast_slice_mut(pixels), width, SEED);
    image_or_failure(session, shape, source(Call::of("worms"), session, shape, paint))
}

fn paint(pixels: &mut [f32], width: usize, seed: u64) {
    let height = pixels.len() / width;
    pixels.fill(0.0);
    let mut random = SplitMixGenerator(seed);
    for _ in 0..(height * width).div_ceil(AREA_PER_WORM) {
        draw_worm(pixels, (height, width), &mut random);
    }
    let shade = random.next();
    for (i, p) in pixels.iter_mut().enumerate() {
        let (y, x) = (i / width, i % width);
        let ground = 0.16 + 0.14 * shading(shade, y as f64 / SHADING, x as f64 / SHADING);
        // The sum of uniform values is close enough to a normal one.
        let noise = (0..4).map(|_| random.uniform() - 0.5).sum::<f64>() * 0.045;
        let cover = f64::from(*p);
        *p = (ground + (0.95 - ground) * cover + noise).clamp(0.0, 1.0) as f32;
    }
}

/// Draws one worm as coverage in `0..=1`. Where worms cross, coverage is not added.
fn draw_worm(cover: &mut [f32], (height, width): (usize, usize), random: &mut SplitMixGenerator) {
    let mut at = [random.uniform() * height as f64, random.uniform() * width as f64];
    let mut heading = random.direction();
    let steps = 60 + (random.uniform() * 260.0) as usize;
    let thickness = 1.2 + 1.3 * random.uniform();
    let brightness = 0.55 + 0.45 * random.uniform();
    let mut curvature = 0.0;
    for i in 0..steps {
        // Head and tail taper over the first and last tenth.
        let end = (i.min(steps - 1 - i) as f64 / (0.1 * steps as f64)).min(1.0);
        stamp(cover, (height, width), at, thickness * (0.5 + 0.5 * end), brightness);
        curvature = 0.97 * curvature + 0.012 * (random.uniform() - 0.5);
        let [dy, dx] = heading;
        heading = unit([dy + curvature * dx, dx - curvature * dy]);
        at = [at[0] + STEP * heading[0], at[1] + STEP * heading[1]];
    }
}

/// Draws a soft disc: the maximum of the current value and
/// `brightness * (1 - (distance / radius)^2)`.
fn stamp(cover: &mut [f32], (height, width): (usize, usize), [cy, cx]: [f64; 2], radius: f64, brightness: f64) {
    let range = |c: f64, n: usize| (c - radius).max(0.0) as usize..((c + radius + 1.0).max(0.0) as usize).min(n);
    for y in range(cy, height) {
        for x in range(cx, width) {
            let (dy, dx) = (y as f64 - cy, x as f64 - cx);
            let inside = (1.0 - (dy * dy + dx * dx) / (radius * radius)).max(0.0);
            let p = &mut cover[y * width + x];
            *p = p.max((brightness * inside) as f32);
        }
    }
}

/// Smooth noise in `0..=1`: values on a lattice, blended by a cubic.
fn shading(seed: u64, y: f64, x: f64) -> f64 {
    let (iy, ix) = (y as u64, x as u64);
    let ease = |t: f64| t * t * (3.0 - 2.0 * t);
    let (ty, tx) = (ease(y - iy as f64), ease(x - ix as f64));
    let node = |y: u64, x: u64| SplitMixGenerator(seed ^ (y << 32) ^ x).uniform();
    let along = |y: u64| node(y, ix) * (1.0 - tx) + node(y, ix + 1) * tx;
    along(iy) * (1.0 - ty) + along(iy + 1) * ty
}

fn unit([y, x]: [f64; 2]) -> [f64; 2] {
    let length = (y * y + x * x).sqrt();
    [y / length, x / length]
}

/// The generator SplitMix64 (Steele, Lea, Flood 2014).
struct SplitMixGenerator(u64);

impl SplitMixGenerator {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A value in `0..1`.
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A direction, uniform over the circle: a point of the unit disc, normalised.
    fn direction(&mut self) -> [f64; 2] {
        loop {
            let p = [2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0];
            let square = p[0] * p[0] + p[1] * p[1];
            if (0.01..=1.0).contains(&square) {
                return unit(p);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worms_are_bright_sparse_and_reproducible() {
        let picture = |seed| {
            let mut p = vec![0.0; 200 * 300];
            paint(&mut p, 300, seed);
            p
        };
        let p = picture(1);
        assert_eq!(p, picture(1));
        assert_ne!(p, picture(2));
        assert!(p.iter().all(|v| (0.0..=1.0).contains(v)));
        let bright = p.iter().filter(|v| **v > 0.5).count() as f64 / p.len() as f64;
        assert!((0.005..0.2).contains(&bright), "{bright}");
    }

    #[test]
    fn tiny_pictures_can_be_painted() {
        for (h, w) in [(1, 1), (1, 9), (7, 1)] {
            let mut p = vec![0.0; h * w];
            paint(&mut p, w, 3);
            assert!(p.iter().all(|v| v.is_finite()));
        }
    }
}
