//! The functions on images of a session, of any device: `horus-cuda-check --numbers` includes this file.

use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::session::Session;
use horus_testing::numbers::{BoundedFunction, EXPONENT, FUNCTIONS, FunctionPair, Sample, hash};
use rayon::prelude::*;

/// The function on each pixel.
fn applied(function: &BoundedFunction, x: &Image<f32>, y: &Image<f32>) -> Image<f32> {
    match function.name {
        "exp(x)" => x.exp(),
        "log(x)" => x.log(),
        "sin(x)" => x.sin(),
        "cos(x)" => x.cos(),
        "pow(x, 2.2)" => x.pow(EXPONENT),
        "sqrt(x)" => x.sqrt(),
        "1 / x" => 1.0 / x,
        "x / y" => x / y,
        "pow(x, y)" => x.pow(y),
        "atan2(x, y)" => x.atan2(y),
        "hypot(x, y)" => x.hypot(y),
        name => unreachable!("{name} is not computed on images"),
    }
}

/// The hashes of the results of all [`FUNCTIONS`] for a sample, computed in images of at most 2^`bits` pixels; `look` is shown a
/// function's number, arguments and results.
pub(crate) fn hashes(
    session: &Session,
    sample: Sample,
    bits: u32,
    mut look: impl FnMut(usize, &[(f32, f32)], &[f32]),
) -> Result<Vec<u64>> {
    let mut sums = vec![0u64; FUNCTIONS.len()];
    for two in [false, true] {
        let functions =
            || FUNCTIONS.iter().enumerate().filter(|(_, f)| matches!(f.definition, FunctionPair::Two(..)) == two);
        let (_, first) = functions().next().expect("functions of one and of two arguments");
        let count = sample.count(first);
        let bits = bits.min(count.ilog2());
        for start in (0..count).step_by(1 << bits) {
            let arguments = sample.arguments(first, start..start + (1 << bits));
            let image = |take: fn(&(f32, f32)) -> f32| {
                let pixels: Vec<f32> = arguments.par_iter().map(take).collect();
                Image::from_slice(session, (1 << (bits / 2), 1 << bits.div_ceil(2)), &pixels)
            };
            let x = image(|a| a.0);
            let y = if two { image(|a| a.1) } else { x.clone() };
            for (number, function) in functions() {
                let results = applied(function, &x, &y).to_pixels()?;
                look(number, &arguments, &results);
                sums[number] = sums[number].wrapping_add(hash(start, &results));
            }
        }
    }
    Ok(sums)
}
