//! The timeline of contexts, queues and workers, for Perfetto and `chrome://tracing`: what contexts do, beside what the
//! driver reports ([`spelter_driver::timeline`]).

use std::io::{Result, Write};
use std::sync::Arc;
use std::time::Instant;

use spelter_driver::timeline::{Args, DeviceTimeline, HostTrack, Timeline};
use spelter_driver::{Observer, SubmissionId};

use crate::ids::BatchId;
use crate::stats::Stats;

/// A timeline that is being recorded.
#[derive(Debug)]
pub(crate) struct Trace {
    /// A leaf lock.
    device: Arc<DeviceTimeline>,
}

/// What a call of the host is about, as far as it has these.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct About<'a> {
    /// The description of the resource.
    pub(crate) resource: Option<&'a str>,
    pub(crate) bytes: Option<u64>,
    /// The batch that it waits for.
    pub(crate) batch: Option<BatchId>,
}

impl Trace {
    pub(crate) fn new() -> Arc<Self> {
        // Arrows to submissions begin where their batches were recorded.
        Arc::new(Self { device: Timeline::new().device(true) })
    }

    pub(crate) fn observer(&self) -> Arc<dyn Observer> {
        Arc::clone(&self.device) as Arc<dyn Observer>
    }

    /// Names the tracks of all workers.
    pub(crate) fn name_workers(&self, count: usize) {
        self.device.name_workers(count);
    }

    pub(crate) fn now(&self) -> Instant {
        Instant::now()
    }

    /// A context recorded a batch, which became a submission.
    pub(crate) fn recorded(
        &self,
        (context, serial): (u64, u64),
        submission: SubmissionId,
        commands: usize,
        start: Instant,
    ) {
        let args = Args::new().number("commands", commands as u64).number("submission", submission.serial);
        self.device.recorded(context, &format!("record batch {serial}"), submission, start, args);
    }

    /// An instant of a context.
    pub(crate) fn instant(&self, context: u64, name: &str) {
        self.device.instant(context, name);
    }

    /// A call of this thread from `start` until now, for a context: a wait, or a write.
    pub(crate) fn call(&self, name: &str, context: u64, about: About<'_>, start: Instant) {
        let mut args = Args::new().number("context", context);
        if let Some(resource) = about.resource {
            args = args.text("resource", resource);
        }
        if let Some(bytes) = about.bytes {
            args = args.number("bytes", bytes);
        }
        if let Some(batch) = about.batch {
            args = args.text("batch", &batch.to_string());
        }
        self.device.slice(HostTrack::Thread, name, start, args);
    }

    /// Writes all events as one JSON object. Contexts and workers continue meanwhile; events that they add later are
    /// left out.
    pub(crate) fn write(&self, stats: &Stats, to: &mut dyn Write) -> Result<()> {
        let (pieces, dropped) = self.device.timeline().pieces();
        // The names are those of fields, so nothing in them has to be escaped.
        let stats: Vec<_> = stats.iter().map(|(name, count)| format!("\"{name}\":{count}")).collect();
        let stats = stats.join(",");
        write!(to, "{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"dropped\":{dropped},\"stats\":{{{stats}}}}},")?;
        write!(to, "\"traceEvents\":[")?;
        let mut separator = "\n";
        for piece in pieces {
            to.write_all(separator.as_bytes())?;
            to.write_all(piece.as_bytes())?;
            separator = ",\n";
        }
        to.write_all(b"\n]}\n")
    }
}
