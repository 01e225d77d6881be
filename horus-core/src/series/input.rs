//! The inputs of a series.

use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::io::{Allocate, OpenOptions, Picture};

/// An input of a series: a file to read, or a picture made or read by the program.
///
/// [`Session::series`](crate::session::Session::series) converts paths and pictures to inputs.
#[derive(Debug)]
pub struct Input {
    pub(super) path: Option<PathBuf>,
    pub(super) content: Content,
}

#[derive(Debug)]
pub(super) enum Content {
    /// The content of the file at the path.
    File,
    /// The bytes of a file.
    Bytes(Vec<u8>),
    /// A picture that every rank has.
    Picture(Result<Picture>),
    /// A picture that this rank has read.
    Read(Result<Picture>),
}

impl Input {
    /// Sets the name of the picture, from which the name of its result is derived.
    #[must_use]
    pub fn named(mut self, name: impl Into<PathBuf>) -> Input {
        if matches!(self.content, Content::File) {
            return self;
        }
        self.path = Some(name.into());
        self
    }

    /// Reads and decodes the input, on any thread, into memory that `room` allocates.
    pub(super) fn open(
        content: Content,
        path: Option<&Path>,
        options: &OpenOptions,
        room: Allocate<'_>,
    ) -> Result<Picture> {
        match content {
            Content::File => Picture::open_in(path.unwrap_or(Path::new("")), options, room),
            Content::Bytes(bytes) => Picture::read_in(&bytes, options, room),
            Content::Picture(picture) | Content::Read(picture) => picture,
        }
    }
}

macro_rules! from_paths {
    ($($path:ty),*) => {
        $(impl From<$path> for Input {
            fn from(path: $path) -> Input {
                Input { path: Some(PathBuf::from(path)), content: Content::File }
            }
        })*
    };
}
from_paths!(PathBuf, &PathBuf, &Path, String, &String, &str);

/// The bytes of a file.
impl From<Vec<u8>> for Input {
    fn from(bytes: Vec<u8>) -> Input {
        Input { path: None, content: Content::Bytes(bytes) }
    }
}

impl From<Picture> for Input {
    fn from(picture: Picture) -> Input {
        Ok(picture).into()
    }
}

/// A picture, or an error that is yielded instead of its result.
impl From<Result<Picture>> for Input {
    fn from(picture: Result<Picture>) -> Input {
        Input { path: None, content: Content::Picture(picture) }
    }
}
