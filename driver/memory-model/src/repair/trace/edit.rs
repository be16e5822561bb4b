//! Edits of what made a trace: of sites of a kernel, and of the commands around it.

use crate::event::{Command, Site, Stage, Trace};
use crate::names::Names;
use crate::repair::Edit;

/// An edit of the code or of the commands from which a trace comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceEdit {
    /// Of instructions, with all their events.
    Code(Edit<Site>),
    /// Of the order of two commands.
    Api(Dependency),
}

/// A dependency between two commands, or between the host and a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dependency {
    /// What comes first.
    pub from: Command,
    /// What comes after it.
    pub to: Command,
    /// Its memory dependency.
    pub memory: Memory,
    /// Whether the first is already executed before the other, so that only the memory dependency is missing.
    pub ordered: bool,
}

/// The memory dependency of a [`Dependency`] ("Execution and Memory Dependencies").
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Memory {
    /// None: enough after a read.
    Execution,
    /// Writes become available: enough before a write that overwrites them (A1).
    Available,
    /// They become visible, too.
    Visible,
}

impl TraceEdit {
    /// Edits as texts, those of the semantics of one operation as one: a repair of the race `pair` of `trace`. `words`
    /// are those of a language for an edit, in place of the memory model's.
    pub fn texts(
        edits: &[Self],
        (trace, pair): (&Trace, (usize, usize)),
        names: &dyn Names,
        words: impl Fn(&Self) -> Option<String>,
    ) -> Vec<String> {
        let own = |edit: &Self| words(edit).unwrap_or_else(|| edit.text(trace, pair, names));
        let executed = |site| Some(trace.events.iter().find(|event| event.site == Some(site))?.operation.clone());
        let code: Vec<Edit<Site>> = edits
            .iter()
            .filter_map(|edit| match edit {
                Self::Code(edit) => Some(*edit),
                Self::Api(_) => None,
            })
            .collect();
        let code = Edit::texts(&code, |edit| own(&Self::Code(*edit)), executed, &|site| names.site(site));
        code.into_iter().chain(edits.iter().filter(|edit| matches!(edit, Self::Api(_))).map(own)).collect()
    }

    /// The edit as text: a repair of the race `pair` of `trace`, whose accesses decide about access flags.
    pub fn text(&self, trace: &Trace, pair: (usize, usize), names: &dyn Names) -> String {
        match self {
            Self::Code(edit) => edit.text(&|site| names.site(site)),
            Self::Api(dependency) => dependency.text(trace, pair, names),
        }
    }
}

impl Dependency {
    fn text(&self, trace: &Trace, (a, b): (usize, usize), names: &dyn Names) -> String {
        let [from, to] = [self.from, self.to].map(|command| names.command(command));
        if self.from.stage == Stage::Host {
            return match (self.memory, self.ordered) {
                (Memory::Execution, _) => format!("{from} reads before it submits {to}"),
                (_, false) => format!("{from} writes before it submits {to}"),
                (_, true) => format!("{from} flushes what it wrote (vkFlushMappedMemoryRanges) before it submits {to}"),
            };
        }
        let side = |command: Command, writes: bool, with_access: bool| {
            let stage = command.stage.name();
            if !with_access {
                return stage.to_owned();
            }
            let own = |event: &usize| trace.command(*event) == Some(command);
            let flag = [a, b].iter().find(|event| own(event)).and_then(|event| names.access_flag(*event));
            format!("{stage}, {}", flag.unwrap_or_else(|| command.stage.access(writes).to_owned()))
        };
        let second_writes = [a, b].into_iter().any(|event| {
            trace.command(event) == Some(self.to) && !trace.operation(event).reads() && trace.operation(event).writes()
        });
        let source = side(self.from, true, self.memory != Memory::Execution);
        let destination = side(self.to, second_writes, self.memory == Memory::Visible);
        let kind = if self.memory == Memory::Execution { "an execution dependency" } else { "a dependency" };
        let text = format!("{kind} from {from} ({source}) to {to} ({destination})");
        match (self.to.stage, self.ordered) {
            (Stage::Host, false) => format!("{text}, and a wait of {to} for {from}"),
            (Stage::Host, true) => format!("{text}, before that for which {to} waits"),
            _ => text,
        }
    }
}
