//! Picture files, which know no session: decoded to [`files::Picture`], encoded from a
//! [`files::Draft`] and its samples.

pub mod files;
