//! The relations of the appendix, one family in each file, and the order in which one follows from another.
//!
//! [`Frame`] is what a trace fixes. [`Choice`] is what an execution adds: who reads from whom, and the scoped
//! modification orders. [`Order`] follows from both. All of it grows when reads are added to a choice, as long as the
//! modification orders stay: that is why the search may give up on a partial choice (`crate::search`).

mod barriers;
mod chains;
mod coverage;
mod from_reads;
mod happens_before;
mod location_order;
mod mutual_order;
mod program_order;
mod race;
mod release_sequences;
mod scope;
mod synchronizes_with;
mod system;
mod visible_to;

pub use from_reads::from_reads;
pub use happens_before::ClassSet;
pub use location_order::{Case, Paths};
pub use race::{conflicts, races};
pub use release_sequences::release_sequences;
pub(crate) use visible_to::shadowed;
pub use visible_to::visible_to;

use crate::event::{Action, Domain, Scope, Trace};
use crate::model::{Model, ScopedOrder};
use crate::relation::Relation;
use crate::row::Row;

/// The scopes that have a memory domain of their own, narrow to wide; Device stands for the shader domain.
pub const DOMAINS: [Scope; 4] = [Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device];

/// Sets of events that the relations are cut with.
#[derive(Clone, Debug)]
pub struct Sets<R> {
    /// Reads, read-modify-writes included.
    pub reads: R,
    /// Writes, read-modify-writes included.
    pub writes: R,
    /// Atomic accesses.
    pub atomics: R,
    /// Non-private accesses.
    pub non_private: R,
    /// Operations with acquire semantics.
    pub acquires: R,
    /// Operations with release semantics.
    pub releases: R,
    /// Memory barriers, with control barriers that acquire or release.
    pub fences: R,
    /// Control barriers.
    pub control_barriers: R,
    /// For each of [`DOMAINS`], operations that make available to it.
    pub available: [R; 4],
    /// For each of [`DOMAINS`], operations that make visible from it.
    pub visible: [R; 4],
    /// Availability operations of the API, to the device and to the host domain.
    pub api_available: [R; 2],
    /// Visibility operations of the API, from the device and from the host domain.
    pub api_visible: [R; 2],
    /// Memory domain operations, device to host and host to device.
    pub transfers: [R; 2],
    /// Accesses by agents of the device, and of the host.
    pub by_domain: [R; 2],
}

/// What a trace fixes: everything that does not depend on who reads from whom.
#[derive(Clone, Debug)]
pub struct Frame<R: Row> {
    /// How many events there are.
    pub n: usize,
    /// The reading of the model.
    pub model: Model,
    /// Sets of events.
    pub sets: Sets<R>,
    /// Program order.
    pub program_order: Relation<R>,
    /// Pairs executed by one agent.
    pub same_agent: Relation<R>,
    /// For each of [`DOMAINS`], pairs of events whose agents share an instance of it.
    pub shares: [Relation<R>; 4],
    /// Accesses that overlap, with themselves.
    pub same_location: Relation<R>,
    /// Accesses through one reference, with themselves.
    pub same_reference: Relation<R>,
    /// Operations in each other's memory scope.
    pub in_scope: Relation<R>,
    /// Mutually ordered atomics.
    pub mutual: Relation<R>,
    /// System-synchronizes-with, closed.
    pub system: Relation<R>,
    /// Accesses and the availability operations whose source scope they are in.
    pub availability_covers: Relation<R>,
    /// Visibility operations and the accesses in their destination scope.
    pub visibility_covers: Relation<R>,
    /// Pairs of barriers that synchronize through a control barrier.
    pub barriers: Relation<R>,
    /// Releases with the atomic writes that carry them: themselves, or later ones for barriers.
    pub carried_by: Relation<R>,
    /// Atomic reads with the acquires that they serve: themselves, or later barriers.
    pub serves: Relation<R>,
    /// What inter-thread-happens-before is made of, for each set of classes that matters.
    pub class_sets: Vec<ClassSet<R>>,
}

/// Where a read takes its value from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The value from before the trace.
    Initial,
    /// A write.
    Write(usize),
}

/// What an execution chooses.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<R: Row> {
    /// For each event, where it reads from; `None` for events that do not read, and for reads not yet decided.
    pub sources: Vec<Option<Source>>,
    /// The scoped modification orders, as one relation.
    pub modification_order: Relation<R>,
}

/// What follows from a frame and a choice.
#[derive(Clone, Debug)]
pub struct Order<R: Row> {
    /// Synchronizes-with.
    pub synchronizes_with: Relation<R>,
    /// Happens-before.
    pub happens_before: Relation<R>,
    /// Location order.
    pub location_order: Relation<R>,
}

impl<R: Row> Sets<R> {
    fn new(trace: &Trace) -> Self {
        let n = trace.len();
        let operation = |event: usize| trace.operation(event);
        let reaches = |event: usize, at: usize| operation(event).scope.is_some_and(|scope| scope >= DOMAINS[at]);
        let is_access = |event: usize| operation(event).access().is_some();
        let action = |event: usize, wanted: Action| operation(event).action == wanted;
        let domains = [Domain::Device, Domain::Host];
        Self {
            reads: R::of(n, |e| operation(e).reads()),
            writes: R::of(n, |e| operation(e).writes()),
            atomics: R::of(n, |e| operation(e).atomic()),
            non_private: R::of(n, |e| operation(e).access().is_some_and(|access| access.non_private)),
            acquires: R::of(n, |e| operation(e).acquire),
            releases: R::of(n, |e| operation(e).release),
            fences: R::of(n, |e| operation(e).memory_barrier()),
            control_barriers: R::of(n, |e| operation(e).control_barrier()),
            available: std::array::from_fn(|at| {
                R::of(n, |e| {
                    let operation = operation(e);
                    reaches(e, at)
                        && (operation.make_available || operation.access().is_some_and(|access| access.available))
                })
            }),
            visible: std::array::from_fn(|at| {
                R::of(n, |e| {
                    let operation = operation(e);
                    reaches(e, at)
                        && (operation.make_visible || operation.access().is_some_and(|access| access.visible))
                })
            }),
            api_available: domains.map(|domain| R::of(n, |e| action(e, Action::Available(domain)))),
            api_visible: domains.map(|domain| R::of(n, |e| action(e, Action::Visible(domain)))),
            transfers: [(Domain::Device, Domain::Host), (Domain::Host, Domain::Device)]
                .map(|(from, to)| R::of(n, |e| action(e, Action::Transfer { from, to }))),
            by_domain: domains.map(|domain| R::of(n, |e| is_access(e) && Domain::of(trace.agent(e)) == domain)),
        }
    }
}

impl<R: Row> Frame<R> {
    /// The frame of a trace, which has at most [`Row::LIMIT`] events.
    pub fn new(trace: &Trace, model: Model) -> Self {
        let n = trace.len();
        let sets = Sets::new(trace);
        let program_order = program_order::program_order(trace);
        let same_location = mutual_order::same_location(trace);
        let same_reference = mutual_order::same_reference(trace);
        let in_scope = scope::in_scope(trace);
        let mutual = mutual_order::mutual_order(trace, &in_scope, model);
        let direct = system::system_synchronizes_with(trace);
        let (availability_covers, visibility_covers) = coverage::covers(trace, model);
        let carried_by = synchronizes_with::carried_by(trace, &sets, &program_order);
        let serves = synchronizes_with::serves(trace, &sets, &program_order);
        let barriers = barriers::synchronize(trace, &sets, &program_order, &in_scope);
        let class_sets = happens_before::class_sets(trace, &sets, &program_order, &direct);
        Self {
            n,
            model,
            same_agent: Relation::of(n, |a, b| trace.same_agent(a, b)),
            shares: DOMAINS.map(|domain| scope::shares(trace, domain)),
            system: direct.closed(),
            sets,
            program_order,
            same_location,
            same_reference,
            in_scope,
            mutual,
            availability_covers,
            visibility_covers,
            barriers,
            carried_by,
            serves,
            class_sets,
        }
    }

    /// The scoped modification orders with all that the model's reading puts into them.
    pub(crate) fn scoped_order(&self, choice: &Choice<R>) -> Relation<R> {
        match self.model.scoped_order {
            ScopedOrder::Writes => choice.modification_order.clone(),
            ScopedOrder::AllAtomics => mutual_order::with_reads(self, choice),
        }
    }

    /// Everything that follows from `choice`.
    pub fn order(&self, choice: &Choice<R>) -> Order<R> {
        let sequences = release_sequences(self, &choice.modification_order);
        let synchronizes_with = synchronizes_with::synchronizes_with(self, &sequences, &choice.sources);
        let happens_before = happens_before::happens_before(self, &synchronizes_with);
        let mut location_order = location_order::location_order(self, &happens_before);
        if self.model.scoped_order_is_location_order {
            location_order = location_order.or(&self.scoped_order(choice).and(&self.mutual));
        }
        Order { synchronizes_with, happens_before, location_order }
    }

    /// What the read `read` adds to synchronizes-with when it takes its value from `write`.
    pub(crate) fn synchronized_by(&self, sequences: &Relation<R>, write: usize, read: usize) -> Relation<R> {
        synchronizes_with::edge(self, sequences, write, read)
    }

    /// What follows from `synchronizes_with`. For readings whose location order depends on nothing else.
    pub(crate) fn order_after(&self, synchronizes_with: Relation<R>) -> Order<R> {
        let happens_before = happens_before::happens_before(self, &synchronizes_with);
        let location_order = location_order::location_order(self, &happens_before);
        Order { synchronizes_with, happens_before, location_order }
    }

    /// Location order taken apart into its cases, for explanations.
    pub fn paths(&self, happens_before: &Relation<R>) -> Paths<R> {
        location_order::paths(self, happens_before)
    }
}
