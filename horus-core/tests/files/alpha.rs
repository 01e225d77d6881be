//! Alpha is what a file says is alpha: no number of channels says so.

use std::fs::File;
use std::path::Path;

use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::io::{Alpha, AnyImage, Compression, Format, OpenOptions, Picture, SaveOptions};
use horus_core::shape::{Axis, Shape};
use tiff::decoder::Decoder;
use tiff::tags::Tag;

use super::tiffs::{self, TiffTestPage};
use super::{TestFolder, session};

/// A file of 3 x 1 pixels of so many samples, the extra ones of which are this, if anything is said.
fn page(samples: u32, photometric: u32, extra: Option<u32>) -> Vec<u8> {
    let pixels: Vec<u8> = (0..3 * samples).map(|i| (i * 7) as u8).collect();
    let tags = extra.map(|meaning| (tiffs::EXTRA_SAMPLES, vec![meaning])).into_iter().collect();
    tiffs::file(&[TiffTestPage { samples, photometric, tags, ..TiffTestPage::grey(3, 1, &pixels) }], false)
}

/// `ExtraSamples` of each page.
fn extra(path: &Path) -> Vec<Vec<u16>> {
    let mut file = Decoder::new(File::open(path).unwrap()).unwrap();
    let mut all = Vec::new();
    loop {
        all.push(file.find_tag_unsigned_vec(Tag::ExtraSamples).unwrap().unwrap_or_default());
        if !file.more_images() {
            return all;
        }
        file.next_image().unwrap();
    }
}

#[test]
fn alpha_is_what_a_file_says() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    const GREY: u32 = 1;
    const COLOUR: u32 = 2;
    const PLAIN: Option<Alpha> = Some(Alpha::Unassociated);
    for (samples, photometric, said, alpha) in [
        (2, GREY, Some(0), None),
        (2, GREY, None, None),
        (2, GREY, Some(2), PLAIN),
        (4, COLOUR, Some(0), None),
        (4, COLOUR, None, None),
        (4, COLOUR, Some(2), PLAIN),
        (4, COLOUR, Some(1), Some(Alpha::Associated)),
        (3, COLOUR, None, None),
    ] {
        let bytes = page(samples, photometric, said);
        let path = folder.put("a.tif", &bytes);
        assert_eq!(Picture::open(&path, &OpenOptions::default())?.metadata().alpha, alpha, "{samples}, {said:?}");
        let later = OpenOptions { on_demand: Some(true), ..OpenOptions::default() };
        for image in [s.open(&path)?, AnyImage::open_with(&s, &path, &later)?, AnyImage::read(&s, &bytes)?] {
            let has = usize::from(alpha.is_some());
            assert_eq!(image.colours().shape().channels, samples as usize - has, "{samples}, {said:?}");
            let last = image.convert::<u8>().channel(samples as usize - 1).to_vec()?;
            let found = image.alpha().map(|alpha| alpha.convert::<u8>().to_vec()).transpose()?;
            assert_eq!(found, alpha.map(|_| last), "{samples}, {said:?}");
            // Luminance is of one channel, or of three colours.
            let lit = image.luminance().to_vec();
            if matches!(samples as usize - has, 1 | 3) {
                assert!(lit.is_ok());
            } else {
                let told = lit.unwrap_err().to_string();
                assert!(
                    told.contains(&format!(
                        "luminance: an image of {samples} channels, none of them known to be alpha"
                    )),
                    "{told}"
                );
                assert!(told.contains("take one of them (`channel(0)`)"), "{told}");
            }
        }
    }
    let rgba = Image::from_fn(&s, 4, 5, |y, x| (y * 60 + x) as u8);
    let rgba = Image::stack(&s, [&rgba, &rgba, &rgba, &rgba], Axis::Channels);
    for (name, alpha) in [("a.png", true), ("a.bmp", true), ("a.qoi", true), ("a.webp", true), ("a.npy", false)] {
        rgba.save(folder.at(name))?;
        assert_eq!(s.open(folder.at(name))?.alpha().is_some(), alpha, "{name}");
    }
    let pam = |kind: &str, depth: usize| {
        let head = format!("P7\nWIDTH 1\nHEIGHT 1\nDEPTH {depth}\nMAXVAL 255\n{kind}ENDHDR\n");
        AnyImage::read(&s, &[head.as_bytes(), &vec![7; depth]].concat()).unwrap().alpha().is_some()
    };
    assert!(pam("TUPLTYPE RGB_ALPHA\n", 4) && pam("TUPLTYPE GRAYSCALE_ALPHA\n", 2));
    assert!(!pam("", 4) && !pam("", 2) && !pam("TUPLTYPE RGB\n", 3));
    Ok(())
}

#[test]
fn files_say_again_what_is_alpha() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    let path = folder.at("a.tif");
    for (alpha, number) in [(None, 0), (Some(Alpha::Unassociated), 2), (Some(Alpha::Associated), 1)] {
        for (channels, others) in [(2, 0), (3, 1), (4, 0), (5, 3)] {
            let pixels: Vec<u8> = (0..40 * 30 * channels).map(|i| (i % 251) as u8).collect();
            let bands = AnyImage::U8(Image::from_slice(&s, Shape::new(40, 30, channels), &pixels));
            let image = bands.with_alpha(alpha).convert::<u8>();
            // Three channels of which none is alpha are colours.
            let want = match (channels, alpha) {
                (3, None) => vec![],
                _ => [vec![0; others], vec![number]].concat(),
            };
            for options in [
                SaveOptions::default(),
                SaveOptions { tile: Some((16, 16)), compression: Compression::Deflate, ..SaveOptions::default() },
                SaveOptions { sizes: 2, ..SaveOptions::default() },
            ] {
                image.save_with(&path, &options)?;
                assert_eq!(extra(&path), vec![want.clone(); options.sizes], "{channels} {alpha:?} {options:?}");
                let again = s.open(&path)?;
                assert_eq!(again.convert::<u8>().to_vec()?, image.to_vec()?);
                assert_eq!(again.alpha().is_some(), alpha.is_some(), "{channels} {alpha:?}");
            }
            assert_eq!(
                AnyImage::read(&s, &image.encode(Format::Tiff, &SaveOptions::default())?)?.alpha().is_some(),
                alpha.is_some()
            );
        }
    }
    Ok(())
}

#[test]
fn results_have_the_alpha_of_their_channels() {
    let s = session();
    let pixels: Vec<u8> = (0..20 * 4).map(|i| i * 3).collect();
    let bands = AnyImage::U8(Image::from_slice(&s, Shape::new(4, 5, 4), &pixels));
    let picture = bands.with_alpha(Some(Alpha::Unassociated));
    let image = picture.convert::<u8>();
    let has = |image: &Image<u8>| AnyImage::U8(image.clone()).alpha().is_some();
    let [colours, alpha] = [picture.colours(), picture.alpha().unwrap()].map(|part| part.convert::<u8>());
    let stacked = |images: &[&Image<u8>]| Image::stack(&s, images.iter().copied(), Axis::Channels);
    for (what, image, want) in [
        ("itself", image.clone(), true),
        ("a filter", image.median(3), true),
        ("a part", image.crop(1, 1, 2, 3).flip(Axis::Rows).transpose(), true),
        ("with a number", &image + 3, true),
        ("with itself", image.absdiff(image.median(3)), true),
        ("with one channel", &image * &alpha, true),
        (
            "with the mean of a channel",
            &image - image.channel(1).convert::<f32>().mean().to_image().convert::<u8>(),
            true,
        ),
        ("colours", colours.clone(), false),
        ("colours times alpha", &colours * &alpha, false),
        ("apart and together", stacked(&[&colours, &alpha]), true),
        ("alpha first", stacked(&[&alpha, &colours]), false),
        ("two of alpha's channels", stacked(&[&image.channel(0), &alpha.median(3)]), true),
        ("a product last", stacked(&[&image.channel(0), &(&alpha * &image.channel(0))]), false),
        ("one channel", alpha.clone(), false),
    ] {
        assert_eq!(has(&image), want, "{what}");
    }
}

/// PNG and BMP files have colours that are not multiplied by alpha (PNG specification, 12.3).
#[test]
fn premultiplied_colours_are_divided_where_files_have_plain_ones() -> Result<()> {
    let (s, folder) = (session(), TestFolder::new());
    for (wide, full) in [(false, 255.0), (true, 65535.0f64)] {
        let (alpha, colours) = ([0.0, full, 51.0, full, 100.0], [7.0, 200.0, 17.0, 0.0, 33.0]);
        let plane = |values: [f64; 5]| Image::from_slice(&s, (1, 5), &values);
        let rgba = Image::stack(&s, [&plane(colours), &plane(colours), &plane(colours), &plane(alpha)], Axis::Channels);
        let image = if wide { AnyImage::U16(rgba.convert()) } else { AnyImage::U8(rgba.convert()) };
        // By the definition; those of transparent pixels cannot be told.
        let want: Vec<f64> = colours
            .iter()
            .zip(alpha)
            .map(|(c, a)| if a == 0.0 { *c } else { (c * full / a).round().min(full) })
            .collect();
        for kind in ["png", "bmp", "tif"] {
            if wide && kind == "bmp" {
                continue;
            }
            let path = folder.at(&format!("a.{kind}"));
            for (alpha, divided) in [(Alpha::Associated, kind != "tif"), (Alpha::Unassociated, false)] {
                let image = image.with_alpha(Some(alpha));
                if wide {
                    image.convert::<u16>().save(&path)?
                } else {
                    image.convert::<u8>().save(&path)?
                };
                let seen = s.open(&path)?.convert::<f64>();
                let want = if divided { &want[..] } else { &colours[..] };
                assert_eq!(seen.channel(0).to_vec()?, want, "{kind}, {alpha:?}, {full}");
                assert_eq!(seen.channel(3).to_vec()?, plane([0.0, full, 51.0, full, 100.0]).to_vec()?);
            }
        }
    }
    Ok(())
}
