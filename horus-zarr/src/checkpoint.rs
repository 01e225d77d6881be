//! Checkpoints of loops in a Zarr store: a group with an array for each image of the state.
//!
//! The group's attributes name the folder of the last complete checkpoint. A new one is written to another folder and
//! flushed to the disk before the attributes are replaced, in one step; then the former folder is removed. Whatever
//! ends the process, the attributes name a complete checkpoint. Only one process writes at a time.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use horus_core::dtype::DType;
use horus_core::host::workers::Workers;
use horus_core::image::{CheckpointImage, CheckpointStore};
use horus_core::io::{RegionSink, RegionSource};
use horus_core::shape::{Region, Shape};
use serde_json::{Map, Value, json};

use crate::layout::Role;
use crate::location::NodeLocation;
use crate::sink::{ArraySink, write_json};
use crate::source::ArraySource;
use crate::store::{ZarrNode, names_of};
use crate::types::name_of;
use crate::unfinished_store::describe_error;
use crate::{ZarrCodec, ZarrSaveOptions};

/// The attribute of the group.
const ATTRIBUTE: &str = "horus_checkpoint";
/// First part of the names of checkpoints' folders, before the number of iterations.
const PREFIX: &str = "after-";
/// The attributes before they replace the former ones.
const NEXT: &str = ".zarr.json";
/// The file that the process locks which writes.
const LOCK: &str = ".lock";
/// Longest time to wait for another process to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a chunk, about.
const CHUNK: usize = 16 << 20;

/// The checkpoints of a loop in a Zarr store, for [`Session::iterate_checkpointed`]. Any reader of Zarr reads the last
/// one: the group's attributes name its `steps`; its folder, `after-<steps>`, has an array for each image of the state, `0`,
/// `1` and so on.
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
///     session.iterate_checkpointed(hot, steps, |u| u.gauss(1.0), &every_hundred, None)?.state.to_vec()
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
    /// The locked file that keeps other processes from writing.
    lock: Arc<Mutex<Option<File>>>,
}

/// The last complete checkpoint of a store.
struct LastCheckpoint {
    steps: usize,
    folder: PathBuf,
    /// Type and checksum of the pixels of each image.
    images: Vec<(String, u32)>,
}

impl ZarrCheckpoints {
    /// Checkpoints in the store at a path, which is created if there is nothing, or an empty folder.
    pub fn at(path: impl AsRef<Path>) -> ZarrCheckpoints {
        ZarrCheckpoints { path: path.as_ref().to_owned(), program: String::new(), lock: Arc::default() }
    }

    /// Describes the program, with everything that its bits depend on. A loop does not continue from a checkpoint with
    /// another description.
    #[must_use]
    pub fn of(self, program: impl Into<String>) -> ZarrCheckpoints {
        ZarrCheckpoints { program: program.into(), ..self }
    }

    /// The attribute of the store; `None` if there is nothing, or an empty folder.
    fn attribute(&self) -> Result<Option<Map<String, Value>>, String> {
        match fs::metadata(&self.path) {
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(describe_error(&e)),
            Ok(found) if found.is_dir() && entries(&self.path)?.is_empty() => return Ok(None),
            Ok(_) => {}
        }
        let not = |cause: String| format!("it has no checkpoints of a loop, and is not changed: {cause}");
        let ZarrNode::Group(attributes) = ZarrNode::at(&NodeLocation::Folder(self.path.clone())).map_err(not)? else {
            return Err(not("it is an array".into()));
        };
        let about = attributes.get(ATTRIBUTE).and_then(Value::as_object);
        let about = about.ok_or_else(|| not(format!("its group has no attribute {ATTRIBUTE}")))?;
        let program = about.get("program").and_then(Value::as_str).unwrap_or_default();
        if program != self.program {
            return Err(format!("its checkpoints are of another program: {program:?}, not {:?}", self.program));
        }
        Ok(Some(about.clone()))
    }

    /// Keeps other loops, also of other processes, from writing to the store while this value lives. A process that was
    /// killed may take a moment to end.
    fn lock(&self) -> Result<(), String> {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        if lock.is_some() {
            return Ok(());
        }
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(self.path.join(LOCK));
        let file = file.map_err(|e| describe_error(&e))?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => std::thread::sleep(PATIENCE / 200),
                Err(TryLockError::WouldBlock) => return Err("another loop writes its checkpoints".into()),
                Err(TryLockError::Error(e)) => {
                    log::debug!("{} is not locked: {}", self.path.display(), describe_error(&e));
                    break;
                }
            }
        }
        *lock = Some(file);
        Ok(())
    }

    /// The last complete checkpoint, if there is one.
    fn found(&self) -> Result<Option<LastCheckpoint>, String> {
        let Some(about) = self.attribute()? else { return Ok(None) };
        let steps = match about.get("steps") {
            Some(Value::Null) => return Ok(None),
            steps => steps.and_then(|steps| usize::try_from(steps.as_u64()?).ok()),
        };
        let image = |image: &Value| {
            let sum = u32::try_from(image.get("crc32")?.as_u64()?).ok()?;
            Some((image.get("type")?.as_str()?.to_owned(), sum))
        };
        let images = about.get("images").and_then(Value::as_array);
        let images = images.and_then(|images| images.iter().map(image).collect());
        let (Some(steps), Some(images)) = (steps, images) else {
            return Err(format!("its attribute {ATTRIBUTE} is incomplete"));
        };
        Ok(Some(LastCheckpoint { steps, folder: self.path.join(format!("{PREFIX}{steps}")), images }))
    }

    /// Replaces the attributes of the store in one step, once everything else is on the disk.
    fn describe(&self, steps: Option<usize>, images: &[Value]) -> Result<(), String> {
        let told = |e: std::io::Error| describe_error(&e);
        let about = json!({"steps": steps, "program": self.program, "images": images});
        let next = self.path.join(NEXT);
        write_json(&next, &group(Map::from_iter([(ATTRIBUTE.to_owned(), about)])))?;
        flush(&next).and_then(|()| flush_folder(&self.path)).map_err(told)?;
        fs::rename(&next, self.path.join("zarr.json")).map_err(told)?;
        flush_folder(&self.path).map_err(told)
    }
}

/// The images of a checkpoint.
fn sources(LastCheckpoint { folder, images, .. }: &LastCheckpoint) -> Result<Vec<ArraySource>, String> {
    let source = |i: usize| {
        let path = folder.join(i.to_string());
        let named = |cause: String| format!("{}: {cause}", path.display());
        let at = NodeLocation::Folder(path.clone());
        let names = names_of(&at).map_err(named)?.unwrap_or_default();
        let roles = |_| names.iter().map(|name| Role::named(name)).collect::<Option<_>>().ok_or("unknown axes".into());
        ArraySource::open(&at, roles, None).map_err(named)
    };
    (0..images.len()).map(source).collect()
}

impl CheckpointStore for ZarrCheckpoints {
    fn path(&self) -> &Path {
        &self.path
    }

    fn last(&self, images: &[(Shape, DType)]) -> Result<Option<usize>, String> {
        if self.attribute()?.is_some() {
            self.lock()?;
        }
        let Some(last) = self.found()? else { return Ok(None) };
        let stored = sources(&last)?;
        if stored.len() != images.len() {
            return Err(format!("its checkpoint has {} images, the loop {}", stored.len(), images.len()));
        }
        for (i, ((stored, (name, _)), &(shape, dtype))) in stored.iter().zip(&last.images).zip(images).enumerate() {
            if stored.shape() != shape || *name != name_of(dtype) {
                let found = format!("{} {name}", stored.shape());
                return Err(format!(
                    "image {i} of its checkpoint is {found}, that of the loop {shape} {}",
                    name_of(dtype)
                ));
            }
        }
        Ok(Some(last.steps))
    }

    fn create(&self) -> Result<(), String> {
        if self.attribute()?.is_some() {
            return Ok(());
        }
        let made: Vec<&Path> = self.path.ancestors().take_while(|path| !path.exists()).collect();
        let beside = |made: &Path| {
            let folder = made.parent().filter(|parent| !parent.as_os_str().is_empty());
            flush_folder(folder.unwrap_or(Path::new(".")))
        };
        fs::create_dir_all(&self.path).map_err(|e| describe_error(&e))?;
        self.lock()?;
        self.describe(None, &[])?;
        made.into_iter().try_for_each(beside).map_err(|e| describe_error(&e))
    }

    fn read(&self, to: &mut [&mut [u8]]) -> Result<(), String> {
        let last = self.found()?.ok_or("its checkpoint is gone")?;
        let workers = Workers::new(None).map_err(|e| e.to_string())?;
        for (i, (source, to)) in sources(&last)?.iter().zip(to).enumerate() {
            source.fill(Region::whole(source.shape()), to, &workers)?;
            if crc32fast::hash(to) != last.images[i].1 {
                return Err(format!("image {i} of its checkpoint after {} steps is damaged", last.steps));
            }
        }
        Ok(())
    }

    fn write(&self, steps: usize, images: &[CheckpointImage]) -> Result<(), String> {
        let told = |e: std::io::Error| describe_error(&e);
        let last = self.found()?.map(|last| last.folder);
        // Other checkpoints were not completed, or not removed.
        for entry in
            entries(&self.path)?.into_iter().filter(|entry| is_checkpoint(entry) && last.as_ref() != Some(entry))
        {
            fs::remove_dir_all(&entry).map_err(told)?;
        }
        let folder = self.path.join(format!("{PREFIX}{steps}"));
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
        flush_all(&folder).map_err(told)?;
        let image = |image: &CheckpointImage| json!({"type": name_of(image.dtype), "crc32": crc32fast::hash(image.pixels.bytes())});
        self.describe(Some(steps), &images.iter().map(image).collect::<Vec<_>>())?;
        if let Some(former) = last
            && let Err(e) = fs::remove_dir_all(&former)
        {
            log::debug!("{} is removed with the next checkpoint: {}", former.display(), describe_error(&e));
        }
        Ok(())
    }
}

fn group(attributes: Map<String, Value>) -> Value {
    json!({"zarr_format": 3, "node_type": "group", "attributes": attributes})
}

/// Returns `true` if a folder of the store has a checkpoint, complete or not.
fn is_checkpoint(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str()?.strip_prefix(PREFIX));
    name.is_some_and(|steps| steps.parse::<usize>().is_ok())
}

/// The entries of a folder, without the lock and attributes that were not completed.
fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.map_err(|e| describe_error(&e))?;
    Ok(entries
        .into_iter()
        .map(|entry| entry.path())
        .filter(|path| !path.ends_with(NEXT) && !path.ends_with(LOCK))
        .collect())
}

/// Waits until a file is on the disk.
fn flush(file: &Path) -> std::io::Result<()> {
    OpenOptions::new().write(true).open(file)?.sync_all()
}

/// Waits until the names in a folder are on the disk, on systems that can.
fn flush_folder(folder: &Path) -> std::io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Waits until a folder and everything in it is on the disk.
fn flush_all(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { flush_all(&path)? } else { flush(&path)? }
    }
    flush_folder(folder)
}
