//! How much may be done to decide about the candidates of a dispatch.

use crate::check::slice::MAX_EFFORT_OF_CANDIDATE;

/// The most pairs of accesses that are decided for a candidate.
pub(super) const MAX_PAIRS: usize = 4096;

/// The most pairs that are looked at, most of which conflict with nothing, are not asked for, or are ordered by a
/// barrier.
pub(super) const MAX_LOOKS: usize = 1 << 24;

/// The most effort for all candidates of a dispatch, in nodes of paths.
const MAX_EFFORT: usize = 4 * MAX_EFFORT_OF_CANDIDATE;

/// The most for all slices for repairs of a dispatch: races that come later are explained by what decides.
const MAX_FOR_REPAIR: usize = MAX_EFFORT_OF_CANDIDATE / 4;

/// Remaining budget of a dispatch's verdicts.
#[derive(Clone, Copy, Debug)]
pub(in crate::check) struct VerdictBudget {
    /// Nodes of paths.
    pub(super) effort: usize,
    /// Those of them that slices for repairs may take.
    pub(super) for_repair: usize,
    /// Pairs of accesses that the search for further races looks at.
    looks: usize,
    /// Pairs that it decides.
    decisions: usize,
}

impl Default for VerdictBudget {
    fn default() -> Self {
        Self { effort: MAX_EFFORT, for_repair: MAX_FOR_REPAIR, looks: MAX_LOOKS, decisions: 4 * MAX_PAIRS }
    }
}

impl VerdictBudget {
    /// For trials of repairs that may do so much work.
    pub(in crate::check) fn within(work: u64) -> Self {
        let all = Self::default();
        Self { effort: all.effort.min(usize::try_from(work).unwrap_or(usize::MAX)), ..all }
    }

    /// How much of the work was done.
    pub(in crate::check) fn spent(&self, work: u64) -> u64 {
        (Self::within(work).effort - self.effort) as u64
    }

    /// The effort for a candidate: a part of what is left, so that there is some for the last one.
    pub(super) fn take_effort(&mut self) -> usize {
        let effort = MAX_EFFORT_OF_CANDIDATE.min(self.effort / 4);
        self.effort -= effort;
        effort
    }

    /// A part of what is left for the search for further races.
    pub(in crate::check) fn at_most(&self, looks: usize, decisions: usize) -> Self {
        Self { effort: 0, for_repair: 0, looks: self.looks.min(looks), decisions: self.decisions.min(decisions) }
    }

    /// Takes what the search did not leave of that part.
    pub(in crate::check) fn take(&mut self, part: Self, left: Self) {
        self.looks -= part.looks - left.looks;
        self.decisions -= part.decisions - left.decisions;
    }

    pub(in crate::check) fn can_decide(&self) -> bool {
        self.decisions > 0
    }

    pub(in crate::check) fn look(&mut self) -> bool {
        self.looks.checked_sub(1).inspect(|left| self.looks = *left).is_some()
    }

    pub(in crate::check) fn decide(&mut self) -> bool {
        self.decisions.checked_sub(1).inspect(|left| self.decisions = *left).is_some()
    }
}
