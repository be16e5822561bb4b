//! The events through which one access may be ordered before another.
//!
//! In an execution that interleaves the invocations, everything that orders `first` before `second` lies on a path from
//! the one to the other, along program order and synchronizes-with. A path leaves an invocation by a release and enters
//! the next one by an acquire: through an instance of a barrier, or through an atomic write that carries the release,
//! the read-modify-writes that follow it in modification order, and a read that serves the acquire. So atomics without
//! an acquire after the read, or without a release before the write, order nothing, however many there are.
//! The paths are searched from `second` backwards.

use std::collections::{BTreeSet, VecDeque};

use foldhash::HashMap;
use spelter_memory_model::event::{Classes, Operation};

use super::log::{Index, Log};
use super::slice::{Purpose, Undecided};

/// The most nodes that are visited for a slice.
const MAX_VISITED: usize = 1 << 16;

/// The longest list of atomic writes whose modification order is computed pair by pair.
const MAX_WRITES: usize = 128;

/// A node of the paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    /// An event in program order, with the classes of the acquire barriers between it and the place where the path
    /// leaves its invocation.
    Event(Index, Classes),
    /// A barrier by which the path leaves an invocation.
    Left(Index),
    /// An event before such a barrier or an atomic write, where a release barrier for one of the classes is sought.
    Released(Index, Classes),
    /// An atomic write of a release sequence.
    Sequence(Index),
    /// An instance of a barrier, which all of its members reach and leave.
    Instance(u32),
}

/// A search for paths between two accesses.
struct PathSearch<'a> {
    log: &'a Log,
    first: Index,
    purpose: Purpose,
    /// The classes of acquires and releases that may order the two: see [`Log::linked`].
    classes: Classes,
}

/// The events on paths from `first` to `second`, both included, in order. Takes the number of visited nodes off
/// `effort`.
pub(super) fn between(
    log: &Log,
    (first, second): (Index, Index),
    purpose: Purpose,
    effort: &mut usize,
) -> Result<BTreeSet<Index>, Undecided> {
    const NONE: usize = usize::MAX;
    let search = PathSearch::new(log, (first, second), purpose);
    let mut nodes = vec![search.place(second)];
    let mut numbers: HashMap<Node, usize> = nodes.iter().copied().zip(0..).collect();
    // For each node, a list of those after it: the number of the last edge, and each edge's node and the edge before.
    let (mut lists, mut edges) = (vec![NONE], Vec::new());
    let mut before = Vec::new();
    let mut next = 0;
    while let Some(&node) = nodes.get(next) {
        if nodes.len() > MAX_VISITED {
            return Err(Undecided::TooLarge);
        }
        *effort = effort.checked_sub(1).ok_or(Undecided::TooManyPairs)?;
        before.clear();
        search.before(node, &mut before)?;
        for &earlier in &before {
            let number = *numbers.entry(earlier).or_insert(nodes.len());
            if number == nodes.len() {
                nodes.push(earlier);
                lists.push(NONE);
            }
            edges.push((next, lists[number]));
            lists[number] = edges.len() - 1;
        }
        next += 1;
    }
    let mut found = BTreeSet::from([first, second]);
    let mut open: Vec<usize> = (0..nodes.len()).filter(|&number| search.is_first(nodes[number])).collect();
    let mut seen = vec![false; nodes.len()];
    open.iter().for_each(|&number| seen[number] = true);
    while let Some(number) = open.pop() {
        found.extend(search.event(nodes[number]));
        let mut edge = lists[number];
        while let Some(&(after, earlier)) = edges.get(edge) {
            if !std::mem::replace(&mut seen[after], true) {
                open.push(after);
            }
            edge = earlier;
        }
    }
    Ok(found)
}

/// The events on one of the shortest paths from `first` to `second`, in order, without the read-modify-writes that only
/// continue a release sequence in between; `None` if there is no path.
pub(super) fn shortest(
    log: &Log,
    (first, second): (Index, Index),
    purpose: Purpose,
    effort: &mut usize,
) -> Result<Option<Vec<Index>>, Undecided> {
    let search = PathSearch::new(log, (first, second), purpose);
    let end = search.place(second);
    let mut after: HashMap<Node, Node> = HashMap::default();
    let mut open = VecDeque::from([end]);
    let mut before = Vec::new();
    let start = loop {
        let Some(node) = open.pop_front() else { return Ok(None) };
        if search.is_first(node) {
            break node;
        }
        *effort = effort.checked_sub(1).ok_or(Undecided::TooManyPairs)?;
        before.clear();
        search.before(node, &mut before)?;
        for &earlier in &before {
            if earlier != end && !after.contains_key(&earlier) {
                after.insert(earlier, node);
                open.push_back(earlier);
            }
        }
    };
    let nodes = std::iter::successors(Some(start), |node| after.get(node).copied());
    let mut path: Vec<Index> = nodes.filter_map(|node| search.event(node)).collect();
    // A write that carries its own release is two nodes.
    path.dedup();
    // The writes before and after stay, and the one from which the last read-modify-write reads.
    let mut events: Vec<Index> = Vec::new();
    for (at, &index) in path.iter().enumerate() {
        let continued = |before: Index, index: Index| log.is_run(before, index);
        let inner = at > 0
            && continued(path[at - 1], index)
            && path.get(at + 1).is_some_and(|&next| continued(index, next))
            && path.get(at + 2).is_some_and(|&last| continued(path[at + 1], last));
        if !inner {
            events.push(index);
        }
    }
    Ok(Some(events))
}

impl<'a> PathSearch<'a> {
    fn new(log: &'a Log, (first, second): (Index, Index), purpose: Purpose) -> Self {
        Self { log, first, purpose, classes: log.linked([first, second]) }
    }

    /// An event of which no acquire barrier is known after it. For repairs, any operation may become one.
    fn place(&self, index: Index) -> Node {
        Node::Event(index, if self.purpose == Purpose::Repair { Classes::ALL } else { Classes::NONE })
    }

    /// Whether a path that reaches the node has come to the first access.
    fn is_first(&self, node: Node) -> bool {
        matches!(node, Node::Event(index, _) if index == self.first)
    }

    /// The event that a path with the node needs.
    fn event(&self, node: Node) -> Option<Index> {
        match node {
            Node::Event(index, _) | Node::Left(index) | Node::Sequence(index) => Some(index),
            Node::Released(..) | Node::Instance(_) => None,
        }
    }

    /// Whether an event happened after the first access, or is it.
    fn is_late(&self, index: &Index) -> bool {
        *index == self.first || self.log.time(*index) > self.first.0
    }

    /// Whether an operation may be an acquire or a release of a path.
    fn links(&self, operation: &Operation) -> bool {
        !operation.semantics.and(self.classes).is_empty()
    }

    /// Whether it is a memory barrier that releases memory of some of the classes.
    fn releases(&self, operation: &Operation, classes: Classes) -> bool {
        let releases = operation.memory_barrier() && operation.release && self.links(operation);
        releases && !operation.semantics.and(classes).is_empty()
    }

    /// Where a release barrier is sought that comes before an event.
    fn released(&self, index: Index, classes: Classes) -> Option<Node> {
        let before = self.log.entry(index).before.get().filter(|before| self.is_late(before));
        before.map(|before| Node::Released(before, classes))
    }

    /// Appends the nodes just before one, not earlier than the first access.
    fn before(&self, node: Node, nodes: &mut Vec<Node>) -> Result<(), Undecided> {
        let (log, repair) = (self.log, self.purpose == Purpose::Repair);
        match node {
            Node::Instance(which) => {
                let members = log.instances[which as usize].members.iter().copied();
                let own = log.entry(self.first).thread;
                // A redundant thread does nothing that another one does not do as well, so paths through it are paths
                // through that one.
                let passes = |member: &Index| !log.thread(*member).redundant || log.entry(*member).thread == own;
                let member = |member| if repair { self.place(member) } else { Node::Left(member) };
                nodes.extend(members.filter(passes).map(member));
            }
            Node::Event(index, _) if index == self.first => {}
            Node::Event(index, after) => {
                let (entry, operation) = (log.entry(index), log.operation(index));
                let acquires = operation.memory_barrier() && operation.acquire && self.links(&operation);
                let acquired = if acquires { operation.semantics.iter().fold(after, Classes::with) } else { after };
                let before = entry.before.get().filter(|before| self.is_late(before));
                nodes.extend(before.map(|before| Node::Event(before, acquired)));
                let instance = log.instance(index).filter(|_| !acquired.is_empty());
                nodes.extend(instance.map(|(which, _)| Node::Instance(which)));
                // Of the accesses only atomics lead to other invocations: a plain read synchronizes with nothing.
                let Some(access) = operation.access().filter(|access| access.atomic) else { return Ok(()) };
                let source = entry.source.get().filter(|write| self.is_late(write));
                if repair {
                    nodes.extend(source.map(|write| self.place(write)));
                    // A repair may make any write whose release sequence this one continues a release.
                    let continued = continues(log, index)?.into_iter().filter(|write| self.is_late(write));
                    nodes.extend(continued.map(|write| self.place(write)));
                } else if access.reads
                    && (operation.acquire && self.links(&operation) || acquired.contains(access.class))
                {
                    // A source that is not mutually ordered with the read starts no synchronizes-with edge, whatever
                    // its value.
                    nodes.extend(source.filter(|&write| log.mutual(write, index)).map(Node::Sequence));
                }
            }
            Node::Left(index) => match self.releases(&log.operation(index), Classes::ALL) {
                true => nodes.push(self.place(index)),
                false => nodes.extend(self.released(index, Classes::ALL)),
            },
            Node::Released(index, classes) if self.releases(&log.operation(index), classes) => {
                nodes.push(self.place(index));
            }
            Node::Released(index, _) if index == self.first => {}
            Node::Released(index, classes) => nodes.extend(self.released(index, classes)),
            Node::Sequence(write) => {
                let operation = log.operation(write);
                let own = Some(write).filter(|_| operation.release && self.links(&operation));
                nodes.extend(own.map(|write| self.place(write)));
                if write != self.first {
                    let class = operation.access().map(|access| access.class);
                    nodes.extend(self.released(write, class.into_iter().collect()));
                    let continued = continues(log, write)?.into_iter().filter(|write| self.is_late(write));
                    nodes.extend(continued.map(Node::Sequence));
                }
            }
        }
        Ok(())
    }
}

/// The atomic writes immediately before a read-modify-write in modification order: those whose release sequences it
/// continues.
pub(super) fn continues(log: &Log, index: Index) -> Result<Vec<Index>, Undecided> {
    let entry = log.entry(index);
    if !(entry.wrote && log.operation(index).reads()) {
        return Ok(Vec::new());
    }
    if !log.atomics[entry.which as usize].mixed {
        return Ok(entry.follows.get().into_iter().collect());
    }
    let writes = writes_up_to(log, index)?;
    let mut reached: Vec<Index> = Vec::new();
    let mut immediate = Vec::new();
    for &write in writes.iter().rev().skip(1) {
        let between = reached.iter().any(|&later| log.mutual(write, later));
        let direct = log.mutual(write, index);
        if direct && !between {
            immediate.push(write);
        }
        if direct || between {
            reached.push(write);
        }
    }
    Ok(immediate)
}

/// The atomic writes of the same bytes through the same reference, in order, up to `index`.
fn writes_up_to(log: &Log, index: Index) -> Result<Vec<Index>, Undecided> {
    let mut writes = vec![index];
    while let Some(before) = log.entry(writes[writes.len() - 1]).overwrites.get() {
        writes.push(before);
        if writes.len() > MAX_WRITES {
            return Err(Undecided::TooLarge);
        }
    }
    writes.reverse();
    Ok(writes)
}

/// Whether one atomic write precedes another in modification order, which is the order of their execution, closed
/// transitively.
pub(super) fn precedes(log: &Log, a: Index, b: Index) -> Result<bool, Undecided> {
    let (x, y) = (log.entry(a), log.entry(b));
    if a >= b || x.which != y.which || !x.wrote || !y.wrote {
        return Ok(false);
    }
    if !log.atomics[x.which as usize].mixed {
        return Ok(log.mutual(a, b));
    }
    let writes = writes_up_to(log, b)?;
    let mut reached = vec![a];
    for &write in writes.iter().filter(|&&write| write > a) {
        if reached.iter().any(|&earlier| log.mutual(earlier, write)) {
            reached.push(write);
        }
    }
    Ok(reached.last() == Some(&b))
}
