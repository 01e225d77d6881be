//! Picture files in memory and in streams.

use std::io::{Cursor, Read, Seek, Write};
use std::panic::Location;
use std::path::Path;

use tempfile::spooled_tempfile;

use super::save::{decode_scale, encode_scale, encoded};
use super::{
    AnyImage, DecodeResources, Encoder, Format, IN_MEMORY, OpenOptions, OpenedPicture, Picture, SPOOLED, SaveOptions,
    Saving, Scale, cause,
};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Error, Result};
use crate::image::{Image, Pixels};
use crate::session::Session;

fn unreadable(cause: String) -> Error {
    Error::read(Path::new(IN_MEMORY), cause)
}

/// A picture of these pixels, as an input of a [series](crate::session::Session::series) or for
/// [`save_to`](crate::io::save_to). A clone shares the memory.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, io::Picture, prelude::*};
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let mut frames = Vec::new();
/// for i in 0..3u8 {
///     let mut frame = session.pixels::<u8>(2, 2, 1)?;
///     frame.fill(i); // as a camera would
///     frames.push(Picture::from(frame));
/// }
/// let mut means = Vec::new();
/// for item in session.series(frames, |picture| picture.convert::<f32>().mean()).values() {
///     means.push(item.result?);
/// }
/// assert_eq!(means, [0.0, 1.0, 2.0]);
/// # Ok::<(), horus_core::error::Error>(())
/// ```
impl<T: Element> From<Pixels<T>> for Picture {
    fn from(pixels: Pixels<T>) -> Picture {
        Picture::from_pixels(pixels.shape(), T::TAG, pixels.into_buffer())
    }
}

/// Pictures in memory. On several ranks the bytes of rank 0 are used, and all ranks get the
/// picture.
impl AnyImage {
    /// Decodes the bytes of a picture file, as [`AnyImage::open`] decodes a file.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::Format;
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 3), &[0u8, 51, 255]);
    /// let file: Vec<u8> = image.encode(Format::Png, &SaveOptions::default())?;
    /// assert_eq!(AnyImage::read(&session, &file)?.to_unit().to_vec()?, [0.0, 0.2, 1.0]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open`].
    #[track_caller]
    pub fn read(session: &Session, bytes: &[u8]) -> Result<AnyImage> {
        AnyImage::read_with(session, bytes, &OpenOptions::default())
    }

    /// [`AnyImage::read`] with options.
    ///
    /// # Errors
    /// As [`AnyImage::open_with`].
    #[track_caller]
    pub(crate) fn read_with(session: &Session, bytes: &[u8], options: &OpenOptions) -> Result<AnyImage> {
        let decode = |means: DecodeResources<'_>| OpenedPicture::of(bytes, options, means);
        AnyImage::decoded(session, Path::new(IN_MEMORY), (decode, &|| None), Location::caller())?.map_err(unreadable)
    }

    /// Reads a picture file from a pipe or a socket to its end, and decodes it. Only rank 0 reads.
    /// A large file is stored in an unnamed temporary file (in `TMPDIR`) and then read like any
    /// file.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let sent: &[u8] = b"P5 2 1 255 \x07\x08"; // or std::io::stdin()
    /// assert_eq!(AnyImage::read_from(&session, sent)?.convert::<u8>().to_vec()?, [7, 8]);
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`AnyImage::open`]; also if reading fails or exceeds 8 GiB.
    #[track_caller]
    pub fn read_from(session: &Session, from: impl Read) -> Result<AnyImage> {
        AnyImage::read_from_with(session, from, &OpenOptions::default())
    }

    /// [`AnyImage::read_from`] with options.
    ///
    /// # Errors
    /// As [`AnyImage::read_from`] and [`AnyImage::open_with`].
    #[track_caller]
    pub fn read_from_with(session: &Session, from: impl Read, options: &OpenOptions) -> Result<AnyImage> {
        let decode = |means: DecodeResources<'_>| OpenedPicture::drain(from, options, session.host_limit(), means);
        AnyImage::decoded(session, Path::new(IN_MEMORY), (decode, &|| None), Location::caller())?.map_err(unreadable)
    }
}

impl<T: Pixel> Image<T> {
    /// Decodes the bytes of a picture file as an image of type `T`, as [`Image::open`] does. On
    /// several ranks the bytes of rank 0 are used.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let file = b"P5 3 1 255 \x00\x33\xff";
    /// assert_eq!(Image::<f32>::read(&session, file)?.to_vec()?, [0.0, 0.2, 1.0]);
    /// assert!(Image::<u16>::read(&session, file).is_err(), "it has 8 bits");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Image::open`].
    #[track_caller]
    pub fn read(session: &Session, bytes: &[u8]) -> Result<Image<T>> {
        AnyImage::read(session, bytes)?.typed().map_err(unreadable)
    }
}

/// Files in memory.
impl<T: Element> Image<T> {
    /// Evaluates the image and returns, on every rank, the bytes of the file that
    /// [`Image::save_with`] writes. [`Image::write_to`] also returns the scale.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::Format;
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 3), &[0.0f32, 0.2, 1.0]);
    /// assert_eq!(image.encode(Format::Pgm, &SaveOptions::default())?, b"P5\n3 1\n255\n\x00\x33\xff");
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error that the image carries; if the format does not support the channels, the size or
    /// the depth; if the program fails.
    #[track_caller]
    pub fn encode(&self, format: Format, options: &SaveOptions) -> Result<Vec<u8>> {
        let saving = Saving::of(self, format, options)?;
        let call = Call::of("encode");
        let (session, mut file) = (self.session(), Cursor::new(Vec::new()));
        let written = encoded(session, saving, call, |encoder| {
            warn(&encoder);
            encoder.write(&mut file, session.workers()).map(drop)
        })?;
        written.map_err(|cause| unwritable(format, cause))?;
        session.comm().broadcast(0, file.get_mut()).map_err(|e| e.during(session.rank(), call.op))?;
        Ok(file.into_inner())
    }

    /// Evaluates the image and writes the complete file in one piece, to a pipe, a socket, or the
    /// standard output. Only rank 0 writes. Returns the scale, on every rank, if values were
    /// scaled.
    ///
    /// ```
    /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
    /// use horus::io::Format;
    /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
    /// let image = Image::from_slice(&session, (1, 3), &[-2.0f32, 0.0, 2.0]);
    /// let mut sent = Vec::new(); // or std::io::stdout()
    /// let range = SaveOptions { scaling: Scaling::Range, ..SaveOptions::default() };
    /// let scale = image.write_to(&mut sent, Format::Pgm, &range)?.expect("floats are scaled");
    /// assert_eq!((scale.low, scale.high, &sent[..]), (-2.0, 2.0, &b"P5\n3 1\n255\n\x00\x80\xff"[..]));
    /// # Ok::<(), horus_core::error::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Image::encode`], and if writing fails.
    #[track_caller]
    pub fn write_to(&self, to: &mut impl Write, format: Format, options: &SaveOptions) -> Result<Option<Scale>> {
        let saving = Saving::of(self, format, options)?;
        let written = encoded(self.session(), saving, Call::of("write_to"), |encoder| {
            warn(&encoder);
            let mut kept = spooled_tempfile(SPOOLED);
            let scale = encoder.write(&mut kept, self.session().workers())?;
            kept.rewind().and_then(|()| std::io::copy(&mut kept, to)).and_then(|_| to.flush()).map_err(cause)?;
            Ok(scale.map(encode_scale))
        })?;
        written.map(|scale| scale.map(decode_scale)).map_err(|cause| unwritable(format, cause))
    }
}

fn warn(encoder: &Encoder) {
    if let Some(warning) = encoder.warning() {
        crate::warn!("a {} picture: {warning}", encoder.format().name());
    }
}

pub(super) fn unwritable(format: Format, cause: String) -> Error {
    Error::write(Path::new(&format!("a {} picture", format.name())), cause)
}
