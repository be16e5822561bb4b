//! The smallest repair of a racing program, found by trying edits and asking the model again.
//!
//! Edits add synchronization and never take any away: a flag, a storage class, a wider scope, a control barrier. The
//! search goes by the number of edits, so the first repair is a smallest one; at each step it looks at one racing
//! execution and tries what concerns its two accesses or any synchronization. Every repair is verified: the edited
//! program has executions, none of them races, and without any one of the edits that is not so.
//!
//! 1. Stated values of plain reads, and of reads that race, are observations, and are dropped before the search: a repair
//!    is meant to change them. Stated values of other atomic reads are guards ("the flag was seen") and stay.
//! 2. A control barrier is offered to two threads of one workgroup without branches. All other invocations of the
//!    workgroup must then come to it, too.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use crate::answer::{Execution, Options, find_race, summarize};
use crate::event::{Action, Agent, Class, Classes, Operation, Scope};
use crate::program::{Barrier, Instruction, InstructionKind, Program, TooLarge};

/// A change that adds synchronization. Operations are named by thread and index into its code.
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
    /// A control barrier with all semantics for a class: after the operation of one thread, before that of the other.
    Barrier((usize, usize), (usize, usize), Class),
}

impl fmt::Display for Edit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = |(thread, at): &(usize, usize)| format!("{thread}:{}", at + 1);
        match self {
            Self::NonPrivate(place) => write!(f, "NonPrivatePointer on {}", at(place)),
            Self::Available(place, scope) => write!(f, "MakePointerAvailable ({}) on {}", scope.name(), at(place)),
            Self::Visible(place, scope) => write!(f, "MakePointerVisible ({}) on {}", scope.name(), at(place)),
            Self::MakeAvailable(place) => write!(f, "MakeAvailable on {}", at(place)),
            Self::MakeVisible(place) => write!(f, "MakeVisible on {}", at(place)),
            Self::Semantics(place, class) => write!(f, "{class:?}Memory on {}", at(place)),
            Self::Release(place, class) => write!(f, "Release|{class:?}Memory on {}", at(place)),
            Self::Acquire(place, class) => write!(f, "Acquire|{class:?}Memory on {}", at(place)),
            Self::Widen(place, scope) => write!(f, "{} scope on {}", scope.name(), at(place)),
            Self::Barrier(a, b, class) => {
                write!(f, "a control barrier for {class:?}Memory after {} and before {}", at(a), at(b))
            }
        }
    }
}

impl Edit {
    /// What changes, with the program's names of threads.
    pub fn describe(&self, program: &Program) -> String {
        let mut text = self.to_string();
        // Numbers of threads become their names; each edit names at most two places, at its end.
        for (number, thread) in program.threads.iter().enumerate().rev() {
            text = text.replace(&format!(" {number}:"), &format!(" {}:", thread.name));
        }
        text
    }
}

/// A repair.
#[derive(Clone, Debug)]
pub struct Repair {
    /// What to change; nothing if the program is race-free.
    pub edits: Vec<Edit>,
    /// The repaired program.
    pub program: Program,
    /// How many executions it has.
    pub executions: u64,
    /// Whether fewer edits do not do: the search was complete up to this size.
    pub smallest: bool,
}

/// How far to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effort {
    /// Edits of a repair.
    pub edits: usize,
    /// Programs to try.
    pub programs: u32,
}

impl Default for Effort {
    fn default() -> Self {
        Self { edits: 6, programs: 20_000 }
    }
}

/// The smallest repair of `program`; `None` if none is found.
///
/// # Errors
///
/// If the program is too large to decide.
pub fn repair(program: &Program, options: &Options, effort: Effort) -> Result<Option<Repair>, TooLarge> {
    let mut guarded = program.clone();
    let racing: Vec<_> = find_race(program, None, options)?.map_or(vec![], |race| {
        race.races.iter().flat_map(|&(a, b)| [a, b]).map(|event| race.instance.origins[event]).collect()
    });
    let is_plain =
        |at: (usize, usize)| program.operations().any(|(place, operation)| place == at && !operation.atomic());
    guarded.pins.retain(|pin| !is_plain(pin.read) && !racing.contains(&pin.read));
    let mut search = Search { options, tried: HashSet::new(), left: effort.programs };
    for size in 0..=effort.edits {
        search.tried.clear();
        if let Some(repair) = search.at_most(&guarded, &mut BTreeSet::new(), size)? {
            return Ok(Some(repair));
        }
        if search.left == 0 {
            break;
        }
    }
    search.left = effort.programs;
    search.thinned(&guarded)
}

struct Search<'a> {
    options: &'a Options,
    tried: HashSet<BTreeSet<Edit>>,
    left: u32,
}

impl Search<'_> {
    fn at_most(
        &mut self,
        program: &Program,
        edits: &mut BTreeSet<Edit>,
        size: usize,
    ) -> Result<Option<Repair>, TooLarge> {
        if self.left == 0 || !self.tried.insert(edits.clone()) {
            return Ok(None);
        }
        self.left -= 1;
        let edited = apply(program, edits);
        let Some(race) = find_race(&edited, None, self.options)? else {
            return self.irreducible(program, edits.clone(), true);
        };
        if size == 0 {
            return Ok(None);
        }
        for edit in candidates(program, &edited, &race) {
            if edits.insert(edit) {
                let found = self.at_most(program, edits, size - 1)?;
                edits.remove(&edit);
                if found.is_some() {
                    return Ok(found);
                }
            }
        }
        Ok(None)
    }

    fn verified(&self, program: Program, edits: &BTreeSet<Edit>, smallest: bool) -> Result<Option<Repair>, TooLarge> {
        let summary = summarize(&program, self.options, u64::MAX)?;
        let repaired = summary.finished > 0 && summary.racy == 0;
        let edits = edits.iter().copied().collect();
        Ok(repaired.then_some(Repair { edits, program, executions: summary.executions, smallest }))
    }

    /// Every edit that could help, one after the other taken back if it is not needed.
    fn thinned(&mut self, program: &Program) -> Result<Option<Repair>, TooLarge> {
        let mut edits = BTreeSet::new();
        loop {
            let edited = apply(program, &edits);
            let Some(race) = find_race(&edited, None, self.options)? else { break };
            let before = edits.len();
            edits.extend(candidates(program, &edited, &race));
            if edits.len() == before || self.left == 0 {
                return Ok(None);
            }
            self.left -= 1;
        }
        self.irreducible(program, edits, false)
    }

    /// The repair by `edits`, without those that are not needed; `None` if they are none.
    fn irreducible(
        &self,
        program: &Program,
        mut edits: BTreeSet<Edit>,
        smallest: bool,
    ) -> Result<Option<Repair>, TooLarge> {
        let Some(mut best) = self.verified(apply(program, &edits), &edits, smallest)? else { return Ok(None) };
        loop {
            let before = edits.len();
            for edit in edits.clone() {
                edits.remove(&edit);
                match self.verified(apply(program, &edits), &edits, smallest)? {
                    Some(repair) => best = repair,
                    None => drop(edits.insert(edit)),
                }
            }
            if edits.len() == before {
                return Ok(Some(best));
            }
        }
    }
}

/// The program with the edits made. Barriers are put in last, from the end, so that places stay what they are.
pub fn apply(program: &Program, edits: &BTreeSet<Edit>) -> Program {
    let mut edited = program.clone();
    let mut barriers = Vec::new();
    for (number, edit) in edits.iter().enumerate() {
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
            // Numbers that no text uses.
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

/// The operations that change together: all of one control barrier, or the one.
fn group(program: &Program, at: (usize, usize)) -> Vec<(usize, usize)> {
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
        if let crate::program::PinnedSource::Write(write) = &mut pin.source {
            shift(write);
        }
    }
}

/// The edits that may help against a race of `execution`, an execution of `edited`; the cheap ones first.
fn candidates(program: &Program, edited: &Program, execution: &Execution) -> Vec<Edit> {
    let Some(&(a, b)) = execution.races.first() else { return Vec::new() };
    // Inserted barriers move places; such programs get no further edits that name places of the edited program.
    let origin = |event: usize| execution.instance.origins[event];
    let back = |(thread, at): (usize, usize)| {
        let inserted = edited.threads[thread].code[..at].iter().filter(|instruction| is_inserted(instruction)).count();
        (thread, at - inserted)
    };
    let (first, second) = (back(origin(a)), back(origin(b)));
    let agents = [first, second].map(|place| program.threads[place.0].agent);
    let common = if first.0 == second.0 {
        Scope::Workgroup
    } else {
        let shared = Scope::SHADER.into_iter().find(|scope| agents[0].shares(agents[1], *scope));
        shared.unwrap_or(Scope::Device)
    };
    let operation = |place: (usize, usize)| match &operation_at(program, place) {
        Some(operation) => (*operation).clone(),
        None => Operation::new(Action::Fence),
    };
    let mut edits = Vec::new();
    let class = operation(first).access().map_or(Class::Uniform, |access| access.class);
    for place in [first, second] {
        let executed = operation(place);
        let Some(access) = executed.access() else { continue };
        if !access.atomic {
            edits.push(Edit::NonPrivate(place));
            if access.writes {
                edits.push(Edit::Available(place, common));
            }
            if access.reads {
                edits.push(Edit::Visible(place, common));
            }
        }
    }
    for (place, operation) in program.operations() {
        let synchronizes = operation.atomic() || is_barrier(operation);
        if !synchronizes || group(program, place).first() != Some(&place) {
            continue;
        }
        if operation.release {
            edits.push(Edit::MakeAvailable(place));
        }
        if operation.acquire {
            edits.push(Edit::MakeVisible(place));
        }
        if operation.acquire || operation.release {
            edits.push(Edit::Semantics(place, class));
        }
        if !operation.release && (is_barrier(operation) || operation.writes()) {
            edits.push(Edit::Release(place, class));
        }
        if !operation.acquire && (is_barrier(operation) || operation.reads()) {
            edits.push(Edit::Acquire(place, class));
        }
        let wider = operation.scope.is_none_or(|scope| scope < common);
        edits.extend(wider.then_some(Edit::Widen(place, common)));
    }
    let together = matches!((agents[0], agents[1]),
        (Agent::Device { workgroup: a, .. }, Agent::Device { workgroup: b, .. }) if a == b);
    if together && first.0 != second.0 && program.is_straight() {
        edits.push(Edit::Barrier(first, second, class));
        edits.push(Edit::Barrier(second, first, class));
    }
    edits
}

fn is_inserted(instruction: &Instruction) -> bool {
    matches!(instruction.kind, InstructionKind::Execute { barrier: Some(Barrier::Dynamic(number)), .. } if number >= 1 << 30)
}

fn is_barrier(operation: &Operation) -> bool {
    operation.control_barrier() || matches!(operation.action, Action::Fence)
}

fn operation_at(program: &Program, at: (usize, usize)) -> Option<&Operation> {
    match &program.threads.get(at.0)?.code.get(at.1)?.kind {
        InstructionKind::Execute { operation, .. } => Some(operation),
        _ => None,
    }
}

/// The edits in words, joined.
pub fn words(program: &Program, edits: &[Edit]) -> String {
    edits.iter().map(|edit| edit.describe(program)).collect::<Vec<_>>().join(", ")
}
