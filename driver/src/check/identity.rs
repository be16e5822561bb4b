//! What makes two findings the same one, which is reported once.

use std::sync::Arc;

use super::finding::{Finding, FoundAccess, Rule, Severity};
use super::found_command::FoundCommand;
use super::found_memory::{FoundPlace, FoundResource, ResourceKind, ResourceRole};

/// What makes two findings the same one: the rule, the lines of the instructions with their kernels, and the memory: of
/// an instruction the binding or variable, of other commands the buffer or image, by its name or else its role and
/// size, so that one that a program makes anew for each frame is one. Findings about two commands also differ in what
/// the program names, and in whether the commands are of one queue.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FindingIdentity {
    rule: Rule,
    first: Option<AccessIdentity>,
    second: AccessIdentity,
    memory: Option<MemoryIdentity>,
    commands: Option<CommandsIdentity>,
}

/// Of two commands, or a command and the host: whether they are of one queue, the names of their command buffers and
/// pipelines, and that of the buffer or image.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CommandsIdentity {
    one_queue: bool,
    names: [Option<Arc<str>>; 5],
}

/// The kernel and its module, the position; of what is no instruction, the command's name.
type AccessIdentity = (Arc<str>, u64, Option<String>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum MemoryIdentity {
    /// All elements of an array of descriptors are one.
    Binding(u32, u32),
    Variable(Arc<str>),
    /// With its role and size; `None` has a name, which is in [`CommandsIdentity`].
    Resource(ResourceKind, Option<(ResourceRole, u64)>),
}

impl Finding {
    /// Equal for findings that are reported once, with a count.
    pub fn identity(&self) -> FindingIdentity {
        let of = |access: &FoundAccess| {
            let position = access.position();
            let name = || access.command.as_ref().map(|command| format!("{} `{}`", access.action, command.name));
            (Arc::clone(&access.kernel), access.module, position.or_else(name))
        };
        let has_kernel = |access: &FoundAccess| !access.kernel.is_empty();
        let is_of_kernel = has_kernel(&self.second) || self.first.as_ref().is_some_and(has_kernel);
        let memory = match self.memory.as_ref().map(|memory| &memory.place) {
            Some(FoundPlace::Descriptor { set, binding, .. }) => Some(MemoryIdentity::Binding(*set, *binding)),
            Some(FoundPlace::Variable { name }) => Some(MemoryIdentity::Variable(Arc::clone(name))),
            // An advice: programs read back through a new buffer each time.
            _ if is_of_kernel || (self.rule, self.severity) == (Rule::Host, Severity::Note) => None,
            Some(FoundPlace::Resource(FoundResource { kind, name, role, bytes, .. })) => {
                Some(MemoryIdentity::Resource(*kind, name.is_none().then_some((*role, *bytes))))
            }
            Some(FoundPlace::Address(_)) | None => None,
        };
        let (first, second) = (self.first.as_ref().map(of), of(&self.second));
        FindingIdentity { rule: self.rule, first, second, memory, commands: self.identity_of_commands() }
    }

    fn identity_of_commands(&self) -> Option<CommandsIdentity> {
        // Programs read back by new command buffers and buffers each time: an advice counts once.
        if !self.is_about_commands() || (self.rule, self.severity) == (Rule::Host, Severity::Note) {
            return None;
        }
        let [first, second] = [self.first.as_ref(), Some(&self.second)].map(|access| access?.command.as_deref());
        let resource = self.memory.as_ref().and_then(|memory| match &memory.place {
            FoundPlace::Resource(resource) => resource.name.clone(),
            _ => memory.resource.as_ref().and_then(|resource| resource.name.clone()),
        });
        let buffer = |command: Option<&FoundCommand>| command?.command_buffer.clone();
        let pipeline = |command: Option<&FoundCommand>| command?.pipeline.clone();
        Some(CommandsIdentity {
            one_queue: first.map(|command| command.queue) == second.map(|command| command.queue),
            names: [buffer(first), buffer(second), pipeline(first), pipeline(second), resource],
        })
    }

    /// Whether its accesses are those of commands and the host, rather than of invocations of one dispatch.
    pub(super) fn is_about_commands(&self) -> bool {
        self.second.command.is_some() || self.first.as_ref().is_some_and(|first| first.command.is_some())
    }
}
