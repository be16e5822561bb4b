//! Small programs, systematically: every one within given bounds, symmetric ones once.
//!
//! A program is a list of threads, each a list of operations. Threads of one shape are interchangeable, and so are
//! locations: of all programs that a renaming of threads and locations makes equal, only the least is generated.
//! Stores write 1, 2, … in their order, so that what is read tells who was read. The stream is deterministic: the n-th
//! program is the same each time, and shards part it without overlap.

use std::collections::BTreeSet;

use crate::event::{Access, Action, Agent, Class, Classes, Location, Operation, Scope};
use crate::program::{Expression, Instruction, InstructionKind, Operand, Place, Program, Thread};

/// What programs to generate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Threads, exactly; at least 1.
    pub threads: usize,
    /// Operations of all threads together, exactly.
    pub events: usize,
    /// Locations of each class, at most.
    pub locations: usize,
    /// The scopes to use.
    pub scopes: Vec<Scope>,
    /// How many storage classes to use: 1 or 2.
    pub classes: usize,
    /// Whether threads may be of different workgroups.
    pub workgroups: bool,
    /// Whether memory barriers are among the operations.
    pub fences: bool,
    /// Whether only programs with two accesses that conflict are of interest.
    pub conflicting: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            threads: 2,
            events: 4,
            locations: 2,
            scopes: vec![Scope::Workgroup, Scope::Device],
            classes: 1,
            workgroups: true,
            fences: false,
            conflicting: true,
        }
    }
}

/// An operation of a generated program. Its derived order is the order of generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Step {
    /// Location, as its class times 16 and its number in the class; none for barriers.
    location: Option<u8>,
    shape: u16,
}

/// The shapes of operations within bounds.
fn shapes(bounds: &Bounds) -> Vec<Operation> {
    let access = |reads: bool, writes: bool, atomic: bool, class: Class| {
        Operation::new(Action::Access(Access {
            reads,
            writes,
            atomic,
            non_private: atomic,
            available: false,
            visible: false,
            class,
            reference: 0,
            location: Location::whole(0),
        }))
    };
    let classes: Vec<_> = Class::ALL.into_iter().take(bounds.classes.clamp(1, 2)).collect();
    // A location's class is put in later; semantics name one class or all.
    let mut semantics: Vec<Classes> = classes.iter().map(|class| Classes::NONE.with(*class)).collect();
    if classes.len() > 1 {
        semantics.push(classes.iter().copied().collect());
    }
    let mut shapes = Vec::new();
    for (reads, writes) in [(true, false), (false, true)] {
        shapes.push(access(reads, writes, false, Class::Uniform));
        let mut non_private = access(reads, writes, false, Class::Uniform);
        if let Some(access) = non_private.access_mut() {
            access.non_private = true;
        }
        shapes.push(non_private);
        for &scope in &bounds.scopes {
            let mut relaxed = access(reads, writes, true, Class::Uniform);
            relaxed.scope = Some(scope);
            shapes.push(relaxed.clone());
            for &semantics in &semantics {
                for made in [false, true] {
                    let mut ordered = relaxed.clone();
                    ordered.acquire = reads;
                    ordered.release = writes;
                    ordered.semantics = semantics;
                    ordered.make_available = made && writes;
                    ordered.make_visible = made && reads;
                    shapes.push(ordered);
                }
            }
        }
    }
    if bounds.fences {
        for &scope in &bounds.scopes {
            for &semantics in &semantics {
                for (acquire, release) in [(true, false), (false, true)] {
                    let mut fence = Operation::new(Action::Fence);
                    fence.acquire = acquire;
                    fence.release = release;
                    fence.make_available = release;
                    fence.make_visible = acquire;
                    fence.semantics = semantics;
                    fence.scope = Some(scope);
                    shapes.push(fence);
                }
            }
        }
    }
    shapes.iter_mut().for_each(Operation::complete);
    shapes
}

/// The programs within bounds, in their order.
#[derive(Debug)]
pub struct Programs {
    bounds: Bounds,
    shapes: Vec<Operation>,
    /// What each place of a program may hold.
    steps: Vec<Step>,
    /// The lengths of the threads, descending; the next one to try.
    lengths: Vec<Vec<usize>>,
    /// How threads are parted into workgroups.
    groups: Vec<Vec<u32>>,
    /// The program to try next, as indices into `steps`; none if all were tried.
    next: Option<Vec<usize>>,
    at_length: usize,
    at_group: usize,
}

/// The programs within `bounds`.
pub fn programs(bounds: Bounds) -> Programs {
    let shapes = shapes(&bounds);
    let mut steps = Vec::new();
    for (shape, operation) in shapes.iter().enumerate() {
        let shape = shape as u16;
        if operation.access().is_some() {
            let numbers = 0..bounds.locations.clamp(1, 8) as u8;
            for class in 0..bounds.classes.clamp(1, 2) as u8 {
                steps.extend(numbers.clone().map(|number| Step { location: Some(class * 16 + number), shape }));
            }
        } else {
            steps.push(Step { location: None, shape });
        }
    }
    let mut lengths = Vec::new();
    part(bounds.events, bounds.threads, bounds.events, &mut Vec::new(), &mut lengths);
    let mut groups = vec![vec![0; bounds.threads]];
    if bounds.workgroups {
        group(bounds.threads, &mut Vec::new(), &mut groups);
    }
    let next = (!lengths.is_empty()).then(|| vec![0; bounds.events]);
    Programs { bounds, shapes, steps, lengths, groups, next, at_length: 0, at_group: 0 }
}

/// The ways to part `events` into `threads` positive lengths, descending.
fn part(events: usize, threads: usize, most: usize, so_far: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    if threads == 0 {
        if events == 0 {
            found.push(so_far.clone());
        }
        return;
    }
    for length in (1..=most.min(events)).rev() {
        so_far.push(length);
        part(events - length, threads - 1, length, so_far, found);
        so_far.pop();
    }
}

/// The ways to part threads into two or more workgroups, each new workgroup with the next number.
fn group(threads: usize, so_far: &mut Vec<u32>, found: &mut Vec<Vec<u32>>) {
    if so_far.len() == threads {
        if so_far.iter().any(|group| *group > 0) {
            found.push(so_far.clone());
        }
        return;
    }
    let next = so_far.iter().max().map_or(0, |most| most + 1);
    for number in 0..=next {
        so_far.push(number);
        group(threads, so_far, found);
        so_far.pop();
    }
}

impl Iterator for Programs {
    type Item = Program;

    fn next(&mut self) -> Option<Program> {
        loop {
            let chosen = self.next.clone()?;
            let (length, group) = (self.at_length, self.at_group);
            self.advance();
            let steps: Vec<_> = chosen.iter().map(|&at| self.steps[at]).collect();
            if self.is_least(&steps, length, group) && self.is_of_interest(&steps, length) {
                return Some(self.program(&steps, length, group));
            }
        }
    }
}

impl Programs {
    /// To the next candidate: steps, then workgroups, then lengths.
    fn advance(&mut self) {
        let Some(next) = &mut self.next else { return };
        for at in (0..next.len()).rev() {
            next[at] += 1;
            if next[at] < self.steps.len() {
                return;
            }
            next[at] = 0;
        }
        self.at_group += 1;
        if self.at_group == self.groups.len() {
            self.at_group = 0;
            self.at_length += 1;
            if self.at_length == self.lengths.len() {
                self.next = None;
            }
        }
    }

    fn threads<'a>(&self, steps: &'a [Step], length: usize) -> Vec<&'a [Step]> {
        let mut rest = steps;
        let cut = |&length: &usize| {
            let (thread, after) = rest.split_at(length);
            rest = after;
            thread
        };
        self.lengths[length].iter().map(cut).collect()
    }

    /// Whether no renaming of threads and locations gives a smaller program.
    fn is_least(&self, steps: &[Step], length: usize, group: usize) -> bool {
        let threads = self.threads(steps, length);
        let groups = &self.groups[group];
        // Locations are named in the order of their first use: a quick test that most candidates fail.
        if renamed(threads.iter().copied()) != steps {
            return false;
        }
        let mut order: Vec<usize> = (0..threads.len()).collect();
        let mut least = true;
        permutations(&mut order, 0, &mut |order| {
            let lengths = order.iter().map(|&thread| threads[thread].len());
            let same_lengths = lengths.eq(threads.iter().map(|thread| thread.len()));
            if same_lengths {
                let other = regrouped(groups, order);
                let steps_of = || renamed(order.iter().map(|&thread| threads[thread]));
                least &= *groups < other || *groups == other && *steps <= *steps_of();
            }
        });
        least
    }

    fn is_of_interest(&self, steps: &[Step], length: usize) -> bool {
        if !self.bounds.conflicting {
            return true;
        }
        let threads = self.threads(steps, length);
        let writes = |step: &Step| self.shapes[step.shape as usize].writes();
        (0..threads.len()).any(|a| {
            (a + 1..threads.len()).any(|b| {
                let pairs = threads[a].iter().flat_map(|x| threads[b].iter().map(move |y| (x, y)));
                pairs
                    .into_iter()
                    .any(|(x, y)| x.location.is_some() && x.location == y.location && (writes(x) || writes(y)))
            })
        })
    }

    fn program(&self, steps: &[Step], length: usize, group: usize) -> Program {
        const NAMES: [&str; 16] = ["x", "y", "z", "w", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"];
        let used: BTreeSet<u8> = steps.iter().filter_map(|step| step.location).collect();
        let names = || NAMES.iter().take(used.len()).map(|&name| name.to_owned());
        let mut program = Program {
            name: "generated".to_owned(),
            references: names().collect(),
            locations: names().map(|name| (name, 0)).collect(),
            ..Program::default()
        };
        let mut written = 0;
        // Groups open and never come back in the Khronos format.
        let mut threads: Vec<_> = self.groups[group].iter().copied().zip(self.threads(steps, length)).collect();
        threads.sort_by_key(|thread| thread.0);
        for (number, (workgroup, thread)) in threads.into_iter().enumerate() {
            let agent = Agent::Device { subgroup: number as u32, workgroup, queue_family: 0, device: 0 };
            let mut code = Vec::new();
            for step in thread {
                let mut operation = self.shapes[step.shape as usize].clone();
                if let (Some(access), Some(location)) = (operation.access_mut(), step.location) {
                    let number = used.range(..location).count() as u32;
                    access.reference = number;
                    access.location = Location::whole(number);
                    access.class = Class::ALL[usize::from(location / 16)];
                }
                let value = operation.writes().then(|| {
                    written += 1;
                    Expression::Operand(Operand::Constant(written))
                });
                let kind = InstructionKind::Execute { operation, destination: None, value, barrier: None };
                code.push(Instruction { place: Place::default(), kind });
            }
            program.threads.push(Thread { name: format!("T{number}"), agent, code, registers: vec![] });
        }
        program
    }
}

/// The steps of threads in this order, with locations named in the order of their first use.
fn renamed<'a>(threads: impl Iterator<Item = &'a [Step]>) -> Vec<Step> {
    let mut names: [Vec<u8>; 2] = [Vec::new(), Vec::new()];
    let mut name = |location: u8| {
        let names = &mut names[usize::from(location / 16)];
        let at = names.iter().position(|known| *known == location).unwrap_or_else(|| {
            names.push(location);
            names.len() - 1
        });
        location / 16 * 16 + at as u8
    };
    threads.flatten().map(|step| Step { location: step.location.map(&mut name), ..*step }).collect()
}

/// The workgroups of threads in this order, each new one with the next number.
fn regrouped(groups: &[u32], order: &[usize]) -> Vec<u32> {
    let mut names: Vec<u32> = Vec::new();
    let name = |&thread: &usize| {
        let at = names.iter().position(|known| *known == groups[thread]);
        at.unwrap_or_else(|| {
            names.push(groups[thread]);
            names.len() - 1
        }) as u32
    };
    order.iter().map(name).collect()
}

fn permutations(order: &mut Vec<usize>, at: usize, visit: &mut dyn FnMut(&[usize])) {
    if at == order.len() {
        return visit(order);
    }
    for other in at..order.len() {
        order.swap(at, other);
        permutations(order, at + 1, visit);
        order.swap(at, other);
    }
}
