//! Writes a store completely, or not at all.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::location::NodeLocation;
use crate::store::{Multiscale, ZarrNode};

/// Prefix of temporary names.
const PREFIX: &str = ".horus-";

/// A store being written, in a temporary folder next to its path. The folder is renamed when
/// complete and removed when dropped; a killed process leaves it (`.horus-*`).
#[derive(Debug)]
pub(crate) struct UnfinishedStore {
    path: PathBuf,
    folder: TempDir,
}

impl UnfinishedStore {
    /// Begins a store at a path where there is nothing, or a store of an image or array, which will
    /// be replaced.
    ///
    /// # Errors
    /// A message if there is something else, or if no folder can be created next to the path.
    pub(crate) fn at(path: &Path) -> Result<UnfinishedStore, String> {
        // Follow links.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if path.file_name().is_none() {
            return Err("it has no name".into());
        }
        if fs::symlink_metadata(&path).is_ok() {
            replaceable(&path)?;
        }
        let beside = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut builder = tempfile::Builder::new();
        builder.prefix(PREFIX);
        // Temporary folders are private by default; a store has default permissions.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o777));
        let folder = builder.tempdir_in(beside);
        let folder =
            folder.map_err(|e| format!("cannot create a folder in {}: {}", beside.display(), describe_error(&e)))?;
        Ok(UnfinishedStore { path, folder })
    }

    /// The temporary folder.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Moves the folder to its path and removes the former store.
    pub(crate) fn commit(self) -> Result<(), String> {
        // Another process may have put something else there meanwhile.
        if fs::symlink_metadata(&self.path).is_ok() {
            replaceable(&self.path)?;
            if exchange(self.folder.path(), &self.path).map_err(|e| describe_error(&e))? {
                return Ok(()); // the temporary folder holds the old store
            }
            let aside =
                tempfile::Builder::new().prefix(PREFIX).tempdir_in(self.folder.path().parent().unwrap_or(&self.path));
            let aside = aside.map_err(|e| describe_error(&e))?;
            let old = aside.path().join("old");
            fs::rename(&self.path, &old).map_err(|e| describe_error(&e))?;
            return fs::rename(self.folder.path(), &self.path).map_err(|e| {
                let _ = fs::rename(&old, &self.path);
                describe_error(&e)
            });
        }
        fs::rename(self.folder.path(), &self.path).map_err(|e| describe_error(&e))
    }
}

/// Fails unless the existing content is a store that can be replaced.
fn replaceable(path: &Path) -> Result<(), String> {
    if !path.is_dir() {
        return Err("it is a file, which is not overwritten by a folder".into());
    }
    if fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()) {
        return Ok(());
    }
    match ZarrNode::at(&NodeLocation::Folder(path.to_owned())) {
        Ok(ZarrNode::Array) => Ok(()),
        Ok(ZarrNode::Group(attributes)) if matches!(Multiscale::of(&attributes), Ok(Some(_))) => Ok(()),
        _ => Err("it is a folder without a Zarr image, and is not overwritten".into()),
    }
}

/// Exchanges two folders atomically; returns `false` if the system cannot.
#[cfg(target_os = "linux")]
fn exchange(a: &Path, b: &Path) -> io::Result<bool> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    use rustix::io::Errno;
    match renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::NOSYS) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

#[cfg(not(target_os = "linux"))]
fn exchange(_: &Path, _: &Path) -> io::Result<bool> {
    Ok(false)
}

/// Formats an error without the name of a temporary folder, which would not help the user.
pub(crate) fn describe_error(e: &io::Error) -> String {
    if e.raw_os_error().is_some() { e.to_string() } else { e.kind().to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn array(folder: &Path, content: &str) {
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join("zarr.json"), r#"{"node_type": "array"}"#).unwrap();
        fs::write(folder.join("content"), content).unwrap();
    }

    #[test]
    fn a_store_is_there_when_it_is_complete() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.zarr");
        for content in ["new", "replaced"] {
            let begun = UnfinishedStore::at(&path).unwrap();
            array(begun.folder(), content);
            let before = fs::read_to_string(path.join("content")).ok();
            assert_eq!(before.is_some(), content == "replaced");
            begun.commit().unwrap();
            assert_eq!(fs::read_to_string(path.join("content")).unwrap(), content);
            assert_eq!(names(home.path()), ["a.zarr"]);
        }
        drop(UnfinishedStore::at(&path).unwrap());
        assert_eq!(fs::read_to_string(path.join("content")).unwrap(), "replaced");
        assert_eq!(names(home.path()), ["a.zarr"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_store_is_as_readable_as_any_folder_and_links_are_followed() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::create_dir(at("other")).unwrap();
        array(&at("far.zarr"), "old");
        std::os::unix::fs::symlink("far.zarr", at("link.zarr")).unwrap();
        let begun = UnfinishedStore::at(&at("link.zarr")).unwrap();
        array(begun.folder(), "new");
        begun.commit().unwrap();
        assert!(at("link.zarr").is_symlink());
        assert_eq!(fs::read_to_string(at("far.zarr").join("content")).unwrap(), "new");
        let mode = |name: &str| fs::metadata(at(name)).unwrap().permissions().mode();
        assert_eq!(mode("far.zarr"), mode("other"));
    }

    #[test]
    fn what_is_no_image_is_not_replaced() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        fs::write(at("file"), "").unwrap();
        assert!(UnfinishedStore::at(&at("file")).unwrap_err().contains("it is a file"));
        fs::create_dir(at("group")).unwrap();
        UnfinishedStore::at(&at("group")).unwrap();
        fs::write(at("group").join("zarr.json"), r#"{"node_type": "group"}"#).unwrap();
        assert!(UnfinishedStore::at(&at("group")).unwrap_err().contains("without a Zarr image"));
        let error = UnfinishedStore::at(&at("none").join("a.zarr")).unwrap_err();
        assert!(error.contains("cannot create a folder in") && !error.contains(".horus-"), "{error}");
        assert!(UnfinishedStore::at(Path::new("/")).is_err());
    }
}
