//! The check of plans in bands notices every missing wait, for any program and machine.

use std::cell::Cell;
use std::num::NonZeroU8;
use std::sync::Arc;

use horus_core::machine::Machine;
use horus_core::plan::partition::Partition;
use horus_core::plan::verify::verify;
use horus_core::plan::{Action, LaunchPart, Mode, Plan, Queue, Setting, Transfer};
use horus_core::shape::Shape;
use horus_testing::cases::cases;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

use crate::harness::{RunConfiguration, planned_for};
use crate::machines::{choice, drawn};
use crate::programs::config;
use crate::random::program;

/// The steps that are done when step `i` begins, according to the plan's order and its waits only.
/// Uploads are in order with each other, and so are results on their way to the host, and so is
/// everything else.
fn before(plan: &Plan, i: usize) -> Vec<bool> {
    let line = |step: usize| match plan.steps[step].action.queue() {
        Queue::Upload => 0,
        Queue::Download => 1,
        Queue::Host | Queue::Compute | Queue::Network => 2,
    };
    let mut over = vec![false; plan.steps.len()];
    let mut left = vec![i];
    while let Some(step) = left.pop() {
        let previous = (0..step).rev().find(|j| line(*j) == line(step));
        for &j in previous.iter().chain(&plan.steps[step].waits) {
            if !std::mem::replace(&mut over[j], true) {
                left.push(j);
            }
        }
    }
    over
}

/// Returns `true` if anything is split into bands.
fn in_bands(plan: &Plan) -> bool {
    plan.steps.iter().any(|s| match s.action {
        Action::Upload { band, .. } | Action::Send { band, .. } => !band.is_whole(),
        Action::Launch { part, .. } => matches!(part, LaunchPart::Band(band) if !band.is_whole()),
        _ => false,
    })
}

/// Removes every wait in turn. The rest must be refused, as the planner adds no redundant wait.
fn each_wait_is_needed(whole: &Plan) -> TestCaseResult {
    verify(whole).unwrap_or_else(|e| panic!("{e}\n{whole}"));
    let mut broken = whole.clone();
    for (i, step) in whole.steps.iter().enumerate() {
        for (k, wait) in step.waits.iter().enumerate() {
            broken.steps[i].waits.remove(k);
            let implied = before(&broken, i)[*wait];
            let caught = verify(&broken);
            prop_assert!(
                !implied,
                "step {i} waits for {wait}, which is over anyway; the check says {caught:?}\n{whole}"
            );
            match caught {
                Ok(()) => prop_assert!(false, "that step {i} does not wait for {wait} goes unnoticed\n{whole}"),
                Err(e) => prop_assert!(e.to_string().contains("does not wait for step"), "{e}\n{whole}"),
            }
            broken.steps[i].waits.insert(k, *wait);
        }
    }
    Ok(())
}

/// The place of a plan: ranks, connected devices, sources on rank 0, overlap of launches with
/// exchanges.
fn place() -> impl Strategy<Value = RunConfiguration> {
    let mode = prop_oneof![1 => Just(Mode::Lazy), 2 => Just(Mode::Fused)];
    let ranks = prop_oneof![2 => Just(1usize), 1 => 2usize..=4];
    (ranks, mode, any::<[bool; 3]>(), 2u8..=64).prop_map(|(ranks, mode, [direct, overlap, from_root], bands)| {
        let several = ranks > 1;
        let (direct, from_root) = (direct && several, from_root && several);
        RunConfiguration { ranks, mode, separate: true, direct, overlap, from_root, bands: Some(bands) }
    })
}

#[test]
fn no_wait_of_a_random_plan_in_bands_can_be_left_out() {
    let wanted = cases(1000);
    let config = ProptestConfig { max_global_rejects: 4 * wanted, ..config(wanted) };
    let powers = prop::collection::vec(prop::collection::vec(-4i8..=4, 16..33), 1..4);
    let steps = prop::collection::vec(choice(), 1..16);
    // Capacity of the device in images, if bounded.
    let capacity = prop::option::weighted(0.3, 4usize..12);
    let (several, waits) = (Cell::new(0), Cell::new(0));
    let (height, width) = (1usize..200, 1usize..6);
    TestRunner::new(config)
        .run(&(height, width, steps, any::<u64>(), powers, place(), capacity), |drawn_values| {
            let (height, width, steps, seed, powers, place, capacity) = drawn_values;
            let shape = Shape::new(height, width, 1);
            let program = program(shape, &steps, seed);
            let machine = Machine::of_ranks(powers.iter().map(|p| drawn(p)).zip([0, 0, 1]).collect());
            let setting = Setting {
                transfer: Transfer::Streams(place.bands.and_then(NonZeroU8::new)),
                direct: place.direct,
                overlap: place.overlap,
                mode: place.mode,
                capacity: capacity.map(|images| images * shape.area() * 4),
                machine: Arc::new(machine),
                ..Setting::of(Partition::equal(place.ranks), false)
            };
            let plan = planned_for(&program, place, &setting);
            prop_assume!(in_bands(&plan));
            several.set(several.get() + u32::from(place.ranks > 1));
            waits.set(waits.get() + plan.steps.iter().map(|s| s.waits.len()).sum::<usize>());
            each_wait_is_needed(&plan)
        })
        .unwrap_or_else(|e| panic!("{e}"));
    // Otherwise this test does not cover its subject.
    let (several, waits) = (several.get(), waits.get());
    assert!(several >= wanted / 10, "only {several} of {wanted} plans are for several ranks");
    assert!(waits >= 4 * wanted as usize, "{wanted} plans have {waits} waits");
}
