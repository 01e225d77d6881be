//! Decoding of files to pixels.

use std::any::Any;
use std::cell::Cell;
use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Once;

use super::{
    Decode, DecodeResources, MEMORY_LIMIT, Metadata, OpenOptions, Picture, PictureFormat, PictureHeader, PictureSource,
    check_capacity, check_size, profile,
};
use horus_host::buffer::HostBuffer;
use horus_host::workers::Workers;

/// Reads and decodes a file. The error is the cause, without the path.
pub(super) fn read(path: &Path, options: &OpenOptions, means: DecodeResources<'_>) -> Result<Picture, String> {
    first(&PictureSource::open(path)?, &path.display(), options, means)
}

/// Decodes a picture called `name`, and warns of ignored pages.
pub(super) fn first(
    source: &PictureSource<'_>,
    name: &dyn Display,
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Result<Picture, String> {
    let (picture, unread) = decode(source, options, means)?;
    warn_unread(name, unread.as_deref());
    let said = Metadata::of(source, options, picture.shape().channels, picture.metadata().tile);
    Ok(picture.with_metadata(said))
}

/// Warns of ignored pages.
pub(super) fn warn_unread(name: &dyn Display, unread: Option<&str>) {
    if let Some(unread) = unread {
        horus_base::warn!("{name}{unread}");
    }
}

/// Decodes a picture; also returns a warning about pages that are not read.
pub(super) fn decode(
    source: &PictureSource<'_>,
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Result<(Picture, Option<String>), String> {
    let format = source.format();
    one_picture(format, options)?;
    let picture = format.read(source, options, means)?;
    // Only for a readable file, and only if no page was requested.
    Ok((picture, format.unread(source, options)))
}

/// Rejects pages and levels beyond the first in formats without them.
pub(super) fn one_picture(format: &dyn PictureFormat, options: &OpenOptions) -> Result<(), String> {
    match (format.facts().pages, options.page, options.level) {
        (true, ..) | (_, None | Some(0), 0) => Ok(()),
        (_, None | Some(0), level) => {
            Err(format!("level {level} requested, but only TIFF files have smaller copies of a picture"))
        }
        (_, Some(page), _) => Err(no_page(page, 1)),
    }
}

pub(super) fn no_page(page: usize, pages: usize) -> String {
    format!("page {page} requested, but it has {pages} (pages start at 0)")
}

/// Runs a decoder and converts its panic to an error.
///
/// Third-party decoders panic on some corrupt files (an index, an assertion). This is an error of the file, not of the
/// program: only the result outlives the decoder, and the text of the panic is in the error, not on the standard error
/// stream. (A program built with `panic = "abort"` still ends.)
///
/// The decoder runs on this thread: work that it passes to other threads must be guarded there.
///
/// # Errors
/// Errors of the decoder, and a message for a panic.
pub fn guarded<R>(decode: impl FnOnce() -> Result<R, String>) -> Result<R, String> {
    thread_local! {
        /// Panics of this thread are errors of a file.
        static GUARDED: Cell<bool> = const { Cell::new(false) };
    }
    // A process has one hook. This one passes all other panics to the previous hook. If a program sets a hook later, it
    // replaces this one and also prints these panics.
    static HOOK: Once = Once::new();
    if !std::thread::panicking() {
        HOOK.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                if !GUARDED.get() {
                    before(panic);
                }
            }));
        });
    }
    let said = |panic: Box<dyn Any + Send>| match panic.downcast::<String>() {
        Ok(text) => *text,
        Err(panic) => panic.downcast::<&str>().map_or_else(|_| "no reason given".into(), |text| (*text).to_owned()),
    };
    let around = GUARDED.replace(true);
    let decoded = catch_unwind(AssertUnwindSafe(decode));
    GUARDED.set(around);
    decoded.unwrap_or_else(|panic| Err(format!("the decoder failed ({})", said(panic))))
}

/// Runs a decoder of metadata; metadata that cannot be decoded counts as absent.
pub(super) fn decode_metadata<R>(read: impl FnOnce() -> Option<R>) -> Option<R> {
    guarded(|| Ok(read())).ok().flatten()
}

/// Decodes a whole file and returns the requested region.
pub(super) fn whole(
    format: &(impl PictureFormat + ?Sized),
    source: &PictureSource<'_>,
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Result<Picture, String> {
    means.expect(source)?;
    let picture = guarded(|| all(format, &source.all(means.allocate)?, options, means))?;
    picture.cropped(options.region, means)
}

fn all(
    format: &(impl PictureFormat + ?Sized),
    bytes: &[u8],
    options: &OpenOptions,
    means: DecodeResources<'_>,
) -> Result<Picture, String> {
    format.is_complete(bytes)?;
    let (header, decoder) = format.decoder(bytes)?;
    let beside = checked(&header, &*decoder, bytes.len() as u64, options, means.workers)?;
    // All allocations in one check: the error names a limit for all.
    let own = pixels_of(&header, options);
    drop(means.reserved(usize::try_from(beside.saturating_add(own)).map_err(|e| e.to_string())?)?);
    let _beside = means.reserved(usize::try_from(beside).map_err(|e| e.to_string())?)?;
    if let Some(bytes) = header.profile {
        profile::log_unapplied_profile(bytes);
    }
    options.orientation.of(pixels(header, decoder, means)?, header.orientation, means)
}

/// Bytes of the pixels of a picture while it is decoded: twice as many if it is reoriented.
fn pixels_of(header: &PictureHeader, options: &OpenOptions) -> u64 {
    let size = (header.shape.len() as u64).saturating_mul(header.dtype.size() as u64);
    if options.orientation.turns(header.orientation) { size.saturating_mul(2) } else { size }
}

/// Bytes that a decoder uses in addition to the pixels and the file, which has `bytes` bytes.
///
/// # Errors
/// A message, if the picture is larger than allowed or than its file can encode.
fn checked(
    header: &PictureHeader,
    decoder: &dyn Decode,
    bytes: u64,
    options: &OpenOptions,
    workers: &Workers,
) -> Result<u64, String> {
    let (w, h) = (header.shape.width as u64, header.shape.height as u64);
    check_size(h, w, options)?;
    check_capacity(h, w, Some(decoder.most(w, bytes)), bytes)?;
    let size = header.shape.len() as u64 * header.dtype.size() as u64;
    if size > MEMORY_LIMIT {
        return Err(format!("{w}x{h} pixels need {size} bytes; the limit is {MEMORY_LIMIT}"));
    }
    Ok(decoder.scratch_bytes(header, workers))
}

/// Bytes for decoding a whole picture: file, pixels, and the decoder's memory.
///
/// # Errors
/// A message, if the file cannot be decoded.
pub(super) fn decoding_bytes(
    source: &PictureSource<'_>,
    options: &OpenOptions,
    workers: &Workers,
) -> Result<usize, String> {
    /// Larger files are not read for this.
    const SMALL: u64 = 1 << 20;
    let format = source.format();
    // The bytes before the pixels suffice.
    let head = if format.facts().uses_hidden_memory { format.without_pixels(source) } else { None };
    let all = if head.is_none() && source.size() < SMALL { Some(source.all(&HostBuffer::try_zeroed)?) } else { None };
    let bytes = head.as_deref().or(all.as_deref());
    let pixels = match bytes.and_then(|bytes| guarded(|| format.decoder(bytes)).ok()) {
        Some((header, decoder)) => {
            checked(&header, &*decoder, source.size(), options, workers)?.saturating_add(pixels_of(&header, options))
        }
        None => {
            let header = guarded(|| format.header(source, options))?;
            check_size(header.shape.height as u64, header.shape.width as u64, options)?;
            pixels_of(&header, options)
        }
    };
    usize::try_from(pixels.saturating_add(source.size())).map_err(|e| e.to_string())
}

fn pixels(header: PictureHeader, decoder: Box<dyn Decode + '_>, means: DecodeResources<'_>) -> Result<Picture, String> {
    let PictureHeader { shape, dtype, .. } = header;
    if shape.is_empty() {
        return Err("the picture has no pixels".into());
    }
    let mut pixels = (means.allocate)(shape.len() * dtype.size()).map_err(|e| e.to_string())?;
    decoder.read(&header, pixels.bytes_mut(), means.workers)?;
    Ok(Picture::from_pixels(shape, dtype, pixels))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In its own process. Its standard error stream shows no panics of decoders, but shows others.
    #[test]
    fn a_panic_of_a_decoder_is_not_printed() {
        const CHILD: &str = "HORUS_TEST_OF_PANICS";
        if std::env::var_os(CHILD).is_some() {
            assert!(guarded(|| -> Result<(), String> { panic!("unheard") }).is_err());
            let nested = guarded(|| -> Result<(), String> {
                assert!(guarded(|| -> Result<(), String> { panic!("unheard") }).is_err());
                panic!("unheard")
            });
            assert!(nested.is_err());
            assert!(catch_unwind(|| panic!("of the program")).is_err());
            return;
        }
        let name = "decode::tests::a_panic_of_a_decoder_is_not_printed";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let out = child.args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().unwrap();
        let told = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success() && told.contains("of the program") && !told.contains("unheard"), "{told}");
    }

    #[test]
    fn a_panic_of_a_decoder_is_an_error() {
        let said = |panic: fn() -> Result<(), String>| guarded(panic).err().unwrap();
        assert_eq!(said(|| panic!("at {}", 7)), "the decoder failed (at 7)");
        assert_eq!(said(|| panic!("plainly")), "the decoder failed (plainly)");
    }
}
