//! Look-up tables.

use crate::ops::Lookup;

use super::{Image, record};
use crate::dtype::{Element, Pixel};
use crate::error::{Call, Error, Site};
use crate::ir::graph::Op;
use crate::shape::Shape;

/// The entries of a look-up table: a slice, an array, a vector, or an image of one row.
#[derive(Clone, Copy, Debug)]
pub enum Table<'a, U: Pixel> {
    /// Entries in the program's memory.
    Entries(&'a [U]),
    /// Entries that are computed.
    Image(&'a Image<U>),
}

impl<'a, U: Pixel> From<&'a [U]> for Table<'a, U> {
    fn from(entries: &'a [U]) -> Self {
        Table::Entries(entries)
    }
}

impl<'a, U: Pixel, const N: usize> From<&'a [U; N]> for Table<'a, U> {
    fn from(entries: &'a [U; N]) -> Self {
        Table::Entries(entries)
    }
}

impl<'a, U: Pixel> From<&'a Vec<U>> for Table<'a, U> {
    fn from(entries: &'a Vec<U>) -> Self {
        Table::Entries(entries)
    }
}

impl<'a, U: Pixel> From<&'a Image<U>> for Table<'a, U> {
    fn from(entries: &'a Image<U>) -> Self {
        Table::Image(entries)
    }
}

macro_rules! lookup {
    ($($t:ty, $entries:literal, $lowest:literal, $entry:literal;)*) => {$(
        impl Image<$t> {
            #[doc = concat!("Each pixel `v` becomes `", $entry, "` (OpenCV's `LUT`): the entries are in the order of the values that a pixel may have. A table without ", $entries, " entries is an error; an image of 1x", $entries, " pixels may be yet to be computed.")]
            ///
            /// ```
            /// # use horus_core::{self as horus, cpu::device::CpuDevice, prelude::*};
            /// # let session = Session::on(Box::new(CpuDevice::new(None)?)).build()?;
            #[doc = concat!("let image = Image::from_slice(&session, (1, 3), &[", stringify!($t), "::MIN, 7, 127]);")]
            #[doc = concat!("let half: Vec<f32> = (0..", $entries, ").map(|v| (v + ", $lowest, ") as f32 / 2.0).collect();")]
            #[doc = concat!("assert_eq!(image.lookup(&half).to_vec()?, [", stringify!($t), "::MIN as f32 / 2.0, 3.5, 63.5]);")]
            #[doc = concat!("let later = Image::from_fn(&session, 1, ", $entries, ", |_, v| v as f32 + ", $lowest, " as f32 + 0.5);")]
            #[doc = concat!("assert_eq!(image.lookup(&later).to_vec()?, [", stringify!($t), "::MIN as f32 + 0.5, 7.5, 127.5]);")]
            /// # Ok::<(), horus_core::error::Error>(())
            /// ```
            #[doc(alias = "LUT")]
            #[track_caller]
            pub fn lookup<'a, U: Pixel>(&self, table: impl Into<Table<'a, U>>) -> Image<U> {
                let site = Call::of("lookup").site;
                match table.into() {
                    Table::Entries(table) => self.entries(table, $entries, site),
                    Table::Image(table) => self.looked_up(table, $entries, site),
                }
            }
        }
    )*};
}
lookup! {
    u8, 256, 0, "table[v]";
    u16, 65536, 0, "table[v]";
    i8, 256, -128, "table[v + 128]";
    i16, 65536, -32768, "table[v + 32768]";
}

impl<T: Element> Image<T> {
    pub(super) fn entries<U: Pixel>(&self, table: &[U], entries: usize, site: Site) -> Image<U> {
        self.attempt(self.shape(), || {
            if table.len() != entries {
                let message = format!("the table has {} entries; it must have {entries}", table.len());
                return Err(Error::parameter(Call { op: "lookup", site }, message));
            }
            let table = Image::from_slice(self.session(), (1, entries), table);
            Ok(self.looked_up(&table, entries, site))
        })
    }

    pub(super) fn looked_up<U: Pixel>(&self, table: &Image<U>, entries: usize, site: Site) -> Image<U> {
        self.attempt(self.shape(), || {
            table.check()?;
            if !self.session().same(table.session()) {
                return Err(Error::ForeignImage { op: "lookup", site });
            }
            if table.shape() != Shape::new(1, entries, 1) {
                let message = format!("the table has {} pixels; it must have 1x{entries}", table.shape());
                return Err(Error::parameter(Call { op: "lookup", site }, message));
            }
            Ok(record(self.session(), Op::from(Lookup), &[self.handle(), table.handle()], self.shape(), site))
        })
    }
}
