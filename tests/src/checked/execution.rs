//! An execution as a trace of the memory model, with its reads-from and modification orders.

use std::collections::{BTreeSet, HashMap};

use spelter_memory_model::Model;
use spelter_memory_model::axioms::{self, Violation};
use spelter_memory_model::event::{Agent, Event, Location, Trace};
use spelter_memory_model::relation::Relation;
use spelter_memory_model::relations::{self, Choice, Frame, Source};
use spelter_shaders::check::observer::{Invocation, Memory, Target};
use spelter_shaders::ir::Site;

use super::{Program, Step};

/// What happened when a program ran.
#[derive(Clone, Debug)]
pub struct Execution {
    /// All events, in the order in which they happened.
    pub trace: Trace,
    /// The site of each event.
    pub sites: Vec<Site>,
    /// The invocation of each event.
    pub by: Vec<Invocation>,
    /// The memory that each event accesses; `None` for barriers.
    pub targets: Vec<Option<Target>>,
    /// For each read, where all of its bytes come from; `None` if they come from several writes.
    pub sources: Vec<Option<Source>>,
    /// Invocations of a subgroup.
    pub(super) subgroup_size: u32,
}

/// An execution while it happens.
pub(super) struct Recording<'p> {
    program: &'p Program,
    execution: Execution,
    /// The last write of each byte of an object.
    last: HashMap<(u32, u64), usize>,
    /// The event of each thread that waits at a barrier.
    waiting: HashMap<usize, usize>,
    instances: u32,
}

impl<'p> Recording<'p> {
    pub(super) fn new(program: &'p Program) -> Self {
        let shape = program.shape;
        let subgroups = shape.invocations.div_ceil(shape.subgroup_size);
        let agents = (0..shape.workgroups as u32).flat_map(|workgroup| {
            (0..shape.invocations).map(move |local| Agent::Device {
                subgroup: workgroup * subgroups + local / shape.subgroup_size,
                workgroup,
                queue_family: 0,
                device: 0,
            })
        });
        let trace = Trace { agents: agents.collect(), ..Trace::default() };
        let execution = Execution {
            trace,
            sites: Vec::new(),
            by: Vec::new(),
            targets: Vec::new(),
            sources: Vec::new(),
            subgroup_size: shape.subgroup_size,
        };
        Self { program, execution, last: HashMap::new(), waiting: HashMap::new(), instances: 0 }
    }

    /// The thread of an invocation, and the index of its steps.
    pub(super) fn thread(&self, by: Invocation) -> usize {
        by.workgroup as usize * self.program.shape.invocations as usize + by.local as usize
    }

    pub(super) fn step(&mut self, by: Invocation, step: Step) {
        let effect = &self.program.effects[step.site];
        let mut operation = match &effect.unequal {
            Some(unequal) if !step.equal => unequal.clone(),
            _ => effect.operation.clone(),
        };
        let event = self.execution.trace.len();
        let mut source = None;
        if let (Some(access), Some(target)) = (operation.access_mut(), step.target) {
            (access.location, access.reference) = place(target, by.workgroup);
            let Location { object, bytes } = &access.location;
            if access.reads {
                let writes: BTreeSet<_> = bytes.clone().map(|byte| self.last.get(&(*object, byte)).copied()).collect();
                source = match (writes.len(), writes.first()) {
                    (1, Some(&Some(write))) => Some(Source::Write(write)),
                    (1, _) => Some(Source::Initial),
                    _ => None,
                };
            }
            if access.writes {
                self.last.extend(bytes.clone().map(|byte| ((*object, byte), event)));
            }
        }
        let thread = self.thread(by);
        if operation.control_barrier() {
            self.waiting.insert(thread, event);
        }
        self.execution.trace.events.push(Event { thread, operation, instance: None, site: None });
        self.execution.sites.push(step.site);
        self.execution.by.push(by);
        self.execution.targets.push(step.target);
        self.execution.sources.push(source);
    }

    /// Whether the last event wrote.
    pub(super) fn wrote_last(&self) -> bool {
        self.execution.trace.events.last().is_some_and(|event| event.operation.writes())
    }

    /// The threads go on: those that wait at one site met in one instance of the barrier.
    pub(super) fn release(&mut self, threads: &[usize]) {
        let mut met: HashMap<Site, u32> = HashMap::new();
        for thread in threads {
            let Some(event) = self.waiting.remove(thread) else { continue };
            let instance = *met.entry(self.execution.sites[event]).or_insert_with(|| {
                self.instances += 1;
                self.instances
            });
            self.execution.trace.events[event].instance = Some(instance);
        }
    }

    pub(super) fn finish(self) -> Execution {
        self.execution
    }
}

/// The location, and the number of the reference. Workgroup memory is an object for each workgroup.
fn place(target: Target, workgroup: u64) -> (Location, u32) {
    let of = |object: u32, start: u64| Location { object, bytes: start..start + u64::from(target.bytes) };
    match target.memory {
        Memory::Device(address) => (of(0, address), 2 * target.reference),
        Memory::Workgroup(offset) => (of(workgroup as u32 + 1, offset.into()), 2 * target.reference + 1),
    }
}

impl Execution {
    /// The choice of the memory model: reads-from, and the modification orders, which are those in which the writes
    /// happened.
    pub fn choice(&self, frame: &Frame<u128>) -> Choice<u128> {
        let writes = |event: usize| self.trace.operation(event).writes();
        let order = Relation::of(frame.n, |a, b| a < b && frame.mutual.contains(a, b) && writes(a) && writes(b));
        Choice { sources: self.sources.clone(), modification_order: order.closed() }
    }

    /// Whether the same happened in the same order.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.sites, &self.by, &self.sources) == (&other.sites, &other.by, &other.sources) && self.trace == other.trace
    }

    /// The pairs of events that race, the earlier one first.
    pub fn races(&self) -> Vec<(usize, usize)> {
        let frame = Frame::<u128>::new(&self.trace, Model::SPEC);
        let order = frame.order(&self.choice(&frame));
        relations::races(&relations::conflicts(&frame), &order.location_order).iter().collect()
    }

    /// The pairs of events that conflict: they race unless something orders them. The earlier one is first.
    pub fn conflicts(&self) -> Vec<(usize, usize)> {
        relations::conflicts(&Frame::<u128>::new(&self.trace, Model::SPEC)).iter().collect()
    }

    /// The axiom that the execution violates. Executions that interleave the invocations violate none.
    pub fn violation(&self) -> Option<Violation> {
        let frame = Frame::<u128>::new(&self.trace, Model::SPEC);
        let choice = self.choice(&frame);
        axioms::violation(&frame, &choice, &frame.order(&choice))
    }

    /// The pairs of sites that race, each pair once, the site of the earlier event first.
    pub fn racing_sites(&self) -> BTreeSet<(Site, Site)> {
        self.races().into_iter().map(|(a, b)| (self.sites[a], self.sites[b])).collect()
    }
}
