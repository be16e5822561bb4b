//! Edits that add synchronization to a program: their description and application.

use std::collections::BTreeSet;
use std::fmt;

use crate::event::{Action, Class, Classes, Operation, Scope};
use crate::program::{Barrier, Instruction, InstructionKind, PinnedSource, Program};

use super::shared;

/// An edit of code that adds synchronization. Operations are identified by `P`: thread and index into its code in a
/// program, the [`Site`](crate::event::Site) in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Edit<P = (usize, usize)> {
    /// `NonPrivatePointer` on an access.
    NonPrivate(P),
    /// `MakePointerAvailable` on a write, to this scope.
    Available(P, Scope),
    /// `MakePointerVisible` on a read, from this scope.
    Visible(P, Scope),
    /// `MakeAvailable` in semantics.
    MakeAvailable(P),
    /// `MakeVisible` in semantics.
    MakeVisible(P),
    /// A storage class in semantics.
    Semantics(P, Class),
    /// Release semantics with a storage class.
    Release(P, Class),
    /// Acquire semantics with a storage class.
    Acquire(P, Class),
    /// A wider scope.
    Widen(P, Scope),
    /// A control barrier with all semantics for a class: after the operation of one thread and before that of the
    /// other.
    Barrier(P, P, Class),
    /// Two accesses become atomic, in this scope. That removes their race, but orders nothing else.
    Atomic(P, P, Scope),
    /// Acquire and release semantics with a storage class, with availability and visibility, as far as the atomic or
    /// barrier reads and writes: what the functions of a language add at once.
    Order(P, Class),
    /// Two accesses become non-private, available and visible in this scope, as `coherent` of GLSL makes those of a
    /// variable.
    Coherent(P, P, Scope),
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
}

impl<P: Copy> Edit<P> {
    /// The edit as text, with names of operations.
    pub fn text(&self, at: &dyn Fn(P) -> String) -> String {
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
            Self::Atomic(a, b, scope) => {
                let names = [at(a), at(b)];
                let names = if names[0] == names[1] { names[0].clone() } else { names.join(" and ") };
                format!("atomic accesses ({}) at {names}", scope.name())
            }
            Self::Order(place, class) => format!("AcquireRelease|{class:?}Memory on {}", at(place)),
            Self::Coherent(a, b, scope) => {
                format!("non-private accesses, available and visible ({}), at {} and {}", scope.name(), at(a), at(b))
            }
        }
    }

    /// Edits as texts, each by `own`, but those of the semantics of one operation together: they are one operand, which
    /// has one memory order. `operation` is what is at a place without the edits, `at` its name.
    pub fn texts(
        edits: &[Self],
        own: impl Fn(&Self) -> String,
        operation: impl Fn(P) -> Option<Operation>,
        at: &dyn Fn(P) -> String,
    ) -> Vec<String>
    where
        P: PartialEq,
    {
        let mut texts = Vec::new();
        for (number, edit) in edits.iter().enumerate() {
            let place = edit.places().0;
            let is_same = |other: &&Self| other.is_of_semantics() && other.places().0 == place;
            if !edit.is_of_semantics() {
                texts.push(own(edit));
            } else if !edits[..number].iter().any(|other| is_same(&other)) {
                let together: Vec<Self> = edits.iter().filter(is_same).copied().collect();
                texts.push(match operation(place) {
                    Some(operation) => format!("{} on {}", Self::operand(&together, operation), at(place)),
                    None => own(edit),
                });
            }
        }
        texts
    }

    /// Whether it adds something to the semantics of an operation, and nothing else.
    fn is_of_semantics(&self) -> bool {
        use Edit::{Acquire, MakeAvailable, MakeVisible, Release, Semantics};
        matches!(self, MakeAvailable(_) | MakeVisible(_) | Semantics(..) | Release(..) | Acquire(..))
    }

    /// What edits of the semantics of an operation add: the memory order that it gets, storage classes and flags.
    fn operand(edits: &[Self], operation: Operation) -> String {
        let mut changed = operation.clone();
        Self::in_order(edits.iter()).for_each(|edit| edit.change(&mut changed));
        let has_order = (changed.acquire, changed.release) != (operation.acquire, operation.release);
        let order = match (changed.acquire, changed.release) {
            (true, true) => "AcquireRelease",
            (true, false) => "Acquire",
            _ => "Release",
        };
        let mut parts: Vec<String> = has_order.then(|| order.to_owned()).into_iter().collect();
        for edit in edits {
            if let Self::Semantics(_, class) | Self::Release(_, class) | Self::Acquire(_, class) = edit {
                let class = format!("{class:?}Memory");
                let is_new = !parts.contains(&class);
                parts.extend(is_new.then_some(class));
            }
        }
        let has = |flag: fn(&Self) -> bool, name: &str| edits.iter().any(flag).then(|| name.to_owned());
        parts.extend(has(|edit| matches!(edit, Self::MakeAvailable(_)), "MakeAvailable"));
        parts.extend(has(|edit| matches!(edit, Self::MakeVisible(_)), "MakeVisible"));
        parts.join("|")
    }

    /// The operations that it changes, or between which it inserts another.
    pub fn places(&self) -> (P, Option<P>) {
        match *self {
            Self::NonPrivate(at)
            | Self::Available(at, _)
            | Self::Visible(at, _)
            | Self::MakeAvailable(at)
            | Self::MakeVisible(at)
            | Self::Semantics(at, _)
            | Self::Release(at, _)
            | Self::Acquire(at, _)
            | Self::Order(at, _)
            | Self::Widen(at, _) => (at, None),
            Self::Barrier(a, b, _) => (a, Some(b)),
            Self::Atomic(a, b, _) | Self::Coherent(a, b, _) => (a, Some(b)),
        }
    }

    /// The same edit of other operations.
    pub fn map<Q>(self, f: impl Fn(P) -> Q) -> Edit<Q> {
        match self {
            Self::NonPrivate(at) => Edit::NonPrivate(f(at)),
            Self::Available(at, scope) => Edit::Available(f(at), scope),
            Self::Visible(at, scope) => Edit::Visible(f(at), scope),
            Self::MakeAvailable(at) => Edit::MakeAvailable(f(at)),
            Self::MakeVisible(at) => Edit::MakeVisible(f(at)),
            Self::Semantics(at, class) => Edit::Semantics(f(at), class),
            Self::Release(at, class) => Edit::Release(f(at), class),
            Self::Acquire(at, class) => Edit::Acquire(f(at), class),
            Self::Widen(at, scope) => Edit::Widen(f(at), scope),
            Self::Barrier(a, b, class) => Edit::Barrier(f(a), f(b), class),
            Self::Atomic(a, b, scope) => Edit::Atomic(f(a), f(b), scope),
            Self::Order(at, class) => Edit::Order(f(at), class),
            Self::Coherent(a, b, scope) => Edit::Coherent(f(a), f(b), scope),
        }
    }

    /// The edits in the order of their application: those that require release or acquire semantics come after those
    /// that add them.
    pub(super) fn in_order<'a>(edits: impl Iterator<Item = &'a Self> + Clone) -> impl Iterator<Item = &'a Self>
    where
        P: 'a,
    {
        let gives = |edit: &&Self| matches!(edit, Self::Release(..) | Self::Acquire(..) | Self::Order(..));
        edits.clone().filter(gives).chain(edits.filter(move |edit| !gives(edit)))
    }

    /// Changes one of the operations that it names. Barriers change none.
    pub(super) fn change(&self, operation: &mut Operation) {
        let widen = |operation: &mut Operation, scope: Scope| {
            operation.scope = Some(operation.scope.map_or(scope, |known| known.max(scope)));
        };
        match *self {
            Self::NonPrivate(_) => {
                if let Some(access) = operation.access_mut() {
                    access.non_private = true;
                }
            }
            Self::Available(_, scope) | Self::Visible(_, scope) => {
                if let Some(access) = operation.access_mut() {
                    access.available |= matches!(self, Self::Available(..));
                    access.visible |= matches!(self, Self::Visible(..));
                }
                widen(operation, scope);
            }
            Self::MakeAvailable(_) => operation.make_available = operation.release,
            Self::MakeVisible(_) => operation.make_visible = operation.acquire,
            Self::Semantics(_, class) => {
                if operation.acquire || operation.release {
                    operation.semantics = operation.semantics.with(class);
                }
            }
            Self::Release(_, class) | Self::Acquire(_, class) => {
                operation.release |= matches!(self, Self::Release(..));
                operation.acquire |= matches!(self, Self::Acquire(..));
                operation.semantics = operation.semantics.with(class);
            }
            Self::Widen(_, scope) => {
                widen(operation, scope);
                if let Action::ControlBarrier { execution } = &mut operation.action {
                    *execution = (*execution).max(scope);
                }
            }
            Self::Atomic(_, _, scope) => {
                if let Some(access) = operation.access_mut() {
                    access.atomic = true;
                    widen(operation, scope);
                }
            }
            Self::Order(_, class) => {
                let (reads, writes) = operation.access().map_or((true, true), |access| (access.reads, access.writes));
                operation.acquire |= reads;
                operation.release |= writes;
                operation.semantics = operation.semantics.with(class);
                operation.make_available = operation.release;
                operation.make_visible = operation.acquire;
            }
            Self::Coherent(_, _, scope) => {
                if let Some(access) = operation.access_mut() {
                    access.non_private = true;
                    access.available |= access.writes;
                    access.visible |= access.reads;
                    widen(operation, scope);
                }
            }
            Self::Barrier(..) => {}
        }
        operation.complete();
    }
}

/// The control barrier that an edit inserts.
pub(super) fn barrier(class: Class) -> Operation {
    let mut operation = Operation::new(Action::ControlBarrier { execution: Scope::Workgroup });
    operation.acquire = true;
    operation.release = true;
    operation.semantics = Classes::NONE.with(class);
    operation.scope = Some(Scope::Workgroup);
    operation.make_available = true;
    operation.make_visible = true;
    operation
}

/// `a, b and c`.
fn listed(mut names: Vec<String>) -> String {
    let Some(last) = names.pop() else { return String::new() };
    if names.is_empty() { last } else { format!("{} and {last}", names.join(", ")) }
}

/// The number of the first control barrier that edits insert: no text and no shader has such numbers.
const INSERTED: u32 = 1 << 30;

/// Applies edits to a program. Barriers are inserted last, from the end, so that indices stay valid.
pub fn apply(program: &Program, edits: &BTreeSet<Edit>) -> Program {
    let mut edited = program.clone();
    let mut barriers = Vec::new();
    for (number, edit) in Edit::in_order(edits.iter()).enumerate() {
        if let Edit::Barrier(after, before, class) = *edit {
            let number = INSERTED + number as u32;
            if program.shares_code() {
                let barrier = Barrier::Static { id: number, quorum: None };
                let places = shared::barrier(program, after, before).into_iter().flat_map(|place| place.insertions);
                barriers.extend(places.map(|at| (at, class, barrier)));
            } else {
                barriers.push(((after.0, after.1 + 1), class, Barrier::Dynamic(number)));
                barriers.push((before, class, Barrier::Dynamic(number)));
            }
            continue;
        }
        let (one, other) = edit.places();
        let places: BTreeSet<_> = [Some(one), other].into_iter().flatten().flat_map(|at| group(program, at)).collect();
        for place in places {
            if let Some(operation) = edited.operation_mut(place) {
                edit.change(operation);
            }
        }
    }
    barriers.sort_by_key(|barrier| std::cmp::Reverse(barrier.0));
    for (at, class, barrier) in barriers {
        insert_barrier(&mut edited, at, class, barrier);
    }
    edited
}

/// The operations that must change together: all of one control barrier, or the single operation.
pub(super) fn group(program: &Program, at: (usize, usize)) -> Vec<(usize, usize)> {
    let sites = program.sites();
    let places = program.operations().map(|(place, _)| place);
    places.filter(|place| sites[place.0][place.1] == sites[at.0][at.1]).collect()
}

fn insert_barrier(program: &mut Program, at: (usize, usize), class: Class, inserted: Barrier) {
    let operation = barrier(class);
    let kind = InstructionKind::Execute { operation, destination: None, value: None, barrier: Some(inserted) };
    let code = &mut program.threads[at.0].code;
    let place = code.get(at.1).or(code.last()).map(|instruction| instruction.place).unwrap_or_default();
    code.insert(at.1.min(code.len()), Instruction { place, kind });
    if let (Some(sources), Barrier::Static { id, .. }) = (program.sources.get_mut(at.0), inserted) {
        sources.insert(at.1.min(sources.len()), id);
    }
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
    let InstructionKind::Execute { barrier: Some(barrier), .. } = instruction.kind else { return false };
    matches!(barrier, Barrier::Dynamic(number) | Barrier::Static { id: number, .. } if number >= INSERTED)
}

/// The descriptions of the edits, joined.
pub fn words(program: &Program, edits: &[Edit]) -> String {
    edits.iter().map(|edit| edit.describe(program)).collect::<Vec<_>>().join(", ")
}
