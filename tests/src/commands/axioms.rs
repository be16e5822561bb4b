//! What the axioms of the memory model say of two accesses of a history.
//!
//! The model has operations of the API without stages, accesses and ranges: "the code that builds the trace must take
//! them into account". So each dependency becomes a few events, between which and the two accesses there is
//! system-synchronizes-with as the chapter says:
//!
//! - a marker, an access to a location of its own: it follows what is in the first synchronization scope, and precedes
//!   what is in the second one, and markers of later dependencies whose first scope has a stage of it (a dependency
//!   chain);
//! - an availability operation, which follows the first access if that is in the first access scope and the bytes are
//!   the barrier's;
//! - a visibility operation after the marker, which precedes the second access if that is in the second access scope
//!   and the bytes are the barrier's; to the host there is a domain operation before it, and it precedes markers of
//!   later signals of the queue after all commands, and of dependencies with a stage of the barrier's second scope.
//!
//! What it leaves out:
//!
//! - A write of the host over one of the device needs order only: that of the appendix would need a domain operation,
//!   which has no effect on coherent memory.
//! - Two atomics are not compared (`history.rs`): the appendix asks for one reference, and two dispatches have two.

use spelter_driver::vk::{AccessFlags2 as A, PipelineStageFlags2 as S};
use spelter_memory_model::event::{self, Action, Agent, Class, Domain, Event, Location, Operation, Trace};
use spelter_memory_model::relations::Choice;
use spelter_memory_model::slice::{Slice, TraceError};
use spelter_memory_model::{Model, Overwrite};

use super::history::{Access, History, Item, TRANSITION, covers, first_scope, includes, named, second_scope};
use super::program::{Barrier, Range};

/// A write after a barrier needs visibility, too: `VK_ACCESS_2_…_WRITE` in `dstAccessMask`.
const MODEL: Model = Model { overwrite: Overwrite::ApiVisibility, ..Model::SPEC };

/// A trace that grows.
struct Builder {
    trace: Trace,
}

/// The events of a dependency.
#[derive(Clone, Copy, Debug)]
struct Node {
    marker: usize,
    visible: Option<usize>,
    /// Visible to the host.
    to_host: Option<usize>,
    /// The stages that it precedes; those of the host's calls precede nothing on a queue by themselves.
    after: S,
    /// Whether it makes everything visible to all accesses of the stages, as semaphores and submissions do.
    everything: bool,
}

impl Builder {
    fn event(&mut self, agent: Agent, action: Action) -> usize {
        self.trace.agents.push(agent);
        self.trace.events.push(Event::new(self.trace.agents.len() - 1, Operation::new(action)));
        self.trace.events.len() - 1
    }

    fn device(&self) -> Agent {
        let number = self.trace.agents.len() as u32;
        Agent::Device { subgroup: number, workgroup: number, queue_family: 0, device: 0 }
    }

    fn access(&mut self, agent: Agent, writes: bool, object: u32) -> usize {
        let access = event::Access {
            reads: !writes,
            writes,
            atomic: false,
            non_private: false,
            available: false,
            visible: false,
            class: Class::Uniform,
            reference: self.trace.agents.len() as u32,
            location: Location::whole(object),
        };
        self.event(agent, Action::Access(access))
    }

    /// An event that only orders.
    fn marker(&mut self, agent: Agent) -> usize {
        let object = 1 + self.trace.events.len() as u32;
        self.access(agent, false, object)
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.trace.system.push((from, to));
    }

    fn then(&mut self, from: usize, agent: Agent, action: Action) -> usize {
        let event = self.event(agent, action);
        self.edge(from, event);
        event
    }
}

impl History {
    /// Whether two accesses, by their items, race for these bytes, which both access.
    ///
    /// # Errors
    ///
    /// If there are too many dependencies between them.
    pub(super) fn race(&self, first: usize, second: usize, bytes: Range) -> Result<bool, TraceError> {
        let (Item::Access(one), Item::Access(other)) = (&self.items[first], &self.items[second]) else {
            return Ok(false);
        };
        let mut builder = Builder { trace: Trace::default() };
        let agent = |builder: &Builder, access: &Access| match access.queue {
            Some(_) => builder.device(),
            None => Agent::Host,
        };
        let from = agent(&builder, one);
        let from = builder.access(from, one.writes, 0);
        let to = agent(&builder, other);
        let to = builder.access(to, other.writes, 0);
        let mut nodes: Vec<Option<Node>> = vec![None; self.items.len()];
        // Dependencies before the first access follow nothing of interest; the last submission of the second access's
        // queue does.
        for at in first + 1..second {
            let before = builder.trace.clone();
            nodes[at] = self.node(&mut builder, &nodes, at, (first, from, one), bytes);
            // What follows nothing orders nothing: without its events traces are small.
            let new = &builder.trace.system[before.system.len()..];
            if nodes[at].is_some_and(|node| !new.iter().any(|(_, to)| *to == node.marker)) {
                (builder.trace, nodes[at]) = (before, None);
            }
        }
        self.precede(&mut builder, &nodes, (second, to, other));
        let choice = Choice::recorded(vec![None; builder.trace.len()], &[])?;
        Ok(Slice::new(&builder.trace, &choice, MODEL)?.is_race(from, to))
    }

    /// The events of an item, after what is in its first scope.
    fn node(
        &self,
        builder: &mut Builder,
        nodes: &[Option<Node>],
        at: usize,
        (first, from, one): (usize, usize, &Access),
        bytes: Range,
    ) -> Option<Node> {
        let device = builder.device();
        match self.items[at] {
            Item::Barrier { queue, barrier, set, command } => {
                let end = set.unwrap_or(at);
                let marker = builder.marker(device);
                let scope = first_scope(barrier.src.stages);
                // The signal of the host is in a first scope with HOST, with what the host did and waited for before.
                let by_host = set.is_some_and(|set| matches!(self.items[set], Item::HostSet));
                let from_queue = if by_host { None } else { Some(queue) };
                let in_scope = one.queue == from_queue && first < end && scope.contains(one.stage);
                if in_scope {
                    builder.edge(from, marker);
                }
                let is_named = named(barrier.src.stages).contains(one.stage);
                let covered = covers(barrier.memory, bytes);
                // A layout transition makes what it writes available by itself.
                let releases = one.stage == TRANSITION || is_named && includes(barrier.src.access, one.access);
                if in_scope && one.writes && releases && covered {
                    let available = builder.then(from, device, Action::Available(Domain::Device));
                    builder.edge(available, marker);
                }
                if !by_host {
                    self.follow(builder, nodes, marker, (queue, end, scope, false), Some(command));
                } else if scope.contains(S::HOST) {
                    self.follow_host(builder, nodes, marker, end);
                }
                let visible = covered.then(|| builder.then(marker, device, Action::Visible(Domain::Device)));
                let to_host = barrier.dst.stages.contains(S::HOST) && includes(barrier.dst.access, A::HOST_READ);
                // A read needs no availability: the barrier comes after it whatever memory it names.
                let to_host = (to_host && (covered || !one.writes)).then(|| host_domain(builder, marker));
                let after = second_scope(barrier.dst.stages);
                Some(Node { marker, visible, to_host, after, everything: false })
            }
            Item::TransitionEnd { queue, barrier: Barrier { dst, memory, .. }, of } => {
                // Transitions of a queue happen in submission order: a later one comes after this one, too.
                let follows = one.stage == TRANSITION && one.queue == Some(queue) && covers(memory, bytes);
                if of != first && !follows {
                    return None;
                }
                let marker = builder.marker(device);
                builder.edge(from, marker);
                let available = builder.then(from, device, Action::Available(Domain::Device));
                builder.edge(available, marker);
                let visible = Some(builder.then(marker, device, Action::Visible(Domain::Device)));
                let to_host = dst.stages.contains(S::HOST) && includes(dst.access, A::HOST_READ);
                let to_host = to_host.then(|| host_domain(builder, marker));
                Some(Node { marker, visible, to_host, after: second_scope(dst.stages), everything: false })
            }
            Item::Signal { queue, stages } => {
                // What is in its scope becomes available, whatever way it came.
                let marker = builder.event(device, Action::Available(Domain::Device));
                let scope = first_scope(stages);
                if one.queue == Some(queue) && scope.contains(one.stage) {
                    builder.edge(from, marker);
                }
                self.follow(builder, nodes, marker, (queue, at, scope, is_all_commands(stages)), None);
                Some(Node { marker, visible: None, to_host: None, after: S::NONE, everything: false })
            }
            Item::Wait { stages, signal, .. } => {
                let marker = builder.marker(device);
                nodes[signal].inspect(|node| builder.edge(node.marker, marker));
                let visible = Some(builder.then(marker, device, Action::Visible(Domain::Device)));
                Some(Node { marker, visible, to_host: None, after: second_scope(stages), everything: true })
            }
            Item::HostWait { signal } => {
                let marker = builder.marker(Agent::Host);
                nodes[signal].inspect(|node| builder.edge(node.marker, marker));
                Some(Node { marker, visible: None, to_host: None, after: S::NONE, everything: false })
            }
            Item::Submission { .. } => {
                let marker = builder.marker(Agent::Host);
                if one.queue.is_none() {
                    builder.edge(from, marker);
                    let available = builder.then(from, Agent::Host, Action::Available(Domain::Host));
                    let transfer = Action::Transfer { from: Domain::Host, to: Domain::Device };
                    let transfer = builder.then(available, Agent::Host, transfer);
                    builder.edge(transfer, marker);
                }
                self.follow_host(builder, nodes, marker, at);
                let visible = Some(builder.then(marker, device, Action::Visible(Domain::Device)));
                Some(Node { marker, visible, to_host: None, after: S::ALL_COMMANDS, everything: true })
            }
            Item::Access(_) | Item::Set | Item::HostSet => None,
        }
    }

    /// What the host has waited for before an item.
    fn follow_host(&self, builder: &mut Builder, nodes: &[Option<Node>], marker: usize, end: usize) {
        for (item, node) in self.items.iter().zip(nodes).take(end) {
            if let (Item::HostWait { .. }, Some(node)) = (item, node) {
                builder.edge(node.marker, marker);
            }
        }
    }

    /// Dependency chains: earlier dependencies of the queue whose second scope has a stage of this first scope. What a
    /// semaphore made visible is visible to all accesses of the device that come after it. A barrier is a command
    /// without a stage, which signals after all commands (`is_all`) have in their scope by itself.
    fn follow(
        &self,
        builder: &mut Builder,
        nodes: &[Option<Node>],
        marker: usize,
        (queue, end, scope, is_all): (usize, usize, S, bool),
        command: Option<usize>,
    ) {
        let is_same = |item: &Item| matches!(item, Item::Barrier { command: of, .. } if Some(*of) == command);
        for (at, item) in self.items.iter().enumerate().take(end) {
            let (Some(node), false) = (nodes[at], is_same(item)) else { continue };
            let on = match item {
                Item::Barrier { queue, .. }
                | Item::TransitionEnd { queue, .. }
                | Item::Wait { queue, .. }
                | Item::Submission { queue } => *queue,
                _ => continue,
            };
            let chained = named(node.after).intersects(scope);
            if let (true, Some(to_host)) = (on == queue && (chained || is_all), node.to_host) {
                builder.edge(to_host, marker);
            }
            if on == queue && chained {
                builder.edge(node.marker, marker);
                if let (true, Some(visible)) = (node.everything, node.visible) {
                    builder.edge(visible, marker);
                }
            }
        }
    }

    /// The second access after what has it in its second scope.
    fn precede(&self, builder: &mut Builder, nodes: &[Option<Node>], (second, to, other): (usize, usize, &Access)) {
        let Some(queue) = other.queue else {
            for (item, node) in self.items.iter().zip(nodes).take(second) {
                let (Item::HostWait { .. }, Some(node)) = (item, node) else { continue };
                builder.edge(node.marker, to);
                if other.writes {
                    let host = host_domain(builder, node.marker);
                    builder.edge(host, to);
                }
            }
            // What one thread of the host does is in its program order.
            return;
        };
        for (at, item) in self.items.iter().enumerate().take(second) {
            let Some(node) = nodes[at] else { continue };
            let (on, access) = match item {
                Item::Barrier { queue, barrier, .. } | Item::TransitionEnd { queue, barrier, .. } => {
                    let is_named = named(barrier.dst.stages).contains(other.stage);
                    (*queue, is_named && includes(barrier.dst.access, other.access))
                }
                Item::Wait { queue, .. } | Item::Submission { queue } => (*queue, true),
                _ => continue,
            };
            if on == queue && named(node.after).contains(other.stage) {
                builder.edge(node.marker, to);
                if let (true, Some(visible)) = (access || node.everything, node.visible) {
                    builder.edge(visible, to);
                }
                if other.stage == TRANSITION {
                    // It needs values to be available, and sees all of them.
                    let device = builder.device();
                    let visible = builder.then(node.marker, device, Action::Visible(Domain::Device));
                    builder.edge(visible, to);
                }
            }
        }
    }
}

/// Whether the first scope of a signal has all commands.
fn is_all_commands(stages: S) -> bool {
    stages.intersects(S::ALL_COMMANDS | S::BOTTOM_OF_PIPE)
}

/// A domain operation to the host after an event, and visibility there.
fn host_domain(builder: &mut Builder, after: usize) -> usize {
    let device = builder.device();
    let transfer = Action::Transfer { from: Domain::Device, to: Domain::Host };
    let transfer = builder.then(after, device, transfer);
    builder.then(transfer, device, Action::Visible(Domain::Host))
}
