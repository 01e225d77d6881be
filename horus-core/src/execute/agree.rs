//! Checks that all ranks are about to make the same evaluation, with the same communication.

use std::hash::{Hash, Hasher};

use crate::comm::Communicator;
use crate::comm::agree::{Claim, agree, claim};
use crate::digest::Digest;
use crate::error::Result;
use crate::ir::graph::{Graph, Op, ValueId};
use crate::plan::{Activity, Plan, ResultDelivery};

/// Checks that every rank is about to evaluate the same graph with the same communication. `pixels` returns the digest
/// of an image that every rank was given, if it is known; the digests must be equal, too.
///
/// # Errors
/// As [`agree`], naming the first operation that differs.
pub(crate) fn agree_on_plan(
    comm: &dyn Communicator,
    graph: &Graph<Op>,
    wants: &[ResultDelivery],
    plan: &Plan,
    pixels: &dyn Fn(ValueId) -> Option<u64>,
) -> Result<()> {
    if comm.size() == 1 {
        return Ok(());
    }
    let mut all = Digest::default();
    each((graph, pixels), wants, plan, &mut |digest, _| all.word(digest));
    agree(comm, all.finish(), || {
        let mut claims = vec![claim("an evaluation", &())];
        each((graph, pixels), wants, plan, &mut |digest, text| claims.push(Claim { digest, text: text() }));
        claims
    })
}

/// Visits everything that ranks must agree on: first the operations, then the steps in which ranks communicate.
fn each(
    (graph, pixels): (&Graph<Op>, &dyn Fn(ValueId) -> Option<u64>),
    wants: &[ResultDelivery],
    plan: &Plan,
    visit: &mut dyn FnMut(u64, &dyn Fn() -> String),
) {
    let mut wanted = vec![Vec::new(); graph.nodes.len()];
    graph.roots.iter().zip(wants).for_each(|(root, want)| wanted[root.0].push(*want as u8));
    for (id, node) in graph.iter() {
        let given = if let Op::Source(value) = node.op { pixels(value) } else { None };
        let mut d = Digest::default();
        (&node.op, &node.inputs, node.shape, node.dtype, &wanted[id.0], given).hash(&mut d);
        visit(d.finish(), &|| {
            let inputs: Vec<String> = node.inputs.iter().map(ToString::to_string).collect();
            let wanted = if wanted[id.0].is_empty() { "" } else { ", a result," };
            let (op, shape, dtype) = (node.op.name(), node.shape, node.dtype);
            let given = given.map_or(String::new(), |sum| format!(", pixels of the sum {sum:016x},"));
            format!("{id} = {op} ({}) : {shape} {dtype}{wanted}{given} recorded at {}", inputs.join(", "), node.site)
        });
    }
    for step in plan.steps.iter().filter(|s| s.action.activity() == Activity::Communication) {
        let mut d = Digest::default();
        let text = || plan.describe(&step.action).split_whitespace().collect::<Vec<_>>().join(" ");
        text().hash(&mut d);
        visit(d.finish(), &text);
    }
    let mut d = Digest::default();
    plan.setting.partition.hash(&mut d);
    visit(d.finish(), &|| format!("rows divided as {}", plan.setting.partition));
    visit(plan.setting.machine.digest(), &|| format!("machines predicted by {}", plan.setting.machine));
}
