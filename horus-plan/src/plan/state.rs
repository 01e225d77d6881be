//! The state machines of an image: residency, placement and halo validity.
//!
//! Only this module and the planner know the placement of an image. A state is the same on every rank: all
//! ranks run one program, so placements differ between ranks only as the state describes.

use std::fmt;

use super::partition::Partition;
use horus_base::shape::Window;

/// The valid copies of a local buffer (thesis, Table 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Residency {
    /// q0: no valid copy yet.
    Nothing,
    /// q1: the host copy, after I/O or communication.
    Host,
    /// q2: the device copy, after a kernel.
    Device,
    /// q3: both, after a synchronisation; always on a device that computes on host memory.
    Both,
}

impl Residency {
    /// Returns `true` if the host copy is valid.
    pub const fn host(self) -> bool {
        matches!(self, Residency::Host | Residency::Both)
    }

    /// Returns `true` if the device copy is valid.
    pub const fn device(self) -> bool {
        matches!(self, Residency::Device | Residency::Both)
    }
}

impl fmt::Display for Residency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Residency::Nothing => "q0",
            Residency::Host => "q1",
            Residency::Device => "q2",
            Residency::Both => "q3",
        })
    }
}

/// Valid rows around a strip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Halo {
    /// Rows above the strip.
    pub up: usize,
    /// Rows below the strip.
    pub down: usize,
    /// Set if rows beyond the image's own edges are also valid, as periodic copies.
    pub wrap: bool,
}

impl Halo {
    /// No rows around the strip.
    pub const NONE: Halo = Halo { up: 0, down: 0, wrap: false };

    /// A halo of equal depth on both sides.
    pub const fn even(depth: usize) -> Halo {
        Halo { up: depth, down: depth, wrap: false }
    }

    /// Returns `true` if every row of `other` is valid.
    pub const fn covers(self, other: Halo) -> bool {
        self.up >= other.up
            && self.down >= other.down
            && (self.wrap || !other.wrap || (other.up == 0 && other.down == 0))
    }

    /// The larger depth on each side.
    pub fn max(self, other: Halo) -> Halo {
        Halo { up: self.up.max(other.up), down: self.down.max(other.down), wrap: self.wrap || other.wrap }
    }

    /// The smaller depth on each side.
    pub fn min(self, other: Halo) -> Halo {
        Halo { up: self.up.min(other.up), down: self.down.min(other.down), wrap: self.wrap && other.wrap }
    }

    /// Returns `true` if there are no rows.
    pub const fn is_none(self) -> bool {
        self.up == 0 && self.down == 0
    }
}

impl fmt::Display for Halo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.up == self.down {
            write!(f, "{}", self.up)?
        } else {
            write!(f, "{}+{}", self.up, self.down)?
        }
        if self.wrap { f.write_str(" wrapped") } else { Ok(()) }
    }
}

/// Placement of the rows of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Whole on this rank, absent elsewhere.
    On(usize),
    /// Whole on every rank (or on the only rank).
    Replicated,
    /// Each rank has its strip, and the `halo` rows around it.
    Strips(Halo),
}

impl Placement {
    /// Whole on rank 0: given by the program, or gathered.
    pub const ROOT: Placement = Placement::On(0);

    /// The rows that a rank has of an image of `height` rows; without periodic copies.
    pub fn rows(self, partition: &Partition, rank: usize, height: usize) -> Window {
        match self {
            Placement::On(owner) => Window::whole(if rank == owner { height } else { 0 }),
            Placement::Replicated => Window::whole(height),
            Placement::Strips(halo) => partition.strip(rank, height).grown(halo.up, halo.down).clipped(height),
        }
    }

    /// The only rank that has the image, if there is one.
    pub const fn owner(self) -> Option<usize> {
        match self {
            Placement::On(rank) => Some(rank),
            Placement::Replicated | Placement::Strips(_) => None,
        }
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::On(rank) => write!(f, "on rank {rank}"),
            Placement::Replicated => f.write_str("replicated"),
            Placement::Strips(h) if h.is_none() => f.write_str("strips"),
            Placement::Strips(h) => write!(f, "strips, halo {h}"),
        }
    }
}

/// Sharing of host memory among ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Hosts {
    /// Each rank has its own host memory: processes. Ranks exchange host data in messages.
    #[default]
    Separate,
    /// All ranks share host memory: they are the devices of one process. An image given by the program is on
    /// the host of every device at once, and a delivered result is assembled there from the strips of the
    /// devices: no scatter, no gather.
    Shared,
}

/// The state of an image: the product of the state machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageState {
    /// Valid copies of the local buffer.
    pub residency: Residency,
    /// Placement of the rows, and depth of valid halos.
    pub placement: Placement,
}

impl fmt::Display for ImageState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.residency, self.placement)
    }
}

impl ImageState {
    /// The state in which a plan for the first `among` ranks finds an image that was placed on the first
    /// `laid` ranks. `None` if the image must first be brought to rank 0, or to the host that the ranks
    /// share.
    pub fn usable_by(self, among: usize, hosts: Hosts, laid: usize) -> Option<ImageState> {
        match self.placement {
            _ if hosts == Hosts::Shared => (laid == among).then_some(self),
            Placement::ROOT if among == 1 => Some(ImageState { placement: Placement::Replicated, ..self }),
            Placement::On(_) => Some(self),
            Placement::Replicated => (laid >= among).then_some(self),
            Placement::Strips(_) => (laid == among).then_some(self),
        }
    }
}

/// Events of an image. Every change of a state is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StateEvent {
    /// A kernel wrote the image.
    Computed(Placement),
    /// The host copy was copied to the device.
    Uploaded,
    /// The device copy was copied to the host.
    Downloaded,
    /// Communication placed the host copy.
    Placed(Placement),
    /// Communication between devices, or an upload of strips, placed the device copy and left it as the only
    /// valid one.
    PlacedOnDevice(Placement),
    /// Communication brought halo rows to the side on which the image was valid.
    Exchanged(Halo),
}

/// The transition rules, for a device with its own memory or a device that computes on host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transitions {
    /// Host and device memory are the same.
    pub unified: bool,
}

impl Transitions {
    /// The state after `event`.
    pub fn next(self, state: ImageState, event: StateEvent) -> ImageState {
        let mut s = state;
        match event {
            StateEvent::Computed(placement) | StateEvent::PlacedOnDevice(placement) => {
                s = ImageState { residency: Residency::Device, placement }
            }
            StateEvent::Uploaded | StateEvent::Downloaded => s.residency = Residency::Both,
            StateEvent::Placed(placement) => s = ImageState { residency: Residency::Host, placement },
            StateEvent::Exchanged(halo) => {
                s.placement = Placement::Strips(halo);
                // Rows arrive on the side that computes next, if it was valid. The halos of the other side
                // are stale.
                s.residency = if s.residency.device() { Residency::Device } else { Residency::Host };
            }
        }
        if self.unified {
            s.residency = Residency::Both;
        }
        s
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEPARATE: Transitions = Transitions { unified: false };

    #[test]
    fn residency_follows_table_2_1() {
        let q0 = ImageState { residency: Residency::Nothing, placement: Placement::Replicated };
        let q1 = SEPARATE.next(q0, StateEvent::Placed(Placement::Replicated));
        assert_eq!(q1.residency, Residency::Host);
        let q3 = SEPARATE.next(q1, StateEvent::Uploaded);
        assert_eq!(q3.residency, Residency::Both);
        let q2 = SEPARATE.next(q0, StateEvent::Computed(Placement::Replicated));
        assert_eq!(q2.residency, Residency::Device);
        assert_eq!(SEPARATE.next(q2, StateEvent::Downloaded).residency, Residency::Both);
    }

    #[test]
    fn fewer_ranks_find_what_each_has_and_no_strips_of_more() {
        let of = |placement| ImageState { residency: Residency::Host, placement };
        let found = |placement, among, laid| of(placement).usable_by(among, Hosts::Separate, laid).map(|s| s.placement);
        let strips = Placement::Strips(Halo::NONE);
        assert_eq!(found(Placement::ROOT, 3, 4), Some(Placement::ROOT));
        assert_eq!(found(Placement::ROOT, 1, 4), Some(Placement::Replicated));
        assert_eq!(found(Placement::Replicated, 2, 3), Some(Placement::Replicated));
        assert_eq!(found(Placement::Replicated, 3, 2), None);
        assert_eq!((found(strips, 3, 3), found(strips, 2, 3), found(strips, 3, 2)), (Some(strips), None, None));
        // Devices that share a host divide an image into as many strips as there are devices.
        assert_eq!(of(Placement::Replicated).usable_by(2, Hosts::Shared, 3), None);
    }

    #[test]
    fn unified_memory_is_always_valid_on_both_sides() {
        let m = Transitions { unified: true };
        let s = ImageState { residency: Residency::Nothing, placement: Placement::Replicated };
        assert_eq!(m.next(s, StateEvent::Computed(Placement::Replicated)).residency, Residency::Both);
    }

    #[test]
    fn an_exchange_stales_the_other_side() {
        let s = ImageState { residency: Residency::Both, placement: Placement::Strips(Halo::NONE) };
        let s = SEPARATE.next(s, StateEvent::Exchanged(Halo::even(3)));
        assert_eq!((s.residency, s.placement), (Residency::Device, Placement::Strips(Halo::even(3))));
    }

    #[test]
    fn a_wrapped_halo_serves_others_but_not_the_reverse() {
        let wrapped = Halo { wrap: true, ..Halo::even(2) };
        assert!(wrapped.covers(Halo::even(2)));
        assert!(!Halo::even(2).covers(wrapped));
        assert!(Halo::even(0).covers(Halo { wrap: true, ..Halo::NONE }));
    }
}
