//! Checkpoints of loops in a Zarr store: a group with an array for each image of the state.
//!
//! The group's attributes name the folder of the last complete checkpoint. A new one is written to another folder and
//! flushed to the disk before the attributes are replaced, in one step; then the former folder is removed. Whatever
//! ends the process, the attributes name a complete checkpoint.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use horus_core::dtype::DType;
use horus_core::host::workers::Workers;
use horus_core::image::{CheckpointImage, CheckpointStore};
use horus_core::io::{RegionSink, RegionSource};
use horus_core::shape::{Region, Shape};
use serde_json::{Map, Value, json};

use crate::layout::Role;
use crate::sink::{ArraySink, write_json};
use crate::source::ArraySource;
use crate::store::{ZarrNode, names_of};
use crate::unfinished_store::describe_error;
use crate::{ZarrCodec, ZarrSaveOptions};

/// The attribute of the group.
const ATTRIBUTE: &str = "horus_checkpoint";
/// Bytes of a chunk, about.
const CHUNK: usize = 16 << 20;

/// The checkpoints of a loop in a Zarr store, for [`Session::iterate_checkpointed`]. Any reader of Zarr reads the last
/// one: the group's attributes name its folder, which has an array for each image of the state, `0`, `1` and so on.
///
/// ```
/// use horus_core::image::Checkpoints;
/// use horus_zarr::ZarrCheckpoints;
/// # use horus_core::{cpu::device::CpuDevice, image::Image, session::Session};
/// # let folder = tempfile::tempdir().expect("a folder");
/// # let path = folder.path().join("heat.zarr");
/// let heat = |steps| -> Result<_, horus_core::error::Error> {
/// #   let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
///     let hot = Image::from_fn(&session, 64, 64, |y, x| if (y, x) == (32, 32) { 100.0 } else { 0.0 });
///     let every_hundred = Checkpoints::new(ZarrCheckpoints::at(&path), 100).resume(true);
///     session.iterate_checkpointed(hot, steps, |u| u.gauss(1.0), &every_hundred)?.state.to_vec()
/// };
/// heat(250)?; // as if interrupted: the store has the state after 200 steps
/// let continued = heat(300)?;
/// # std::fs::remove_dir_all(&path)?;
/// assert_eq!(heat(300)?, continued);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// [`Session::iterate_checkpointed`]: horus_core::session::Session::iterate_checkpointed
#[derive(Clone, Debug)]
pub struct ZarrCheckpoints {
    path: PathBuf,
    program: String,
}

/// The last complete checkpoint of a store.
struct LastCheckpoint {
    steps: usize,
    folder: PathBuf,
    /// Checksums of the images' pixels.
    sums: Vec<u32>,
}

impl ZarrCheckpoints {
    /// Checkpoints in the store at a path, which is created with the first one.
    pub fn at(path: impl AsRef<Path>) -> ZarrCheckpoints {
        ZarrCheckpoints { path: path.as_ref().to_owned(), program: String::new() }
    }

    /// Describes the program, with everything that its bits depend on. A loop does not continue from a checkpoint with
    /// another description.
    #[must_use]
    pub fn of(self, program: impl Into<String>) -> ZarrCheckpoints {
        ZarrCheckpoints { program: program.into(), ..self }
    }

    /// The last complete checkpoint, if there is one.
    fn found(&self) -> Result<Option<LastCheckpoint>, String> {
        let path = &self.path;
        if fs::symlink_metadata(path).is_err() {
            return Ok(None);
        }
        if path.is_dir() && !path.join("zarr.json").exists() {
            // The first checkpoint may not have been completed.
            let other = entries(path)?.into_iter().find(|entry| steps_of(entry).is_none());
            return match other {
                None => Ok(None),
                Some(other) => Err(format!("it is a folder without checkpoints, but with {}", other.display())),
            };
        }
        let not = || "it has no checkpoints of a loop".to_owned();
        let ZarrNode::Group(attributes) = ZarrNode::at(path)? else { return Err(not()) };
        let about = attributes.get(ATTRIBUTE).and_then(Value::as_object).ok_or_else(not)?;
        let number = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
        let steps = about.get("steps").and_then(number);
        let sums = about.get("crc32").and_then(Value::as_array);
        let sums = sums.and_then(|sums| sums.iter().map(|sum| u32::try_from(sum.as_u64()?).ok()).collect());
        let (Some(steps), Some(sums)) = (steps, sums) else {
            return Err(format!("its attribute {ATTRIBUTE} is incomplete"));
        };
        let program = about.get("program").and_then(Value::as_str).unwrap_or_default();
        if program != self.program {
            return Err(format!("its checkpoints are of another program: {program:?}, not {:?}", self.program));
        }
        Ok(Some(LastCheckpoint { steps, folder: path.join(steps.to_string()), sums }))
    }
}

/// The images of a checkpoint.
fn sources(LastCheckpoint { folder, sums, .. }: &LastCheckpoint) -> Result<Vec<ArraySource>, String> {
    let source = |i: usize| {
        let path = folder.join(i.to_string());
        let named = |cause: String| format!("{}: {cause}", path.display());
        let names = names_of(&path).map_err(named)?.unwrap_or_default();
        let roles = |_| names.iter().map(|name| Role::named(name)).collect::<Option<_>>().ok_or("unknown axes".into());
        ArraySource::open(&path, roles, None).map_err(named)
    };
    (0..sums.len()).map(source).collect()
}

impl CheckpointStore for ZarrCheckpoints {
    fn path(&self) -> &Path {
        &self.path
    }

    fn last(&self, images: &[(Shape, DType)]) -> Result<Option<usize>, String> {
        let Some(last) = self.found()? else { return Ok(None) };
        let stored = sources(&last)?;
        if stored.len() != images.len() {
            return Err(format!("its checkpoint has {} images, the loop {}", stored.len(), images.len()));
        }
        for (i, (stored, &(shape, dtype))) in stored.iter().zip(images).enumerate() {
            let as_read = if dtype == DType::Bool { DType::U8 } else { dtype };
            if (stored.shape(), stored.dtype()) != (shape, as_read) {
                let found = format!("{} {}", stored.shape(), stored.dtype());
                return Err(format!("image {i} of its checkpoint is {found}, that of the loop {shape} {dtype}"));
            }
        }
        Ok(Some(last.steps))
    }

    fn read(&self, to: &mut [&mut [u8]]) -> Result<(), String> {
        let last = self.found()?.ok_or("its checkpoint is gone")?;
        let workers = Workers::new(None).map_err(|e| e.to_string())?;
        for (i, (source, to)) in sources(&last)?.iter().zip(to).enumerate() {
            source.fill(Region::whole(source.shape()), to, &workers)?;
            if crc32fast::hash(to) != last.sums[i] {
                return Err(format!("image {i} of its checkpoint after {} steps is damaged", last.steps));
            }
        }
        Ok(())
    }

    fn write(&self, steps: usize, images: &[CheckpointImage]) -> Result<(), String> {
        let told = |e: std::io::Error| describe_error(&e);
        fs::create_dir_all(&self.path).map_err(told)?;
        let last = self.found()?.map(|last| last.folder);
        // Whatever else is there was not completed, or not removed.
        for entry in entries(&self.path)?.into_iter().filter(|entry| steps_of(entry).is_some()) {
            if last.as_ref() != Some(&entry) {
                fs::remove_dir_all(&entry).map_err(told)?;
            }
        }
        let folder = self.path.join(steps.to_string());
        if last.as_ref() == Some(&folder) {
            return Ok(()); // the loop has continued from it
        }
        fs::create_dir(&folder).map_err(told)?;
        let workers = Workers::new(Some(1)).map_err(|e| e.to_string())?;
        for (i, CheckpointImage { shape, dtype, pixels }) in images.iter().enumerate() {
            let row = (shape.width * dtype.size()).max(1);
            let chunk = [1, (CHUNK / row).clamp(1, shape.height.max(1)), shape.width.max(1)];
            let options = ZarrSaveOptions { chunk, codec: ZarrCodec::None, ..ZarrSaveOptions::default() };
            let mut sink = ArraySink::begin(&folder.join(i.to_string()), *shape, *dtype, &options)?;
            sink.put(Region::whole(*shape), pixels.bytes(), &workers)?;
            Box::new(sink).finish()?;
        }
        write_json(&folder.join("zarr.json"), &group(Map::new()))?;
        flush(&folder).map_err(told)?;
        let sums: Vec<u32> = images.iter().map(|image| crc32fast::hash(image.pixels.bytes())).collect();
        let about = json!({"steps": steps, "program": self.program, "crc32": sums});
        let next = self.path.join(".zarr.json");
        write_json(&next, &group(Map::from_iter([(ATTRIBUTE.to_owned(), about)])))?;
        let synced = |path: &Path| File::open(path).and_then(|file| file.sync_all()).map_err(told);
        synced(&next)?;
        fs::rename(&next, self.path.join("zarr.json")).map_err(told)?;
        synced(&self.path)?;
        last.map_or(Ok(()), |last| fs::remove_dir_all(last).map_err(told))
    }
}

fn group(attributes: Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// The number of iterations in the name of a checkpoint's folder.
fn steps_of(folder: &Path) -> Option<usize> {
    folder.file_name()?.to_str()?.parse().ok()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|e| describe_error(&e))?;
    Ok(entries.into_iter().map(|entry| entry.path()).filter(|path| !path.ends_with(".zarr.json")).collect())
}

/// Waits until the files of a folder are on the disk.
fn flush(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { flush(&path)? } else { File::open(&path)?.sync_all()? }
    }
    File::open(folder)?.sync_all()
}
