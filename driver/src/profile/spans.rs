//! Chunks of workers, collected to commands: when each began and ended, and how long workers were busy with it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::exec::{Chunk, CommandId, DispatchInfo, SubmissionId};

/// A command that has run, in whole or in part.
#[derive(Clone, Debug)]
pub(crate) struct CommandSpan {
    pub(crate) id: CommandId,
    pub(crate) name: String,
    /// `None` for transfers.
    pub(crate) dispatch: Option<DispatchInfo>,
    /// Bytes that are bound to it or that it moves.
    pub(crate) bytes: u64,
    /// Workgroups, or units of a transfer.
    pub(crate) units: u64,
    pub(crate) chunks: u64,
    /// The time of all workers together.
    pub(crate) busy: Duration,
    /// Begin of the first chunk, and end of the last.
    pub(crate) start: Instant,
    pub(crate) end: Instant,
}

impl CommandSpan {
    /// From the begin of the first chunk to the end of the last.
    pub(crate) fn elapsed(&self) -> Duration {
        self.end.saturating_duration_since(self.start)
    }
}

/// Commands of submissions that are running.
#[derive(Debug, Default)]
pub(crate) struct CommandSpans(BTreeMap<CommandId, CommandSpan>);

impl CommandSpans {
    pub(crate) fn add(&mut self, chunk: &Chunk<'_>) {
        let &Chunk { command: id, name, dispatch, bytes, units, start, end, .. } = chunk;
        let busy = end.saturating_duration_since(start);
        let span = self.0.entry(id).or_insert_with(|| {
            let (units, chunks, busy) = (0, 0, Duration::ZERO);
            CommandSpan { id, name: name.to_owned(), dispatch, bytes, units, chunks, busy, start, end }
        });
        span.units += units;
        span.chunks += 1;
        span.busy += busy;
        span.start = span.start.min(start);
        span.end = span.end.max(end);
    }

    /// Removes and returns the commands of a submission, in the order of recording.
    pub(crate) fn take(&mut self, submission: SubmissionId) -> Vec<CommandSpan> {
        let first = |submission| CommandId { submission, recording: 0, phase: 0, command: 0 };
        let mut taken = self.0.split_off(&first(submission));
        let next = SubmissionId { serial: submission.serial + 1, ..submission };
        self.0.append(&mut taken.split_off(&first(next)));
        taken.into_values().collect()
    }
}
