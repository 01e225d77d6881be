//! Ranks as threads of one process: distribution without MPI.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use super::{CommError, CommunicationOrder, Communicator, Parcel, PendingExchange};

/// One rank of a group of threads.
#[derive(Debug, Clone)]
pub struct ThreadComm {
    rank: usize,
    shared: Arc<ThreadGroup>,
    turns: Arc<CommunicationOrder>,
}

#[derive(Debug)]
struct ThreadGroup {
    size: usize,
    state: Mutex<ThreadGroupState>,
    /// Wakes a rank, by receiver: a message has arrived, or a rank has left or failed.
    arrived: Vec<Condvar>,
}

impl ThreadGroup {
    fn of(ranks: usize) -> Arc<ThreadGroup> {
        let size = ranks.max(1);
        let arrived = std::iter::repeat_with(Condvar::new).take(size).collect();
        Arc::new(ThreadGroup { size, state: Mutex::default(), arrived })
    }

    fn wake_all(&self) {
        self.arrived.iter().for_each(Condvar::notify_all);
    }
}

#[derive(Debug, Default)]
struct ThreadGroupState {
    /// Messages in flight, by sender and receiver.
    mail: HashMap<(usize, usize), Mail>,
    /// Ranks that have left.
    departed: Vec<usize>,
    aborted: Option<String>,
}

/// Messages from one rank to another, numbered in the order in which they are sent and received.
#[derive(Debug, Default)]
struct Mail {
    messages: BTreeMap<u64, Vec<u8>>,
    sent: u64,
    asked: u64,
}

/// Marks a rank as gone when its thread ends, for any reason.
struct DepartureGuard(ThreadComm);

impl Drop for DepartureGuard {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.departed.push(self.0.rank);
        if std::thread::panicking() && state.aborted.is_none() {
            state.aborted = Some(format!("rank {} panicked", self.0.rank));
        }
        self.0.shared.wake_all();
    }
}

impl ThreadComm {
    /// Runs `program` on `ranks` ranks, each in its own thread, the first in the calling thread. Returns their results
    /// in rank order.
    ///
    /// # Panics
    /// If the program panics on a rank (the other ranks then fail with an error and do not hang).
    pub fn run<R: Send>(ranks: usize, program: impl Fn(ThreadComm) -> R + Sync) -> Vec<R> {
        let run = |comm: ThreadComm| {
            let _leave = DepartureGuard(comm.clone());
            program(comm)
        };
        let run = &run;
        std::thread::scope(|scope| {
            let mut comms = ThreadComm::group(ranks).into_iter();
            let first = comms.next();
            let others: Vec<_> = comms.map(|comm| scope.spawn(move || run(comm))).collect();
            let first = first.map(run);
            let joined = others.into_iter().map(|t| t.join().unwrap_or_else(|p| std::panic::resume_unwind(p)));
            first.into_iter().chain(joined).collect()
        })
    }

    /// All ranks of a group, for threads started by the caller. A failing rank aborts the others; leaving is not
    /// tracked.
    pub fn group(ranks: usize) -> Vec<ThreadComm> {
        let shared = ThreadGroup::of(ranks);
        (0..shared.size).map(|rank| ThreadComm { rank, shared: Arc::clone(&shared), turns: Arc::default() }).collect()
    }

    fn lock(&self) -> MutexGuard<'_, ThreadGroupState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn send(&self, to: usize, bytes: &[u8]) -> Result<(), CommError> {
        let mut state = self.lock();
        if let Some(why) = &state.aborted {
            return Err(CommError(why.clone()));
        }
        let mail = state.mail.entry((self.rank, to)).or_default();
        mail.messages.insert(mail.sent, bytes.to_vec());
        mail.sent += 1;
        self.shared.arrived[to].notify_all();
        Ok(())
    }

    fn receive(&self, from: usize) -> Result<Vec<u8>, CommError> {
        self.take(from, self.ask(from))
    }

    /// Reserves the number of the next message from rank `from`.
    fn ask(&self, from: usize) -> u64 {
        let mut state = self.lock();
        let mail = state.mail.entry((from, self.rank)).or_default();
        mail.asked += 1;
        mail.asked - 1
    }

    /// Waits for a message from rank `from`.
    fn take(&self, from: usize, number: u64) -> Result<Vec<u8>, CommError> {
        let mut state = self.lock();
        loop {
            if let Some(why) = &state.aborted {
                return Err(CommError(why.clone()));
            }
            if let Some(message) = state.mail.get_mut(&(from, self.rank)).and_then(|m| m.messages.remove(&number)) {
                return Ok(message);
            }
            if state.departed.contains(&from) {
                return Err(CommError(format!("rank {from} ended while rank {} was waiting for it", self.rank)));
            }
            state = self.shared.arrived[self.rank].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a message from rank `from`, which must be as long as `buffer`.
    fn fill(&self, from: usize, number: u64, buffer: &mut [u8]) -> Result<(), CommError> {
        let message = self.take(from, number)?;
        if message.len() != buffer.len() {
            let (got, want) = (message.len(), buffer.len());
            return Err(CommError(format!(
                "rank {from} sent {got} bytes where rank {} expected {want}: the ranks run different programs",
                self.rank
            )));
        }
        buffer.copy_from_slice(&message);
        Ok(())
    }
}

/// Requested messages.
struct ThreadExchange<'a> {
    comm: &'a ThreadComm,
    receives: Vec<Parcel>,
    numbers: Vec<u64>,
}

impl PendingExchange for ThreadExchange<'_> {
    fn finish(mut self: Box<Self>) -> Result<Vec<Parcel>, CommError> {
        for ((from, buffer), number) in self.receives.iter_mut().zip(&self.numbers) {
            self.comm.fill(*from, *number, buffer.bytes_mut())?;
        }
        Ok(self.receives)
    }
}

impl Communicator for ThreadComm {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.shared.size
    }

    fn communication_order(&self) -> Option<&CommunicationOrder> {
        Some(&self.turns)
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        sends.iter().try_for_each(|(to, bytes)| self.send(*to, bytes))?;
        receives.iter_mut().try_for_each(|(from, buffer)| self.fill(*from, self.ask(*from), buffer))
    }

    fn begin(&self, sends: Vec<Parcel>, receives: Vec<Parcel>) -> Result<Box<dyn PendingExchange + '_>, CommError> {
        sends.iter().try_for_each(|(to, bytes)| self.send(*to, bytes.bytes()))?;
        let numbers = receives.iter().map(|(from, _)| self.ask(*from)).collect();
        Ok(Box::new(ThreadExchange { comm: self, receives, numbers }))
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        if self.rank == root {
            (0..self.size()).filter(|r| *r != root).try_for_each(|r| self.send(r, bytes))
        } else {
            *bytes = self.receive(root)?;
            Ok(())
        }
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        let mut bytes: Vec<u8> = bytemuck::cast_slice(values).to_vec();
        if self.rank == 0 {
            for rank in 1..self.size() {
                let theirs = self.receive(rank)?;
                for (v, b) in values.iter_mut().zip(theirs.chunks_exact(8)) {
                    *v += bytemuck::pod_read_unaligned::<f64>(b);
                }
            }
            bytes = bytemuck::cast_slice(values).to_vec();
        } else {
            self.send(0, &bytes)?;
        }
        self.broadcast(0, &mut bytes)?;
        for (v, b) in values.iter_mut().zip(bytes.chunks_exact(8)) {
            *v = bytemuck::pod_read_unaligned(b);
        }
        Ok(())
    }

    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError> {
        let others = || (0..self.size()).filter(|r| *r != self.rank);
        for rank in others() {
            self.send(rank, &value.to_le_bytes())?;
        }
        let mut values = vec![value; self.size()];
        for rank in others() {
            let message = self.receive(rank)?;
            let bytes = <[u8; 8]>::try_from(message).map_err(|m| {
                CommError(format!(
                    "rank {rank} sent {} bytes where rank {} expected a word: the ranks run different programs",
                    m.len(),
                    self.rank
                ))
            })?;
            values[rank] = u64::from_le_bytes(bytes);
        }
        Ok(values)
    }

    fn abort(&self, message: &str) {
        let mut state = self.lock();
        if state.aborted.is_none() {
            state.aborted = Some(format!("rank {} failed: {message}", self.rank));
        }
        self.shared.wake_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::HostBuffer;

    #[test]
    fn every_rank_gets_what_the_others_send() {
        let out = ThreadComm::run(4, |c| {
            let next = (c.rank() + 1) % 4;
            let before = (c.rank() + 3) % 4;
            let mut got = [0u8; 2];
            c.exchange(&[(next, &[c.rank() as u8, 7])], &mut [(before, &mut got)]).unwrap();
            let mut sum = [c.rank() as f64, 1.0];
            c.sum(&mut sum).unwrap();
            let mut word = if c.rank() == 2 { b"hello".to_vec() } else { Vec::new() };
            c.broadcast(2, &mut word).unwrap();
            assert_eq!(c.gather(10 + c.rank() as u64).unwrap(), [10, 11, 12, 13]);
            (got[0], sum, word)
        });
        for (rank, (from, sum, word)) in out.into_iter().enumerate() {
            assert_eq!(usize::from(from), (rank + 3) % 4);
            assert_eq!(sum, [6.0, 4.0]);
            assert_eq!(word, b"hello");
        }
    }

    #[test]
    fn what_was_begun_first_arrives_first_whenever_it_is_finished() {
        ThreadComm::run(3, |c| {
            let others: Vec<usize> = (0..3).filter(|r| *r != c.rank()).collect();
            let word = |word: u8| HostBuffer::from_slice(&[word]);
            let to = |from: u8| others.iter().map(|r| (*r, word(from + c.rank() as u8))).collect::<Vec<Parcel>>();
            let words = |parcels: Vec<Parcel>| parcels.iter().map(|(r, b)| (*r, b.bytes()[0])).collect::<Vec<_>>();
            let first = c.begin(to(10), to(0)).unwrap();
            let second = c.begin(to(20), to(0)).unwrap();
            assert_eq!(c.gather(c.rank() as u64).unwrap(), [0, 1, 2]);
            let from = |word: u8| others.iter().map(|r| (*r, word + *r as u8)).collect::<Vec<_>>();
            assert_eq!(words(second.finish().unwrap()), from(20));
            assert_eq!(words(first.finish().unwrap()), from(10));
        });
    }

    #[test]
    fn a_rank_that_leaves_or_aborts_does_not_hang_the_others() {
        let waits = |c: &ThreadComm| c.exchange(&[], &mut [(0, &mut [0u8; 1])]).unwrap_err().0;
        let left = ThreadComm::run(3, |c| if c.rank() == 0 { String::new() } else { waits(&c) });
        assert!(left[1].contains("rank 0 ended"), "{}", left[1]);
        let aborted = ThreadComm::run(3, |c| {
            if c.rank() == 0 {
                c.abort("no disk");
                return String::new();
            }
            waits(&c)
        });
        assert_eq!(aborted[2], "rank 0 failed: no disk");
    }
}
