//! Errors: each names the operation, the cause and, for a call of the user, where it was made.

use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::dtype::DType;
use crate::shape::Shape;

/// The result of everything that can fail in Horus.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The place in the user's program where an operation was recorded.
pub type Site = &'static Location<'static>;

/// Who reads messages: a programmer, or the user of a program, to whom a line of its source tells nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Messages name calls, by their line, and values of Rust (`Depth::Eight`). The default.
    Programmer,
    /// Messages name no line, and options of the command line (`--depth 8`).
    User,
}

/// Whether [`Audience::set`] named users.
static USERS: AtomicBool = AtomicBool::new(false);

impl Audience {
    /// Says who reads the messages of this process.
    pub fn set(self) {
        USERS.store(self == Audience::User, Ordering::Relaxed);
    }

    /// Who reads the messages of this process.
    pub fn now() -> Audience {
        if USERS.load(Ordering::Relaxed) { Audience::User } else { Audience::Programmer }
    }

    /// What this audience is told, of the same thing in Rust and as options.
    pub fn told<T>(self, rust: T, options: T) -> T {
        match self {
            Audience::Programmer => rust,
            Audience::User => options,
        }
    }
}

/// The end of a message: the call, for those who can do something with it.
pub struct At<S>(pub S);

impl<S: fmt::Display> fmt::Display for At<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Audience::now() {
            Audience::Programmer => write!(f, " (at {})", self.0),
            Audience::User => Ok(()),
        }
    }
}

/// Where an operation was recorded, as errors tell it: the line of the program in another language on whose behalf it was called, where
/// that is known (`Handle::recorded_at`), else the call.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// The call in Rust.
    pub site: Site,
    /// The line of the other program.
    pub line: Option<SourceLine>,
}

/// A line of a program that is not written in Rust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The name of its file.
    pub file: &'static str,
    /// The line, the first being 1.
    pub line: u32,
}

impl From<Site> for Recorded {
    fn from(site: Site) -> Recorded {
        Recorded { site, line: None }
    }
}

/// The same call on behalf of the same line.
impl PartialEq for Recorded {
    fn eq(&self, other: &Recorded) -> bool {
        std::ptr::eq(self.site, other.site) && self.line == other.line
    }
}

impl fmt::Display for Recorded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(SourceLine { file, line }) => write!(f, "{file}:{line}"),
            None => self.site.fmt(f),
        }
    }
}

/// Anything that can go wrong. Its `Debug` is its message, which is what `fn main() -> Result<()>` prints.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two images of an operation differ in size.
    #[error("{op}: images differ in size, {left} and {right}{}", At(*site))]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// Size of the first image.
        left: Shape,
        /// Size of the second image.
        right: Shape,
        /// The user's call.
        site: Site,
    },
    /// An image or a filter without a single element.
    #[error("{op}: size {shape} has no pixels{}", At(*site))]
    Empty {
        /// The operation.
        op: &'static str,
        /// The requested size.
        shape: Shape,
        /// The user's call.
        site: Site,
    },
    /// A parameter outside its domain.
    #[error("{op}: {message}{}", At(*site))]
    Parameter {
        /// The operation.
        op: &'static str,
        /// What is wrong with which parameter.
        message: String,
        /// The user's call.
        site: Site,
    },
    /// Images of two sessions met in one operation.
    #[error("{op}: the images belong to different sessions{}", At(*site))]
    ForeignImage {
        /// The operation.
        op: &'static str,
        /// The user's call.
        site: Site,
    },
    /// A file could not be read, decoded, encoded or written.
    #[error("cannot {action} {}: {cause}", path.display())]
    File {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        cause: String,
    },
    /// A setting (environment variable, builder, command line) that cannot be honoured.
    #[error("{0}")]
    Config(String),
    /// An earlier evaluation of this session panicked, or failed on one of several ranks: the images that it held are gone.
    #[error("the session is unusable after an earlier error: {0}")]
    Lost(String),
    /// The evaluation was ended by `Canceller::cancel`, or its deadline passed.
    #[error("{0}")]
    Cancelled(Cause),
    /// An observer or an explain sink asked for something that must wait until the evaluation that calls it is over.
    #[error(
        "{what} from within an observer or an explain sink: the session is evaluating; wait until that has returned"
    )]
    Reentry {
        /// What was asked for.
        what: &'static str,
    },
    /// The session was opened before this process was forked: the threads that compute, and devices, stayed with the parent.
    #[error(
        "{what} after a fork: the image's session belongs to the parent process, whose threads and devices this one does not have; \
         make the image in a session of this process, or start processes by \"spawn\""
    )]
    Forked {
        /// What was asked for.
        what: &'static str,
    },
    /// An evaluation that failed had let go of an image that nobody held, and that operations recorded still read.
    #[error("an image was lost in an evaluation that failed: {cause}{}", At(site))]
    ImageLost {
        /// Where the image was recorded.
        site: Recorded,
        /// What that evaluation met.
        cause: String,
    },
    /// The device failed in an operation.
    #[error("{op} on {device}: {source}")]
    Device {
        /// The operation, or the transfer.
        op: String,
        /// The device.
        device: String,
        /// What the device said.
        source: DeviceError,
    },
    /// Communication between ranks failed.
    #[error("rank {rank}: {op}: {cause}")]
    Communication {
        /// This rank.
        rank: usize,
        /// The transfer.
        op: String,
        /// The reason.
        cause: String,
    },
    /// A pass over a program or its plan left something that must not be: a defect of Horus.
    #[error("internal error: after the pass `{pass}`: {cause}; please report this")]
    Pass {
        /// The name of the pass.
        pass: &'static str,
        /// What does not hold.
        cause: String,
    },
    /// A plan that would read stale data was caught before it ran: a defect of Horus.
    #[error("internal error: plan step {step} ({text}): {cause}; please report this")]
    Plan {
        /// Index of the step.
        step: usize,
        /// The step, as `--explain` prints it.
        text: String,
        /// What is wrong.
        cause: String,
    },
}

/// Why an evaluation was ended before it was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Somebody asked for it.
    #[error("cancelled")]
    Asked,
    /// It would have taken too long.
    #[error("the deadline has passed")]
    Deadline,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// A [`Error::Parameter`].
    pub fn parameter(op: &'static str, message: impl Into<String>, site: Site) -> Error {
        Error::Parameter { op, message: message.into(), site }
    }

    /// A failure to read `path`.
    pub fn read(path: &Path, cause: impl fmt::Display) -> Error {
        Error::File { action: "read", path: path.to_owned(), cause: cause.to_string() }
    }

    /// A failure to write `path`.
    pub fn write(path: &Path, cause: impl fmt::Display) -> Error {
        Error::File { action: "write", path: path.to_owned(), cause: cause.to_string() }
    }
}

/// What a device can say.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// There is no room for another buffer.
    #[error("out of memory: {bytes} bytes needed, {}", bound.beside(*bytes, *used))]
    OutOfMemory {
        /// The requested size.
        bytes: usize,
        /// Bytes in use by this program, as far as whoever refused counts them; 0 if it does not.
        used: usize,
        /// What bounds the memory.
        bound: MemoryBound,
    },
    /// The device does not implement a kernel for this type.
    #[error("{kernel} of {dtype} is not supported")]
    Unsupported {
        /// The kernel.
        kernel: String,
        /// The element type.
        dtype: DType,
    },
    /// The driver, its run-time compiler or a library of its vendor reported an error.
    #[error("{0}")]
    Driver(String),
    /// The arguments of a call do not fit together: a range outside its buffer, memory of another device, images that a
    /// kernel cannot read. The call had no effect.
    #[error("invalid argument: {0}")]
    Argument(String),
    /// A size exceeds what the device can address or launch.
    #[error("{0}")]
    Limit(String),
    /// The device reached a state that it should not be able to reach: a defect of Horus.
    #[error("internal error: {0}; please report this")]
    Internal(String),
    /// An exchange with the devices of other ranks failed.
    #[error("{0}")]
    Communication(#[from] CommError),
}

/// What bounds a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryBound {
    /// A GPU's memory, which other programs may use too.
    Gpu {
        /// Bytes that are free.
        free: usize,
        /// Bytes that it has.
        total: usize,
    },
    /// A setting of the user.
    Setting {
        /// The environment variable, such as `HORUS_GPU_MEMORY`.
        name: &'static str,
        /// The bytes that it allows.
        bytes: usize,
    },
    /// The memory of the host that the setting `HORUS_HOST_MEMORY` allows.
    Host {
        /// The bytes that it allows.
        bytes: usize,
        /// Whether that is by default: what was free, for the most part.
        by_default: bool,
    },
    /// A device that was given so many bytes.
    Device {
        /// The bytes that it has.
        bytes: usize,
    },
    /// What an operation may read and write at once, on the smallest device of all ranks.
    Images {
        /// The bytes that images may take.
        bytes: usize,
    },
    /// The memory of this machine: what its system gives to a program.
    Machine,
}

impl Error {
    /// Whether there was not enough memory: of what was foreseen, nothing was read or computed.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Error::Device { source: DeviceError::OutOfMemory { .. }, .. })
    }
}

impl MemoryBound {
    /// The bound, and what is in use within it.
    fn beside(self, needed: usize, used: usize) -> String {
        match self {
            MemoryBound::Gpu { free, total } => {
                format!("{used} in use by this program, {free} of the GPU's {total} bytes free")
            }
            MemoryBound::Setting { name, bytes } => {
                format!("{used} of the {bytes} bytes that {name} allows are in use")
            }
            MemoryBound::Host { bytes, by_default } => {
                let default = if by_default { " by default" } else { "" };
                let enough = used.saturating_add(needed).div_ceil(1 << 20) + 1; // blocks are somewhat larger
                format!(
                    "{used} of the {bytes} bytes that HORUS_HOST_MEMORY allows{default} are in use; {enough}M would do"
                )
            }
            MemoryBound::Device { bytes } => format!("{used} of the device's {bytes} bytes are in use"),
            MemoryBound::Images { bytes } => {
                format!(
                    "for what it reads and writes; images may take {bytes} bytes of the smallest device (HORUS_GPU_MEMORY bounds them, too)"
                )
            }
            MemoryBound::Machine => "more than this machine can provide".into(),
        }
    }
}

/// A communication failure, without the context that [`Error::Communication`] adds.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub struct CommError(pub String);

impl CommError {
    /// With the rank and the operation.
    pub fn during(self, rank: usize, op: impl fmt::Display) -> Error {
        Error::Communication { rank, op: op.to_string(), cause: self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_main_returns_is_printed_as_the_message() {
        let source = DeviceError::OutOfMemory { bytes: 7, used: 2, bound: MemoryBound::Device { bytes: 8 } };
        let error = Error::Device { op: "add".into(), device: "CPU".into(), source };
        let debug = format!("{:?}", error.clone());
        let message = "add on CPU: out of memory: 7 bytes needed, 2 of the device's 8 bytes are in use";
        assert_eq!((debug.as_str(), error.to_string().as_str()), (message, message));
    }
}
