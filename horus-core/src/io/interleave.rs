//! Channels one after the other, and pixel by pixel.

use rayon::prelude::*;

use crate::buffer::HostBuffer;
use crate::cpu::workers::Workers;
use crate::dtype::DType;
use crate::error::DeviceError;
use crate::shape::Shape;

/// Pixels that are worth another thread.
const GRAIN: usize = 1 << 16;

/// Channels one after the other, interleaved.
///
/// # Errors
/// [`DeviceError::OutOfMemory`].
pub(super) fn interleaved(
    pixels: &HostBuffer,
    dtype: DType,
    shape: Shape,
    workers: &Workers,
) -> Result<HostBuffer, DeviceError> {
    let mut to = HostBuffer::try_zeroed(pixels.len())?;
    let (area, channels) = (shape.area(), shape.channels);
    let (from, bytes) = (pixels.bytes(), to.bytes_mut());
    // What is moved has no type but a size.
    match dtype.size() {
        1 => join::<1>(from, bytes, area, channels, workers),
        2 => join::<2>(from, bytes, area, channels, workers),
        4 => join::<4>(from, bytes, area, channels, workers),
        _ => join::<8>(from, bytes, area, channels, workers),
    }
    Ok(to)
}

fn join<const N: usize>(from: &[u8], to: &mut [u8], area: usize, channels: usize, workers: &Workers) {
    let (from, to) = (from.as_chunks::<N>().0, to.as_chunks_mut::<N>().0);
    let chunk = |k: usize, to: &mut [[u8; N]]| {
        let (at, n) = (k * GRAIN, to.len() / channels);
        let plane = |c: usize| &from[c * area + at..][..n];
        match channels {
            2 => gather::<N, 2>([0, 1].map(plane), to),
            3 => gather::<N, 3>([0, 1, 2].map(plane), to),
            4 => gather::<N, 4>([0, 1, 2, 3].map(plane), to),
            _ => {
                for c in 0..channels {
                    let plane = plane(c);
                    to.iter_mut().skip(c).step_by(channels).zip(plane).for_each(|(t, f)| *t = *f);
                }
            }
        }
    };
    if workers.threads() == 1 || area <= GRAIN {
        to.chunks_mut(GRAIN * channels).enumerate().for_each(|(k, to)| chunk(k, to));
    } else {
        workers.run(|| to.par_chunks_mut(GRAIN * channels).enumerate().for_each(|(k, to)| chunk(k, to)));
    }
}

/// As many planes as are known when this is compiled, which makes vectors of it.
fn gather<const N: usize, const C: usize>(planes: [&[[u8; N]]; C], to: &mut [[u8; N]]) {
    for (i, pixel) in to.as_chunks_mut::<C>().0.iter_mut().enumerate() {
        for (sample, plane) in pixel.iter_mut().zip(&planes) {
            *sample = plane[i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_are_put_together_by_any_number_of_threads() {
        for (dtype, channels, area) in
            DType::ALL.into_iter().flat_map(|d| (1..=6).flat_map(move |c| [1, 7, GRAIN, GRAIN + 3].map(|a| (d, c, a))))
        {
            let size = dtype.size();
            let mut pixels = HostBuffer::zeroed(channels * area * size);
            pixels
                .bytes_mut()
                .iter_mut()
                .enumerate()
                .for_each(|(i, b)| *b = (i.wrapping_mul(2_654_435_761) >> 13) as u8);
            let at = |c: usize, i: usize| (c * area + i) * size;
            let from = pixels.bytes();
            let want: Vec<u8> = (0..area)
                .flat_map(|i| (0..channels).flat_map(move |c| from[at(c, i)..at(c, i) + size].iter().copied()))
                .collect();
            for threads in [1, 2, 5] {
                let workers = Workers::new(Some(threads)).unwrap();
                let got = interleaved(&pixels, dtype, Shape::new(1, area, channels), &workers).unwrap();
                assert!(got.bytes() == want, "{channels} channels of {area} {dtype}, {threads} threads");
            }
        }
    }
}
