//! Several kernels joined into one with a result for each. Common reads, filters and computations are done
//! once.

use super::{FilterSource, Instr, Leaf, LeafOp, MapKernel, RowFilterStage, Val};

/// The index of an item in a list, to which a new item is appended.
fn place<T: PartialEq>(all: &mut Vec<T>, item: T) -> usize {
    all.iter().position(|known| *known == item).unwrap_or_else(|| {
        all.push(item);
        all.len() - 1
    })
}

/// A kernel to be joined, with the ids of its result and inputs.
#[derive(Clone, Copy, Debug)]
pub struct JoinPart<'a, I> {
    /// Its result.
    pub id: I,
    /// The kernel, of one result.
    pub kernel: &'a MapKernel,
    /// Its inputs.
    pub inputs: &'a [I],
}

/// The replacement for an input of a part in the joined kernel.
#[derive(Clone, Copy, Debug)]
enum JoinedInput {
    /// The input of this index.
    Input(usize),
    /// The result of an earlier part.
    Value(Val),
}

impl Leaf {
    /// The same leaf with its input renumbered by `at`.
    fn moved(&self, at: &impl Fn(usize) -> Option<usize>) -> Option<Leaf> {
        let mut leaf = self.clone();
        if let FilterSource::Input(i) = leaf.source() {
            let at = at(i)?;
            leaf.map_input(|_| at);
        }
        Some(leaf)
    }
}

impl MapKernel {
    /// Joins `parts` into one kernel with the results of the parts that are `stored`, in their order;
    /// also returns its inputs. A part may read the result of an earlier part pixel by pixel: the
    /// value replaces the image. `None` if it reads more than the pixel, or no part is stored.
    ///
    /// Equal chains, row filters, leaves and instructions (constants by their bits) are merged.
    /// Every value is computed as before, from the same values, so the bits of the results are
    /// unchanged.
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
    /// assert_eq!((both.result, both.additional_results), (Some(Val::Instr(0)), vec![Val::Instr(1)]));
    /// ```
    pub fn join<I: Copy + PartialEq>(
        parts: &[JoinPart<'_, I>],
        stored: impl Fn(I) -> bool,
    ) -> Option<(MapKernel, Vec<I>)> {
        let (mut whole, mut inputs, mut values) = (MapKernel::default(), Vec::new(), Vec::new());
        for part in parts {
            let read: Vec<JoinedInput> = part
                .inputs
                .iter()
                .map(|i| match values.iter().find(|(id, _)| id == i) {
                    Some((_, value)) => JoinedInput::Value(*value),
                    None => JoinedInput::Input(place(&mut inputs, *i)),
                })
                .collect();
            values.push((part.id, whole.take_in(part.kernel, &read)?));
        }
        let mut results = values.iter().filter(|(id, _)| stored(*id)).map(|(_, value)| *value);
        whole.result = Some(results.next()?);
        whole.additional_results = results.collect();
        whole.inputs = inputs.len();
        whole.chains.iter_mut().for_each(|c| c.set_inputs(inputs.len()));
        Some((whole, inputs))
    }

    /// Sets the number of inputs, including in chains.
    fn set_inputs(&mut self, count: usize) {
        self.inputs = count;
        self.chains.iter_mut().for_each(|c| c.set_inputs(count));
    }

    /// The same chain with its inputs (and those of its own chains) renumbered by `at`.
    fn moved(&self, at: &impl Fn(usize) -> Option<usize>) -> Option<MapKernel> {
        let mut chain = self.clone();
        chain.inputs = 0;
        chain.chains = self.chains.iter().map(|c| c.moved(at)).collect::<Option<_>>()?;
        chain.leaves = self.leaves.iter().map(|l| l.moved(at)).collect::<Option<_>>()?;
        for stage in &mut chain.stages {
            if let FilterSource::Input(i) = &mut stage.source {
                *i = at(*i)?;
            }
        }
        Some(chain)
    }

    /// Adds the computation of a kernel; returns its result as a value of this kernel.
    fn take_in(&mut self, part: &MapKernel, read: &[JoinedInput]) -> Option<Val> {
        let input = |i: usize| if let JoinedInput::Input(at) = read[i] { Some(at) } else { None };
        let mut chains = Vec::with_capacity(part.chains.len());
        for chain in &part.chains {
            chains.push(place(&mut self.chains, chain.moved(&input)?));
        }
        let mut stages = Vec::with_capacity(part.stages.len());
        for stage in &part.stages {
            let source = match stage.source {
                FilterSource::Input(i) => FilterSource::Input(input(i)?),
                FilterSource::Chain(c) => FilterSource::Chain(chains[c]),
                FilterSource::Stage(s) => FilterSource::Stage(stages[s]),
            };
            stages.push(place(&mut self.stages, RowFilterStage { source, ..stage.clone() }));
        }
        let mut leaves = Vec::with_capacity(part.leaves.len());
        for leaf in &part.leaves {
            if let LeafOp::Load(i) = leaf.op
                && let JoinedInput::Value(value) = read[i]
            {
                leaves.push(value);
                continue;
            }
            let mut leaf = leaf.moved(&input)?;
            if let LeafOp::Correlate(source, ..) | LeafOp::Shift(source, ..) = &mut leaf.op {
                match source {
                    FilterSource::Stage(s) => *s = stages[*s],
                    FilterSource::Chain(c) => *c = chains[*c],
                    FilterSource::Input(_) => {}
                }
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
