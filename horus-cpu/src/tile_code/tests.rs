use super::*;
use horus_base::shape::Border;
use horus_plan::ir::kernel::Instr;
use horus_plan::ops::neighbourhood::Filter;
use horus_plan::ops::pixel::PixelOp;

#[test]
fn a_bank_is_used_up_before_the_next_is_evaluated() {
    // max over pairs of column filters, pair by pair; the code first takes one pair of each stage.
    let stage = |n: usize| horus_plan::ir::kernel::RowFilterStage {
        source: FilterSource::Input(0),
        filter: Filter::row(vec![1.0; n]),
        border: Border::Reflect101,
    };
    let column = |s: usize, n: usize, v: f64| Leaf {
        op: LeafOp::Correlate(FilterSource::Stage(s), Filter::column(vec![v; n]), Border::Reflect101),
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
    let p = TileCode::new(&k, &[DType::F32], (Isa::detect().unwrap(), 1));
    assert_eq!(p.groups.len(), 2);
    assert_eq!(p.slots, 7, "two quotients, four filters, and the quotient being computed");
    let last = p.instructions.last().unwrap();
    assert_eq!(last.targets, [ValueStorage::Output(0)]);
}

#[test]
fn a_schedule_is_kept_for_kernels_that_are_equal_bit_by_bit() {
    let scaled = |by: f32, dtype: DType| MapKernel {
        inputs: 1,
        leaves: vec![Leaf { op: LeafOp::Load(0), dtype }],
        code: vec![Instr {
            op: InstrOp::Pixel(PixelOp::Mul),
            operand: dtype,
            result: dtype,
            args: vec![Val::Leaf(0), Val::Const(Scalar::from_f64(dtype, by.into()))],
        }],
        result: Some(Val::Instr(0)),
        ..MapKernel::default()
    };
    let of = |by: f32, dtype: DType| TileCode::of(&scaled(by, dtype), &[dtype], (Isa::detect().unwrap(), 1));
    let (first, negative, double) = (of(0.0, DType::F32), of(-0.0, DType::F32), of(0.0, DType::F64));
    assert!(Arc::ptr_eq(&first, &of(0.0, DType::F32)) && Arc::ptr_eq(&double, &of(0.0, DType::F64)));
    assert_ne!(first.constants[0].bytes(), negative.constants[0].bytes());
    assert_ne!(first.constants[0].len(), double.constants[0].len());
    (1..200).for_each(|k| drop(of(k as f32, DType::F32)));
    assert!(!Arc::ptr_eq(&first, &of(0.0, DType::F32)), "the last ones are kept");
    assert!(TILE_CODE_CACHE.lock().unwrap().0.len() <= TileCodeCache::MOST);
}
