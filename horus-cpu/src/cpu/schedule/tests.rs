use super::*;
use horus_base::shape::Border;
use horus_plan::ir::kernel::Instr;
use horus_plan::ops::neighbourhood::Filter;
use horus_plan::ops::pixel::PixelOp;

#[test]
fn a_bank_is_used_up_before_the_next_is_evaluated() {
    // max over pairs of column filters, pair by pair; the code first takes one pair of each stage.
    let stage = |n: usize| horus_plan::ir::kernel::Stage {
        source: Source::Input(0),
        filter: Filter::row(vec![1.0; n]),
        border: Border::Reflect101,
    };
    let column = |s: usize, n: usize, v: f64| Leaf {
        op: LeafOp::Correlate(Source::Stage(s), Filter::column(vec![v; n]), Border::Reflect101),
        dtype: DType::F32,
    };
    let mut k = MapKernel { inputs: 1, stages: vec![stage(3), stage(5)], ..MapKernel::default() };
    let mut last = None;
    for pair in 0..4 {
        let s = pair % 2;
        let first = k.leaves.len();
        k.leaves.push(column(s, 2 * s + 3, pair as f64));
        k.leaves.push(column(s, 2 * s + 3, pair as f64 + 0.5));
        let mut push = |op, args| {
            k.code.push(Instr { op: InstrOp::Pixel(op), operand: DType::F32, result: DType::F32, args });
            Val::Instr(k.code.len() - 1)
        };
        let v = push(PixelOp::Div, vec![Val::Leaf(first), Val::Leaf(first + 1)]);
        last = Some(last.map_or(v, |l| push(PixelOp::Max, vec![l, v])));
    }
    k.result = last;
    let p = Schedule::new(&k, &[DType::F32]);
    assert_eq!(p.groups.len(), 2);
    assert_eq!(p.slots, 7, "two quotients, four filters, and the quotient being computed");
    let last = p.steps.last().unwrap();
    assert_eq!(last.targets, [Place::Output(0)]);
}
