//! Portable bitmaps to write: masks, whose pixels take a bit. PNM reads them.

use crate::{Encoder, FormatProperties, PictureFormat, Sink, cause};
use horus_base::dtype::DType;
use horus_host::workers::Workers;

/// PBM files.
pub(crate) struct Pbm;

impl PictureFormat for Pbm {
    fn facts(&self) -> &FormatProperties {
        &FormatProperties {
            name: "pbm",
            title: "PNM",
            types: &[DType::Bool],
            channels: &[1],
            ..FormatProperties::PLAIN
        }
    }

    fn write(&self, to: &mut dyn Sink, file: &Encoder, _: &Workers) -> Result<(), String> {
        let (width, height) = (file.draft.shape.width, file.draft.shape.height);
        to.write_all(format!("P4\n{width} {height}\n").as_bytes()).map_err(cause)?;
        let mut line = vec![0; width.div_ceil(8)];
        for row in file.pixels[0].as_slice::<u8>().chunks_exact(width) {
            // False is black, which is 1; the last bits of a row are 0.
            for (to, eight) in line.iter_mut().zip(row.chunks(8)) {
                *to = (0..8).zip(eight).fold(0, |bits, (k, value)| bits | u8::from(*value == 0) << (7 - k));
            }
            to.write_all(&line).map_err(cause)?;
        }
        Ok(())
    }
}
