//! Systematic generation of small programs: every program within given bounds, up to symmetry.
//!
//! A program is a set of threads in nested groups (`layout`), each a list of operations (`shapes`) on named locations.
//! Of all programs that differ only by the order of threads or groups, the names of locations, or an exchange of the
//! storage classes, only the least is generated (`symmetry`). Stores write 1, 2, … in order, so that the value of a
//! read identifies its source. The smallest programs come first, and the sequence is deterministic.
//!
//! 1. Control barriers are used as Vulkan requires: all threads of a subgroup or workgroup execute its barriers in the
//!    same order, with the same scopes and semantics. A group of one thread has no barriers, since they would have no
//!    effect.
//! 2. Control barriers are of subgroups and workgroups (VUID-StandaloneSpirv-None-04636), with one scope for execution
//!    and memory.
//! 3. There is one reference for each location, and there are no operations of the API or the host.

mod layout;
mod shapes;
mod symmetry;

use std::collections::BTreeMap;

use crate::event::{Action, Agent, Class, Location, Operation, Scope};
use crate::program::{Barrier, Expression, Instruction, InstructionKind, Operand, Place, Program, Thread, TooLarge};

use layout::{Layout, layouts};
use symmetry::GeneratedOperation;

/// Bounds of the generated programs. Each number is a maximum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads.
    pub threads: usize,
    /// Operations of all threads together; each thread has at least one.
    pub events: usize,
    /// Locations of each class.
    pub locations: usize,
    /// Storage classes: 1 or 2.
    pub classes: usize,
    /// Bounds on groups of threads.
    pub groups: Groups,
    /// The scopes to use.
    pub scopes: Vec<Scope>,
    /// The kinds of operations to use.
    pub kinds: Vec<Kind>,
    /// Whether to generate only programs in which accesses of two threads conflict.
    pub conflicting: bool,
}

/// Maximum sizes of groups of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups {
    /// Threads of a subgroup.
    pub threads: usize,
    /// Subgroups of a workgroup.
    pub subgroups: usize,
    /// Workgroups of a queue family.
    pub workgroups: usize,
    /// Queue families.
    pub queue_families: usize,
}

/// A kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Loads and stores that are not atomic: private, non-private, visible or available.
    Plain,
    /// Atomic loads and stores: relaxed, acquiring, releasing.
    Atomic,
    /// Read-modify-writes: relaxed, acquiring, releasing, both.
    Update,
    /// Memory barriers.
    Fence,
    /// Control barriers, of subgroups and workgroups.
    Barrier,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Atomic, Self::Update, Self::Fence, Self::Barrier];
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            threads: 2,
            events: 4,
            locations: 2,
            classes: 1,
            groups: Groups { threads: 2, subgroups: 2, workgroups: 2, queue_families: 1 },
            scopes: vec![Scope::Workgroup, Scope::Device],
            kinds: Kind::ALL.to_vec(),
            conflicting: true,
        }
    }
}

/// An iterator over the programs within bounds, in order.
#[derive(Debug)]
pub struct Programs {
    bounds: Bounds,
    shapes: Vec<Operation>,
    /// For each shape, the index of the one with the storage classes exchanged.
    exchanged: Vec<u16>,
    /// The possible steps at each position of a program.
    choices: Vec<GeneratedOperation>,
    layouts: std::vec::IntoIter<Layout>,
    layout: Option<Layout>,
    symmetries: Vec<Vec<usize>>,
    steps: Vec<GeneratedOperation>,
    /// For each step, its index in `choices`.
    chosen: Vec<usize>,
}

/// The programs within `bounds`.
///
/// # Errors
///
/// If a bound is too large: more than 6 threads, 12 events, 8 locations of a class or 2 classes.
pub fn programs(bounds: Bounds) -> Result<Programs, TooLarge> {
    let limits = [
        (bounds.threads, 6, "threads"),
        (bounds.events, 12, "operations"),
        (bounds.locations, 8, "locations of a class"),
        (bounds.classes, 2, "storage classes"),
    ];
    for (wanted, max, what) in limits {
        if wanted > max {
            return Err(TooLarge::new(format!("programs of {wanted} {what} are asked for"), max as u64));
        }
    }
    let shapes = shapes::shapes(&bounds);
    let mut choices = Vec::new();
    for (shape, operation) in shapes.iter().enumerate() {
        let shape = shape as u16;
        if operation.access().is_some() {
            for class in 0..bounds.classes as u8 {
                choices
                    .extend((0..bounds.locations as u8).map(|number| GeneratedOperation::access(shape, class, number)));
            }
        } else {
            choices.push(GeneratedOperation::barrier(shape));
        }
    }
    let exchanged = shapes::exchanged(&shapes);
    let layouts = layouts(&bounds).into_iter();
    Ok(Programs {
        bounds,
        shapes,
        exchanged,
        choices,
        layouts,
        layout: None,
        symmetries: vec![],
        steps: vec![],
        chosen: vec![],
    })
}

impl Iterator for Programs {
    type Item = Program;

    fn next(&mut self) -> Option<Program> {
        loop {
            let Some(layout) = self.layout.take() else {
                let layout = self.layouts.next()?;
                self.symmetries = layout.symmetries();
                self.layout = Some(layout);
                continue;
            };
            let found = self.advance(&layout);
            let program =
                (found && self.is_of_interest(&layout) && self.is_least(&layout)).then(|| self.program(&layout));
            // Drops a layout when it is exhausted.
            self.layout = found.then_some(layout);
            if program.is_some() {
                return program;
            }
        }
    }
}

impl Programs {
    /// Advances to the next candidate of `layout`; `false`, with no steps, if there is none.
    fn advance(&mut self, layout: &Layout) -> bool {
        let mut next = self.take_back().map_or(0, |last| last + 1);
        loop {
            match (next..self.choices.len()).find(|&at| self.fits(layout, self.choices[at])) {
                Some(at) => {
                    self.chosen.push(at);
                    self.steps.push(self.choices[at]);
                    if self.steps.len() == layout.events() {
                        return true;
                    }
                    next = 0;
                }
                None => match self.take_back() {
                    Some(last) => next = last + 1,
                    None => return false,
                },
            }
        }
    }

    fn take_back(&mut self) -> Option<usize> {
        self.steps.pop();
        self.chosen.pop()
    }

    /// Whether `step` may come next: locations are named in the order of their first use, and threads of a group
    /// execute the same barriers.
    fn fits(&self, layout: &Layout, step: GeneratedOperation) -> bool {
        if let Some((class, number)) = step.location() {
            let names = self.steps.iter().filter_map(|step| step.location()).filter(|known| known.0 == class);
            return number <= names.map(|known| known.1 + 1).max().unwrap_or(0) && self.meets(layout, step);
        }
        self.meets(layout, step)
    }

    /// Whether the barriers of the thread of `step`, so far, match those of earlier threads.
    fn meets(&self, layout: &Layout, step: GeneratedOperation) -> bool {
        if !self.bounds.kinds.contains(&Kind::Barrier) {
            return true;
        }
        let (thread, at) = layout.place(self.steps.len());
        let of_scope = |step: GeneratedOperation| match self.shapes[usize::from(step.shape())].action {
            Action::ControlBarrier { execution } => Some(usize::from(execution == Scope::Workgroup)),
            _ => None,
        };
        if of_scope(step).is_some_and(|level| layout.peers(thread, level) == 0) {
            return false;
        }
        let ends = at + 1 == layout.lengths[thread];
        let own = self.steps[layout.start(thread)..].iter().copied().chain([step]);
        (0..thread).filter(|&other| layout.shares(thread, other, 1)).all(|other| {
            // Threads of one subgroup share all barriers, other threads of the workgroup share those with workgroup
            // scope.
            let lowest = usize::from(!layout.shares(thread, other, 0));
            let met = |step: &GeneratedOperation| of_scope(*step).is_some_and(|level| level >= lowest);
            let start = layout.start(other);
            let mut theirs = self.steps[start..start + layout.lengths[other]].iter().copied().filter(met);
            own.clone().filter(met).all(|step| theirs.next() == Some(step)) && (!ends || theirs.next().is_none())
        })
    }

    fn is_least(&self, layout: &Layout) -> bool {
        let classes = if self.bounds.classes > 1 { &[None, Some(&self.exchanged[..])][..] } else { &[None] };
        symmetry::is_least(layout, &self.symmetries, &self.steps, classes)
    }

    fn is_of_interest(&self, layout: &Layout) -> bool {
        let writes = |step: &GeneratedOperation| self.shapes[usize::from(step.shape())].writes();
        let conflict = |a: usize, b: usize| {
            let (x, y) = (&self.steps[a], &self.steps[b]);
            let apart = layout.place(a).0 != layout.place(b).0;
            apart && x.location().is_some() && x.location() == y.location() && (writes(x) || writes(y))
        };
        !self.bounds.conflicting || (0..self.steps.len()).any(|b| (0..b).any(|a| conflict(a, b)))
    }

    fn program(&self, layout: &Layout) -> Program {
        const NAMES: [&str; 16] = ["x", "y", "z", "w", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let mut used: Vec<_> = self.steps.iter().filter_map(|step| step.location()).collect();
        used.sort_unstable();
        used.dedup();
        let names = || NAMES.iter().take(used.len()).map(|&name| name.to_owned());
        let mut program = Program {
            name: "generated".to_owned(),
            references: names().collect(),
            locations: names().map(|name| (name, 0)).collect(),
            ..Program::default()
        };
        let mut written = 0;
        let mut instances: BTreeMap<(usize, u32, u32), u32> = BTreeMap::new();
        for (thread, &[subgroup, workgroup, queue_family]) in layout.groups.iter().enumerate() {
            let agent = Agent::Device { subgroup, workgroup, queue_family, device: 0 };
            let mut code = Vec::new();
            let mut met = [0; 2];
            let start = layout.start(thread);
            for step in &self.steps[start..start + layout.lengths[thread]] {
                let mut operation = self.shapes[usize::from(step.shape())].clone();
                if let (Some(access), Some(location)) = (operation.access_mut(), step.location()) {
                    let number = used.iter().position(|known| *known == location).unwrap_or(0) as u32;
                    access.reference = number;
                    access.location = Location::whole(number);
                    access.class = Class::ALL[usize::from(location.0)];
                }
                let value = operation.writes().then(|| {
                    written += 1;
                    Expression::Operand(Operand::Constant(written))
                });
                let mut barrier = None;
                if let Action::ControlBarrier { execution } = operation.action {
                    // The n-th barrier of a group is one instance for all of its threads.
                    let level = usize::from(execution == Scope::Workgroup);
                    let next = instances.len() as u32;
                    let key = (level, layout.groups[thread][level], met[level]);
                    barrier = Some(Barrier::Dynamic(*instances.entry(key).or_insert(next)));
                    met[level] += 1;
                }
                let kind = InstructionKind::Execute { operation, destination: None, value, barrier };
                code.push(Instruction { place: Place::default(), kind });
            }
            program.threads.push(Thread { name: format!("T{thread}"), agent, code, registers: vec![] });
        }
        program
    }
}
