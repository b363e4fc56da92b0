//! The files connector on real files in temporary directories.

mod bounded;
mod common;
mod packed;
mod parquet;
mod watched;
