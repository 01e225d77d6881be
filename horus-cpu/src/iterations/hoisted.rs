//! Hoisting: values that are the same in all iterations are computed once for all iterations of a launch, row by row,
//! and read from the cache.

use horus_plan::ir::kernel::{FilterSource, Leaf, LeafOp, MapKernel, Repeat, Val};

/// Maximum number of hoisted values: each occupies rows of the cache.
const MOST: usize = 2;

/// The iteration, which reads the hoisted values after its own inputs, and the kernels of these values.
pub(super) fn hoisted(repeat: &Repeat) -> (MapKernel, Vec<MapKernel>) {
    let body = &repeat.body;
    let of_state = |l: usize| body.leaves[l].source() == FilterSource::Input(repeat.state);
    let mut differs = vec![false; body.code.len()];
    for (i, instr) in body.code.iter().enumerate() {
        differs[i] = instr.args.iter().any(|a| match *a {
            Val::Leaf(l) => of_state(l),
            Val::Instr(j) => differs[j],
            Val::Const(_) | Val::Index(..) => false,
        });
    }
    // Invariant values read by values that vary.
    let mut found: Vec<usize> = Vec::new();
    for instr in body.code.iter().enumerate().filter(|(i, _)| differs[*i]).map(|(_, instr)| instr) {
        for arg in &instr.args {
            if let Val::Instr(j) = *arg
                && !differs[j]
                && !found.contains(&j)
            {
                found.push(j);
            }
        }
    }
    if found.len() > MOST {
        return (body.clone(), Vec::new());
    }
    let mut step = body.clone();
    for (n, &j) in found.iter().enumerate() {
        let leaf = Leaf { op: LeafOp::Load(body.inputs + n), dtype: body.code[j].result };
        let read = Val::Leaf(step.leaves.len());
        step.leaves.push(leaf);
        let args = step.code.iter_mut().enumerate().filter(|(i, _)| differs[*i]).flat_map(|(_, i)| &mut i.args);
        args.filter(|a| **a == Val::Instr(j)).for_each(|a| *a = read);
    }
    step.inputs += found.len();
    let before = found.iter().map(|&j| MapKernel { result: Some(Val::Instr(j)), ..body.clone() });
    (step, before.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use horus_base::dtype::{DType, Scalar};
    use horus_base::shape::Border;
    use horus_plan::ir::kernel::{Instr, InstrOp};
    use horus_plan::ops::neighbourhood::Filter;
    use horus_plan::ops::pixel::PixelOp;

    #[test]
    fn what_stays_is_computed_before_and_read_as_an_image() {
        let leaf = |op| Leaf { op, dtype: DType::F32 };
        let instr = |op, args| Instr { op: InstrOp::Pixel(op), operand: DType::F32, result: DType::F32, args };
        let half = Val::Const(Scalar::F32(0.5));
        let filter = Filter::dense(3, 3, vec![1.0; 9]);
        let body = MapKernel {
            inputs: 3,
            leaves: vec![
                leaf(LeafOp::Load(0)),
                leaf(LeafOp::Correlate(FilterSource::Input(1), filter, Border::Reflect)),
                leaf(LeafOp::Load(2)),
            ],
            code: vec![
                instr(PixelOp::Mul, vec![Val::Leaf(0), half]),
                instr(PixelOp::Mul, vec![Val::Instr(0), Val::Leaf(2)]),
                instr(PixelOp::Add, vec![Val::Leaf(1), Val::Instr(1)]),
                instr(PixelOp::Add, vec![Val::Instr(2), Val::Leaf(2)]),
            ],
            result: Some(Val::Instr(3)),
            ..MapKernel::default()
        };
        let (step, before) = hoisted(&Repeat { body, state: 1, iterations: 4 });
        assert_eq!(before.len(), 1);
        assert_eq!(before[0].result, Some(Val::Instr(1)), "the product, not its factor");
        assert_eq!((step.inputs, step.leaves[3].clone()), (4, leaf(LeafOp::Load(3))));
        assert_eq!(step.code[2].args, [Val::Leaf(1), Val::Leaf(3)]);
        assert_eq!(step.code[3].args, [Val::Instr(2), Val::Leaf(2)], "images are read as they are");
    }
}
