//! Uncompressed TIFF files, for sample types that other encoders do not support.

use std::io::{Seek, Write};
use std::marker::PhantomData;

use tiff::TiffResult;
use tiff::encoder::colortype::ColorType;
use tiff::encoder::{TiffEncoder, TiffValue};
use tiff::tags::{PhotometricInterpretation, SampleFormat};

use super::target::Sink;
use horus_base::dtype::{DType, Pixel};
use horus_base::shape::Shape;
use horus_host::host::buffer::HostBuffer;

/// The format of samples of a type.
pub(super) const fn sample_format(dtype: DType) -> SampleFormat {
    match dtype {
        float if float.is_float() => SampleFormat::IEEEFP,
        signed if signed.is_signed() => SampleFormat::Int,
        _ => SampleFormat::Uint,
    }
}

/// Pixels of `N` samples: grey, or red, green and blue. The `tiff` crate has no colours of
/// signed integers.
struct Tiff<S, const N: usize>(PhantomData<S>);

impl<S: Pixel + TiffValue, const N: usize> ColorType for Tiff<S, N>
where
    [S]: TiffValue,
{
    type Inner = S;
    const TIFF_VALUE: PhotometricInterpretation =
        if N == 1 { PhotometricInterpretation::BlackIsZero } else { PhotometricInterpretation::RGB };
    const BITS_PER_SAMPLE: &'static [u16] = &[8 * size_of::<S>() as u16; N];
    const SAMPLE_FORMAT: &'static [SampleFormat] = &[sample_format(S::DTYPE); N];

    // Without a predictor, rows stay unchanged.
    fn horizontal_predict(row: &[S], result: &mut Vec<S>) {
        result.extend_from_slice(row);
    }
}

/// Writes interleaved samples, a page for each level.
pub(super) fn write_tiff(
    to: &mut dyn Sink,
    samples: &HostBuffer,
    dtype: DType,
    size: (u32, u32),
    shape: Shape,
) -> Result<(), String> {
    fn typed<S: Pixel + TiffValue>(
        to: impl Write + Seek,
        size: (u32, u32),
        shape: Shape,
        data: &[S],
    ) -> Result<(), String>
    where
        [S]: TiffValue,
    {
        // Offsets in plain TIFF files have 32 bits.
        let big = size_of_val(data) > (u32::MAX - (1 << 24)) as usize;
        let levels = data.chunks(shape.area() * shape.channels);
        match shape.channels {
            1 => pages::<Tiff<S, 1>>(to, size, levels, big),
            _ => pages::<Tiff<S, 3>>(to, size, levels, big),
        }
        .map_err(|e| e.to_string())
    }
    fn pages<'a, C: ColorType>(
        to: impl Write + Seek,
        (w, h): (u32, u32),
        mut levels: impl Iterator<Item = &'a [C::Inner]>,
        big: bool,
    ) -> TiffResult<()>
    where
        [C::Inner]: TiffValue,
        C::Inner: 'a,
    {
        if big {
            let mut file = TiffEncoder::new_big(to)?;
            levels.try_for_each(|level| file.write_image::<C>(w, h, level))
        } else {
            let mut file = TiffEncoder::new(to)?;
            levels.try_for_each(|level| file.write_image::<C>(w, h, level))
        }
    }
    horus_base::dispatch!(dtype, S => typed(to, size, shape, samples.as_slice::<S>()))
}
