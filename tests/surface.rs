//! What users need is in the facade: no signature asks them to depend on another crate, and hidden parts are not told of.

use horus::prelude::*;

/// A program in which everything comes from `horus`, the types of the crates in its signatures too.
#[test]
fn signatures_need_no_other_crate() -> Result<()> {
    let session = Session::builder().device("cpu").communicator(std::sync::Arc::new(horus::comm::Alone)).build()?;
    let array = horus::ndarray::Array2::from_shape_fn((3, 4), |(y, x)| (4 * y + x) as f32);
    let image = Image::from_array(&session, array.view());
    let back: horus::ndarray::Array2<f32> = (&image + 1.0).to_array()?;
    assert_eq!(back, array + 1.0);
    let picture = horus::io::Picture::read(b"P5 2 1 255 ab", &OpenOptions::default())?;
    assert_eq!(AnyImage::from_picture(&session, picture).dtype(), DType::U8);
    let squared = image.unary(horus::ops::PixelOp::Square);
    assert_eq!(squared.pixel(1, 1)?, 25.0);
    let wrong = image.gauss(-1.0).check();
    assert!(matches!(wrong, Err(horus::error::Error::Parameter { .. })));
    Ok(())
}

/// Generic code names its bounds.
#[test]
fn bounds_have_names() -> Result<()> {
    fn brighter<T: horus::types::Element + Pixel>(image: &Image<T>, by: impl horus::types::Argument<T>) -> Image<T> {
        image.add(by)
    }
    let session = Session::builder().device("cpu").build()?;
    let image = Image::<u8>::constant(&session, 2, 2, 250);
    assert_eq!(brighter(&image, 10).to_vec()?, [255; 4]);
    Ok(())
}
