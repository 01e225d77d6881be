//! Delivery: brings results to their requesters.

use super::draft::PlanDraft;
use super::setting::ResultDelivery;
use super::state::{Halo, ImageState, Placement, StateEvent};
use super::step::{Action, Band, ComputedRows};
use crate::ir::graph::NodeId;
use crate::machine::HostSide;

/// The pass: delivers each result as wanted.
pub(super) fn deliver(draft: &mut PlanDraft<'_>) {
    let (graph, wants) = (draft.graph, draft.wants);
    let results: Vec<_> = graph.roots.iter().copied().zip(wants.iter().copied()).collect();
    for (i, (root, want)) in results.iter().enumerate() {
        // Two results may be the same node.
        if !results[..i].contains(&(*root, *want)) {
            bring(draft, *root, *want);
        }
    }
}

fn bring(draft: &mut PlanDraft<'_>, root: NodeId, want: ResultDelivery) {
    if want == ResultDelivery::Keep {
        return;
    }
    let ImageState { residency, placement } = draft.state(root);
    if want == ResultDelivery::Requester && !residency.host() {
        let sent = Action::Send { node: root, band: Band::WHOLE };
        draft.step(sent, "the result is wanted by somebody who waits for it");
        return;
    }
    let in_strips = matches!(placement, Placement::Strips(_));
    if want == ResultDelivery::Root && in_strips && !residency.host() && meets_on_device(draft, root) {
        let gathered = Action::Gather { node: root, band: Band::WHOLE, direct: true };
        // The gathered image and the packed messages stay until the image has been sent.
        let bytes = draft.bytes_as(root, ComputedRows::All) + draft.scratch(root, gathered);
        draft.hold_temp(bytes, root, root);
        draft.step(gathered, "rank 0 wants the result, and devices are connected");
        draft.step(Action::Send { node: root, band: Band::WHOLE }, "rank 0 wants the result");
        return;
    }
    if want == ResultDelivery::Everyone && in_strips && !residency.host() {
        // A copy from each device to its own host is faster than messages between hosts.
        let sent = Action::Replicate { node: root, direct: true };
        if draft.between_devices(root, root, draft.bytes_as(root, ComputedRows::All), sent) {
            draft.step(sent, "every rank wants the result");
            draft.placed(root, Placement::Replicated, true);
        }
    }
    draft.bring_to_host(root, "the result is wanted on the host");
    let placement = draft.state(root).placement;
    match (want, placement) {
        (ResultDelivery::Everyone, Placement::On(_) | Placement::Strips(_)) => {
            draft.step(Action::Replicate { node: root, direct: false }, "every rank wants the result");
            draft.event(root, StateEvent::Placed(Placement::Replicated));
            draft.step(Action::Deliver(root), "");
        }
        (ResultDelivery::Root, Placement::Strips(_)) => {
            let gathered = Action::Gather { node: root, band: Band::WHOLE, direct: false };
            draft.step(gathered, "rank 0 wants the result");
        }
        _ => draft.step(Action::Deliver(root), ""),
    }
}

/// Returns `true` if it is predicted to be faster to gather strips that are on devices only on rank 0's
/// device than on its host: one copy to the host replaces one copy per rank and messages between hosts. No
/// image may have to leave the device for it.
fn meets_on_device(draft: &PlanDraft<'_>, root: NodeId) -> bool {
    let setting = draft.setting;
    if !setting.direct || setting.unified || draft.naive() {
        return false;
    }
    let gathered = |direct| Action::Gather { node: root, band: Band::WHOLE, direct };
    let (whole, strip) =
        (draft.bytes_as(root, ComputedRows::All), draft.bytes_as(root, ComputedRows::Strip(Halo::NONE)));
    let meeting = |direct| draft.traffic_over(setting.machine.link(direct), gathered(direct), None).time;
    let by_device = meeting(true) + setting.machine.of(0).download(whole, HostSide::Pinned);
    // A result gathered on the host is copied once more, to its final place.
    let copied = setting.machine.of(0).host_copy(whole);
    let by_host = setting.machine.slowest(|m| m.download(strip, HostSide::Staged)) + meeting(false) + copied;
    by_device < by_host && draft.fits_now(whole + draft.scratch(root, gathered(true)))
}
