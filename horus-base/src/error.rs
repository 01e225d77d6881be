//! Errors. Each names the operation, the cause and, for a call of the user, its source location.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};

use crate::dtype::DType;
use crate::shape::Shape;

/// The result of every fallible function of Horus.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The place in the user's program where an operation was recorded.
pub type Site = &'static Location<'static>;

/// A call in the user's program: the name of the method, as errors show it, and the place.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// The name of the method.
    pub op: &'static str,
    /// The place.
    pub site: Site,
}

thread_local! {
    /// The last call of this thread: methods that it calls have the same place and are not calls of the user.
    static LAST_CALL: Cell<Option<Call>> = const { Cell::new(None) };
}

impl Call {
    /// Makes the call of a `#[track_caller]` method; used inside that method. Operations that are recorded next at
    /// this place get its name ([`RecordedCall::name`]).
    #[track_caller]
    pub fn of(op: &'static str) -> Call {
        let call = Call { op, site: Location::caller() };
        if Call::last_at(call.site).is_none() {
            LAST_CALL.set(Some(call));
        }
        call
    }

    /// The last call of this thread, if it is at this place.
    fn last_at(site: Site) -> Option<Call> {
        LAST_CALL.get().filter(|last| std::ptr::eq(last.site, site))
    }
}

/// The language of messages: how they name settings that their reader can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Audience {
    /// Source lines, and values in Rust (`Depth::Eight`). The default.
    Rust,
    /// No source lines, which mean nothing to the user of a program; options of the command line (`--depth
    /// 8`).
    Command,
    /// Arguments in Python (`depth=8`).
    Python,
}

/// The audience of the process.
static AUDIENCE: AtomicU8 = AtomicU8::new(Audience::Rust as u8);

impl Audience {
    /// Makes this the audience of the process.
    pub fn set(self) {
        AUDIENCE.store(self as u8, Ordering::Relaxed);
    }

    /// The audience of this process.
    pub fn now() -> Audience {
        let now = AUDIENCE.load(Ordering::Relaxed);
        [Audience::Command, Audience::Python].into_iter().find(|known| *known as u8 == now).unwrap_or(Audience::Rust)
    }

    /// The wording for this audience.
    pub fn select_wording<T>(self, rust: T, command: T, python: T) -> T {
        match self {
            Audience::Rust => rust,
            Audience::Command => command,
            Audience::Python => python,
        }
    }

    /// The name of a method in messages: only Rust has types before methods (`Footprint::disc`).
    pub fn method_name(self, op: &str) -> &str {
        match self {
            Audience::Rust => op,
            Audience::Command | Audience::Python => op.rsplit("::").next().unwrap_or(op),
        }
    }
}

/// The end of a message: the call, for an audience that can change it.
pub struct CallSuffix<S>(pub S);

impl<S: fmt::Display> fmt::Display for CallSuffix<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Audience::now() {
            Audience::Rust | Audience::Python => write!(f, " (at {})", self.0),
            Audience::Command => Ok(()),
        }
    }
}

/// The call that recorded an operation, as errors show it: the source line in another language if known
/// (`Handle::recorded_at`), else the call in Rust.
#[derive(Clone, Copy, Debug)]
pub struct RecordedCall {
    /// The call in Rust.
    pub site: Site,
    /// The name of the method in Rust, if known.
    pub method: Option<&'static str>,
    /// The line of a program in another language.
    pub line: Option<SourceLine>,
    /// The number of the recorded operation: nodes that passes derive from it have the same. 0 for none.
    pub record: u64,
}

/// A source line of a program in another language, or a word of a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File name; empty for an operation of a command line.
    pub file: &'static str,
    /// Line number, from 1, or the place of the operation among those of the command line.
    pub line: u32,
    /// The function that the line calls, or the words of the operation.
    pub call: &'static str,
}

impl RecordedCall {
    /// What the user called, if known: the function of another language, or the method in Rust.
    pub fn name(&self) -> Option<&'static str> {
        self.line.map(|line| line.call).filter(|call| !call.is_empty()).or(self.method)
    }

    /// Name and place: `gauss_xy, detectors.rs:66`.
    pub fn title(&self) -> String {
        let name = Audience::now().method_name(self.name().unwrap_or("operation"));
        self.place().map_or_else(|| name.to_owned(), |place| format!("{name}, {place}"))
    }

    /// File name without folders, and line: `detectors.rs:66`; `None` for the words of a command line.
    pub fn place(&self) -> Option<String> {
        let (file, line) = match self.line {
            Some(SourceLine { file, line, .. }) => (file, line),
            None => (self.site.file(), self.site.line()),
        };
        (!file.is_empty()).then(|| format!("{}:{line}", file.rsplit(['/', '\\']).next().unwrap_or(file)))
    }
}

/// Has the name of the method if it is the last of this thread.
impl From<Site> for RecordedCall {
    fn from(site: Site) -> RecordedCall {
        RecordedCall { site, method: Call::last_at(site).map(|call| call.op), line: None, record: 0 }
    }
}

/// Compares the call and the line.
impl PartialEq for RecordedCall {
    fn eq(&self, other: &RecordedCall) -> bool {
        std::ptr::eq(self.site, other.site) && self.line == other.line
    }
}

impl fmt::Display for RecordedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(SourceLine { file: "", call, .. }) => f.write_str(call),
            Some(SourceLine { file, line, .. }) => write!(f, "{file}:{line}"),
            None => self.site.fmt(f),
        }
    }
}

/// All errors of Horus. The `Debug` output is the message, as `fn main() -> Result<()>` prints it.
#[derive(Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Two images of an operation differ in size.
    #[error("{}: images differ in size, {left} and {right}{}", Audience::now().method_name(op), CallSuffix(*site))]
    ShapeMismatch {
        /// The operation.
        op: &'static str,
        /// Size of the first image.
        left: Box<Shape>,
        /// Size of the second image.
        right: Box<Shape>,
        /// The user's call.
        site: Site,
    },
    /// An image or a filter without elements.
    #[error("{}: size {shape} has no pixels{}", Audience::now().method_name(op), CallSuffix(*site))]
    Empty {
        /// The operation.
        op: &'static str,
        /// The requested size.
        shape: Shape,
        /// The user's call.
        site: Site,
    },
    /// A parameter outside its domain.
    #[error("{}: {message}{}", Audience::now().method_name(op), CallSuffix(*site))]
    Parameter {
        /// The operation.
        op: &'static str,
        /// The parameter, and what is wrong with it.
        message: String,
        /// The user's call.
        site: Site,
    },
    /// An operation on images of two sessions.
    #[error("{}: the images belong to different sessions{}", Audience::now().method_name(op), CallSuffix(*site))]
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
    /// An invalid setting (environment variable, builder, command line).
    #[error("{0}")]
    Config(String),
    /// An earlier evaluation of this session panicked, or failed on one of several ranks: its images are
    /// lost.
    #[error("the session is unusable after an earlier error: {0}")]
    Lost(String),
    /// The evaluation was cancelled by `Canceller::cancel`, or its deadline passed.
    #[error("{0}")]
    Cancelled(Cause),
    /// An observer or an explain sink requested something that is possible only after the evaluation that
    /// calls it returns.
    #[error(
        "{what} from within an observer or an explain sink: the session is evaluating; wait until that has returned"
    )]
    Reentry {
        /// The request.
        what: &'static str,
    },
    /// The process forked after it opened the session: the session's threads and devices stayed with the
    /// parent.
    #[error(
        "{what} after a fork: the image's session belongs to the parent process, whose threads and devices this one does not have; \
         make the image in a session of this process, or start processes by \"spawn\""
    )]
    Forked {
        /// The request.
        what: &'static str,
    },
    /// A failed evaluation released an image that had no handle but that recorded operations still read.
    #[error("an image was lost in an evaluation that failed: {cause}{}", CallSuffix(site))]
    ImageLost {
        /// The call that recorded the image.
        site: Box<RecordedCall>,
        /// The error of that evaluation.
        cause: String,
    },
    /// The device failed in an operation.
    #[error("{op} on {device}: {source}")]
    Device {
        /// The operation, or the transfer.
        op: String,
        /// The device.
        device: String,
        /// The device's error.
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
    /// A pass violated an invariant of a program or a plan: a defect of Horus.
    #[error("internal error: after the pass `{pass}`: {cause}; please report this")]
    Pass {
        /// The name of the pass.
        pass: &'static str,
        /// The violated invariant.
        cause: String,
    },
    /// A plan would have read stale data and was rejected before it ran: a defect of Horus.
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

/// Reason for cancelling an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// Requested by the program.
    #[error("cancelled")]
    Asked,
    /// The deadline passed.
    #[error("the deadline has passed")]
    Deadline,
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error {
    /// An [`Error::Parameter`] of a call.
    pub fn parameter(Call { op, site }: Call, message: impl Into<String>) -> Error {
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

/// Errors of devices.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// Memory for another buffer is exhausted.
    #[error("out of memory: {bytes} bytes needed, {}", bound.describe_usage(*bytes, *used))]
    OutOfMemory {
        /// The requested size.
        bytes: usize,
        /// Bytes in use by this program, as counted by the allocator that failed; 0 if it does not count.
        used: usize,
        /// The limit of the memory.
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
    /// The arguments of a call do not match: a range outside its buffer, memory of another device, or images
    /// that the kernel cannot read. The call had no effect.
    #[error("invalid argument: {0}")]
    Argument(String),
    /// A size exceeds what the device can address or launch.
    #[error("{0}")]
    Limit(String),
    /// The device reached an impossible state: a defect of Horus.
    #[error("internal error: {0}; please report this")]
    Internal(String),
    /// An exchange with the devices of other ranks failed.
    #[error("{0}")]
    Communication(#[from] CommError),
}

/// A limit of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryBound {
    /// A GPU's memory, possibly shared with other programs.
    Gpu {
        /// Free bytes.
        free: usize,
        /// Total bytes.
        total: usize,
    },
    /// A setting.
    Setting {
        /// The environment variable, such as `HORUS_GPU_MEMORY`.
        name: &'static str,
        /// Allowed bytes.
        bytes: usize,
    },
    /// Host memory, within the setting `HORUS_HOST_MEMORY`.
    Host {
        /// Allowed bytes.
        bytes: usize,
        /// The limit is the default: most of the memory that was free.
        by_default: bool,
    },
    /// The size with which a device was created.
    Device {
        /// The device's bytes.
        bytes: usize,
    },
    /// Bytes that one operation may read and write at once, on the rank with the smallest device.
    Images {
        /// Bytes available for images.
        bytes: usize,
    },
    /// The memory of this machine that the operating system grants.
    Machine,
}

impl Error {
    /// Returns `true` if memory ran out. If planning found that out, no data was read or computed.
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Error::Device { source: DeviceError::OutOfMemory { .. }, .. })
    }
}

/// The unit of limits.
const MIB: usize = 1 << 20;

impl MemoryBound {
    /// The limit of host memory that an error suggests for `needed` bytes in addition to `used` bytes: whole
    /// MiB, and one more because blocks are somewhat larger.
    #[doc(hidden)]
    pub const fn sufficient_limit(needed: usize, used: usize) -> usize {
        used.saturating_add(needed).div_ceil(MIB).saturating_add(1).saturating_mul(MIB)
    }

    /// The limit, and the bytes in use within it.
    fn describe_usage(self, needed: usize, used: usize) -> String {
        match self {
            MemoryBound::Gpu { free, total } => {
                format!("{used} in use by this program, {free} of the GPU's {total} bytes free")
            }
            MemoryBound::Setting { name, bytes } => {
                format!("{used} of the {bytes} bytes that {name} allows are in use")
            }
            MemoryBound::Host { bytes, by_default } => {
                let default = if by_default { " by default" } else { "" };
                let enough = MemoryBound::sufficient_limit(needed, used) / MIB;
                format!(
                    "{used} of the {bytes} bytes that HORUS_HOST_MEMORY allows{default} are in use; at least {enough}M are needed"
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
    /// Adds the rank and the operation.
    pub fn during(self, rank: usize, op: impl fmt::Display) -> Error {
        Error::Communication { rank, op: op.to_string(), cause: self.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_reads_types_before_methods() {
        for op in ["Footprint::disc", "horus::filters::Filter::dense", "gauss"] {
            assert_eq!(Audience::Rust.method_name(op), op);
            for audience in [Audience::Command, Audience::Python] {
                let name = audience.method_name(op);
                assert!(op.ends_with(name) && !name.is_empty() && !name.contains("::"), "{name}");
            }
        }
        let words = |audience: Audience| audience.select_wording("Depth::Eight", "--depth 8", "depth=8");
        assert_eq!(
            [Audience::Rust, Audience::Command, Audience::Python].map(words),
            ["Depth::Eight", "--depth 8", "depth=8"]
        );
    }

    #[test]
    fn what_main_returns_is_printed_as_the_message() {
        let source = DeviceError::OutOfMemory { bytes: 7, used: 2, bound: MemoryBound::Device { bytes: 8 } };
        let error = Error::Device { op: "add".into(), device: "CPU".into(), source };
        let debug = format!("{:?}", error.clone());
        let message = "add on CPU: out of memory: 7 bytes needed, 2 of the device's 8 bytes are in use";
        assert_eq!((debug.as_str(), error.to_string().as_str()), (message, message));
    }
}
