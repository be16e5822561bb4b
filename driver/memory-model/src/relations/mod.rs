//! The relations of the appendix, one family per file, and the order in which they are derived.
//!
//! [`Frame`] holds what a trace determines. [`Choice`] is what an execution adds: reads-from and the scoped
//! modification orders. [`Order`] is derived from both. With fixed modification orders, all relations grow
//! monotonically when reads are added to a choice: so the search may reject a partial choice (`crate::search`).

mod barriers;
mod chains;
mod classes;
mod coverage;
mod from_reads;
mod groups;
mod happens_before;
mod layers;
mod location_order;
mod mutual_order;
#[cfg(test)]
mod plain;
mod program_order;
mod race;
mod release_sequences;
mod scope;
mod synchronizes_with;
mod system;
mod visible_to;

pub use from_reads::from_reads;
pub use happens_before::ClassSet;
pub use layers::{Layer, overlap_in_part};
pub use location_order::{Case, Paths};
pub use race::{conflicts, races};
pub use release_sequences::release_sequences;
pub(crate) use visible_to::shadowed;
pub use visible_to::visible_to;

use crate::event::{Action, Agent, Domain, Scope, Trace};
use crate::model::{Model, ScopedOrder};
use crate::relation::Relation;
use crate::row::Row;

use classes::ByClass;
use coverage::Covering;
use groups::Scopes;

/// The scopes that have a memory domain, narrow to wide; Device is that of the shader domain.
pub const DOMAINS: [Scope; 4] = [Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device];

/// Sets of events, to restrict relations.
#[derive(Clone, Debug)]
pub struct Sets<R> {
    /// Reads, including read-modify-writes.
    pub reads: R,
    /// Writes, including read-modify-writes.
    pub writes: R,
    /// Atomic accesses.
    pub atomics: R,
    /// Non-private accesses.
    pub non_private: R,
    /// Operations with acquire semantics.
    pub acquires: R,
    /// Operations with release semantics.
    pub releases: R,
    /// Memory barriers, including control barriers that acquire or release.
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
    /// All operations of the host, including calls of the API.
    pub hosts: R,
}

/// Sets and relations that the trace determines: those that do not depend on reads-from.
#[derive(Clone, Debug)]
pub struct Frame<R: Row> {
    /// Number of events.
    pub n: usize,
    /// The reading of the model.
    pub model: Model,
    /// Sets of events.
    pub sets: Sets<R>,
    /// Program order.
    pub program_order: Relation<R>,
    /// Pairs executed by the same agent.
    pub same_agent: Relation<R>,
    /// For each of [`DOMAINS`], pairs of events whose agents share an instance of it.
    pub shares: [Relation<R>; 4],
    /// Pairs of overlapping accesses; reflexive.
    pub same_location: Relation<R>,
    /// Pairs of accesses through the same reference; reflexive.
    pub same_reference: Relation<R>,
    /// Pairs of operations in each other's memory scope.
    pub in_scope: Relation<R>,
    /// Pairs of mutually ordered atomics.
    pub mutual: Relation<R>,
    /// System-synchronizes-with, transitively closed.
    pub system: Relation<R>,
    /// The memory locations in layers: one, unless accesses overlap in part.
    pub layers: Vec<Layer<R>>,
    /// Pairs of barriers that synchronize through a control barrier.
    pub barriers: Relation<R>,
    /// Pairs of a release and an atomic write that carries it: the release itself, or a later write for barriers.
    pub carried_by: Relation<R>,
    /// Pairs of an atomic read and an acquire that it serves: the read itself, or a later barrier.
    pub serves: Relation<R>,
    /// The parts of inter-thread-happens-before for each relevant set of classes.
    pub class_sets: Vec<ClassSet<R>>,
}

/// The source of a read's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Source {
    /// The value from before the trace.
    Initial,
    /// A write.
    Write(usize),
}

/// The choices of an execution.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice<R: Row> {
    /// For each event, its source; `None` for events that do not read and for reads that are not decided yet. A write
    /// is the source of the bytes that it shares with the read. So a recording holds a read whose bytes come from
    /// several writes as several reads, one for each.
    pub sources: Vec<Option<Source>>,
    /// The scoped modification orders, as one relation.
    pub modification_order: Relation<R>,
}

/// The relations derived from a frame and a choice.
#[derive(Clone, Debug)]
pub struct Order<R: Row> {
    /// Synchronizes-with.
    pub synchronizes_with: Relation<R>,
    /// Happens-before.
    pub happens_before: Relation<R>,
    /// Location order: the pairs that are ordered for each of their common locations.
    pub location_order: Relation<R>,
    /// The location order of each layer, if there are several.
    by_layer: Vec<Relation<R>>,
}

impl<R: Row> Order<R> {
    /// The location order of each of [`Frame::layers`].
    pub fn layers(&self) -> impl Iterator<Item = &Relation<R>> {
        let one = if self.by_layer.is_empty() { std::slice::from_ref(&self.location_order) } else { &self.by_layer };
        one.iter()
    }
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
            hosts: R::of(n, |e| trace.agent(e) == Agent::Host),
        }
    }
}

impl<R: Row> Frame<R> {
    /// The frame of a trace, which has at most [`Row::LIMIT`] events.
    pub fn new(trace: &Trace, model: Model) -> Self {
        let n = trace.len();
        let sets = Sets::new(trace);
        let classes = ByClass::new(trace);
        let scopes = Scopes::new(trace);
        let program_order = program_order::program_order(&scopes);
        let same_reference = mutual_order::same_reference(trace);
        let covering = Covering { trace, sets: &sets, classes: &classes, same_reference: &same_reference };
        let layers = layers::layers::<R>(trace, model, &covering);
        let same_location =
            layers[1..].iter().fold(layers[0].same_location.clone(), |all, layer| all.or(&layer.same_location));
        let in_scope = scope::in_scope(trace, &scopes);
        let mutual = mutual_order::mutual_order(trace, &in_scope, model);
        let direct = system::system_synchronizes_with(trace);
        let carried_by = synchronizes_with::carried_by(trace, &sets, &classes, &program_order);
        let serves = synchronizes_with::serves(trace, &sets, &classes, &program_order);
        let barriers = barriers::synchronize(trace, &sets, &program_order, &in_scope, &scopes);
        let class_sets = happens_before::class_sets(&sets, &classes, &program_order, &direct);
        Self {
            n,
            model,
            same_agent: scopes.of(Scope::Invocation).relation(),
            shares: DOMAINS.map(|domain| scopes.of(domain).relation()),
            system: direct.closed(),
            sets,
            program_order,
            same_location,
            same_reference,
            in_scope,
            mutual,
            layers,
            barriers,
            carried_by,
            serves,
            class_sets,
        }
    }

    /// Inter-thread-happens-before of host operations, as host languages define it.
    pub(crate) fn host_order(&self, synchronizes_with: &Relation<R>) -> Relation<R> {
        happens_before::host_order(self, synchronizes_with)
    }

    /// Scoped modification order by the model's reading, which may include reads.
    pub(crate) fn scoped_order(&self, choice: &Choice<R>) -> Relation<R> {
        match self.model.scoped_order {
            ScopedOrder::Writes => choice.modification_order.clone(),
            ScopedOrder::AllAtomics => mutual_order::with_reads(self, choice),
        }
    }

    /// The relations derived from `choice`.
    pub fn order(&self, choice: &Choice<R>) -> Order<R> {
        let sequences = release_sequences(self, &choice.modification_order);
        let synchronizes_with = synchronizes_with::synchronizes_with(self, &sequences, &choice.sources);
        let happens_before = happens_before::happens_before(self, &synchronizes_with);
        let scoped = self.model.scoped_order_is_location_order.then(|| self.scoped_order(choice).and(&self.mutual));
        self.order_by(synchronizes_with, happens_before, scoped)
    }

    /// Completes an order by location order, which includes the pairs `scoped`.
    fn order_by(
        &self,
        synchronizes_with: Relation<R>,
        happens_before: Relation<R>,
        scoped: Option<Relation<R>>,
    ) -> Order<R> {
        let of = |layer: &Layer<R>| {
            let order = location_order::location_order(self, layer, &happens_before);
            match &scoped {
                Some(scoped) => order.or(&scoped.clone().and(&layer.same_location)),
                None => order,
            }
        };
        if let [layer] = &self.layers[..] {
            let location_order = of(layer);
            return Order { synchronizes_with, happens_before, location_order, by_layer: Vec::new() };
        }
        let by_layer: Vec<_> = self.layers.iter().map(of).collect();
        let mut location_order = self.same_location.clone();
        for (layer, order) in self.layers.iter().zip(&by_layer) {
            location_order = location_order.minus(&layer.same_location.clone().minus(order));
        }
        Order { synchronizes_with, happens_before, location_order, by_layer }
    }

    /// The edges that `read` adds to synchronizes-with if its source is `write`.
    pub(crate) fn synchronized_by(&self, sequences: &Relation<R>, write: usize, read: usize) -> Relation<R> {
        synchronizes_with::edge(self, sequences, write, read)
    }

    /// The relations derived from `synchronizes_with`, for readings whose location order depends on nothing else.
    pub(crate) fn order_after(&self, synchronizes_with: Relation<R>) -> Order<R> {
        let happens_before = happens_before::happens_before(self, &synchronizes_with);
        self.order_by(synchronizes_with, happens_before, None)
    }

    /// Location order by cases, for explanations: that of the first layer.
    pub fn paths(&self, happens_before: &Relation<R>) -> Paths<R> {
        self.paths_in(&self.layers[0], happens_before)
    }

    /// Location order by cases, for the locations of one of [`Frame::layers`].
    pub fn paths_in(&self, layer: &Layer<R>, happens_before: &Relation<R>) -> Paths<R> {
        location_order::paths(self, layer, happens_before)
    }
}
