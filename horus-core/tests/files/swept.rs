//! Operations on whole images that do not fit in memory: they sweep over the rows, and have the bits of the whole.

use std::path::Path;
use std::sync::{Arc, Mutex};

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::cpu::device::CpuDevice;
use horus_core::dtype::Pixel;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{AnyImage, OpenOptions};
use horus_core::ops::components::Connectivity;
use horus_core::ops::reconstruction::Reconstruction;
use horus_core::session::Session;

use super::TestFolder;

const MEMORY: usize = 3 << 20;
const PLANE: [usize; 3] = [1, 750, 600];
const VOLUME: [usize; 3] = [24, 131, 143];

fn noise(i: usize) -> usize {
    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) % 100
}

/// A sample of a picture by level, row and column.
type Sample = fn([usize; 3], usize) -> u8;

/// Masks: noise of two densities, a snake that touches every region, combs that are joined below, spots.
const MASKS: [(&str, Sample); 5] = [
    ("noise", |[z, y, x], width| u8::from(noise((z * 9001 + y) * width + x) < 41) * 7),
    ("dense noise", |[z, y, x], width| u8::from(noise((z * 9001 + y) * width + x) < 63)),
    ("a snake", |[z, y, x], width| {
        let gate = if y % 8 == 3 { width - 1 } else { 0 };
        u8::from(z.is_multiple_of(2) && (y % 4 < 2 || x == gate)) * 255
    }),
    ("combs", |[z, y, x], _| u8::from(x.is_multiple_of(3) || (y + z).is_multiple_of(97))),
    ("spots", |[_, y, x], _| u8::from((y % 50).pow(2) + (x % 61).pow(2) < 900) * 90),
];

fn session(memory: Option<usize>, comm: Option<Arc<dyn Communicator>>, told: &Arc<Mutex<String>>) -> Session {
    let told = Arc::clone(told);
    let builder = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap()))
        .explain(move |text| told.lock().unwrap().push_str(text));
    let builder = memory.into_iter().fold(builder, |builder, bytes| builder.host_memory(bytes));
    comm.into_iter().fold(builder, |builder, comm| builder.communicator(comm)).build().unwrap()
}

fn on_demand(session: &Session, path: &Path) -> AnyImage {
    let volume = path.ends_with("volume.npy");
    let options = OpenOptions { on_demand: Some(true), volume, ..OpenOptions::default() };
    AnyImage::open_with(session, path, &options).unwrap()
}

/// A program that returns the bytes of its result.
type SweptProgram = fn(&AnyImage) -> Result<Vec<u8>>;

fn bytes<T: Pixel>(image: &Image<T>) -> Result<Vec<u8>> {
    Ok(image.to_vec()?.into_iter().flat_map(|v| v.to_f64().to_bits().to_ne_bytes()).collect())
}

const PROGRAMS: [(&str, SweptProgram); 11] = [
    ("label", |mask| bytes(&mask.convert::<u8>().label(Connectivity::FACES))),
    ("label corners", |mask| bytes(&mask.convert::<u8>().label(Connectivity::CORNERS))),
    ("component sizes", |mask| bytes(&mask.convert::<u8>().component_sizes(Connectivity::EDGES))),
    ("components that stay", |mask| {
        let mask = mask.convert::<u8>().gt(0);
        bytes(&mask.remove_small(4, Connectivity::FACES).clear_border(Connectivity::CORNERS).convert::<u8>())
    }),
    ("label along one direction", |mask| {
        let mut structure = [[[false; 3]; 3]; 3];
        structure[1][0][2] = true;
        structure[0][1][0] = true;
        bytes(&mask.convert::<u8>().gt(0).label(Connectivity::new(structure)))
    }),
    ("what labels are used for", |mask| {
        let labels = mask.convert::<u8>().gt(0).label(Connectivity::EDGES);
        let most = labels.max_value().get()?;
        bytes(&labels.eq(most).select(-2, labels.eq(1).select(-1, &labels)))
    }),
    ("labels of what depends on other levels", |mask| {
        bytes(&mask.convert::<u8>().gt(0).erode(3).label(Connectivity::FACES))
    }),
    ("distances", |mask| bytes(&mask.convert::<u8>().distances().euclidean::<f32>())),
    ("taxicab distances", |mask| bytes(&mask.convert::<u8>().gt(0).distances().taxicab())),
    ("reconstruction", |mask| {
        let mask = mask.convert::<i16>();
        let marker = (&mask / 50).minimum(&mask);
        bytes(&marker.reconstruct(&mask, Connectivity::FACES))
    }),
    ("reconstruction by erosion", |mask| {
        let mask = mask.convert::<i16>();
        let marker = (&mask * 3) + 5;
        bytes(&marker.reconstruct(&mask, Reconstruction::by_erosion(Connectivity::CORNERS)))
    }),
];

fn written(name: &str, [depth, height, width]: [usize; 3], sample: Sample, to: &Path) {
    let all = Session::on(Box::new(CpuDevice::new(Some(2)).unwrap())).build().unwrap();
    let image = Image::from_volume_fn(&all, depth, height, width, |z, y, x| sample([z, y, x], width));
    image.save(to).unwrap_or_else(|e| panic!("{name}: {e}"));
}

#[test]
fn a_sweep_has_the_bits_of_the_whole() {
    let folder = TestFolder::new();
    for (kind, extent) in [("plane", PLANE), ("volume", VOLUME)] {
        for (i, (name, sample)) in MASKS.into_iter().enumerate() {
            let mask = folder.at(&format!("{kind}.npy"));
            written(name, extent, sample, &mask);
            // Two masks for each program.
            let programs = PROGRAMS.into_iter().enumerate().filter(|(k, _)| [0, 3].contains(&((i + k) % MASKS.len())));
            for (_, (program, run)) in programs {
                let told = Arc::default();
                let whole = run(&on_demand(&session(None, None, &told), &mask)).unwrap();
                assert!(!told.lock().unwrap().contains("sweep "), "{program} of {name} fits");
                let parts = run(&on_demand(&session(Some(MEMORY), None, &told), &mask))
                    .unwrap_or_else(|e| panic!("{program} of {name} in a {kind}: {e}"));
                assert!(told.lock().unwrap().contains("sweep "), "{program} of {name}: {}", told.lock().unwrap());
                assert!(whole == parts, "{program} of {name} in a {kind}");
            }
        }
    }
}

fn same(a: &Path, b: &Path) -> bool {
    std::fs::read(a).unwrap() == std::fs::read(b).unwrap()
}

/// Programs that return parts, or numbers.
const PARTS: [(&str, SweptProgram); 4] = [
    ("a part of labels", |mask| bytes(&mask.convert::<u8>().label(Connectivity::EDGES).crop(70, 100, 50, 40))),
    ("a sum over labels", |mask| {
        let labels = mask.convert::<u8>().label(Connectivity::FACES);
        Ok(labels.convert::<f64>().sum().get()?.to_bits().to_ne_bytes().to_vec())
    }),
    ("a sum of distances", |mask| {
        let distances = mask.convert::<u8>().distances().euclidean::<f64>();
        Ok(distances.sum().get()?.to_bits().to_ne_bytes().to_vec())
    }),
    ("a part of a reconstruction", |mask| {
        let mask = mask.convert::<f64>();
        let marker = (&mask - 3.0).minimum(&mask);
        bytes(&marker.reconstruct(&mask, Connectivity::FACES).crop(0, 0, 131, 20))
    }),
];

#[test]
fn every_rank_sweeps() {
    let folder = TestFolder::new();
    for (kind, extent) in [("plane", PLANE), ("volume", VOLUME)] {
        let mask = folder.at(&format!("{kind}.npy"));
        written("noise", extent, MASKS[0].1, &mask);
        for (program, run) in PARTS {
            // A reduction divides a volume in rows, and the second sweep of its distances reads whole levels.
            if (kind, program) == ("volume", "a sum of distances") {
                continue;
            }
            let whole = run(&on_demand(&session(None, None, &Arc::default()), &mask)).unwrap();
            for ranks in [1, 2, 3] {
                let told: Arc<Mutex<String>> = Arc::default();
                ThreadComm::run(ranks, |comm| {
                    let comm: Arc<dyn Communicator> = Arc::new(comm);
                    let parts = run(&on_demand(&session(Some(MEMORY), Some(comm), &told), &mask)).unwrap();
                    assert!(whole == parts, "{program} of a {kind} on {ranks} ranks");
                });
                assert!(told.lock().unwrap().contains("sweep "), "{program} on {ranks} ranks");
            }
        }
    }
}

#[test]
fn an_image_in_memory_is_swept_too() {
    let folder = TestFolder::new();
    let told = Arc::default();
    let small = session(Some(MEMORY), None, &told);
    let [_, height, width] = PLANE;
    let mask = Image::from_fn(&small, height, width, |y, x| MASKS[3].1([0, y, x], width));
    mask.label(Connectivity::FACES).save(folder.at("parts.npy")).unwrap();
    assert!(told.lock().unwrap().contains("sweep label"), "{}", told.lock().unwrap());
    written("combs", PLANE, MASKS[3].1, &folder.at("plane.npy"));
    let whole = on_demand(&session(None, None, &told), &folder.at("plane.npy"));
    whole.convert::<u8>().label(Connectivity::FACES).save(folder.at("whole.npy")).unwrap();
    assert!(same(&folder.at("whole.npy"), &folder.at("parts.npy")));
    assert_eq!(small.forecast_memory(&mask.label(Connectivity::FACES)).unwrap().passes, 1);
}

#[test]
fn a_volume_of_whole_levels_is_saved() {
    let folder = TestFolder::new();
    written("noise", VOLUME, MASKS[0].1, &folder.at("volume.npy"));
    for (memory, name) in [(None, "whole.npy"), (Some(MEMORY), "parts.npy")] {
        let told = Arc::default();
        let mask = on_demand(&session(memory, None, &told), &folder.at("volume.npy"));
        mask.convert::<u8>().distances().euclidean::<f32>().save(folder.at(name)).unwrap();
        assert_eq!(told.lock().unwrap().contains("sweep "), memory.is_some());
    }
    assert!(same(&folder.at("whole.npy"), &folder.at("parts.npy")));
}

#[test]
fn a_disk_that_is_full_during_a_sweep_leaves_no_file() {
    let folder = TestFolder::new();
    let mask = folder.at("plane.npy");
    written("noise", PLANE, MASKS[0].1, &mask);
    let test = std::env::current_exe().unwrap();
    let output = std::process::Command::new(test)
        .args(["--exact", "swept::labels_with_a_temporary_folder_that_is_missing", "--nocapture"])
        .env("HORUS_SWEPT_MASK", &mask)
        .env("TMPDIR", folder.at("missing"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && told.contains("missing"), "{told}");
    assert!(!folder.at("labels.npy").exists());
}

/// The child of the test above; alone, it does nothing.
#[test]
fn labels_with_a_temporary_folder_that_is_missing() {
    let Some(mask) = std::env::var_os("HORUS_SWEPT_MASK") else { return };
    let mask = Path::new(&mask);
    let small = session(Some(MEMORY), None, &Arc::default());
    let image = on_demand(&small, mask).convert::<u8>();
    let error = image.label(Connectivity::FACES).save(mask.with_file_name("labels.npy")).unwrap_err();
    println!("{error}");
    // The session still works.
    assert_eq!(image.max_value().get().unwrap(), 7);
}
