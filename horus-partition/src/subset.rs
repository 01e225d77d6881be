//! A set of blocks to be divided, as a graph.

use crate::Blocks;

/// Divides `items` over `parts` as evenly as possible; the first parts get one more.
pub(crate) fn shares(items: usize, parts: usize) -> Vec<usize> {
    (0..parts).map(|i| items / parts + usize::from(i < items % parts)).collect()
}

/// The exchange between two blocks of a set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockExchange {
    /// The other block, as an index into the set.
    pub(crate) to: u32,
    /// Points received from it.
    pub(crate) received: u64,
    /// Points received from it and sent to it.
    pub(crate) both: u64,
}

/// The quality of a division: the total volume, then the largest volume that a part receives. Less
/// is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Score {
    /// Points that the parts receive from each other.
    pub(crate) volume: u64,
    /// The most points that a part receives, including points from outside the set.
    pub(crate) most: u64,
}

/// Some of the blocks, with the edges between them.
pub(crate) struct BlockSubset<'a> {
    pub(crate) blocks: &'a Blocks,
    /// The numbers of the blocks.
    pub(crate) members: Vec<usize>,
    offsets: Vec<usize>,
    edges: Vec<BlockExchange>,
    /// Points that each member receives from blocks outside the set.
    outer: Vec<u64>,
}

impl<'a> BlockSubset<'a> {
    pub(crate) fn new(blocks: &'a Blocks, members: Vec<usize>) -> BlockSubset<'a> {
        let mut local = vec![u32::MAX; blocks.len()];
        for (i, member) in members.iter().enumerate() {
            local[*member] = i as u32;
        }
        let (mut offsets, mut edges, mut outer) = (vec![0], Vec::new(), vec![0; members.len()]);
        for (i, member) in members.iter().enumerate() {
            for n in blocks.neighbours(*member) {
                match local[n.block] {
                    u32::MAX => outer[i] += n.received,
                    to => edges.push(BlockExchange { to, received: n.received, both: n.received + n.sent }),
                }
            }
            offsets.push(edges.len());
        }
        BlockSubset { blocks, members, offsets, edges, outer }
    }

    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    /// Column and row of a member.
    pub(crate) fn place(&self, i: usize) -> (usize, usize) {
        self.blocks.place(self.members[i])
    }

    pub(crate) fn edges(&self, i: usize) -> &[BlockExchange] {
        &self.edges[self.offsets[i]..self.offsets[i + 1]]
    }

    /// The score of a division into `k` parts, restricted to the members `some`.
    pub(crate) fn score_of(&self, some: impl Iterator<Item = usize>, of: &[u32], k: usize) -> Score {
        let mut received = vec![0; k];
        let mut volume = 0;
        for i in some {
            let others = self.edges(i).iter().filter(|e| of[e.to as usize] != of[i]);
            let points: u64 = others.map(|e| e.received).sum();
            volume += points;
            received[of[i] as usize] += points + self.outer[i];
        }
        Score { volume, most: received.into_iter().max().unwrap_or(0) }
    }

    pub(crate) fn score(&self, of: &[u32], k: usize) -> Score {
        self.score_of(0..self.len(), of, k)
    }
}
