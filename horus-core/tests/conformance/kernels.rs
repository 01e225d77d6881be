//! The oracle of kernels compared with that of operations: random programs, lowered and fused, give
//! the same bits kernel by kernel.
//!
//! Devices are compared with the former launch by launch, and with the latter program by program.

use horus_core::device::Geometry;
use horus_core::ir::kernel::Kernel;
use horus_core::machine::Machine;
use horus_core::optimize::optimize;
use horus_core::shape::{Shape, Window};
use horus_testing::reference::kernel::{HostImage, evaluate};
use horus_testing::reference::{self, Image};
use proptest::prelude::*;

use crate::draw;
use crate::harness::Program;
use crate::wide::{program, steps};

/// The program's roots, evaluated kernel by kernel.
fn by_kernels(program: &Program, fused: bool) -> Vec<HostImage> {
    let kernels = optimize(program.graph.clone(), fused, &Machine::of_default(false), &mut |_, _| ()).unwrap();
    let mut values: Vec<HostImage> = Vec::new();
    for (_, node) in kernels.iter() {
        let geometry = Geometry { shape: node.shape, dtype: node.dtype, window: Window::whole(node.shape.height) };
        let mut value = HostImage::zeroed(geometry);
        let inputs: Vec<HostImage> = node.inputs.iter().map(|i| values[i.0].clone()).collect();
        match &node.op {
            Kernel::Source(v) => value.bytes = program.sources[v.0 as usize].bytes().to_vec(),
            // Some iterate over the rows of their input.
            kernel if kernel.goes_over_input() => {
                evaluate(kernel, &inputs, &mut value, Window::whole(inputs[0].geometry.shape.height));
            }
            kernel => evaluate(kernel, &inputs, &mut value, geometry.window),
        }
        values.push(value);
    }
    kernels.roots.iter().map(|r| values[r.0].clone()).collect()
}

fn held(image: &Image) -> HostImage {
    let geometry = Geometry { shape: image.shape, dtype: image.dtype(), window: Window::whole(image.shape.height) };
    HostImage { geometry, bytes: image.bytes().to_vec() }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: draw::cases(300), failure_persistence: None, ..ProptestConfig::default()
    })]

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
            for (k, (got, want)) in by_kernels(&p, fused).iter().zip(&want).enumerate() {
                let want = held(want);
                prop_assert_eq!(got.geometry, want.geometry);
                let difference = got.difference(&want);
                prop_assert!(difference.is_none(), "root {}, fused {}: {:?}\n{}", k, fused, difference, p.graph);
            }
        }
    }
}
