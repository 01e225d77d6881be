//! Arrays written chunk by chunk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use horus_core::dtype::DType;
use horus_core::host::workers::Workers;
use horus_core::io::RegionSink;
use horus_core::shape::{Region, Shape};
use rayon::prelude::*;
use serde_json::{Value, json};
use zarrs::array::{Array, ArrayBytes, ArrayMetadata, ArrayToBytesCodecTraits, CodecOptions};
use zarrs::filesystem::FilesystemStore;

use crate::layout::{Layout, Place, Role, copy};
use crate::place::told;
use crate::types::name_of;
use crate::{ZarrCodec, ZarrSaveOptions};

/// An array being written: chunks as regions arrive, its metadata at the end.
pub(crate) struct ArraySink {
    folder: PathBuf,
    metadata: Value,
    /// Encodes chunks and names their files.
    array: Array<FilesystemStore>,
    layout: Layout,
    size: usize,
    /// Extents of a file: a chunk or a shard.
    file: Vec<u64>,
}

impl ArraySink {
    /// Begins an array in a new folder.
    ///
    /// # Errors
    /// A message: impossible chunks or shards, or no folder.
    pub(crate) fn begin(
        folder: &Path,
        shape: Shape,
        dtype: DType,
        options: &ZarrSaveOptions,
    ) -> Result<ArraySink, String> {
        let layout = Layout::of(shape);
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
        fs::create_dir_all(folder).map_err(|e| told(&e))?;
        Ok(ArraySink { folder: folder.to_owned(), metadata, array, layout, size: dtype.size(), file })
    }

    /// Writes the chunk or shard at this place of the grid, unless it is all 0, the value of absent
    /// chunks.
    fn write(&self, at: &[u64], region: Region, pixels: &[u8]) -> Result<(), String> {
        let ranges: Vec<_> = at.iter().zip(&self.file).map(|(i, n)| i * n..(i + 1) * n).collect();
        let inside: Vec<_> =
            ranges.iter().zip(self.layout.extents()).map(|(r, extent)| r.start..r.end.min(*extent)).collect();
        let (block, part) = (self.layout.block(&ranges), self.layout.block(&inside));
        let samples: u64 = self.file.iter().product();
        let mut bytes = vec![0; samples as usize * self.size];
        let (rows, columns) = (part.range(Role::Row), part.range(Role::Column));
        for plane in part.planes() {
            let first = (plane * region.height + rows.start - region.top) * region.width + columns.start - region.left;
            let from = Place { first, row: region.width, column: 1 };
            let to = block.place(plane, rows.start, columns.start);
            copy(pixels, from, &mut bytes, to, (rows.len(), columns.len()), self.size);
        }
        if bytes.iter().all(|b| *b == 0) {
            return Ok(());
        }
        let key = self.array.chunk_key(at);
        let failed = |e: &dyn std::fmt::Display| format!("chunk {key}: {e}");
        let shape = self.array.chunk_shape(at).map_err(|e| failed(&e))?;
        // Chunks are the unit of parallelism.
        let options = CodecOptions::default().with_concurrent_target(1);
        let (dtype, fill) = (self.array.data_type(), self.array.fill_value());
        let encoded = self.array.codecs().encode(ArrayBytes::new_flen(bytes), &shape, dtype, fill, &options);
        let encoded = encoded.map_err(|e| failed(&e))?;
        let path = self.folder.join(key.as_str());
        let folder = path.parent().unwrap_or(&self.folder);
        fs::create_dir_all(folder).and_then(|()| fs::write(&path, &encoded)).map_err(|e| failed(&told(&e)))
    }
}

impl RegionSink for ArraySink {
    fn chunk(&self) -> (usize, usize) {
        let (rows, columns) = self.layout.rows_and_columns(&self.file);
        (rows as usize, columns as usize)
    }

    fn put(&mut self, region: Region, pixels: &[u8], workers: &Workers) -> Result<(), String> {
        let Shape { height, width, .. } = self.layout.shape();
        let (rows, columns) = self.chunk();
        let whole = |start: usize, end: usize, chunk: usize, n: usize| {
            start.is_multiple_of(chunk) && (end.is_multiple_of(chunk) || end == n)
        };
        if !whole(region.top, region.bottom(), rows, height) || !whole(region.left, region.right(), columns, width) {
            return Err(format!("a region of {region} is not made of whole chunks of {rows}x{columns}"));
        }
        let mut all = vec![Vec::new()];
        for (range, file) in self.layout.part(region).iter().zip(&self.file) {
            let cells = range.start / file..range.end.div_ceil(*file);
            all =
                all.into_iter().flat_map(|at: Vec<u64>| cells.clone().map(move |i| [&at[..], &[i]].concat())).collect();
        }
        let one = |at: &Vec<u64>| self.write(at, region, pixels);
        if workers.threads() == 1 {
            return all.iter().try_for_each(one);
        }
        workers.run(|| all.par_iter().try_for_each(one))
    }

    fn finish(self: Box<Self>) -> Result<(), String> {
        write_json(&self.folder.join("zarr.json"), &self.metadata)
    }
}

fn text([levels, rows, columns]: [usize; 3]) -> String {
    format!("{levels}x{rows}x{columns}")
}

/// Writes metadata.
pub(crate) fn write_json(path: &Path, value: &Value) -> Result<(), String> {
    fs::write(path, format!("{value:#}\n")).map_err(|e| told(&e))
}

/// The extents of a chunk of one channel from levels, rows and columns, clipped to the image;
/// `None` if one is 0.
fn extents(layout: &Layout, shape: Shape, [levels, rows, columns]: [usize; 3]) -> Option<Vec<u64>> {
    let extent = |role: &Role| match role {
        Role::Time | Role::Channel => 1,
        Role::Level => levels.min(shape.depth),
        Role::Row => rows.min(shape.height),
        Role::Column => columns.min(shape.width),
    };
    let extents: Vec<u64> = layout.roles().iter().map(|role| extent(role) as u64).collect();
    (levels > 0 && !extents.contains(&0)).then_some(extents)
}

/// The metadata of an array, version 3.
fn metadata(layout: &Layout, dtype: DType, chunk: &[u64], file: &[u64], codec: ZarrCodec) -> Value {
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
