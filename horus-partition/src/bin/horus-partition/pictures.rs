//! Reads masks from pictures and writes partitions to pictures.

use std::path::Path;
use std::sync::Arc;

use horus::comm::SingleRankComm;
use horus::prelude::*;
use horus_partition::{Blocks, Levels, Mask, paint};

use crate::PartitionError;

/// A session of this process alone, because pictures are only read and written.
fn session() -> Result<Session> {
    Session::builder().device("cpu").communicator(Arc::new(SingleRankComm)).build()
}

/// Reads a picture as a mask.
pub(crate) fn read(path: &Path) -> Result<Mask, PartitionError> {
    let session = session()?;
    let picture = AnyImage::open(&session, path)?;
    let shape = picture.shape();
    if shape.depth != 1 {
        let cause = format!("a volume of {} levels is no mask", shape.depth);
        return Err(Error::File { action: "read", path: path.to_owned(), cause }.into());
    }
    // Every type is exact in f64. Opacity, the last of two or four channels, is ignored.
    let pixels = picture.convert::<f64>().to_vec()?;
    let opacity = usize::from([2, 4].contains(&shape.channels));
    let sea = |pixel: &[f64]| pixel[..shape.channels - opacity].iter().any(|value| *value != 0.0 && !value.is_nan());
    Ok(Mask::new(shape.width, shape.height, pixels.chunks(shape.channels).map(sea).collect())?)
}

/// Writes a partition: npy files hold the part of each block, other files are pictures.
pub(crate) fn write(
    path: &Path,
    mask: &Mask,
    blocks: &Blocks,
    levels: &Levels,
    parts: &[usize],
) -> Result<(), PartitionError> {
    let session = session()?;
    let numbers = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("npy"));
    let saved = if numbers {
        let all: Vec<i32> = blocks.placed(parts).into_iter().map(|part| part.map_or(-1, |part| part as i32)).collect();
        Image::from_slice(&session, (blocks.rows(), blocks.columns()), &all).save(path)
    } else {
        let channels = paint(mask, blocks, levels, parts);
        let shape = Shape::new(mask.height(), mask.width(), channels.len());
        let pixels: Vec<u8> =
            (0..shape.area()).flat_map(|at| channels.iter().map(move |channel| channel[at])).collect();
        Image::from_slice(&session, shape, &pixels).save(path)
    };
    saved?;
    Ok(())
}
