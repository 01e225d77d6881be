//! Where nodes are: in folders, or on servers.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value};
use zarrs::filesystem::FilesystemStore;
use zarrs::storage::ReadableStorageTraits;

#[cfg(feature = "remote")]
use crate::remote::RemoteObjects;

/// Maximum bytes of a node's metadata, which is text.
const LONGEST: u64 = 64 << 20;

/// A folder, or the objects of a server whose names have a common beginning.
#[derive(Clone, Debug)]
pub(crate) enum NodeLocation {
    Folder(PathBuf),
    #[cfg(feature = "remote")]
    Remote(RemoteObjects),
}

impl NodeLocation {
    /// The location at a path or URL, where images may use `limit` bytes.
    ///
    /// # Errors
    /// A message if it is an invalid URL.
    pub(crate) fn of(path: &Path, limit: usize) -> Result<NodeLocation, String> {
        match path.to_str() {
            Some(url) if crate::is_url(path) => NodeLocation::remote(url, limit),
            _ => Ok(NodeLocation::Folder(path.to_owned())),
        }
    }

    #[cfg(feature = "remote")]
    fn remote(url: &str, limit: usize) -> Result<NodeLocation, String> {
        RemoteObjects::at(url, limit).map(NodeLocation::Remote)
    }

    #[cfg(not(feature = "remote"))]
    fn remote(_: &str, _: usize) -> Result<NodeLocation, String> {
        Err(crate::WITHOUT_REMOTE.into())
    }

    /// The folder, if it is one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match self {
            NodeLocation::Folder(folder) => Some(folder),
            #[cfg(feature = "remote")]
            NodeLocation::Remote(_) => None,
        }
    }

    /// The location of a node below this one.
    pub(crate) fn join(&self, below: &Path) -> NodeLocation {
        match self {
            NodeLocation::Folder(folder) => NodeLocation::Folder(folder.join(below)),
            #[cfg(feature = "remote")]
            NodeLocation::Remote(objects) => NodeLocation::Remote(objects.below(below)),
        }
    }

    /// The path or URL of a file of the node.
    pub(crate) fn name_of(&self, file: &str) -> String {
        match self {
            NodeLocation::Folder(folder) => folder.join(file).display().to_string(),
            #[cfg(feature = "remote")]
            NodeLocation::Remote(objects) => objects.url_of(file),
        }
    }

    /// The JSON object in a file of the node; `None` if there is no file.
    ///
    /// # Errors
    /// A message if it cannot be read or is no JSON object.
    pub(crate) fn json(&self, name: &str) -> Result<Option<Map<String, Value>>, String> {
        let bytes = match self {
            NodeLocation::Folder(folder) => read(&folder.join(name)).map_err(|e| format!("its {name}{e}"))?,
            #[cfg(feature = "remote")]
            NodeLocation::Remote(objects) => {
                objects.metadata(name, LONGEST).map_err(|e| format!("its {name}: {e}"))?.map(Vec::from)
            }
        };
        let parsed = bytes.map(|bytes| serde_json::from_slice(&bytes)).transpose();
        parsed.map_err(|e| format!("its {name} cannot be understood: {e}"))
    }

    /// The files of the node, for `zarrs`.
    pub(crate) fn storage(&self) -> Result<Arc<dyn ReadableStorageTraits>, String> {
        match self {
            NodeLocation::Folder(folder) => Ok(Arc::new(FilesystemStore::new(folder).map_err(|e| e.to_string())?)),
            #[cfg(feature = "remote")]
            NodeLocation::Remote(objects) => Ok(Arc::new(objects.clone())),
        }
    }
}

/// The bytes of a file; `None` if there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, String> {
    let found = match fs::metadata(path) {
        Ok(found) if found.is_file() => found,
        Ok(_) => return Err(" is not a file".into()),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(format!(": {e}")),
    };
    if found.len() > LONGEST {
        return Err(format!(" has {} bytes; the limit is {LONGEST}", found.len()));
    }
    fs::read(path).map(Some).map_err(|e| format!(": {e}"))
}
