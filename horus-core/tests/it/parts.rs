//! Independent parts of a result, each computed by one rank from whole images: the same bits as on one.

use std::sync::{Arc, Mutex};

use horus_core::comm::threads::ThreadComm;
use horus_core::error::Result;
use horus_core::image::Image;
use horus_core::ops::geometric::Interpolation;
use horus_core::session::{Session, SessionBuilder};
use horus_core::settings::Ranks;

fn builder(kind: usize) -> SessionBuilder {
    crate::fewer_ranks::builder(kind).ranks(Ranks::All)
}

/// Pixels with NaN and zeros of both signs, on which operations that select a pixel depend.
fn given(s: &Session, height: usize, width: usize) -> Image<f32> {
    let value = |i: usize| match i % 29 {
        3 => f32::NAN,
        5 => -0.0,
        7 => 0.0,
        k => (k * 31 + i / width * 17) as f32 * 0.37 - 90.0,
    };
    Image::from_slice(s, (height, width), &(0..height * width).map(value).collect::<Vec<f32>>())
}

fn turned(image: &Image<f32>, degrees: f64) -> Image<f32> {
    let there = image.rotate(degrees, Interpolation::Bilinear).gauss_xy(3.0, 1.0, 0, 2);
    there.rotate(-degrees, Interpolation::Bilinear)
}

/// Reductions of images that other operations share, keep and combine.
fn program(s: &Session, (height, width): (usize, usize)) -> Result<Vec<Vec<u32>>> {
    let (image, mut all) = (given(s, height, width), Vec::new());
    let smooth = image.gauss(1.5);
    let terms = (0..6).map(|i| turned(&smooth, f64::from(i) * 30.0));
    let largest = terms.fold(Image::zeros(s, image.shape()), |so_far, term| so_far.max(term));
    all.push(largest.to_vec()?);
    // The sum of the first two is read, too, and the terms are not of equal work.
    let first = image.minimum(turned(&image, 20.0));
    let second = first.minimum(image.median(5)).minimum(turned(&image.gauss(4.0), 70.0)).minimum(&smooth);
    let (first, second) = (&first + &smooth, second * 2.0);
    s.evaluate()?;
    all.extend([first.to_vec()?, second.to_vec()?]);
    // Counts saturate.
    let counts = |degrees: f64| turned(&image, degrees).abs().convert::<u8>();
    let sum = counts(10.0) + counts(50.0) + counts(110.0);
    all.push(sum.convert::<f32>().to_vec()?);
    // A part with a reduction of all its rows, and a last term without any work.
    let bright = |degrees: f64| {
        let turned = turned(&image, degrees);
        &turned - turned.max_value()
    };
    all.push(bright(15.0).max(bright(45.0)).max(bright(75.0)).max(&image).to_vec()?);
    Ok(all.into_iter().map(|pixels| pixels.into_iter().map(f32::to_bits).collect()).collect())
}

#[test]
fn parts_have_the_bits_of_one_rank() {
    for shape in [(241, 187), (61, 47), (3, 90), (1, 1)] {
        let want = program(&builder(0).build().unwrap(), shape).unwrap();
        for kind in 0..3 {
            for ranks in 1..=5 {
                let told: Arc<Mutex<String>> = Arc::default();
                let got = ThreadComm::run(ranks, |comm| {
                    let told = Arc::clone(&told);
                    let sink = move |text: &str| told.lock().unwrap().push_str(text);
                    let s = builder(kind).communicator(Arc::new(comm)).explain(sink).build().unwrap();
                    program(&s, shape).unwrap()
                });
                for (rank, got) in got.iter().enumerate() {
                    assert!(*got == want, "{shape:?}, rank {rank} of {ranks}, kind {kind}");
                }
                let told = told.lock().unwrap();
                if shape == (241, 187) && (ranks == 2 || ranks == 3) {
                    let last = format!("on rank {} alone", ranks - 1);
                    assert!(told.contains(&last), "{ranks} ranks, kind {kind}: {told}");
                }
            }
        }
    }
}
