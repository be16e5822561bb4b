//! Output of a bench: one row for each point, as a table or as JSON.

use serde_json::{Value as Json, json};
use spelter_shaders::analysis::{Counts, Operations};

use super::baseline::Changes;
use super::measure::Measured;
use super::work::Position;
use crate::args::BenchArgs;
use crate::columns::{self, bytes, count, digits, percent, seconds};
use crate::failure::Failure;
use crate::output::Output;
use crate::statistics::{Change, Samples};

/// One point of the sweep, measured.
pub(super) struct Point {
    pub(super) groups: [u32; 3],
    pub(super) workers: usize,
    /// Bytes of all bound buffers.
    pub(super) bytes: u64,
    pub(super) invocations: u64,
    pub(super) operations: Operations,
    pub(super) measured: Measured,
    /// By worker, the part of the time that it is busy.
    pub(super) busy: Vec<f64>,
    pub(super) position: Option<Position>,
    pub(super) changes: Option<Changes>,
}

impl Point {
    pub(super) fn workgroups(&self) -> u64 {
        self.groups.iter().map(|&groups| u64::from(groups)).product()
    }

    pub(super) fn dispatches_per_second(&self) -> f64 {
        1.0 / self.measured.dispatch.median()
    }

    pub(super) fn workgroups_per_second(&self) -> f64 {
        self.workgroups() as f64 * self.dispatches_per_second()
    }

    /// Bound bytes per second, in GB/s.
    pub(super) fn bandwidth(&self) -> f64 {
        self.bytes as f64 * self.dispatches_per_second() / 1e9
    }

    /// The most float operations that the invocations may have, in GFLOP/s; `None` if a trip count is unknown.
    pub(super) fn flops(&self) -> Option<f64> {
        let flops = self.operations.max?.flops as f64 * self.invocations as f64;
        Some(flops * self.dispatches_per_second() / 1e9)
    }

    fn mean_busy(&self) -> f64 {
        self.busy.iter().sum::<f64>() / self.busy.len().max(1) as f64
    }

    fn json(&self, noise: f64) -> Json {
        let Self { groups, workers, invocations, operations, measured, busy, position, changes, .. } = self;
        json!({
            "groups": groups,
            "workers": workers,
            "bytes": self.bytes,
            "invocations": invocations,
            "dispatches_per_second": self.dispatches_per_second(),
            "workgroups_per_second": self.workgroups_per_second(),
            "gigabytes_per_second": self.bandwidth(),
            "gigaflops": self.flops(),
            "operations": operations_json(operations),
            "dispatch_seconds": samples_json(&measured.dispatch),
            "dispatches_per_sample": measured.batch,
            "submit_to_done_seconds": samples_json(&measured.latency),
            "busy": busy,
            "limit": position.map(|position| json!({
                "name": position.limit,
                "share": position.share,
                "bytes_per_second": position.bandwidth,
                "flops_per_second": position.peak,
            })),
            "change": changes.map(|Changes { dispatch, latency }| json!({
                "dispatch": change_json(&dispatch, noise),
                "submit_to_done": change_json(&latency, noise),
            })),
        })
    }
}

fn samples_json(samples: &Samples) -> Json {
    json!({
        "samples": samples.all().len(),
        "median": samples.median(),
        "best": samples.least(),
        "p50": samples.median(),
        "p99": samples.quantile(0.99),
        "spread": samples.spread(),
    })
}

fn change_json(change: &Change, noise: f64) -> Json {
    json!({
        "estimate": change.estimate,
        "confidence_95": [change.low, change.high],
        "verdict": change.verdict(noise).name(),
    })
}

fn operations_json(Operations { min, max, unknown }: &Operations) -> Json {
    let counts = |counts: &Counts| {
        json!({
            "flops": counts.flops, "loaded_bytes": counts.loaded, "stored_bytes": counts.stored,
            "atomics": counts.atomics, "image_accesses": counts.images,
        })
    };
    let unknown: Vec<_> = unknown.iter().map(|line| line.as_ref().map(ToString::to_string)).collect();
    json!({ "least": counts(min), "most": max.as_ref().map(counts), "loops_of_unknown_length": unknown })
}

/// The kernel, and the time to make its pipeline.
pub(super) struct About {
    pub(super) entry: String,
    pub(super) backend: String,
    pub(super) workgroup_size: [u32; 3],
    pub(super) fallback: Option<String>,
    pub(super) pipeline: Samples,
}

/// Prints all points.
pub(super) fn print(
    about: &About,
    points: &[Point],
    notes: &[String],
    args: &BenchArgs,
    output: &mut Output,
) -> Result<(), Failure> {
    let noise = args.noise / 100.0;
    if args.json {
        return output.json(&json!({
            "file": args.file.display().to_string(),
            "entry": about.entry,
            "backend": about.backend,
            "workgroup_size": about.workgroup_size,
            "interpreted_because": about.fallback,
            "pipeline_seconds": samples_json(&about.pipeline),
            "points": points.iter().map(|point| point.json(noise)).collect::<Vec<_>>(),
            "baseline": args.baseline.as_ref().map(|name| &name.0),
            "notes": notes,
        }));
    }
    let [x, y, z] = about.workgroup_size;
    let entry = output.strong(&about.entry);
    let size = format!("workgroups of {x} × {y} × {z}");
    output.line(format!("{entry}  {size}, {}, pipeline {}", about.backend, seconds(about.pipeline.median())))?;
    if let Some(operations) = points.first().map(|point| &point.operations) {
        output.line(described(operations))?;
    }
    let head = [
        "groups",
        "workers",
        "bound",
        "dispatches/s",
        "±",
        "workgroups/s",
        "GB/s",
        "GFLOP/s",
        "submit p50",
        "p99",
        "busy",
        "limit",
    ];
    columns::print(output, &head, &points.iter().map(row).collect::<Vec<_>>())?;
    if args.baseline.is_some() {
        let head = ["groups", "workers", "bound", "time of a dispatch", "95 %", "", "submit to done", "95 %", ""];
        output.line("")?;
        columns::print(output, &head, &points.iter().map(|point| change_row(point, noise)).collect::<Vec<_>>())?;
    }
    Ok(())
}

fn row(point: &Point) -> Vec<String> {
    let Measured { dispatch, latency, .. } = &point.measured;
    let limit = |position: Position| format!("{} {:.0} %", position.limit, position.share * 100.0);
    vec![
        groups(point.groups),
        point.workers.to_string(),
        bytes(point.bytes),
        count(point.dispatches_per_second()),
        percent(dispatch.spread()),
        count(point.workgroups_per_second()),
        digits(point.bandwidth()),
        point.flops().map_or("unknown".to_owned(), digits),
        seconds(latency.median()),
        seconds(latency.quantile(0.99)),
        format!("{:.0} %", point.mean_busy() * 100.0),
        point.position.map_or("-".to_owned(), limit),
    ]
}

fn change_row(point: &Point, noise: f64) -> Vec<String> {
    let mut row = vec![groups(point.groups), point.workers.to_string(), bytes(point.bytes)];
    match &point.changes {
        Some(Changes { dispatch, latency }) => [dispatch, latency].into_iter().for_each(|change| {
            row.push(signed(change.estimate));
            row.push(format!("{} … {}", signed(change.low), signed(change.high)));
            row.push(change.verdict(noise).name().to_owned());
        }),
        None => row.push("not in the baseline".to_owned()),
    }
    row
}

fn signed(change: f64) -> String {
    format!("{:+.1} %", change * 100.0)
}

pub(super) fn groups([x, y, z]: [u32; 3]) -> String {
    match (y, z) {
        (1, 1) => x.to_string(),
        (_, 1) => format!("{x},{y}"),
        _ => format!("{x},{y},{z}"),
    }
}

/// The operations of an invocation in a sentence.
fn described(Operations { min, max, unknown }: &Operations) -> String {
    let Some(max) = max else {
        let lines: Vec<_> = unknown.iter().flatten().map(ToString::to_string).collect();
        let at = if lines.is_empty() { String::new() } else { format!(" ({})", lines.join(", ")) };
        return format!("operations of an invocation: unknown, {} loops of unknown length{at}", unknown.len());
    };
    let counts = [
        (min.flops, max.flops, "float operations"),
        (min.loaded, max.loaded, "bytes loaded"),
        (min.stored, max.stored, "bytes stored"),
        (min.atomics, max.atomics, "atomics"),
    ];
    let shown = counts.iter().filter(|(_, max, _)| *max > 0).map(|(min, max, what)| match min == max {
        true => format!("{max} {what}"),
        false => format!("{min} to {max} {what}"),
    });
    let shown: Vec<_> = shown.collect();
    let all = if shown.is_empty() { "none that is counted".to_owned() } else { shown.join(", ") };
    format!("operations of an invocation: {all}")
}
