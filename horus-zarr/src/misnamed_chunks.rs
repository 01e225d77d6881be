//! Detection of chunks with other names than the metadata of their array says.

use std::fs;
use std::path::{Path, PathBuf};

/// Searches the folder of an array for a file with the name of a chunk, if no file has a name like
/// `key`, a chunk of the array. An array without stored chunks has no such file.
pub(crate) fn chunk_of_another_name(array: &Path, key: &str) -> Option<String> {
    /// Maximum number of folder entries that are read.
    const MOST: usize = 1 << 14;
    let (mut folders, mut astray, mut seen) = (vec![String::new()], None, 0);
    while let Some(below) = folders.pop() {
        let entries = fs::read_dir(array.join(&below)).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.take(MOST).map(|entry| entry.path()).collect();
        paths.sort();
        let mut inside = Vec::new();
        for path in paths {
            let name = path.file_name().and_then(|name| name.to_str()).map(|name| format!("{below}{name}"));
            let Some(name) = name.filter(|name| is_of_chunk(name)) else { continue };
            seen += 1;
            if seen > MOST {
                return None;
            }
            if path.is_dir() {
                inside.push(name + "/");
            } else if form(&name) == form(key) {
                return None;
            } else {
                astray.get_or_insert(name);
            }
        }
        folders.extend(inside.into_iter().rev());
    }
    astray
}

/// Returns `true` if this is the beginning of a chunk's name in any encoding: `0.1`, `0/1`, `c/0/1`
/// or `c.0.1`.
fn is_of_chunk(name: &str) -> bool {
    let numbers = name.strip_prefix('c').unwrap_or(name);
    !name.starts_with('.') && numbers.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '/'))
}

/// Replaces each number in a name by 0.
fn form(name: &str) -> String {
    let mut form = String::new();
    for c in name.chars() {
        match c {
            c if !c.is_ascii_digit() => form.push(c),
            _ if form.ends_with('0') => {}
            _ => form.push('0'),
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_chunks_of_another_name_are_told() {
        let told = |key: &str, files: &[&str]| {
            let array = tempfile::tempdir().unwrap();
            for file in files {
                let path = array.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            chunk_of_another_name(array.path(), key)
        };
        let (dots, slashes) = ([".zarray", ".zattrs", "2.3"], [".zarray", "0/0", "10/3"]);
        assert_eq!(told("0.0", &slashes).as_deref(), Some("0/0"));
        assert_eq!(told("0/0", &dots).as_deref(), Some("2.3"));
        assert_eq!(told("c/0/0", &["zarr.json", "0/0"]).as_deref(), Some("0/0"));
        assert_eq!(told("c/0/0", &["zarr.json", "c/0.1"]).as_deref(), Some("c/0.1"));
        assert_eq!(told("c/0/0", &["zarr.json", "c/0/1/2"]).as_deref(), Some("c/0/1/2"));
        // Sparse arrays, and files that are not chunks.
        assert_eq!(told("0.0", &dots), None);
        assert_eq!(told("0/0", &slashes), None);
        assert_eq!(told("c/0/0", &["zarr.json", "c/120/7"]), None);
        assert_eq!(told("c.0.0", &["zarr.json", "c.12.7"]), None);
        assert_eq!(told("0.0", &[".zarray"]), None);
        assert_eq!(told("0.0", &[".zarray", "README", "thumbs/0", ".0.0"]), None);
    }
}
