//! Writes programs as Khronos `.test` texts: for generated and repaired programs.

use std::fmt::Write;

use super::writable::{Unwritable, names, numbered_barriers};
use crate::event::{Action, Agent, Class, Domain, Scope};
use crate::program::{Barrier, Expression, Instruction, InstructionKind, Operand, PinnedSource, Program};

/// The program as a Khronos test, without questions. Groups are opened in the order of the threads.
///
/// # Errors
///
/// If the program uses a feature that the format does not have: branches, registers, further classes, host agents,
/// initial values other than 0.
pub fn write_khronos(program: &Program) -> Result<String, Unwritable> {
    if program.locations.iter().any(|(_, initial)| *initial != 0) {
        return Err(Unwritable("initial values other than 0"));
    }
    let program = &Program { references: names(program), ..numbered_barriers(program)? };
    let mut text = String::new();
    let mut before: Option<[u32; 3]> = None;
    let mut closed = Vec::new();
    for (number, thread) in program.threads.iter().enumerate() {
        let Agent::Device { subgroup, workgroup, queue_family, .. } = thread.agent else {
            return Err(Unwritable("agents of the host"));
        };
        let groups = [queue_family, workgroup, subgroup];
        let changed = before.map_or(3, |before| (0..3).find(|&at| before[at] != groups[at]).unwrap_or(3));
        if closed.contains(&groups) && before != Some(groups) {
            return Err(Unwritable("reopened groups"));
        }
        for name in ["NEWQF", "NEWWG", "NEWSG"].iter().skip(changed) {
            let _ = writeln!(text, "{name}");
        }
        let _ = writeln!(text, "NEWTHREAD {number}");
        before = Some(groups);
        closed.push(groups);
        for (at, instruction) in thread.code.iter().enumerate() {
            let _ = writeln!(text, "{}", instruction_text(program, instruction, (number, at))?);
        }
    }
    for &(a, b) in &program.system {
        let _ = writeln!(text, "SSW {a} {b}");
    }
    for (at, name) in program.references.iter().enumerate() {
        let object = |reference: usize| {
            program.operations().find_map(|(_, operation)| {
                let access = operation.access().filter(|access| access.reference as usize == reference)?;
                Some(access.location.object)
            })
        };
        let first = (0..at).find(|&earlier| object(earlier).is_some() && object(earlier) == object(at));
        if let Some(first) = first {
            let _ = writeln!(text, "SLOC {} {name}", program.references[first]);
        }
    }
    Ok(text)
}

/// The constant that an instruction writes, if any.
fn written(instruction: &Instruction) -> Option<i64> {
    match &instruction.kind {
        InstructionKind::Execute { value: Some(Expression::Operand(Operand::Constant(value))), .. } => Some(*value),
        _ => None,
    }
}

/// The value that states the source of the read at `at`, or `None` if its source is not stated.
fn read_value(program: &Program, at: (usize, usize)) -> Result<Option<i64>, Unwritable> {
    let all = || program.threads.iter().flat_map(|thread| &thread.code).filter_map(written);
    let writes = program.operations().filter(|(_, operation)| operation.writes()).count();
    let mut pins = program.pins.iter().filter(|pin| pin.read == at);
    let value = match pins.next().map(|pin| pin.source) {
        // The format would pair a read without a value with a store without one.
        None if all().count() < writes || all().any(|value| value == -1) => {
            return Err(Unwritable("stores of values that are not constants, in a program that reads"));
        }
        None => return Ok(None),
        Some(PinnedSource::Initial) => Some(0),
        Some(PinnedSource::Write((thread, at))) => written(&program.threads[thread].code[at]),
    };
    let writers = all().filter(|written| Some(*written) == value).count();
    if pins.next().is_some() || value.is_none() || writers != usize::from(value != Some(0)) {
        return Err(Unwritable("way to state a source except by its value"));
    }
    Ok(value)
}

fn instruction_text(program: &Program, instruction: &Instruction, at: (usize, usize)) -> Result<String, Unwritable> {
    let InstructionKind::Execute { operation, value, barrier, .. } = &instruction.kind else {
        return Err(Unwritable("registers and branches"));
    };
    let class = |class: Class| match class {
        Class::Uniform => Ok("0"),
        Class::Workgroup => Ok("1"),
        _ => Err(Unwritable("storage classes beyond two")),
    };
    let mut parts: Vec<String> = Vec::new();
    let mut operand = String::new();
    match &operation.action {
        Action::Access(access) => {
            let kind = access.mnemonic();
            parts.push(kind.to_owned());
            if access.atomic && kind != "rmw" {
                parts.push("atom".to_owned());
            }
            if !access.atomic {
                let flags = [(access.available, "av"), (access.visible, "vis")];
                parts.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()));
                if access.non_private && !access.available && !access.visible {
                    parts.push("nonpriv".to_owned());
                }
            }
            parts.push(format!("sc{}", class(access.class)?));
            operand = format!(" {}", program.references[access.reference as usize]);
            if value.is_some() && written(instruction).is_none() {
                return Err(Unwritable("values that are computed"));
            }
            let read = if access.reads { read_value(program, at)? } else { None };
            match (read, written(instruction)) {
                (None, None) => {}
                (Some(value), None) => {
                    let _ = write!(operand, " = {value}");
                }
                (None, Some(value)) if !access.reads => {
                    let _ = write!(operand, " = {value}");
                }
                (read, Some(value)) => {
                    // A read-modify-write states both values; -1 is none.
                    let _ = write!(operand, " = {} {value}", read.unwrap_or(-1));
                }
            }
        }
        Action::Fence => parts.push("membar".to_owned()),
        Action::ControlBarrier { execution } => {
            if operation.scope.is_some_and(|scope| scope != *execution) {
                return Err(Unwritable("execution scopes apart from memory scopes"));
            }
            parts.push("cbar".to_owned());
            match barrier {
                Some(Barrier::Dynamic(number)) => operand = format!(" {number}"),
                _ => return Err(Unwritable("static control barriers")),
            }
        }
        Action::Available(Domain::Device) => parts.push("avdevice".to_owned()),
        Action::Visible(Domain::Device) => parts.push("visdevice".to_owned()),
        _ => return Err(Unwritable("host domain")),
    }
    let flags = [
        (operation.acquire, "acq"),
        (operation.release, "rel"),
        (operation.make_available, "semav"),
        (operation.make_visible, "semvis"),
    ];
    parts.extend(flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()));
    for semantic in operation.semantics.iter() {
        parts.push(format!("semsc{}", class(semantic)?));
    }
    match operation.scope {
        None => {}
        Some(Scope::Subgroup) => parts.push("scopesg".to_owned()),
        Some(Scope::Workgroup) => parts.push("scopewg".to_owned()),
        Some(Scope::QueueFamily) => parts.push("scopeqf".to_owned()),
        Some(Scope::Device) => parts.push("scopedev".to_owned()),
        Some(_) => return Err(Unwritable("scopes beyond four")),
    }
    Ok(parts.join(".") + &operand)
}
