//! Saving of images that do not fit in memory, region by region.

use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::save::{decode_scale, encode_scale};
use super::{
    Compression, PictureWriter, RegionSink, SaveOptions, Saving, Scale, SinkPlace, SinkRole, cause_of, on_root,
};
use crate::comm::guarded;
use crate::dtype::Element;
use crate::error::{Call, Error, Result};
use crate::host::buffer::HostBuffer;
use crate::image::Image;
use crate::region::Rect;
use crate::session::{
    Delivery, DeliveryTarget, Grain, Handle, RankRows, Session, everywhere, first_of_ranks, parts_of,
};
use crate::shape::Region;

/// Saves an image region by region if it does not fit in memory and the format supports regions;
/// else returns `None`. The inner error is the cause, the same on every rank.
pub(super) fn by_regions(
    path: &Path,
    saving: &Saving,
    options: &SaveOptions,
    call: Call,
    session: &Session,
) -> Result<Option<Result<Option<Scale>, String>>> {
    if !saving.draft.format().by_regions() {
        return Ok(None);
    }
    let handles: Vec<&Handle> = saving.handles.iter().collect();
    let Some((samples, others)) = handles.split_at_checked(options.sizes) else { return Ok(None) };
    let fits = !session.does_not_fit(samples, usize::MAX)?;
    let [first, ..] = samples else { return Ok(None) };
    let can_share = options.sizes == 1 && options.compression == Compression::None;
    let is_shared = !fits || (can_share && session.is_worth_distributing(first)?);
    if fits && !is_shared {
        return Ok(None);
    }
    let begin = |role: SinkRole<'_>| {
        // Devices and pipes only take complete files.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Ok(Vec::new());
        }
        PictureWriter::sinks(path, &saving.draft, role).map_err(cause_of)
    };
    let mut begun = match RegionFiles::begin(session, is_shared, &begin)? {
        Err(cause) => return Ok(Some(Err(cause))),
        Ok(Some(begun)) if begun.is_shared || !fits => begun,
        Ok(_) => return Ok(None),
    };
    // First the range of the values, and the number of values outside.
    let counted: Vec<Option<Arc<HostBuffer>>> =
        if others.is_empty() { Vec::new() } else { session.bring(others, call)? };
    let failing = |cause| Error::write(path, cause);
    if fits {
        begun.put(samples, call, &failing)?
    } else {
        begun.stream(samples, call, &failing)?
    }
    let saved = begun.finish(session, || {
        let (scale, clipped) = saving.draft.scale_and_clipping(&mut counted.into_iter().flatten());
        if let Some(warning) = clipped.warning {
            crate::warn!("{}: {warning}", path.display());
        }
        clipped.error.map_or(Ok(scale.map(encode_scale)), Err)
    })?;
    Ok(Some(saved.map(|scale| scale.map(decode_scale))))
}

/// Begins files, or opens what rank 0 has begun.
type BeginSinks<'a> = &'a dyn Fn(SinkRole<'_>) -> Result<Vec<Box<dyn RegionSink>>, String>;

/// Files begun by rank 0, one for each value.
struct RegionFiles {
    /// On rank 0, and on every rank if they are shared.
    sinks: Vec<Box<dyn RegionSink>>,
    /// The sizes of regions that the sinks take.
    grains: Vec<Grain>,
    /// Each rank writes its rows.
    is_shared: bool,
}

impl RegionFiles {
    /// Calls `begin` on rank 0 and, if ranks are to share the file, on the other ranks if they can
    /// open what it has begun; `Ok(None)` if it returns no sinks. The ranks share a file if there is
    /// one and all can write to it.
    fn begin(session: &Session, is_shared: bool, begin: BeginSinks<'_>) -> Result<Result<Option<RegionFiles>, String>> {
        let mut sinks = Vec::new();
        let is_shared = is_shared && session.ranks() > 1;
        let created = on_root(session, "creating a file for a picture", || {
            sinks = begin(SinkRole::First)?;
            let grains = sinks.iter().map(|sink| Grain { chunk: sink.chunk(), levels: sink.levels() });
            let place = if let [one] = &sinks[..] { one.place() } else { None };
            let place =
                place.and_then(|place| Some((place.path.to_str()?.to_owned(), place.is_one_file, place.layout)));
            Ok((grains.collect::<Vec<Grain>>(), place.filter(|_| is_shared)))
        })?;
        let (grains, place) = match created {
            Ok((grains, _)) if grains.is_empty() => return Ok(Ok(None)),
            Ok(created) => created,
            Err(cause) => return Ok(Err(cause)),
        };
        let is_of_other_host = session.comm().node() > 0;
        let opened =
            place.as_ref().filter(|(_, is_one_file, _)| session.rank() > 0 && !(is_of_other_host && *is_one_file));
        if let Some((path, is_one_file, layout)) = opened {
            let place =
                SinkPlace { path: path.into(), is_one_file: *is_one_file, is_of_other_host, layout: layout.clone() };
            let open = || begin(SinkRole::Other(&place)).unwrap_or_default();
            sinks = guarded(session.comm(), "creating a file for a picture", open);
        }
        let is_shared = place.is_some() && everywhere(session, "creating a file for a picture", !sinks.is_empty())?;
        if !is_shared && session.rank() > 0 {
            sinks.clear();
        }
        Ok(Ok(Some(RegionFiles { sinks, grains, is_shared })))
    }

    /// Computes values region by region and writes the regions.
    fn stream(&mut self, values: &[&Handle], call: Call, failing: &dyn Fn(String) -> Error) -> Result<()> {
        let session = &values[0].session;
        let (chunk, sinks) = (self.shared_chunk(), &mut self.sinks);
        let mut put = |Delivery { of, levels, region }: Delivery, pixels: Option<&[u8]>| {
            let sink = sinks.get_mut(of).ok_or("another rank writes the file")?;
            match pixels {
                Some(pixels) => sink.put_levels(levels, region.inside(), pixels, session.workers()),
                None => sink.leave(levels, region.inside()),
            }
        };
        session.stream(values, &self.grains, call, DeliveryTarget { put: &mut put, failing, chunk })
    }

    /// Rows and columns of the chunks of a shared file.
    fn shared_chunk(&self) -> Option<(usize, usize)> {
        self.grains.first().map(|grain| grain.chunk).filter(|_| self.is_shared)
    }

    /// Computes values and writes all of them.
    fn put(&mut self, values: &[&Handle], call: Call, failing: &dyn Fn(String) -> Error) -> Result<()> {
        let session = &values[0].session;
        if let (Some((chunk, _)), [value], [sink]) = (self.shared_chunk(), values, &mut self.sinks[..]) {
            let RankRows { rows, pixels } = session.bring_rows(value, chunk)?;
            let levels = 0..value.shape.depth;
            let put = parts_of(Rect::whole(value.shape), rows).into_iter().try_for_each(|(region, is_own)| {
                let region = region.inside();
                match is_own {
                    true => sink.put_levels(levels.clone(), region, pixels.bytes(), session.workers()),
                    false => sink.leave(levels.clone(), region),
                }
            });
            return first_of_ranks(session, "putting pixels", put.err())?.map_or(Ok(()), |cause| Err(failing(cause)));
        }
        let brought = session.bring(values, call)?;
        let put = on_root(session, "putting pixels", || {
            for ((value, pixels), sink) in values.iter().zip(brought).zip(&mut self.sinks) {
                let pixels = pixels.ok_or("rank 0 has no pixels")?;
                sink.put(Region::whole(value.shape), pixels.bytes(), session.workers())?;
            }
            Ok(())
        })?;
        put.map_err(failing)
    }

    /// Calls `tell` on rank 0 and returns its result on every rank. Completes the file unless the
    /// result is an error: on rank 0 when the other ranks have completed their parts.
    fn finish<T: Serialize + DeserializeOwned>(
        mut self,
        session: &Session,
        tell: impl FnOnce() -> Result<T, String>,
    ) -> Result<Result<T, String>> {
        if self.is_shared {
            let parts = if session.rank() > 0 { std::mem::take(&mut self.sinks) } else { Vec::new() };
            let finished = parts.into_iter().try_for_each(RegionSink::finish);
            if let Some(cause) = first_of_ranks(session, "saving a picture", finished.err())? {
                return Ok(Err(cause));
            }
        }
        on_root(session, "saving a picture", || {
            let told = tell()?;
            self.sinks.into_iter().try_for_each(RegionSink::finish)?;
            Ok(told)
        })
    }
}

/// Evaluates the image and writes it to the sink that `begin` returns, region by region if it does
/// not fit in memory. [`Image::save_with`] does this for picture files. Rank 0 calls `begin`, before
/// anything is computed, and writes; if its sink has a [place](RegionSink::place), the other ranks
/// call `begin` with it, and each rank writes its rows. All ranks return the same. Messages name
/// `path`.
/// Samples have the type of the image; masks are bytes 0 and 1.
///
/// ```
/// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
/// use horus::io::{RegionSink, Workers};
/// # use std::sync::{Arc, Mutex};
/// /// Adds up what it gets.
/// struct Sum(u32, Arc<Mutex<u32>>);
/// impl RegionSink for Sum {
///     fn chunk(&self) -> (usize, usize) {
///         (16, 16)
///     }
///     fn put(&mut self, _: Region, pixels: &[u8], _: &Workers) -> Result<(), String> {
///         self.0 += pixels.iter().map(|p| u32::from(*p)).sum::<u32>();
///         Ok(())
///     }
///     fn finish(self: Box<Self>) -> Result<(), String> {
///         *self.1.lock().unwrap() = self.0;
///         Ok(())
///     }
/// }
/// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
/// let total = Arc::new(Mutex::new(0));
/// let image = Image::from_fn(&session, 20, 30, |_, x| x as u8);
/// horus::io::save_to(&image, "a sum", |_| Ok(Box::new(Sum(0, Arc::clone(&total)))))?;
/// assert_eq!(*total.lock().unwrap(), 20 * (29 * 30 / 2));
/// # Ok::<(), horus_core::error::Error>(())
/// ```
///
/// # Errors
/// The error that the image carries; [`Error::File`] with the error of `begin` or the sink; if the
/// program fails. The sink is then dropped without `finish`.
#[track_caller]
pub fn save_to<T: Element>(
    image: &Image<T>,
    path: impl AsRef<Path>,
    begin: impl Fn(SinkRole<'_>) -> Result<Box<dyn RegionSink>, String>,
) -> Result<()> {
    save_all_to(std::slice::from_ref(image), path, |role| Ok(vec![begin(role)?]))
}

/// Evaluates images of one session and depth together and writes each to one of the sinks that
/// `begin` returns: [`save_to`] for a pyramid, for example, whose source is then read once. Regions
/// of the first image are whole chunks of its sink. Regions of the other images cover the same part
/// of the picture, whatever chunks their sinks have. Independent levels are computed in slabs if
/// sources and sinks store levels separately ([`RegionSource::levels`], [`RegionSink::levels`]) and
/// the images are large or do not fit in memory.
///
/// # Errors
/// As [`save_to`]; also if there are no images, images of several sessions or depths, or an image
/// larger than the first.
///
/// [`RegionSource::levels`]: super::RegionSource::levels
#[track_caller]
pub fn save_all_to<T: Element>(
    images: &[Image<T>],
    path: impl AsRef<Path>,
    begin: impl Fn(SinkRole<'_>) -> Result<Vec<Box<dyn RegionSink>>, String>,
) -> Result<()> {
    let call = Call::of("save_to");
    images.iter().try_for_each(Image::look)?;
    let Some(first) = images.first() else { return Err(Error::parameter(call, "no images")) };
    let session = first.session();
    if images.iter().any(|image| !session.same(image.session())) {
        return Err(Error::ForeignImage { op: call.op, site: call.site });
    }
    let within = |image: &Image<T>| image.height() <= first.height() && image.width() <= first.width();
    if !images.iter().all(|image| image.depth() == first.depth() && within(image)) {
        return Err(Error::parameter(call, "images of different depths, or larger than the first"));
    }
    let failed = |cause| Error::write(path.as_ref(), cause);
    let values: Vec<&Handle> = images.iter().map(Image::handle).collect();
    let is_shared = session.is_worth_distributing(first.handle())?;
    let begun = RegionFiles::begin(session, is_shared, &|role| {
        let sinks = begin(role)?;
        if sinks.len() == images.len() {
            Ok(sinks)
        } else {
            Err(format!("{} sinks for {} images", sinks.len(), images.len()))
        }
    })?;
    let mut begun = begun.map_err(failed)?.ok_or_else(|| failed("rank 0 has no file".to_owned()))?;
    let levels = Grain::levels(&begun.grains);
    let parts = session.does_not_fit(&values, levels)? || session.comes_in_slabs(&values, levels)?;
    if parts {
        begun.stream(&values, call, &failed)?;
    } else {
        begun.put(&values, call, &failed)?;
    }
    begun.finish(session, || Ok(()))?.map_err(failed)
}
