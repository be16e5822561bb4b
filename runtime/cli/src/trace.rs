//! Timelines: the file of `--trace`, and `spelter trace summary`, which adds one up.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value as Json, json};
use spelter::{CallTimes, Context};

use crate::args::{TraceArgs, TraceCommand};
use crate::columns::{self, percent, seconds};
use crate::failure::Failure;
use crate::file;
use crate::output::Output;
use crate::profile::{ProgramRow, Programs};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 1 << 30;

/// Writes the timeline of a context's device.
pub(crate) fn write(context: &Context, path: &Path) -> Result<(), Failure> {
    let write = || {
        let mut file = BufWriter::new(File::create(path)?);
        context.write_trace(&mut file)?;
        file.flush()
    };
    write().map_err(|error: std::io::Error| Failure::file(path, error))
}

/// Runs the command.
pub(crate) fn run(args: &TraceArgs, output: &mut Output) -> Result<(), Failure> {
    let TraceCommand::Summary { file, json } = &args.command;
    let summary = read(file)?;
    if *json {
        return output.json(&summary.json(file));
    }
    let (head, rows) = summary.programs.table();
    columns::print(output, &head, &rows)?;
    let (span, workers) = (summary.span(), summary.busy());
    output.line("")?;
    let mut rows = vec![
        ("timeline", seconds(span / 1e6)),
        ("submissions", format!("{}, {} together", summary.submissions.0, seconds(summary.submissions.1 / 1e6))),
        ("workers", format!("{}, busy {}", summary.workers.len(), percent(summary.busy_share(workers)))),
    ];
    for (name, (count, micros)) in &summary.waits {
        rows.push((name.as_str(), format!("{count}, {} together", seconds(micros / 1e6))));
    }
    output.table(&rows)?;
    if summary.dropped > 0 {
        output.line(format!("{} events did not fit in the timeline: the sums are too small", summary.dropped))?;
    }
    Ok(())
}

/// What a timeline adds up to. Times are microseconds.
#[derive(Debug, Default)]
struct Summary {
    programs: Programs,
    /// Busy time by process and track.
    workers: BTreeMap<(u64, u64), f64>,
    submissions: (u64, f64),
    waits: BTreeMap<String, (u64, f64)>,
    /// Begin of the first slice, end of the last.
    from: Option<f64>,
    to: f64,
    dropped: u64,
}

fn read(path: &Path) -> Result<Summary, Failure> {
    let bytes = file::read(path, MAX_BYTES)?;
    let text: Json = serde_json::from_slice(&bytes).map_err(|error| Failure::file(path, error))?;
    let events = text.as_array().or_else(|| text["traceEvents"].as_array());
    let events = events.ok_or_else(|| Failure::file(path, "not a timeline: neither a list nor `traceEvents`"))?;
    let mut summary = Summary { dropped: text["otherData"]["dropped"].as_u64().unwrap_or(0), ..Summary::default() };
    for (at, event) in events.iter().enumerate() {
        summary.add(event).map_err(|problem| Failure::file(path, format!("event {at}: {problem}")))?;
    }
    if summary.programs.is_empty() && summary.submissions.0 == 0 && !events.is_empty() {
        return Err(Failure::file(path, "not a timeline of Spelter: it has no slices of dispatches or submissions"));
    }
    Ok(summary)
}

impl Summary {
    fn add(&mut self, event: &Json) -> Result<(), String> {
        if event["ph"] == "M" && event["args"]["name"].as_str().is_some_and(|name| name.starts_with("worker ")) {
            // All workers are named, also those that ran nothing.
            let integer = |name: &str| event[name].as_u64().ok_or_else(|| format!("`{name}` is not an integer"));
            self.workers.entry((integer("pid")?, integer("tid")?)).or_default();
        }
        if event["ph"] != "X" {
            return if event.is_object() { Ok(()) } else { Err("not an object".to_owned()) };
        }
        let number = |name: &str| event[name].as_f64().ok_or_else(|| format!("`{name}` is not a number"));
        let (start, long) = (number("ts")?, number("dur")?);
        let name = event["name"].as_str().ok_or("`name` is not a text")?;
        self.from = Some(self.from.map_or(start, |from| from.min(start)));
        self.to = self.to.max(start + long);
        match event["cat"].as_str() {
            Some("dispatch" | "transfer") => self.add_command(name, long, &event["args"])?,
            Some("chunk") => {
                let integer = |name: &str| event[name].as_u64().ok_or_else(|| format!("`{name}` is not an integer"));
                *self.workers.entry((integer("pid")?, integer("tid")?)).or_default() += long;
            }
            Some("submission") => self.submissions = (self.submissions.0 + 1, self.submissions.1 + long),
            Some("host") if name.starts_with("wait") => {
                let (count, all) = self.waits.entry(name.to_owned()).or_default();
                (*count, *all) = (*count + 1, *all + long);
            }
            _ => {}
        }
        Ok(())
    }

    fn add_command(&mut self, name: &str, micros: f64, args: &Json) -> Result<(), String> {
        let nanos = micros * 1e3;
        let mut times = CallTimes::default();
        times.add(Duration::from_nanos(nanos.max(0.0) as u64), 1);
        let busy = args["busy_us"].as_f64().ok_or("`args.busy_us` is not a number")?;
        self.programs.add(&ProgramRow {
            name: name.to_owned(),
            pipeline: args["pipeline"].as_str().map(str::to_owned),
            calls: 1,
            workgroups: args["workgroups"].as_u64().unwrap_or(0),
            bytes: args["bytes"].as_u64().unwrap_or(0),
            elapsed: nanos,
            busy: busy * 1e3,
            shortest: nanos,
            longest: nanos,
            times,
            flops: None,
        });
        Ok(())
    }

    fn span(&self) -> f64 {
        self.from.map_or(0.0, |from| self.to - from)
    }

    /// The busy time of all workers. Not a sum, which is -0.0 for none.
    fn busy(&self) -> f64 {
        self.workers.values().fold(0.0, |all, busy| all + busy)
    }

    /// The part of the time of all workers.
    fn busy_share(&self, busy: f64) -> f64 {
        busy / (self.span() * self.workers.len() as f64).max(1e-3)
    }

    fn json(&self, file: &Path) -> Json {
        let waits: serde_json::Map<_, _> = self
            .waits
            .iter()
            .map(|(name, (count, micros))| (name.clone(), json!({ "count": count, "seconds": micros / 1e6 })))
            .collect();
        let busy = self.busy();
        json!({
            "file": file.display().to_string(),
            "seconds": self.span() / 1e6,
            "programs": self.programs.json(),
            "submissions": { "count": self.submissions.0, "seconds": self.submissions.1 / 1e6 },
            "workers": { "count": self.workers.len(), "busy_seconds": busy / 1e6, "busy": self.busy_share(busy) },
            "waits": waits,
            "dropped": self.dropped,
        })
    }
}
