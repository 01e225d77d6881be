//! Random programs: any sequence of operations gives the reference's bits everywhere.

use horus_core::shape::Shape;
use proptest::prelude::*;

use crate::harness::{Place, conforms};
use crate::random::{Choice, program};

fn choice() -> impl Strategy<Value = Choice> {
    (any::<u8>(), any::<u8>(), any::<[u8; 3]>()).prop_map(|(kind, param, reads)| Choice { kind, param, reads })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: crate::draw::cases(crate::RANDOM_PROGRAMS), failure_persistence: None, max_shrink_iters: 0, ..ProptestConfig::default() })]

    #[test]
    fn random_programs_give_the_same_bits_everywhere(
        height in 1usize..24,
        width in 1usize..40,
        steps in prop::collection::vec(choice(), 1..14),
        seed in any::<u64>(),
    ) {
        let p = program(Shape::new(height, width, 1), &steps, seed);
        conforms(&p, &Place::all(), "random program");
    }
}
