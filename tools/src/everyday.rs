//! Everyday operations on images of each type, with their predicted times. `benches/everyday.py` times the same ones
//! from Python.

use horus::prelude::*;
use horus::types::Element;
use horus_core::machine::Link;

/// An operation on an image.
pub struct EverydayOperation {
    /// Operation and type, as in "median 5 u8".
    pub name: String,
    /// Predicted seconds on the session's machine.
    pub predicted: f64,
    /// Computes the operation.
    pub run: Box<dyn FnMut() -> Result<()>>,
}

/// The operations on images of `size` x `size` pixels.
///
/// # Errors
/// Errors of evaluations and forecasts.
pub fn rows(session: &Session, size: usize) -> Result<Vec<EverydayOperation>> {
    let grey = noise(session, size, 0);
    let mut all = Vec::new();
    ImageOperations { session, image: (&grey * 255.0).convert::<u8>() }.numbers(&mut all)?;
    ImageOperations { session, image: (&grey * 65535.0).convert::<u16>() }.numbers(&mut all)?;
    ImageOperations { session, image: grey.clone() }.numbers(&mut all)?;
    ImageOperations { session, image: grey.convert::<f64>() }.numbers(&mut all)?;
    ImageOperations { session, image: grey.gauss(4.0).gt(0.5) }.masks(&mut all)?;
    Ok(all)
}

/// Reproducible noise in `0..1`.
pub fn noise(session: &Session, size: usize, seed: u64) -> Image<f32> {
    Image::from_fn(session, size, size, |y, x| {
        let h = seed ^ ((y as u64) << 32 | x as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 40) as f32 / 16_777_216.0
    })
}

/// Operations on one image.
struct ImageOperations<'a, T: Element> {
    session: &'a Session,
    image: Image<T>,
}

impl<T: Element> ImageOperations<'_, T> {
    fn row<R: Element>(
        &self,
        all: &mut Vec<EverydayOperation>,
        name: &str,
        record: impl Fn(&Image<T>) -> Image<R> + 'static,
    ) -> Result<()> {
        self.session.evaluate()?;
        let predicted = self.session.forecast(&record(&self.image), (1, Link::default()))?.seconds();
        let (session, image) = (self.session.clone(), self.image.clone());
        let run = move || {
            let _kept = record(&image);
            session.evaluate()
        };
        all.push(EverydayOperation { name: format!("{name} {}", T::TAG), predicted, run: Box::new(run) });
        Ok(())
    }
}

impl<T: Pixel> ImageOperations<'_, T> {
    fn numbers(&self, all: &mut Vec<EverydayOperation>) -> Result<()> {
        let disc = Footprint::disc(15);
        let end = if T::TAG.is_float() { 1.0 } else { T::HIGHEST.to_f64() + 1.0 };
        self.row(all, "gaussian 1", |a| a.gauss(1.0).convert::<T>())?;
        self.row(all, "gaussian 3", |a| a.gauss(3.0).convert::<T>())?;
        self.row(all, "sobel", |a| a.sobel(Axis::Columns).convert::<T>())?;
        self.row(all, "laplace", |a| a.laplace().convert::<T>())?;
        self.row(all, "uniform 5", |a| a.box_mean(5).convert::<T>())?;
        self.row(all, "uniform 31", |a| a.box_mean(31).convert::<T>())?;
        self.row(all, "median 3", |a| a.median(3))?;
        self.row(all, "median 5", |a| a.median(5))?;
        self.row(all, "erosion 3", |a| a.erode(3))?;
        self.row(all, "erosion 31", |a| a.erode(31))?;
        self.row(all, "erosion disc 15", move |a| a.erode(&disc))?;
        self.row(all, "opening 9", |a| a.opening(9))?;
        self.row(all, "morphological gradient 3", |a| a.morphological_gradient(3))?;
        self.row(all, "rotate 30 linear", |a| a.rotate(30.0, Interpolation::Bilinear))?;
        self.row(all, "zoom 2 linear", |a| a.resize(2 * a.height(), 2 * a.width(), Interpolation::Bilinear))?;
        self.row(all, "zoom 0.5 linear", |a| a.resize(a.height() / 2, a.width() / 2, Interpolation::Bilinear))?;
        self.row(all, "shift linear", |a| a.translate(1.5, 2.25))?;
        self.row(all, "sum", |a| a.sum().to_image())?;
        self.row(all, "maximum", |a| a.max_value().to_image())?;
        self.row(all, "variance", |a| a.variance().to_image())?;
        self.row(all, "histogram", move |a| a.histogram(256, 0.0, end).counts())?;
        self.row(all, "threshold", |a| a.gt(T::from_f64(1.0)))
    }
}

impl ImageOperations<'_, bool> {
    fn masks(&self, all: &mut Vec<EverydayOperation>) -> Result<()> {
        self.row(all, "erosion 3", |a| a.erode(3))?;
        self.row(all, "opening 5", |a| a.opening(5))?;
        self.row(all, "label", |a| a.label(Connectivity::FACES))?;
        self.row(all, "distances", |a| a.distances().euclidean::<f32>())
    }
}
