//! The choice of a strategy: which images are copied, and the number of bands.

use std::ops::Range;

use super::Board;
use crate::plan::draft::PlanDraft;
use crate::plan::mapped::{MappedImages, MappingChoice};
use crate::plan::setting::Transfer;
use crate::plan::step::PlanStep;

/// Numbers of bands to consider.
const COUNTS: [u8; 4] = [2, 4, 8, 16];
/// A plan in bands is used if it is predicted to take at most this fraction of the time without bands: a
/// guess of the error of predicted copy times.
const GAIN: f64 = 0.98;
/// Launches that use the host's memory are chosen if they are predicted to take at most this fraction of the
/// time with copies, because their predictions are less accurate: a guess. The choice is then within 3 % of
/// the fastest in 35 of 48 programs and sizes (`docs/performance/model.md`).
const MAPPED_GAIN: f64 = 0.95;

/// The steps of a run in the best predicted number of bands, and a bound of the bytes in use at each step;
/// `None` if the steps stay unchanged.
pub(super) fn cheapest(draft: &PlanDraft<'_>, run: Range<usize>) -> Option<(Vec<PlanStep>, usize)> {
    let transfer = draft.setting.transfer;
    let counts = transfer.bands().map_or(COUNTS.to_vec(), |n| vec![n.get()]);
    let plain = Board::new(draft, run.clone(), MappedImages::none())?;
    let peak = plain.peak(draft.steps[run.clone()].iter().map(|s| s.action));
    let most = draft.used[run.clone()].iter().copied().max().unwrap_or(0);
    let mut best: Option<(Vec<PlanStep>, usize, f64)> = None;
    for way in MappingChoice::considered(transfer) {
        let mapped = MappedImages::found(draft, &run, *way);
        // If no image can be mapped, the strategy reduces to copies.
        let board = match (*way, mapped.is_none()) {
            (MappingChoice::Copied, _) => Board::new(draft, run.clone(), mapped)?,
            (_, true) if transfer == Transfer::Auto => continue,
            (MappingChoice::Both, true) => continue,
            _ => Board::new(draft, run.clone(), mapped)?,
        };
        let in_bands = board.copied > 0.0 && (transfer != Transfer::Auto || board.is_worthwhile());
        let counts = match way {
            MappingChoice::Both => vec![1],
            MappingChoice::Results if transfer.bands().is_none() && in_bands => [&[1], &counts[..]].concat(),
            MappingChoice::Results if transfer.bands().is_none() => vec![1],
            _ if in_bands => counts.clone(),
            _ if board.mapped.is_none() => Vec::new(),
            _ => vec![1],
        };
        let mut tails = if in_bands { board.tails() } else { vec![Vec::new()] };
        if transfer != Transfer::Auto && !board.gathered.is_empty() {
            // Images from other ranks are also sent in bands.
            tails.sort_by_key(Vec::is_empty);
            tails.truncate(tails.iter().filter(|tail| !tail.is_empty()).count().max(1));
        }
        let doubt = if transfer == Transfer::Auto && *way != MappingChoice::Copied { 1.0 / MAPPED_GAIN } else { 1.0 };
        for schedule in counts.iter().flat_map(|n| tails.iter().map(|tail| board.schedule(*n, tail))) {
            let used = most + board.peak(schedule.actions.iter().copied()).saturating_sub(peak);
            let fits = draft.memory.as_ref().is_none_or(|ledger| ledger.holds(used));
            if fits && best.as_ref().is_none_or(|(.., seconds)| schedule.seconds * doubt < *seconds) {
                best = Some((board.steps(&schedule.actions), used, schedule.seconds * doubt));
            }
        }
    }
    let (steps, used, seconds) = best?;
    let gains = || seconds < GAIN * plain.schedule(1, &[]).seconds;
    (transfer != Transfer::Auto || gains()).then_some((steps, used))
}
