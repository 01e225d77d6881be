//! Images larger than memory: the same samples as in memory, within bounded memory.

use std::path::Path;
use std::sync::{Arc, Mutex};

use horus_core::image::Image;
use horus_core::session::Session;
use horus_zarr::{ZarrOptions, ZarrSaveOptions, open, save};

use super::{Folder, builder, files};

const SIDE: usize = 1200;

fn options(shard: bool) -> ZarrSaveOptions {
    ZarrSaveOptions {
        chunk: [1, 64, 64],
        shard: shard.then_some([1, 128, 128]),
        sizes: 2,
        ..ZarrSaveOptions::default()
    }
}

/// Filters a store within this much memory; returns the reports about regions.
fn filter(from: &Path, to: &Path, memory: Option<usize>, shard: bool) -> String {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let builder = memory.into_iter().fold(builder(2), |b, bytes| b.host_memory(bytes));
    let session: Session = builder.explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let image = open(&session, from, &ZarrOptions::default()).unwrap().convert::<f32>();
    let smooth = image.gauss(2.0);
    let unit = (&smooth - smooth.min_value()) / (smooth.max_value() - smooth.min_value());
    save(&unit, to, &options(shard)).unwrap();
    told.lock().unwrap().clone()
}

#[test]
fn a_store_larger_than_memory_is_the_same_bytes() {
    let folder = Folder::new();
    let [large, whole, bounded] = ["large.zarr", "whole.zarr", "bounded.zarr"].map(|name| folder.at(name));
    let session = builder(2).build().unwrap();
    let image = Image::from_fn(&session, SIDE, SIDE - 77, |y, x| ((x * 7 + y * 13 + x * y / 64) % 253) as u8);
    save(&image, &large, &options(false)).unwrap();
    for shard in [false, true] {
        let all = filter(&large, &whole, None, shard);
        // A quarter of the result.
        let parts = filter(&large, &bounded, Some(SIDE * SIDE), shard);
        assert!(!all.contains("regions:"), "{all}");
        assert!(parts.contains("a pass for ") && parts.matches("regions:").count() >= 2, "{parts}");
        let (a, b) = (files(&whole.join("0")), files(&bounded.join("0")));
        assert_eq!(a.len(), b.len());
        assert!(a == b, "files differ");
        assert!(files(&whole.join("1")) == files(&bounded.join("1")), "files of the smaller size differ");
    }
}

#[cfg(target_os = "linux")]
mod peak {
    use std::process::Command;

    use super::*;

    const HEIGHT: usize = 5000;
    const WIDTH: usize = 4000;
    /// Memory for images: a fifth of the result.
    const MEMORY: usize = 16 << 20;
    /// Memory besides images: code, threads, and the chunks of each thread.
    const BESIDE: usize = 32 << 20;

    /// The work of a child process; does nothing otherwise.
    #[test]
    fn child() {
        let Some(folder) = std::env::var_os("HORUS_TEST_FOLDER") else { return };
        let folder = Path::new(&folder);
        filter(&folder.join("large.zarr"), &folder.join("smooth.zarr"), Some(MEMORY), true);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
        println!("\npeak {}", line.trim().strip_suffix("kB").unwrap().trim().parse::<usize>().unwrap() << 10);
    }

    #[test]
    fn memory_is_bounded() {
        let folder = Folder::new();
        let session = builder(2).build().unwrap();
        let image = Image::from_fn(&session, HEIGHT, WIDTH, |y, x| ((x * 7 + y * 13 + x * y / 1024) % 253) as u8);
        save(&image, folder.at("large.zarr"), &options(false)).unwrap();
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "memory::peak::child", "--nocapture"]).env("HORUS_TEST_FOLDER", folder.at("."));
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
        let peak = text.lines().find_map(|l| l.strip_prefix("peak ")).unwrap_or_else(|| panic!("{text}"));
        let peak: usize = peak.trim().parse().unwrap();
        assert!(peak < MEMORY + BESIDE, "{peak} bytes at most, of a result of {}", HEIGHT * WIDTH * 4);
        assert_eq!(files(&folder.at("smooth.zarr/0")).len(), 40 * 32 + 1);
    }
}
