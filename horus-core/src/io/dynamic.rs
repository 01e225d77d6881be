//! Conversion from and to pictures of the crate `image`.

use image::{DynamicImage, ImageBuffer};

use super::{Alpha, AnyImage};
use crate::dtype::Pixel;
use crate::error::{Call, Error, Result};
use crate::image::Image;
use crate::session::Session;
use crate::shape::Shape;

impl AnyImage {
    /// Converts a picture of the crate `image`; every rank passes the same picture. Pixels keep
    /// their type (8 or 16 bits, or `f32`), channels and alpha.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::DynamicImage;
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let picture = DynamicImage::new_rgb8(4, 3); // as `image::open(path)?` gives it
    /// let ours = AnyImage::from_dynamic(&session, &picture);
    /// assert_eq!(ours.shape().to_string(), "3x4x3");
    /// assert_eq!(ours.to_dynamic()?, picture);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn from_dynamic(session: &Session, picture: &DynamicImage) -> AnyImage {
        let image = match picture {
            DynamicImage::ImageLuma8(p) => AnyImage::U8(image_of(session, p)),
            DynamicImage::ImageLumaA8(p) => AnyImage::U8(image_of(session, p)),
            DynamicImage::ImageRgb8(p) => AnyImage::U8(image_of(session, p)),
            DynamicImage::ImageRgba8(p) => AnyImage::U8(image_of(session, p)),
            DynamicImage::ImageLuma16(p) => AnyImage::U16(image_of(session, p)),
            DynamicImage::ImageLumaA16(p) => AnyImage::U16(image_of(session, p)),
            DynamicImage::ImageRgb16(p) => AnyImage::U16(image_of(session, p)),
            DynamicImage::ImageRgba16(p) => AnyImage::U16(image_of(session, p)),
            DynamicImage::ImageRgb32F(p) => AnyImage::F32(image_of(session, p)),
            DynamicImage::ImageRgba32F(p) => AnyImage::F32(image_of(session, p)),
            // Variants that the crate may add later.
            other => AnyImage::F32(image_of(session, &other.to_rgba32f())),
        };
        image.with_alpha(matches!(image.shape().channels, 2 | 4).then_some(Alpha::Unassociated))
    }

    /// Converts to a picture of the crate `image`, on every rank. Pixels are unchanged: `u8` or
    /// `u16` with 1 to 4 channels (grey or colours, with or without alpha), or `f32` with 3 or 4
    /// channels.
    ///
    /// # Errors
    /// If that crate does not support the pixel type (see [`AnyImage::convert`] and
    /// [`AnyImage::to_unit`]) or levels, or as [`Image::to_vec`].
    #[track_caller]
    pub fn to_dynamic(&self) -> Result<DynamicImage> {
        let call = Call::of("to_dynamic");
        self.look()?;
        let picture = match (self, self.shape().channels) {
            _ if self.shape().depth != 1 => None,
            (AnyImage::U8(image), 1) => picture_of(image)?.map(DynamicImage::ImageLuma8),
            (AnyImage::U8(image), 2) => picture_of(image)?.map(DynamicImage::ImageLumaA8),
            (AnyImage::U8(image), 3) => picture_of(image)?.map(DynamicImage::ImageRgb8),
            (AnyImage::U8(image), 4) => picture_of(image)?.map(DynamicImage::ImageRgba8),
            (AnyImage::U16(image), 1) => picture_of(image)?.map(DynamicImage::ImageLuma16),
            (AnyImage::U16(image), 2) => picture_of(image)?.map(DynamicImage::ImageLumaA16),
            (AnyImage::U16(image), 3) => picture_of(image)?.map(DynamicImage::ImageRgb16),
            (AnyImage::U16(image), 4) => picture_of(image)?.map(DynamicImage::ImageRgba16),
            (AnyImage::F32(image), 3) => picture_of(image)?.map(DynamicImage::ImageRgb32F),
            (AnyImage::F32(image), 4) => picture_of(image)?.map(DynamicImage::ImageRgba32F),
            _ => None,
        };
        picture.ok_or_else(|| {
            let (shape, dtype) = (self.shape(), self.dtype());
            let has = "pixels of u8 or u16 of 1 to 4 channels, or of f32 of 3 or 4";
            Error::parameter(call, format!("a DynamicImage has {has}; the image is {shape} {dtype}"))
        })
    }
}

/// An image of a picture.
#[track_caller]
fn image_of<P>(session: &Session, picture: &ImageBuffer<P, Vec<P::Subpixel>>) -> Image<P::Subpixel>
where
    P: image::Pixel,
    P::Subpixel: Pixel,
{
    let (width, height) = picture.dimensions();
    let shape = Shape::new(height as usize, width as usize, usize::from(P::CHANNEL_COUNT));
    // A buffer may be larger than its picture.
    Image::from_slice(session, shape, &picture.as_raw()[..shape.len()])
}

/// The picture of an image; `None` unless it has as many channels as `P`.
fn picture_of<P>(image: &Image<P::Subpixel>) -> Result<Option<ImageBuffer<P, Vec<P::Subpixel>>>>
where
    P: image::Pixel,
    P::Subpixel: Pixel,
{
    // An image has fewer than 2^31 rows and columns.
    Ok(ImageBuffer::from_raw(image.width() as u32, image.height() as u32, image.to_vec()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu::device::CpuDevice;

    fn session() -> Session {
        Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap()
    }

    fn there_and_back<P>(wrapped: impl Fn(ImageBuffer<P, Vec<P::Subpixel>>) -> DynamicImage)
    where
        P: image::Pixel,
        P::Subpixel: Pixel,
    {
        let channels = usize::from(P::CHANNEL_COUNT);
        let value = |i: usize| {
            P::Subpixel::from_f64((i * 37 % 251) as f64 / if P::Subpixel::DTYPE.is_float() { 7.0 } else { 1.0 })
        };
        let picture = ImageBuffer::<P, _>::from_raw(5, 3, (0..15 * channels).map(value).collect()).unwrap();
        let last = value(((2 * 5) + 4) * channels + channels - 1);
        let picture = wrapped(picture);
        let ours = AnyImage::from_dynamic(&session(), &picture);
        assert_eq!((ours.dtype(), ours.shape().channels), (P::Subpixel::DTYPE, channels));
        assert_eq!(ours.convert::<P::Subpixel>().pixel((0, 2, 4, channels - 1)).unwrap(), last);
        assert_eq!(ours.to_dynamic().unwrap(), picture);
    }

    #[test]
    fn pictures_of_every_kind_come_back() {
        there_and_back::<image::Luma<u8>>(DynamicImage::ImageLuma8);
        there_and_back::<image::LumaA<u8>>(DynamicImage::ImageLumaA8);
        there_and_back::<image::Rgb<u8>>(DynamicImage::ImageRgb8);
        there_and_back::<image::Rgba<u8>>(DynamicImage::ImageRgba8);
        there_and_back::<image::Luma<u16>>(DynamicImage::ImageLuma16);
        there_and_back::<image::LumaA<u16>>(DynamicImage::ImageLumaA16);
        there_and_back::<image::Rgb<u16>>(DynamicImage::ImageRgb16);
        there_and_back::<image::Rgba<u16>>(DynamicImage::ImageRgba16);
        there_and_back::<image::Rgb<f32>>(DynamicImage::ImageRgb32F);
        there_and_back::<image::Rgba<f32>>(DynamicImage::ImageRgba32F);
    }

    #[test]
    fn what_that_crate_does_not_have_is_an_error() {
        let s = session();
        let told = |image: AnyImage| image.to_dynamic().unwrap_err().to_string();
        let wide = told(AnyImage::U32(Image::zeros(&s, (2, 3))));
        assert!(
            wide.starts_with("to_dynamic: a DynamicImage has pixels of u8 or u16") && wide.contains("2x3 u32 (at "),
            "{wide}"
        );
        assert!(told(AnyImage::I8(Image::zeros(&s, (2, 3)))).contains("2x3 i8"));
        assert!(told(AnyImage::F32(Image::zeros(&s, (2, 3)))).contains("2x3 f32"), "grey is of integers");
        assert!(told(AnyImage::U8(Image::constant(&s, (2, 3, 4), 1))).contains("2x3x4"));
        assert!(told(AnyImage::U8(Image::zeros(&s, (2, 3)).crop(0, 0, 9, 9))).starts_with("crop: "), "the first error");
    }
}
