//! The oracle of kernels compared with that of operations: random programs, lowered and fused, give
//! the same bits kernel by kernel.
//!
//! Devices are compared with the former launch by launch, and with the latter program by program.

use horus_core::device::Geometry;
use horus_core::dispatch;
use horus_core::ir::graph::{Graph, NodeId};
use horus_core::ir::kernel::{Kernel, MapKernel};
use horus_core::machine::Machine;
use horus_core::optimize::optimize;
use horus_core::shape::{Shape, Window};
use horus_testing::reference::kernel::{HostImage, evaluate};
use horus_testing::reference::{self, ReferenceImage};
use proptest::prelude::*;

use crate::harness::compare;
use crate::programs::config;
use crate::wide::{program, steps};

/// The roots of lowered programs, evaluated kernel by kernel; those that one launch may compute with
/// others, also as it does.
pub(crate) fn by_kernels(kernels: &Graph<Kernel>, sources: &[ReferenceImage]) -> Vec<ReferenceImage> {
    let mut values: Vec<HostImage> = Vec::new();
    for (id, node) in kernels.iter() {
        let geometry = Geometry { shape: node.shape, dtype: node.dtype, window: Window::whole(node.shape.height) };
        let computed = |kernel: &Kernel, inputs: &[HostImage]| {
            let mut value = HostImage::zeroed(geometry);
            match kernel {
                Kernel::Source(v) => value.bytes = sources[v.0 as usize].bytes().to_vec(),
                // Some iterate over the rows of their input.
                kernel if kernel.goes_over_input() => {
                    evaluate(kernel, inputs, &mut value, Window::whole(inputs[0].geometry.shape.height));
                }
                kernel => evaluate(kernel, inputs, &mut value, geometry.window),
            }
            value
        };
        let of = |inputs: &[NodeId]| inputs.iter().map(|i| values[i.0].clone()).collect::<Vec<_>>();
        let value = computed(&node.op, &of(&node.inputs));
        for joined in &kernels.joined {
            let (Kernel::Map(m), Some(k)) = (&joined.op, joined.nodes.iter().position(|n| *n == id)) else { continue };
            let one = MapKernel { result: m.results().nth(k), additional_results: Vec::new(), ..m.clone() };
            let together = computed(&Kernel::Map(one), &of(&joined.inputs));
            assert_eq!(together.difference(&value), None, "{id} together with others");
        }
        values.push(value);
    }
    let image = |value: &HostImage| {
        let Geometry { shape, dtype, .. } = value.geometry;
        dispatch!(dtype.stored(), T => ReferenceImage::new::<T>(shape, bytemuck::pod_collect_to_vec(&value.bytes)))
    };
    kernels.roots.iter().map(|r| image(&values[r.0])).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..config(300) })]

    #[test]
    fn both_oracles_give_the_same_bits_for_random_programs(
        height in 1usize..14,
        width in 1usize..20,
        channels in prop_oneof![3 => Just(1usize), 1 => 2usize..4],
        dtypes in any::<[u8; 2]>(),
        steps in prop_oneof![3 => steps(1..16), 1 => steps(16..61)],
        seed in any::<u64>(),
    ) {
        let p = program(Shape::new(height, width, channels), dtypes.map(usize::from), &steps, seed);
        let want = reference::evaluate(&p.graph, &|v| p.sources[v.0 as usize].clone());
        for fused in [false, true] {
            compare(&format!("fused {fused}"), &p, &want, &mut |p| {
                let machine = Machine::of_default(false);
                by_kernels(&optimize(p.graph.clone(), fused, &machine, &mut |_, _| ()).unwrap(), &p.sources)
            });
        }
    }
}
