//! Pictures with the pixel type of their files.

use std::panic::Location;
use std::path::Path;
use std::sync::Arc;

use super::on_demand::{OnDemandPicture, SharedPicture};
use super::pixel_size::{alpha, channel_names, pixel_size, sized, with_last};
use super::{
    Alpha, ByteRanges, DecodeResources, Metadata, OpenOptions, OpenedPicture, Picture, PictureReader, RegionSource,
    on_root, opened,
};
use crate::dtype::{DType, Pixel};
use crate::error::{Call, Error, Result, Site};
use crate::image::Image;
use crate::session::{Attributes, Handle, Session};
use crate::shape::{Axis, Shape};
use horus_base::lengths::PixelSize;

/// A picture with the pixel type of its file.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/vessels.png");
/// let picture = session.open(file)?;
/// let smooth = match &picture {
///     AnyImage::U8(image) => image.gauss(2.0), // values in 0..=255
///     other => other.luminance().gauss(2.0),   // values in 0..=1
/// };
/// assert_eq!(smooth.height(), picture.shape().height);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
#[must_use = "an image is only recorded: it is computed when it is read or saved"]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AnyImage {
    /// 8 bits per channel.
    U8(Image<u8>),
    /// 16 bits per channel.
    U16(Image<u16>),
    /// 32 bits per channel.
    U32(Image<u32>),
    /// Signed, 8 bits.
    I8(Image<i8>),
    /// Signed, 16 bits.
    I16(Image<i16>),
    /// Signed, 32 bits.
    I32(Image<i32>),
    /// Floating point.
    F32(Image<f32>),
    /// Double precision floating point.
    F64(Image<f64>),
}

/// Evaluates `$body` with `$image` bound to the image, whatever its type.
macro_rules! each {
    ($any:expr, $image:ident => $body:expr) => {
        match $any {
            AnyImage::U8($image) => $body,
            AnyImage::U16($image) => $body,
            AnyImage::U32($image) => $body,
            AnyImage::I8($image) => $body,
            AnyImage::I16($image) => $body,
            AnyImage::I32($image) => $body,
            AnyImage::F32($image) => $body,
            AnyImage::F64($image) => $body,
        }
    };
}
pub(crate) use each;

impl AnyImage {
    /// Reads a picture in its own type: PNG, JPEG, TIFF, PNM, PFM, BMP, QOI, OpenEXR, WebP, JPEG 2000 or npy,
    /// recognised by content. Rank 0 reads the file. Palettes of PNG files are resolved; for TIFF files the
    /// pixels are the indices, and the palette is kept as metadata. An orientation stored in the
    /// file is applied ([`OpenOptions::orientation`](super::OpenOptions::orientation)). The first
    /// page of a TIFF file of several pages is read, with a warning. Most programs continue with
    /// [`AnyImage::luminance`] or [`AnyImage::to_unit`].
    ///
    /// # The scale of floats
    /// Integer pictures that become floats, by [`AnyImage::to_unit`], [`AnyImage::luminance`] or
    /// `Image::<f32>::open`, are scaled so that their full range is `0..=1`. Float pictures keep
    /// their values. [`Image::save`] scales floats in `0..=1` back to the full range. Only
    /// [`AnyImage::convert`] scales nothing.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("steps.png");
    /// Image::from_slice(&session, (1, 3), &[0u8, 51, 255]).save(&file)?;
    /// let picture = AnyImage::open(&session, &file)?;
    /// assert_eq!(picture.to_unit().to_vec()?, [0.0, 0.2, 1.0]);
    /// assert_eq!(picture.convert::<f32>().to_vec()?, [0.0, 51.0, 255.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// On every rank, if rank 0 cannot read or decode the file. Only regular files are read. A file
    /// that declares more pixels than its bytes can hold, or more than [`OpenOptions::max_pixels`],
    /// is rejected immediately.
    #[doc(alias = "imread")]
    #[track_caller]
    pub fn open(session: &Session, path: impl AsRef<Path>) -> Result<AnyImage> {
        AnyImage::open_with(session, path, &OpenOptions::default())
    }

    /// Reads page `page` of a TIFF file, counted from 0; see [`AnyImage::open`]. Files of other
    /// formats only have page 0.
    ///
    /// # Errors
    /// As [`AnyImage::open`]; also if there is no such page.
    #[track_caller]
    pub fn open_page(session: &Session, path: impl AsRef<Path>, page: usize) -> Result<AnyImage> {
        AnyImage::open_with(session, path, &OpenOptions { page: Some(page), ..OpenOptions::default() })
    }

    /// Reads a volume: all pages of a TIFF file as levels, or an npy array of shape
    /// `(depth, height, width)` or `(depth, height, width, channels)`; any other file as one level.
    /// ([`AnyImage::open`] reads an array of three axes as `(height, width, channels)`, and an
    /// array of four axes as a volume.)
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// let volume = Image::from_volume_fn(&session, 5, 4, 3, |z, y, x| (z * y + x) as u8);
    /// for file in ["volume.npy", "volume.tif"] {
    ///     # let file = folder.path().join(file);
    ///     volume.save(&file)?;
    ///     assert_eq!(AnyImage::open_volume(&session, &file)?.convert::<u8>().to_array::<ndarray::Ix4>()?, volume.to_array()?);
    /// }
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open`]; also if pages differ in size or type.
    #[track_caller]
    pub fn open_volume(session: &Session, path: impl AsRef<Path>) -> Result<AnyImage> {
        AnyImage::open_with(session, path, &OpenOptions { volume: true, ..OpenOptions::default() })
    }

    /// [`AnyImage::open`] with options.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/vessels.png");
    /// let options = OpenOptions { max_pixels: 1000, ..OpenOptions::default() };
    /// let error = AnyImage::open_with(&session, file, &options).unwrap_err();
    /// assert!(error.to_string().contains("pixels"), "{error}");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open`] and [`AnyImage::open_page`].
    #[track_caller]
    pub fn open_with(session: &Session, path: impl AsRef<Path>, options: &OpenOptions) -> Result<AnyImage> {
        let path = path.as_ref();
        let site = Call::of("open").site;
        let read = |means: DecodeResources<'_>| {
            session.expect_file(std::fs::metadata(path).map_or(0, |found| found.len()));
            OpenedPicture::at(path, options, session.host_limit(), means)
        };
        AnyImage::decoded(session, path, (read, &|| PictureReader::reopen(path, options)), site)?
            .map_err(|cause| Error::read(path, cause))
    }

    /// [`AnyImage::open_with`] for the bytes that `open` returns, such as those of a file on a server.
    /// Headers are read now. The pixels of pictures whose parts can be decoded separately, such as
    /// tiled TIFF files, are read on demand. Rank 0 calls `open` and reads. Messages name `path`.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::ByteRanges;
    /// #[derive(Debug)]
    /// struct Bytes(Vec<u8>);
    /// impl ByteRanges for Bytes {
    ///     fn size(&self) -> u64 {
    ///         self.0.len() as u64
    ///     }
    ///     fn read_at(&self, at: u64, to: &mut [u8]) -> Result<(), String> {
    ///         to.copy_from_slice(&self.0[at as usize..][..to.len()]);
    ///         Ok(())
    ///     }
    /// }
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let (file, options) = (b"P5 3 1 255 \x01\x02\x03", OpenOptions::default());
    /// let image = AnyImage::open_ranges(&session, "three.pgm", &options, || Ok(Box::new(Bytes(file.to_vec()))))?;
    /// assert_eq!(image.convert::<u8>().to_vec()?, [1, 2, 3]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open_with`]; [`Error::File`] with the error of `open`.
    #[track_caller]
    pub fn open_ranges(
        session: &Session,
        path: impl AsRef<Path>,
        options: &OpenOptions,
        open: impl FnOnce() -> Result<Box<dyn ByteRanges>, String>,
    ) -> Result<AnyImage> {
        let path = path.as_ref();
        let site = Location::caller();
        let read = |means: DecodeResources<'_>| {
            let ranges = open()?;
            session.expect_file(ranges.size());
            OpenedPicture::of_ranges(ranges.into(), path, options, session.host_limit(), means)
        };
        AnyImage::decoded(session, path, (read, &|| None), site)?.map_err(|cause| Error::read(path, cause))
    }

    /// The size of the pixels; see [`pixel_size`].
    pub fn pixel_size(&self) -> Option<PixelSize> {
        each!(self, image => pixel_size(image))
    }

    /// Sets or removes the size of the pixels; see [`with_pixel_size`](super::with_pixel_size).
    pub fn with_pixel_size(&self, size: Option<PixelSize>) -> AnyImage {
        AnyImage::from_handle(sized(self.handle(), size))
    }

    /// Sets the names of the channels, or removes them if `names` is empty. Named channels are
    /// separate planes, not colours of one pixel. OME-TIFF files and OME-Zarr stores of this image,
    /// or of images computed from it, contain the names. Only the names on rank 0 matter, because
    /// it writes files.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("cells.ome.tif");
    /// let cells = AnyImage::U8(Image::from_slice(&session, Shape::new(1, 2, 3), &[1u8, 2, 3, 4, 5, 6]));
    /// let named = cells.with_channel_names(["DAPI", "GFP", "RFP"].map(String::from).to_vec());
    /// named.convert::<u8>().median(3).save(&file)?;
    /// assert_eq!(AnyImage::open(&session, &file)?.channel_names(), ["DAPI", "GFP", "RFP"]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn with_channel_names(&self, names: Vec<String>) -> AnyImage {
        let mut handle = self.handle().clone();
        handle.attributes = Attributes::with_names(handle.attributes.as_ref(), names);
        AnyImage::from_handle(handle)
    }

    /// Declares the pixels labels, or truth values: numbers that have no means. Smaller sizes of this
    /// image, or of its parts, then consist of the most frequent value
    /// ([`SaveOptions::resampling`](super::SaveOptions::resampling)). Only the call on rank 0
    /// matters, because it writes files.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let cells = AnyImage::U8(Image::from_slice(&session, (2, 2), &[7u8, 0, 9, 9]));
    /// let half = |cells: &AnyImage| horus::io::sizes_of(&cells.convert::<u8>(), 2, None)?[1].to_vec();
    /// assert_eq!((half(&cells)?, half(&cells.with_labels())?), (vec![6], vec![9]));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    pub fn with_labels(&self) -> AnyImage {
        let mut handle = self.handle().clone();
        handle.attributes = Attributes::with_labels(handle.attributes.as_ref(), handle.dtype);
        AnyImage::from_handle(handle)
    }

    /// The names of the channels, known on rank 0; an empty string for a channel without a name,
    /// and an empty slice if no name is known.
    pub fn channel_names(&self) -> &[String] {
        each!(self, image => channel_names(image))
    }

    /// An image of the picture that `read` returns. `read` is called on rank 0 only.
    ///
    /// # Errors
    /// The error of `read`, on every rank.
    pub(crate) fn from_root(
        session: &Session,
        path: &Path,
        site: Site,
        read: impl FnOnce() -> Result<Picture, String>,
    ) -> Result<AnyImage> {
        let read = |_: DecodeResources<'_>| Ok(OpenedPicture::Decoded(read()?));
        AnyImage::decoded(session, path, (read, &|| None), site)?.map_err(|cause| Error::read(path, cause))
    }

    /// Calls `open` on rank 0 only and returns its result or error on every rank. The other ranks
    /// read a picture on demand themselves if `reopen` gives them the same. Messages name `path`.
    pub(super) fn decoded(
        session: &Session,
        path: &Path,
        (open, reopen): (
            impl FnOnce(DecodeResources<'_>) -> Result<OpenedPicture, String>,
            &dyn Fn() -> Option<PictureReader>,
        ),
        site: Site,
    ) -> Result<Result<AnyImage, String>> {
        let (mut pixels, mut reader, mut said) = (None, None, Metadata::default());
        let answer = on_root(session, "opening a picture", || {
            let (room, reserve) = (|bytes| session.room(bytes), |bytes| session.reserve(bytes));
            let known =
                match open(DecodeResources { workers: session.workers(), allocate: &room, reserve: Some(&reserve) })? {
                    OpenedPicture::OnDemand(found, metadata) => {
                        said = *metadata;
                        SharedPicture::Later(OnDemandPicture::of(reader.insert(*found), 0)?)
                    }
                    OpenedPicture::ExceedsMemory(found, metadata, bytes) => {
                        said = *metadata;
                        SharedPicture::Later(OnDemandPicture::of(reader.insert(*found), bytes)?)
                    }
                    OpenedPicture::Decoded(picture) => {
                        let known = opened(picture.shape(), picture.dtype())?;
                        said = picture.metadata().clone();
                        pixels = Some(picture.into_pixels());
                        SharedPicture::Now(known)
                    }
                };
            Ok((known, said.pixel, said.alpha.map(|alpha| alpha == Alpha::Associated)))
        })?;
        let (known, pixel, associated) = match answer {
            Ok(known) => known,
            Err(cause) => return Ok(Err(cause)),
        };
        let image = match known {
            SharedPicture::Now((shape, dtype)) => {
                AnyImage::from_handle(session.source_on_root(shape, dtype, pixels, site))
            }
            SharedPicture::Later(known) => {
                let source = reader.map(|reader| Arc::new(reader) as Arc<dyn RegionSource>);
                let reopen = || reopen().map(|reader| Box::new(reader) as Box<dyn RegionSource>);
                AnyImage::later(session, path, known, (source, reopen), site)?
            }
        };
        let alpha = associated.map(|is| if is { Alpha::Associated } else { Alpha::Unassociated });
        Ok(Ok(image.with_metadata(Metadata { pixel, alpha, ..said })))
    }

    /// Sets the metadata of a picture: the size of pixels and alpha on every rank, the rest on rank
    /// 0.
    pub(crate) fn with_metadata(&self, said: Metadata) -> AnyImage {
        let mut handle = self.handle().clone();
        handle.attributes = Attributes::of(said, handle.dtype);
        AnyImage::from_handle(handle)
    }

    /// An image of a decoded picture. Every rank passes the same picture; [`AnyImage::open_with`]
    /// decodes on rank 0 only.
    #[track_caller]
    pub fn from_picture(session: &Session, picture: Picture) -> AnyImage {
        AnyImage::of_picture(session, picture, Location::caller())
    }

    /// [`AnyImage::from_picture`] for a call of the program at `site`.
    pub(crate) fn of_picture(session: &Session, picture: Picture, site: Site) -> AnyImage {
        let (shape, dtype, said) = (picture.shape(), picture.dtype(), picture.metadata().clone());
        let image = AnyImage::from_handle(session.source(shape, dtype, picture.into_pixels(), site));
        image.with_metadata(said)
    }

    pub(crate) fn from_handle(handle: Handle) -> AnyImage {
        match handle.dtype {
            DType::U8 | DType::Bool => AnyImage::U8(Image::from_handle(handle)),
            DType::U16 => AnyImage::U16(Image::from_handle(handle)),
            DType::U32 => AnyImage::U32(Image::from_handle(handle)),
            DType::I8 => AnyImage::I8(Image::from_handle(handle)),
            DType::I16 => AnyImage::I16(Image::from_handle(handle)),
            DType::I32 => AnyImage::I32(Image::from_handle(handle)),
            DType::F32 => AnyImage::F32(Image::from_handle(handle)),
            DType::F64 => AnyImage::F64(Image::from_handle(handle)),
        }
    }

    /// Returns the image's error, on every rank.
    #[track_caller]
    #[cfg(feature = "image")]
    pub(super) fn look(&self) -> Result<()> {
        each!(self, image => image.look())
    }

    pub(crate) fn handle(&self) -> &Handle {
        each!(self, image => image.handle())
    }

    /// Levels, rows, columns and channels.
    pub fn shape(&self) -> Shape {
        each!(self, image => image.shape())
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        each!(self, image => image.dtype())
    }

    /// Converts the pixels to type `T` without scaling; see [`Image::convert`].
    #[track_caller]
    pub fn convert<T: Pixel>(&self) -> Image<T> {
        each!(self, image => image.convert())
    }

    /// Converts the pixels to `f32` and scales `0..=MAX` of an integer type to `0..=1`; floats keep
    /// their values.
    #[track_caller]
    pub fn to_unit(&self) -> Image<f32> {
        match self {
            AnyImage::U8(image) => image.to_unit(),
            AnyImage::U16(image) => image.to_unit(),
            AnyImage::U32(image) => image.to_unit(),
            AnyImage::I8(image) => image.to_unit(),
            AnyImage::I16(image) => image.to_unit(),
            AnyImage::I32(image) => image.to_unit(),
            AnyImage::F32(image) => image.clone(),
            AnyImage::F64(image) => image.convert(),
        }
    }

    /// All channels but [alpha](AnyImage::alpha).
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// use horus::io::Alpha;
    /// let bands = AnyImage::U8(Image::from_slice(&session, Shape::new(1, 1, 4), &[9u8, 8, 7, 255]));
    /// assert!(bands.alpha().is_none() && bands.colours().shape().channels == 4);
    /// let picture = bands.with_alpha(Some(Alpha::Unassociated));
    /// assert_eq!(picture.colours().convert::<u8>().to_vec()?, [9, 8, 7]);
    /// assert_eq!(picture.alpha().expect("the last").convert::<u8>().to_vec()?, [255]);
    /// assert!(picture.colours().alpha().is_none());
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    #[track_caller]
    pub fn colours(&self) -> AnyImage {
        #[track_caller]
        fn without_last<T: Pixel>(image: &Image<T>) -> AnyImage {
            let colours: Vec<Image<T>> = (0..image.channels() - 1).map(|i| image.channel(i)).collect();
            let [grey] = &colours[..] else {
                return AnyImage::from_handle(Image::stack(image.session(), &colours, Axis::Channels).handle().clone());
            };
            AnyImage::from_handle(grey.handle().clone())
        }
        if self.has_alpha() { each!(self, image => without_last(image)) } else { self.clone() }
    }

    /// The alpha channel: the last channel, if the file declares it as alpha (`ExtraSamples` of
    /// TIFF, the type of PNG, WebP and PAM, a mask of BMP, `A` of OpenEXR), or the program does
    /// ([`AnyImage::with_alpha`]). Results of operations that keep the channels, and stacks with
    /// alpha last, also have alpha. Most operations treat all channels alike;
    /// [`AnyImage::luminance`] and [`AnyImage::colours`] omit alpha.
    #[track_caller]
    pub fn alpha(&self) -> Option<AnyImage> {
        let last = self.shape().channels.wrapping_sub(1);
        self.has_alpha().then(|| each!(self, image => AnyImage::from_handle(image.channel(last).handle().clone())))
    }

    /// Declares the last channel as alpha, or removes this declaration. Saved TIFF files contain
    /// it.
    pub fn with_alpha(&self, alpha: Option<Alpha>) -> AnyImage {
        AnyImage::from_handle(with_last(self.handle(), alpha))
    }

    fn has_alpha(&self) -> bool {
        each!(self, image => alpha(image)).is_some()
    }

    /// The [luminance](Image::luminance), on the scale of [`AnyImage::to_unit`].
    /// [Alpha](AnyImage::alpha) is ignored: transparent pixels count with their stored colours. Any
    /// number of colours except one and three is an error.
    #[track_caller]
    pub fn luminance(&self) -> Image<f32> {
        each!(self, image => image.luminance())
    }

    /// Converts to an image of type `T`, scaled as described at [`AnyImage::open`]; the error is
    /// the reason why that is impossible.
    #[track_caller]
    pub(super) fn typed<T: Pixel>(&self) -> Result<Image<T>, String> {
        let (has, wanted) = (self.dtype(), T::DTYPE);
        if has == wanted {
            return Ok(self.convert());
        }
        if !wanted.is_float() {
            return Err(format!(
                "it has {has} pixels, not {wanted}: open it as Image::<{has}>, or with AnyImage::open and then \
                 convert::<{wanted}>(), which keeps the values as far as {wanted} can hold them"
            ));
        }
        Ok(match (self.full_range(), wanted) {
            (None, _) => self.convert(),
            (Some(full), DType::F64) => (self.convert::<f64>() / full).convert(),
            (Some(full), _) => (self.convert::<f32>() / full as f32).convert(),
        })
    }

    /// The largest value of an integer type.
    fn full_range(&self) -> Option<f64> {
        fn highest<T: Pixel>(_: &Image<T>) -> f64 {
            T::HIGHEST.to_f64()
        }
        (!self.dtype().is_float()).then(|| each!(self, image => highest(image)))
    }
}

impl Session {
    /// Reads a picture; see [`AnyImage::open`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../assets/vessels.png");
    /// let image = session.open(file)?.luminance(); // f32 in 0..=1
    /// assert!(image.max_value().get()? <= 1.0);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open`].
    #[track_caller]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<AnyImage> {
        AnyImage::open(self, path)
    }

    /// Reads a volume; see [`AnyImage::open_volume`].
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("cells.tif");
    /// Image::from_volume_fn(&session, 5, 4, 3, |z, y, x| (z * y + x) as u8).save(&file)?;
    /// assert_eq!(session.open_volume(&file)?.shape().depth, 5);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open_volume`].
    #[track_caller]
    pub fn open_volume(&self, path: impl AsRef<Path>) -> Result<AnyImage> {
        AnyImage::open_volume(self, path)
    }
}

impl<T: Pixel> Image<T> {
    /// Reads a picture as an image of type `T`. As `f32` or `f64`, integer pictures are scaled to
    /// `0..=1` and float pictures keep their values (see [`AnyImage::open`]). As an integer type,
    /// only pictures of the same type are read.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// # let folder = tempfile::tempdir().expect("a folder");
    /// # let file = folder.path().join("steps.png");
    /// Image::from_slice(&session, (1, 3), &[0u16, 13107, 65535]).save(&file)?;
    /// assert_eq!(Image::<u16>::open(&session, &file)?.to_vec()?, [0, 13107, 65535]);
    /// assert_eq!(Image::<f32>::open(&session, &file)?.to_vec()?, [0.0, 0.2, 1.0]);
    /// assert!(Image::<u8>::open(&session, &file).is_err(), "8 bits do not hold it");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open`]; also if `T` is an integer type and the file has pixels of another
    /// type.
    #[track_caller]
    pub fn open(session: &Session, path: impl AsRef<Path>) -> Result<Image<T>> {
        let path = path.as_ref();
        AnyImage::open(session, path)?.typed().map_err(|cause| Error::read(path, cause))
    }
}
