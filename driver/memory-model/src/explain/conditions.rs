//! The conditions under which two accesses do not race, in the order of the appendix.

use std::collections::VecDeque;

use super::{LocationOrderCondition, MissingRequirement, Outside, Reason, Step};
use crate::event::{Action, Domain, Operation, Scope};
use crate::relation::Relation;
use crate::relations::{DOMAINS, Layer, Paths, Source, release_sequences};
use crate::row::Row;
use crate::slice::Slice;

/// A condition, whether it holds, and why.
type CheckedCondition = (LocationOrderCondition, bool, Reason);

impl Slice<'_> {
    fn operation(&self, event: usize) -> &Operation {
        self.trace.operation(event)
    }

    fn writes(&self, event: usize) -> bool {
        self.frame.sets.writes.contains(event)
    }

    fn before(&self, a: usize, b: usize) -> bool {
        self.order.happens_before.contains(a, b)
    }

    /// The pair in the order in which it is explained: first the access that is location-ordered before the other, or
    /// else happens before it, or else is the one that it reads from, or else is almost ordered before it, or else is a
    /// write.
    pub(super) fn sorted(&self, (a, b): (usize, usize)) -> (usize, usize) {
        let reads = |a: usize, b: usize| self.choice.sources[b] == Some(Source::Write(a));
        let almost = |a: usize, b: usize| self.almost_ordered(a, b) != Reason::Unrelated;
        let is_first = |a: usize, b: usize| {
            let comes = |before: &dyn Fn(usize, usize) -> bool| (before(a, b) != before(b, a)).then(|| before(a, b));
            comes(&|a, b| self.order.location_order.contains(a, b))
                .or_else(|| comes(&|a, b| self.before(a, b)))
                .or_else(|| comes(&reads))
                .or_else(|| comes(&almost))
        };
        if is_first(a, b).unwrap_or_else(|| self.writes(a)) { (a, b) } else { (b, a) }
    }

    /// The conditions for a pair that [`Slice::sorted`] gave.
    pub(super) fn conditions(&self, first: usize, second: usize) -> Vec<CheckedCondition> {
        let mut found = self.all_conditions(first, second);
        // Not all cases of location order need all conditions: the accesses of one agent may be private.
        if self.order.location_order.contains(first, second) {
            found.retain(|condition| condition.1);
        }
        found
    }

    fn all_conditions(&self, first: usize, second: usize) -> Vec<CheckedCondition> {
        let mut found = Vec::new();
        if self.frame.sets.atomics.contains(first) && self.frame.sets.atomics.contains(second) {
            if self.frame.mutual.contains(first, second) {
                return vec![(LocationOrderCondition::MutuallyOrdered, true, Reason::OneReference)];
            }
            found.push((
                LocationOrderCondition::MutuallyOrdered,
                false,
                Reason::NotMutual(self.not_mutual(first, second)),
            ));
        }
        found.push(self.ordered(first, second));
        let system = self.frame.system.contains(first, second);
        if system && !self.writes(first) {
            return found;
        }
        if system {
            let reason = self.by_the_api(first, second);
            let holds = self.order.location_order.contains(first, second) && matches!(reason, Reason::Path(_));
            found.push((LocationOrderCondition::ByTheApi, holds, reason));
            if holds {
                return found;
            }
        }
        found.push(self.non_private(first, second));
        if self.writes(first) {
            let one = self.frame.same_reference.contains(first, second);
            let reason = if one { Reason::OneReference } else { Reason::TwoReferences };
            found.push((LocationOrderCondition::SameReference, one, reason));
            let paths = self.frame.paths_in(self.layer(first, second), &self.order.happens_before);
            found.push(self.available(&paths, first, second));
            if !self.writes(second) {
                found.push(self.visible(&paths, first, second));
            }
        }
        found
    }

    /// The layer (part of the partition of locations) with common bytes of the pair that are not ordered, or any.
    fn layer(&self, first: usize, second: usize) -> &Layer<u128> {
        let layers = &self.frame.layers;
        let open = layers
            .iter()
            .zip(self.order.layers())
            .find(|(layer, order)| layer.same_location.contains(first, second) && !order.contains(first, second));
        open.map_or(&layers[0], |open| open.0)
    }

    /// Why two atomics are not mutually ordered. That is not a condition of location order, but would also prevent the
    /// race.
    fn not_mutual(&self, a: usize, b: usize) -> MissingRequirement {
        if self.frame.same_reference.contains(a, b) { self.scope_gap(a, b) } else { MissingRequirement::References }
    }

    /// Why the scopes or locations of two operations of one reference keep them from synchronizing.
    fn scope_gap(&self, a: usize, b: usize) -> MissingRequirement {
        let outside = |event: usize, of: usize| {
            let scope = self.operation(of).scope.unwrap_or(Scope::Invocation);
            (!self.trace.shares(of, event, scope)).then_some(Outside { event, of, scope })
        };
        let outside: Vec<_> = [outside(b, a), outside(a, b)].into_iter().flatten().collect();
        let domain = |event: usize| Domain::of(self.trace.agent(event));
        match outside[..] {
            [] if domain(a) != domain(b) => MissingRequirement::HostAndDevice,
            [] => MissingRequirement::Bytes,
            _ => MissingRequirement::Scope(outside),
        }
    }

    fn ordered(&self, first: usize, second: usize) -> CheckedCondition {
        let path = self.path(first, second);
        let holds = path.is_some();
        (LocationOrderCondition::Ordered, holds, path.map_or_else(|| self.almost_ordered(first, second), Reason::Path))
    }

    /// The shortest path from `first` to `second` in program order or in inter-thread-happens-before of one set of
    /// classes.
    fn path(&self, first: usize, second: usize) -> Option<Vec<(Step, usize)>> {
        if self.frame.program_order.contains(first, second) {
            return Some(vec![(Step::ProgramOrder, second)]);
        }
        let synchronizes_with = &self.order.synchronizes_with;
        let host_order = self.frame.host_order(synchronizes_with);
        let paths = self.frame.class_sets.iter().filter_map(|set| {
            let edges = synchronizes_with.clone().from(&set.ordered).to(&set.ordered).or(&set.fixed);
            shortest(&edges.or(&host_order), first, second)
        });
        let path = paths.min_by_key(Vec::len).or_else(|| {
            // Other paths exist only if the model takes happens-before to be transitive.
            self.before(first, second).then(|| shortest(&self.order.happens_before, first, second))?
        })?;
        let step = |step: &[usize]| {
            let kind = if self.frame.program_order.contains(step[0], step[1]) {
                Step::ProgramOrder
            } else if synchronizes_with.contains(step[0], step[1]) {
                Step::SynchronizesWith
            } else if self.frame.system.contains(step[0], step[1]) {
                Step::System
            } else {
                Step::Host
            };
            (kind, step[1])
        };
        Some(path.windows(2).map(step).collect())
    }

    /// The synchronization that almost orders `first` before `second`, and what it lacks: of the agents of the two, or
    /// else of others between them.
    fn almost_ordered(&self, first: usize, second: usize) -> Reason {
        let po = |a: usize, b: usize| a == b || self.frame.program_order.contains(a, b);
        let reached = |a: usize, b: usize| po(a, b) || self.before(a, b);
        let directly =
            self.almost_by_atomics(first, second, &po).or_else(|| self.almost_by_barriers(first, second, &po));
        let by_others = || {
            let atomics = self.almost_by_atomics(first, second, &reached);
            let barriers = || self.almost_by_barriers(first, second, &reached);
            // If two barriers lack nothing themselves, the order does not break at them.
            atomics.or_else(|| {
                barriers().filter(|reason| {
                    !matches!(reason, Reason::ControlBarriers { lacks: MissingRequirement::NotContinued, .. })
                })
            })
        };
        directly.or_else(by_others).unwrap_or(Reason::Unrelated)
    }

    /// An atomic that `reach`es `second` and reads from one that `first` reaches, or from a read-modify-write that
    /// continues its release sequence; and what the two lack.
    fn almost_by_atomics(&self, first: usize, second: usize, reach: &dyn Fn(usize, usize) -> bool) -> Option<Reason> {
        let lacks = |write: usize, source: usize, read: usize| {
            let atomics = &self.frame.sets.atomics;
            let relevant = reach(first, write) && reach(read, second) && write != first && read != second;
            let lacks = (relevant && atomics.contains(write) && atomics.contains(read))
                .then(|| self.not_passed(first, (write, source), read))??;
            Some(Reason::ReadsFrom { read, write, lacks })
        };
        let sources = || {
            self.choice.sources.iter().enumerate().filter_map(|(read, source)| match *source {
                Some(Source::Write(write)) => Some((read, write)),
                _ => None,
            })
        };
        sources().find_map(|(read, source)| lacks(source, source, read)).or_else(|| {
            let sequences = release_sequences(&self.frame, &self.choice.modification_order);
            let heads = |source| (0..self.frame.n).filter(move |&head| head != source);
            sources().find_map(|(read, source)| {
                heads(source)
                    .filter(|&head| sequences.contains(head, source))
                    .find_map(|head| lacks(head, source, read))
            })
        })
    }

    /// Control barriers that wait for each other, one of which `first` `reach`es, and the other one `second`; and what
    /// the two lack.
    fn almost_by_barriers(&self, first: usize, second: usize, reach: &dyn Fn(usize, usize) -> bool) -> Option<Reason> {
        let po = |a: usize, b: usize| a == b || self.frame.program_order.contains(a, b);
        let together = |a: usize, b: usize| {
            let instance = |event: usize| self.trace.events[event].instance;
            a != b && instance(a).is_some() && instance(a) == instance(b)
        };
        let barriers = || self.frame.sets.control_barriers.iter();
        let mut pairs = barriers().flat_map(|a| barriers().map(move |b| (a, b)));
        let (left, right) = pairs.find(|&(a, b)| together(a, b) && reach(first, a) && reach(b, second))?;
        let fences = &self.frame.sets.fences;
        let releases = fences.and(&self.frame.sets.releases);
        let acquires = fences.and(&self.frame.sets.acquires);
        let release = releases.iter().find(|&fence| reach(first, fence) && po(fence, left));
        let acquire = acquires.iter().find(|&fence| po(right, fence) && reach(fence, second));
        let lacks = match (release, acquire) {
            (None, _) => MissingRequirement::NothingReleases,
            (_, None) => MissingRequirement::NothingAcquires,
            (Some(release), Some(acquire)) => {
                let class = self.lacks_class(first, release).or(self.lacks_class(first, acquire));
                let scope =
                    || (!self.frame.in_scope.contains(release, acquire)).then(|| self.scope_gap(release, acquire));
                let execution = || self.not_waiting(left, right);
                class.or_else(scope).or_else(execution).unwrap_or(MissingRequirement::NotContinued)
            }
        };
        Some(Reason::ControlBarriers { left, right, lacks })
    }

    /// The class of the access `of`, if the semantics of `event` lack it.
    fn lacks_class(&self, of: usize, event: usize) -> Option<MissingRequirement> {
        let class = self.operation(of).access()?.class;
        (!self.operation(event).semantics.contains(class)).then_some(MissingRequirement::Class(event, class))
    }

    /// The control barriers that are not in the other one's execution scope.
    fn not_waiting(&self, left: usize, right: usize) -> Option<MissingRequirement> {
        let outside = |event: usize, of: usize| match self.operation(of).action {
            Action::ControlBarrier { execution } if !self.trace.shares(of, event, execution) => {
                Some(Outside { event, of, scope: execution })
            }
            _ => None,
        };
        let outside: Vec<_> = [outside(right, left), outside(left, right)].into_iter().flatten().collect();
        (!outside.is_empty()).then_some(MissingRequirement::Scope(outside))
    }

    /// Why the atomic `read`, which reads from `source` in the release sequence of `write`, does not pass on what
    /// precedes `write`; `None` if it does.
    fn not_passed(&self, first: usize, (write, source): (usize, usize), read: usize) -> Option<MissingRequirement> {
        if !self.frame.mutual.contains(source, read) {
            return Some(self.not_mutual(source, read));
        }
        let releases = (0..self.frame.n).find(|&event| self.frame.carried_by.contains(event, write));
        let acquires = self.frame.serves.row(read).iter().next();
        let (Some(release), Some(acquire)) = (releases, acquires) else {
            return Some(if releases.is_none() {
                MissingRequirement::NoRelease(write)
            } else {
                MissingRequirement::NoAcquire(read)
            });
        };
        let class = self.lacks_class(first, release).or(self.lacks_class(first, acquire));
        let scope = || (!self.frame.in_scope.contains(release, acquire)).then(|| self.scope_gap(release, acquire));
        class.or_else(scope)
    }

    /// Which operation of the API is missing, or the path through those that make the order.
    fn by_the_api(&self, first: usize, second: usize) -> Reason {
        let sets = &self.frame.sets;
        let [from, to] = [first, second].map(|event| usize::from(sets.by_domain[1].contains(event)));
        let domains = [Domain::Device, Domain::Host];
        let between = |set: &u128, after: usize| {
            let inside = move |event: &usize| self.before(after, *event) && self.before(*event, second);
            set.iter().filter(inside).collect::<Vec<_>>()
        };
        let layer = self.layer(first, second);
        let covers = |by: &usize| layer.availability_covers.contains(first, *by);
        let available: Vec<_> = between(&sets.api_available[from], first).into_iter().filter(covers).collect();
        let arrived: Vec<_> = if from == to {
            available.clone()
        } else {
            available.iter().flat_map(|&by| between(&sets.transfers[from], by)).collect()
        };
        let Some(&by) = available.first() else { return Reason::ApiNotAvailable(domains[from]) };
        let Some(&there) = arrived.first() else {
            return Reason::ApiNotTransferred { by, from: domains[from], to: domains[to] };
        };
        let visible = arrived.iter().flat_map(|&there| between(&sets.api_visible[to], there));
        let mut visible = visible.filter(|by| layer.visibility_covers.contains(*by, second));
        let seen = visible.next();
        if seen.is_some() || self.order.location_order.contains(first, second) {
            let steps = [Some(by), Some(there).filter(|there| *there != by), seen, Some(second)];
            return Reason::Path(steps.into_iter().flatten().map(|event| (Step::System, event)).collect());
        }
        Reason::ApiNotVisible { by: there, domain: domains[to] }
    }

    fn non_private(&self, first: usize, second: usize) -> CheckedCondition {
        let private: Vec<_> =
            [first, second].into_iter().filter(|&event| !self.frame.sets.non_private.contains(event)).collect();
        let holds = private.is_empty();
        (
            LocationOrderCondition::NonPrivate,
            holds,
            if holds { Reason::BothNonPrivate } else { Reason::Private(private) },
        )
    }

    /// Index of the narrowest domain that both agents share.
    fn common(&self, first: usize, second: usize) -> usize {
        (0..DOMAINS.len()).find(|&at| self.frame.shares[at].contains(first, second)).unwrap_or(DOMAINS.len() - 1)
    }

    fn available(&self, paths: &Paths<u128>, first: usize, second: usize) -> CheckedCondition {
        let common = self.common(first, second);
        let by = |at: usize| paths.available[at].row(first).iter();
        // If the second access is a read, the operation that makes memory visible to it may be what orders it after
        // the event: see `visible`.
        let in_time = |&event: &usize| {
            let seen = |at: usize| {
                (0..self.frame.n).any(|to| paths.visible[at].contains(to, second) && self.before(event, to))
            };
            self.before(event, second) || !self.writes(second) && (common..DOMAINS.len()).any(seen)
        };
        let wide: Vec<_> = (common..DOMAINS.len()).flat_map(|at| by(at).map(move |event| (at, event))).collect();
        let best = wide.iter().find(|(_, event)| in_time(event)).or(wide.first()).copied();
        let reason = match best {
            Some((at, event)) if in_time(&event) => {
                return (LocationOrderCondition::Available, true, Reason::AvailableBy(event, DOMAINS[at]));
            }
            Some((_, event)) => Reason::AvailableTooLate(event),
            None => match (0..common).rev().find_map(|at| Some((at, by(at).next()?))) {
                Some((at, by)) => Reason::AvailableOnlyTo { by, to: DOMAINS[at], needed: DOMAINS[common] },
                None => Reason::NotAvailable(DOMAINS[common]),
            },
        };
        (LocationOrderCondition::Available, false, reason)
    }

    fn visible(&self, paths: &Paths<u128>, first: usize, second: usize) -> CheckedCondition {
        let common = self.common(first, second);
        let mut early = None;
        for (at, scope) in DOMAINS.into_iter().enumerate().skip(common) {
            let visible = &paths.visible[at];
            for by in (0..self.frame.n).filter(|&by| visible.contains(by, second)) {
                if paths.available[at].row(first).iter().any(|available| self.before(available, by)) {
                    return (LocationOrderCondition::Visible, true, Reason::VisibleBy(by, scope));
                }
                early = early.or(Some(by));
            }
        }
        (
            LocationOrderCondition::Visible,
            false,
            early.map_or(Reason::NotVisible(DOMAINS[common]), Reason::VisibleTooEarly),
        )
    }
}

/// The shortest path from `from` to `to`, including both ends.
fn shortest<R: Row>(edges: &Relation<R>, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut parents = vec![None; edges.events()];
    let mut queue = VecDeque::from([from]);
    while let Some(event) = queue.pop_front() {
        for next in edges.row(event).iter() {
            if next == from || parents[next].is_some() {
                continue;
            }
            parents[next] = Some(event);
            if next == to {
                let mut path = vec![to];
                while let Some(parent) = parents[*path.last()?] {
                    path.push(parent);
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(next);
        }
    }
    None
}
