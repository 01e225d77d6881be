//! The socket of a server: a file that only its owner may use, from the first moment on.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// The file of a socket that listens; removed when it is dropped.
#[derive(Debug)]
pub(super) struct SocketFile {
    path: PathBuf,
    /// Device and number of the file.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens at `path`. A socket without a server is replaced.
    ///
    /// # Errors
    /// A message: a server listens there already, the file is no socket, or it cannot be created.
    pub(super) fn listen(path: &Path) -> Result<(SocketFile, UnixListener), String> {
        let failed = |e: io::Error| format!("cannot listen at {}: {e}", path.display());
        let path = std::path::absolute(path).map_err(failed)?;
        let folder = path.parent().ok_or_else(|| format!("{} has no folder", path.display()))?;
        // Of several servers that start together, one after the other looks for a socket without a server.
        let starting = File::open(folder).map_err(failed)?;
        // Some file systems have no locks.
        let _ = starting.lock();
        make_room(&path)?;
        let (identity, listener) = bind(folder, &path).map_err(failed)?;
        Ok((SocketFile { path, identity }, listener))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another file may have this name meanwhile.
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

fn identity(path: &Path) -> io::Result<(u64, u64)> {
    fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Removes a socket without a server.
///
/// # Errors
/// A message: anything else is at this path.
fn make_room(path: &Path) -> Result<(), String> {
    let shown = path.display();
    match fs::symlink_metadata(path) {
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(format!("cannot listen at {shown}: {e}")),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(format!("{shown} is not a socket, and is not overwritten"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Ok(_) => Err(format!("a server listens at {shown} already")),
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|e| format!("cannot replace the socket {shown}: {e}"))
        }
        Err(e) => Err(format!("{shown} is the socket of another program: {e}")),
    }
}

/// Creates the socket in a folder that only its owner may enter, and moves it into place with its permissions:
/// `bind` itself grants what the umask does not withhold.
fn bind(folder: &Path, path: &Path) -> io::Result<((u64, u64), UnixListener)> {
    let owner_only = Permissions::from_mode(0o700);
    let private = tempfile::Builder::new().prefix(".horus-").permissions(owner_only).tempdir_in(folder)?;
    let made = private.path().join("s");
    let listener = UnixListener::bind(&made)?;
    fs::set_permissions(&made, Permissions::from_mode(0o600))?;
    let identity = identity(&made)?;
    fs::rename(&made, path)?;
    Ok((identity, listener))
}
