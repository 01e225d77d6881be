//! Distribution of whole pictures to ranks, and exchange of the outcomes.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use horus_files::warn_once;
use serde::{Deserialize, Serialize};
use tempfile::NamedTempFile;

use super::Item;
use super::input::{Content, Input};
use super::save::Saved;
use crate::comm::agree::agree_on;
use crate::comm::{CommError, share_all};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::host::buffer::HostBuffer;
use crate::io::{self, OpenOptions, Picture, ScaleMessage, on_root};
use crate::session::Session;
use crate::shape::Shape;

/// Pictures of fewer pixels are distributed whole to the ranks of a series; larger pictures are
/// divided in strips.
pub const DEALT: usize = 1 << 22;

/// Inputs and their positions in the series: all inputs, or the inputs of one rank.
#[derive(Debug)]
pub(super) struct NumberedInputs<I> {
    inputs: I,
    /// Inputs taken early, returned first.
    peeked: VecDeque<Input>,
    next: usize,
    /// This rank and the number of ranks among which inputs are dealt.
    turn: (usize, usize),
    /// The paths of the inputs so far, if inputs are dealt.
    paths: Vec<Option<PathBuf>>,
}

impl<I> NumberedInputs<I> {
    pub(super) fn all(inputs: I) -> NumberedInputs<I> {
        NumberedInputs { inputs, peeked: VecDeque::new(), next: 0, turn: (0, 1), paths: Vec::new() }
    }

    /// Restricts to the inputs of one rank; none may have been taken yet.
    pub(super) fn dealt(self, rank: usize, ranks: usize) -> NumberedInputs<I> {
        NumberedInputs { turn: (rank, ranks), ..self }
    }

    /// The paths of the inputs of all ranks.
    pub(super) fn into_paths(self) -> Vec<Option<PathBuf>> {
        self.paths
    }
}

impl<I> Iterator for NumberedInputs<I>
where
    I: Iterator,
    I::Item: Into<Input>,
{
    type Item = (usize, Input);

    fn size_hint(&self) -> (usize, Option<usize>) {
        let (_, ranks) = self.turn;
        ((self.peeked.len() + self.inputs.size_hint().0) / ranks, None)
    }

    fn next(&mut self) -> Option<(usize, Input)> {
        let (rank, ranks) = self.turn;
        loop {
            let input = match self.peeked.pop_front() {
                Some(input) => input,
                None => self.inputs.next()?.into(),
            };
            let number = self.next;
            self.next += 1;
            if ranks > 1 {
                self.paths.push(input.path.clone());
            }
            if number % ranks == rank {
                return Some((number, input));
            }
        }
    }
}

/// Returns `true` if whole pictures are distributed. This requires that the first picture that rank
/// 0 can read is small and accepted by `free`, and that all ranks see the same file of that picture
/// and the same folder of its result `to`; ranks on several hosts may not.
///
/// # Errors
/// If another rank failed or ended.
pub(super) fn decide<I>(
    session: &Session,
    inputs: &mut NumberedInputs<I>,
    options: &OpenOptions,
    to: impl Fn(&Path) -> PathBuf,
    free: impl FnOnce(Picture) -> bool,
) -> Result<bool>
where
    I: Iterator,
    I::Item: Into<Input>,
{
    let (comm, op) = (session.comm(), "distributing the pictures of a series");
    let failed = |e: CommError| e.during(session.rank(), op);
    agree_on(comm, op)?;
    let nodes = comm.gather(comm.node() as u64).map_err(failed)?;
    let several = nodes.iter().any(|node| *node != nodes[0]);
    let folder_of = |path: &Path| {
        let to = to(if path.as_os_str().is_empty() { Path::new("000000") } else { path });
        to.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
    };
    let mut mark = None;
    let told = on_root(session, op, || {
        let (mut dealt, path) = match first(inputs, options) {
            Some((picture, path)) => (picture.shape().area() < DEALT && free(picture.clone()), path),
            None => (true, None),
        };
        let path = path.unwrap_or(Path::new(""));
        if dealt && several {
            // Ranks on other hosts recognise the folder by it. If the folder is not writable, rank 0 reports the reason.
            mark = tempfile::Builder::new().prefix(".horus-").tempfile_in(folder_of(path)).ok();
            dealt = mark.is_some();
        }
        let name = mark.as_ref().and_then(|mark| mark.path().file_name()).unwrap_or_default();
        Ok(dealt.then(|| (name.to_owned(), path.as_os_str().to_owned())))
    })?;
    let Some((name, path)) = told.map_err(Error::Config)? else { return Ok(false) };
    let path = PathBuf::from(path);
    let folder = folder_of(&path);
    // Copies of a folder on several hosts may have the same `identity`, but a new file differs.
    let (word, shared) =
        if several { (identity(&[&path]), folder.join(name).exists()) } else { (identity(&[&path, &folder]), true) };
    // Rank 0 always sees its own file.
    let words = comm.gather(if shared { word } else { !word }).map_err(failed)?;
    if let Some(Err(e)) = mark.map(NamedTempFile::close) {
        crate::warn!("cannot delete a temporary file in {}: {e}", folder.display());
    }
    let alike = words.iter().all(|other| *other == words[0]);
    if !alike {
        log::info!("the ranks do not see the same files: rank 0 reads and writes all pictures");
    }
    Ok(alike)
}

/// A hash that is equal on all hosts where these paths are the same files and folders. Paths that
/// do not exist count as equal.
fn identity(paths: &[&Path]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for path in paths {
        #[cfg(unix)]
        std::fs::metadata(path)
            .ok()
            .map(|found| {
                use std::os::unix::fs::MetadataExt;
                // Device numbers differ between hosts.
                (found.ino(), found.len(), found.mtime(), found.mtime_nsec())
            })
            .hash(&mut hasher);
        #[cfg(not(unix))]
        path.hash(&mut hasher);
    }
    hasher.finish()
}

/// The first readable picture and its path. The picture stays among the inputs.
fn first<'a, I>(inputs: &'a mut NumberedInputs<I>, options: &OpenOptions) -> Option<(&'a Picture, Option<&'a Path>)>
where
    I: Iterator,
    I::Item: Into<Input>,
{
    loop {
        let Input { path, content } = inputs.inputs.next()?.into();
        let everywhere = matches!(content, Content::Picture(_));
        let picture = Input::open(content, path.as_deref(), options, &HostBuffer::try_zeroed);
        let found = picture.is_ok();
        // Rank 0 sends the others the picture that only it has read.
        let content = if everywhere { Content::Picture(picture) } else { Content::Read(picture) };
        inputs.peeked.push_back(Input { path, content });
        if found {
            break;
        }
    }
    let Input { path, content } = inputs.peeked.back()?;
    match content {
        Content::Picture(picture) | Content::Read(picture) => Some((picture.as_ref().ok()?, path.as_deref())),
        Content::File | Content::Bytes(_) => None,
    }
}

/// The outcome of a picture, as sent to other ranks.
#[derive(Serialize, Deserialize)]
struct PictureOutcome {
    number: usize,
    picture: Option<(Shape, DType)>,
    result: std::result::Result<(OsString, Option<ScaleMessage>), PictureFailure>,
}

#[derive(Serialize, Deserialize)]
enum PictureFailure {
    Read(OsString, String),
    Write(OsString, String),
    Other(String),
}

/// The outcomes of a rank, and its warnings for rank 0: subjects and messages.
type Share = (Vec<PictureOutcome>, Vec<(String, String)>);

/// Exchanges the outcomes of all ranks and returns them in the order of the inputs, whose paths are
/// `paths`. Rank 0 logs the warnings that other ranks collected.
///
/// # Errors
/// If another rank failed or ended.
pub(super) fn exchange_outcomes(
    session: &Session,
    own: Vec<Item<Saved>>,
    held: Vec<(String, String)>,
    paths: &[Option<PathBuf>],
) -> Result<Vec<Item<Saved>>> {
    let (rank, op) = (session.rank(), "reporting the outcome of a series");
    let mine: Share = (own.iter().map(pack).collect(), held);
    agree_on(session.comm(), op)?;
    let mut items: Vec<Item<Saved>> = Vec::new();
    for (told, held) in share_all(session.comm(), &mine).map_err(|e| e.during(rank, op))? {
        items.extend(told.into_iter().map(|told| unpack(told, paths)));
        for (subject, message) in held.into_iter().filter(|_| rank == 0) {
            warn_once(&subject, || message);
        }
    }
    items.sort_by_key(|item| item.number);
    Ok(items)
}

fn pack(item: &Item<Saved>) -> PictureOutcome {
    PictureOutcome {
        number: item.number,
        picture: item.picture,
        result: match &item.result {
            Ok(saved) => Ok((saved.path.clone().into(), saved.scale.map(io::encode_scale))),
            Err(Error::File { action: "read", path, cause }) => {
                Err(PictureFailure::Read(path.clone().into(), cause.clone()))
            }
            Err(Error::File { action: "write", path, cause }) => {
                Err(PictureFailure::Write(path.clone().into(), cause.clone()))
            }
            Err(e) => Err(PictureFailure::Other(e.to_string())),
        },
    }
}

fn unpack(told: PictureOutcome, paths: &[Option<PathBuf>]) -> Item<Saved> {
    Item {
        number: told.number,
        path: paths.get(told.number).cloned().flatten(),
        picture: told.picture,
        result: match told.result {
            Ok((path, scale)) => Ok(Saved { path: path.into(), scale: scale.map(io::decode_scale) }),
            Err(PictureFailure::Read(path, cause)) => Err(Error::read(Path::new(&path), cause)),
            Err(PictureFailure::Write(path, cause)) => Err(Error::write(Path::new(&path), cause)),
            // Only its text was sent.
            Err(PictureFailure::Other(message)) => Err(Error::Config(message)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads::ThreadComm;
    use crate::io::Scale;

    #[test]
    fn ranks_take_turns_and_know_all_names() {
        let names = ["a", "b", "c", "d", "e"];
        let mut taken: Vec<(usize, Option<PathBuf>)> = Vec::new();
        for rank in 0..3 {
            let mut mine = NumberedInputs::all(names.iter().copied()).dealt(rank, 3);
            taken.extend(mine.by_ref().map(|(number, input)| (number, input.path)));
            assert_eq!(mine.into_paths().len(), 5);
        }
        taken.sort();
        let all: Vec<_> = names.iter().enumerate().map(|(i, n)| (i, Some(PathBuf::from(n)))).collect();
        assert_eq!(taken, all);
    }

    #[test]
    fn files_are_told_apart_and_found_again() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b, c) = (dir.path().join("a"), dir.path().join("b"), dir.path().join("c"));
        for path in [&a, &b] {
            std::fs::write(path, "as long").unwrap();
        }
        std::fs::hard_link(&a, &c).unwrap();
        assert_eq!(identity(&[&a, dir.path()]), identity(&[&c, dir.path()]));
        assert_ne!(identity(&[&a, dir.path()]), identity(&[&b, dir.path()]));
        let none = dir.path().join("none");
        assert_eq!(identity(&[Path::new(""), &none]), identity(&[&none, Path::new("")]));
        assert_ne!(identity(&[&a, &none]), identity(&[&none, &none]));
    }

    #[test]
    fn what_became_of_a_picture_survives_the_journey() {
        let scale = Some(Scale { low: 0.1, high: 1e300, full: 65535 });
        let results = [
            Ok(Saved { path: "out/a.png".into(), scale }),
            Ok(Saved { path: "out/b.png".into(), scale: None }),
            Err(Error::read(Path::new("c"), "broken")),
            Err(Error::write(Path::new("d"), "full")),
            Err(Error::Config("other".into())),
        ];
        for (number, result) in results.into_iter().enumerate() {
            let paths: Vec<_> = (0..5).map(|i| Some(PathBuf::from(format!("{i}")))).collect();
            let picture = Some((Shape::new(3, 70_000, 4), DType::ALL[number]));
            let item = Item { number, path: paths[number].clone(), picture, result };
            for back in ThreadComm::run(2, |comm| unpack(share_all(&comm, &pack(&item)).unwrap().remove(0), &paths)) {
                assert_eq!(format!("{item:?}"), format!("{back:?}"));
            }
        }
    }
}
