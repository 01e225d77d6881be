//! The position of a rank: its node, and the ranks that share its node and its cores.

/// The position of a rank among all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnNode {
    /// Index of the node; nodes are numbered in the order of their first ranks.
    pub node: usize,
    /// Index of the rank among the ranks of its node.
    pub local_rank: usize,
    /// Number of ranks on its node.
    pub local_size: usize,
    /// Number of ranks that share its cores, including itself.
    pub sharers: usize,
}

impl OnNode {
    /// The position of `rank`. `nodes` are the first ranks on the nodes of all ranks; `cores` are numbers that are
    /// equal for equal sets of cores.
    pub fn of(rank: usize, nodes: &[u64], cores: &[u64]) -> OnNode {
        let here = |other: &usize| nodes[*other] == nodes[rank];
        let mut firsts = nodes.to_vec();
        firsts.sort_unstable();
        firsts.dedup();
        OnNode {
            node: firsts.partition_point(|first| *first < nodes[rank]),
            local_rank: (0..rank).filter(here).count(),
            local_size: (0..nodes.len()).filter(here).count(),
            sharers: (0..nodes.len()).filter(here).filter(|other| cores[*other] == cores[rank]).count(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_counted_on_their_nodes() {
        // Two nodes with alternating ranks; the ranks of the first are bound to cores.
        let (nodes, cores) = ([0, 1, 0, 1, 1], [7, 5, 8, 5, 5]);
        let at = |rank| OnNode::of(rank, &nodes, &cores);
        assert_eq!(at(2), OnNode { node: 0, local_rank: 1, local_size: 2, sharers: 1 });
        assert_eq!(at(4), OnNode { node: 1, local_rank: 2, local_size: 3, sharers: 3 });
    }
}
