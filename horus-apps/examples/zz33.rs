//! Scratch.
#![allow(missing_docs)]
use horus::prelude::*;
use std::time::Instant;
fn time(s: &Session, runs: usize, f: impl Fn() -> Result<()>) -> f64 {
    let _ = s;
    f().unwrap();
    let mut best = f64::MAX;
    for _ in 0..runs { let t = Instant::now(); f().unwrap(); best = best.min(t.elapsed().as_secs_f64()); }
    best * 1e3
}
fn main() -> Result<()> {
    let threads: usize = std::env::var("T").map_or(2, |t| t.parse().unwrap());
    let sizes: Vec<usize> = std::env::var("S").unwrap_or("512,2048".into()).split(',').map(|v| v.parse().unwrap()).collect();
    let taps: Vec<usize> = std::env::var("N").unwrap_or("3,5,7,9,11,15,21,31".into()).split(',').map(|v| v.parse().unwrap()).collect();
    let session = Session::builder().device("cpu").threads(threads).eager(true).build()?;
    for size in sizes {
        let grey = Image::<f32>::from_fn(&session, size, size, |y, x| ((y * 7919 + x * 104_729) % 251) as f32);
        let bytes = grey.convert::<u8>();
        session.evaluate()?;
        for n in &taps {
            let n = *n;
            let whole: Vec<f64> = (0..n * n).map(|k| ((k * 37 + k * k) % 61) as f64 - 30.0).collect();
            let part: Vec<f64> = whole.iter().map(|t| t + 0.25).collect();
            let (a, b) = (Filter::dense(n, n, whole), Filter::dense(n, n, part));
            let runs = (20_000_000_000.0 / (size * size * n * n) as f64 / 4.0).clamp(5.0, 60.0) as usize;
            let t = |f: &dyn Fn() -> Image<f32>| time(&session, runs, || { let k = f(); session.evaluate()?; drop(k); Ok(()) });
            let t8 = |f: &dyn Fn() -> Image<u8>| time(&session, runs, || { let k = f(); session.evaluate()?; drop(k); Ok(()) });
            let i = t(&|| bytes.correlate(&a));
            let f = t(&|| bytes.correlate(&b));
            let g = t(&|| grey.correlate(&a));
            let small: Vec<f64> = (0..n * n).map(|k| (k % 3) as f64 - 1.0).collect(); let sm = Filter::dense(n, n, small);
            let (c1, c2, c3) = (t8(&|| bytes.correlate(&a).cast::<u8>()), t8(&|| bytes.correlate(&b).cast::<u8>()), t8(&|| bytes.correlate(&sm).cast::<u8>())); print!("cast {c1:.3} part {c2:.3} small {c3:.3} ");
            let i8_ = t8(&|| bytes.correlate(&a).convert::<u8>());
            let f8 = t8(&|| bytes.correlate(&b).convert::<u8>());
            let p = |f: &Image<f32>| session.forecast(f, (1, horus::core::machine::Link::default())).map(|c| c.seconds() * 1e3);
            println!("{size} {n:2}x{n:<2} whole {i:8.3}  part {f:8.3}  f32 {g:8.3}  | f32/whole {:.2} part/whole {:.2} | to u8 {i8_:.3} {f8:.3} {:.2} | predicted {:.3} {:.3}", g / i, f / i, f8 / i8_, p(&bytes.correlate(&a))?, p(&bytes.correlate(&b))?);
        }
    }
    Ok(())
}
