//! Random programs: any sequence of operations gives the reference's bits everywhere.

use horus_core::shape::Shape;
use horus_testing::cases::cases;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::harness::{RunConfiguration, conforms};
use crate::random::{RandomStep, program};

/// So many random cases, the same in each run; or others, as many as `HORUS_CASES` says.
pub(crate) fn config(few: u32) -> ProptestConfig {
    let rng_seed = if cases(0) == 0 { RngSeed::Fixed(1) } else { RngSeed::Random };
    ProptestConfig { cases: cases(few), rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

fn choice() -> impl Strategy<Value = RandomStep> {
    (any::<u8>(), any::<u8>(), any::<[u8; 3]>()).prop_map(|(kind, param, reads)| RandomStep { kind, param, reads })
}

proptest! {
    #![proptest_config(ProptestConfig { max_shrink_iters: 0, ..config(crate::RANDOM_PROGRAMS) })]

    #[test]
    fn random_programs_give_the_same_bits_everywhere(
        height in 1usize..24,
        width in 1usize..40,
        steps in prop::collection::vec(choice(), 1..14),
        seed in any::<u64>(),
        places in any::<[u8; 4]>(),
    ) {
        let p = program(Shape::new(height, width, 1), &steps, seed);
        let all = RunConfiguration::all();
        conforms(&p, &places.map(|place| all[usize::from(place) % all.len()]), "random program");
    }
}
