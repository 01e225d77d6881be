//! Size distribution by openings (Matheron 1975): `cargo run --release --example granulometry`.

use horus::prelude::*;

fn main() -> Result<()> {
    let session = Session::new()?;
    // Scattered grains of radius 2 to 7.
    let grain = |i: usize| (i * i * 71 % 144, i * i * i * 113 % 192, 2 + i % 6);
    let grains = Image::from_fn(&session, 144, 192, |y, x| {
        let covers =
            |(cy, cx, radius): (usize, usize, usize)| y.abs_diff(cy).pow(2) + x.abs_diff(cx).pow(2) <= radius * radius;
        if (0..90).any(|i| covers(grain(i))) { 0.8 } else { 0.1 }
    });
    let (shares, sizes) = granulometry(&grains, 8)?;
    if session.rank() == 0 {
        shares.iter().enumerate().for_each(|(i, share)| println!("radius {}: {:.2} %", i + 1, share * 100.0));
    }
    // Larger grains are brighter.
    (sizes / 8.0).save("granulometry.png")?;
    Ok(())
}

/// The share of brightness lost between successive openings by discs of radius 1, 2, and so on, and for each pixel the
/// radius of the largest loss.
pub(crate) fn granulometry(image: &Image<f32>, largest: usize) -> Result<(Vec<f64>, Image<f32>)> {
    let openings = (1..=largest).map(|radius| image.opening(&Footprint::disc(radius)));
    let sieved: Vec<_> = std::iter::once(image.clone()).chain(openings).collect();
    let (mut sizes, mut most) =
        (Image::zeros(image.session(), image.shape()), Image::zeros(image.session(), image.shape()));
    for (radius, pair) in sieved.windows(2).enumerate() {
        let lost = &pair[0] - &pair[1];
        sizes = lost.gt(&most).select((radius + 1) as f32, sizes);
        most = most.max(lost);
    }
    let sums = image.session().get_all(sieved.iter().map(Image::sum).collect::<Vec<_>>())?;
    Ok((sums.windows(2).map(|pair| (pair[0] - pair[1]) / sums[0]).collect(), sizes))
}
