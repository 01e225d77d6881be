//! The target of a save: a complete file, and never a replacement of a device.

use std::fs::{self, File};
use std::io::{self, BufWriter, Cursor, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::{SpooledTempFile, spooled_tempfile};

use super::SinkRole;
use super::replace::{UnfinishedFile, is_writable, replace};
#[cfg(unix)]
use horus_host::streams::stdout_was_closed;

/// The output of an encoder, on any thread.
pub trait Sink: Write + Seek + Send {
    /// Announces the number of bytes to be written, so that space can be reserved. Fewer bytes may follow.
    fn expect(&mut self, bytes: u64) {
        let _ = bytes;
    }
}

impl Sink for File {
    fn expect(&mut self, bytes: u64) {
        // Without space, writing will fail.
        let _ = reserve(self, bytes);
    }
}

impl Sink for BufWriter<&File> {
    fn expect(&mut self, bytes: u64) {
        let _ = reserve(self.get_ref(), bytes);
    }
}

impl Sink for Cursor<Vec<u8>> {
    fn expect(&mut self, bytes: u64) {
        // Without memory, writing fails.
        let _ = usize::try_from(bytes).map(|bytes| self.get_mut().try_reserve_exact(bytes));
    }
}

/// Output to a stream is buffered in memory up to this size, beyond it in a temporary file.
pub const SPOOLED: usize = 8 << 20;

impl Sink for SpooledTempFile {}

/// Reserves blocks of a new file, which halves the time to write a large one.
///
/// # Errors
/// A message, if the file system reports that it is full. If it cannot report that, writing will fail.
pub(super) fn reserve(file: &File, bytes: u64) -> Result<(), String> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::Errno;
        const WORTHWHILE: u64 = 1 << 20;
        if bytes >= WORTHWHILE
            && let Err(e @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) =
                fallocate(file, FallocateFlags::KEEP_SIZE, 0, bytes)
        {
            return Err(format!("no room for its {bytes} bytes: {}", cause(e.into())));
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, bytes);
    Ok(())
}

/// A file to be written.
///
/// A regular or new file is written as an unnamed file in its directory and linked into place when complete. A failure
/// or a sudden end of the process leaves no partial file, and a program may overwrite the file that it read. (On file
/// systems without unnamed files, the new file has a temporary name, `.horus-*`, which remains only if the process is
/// killed.) The new file keeps the mode of the old one and, where the system permits, its owner and group. Other hard
/// links to the old file keep the old contents. Symbolic links are followed. An existing file that could not be opened
/// for writing is an error.
///
/// If the folder does not permit new files, an existing writable file is overwritten when the new contents are
/// complete, in a temporary file. Only then can a failure (a full disk) or a sudden end of the process leave partial
/// contents.
///
/// A file that is not regular is never replaced. Complete bytes are written to a character device or a pipe
/// (`/dev/null`, `/dev/stdout`, a FIFO, which waits for a reader); directories, sockets and block devices are errors.
#[derive(Debug)]
pub struct FileTarget {
    path: PathBuf,
    kind: FileTargetKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileTargetKind {
    /// A file that is replaced or created.
    Regular,
    /// A file that is opened and written.
    Stream,
    /// An open standard stream of this process.
    #[cfg(unix)]
    Standard(Standard),
}

#[cfg(unix)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standard {
    Output,
    Error,
}

impl FileTarget {
    /// Checks that the file can be written, as far as possible without creating it.
    ///
    /// # Errors
    /// A message, if the file cannot be written.
    pub fn new(path: &Path) -> Result<FileTarget, String> {
        let (path, kind) = resolve(path)?;
        #[cfg(unix)]
        if kind == FileTargetKind::Standard(Standard::Output) && stdout_was_closed() {
            return Err("it is closed".into());
        }
        if kind == FileTargetKind::Regular {
            is_writable(&path).map_err(cause)?;
            // Removed at once.
            UnfinishedFile::at(&path)?;
        }
        Ok(FileTarget { path, kind })
    }

    /// Returns `true` if the target is this process's standard output, by any name (`/dev/stdout`).
    pub fn is_stdout(&self) -> bool {
        #[cfg(unix)]
        return self.kind == FileTargetKind::Standard(Standard::Output);
        #[cfg(not(unix))]
        false
    }

    /// Begins a file that is written in parts and moved into place when complete.
    ///
    /// # Errors
    /// A message, if the file is not regular: other files only take bytes sequentially.
    pub(super) fn begin(self, role: SinkRole<'_>) -> Result<UnfinishedFile, String> {
        match (self.kind, role) {
            (FileTargetKind::Regular, SinkRole::First) => UnfinishedFile::at(&self.path),
            (FileTargetKind::Regular, SinkRole::Other(place)) => {
                UnfinishedFile::of_other(&place.path, place.number(), &self.path)
            }
            _ => Err("it is no regular file, and only those are written region by region".into()),
        }
    }

    /// Writes the file and, if it is regular, moves it into place.
    ///
    /// # Errors
    /// A message, if the file could not be written.
    pub fn fill(self, write: impl FnOnce(&mut dyn Sink) -> Result<(), String>) -> Result<(), String> {
        if self.kind == FileTargetKind::Regular {
            return replace(&self.path, write);
        }
        // Encoders seek; streams cannot.
        let mut bytes = spooled_tempfile(SPOOLED);
        write(&mut bytes)?;
        bytes.rewind().map_err(cause)?;
        let mut stream = match self.kind {
            // Through the open descriptor, so that the bytes are in order with printed output and do not overwrite it.
            #[cfg(unix)]
            FileTargetKind::Standard(stream) => stream.file(),
            _ => File::options().append(true).open(&self.path),
        }
        .map_err(cause)?;
        io::copy(&mut bytes, &mut stream).map(drop).map_err(cause)
    }
}

/// The folder of a file.
pub(super) fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Follows symbolic links to a file that need not exist. Returns its path and metadata.
fn resolve(path: &Path) -> Result<(PathBuf, FileTargetKind), String> {
    // The limit of operating systems.
    const LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..LINKS {
        // Links to open files have names that lead nowhere (`pipe:[17]`), or to a file that is already being written.
        #[cfg(unix)]
        match descriptor(&path) {
            Some(1) => return Ok((path, FileTargetKind::Standard(Standard::Output))),
            Some(2) => return Ok((path, FileTargetKind::Standard(Standard::Error))),
            Some(_) => return Ok((path, FileTargetKind::Stream)),
            None => {}
        }
        match fs::read_link(&path) {
            // A relative link starts from its own folder.
            Ok(to) => path = path.parent().unwrap_or(Path::new("")).join(to),
            Err(_) => return kind(&path).map(|kind| (path, kind)),
        }
    }
    Err("too many links".into())
}

/// The kind of file at a path that is not a link.
fn kind(path: &Path) -> Result<FileTargetKind, String> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => Ok(FileTargetKind::Regular),
        Ok(found) => match special(&found) {
            SpecialFileKind::Folder => Err("it is a folder".into()),
            SpecialFileKind::CharacterDevice | SpecialFileKind::Fifo => Ok(FileTargetKind::Stream),
            other => Err(format!("it is {other}, which is not overwritten")),
        },
        // Other errors of the path appear when a file is created.
        Err(_) => Ok(FileTargetKind::Regular),
    }
}

/// The number of the descriptor of this process that a path names, as `/dev/stdout` does.
#[cfg(unix)]
fn descriptor(path: &Path) -> Option<u32> {
    let number = path.file_name()?.to_str()?.parse().ok()?;
    let own = fs::canonicalize("/proc/self/fd").ok()?;
    (fs::canonicalize(path.parent()?).ok()? == own).then_some(number)
}

#[cfg(unix)]
impl Standard {
    fn file(self) -> io::Result<File> {
        use std::os::fd::AsFd;
        let descriptor = match self {
            Standard::Output => {
                io::stdout().flush()?;
                io::stdout().as_fd().try_clone_to_owned()
            }
            Standard::Error => io::stderr().as_fd().try_clone_to_owned(),
        };
        descriptor.map(File::from)
    }
}

/// Files that are not regular.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code))] // only Unix distinguishes the kinds
pub(super) enum SpecialFileKind {
    Folder,
    Fifo,
    Socket,
    CharacterDevice,
    BlockDevice,
    Other,
}

impl std::fmt::Display for SpecialFileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SpecialFileKind::Folder => "a directory",
            SpecialFileKind::Fifo => "a pipe",
            SpecialFileKind::Socket => "a socket",
            SpecialFileKind::CharacterDevice => "a character device",
            SpecialFileKind::BlockDevice => "a block device",
            SpecialFileKind::Other => "a special file",
        })
    }
}

/// The kind of a special file.
pub(super) fn special(found: &fs::Metadata) -> SpecialFileKind {
    let kind = found.file_type();
    if kind.is_dir() {
        return SpecialFileKind::Folder;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return SpecialFileKind::Fifo;
        } else if kind.is_socket() {
            return SpecialFileKind::Socket;
        } else if kind.is_char_device() {
            return SpecialFileKind::CharacterDevice;
        } else if kind.is_block_device() {
            return SpecialFileKind::BlockDevice;
        }
    }
    SpecialFileKind::Other
}

/// Returns `true` if two paths lead to the same file, by any names, links and hard links; the file need not exist yet.
/// Character devices (`/dev/null`) contain nothing that could be overwritten, and are never the same.
pub fn same_file(a: &Path, b: &Path) -> bool {
    match (fs::metadata(a), fs::metadata(b)) {
        #[cfg(unix)]
        (Ok(x), Ok(y)) => {
            use std::os::unix::fs::MetadataExt;
            (x.dev(), x.ino()) == (y.dev(), y.ino()) && special(&x) != SpecialFileKind::CharacterDevice
        }
        #[cfg(not(unix))]
        (Ok(_), Ok(_)) => located(a) == located(b),
        (Err(_), Err(_)) => located(a) == located(b),
        _ => false,
    }
}

/// The path of a file, with symbolic links resolved as far as it exists.
fn located(path: &Path) -> PathBuf {
    let path = resolve(path).map_or_else(|_| path.to_owned(), |(path, _)| path);
    match (fs::canonicalize(folder(&path)), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

/// The cause of an error, without the name of a temporary file, which has no meaning for the user.
pub fn cause(e: io::Error) -> String {
    if e.raw_os_error().is_some() { e.to_string() } else { e.kind().to_string() }
}
