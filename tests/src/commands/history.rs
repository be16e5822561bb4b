//! What a program does, step by step: accesses with their stages, and dependencies with their scopes.
//!
//! It holds for programs whose submissions run one after another ([`super::Pace::InOrder`]), so that every wait of a
//! queue is for a signal that came before. Left out are layout transitions of waits for events and of barriers that no
//! command follows directly, secondary command buffers, queries, and semaphores that the host signals.

use std::collections::HashMap;

use spelter_driver::check::Hazard;
use spelter_driver::vk::{AccessFlags2 as A, PipelineStageFlags2 as S};

use super::program::{
    BUFFERS, Barrier, Command, Job, LAYERS, Memory, Part, Program, Quarter, Range, Scope, Semaphore, Step, Submit,
};

/// Stages that access memory, each with the stages that are logically later (Vulkan, "Pipeline Stages").
const PIPELINE: [(S, &[S]); 5] = [
    (S::DRAW_INDIRECT, &[S::COMPUTE_SHADER]),
    (S::COMPUTE_SHADER, &[]),
    (S::COPY, &[]),
    (S::CLEAR, &[]),
    (TRANSITION, &[]),
];

/// The stage of layout transitions, which Vulkan does not name: one of all commands.
pub(super) const TRANSITION: S = S::from_raw(1 << 62);

/// The access types that write.
const WRITES: A = A::from_raw(A::SHADER_STORAGE_WRITE.as_raw() | A::TRANSFER_WRITE.as_raw() | A::HOST_WRITE.as_raw());

/// What makes an access: a command, by its command buffer and its place there, or a step of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Owner {
    /// A command.
    Command(usize, usize),
    /// The layout transition of the barrier before that command.
    Transition(usize, usize),
    /// The host.
    Host,
}

/// An access to a range of a buffer.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) owner: Owner,
    /// `None` is the host.
    pub(super) queue: Option<usize>,
    pub(super) range: Range,
    pub(super) stage: S,
    pub(super) access: A,
    pub(super) writes: bool,
    pub(super) atomic: bool,
}

/// An item of a history.
#[derive(Clone, Debug)]
pub(super) enum Item {
    Access(Access),
    /// A barrier, of which what comes after item `set` is not in the first scope, if it belongs to an event.
    Barrier {
        queue: usize,
        barrier: Barrier,
        set: Option<usize>,
        command: usize,
    },
    /// The second scope of the barrier whose layout transition is the access of item `of`: what comes in it sees the
    /// image as the transition left it.
    TransitionEnd {
        queue: usize,
        barrier: Barrier,
        of: usize,
    },
    /// A semaphore or a fence is signalled after these stages.
    Signal {
        queue: usize,
        stages: S,
    },
    /// A queue waits for the signal with this number of an item.
    Wait {
        queue: usize,
        stages: S,
        signal: usize,
    },
    /// The host waits for the signal with this number of an item.
    HostWait {
        signal: usize,
    },
    /// The host submits what comes next on the queue, up to its next submission.
    Submission {
        queue: usize,
    },
    /// `vkCmdSetEvent`, which wait commands refer to.
    Set,
    /// `vkSetEvent`, which wait commands refer to.
    HostSet,
}

/// The items in the order in which they happen.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) items: Vec<Item>,
}

/// The stages of a mask on their own. The ends of the pipeline are none of them: they have no accesses.
pub(super) fn named(stages: S) -> S {
    let all = PIPELINE.iter().fold(S::NONE, |all, (stage, _)| all | *stage);
    let mut named = stages & (all | S::HOST);
    if stages.contains(S::ALL_COMMANDS) {
        named |= all;
    }
    if stages.contains(S::ALL_TRANSFER) {
        named |= S::COPY | S::CLEAR;
    }
    named
}

/// A mask in which an end of the pipeline is all commands.
fn with_end(stages: S, end: S) -> S {
    if stages.contains(end) { stages | S::ALL_COMMANDS } else { stages }
}

/// The first synchronization scope: with logically earlier stages.
pub(super) fn first_scope(stages: S) -> S {
    let named = named(with_end(stages, S::BOTTOM_OF_PIPE));
    PIPELINE
        .iter()
        .filter(|(_, later)| later.iter().any(|stage| named.contains(*stage)))
        .fold(named, |all, (s, _)| all | *s)
}

/// The second synchronization scope: with logically later stages.
pub(super) fn second_scope(stages: S) -> S {
    let named = named(with_end(stages, S::TOP_OF_PIPE));
    PIPELINE
        .iter()
        .filter(|(stage, _)| named.contains(*stage))
        .fold(named, |all, (_, later)| later.iter().fold(all, |all, stage| all | *stage))
}

/// Whether access flags include the one of an access.
pub(super) fn includes(flags: A, access: A) -> bool {
    let general = if WRITES.contains(access) { A::MEMORY_WRITE } else { A::MEMORY_READ };
    let shader = match access {
        A::SHADER_STORAGE_READ | A::SHADER_SAMPLED_READ => A::SHADER_READ,
        A::SHADER_STORAGE_WRITE => A::SHADER_WRITE,
        _ => A::NONE,
    };
    flags.contains(access) || flags.contains(general) || shader != A::NONE && flags.contains(shader)
}

/// The ranges that a barrier is for; none if that is all memory.
pub(super) fn barrier_ranges(memory: Memory) -> Vec<Range> {
    match memory {
        Memory::All => Vec::new(),
        Memory::Buffer(of) => vec![of],
        Memory::Image { image, layer, .. } => texels(&Part { image, layer, quarter: None }),
    }
}

/// Whether a barrier is for a range.
pub(super) fn covers(memory: Memory, range: Range) -> bool {
    let has = |of: &Range| same_memory(*of, range) && of.start <= range.start && range.end <= of.end;
    memory == Memory::All || barrier_ranges(memory).iter().any(has)
}

/// Whether two ranges are of one memory: buffers `g` and `h` share theirs, and images `k` and `l`.
pub(super) fn same_memory(a: Range, b: Range) -> bool {
    let (first, second) = (a.buffer.min(b.buffer), a.buffer.max(b.buffer));
    first == second || [(6, 7), (BUFFERS + 2, BUFFERS + 3)].contains(&(first, second))
}

/// Parts of a layer of an image that commands access whole or not at all, as if they were bytes: the first texel, the
/// rest of the first quarter, the two quarters that no command accesses alone, the last quarter.
const PARTS: u64 = 4;

/// All of an image, as a range of a buffer of its own after the others.
pub(super) fn whole_image(image: usize) -> Range {
    Range { buffer: BUFFERS + image, start: 0, end: PARTS * u64::from(LAYERS) }
}

/// A part of an image: a range for each layer, or all of it.
fn texels(part: &Part) -> Vec<Range> {
    let (start, end) = match part.quarter {
        None => (0, PARTS),
        Some(Quarter::First) => (0, 2),
        Some(Quarter::Last) => (PARTS - 1, PARTS),
    };
    let layers = part.layer.map_or(0..LAYERS, |layer| layer..layer + 1);
    let buffer = BUFFERS + part.image;
    layers.map(|layer| u64::from(layer) * PARTS).map(|at| Range { buffer, start: at + start, end: at + end }).collect()
}

/// The accesses of a command, and which are atomics.
fn accesses(command: &Command) -> Vec<(Range, S, A, bool)> {
    let (compute, read, write) = (S::COMPUTE_SHADER, A::SHADER_STORAGE_READ, A::SHADER_STORAGE_WRITE);
    let atomic = |of: &Range| [(*of, compute, read, true), (*of, compute, write, true)];
    let image =
        |part: &Part, stage, access| texels(part).into_iter().map(move |of| (of, stage, access)).collect::<Vec<_>>();
    let first_texel = |image: &usize| Range { buffer: BUFFERS + image, start: 0, end: 1 };
    let plain = match command {
        Command::Copy { from, to } => {
            vec![(*from, S::COPY, A::TRANSFER_READ), (*to, S::COPY, A::TRANSFER_WRITE)]
        }
        Command::Fill(to) | Command::Update(to) => vec![(*to, S::CLEAR, A::TRANSFER_WRITE)],
        Command::Dispatch(job) | Command::DispatchBase(job) => match job {
            Job::Read(from) => vec![(*from, compute, read)],
            Job::Write(to) => vec![(*to, compute, write)],
            Job::Move { from, to } => vec![(*from, compute, read), (*to, compute, write)],
            Job::Uniform(from) => vec![(*from, compute, A::UNIFORM_READ)],
            Job::Both(of) => vec![(*of, compute, A::UNIFORM_READ), (*of, compute, read)],
            Job::Increment(of) => vec![(*of, compute, read), (*of, compute, write)],
            Job::Restart(of) => vec![(*of, compute, write)],
            Job::Double(of) => vec![(*of, compute, read)],
            Job::Load(of) => vec![(first_texel(of), compute, read)],
            Job::Store(of) => vec![(first_texel(of), compute, write)],
            Job::Sample(of) => vec![(first_texel(of), compute, A::SHADER_SAMPLED_READ)],
            Job::Indirect(from) => vec![(*from, S::DRAW_INDIRECT, A::INDIRECT_COMMAND_READ)],
            _ => Vec::new(),
        },
        Command::CopyImage { from, to } => {
            let mut all = image(from, S::COPY, A::TRANSFER_READ);
            all.extend(image(to, S::COPY, A::TRANSFER_WRITE));
            all
        }
        Command::Upload { from, to } => {
            let mut all = vec![(*from, S::COPY, A::TRANSFER_READ)];
            all.extend(image(to, S::COPY, A::TRANSFER_WRITE));
            all
        }
        Command::Download { from, to } => {
            let mut all = image(from, S::COPY, A::TRANSFER_READ);
            all.push((*to, S::COPY, A::TRANSFER_WRITE));
            all
        }
        Command::Clear(of) => image(&Part { image: *of, layer: None, quarter: None }, S::CLEAR, A::TRANSFER_WRITE),
        _ => Vec::new(),
    };
    let mut all: Vec<_> = plain.into_iter().map(|(range, stage, access)| (range, stage, access, false)).collect();
    if let Command::Dispatch(Job::Atomic(of) | Job::Restart(of) | Job::Double(of))
    | Command::DispatchBase(Job::Atomic(of) | Job::Restart(of) | Job::Double(of)) = command
    {
        all.extend(atomic(of));
    }
    all
}

impl History {
    /// The history of a program.
    pub(super) fn of(program: &Program) -> Self {
        let mut history = Self::default();
        let mut signals: HashMap<(bool, usize), Vec<(u64, usize)>> = HashMap::new();
        let mut fences: HashMap<usize, usize> = HashMap::new();
        let mut ends: HashMap<usize, usize> = HashMap::new();
        let mut events = HashMap::new();
        for step in &program.steps {
            match step {
                Step::Submit(submit) => {
                    history.submit(program, submit, &mut signals, &mut events);
                    let end = history.push(Item::Signal { queue: submit.queue, stages: S::ALL_COMMANDS });
                    ends.insert(submit.queue, end);
                    submit.fence.map(|fence| fences.insert(fence, end));
                }
                Step::WaitFence(fence) => {
                    fences.get(fence).map(|signal| history.push(Item::HostWait { signal: *signal }));
                }
                Step::WaitIdle => {
                    let mut ends: Vec<_> = ends.values().copied().collect();
                    ends.sort_unstable();
                    ends.into_iter().for_each(|signal| _ = history.push(Item::HostWait { signal }));
                }
                Step::WaitSemaphore(number, value) => {
                    let signal = signal_of(&signals, Semaphore::Timeline(*number, *value));
                    signal.map(|signal| history.push(Item::HostWait { signal }));
                }
                Step::Read(range) => history.host(*range, A::HOST_READ),
                Step::Write(range) => history.host(*range, A::HOST_WRITE),
                Step::SetEvent(event) => {
                    let item = history.push(Item::HostSet);
                    events.insert(*event, item);
                }
                Step::SignalSemaphore(..) => {}
            }
        }
        history
    }

    fn push(&mut self, item: Item) -> usize {
        self.items.push(item);
        self.items.len() - 1
    }

    fn host(&mut self, range: Range, access: A) {
        let writes = access == A::HOST_WRITE;
        let (owner, stage) = (Owner::Host, S::HOST);
        self.push(Item::Access(Access { owner, queue: None, range, stage, access, writes, atomic: false }));
    }

    fn submit(
        &mut self,
        program: &Program,
        submit: &Submit,
        signals: &mut HashMap<(bool, usize), Vec<(u64, usize)>>,
        events: &mut HashMap<usize, usize>,
    ) {
        let queue = submit.queue;
        self.push(Item::Submission { queue });
        for wait in &submit.waits {
            if let Some(signal) = signal_of(signals, wait.semaphore) {
                self.push(Item::Wait { queue, stages: wait.stages, signal });
            }
        }
        for &number in &submit.recordings {
            for (at, command) in program.recordings[number].commands.iter().enumerate() {
                self.command(queue, (number, at), command, events);
            }
        }
        for signal in &submit.signals {
            let item = self.push(Item::Signal { queue, stages: signal.stages });
            let (key, value) = match signal.semaphore {
                Semaphore::Binary(number) => ((true, number), 0),
                Semaphore::Timeline(number, value) => ((false, number), value),
            };
            signals.entry(key).or_default().push((value, item));
        }
    }

    fn command(
        &mut self,
        queue: usize,
        (number, at): (usize, usize),
        command: &Command,
        events: &mut HashMap<usize, usize>,
    ) {
        let number_of_command = self.items.len();
        let barriers = |history: &mut Self, list: &[Barrier], set| {
            for &barrier in list {
                history.push(Item::Barrier { queue, barrier, set, command: number_of_command });
            }
        };
        match command {
            Command::Barrier(list) => {
                for barrier in list {
                    self.transition(queue, (number, at + 1), barrier, number_of_command);
                }
                barriers(self, list, None);
            }
            Command::OldBarrier(list) => {
                // All have the stages of the call, and there is an execution dependency.
                let Some(first) = list.first() else { return };
                let (src, dst) = (first.src.stages, first.dst.stages);
                let with = |barrier: &Barrier| Barrier {
                    src: Scope { stages: src, ..barrier.src },
                    dst: Scope { stages: dst, ..barrier.dst },
                    ..*barrier
                };
                let none = |stages| Scope { stages, access: A::NONE };
                let execution = Barrier { src: none(src), dst: none(dst), memory: Memory::All };
                barriers(self, &[execution], None);
                barriers(self, &list.iter().map(with).collect::<Vec<_>>(), None);
            }
            Command::Set(event, _) => {
                let item = self.push(Item::Set);
                events.insert(*event, item);
            }
            Command::Wait(list) => {
                list.iter().for_each(|(event, list)| barriers(self, list, events.get(event).copied()));
            }
            _ => {
                let owner = Owner::Command(number, at);
                for (range, stage, access, atomic) in accesses(command) {
                    let (queue, writes) = (Some(queue), WRITES.contains(access));
                    self.push(Item::Access(Access { owner, queue, range, stage, access, writes, atomic }));
                }
            }
        }
    }
}

impl History {
    /// The layout transition of a barrier, which is between its two scopes.
    fn transition(&mut self, queue: usize, next: (usize, usize), barrier: &Barrier, command: usize) {
        let Memory::Image { image, layer, transition: true } = barrier.memory else { return };
        let to = Scope { stages: TRANSITION, access: A::NONE };
        self.push(Item::Barrier { queue, barrier: Barrier { dst: to, ..*barrier }, set: None, command });
        let owner = Owner::Transition(next.0, next.1);
        for range in texels(&Part { image, layer, quarter: None }) {
            let (stage, access) = (TRANSITION, A::TRANSFER_WRITE);
            let access = Access { owner, queue: Some(queue), range, stage, access, writes: true, atomic: false };
            let of = self.push(Item::Access(access));
            self.push(Item::TransitionEnd { queue, barrier: *barrier, of });
        }
    }
}

/// The signal that a wait is for: of a timeline the one that reached the value first.
fn signal_of(signals: &HashMap<(bool, usize), Vec<(u64, usize)>>, semaphore: Semaphore) -> Option<usize> {
    match semaphore {
        Semaphore::Binary(number) => signals.get(&(true, number))?.last().map(|(_, item)| *item),
        Semaphore::Timeline(number, value) => {
            let reached = signals.get(&(false, number))?.iter().filter(|(of, _)| *of >= value);
            reached.min_by_key(|(of, _)| *of).map(|(_, item)| *item)
        }
    }
}

/// The hazard of two accesses, if one of them writes and they are not both atomic.
pub(super) fn hazard(first: &Access, second: &Access) -> Option<Hazard> {
    match (first.writes, second.writes) {
        _ if first.atomic && second.atomic => None,
        // Those of a queue happen in submission order.
        _ if first.stage == TRANSITION && second.stage == TRANSITION && first.queue == second.queue => None,
        (true, true) => Some(Hazard::WriteAfterWrite),
        (true, false) => Some(Hazard::ReadAfterWrite),
        (false, true) => Some(Hazard::WriteAfterRead),
        (false, false) => None,
    }
}
