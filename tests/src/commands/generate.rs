//! Random programs: few buffers, so that accesses meet, and dependencies of all kinds, most of them nearly right.

use spelter_driver::vk::{AccessFlags2 as A, PipelineStageFlags2 as S};

use super::program::{
    BUFFER, Barrier, Command, Job, LAYERS, Memory, Part, Program, Quarter, Range, Recording, Scope, Semaphore, Signal,
    Step, Submit,
};
use crate::mutate::Rng;

/// Buffers that accesses are to, of which the last two share their memory.
const TARGETS: [usize; 4] = [0, 1, 6, 7];

/// Images that accesses are to, of which the last two share their memory.
const IMAGES: [usize; 3] = [0, 2, 3];

/// Offsets and sizes of accesses.
const PLACES: [(u64, u64); 6] = [(0, BUFFER), (0, 64), (64, 64), (0, 16), (128, 128), (16, 12)];

/// Scopes that fit the accesses of commands, and some that fit none or many.
const SCOPES: [(S, A); 21] = [
    (S::COPY, A::TRANSFER_READ),
    (S::COPY, A::TRANSFER_WRITE),
    (S::CLEAR, A::TRANSFER_WRITE),
    (S::ALL_TRANSFER, A::TRANSFER_WRITE),
    (S::COMPUTE_SHADER, A::SHADER_STORAGE_READ),
    (S::COMPUTE_SHADER, A::SHADER_STORAGE_WRITE),
    (S::COMPUTE_SHADER, A::SHADER_READ),
    (S::COMPUTE_SHADER, A::SHADER_WRITE),
    (S::COMPUTE_SHADER, A::UNIFORM_READ),
    (S::COMPUTE_SHADER, A::SHADER_SAMPLED_READ),
    (S::DRAW_INDIRECT, A::INDIRECT_COMMAND_READ),
    (S::HOST, A::HOST_READ),
    (S::HOST, A::HOST_WRITE),
    (S::ALL_COMMANDS, A::MEMORY_WRITE),
    (S::ALL_COMMANDS, A::MEMORY_READ),
    (S::ALL_COMMANDS, A::NONE),
    (S::TOP_OF_PIPE, A::NONE),
    (S::TOP_OF_PIPE, A::MEMORY_READ),
    (S::BOTTOM_OF_PIPE, A::NONE),
    (S::BOTTOM_OF_PIPE, A::MEMORY_WRITE),
    (S::NONE, A::NONE),
];

/// The device's number of queues that programs use.
const QUEUES: usize = 3;

/// Commands that access memory, at most.
const MAX_COMMANDS: usize = 8;

/// What a program has so far.
struct Maker {
    rng: Rng,
    program: Program,
    /// Binary semaphores that are signalled and that nothing waited for.
    signalled: Vec<usize>,
    binary: usize,
    timeline: u64,
    fences: usize,
    /// Events that are set, each with its queue, or `None` if the host sets it, and its barriers.
    set: Vec<(usize, Option<usize>, Vec<Barrier>)>,
    events: usize,
    accesses: usize,
}

/// An image that a command accesses.
fn image_of(command: &Command) -> Option<usize> {
    match command {
        Command::CopyImage { to, .. } | Command::Upload { to, .. } => Some(to.image),
        Command::Download { from, .. } => Some(from.image),
        Command::Clear(image) | Command::Dispatch(Job::Load(image) | Job::Store(image) | Job::Sample(image)) => {
            Some(*image)
        }
        _ => None,
    }
}

impl Program {
    /// The program of a seed.
    pub fn random(seed: u64) -> Self {
        let mut maker = Maker {
            rng: Rng::new(seed ^ 0x5eed_c0de),
            program: Self::default(),
            signalled: Vec::new(),
            binary: 0,
            timeline: 0,
            fences: 0,
            set: Vec::new(),
            events: 0,
            accesses: 0,
        };
        let commands = 2 + maker.rng.below(MAX_COMMANDS - 1);
        while maker.accesses < commands {
            maker.submit(commands);
            maker.host(commands);
        }
        maker.program
    }
}

impl Maker {
    fn chance(&mut self, of: usize) -> bool {
        self.rng.below(of) == 0
    }

    fn range(&mut self) -> Range {
        let (buffer, (start, bytes)) = (self.rng.pick(&TARGETS), self.rng.pick(&PLACES));
        Range { buffer, start, end: start + bytes }
    }

    /// Another buffer, with as many bytes.
    fn other(&mut self, than: Range) -> Range {
        let apart = |buffer: &usize| (*buffer).min(6) != than.buffer.min(6);
        let others: Vec<usize> = TARGETS.into_iter().filter(apart).collect();
        let fits: Vec<u64> = [0, 64, 128].into_iter().filter(|start| start + than.bytes() <= BUFFER).collect();
        let (buffer, start) = (self.rng.pick(&others), self.rng.pick(&fits));
        Range { buffer, start, end: start + than.bytes() }
    }

    fn access(&mut self) -> Command {
        let range = self.range();
        match self.rng.below(20) {
            0 | 1 => {
                let to = self.other(range);
                Command::Copy { from: range, to }
            }
            2 => Command::Fill(range),
            3 => Command::Update(range),
            4 | 5 => Command::Dispatch(Job::Read(range)),
            6 | 7 => Command::Dispatch(Job::Write(range)),
            8 => {
                let to = self.other(range);
                Command::Dispatch(Job::Move { from: range, to })
            }
            9 => Command::Dispatch(Job::Atomic(range)),
            10 | 11 => {
                let (start, bytes) = self.rng.pick(&[(0, BUFFER), (0, 64), (64, 64), (0, 16)]);
                let of = Range { buffer: range.buffer, start, end: start + bytes };
                Command::Dispatch(if self.chance(2) { Job::Uniform(of) } else { Job::Both(of) })
            }
            12 => Command::Dispatch(Job::Restart(range)),
            13 => Command::Dispatch(Job::Double(range)),
            14 => Command::Dispatch(Job::Increment(range)),
            15 => Command::Dispatch(Job::Indirect(Range { end: range.start + 12, ..range })),
            _ => self.image_access(),
        }
    }

    fn image_access(&mut self) -> Command {
        let image = self.rng.pick(&IMAGES);
        let layer = self.rng.pick(&[None, Some(0), Some(LAYERS - 1)]);
        let quarter = self.rng.pick(&[None, Some(Quarter::First), Some(Quarter::Last)]);
        let part = Part { image, layer, quarter };
        // A buffer has the texels of one layer.
        let one = Part { layer: layer.or(Some(0)), ..part };
        let (start, bytes) = if quarter.is_some() { (64 * self.rng.below(2) as u64, BUFFER / 4) } else { (0, BUFFER) };
        let range = Range { buffer: self.rng.pick(&TARGETS), start, end: start + bytes };
        match self.rng.below(8) {
            0 => Command::Clear(image),
            1 | 2 => Command::Upload { from: range, to: one },
            3 => Command::Download { from: one, to: range },
            4 => {
                // In other memory.
                let image = if image == 0 { self.rng.pick(&IMAGES[1..]) } else { 0 };
                let layer = layer.map(|layer| if self.chance(2) { layer } else { LAYERS - 1 - layer });
                let quarter = quarter.map(|_| self.rng.pick(&[Quarter::First, Quarter::Last]));
                Command::CopyImage { from: part, to: Part { image, layer, quarter } }
            }
            5 => Command::Dispatch(Job::Load(image)),
            6 => Command::Dispatch(Job::Store(image)),
            _ => Command::Dispatch(Job::Sample(image)),
        }
    }

    fn scope(&mut self) -> Scope {
        let (stages, access) = self.rng.pick(&SCOPES);
        let (more, too) = if self.chance(3) { self.rng.pick(&SCOPES) } else { (S::NONE, A::NONE) };
        let access = if self.chance(8) { A::NONE } else { access };
        Scope { stages: stages | more, access: access | too }
    }

    fn barrier(&mut self) -> Barrier {
        let memory = match self.rng.below(6) {
            0 | 1 => Memory::Buffer(self.range()),
            2 => {
                let (image, layer) = (self.rng.pick(&IMAGES), self.rng.pick(&[None, Some(0), Some(LAYERS - 1)]));
                Memory::Image { image, layer, transition: false }
            }
            _ => Memory::All,
        };
        Barrier { src: self.scope(), dst: self.scope(), memory }
    }

    fn barriers(&mut self) -> Vec<Barrier> {
        let count = if self.chance(4) { 2 } else { 1 };
        (0..count).map(|_| self.barrier()).collect()
    }

    fn recording(&mut self, queue: usize, commands: usize) -> Recording {
        let mut recording = Recording::default();
        let count = 1 + self.rng.below(3);
        let mut own = 0;
        while own < count && self.accesses < commands {
            if self.chance(3) {
                let command = self.dependency(queue);
                recording.commands.push(command);
            }
            let access = self.access();
            if let Some(image) = image_of(&access).filter(|_| self.chance(2)) {
                let layer = self.rng.pick(&[None, Some(0), Some(LAYERS - 1)]);
                let memory = Memory::Image { image, layer, transition: true };
                recording.commands.push(Command::Barrier(vec![Barrier { memory, ..self.barrier() }]));
            }
            recording.commands.push(access);
            (own, self.accesses) = (own + 1, self.accesses + 1);
            for _ in 0..self.rng.below(3) {
                let command = self.dependency(queue);
                recording.commands.push(command);
            }
        }
        recording
    }

    fn dependency(&mut self, queue: usize) -> Command {
        let set = |of: &Self| of.set.iter().position(|(_, on, _)| on.is_none_or(|on| on == queue));
        let waiting = set(self);
        match (self.rng.below(8), waiting) {
            (0, _) if self.events < 8 => {
                let barriers = self.barriers();
                self.set.push((self.events, Some(queue), barriers.clone()));
                self.events += 1;
                Command::Set(self.events - 1, barriers)
            }
            (0..=2, Some(at)) => {
                let mut list = vec![self.set.remove(at)];
                if let Some(another) = set(self).filter(|_| self.chance(2)) {
                    list.push(self.set.remove(another));
                }
                Command::Wait(list.into_iter().map(|(event, _, barriers)| (event, barriers)).collect())
            }
            (3, _) => Command::OldBarrier(self.old_barriers()),
            _ => Command::Barrier(self.barriers()),
        }
    }

    /// Barriers with one pair of stage masks, and accesses that these support.
    fn old_barriers(&mut self) -> Vec<Barrier> {
        let old = |scope: &Scope| match scope.stages {
            S::COPY | S::CLEAR => S::ALL_TRANSFER,
            S::NONE => S::ALL_COMMANDS,
            stages => stages,
        };
        let sides = [0, 1].map(|_| {
            let (stages, access) = self.rng.pick(&SCOPES);
            let scope = Scope { stages, access };
            let access = match access {
                A::SHADER_STORAGE_READ | A::SHADER_SAMPLED_READ => A::SHADER_READ,
                A::SHADER_STORAGE_WRITE => A::SHADER_WRITE,
                access => access,
            };
            Scope { stages: old(&scope), access }
        });
        let memory = if self.chance(2) { Memory::Buffer(self.range()) } else { Memory::All };
        vec![Barrier { src: sides[0], dst: sides[1], memory }]
    }

    fn stages(&mut self) -> S {
        match self.rng.below(3) {
            0 => S::ALL_COMMANDS,
            _ => self.rng.pick(&SCOPES).0,
        }
    }

    fn submit(&mut self, commands: usize) {
        let queue = self.rng.below(QUEUES);
        let mut submit = Submit { queue, ..Submit::default() };
        if !self.signalled.is_empty() && !self.chance(3) {
            let at = self.rng.below(self.signalled.len());
            let semaphore = Semaphore::Binary(self.signalled.remove(at));
            submit.waits.push(Signal { semaphore, stages: self.stages() });
        }
        if self.timeline > 0 && self.chance(3) {
            let value = 1 + self.rng.below(self.timeline as usize) as u64;
            submit.waits.push(Signal { semaphore: Semaphore::Timeline(0, value), stages: self.stages() });
        }
        for _ in 0..1 + self.rng.below(2) {
            let recording = self.recording(queue, commands);
            self.program.recordings.push(recording);
            submit.recordings.push(self.program.recordings.len() - 1);
        }
        if self.binary < 8 && self.chance(2) {
            submit.signals.push(Signal { semaphore: Semaphore::Binary(self.binary), stages: self.stages() });
            self.signalled.push(self.binary);
            self.binary += 1;
        }
        if self.chance(3) {
            self.timeline += 1 + self.rng.below(2) as u64;
            submit.signals.push(Signal { semaphore: Semaphore::Timeline(0, self.timeline), stages: self.stages() });
        }
        if self.fences < 8 && self.chance(2) {
            submit.fence = Some(self.fences);
            self.fences += 1;
        }
        self.program.steps.push(Step::Submit(submit));
    }

    fn host(&mut self, commands: usize) {
        if self.fences > 0 && self.chance(2) {
            let fence = self.rng.below(self.fences);
            self.program.steps.push(Step::WaitFence(fence));
        }
        match self.rng.below(8) {
            0 => self.program.steps.push(Step::WaitIdle),
            1 if self.timeline > 0 => {
                let value = 1 + self.rng.below(self.timeline as usize) as u64;
                self.program.steps.push(Step::WaitSemaphore(0, value));
            }
            2 | 3 if self.accesses < commands => {
                let range = self.range();
                let step = if self.chance(2) { Step::Read(range) } else { Step::Write(range) };
                self.program.steps.push(step);
                self.accesses += 1;
            }
            4 if self.events < 8 => {
                // The first scope of the wait has the host's signal only with the stage HOST.
                let mut barriers = self.barriers();
                if !self.chance(3) {
                    barriers.iter_mut().for_each(|barrier| barrier.src.stages |= S::HOST);
                }
                self.set.push((self.events, None, barriers));
                self.program.steps.push(Step::SetEvent(self.events));
                self.events += 1;
            }
            _ => {}
        }
    }
}
