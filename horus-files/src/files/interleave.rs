//! Planar and interleaved pixels.

use rayon::prelude::*;

use horus_base::dtype::DType;
use horus_base::error::DeviceError;
use horus_base::shape::Shape;
use horus_host::host::buffer::HostBuffer;
use horus_host::host::workers::Workers;

/// Minimum number of pixels worth another thread.
const GRAIN: usize = 1 << 16;

/// Interleaves planes, level by level.
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
    let (size, channels) = (dtype.size(), shape.channels);
    let planes: Vec<&[u8]> = pixels.bytes().chunks(shape.area() * size).collect();
    let grain = GRAIN * size * channels;
    for (level, bytes) in planes.chunks(channels).zip(to.bytes_mut().chunks_mut(shape.area() * size * channels)) {
        let chunk = |k: usize, to: &mut [u8]| {
            let (at, n) = (k * GRAIN * size, to.len() / channels);
            join(&level.iter().map(|plane| &plane[at..at + n]).collect::<Vec<_>>(), to, size);
        };
        if workers.threads() == 1 || bytes.len() <= grain {
            bytes.chunks_mut(grain).enumerate().for_each(|(k, to)| chunk(k, to));
        } else {
            workers.run(|| bytes.par_chunks_mut(grain).enumerate().for_each(|(k, to)| chunk(k, to)));
        }
    }
    Ok(to)
}

/// Interleaves samples of `size` bytes. Moved samples have no type but a size.
pub(super) fn join(planes: &[&[u8]], to: &mut [u8], size: usize) {
    match size {
        1 => gather::<1>(planes, to),
        2 => gather::<2>(planes, to),
        4 => gather::<4>(planes, to),
        _ => gather::<8>(planes, to),
    }
}

fn gather<const N: usize>(planes: &[&[u8]], to: &mut [u8]) {
    /// Specialised for a constant number of channels.
    fn known<const N: usize, const C: usize>(planes: [&[u8]; C], to: &mut [[u8; N]]) {
        let planes = planes.map(|plane| plane.as_chunks::<N>().0);
        for (i, pixel) in to.as_chunks_mut::<C>().0.iter_mut().enumerate() {
            for (sample, plane) in pixel.iter_mut().zip(&planes) {
                *sample = plane[i];
            }
        }
    }
    let to = to.as_chunks_mut::<N>().0;
    match *planes {
        [a] => a.as_chunks::<N>().0.iter().zip(to).for_each(|(a, to)| *to = *a),
        [a, b] => known([a, b], to),
        [a, b, c] => known([a, b, c], to),
        [a, b, c, d] => known([a, b, c, d], to),
        _ => {
            for (c, plane) in planes.iter().enumerate() {
                let samples = to.iter_mut().skip(c).step_by(planes.len());
                samples.zip(plane.as_chunks::<N>().0).for_each(|(to, sample)| *to = *sample);
            }
        }
    }
}

/// Separates interleaved samples of `size` bytes into consecutive planes.
pub(super) fn separated(from: &[u8], to: &mut [u8], shape: Shape, size: usize, workers: &Workers) {
    let channels = shape.channels;
    let mut parts: Vec<Vec<&mut [u8]>> = Vec::new();
    parts.resize_with(shape.area().div_ceil(GRAIN), || Vec::with_capacity(channels));
    for plane in to.chunks_mut(shape.area() * size) {
        plane.chunks_mut(GRAIN * size).zip(&mut parts).for_each(|(part, parts)| parts.push(part));
    }
    let each = |(from, mut planes): (&[u8], Vec<&mut [u8]>)| split(from, &mut planes, size);
    let grain = GRAIN * size * channels;
    if workers.threads() == 1 || parts.len() == 1 {
        from.chunks(grain).zip(parts).for_each(each);
    } else {
        workers.run(|| from.par_chunks(grain).zip(parts).for_each(each));
    }
}

/// Separates interleaved samples of `size` bytes into a plane for each channel.
pub(super) fn split(from: &[u8], planes: &mut [&mut [u8]], size: usize) {
    match size {
        1 => scatter::<1>(from, planes),
        2 => scatter::<2>(from, planes),
        4 => scatter::<4>(from, planes),
        _ => scatter::<8>(from, planes),
    }
}

fn scatter<const N: usize>(from: &[u8], planes: &mut [&mut [u8]]) {
    /// Specialised for a constant number of channels.
    fn known<const N: usize, const C: usize>(from: &[[u8; N]], planes: &mut [&mut [u8]]) {
        for (c, plane) in planes.iter_mut().enumerate() {
            plane.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<C>().0).for_each(|(to, pixel)| *to = pixel[c]);
        }
    }
    let from = from.as_chunks::<N>().0;
    match planes.len() {
        2 => known::<N, 2>(from, planes),
        3 => known::<N, 3>(from, planes),
        4 => known::<N, 4>(from, planes),
        channels => {
            for (c, plane) in planes.iter_mut().enumerate() {
                let samples = from.iter().skip(c).step_by(channels);
                plane.as_chunks_mut::<N>().0.iter_mut().zip(samples).for_each(|(to, sample)| *to = *sample);
            }
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
            let mut back = vec![0; want.len()];
            split(&want, &mut back.chunks_mut(area * size).collect::<Vec<_>>(), size);
            assert!(back == pixels.bytes(), "{channels} channels of {area} {dtype}, there and back");
            for threads in [1, 3] {
                let workers = Workers::new(Some(threads)).unwrap();
                back.fill(0);
                separated(&want, &mut back, Shape::new(1, area, channels), size, &workers);
                assert!(back == pixels.bytes(), "{channels} channels of {area} {dtype}, back by {threads} threads");
            }
        }
    }
}
