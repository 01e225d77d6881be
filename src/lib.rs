//! Image programs written sequentially, run in parallel on anything.
