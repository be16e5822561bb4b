//! Writes a repair into the text of a test, in the tokens of its format: the author's lines stay as they are, except
//! for the operations that a repair changes.
//!
//! 1. A changed operation keeps its tokens in the author's order; new ones are added, and a scope or memory order is
//!    replaced.
//! 2. A new control barrier gets a line (Khronos) or row (Dat3M) of its own.
//! 3. A value of a read that the repair may change is removed ([`super`], 1).
//! 4. Questions of Khronos tests state what the author expects of the racing program: they become comments, and two
//!    questions state that the repaired program has executions and none races.
//! 5. The result is read again and must be a repair; otherwise there is none.

use std::collections::BTreeMap;

use super::Repair;
use super::edit::is_inserted;
use crate::answer::{Options, find_race, summarize};
use crate::event::{Class, Operation, Scope};
use crate::format::{Format, Test};
use crate::program::{Barrier, Instruction, InstructionKind, Place, Program};

/// Why a repair has no text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the repair cannot be written in the terms of the file: {0}")]
pub struct NotWritten(pub String);

/// A text with a repair in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// The whole text.
    pub text: String,
    /// The changed operations.
    pub changes: Vec<Change>,
}

/// A changed operation, or a new one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The line in the original text; of a new operation, that before which it is inserted.
    pub line: u32,
    /// The operation as its author wrote it; empty for a new one.
    pub before: String,
    /// The operation of the repair.
    pub after: String,
}

/// Writes `repair` into `text`, from which `test` was read.
///
/// # Errors
///
/// If the text cannot express the repair, or the result could not be decided within the bounds of `options`.
pub fn rewrite(
    format: Format,
    text: &str,
    test: &Test,
    repair: &Repair,
    options: &Options,
) -> Result<Rewritten, NotWritten> {
    let mut writer = Writer {
        format,
        lines: text.lines().map(str::to_owned).collect(),
        inserted: BTreeMap::new(),
        changes: Vec::new(),
        instances: Vec::new(),
        first_instance: first_free(&test.program, format),
    };
    for thread in 0..test.program.threads.len() {
        writer.thread(&test.program, repair, thread)?;
    }
    if format == Format::Khronos {
        for question in &test.questions {
            writer.comment(question.place);
        }
    }
    let rewritten = writer.finish();
    verify(format, &rewritten.text, &test.program.name, options)?;
    Ok(rewritten)
}

/// Reads the text again: it must have executions, none of which races.
fn verify(format: Format, text: &str, name: &str, options: &Options) -> Result<(), NotWritten> {
    let wrong = |problem: String| NotWritten(problem);
    let test = format.read(name, text).map_err(|error| wrong(format!("read again, it is invalid: {error}")))?;
    if find_race(&test.program, None, options).map_err(|bound| wrong(bound.to_string()))?.is_some() {
        return Err(wrong("read again, it races".to_owned()));
    }
    let summary = summarize(&test.program, options, 1).map_err(|bound| wrong(bound.to_string()))?;
    if summary.executions == 0 {
        return Err(wrong("read again, it has no executions, since stated values cannot be left out".to_owned()));
    }
    Ok(())
}

/// A number that no control barrier of the program has.
fn first_free(program: &Program, format: Format) -> u32 {
    let barriers =
        program.threads.iter().flat_map(|thread| &thread.code).filter_map(|instruction| match instruction.kind {
            InstructionKind::Execute { barrier: Some(Barrier::Dynamic(number)), .. } => Some(number),
            _ => None,
        });
    match format {
        Format::Khronos => barriers.max().map_or(0, |number| number.saturating_add(1)),
        // Its numbers are not kept; texts use small ones.
        Format::Dartagnan => 1000,
    }
}

struct Writer {
    format: Format,
    lines: Vec<String>,
    /// New lines before a line (an index into `lines`, or their number for the end).
    inserted: BTreeMap<usize, Vec<String>>,
    changes: Vec<Change>,
    /// The instances of new barriers, in the order of their numbers in the text.
    instances: Vec<u32>,
    first_instance: u32,
}

impl Writer {
    fn thread(&mut self, program: &Program, repair: &Repair, thread: usize) -> Result<(), NotWritten> {
        let code = &program.threads[thread].code;
        let mut own = 0;
        for (at, instruction) in repair.program.threads[thread].code.iter().enumerate() {
            if is_inserted(instruction) {
                self.insert(program, (thread, own), instruction);
                continue;
            }
            let Some(before) = code.get(own) else { break };
            self.operation(before, instruction)?;
            let states = |program: &Program, at: usize| program.pins.iter().any(|pin| pin.read == (thread, at));
            if states(program, own) && !states(&repair.program, at) {
                self.forget_value(before.place);
            }
            own += 1;
        }
        Ok(())
    }

    /// Changes an operation, if it differs.
    fn operation(&mut self, before: &Instruction, after: &Instruction) -> Result<(), NotWritten> {
        let (InstructionKind::Execute { operation: old, .. }, InstructionKind::Execute { operation: new, .. }) =
            (&before.kind, &after.kind)
        else {
            return Ok(());
        };
        if old == new {
            return Ok(());
        }
        let missing = || NotWritten(format!("nothing is at {}", before.place));
        let index = before.place.line as usize - 1;
        let line = self.lines.get(index).ok_or_else(missing)?;
        let start = line.char_indices().nth(before.place.column as usize - 1).map(|(at, _)| at).ok_or_else(missing)?;
        let length = line[start..].find(|c: char| c.is_whitespace() || c == '|' || c == ';');
        let end = length.map_or(line.len(), |length| start + length);
        let head = tokens(self.format, &line[start..end], old, new);
        let shown = |line: &str, end: usize| {
            let rest = &line[end..];
            let rest = rest.split(['|', ';']).next().unwrap_or(rest);
            let rest = rest.split("//").next().unwrap_or(rest);
            rest.trim_end().to_owned()
        };
        let rest = shown(line, end);
        let (was, is) = (format!("{}{rest}", &line[start..end]), format!("{head}{rest}"));
        self.changes.push(Change { line: before.place.line, before: was, after: is });
        self.lines[index].replace_range(start..end, &head);
        Ok(())
    }

    /// Inserts a control barrier before the instruction `own` of a thread, or after its last one.
    fn insert(&mut self, program: &Program, (thread, own): (usize, usize), barrier: &Instruction) {
        let InstructionKind::Execute { operation, barrier: Some(Barrier::Dynamic(instance)), .. } = &barrier.kind
        else {
            return;
        };
        let known = self.instances.iter().position(|known| known == instance);
        let number = known.unwrap_or_else(|| {
            self.instances.push(*instance);
            self.instances.len() - 1
        });
        let id = self.first_instance.saturating_add(number as u32);
        let classes: String = operation.semantics.iter().map(|class| format!(".semsc{}", class as u8)).collect();
        let text = match self.format {
            Format::Khronos => format!("cbar.acq.rel.semav.semvis.scopewg{classes} {id}"),
            Format::Dartagnan => format!("cbar.acq_rel.semav.semvis.wg{classes} {id}"),
        };
        let code = &program.threads[thread].code;
        let line = match (code.get(own), code.last()) {
            (Some(next), _) => next.place.line as usize - 1,
            (None, Some(last)) => last.place.line as usize,
            (None, None) => return,
        };
        self.changes.push(Change { line: line as u32 + 1, before: String::new(), after: text.clone() });
        let row = match self.format {
            Format::Khronos => text,
            Format::Dartagnan => {
                let cells = (0..program.threads.len()).map(|at| if at == thread { text.as_str() } else { "" });
                format!(" {} ;", cells.collect::<Vec<_>>().join(" | "))
            }
        };
        self.inserted.entry(line).or_default().push(row);
    }

    /// Removes the value that a read of a Khronos test states.
    fn forget_value(&mut self, place: Place) {
        let Some(line) = self.lines.get_mut(place.line as usize - 1) else { return };
        let Some((operation, values)) = line.split_once('=') else { return };
        // A read-modify-write states the value that it reads, and then the one that it writes.
        *line = match values.split_whitespace().nth(1) {
            Some(written) => format!("{operation}= -1 {written}"),
            None => operation.trim_end().to_owned(),
        };
    }

    fn comment(&mut self, place: Place) {
        if let Some(line) = self.lines.get_mut(place.line as usize - 1) {
            line.insert_str(0, "// ");
        }
    }

    fn finish(mut self) -> Rewritten {
        let mut text = String::new();
        let mut add = |line: &str| {
            text.push_str(line);
            text.push('\n');
        };
        for at in 0..=self.lines.len() {
            self.inserted.remove(&at).unwrap_or_default().iter().for_each(|line| add(line));
            self.lines.get(at).into_iter().for_each(|line| add(line));
        }
        if self.format == Format::Khronos {
            add("SATISFIABLE consistent[X] && #dr=0");
            add("NOSOLUTION consistent[X] && #dr>0");
        }
        self.changes.sort_by_key(|change| change.line);
        Rewritten { text, changes: self.changes }
    }
}

/// The tokens of a changed operation.
fn tokens(format: Format, head: &str, old: &Operation, new: &Operation) -> String {
    let mut tokens: Vec<String> = head.split('.').map(str::to_owned).collect();
    let kind = usize::from(tokens.get(1).is_some_and(|token| token == "atom")) + 1;
    let mut added = access_tokens(old, new);
    match format {
        Format::Khronos => {
            let orders = [(old.acquire, new.acquire, "acq"), (old.release, new.release, "rel")];
            added.extend(orders.iter().filter(|(old, new, _)| new & !old).map(|order| order.2.to_owned()));
        }
        // A single token is the memory order.
        Format::Dartagnan if (old.acquire, old.release) != (new.acquire, new.release) => {
            tokens.retain(|token| !["acq", "rel", "acq_rel", "rlx"].contains(&token.as_str()));
            let order = match (new.acquire, new.release) {
                (true, true) => "acq_rel",
                (true, false) => "acq",
                _ => "rel",
            };
            added.push(order.to_owned());
        }
        Format::Dartagnan => {}
    }
    let flags = [(old.make_available, new.make_available, "semav"), (old.make_visible, new.make_visible, "semvis")];
    added.extend(flags.iter().filter(|(old, new, _)| new & !old).map(|flag| flag.2.to_owned()));
    let kind = kind.min(tokens.len());
    tokens.splice(kind..kind, added);
    if old.scope != new.scope
        && let Some(scope) = new.scope.and_then(|scope| scope_token(format, scope))
    {
        match tokens.iter().position(|token| SCOPES.iter().any(|scope| scope_token(format, *scope) == Some(token))) {
            Some(at) => scope.clone_into(&mut tokens[at]),
            None => {
                let class = |token: &String| token.strip_prefix("sc").is_some_and(|rest| rest.parse::<u8>().is_ok());
                let at = tokens.iter().position(class).unwrap_or(tokens.len());
                tokens.insert(at, scope.to_owned());
            }
        }
    }
    let new_class = |class: &Class| !old.semantics.contains(*class);
    tokens.extend(new.semantics.iter().filter(new_class).map(|class| format!("semsc{}", class as u8)));
    tokens.join(".")
}

/// New tokens of an access; `av` and `vis` imply `nonpriv`.
fn access_tokens(old: &Operation, new: &Operation) -> Vec<String> {
    let (Some(old), Some(new)) = (old.access(), new.access()) else { return Vec::new() };
    let flags = [
        (new.available && !old.available, "av"),
        (new.visible && !old.visible, "vis"),
        (new.non_private && !old.non_private && !new.available && !new.visible, "nonpriv"),
    ];
    flags.iter().filter(|flag| flag.0).map(|flag| flag.1.to_owned()).collect()
}

const SCOPES: [Scope; 4] = [Scope::Subgroup, Scope::Workgroup, Scope::QueueFamily, Scope::Device];

fn scope_token(format: Format, scope: Scope) -> Option<&'static str> {
    let at = SCOPES.iter().position(|known| *known == scope)?;
    Some(match format {
        Format::Khronos => ["scopesg", "scopewg", "scopeqf", "scopedev"][at],
        Format::Dartagnan => ["sg", "wg", "qf", "dv"][at],
    })
}
