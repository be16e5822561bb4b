//! Names of events, for explanations and repairs: a litmus test has threads and instructions, a kernel has source lines
//! and workgroups, and only the code that made the trace knows which.

use crate::describe;
use crate::event::{Command, Site, Trace};

/// Names of what a trace has numbers for. Texts use them as they are, in sentences: `{place} is private`.
pub trait Names {
    /// Where an event happened: `T0:1`, or `scan.comp:41:5 (workgroup (12,0,0), local (0,0,0))`.
    fn place(&self, event: usize) -> String;

    /// Place and operation of an event: `T0:1 st x=1`.
    fn event(&self, event: usize) -> String;

    /// The reference of an access: a variable, a descriptor.
    fn reference(&self, event: usize) -> String;

    /// An instruction or a call of the API.
    fn site(&self, site: Site) -> String {
        site.to_string()
    }

    /// A command of the API, or the host.
    fn command(&self, command: Command) -> String {
        command.to_string()
    }

    /// The access flag of an access in a dependency, without `VK_ACCESS_2_` and `_BIT`. The default, `None`, is that of
    /// storage buffers and images in the command's stage; an access of a uniform buffer, say, has another.
    fn access_flag(&self, event: usize) -> Option<String> {
        let _ = event;
        None
    }
}

/// Names by number: `T0:1` is the first event of thread 0, `r2` reference 2.
#[derive(Clone, Copy, Debug)]
pub struct Numbers<'a>(pub &'a Trace);

impl Names for Numbers<'_> {
    fn place(&self, event: usize) -> String {
        let at = self.0.events[..event].iter().filter(|other| other.thread == self.0.events[event].thread).count();
        format!("T{}:{}", self.0.events[event].thread, at + 1)
    }

    fn event(&self, event: usize) -> String {
        let operation = describe::operation_through(&self.reference(event), self.0.operation(event), None, None);
        format!("{} {operation}", self.place(event))
    }

    fn reference(&self, event: usize) -> String {
        self.0.operation(event).access().map_or(String::new(), |access| format!("r{}", access.reference))
    }
}
