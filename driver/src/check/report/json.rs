//! A finding as a JSON object.

use serde_json::{Value as Json, json};

use super::super::{
    CheckStats, Finding, FoundAccess, FoundCommand, FoundMemory, FoundPlace, FoundResource, FoundStep, Severity,
};
use super::number::fingerprint;

/// The object of a finding.
pub fn finding(finding: &Finding) -> Json {
    json!({
        "id": finding.rule.name(),
        "severity": finding.severity.name(),
        "title": finding.title(),
        "memory": finding.memory.as_ref().map(memory),
        "first": finding.first.as_ref().map(access),
        "second": access(&finding.second),
        "dispatch": finding.dispatch.as_deref().map(command),
        "between": finding.between.iter().map(step).collect::<Vec<_>>(),
        "conditions": finding.reasons,
        "repair": finding.repairs.iter().map(|repair| json!({
            "text": repair.text,
            "line": repair.line.as_ref().map(ToString::to_string),
        })).collect::<Vec<_>>(),
        "group": finding.group.as_ref().map(|group| json!({
            "title": group.title,
            "condition": group.reason,
            "repair": group.repair.text,
            "count": group.count,
        })),
        "count": finding.count,
        "schedule": finding.schedule.to_string(),
        "confirmed": finding.severity == Severity::Error,
        "fingerprint": fingerprint(finding),
        "replay": finding.replay.as_deref(),
    })
}

/// The object of the counts.
pub fn stats(stats: &CheckStats) -> Json {
    json!({
        "dispatches": stats.dispatches,
        "transfers": stats.transfers,
        "skipped": stats.skipped,
        "dispatches_repeated": stats.dispatches_repeated,
        "suspicions": stats.suspicions,
        "confirmed": stats.confirmed,
        "refuted": stats.refuted,
        "refuted_in_part": stats.refuted_in_part,
        "undecided": stats.undecided,
        "lines_not_compared": stats.lines_not_compared,
        "notes_not_searched": stats.notes_not_searched,
        "accesses_not_checked": stats.accesses_not_checked,
        "commands_forgotten": stats.commands_forgotten,
        "signals_forgotten": stats.signals_forgotten,
        "findings_dropped": stats.findings_dropped,
        "epochs_used_up": stats.epochs_used_up,
        "records_forgotten": stats.records_forgotten,
        "largest_copy": stats.largest_copy,
    })
}

fn memory(memory: &FoundMemory) -> Json {
    let bytes = [memory.bytes.start, memory.bytes.end];
    match &memory.place {
        FoundPlace::Descriptor { set, binding, element, name } => {
            let resource = memory.resource.as_ref();
            json!({
                "set": set,
                "binding": binding,
                "element": element,
                "name": name.as_deref(),
                "resource": resource.map(|resource| resource.kind.name()),
                "resource_name": resource.and_then(|resource| resource.name.as_deref()),
                "resource_number": resource.map(|resource| resource.number),
                "resource_bytes": resource.map(|resource| resource.bytes),
                "bytes": bytes,
            })
        }
        FoundPlace::Variable { name } => json!({ "variable": &**name, "bytes": bytes }),
        FoundPlace::Resource(FoundResource { kind, name, number, bytes: size, .. }) => json!({
            "resource": kind.name(),
            "name": name.as_deref(),
            "number": number,
            "resource_bytes": size,
            "bytes": bytes,
        }),
        FoundPlace::Address(address) => json!({ "address": address, "bytes": bytes }),
    }
}

fn command(command: &FoundCommand) -> Json {
    json!({
        "name": &*command.name,
        "pipeline": command.pipeline.as_deref(),
        "number": command.number,
        "command_buffer": command.command_buffer.as_deref(),
        "index": command.index,
        "submission": command.submission,
        "queue": command.queue,
        "text": command.to_string(),
    })
}

fn step(step: &FoundStep) -> Json {
    let FoundStep { queue, text, number, after, precedes } = step;
    json!({ "queue": queue, "text": text, "number": number, "after": after, "precedes": precedes })
}

fn access(access: &FoundAccess) -> Json {
    let line = access.line.as_ref();
    json!({
        "action": access.action,
        "kernel": &*access.kernel,
        "file": line.map(|line| &*line.file),
        "line": line.map(|line| line.line),
        "column": line.map(|line| line.column),
        "text": access.quoted().map(str::trim),
        "path": access.inlined_at.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "word": access.word,
        "workgroup": access.invocation.map(|invocation| invocation.workgroup),
        "local": access.invocation.map(|invocation| invocation.local),
        "command": access.command.as_deref().map(command),
    })
}
