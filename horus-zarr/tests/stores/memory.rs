//! Images larger than memory: the same samples as in memory, within bounded memory.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use horus_core::image::Image;
use horus_core::io::Downsampling;
use horus_core::prelude::{Filter, Resampling};
use horus_core::session::Session;
use horus_core::shape::Axis;
use horus_zarr::{ZarrOptions, ZarrSaveOptions, open, save};

use super::{StoreFolder, builder, files};

const SIDE: usize = 1200;

fn options(shard: bool) -> ZarrSaveOptions {
    ZarrSaveOptions {
        chunk: [1, 64, 64],
        shard: shard.then_some([1, 128, 128]),
        sizes: 2,
        resampling: shard.then_some(Downsampling::Mode),
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
    let folder = StoreFolder::new();
    let [large, whole, bounded] = ["large.zarr", "whole.zarr", "bounded.zarr"].map(|name| folder.at(name));
    let session = builder(2).build().unwrap();
    let image = Image::from_fn(&session, SIDE, SIDE - 77, |y, x| ((x * 7 + y * 13 + x * y / 64) % 253) as u8);
    save(&image, &large, &options(false)).unwrap();
    for shard in [false, true] {
        let all = filter(&large, &whole, None, shard);
        // A quarter of the result.
        let parts = filter(&large, &bounded, Some(SIDE * SIDE), shard);
        assert!(!all.contains("regions:"), "{all}");
        assert!(parts.contains("reduction ") && parts.matches("regions:").count() >= 2, "{parts}");
        let (a, b) = (files(&whole.join("0")), files(&bounded.join("0")));
        assert_eq!(a.len(), b.len());
        assert!(a == b, "files differ");
        assert!(files(&whole.join("1")) == files(&bounded.join("1")), "files of the smaller size differ");
    }
}

/// A program over a volume.
type VolumeProgram = fn(&Session, &Image<f32>) -> Image<f32>;

/// The store of a program's result, the reports about regions, and the chunks read.
fn saved(
    from: &Path,
    to: &Path,
    memory: Option<usize>,
    options: &ZarrSaveOptions,
    program: VolumeProgram,
) -> (Vec<(PathBuf, Vec<u8>)>, String, u64) {
    let told = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&told);
    let builder = memory.into_iter().fold(builder(2), |b, bytes| b.host_memory(bytes));
    let session = builder.explain(move |text| sink.lock().unwrap().push_str(text)).build().unwrap();
    let image = open(&session, from, &ZarrOptions::default()).unwrap().convert::<f32>();
    save(&program(&session, &image), to, options).unwrap();
    let told = told.lock().unwrap().clone();
    let mut files = files(to);
    files.retain(|(path, _)| path != Path::new("zarr.json")); // which has its name
    (files, told, session.stats().read.chunks)
}

#[test]
fn levels_that_do_not_depend_on_each_other_come_in_slabs_and_all_sizes_at_once() {
    const DEPTH: usize = 7;
    let folder = StoreFolder::new();
    let [large, whole, parts] = ["large.zarr", "whole.zarr", "parts.zarr"].map(|name| folder.at(name));
    let session = builder(2).build().unwrap();
    let image = Image::from_volume_fn(&session, DEPTH, 700, 751, |z, y, x| ((z * 31 + x * 7 + y * 13) % 253) as u8);
    let options = ZarrSaveOptions { chunk: [1, 64, 64], sizes: 4, ..ZarrSaveOptions::default() };
    save(&image, &large, &ZarrSaveOptions { sizes: 1, ..options }).unwrap();
    let chunks = (DEPTH * 700usize.div_ceil(64) * 751usize.div_ceil(64)) as u64;
    let apart: [VolumeProgram; 3] = [
        |_, image| image.clone(),
        |session, image| {
            let of_levels = Image::from_volume_fn(session, DEPTH, 1, 1, |z, _, _| z as f32);
            let flat = Image::from_fn(session, 700, 751, |y, x| (y + x) as f32);
            image.separable(&Filter::row([0.25, 0.5, 0.25]), &Filter::column([0.5, 0.5])).resize(
                500,
                601,
                Resampling::Area,
            ) * of_levels
                + flat.crop(0, 0, 500, 601)
        },
        |_, image| image.transpose().flip(Axis::Columns),
    ];
    for (program, strips) in apart.into_iter().zip([true, false, false]) {
        let (expected, told, _) = saved(&large, &whole, None, &options, program);
        assert!(!told.contains("slabs"), "{told}");
        let (found, told, read) = saved(&large, &parts, Some(12 << 20), &options, program);
        assert!(told.contains(" slabs of "), "{told}");
        assert!(found == expected, "files differ");
        // In strips of the source each chunk is read once; tiles share those at their edges.
        assert!(read == chunks || (!strips && read < 3 * chunks), "{read} chunks were read of {chunks}");
    }
    let mixed: [VolumeProgram; 3] = [
        |_, image| image.shift(1, 0, 0),
        |_, image| image.flip(Axis::Depth),
        |session, image| image + Image::index(session, image.shape(), Axis::Depth),
    ];
    for program in mixed {
        let (expected, ..) = saved(&large, &whole, None, &options, program);
        let (found, told, _) = saved(&large, &parts, Some(12 << 20), &options, program);
        assert!(told.contains("regions:") && !told.contains("slabs"), "{told}");
        assert!(found == expected, "files differ");
    }
}

#[test]
fn chunks_at_the_edges_of_strips_are_read_once() {
    let folder = StoreFolder::new();
    let [large, whole, parts] = ["large.zarr", "whole.zarr", "parts.zarr"].map(|name| folder.at(name));
    let session = builder(2).build().unwrap();
    let image = Image::from_fn(&session, 3000, 701, |y, x| ((x * 7 + y * 13 + x * y / 64) % 253) as u8);
    let options = ZarrSaveOptions { sizes: 3, ..options(false) };
    save(&image, &large, &options).unwrap();
    let program: VolumeProgram = |_, image| image.gauss(3.0);
    let (expected, ..) = saved(&large, &whole, None, &options, program);
    let (found, told, read) = saved(&large, &parts, Some(6 << 20), &options, program);
    assert!(told.contains(" strips of "), "{told}");
    assert!(found == expected, "files differ");
    assert_eq!(read, (3000usize.div_ceil(64) * 701usize.div_ceil(64)) as u64);
}

#[cfg(target_os = "linux")]
mod peak {
    use std::process::Command;

    use super::*;

    const HEIGHT: usize = 5000;
    const WIDTH: usize = 4000;
    /// Memory for images: a fifth of the result.
    const MEMORY: usize = 16 << 20;
    /// Memory besides images: threads, and the chunks of each thread.
    const BESIDE: usize = 32 << 20;

    /// The work of a child process; does nothing otherwise.
    #[test]
    fn child() {
        let Some(folder) = std::env::var_os("HORUS_TEST_FOLDER") else { return };
        let folder = Path::new(&folder);
        filter(&folder.join("large.zarr"), &folder.join("smooth.zarr"), Some(MEMORY), true);
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let bytes = |name: &str| {
            let line = status.lines().find_map(|l| l.strip_prefix(name)).unwrap();
            line.trim().strip_suffix("kB").unwrap().trim().parse::<usize>().unwrap() << 10
        };
        // Without the program itself, which is larger with each feature.
        println!("\npeak {}", bytes("VmHWM:") - bytes("RssFile:"));
    }

    #[test]
    fn memory_is_bounded() {
        let folder = StoreFolder::new();
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
