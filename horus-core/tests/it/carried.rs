//! A failed image reports its own error to every operation.

use horus_core::cpu::device::CpuDevice;
use horus_core::error::{Error, Result};
use horus_core::image::Image;
use horus_core::plan::movement::Link;
use horus_core::session::Session;
use horus_core::shape::Axis;

/// With a size, channels and an extension that would be errors themselves.
#[test]
fn the_first_error_comes_before_what_follows_from_it() -> Result<()> {
    let session = Session::on(Box::new(CpuDevice::new(Some(1))?)).build()?;
    let none = Image::<f32>::stack(&session, Vec::<Image<f32>>::new(), Axis::Channels);
    let empty = Image::<f32>::zeros(&session, (0, 8));
    let told = |e: Option<Error>, op: &str| {
        let told = e.expect("an error").to_string();
        assert!(told.starts_with(op) && told.contains("has no pixels"), "{told}");
    };
    told(none.to_array::<ndarray::Ix2>().err(), "stack: ");
    told(none.save("nowhere/picture.png").err(), "stack: ");
    told(empty.pixel((0, 0)).err(), "zeros: ");
    told(empty.save("picture.without-format").err(), "zeros: ");
    told(empty.session().forecast(&empty, (2, Link::default())).err(), "zeros: ");
    Ok(())
}
