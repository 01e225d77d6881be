//! Uncompressed TIFF files, for sample types that other encoders do not support.

use std::io::{Seek, Write};
use std::marker::PhantomData;

use tiff::TiffResult;
use tiff::encoder::colortype::ColorType;
use tiff::encoder::{TiffEncoder, TiffValue};
use tiff::tags::{PhotometricInterpretation, SampleFormat};

use super::encode::Samples;
use super::target::Sink;

/// The samples that TIFF files hold; the `tiff` crate has no colours of signed integers.
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
tiff_samples!(u8: 8 Uint, u16: 16 Uint, i32: 32 Int, f32: 32 IEEEFP, f64: 64 IEEEFP);

/// Pixels of `N` samples: grey, or red, green, blue and opacity.
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

    // No predictor is asked for: rows are what they are.
    fn horizontal_predict(row: &[S], result: &mut Vec<S>) {
        result.extend_from_slice(row);
    }
}

pub(super) fn write_tiff(
    to: &mut dyn Sink,
    samples: Samples<'_>,
    w: u32,
    h: u32,
    channels: usize,
) -> Result<(), String> {
    fn typed<S: TiffSample + TiffValue>(
        to: impl Write + Seek,
        w: u32,
        h: u32,
        n: usize,
        data: &[S],
    ) -> Result<(), String>
    where
        [S]: TiffValue,
    {
        // Offsets in plain TIFF files have 32 bits.
        let big = size_of_val(data) > (u32::MAX - (1 << 24)) as usize;
        match n {
            1 => image::<Tiff<S, 1>>(to, w, h, data, big),
            3 => image::<Tiff<S, 3>>(to, w, h, data, big),
            _ => image::<Tiff<S, 4>>(to, w, h, data, big),
        }
        .map_err(|e| e.to_string())
    }
    fn image<C: ColorType>(to: impl Write + Seek, w: u32, h: u32, data: &[C::Inner], big: bool) -> TiffResult<()>
    where
        [C::Inner]: TiffValue,
    {
        if big {
            TiffEncoder::new_big(to)?.write_image::<C>(w, h, data)
        } else {
            TiffEncoder::new(to)?.write_image::<C>(w, h, data)
        }
    }
    match samples {
        Samples::U8(v) => typed(to, w, h, channels, v),
        Samples::U16(v) => typed(to, w, h, channels, v),
        Samples::I32(v) => typed(to, w, h, channels, v),
        Samples::F32(v) => typed(to, w, h, channels, v),
        Samples::F64(v) => typed(to, w, h, channels, v),
    }
}
