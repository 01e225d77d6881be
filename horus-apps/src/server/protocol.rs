//! Messages between client and server, as `docs/command.md` describes them.

use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use tempfile::{SpooledTempFile, spooled_tempfile};

use crate::outbox::header;

/// The kind of the frame that asks for standard input.
pub(super) const ASK: u8 = 0;
/// Bytes of a request at most.
const MOST_REQUEST: usize = 16 << 20;
/// Bytes of standard input at most, as for pictures in pipes.
const MOST_INPUT: u64 = 8 << 30;
/// Bytes of standard input in memory; more are in a temporary file.
const SPOOLED: usize = 8 << 20;

/// The words of a command line and the directory where it was typed.
#[derive(Debug, PartialEq)]
pub(super) struct RequestWords {
    pub(super) directory: PathBuf,
    pub(super) words: Vec<OsString>,
}

impl RequestWords {
    /// Reads a request; `None` if the client sends nothing.
    ///
    /// # Errors
    /// A message about an invalid or incomplete request.
    pub(super) fn read(from: &mut impl Read) -> Result<Option<RequestWords>, String> {
        let failed = |e: io::Error| match e.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => "the request did not arrive in time".to_owned(),
            _ => format!("cannot read the request: {e}"),
        };
        let mut length = Vec::new();
        from.take(4).read_to_end(&mut length).map_err(failed)?;
        let length = match <[u8; 4]>::try_from(&length[..]) {
            Ok(length) => u32::from_be_bytes(length) as usize,
            Err(_) if length.is_empty() => return Ok(None),
            Err(_) => return Err("the request ends within its length".into()),
        };
        if length > MOST_REQUEST {
            return Err(format!("the request has {length} bytes; the limit is {MOST_REQUEST}"));
        }
        let mut bytes = Vec::new();
        from.take(length as u64).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() < length {
            return Err(format!("the request ends after {} of {length} bytes", bytes.len()));
        }
        RequestWords::parse(&bytes).map(Some)
    }

    fn parse(bytes: &[u8]) -> Result<RequestWords, String> {
        let form = "a request has a directory and words, each ended by a zero byte";
        let mut words = bytes.strip_suffix(&[0]).ok_or(form)?.split(|byte| *byte == 0);
        let directory = PathBuf::from(OsStr::from_bytes(words.next().unwrap_or_default()));
        if !directory.is_absolute() {
            return Err(format!("{form}; the directory {:?} is not absolute", directory.display().to_string()));
        }
        Ok(RequestWords { directory, words: words.map(|word| OsString::from_vec(word.to_vec())).collect() })
    }

    /// Writes a request.
    ///
    /// # Errors
    /// Of the stream; also if the request is too long.
    pub(super) fn write(directory: &Path, words: &[OsString], to: &mut impl Write) -> io::Result<()> {
        let words = std::iter::once(directory.as_os_str()).chain(words.iter().map(OsString::as_os_str));
        let bytes: Vec<u8> = words.flat_map(|word| word.as_bytes().iter().copied().chain([0])).collect();
        to.write_all(&length(bytes.len())?)?;
        to.write_all(&bytes)
    }
}

fn length(bytes: usize) -> io::Result<[u8; 4]> {
    u32::try_from(bytes).map(u32::to_be_bytes).map_err(|_| ErrorKind::InvalidInput.into())
}

/// Sends standard input to a server, in parts.
///
/// # Errors
/// Of the streams.
pub(super) fn send_input(mut from: impl Read, to: &mut impl Write) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut buffer)?;
        to.write_all(&length(read)?)?;
        to.write_all(&buffer[..read])?;
        if read == 0 {
            return Ok(());
        }
    }
}

/// Reads all of a client's standard input.
///
/// # Errors
/// A message: the client is gone, or sends too much.
pub(super) fn read_input(from: &mut impl Read) -> Result<SpooledTempFile, String> {
    let failed = |e: io::Error| format!("cannot read stdin: {e}");
    let (mut input, mut all, mut length) = (spooled_tempfile(SPOOLED), 0, [0; 4]);
    loop {
        from.read_exact(&mut length).map_err(failed)?;
        let part = u64::from(u32::from_be_bytes(length));
        all += part;
        if part == 0 {
            return io::Seek::rewind(&mut input).map(|()| input).map_err(failed);
        }
        if all > MOST_INPUT {
            return Err(format!("cannot read stdin: it has more than {MOST_INPUT} bytes"));
        }
        if io::copy(&mut from.take(part), &mut input).map_err(failed)? < part {
            return Err(failed(ErrorKind::UnexpectedEof.into()));
        }
    }
}

/// Reads a frame of an answer: its kind and its bytes.
///
/// # Errors
/// Of the stream, which must not end before the last frame.
pub(super) fn read_frame(from: &mut impl Read) -> io::Result<(u8, Vec<u8>)> {
    let mut head = header(0, 0);
    from.read_exact(&mut head)?;
    let [kind, a, b, c, d] = head;
    let length = u64::from(u32::from_be_bytes([a, b, c, d]));
    let mut bytes = Vec::new();
    from.take(length).read_to_end(&mut bytes)?;
    if (bytes.len() as u64) < length { Err(ErrorKind::UnexpectedEof.into()) } else { Ok((kind, bytes)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_read_as_it_was_written() {
        let words = ["a b.png", "", "mean"].map(OsString::from);
        let mut bytes = Vec::new();
        RequestWords::write(Path::new("/tmp"), &words, &mut bytes).unwrap();
        assert_eq!(bytes, b"\0\0\0\x13/tmp\0a b.png\0\0mean\0");
        let read = RequestWords::read(&mut &bytes[..]).unwrap().unwrap();
        assert_eq!((read.directory.as_path(), &read.words[..]), (Path::new("/tmp"), &words[..]));
        assert_eq!(RequestWords::read(&mut &b""[..]), Ok(None));
    }

    #[test]
    fn a_wrong_request_is_an_error() {
        for (bytes, cause) in [
            (&b"\0\0"[..], "ends within its length"),
            (b"\0\0\0\x05/tmp", "ends after 4 of 5 bytes"),
            (b"\0\0\0\x04/tmp", "each ended by a zero byte"),
            (b"\0\0\0\0", "each ended by a zero byte"),
            (b"\0\0\0\x02a\0", "is not absolute"),
            (b"GET / HTTP/1.1", "the limit is 16777216"),
        ] {
            let error = RequestWords::read(&mut &bytes[..]).unwrap_err();
            assert!(error.contains(cause), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn input_arrives_whole_or_not_at_all() {
        let (sent, mut bytes) = (vec![5; 200_000], Vec::new());
        send_input(&sent[..], &mut bytes).unwrap();
        let mut read = Vec::new();
        read_input(&mut &bytes[..]).unwrap().read_to_end(&mut read).unwrap();
        assert!(read == sent);
        for end in [2, 100, bytes.len() - 1] {
            assert!(read_input(&mut &bytes[..end]).unwrap_err().starts_with("cannot read stdin: "));
        }
    }
}
