//! The inputs and outputs of a series: directories and lists become paths, paths become names of outputs.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use horus_core::io::Format;

use crate::caller::{Caller, STANDARD};

/// A picture to read, and the file to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PicturePair {
    /// The picture.
    pub input: PathBuf,
    /// The file that its result goes to.
    pub output: PathBuf,
}

/// The pictures that `words` and the lines of `list` name, in this order. A directory stands for its pictures, sorted
/// by name; an empty one is logged.
///
/// # Errors
/// A message: a list or directory that cannot be read, no pictures at all.
pub fn pictures(caller: &Caller, words: &[PathBuf], list: Option<&Path>) -> Result<Vec<PathBuf>, String> {
    let mut all = words.to_vec();
    if let Some(list) = list {
        all.extend(listed(caller, list)?);
    }
    let (mut found, mut empty) = (Vec::new(), Vec::new());
    for path in all {
        if path.as_os_str() == STANDARD {
            return Err("a series cannot read a picture from stdin; --files-from - reads names from there".into());
        }
        if super::stores::is_store(&path) {
            return Err(format!("{} is a Zarr store, which is read alone, not in a series", path.display()));
        }
        if path.is_dir() {
            let pictures = folder(&path)?;
            if pictures.is_empty() {
                empty.push(format!("no pictures in {}", path.display()));
            }
            found.extend(pictures);
        } else {
            found.push(path);
        }
    }
    if found.is_empty() {
        return Err(if empty.is_empty() { "no pictures given".into() } else { empty.join("; ") });
    }
    empty.iter().for_each(|folder| ::log::warn!("{folder}"));
    Ok(found)
}

/// The paths in a file: one per line, or, as written by `find -print0`, each ended by a zero byte, which no name
/// contains.
fn listed(caller: &Caller, list: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("cannot read the list {}: {e}", list.display());
    let bytes = if list.as_os_str() == STANDARD {
        let mut bytes = Vec::new();
        caller.input().read_to_end(&mut bytes).map_err(failed)?;
        bytes
    } else {
        fs::read(list).map_err(failed)?
    };
    if bytes.contains(&0) {
        return bytes.split(|b| *b == 0).filter(|name| !name.is_empty()).map(path_of).collect();
    }
    let lines = bytes.split(|b| *b == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    lines.filter(|line| !line.is_empty()).map(path_of).collect()
}

/// A name as the system stores it, which need not be Unicode.
#[cfg(unix)]
fn path_of(line: &[u8]) -> Result<PathBuf, String> {
    use std::os::unix::ffi::OsStrExt;
    Ok(PathBuf::from(std::ffi::OsStr::from_bytes(line)))
}

#[cfg(not(unix))]
fn path_of(line: &[u8]) -> Result<PathBuf, String> {
    let text = std::str::from_utf8(line).map_err(|_| "a line of the list is not valid Unicode".to_owned())?;
    Ok(PathBuf::from(text))
}

/// The pictures in a folder, by extension, sorted by name.
fn folder(path: &Path) -> Result<Vec<PathBuf>, String> {
    let failed = |e: std::io::Error| format!("cannot list {}: {e}", path.display());
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(failed)? {
        let entry = entry.map_err(failed)?.path();
        let extension = entry.extension().and_then(|e| e.to_str()).unwrap_or_default().to_ascii_lowercase();
        let hidden = entry.file_name().is_some_and(|n| n.as_encoded_bytes().starts_with(b"."));
        if Format::is_read(&extension) && !hidden && !entry.is_dir() {
            found.push(entry);
        }
    }
    found.sort();
    Ok(found)
}

/// Names the output of each picture: `DIR/NAME.EXTENSION` for `.../NAME.any`.
///
/// # Errors
/// A message: pictures without names, two pictures with the same output, an output that would
/// overwrite a picture of the series.
pub fn outputs(pictures: Vec<PathBuf>, dir: &Path, extension: &str) -> Result<Vec<PicturePair>, String> {
    let mut taken: HashMap<PathBuf, PathBuf> = HashMap::new();
    let mut pairs = Vec::with_capacity(pictures.len());
    for input in pictures {
        let stem = input
            .file_stem()
            .ok_or_else(|| format!("{} has no file name to derive the result's from", input.display()))?;
        let mut name = stem.to_owned();
        name.push(".");
        name.push(extension);
        let output = dir.join(name);
        if let Some(other) = taken.insert(output.clone(), input.clone()) {
            if other == input {
                return Err(format!("{} is given more than once", input.display()));
            }
            let (other, input, output) = (other.display(), input.display(), output.display());
            return Err(format!("{other} and {input} would both be written to {output}; run them as two series"));
        }
        pairs.push(PicturePair { input, output });
    }
    let read: HashMap<PathBuf, &Path> =
        pairs.iter().filter_map(|p| Some((fs::canonicalize(&p.input).ok()?, p.input.as_path()))).collect();
    for PicturePair { input, output } in &pairs {
        if let Some(read) = fs::canonicalize(output).ok().and_then(|output| read.get(&output)) {
            let (input, read) = (input.display(), read.display());
            return Err(format!("the result of {input} would overwrite {read}: choose another --out-dir"));
        }
    }
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<PathBuf> {
        names.iter().map(PathBuf::from).collect()
    }

    #[test]
    fn a_folder_gives_its_pictures_sorted() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["b.PNG", "a.tif", "notes.txt", ".hidden.png", "c.npy", "png"] {
            fs::write(dir.path().join(name), "").unwrap();
        }
        fs::create_dir(dir.path().join("folder.png")).unwrap();
        let caller = &Caller::process();
        let found = pictures(caller, &[PathBuf::from("first.jpg"), dir.path().to_owned()], None).unwrap();
        let names: Vec<_> = found.iter().map(|p| p.file_name().unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["first.jpg", "a.tif", "b.PNG", "c.npy"]);
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(pictures(caller, &[empty.path().to_owned(), dir.path().to_owned()], None).unwrap().len(), 3);
        assert!(pictures(caller, &[empty.path().to_owned()], None).unwrap_err().contains("no pictures in"));
        assert!(pictures(caller, &[], None).unwrap_err().contains("no pictures"));
        assert!(pictures(caller, &paths(&["-"]), None).unwrap_err().contains("stdin"));
    }

    #[test]
    fn a_list_gives_a_path_per_line() {
        let dir = tempfile::tempdir().unwrap();
        let list = dir.path().join("list");
        fs::write(&list, "a b.png\r\n\n./c.png\n d.png").unwrap();
        let caller = &Caller::process();
        assert_eq!(pictures(caller, &[], Some(&list)).unwrap(), paths(&["a b.png", "./c.png", " d.png"]));
        // Names with line breaks come from `find -print0`.
        fs::write(&list, "a\nb.png\0c.png\0").unwrap();
        assert_eq!(pictures(caller, &[], Some(&list)).unwrap(), paths(&["a\nb.png", "c.png"]));
        assert!(pictures(caller, &[], Some(&dir.path().join("none"))).unwrap_err().contains("cannot read the list"));
    }

    #[test]
    fn results_are_called_as_their_pictures() {
        let pairs = outputs(paths(&["x/a.b.png", "y/c"]), Path::new("out"), "tif").unwrap();
        let names: Vec<_> = pairs.iter().map(|p| p.output.to_str().unwrap()).collect();
        assert_eq!(names, ["out/a.b.tif", "out/c.tif"]);
        let twice = outputs(paths(&["x/a.png", "y/b.png", "y/a.jpg"]), Path::new("out"), "png").unwrap_err();
        assert_eq!(twice, "x/a.png and y/a.jpg would both be written to out/a.png; run them as two series");
        assert!(outputs(paths(&[".."]), Path::new("out"), "png").unwrap_err().contains("no file name"));
    }

    #[test]
    fn no_result_overwrites_a_picture() {
        let dir = tempfile::tempdir().unwrap();
        let a = dir.path().join("a.png");
        fs::write(&a, "").unwrap();
        let error = outputs(vec![a.clone()], &dir.path().join("."), "png").unwrap_err();
        assert!(error.contains("would overwrite"), "{error}");
        assert_eq!(outputs(vec![a], dir.path(), "tif").unwrap().len(), 1);
    }
}
