//! Zarr stores: read and written if the program is built with them, else an error that says so.

use super::{fails, pictures, run, text};

/// A folder recognised as a store, even by a program that does not read stores.
fn store(dir: &std::path::Path, name: &str) {
    std::fs::create_dir(dir.join(name)).unwrap();
    std::fs::write(dir.join(name).join("zarr.json"), r#"{"zarr_format": 3, "node_type": "group"}"#).unwrap();
}

#[test]
fn what_cannot_be_is_told() {
    let dir = pictures();
    let dir = dir.path();
    store(dir, "group.zarr");
    store(dir, "other");
    fails(
        dir,
        &["group.zarr", "grey.png", "--out-dir", "d", "sobel"],
        2,
        &["group.zarr is a Zarr store, which is read alone"],
    );
    let reading = if cfg!(feature = "zarr") { "a group without an image" } else { "built without them" };
    fails(dir, &["group.zarr", "out.png", "sobel"], 1, &["cannot read group.zarr", reading]);
    fails(dir, &["other", "out.png", "sobel"], 1, &["cannot read other", reading]);
    let numbers = run(dir, &["other", "mean"]);
    let message = text(&numbers.stderr);
    assert_eq!(numbers.status.code(), Some(1), "{message}");
    assert!(message.contains("cannot read other") && message.contains(reading), "{message}");
    if !cfg!(feature = "zarr") {
        fails(dir, &["grey.png", "out.zarr", "sobel"], 1, &["cannot write out.zarr", reading, "--features zarr"]);
    }
    assert!(!dir.join("out.zarr").exists() && !dir.join("out.png").exists());
}

#[cfg(feature = "zarr")]
mod with_stores {
    use std::path::Path;

    use horus::prelude::*;
    use horus_zarr::ZarrOptions;

    use crate::command::{bits, fails, pictures, session, succeeds};

    fn read(dir: &Path, name: &str) -> AnyImage {
        horus_zarr::open(&session(), dir.join(name), &ZarrOptions::default()).unwrap()
    }

    #[test]
    fn stores_have_sizes_and_a_pixel_size_and_info_tells_of_them() {
        let dir = pictures();
        let dir = dir.path();
        succeeds(dir, &["grey.png", "grey.zarr", "--sizes", "3", "--pixel-size", "0.5", "neg"]);
        let metadata = std::fs::read_to_string(dir.join("grey.zarr").join("zarr.json")).unwrap();
        assert!(metadata.contains("micrometer"), "{metadata}");
        let last = horus_zarr::open(&session(), dir.join("grey.zarr"), &ZarrOptions { level: 2, ..Default::default() });
        assert_eq!(last.unwrap().shape(), Shape::new(9, 11, 1));
        let told = crate::files::text(&crate::command::run(dir, &["info", "grey.zarr", "--statistics"]).stdout);
        assert!(
            told.starts_with("grey.zarr: 41 x 33 pixels, 1 channel, u8, smaller copies 21 x 17, 11 x 9,")
                && told.contains("PixelSize: 0.5 x 0.5 um\n")
                && told.contains("channel 0: from "),
            "{told}"
        );
        succeeds(dir, &["grey.png", "tiles.zarr", "--tile", "16", "neg"]);
        let told = crate::files::text(&crate::command::run(dir, &["info", "tiles.zarr"]).stdout);
        assert!(told.contains(", in tiles of 16 x 16,"), "{told}");
        let same = crate::command::run(dir, &["compare", "grey.zarr", "grey.zarr"]);
        assert_eq!(same.status.code(), Some(0), "{}", crate::files::text(&same.stderr));
        fails(
            dir,
            &["grey.png", "o.png", "--sizes", "3", "neg"],
            1,
            &["a png file has one size; save as tif, or as a Zarr store"],
        );
    }

    #[test]
    fn a_chain_goes_from_store_to_store() {
        let dir = pictures();
        let dir = dir.path();
        succeeds(dir, &["colour.png", "colour.zarr"]);
        let session = session();
        let colour = session.open(dir.join("colour.png")).unwrap();
        let same = read(dir, "colour.zarr");
        assert_eq!((same.dtype(), same.shape()), (colour.dtype(), colour.shape()));
        assert_eq!(bits(&same.convert::<u8>()), bits(&colour.convert::<u8>()));
        // The same chain on an npy file, and on one that was computed from the store.
        let chain = ["luminance", "gauss", "2"];
        succeeds(dir, &[&["colour.png", "out.npy"], &chain[..]].concat());
        for how in
            [&[][..], &["--tile", "7"], &["--compression", "deflate"], &["--compression", "zstd", "--tile", "16"]]
        {
            succeeds(dir, &[&["colour.zarr", "out.zarr"], &chain[..], how].concat());
            let expected = session.open(dir.join("out.npy")).unwrap().convert::<f32>();
            assert_eq!(bits(&read(dir, "out.zarr").convert::<f32>()), bits(&expected), "{how:?}");
        }
        succeeds(dir, &["out.zarr", "again.npy"]);
        assert_eq!(std::fs::read(dir.join("again.npy")).unwrap(), std::fs::read(dir.join("out.npy")).unwrap());
        let chunks: Vec<_> = std::fs::read_dir(dir.join("out.zarr/0/c")).unwrap().collect();
        assert_eq!(chunks.len(), 3, "rows of chunks of 16 of 33");
    }

    #[test]
    fn stores_are_operands_and_have_numbers() {
        let dir = pictures();
        let dir = dir.path();
        succeeds(dir, &["grey.png", "grey.zarr"]);
        assert_eq!(
            succeeds(dir, &["grey.zarr", "mean"]).split_once('\t').unwrap().1,
            succeeds(dir, &["grey.png", "mean"]).split_once('\t').unwrap().1
        );
        succeeds(dir, &["grey.png", "zero.npy", "sub", "@grey.zarr"]);
        let zero = session().open(dir.join("zero.npy")).unwrap().convert::<f64>();
        assert_eq!(zero.abs().max_value().get().unwrap(), 0.0);
        succeeds(dir, &["grey.zarr", "mask.zarr", "otsu", "--compare", "naive"]);
        assert!(std::fs::read_to_string(dir.join("mask.zarr/0/zarr.json")).unwrap().contains(r#""bool""#));
        assert!(std::fs::read_dir(dir).unwrap().all(|e| !e.unwrap().file_name().to_str().unwrap().starts_with('.')));
    }

    #[test]
    fn a_folder_that_is_no_store_is_not_overwritten() {
        let dir = pictures();
        let dir = dir.path();
        std::fs::create_dir_all(dir.join("full.zarr/mine")).unwrap();
        fails(dir, &["grey.png", "full.zarr", "sobel"], 1, &["cannot write full.zarr", "is not overwritten"]);
        assert!(dir.join("full.zarr/mine").exists());
    }
}
