//! The operations of Horus, as data.
//!
//! Each family is a table or a small parameter type: name, definition, and the rows and columns that it reads.
//! Recording, planning, tests, documentation and every backend derive from these.
//!
//! A whole-image operation, which cannot be expressed pixel by pixel, is a variant of [`Whole`]. Its module has its
//! parameters and their [`ImageOperation`]: all facts that planner and checks need.

pub mod components;
pub mod composed;
pub mod describe;
pub mod distance;
pub mod edge;
pub mod footprint;
pub mod fourier;
pub(crate) mod gaussian;
pub mod geometric;
pub mod histogram;
pub mod interleave;
pub mod labels;
pub mod lookup;
pub mod neighbourhood;
pub mod operation;
pub mod pixel;
pub mod planes;
pub mod product;
pub mod reconstruction;
pub mod reduce;
pub mod resize;
pub mod running;
pub mod sampling;
pub mod thin;
pub mod tiles;
pub mod transpose;
pub mod windowed;

use std::ops::Deref;

use describe::Description;

pub use components::Components;
pub use distance::{NearestOnLine, NearestPixel};
pub use fourier::Fourier;
pub use histogram::Histogram;
pub use interleave::{Deinterleave, Interleave};
pub use labels::LabelReduce;
pub use lookup::Lookup;
use operation::SampleOperations;
pub use operation::{ImageOperation, Instance, SampleImages};
pub use planes::Merge;
pub use product::MatrixProduct;
pub use reconstruction::Reconstruction;
pub use reduce::{Fold, RowReduce};
pub use resize::Resize;
pub use running::{Running, RunningDepth};
pub use sampling::Remap;
pub use thin::Thin;
pub use tiles::Tiled;
pub use transpose::Transpose;
pub use windowed::Sliding;

/// The complete list of operations on whole images, each with its parameters. Calls `$callback!` with the arguments
/// that follow its name, in brackets, and the list.
#[macro_export]
macro_rules! whole_operations {
    ($callback:ident $($given:tt)*) => {
        $callback! {
            [$($given)*]
            /// The inputs concatenated along the channels or the depth.
            Merge(Merge),
            /// A plane for each sample of interleaved pixels.
            Deinterleave(Deinterleave),
            /// Pixels with the samples of all channels.
            Interleave(Interleave),
            /// Rows and columns exchanged, per plane.
            Transpose(Transpose),
            /// The matrix product of two images.
            MatrixProduct(MatrixProduct),
            /// Entries of a table.
            Lookup(Lookup),
            /// Samples at positions given by images.
            Remap(Remap),
            /// Weighted sums of runs of rows and columns.
            Resize(Resize),
            /// Linear filters by Fourier transforms.
            Fourier(Fourier),
            /// An operation over a window of any size.
            Windowed(Sliding),
            /// Each row reduced to one value, or one per [column](RowReduce::columns).
            RowReduce(RowReduce),
            /// Sums along each row.
            Running(Running),
            /// Sums along the depth.
            RunningDepth(RunningDepth),
            /// An image reduced to one value, or one per [column](Fold::columns).
            Fold(Fold),
            /// Each rectangle of a grid reduced to one value.
            Tiles(Tiled),
            /// A reduction of the pixels of each label.
            Labels(LabelReduce),
            /// Connected components.
            Components(Components),
            /// The offset of the nearest background pixel on each line along rows or levels.
            NearestOnLine(NearestOnLine),
            /// The nearest background pixel among those on lines.
            NearestPixel(NearestPixel),
            /// A marker grown within a mask.
            Reconstruct(Reconstruction),
            /// Thinning to lines.
            Thin(Thin),
            /// Counts in equal bins.
            Histogram(Histogram),
        }
    };
}

/// A device's implementation of an operation: `whole_operations!(implementation operation as Trait)`, where each type
/// of the list implements the trait. The compiler names a type that does not.
#[macro_export]
macro_rules! implementation {
    ([$operation:ident as $trait:ident] $($(#[$doc:meta])* $variant:ident($parameters:ident),)*) => {
        match $operation {
            $($crate::ops::Whole::$variant(operation) => operation as &dyn $trait,)*
        }
    };
}

macro_rules! whole {
    ([] $($(#[$doc:meta])* $variant:ident($parameters:ident),)*) => {
        /// A whole-image operation, the same as a recorded operation and as a kernel.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum Whole {
            $($(#[$doc])* $variant($parameters),)*
        }

        impl Deref for Whole {
            type Target = dyn ImageOperation;

            fn deref(&self) -> &Self::Target {
                match self {
                    $(Whole::$variant(operation) => operation,)*
                }
            }
        }

        /// Samples of all operations, for tests.
        pub fn samples(of: SampleImages) -> Vec<Instance> {
            [$(<$parameters as SampleOperations>::samples(of),)*].concat()
        }

        $(impl From<$parameters> for Whole {
            fn from(operation: $parameters) -> Whole {
                Whole::$variant(operation)
            }
        })*
    };
}
whole_operations!(whole);

/// The descriptions of all operations: pixel operations in the order of their table, then others by module.
pub fn described() -> impl Iterator<Item = &'static Description> {
    let modules = [
        composed::DESCRIBED,
        planes::DESCRIBED,
        lookup::DESCRIBED,
        pixel::DESCRIBED,
        product::DESCRIBED,
        neighbourhood::DESCRIBED,
        windowed::DESCRIBED,
        components::DESCRIBED,
        distance::DESCRIBED,
        reconstruction::DESCRIBED,
        geometric::DESCRIBED,
        transpose::DESCRIBED,
        resize::DESCRIBED,
        sampling::DESCRIBED,
        reduce::DESCRIBED,
        running::DESCRIBED,
        tiles::DESCRIBED,
        labels::DESCRIBED,
        thin::DESCRIBED,
        histogram::DESCRIBED,
    ];
    let rows = pixel::TABLE.iter().map(|row| &row.described);
    let further = |row: &&Description| !pixel::DESCRIBED.iter().any(|further| further.name == row.name);
    rows.filter(further).chain(modules.into_iter().flatten())
}
