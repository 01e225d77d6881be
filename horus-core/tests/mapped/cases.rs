//! Programs whose images lie in page-locked memory, on any device that has some.

use horus_core::image::{Image, Pixels};
use horus_core::ops::geometric::Interpolation;
use horus_core::plan::Transfer;
use horus_core::session::Session;

use crate::opened;

const SHAPE: (usize, usize) = (300, 211);

fn strategy(text: &str) -> Transfer {
    let parsed = horus_core::settings::TRANSFER.values.parse(text);
    parsed.unwrap_or_else(|e| panic!("{e}"))
}

fn filled(session: &Session, seed: usize) -> Pixels<f32> {
    let mut pixels = session.pixels::<f32>(SHAPE.0, SHAPE.1, 1).unwrap();
    for (i, pixel) in pixels.iter_mut().enumerate() {
        *pixel = ((i * 7919 + seed * 31) % 1013) as f32;
    }
    pixels
}

fn program(image: &Image<f32>) -> Image<f32> {
    (image.gauss(2.0) - image).abs().max(image.rotate(20.0, Interpolation::Bilinear))
}

/// The result of the program with copies only.
fn expected(seed: usize) -> Vec<f32> {
    let session = opened(strategy("explicit"));
    program(&Image::from_pixels(&session, filled(&session, seed))).to_vec().unwrap()
}

#[test]
fn every_strategy_gives_the_same_pixels_in_whatever_memory_they_are_wanted() {
    let want = expected(1);
    for text in ["auto", "explicit", "streams:3", "implicit", "hybrid", "hybrid:5"] {
        let session = opened(strategy(text));
        for _ in 0..3 {
            let mut kept = session.pixels::<f32>(SHAPE.0, SHAPE.1, 1).unwrap();
            program(&Image::from_pixels(&session, filled(&session, 1))).read_into(&mut kept).unwrap();
            assert!(kept[..] == want[..], "{text}, into pixels");
            let mut values = vec![0.0; want.len()];
            program(&Image::from_pixels(&session, filled(&session, 1))).read_into(&mut values).unwrap();
            assert!(values == want, "{text}, into a vector");
            let new = program(&Image::from_pixels(&session, filled(&session, 1))).to_pixels().unwrap();
            assert!(new[..] == want[..] && new.is_page_locked(), "{text}, to pixels");
            assert!(program(&Image::from_pixels(&session, filled(&session, 1))).to_vec().unwrap() == want, "{text}");
        }
    }
}

#[test]
fn pixels_that_are_read_into_stay_where_they_are() {
    for text in ["implicit", "hybrid:2"] {
        let session = opened(strategy(text));
        let mut to = session.pixels::<f32>(SHAPE.0, SHAPE.1, 1).unwrap();
        let at = to.as_ptr();
        for seed in 0..4 {
            program(&Image::from_pixels(&session, filled(&session, seed))).read_into(&mut to).unwrap();
            assert!(to[..] == expected(seed)[..], "{text}, {seed}");
            assert_eq!(to.as_ptr(), at, "{text}: launches write where the pixels are");
        }
    }
}

#[test]
fn whoever_writes_to_pixels_that_images_read_writes_to_their_own() {
    let session = opened(strategy("implicit"));
    let (mut frame, mut to) = (filled(&session, 5), filled(&session, 6));
    let image = Image::from_pixels(&session, frame.clone());
    let result = program(&image);
    result.read_into(&mut to).unwrap();
    frame.fill(-1.0);
    to.fill(-2.0);
    let want = expected(5);
    assert!(result.to_vec().unwrap() == want, "the result is the image's, whatever becomes of the pixels");
    assert!(image.to_vec().unwrap() == filled(&session, 5)[..]);
    // And the next result goes elsewhere as long as the image shares the buffer.
    program(&(&image * 2.0)).read_into(&mut to).unwrap();
    assert!(result.to_vec().unwrap() == want);
}

#[test]
fn results_are_read_by_later_programs_under_every_strategy() {
    let mut states: Vec<Vec<f32>> = Vec::new();
    for text in ["explicit", "auto", "implicit", "hybrid"] {
        let session = opened(strategy(text));
        let mut seen = session.pixels::<f32>(SHAPE.0, SHAPE.1, 1).unwrap();
        let mut state = Image::from_pixels(&session, filled(&session, 7));
        let mut all = Vec::new();
        for _ in 0..4 {
            state = state.gauss(1.0) + 1.0;
            state.read_into(&mut seen).unwrap();
            all.extend_from_slice(&seen);
        }
        all.push(state.sum().get().unwrap() as f32);
        states.push(all);
    }
    assert!(states.iter().all(|s| s == &states[0]));
}

#[test]
fn several_channels_masks_and_bytes() {
    for text in ["implicit", "hybrid:3"] {
        let session = opened(strategy(text));
        let mut bytes = session.pixels::<u8>(40, 33, 3).unwrap();
        bytes.iter_mut().enumerate().for_each(|(i, b)| *b = (i * 37 % 256) as u8);
        let given = bytes.clone();
        let image = Image::from_pixels(&session, bytes);
        let mut bright = session.pixels::<bool>(40, 33, 3).unwrap();
        image.gt(100).read_into(&mut bright).unwrap();
        assert!(bright.iter().zip(given.iter()).all(|(b, g)| *b == (*g > 100)), "{text}");
        let mut doubled = session.pixels::<u8>(40, 33, 3).unwrap();
        (&image + &image).read_into(&mut doubled).unwrap();
        assert!(doubled.iter().zip(given.iter()).all(|(d, g)| *d == g.saturating_add(*g)), "{text}");
    }
}
