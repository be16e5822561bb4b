//! A command of a finding, by the names that the program gave it and by its place.

use std::fmt;
use std::sync::Arc;

/// A command in a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundCommand {
    /// The kernel or the kind of transfer, after the label of the command buffer if there is one.
    pub name: Arc<str>,
    /// The name that the program gave the pipeline of a dispatch.
    pub pipeline: Option<Arc<str>>,
    /// The same of the shader module of a dispatch, when its pipeline was created.
    pub module: Option<Arc<str>>,
    /// The number of its call in the command buffer: dispatches, transfers, queries and events count, from 0. The
    /// regions of a copy are one call.
    pub number: u32,
    /// The name that the program gave the command buffer.
    pub command_buffer: Option<Arc<str>>,
    /// Index of the command buffer in the submission.
    pub index: u32,
    /// Number of the submission in its queue, from 1.
    pub submission: u64,
    /// Index of the queue.
    pub queue: u32,
}

impl FoundCommand {
    /// The names of the kernel of a dispatch: as messages have it, of its pipeline, of its shader module.
    pub(super) fn kernel_names(&self) -> impl Iterator<Item = &str> {
        let kernel = self.name.rsplit_once(": ").map_or(&*self.name, |(_, kernel)| kernel);
        std::iter::once(kernel).chain(self.pipeline.as_deref()).chain(self.module.as_deref())
    }

    /// Where a finding about one dispatch was made: ``in `blur: main`, command buffer 0 of submission 1 of queue 0``.
    pub fn place(&self) -> String {
        let Self { name, submission, queue, .. } = self;
        // The libraries in Rust name a kernel after its pipeline.
        let pipeline = self.pipeline.as_ref().filter(|pipeline| !name.ends_with(&***pipeline));
        let pipeline = pipeline.map(|pipeline| format!(" (pipeline `{pipeline}`)")).unwrap_or_default();
        format!("in `{name}`{pipeline}, {} of submission {submission} of queue {queue}", self.buffer())
    }

    /// The command buffer: its name, or else its index in the submission. Both, if it is not the first of the
    /// submission, which may have it twice.
    fn buffer(&self) -> String {
        match (&self.command_buffer, self.index) {
            (Some(name), 0) => format!("command buffer `{name}`"),
            (Some(name), index) => format!("command buffer `{name}` (index {index})"),
            (None, index) => format!("command buffer {index}"),
        }
    }
}

impl fmt::Display for FoundCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, pipeline, number, submission, queue, .. } = self;
        let of = self.buffer();
        write!(f, "`{name}` (")?;
        if let Some(pipeline) = pipeline {
            write!(f, "pipeline `{pipeline}`, ")?;
        }
        write!(f, "command {number} of {of} in submission {submission} of queue {queue})")
    }
}
