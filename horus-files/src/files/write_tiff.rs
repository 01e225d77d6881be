//! Uncompressed TIFF files, for sample types that other encoders do not support.

use std::io::{Seek, Write};
use std::marker::PhantomData;

use tiff::TiffResult;
use tiff::encoder::colortype::ColorType;
use tiff::encoder::{TiffEncoder, TiffValue};
use tiff::tags::{PhotometricInterpretation, SampleFormat};

use super::encode::Samples;
use super::target::Sink;
use horus_base::shape::Shape;

/// Samples of TIFF files; the `tiff` crate has no colours of signed integers.
trait TiffSample: Copy
where
    [Self]: TiffValue,
{
    const BITS: u16;
    const FORMAT: SampleFormat;
}
macro_rules! tiff_samples {
    ($($sample:ty: $bits:literal $format:ident),*) => {
        $(impl TiffSample for $sample {
            const BITS: u16 = $bits;
            const FORMAT: SampleFormat = SampleFormat::$format;
        })*
    };
}
tiff_samples! {
    u8: 8 Uint, u16: 16 Uint, u32: 32 Uint, i8: 8 Int, i16: 16 Int, i32: 32 Int, f32: 32 IEEEFP, f64: 64 IEEEFP
}

/// Pixels of `N` samples: grey, or red, green, blue and alpha.
struct Tiff<S, const N: usize>(PhantomData<S>);

impl<S: TiffSample + TiffValue, const N: usize> ColorType for Tiff<S, N>
where
    [S]: TiffValue,
{
    type Inner = S;
    const TIFF_VALUE: PhotometricInterpretation =
        if N == 1 { PhotometricInterpretation::BlackIsZero } else { PhotometricInterpretation::RGB };
    const BITS_PER_SAMPLE: &'static [u16] = &[S::BITS; N];
    const SAMPLE_FORMAT: &'static [SampleFormat] = &[S::FORMAT; N];

    // Without a predictor, rows stay unchanged.
    fn horizontal_predict(row: &[S], result: &mut Vec<S>) {
        result.extend_from_slice(row);
    }
}

/// Writes interleaved samples, a page for each level.
pub(super) fn write_tiff(
    to: &mut dyn Sink,
    samples: Samples<'_>,
    size: (u32, u32),
    shape: Shape,
) -> Result<(), String> {
    fn typed<S: TiffSample + TiffValue>(
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
            3 => pages::<Tiff<S, 3>>(to, size, levels, big),
            _ => pages::<Tiff<S, 4>>(to, size, levels, big),
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
    match samples {
        Samples::U8(v) => typed(to, size, shape, v),
        Samples::U16(v) => typed(to, size, shape, v),
        Samples::U32(v) => typed(to, size, shape, v),
        Samples::I8(v) => typed(to, size, shape, v),
        Samples::I16(v) => typed(to, size, shape, v),
        Samples::I32(v) => typed(to, size, shape, v),
        Samples::F32(v) => typed(to, size, shape, v),
        Samples::F64(v) => typed(to, size, shape, v),
    }
}
