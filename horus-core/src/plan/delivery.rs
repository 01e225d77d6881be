//! Results: what brings them to those who want them.

use super::draft::Draft;
use super::setting::Want;
use super::state::{Event, Placement, State};
use super::step::{Action, Band, Rows};
use crate::ir::graph::NodeId;

/// The pass: brings each result to where it is wanted.
pub(super) fn deliver(draft: &mut Draft<'_>) {
    let (graph, wants) = (draft.graph, draft.wants);
    graph.roots.iter().zip(wants).for_each(|(root, want)| bring(draft, *root, *want));
}

fn bring(draft: &mut Draft<'_>, root: NodeId, want: Want) {
    if want == Want::Keep {
        return;
    }
    let State { residency, placement } = draft.state(root);
    if want == Want::Handed && !residency.host() {
        let sent = Action::Send { node: root, band: Band::WHOLE };
        // Two results may have become one.
        if !draft.steps.iter().any(|s| s.action == sent) {
            draft.step(sent, "the result is wanted by somebody who waits for it");
        }
        return;
    }
    let in_strips = matches!(placement, Placement::Strips(_));
    if want == Want::Everyone && in_strips && !residency.host() {
        // Each device's own copy to its host is faster than messages between hosts.
        let sent = Action::Replicate { node: root, direct: true };
        if draft.between_devices(root, root, draft.bytes_as(root, Rows::All), sent) {
            draft.step(sent, "every rank wants the result");
            draft.placed(root, Placement::Replicated, true);
        }
    }
    draft.bring_to_host(root, "the result is wanted on the host");
    let placement = draft.state(root).placement;
    match (want, placement) {
        (Want::Everyone, Placement::Root | Placement::Strips(_)) => {
            draft.step(Action::Replicate { node: root, direct: false }, "every rank wants the result");
            draft.event(root, Event::Placed(Placement::Replicated));
            draft.step(Action::Deliver(root), "");
        }
        (Want::Root, Placement::Strips(_)) => draft.step(Action::Gather(root), "rank 0 wants the result"),
        _ => draft.step(Action::Deliver(root), ""),
    }
}
