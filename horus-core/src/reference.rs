//! Plain sequential oracle.
