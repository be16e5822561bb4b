//! The generator, compared with a brute force that shares no code with it: all labelled programs, partitioned into
//! classes by exchanging two threads, two names or the two storage classes until nothing new appears. The generator
//! must give one program of each class.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "the helpers of tests are tests too")]

use std::collections::{BTreeMap, BTreeSet, HashMap};

use spelter_memory_model::event::{Agent, Scope};
use spelter_memory_model::format::write_khronos;
use spelter_memory_model::generate::{Bounds, Groups, Kind, programs};
use spelter_memory_model::program::{Program, unroll};
use spelter_memory_model::wellformed::defects;

/// An operation: the number of its tokens in an alphabet, and class and number of its location.
type Operation = (u16, Option<(u8, u8)>);

/// Threads, each with its subgroup, workgroup and queue family (named by their first threads) and its operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Labelled(Vec<([u8; 3], Vec<Operation>)>);

/// The tokens of operations, sorted, joined by points.
struct Alphabet(Vec<String>);

fn sorted(tokens: &str) -> String {
    let mut tokens: Vec<_> = tokens.split('.').filter(|token| !token.is_empty()).collect();
    tokens.sort_unstable();
    tokens.join(".")
}

fn scope_token(scope: Scope) -> &'static str {
    match scope {
        Scope::Subgroup => "scopesg",
        Scope::Workgroup => "scopewg",
        Scope::QueueFamily => "scopeqf",
        _ => "scopedev",
    }
}

impl Alphabet {
    /// Every subset of the format's tokens that is an operation within `bounds`, found by filtering all subsets.
    fn new(bounds: &Bounds) -> Self {
        let heads = [
            ("ld", Kind::Plain),
            ("st", Kind::Plain),
            ("ld.atom", Kind::Atomic),
            ("st.atom", Kind::Atomic),
            ("rmw", Kind::Update),
            ("membar", Kind::Fence),
            ("cbar", Kind::Barrier),
        ];
        let flags = ["acq", "rel", "semav", "semvis", "semsc0", "semsc1", "av", "vis", "nonpriv"];
        let mut found = BTreeSet::new();
        for (head, kind) in heads.iter().filter(|(_, kind)| bounds.kinds.contains(kind)) {
            let scopes = bounds.scopes.iter().map(|scope| scope_token(*scope)).chain([""]);
            for (scope, chosen) in scopes.flat_map(|scope| (0..1u32 << flags.len()).map(move |chosen| (scope, chosen)))
            {
                let has =
                    |flag: &str| flags.iter().position(|known| *known == flag).is_some_and(|at| chosen >> at & 1 != 0);
                let (acquire, release) = (has("acq"), has("rel"));
                let semantics = has("semsc0") || has("semsc1");
                let reads = head.starts_with("ld") || *head == "rmw";
                let writes = head.starts_with("st") || *head == "rmw";
                let plain = *kind == Kind::Plain;
                let barrier = matches!(kind, Kind::Fence | Kind::Barrier);
                let flagged = has("av") || has("vis");
                let good = (acquire || release) == semantics
                    && (!acquire || !plain && (reads || barrier))
                    && (!release || !plain && (writes || barrier))
                    && (!has("semav") || release)
                    && (!has("semvis") || acquire)
                    && (!has("semsc1") || bounds.classes > 1)
                    && (!has("av") || plain && writes)
                    && (!has("vis") || plain && reads)
                    // Available and visible accesses are implicitly non-private.
                    && (!has("nonpriv") || plain && !flagged)
                    && (scope.is_empty() == (plain && !flagged))
                    && (*kind != Kind::Fence || semantics)
                    && (*kind != Kind::Barrier || matches!(scope, "scopesg" | "scopewg"));
                if good {
                    let mut tokens = format!("{head}.{scope}");
                    flags.iter().filter(|flag| has(flag)).for_each(|flag| tokens += &format!(".{flag}"));
                    found.insert(sorted(&tokens));
                }
            }
        }
        Self(found.into_iter().collect())
    }

    fn has(&self, operation: Operation, token: &str) -> bool {
        self.0[usize::from(operation.0)].split('.').any(|known| known == token)
    }

    fn number(&self, tokens: &str) -> u16 {
        let wanted = sorted(tokens);
        self.0.iter().position(|known| *known == wanted).unwrap_or_else(|| panic!("{tokens} is in no alphabet")) as u16
    }

    /// The operations with every location.
    fn operations(&self, bounds: &Bounds) -> Vec<Operation> {
        let mut operations = Vec::new();
        for number in 0..self.0.len() as u16 {
            if self.has((number, None), "membar") || self.has((number, None), "cbar") {
                operations.push((number, None));
                continue;
            }
            for class in 0..bounds.classes as u8 {
                operations.extend((0..bounds.locations as u8).map(|location| (number, Some((class, location)))));
            }
        }
        operations
    }

    /// Converts a generated program to a labelled one, by parsing its text.
    fn labelled(&self, program: &Program) -> Labelled {
        let text = write_khronos(program).unwrap();
        let mut lines = text.lines().filter(|line| !line.starts_with("NEW"));
        let mut names: BTreeMap<(u8, String), u8> = BTreeMap::new();
        let mut next = [0; 2];
        let mut threads = Vec::new();
        for thread in &program.threads {
            let Agent::Device { subgroup, workgroup, queue_family, .. } = thread.agent else { panic!("no host") };
            let mut operations = Vec::new();
            for _ in &thread.code {
                let mut words = lines.next().unwrap().split(' ');
                let tokens = words.next().unwrap();
                let class = tokens.split('.').find_map(|token| token.strip_prefix("sc")?.parse::<u8>().ok());
                let rest: Vec<_> = tokens.split('.').filter(|token| !matches!(*token, "sc0" | "sc1")).collect();
                let location = class.map(|class| {
                    let name = words.next().unwrap().to_owned();
                    let number = names.entry((class, name)).or_insert_with(|| {
                        next[usize::from(class)] += 1;
                        next[usize::from(class)] - 1
                    });
                    (class, *number)
                });
                operations.push((self.number(&rest.join(".")), location));
            }
            threads.push(([subgroup, workgroup, queue_family].map(|number| number as u8), operations));
        }
        Labelled(threads).named()
    }
}

impl Labelled {
    /// The program with groups named by their first threads.
    fn named(mut self) -> Self {
        let before: Vec<_> = self.0.iter().map(|thread| thread.0).collect();
        for (at, thread) in self.0.iter_mut().enumerate() {
            thread.0 = std::array::from_fn(|level| {
                before.iter().position(|groups| groups[level] == before[at][level]).unwrap_or(at) as u8
            });
        }
        self
    }

    /// Every program that one exchange gives.
    fn neighbours(&self, alphabet: &Alphabet, bounds: &Bounds) -> Vec<Self> {
        let mut found = Vec::new();
        for at in 1..self.0.len() {
            let mut other = self.clone();
            other.0.swap(at - 1, at);
            found.push(other.named());
        }
        let change = |change: &dyn Fn(Operation) -> Operation| {
            let mut other = self.clone();
            other.0.iter_mut().flat_map(|thread| &mut thread.1).for_each(|operation| *operation = change(*operation));
            other
        };
        for class in 0..bounds.classes as u8 {
            for number in 1..bounds.locations as u8 {
                found.push(change(&|(tokens, location)| {
                    let exchanged = location.map(|(of, known)| match (of == class, known) {
                        (true, known) if known == number => (of, number - 1),
                        (true, known) if known == number - 1 => (of, number),
                        _ => (of, known),
                    });
                    (tokens, exchanged)
                }));
            }
        }
        if bounds.classes > 1 {
            found.push(change(&|(tokens, location)| {
                let text = &alphabet.0[usize::from(tokens)];
                let text = text.replace("semsc0", "#").replace("semsc1", "semsc0").replace('#', "semsc1");
                (alphabet.number(&text), location.map(|(class, number)| (1 - class, number)))
            }));
        }
        found
    }

    /// Whether the program meets the rules of generated programs.
    fn is_wanted(&self, alphabet: &Alphabet, bounds: &Bounds) -> bool {
        let threads = &self.0;
        let size = |level: usize, members: &dyn Fn(&[u8; 3]) -> u8| {
            let mut groups: BTreeMap<u8, BTreeSet<u8>> = BTreeMap::new();
            threads.iter().for_each(|(path, _)| {
                let group = if level < 3 { path[level] } else { 0 };
                groups.entry(group).or_default().insert(members(path));
            });
            groups.values().map(BTreeSet::len).max().unwrap_or(0)
        };
        let per_subgroup = (0..threads.len())
            .map(|at| threads.iter().filter(|other| other.0[0] == threads[at].0[0]).count())
            .max()
            .unwrap_or(0);
        let fits = per_subgroup <= bounds.groups.threads
            && size(1, &|path| path[0]) <= bounds.groups.subgroups
            && size(2, &|path| path[1]) <= bounds.groups.workgroups
            && size(3, &|path| path[2]) <= bounds.groups.queue_families;
        let barriers = |thread: usize, scopes: &[&str]| -> Vec<u16> {
            let operations = threads[thread].1.iter().filter(|&&operation| {
                alphabet.has(operation, "cbar") && scopes.iter().any(|scope| alphabet.has(operation, scope))
            });
            operations.map(|operation| operation.0).collect()
        };
        let both = ["scopesg", "scopewg"];
        let meet = (0..threads.len()).all(|a| {
            let peers = |level: usize| {
                (0..threads.len()).filter(move |&b| b != a && threads[b].0[level] == threads[a].0[level])
            };
            peers(0).all(|b| barriers(a, &both) == barriers(b, &both))
                && peers(1).all(|b| barriers(a, &both[1..]) == barriers(b, &both[1..]))
                && (peers(0).count() > 0 || barriers(a, &both[..1]).is_empty())
                && (peers(1).count() > 0 || barriers(a, &both[1..]).is_empty())
        });
        let writes = |operation: Operation| alphabet.has(operation, "st") || alphabet.has(operation, "rmw");
        let accesses = |thread: usize| threads[thread].1.iter().filter(|operation| operation.1.is_some());
        let conflict = (0..threads.len()).any(|a| {
            (0..a).any(|b| accesses(a).any(|x| accesses(b).any(|y| x.1 == y.1 && (writes(*x) || writes(*y)))))
        });
        fits && meet && (conflict || !bounds.conflicting)
    }
}

/// Every way to name the groups of `threads` threads by their first members, each level within the one above.
fn groupings(threads: usize) -> Vec<Vec<[u8; 3]>> {
    let mut found: Vec<Vec<[u8; 3]>> = vec![vec![]];
    for at in 0..threads {
        let mut longer = Vec::new();
        for so_far in found {
            for path in 0..((at + 1) as u32).pow(3) {
                let side = at as u32 + 1;
                let path = [path % side, path / side % side, path / side / side].map(|name| name as u8);
                let own = at as u8;
                let named =
                    (0..3).all(|level| path[level] == own || so_far[usize::from(path[level])][level] == path[level]);
                let within = (0..2)
                    .all(|level| path[level] == own || so_far[usize::from(path[level])][level + 1] == path[level + 1]);
                if named && within {
                    longer.push([&so_far[..], &[path]].concat());
                }
            }
        }
        found = longer;
    }
    found
}

/// Every labelled program within bounds, calling `visit`.
fn each_labelled(bounds: &Bounds, operations: &[Operation], visit: &mut dyn FnMut(Labelled)) {
    for threads in 1..=bounds.threads {
        let groupings = groupings(threads);
        for events in threads..=bounds.events {
            let mut code = vec![0; events];
            loop {
                // Cuts between operations, which divide them into threads.
                for cuts in (0..1u32 << (events - 1)).filter(|cuts| cuts.count_ones() as usize + 1 == threads) {
                    let mut parts = vec![vec![]];
                    for (at, &pick) in code.iter().enumerate() {
                        let pick: usize = pick;
                        parts.last_mut().unwrap().push(operations[pick]);
                        if at + 1 < events && cuts >> at & 1 != 0 {
                            parts.push(vec![]);
                        }
                    }
                    for grouping in &groupings {
                        visit(Labelled(grouping.iter().copied().zip(parts.iter().cloned()).collect()));
                    }
                }
                let Some(at) = (0..events).find(|&at| code[at] + 1 < operations.len()) else { break };
                code[at] += 1;
                code[..at].fill(0);
            }
        }
    }
}

fn root(parents: &mut [usize], mut at: usize) -> usize {
    while parents[at] != at {
        parents[at] = parents[parents[at]];
        at = parents[at];
    }
    at
}

/// Asserts that the generator gives one program of each class, and returns how many there are.
fn check(bounds: &Bounds) -> usize {
    let alphabet = Alphabet::new(bounds);
    let operations = alphabet.operations(bounds);
    let mut all: HashMap<Labelled, usize> = HashMap::new();
    each_labelled(bounds, &operations, &mut |program| {
        if program.is_wanted(&alphabet, bounds) {
            let next = all.len();
            all.insert(program, next);
        }
    });
    let mut parents: Vec<_> = (0..all.len()).collect();
    for (program, &at) in &all {
        for other in program.neighbours(&alphabet, bounds) {
            let (a, b) = (root(&mut parents, at), root(&mut parents, all[&other]));
            parents[a] = b;
        }
    }
    let classes = (0..all.len()).filter(|&at| parents[at] == at).count();
    let mut seen: BTreeMap<usize, String> = BTreeMap::new();
    for program in programs(bounds.clone()).unwrap() {
        let text = write_khronos(&program).unwrap();
        let trace = unroll(&program, 1, false).unwrap().remove(0).trace;
        assert_eq!(defects(&trace), [], "{text}");
        let labelled = alphabet.labelled(&program);
        let Some(&at) = all.get(&labelled) else { panic!("not within the bounds:\n{text}") };
        if let Some(twin) = seen.insert(root(&mut parents, at), text.clone()) {
            panic!("the same program twice:\n{twin}\n{text}");
        }
    }
    eprintln!("{} labelled programs, {classes} classes", all.len());
    assert_eq!(seen.len(), classes, "of {} labelled programs; {} of them are missing", all.len(), classes - seen.len());
    classes
}

const ANY: Groups = Groups { threads: 3, subgroups: 3, workgroups: 3, queue_families: 3 };

#[test]
fn three_threads_in_every_grouping() {
    let bounds = Bounds { threads: 3, groups: ANY, scopes: vec![], kinds: vec![Kind::Plain], ..Bounds::default() };
    assert!(check(&bounds) > 1000);
    // Bounds on groups cut the same stream.
    for groups in [
        Groups { threads: 1, subgroups: 2, workgroups: 1, queue_families: 2 },
        Groups { threads: 2, subgroups: 1, workgroups: 2, queue_families: 1 },
    ] {
        check(&Bounds { groups, events: 3, ..bounds.clone() });
    }
}

#[test]
fn every_kind_of_operation_of_two_threads() {
    let bounds = Bounds { events: 3, locations: 1, scopes: vec![Scope::Workgroup], groups: ANY, ..Bounds::default() };
    assert!(check(&bounds) > 10_000);
}

#[test]
fn barriers_of_subgroups_and_workgroups() {
    let kinds = vec![Kind::Plain, Kind::Barrier];
    let groups = Groups { queue_families: 1, workgroups: 2, ..ANY };
    let three = Bounds { threads: 3, locations: 1, scopes: vec![Scope::Workgroup], kinds, groups, ..Bounds::default() };
    check(&Bounds { conflicting: false, ..three.clone() });
    check(&Bounds { threads: 2, scopes: vec![Scope::Subgroup, Scope::Workgroup], ..three });
}

#[test]
fn two_storage_classes_exchanged_are_one_program() {
    let kinds = vec![Kind::Atomic, Kind::Fence];
    let groups = Groups { threads: 1, subgroups: 2, workgroups: 1, queue_families: 1 };
    let bounds =
        Bounds { events: 3, locations: 1, classes: 2, scopes: vec![Scope::Device], kinds, groups, ..Bounds::default() };
    check(&bounds);
    check(&Bounds { locations: 2, kinds: vec![Kind::Plain, Kind::Fence], ..bounds });
}

#[test]
fn small_programs_come_first() {
    let bounds = Bounds { threads: 3, groups: ANY, ..Bounds::default() };
    let sizes: Vec<_> = programs(bounds)
        .unwrap()
        .take(20_000)
        .map(|program| (program.operations().count(), program.threads.len()))
        .collect();
    assert!(sizes.is_sorted() && sizes[0] == (2, 2) && sizes[sizes.len() - 1].0 > 2, "{:?}", sizes.last());
}

#[test]
fn bounds_that_are_too_large_are_rejected() {
    for (bounds, message) in [
        (Bounds { threads: 7, ..Bounds::default() }, "programs of 7 threads are asked for, and the bound is 6"),
        (Bounds { events: 13, ..Bounds::default() }, "programs of 13 operations are asked for, and the bound is 12"),
        (Bounds { classes: 3, ..Bounds::default() }, "programs of 3 storage classes are asked for, and the bound is 2"),
    ] {
        assert!(programs(bounds).unwrap_err().to_string().ends_with(message), "{message}");
    }
    assert_eq!(
        programs(Bounds { threads: 1, ..Bounds::default() }).unwrap().count(),
        0,
        "one thread conflicts with none"
    );
}
