//! Checkpoints of loops: what is written is read, and nothing else is taken for a checkpoint, or changed.

use std::fs;
use std::sync::Arc;

use horus_core::dtype::DType;
use horus_core::host::buffer::HostBuffer;
use horus_core::image::{CheckpointImage, CheckpointStore, Checkpoints, Image};
use horus_core::shape::Shape;
use horus_zarr::{ZarrCheckpoints, ZarrOptions};

use crate::{StoreFolder, session};

fn state(step: u8) -> Vec<CheckpointImage> {
    let image = |shape: Shape, dtype, bytes: Vec<u8>| CheckpointImage {
        shape,
        dtype,
        pixels: Arc::new(HostBuffer::from_slice(&bytes)),
    };
    let bytes = |n: usize| (0..n).map(|i| (i * 7 + usize::from(step)) as u8).collect::<Vec<u8>>();
    vec![
        image(Shape::new(5, 7, 1), DType::F64, bytes(5 * 7 * 8)),
        image(Shape { depth: 3, ..Shape::new(4, 2, 3) }, DType::U16, bytes(3 * 4 * 2 * 3 * 2)),
        image(Shape::new(6, 3, 1), DType::Bool, bytes(6 * 3).into_iter().map(|b| b & 1).collect()),
        image(Shape::new(1, 1, 1), DType::F32, vec![0; 4]),
    ]
}

type Kinds = Vec<(Shape, DType)>;

fn kinds() -> Kinds {
    state(0).iter().map(|image| (image.shape, image.dtype)).collect()
}

fn read(store: &ZarrCheckpoints) -> Result<Vec<Vec<u8>>, String> {
    let mut pixels: Vec<Vec<u8>> = state(0).iter().map(|image| vec![9; image.pixels.bytes().len()]).collect();
    store.read(&mut pixels.iter_mut().map(|pixels| &mut pixels[..]).collect::<Vec<_>>())?;
    Ok(pixels)
}

fn written(step: u8) -> Vec<Vec<u8>> {
    state(step).iter().map(|image| image.pixels.bytes().to_vec()).collect()
}

#[test]
fn the_last_complete_checkpoint_is_read() {
    let folder = StoreFolder::new();
    let path = folder.at("loop.zarr");
    let store = ZarrCheckpoints::at(&path).of("heat");
    assert_eq!(store.last(&kinds()), Ok(None));
    store.create().unwrap();
    assert_eq!(store.last(&kinds()), Ok(None));
    for (steps, step) in [(10, 1), (20, 2), (35, 3)] {
        store.write(steps, &state(step)).unwrap();
        assert_eq!(store.last(&kinds()), Ok(Some(steps)));
        assert_eq!(read(&store), Ok(written(step)));
        let mut names: Vec<_> = fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".lock", format!("after-{steps}").as_str(), "zarr.json"]);
    }
    // A process that ended while it wrote leaves a folder, and perhaps attributes.
    fs::create_dir(path.join("after-40")).unwrap();
    fs::write(path.join("after-40/zarr.json"), "{").unwrap();
    fs::write(path.join(".zarr.json"), "{").unwrap();
    assert_eq!((store.last(&kinds()), read(&store)), (Ok(Some(35)), Ok(written(3))));
    store.write(40, &state(4)).unwrap();
    assert_eq!((store.last(&kinds()), read(&store)), (Ok(Some(40)), Ok(written(4))));
    // Any reader reads it.
    let image = horus_zarr::open(&session(), path.join("after-40/0"), &ZarrOptions::default()).unwrap();
    let other = ZarrCheckpoints::at(&path).of("heat");
    assert!(other.last(&kinds()).unwrap_err().contains("another loop"));
    drop(store);
    assert_eq!(other.last(&kinds()), Ok(Some(40)));
    assert_eq!(image.shape(), Shape::new(5, 7, 1));
}

#[test]
fn other_states_and_programs_are_refused() {
    let folder = StoreFolder::new();
    let store = ZarrCheckpoints::at(folder.at("loop.zarr")).of("heat");
    store.create().unwrap();
    store.write(8, &state(1)).unwrap();
    let refused = |change: &dyn Fn(&mut Kinds)| {
        let mut kinds = kinds();
        change(&mut kinds);
        store.last(&kinds).unwrap_err()
    };
    assert!(refused(&|kinds| kinds.truncate(2)).contains("has 4 images, the loop 2"));
    assert!(refused(&|kinds| kinds[2].1 = DType::U8).contains("image 2 of its checkpoint is 6x3 bool"));
    assert!(refused(&|kinds| kinds[0].0.height = 6).contains("image 0"));
    assert!(store.clone().of("flow").last(&kinds()).unwrap_err().contains("another program"));
    assert!(store.clone().of("flow").write(9, &state(2)).unwrap_err().contains("another program"));
    let chunk = folder.at("loop.zarr").join("after-8/0/c/0/0");
    let pixels = fs::read(&chunk).unwrap();
    fs::write(&chunk, vec![1; pixels.len()]).unwrap();
    assert!(read(&store).unwrap_err().contains("damaged"));
    fs::remove_file(&chunk).unwrap();
    assert!(read(&store).unwrap_err().contains("damaged"), "an absent chunk is zeros");
    fs::remove_file(folder.at("loop.zarr").join("zarr.json")).unwrap();
    assert!(store.last(&kinds()).unwrap_err().contains("is not changed"));
    assert!(store.write(9, &state(2)).is_err() && folder.at("loop.zarr").join("after-8/0").exists());
}

#[test]
fn what_is_no_checkpoint_is_not_changed() {
    let folder = StoreFolder::new();
    fs::create_dir_all(folder.at("runs/1")).unwrap();
    fs::write(folder.at("runs/1/results"), "mine").unwrap();
    fs::write(folder.at("file"), "mine").unwrap();
    let image = Image::from_fn(&session(), 4, 4, |y, x| (y + x) as u8);
    horus_zarr::save(&image, folder.at("cells.zarr"), &Default::default()).unwrap();
    for name in ["runs", "file", "cells.zarr", "cells.zarr/0"] {
        let store = ZarrCheckpoints::at(folder.at(name));
        for refused in [store.last(&kinds()).map(drop), store.create(), store.write(3, &state(0))] {
            assert!(refused.unwrap_err().contains("is not changed"), "{name}");
        }
        let u = Image::<f32>::zeros(&session(), (3, 3));
        let checkpoints = Checkpoints::new(store, 2).resume(true);
        let e = u.session().iterate_checkpointed(u.clone(), 4, |u| u.gauss(1.0), &checkpoints, None).unwrap_err();
        assert!(e.to_string().contains(name), "{e}");
    }
    assert_eq!(fs::read_to_string(folder.at("runs/1/results")).unwrap(), "mine");
    assert_eq!(fs::read_to_string(folder.at("file")).unwrap(), "mine");
    assert!(horus_zarr::open(&session(), folder.at("cells.zarr"), &ZarrOptions::default()).is_ok());
    // An empty folder may become one.
    fs::create_dir(folder.at("empty")).unwrap();
    for name in ["empty", "a/new/one"] {
        let store = ZarrCheckpoints::at(folder.at(name));
        store.create().unwrap();
        store.write(3, &state(0)).unwrap();
        assert_eq!(store.last(&kinds()), Ok(Some(3)));
    }
}
