//! Programs through the public algebra, one area per file.
//!
//! One binary, as linking takes longer than compiling these files. What needs a process of its own, because it measures
//! memory or time or reads the log, is a binary beside this folder.

mod alpha;
mod api;
mod blocking;
mod blocks;
mod carried;
mod checkpoints;
mod composed;
mod coordinates;
mod deferred;
mod derived;
mod failures;
mod fewer_ranks;
mod integers;
mod iterate;
mod landing;
mod on_host;
mod operations;
mod orders;
mod pages;
mod parts;
mod ranks;
mod read_several;
mod reentry;
mod regions;
mod reuse;
mod series;
mod series_files;
mod series_once;
mod series_plans;
mod series_ranks;
mod series_together;
mod series_values;
mod several;
mod small_devices;
mod start;
mod statistics;
mod stencil;
mod tolerance;
mod traced;
mod values;
mod volume_arrays;
mod volume_filters;
mod volume_statistics;
mod volumes;
mod wrapped;

#[test]
fn every_file_is_a_module() {
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(
            name == "main" || include_str!("main.rs").contains(&format!("\nmod {name};")),
            "{name}.rs is not tested"
        );
    }
}
