//! Explains a race: the conditions of location order, each with what meets it or what is missing.

use std::collections::VecDeque;

use crate::answer::Execution;
use crate::describe;
use crate::event::Operation;
use crate::model::Model;
use crate::program::Program;
use crate::relation::Relation;
use crate::relations::{Choice, DOMAINS, Frame, Order, Source};
use crate::row::Row;

/// One condition of location order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conjunct {
    /// The condition, as a question.
    pub question: &'static str,
    /// Whether it is met.
    pub holds: bool,
    /// What meets it, or what is missing.
    pub because: String,
}

/// A race and its conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The access that would have to come first.
    pub first: String,
    /// The other access.
    pub second: String,
    /// Conditions that would prevent the race, in the order of the appendix. The first that does not hold is the cause.
    pub conjuncts: Vec<Conjunct>,
}

impl Explanation {
    /// The cause: the first condition that does not hold.
    pub fn cause(&self) -> Option<&Conjunct> {
        self.conjuncts.iter().find(|conjunct| !conjunct.holds)
    }
}

/// An execution with all relations derived from it.
struct View<'a> {
    program: &'a Program,
    execution: &'a Execution,
    frame: Frame<u128>,
    choice: Choice<u128>,
    order: Order<u128>,
}

/// Explains the `race`-th race of an execution.
pub fn explain(program: &Program, execution: &Execution, model: Model, race: usize) -> Option<Explanation> {
    let &(a, b) = execution.races.get(race)?;
    let (frame, choice, order) = execution.relations(model);
    let view = View { program, execution, frame, choice, order };
    // First is the access that happens before the other, or that the other reads from.
    let before = |a: usize, b: usize| view.order.happens_before.contains(a, b);
    let reads = |a: usize, b: usize| view.choice.sources[b] == Some(Source::Write(a));
    let swap = !before(a, b) && (before(b, a) || reads(b, a) || !view.writes(a) && !reads(a, b));
    let (first, second) = if swap { (b, a) } else { (a, b) };
    Some(Explanation {
        first: view.access(first),
        second: view.access(second),
        conjuncts: view.conjuncts(first, second),
    })
}

impl View<'_> {
    fn operation(&self, event: usize) -> &Operation {
        self.execution.instance.trace.operation(event)
    }

    fn writes(&self, event: usize) -> bool {
        self.frame.sets.writes.contains(event)
    }

    fn place(&self, event: usize) -> String {
        describe::place(self.program, &self.execution.instance, event)
    }

    fn access(&self, event: usize) -> String {
        let text = describe::event(self.program, &self.execution.instance, &self.execution.values, event);
        let Some(access) = self.operation(event).access() else { return text };
        let privacy = match (access.atomic, access.non_private) {
            (true, _) => "atomic",
            (false, true) => "non-private",
            (false, false) => "private",
        };
        format!("{text} ({privacy}, {:?})", access.class)
    }

    fn conjuncts(&self, first: usize, second: usize) -> Vec<Conjunct> {
        let mut conjuncts = Vec::new();
        if self.frame.sets.atomics.contains(first) && self.frame.sets.atomics.contains(second) {
            conjuncts.push(self.mutually_ordered(first, second));
        }
        conjuncts.push(self.ordered(first, second));
        if self.frame.system.contains(first, second) && self.writes(first) {
            conjuncts.push(self.by_the_api(first, second));
        }
        let system = self.frame.system.contains(first, second) && !self.writes(first);
        if !system {
            conjuncts.push(self.non_private(first, second));
        }
        if self.writes(first) {
            conjuncts.push(self.same_reference(first, second));
            conjuncts.push(self.available(first, second));
            if !self.writes(second) {
                conjuncts.push(self.visible(first, second));
            }
        }
        conjuncts
    }

    /// Why two atomics are not mutually ordered. That is not a condition of location order, but would also prevent the
    /// race.
    fn mutually_ordered(&self, first: usize, second: usize) -> Conjunct {
        let because = if !self.frame.same_reference.contains(first, second) {
            "they use different references".to_owned()
        } else {
            self.out_of_scope(first, second)
        };
        Conjunct { question: "mutually ordered", holds: false, because }
    }

    /// Which operation of the API is missing. The API can establish location order for accesses of all kinds and
    /// references.
    fn by_the_api(&self, first: usize, second: usize) -> Conjunct {
        let (sets, before) = (&self.frame.sets, &self.order.happens_before);
        let [from, to] = [first, second].map(|event| usize::from(sets.by_domain[1].contains(event)));
        const NAMES: [&str; 2] = ["device", "host"];
        let between = |set: &u128, after: usize| {
            set.iter()
                .filter(|&event| before.contains(after, event) && before.contains(event, second))
                .collect::<Vec<_>>()
        };
        let covers = |by: &usize| self.frame.layers[0].availability_covers.contains(first, *by);
        let available: Vec<_> = between(&sets.api_available[from], first).into_iter().filter(covers).collect();
        let arrived: Vec<_> = if from == to {
            available.clone()
        } else {
            available.iter().flat_map(|&by| between(&sets.transfers[from], by)).collect()
        };
        let because = if available.is_empty() {
            format!("no command makes {} available to the {} domain", self.place(first), NAMES[from])
        } else if arrived.is_empty() {
            let by = self.place(available[0]);
            format!(
                "{by} makes {} available to the {} domain, from which no memory domain operation takes it to the {} domain",
                self.place(first),
                NAMES[from],
                NAMES[to]
            )
        } else {
            let by = self.place(arrived[0]);
            format!(
                "{by} makes {} available to the {} domain, but no command makes that visible to {}",
                self.place(first),
                NAMES[to],
                self.place(second)
            )
        };
        Conjunct { question: "by the API", holds: false, because }
    }

    fn out_of_scope(&self, a: usize, b: usize) -> String {
        let trace = &self.execution.instance.trace;
        let outside = |a: usize, b: usize| {
            let scope = self.operation(a).scope.unwrap_or(crate::event::Scope::Invocation);
            (!trace.shares(a, b, scope))
                .then(|| format!("{} is outside of {}'s {} scope", self.place(b), self.place(a), scope.name()))
        };
        let reasons: Vec<_> = [outside(a, b), outside(b, a)].into_iter().flatten().collect();
        if reasons.is_empty() { "they access different bytes".to_owned() } else { reasons.join(", and ") }
    }

    fn ordered(&self, first: usize, second: usize) -> Conjunct {
        let question = "ordered";
        match self.path(first, second) {
            Some(because) => Conjunct { question, holds: true, because },
            None => Conjunct { question, holds: false, because: self.almost_ordered(first, second) },
        }
    }

    /// The shortest path from `first` to `second` in program order or in inter-thread-happens-before of one set of
    /// classes.
    fn path(&self, first: usize, second: usize) -> Option<String> {
        if self.frame.program_order.contains(first, second) {
            return Some(format!("{} -po-> {}", self.place(first), self.place(second)));
        }
        let host_order = self.frame.host_order(&self.order.synchronizes_with);
        let paths = self.frame.class_sets.iter().filter_map(|set| {
            let edges = self.order.synchronizes_with.clone().from(&set.ordered).to(&set.ordered).or(&set.fixed);
            shortest(&edges.or(&host_order), first, second)
        });
        let path = paths.min_by_key(Vec::len)?;
        let mut text = self.place(first);
        for step in path.windows(2) {
            let label = if self.frame.program_order.contains(step[0], step[1]) {
                "po"
            } else if self.order.synchronizes_with.contains(step[0], step[1]) {
                "sw"
            } else if self.frame.system.contains(step[0], step[1]) {
                "ssw"
            } else {
                "host"
            };
            let semantics = describe::semantics(self.operation(step[1]));
            let space = if semantics.is_empty() { "" } else { " " };
            text += &format!(" -{label}-> {}{space}{semantics}", self.place(step[1]));
        }
        Some(text)
    }

    /// The synchronization that almost orders `first` before `second`, and what it lacks.
    fn almost_ordered(&self, first: usize, second: usize) -> String {
        let po = |a: usize, b: usize| a == b || self.frame.program_order.contains(a, b);
        let class = self.operation(first).access().map(|access| access.class);
        let lacks = |a: usize| {
            class
                .filter(|class| !self.operation(a).semantics.contains(*class))
                .map(|class| format!("the semantics of {} lack {class:?}Memory", self.place(a)))
        };
        for (read, source) in self.choice.sources.iter().enumerate() {
            let Some(Source::Write(write)) = *source else { continue };
            let atomics = &self.frame.sets.atomics;
            let relevant = po(first, write) && po(read, second) && write != first && read != second;
            if !relevant || !atomics.contains(write) || !atomics.contains(read) {
                continue;
            }
            let reads = format!("{} reads from {}, but", self.place(read), self.place(write));
            if !self.frame.mutual.contains(write, read) {
                let why = self.out_of_scope(write, read);
                return format!("{reads} {why}");
            }
            let releases: Vec<_> =
                (0..self.frame.n).filter(|&event| self.frame.carried_by.contains(event, write)).collect();
            let acquires: Vec<_> = self.frame.serves.row(read).iter().collect();
            let (Some(&release), Some(&acquire)) = (releases.first(), acquires.first()) else {
                let what = if releases.is_empty() { "release" } else { "acquire" };
                let lacking = if releases.is_empty() { write } else { read };
                return format!("{reads} {} does not {what}, nor does a barrier by it", self.place(lacking));
            };
            if let Some(lacking) = lacks(release).or(lacks(acquire)) {
                return format!("{reads} {lacking}");
            }
            if !self.frame.in_scope.contains(release, acquire) {
                return format!("{reads} {}", self.out_of_scope(release, acquire));
            }
        }
        let events = &self.execution.instance.trace.events;
        let barriers = || self.frame.sets.control_barriers.iter();
        for (a, b) in barriers().flat_map(|a| barriers().map(move |b| (a, b))) {
            let together = events[a].instance.is_some() && events[a].instance == events[b].instance;
            if !together || !po(first, a) || !po(b, second) {
                continue;
            }
            let meet = format!("{} and {} wait for each other, but", self.place(a), self.place(b));
            let fences = &self.frame.sets.fences;
            let release = fences
                .iter()
                .find(|&fence| self.frame.sets.releases.contains(fence) && po(first, fence) && po(fence, a));
            let acquire = fences
                .iter()
                .find(|&fence| self.frame.sets.acquires.contains(fence) && po(b, fence) && po(fence, second));
            return match (release, acquire) {
                (None, _) => format!("{meet} nothing releases between {} and the barrier", self.place(first)),
                (_, None) => format!("{meet} nothing acquires between the barrier and {}", self.place(second)),
                (Some(release), Some(acquire)) => {
                    let why = lacks(release).or(lacks(acquire)).unwrap_or_else(|| self.out_of_scope(release, acquire));
                    format!("{meet} {why}")
                }
            };
        }
        format!("nothing that {} waits for or reads follows {}", self.place(second), self.place(first))
    }

    fn non_private(&self, first: usize, second: usize) -> Conjunct {
        let private: Vec<_> =
            [first, second].into_iter().filter(|&event| !self.frame.sets.non_private.contains(event)).collect();
        let because = match private[..] {
            [] => "both are".to_owned(),
            [one] => format!("{} is private", self.place(one)),
            _ => "neither access carries NonPrivatePointer".to_owned(),
        };
        Conjunct { question: "non-private", holds: private.is_empty(), because }
    }

    fn same_reference(&self, first: usize, second: usize) -> Conjunct {
        let holds = self.frame.same_reference.contains(first, second);
        let name = |event: usize| {
            let access = self.operation(event).access();
            access.map_or("", |access| &self.program.references[access.reference as usize])
        };
        let because = if holds {
            format!("both use {}", name(first))
        } else {
            format!("{} and {} are one location, but two references", name(first), name(second))
        };
        Conjunct { question: "same reference", holds, because }
    }

    /// Index of the narrowest domain that both agents share.
    fn common(&self, first: usize, second: usize) -> usize {
        (0..DOMAINS.len()).find(|&at| self.frame.shares[at].contains(first, second)).unwrap_or(DOMAINS.len() - 1)
    }

    fn available(&self, first: usize, second: usize) -> Conjunct {
        let question = "available";
        let common = self.common(first, second);
        let paths = self.frame.paths(&self.order.happens_before);
        let by = (common..DOMAINS.len()).find_map(|at| Some((at, paths.available[at].row(first).iter().next()?)));
        if let Some((at, by)) = by {
            let because = format!("to the {} domain, by {}", describe::domain(DOMAINS[at]), self.place(by));
            return Conjunct { question, holds: true, because };
        }
        let narrow = (0..common).rev().find_map(|at| Some((at, paths.available[at].row(first).iter().next()?)));
        let wanted = describe::domain(DOMAINS[common]);
        let because = match narrow {
            Some((at, by)) => format!(
                "{} makes {} available to the {} domain only; {} needs the {wanted} domain",
                self.place(by),
                self.place(first),
                describe::domain(DOMAINS[at]),
                self.place(second)
            ),
            None => format!("no operation makes {} available to the {wanted} domain or a wider one", self.place(first)),
        };
        Conjunct { question, holds: false, because }
    }

    fn visible(&self, first: usize, second: usize) -> Conjunct {
        let question = "visible";
        let common = self.common(first, second);
        let paths = self.frame.paths(&self.order.happens_before);
        let to = |at: usize| {
            let visible = &paths.visible[at];
            (0..self.frame.n).filter(move |&by| visible.contains(by, second))
        };
        let wanted = describe::domain(DOMAINS[common]);
        let mut late = None;
        for (at, scope) in DOMAINS.into_iter().enumerate().skip(common) {
            for by in to(at) {
                let arrives =
                    paths.available[at].row(first).iter().any(|av| self.order.happens_before.contains(av, by));
                if arrives {
                    let because = format!("from the {} domain, by {}", describe::domain(scope), self.place(by));
                    return Conjunct { question, holds: true, because };
                }
                late = late.or(Some(by));
            }
        }
        let because = match late {
            Some(by) => format!(
                "{} makes visible to {}, but not after {} was made available",
                self.place(by),
                self.place(second),
                self.place(first)
            ),
            None => format!("no operation makes the {wanted} domain or a wider one visible to {}", self.place(second)),
        };
        Conjunct { question, holds: false, because }
    }
}

/// The shortest path from `from` to `to`, including both ends.
fn shortest<R: Row>(edges: &Relation<R>, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut parents = vec![None; edges.events()];
    let mut queue = VecDeque::from([from]);
    while let Some(event) = queue.pop_front() {
        for next in edges.row(event).iter() {
            if next == from || parents[next].is_some() {
                continue;
            }
            parents[next] = Some(event);
            if next == to {
                let mut path = vec![to];
                while let Some(parent) = parents[*path.last()?] {
                    path.push(parent);
                }
                path.reverse();
                return Some(path);
            }
            queue.push_back(next);
        }
    }
    None
}
