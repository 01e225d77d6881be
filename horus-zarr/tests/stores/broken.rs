//! Incomplete or corrupt stores: one error with the location.

use std::fs;
use std::path::Path;

use horus_core::image::Image;
use horus_core::io::AnyImage;
use horus_core::session::Session;
use horus_zarr::{ZarrCodec, ZarrOptions, ZarrSaveOptions, open, save};

use super::{StoreFolder, files, session};

fn read(session: &Session, path: &Path) -> String {
    let pixels = open(session, path, &ZarrOptions::default()).and_then(|image| image.convert::<f64>().to_vec());
    pixels.map(drop).expect_err("it is broken").to_string()
}

fn written(session: &Session, path: &Path, options: &ZarrSaveOptions) {
    save(&Image::from_fn(session, 40, 40, |y, x| (1 + (y * 40 + x) * 7919 % 65535) as u16), path, options).unwrap();
}

#[test]
fn a_chunk_that_cannot_be_decoded_is_named() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    for codec in [ZarrCodec::None, ZarrCodec::Gzip, ZarrCodec::Zstd] {
        for shard in [None, Some([1, 20, 20])] {
            let options = ZarrSaveOptions { chunk: [1, 10, 10], shard, codec, ..ZarrSaveOptions::default() };
            written(&session, &path, &options);
            let (kind, name) = if shard.is_some() { ("shard", "1/0") } else { ("chunk", "2/1") };
            let chunk = path.join("0/c").join(name);
            let whole = fs::read(&chunk).unwrap();
            for bytes in [&whole[..whole.len() - 9], &[], b"nonsense"] {
                fs::write(&chunk, bytes).unwrap();
                let error = read(&session, &path);
                let named = error.contains(&format!("{kind} {}: ", chunk.display()));
                assert!(
                    named && error.starts_with("cannot read"),
                    "{codec:?}, {shard:?}, {} bytes: {error}",
                    bytes.len()
                );
            }
            // Parts stored elsewhere are readable.
            let image = open(&session, &path, &ZarrOptions::default()).unwrap();
            assert!(image.convert::<f64>().crop(0, 20, 10, 10).to_vec().is_ok());
        }
    }
}

#[test]
fn an_integer_that_is_no_pixel_is_named_if_it_is_in_the_array() {
    let (session, folder) = (session(), StoreFolder::new());
    let (path, golden) =
        (folder.at("a.zarr"), Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/goldens/v2-uint64.zarr"));
    fs::create_dir(&path).unwrap();
    for (name, bytes) in files(&golden) {
        fs::write(path.join(name), bytes).unwrap();
    }
    let image = || open(&session, &path, &ZarrOptions::default()).unwrap().convert::<f64>();
    // Six rows of eight samples, of which four rows and four columns are in the array.
    let chunk = path.join("1.1");
    let good = fs::read(&chunk).unwrap();
    let before = image().to_vec().unwrap();
    for (sample, is_inside) in [(0, true), (4, false), (27, true), (32, false), (47, false)] {
        let mut bytes = good.clone();
        bytes[8 * sample] = 1;
        fs::write(&chunk, bytes).unwrap();
        if is_inside {
            let error = image().to_vec().unwrap_err().to_string();
            assert!(error.contains("chunk ") && error.contains("1.1: its sample 720575940379"), "{error}");
            assert!(error.contains("exceeds the range of u32 pixels"), "{error}");
        } else {
            assert_eq!(image().to_vec().unwrap(), before, "sample {sample}");
        }
    }
}

#[test]
fn all_ranks_are_told_of_a_broken_chunk() {
    use horus_core::comm::threads::ThreadComm;
    let folder = StoreFolder::new();
    let path = folder.at("a.zarr");
    written(&session(), &path, &ZarrSaveOptions { chunk: [1, 10, 10], ..ZarrSaveOptions::default() });
    fs::write(path.join("0/c/1/2"), "nonsense").unwrap();
    let errors = ThreadComm::run(3, |comm| {
        read(&super::builder(1).communicator(std::sync::Arc::new(comm)).build().unwrap(), &path)
    });
    let named = format!("chunk {}: ", path.join("0/c/1/2").display());
    assert!(errors.iter().all(|e| e.contains(&named) && e == &errors[0]), "{errors:?}");
}

/// Codecs with checksums detect every changed bit.
#[test]
fn a_flipped_bit_is_noticed() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    for codec in [ZarrCodec::Gzip, ZarrCodec::Zstd] {
        let options = ZarrSaveOptions { chunk: [1, 20, 20], codec, ..ZarrSaveOptions::default() };
        written(&session, &path, &options);
        let chunk = path.join("0/c/1/1");
        let whole = fs::read(&chunk).unwrap();
        let image = |session: &Session| open(session, &path, &ZarrOptions::default()).unwrap();
        // In the middle of the compressed samples.
        let mut bytes = whole.clone();
        bytes[whole.len() / 2] ^= 16;
        fs::write(&chunk, &bytes).unwrap();
        // Both the whole image and a part of the chunk fail.
        assert!(image(&session).convert::<f64>().to_vec().unwrap_err().to_string().contains("chunk "));
        let corner = image(&session).convert::<f64>().crop(21, 21, 2, 2);
        assert!(corner.to_vec().unwrap_err().to_string().contains("chunk "));
    }
}

#[test]
fn what_is_no_store_is_told() {
    let (session, folder) = (session(), StoreFolder::new());
    let fails = |name: &str, cause: &str| {
        let error = read(&session, &folder.at(name));
        assert!(error.contains(cause) && error.contains(name), "{error}");
    };
    fails("none.zarr", "No such file");
    fs::write(folder.at("file.zarr"), "").unwrap();
    fails("file.zarr", "a Zarr store is a folder");
    fs::create_dir(folder.at("empty.zarr")).unwrap();
    fails("empty.zarr", "there is no zarr.json, .zarray or .zgroup");
    let group = |name: &str, metadata: &str| {
        fs::create_dir_all(folder.at(name)).unwrap();
        fs::write(folder.at(name).join("zarr.json"), metadata).unwrap();
    };
    group("text.zarr", "not JSON");
    fails("text.zarr", "its zarr.json cannot be understood");
    group("node.zarr", r#"{"zarr_format": 3}"#);
    fails("node.zarr", "neither `array` nor `group`");
    group("group.zarr", r#"{"zarr_format": 3, "node_type": "group", "attributes": {"plate": {}}}"#);
    fails("group.zarr", "a group without an image (no `multiscales`), and nothing is below it");
    group("group.zarr/A", r#"{"zarr_format": 3, "node_type": "group"}"#);
    fails("group.zarr", "open one of those below it: A");
    let out = r#"{"node_type": "group", "attributes": {"ome": {"multiscales": [{"datasets": [{"path": "../a"}]}]}}}"#;
    group("out.zarr", out);
    fails("out.zarr", "leads out of it");
    group("gone.zarr", &out.replace("../a", "0"));
    fails("gone.zarr", "0: No such file");
}

#[test]
fn metadata_that_makes_no_sense_is_an_error() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    written(&session, &path, &ZarrSaveOptions::default());
    let at = path.join("0/zarr.json");
    let good = fs::read_to_string(&at).unwrap();
    let flat = good.split_whitespace().collect::<String>();
    let changes = [
        (r#""shape":[40,40]"#, r#""shape":[0,40]"#, "no pixels"),
        (r#""shape":[40,40]"#, r#""shape":[40,40,40]"#, "a.zarr"),
        (r#""shape":[40,40]"#, r#""shape":[99999999999,40]"#, "exceed the limit"),
        (r#""shape":[40,40]"#, r#""shape":[18446744073709551615,18446744073709551615]"#, "exceed the limit"),
        (r#""chunk_shape":[40,40]"#, r#""chunk_shape":[0,40]"#, "a.zarr"),
        (r#""chunk_shape":[40,40]"#, r#""chunk_shape":[99999999,99999999]"#, "the limit is"),
        (r#""chunk_shape":[40,40]"#, r#""chunk_shape":[18446744073709551615,40]"#, "the limit is"),
        (r#""name":"zstd""#, r#""name":"best""#, "best"),
        (r#""name":"regular""#, r#""name":"odd""#, "odd"),
        (r#""data_type":"uint16""#, r#""data_type":"uint12""#, "uint12"),
        (r#""data_type":"uint16""#, r#""data_type":"string""#, "a.zarr"),
        (r#""fill_value":0"#, r#""fill_value":"red""#, "a.zarr"),
        (r#""data_type":"uint16","#, "", "a.zarr"),
    ];
    for (from, to, cause) in changes {
        assert!(flat.contains(from), "{from} in {flat}");
        fs::write(&at, flat.replace(from, to)).unwrap();
        let error = open(&session, &path, &ZarrOptions::default()).map(drop).expect_err(to).to_string();
        assert!(error.contains(cause) && error.starts_with("cannot read"), "{to}: {error}");
    }
}

/// Absent chunks are no error, so a store that replaced another would be read in part.
#[test]
fn a_store_that_was_replaced_since_it_was_opened_is_told() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    written(&session, &path, &ZarrSaveOptions::default());
    let before: AnyImage = open(&session, &path, &ZarrOptions::default()).unwrap();
    written(&session, &path, &ZarrSaveOptions::default());
    let error = before.convert::<f64>().to_vec().unwrap_err().to_string();
    assert!(error.contains("replaced or changed since it was opened"), "{error}");
    let before = open(&session, &path, &ZarrOptions::default()).unwrap();
    fs::remove_dir_all(&path).unwrap();
    assert!(before.convert::<f64>().to_vec().is_err());
}

#[test]
fn a_save_that_fails_leaves_what_was_there() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    written(&session, &path, &ZarrSaveOptions::default());
    let before = files(&path);
    let image = Image::from_fn(&session, 8, 8, |y, _| y as u8);
    let fails = |options: ZarrSaveOptions, cause: &str| {
        let error = save(&image, &path, &options).unwrap_err().to_string();
        assert!(error.contains(cause) && error.starts_with("cannot write"), "{error}");
    };
    fails(ZarrSaveOptions { chunk: [1, 0, 8], ..ZarrSaveOptions::default() }, "a chunk has no samples");
    fails(ZarrSaveOptions { chunk: [0, 8, 8], ..ZarrSaveOptions::default() }, "a chunk has no samples");
    let shard = Some([1, 6, 8]);
    fails(
        ZarrSaveOptions { chunk: [1, 4, 4], shard, ..ZarrSaveOptions::default() },
        "shards of 1x6x8 are not made of whole",
    );
    fails(ZarrSaveOptions { sizes: 0, ..ZarrSaveOptions::default() }, "at least one size");
    assert!(save(&image.gauss(-1.0), &path, &ZarrSaveOptions::default()).unwrap_err().to_string().contains("sigma"));
    // A picture whose pixels fail when it is half written.
    let other = folder.at("b.zarr");
    written(&session, &other, &ZarrSaveOptions { chunk: [1, 10, 10], ..ZarrSaveOptions::default() });
    let image = open(&session, &other, &ZarrOptions::default()).unwrap();
    fs::write(other.join("0/c/3/3"), "nonsense").unwrap();
    assert!(save(&image.convert::<u16>(), &path, &ZarrSaveOptions::default()).is_err());
    assert_eq!(files(&path), before);
    assert_eq!(folder.names(), ["a.zarr", "b.zarr"]);
    fs::write(folder.at("file"), "a file").unwrap();
    assert!(save(&image.convert::<u16>(), folder.at("file"), &ZarrSaveOptions::default()).is_err());
}
