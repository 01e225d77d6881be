//! Several kernels as one that stores a result for each: what they read, filter and compute alike is read, filtered and computed once.

use super::{Instr, Leaf, LeafOp, MapKernel, Source, Stage, Val};

/// A position in a list, which gets the item if it is new.
fn place<T: PartialEq>(all: &mut Vec<T>, item: T) -> usize {
    all.iter().position(|known| *known == item).unwrap_or_else(|| {
        all.push(item);
        all.len() - 1
    })
}

impl MapKernel {
    /// One kernel with the results of all `parts`, in their order. Each part is a kernel of one result and what its inputs are; what the
    /// inputs of the whole are comes with it.
    ///
    /// Chains, row passes, leaves and instructions that are alike (constants by their bits) become one, so every value is computed as
    /// before, from the same values: the bits of the results stay.
    ///
    /// ```
    /// use horus_core::dtype::DType;
    /// use horus_core::ir::kernel::{Instr, InstrOp, Leaf, LeafOp, MapKernel, Val};
    /// use horus_core::ops::pixel::PixelOp;
    ///
    /// let leaf = |input| Leaf { op: LeafOp::Load(input), dtype: DType::F32 };
    /// let of = |op| MapKernel {
    ///     inputs: 2,
    ///     leaves: vec![leaf(0), leaf(1)],
    ///     code: vec![Instr {
    ///         op: InstrOp::Pixel(op),
    ///         operand: DType::F32,
    ///         result: DType::F32,
    ///         args: vec![Val::Leaf(0), Val::Leaf(1)],
    ///     }],
    ///     result: Some(Val::Instr(0)),
    ///     ..MapKernel::default()
    /// };
    /// let (sum, difference) = (of(PixelOp::Add), of(PixelOp::Sub));
    /// let (both, inputs) = MapKernel::join(&[(&sum, &["a", "b"]), (&difference, &["b", "a"])]);
    /// assert_eq!(inputs, ["a", "b"]);
    /// assert_eq!((both.leaves.len(), both.code.len()), (2, 2));
    /// assert_eq!((both.result, both.more), (Some(Val::Instr(0)), vec![Val::Instr(1)]));
    /// ```
    pub fn join<I: Copy + PartialEq>(parts: &[(&MapKernel, &[I])]) -> (MapKernel, Vec<I>) {
        let (mut whole, mut inputs) = (MapKernel::default(), Vec::new());
        for (part, of_part) in parts {
            let read: Vec<usize> = of_part.iter().map(|i| place(&mut inputs, *i)).collect();
            let result = whole.take_in(part, &read);
            match whole.result {
                None => whole.result = result,
                Some(_) => whole.more.extend(result),
            }
        }
        whole.inputs = inputs.len();
        whole.chains.iter_mut().for_each(|c| c.inputs = inputs.len());
        (whole, inputs)
    }

    /// Takes in what a kernel computes, whose input `i` is input `read[i]` here; its result as a value of this kernel.
    fn take_in(&mut self, part: &MapKernel, read: &[usize]) -> Option<Val> {
        let moved = |leaf: &Leaf| {
            let mut leaf = leaf.clone();
            leaf.map_input(|i| read[i]);
            leaf
        };
        let chains: Vec<usize> = part
            .chains
            .iter()
            .map(|c| {
                let leaves = c.leaves.iter().map(moved).collect();
                place(&mut self.chains, MapKernel { inputs: 0, leaves, ..c.clone() })
            })
            .collect();
        let image = |source: Source| match source {
            Source::Input(i) => Source::Input(read[i]),
            Source::Chain(c) => Source::Chain(chains[c]),
            Source::Stage(s) => Source::Stage(s),
        };
        let stages: Vec<usize> = part
            .stages
            .iter()
            .map(|s| place(&mut self.stages, Stage { source: image(s.source), ..s.clone() }))
            .collect();
        let leaves: Vec<usize> = part
            .leaves
            .iter()
            .map(|leaf| {
                let mut leaf = moved(leaf);
                if let LeafOp::Correlate(source, ..) = &mut leaf.op {
                    match source {
                        Source::Stage(s) => *s = stages[*s],
                        Source::Chain(c) => *c = chains[*c],
                        Source::Input(_) => {}
                    }
                }
                place(&mut self.leaves, leaf)
            })
            .collect();
        let mut code: Vec<usize> = Vec::with_capacity(part.code.len());
        let value = |v: Val, code: &[usize]| match v {
            Val::Leaf(l) => Val::Leaf(leaves[l]),
            Val::Instr(i) => Val::Instr(code[i]),
            Val::Const(_) | Val::Index(..) => v,
        };
        for instr in &part.code {
            let args = instr.args.iter().map(|a| value(*a, &code)).collect();
            let at = place(&mut self.code, Instr { args, ..instr.clone() });
            code.push(at);
        }
        part.result.map(|v| value(v, &code))
    }
}
