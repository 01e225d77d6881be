//! A communicator of some of the ranks.

use bytemuck::{cast_slice, cast_slice_mut};

use super::{CommError, CommunicationOrder, Communicator, Parcel, PendingExchange};

/// The first ranks of a communicator, for work in which the others take no part. Its collective calls use messages
/// between these ranks.
pub struct FirstRanks<'a> {
    comm: &'a dyn Communicator,
    size: usize,
}

impl<'a> FirstRanks<'a> {
    /// The first `size` ranks, at least one. Called on one of them.
    pub fn new(comm: &'a dyn Communicator, size: usize) -> FirstRanks<'a> {
        FirstRanks { comm, size: size.clamp(1, comm.size()) }
    }

    /// Sends bytes of rank `root` to the others, which know the length.
    fn broadcast_bytes(&self, root: usize, bytes: &mut [u8]) -> Result<(), CommError> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.rank() == root {
            let others: Vec<(usize, &[u8])> =
                (0..self.size).filter(|rank| *rank != root).map(|r| (r, &*bytes)).collect();
            self.exchange(&others, &mut [])
        } else {
            self.exchange(&[], &mut [(root, bytes)])
        }
    }

    /// Gathers the words of all ranks, by rank, on rank 0.
    fn gather_words(&self, words: &[u64]) -> Result<Vec<Vec<u64>>, CommError> {
        if words.is_empty() {
            return Ok(vec![Vec::new(); self.size]);
        }
        if self.rank() > 0 {
            self.exchange(&[(0, cast_slice(words))], &mut [])?;
            return Ok(Vec::new());
        }
        let mut all = vec![words.to_vec(); self.size];
        let mut receives: Vec<(usize, &mut [u8])> =
            all.iter_mut().enumerate().skip(1).map(|(rank, words)| (rank, cast_slice_mut(words))).collect();
        self.exchange(&[], &mut receives)?;
        Ok(all)
    }

    /// Sends the words of rank 0 to all ranks.
    fn broadcast_words(&self, mut words: Vec<u64>) -> Result<Vec<u64>, CommError> {
        self.broadcast_bytes(0, cast_slice_mut(&mut words))?;
        Ok(words)
    }
}

impl Communicator for FirstRanks<'_> {
    fn rank(&self) -> usize {
        self.comm.rank()
    }

    fn size(&self) -> usize {
        self.size
    }

    fn local_rank(&self) -> usize {
        self.comm.local_rank()
    }

    fn local_size(&self) -> usize {
        self.comm.local_size().min(self.size)
    }

    fn node(&self) -> usize {
        self.comm.node()
    }

    fn sharers(&self) -> usize {
        self.comm.sharers()
    }

    fn communication_order(&self) -> Option<&CommunicationOrder> {
        self.comm.communication_order()
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) -> Result<(), CommError> {
        self.comm.exchange(sends, receives)
    }

    fn begin(&self, sends: Vec<Parcel>, receives: Vec<Parcel>) -> Result<Box<dyn PendingExchange + '_>, CommError> {
        self.comm.begin(sends, receives)
    }

    fn broadcast(&self, root: usize, bytes: &mut Vec<u8>) -> Result<(), CommError> {
        let mut length = (bytes.len() as u64).to_le_bytes();
        self.broadcast_bytes(root, &mut length)?;
        bytes.resize(u64::from_le_bytes(length) as usize, 0);
        self.broadcast_bytes(root, bytes)
    }

    fn sum(&self, values: &mut [f64]) -> Result<(), CommError> {
        let words: Vec<u64> = values.iter().map(|value| value.to_bits()).collect();
        let all = self.gather_words(&words)?;
        let sum = |i: usize| all.iter().map(|words| f64::from_bits(words[i])).reduce(|sum, value| sum + value);
        let mine = (0..values.len()).map(|i| if self.rank() == 0 { sum(i).unwrap_or(0.0).to_bits() } else { 0 });
        let shared = self.broadcast_words(mine.collect())?;
        values.iter_mut().zip(shared).for_each(|(value, sum)| *value = f64::from_bits(sum));
        Ok(())
    }

    fn gather(&self, value: u64) -> Result<Vec<u64>, CommError> {
        let all = self.gather_words(&[value])?;
        let mine = if self.rank() == 0 { all.concat() } else { vec![0; self.size] };
        self.broadcast_words(mine)
    }

    fn abort(&self, message: &str) {
        self.comm.abort(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::comm::threads::ThreadComm;

    #[test]
    fn calls_among_the_first_ranks_are_those_of_as_many_ranks() {
        for size in 1..=4 {
            let run = |comm: &dyn Communicator| {
                let rank = comm.rank();
                let mut sum = vec![rank as f64 + 0.25, 1e16 * rank as f64, -0.0];
                comm.sum(&mut sum).unwrap();
                let mut text = if rank == comm.size() - 1 { b"last".to_vec() } else { vec![7; rank] };
                comm.broadcast(comm.size() - 1, &mut text).unwrap();
                let mut nothing = if rank == 0 { Vec::new() } else { vec![1] };
                comm.broadcast(0, &mut nothing).unwrap();
                let sum: Vec<u64> = sum.iter().map(|value| value.to_bits()).collect();
                (sum, text, nothing, comm.gather(u64::MAX - rank as u64).unwrap(), comm.size())
            };
            let expected = ThreadComm::run(size, |comm| run(&comm));
            let found = ThreadComm::run(4, |comm| (comm.rank() < size).then(|| run(&FirstRanks::new(&comm, size))));
            assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), expected);
        }
    }
}
