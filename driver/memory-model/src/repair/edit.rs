//! Edits that add synchronization to a program: their description and application.

use std::collections::BTreeSet;
use std::fmt;

use crate::event::{Action, Class, Classes, Operation, Scope};
use crate::program::{Barrier, Instruction, InstructionKind, PinnedSource, Program};

/// An edit that adds synchronization. Operations are identified by thread and index into its code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edit {
    /// `NonPrivatePointer` on an access.
    NonPrivate((usize, usize)),
    /// `MakePointerAvailable` on a write, to this scope.
    Available((usize, usize), Scope),
    /// `MakePointerVisible` on a read, from this scope.
    Visible((usize, usize), Scope),
    /// `MakeAvailable` in semantics.
    MakeAvailable((usize, usize)),
    /// `MakeVisible` in semantics.
    MakeVisible((usize, usize)),
    /// A storage class in semantics.
    Semantics((usize, usize), Class),
    /// Release semantics with a storage class.
    Release((usize, usize), Class),
    /// Acquire semantics with a storage class.
    Acquire((usize, usize), Class),
    /// A wider scope.
    Widen((usize, usize), Scope),
    /// A control barrier with all semantics for a class: after the operation of one thread and before that of the
    /// other.
    Barrier((usize, usize), (usize, usize), Class),
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(&|(thread, at)| format!("{thread}:{}", at + 1)))
    }
}

impl Edit {
    /// The edit as text, with the program's names of threads. An edit of a control barrier names all of its operations.
    pub fn describe(&self, program: &Program) -> String {
        let name = |(thread, at): (usize, usize)| format!("{}:{}", program.threads[thread].name, at + 1);
        self.text(&|place| match self {
            Self::Barrier(..) => name(place),
            _ => listed(group(program, place).into_iter().map(name).collect()),
        })
    }

    fn text(&self, at: &dyn Fn((usize, usize)) -> String) -> String {
        match *self {
            Self::NonPrivate(place) => format!("NonPrivatePointer on {}", at(place)),
            Self::Available(place, scope) => format!("MakePointerAvailable ({}) on {}", scope.name(), at(place)),
            Self::Visible(place, scope) => format!("MakePointerVisible ({}) on {}", scope.name(), at(place)),
            Self::MakeAvailable(place) => format!("MakeAvailable on {}", at(place)),
            Self::MakeVisible(place) => format!("MakeVisible on {}", at(place)),
            Self::Semantics(place, class) => format!("{class:?}Memory on {}", at(place)),
            Self::Release(place, class) => format!("Release|{class:?}Memory on {}", at(place)),
            Self::Acquire(place, class) => format!("Acquire|{class:?}Memory on {}", at(place)),
            Self::Widen(place, scope) => format!("{} scope on {}", scope.name(), at(place)),
            Self::Barrier(a, b, class) => {
                format!("a control barrier for {class:?}Memory after {} and before {}", at(a), at(b))
            }
        }
    }
}

/// `a, b and c`.
fn listed(mut names: Vec<String>) -> String {
    let Some(last) = names.pop() else { return String::new() };
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// Applies edits to a program. Barriers are inserted last, from the end, so that indices stay valid.
pub fn apply(program: &Program, edits: &BTreeSet<Edit>) -> Program {
    let mut edited = program.clone();
    let mut barriers = Vec::new();
    // Edits that require release or acquire semantics come after those that add them.
    let gives = |edit: &Edit| matches!(edit, Edit::Release(..) | Edit::Acquire(..));
    let ordered = edits.iter().filter(|edit| gives(edit)).chain(edits.iter().filter(|edit| !gives(edit)));
    for (number, edit) in ordered.enumerate() {
        let (Edit::NonPrivate(at)
        | Edit::Available(at, _)
        | Edit::Visible(at, _)
        | Edit::MakeAvailable(at)
        | Edit::MakeVisible(at)
        | Edit::Semantics(at, _)
        | Edit::Release(at, _)
        | Edit::Acquire(at, _)
        | Edit::Widen(at, _)
        | Edit::Barrier(at, ..)) = *edit;
        if let Edit::Barrier(after, before, class) = *edit {
            // Numbers that no text can have.
            let instance = (1 << 30) + number as u32;
            barriers.push(((after.0, after.1 + 1), class, instance));
            barriers.push((before, class, instance));
        } else {
            for place in group(program, at) {
                if let Some(operation) = edited.operation_mut(place) {
                    change(operation, *edit);
                }
            }
        }
    }
    barriers.sort_by_key(|barrier| std::cmp::Reverse(barrier.0));
    for (at, class, instance) in barriers {
        insert_barrier(&mut edited, at, class, instance);
    }
    edited
}

/// The operations that must change together: all of one control barrier, or the single operation.
pub(super) fn group(program: &Program, at: (usize, usize)) -> Vec<(usize, usize)> {
    let barrier = |at: (usize, usize)| match &program.threads[at.0].code[at.1].kind {
        InstructionKind::Execute { barrier, .. } => *barrier,
        _ => None,
    };
    let same = |a: Option<Barrier>, b: Option<Barrier>| match (a, b) {
        (Some(Barrier::Static { id: a, .. }), Some(Barrier::Static { id: b, .. })) => a == b,
        (a, b) => a.is_some() && a == b,
    };
    let places = program.operations().map(|(place, _)| place);
    places.filter(|&place| place == at || same(barrier(place), barrier(at))).collect()
}

fn change(operation: &mut Operation, edit: Edit) {
    let widen = |operation: &mut Operation, scope: Scope| {
        operation.scope = Some(operation.scope.map_or(scope, |known| known.max(scope)));
    };
    match edit {
        Edit::NonPrivate(_) => {
            if let Some(access) = operation.access_mut() {
                access.non_private = true;
            }
        }
        Edit::Available(_, scope) | Edit::Visible(_, scope) => {
            if let Some(access) = operation.access_mut() {
                access.available |= matches!(edit, Edit::Available(..));
                access.visible |= matches!(edit, Edit::Visible(..));
            }
            widen(operation, scope);
        }
        Edit::MakeAvailable(_) => operation.make_available = operation.release,
        Edit::MakeVisible(_) => operation.make_visible = operation.acquire,
        Edit::Semantics(_, class) => {
            if operation.acquire || operation.release {
                operation.semantics = operation.semantics.with(class);
            }
        }
        Edit::Release(_, class) | Edit::Acquire(_, class) => {
            operation.release |= matches!(edit, Edit::Release(..));
            operation.acquire |= matches!(edit, Edit::Acquire(..));
            operation.semantics = operation.semantics.with(class);
        }
        Edit::Widen(_, scope) => {
            widen(operation, scope);
            if let Action::ControlBarrier { execution } = &mut operation.action {
                *execution = (*execution).max(scope);
            }
        }
        Edit::Barrier(..) => {}
    }
    operation.complete();
}

fn insert_barrier(program: &mut Program, at: (usize, usize), class: Class, instance: u32) {
    let mut operation = Operation::new(Action::ControlBarrier { execution: Scope::Workgroup });
    operation.acquire = true;
    operation.release = true;
    operation.semantics = Classes::NONE.with(class);
    operation.scope = Some(Scope::Workgroup);
    operation.make_available = true;
    operation.make_visible = true;
    let barrier = Some(Barrier::Dynamic(instance));
    let kind = InstructionKind::Execute { operation, destination: None, value: None, barrier };
    let code = &mut program.threads[at.0].code;
    let place = code.get(at.1).or(code.last()).map(|instruction| instruction.place).unwrap_or_default();
    code.insert(at.1.min(code.len()), Instruction { place, kind });
    let shift = |place: &mut (usize, usize)| place.1 += usize::from(place.0 == at.0 && place.1 >= at.1);
    for pin in &mut program.pins {
        shift(&mut pin.read);
        if let PinnedSource::Write(write) = &mut pin.source {
            shift(write);
        }
    }
}

/// Whether an edit inserted this barrier.
pub(super) fn is_inserted(instruction: &Instruction) -> bool {
    matches!(instruction.kind, InstructionKind::Execute { barrier: Some(Barrier::Dynamic(number)), .. } if number >= 1 << 30)
}

/// The descriptions of the edits, joined.
pub fn words(program: &Program, edits: &[Edit]) -> String {
    edits.iter().map(|edit| edit.describe(program)).collect::<Vec<_>>().join(", ")
}
