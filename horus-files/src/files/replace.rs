//! Atomic replacement of files: a file is complete or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::target::{Sink, cause, folder};

/// Prefix of temporary names.
const PREFIX: &str = ".horus-";

/// Writes a file in the directory of `path` and moves it into place.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut dyn Sink) -> Result<(), String>) -> Result<(), String> {
    let begun = Begun::at(path)?;
    let mut to = BufWriter::new(begun.file());
    write(&mut to)?;
    to.flush().map_err(cause)?;
    drop(to);
    begun.put()
}

/// A file being written: it is moved into place when complete, and removed when dropped.
#[derive(Debug)]
pub(super) struct Begun {
    path: PathBuf,
    new: New,
}

impl Begun {
    /// A new file in the directory of `path`.
    pub(super) fn at(path: &Path) -> Result<Begun, String> {
        let folder = folder(path);
        let failed = |e| format!("cannot create a file in {}: {}", folder.display(), cause(e));
        let new = match nameless::file(folder) {
            Some(file) => New::Nameless(file),
            None => New::Named(named(folder).map_err(failed)?),
        };
        Ok(Begun { path: path.to_owned(), new })
    }

    pub(super) fn file(&self) -> &File {
        match &self.new {
            New::Nameless(file) => file,
            New::Named(file) => file.as_file(),
        }
    }

    /// Moves it into place.
    pub(super) fn put(self) -> Result<(), String> {
        let put = || {
            if let Ok(old) = fs::metadata(&self.path) {
                inherit(self.file(), &old)?;
            }
            match self.new {
                New::Nameless(file) => nameless::put(file, &self.path),
                New::Named(file) => file.persist(&self.path).map(drop).map_err(|e| e.error),
            }
        };
        put().map_err(cause)
    }
}

/// A file that is not in place yet.
#[derive(Debug)]
enum New {
    /// Removed with the process, however that ends.
    Nameless(File),
    Named(NamedTempFile),
}

/// A new file under a temporary name.
fn named(folder: &Path) -> io::Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(PREFIX);
    // Temporary files are private by default; a picture gets the mode of any new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder)
}

/// Files without a name until they are complete.
#[cfg(target_os = "linux")]
mod nameless {
    use std::fs::{self, File};
    use std::io::{self, Seek};
    use std::os::fd::AsRawFd;
    use std::path::Path;

    use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, open};

    use super::{PREFIX, inherit, named};

    /// A new file in a directory, if its file system supports `O_TMPFILE` and linking it later.
    pub(super) fn file(folder: &Path) -> Option<File> {
        // The mode of any new file: subject to the umask.
        let mode = Mode::from_raw_mode(0o666);
        let file = File::from(open(folder, OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC, mode).ok()?);
        fs::symlink_metadata(of(&file)).ok()?;
        Some(file)
    }

    /// The path of an open file descriptor.
    fn of(file: &File) -> String {
        format!("/proc/self/fd/{}", file.as_raw_fd())
    }

    pub(super) fn put(file: File, path: &Path) -> io::Result<()> {
        let link = |to: &Path| Ok(linkat(CWD, of(&file), CWD, to, AtFlags::SYMLINK_FOLLOW)?);
        // If nothing exists at the path, a link suffices.
        if fs::symlink_metadata(path).is_err() && link(path).is_ok() {
            return Ok(());
        }
        match tempfile::Builder::new().prefix(PREFIX).make_in(super::folder(path), link) {
            Ok(linked) => linked.into_temp_path().persist(path).map_err(|e| e.error),
            Err(e) => {
                log::debug!("{}: {e}; copying the file instead", path.display());
                copied(file, path)
            }
        }
    }

    /// For file systems that cannot link an unnamed file.
    fn copied(mut file: File, path: &Path) -> io::Result<()> {
        let mut named = named(super::folder(path))?;
        file.rewind()?;
        io::copy(&mut file, named.as_file_mut())?;
        inherit(named.as_file(), &file.metadata()?)?;
        named.persist(path).map(drop).map_err(|e| e.error)
    }

    #[cfg(test)]
    mod tests {
        use std::io::{Read, Write};

        use super::*;

        #[test]
        fn a_copy_takes_the_place_where_no_name_is_given() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            fs::write(&path, "old").unwrap();
            let mut file = tempfile::tempfile_in(folder.path()).unwrap();
            file.write_all(b"new").unwrap();
            copied(file, &path).unwrap();
            assert_eq!(fs::read(&path).unwrap(), b"new");
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        }

        #[test]
        fn a_file_gets_a_name_beside_others_and_in_their_place() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            for text in ["new", "replaced"] {
                let Some(mut made) = file(folder.path()) else { return assert!(!offered(folder.path())) };
                made.write_all(text.as_bytes()).unwrap();
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), usize::from(path.exists()));
                put(made, &path).unwrap();
                let mut read = String::new();
                File::open(&path).unwrap().read_to_string(&mut read).unwrap();
                assert_eq!(read, text);
                assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
            }
        }

        /// Returns `true` if the file system supports unnamed files.
        fn offered(folder: &Path) -> bool {
            open(folder, OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR).is_ok()
        }
    }
}

/// Other systems have none.
#[cfg(not(target_os = "linux"))]
mod nameless {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    pub(super) fn file(_: &Path) -> Option<File> {
        None
    }

    pub(super) fn put(_: File, _: &Path) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Gives a new file the owner (as far as permitted) and the mode of the file that it replaces.
#[cfg(unix)]
fn inherit(new: &File, old: &fs::Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    const PERMISSIONS: u32 = 0o777;
    let mine = new.metadata()?;
    let kept = (mine.uid(), mine.gid()) == (old.uid(), old.gid())
        || fchown(new, Some(old.uid()), Some(old.gid())).is_ok()
        // Only root can change the owner; members can keep the group.
        || (fchown(new, None, Some(old.gid())).is_ok() && mine.uid() == old.uid());
    // A setuid program must not run as another user.
    let mode = if kept { old.mode() } else { old.mode() & PERMISSIONS };
    // Last, as a change of owner clears bits of the mode.
    new.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn inherit(new: &File, old: &fs::Metadata) -> io::Result<()> {
    new.set_permissions(old.permissions())
}
