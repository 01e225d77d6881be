//! The alpha of a picture: its last channel, if the file says that it is. No number of channels says so.

/// What the last channel of a picture says of its other channels, as the alpha of their pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alpha {
    /// They are not multiplied by it.
    Unassociated,
    /// They are multiplied by it (premultiplied), and are used so.
    Associated,
}
