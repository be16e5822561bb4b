//! Preparation of programs that are written as texts: names that the formats allow, and numbers of control barriers.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::Agent;
use crate::program::{Barrier, InstructionKind, Program};

/// The feature of a program that a format does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the format has no {0}")]
pub struct Unwritable(pub &'static str);

/// Names of the references, as texts may have them: letters, digits and `_`, after a letter. `to[0]` becomes `to_0`.
pub(super) fn names(program: &Program) -> Vec<String> {
    let mut taken = BTreeSet::new();
    program.references.iter().map(|name| unique(&cleaned(name), &mut taken)).collect()
}

fn unique(name: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number: u32| format!("{name}_{number}"));
    let free = std::iter::once(name.to_owned()).chain(numbered).find(|name| !taken.contains(name));
    let name = free.unwrap_or_default();
    taken.insert(name.clone());
    name
}

fn cleaned(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        match c {
            c if c.is_alphanumeric() => text.push(c),
            _ if text.is_empty() || text.ends_with('_') => {}
            _ => text.push('_'),
        }
    }
    let text = text.trim_end_matches('_');
    if text.starts_with(char::is_alphabetic) { text.to_owned() } else { format!("x{text}") }
}

/// A program in which each instance of a control barrier has a number of its own: the n-th arrivals of the
/// invocations of a workgroup at a barrier of the code are one instance.
pub(super) fn numbered_barriers(program: &Program) -> Result<Program, Unwritable> {
    let mut program = program.clone();
    let is_static =
        |kind: &InstructionKind| matches!(kind, InstructionKind::Execute { barrier: Some(Barrier::Static { .. }), .. });
    let mut instructions = program.threads.iter().flat_map(|thread| &thread.code);
    if !instructions.any(|instruction| is_static(&instruction.kind)) {
        return Ok(program);
    }
    if !program.is_straight() {
        return Err(Unwritable("registers and branches"));
    }
    let mut instances: BTreeMap<(u32, u32, u32), u32> = BTreeMap::new();
    for thread in &mut program.threads {
        let Agent::Device { workgroup, .. } = thread.agent else { return Err(Unwritable("agents of the host")) };
        let mut arrivals: BTreeMap<u32, u32> = BTreeMap::new();
        for instruction in &mut thread.code {
            let InstructionKind::Execute { barrier: Some(barrier), .. } = &mut instruction.kind else { continue };
            match *barrier {
                Barrier::Static { quorum: Some(_), .. } => return Err(Unwritable("barriers with a quorum")),
                Barrier::Dynamic(_) => return Err(Unwritable("barriers of both kinds")),
                Barrier::Static { id, quorum: None } => {
                    let arrival = arrivals.entry(id).or_default();
                    let next = instances.len() as u32;
                    *barrier = Barrier::Dynamic(*instances.entry((workgroup, id, *arrival)).or_insert(next));
                    *arrival += 1;
                }
            }
        }
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_texts() {
        for (name, wanted) in [("x", "x"), ("to[0]", "to_0"), ("a.b[1].c", "a_b_1_c"), ("0.1+4", "x0_1_4"), ("_", "x")]
        {
            assert_eq!(cleaned(name), wanted);
        }
        let references = ["to[0]", "to_0", "to+0"].map(str::to_owned).into();
        assert_eq!(names(&Program { references, ..Program::default() }), ["to_0", "to_0_2", "to_0_3"]);
    }
}
