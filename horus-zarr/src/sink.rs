//! Writes arrays chunk by chunk.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use horus_core::dtype::DType;
use horus_core::host::workers::Workers;
use horus_core::io::{RegionSink, SinkPlace};
use horus_core::shape::{Region, Shape};
use rayon::prelude::*;
use serde_json::{Value, json};
use zarrs::array::{Array, ArrayBytes, ArrayMetadata, ArrayToBytesCodecTraits, CodecOptions};
use zarrs::filesystem::FilesystemStore;

use crate::layout::{ArrayLayout, Role, SampleStrides, copy, count};
use crate::types::name_of;
use crate::unfinished_store::describe_error;
use crate::{ZarrCodec, ZarrSaveOptions};

/// An array being written: chunks as regions arrive, metadata at the end.
pub(crate) struct ArraySink {
    folder: PathBuf,
    /// Written at the end, by the process that has begun the array.
    metadata: Option<Value>,
    /// Chunks are flushed, so that their errors are known before another host finishes the array.
    flushes: bool,
    /// Encodes chunks and names their files.
    array: Array<FilesystemStore>,
    layout: ArrayLayout,
    size: usize,
    /// Shape of a file, which is a chunk or a shard.
    file: Vec<u64>,
    /// Incomplete files, by their position in the grid.
    pending: Mutex<HashMap<Vec<u64>, IncompleteChunk>>,
}

impl ArraySink {
    /// Begins an array in a new folder.
    ///
    /// # Errors
    /// A message if chunks or shards are impossible, or if the folder cannot be created.
    pub(crate) fn begin(
        folder: &Path,
        shape: Shape,
        dtype: DType,
        options: &ZarrSaveOptions,
    ) -> Result<ArraySink, String> {
        let sink = ArraySink::of(folder, shape, dtype, options)?;
        fs::create_dir_all(folder).map_err(|e| describe_error(&e))?;
        Ok(sink)
    }

    /// Writes chunks of an array that another process has begun.
    ///
    /// # Errors
    /// As [`ArraySink::begin`]; if there is no folder.
    pub(crate) fn join(
        place: &SinkPlace,
        shape: Shape,
        dtype: DType,
        options: &ZarrSaveOptions,
    ) -> Result<ArraySink, String> {
        let SinkPlace { path, is_of_other_host: flushes, .. } = place;
        fs::metadata(path).map_err(|e| describe_error(&e))?;
        Ok(ArraySink { metadata: None, flushes: *flushes, ..ArraySink::of(path, shape, dtype, options)? })
    }

    fn of(folder: &Path, shape: Shape, dtype: DType, options: &ZarrSaveOptions) -> Result<ArraySink, String> {
        let layout = ArrayLayout::of(shape);
        let chunk = extents(&layout, shape, options.chunk).ok_or("a chunk has no samples")?;
        let file = match options.shard {
            None => chunk.clone(),
            Some(wanted) => {
                if wanted.iter().zip(options.chunk).any(|(shard, chunk)| *shard == 0 || !shard.is_multiple_of(chunk)) {
                    let (shard, chunk) = (text(wanted), text(options.chunk));
                    return Err(format!("shards of {shard} are not made of whole chunks of {chunk}"));
                }
                // Clipped to the image, in whole chunks.
                let all = extents(&layout, shape, wanted).ok_or("a shard has no samples")?;
                all.iter().zip(&chunk).map(|(shard, chunk)| shard.next_multiple_of(*chunk)).collect()
            }
        };
        let metadata = metadata(&layout, dtype, &chunk, &file, options.codec);
        let failed = |e: &dyn std::fmt::Display| format!("an array of {}: {e}", layout.shape());
        let known: ArrayMetadata = serde_json::from_value(metadata.clone()).map_err(|e| failed(&e))?;
        let store = FilesystemStore::new(folder).map_err(|e| failed(&e))?;
        let array = Array::new_with_metadata(Arc::new(store), "/", known).map_err(|e| failed(&e))?;
        let (folder, size, metadata) = (folder.to_owned(), dtype.size(), Some(metadata));
        Ok(ArraySink { folder, metadata, flushes: false, array, layout, size, file, pending: Mutex::default() })
    }

    /// Takes the pixels of `part` that belong to the chunk or shard at a position of the grid, and
    /// writes the file when it is complete.
    fn take(&self, at: &[u64], part: &SinkRegion<'_>) -> Result<(), String> {
        let ranges: Vec<_> = at.iter().zip(&self.file).map(|(i, n)| i * n..(i + 1) * n).collect();
        let clipped = |(r, other): (&Range<u64>, &Range<u64>)| r.start.max(other.start)..r.end.min(other.end);
        let come: Vec<_> = ranges.iter().zip(&part.indices).map(clipped).collect();
        let samples = |ranges: &[Range<u64>]| ranges.iter().map(count).product::<usize>();
        let pending = || self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = pending().remove(at);
        let IncompleteChunk { mut bytes, missing } = begun.unwrap_or_else(|| {
            let whole: Vec<_> = self.layout.extents().iter().map(|n| 0..*n).collect();
            let inside: Vec<_> = ranges.iter().zip(&whole).map(clipped).collect();
            IncompleteChunk { bytes: vec![0; samples(&ranges) * self.size], missing: samples(&inside) }
        });
        let (block, come) = (self.layout.block(&ranges), self.layout.block(&come));
        let (rows, columns, channels) = (come.range(Role::Row), come.range(Role::Column), come.range(Role::Channel));
        let extents = (rows.len(), columns.len(), channels.len());
        for level in come.range(Role::Level) {
            let place = (level - part.level, rows.start, columns.start, channels.start);
            let from = SampleStrides::within(part.region, self.layout.shape().channels, place);
            let to = block.place(level, rows.start, columns.start, channels.start);
            copy(part.pixels, from, &mut bytes, to, extents, self.size);
        }
        let missing = missing.checked_sub(come.range(Role::Level).len() * rows.len() * columns.len() * channels.len());
        match missing.ok_or("pixels were put twice")? {
            0 => self.write(at, bytes),
            missing => {
                pending().insert(at.to_vec(), IncompleteChunk { bytes, missing });
                Ok(())
            }
        }
    }

    /// Writes the chunk or shard at a position of the grid, unless it is all 0, the value of absent
    /// chunks.
    fn write(&self, at: &[u64], bytes: Vec<u8>) -> Result<(), String> {
        if bytes.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let key = self.array.chunk_key(at);
        let failed = |e: &dyn std::fmt::Display| format!("chunk {key}: {e}");
        let shape = self.array.chunk_shape(at).map_err(|e| failed(&e))?;
        // Parallelism is over chunks.
        let options = CodecOptions::default().with_concurrent_target(1);
        let (dtype, fill) = (self.array.data_type(), self.array.fill_value());
        let encoded = self.array.codecs().encode(ArrayBytes::new_flen(bytes), &shape, dtype, fill, &options);
        let encoded = encoded.map_err(|e| failed(&e))?;
        let path = self.folder.join(key.as_str());
        let folder = path.parent().unwrap_or(&self.folder);
        let write = || {
            fs::create_dir_all(folder)?;
            let mut file = fs::File::create(&path)?;
            file.write_all(&encoded)?;
            if self.flushes { file.sync_data() } else { Ok(()) }
        };
        write().map_err(|e: io::Error| failed(&describe_error(&e)))
    }
}

/// The pixels of a region of some levels.
struct SinkRegion<'a> {
    region: Region,
    /// The indices of the region in the array.
    indices: Vec<Range<u64>>,
    level: usize,
    pixels: &'a [u8],
}

/// A chunk or shard with missing pixels.
struct IncompleteChunk {
    bytes: Vec<u8>,
    missing: usize,
}

impl RegionSink for ArraySink {
    fn chunk(&self) -> (usize, usize) {
        (self.layout.value(Role::Row, &self.file), self.layout.value(Role::Column, &self.file))
    }

    fn levels(&self) -> usize {
        self.layout.value(Role::Level, &self.file)
    }

    fn put(&mut self, region: Region, pixels: &[u8], workers: &Workers) -> Result<(), String> {
        self.put_levels(0..self.layout.shape().depth, region, pixels, workers)
    }

    /// Accepts regions of any size: chunks wait for the rest of their pixels.
    fn put_levels(
        &mut self,
        levels: Range<usize>,
        region: Region,
        pixels: &[u8],
        workers: &Workers,
    ) -> Result<(), String> {
        let indices = self.layout.part(&levels, region);
        let mut all = vec![Vec::new()];
        for (range, file) in indices.iter().zip(&self.file) {
            let cells = range.start / file..range.end.div_ceil(*file);
            all =
                all.into_iter().flat_map(|at: Vec<u64>| cells.clone().map(move |i| [&at[..], &[i]].concat())).collect();
        }
        let part = SinkRegion { region, indices, level: levels.start, pixels };
        let one = |at: &Vec<u64>| self.take(at, &part);
        if workers.threads() == 1 {
            return all.iter().try_for_each(one);
        }
        workers.run(|| all.par_iter().try_for_each(one))
    }

    fn place(&self) -> Option<SinkPlace> {
        let (path, layout) = (self.folder.clone(), Vec::new());
        Some(SinkPlace { path, is_one_file: false, is_of_other_host: false, layout })
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        let pending = self.pending.into_inner().unwrap_or_else(PoisonError::into_inner);
        if !pending.is_empty() {
            return Err(format!("{} chunks lack pixels", pending.len()));
        }
        self.metadata.map_or(Ok(()), |metadata| write_json(&self.folder.join("zarr.json"), &metadata))
    }
}

fn text([levels, rows, columns]: [usize; 3]) -> String {
    format!("{levels}x{rows}x{columns}")
}

/// Writes metadata.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), String> {
    fs::write(path, format!("{value:#}\n")).map_err(|e| describe_error(&e))
}

/// The shape of a chunk of one channel from levels, rows and columns, clipped to the image; `None`
/// if one is 0.
fn extents(layout: &ArrayLayout, shape: Shape, [levels, rows, columns]: [usize; 3]) -> Option<Vec<u64>> {
    let extent = |role: &Role| match role {
        Role::Time | Role::Channel => 1,
        Role::Level => levels.min(shape.depth),
        Role::Row => rows.min(shape.height),
        Role::Column => columns.min(shape.width),
    };
    let extents: Vec<u64> = layout.roles().iter().map(|role| extent(role) as u64).collect();
    (levels > 0 && !extents.contains(&0)).then_some(extents)
}

/// The metadata of an array in version 3.
fn metadata(layout: &ArrayLayout, dtype: DType, chunk: &[u64], file: &[u64], codec: ZarrCodec) -> Value {
    let mut codecs = vec![json!({"name": "bytes", "configuration": {"endian": "little"}})];
    if dtype.size() == 1 {
        codecs = vec![json!({"name": "bytes"})];
    }
    match codec {
        ZarrCodec::None => {}
        ZarrCodec::Gzip => codecs.push(json!({"name": "gzip", "configuration": {"level": 6}})),
        ZarrCodec::Zstd => codecs.push(json!({"name": "zstd", "configuration": {"level": 3, "checksum": true}})),
    }
    if file != chunk {
        let index = [json!({"name": "bytes", "configuration": {"endian": "little"}}), json!({"name": "crc32c"})];
        let configuration =
            json!({"chunk_shape": chunk, "codecs": codecs, "index_codecs": index, "index_location": "end"});
        codecs = vec![json!({"name": "sharding_indexed", "configuration": configuration})];
    }
    let names: Vec<&str> = layout.roles().iter().map(|role| role.name()).collect();
    let zero = if dtype == DType::Bool {
        json!(false)
    } else if dtype.is_float() {
        json!(0.0)
    } else {
        json!(0)
    };
    json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": layout.extents(),
        "data_type": name_of(dtype),
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": file}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": zero,
        "codecs": codecs,
        "dimension_names": names,
        "attributes": {},
    })
}
