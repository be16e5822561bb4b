//! Prints programs in their text form (`text.rs`).

use std::fmt::{self, Display};

use spelter_driver::vk::PipelineStageFlags2 as Stage;

use super::program::{
    Barrier, Command, Job, Memory, Part, Program, Quarter, Range, Recording, Scope, Semaphore, Signal, Step, Submit,
};
use super::text::{ACCESSES, STAGES};

/// A buffer's letter.
fn buffer_name(buffer: usize) -> char {
    char::from(b'a' + buffer as u8)
}

/// An image's letter.
fn image_name(image: usize) -> char {
    char::from(b'i' + image as u8)
}

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", buffer_name(self.buffer))?;
        if *self == Self::whole(self.buffer) { Ok(()) } else { write!(f, ":{}..{}", self.start, self.end) }
    }
}

impl Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", image_name(self.image))?;
        if self.layer.is_some() || self.quarter.is_some() {
            write!(f, ".")?;
        }
        self.layer.map_or(Ok(()), |layer| write!(f, "{layer}"))?;
        match self.quarter {
            Some(Quarter::First) => write!(f, "q0"),
            Some(Quarter::Last) => write!(f, "q3"),
            None => Ok(()),
        }
    }
}

fn names<T: Copy>(table: &[(&str, T)], has: impl Fn(T) -> bool) -> String {
    let names: Vec<_> = table.iter().skip(1).filter(|(_, flag)| has(*flag)).map(|(name, _)| *name).collect();
    if names.is_empty() { "NONE".to_owned() } else { names.join("|") }
}

fn stage_names(stages: Stage) -> String {
    names(&STAGES, |flag| stages.contains(flag))
}

impl Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", stage_names(self.stages))?;
        if self.access.is_empty() {
            return Ok(());
        }
        write!(f, ":{}", names(&ACCESSES, |flag| self.access.contains(flag)))
    }
}

impl Display for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} -> {}", self.src, self.dst)?;
        match self.memory {
            Memory::All => Ok(()),
            Memory::Buffer(range) => write!(f, " on {range}"),
            Memory::Image { image, layer, transition } => {
                let part = Part { image, layer, quarter: None };
                write!(f, " {} {part}", if transition { "transition" } else { "on" })
            }
        }
    }
}

fn join<T: Display>(list: &[T], between: &str) -> String {
    list.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

impl Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(of) => write!(f, "read {of}"),
            Self::Write(of) => write!(f, "write {of}"),
            Self::Move { from, to } => write!(f, "move {from} {to}"),
            Self::Increment(of) => write!(f, "increment {of}"),
            Self::Uniform(of) => write!(f, "uniform {of}"),
            Self::Both(of) => write!(f, "both {of}"),
            Self::Atomic(of) => write!(f, "atomic {of}"),
            Self::Restart(of) => write!(f, "restart {of}"),
            Self::Double(of) => write!(f, "double {of}"),
            Self::Texels(of) => write!(f, "texels {of}"),
            Self::Append { counter, to } => write!(f, "append {} {}", buffer_name(*counter), buffer_name(*to)),
            Self::Indirect(of) => write!(f, "indirect {of}"),
            Self::Size(of) => write!(f, "size {}", image_name(*of)),
            Self::Load(of) => write!(f, "load {}", image_name(*of)),
            Self::Store(of) => write!(f, "store {}", image_name(*of)),
            Self::Sample(of) => write!(f, "sample {}", image_name(*of)),
        }
    }
}

impl Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Copy { from, to } => write!(f, "copy {from} {to}"),
            Self::Fill(of) => write!(f, "fill {of}"),
            Self::Update(of) => write!(f, "update {of}"),
            Self::Query(of) => write!(f, "query {of}"),
            Self::Dispatch(job) => job.fmt(f),
            Self::DispatchBase(job) => write!(f, "base {job}"),
            Self::CopyImage { from, to } => write!(f, "copy {from} {to}"),
            Self::Upload { from, to } => write!(f, "copy {from} {to}"),
            Self::Download { from, to } => write!(f, "copy {from} {to}"),
            Self::Clear(of) => write!(f, "clear {}", image_name(*of)),
            Self::Barrier(list) => write!(f, "barrier {}", join(list, " + ")),
            Self::OldBarrier(list) => write!(f, "barrier1 {}", join(list, " + ")),
            Self::Set(event, list) => write!(f, "set e{event} {}", join(list, " + ")),
            Self::Reset(event) => write!(f, "reset e{event}"),
            Self::Wait(list) => {
                let each = list.iter().map(|(event, list)| format!("e{event} {}", join(list, " + ")));
                write!(f, "wait {}", each.collect::<Vec<_>>().join(" and "))
            }
            Self::Execute(list) => {
                write!(f, "execute")?;
                list.iter().try_for_each(|number| write!(f, " x{number}"))
            }
        }
    }
}

impl Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.semaphore {
            Semaphore::Binary(number) => write!(f, "b{number}")?,
            Semaphore::Timeline(number, value) => write!(f, "t{number}={value}")?,
        }
        if self.stages == Stage::ALL_COMMANDS { Ok(()) } else { write!(f, "@{}", stage_names(self.stages)) }
    }
}

impl Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Submit(Submit { queue, waits, recordings, signals, fence }) => {
                write!(f, "submit q{queue}")?;
                let list = |f: &mut fmt::Formatter<'_>, kind: &str, list: &[Signal]| match list {
                    [] => Ok(()),
                    list => write!(f, " {kind} {}", join(list, " ")),
                };
                list(f, "wait", waits)?;
                if !recordings.is_empty() {
                    write!(f, " run")?;
                    recordings.iter().try_for_each(|number| write!(f, " x{number}"))?;
                }
                list(f, "signal", signals)?;
                fence.map_or(Ok(()), |fence| write!(f, " fence f{fence}"))
            }
            Self::WaitFence(fence) => write!(f, "host wait f{fence}"),
            Self::WaitIdle => write!(f, "host idle"),
            Self::WaitSemaphore(number, value) => write!(f, "host wait t{number}={value}"),
            Self::SignalSemaphore(number, value) => write!(f, "host signal t{number}={value}"),
            Self::SetEvent(event) => write!(f, "host set e{event}"),
            Self::Read(of) => write!(f, "host read {of}"),
            Self::Write(of) => write!(f, "host write {of}"),
        }
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Recording { commands, secondary }) in self.recordings.iter().enumerate() {
            let kind = if *secondary { "secondary " } else { "" };
            writeln!(f, "{kind}x{number} = {}", join(commands, "; "))?;
        }
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}
