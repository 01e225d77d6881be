//! Samples stored separately from the other samples of their pixel.

/// Copies the first `size` bytes of each `step` bytes to the first of each `stride` bytes, until `to` ends.
pub(super) fn copy_spaced(from: &[u8], step: usize, to: &mut [u8], stride: usize, size: usize) {
    #[inline(always)]
    fn each(from: &[u8], step: usize, to: &mut [u8], stride: usize, size: usize) {
        from.chunks(step).zip(to.chunks_mut(stride)).for_each(|(from, to)| to[..size].copy_from_slice(&from[..size]));
    }
    // For a move, only the size of a sample matters.
    match size {
        _ if step == size && stride == size => to.copy_from_slice(&from[..to.len()]),
        1 => each(from, step, to, stride, 1),
        2 => each(from, step, to, stride, 2),
        4 => each(from, step, to, stride, 4),
        8 => each(from, step, to, stride, 8),
        _ => each(from, step, to, stride, size),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_of_any_size_are_put_among_others_and_taken_out() {
        for (size, channels, n) in [1, 2, 3, 4, 6, 8].into_iter().flat_map(|s| (1..=5).map(move |c| (s, c, 7))) {
            let pixel = size * channels;
            let planes: Vec<u8> = (0..n * pixel).map(|i| (i * 31) as u8).collect();
            let mut pixels = vec![0; n * pixel];
            for (c, plane) in planes.chunks(n * size).enumerate() {
                copy_spaced(plane, size, &mut pixels[c * size..], pixel, size);
            }
            let want = (0..n).flat_map(|i| (0..channels).map(move |c| (c * n + i) * size));
            let want: Vec<u8> = want.flat_map(|at| planes[at..at + size].iter().copied()).collect();
            assert_eq!(pixels, want, "{channels} channels of {size} bytes");
            let mut back = vec![0; n * pixel];
            for (c, plane) in back.chunks_mut(n * size).enumerate() {
                copy_spaced(&pixels[c * size..], pixel, plane, size, size);
            }
            assert_eq!(back, planes, "{channels} channels of {size} bytes");
        }
    }
}
