//! Text forms of events, for reports, explanations and graphs.

use std::fmt::Write;

use crate::event::{Action, Domain, Operation, Scope};
use crate::program::{Instance, Program};
use crate::search::Values;

/// The short name of a scope.
pub fn scope(scope: Scope) -> &'static str {
    match scope {
        Scope::Invocation => "inv",
        Scope::Subgroup => "sg",
        Scope::Workgroup => "wg",
        Scope::QueueFamily => "qf",
        Scope::Device => "dev",
        Scope::CrossDevice => "all",
    }
}

/// The memory domain of a scope.
pub fn domain(scope: Scope) -> &'static str {
    match scope {
        Scope::Invocation => "invocation",
        Scope::Subgroup => "subgroup instance",
        Scope::Workgroup => "workgroup instance",
        Scope::QueueFamily => "queue family instance",
        Scope::Device | Scope::CrossDevice => "shader",
    }
}

/// `T0:1`: the thread and the number of the instruction, from 1; `T0:1#2` for its second execution.
pub fn place(program: &Program, instance: &Instance, event: usize) -> String {
    let (thread, at) = instance.origins[event];
    let earlier = instance.origins[..event].iter().filter(|origin| **origin == (thread, at)).count();
    let again = if earlier > 0 { format!("#{}", earlier + 1) } else { String::new() };
    format!("{}:{}{again}", program.threads[thread].name, at + 1)
}

/// `rel[U,wg]`: order, classes, scope, and flags of semantics; empty if there are none.
pub fn semantics(operation: &Operation) -> String {
    let order = match (operation.acquire, operation.release) {
        (true, true) => "acq_rel",
        (true, false) => "acq",
        (false, true) => "rel",
        (false, false) => return String::new(),
    };
    let mut text = format!("{order}[{}", operation.semantics);
    if let Some(named) = operation.scope {
        let _ = write!(text, ",{}", scope(named));
    }
    for (flag, name) in [(operation.make_available, "av"), (operation.make_visible, "vis")] {
        if flag {
            let _ = write!(text, ",{name}");
        }
    }
    text + "]"
}

/// `st.atom y=1 rel[U,wg]`: what an operation does; `read` and `written` are values, if known.
pub fn operation(program: &Program, operation: &Operation, read: Option<i64>, written: Option<i64>) -> String {
    let reference = operation.access().map_or("", |access| &program.references[access.reference as usize]);
    operation_through(reference, operation, read, written)
}

/// As [`operation`], with the name of the reference.
pub(crate) fn operation_through(
    reference: &str,
    operation: &Operation,
    read: Option<i64>,
    written: Option<i64>,
) -> String {
    let mut text = String::new();
    match &operation.action {
        Action::Access(access) => {
            let kind = match (access.reads, access.writes) {
                (true, true) => "rmw",
                (true, false) => "ld",
                _ => "st",
            };
            text.push_str(kind);
            if access.atomic && kind != "rmw" {
                text.push_str(".atom");
            }
            let _ = write!(text, " {reference}");
            let values: Vec<_> = [read, written].into_iter().flatten().map(|value| value.to_string()).collect();
            if !values.is_empty() {
                let _ = write!(text, "={}", values.join("→"));
            }
            match (access.atomic, operation.scope) {
                (true, Some(named)) if !operation.acquire && !operation.release => {
                    let _ = write!(text, " [{}]", scope(named));
                }
                (false, Some(named)) if access.available || access.visible => {
                    let flag = if access.available { "av" } else { "vis" };
                    let _ = write!(text, " {flag}[{}]", scope(named));
                }
                _ => {}
            }
        }
        Action::Fence => text.push_str("membar"),
        Action::ControlBarrier { execution } => {
            let _ = write!(text, "cbar[{}]", scope(*execution));
        }
        Action::Available(Domain::Device) => text.push_str("avdevice"),
        Action::Available(Domain::Host) => text.push_str("avhost"),
        Action::Visible(Domain::Device) => text.push_str("visdevice"),
        Action::Visible(Domain::Host) => text.push_str("vishost"),
        Action::Transfer { from, to } => {
            let _ = write!(text, "transfer {from:?} to {to:?}");
        }
    }
    let semantics = semantics(operation);
    if !semantics.is_empty() {
        let _ = write!(text, " {semantics}");
    }
    text
}

/// Place and operation of an event, with the values of an execution.
pub fn event(program: &Program, instance: &Instance, values: &Values, event: usize) -> String {
    let executed = instance.trace.operation(event);
    let read = values.read.get(event).copied().flatten();
    let written = if executed.writes() { values.written(instance, event) } else { None };
    format!("{} {}", place(program, instance, event), operation(program, executed, read, written))
}
