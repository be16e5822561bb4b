//! Pairs of accesses that releases and acquires order, found without a slice: where invocations synchronize by atomics
//! all the time, nearly all pairs are such ones, and each would need the events of many invocations.
//!
//! A release and an acquire that synchronize, both with the class of the memory, one of which makes available and the
//! other one visible, are a *full link*. Through a chain of full links non-private accesses through one reference are
//! location-ordered (`docs/checked-mode-internals.md`, "Records"). So of each invocation it is enough to know, from
//! each acquire on, up to where the events of the others are linked before it: a vector clock. What is left out here
//! only leaves more to the axioms.

use foldhash::HashMap;
use spelter_memory_model::event::{Access, Action, Class, Classes, Operation, Scope};
use spelter_shaders::check::{Map, NodeTable};

use super::log::{Index, Log};

/// Releases and acquires that are followed, at most, and the entries of clocks that are joined: the clocks grow no more
/// beyond.
const MAX_LINKS: usize = 1 << 17;
const MAX_JOINED: usize = 1 << 26;

/// Heads of an atomic location, and of the reads that an acquire fence may serve, at most.
const MAX_HEADS: usize = 8;

/// For each invocation, by the number of its thread: its events before that one are known.
type Clock = Map;

/// What full links order of memory of a class.
#[derive(Clone, Debug)]
pub(super) struct LinkOrder {
    /// The acquires of each thread, and what is known after each.
    known: Vec<Vec<(Index, Clock)>>,
}

/// A release that an atomic write performs or carries: the invocations of the scope's instance can acquire it.
#[derive(Clone, Debug)]
struct Head {
    scope: Scope,
    /// One of the threads that released: all are in one instance of the scope.
    by: u32,
    clock: Clock,
}

/// What is known of a thread.
#[derive(Clone, Debug, Default)]
struct State {
    clock: Clock,
    /// The last release fence.
    fence: Option<(Head, Classes)>,
    /// What its atomics read, by their class: an acquire fence may acquire it.
    read: [Vec<Head>; 4],
    /// What barriers brought of a scope's instance: likewise.
    met: Vec<Head>,
}

/// The members of an instance of a barrier that have come so far.
#[derive(Debug, Default)]
struct Arrivals {
    clock: Clock,
    members: Vec<(u32, Index, bool)>,
}

struct Links<'a> {
    log: &'a Log,
    class: Class,
    states: Vec<State>,
    /// The last write of each atomic location, with the heads of the release sequences that it belongs to.
    last: HashMap<u32, (Index, Vec<Head>)>,
    arrivals: HashMap<u32, Arrivals>,
    known: Vec<Vec<(Index, Clock)>>,
    /// What may yet be done.
    links: usize,
    joins: usize,
    nodes: NodeTable,
}

impl LinkOrder {
    /// `None` if no invocation acquires but by a control barrier: `barrier_order.rs` knows these.
    pub(super) fn new(log: &Log, class: Class) -> Option<Self> {
        if log.atomics.is_empty() || !log.acquires_apart_from_barriers(class) {
            return None;
        }
        let threads = log.threads.len();
        let mut links = Links {
            log,
            class,
            states: vec![State::default(); threads],
            last: HashMap::default(),
            arrivals: HashMap::default(),
            known: vec![Vec::new(); threads],
            links: MAX_LINKS,
            joins: MAX_JOINED,
            nodes: NodeTable::default(),
        };
        (0..log.len() as u32).map(Index).for_each(|index| links.follow(index));
        Some(Self { known: links.known })
    }

    /// Whether a chain of links leads from after one event to before a later one.
    pub(super) fn orders(&self, log: &Log, first: Index, second: Index) -> bool {
        let [x, y] = [first, second].map(|index| log.entry(index).thread);
        let known = &self.known[y as usize];
        let last = known[..known.partition_point(|(acquired, _)| *acquired < second)].last();
        last.and_then(|(_, clock)| clock.get(x.into())).is_some_and(|before| first.0 < before)
    }
}

/// All invocations of a log are on queues of one family.
fn within(scope: Option<Scope>) -> Scope {
    scope.unwrap_or(Scope::Invocation).min(Scope::QueueFamily)
}

impl Links<'_> {
    fn acquires(&self, operation: &Operation) -> bool {
        operation.acquire && operation.make_visible && operation.semantics.contains(self.class)
    }

    fn releases(&self, operation: &Operation) -> bool {
        operation.release && operation.make_available && operation.semantics.contains(self.class)
    }

    /// Whether two threads are in one instance of a scope.
    fn share(&self, a: u32, b: u32, scope: Scope) -> bool {
        a == b || self.log.agent(a).shares(self.log.agent(b), scope)
    }

    /// Both clocks in one; the first one alone if there is no work left.
    fn joined(&mut self, a: &Clock, b: &Clock) -> Clock {
        match self.joins.checked_sub(a.len().min(b.len())) {
            Some(left) => {
                self.joins = left;
                a.union(b, &mut self.nodes)
            }
            None => a.clone(),
        }
    }

    fn add(&mut self, list: &mut Vec<Head>, head: &Head) {
        let same = |known: &Head| known.scope == head.scope && self.share(known.by, head.by, head.scope);
        match list.iter().position(same) {
            Some(at) => list[at].clock = self.joined(&list[at].clock, &head.clock),
            None if list.len() < MAX_HEADS => list.push(head.clone()),
            None => {}
        }
    }

    /// What a thread releases now.
    fn head(&mut self, thread: u32, scope: Scope, index: Index) -> Option<Head> {
        self.links = self.links.checked_sub(1)?;
        let mut clock = self.states[thread as usize].clock.clone();
        clock.raise(thread.into(), index.0, &mut self.nodes);
        Some(Head { scope, by: thread, clock })
    }

    /// A thread acquires what the heads have.
    fn acquire(&mut self, thread: u32, scope: Scope, heads: &[Head], index: Index) {
        for head in heads {
            if head.scope > Scope::Invocation && scope >= head.scope && self.share(thread, head.by, head.scope) {
                self.learn(thread, &head.clock, index);
            }
        }
    }

    fn learn(&mut self, thread: u32, clock: &Clock, index: Index) {
        if self.links == 0 {
            return;
        }
        let own = std::mem::take(&mut self.states[thread as usize].clock);
        let all = self.joined(&own, clock);
        self.states[thread as usize].clock = all.clone();
        match self.known[thread as usize].last_mut().filter(|(at, _)| *at == index) {
            Some((_, known)) => *known = all,
            None => {
                self.links -= 1;
                self.known[thread as usize].push((index, all));
            }
        }
    }

    fn follow(&mut self, index: Index) {
        let operation = self.log.operation(index);
        match &operation.action {
            Action::Access(access) if access.atomic => self.atomic(index, &operation, access),
            Action::Fence => self.fence(index, &operation),
            Action::ControlBarrier { execution } => self.barrier(index, &operation, *execution),
            _ => {}
        }
    }

    fn atomic(&mut self, index: Index, operation: &Operation, access: &Access) {
        let &Access { class, reads, writes, .. } = access;
        let entry = *self.log.entry(index);
        let (thread, scope) = (entry.thread, within(operation.scope));
        let source = entry.source.get();
        let last = self.last.get(&entry.which).filter(|(write, _)| Some(*write) == source);
        // The source of a store is the write before it in the modification order, which it does not read.
        let read = last.filter(|(write, _)| reads && self.log.mutual(*write, index)).cloned();
        if let Some((_, heads)) = &read {
            if self.acquires(operation) {
                self.acquire(thread, scope, heads, index);
            }
            let mut all = std::mem::take(&mut self.states[thread as usize].read[class as usize]);
            heads.iter().for_each(|head| self.add(&mut all, head));
            self.states[thread as usize].read[class as usize] = all;
        }
        if writes {
            let continued = read.filter(|(write, _)| self.log.is_run(*write, index));
            let mut heads = continued.map(|(_, heads)| heads).unwrap_or_default();
            if let Some((head, classes)) = self.states[thread as usize].fence.clone()
                && classes.contains(class)
            {
                self.add(&mut heads, &head);
            }
            if self.releases(operation)
                && let Some(head) = self.head(thread, scope, index)
            {
                self.add(&mut heads, &head);
            }
            self.last.insert(entry.which, (index, heads));
        }
    }

    fn fence(&mut self, index: Index, operation: &Operation) {
        let (thread, scope) = (self.log.entry(index).thread, within(operation.scope));
        if self.acquires(operation) {
            let State { read, met, .. } = self.states[thread as usize].clone();
            for class in operation.semantics.iter() {
                self.acquire(thread, scope, &read[class as usize], index);
            }
            self.acquire(thread, scope, &met, index);
        }
        if self.releases(operation) {
            let head = self.head(thread, scope, index);
            self.states[thread as usize].fence = head.map(|head| (head, operation.semantics));
        }
    }

    /// The members of an instance do nothing until the last one has come.
    fn barrier(&mut self, index: Index, operation: &Operation, execution: Scope) {
        let Some((which, instance)) = self.log.instance(index) else { return };
        let (all, level) = (instance.members.len(), execution.min(Scope::Workgroup));
        if level < Scope::Subgroup {
            return;
        }
        let (thread, reaches) = (self.log.entry(index).thread, within(operation.scope) >= level);
        let own = if reaches && self.releases(operation) {
            self.head(thread, level, index)
        } else {
            let fence = self.states[thread as usize].fence.as_ref().map(|(head, _)| head);
            fence.filter(|head| head.scope >= level).cloned()
        };
        let mut arrived = self.arrivals.remove(&which).unwrap_or_default();
        if let Some(head) = own {
            arrived.clock = self.joined(&arrived.clock, &head.clock);
        }
        arrived.members.push((thread, index, reaches && self.acquires(operation)));
        if arrived.members.len() < all {
            self.arrivals.insert(which, arrived);
            return;
        }
        for (thread, index, acquires) in arrived.members {
            if acquires {
                self.learn(thread, &arrived.clock, index);
            } else if !arrived.clock.is_empty() {
                let mut met = std::mem::take(&mut self.states[thread as usize].met);
                self.add(&mut met, &Head { scope: level, by: thread, clock: arrived.clock.clone() });
                self.states[thread as usize].met = met;
            }
        }
    }
}

/// What decides whether links order an access before another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LinkAttributes {
    thread: u32,
    group: u32,
    class: Class,
    reference: u32,
    writes: bool,
    non_private: bool,
}

/// The accesses of a word that links may order.
pub(super) struct WordLinks<'a> {
    log: &'a Log,
    accesses: &'a [Index],
    kinds: Vec<Option<LinkAttributes>>,
}

impl<'a> WordLinks<'a> {
    pub(super) fn new(log: &'a Log, accesses: &'a [Index]) -> Self {
        let kind = |&index: &Index| {
            let operation = log.operation(index);
            let access = operation.access()?;
            let (thread, group) = (log.entry(index).thread, log.thread(index).group);
            let (class, reference, writes) = (access.class, access.reference, access.writes);
            Some(LinkAttributes { thread, group, class, reference, writes, non_private: access.non_private })
        };
        Self { log, accesses, kinds: accesses.iter().map(kind).collect() }
    }

    /// Whether one access is ordered before a later one by links, or by the program of their invocation.
    pub(super) fn orders(&self, first: usize, second: usize) -> bool {
        let (Some(x), Some(y)) = (self.kinds[first], self.kinds[second]) else { return false };
        if x.thread == y.thread {
            return (x.reference, x.non_private, x.class) == (y.reference, y.non_private, y.class);
        }
        // In a workgroup the profile may take private accesses for others.
        let lenient = self.log.accepts && x.group == y.group;
        x.class == y.class
            && (lenient || x.non_private && y.non_private)
            && (x.reference == y.reference || !x.writes)
            && self
                .log
                .links(x.class, lenient)
                .is_some_and(|links| links.orders(self.log, self.accesses[first], self.accesses[second]))
    }
}
