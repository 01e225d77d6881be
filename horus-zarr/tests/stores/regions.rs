//! Regions read only the chunks that hold them.

use std::sync::Arc;

use horus_core::comm::Communicator;
use horus_core::comm::threads::ThreadComm;
use horus_core::image::Image;
use horus_core::session::Session;
use horus_core::settings::Ranks;
use horus_core::shape::Shape;
use horus_zarr::{ZarrOptions, ZarrSaveOptions, open, save};

use super::{StoreFolder, builder, files, session};

/// Number of chunks and bytes read for a part.
fn read(session: &Session, image: &Image<u16>) -> (u64, u64) {
    let before = session.stats().read;
    image.to_vec().unwrap();
    let after = session.stats().read;
    (after.chunks - before.chunks, after.bytes - before.bytes)
}

#[test]
fn only_the_chunks_that_hold_a_part_are_read() {
    let (session, folder) = (session(), StoreFolder::new());
    let slope = Image::from_volume_fn(&session, 4, 96, 96, |z, y, x| (z * 10_007 + y * 96 + x * 7) as u16);
    for (name, shard) in [("chunks.zarr", None), ("shards.zarr", Some([2, 32, 32]))] {
        let path = folder.at(name);
        save(&slope, &path, &ZarrSaveOptions { chunk: [2, 16, 16], shard, ..ZarrSaveOptions::default() }).unwrap();
        let total: usize = super::files(&path).iter().map(|(_, bytes)| bytes.len()).sum();
        let open = || open(&session, &path, &ZarrOptions::default()).unwrap().convert::<u16>();
        for (region, chunks) in [
            ((0, 0, 1, 1), 2),
            ((16, 16, 16, 16), 2),
            ((15, 16, 2, 1), 4),
            ((90, 90, 6, 6), 2),
            ((30, 30, 20, 20), 2 * 3 * 3),
            ((0, 0, 96, 96), 2 * 36),
        ] {
            let (top, left, height, width) = region;
            let part = open().crop(top, left, height, width);
            let (counted, bytes) = read(&session, &part);
            assert_eq!(counted, chunks, "{name}, {region:?}");
            assert!(bytes > 0 && bytes <= total as u64, "{bytes} of {total}");
            // Shards add their indices, which are as long as some chunks here.
            let index = if shard.is_some() { 4 * (4 * 16 + 4) * 9 } else { 0 };
            assert!(bytes <= (chunks + 8) * (2 * 16 * 16 * 2) + index, "{name}, {region:?}: {bytes} bytes");
            let expected = slope.crop(top, left, height, width);
            assert_eq!(part.to_vec().unwrap(), expected.to_vec().unwrap(), "{name}, {region:?}");
        }
    }
}

#[test]
fn a_filter_of_a_part_reads_what_it_reaches() {
    let (session, folder) = (session(), StoreFolder::new());
    let path = folder.at("a.zarr");
    let slope = Image::from_fn(&session, 200, 200, |y, x| (y * 200 + x * 7) as u16);
    save(&slope, &path, &ZarrSaveOptions { chunk: [1, 20, 20], ..ZarrSaveOptions::default() }).unwrap();
    let image = open(&session, &path, &ZarrOptions::default()).unwrap().convert::<f32>();
    let before = session.stats().read.chunks;
    // Three pixels around 100..110 in each direction.
    let part = image.gauss(1.0).crop(105, 105, 10, 10).to_vec().unwrap();
    let chunks = session.stats().read.chunks - before;
    assert!((1..=4).contains(&chunks), "{chunks} of 100 chunks");
    let whole = slope.convert::<f32>().gauss(1.0).crop(105, 105, 10, 10).to_vec().unwrap();
    assert!(part.iter().map(|v| v.to_bits()).eq(whole.iter().map(|v| v.to_bits())));
}

/// Each rank reads the chunks of its rows and writes whole chunks: the files of one rank.
#[test]
fn ranks_read_and_write_their_own_chunks() {
    let folder = StoreFolder::new();
    // Stores tell their names.
    let [source, alone, path] = ["source", "alone", "ranks"].map(|folder_name| {
        std::fs::create_dir(folder.at(folder_name)).unwrap();
        folder.at(folder_name).join("a.zarr")
    });
    let (levels, rows, columns) = (3, 131, 90);
    let one = session();
    let pixels: Vec<u16> = (0..levels * rows * columns * 2).map(|i| (i * 31 % 40_000) as u16).collect();
    let image = Image::from_slice(&one, Shape::volume(levels, rows, columns, 2), &pixels);
    let run = |s: &Session, options: &ZarrSaveOptions| {
        let image = open(s, &source, &ZarrOptions::default()).unwrap().convert::<f32>();
        save(&image.gauss(1.0), if s.ranks() == 1 { &alone } else { &path }, options).unwrap();
        s.stats().read.bytes
    };
    for (chunk, shard) in
        [([1, 16, 32], None), ([2, 50, 90], None), ([1, 8, 16], Some([1, 24, 48])), ([3, 300, 300], None)]
    {
        let options = ZarrSaveOptions { chunk, shard, ..ZarrSaveOptions::default() };
        save(&image, &source, &options).unwrap();
        let whole = run(&one, &options);
        for ranks in [2, 3, 5] {
            for memory in [None, Some(1 << 20)] {
                let read = ThreadComm::run(ranks, |comm| {
                    let comm: Arc<dyn Communicator> = Arc::new(comm);
                    let builder = builder(1).communicator(comm).ranks(Ranks::All);
                    run(&memory.into_iter().fold(builder, |b, n| b.host_memory(n)).build().unwrap(), &options)
                });
                assert!(files(&path) == files(&alone), "chunks of {chunk:?}, {ranks} ranks, {memory:?}");
                assert_eq!(std::fs::read_dir(folder.at("ranks")).unwrap().count(), 1);
                if memory.is_none() && chunk[1] == 16 {
                    assert!(
                        read.iter().all(|read| (1..whole).contains(read)),
                        "{ranks} ranks read {read:?} of {whole}"
                    );
                }
            }
        }
    }
}
