//! The alpha of a picture: its last channel, if the file says that it is. No number of channels says so.

use tiff::tags::Tag;

use super::load::{Kind, Source};
use super::pnm::plain as netpbm;
use super::tiff::directory::Entry;
use super::tiff::read as read_tiff;
use super::tiff::source::decoder_at;
use super::tiff::stack;
use super::{OpenOptions, decode};

/// What the last channel of a picture says of its other channels, as the alpha of their pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alpha {
    /// They are not multiplied by it.
    Unassociated,
    /// They are multiplied by it (premultiplied), and are used so.
    Associated,
}

impl Alpha {
    /// The numbers of `ExtraSamples` in TIFF files.
    const NUMBERS: [(u16, Alpha); 2] = [(1, Alpha::Associated), (2, Alpha::Unassociated)];

    /// That of a picture of several channels in an open file. What cannot be read counts as absent.
    pub(super) fn of(source: &Source<'_>, options: &OpenOptions, channels: usize) -> Option<Alpha> {
        // Other channels of these files are grey or colours.
        let even = matches!(channels, 2 | 4);
        match source.kind() {
            Kind::Png | Kind::Bmp => even.then_some(Alpha::Unassociated),
            Kind::Exr => even.then_some(Alpha::Associated),
            Kind::Pnm => netpbm::has_alpha(source.head()).then_some(Alpha::Unassociated),
            Kind::Tiff if channels > 1 => decode::guarded(|| Alpha::of_page(source, options, channels)).ok().flatten(),
            Kind::Tiff | Kind::Jpeg | Kind::Npy => None,
        }
    }

    fn of_page(source: &Source<'_>, options: &OpenOptions, channels: usize) -> Result<Option<Alpha>, String> {
        // Channels of several pages are no colours.
        if stack::together(source, options)?
            .is_some_and(|stack| stack.channels > 1 && stack.channels * stack.samples == channels)
        {
            return Ok(None);
        }
        let page = read_tiff::directory_page(source, options);
        let mut page = decoder_at(source, read_tiff::directory_of_page(source, page, options.level)?)?;
        let extra = page.find_tag_unsigned_vec::<u16>(Tag::ExtraSamples).map_err(read_tiff::text)?;
        let last = extra.and_then(|extra| extra.last().copied());
        Ok(Alpha::NUMBERS.into_iter().find(|(number, _)| Some(*number) == last).map(|(_, alpha)| alpha))
    }

    /// The entry of a page whose last sample is this.
    pub(super) fn entry(self) -> Entry {
        let number = Alpha::NUMBERS.into_iter().find(|(_, alpha)| *alpha == self).map_or(0, |(number, _)| number);
        Entry::short(Tag::ExtraSamples.to_u16(), [number])
    }
}
