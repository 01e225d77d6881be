//! Reads arrays chunk by chunk.

use std::collections::HashMap;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use horus_core::digest::Digest;
use horus_core::dtype::DType;
use horus_core::host::workers::Workers;
use horus_core::io::{FileTraffic, RegionSource, decoded_quietly as guarded};
use horus_core::shape::{Region, Shape};
use rayon::prelude::*;
use zarrs::array::{Array, ArrayBytes, ArrayPartialDecoderTraits, ArrayShardedExt, ArraySubset, CodecOptions};
use zarrs::plugin::{ExtensionName, ZarrVersion};
use zarrs::storage::ReadableStorageTraits;
use zarrs::storage::storage_adapter::performance_metrics::PerformanceMetricsStorageAdapter;

use crate::layout::{ArrayLayout, Role, SampleStrides, copy, count};
use crate::location::NodeLocation;
use crate::misnamed_chunks::chunk_of_another_name;
use crate::store::metadata_of;
use crate::types::{ArraySamples, name_of};

/// Maximum bytes of a decoded chunk: a limit for invalid metadata, above any chunk in use.
const LARGEST: u64 = 8 << 30;
/// Larger chunks are read in part if their codecs support that; checksums are then ignored.
const WHOLE: usize = 256 << 20;

type NodeStorage = PerformanceMetricsStorageAdapter<dyn ReadableStorageTraits>;
type Shards = HashMap<Vec<u64>, Arc<dyn ArrayPartialDecoderTraits>>;

/// An array, read region by region as an image.
pub(crate) struct ArraySource {
    location: NodeLocation,
    array: Array<NodeStorage>,
    storage: Arc<NodeStorage>,
    layout: ArrayLayout,
    samples: ArraySamples,
    /// Whether samples are labels or truth values.
    pub(crate) is_of_labels: bool,
    /// Shape of a file, which is a chunk or a shard of chunks.
    file: Vec<u64>,
    /// Shape of the unit of decoding.
    chunk: Vec<u64>,
    /// Of an array in a folder.
    opened: Option<Stamp>,
    /// Bytes read when the array was opened; more if a chunk was found.
    of_metadata: usize,
    /// Whether chunks with other names were searched.
    is_checked: AtomicBool,
    chunks: AtomicU64,
}

/// A chunk to decode, and its requested part.
struct ChunkRead {
    /// Position of the file in the grid of files.
    file: Vec<u64>,
    /// The indices of the chunk in the array, which may exceed the array.
    chunk: Vec<Range<u64>>,
    part: Vec<Range<u64>>,
}

impl ArraySource {
    /// Opens an array and reads its metadata. `roles` returns the roles of the axes, given their
    /// number.
    ///
    /// # Errors
    /// A message if the metadata cannot be read.
    pub(crate) fn open(
        at: &NodeLocation,
        roles: impl FnOnce(usize) -> Result<Vec<Role>, String>,
        time: Option<usize>,
    ) -> Result<ArraySource, String> {
        let opened = at.folder().map(Stamp::of).transpose()?;
        let storage = Arc::new(NodeStorage::new(at.storage()?));
        let array = guarded(|| Array::open(Arc::clone(&storage), "/").map_err(|e| named(&e.to_string())))?;
        let name = array.data_type().name(ZarrVersion::V3).unwrap_or_default();
        let samples = ArraySamples::named(&name)
            .ok_or_else(|| format!("it has {name} samples; supported are {}", ArraySamples::supported()))?;
        let extents = array.shape().to_vec();
        if extents.contains(&0) {
            return Err(format!("an array of {extents:?} samples has no pixels"));
        }
        let layout = ArrayLayout::new(roles(extents.len())?, extents, time)?;
        let first = vec![0; array.dimensionality()];
        let grid = array.chunk_grid().name(ZarrVersion::V3).unwrap_or_default();
        if grid != "regular" {
            return Err(format!("its chunks are in a `{grid}` grid; only regular grids are supported"));
        }
        let file: Vec<u64> = array.chunk_shape(&first).map_err(|e| e.to_string())?.iter().map(|n| n.get()).collect();
        let inner = array.effective_subchunk_shape().map(|shape| shape.iter().map(|n| n.get()).collect());
        let chunk: Vec<u64> = inner.unwrap_or_else(|| file.clone());
        let bytes = file.iter().try_fold(samples.size() as u64, |bytes, n| bytes.checked_mul(*n));
        if bytes.is_none_or(|bytes| bytes > LARGEST) {
            return Err(format!("its chunks have {file:?} samples; the limit is {LARGEST} bytes"));
        }
        if file.iter().zip(&chunk).any(|(file, chunk)| file % chunk != 0) {
            return Err(format!("shards of {file:?} samples are not made of whole chunks of {chunk:?}"));
        }
        let (location, chunks, looked) = (at.clone(), AtomicU64::new(0), AtomicBool::new(false));
        let of_metadata = storage.bytes_read();
        Ok(ArraySource {
            location,
            array,
            storage,
            layout,
            samples,
            is_of_labels: name == name_of(DType::Bool),
            file,
            chunk,
            opened,
            of_metadata,
            is_checked: looked,
            chunks,
        })
    }

    /// Warns, once, if no chunk was found but there are files with other names, whose pixels would
    /// be read as the fill value.
    fn warn_of_misnamed_chunks(&self, folder: &Path) {
        if self.storage.bytes_read() > self.of_metadata || self.is_checked.swap(true, Ordering::Relaxed) {
            return;
        }
        let key = self.array.chunk_key(&vec![0; self.array.dimensionality()]);
        if let Some(found) = chunk_of_another_name(folder, key.as_str()) {
            let lacks = found.contains('/') && !key.as_str().contains('/') && folder.join(".zarray").exists();
            let hint = if lacks { "; its .zarray may lack `\"dimension_separator\": \"/\"`" } else { "" };
            let folder = folder.display();
            horus_core::warn!(
                "{folder}: its chunks are read as the fill value: none has a name like {key}, as its metadata says, but \
                 there is {found}{hint}"
            );
        }
    }

    /// The chunks that contain `part` of the array.
    fn chunk_reads(&self, part: &[Range<u64>]) -> Vec<ChunkRead> {
        let mut all = vec![Vec::new()];
        for (range, chunk) in part.iter().zip(&self.chunk) {
            let cells = range.start / chunk..range.end.div_ceil(*chunk);
            all =
                all.into_iter().flat_map(|at: Vec<u64>| cells.clone().map(move |i| [&at[..], &[i]].concat())).collect();
        }
        let chunk = |at: &[u64]| at.iter().zip(&self.chunk).map(|(i, n)| i * n..(i + 1) * n).collect::<Vec<_>>();
        let wanted = |at: Vec<u64>| {
            let chunk = chunk(&at);
            let file = chunk.iter().zip(&self.file).map(|(r, n)| r.start / n).collect();
            let part = chunk.iter().zip(part).map(|(a, b)| a.start.max(b.start)..a.end.min(b.end)).collect();
            ChunkRead { file, chunk, part }
        };
        all.into_iter().map(wanted).collect()
    }

    fn is_sharded(&self) -> bool {
        self.file != self.chunk
    }

    /// Decodes a chunk, or only the requested part of a large one. Also returns the decoded indices
    /// of the array.
    fn decode(&self, wanted: &ChunkRead, shards: &Shards) -> Result<(Vec<Range<u64>>, Vec<u8>), String> {
        // Chunks are the unit of parallelism.
        let options = CodecOptions::default().with_concurrent_target(1);
        let samples: usize = wanted.chunk.iter().map(count).product();
        let whole = samples.saturating_mul(self.samples.size()) <= WHOLE;
        let got = if whole { &wanted.chunk } else { &wanted.part };
        let corner = wanted.file.iter().zip(&self.file).map(|(i, n)| i * n);
        let within: Vec<Range<u64>> = got.iter().zip(corner).map(|(r, at)| r.start - at..r.end - at).collect();
        let within = ArraySubset::new_with_ranges(&within);
        let decoded = match shards.get(&wanted.file) {
            Some(shard) => {
                shard.partial_decode(&within, &options).map(ArrayBytes::into_owned).map_err(|e| e.to_string())
            }
            None => self.array.retrieve_chunk_subset_opt(&wanted.file, &within, &options).map_err(|e| e.to_string()),
        };
        self.chunks.fetch_add(1, Ordering::Relaxed);
        // Chunks may exceed the array.
        let inside = |mut i: usize| {
            got.iter().zip(self.array.shape()).rev().all(|(range, extent)| {
                let at = range.start + (i % count(range)) as u64;
                i /= count(range);
                at < *extent
            })
        };
        let pixels = decoded.and_then(|decoded| match decoded {
            ArrayBytes::Fixed(bytes) => self.samples.pixels(bytes, inside),
            _ => Err("its samples differ in size".to_owned()),
        });
        pixels.map(|bytes| (got.clone(), bytes)).map_err(|cause| self.broken(&wanted.file, cause))
    }

    /// Creates the decoders for the shards of these chunks.
    fn shards(&self, wanted: &[ChunkRead], known: &mut Shards, workers: &Workers) -> Result<(), String> {
        if !self.is_sharded() {
            return Ok(());
        }
        let options = CodecOptions::default().with_concurrent_target(1);
        let mut lacking: Vec<&Vec<u64>> = wanted.iter().map(|wanted| &wanted.file).collect();
        lacking.retain(|file| !known.contains_key(*file));
        lacking.sort_unstable();
        lacking.dedup();
        let decoder = |file: &&Vec<u64>| {
            let shard = self.array.partial_decoder_opt(file, &options);
            shard.map(|shard| ((*file).clone(), shard)).map_err(|e| self.broken(file, e))
        };
        known.extend(self.each(&lacking, decoder, workers)?);
        Ok(())
    }

    /// Maximum number of chunks that are decoded at a time.
    fn chunks_at_once(&self, workers: &Workers) -> usize {
        let chunks = 2 * workers.threads();
        #[cfg(feature = "remote")]
        if self.location.folder().is_none() {
            /// Bytes of the decoded chunks, if they are more than those of a folder would be.
            const MOST: usize = 64 << 20;
            let samples: u64 = self.chunk.iter().product();
            let of_bytes = MOST / (samples as usize * self.samples.size()).max(1);
            return chunks.max(of_bytes.min(2 * crate::remote::REQUESTS));
        }
        chunks
    }

    /// Calls `one` for all items, several at a time.
    fn each<T: Sync, R: Send>(
        &self,
        items: &[T],
        one: impl Fn(&T) -> Result<R, String> + Send + Sync,
        workers: &Workers,
    ) -> Result<Vec<R>, String> {
        #[cfg(feature = "remote")]
        if self.location.folder().is_none() {
            return crate::remote::fetching(|| items.par_iter().map(one).collect());
        }
        match workers.threads() {
            1 => items.iter().map(one).collect(),
            _ => workers.run(|| items.par_iter().map(one).collect()),
        }
    }

    /// The error for a chunk that cannot be read, with the path of its file.
    fn broken(&self, file: &[u64], cause: impl std::fmt::Display) -> String {
        let key = self.array.chunk_key(file);
        let kind = if self.is_sharded() { "shard" } else { "chunk" };
        format!("{kind} {}: {cause}", self.location.name_of(key.as_str()))
    }

    /// Copies a region of some levels to its rows of each level.
    fn rows(
        &self,
        region: Region,
        wanted: &[ChunkRead],
        shards: &Shards,
        levels: Vec<(usize, &mut [u8])>,
        workers: &Workers,
    ) -> Result<(), String> {
        let decoded = self.each(wanted, |wanted| self.decode(wanted, shards), workers)?;
        let (size, samples) = (self.dtype().size(), self.shape().channels);
        let height = region.height.div_ceil(workers.threads());
        let parts = levels.into_iter().flat_map(|(level, to)| {
            let tops = (region.top..).step_by(height);
            tops.zip(to.chunks_mut(height * region.width * samples * size)).map(move |(top, to)| (level, top, to))
        });
        let take = |(): &mut (), (level, top, to): (usize, usize, &mut [u8])| {
            let here = Region { top, height: height.min(region.bottom() - top), ..region };
            for (wanted, (got, bytes)) in wanted.iter().zip(&decoded) {
                let (part, block) = (self.layout.block(&wanted.part), self.layout.block(got));
                let (rows, columns, channels) =
                    (part.range(Role::Row), part.range(Role::Column), part.range(Role::Channel));
                let rows = rows.start.max(here.top)..rows.end.min(here.bottom());
                if rows.is_empty() || !part.range(Role::Level).contains(&level) {
                    continue;
                }
                let from = block.place(level, rows.start, columns.start, channels.start);
                let there = SampleStrides::within(here, samples, (0, rows.start, columns.start, channels.start));
                copy(bytes, from, to, there, (rows.len(), columns.len(), channels.len()), size);
            }
            Ok(())
        };
        workers.each(parts.collect(), take)
    }
}

impl RegionSource for ArraySource {
    fn shape(&self) -> Shape {
        self.layout.shape()
    }

    fn dtype(&self) -> DType {
        self.samples.dtype()
    }

    fn chunk(&self) -> (usize, usize) {
        let (Shape { height, width, .. }, chunk) = (self.shape(), |role| self.layout.value(role, &self.chunk));
        (chunk(Role::Row).min(height), chunk(Role::Column).min(width))
    }

    fn levels(&self) -> usize {
        self.layout.value(Role::Level, &self.chunk).min(self.shape().depth)
    }

    fn fill(&self, region: Region, to: &mut [u8], workers: &Workers) -> Result<(), String> {
        self.fill_levels(0..self.shape().depth, region, to, workers)
    }

    fn fill_levels(
        &self,
        levels: Range<usize>,
        region: Region,
        to: &mut [u8],
        workers: &Workers,
    ) -> Result<(), String> {
        let shape = self.shape();
        let row = region.width * shape.channels * self.dtype().size();
        let inside = region.is_inside(shape) && levels.start < levels.end && levels.end <= shape.depth;
        if !inside || to.len() != levels.len() * region.height * row {
            return Err(format!("a region of {region} of levels {levels:?} of {shape} is not {} bytes", to.len()));
        }
        guarded(|| {
            let (rows, mut top) = (self.layout.value(Role::Row, &self.chunk), region.top);
            let mut shards = Shards::new();
            while top < region.bottom() {
                // As many rows of chunks as keep all threads busy.
                let mut end = (top / rows + 1).saturating_mul(rows).min(region.bottom());
                let band = |end| Region { top, height: end - top, ..region };
                let mut wanted = self.chunk_reads(&self.layout.part(&levels, band(end)));
                while end < region.bottom() && wanted.len() < self.chunks_at_once(workers) {
                    end = end.saturating_add(rows).min(region.bottom());
                    wanted = self.chunk_reads(&self.layout.part(&levels, band(end)));
                }
                self.shards(&wanted, &mut shards, workers)?;
                let bytes = (top - region.top) * row..(end - region.top) * row;
                let of_level = to.chunks_mut(region.height * row).map(|level| &mut level[bytes.clone()]);
                self.rows(band(end), &wanted, &shards, levels.clone().zip(of_level).collect(), workers)?;
                top = end;
            }
            Ok(())
        })?;
        let Some((folder, opened)) = self.location.folder().zip(self.opened) else { return Ok(()) };
        // Absent chunks are not an error, so chunks removed meanwhile would be read as the fill
        // value.
        if Stamp::of(folder).is_ok_and(|now| now == opened) {
            self.warn_of_misnamed_chunks(folder);
            Ok(())
        } else {
            Err("it was replaced or changed since it was opened: open it again".into())
        }
    }

    fn identity(&self) -> Option<u64> {
        let Stamp { length, modified, .. } = self.opened?;
        let mut digest = Digest::default();
        (length, modified?.duration_since(SystemTime::UNIX_EPOCH).ok()?).hash(&mut digest);
        Some(digest.finish())
    }

    fn counted(&self) -> FileTraffic {
        FileTraffic { chunks: self.chunks.load(Ordering::Relaxed), bytes: self.storage.bytes_read() as u64 }
    }
}

/// Identifies the metadata of an array, to detect a replacement at the same path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    length: u64,
    modified: Option<SystemTime>,
    /// Number of the file, if the system has one.
    number: [u64; 2],
}

impl Stamp {
    fn of(array: &Path) -> Result<Stamp, String> {
        let found = fs::metadata(metadata_of(array)).map_err(|e| e.to_string())?;
        #[cfg(unix)]
        let number = {
            use std::os::unix::fs::MetadataExt;
            [found.dev(), found.ino()]
        };
        #[cfg(not(unix))]
        let number = [0; 2];
        Ok(Stamp { length: found.len(), modified: found.modified().ok(), number })
    }
}

/// The error for an unsupported array, with a hint.
fn named(cause: &str) -> String {
    let lacking = cause.contains("blosc") && !cfg!(feature = "blosc");
    format!("{cause}{}", if lacking { " (horus-zarr has it with its feature `blosc`)" } else { "" })
}
