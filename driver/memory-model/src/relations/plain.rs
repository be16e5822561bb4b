//! The definitions of the relations that a trace determines, pair by pair, as the appendix states them: the reference
//! for [`Frame`], whose rows come from sets of events.

use proptest::prelude::*;

use super::{DOMAINS, Frame, conflicts, layers};
use crate::event::{
    Access, Action, Agent, Class, Classes, Command, Domain, Event, Location, Operation, Scope, Site, Stage, Trace,
};
use crate::model::{Coverage, Inclusion, Model};
use crate::relation::Relation;
use crate::row::{Row, SparseRow};

/// A trace with the questions that the definitions ask of pairs of events.
struct Plain<'a> {
    trace: &'a Trace,
    model: Model,
}

impl Plain<'_> {
    fn operation(&self, event: usize) -> &Operation {
        self.trace.operation(event)
    }

    fn access(&self, event: usize) -> Option<&Access> {
        self.operation(event).access()
    }

    fn program_order(&self, a: usize, b: usize) -> bool {
        a < b && self.trace.same_agent(a, b)
    }

    fn overlap(&self, a: usize, b: usize) -> bool {
        self.access(a).zip(self.access(b)).is_some_and(|(a, b)| a.location.overlaps(&b.location))
    }

    fn same_reference(&self, a: usize, b: usize) -> bool {
        self.access(a).zip(self.access(b)).is_some_and(|(a, b)| a.reference == b.reference)
    }

    fn in_scope(&self, a: usize, b: usize) -> bool {
        let includes = |a: usize, b: usize| self.operation(a).scope.is_some_and(|scope| self.trace.shares(a, b, scope));
        includes(a, b) && includes(b, a)
    }

    fn mutual(&self, a: usize, b: usize) -> bool {
        let Some((x, y)) = self.access(a).zip(self.access(b)) else { return false };
        let on_host = |event: usize| self.trace.agent(event) == Agent::Host;
        let alike = a != b && x.atomic && y.atomic && x.location == y.location && x.reference == y.reference;
        alike && self.in_scope(a, b) && (on_host(a) == on_host(b) || self.model.host_atomics)
    }

    fn in_semantics(&self, access: usize, of: usize) -> bool {
        let semantics = self.operation(of).semantics;
        self.access(access).is_some_and(|access| semantics.contains(access.class))
    }

    fn carried_by(&self, release: usize, write: usize) -> bool {
        let (by, atomic) = (self.operation(release), self.operation(write));
        let later = self.program_order(release, write) && by.memory_barrier() && self.in_semantics(write, release);
        by.release && atomic.atomic() && atomic.writes() && (later || release == write)
    }

    fn serves(&self, read: usize, acquire: usize) -> bool {
        let (atomic, by) = (self.operation(read), self.operation(acquire));
        let later = self.program_order(read, acquire) && by.memory_barrier() && self.in_semantics(read, acquire);
        by.acquire && atomic.atomic() && atomic.reads() && (later || read == acquire)
    }

    /// Whether the control barriers `a` and `b` wait for each other.
    fn meet(&self, a: usize, b: usize) -> bool {
        let instance = |event: usize| self.trace.events[event].instance;
        let reaches = |a: usize, b: usize| match self.operation(a).action {
            Action::ControlBarrier { execution } => self.trace.shares(a, b, execution),
            _ => false,
        };
        a != b && instance(a).is_some() && instance(a) == instance(b) && reaches(a, b) && reaches(b, a)
    }

    fn barriers(&self, a: usize, b: usize) -> bool {
        let n = self.trace.len();
        let up_to = |a: usize, b: usize| a == b || self.program_order(a, b);
        let (release, acquire) = (self.operation(a), self.operation(b));
        let shape = release.release && release.memory_barrier() && acquire.acquire && acquire.memory_barrier();
        let between = |&(x, y): &(usize, usize)| {
            let both = self.operation(x).control_barrier() && self.operation(y).control_barrier();
            both && up_to(a, x) && self.meet(x, y) && up_to(y, b)
        };
        shape && self.in_scope(a, b) && (0..n).flat_map(|x| (0..n).map(move |y| (x, y))).any(|pair| between(&pair))
    }

    /// Whether an operation of the API by `by` covers `access`; the action is `Visible` if `visible`.
    fn by_api(&self, access: usize, by: usize, visible: bool) -> bool {
        let symmetric = self.model.coverage == Coverage::Symmetric;
        let covers = |domain: Domain| self.access(access).is_some() && Domain::of(self.trace.agent(access)) == domain;
        match self.operation(by).action {
            Action::Available(domain) => (!visible || symmetric) && covers(domain),
            Action::Visible(domain) => (visible || symmetric) && covers(domain),
            _ => false,
        }
    }

    fn availability(&self, access: usize, by: usize, through: bool) -> bool {
        let operation = self.operation(by);
        let symmetric = self.model.coverage == Coverage::Symmetric;
        let implied = operation.access().is_some_and(|access| access.available) && through;
        let made = operation.make_available || symmetric && operation.make_visible;
        implied || made && access != by && self.in_semantics(access, by) || self.by_api(access, by, false)
    }

    fn visibility(&self, by: usize, access: usize, through: bool) -> bool {
        let operation = self.operation(by);
        let symmetric = self.model.coverage == Coverage::Symmetric;
        let implied = operation.access().is_some_and(|access| access.visible) && through;
        let made = operation.make_visible || symmetric && operation.make_available;
        implied || made && access != by && self.in_semantics(access, by) || self.by_api(access, by, true)
    }

    /// Covered by availability (of the first by the second) or visibility (the mirror), for accesses that share bytes
    /// of a layer by `shares`.
    fn covers(&self, a: usize, b: usize, visible: bool, shares: &dyn Fn(usize, usize) -> bool) -> bool {
        let through = self.same_reference(a, b) && shares(a, b);
        let (availability, visibility) = (self.availability(a, b, through), self.visibility(a, b, through));
        let flagged = |event: usize| self.access(event).is_some_and(|access| access.available || access.visible);
        match self.model.inclusion {
            Inclusion::Split if visible => visibility,
            Inclusion::Split => availability,
            Inclusion::Joint => availability || visibility || (flagged(a) || flagged(b)) && through,
        }
    }

    /// The union over all sets of classes of the edges that each has by program order.
    fn ordered_by_classes(&self, a: usize, b: usize) -> bool {
        Classes::sets().any(|classes| {
            let ordered = |event: usize| {
                let operation = self.operation(event);
                (operation.acquire || operation.release) && operation.semantics.includes(classes)
            };
            let concerned =
                |event: usize| ordered(event) || self.access(event).is_some_and(|on| classes.contains(on.class));
            let release = ordered(b) && self.operation(b).release && concerned(a);
            let acquire = ordered(a) && self.operation(a).acquire && concerned(b);
            self.program_order(a, b) && (release || acquire)
        })
    }
}

/// Fails if a relation of the frame differs from its definition.
fn compare<R: Row>(trace: &Trace, model: Model) -> Result<(), TestCaseError> {
    let n = trace.len();
    let frame = Frame::<R>::new(trace, model);
    let plain = Plain { trace, model };
    let same = |name: &str, found: &Relation<R>, holds: &dyn Fn(usize, usize) -> bool| {
        prop_assert_eq!(found, &Relation::of(n, holds), "{}", name);
        Ok(())
    };
    same("program order", &frame.program_order, &|a, b| plain.program_order(a, b))?;
    same("same agent", &frame.same_agent, &|a, b| trace.same_agent(a, b))?;
    // With several layers, what no other event accesses is in none.
    let one = !layers::overlap_in_part(trace);
    let same_location = if one { frame.same_location.clone() } else { frame.same_location.clone().irreflexive() };
    same("same location", &same_location, &|a, b| plain.overlap(a, b) && (one || a != b))?;
    same("same reference", &frame.same_reference, &|a, b| plain.same_reference(a, b))?;
    same("in scope", &frame.in_scope, &|a, b| plain.in_scope(a, b))?;
    same("mutual order", &frame.mutual, &|a, b| plain.mutual(a, b))?;
    same("carried by", &frame.carried_by, &|a, b| plain.carried_by(a, b))?;
    same("serves", &frame.serves, &|a, b| plain.serves(a, b))?;
    same("barriers", &frame.barriers, &|a, b| plain.barriers(a, b))?;
    for (domain, shares) in DOMAINS.into_iter().zip(&frame.shares) {
        same(domain.name(), shares, &|a, b| trace.shares(a, b, domain))?;
    }
    prop_assert!(frame.layers.len() == 1 || !one);
    for layer in &frame.layers {
        let shares = |a: usize, b: usize| layer.same_location.contains(a, b);
        same("availability", &layer.availability_covers, &|a, b| plain.covers(a, b, false, &shares))?;
        same("visibility", &layer.visibility_covers, &|a, b| plain.covers(a, b, true, &shares))?;
    }
    let writes = |event: usize| trace.operation(event).writes();
    let conflict = |a, b| a < b && plain.overlap(a, b) && (writes(a) || writes(b)) && !plain.mutual(a, b);
    same("conflicts", &conflicts(&frame), &conflict)?;
    let system = |a, b| trace.system.contains(&(a, b));
    let edges = frame.class_sets.iter().fold(Relation::new(n), |all, set| all.or(&set.fixed));
    same("edges of classes", &edges, &|a, b| {
        // Without classes there is no edge but the system's.
        plain.ordered_by_classes(a, b) || system(a, b)
    })
}

/// Happens-before is that of all sets of classes, also of those that the frame omits.
fn compare_happens_before<R: Row>(trace: &Trace, model: Model) -> Result<(), TestCaseError> {
    let n = trace.len();
    let frame = Frame::<R>::new(trace, model);
    let plain = Plain { trace, model };
    let synchronized = &frame.barriers;
    let mut wanted = frame.program_order.clone();
    for classes in Classes::sets() {
        let ordered = R::of(n, |event| {
            let operation = trace.operation(event);
            (operation.acquire || operation.release) && operation.semantics.includes(classes)
        });
        let concerned = |event: usize| {
            ordered.contains(event) || plain.access(event).is_some_and(|access| classes.contains(access.class))
        };
        let edges = Relation::of(n, |a, b| {
            let releases = ordered.contains(b) && trace.operation(b).release && concerned(a);
            let acquires = ordered.contains(a) && trace.operation(a).acquire && concerned(b);
            let synchronizes = synchronized.contains(a, b) && ordered.contains(a) && ordered.contains(b);
            plain.program_order(a, b) && (releases || acquires) || synchronizes || trace.system.contains(&(a, b))
        });
        wanted = wanted.or(&edges.or(&frame.host_order(synchronized)).closed());
    }
    let found = super::happens_before::happens_before(&frame, synchronized);
    prop_assert_eq!(found, wanted);
    Ok(())
}

/// Numbers from which an event is made, each reduced to its range.
type Recipe = (u8, u8, u8, u8, u8, u8);

/// A trace of any events, also of ill-formed ones.
fn trace(agents: &[(u8, u8)], recipes: &[Recipe], system: &[(u8, u8)], in_part: bool) -> Trace {
    let agent = |&(kind, groups): &(u8, u8)| match kind % 6 {
        0 => Agent::Host,
        _ => Agent::Device {
            subgroup: u32::from(groups % 4),
            workgroup: u32::from(groups >> 2 & 1),
            queue_family: u32::from(groups >> 3 & 1),
            device: u32::from(groups >> 4 == 15),
        },
    };
    let scopes =
        [Scope::Invocation, Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device, Scope::CrossDevice];
    let event = |&(thread, kind, place, order, classes, flags): &Recipe| {
        let bit = |at: u8| flags >> at & 1 != 0;
        let domain = if bit(0) { Domain::Host } else { Domain::Device };
        let other = if bit(0) { Domain::Device } else { Domain::Host };
        let scope = scopes[usize::from(order >> 2) % 6];
        let start = if in_part { u64::from(place >> 2 & 3) } else { 0 };
        let length = if in_part { u64::from(place >> 4 & 3) } else { 4 };
        let action = match kind % 10 {
            0..=5 => Action::Access(Access {
                reads: kind % 3 != 0,
                writes: kind % 3 != 1,
                atomic: bit(1),
                non_private: bit(2),
                available: bit(3),
                visible: bit(4),
                class: Class::ALL[usize::from(classes >> 4 & 3)],
                reference: u32::from(place & 1),
                location: Location { object: u32::from(place >> 1 & 1), bytes: start..start + length },
            }),
            6 => Action::Fence,
            7 => Action::ControlBarrier { execution: scopes[usize::from(place) % 6] },
            8 => Action::Available(domain),
            _ if bit(5) => Action::Visible(domain),
            _ => Action::Transfer { from: domain, to: other },
        };
        let mut operation = Operation::new(action);
        (operation.acquire, operation.release) = (order & 1 != 0, order & 2 != 0);
        operation.semantics = Class::ALL.into_iter().filter(|class| classes >> *class as u8 & 1 != 0).collect();
        operation.scope = bit(6).then_some(scope);
        (operation.make_available, operation.make_visible) = (bit(5), bit(7));
        let instance = (operation.control_barrier() && place < 200).then_some(u32::from(place >> 6));
        let site = Some(Site(u32::from(kind)));
        Event { thread: usize::from(thread) % agents.len(), operation, instance, site }
    };
    let events: Vec<_> = recipes.iter().map(event).collect();
    let n = events.len();
    Trace {
        agents: agents.iter().map(agent).collect(),
        system: system.iter().map(|&(a, b)| (usize::from(a) % n, usize::from(b) % n)).collect(),
        commands: agents.iter().map(|_| Command { number: 0, stage: Stage::ComputeShader }).collect(),
        events,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rows_of_sets_are_those_of_the_definitions(
        agents in prop::collection::vec(any::<(u8, u8)>(), 1..5),
        recipes in prop::collection::vec(any::<Recipe>(), 1..24),
        system in prop::collection::vec(any::<(u8, u8)>(), 0..4),
        in_part in any::<bool>(),
        switches in any::<(bool, bool, bool)>(),
    ) {
        let trace = trace(&agents, &recipes, &system, in_part);
        let model = Model {
            coverage: if switches.0 { Coverage::Symmetric } else { Coverage::Directional },
            inclusion: if switches.1 { Inclusion::Joint } else { Inclusion::Split },
            host_atomics: switches.2,
            ..Model::SPEC
        };
        compare::<u64>(&trace, model)?;
        compare::<u128>(&trace, model)?;
        compare::<SparseRow>(&trace, model)?;
        compare_happens_before::<u128>(&trace, model)?;
    }
}
