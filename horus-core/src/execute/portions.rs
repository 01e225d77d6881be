//! Results of several devices: their strips, assembled on their shared host.

use std::sync::{Arc, Mutex, PoisonError};

use super::Delivered;
use crate::device::{HostAllocator, PendingDownload};
use crate::error::DeviceError;
use crate::host::buffer::{HostBuffer, Pool};
use crate::host::sequential_output::SequentialOutput;
use crate::host::workers::Workers;

/// Contiguous bytes of a result that one device delivers.
pub struct Portion {
    /// Offset in the whole result.
    pub at: usize,
    /// Length.
    pub bytes: usize,
    /// Source.
    pub from: PortionOrigin,
}

/// Source of a portion.
pub enum PortionOrigin {
    /// On the host, from this byte of a buffer on.
    OnHost(HostBuffer, usize),
    /// In transfer from the device.
    InFlight(Box<dyn PendingDownload>),
}

impl Portion {
    /// Waits for the bytes and writes them to `target`, which has their size.
    fn write(self, target: &mut SequentialOutput<'_>, workers: &Workers) -> Result<(), DeviceError> {
        match self.from {
            PortionOrigin::OnHost(buffer, from) => {
                target.append(workers, &buffer.bytes()[from..from + self.bytes]);
                Ok(())
            }
            PortionOrigin::InFlight(landing) => landing.append_to(target, workers),
        }
    }
}

/// Assembles a result of `total` bytes from the portions of all devices. If it needs its own memory, `pool` provides
/// it.
///
/// # Errors
/// [`DeviceError::Internal`] if the portions do not cover the whole.
pub fn assembled(mut lanes: Vec<Vec<Portion>>, total: usize, pool: &Arc<Pool>) -> Result<Delivered, DeviceError> {
    let mut places: Vec<(usize, usize)> = lanes.iter().flatten().map(|p| (p.at, p.bytes)).collect();
    places.sort_unstable();
    let end = places.iter().try_fold(0, |end, (at, bytes)| (*at == end).then_some(end + bytes));
    if end != Some(total) {
        return Err(DeviceError::Internal(format!("{total} bytes of a result were not handed over, each by one lane")));
    }
    if total == 0 {
        return Ok(Delivered::OnHost(HostBuffer::zeroed(0)));
    }
    if let [_] = places[..]
        && let Some(Portion { from, .. }) = lanes.iter_mut().find_map(Vec::pop)
    {
        return Ok(match from {
            PortionOrigin::OnHost(buffer, 0) if buffer.len() == total => Delivered::OnHost(buffer),
            PortionOrigin::InFlight(landing) => Delivered::InFlight(landing),
            from => {
                Delivered::InFlight(Box::new(Assembled::new(vec![vec![Portion { at: 0, bytes: total, from }]], pool)))
            }
        });
    }
    Ok(Delivered::InFlight(Box::new(Assembled::new(lanes, pool))))
}

/// Portions of all devices with one target.
struct Assembled {
    lanes: Vec<Vec<Portion>>,
    total: usize,
    pool: Arc<Pool>,
    /// Memory that was allocated for it in advance.
    room: Mutex<Option<HostBuffer>>,
}

impl Assembled {
    fn new(lanes: Vec<Vec<Portion>>, pool: &Arc<Pool>) -> Assembled {
        let total = lanes.iter().flatten().map(|p| p.bytes).sum();
        Assembled { lanes, total, pool: Arc::clone(pool), room: Mutex::default() }
    }

    /// Writes all portions to a buffer, to which devices may write directly.
    fn write_in(self, target: &mut HostBuffer, workers: &Workers) -> Result<(), DeviceError> {
        let written = self.write(&mut SequentialOutput::in_buffer(target), workers);
        if written.is_err() && target.adopted().is_some() {
            // A device that has failed may still write to the buffer, so it is leaked.
            std::mem::forget(target.clone());
        }
        written
    }

    /// Writes all portions, different devices concurrently.
    fn write(self, target: &mut SequentialOutput<'_>, workers: &Workers) -> Result<(), DeviceError> {
        let lanes = self.lanes.into_iter().enumerate();
        let mut portions: Vec<(usize, Portion)> =
            lanes.flat_map(|(lane, portions)| portions.into_iter().map(move |p| (lane, p))).collect();
        portions.sort_by_key(|(_, portion)| portion.at);
        let lengths: Vec<usize> = portions.iter().map(|(_, portion)| portion.bytes).collect();
        target.in_parts(&lengths, |parts| {
            let mut by_lane: Vec<(usize, Vec<(Portion, &mut SequentialOutput<'_>)>)> = Vec::new();
            for ((lane, portion), part) in portions.into_iter().zip(parts) {
                match by_lane.iter_mut().find(|(l, _)| *l == lane) {
                    Some((_, all)) => all.push((portion, part)),
                    None => by_lane.push((lane, vec![(portion, part)])),
                }
            }
            let write = |all: Vec<(Portion, &mut SequentialOutput<'_>)>| -> Result<(), DeviceError> {
                all.into_iter().try_for_each(|(portion, part)| portion.write(part, workers))
            };
            let mut by_lane = by_lane.into_iter().map(|(_, all)| all);
            let first = by_lane.next();
            std::thread::scope(|scope| {
                let others: Vec<_> = by_lane.map(|all| scope.spawn(|| write(all))).collect();
                let first = first.map_or(Ok(()), write);
                let died = |_| Err(DeviceError::Internal("a thread that brings a strip has panicked".into()));
                others.into_iter().fold(first, |done, thread| done.and(thread.join().unwrap_or_else(died)))
            })
        })
    }
}

impl PendingDownload for Assembled {
    fn wait(mut self: Box<Self>) -> Result<HostBuffer, DeviceError> {
        let room = self.room.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        let mut host = room.map_or_else(|| self.pool.try_allocate(self.total), Ok)?;
        self.write_in(&mut host, &Workers::alone())?;
        Ok(host)
    }

    fn wait_until_started(&self) -> Result<(), DeviceError> {
        self.lanes.iter().filter_map(|lane| lane.first()).try_for_each(|portion| match &portion.from {
            PortionOrigin::OnHost(..) => Ok(()),
            PortionOrigin::InFlight(landing) => landing.wait_until_started(),
        })
    }

    fn allocate_target(&self, room: &mut HostAllocator<'_>) -> Result<(), DeviceError> {
        let made = room(self.total)?;
        if made.len() != self.total {
            let text = format!("{} bytes of memory for a result of {}", made.len(), self.total);
            return Err(DeviceError::Argument(text));
        }
        *self.room.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(())
    }

    fn append_to(self: Box<Self>, target: &mut SequentialOutput<'_>, workers: &Workers) -> Result<(), DeviceError> {
        self.write(target, workers)
    }

    fn copy_into(self: Box<Self>, target: &mut HostBuffer, workers: &Workers) -> Result<(), DeviceError> {
        self.write_in(target, workers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here(at: usize, bytes: &[u8]) -> Portion {
        Portion { at, bytes: bytes.len(), from: PortionOrigin::OnHost(HostBuffer::from_slice(bytes), 0) }
    }

    fn coming(at: usize, bytes: &[u8]) -> Portion {
        Portion { at, bytes: bytes.len(), from: PortionOrigin::InFlight(Box::new(HostBuffer::from_slice(bytes))) }
    }

    fn landed(delivered: Delivered) -> Vec<u8> {
        match delivered {
            Delivered::OnHost(buffer) => buffer.bytes().to_vec(),
            Delivered::InFlight(landing) => landing.wait().unwrap().bytes().to_vec(),
        }
    }

    #[test]
    fn portions_of_lanes_are_put_together_wherever_they_are() {
        let pool = Pool::new(0);
        let two_planes =
            || vec![vec![here(0, &[1, 2]), here(5, &[6])], vec![coming(2, &[3, 4, 5]), coming(6, &[7, 8])]];
        assert_eq!(landed(assembled(two_planes(), 8, &pool).unwrap()), [1, 2, 3, 4, 5, 6, 7, 8]);
        let Delivered::InFlight(landing) = assembled(two_planes(), 8, &pool).unwrap() else { panic!("in two lanes") };
        let mut target = [9; 10];
        let mut spare = SequentialOutput::over(&mut target);
        landing.append_to(&mut spare, &Workers::alone()).unwrap();
        assert_eq!((spare.remaining(), target), (2, [1, 2, 3, 4, 5, 6, 7, 8, 9, 9]));
        let part = Portion { at: 0, bytes: 2, from: PortionOrigin::OnHost(HostBuffer::from_slice(&[1u8, 2, 3]), 1) };
        assert_eq!(landed(assembled(vec![vec![], vec![part]], 2, &pool).unwrap()), [2, 3]);
        assert!(landed(assembled(vec![vec![], vec![]], 0, &pool).unwrap()).is_empty());
    }

    #[test]
    fn a_result_that_is_not_handed_over_whole_is_an_error() {
        let pool = Pool::new(0);
        for lanes in
            [vec![vec![here(0, &[1])], vec![here(2, &[3])]], vec![vec![here(0, &[1, 2])], vec![here(1, &[2, 3])]]]
        {
            assert!(assembled(lanes, 3, &pool).is_err());
        }
    }
}
