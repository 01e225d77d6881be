//! Several kernels as one that stores a result for each: what they read, filter and compute alike is read, filtered and computed once.

use super::{Instr, Leaf, LeafOp, MapKernel, Source, Stage, Val};

/// A position in a list, which gets the item if it is new.
fn place<T: PartialEq>(all: &mut Vec<T>, item: T) -> usize {
    all.iter().position(|known| *known == item).unwrap_or_else(|| {
        all.push(item);
        all.len() - 1
    })
}

/// A kernel to be joined: what its result is called, and what its inputs are.
#[derive(Clone, Copy, Debug)]
pub struct JoinPart<'a, I> {
    /// Its result.
    pub id: I,
    /// The kernel, of one result.
    pub kernel: &'a MapKernel,
    /// Its inputs.
    pub inputs: &'a [I],
}

/// What an input of a part is in the whole.
#[derive(Clone, Copy, Debug)]
enum Read {
    /// The input of this index.
    Input(usize),
    /// The result of a part before.
    Value(Val),
}

impl MapKernel {
    /// One kernel with the results of those of `parts` that are `stored`, in their order; what its inputs are comes with it. A part may
    /// read the result of one before it pixel by pixel: the value takes the place of the image. `None` if it reads more of it than the
    /// pixel, or nothing is stored.
    ///
    /// Chains, row passes, leaves and instructions that are alike (constants by their bits) become one, so every value is computed as
    /// before, from the same values: the bits of the results stay.
    ///
    /// ```
    /// use horus_core::dtype::DType;
    /// use horus_core::ir::kernel::{Instr, InstrOp, JoinPart, Leaf, LeafOp, MapKernel, Val};
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
    /// let parts = [
    ///     JoinPart { id: "sum", kernel: &sum, inputs: &["a", "b"] },
    ///     JoinPart { id: "difference", kernel: &difference, inputs: &["b", "sum"] },
    /// ];
    /// let (both, inputs) = MapKernel::join(&parts, |_| true).expect("each reads pixels");
    /// assert_eq!(inputs, ["a", "b"]);
    /// assert_eq!((both.leaves.len(), both.code.len()), (2, 2));
    /// assert_eq!(both.code[1].args, [Val::Leaf(1), Val::Instr(0)]);
    /// assert_eq!((both.result, both.more), (Some(Val::Instr(0)), vec![Val::Instr(1)]));
    /// ```
    pub fn join<I: Copy + PartialEq>(
        parts: &[JoinPart<'_, I>],
        stored: impl Fn(I) -> bool,
    ) -> Option<(MapKernel, Vec<I>)> {
        let (mut whole, mut inputs, mut values) = (MapKernel::default(), Vec::new(), Vec::new());
        for part in parts {
            let read: Vec<Read> = part
                .inputs
                .iter()
                .map(|i| match values.iter().find(|(id, _)| id == i) {
                    Some((_, value)) => Read::Value(*value),
                    None => Read::Input(place(&mut inputs, *i)),
                })
                .collect();
            values.push((part.id, whole.take_in(part.kernel, &read)?));
        }
        let mut results = values.iter().filter(|(id, _)| stored(*id)).map(|(_, value)| *value);
        whole.result = Some(results.next()?);
        whole.more = results.collect();
        whole.inputs = inputs.len();
        whole.chains.iter_mut().for_each(|c| c.inputs = inputs.len());
        Some((whole, inputs))
    }

    /// Takes in what a kernel computes; its result as a value of this kernel.
    fn take_in(&mut self, part: &MapKernel, read: &[Read]) -> Option<Val> {
        let input = |i: usize| if let Read::Input(at) = read[i] { Some(at) } else { None };
        let moved = |leaf: &Leaf| {
            let mut leaf = leaf.clone();
            if let Source::Input(i) = leaf.source() {
                let at = input(i)?;
                leaf.map_input(|_| at);
            }
            Some(leaf)
        };
        let mut chains = Vec::with_capacity(part.chains.len());
        for chain in &part.chains {
            let leaves = chain.leaves.iter().map(moved).collect::<Option<_>>()?;
            chains.push(place(&mut self.chains, MapKernel { inputs: 0, leaves, ..chain.clone() }));
        }
        let mut stages = Vec::with_capacity(part.stages.len());
        for stage in &part.stages {
            let source = match stage.source {
                Source::Input(i) => Source::Input(input(i)?),
                Source::Chain(c) => Source::Chain(chains[c]),
                Source::Stage(s) => Source::Stage(stages[s]),
            };
            stages.push(place(&mut self.stages, Stage { source, ..stage.clone() }));
        }
        let mut leaves = Vec::with_capacity(part.leaves.len());
        for leaf in &part.leaves {
            if let LeafOp::Load(i) = leaf.op
                && let Read::Value(value) = read[i]
            {
                leaves.push(value);
                continue;
            }
            let mut leaf = moved(leaf)?;
            match &mut leaf.op {
                LeafOp::Correlate(Source::Stage(s), ..) => *s = stages[*s],
                LeafOp::Correlate(Source::Chain(c), ..) => *c = chains[*c],
                _ => {}
            }
            leaves.push(Val::Leaf(place(&mut self.leaves, leaf)));
        }
        let mut code: Vec<usize> = Vec::with_capacity(part.code.len());
        let value = |v: Val, code: &[usize]| match v {
            Val::Leaf(l) => leaves[l],
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
