//! Writes programs as `.litmus` texts of Dat3M. Unlike the Khronos format it has branches, registers, arithmetic and
//! initial values, as tests that are derived from shaders need them.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::instruction::{ARITHMETIC, BRANCHES};
use super::writable::{Unwritable, names};
use crate::event::{Access, Action, Agent, Domain, Operation, Scope};
use crate::program::{Barrier, Binary, BranchCondition, Expression, InstructionKind, Operand, Program, Register};

/// The program as a `.litmus` test, which asks whether it has an execution.
///
/// # Errors
///
/// If the program uses a feature that the format does not have: agents of the host, several devices, stores of values
/// that are not known, instances of control barriers, stated sources of reads.
pub fn write_dartagnan(program: &Program) -> Result<String, Unwritable> {
    if !program.pins.is_empty() {
        return Err(Unwritable("stated sources of reads"));
    }
    let program = &renumbered(program);
    let names = names(program);
    let name: String = program.name.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
    let name = if name.starts_with(|c: char| c.is_ascii_alphabetic()) { name } else { format!("test{name}") };
    let mut text = format!("VULKAN {name}\n");
    declarations(program, &names, &mut text);
    if !program.system.is_empty() {
        let thread = |at: usize| &program.threads[at].name;
        let pairs = program.system.iter().map(|&(a, b)| format!(" ssw {} {};", thread(a), thread(b)));
        let _ = writeln!(text, "{{{} }}", pairs.collect::<String>());
    }
    let mut columns = Vec::new();
    for thread in &program.threads {
        let Agent::Device { subgroup, workgroup, queue_family, device: 0 } = thread.agent else {
            return Err(Unwritable("agents of the host, or of several devices"));
        };
        let mut column = vec![format!("{}@sg {subgroup}, wg {workgroup}, qf {queue_family}", thread.name)];
        let targets: BTreeSet<usize> = thread.code.iter().filter_map(|at| target(&at.kind)).collect();
        for (at, instruction) in thread.code.iter().enumerate() {
            column.extend(targets.contains(&at).then(|| format!("L{at}:")));
            column.push(cell(&instruction.kind, &names)?);
        }
        column.extend(targets.contains(&thread.code.len()).then(|| format!("L{}:", thread.code.len())));
        columns.push(column);
    }
    let widths: Vec<usize> = columns.iter().map(|column| column.iter().map(String::len).max().unwrap_or(0)).collect();
    let rows = columns.iter().map(Vec::len).max().unwrap_or(0);
    for row in 0..rows {
        let cells = columns.iter().zip(&widths).map(|(column, width)| {
            let cell = column.get(row).map_or("", String::as_str);
            format!("{cell:width$}")
        });
        let _ = writeln!(text, " {} ;", cells.collect::<Vec<_>>().join(" | "));
    }
    text += "exists (1 == 1)\n";
    Ok(text)
}

/// The program with control barriers that are numbered from 0: those of a repair have large numbers.
fn renumbered(program: &Program) -> Program {
    let mut program = program.clone();
    let mut known: Vec<u32> = Vec::new();
    for instruction in program.threads.iter_mut().flat_map(|thread| &mut thread.code) {
        let InstructionKind::Execute { barrier: Some(Barrier::Static { id, .. }), .. } = &mut instruction.kind else {
            continue;
        };
        let number = known.iter().position(|other| other == id).unwrap_or_else(|| {
            known.push(*id);
            known.len() - 1
        });
        *id = number as u32;
    }
    program
}

/// `{ x=0; y aliases x; P0:r0=1; }`: all locations that operations name, and registers that do not hold 0.
fn declarations(program: &Program, names: &[String], text: &mut String) {
    let mut first: Vec<(u32, usize)> = Vec::new();
    text.push('{');
    for (at, name) in names.iter().enumerate() {
        let named =
            |operation: &Operation| operation.access().filter(|access| access.reference as usize == at).cloned();
        let Some(access) = program.operations().find_map(|(_, operation)| named(operation)) else { continue };
        let object = access.location.object;
        match first.iter().find(|known| known.0 == object) {
            Some((_, other)) => {
                let _ = write!(text, " {name} aliases {};", names[*other]);
            }
            None => {
                first.push((object, at));
                let initial = program.locations.get(object as usize).map_or(0, |location| location.1);
                let _ = write!(text, " {name}={initial};");
            }
        }
    }
    for thread in &program.threads {
        for (register, value) in &thread.registers {
            let _ = write!(text, " {}:{}={value};", thread.name, register_name(register));
        }
    }
    text.push_str(" }\n");
}

fn target(kind: &InstructionKind) -> Option<usize> {
    if let InstructionKind::Branch { target, .. } = kind { Some(*target) } else { None }
}

/// Registers that no text could name begin with a dot.
fn register_name(register: &Register) -> String {
    register.0.strip_prefix('.').map_or_else(|| register.0.to_string(), |rest| format!("t{rest}"))
}

fn operand(operand: &Operand) -> Result<String, Unwritable> {
    match operand {
        Operand::Constant(number) => Ok(number.to_string()),
        Operand::Register(register) => Ok(register_name(register)),
        Operand::Read => Err(Unwritable("way to use the value that an update reads, except as its left operand")),
    }
}

fn word<T: PartialEq>(table: &[(&'static str, T)], of: &T) -> &'static str {
    table.iter().find(|(_, known)| known == of).map_or("", |(word, _)| word)
}

fn cell(kind: &InstructionKind, names: &[String]) -> Result<String, Unwritable> {
    Ok(match kind {
        InstructionKind::Compute { destination, value } => {
            let (binary, left, right) = match value {
                Expression::Operand(value) => (Binary::Add, value, &Operand::Constant(0)),
                Expression::Binary(binary, left, right) => (*binary, left, right),
            };
            let (left, right) = (operand(left)?, operand(right)?);
            format!("{} {}, {left}, {right}", word(&ARITHMETIC, &binary), register_name(destination))
        }
        InstructionKind::Branch { condition: None, target } => format!("goto L{target}"),
        InstructionKind::Branch { condition: Some(BranchCondition { comparison, left, right }), target } => {
            format!("{} {}, {}, L{target}", word(&BRANCHES, comparison), operand(left)?, operand(right)?)
        }
        InstructionKind::Execute { operation, destination, value, barrier } => {
            execute(operation, destination.as_ref(), (value.as_ref(), *barrier), names)?
        }
    })
}

fn execute(
    operation: &Operation,
    destination: Option<&Register>,
    (value, barrier): (Option<&Expression>, Option<Barrier>),
    names: &[String],
) -> Result<String, Unwritable> {
    let all = |head: &str| Ok::<_, Unwritable>(format!("{head}{}", suffixes(operation)?));
    match &operation.action {
        Action::Access(access) => access_text(access, operation, destination, value, names),
        Action::Fence => all("membar"),
        Action::Available(Domain::Device) => all("avdevice"),
        Action::Visible(Domain::Device) => all("visdevice"),
        Action::ControlBarrier { execution } => {
            if operation.scope.unwrap_or(Scope::Invocation) != *execution {
                return Err(Unwritable("execution scopes apart from memory scopes"));
            }
            match barrier {
                Some(Barrier::Static { id, quorum: None }) => Ok(format!("{} {id}", all("cbar")?)),
                Some(Barrier::Static { id, quorum: Some(quorum) }) => Ok(format!("{} {id}, 0, {quorum}", all("cbar")?)),
                Some(Barrier::Dynamic(_)) | None => Err(Unwritable("instances of control barriers")),
            }
        }
        _ => Err(Unwritable("operations of the host")),
    }
}

fn access_text(
    access: &Access,
    operation: &Operation,
    destination: Option<&Register>,
    value: Option<&Expression>,
    names: &[String],
) -> Result<String, Unwritable> {
    let mut head = String::from(match (access.reads, access.writes) {
        (true, true) => "rmw",
        (_, true) => "st",
        _ => "ld",
    });
    if access.atomic {
        head.push_str(".atom");
    } else {
        for (flag, word) in [(access.available, ".av"), (access.visible, ".vis")] {
            head.push_str(if flag { word } else { "" });
        }
        if access.non_private && !access.available && !access.visible {
            head.push_str(".nonpriv");
        }
    }
    let unknown = Unwritable("stores of values that are not known");
    let mut operands = Vec::new();
    if access.reads {
        operands.push(destination.map_or_else(|| "unused".to_owned(), register_name));
    }
    operands.push(names[access.reference as usize].clone());
    if access.writes {
        operands.push(match value.ok_or(unknown)? {
            Expression::Operand(value) => operand(value)?,
            Expression::Binary(binary, Operand::Read, right) => {
                let _ = write!(head, ".{}", word(&ARITHMETIC, binary));
                operand(right)?
            }
            Expression::Binary(..) => return Err(Unwritable("stores of computed values")),
        });
    }
    let _ = write!(head, "{}.sc{}", suffixes(operation)?, access.class as u8);
    // The classes of semantics follow that of the access in no particular order.
    Ok(format!("{head} {}", operands.join(", ")))
}

/// Order, flags, scope and classes of semantics, as parts of an instruction's name.
fn suffixes(operation: &Operation) -> Result<String, Unwritable> {
    let mut text = String::from(match (operation.acquire, operation.release) {
        (true, true) => ".acq_rel",
        (true, false) => ".acq",
        (false, true) => ".rel",
        (false, false) => "",
    });
    for (flag, word) in [(operation.make_available, ".semav"), (operation.make_visible, ".semvis")] {
        text.push_str(if flag { word } else { "" });
    }
    text.push_str(match operation.scope {
        None => "",
        Some(Scope::Subgroup) => ".sg",
        Some(Scope::Workgroup) => ".wg",
        Some(Scope::QueueFamily) => ".qf",
        Some(Scope::Device) => ".dv",
        Some(Scope::Invocation | Scope::CrossDevice) => return Err(Unwritable("scopes beyond four")),
    });
    text.extend(operation.semantics.iter().map(|class| format!(".semsc{}", class as u8)));
    Ok(text)
}
