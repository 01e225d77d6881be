//! Files written region by region hold exactly those regions, and are complete or absent.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::process::Command;

use horus_core::dtype::{DType, Pixel};
use horus_core::error::{Error, Result};
use horus_core::host::workers::Workers;
use horus_core::image::Image;
use horus_core::io::{AnyImage, Compression, Format, OpenOptions, PictureReader, PictureWriter, SaveOptions};
use horus_core::shape::{Axis, Region, Shape};
use tiff::decoder::{Decoder, DecodingResult};
use tiff::tags::Tag;

use super::TestFolder;

const COMPRESSIONS: [Compression; 4] = [Compression::None, Compression::Deflate, Compression::Lzw, Compression::Zstd];
const HEIGHT: usize = 45;
const WIDTH: usize = 70;

/// A value of a sample, of a level or a channel, with large and small differences.
fn sample<T: Pixel>(other: usize, y: usize, x: usize) -> T {
    T::from_f64(((y * 7919 + x * 31 + other * 101 + x * x % 17) % 251) as f64)
}

/// The samples of a region: level by level, row by row, those of a pixel beside each other.
fn samples<T: Pixel>(shape: Shape, region: Region) -> Vec<T> {
    let rows = (0..shape.depth).flat_map(|z| (region.top..region.bottom()).map(move |y| (z, y)));
    let pixels = rows.flat_map(|(z, y)| (region.left..region.right()).map(move |x| (z, y, x)));
    pixels.flat_map(|(z, y, x)| (0..shape.channels).map(move |c| sample(z * shape.channels + c, y, x))).collect()
}

/// Regions that cover a picture, of so many rows and columns each, in an order other than spatial.
fn regions(shape: Shape, (height, width): (usize, usize)) -> Vec<Region> {
    let tops = (0..shape.height).step_by(height);
    let one = |top, left| Region::new(top, left, height.min(shape.height - top), width.min(shape.width - left));
    let mut all: Vec<Region> = tops.flat_map(|top| (0..shape.width).step_by(width).map(move |l| one(top, l))).collect();
    all.reverse();
    all.sort_by_key(|r| (r.left / width + r.top / height) % 3);
    all
}

fn write<T: Pixel>(path: &Path, writer: &PictureWriter, each: (usize, usize), workers: &Workers) -> Result<()> {
    let shape = writer.shape();
    assert_eq!(writer.dtype(), T::DTYPE, "{path:?}");
    let put = |region| writer.put(region, bytemuck::cast_slice(&samples::<T>(shape, region)), workers);
    regions(shape, each).into_iter().try_for_each(put)
}

/// The samples of all pages as the `tiff` crate reads them.
fn decoded(path: &Path, shape: Shape) -> Vec<f64> {
    let mut decoder = Decoder::new(BufReader::new(File::open(path).expect("a file"))).expect("a TIFF file");
    let mut all = Vec::new();
    for page in 0..shape.depth {
        assert_eq!(decoder.dimensions().expect("a size"), (shape.width as u32, shape.height as u32));
        let read: Vec<f64> = match decoder.read_image().expect("pixels") {
            DecodingResult::U8(v) => v.into_iter().map(f64::from).collect(),
            DecodingResult::U16(v) => v.into_iter().map(f64::from).collect(),
            DecodingResult::I32(v) => v.into_iter().map(f64::from).collect(),
            DecodingResult::F32(v) => v.into_iter().map(f64::from).collect(),
            DecodingResult::F64(v) => v,
            other => panic!("{other:?}"),
        };
        all.extend(read);
        assert_eq!(decoder.more_images(), page + 1 < shape.depth);
        if decoder.more_images() {
            decoder.next_image().expect("a page");
        }
    }
    all
}

#[test]
fn tiles_and_strips_are_read_by_others() -> Result<()> {
    fn check<T: Pixel>(folder: &TestFolder, compression: Compression, workers: &Workers) -> Result<()> {
        let path = folder.at("a.tif");
        for (depth, channels) in [(1, 1), (1, 3), (1, 4), (1, 5), (3, 1)] {
            let shape = Shape::volume(depth, HEIGHT, WIDTH, channels);
            for (tile, each) in [
                (Some((16, 32)), (16, 32)),
                (Some((16, 32)), (32, 64)),
                (Some((64, 96)), (64, 96)),
                (None, (HEIGHT, WIDTH)),
            ] {
                let what = format!("{} {shape}, {tile:?}, {compression:?}", T::DTYPE);
                let writer = PictureWriter::create(&path, shape, T::DTYPE, tile, compression)?;
                write::<T>(&path, &writer, each, workers)?;
                writer.finish()?;
                let want = samples::<T>(shape, Region::whole(shape));
                // The crate reads too little of a tile of LZW that is cut at the right edge.
                let cut = tile.is_some_and(|(_, columns)| !WIDTH.is_multiple_of(columns));
                // It also loses a sample beyond colours that is not said to be alpha.
                if (compression != Compression::Lzw || !cut) && channels != 4 {
                    let read = decoded(&path, shape);
                    assert!(read.iter().zip(&want).all(|(read, want)| *read == want.to_f64()), "{what}");
                }
                let options = OpenOptions { volume: true, ..OpenOptions::default() };
                let reader = PictureReader::open(&path, &options)?;
                assert_eq!((reader.shape(), reader.dtype()), (shape, T::DTYPE), "{what}");
                let mut read = vec![T::ZERO; want.len()];
                reader.read_into(Region::whole(shape), bytemuck::cast_slice_mut(&mut read), workers)?;
                assert!(read == want, "{what}");
            }
        }
        Ok(())
    }
    let folder = TestFolder::new();
    for workers in [Workers::alone(), Workers::new(Some(3))?] {
        for compression in COMPRESSIONS {
            check::<u8>(&folder, compression, &workers)?;
            check::<u16>(&folder, compression, &workers)?;
            check::<i32>(&folder, compression, &workers)?;
            check::<f32>(&folder, compression, &workers)?;
            check::<f64>(&folder, compression, &workers)?;
        }
    }
    assert_eq!(folder.names(), ["a.tif"]);
    Ok(())
}

#[test]
fn arrays_and_rasters_are_those_that_are_saved_as_a_whole() -> Result<()> {
    fn check<T: Pixel>(folder: &TestFolder, name: &str, shape: Shape, workers: &Workers) -> Result<()> {
        let s = super::session();
        let (path, whole) = (folder.at(name), folder.at(&format!("whole-{name}")));
        let pixels = samples::<T>(shape, Region::whole(shape));
        let image = if shape.channels == 1 {
            Image::from_volume_fn(&s, shape.depth, HEIGHT, WIDTH, sample::<T>)
        } else {
            let channel = |c| Image::from_fn(&s, HEIGHT, WIDTH, move |y, x| sample::<T>(c, y, x));
            Image::stack(&s, (0..shape.channels).map(channel), Axis::Channels)
        };
        image.save(&whole)?;
        for each in [(HEIGHT, WIDTH), (7, WIDTH), (10, 9)] {
            let writer = PictureWriter::create(&path, shape, T::DTYPE, None, Compression::None)?;
            assert_eq!(writer.chunk(), (1, 1));
            write::<T>(&path, &writer, each, workers)?;
            assert_eq!(writer.counted().bytes, (pixels.len() * size_of::<T>()) as u64);
            writer.finish()?;
            assert!(std::fs::read(&path).unwrap() == std::fs::read(&whole).unwrap(), "{name}, {shape}, {each:?}");
        }
        Ok(())
    }
    let folder = TestFolder::new();
    for workers in [Workers::alone(), Workers::new(Some(3))?] {
        for (depth, channels) in [(1, 1), (1, 3), (4, 1)] {
            let shape = Shape::volume(depth, HEIGHT, WIDTH, channels);
            check::<f32>(&folder, "a.npy", shape, &workers)?;
            check::<u8>(&folder, "a.npy", shape, &workers)?;
            if depth == 1 {
                check::<u8>(&folder, "a.pnm", shape, &workers)?;
                check::<u16>(&folder, "a.pnm", shape, &workers)?;
            }
        }
    }
    Ok(())
}

#[test]
fn several_threads_write_one_file() -> Result<()> {
    let folder = TestFolder::new();
    let shape = Shape::new(160, 320, 1);
    for compression in COMPRESSIONS {
        let path = folder.at("a.tif");
        let writer = PictureWriter::create(&path, shape, DType::U16, Some((16, 32)), compression)?;
        let all = regions(shape, (16, 64));
        std::thread::scope(|scope| {
            let some = |some: &[Region]| -> Result<()> {
                let put = |region: &Region| {
                    let pixels = samples::<u16>(shape, *region);
                    writer.put(*region, bytemuck::cast_slice(&pixels), &Workers::alone())
                };
                some.iter().try_for_each(put)
            };
            let threads: Vec<_> = all.chunks(13).map(|part| scope.spawn(move || some(part))).collect();
            threads.into_iter().try_for_each(|thread| thread.join().expect("no panic"))
        })?;
        assert_eq!(writer.counted().chunks, 100);
        writer.finish()?;
        let want = samples::<u16>(shape, Region::whole(shape));
        assert!(decoded(&path, shape).iter().zip(&want).all(|(read, want)| *read == f64::from(*want)));
    }
    Ok(())
}

#[test]
fn bytes_do_not_depend_on_threads_nor_places_on_order() -> Result<()> {
    let folder = TestFolder::new();
    let shape = Shape::new(HEIGHT, WIDTH, 3);
    let bytes = |compression, each, threads| -> Result<Vec<u8>> {
        let path = folder.at("a.tif");
        let writer = PictureWriter::create(&path, shape, DType::U8, Some((16, 16)), compression)?;
        write::<u8>(&path, &writer, each, &Workers::new(Some(threads))?)?;
        writer.finish()?;
        Ok(std::fs::read(path).expect("a file"))
    };
    for compression in COMPRESSIONS {
        for each in [(16, 16), (48, 80)] {
            assert!(bytes(compression, each, 1)? == bytes(compression, each, 4)?, "{compression:?}");
        }
    }
    assert!(bytes(Compression::None, (16, 16), 1)? == bytes(Compression::None, (32, 64), 1)?);
    Ok(())
}

#[test]
fn nothing_is_there_before_all_is() -> Result<()> {
    let folder = TestFolder::new();
    let why = |error: Error| error.to_string();
    for name in ["a.tif", "a.npy", "a.pgm"] {
        let path = folder.put(name, b"old");
        let shape = Shape::new(HEIGHT, WIDTH, 1);
        let tile = name.ends_with("tif").then_some((16, 32));
        let begin = || PictureWriter::create(&path, shape, DType::U8, tile, Compression::None);
        let (alone, whole) = (Workers::alone(), samples::<u8>(shape, Region::whole(shape)));
        let names = folder.names();
        drop(begin()?);
        let writer = begin()?;
        let part = Region::new(16, 0, 16, WIDTH);
        writer.put(part, &samples::<u8>(shape, part), &alone)?;
        assert_eq!(folder.names(), names, "no file but those that were there");
        let missing = why(writer.finish().expect_err("not complete"));
        let tiles = missing.contains("6 of its 9 tiles are missing");
        assert!(tiles || missing.contains("1120 pixels were written, and it has 3150"), "{missing}");
        // A region that does not fit changes nothing.
        let writer = begin()?;
        let told = why(writer.put(Region::new(0, 0, 16, WIDTH + 1), &whole, &alone).expect_err("outside"));
        assert!(told.contains("is not inside its 45x70 pixels") && told.contains(name), "{told}");
        let told = why(writer.put(part, &whole, &alone).expect_err("too long"));
        assert!(told.contains("takes 1120 bytes, not 3150"), "{told}");
        if tile.is_some() {
            for odd in [Region::new(8, 0, 16, WIDTH), Region::new(0, 0, 16, 33), Region::new(0, 16, 45, 54)] {
                let told = why(writer.put(odd, &samples::<u8>(shape, odd), &alone).expect_err("parts of tiles"));
                assert!(told.contains("is not made of whole tiles of 16x32 pixels"), "{told}");
            }
        }
        assert_eq!(std::fs::read(&path).expect("a file"), b"old");
        writer.put(Region::whole(shape), &whole, &alone)?;
        writer.finish()?;
        assert_eq!(PictureReader::open(&path, &OpenOptions::default())?.shape(), shape);
        assert_eq!(folder.names(), names);
        let writer = begin()?;
        writer.put(Region::whole(shape), &whole, &alone)?;
        let twice =
            if tile.is_some() { "tile 3 is written twice" } else { "pixels of this region were written before" };
        let told = why(writer.put(part, &samples::<u8>(shape, part), &alone).expect_err("again"));
        assert!(told.contains(twice), "{told}");
        assert!(why(writer.finish().expect_err("it failed")).contains(twice));
        // As many pixels as the picture has, but not all of them.
        let writer = begin()?;
        let top = Region::new(0, 0, 32, WIDTH);
        writer.put(top, &samples::<u8>(shape, top), &alone)?;
        let lap = Region::new(16, 0, 16, WIDTH);
        assert!(why(writer.put(lap, &samples::<u8>(shape, lap), &alone).expect_err("again")).contains("written"));
    }
    Ok(())
}

#[test]
fn what_a_format_cannot_hold_is_told_at_once() {
    let folder = TestFolder::new();
    let create = |name: &str, dtype, shape, tile, compression| {
        let told = PictureWriter::create(folder.at(name), shape, dtype, tile, compression).expect_err("refused");
        assert!(told.to_string().contains(name), "{told}");
        told.to_string()
    };
    let grey = Shape::new(20, 20, 1);
    let none = Compression::None;
    let png = create("a.png", DType::U8, grey, None, none);
    assert!(png.contains("cannot be written region by region; save as tif, npy"), "{png}");
    assert!(create("a.pgm", DType::F32, grey, None, none).contains("a pgm file cannot hold f32 pixels"));
    assert!(create("a.tif", DType::U8, Shape::new(2, 2, 1 << 16), None, none).contains("2x2 pixels of 65536 channels"));
    assert!(create("a.tif", DType::U8, grey, Some((16, 20)), none).contains("multiples of 16"));
    assert!(create("a.tif", DType::U8, grey, Some((0, 16)), none).contains("multiples of 16"));
    assert!(create("a.npy", DType::U8, grey, Some((16, 16)), none).contains("has no tiles; save as tif"));
    assert!(create("a.npy", DType::U8, grey, None, Compression::Deflate).contains("no choice of a compression"));
    assert!(create("a.tif", DType::U8, Shape::new(0, 4, 1), None, none).contains("no pixels"));
    assert!(create("none/a.tif", DType::U8, grey, None, none).contains("cannot create a file"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/null", folder.at("null.tif")).expect("a link");
        assert!(create("null.tif", DType::U8, grey, None, none).contains("it is no regular file"));
        std::fs::remove_file(folder.at("null.tif")).expect("a link");
    }
    assert!(folder.names().is_empty());
}

#[test]
fn whole_images_are_saved_in_tiles() -> Result<()> {
    let (s, folder) = (super::session(), TestFolder::new());
    let image = Image::from_fn(&s, HEIGHT, WIDTH, |y, x| sample::<u16>(0, y, x));
    for (tile, compression) in
        [(Some((32, 16)), Compression::None), (Some((16, 64)), Compression::Deflate), (None, Compression::Deflate)]
    {
        let options = SaveOptions { tile, compression, ..SaveOptions::default() };
        let path = folder.at("a.tif");
        image.save_with(&path, &options)?;
        let want = samples::<u16>(image.shape(), Region::whole(image.shape()));
        assert!(decoded(&path, image.shape()).iter().zip(&want).all(|(read, want)| *read == f64::from(*want)));
        let told = AnyImage::describe(&s, &path, &OpenOptions::default())?;
        assert_eq!(told.tile, tile.unwrap_or((HEIGHT, WIDTH)));
        let mut decoder = Decoder::new(File::open(&path).expect("a file")).expect("a TIFF file");
        let method = decoder.find_tag_unsigned::<u16>(Tag::Compression).expect("a tag");
        let known = [(Compression::None, 1), (Compression::Deflate, 8)];
        assert_eq!(method, known.iter().find(|(c, _)| *c == compression).map(|(_, number)| *number));
        assert_eq!(image.encode(Format::Tiff, &options)?, std::fs::read(&path).expect("a file"));
        for other in ["a.png", "a.npy", "a.jpg"] {
            let told = image.save_with(folder.at(other), &options).expect_err("refused").to_string();
            assert!(told.contains("save as tif") || told.contains("16 bits per sample"), "{told}");
        }
    }
    assert_eq!(folder.names(), ["a.tif"]);
    Ok(())
}

/// The output of this test's child process, and the limit on its file.
const FULL: &str = "HORUS_TEST_FULL_DISK";

#[cfg(unix)]
#[test]
fn a_full_disk_is_named_and_leaves_what_was_there() -> Result<()> {
    let shape = Shape::new(512, 1024, 1);
    if let Some(folder) = std::env::var_os(FULL) {
        // Half a MiB of pixels, nine tenths of which can be written: the last tiles, rows or
        // directory cannot.
        for (name, tile, compression) in [
            ("a.tif", Some((64, 64)), Compression::None),
            ("a.npy", None, Compression::None),
            ("b.tif", None, Compression::Deflate),
        ] {
            let path = Path::new(&folder).join(name);
            let writer = PictureWriter::create(&path, shape, DType::U8, tile, compression)?;
            let noise = |at: Region| -> Vec<u8> {
                // Incompressible pixels.
                let pixel = |y: usize, x: usize| {
                    let mixed = ((y * 1024 + x) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    ((mixed ^ mixed >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 40) as u8
                };
                let row = |y| (at.left..at.right()).map(move |x| pixel(y, x));
                (at.top..at.bottom()).flat_map(row).collect()
            };
            let put = |region: Region| writer.put(region, &noise(region), &Workers::alone());
            let failed = regions(shape, (256, 1024)).into_iter().map(put).find_map(std::result::Result::err);
            let failed = failed.expect("no room").to_string();
            assert!(failed.contains("File too large") && failed.contains(name), "{failed}");
            let told = writer.finish().expect_err("it has failed").to_string();
            assert!(told.contains("File too large") && told.contains(name), "{told}");
        }
        return Ok(());
    }
    let folder = TestFolder::new();
    folder.put("a.tif", b"old");
    let own = std::env::current_exe().expect("this program");
    let name = "writer::a_full_disk_is_named_and_leaves_what_was_there";
    // Blocks have 512 bytes. Without the trap the system ends a process that writes more.
    let limited = "trap '' XFSZ; ulimit -f 944; exec \"$0\" --exact \"$1\"";
    let mut child = Command::new("sh");
    let done = child.args(["-c", limited]).arg(own).arg(name).env(FULL, folder.0.path()).output().expect("a shell");
    let said = String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("1 passed"), "{said}");
    assert_eq!(folder.names(), ["a.tif"]);
    assert_eq!(std::fs::read(folder.at("a.tif")).expect("a file"), b"old");
    Ok(())
}
