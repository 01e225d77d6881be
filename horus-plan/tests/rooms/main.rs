//! Rooms by their public interface.

mod filters;
mod machine;
mod prologue;
mod woven;
