//! Atomic replacement of files: a file is complete or absent. A file is overwritten only if its folder does not permit
//! new files, and only after its new contents are complete.

use std::env::temp_dir;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Seek, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::cause;
use super::target::{Sink, folder};

/// Prefix of temporary names.
const PREFIX: &str = ".horus-";

/// Writes a file in the directory of `path` and moves it into place.
pub(super) fn replace(path: &Path, write: impl FnOnce(&mut dyn Sink) -> Result<(), String>) -> Result<(), String> {
    let begun = UnfinishedFile::at(path)?;
    let mut to = BufWriter::new(begun.file());
    write(&mut to)?;
    to.flush().map_err(cause)?;
    drop(to);
    begun.move_into_place()
}

/// A file being written: moved into place when complete, removed when dropped.
#[derive(Debug)]
pub(super) struct UnfinishedFile {
    path: PathBuf,
    new: NewFile,
}

impl UnfinishedFile {
    /// A new file in the directory of `path`; in the directory for temporary files, if only the file at `path` can be
    /// written.
    pub(super) fn at(path: &Path) -> Result<UnfinishedFile, String> {
        let folder = folder(path);
        let created = |folder: &Path, e| format!("cannot create a file in {}: {}", folder.display(), cause(e));
        let new = match nameless::file(folder) {
            Some(file) => NewFile::Nameless(file),
            None => match named(folder) {
                Ok(file) => NewFile::Named(file),
                Err(e) if is_permission_error(&e) && is_writable(path).is_ok_and(|exists| exists) => {
                    NewFile::Elsewhere(tempfile::tempfile().map_err(|e| created(&temp_dir(), e))?)
                }
                Err(e) => return Err(created(folder, e)),
            },
        };
        Ok(UnfinishedFile { path: path.to_owned(), new })
    }

    /// The file with this number that another process has begun at `place`, and moves into place.
    pub(super) fn of_other(place: &Path, number: &[u64], path: &Path) -> Result<UnfinishedFile, String> {
        let file = File::options().write(true).open(place).map_err(cause)?;
        if file_number(&file) != number {
            return Err("another file is at this place".into());
        }
        Ok(UnfinishedFile { path: path.to_owned(), new: NewFile::OfOther(file) })
    }

    pub(super) fn file(&self) -> &File {
        match &self.new {
            NewFile::Nameless(file) | NewFile::Elsewhere(file) | NewFile::OfOther(file) => file,
            NewFile::Named(file) => file.as_file(),
        }
    }

    /// Returns `true` if another process moves the file into place.
    pub(super) fn is_of_other(&self) -> bool {
        matches!(self.new, NewFile::OfOther(_))
    }

    /// A path by which other processes of this host can open the file.
    pub(super) fn place(&self) -> Option<PathBuf> {
        match &self.new {
            NewFile::Named(file) => Some(file.path().to_owned()),
            #[cfg(target_os = "linux")]
            NewFile::Nameless(file) => {
                use std::os::fd::AsRawFd;
                Some(format!("/proc/{}/fd/{}", std::process::id(), file.as_raw_fd()).into())
            }
            _ => None,
        }
    }

    /// Moves the file into place, or overwrites the existing one if its folder does not permit that.
    pub(super) fn move_into_place(self) -> Result<(), String> {
        let put = || {
            let mut file = self.file().try_clone()?;
            let moved = match self.new {
                NewFile::OfOther(_) => return Ok(()),
                NewFile::Elsewhere(_) => return overwrite(&mut file, &self.path),
                NewFile::Nameless(_) | NewFile::Named(_) => {
                    if let Ok(old) = fs::metadata(&self.path) {
                        inherit(&file, &old)?;
                    }
                    match self.new {
                        NewFile::Named(file) => file.persist(&self.path).map(drop).map_err(|e| e.error),
                        NewFile::Nameless(file) | NewFile::Elsewhere(file) | NewFile::OfOther(file) => {
                            nameless::put(file, &self.path)
                        }
                    }
                }
            };
            match moved {
                // In a folder for all (`/tmp`), files of other users cannot be replaced.
                Err(e) if is_permission_error(&e) && self.path.exists() => overwrite(&mut file, &self.path),
                moved => moved,
            }
        };
        put().map_err(cause)
    }
}

/// The number of a file, if the system has one.
pub(super) fn file_number(file: &File) -> Vec<u64> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        file.metadata().map_or_else(|_| Vec::new(), |found| vec![found.dev(), found.ino()])
    }
    #[cfg(not(unix))]
    {
        let _ = file;
        Vec::new()
    }
}

/// Returns `true` if the error says that the user may not create or replace files in a folder.
pub(super) fn is_permission_error(e: &io::Error) -> bool {
    matches!(e.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
}

/// Returns `true` if the file at a path could be opened for writing, `false` if there is none.
pub(super) fn is_writable(path: &Path) -> io::Result<bool> {
    match File::options().write(true).open(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// Overwrites the contents of the file at a path with the contents of `from`.
fn overwrite(from: &mut File, path: &Path) -> io::Result<()> {
    from.rewind()?;
    let mut options = File::options();
    options.write(true);
    // Others may have replaced the file by a link or a pipe since its path was resolved.
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let mut to = options.open(path)?;
    if !to.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    to.set_len(0)?;
    io::copy(from, &mut to).map(drop)
}

/// A file that is not in place yet.
#[derive(Debug)]
enum NewFile {
    /// A file without a name: it disappears with the process, however that ends.
    Nameless(File),
    Named(NamedTempFile),
    /// A file without a name in the directory for temporary files.
    Elsewhere(File),
    /// A file that another process moves into place.
    OfOther(File),
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

    /// A new file in a directory, if its file system supports `O_TMPFILE` and linking the file later.
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

    /// Copies the file, for file systems that cannot link an unnamed file.
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

/// Other systems have no unnamed files.
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
    // Last, because a change of owner clears bits of the mode.
    new.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
fn inherit(new: &File, old: &fs::Metadata) -> io::Result<()> {
    new.set_permissions(old.permissions())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use rustix::process::{Gid, Uid, geteuid};
    use rustix::thread::{set_thread_res_gid, set_thread_res_uid};

    use super::super::{FileTarget, SinkRole};
    use super::*;

    /// Runs `work` on a thread of a user to whom the modes of files apply: they do not apply to root.
    fn as_user<R: Send>(work: impl FnOnce() -> R + Send) -> R {
        let nobody = || {
            if geteuid().is_root() {
                let (uid, gid) = (Uid::from_raw(65_534), Gid::from_raw(65_534));
                set_thread_res_gid(gid, gid, gid).unwrap();
                set_thread_res_uid(uid, uid, uid).unwrap();
            }
            work()
        };
        std::thread::scope(|scope| scope.spawn(nobody).join().unwrap())
    }

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    fn save(path: &Path, text: &str) -> Result<(), String> {
        FileTarget::new(path)?.fill(|to| to.write_all(text.as_bytes()).map_err(cause))
    }

    #[test]
    fn modes_of_files_are_respected() {
        let folder = tempfile::tempdir().unwrap();
        let (locked, open) = (folder.path().join("locked"), folder.path().join("open"));
        for path in [&locked, &open] {
            fs::write(path, "the old text").unwrap();
        }
        set_mode(&locked, 0o444);
        set_mode(&open, 0o666);
        // A folder that permits new files; a file that cannot be written is an error nevertheless.
        set_mode(folder.path(), 0o777);
        let told = as_user(|| save(&locked, "new").unwrap_err());
        assert!(told.contains("Permission denied"), "{told}");
        as_user(|| save(&open, "new")).unwrap();
        // A folder that does not permit new files: a file is overwritten when its contents are complete.
        set_mode(folder.path(), 0o555);
        let told = as_user(|| save(&locked, "new").unwrap_err());
        assert!(told.contains("Permission denied"), "{told}");
        let failed = as_user(|| {
            FileTarget::new(&open)?.fill(|to| to.write_all(b"half").map_err(cause).and(Err("it failed".into())))
        });
        assert_eq!((failed, fs::read(&open).unwrap()), (Err("it failed".into()), b"new".to_vec()));
        as_user(|| save(&open, "short")).unwrap();
        assert_eq!(fs::read(&open).unwrap(), b"short");
        let begun = as_user(|| {
            let begun = FileTarget::new(&open)?.begin(SinkRole::First)?;
            begun.file().write_all(b"in parts").map_err(cause)?;
            begun.move_into_place()
        });
        assert_eq!((begun, fs::read(&open).unwrap()), (Ok(()), b"in parts".to_vec()));
        let told = as_user(|| save(&folder.path().join("none"), "new").unwrap_err());
        assert!(told.starts_with("cannot create a file in "), "{told}");
        set_mode(folder.path(), 0o700);
        assert_eq!(
            (fs::read(&locked).unwrap(), fs::read_dir(folder.path()).unwrap().count()),
            (b"the old text".to_vec(), 2)
        );
    }

    #[test]
    fn another_opener_writes_the_same_file_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("shared");
        let begun = UnfinishedFile::at(&path).unwrap();
        let (place, number) = (begun.place().expect("a place"), file_number(begun.file()));
        let refused = UnfinishedFile::of_other(&place, &[number[0], number[1] + 1], &path).unwrap_err();
        assert_eq!(refused, "another file is at this place");
        let other = UnfinishedFile::of_other(&place, &number, &path).unwrap();
        other.file().write_all(b"both").unwrap();
        other.move_into_place().unwrap();
        assert!(!path.exists(), "the first process moves it");
        begun.move_into_place().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"both");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    /// In a folder such as `/tmp`, only the owner of a file may replace it.
    #[test]
    fn files_of_others_are_overwritten_where_they_cannot_be_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "the old text").unwrap();
        set_mode(&path, 0o666);
        set_mode(folder.path(), 0o1777);
        as_user(|| save(&path, "new")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count()), (b"new".to_vec(), 1));
    }
}
