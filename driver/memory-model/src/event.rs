//! Events: agents and the operations that they execute.
//!
//! Two sentences of the appendix are the basis of this file: "each operation is executed by a particular agent", and "a
//! reference is an object that a particular agent can use to access a set of memory locations". Both formats of litmus
//! tests, and recordings of real runs, become a [`Trace`]: a list of [`Event`]s, each thread's in program order, with
//! the order that the API gives them.
//!
//! Deviations from the appendix:
//! 1. A read-modify-write is one event that both reads and writes, as in the Khronos model.
//! 2. Availability and visibility operations of an instruction are part of its event: that of a write comes immediately
//!    after it, that of a read immediately before it, and those of semantics before a release and after an acquire.
//! 3. Host atomics and fences have every storage class in their semantics, since host languages have no storage
//!    classes.

use std::fmt;
use std::ops::Range;

pub use crate::site::{Command, Site, Stage};

/// A storage class of memory semantics: the memory that a release or acquire orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum Class {
    /// `UniformMemory`: storage classes Uniform, StorageBuffer and PhysicalStorageBuffer. `sc0` in litmus tests.
    Uniform,
    /// `WorkgroupMemory`. `sc1` in litmus tests.
    Workgroup,
    /// `ImageMemory`. `sc2` in litmus tests.
    Image,
    /// `OutputMemory`: tessellation control only. `sc3` in litmus tests.
    Output,
}

impl Class {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Uniform, Self::Workgroup, Self::Image, Self::Output];

    /// The letter used in reports.
    pub fn letter(self) -> char {
        ['U', 'W', 'I', 'O'][self as usize]
    }
}

/// A set of storage-class semantics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Classes(u8);

impl Classes {
    /// No class.
    pub const NONE: Self = Self(0);
    /// Every class.
    pub const ALL: Self = Self(0b1111);

    /// The set with `class` added.
    #[must_use]
    pub fn with(self, class: Class) -> Self {
        Self(self.0 | 1 << class as u8)
    }

    /// Intersection.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether `class` is in the set.
    pub fn contains(self, class: Class) -> bool {
        self.0 >> class as u8 & 1 != 0
    }

    /// Whether every class of `other` is in the set.
    pub fn includes(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether no class is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The classes, in order.
    pub fn iter(self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(move |&class| self.contains(class))
    }

    /// The non-empty sets of classes.
    pub fn sets() -> impl Iterator<Item = Self> {
        (1..16).map(Self)
    }
}

impl FromIterator<Class> for Classes {
    fn from_iter<I: IntoIterator<Item = Class>>(classes: I) -> Self {
        classes.into_iter().fold(Self::NONE, Self::with)
    }
}

impl fmt::Display for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().try_for_each(|class| write!(f, "{}", class.letter()))
    }
}

/// A memory scope: the agents with respect to which an operation is atomic, ordered, available or visible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    /// One invocation: no availability, no visibility.
    Invocation,
    /// The invocations of a subgroup.
    Subgroup,
    /// The invocations of a workgroup.
    Workgroup,
    /// All invocations on queues of one family.
    QueueFamily,
    /// All invocations on the device.
    Device,
    /// All devices and the host. Host operations only: Vulkan forbids it in shaders.
    CrossDevice,
}

impl Scope {
    /// The scopes that a shader may name, narrow to wide.
    pub const SHADER: [Self; 5] = [Self::Invocation, Self::Subgroup, Self::Workgroup, Self::QueueFamily, Self::Device];

    /// The scope's name in SPIR-V.
    pub fn name(self) -> &'static str {
        match self {
            Self::Invocation => "Invocation",
            Self::Subgroup => "Subgroup",
            Self::Workgroup => "Workgroup",
            Self::QueueFamily => "QueueFamily",
            Self::Device => "Device",
            Self::CrossDevice => "CrossDevice",
        }
    }

    /// The next wider scope that a shader may name.
    pub fn wider(self) -> Option<Self> {
        Self::SHADER.into_iter().find(|scope| *scope > self)
    }
}

/// An agent, which executes operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Agent {
    /// A shader invocation, or a command of the API, with the numbers of the scope instances that contain it. Numbers
    /// are unique within a level: two subgroups with the same number are the same subgroup.
    Device {
        /// Its subgroup.
        subgroup: u32,
        /// Its workgroup.
        workgroup: u32,
        /// Its queue family.
        queue_family: u32,
        /// Its device.
        device: u32,
    },
    /// A thread of the host.
    Host,
}

impl Agent {
    /// Whether `other` is in the instance of `scope` that contains this agent. The agents must differ.
    pub fn shares(self, other: Self, scope: Scope) -> bool {
        let (
            Self::Device { subgroup, workgroup, queue_family, device },
            Self::Device { subgroup: s, workgroup: w, queue_family: q, device: d },
        ) = (self, other)
        else {
            return scope == Scope::CrossDevice;
        };
        match scope {
            Scope::Invocation => false,
            Scope::Subgroup => subgroup == s,
            Scope::Workgroup => workgroup == w,
            Scope::QueueFamily => queue_family == q,
            Scope::Device => device == d,
            Scope::CrossDevice => true,
        }
    }
}

/// A memory domain that only operations of the API make available or visible. Shader domains follow from scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Domain {
    /// Accessible by all agents of the device.
    Device,
    /// Accessible by host agents.
    Host,
}

impl Domain {
    /// The domain that `agent`'s accesses use at the level of the API.
    pub fn of(agent: Agent) -> Self {
        if agent == Agent::Host { Self::Host } else { Self::Device }
    }
}

/// The bytes of an object that an access reads or writes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Which object.
    pub object: u32,
    /// Which of its bytes.
    pub bytes: Range<u64>,
}

impl Location {
    /// A location that overlaps no other, as in litmus tests.
    pub fn whole(object: u32) -> Self {
        Self { object, bytes: 0..4 }
    }

    /// Whether the accesses touch a common byte.
    pub fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (&self.bytes, &other.bytes);
        self.object == other.object && mine.start.max(theirs.start) < mine.end.min(theirs.end)
    }
}

/// The kind of an operation, and its effect on memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// A read, a write, or both at once.
    Access(Access),
    /// A memory barrier: `OpMemoryBarrier`, or a fence of the host.
    Fence,
    /// `OpControlBarrier`; a memory barrier too, if it acquires or releases.
    ControlBarrier {
        /// The execution scope: the invocations that wait for each other.
        execution: Scope,
    },
    /// An availability operation of the API to `domain`, for all writes that happen before it.
    Available(Domain),
    /// A visibility operation of the API from `domain`, for all reads that happen after it.
    Visible(Domain),
    /// A memory domain operation.
    Transfer {
        /// The domain in which values are available ……
        from: Domain,
        /// … and the domain in which they become available.
        to: Domain,
    },
}

/// An access to memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// Whether it reads.
    pub reads: bool,
    /// Whether it writes.
    pub writes: bool,
    /// Whether it is an atomic operation.
    pub atomic: bool,
    /// `NonPrivatePointer`; atomics, available writes and visible reads always are.
    pub non_private: bool,
    /// `MakePointerAvailable`; atomic writes always are.
    pub available: bool,
    /// `MakePointerVisible`; atomic reads always are.
    pub visible: bool,
    /// The class of the memory.
    pub class: Class,
    /// The reference: a descriptor, a variable, a host address.
    pub reference: u32,
    /// The bytes that it accesses.
    pub location: Location,
}

/// An operation with its attributes, independent of the agent and the time of its execution.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its kind and effect.
    pub action: Action,
    /// Whether it has acquire semantics.
    pub acquire: bool,
    /// Whether it has release semantics.
    pub release: bool,
    /// The storage classes of its semantics.
    pub semantics: Classes,
    /// The memory scope.
    pub scope: Option<Scope>,
    /// `MakeAvailable` in its semantics.
    pub make_available: bool,
    /// `MakeVisible` in its semantics.
    pub make_visible: bool,
}

impl Operation {
    /// An operation with this action and default attributes.
    pub fn new(action: Action) -> Self {
        Self {
            action,
            acquire: false,
            release: false,
            semantics: Classes::NONE,
            scope: None,
            make_available: false,
            make_visible: false,
        }
    }

    /// The access, if it is one.
    pub fn access(&self) -> Option<&Access> {
        if let Action::Access(access) = &self.action { Some(access) } else { None }
    }

    /// The access, if it is one, mutably.
    pub fn access_mut(&mut self) -> Option<&mut Access> {
        if let Action::Access(access) = &mut self.action { Some(access) } else { None }
    }

    /// Whether it reads memory.
    pub fn reads(&self) -> bool {
        self.access().is_some_and(|access| access.reads)
    }

    /// Whether it writes memory.
    pub fn writes(&self) -> bool {
        self.access().is_some_and(|access| access.writes)
    }

    /// Whether it is an atomic operation.
    pub fn atomic(&self) -> bool {
        self.access().is_some_and(|access| access.atomic)
    }

    /// Whether it is a control barrier.
    pub fn control_barrier(&self) -> bool {
        matches!(self.action, Action::ControlBarrier { .. })
    }

    /// Whether it is a memory barrier: a fence, or a control barrier that acquires or releases.
    pub fn memory_barrier(&self) -> bool {
        matches!(self.action, Action::Fence) || self.control_barrier() && (self.acquire || self.release)
    }

    /// Sets implied attributes: atomics are non-private, atomic writes available, atomic reads visible.
    pub fn complete(&mut self) {
        if let Action::Access(access) = &mut self.action {
            access.available |= access.atomic && access.writes;
            access.visible |= access.atomic && access.reads;
            access.non_private |= access.atomic || access.available || access.visible;
        }
    }
}

/// An execution of an operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// The thread, an index into [`Trace::agents`].
    pub thread: usize,
    /// The operation.
    pub operation: Operation,
    /// For control barriers: events with the same number wait for each other. `None` waits for no event.
    pub instance: Option<u32>,
    /// The instruction or the call of the API that it comes from. Edits of a repair change all events of a site; an
    /// event without one cannot be changed.
    pub site: Option<Site>,
}

impl Event {
    /// An event that waits for no other, of no known site.
    pub fn new(thread: usize, operation: Operation) -> Self {
        Self { thread, operation, instance: None, site: None }
    }
}

/// The part of an execution that a program determines. The rest is reads-from and the modification orders of atomics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// The agent of each thread.
    pub agents: Vec<Agent>,
    /// The events. Those of one thread are in program order.
    pub events: Vec<Event>,
    /// Pairs of events where the first system-synchronizes-with the second.
    pub system: Vec<(usize, usize)>,
    /// The command of the API that each thread is part of; empty if commands do not matter. Repairs need it, the
    /// relations do not: they only see the edges in `system`.
    pub commands: Vec<Command>,
}

impl Trace {
    /// Number of events.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The agent that executes `event`.
    pub fn agent(&self, event: usize) -> Agent {
        self.agents[self.events[event].thread]
    }

    /// Whether the same agent executes both.
    pub fn same_agent(&self, a: usize, b: usize) -> bool {
        self.events[a].thread == self.events[b].thread
    }

    /// Whether the agent of `b` is in the instance of `scope` that contains the agent of `a`.
    pub fn shares(&self, a: usize, b: usize, scope: Scope) -> bool {
        self.same_agent(a, b) || self.agent(a).shares(self.agent(b), scope)
    }

    /// The command that executes `event`, if it is known.
    pub fn command(&self, event: usize) -> Option<Command> {
        self.commands.get(self.events[event].thread).copied()
    }

    /// The operation of `event`.
    pub fn operation(&self, event: usize) -> &Operation {
        &self.events[event].operation
    }
}
