//! The models, as programs and against references.

mod fields;
#[path = "../../../horus-apps/tests/programs/files/mod.rs"]
mod files;
#[path = "../../../horus-apps/tests/programs/launcher/mod.rs"]
mod launcher;
mod loops;
mod loops_mpirun;
mod memory;
#[path = "../../../horus-apps/tests/programs/promise/mod.rs"]
mod promise;
mod surface;
mod weather;
