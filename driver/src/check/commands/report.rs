//! Findings about commands: which two, which memory, what is missing, what repairs it.

use std::ops::Range;
use std::sync::Arc;

use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::BindingKind;

use super::AccessInfo;
use super::events::{SyncEvent, SyncLog};
use super::order::{Lack, Order, Point};
use super::scope::{Accesses, Side, Stages};
use crate::check::checker::Checker;
use crate::check::finding::{Finding, FoundAccess, Hazard, Rule, Severity};
use crate::check::found_command::FoundCommand;
use crate::check::found_memory::{FoundMemory, FoundPlace};
use crate::check::names::{KernelNames, WorkgroupGrid};
use crate::exec::{CommandId, Recording, Work};

/// A command, or the host, for findings.
#[derive(Debug)]
pub(super) struct CommandInfo {
    /// `None` is the host.
    id: Option<CommandId>,
    found: Option<Arc<FoundCommand>>,
    /// Of a dispatch.
    kernel: Option<Kernel>,
    transition: bool,
    /// The instruction of the host, if it is known.
    host_place: Option<String>,
}

/// What a dispatch ran.
#[derive(Debug)]
struct Kernel {
    names: Arc<KernelNames>,
    buffers: Box<[GuestSlice]>,
    grid: WorkgroupGrid,
}

impl CommandInfo {
    pub(super) fn new(id: CommandId, recording: &Recording) -> Self {
        let work = recording.phases.get(id.phase).and_then(|commands| commands.get(id.command));
        let (pipeline, module) = match work {
            Some(Work::Dispatch(dispatch)) => {
                (dispatch.state.pipeline_name.clone(), dispatch.state.module_name.clone())
            }
            _ => (None, None),
        };
        let found = FoundCommand {
            name: recording.name_of(id.phase, id.command).into(),
            pipeline,
            module,
            number: recording.phases.number(id.phase, id.command) as u32,
            command_buffer: recording.debug_name.clone(),
            index: id.recording as u32,
            submission: id.submission.serial,
            queue: id.submission.queue as u32,
        };
        Self { id: Some(id), found: Some(Arc::new(found)), kernel: None, transition: false, host_place: None }
    }

    /// The host, at a place of the program if it is known.
    pub(super) fn host(host_place: Option<String>) -> Arc<Self> {
        Arc::new(Self { id: None, found: None, kernel: None, transition: false, host_place })
    }

    /// The layout transition of a barrier before a command.
    pub(super) fn transition(next: &Self) -> Self {
        let found = next.found.as_ref().map(|found| {
            Arc::new(FoundCommand {
                name: format!("layout transition before {}", found.name).into(),
                pipeline: None,
                module: None,
                ..(**found).clone()
            })
        });
        Self { id: next.id, found, kernel: None, transition: true, host_place: None }
    }

    /// The dispatch, with the names of its kernel.
    pub(super) fn of_kernel(&self, names: &Arc<KernelNames>, buffers: &[GuestSlice], grid: WorkgroupGrid) -> Self {
        let kernel = Kernel { names: Arc::clone(names), buffers: buffers.into(), grid };
        Self { id: self.id, found: self.found.clone(), kernel: Some(kernel), transition: false, host_place: None }
    }

    /// The command, as findings name it; `None` is the host.
    pub(super) fn found(&self) -> Option<Arc<FoundCommand>> {
        self.found.clone()
    }

    /// The command; `None` is the host.
    pub(super) fn id(&self) -> Option<CommandId> {
        self.id
    }

    /// Whether it is the layout transition of a barrier.
    pub(super) fn is_transition(&self) -> bool {
        self.transition
    }

    /// The addresses where the memory of its descriptors begins and ends.
    pub(super) fn bounds_of_descriptors(&self) -> impl Iterator<Item = u64> {
        let buffers = self.kernel.iter().flat_map(|kernel| &*kernel.buffers);
        buffers.flat_map(|buffer| [0, buffer.len()].map(|end| (buffer.address() as u64).saturating_add(end)))
    }

    /// Bytes of host memory that it occupies, about.
    pub(super) fn bytes(&self) -> u64 {
        let buffers = self.kernel.as_ref().map_or(0, |kernel| size_of_val(&*kernel.buffers));
        (size_of::<Self>() + size_of::<FoundCommand>() + buffers) as u64
    }

    /// Whether both are one command.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.id == other.id && self.transition == other.transition
    }
}

/// The access type of an instruction, by the descriptor that it uses.
pub(super) fn access_type(names: &KernelNames, reference: u32, writes: bool) -> Accesses {
    use BindingKind::{CombinedImageSampler, SampledImage, UniformBuffer, UniformTexelBuffer};
    match names.binding_kind(reference) {
        _ if writes => Accesses::STORAGE_WRITE,
        Some(UniformBuffer) => Accesses::UNIFORM_READ,
        Some(SampledImage | CombinedImageSampler | UniformTexelBuffer) => Accesses::SAMPLED_READ,
        _ => Accesses::STORAGE_READ,
    }
}

/// Two accesses without a dependency.
pub(super) struct CommandRace<'a> {
    pub(super) hazard: Hazard,
    pub(super) lack: Lack,
    /// The bytes for which it is missing.
    pub(super) bytes: Range<u64>,
    pub(super) pair: (&'a AccessInfo, &'a AccessInfo),
    pub(super) points: (Point, Point),
    /// What is ordered after the first access, by these events.
    pub(super) order: &'a Order,
    /// The events between the two; if the second one ran first, those from the submission of the first one up to it.
    pub(super) between: Range<u64>,
    /// Whether the second one, which was submitted later, ran first.
    pub(super) is_reversed: bool,
    pub(super) events: &'a SyncLog,
    /// What all races of the two commands need, if they are known.
    pub(super) needs: Option<Needs>,
}

/// What a dependency between two accesses must have in its scopes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Needs {
    pub(super) src: Side,
    pub(super) dst: Side,
}

impl Needs {
    /// What both need.
    pub(super) fn or(self, other: Self) -> Self {
        Self { src: self.src.or(other.src), dst: self.dst.or(other.dst) }
    }
}

fn access(info: &AccessInfo, point: Point, bytes: &Range<u64>) -> FoundAccess {
    let command = info.command.found.clone();
    let instruction = info.command.kernel.as_ref().zip(info.site);
    // The invocation is known of one address that each instruction accessed.
    let example = info.example.filter(|(address, _)| bytes.contains(address));
    let mut access = match instruction {
        Some((kernel, site)) => match example {
            Some((_, by)) => kernel.names.access_by(site, by, kernel.grid),
            None => kernel.names.access(site),
        },
        None => FoundAccess::of_command(match point.access {
            Accesses::HOST_READ => "read by the host",
            Accesses::HOST_WRITE => "write by the host",
            Accesses::INDIRECT_READ => "read of the workgroup counts",
            Accesses::CONDITIONAL_READ => "read of the condition",
            _ if info.command.transition => "layout transition",
            access if access.writes() => "write",
            _ => "read",
        }),
    };
    if let Some(place) = &info.command.host_place {
        access.action = format!("{} at {place}", access.action);
    }
    access.command = command;
    access
}

/// A stage mask, as the program writes it.
pub(super) fn stages(of: Stages) -> String {
    of.name()
}

/// A dependency that the program does not have, from a command to one that ran later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Missing {
    pub(super) earlier: CommandId,
    pub(super) later: CommandId,
    pub(super) rule: Rule,
}

impl CommandRace<'_> {
    pub(super) fn rule(&self) -> Rule {
        if self.lack == Lack::HostDomain { Rule::Host } else { Rule::Race(self.hazard) }
    }

    /// The finding: an advice, if the later access is only expected.
    pub(super) fn finding(&self, checker: &Checker, memory: FoundMemory, severity: Severity) -> Finding {
        let (first, second) = self.pair;
        Finding {
            rule: self.rule(),
            severity,
            memory: Some(memory),
            first: Some(access(first, self.points.0, &self.bytes)),
            second: access(second, self.points.1, &self.bytes),
            dispatch: None,
            between: self.between(),
            reasons: vec![self.reason()],
            repairs: self.repairs(),
            count: 1,
            schedule: checker.schedule(),
            group: None,
            replay: None,
        }
    }

    /// Whether both are regions of one call.
    pub(super) fn is_of_one_call(&self) -> bool {
        let [first, second] = [self.pair.0, self.pair.1].map(|of| &of.command);
        let call =
            |of: &CommandInfo| of.id().zip(of.found()).map(|(id, found)| (id.submission, id.recording, found.number));
        call(first).is_some() && call(first) == call(second) && first.is_transition() == second.is_transition()
    }

    /// The memory, as a descriptor of the later command or of the earlier one, or as a part of a buffer or image.
    pub(super) fn memory(&self, checker: &Checker) -> FoundMemory {
        let bytes = self.bytes.end - self.bytes.start;
        for info in [self.pair.1, self.pair.0] {
            if let Some(Kernel { names, buffers, .. }) = &info.command.kernel
                && let Some(memory) = names.descriptor(self.bytes.start, bytes, buffers)
            {
                return memory.of(checker.resources().find(&self.bytes));
            }
        }
        let unknown = FoundMemory::new(FoundPlace::Address(self.bytes.start), 0..bytes);
        checker.resources().find(&self.bytes).unwrap_or(unknown)
    }

    /// The dependencies between the two accesses, with their numbers. If the second one ran first, those of its queue:
    /// what other queues did until then does not come between the two.
    pub(super) fn events_between(&self) -> impl Iterator<Item = (u64, &SyncEvent)> {
        let all = self.events.from(self.between.start).take_while(|(number, _)| *number < self.between.end);
        all.filter(|(_, event)| {
            !self.is_reversed || matches!(event, SyncEvent::Submission { .. }) || event.queue() == self.points.1.queue
        })
    }

    /// The queue whose barrier makes the write visible to the host.
    pub(super) fn queue_of_host_barrier(&self) -> Option<u32> {
        self.order.made_visible_to_host(&self.bytes)
    }

    pub(super) fn name(&self, of: &AccessInfo) -> String {
        of.command.found.as_ref().map_or_else(|| "the access of the host".to_owned(), |found| found.to_string())
    }
}
