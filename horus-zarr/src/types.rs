//! Zarr's sample types: their names, and their conversion to pixels.

use std::borrow::Cow;

use half::f16;
use horus_core::dtype::DType;

/// The name of a type in version 3 of Zarr.
pub(crate) fn name_of(dtype: DType) -> String {
    let ours = dtype.name();
    if dtype == DType::Bool {
        return ours.into();
    }
    let (kind, bits) = ours.split_at(1);
    let kind = match kind {
        "u" => "uint",
        "i" => "int",
        _ => "float",
    };
    format!("{kind}{bits}")
}

/// The samples of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArraySamples {
    /// Samples of a pixel type; bool is stored as bytes.
    Of(DType),
    /// 16-bit floats, which become `f32`.
    Half,
    /// 64-bit integers, which become `i32`.
    Signed,
    /// 64-bit integers without sign, which become `u32`.
    Unsigned,
}

impl ArraySamples {
    const CONVERTED: [(&'static str, ArraySamples); 3] =
        [("int64", ArraySamples::Signed), ("uint64", ArraySamples::Unsigned), ("float16", ArraySamples::Half)];

    /// The samples with this name of a type.
    pub(crate) fn named(name: &str) -> Option<ArraySamples> {
        if name == name_of(DType::Bool) {
            return Some(ArraySamples::Of(DType::Bool.stored()));
        }
        let converted = || ArraySamples::CONVERTED.into_iter().find(|(other, _)| *other == name);
        let of = DType::ALL.into_iter().find(|dtype| name_of(*dtype) == name).map(ArraySamples::Of);
        of.or_else(|| Some(converted()?.1))
    }

    /// The names of all types.
    pub(crate) fn supported() -> String {
        let named = DType::ALL.iter().chain([&DType::Bool]).map(|dtype| name_of(*dtype));
        let names: Vec<String> =
            named.chain(ArraySamples::CONVERTED.iter().map(|(name, _)| (*name).to_owned())).collect();
        names.join(", ")
    }

    /// The type of the pixels.
    pub(crate) fn dtype(self) -> DType {
        match self {
            ArraySamples::Of(dtype) => dtype,
            ArraySamples::Half => DType::F32,
            ArraySamples::Signed => DType::I32,
            ArraySamples::Unsigned => DType::U32,
        }
    }

    /// Bytes of a sample.
    pub(crate) fn size(self) -> usize {
        match self {
            ArraySamples::Of(dtype) => dtype.size(),
            ArraySamples::Half => 2,
            ArraySamples::Signed | ArraySamples::Unsigned => 8,
        }
    }

    /// Converts samples to pixels. Samples that are not `inside` the array, given their number, may
    /// have any value.
    ///
    /// # Errors
    /// A message with the first integer that is no pixel.
    pub(crate) fn pixels(self, samples: Cow<'_, [u8]>, inside: impl Fn(usize) -> bool) -> Result<Vec<u8>, String> {
        fn narrowed<W: Copy + std::fmt::Display, N: TryFrom<W> + Default, const B: usize>(
            samples: &[u8],
            of: fn([u8; 8]) -> W,
            to: fn(N) -> [u8; B],
            dtype: DType,
            inside: impl Fn(usize) -> bool,
        ) -> Result<Vec<u8>, String> {
            let mut pixels = Vec::with_capacity(samples.len() / 8 * B);
            for (i, sample) in samples.as_chunks::<8>().0.iter().map(|sample| of(*sample)).enumerate() {
                pixels.extend(to(match N::try_from(sample) {
                    Ok(pixel) => pixel,
                    Err(_) if !inside(i) => N::default(),
                    Err(_) => return Err(format!("its sample {sample} exceeds the range of {dtype} pixels")),
                }));
            }
            Ok(pixels)
        }
        let dtype = self.dtype();
        match self {
            ArraySamples::Of(_) => Ok(samples.into_owned()),
            ArraySamples::Half => {
                let wide = |sample: &[u8; 2]| f16::from_ne_bytes(*sample).to_f32().to_ne_bytes();
                Ok(samples.as_chunks().0.iter().flat_map(wide).collect())
            }
            ArraySamples::Signed => narrowed(&samples, i64::from_ne_bytes, i32::to_ne_bytes, dtype, inside),
            ArraySamples::Unsigned => narrowed(&samples, u64::from_ne_bytes, u32::to_ne_bytes, dtype, inside),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_the_names_of_zarr() {
        let names: Vec<String> = [DType::U8, DType::I32, DType::F64].map(name_of).into();
        assert_eq!(names, ["uint8", "int32", "float64"]);
        for dtype in DType::ALL {
            assert_eq!(ArraySamples::named(&name_of(dtype)), Some(ArraySamples::Of(dtype)));
        }
        assert_eq!(ArraySamples::named("bool"), Some(ArraySamples::Of(DType::U8)));
        assert_eq!(ArraySamples::named("complex64"), None);
        let supported = ArraySamples::supported();
        assert!(supported.starts_with("uint8, ") && supported.ends_with(", bool, int64, uint64, float16"));
    }

    #[test]
    fn integers_that_are_no_pixels_are_told_inside_the_array() {
        let limits = [i64::from(i32::MIN), i64::from(i32::MAX), 1 << 31];
        let samples: Vec<u8> = limits.into_iter().flat_map(i64::to_ne_bytes).collect();
        let pixels: Vec<u8> = [i32::MIN, i32::MAX, 0].into_iter().flat_map(i32::to_ne_bytes).collect();
        assert_eq!(ArraySamples::Signed.pixels(samples.as_slice().into(), |i| i < 2), Ok(pixels));
        let error = ArraySamples::Signed.pixels(samples.as_slice().into(), |_| true).unwrap_err();
        assert_eq!(error, "its sample 2147483648 exceeds the range of i32 pixels");
        let error = ArraySamples::Unsigned.pixels((1u64 << 32).to_ne_bytes()[..].into(), |_| true).unwrap_err();
        assert_eq!(error, "its sample 4294967296 exceeds the range of u32 pixels");
    }
}
