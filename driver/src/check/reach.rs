//! The events through which one access may be ordered before another.
//!
//! In an execution that interleaves the invocations, everything that orders `first` before `second` lies on a path from
//! the one to the other, along program order, instances of barriers, reads-from of mutually ordered atomics, and, for
//! release sequences, from an atomic write to the read-modify-write that follows it in modification order.

use std::collections::{BTreeSet, VecDeque};

use foldhash::{HashMap, HashSet};
use spelter_shaders::ir::SiteAction;

use super::log::{Index, Log};
use super::slice::{Purpose, Undecided};

/// The most events that are visited for a slice.
const MAX_VISITED: usize = 1 << 16;

/// The longest list of atomic writes whose modification order is computed pair by pair.
const MAX_WRITES: usize = 128;

/// A node of the paths: an event, or an instance of a barrier, which all of its members reach and leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Node {
    Event(Index),
    Instance(u32),
}

/// The events on paths from `first` to `second`, both included, in order. Takes the number of visited nodes off
/// `effort`.
pub(super) fn between(
    log: &Log,
    (first, second): (Index, Index),
    purpose: Purpose,
    effort: &mut usize,
) -> Result<BTreeSet<Index>, Undecided> {
    let mut after: HashMap<Node, Vec<Node>> = HashMap::default();
    let mut seen: HashSet<Node> = HashSet::default();
    let mut open = vec![Node::Event(second)];
    seen.insert(Node::Event(second));
    while let Some(node) = open.pop() {
        if seen.len() > MAX_VISITED {
            return Err(Undecided::TooLarge);
        }
        *effort = effort.checked_sub(1).ok_or(Undecided::TooManyPairs)?;
        for before in predecessors(log, node, first, purpose)? {
            after.entry(before).or_default().push(node);
            if seen.insert(before) {
                open.push(before);
            }
        }
    }
    let mut found = BTreeSet::new();
    let mut seen: HashSet<Node> = HashSet::default();
    let mut open = vec![Node::Event(first)];
    while let Some(node) = open.pop() {
        if let Node::Event(index) = node {
            found.insert(index);
        }
        for &next in after.get(&node).into_iter().flatten() {
            if seen.insert(next) {
                open.push(next);
            }
        }
    }
    found.extend([first, second]);
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
    let mut after: HashMap<Node, Node> = HashMap::default();
    let mut open = VecDeque::from([Node::Event(second)]);
    let start = Node::Event(first);
    while !after.contains_key(&start) {
        let Some(node) = open.pop_front() else { return Ok(None) };
        *effort = effort.checked_sub(1).ok_or(Undecided::TooManyPairs)?;
        for before in predecessors(log, node, first, purpose)? {
            if before != Node::Event(second) && !after.contains_key(&before) {
                after.insert(before, node);
                open.push_back(before);
            }
        }
    }
    let mut path = vec![first];
    let mut node = start;
    while let Some(&next) = after.get(&node) {
        if let Node::Event(index) = next {
            path.push(index);
        }
        node = next;
    }
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

/// The nodes just before one, not earlier than `first`.
fn predecessors(log: &Log, node: Node, first: Index, purpose: Purpose) -> Result<Vec<Node>, Undecided> {
    let index = match node {
        Node::Instance(which) => {
            let members = log.instances[which as usize].members.iter().copied();
            let own = log.entry(first).thread;
            let passes = |member: &Index| !log.thread(*member).redundant || log.entry(*member).thread == own;
            return Ok(members.filter(passes).map(Node::Event).collect());
        }
        Node::Event(index) => index,
    };
    if index == first {
        return Ok(Vec::new());
    }
    let entry = log.entry(index);
    let late = |index: &Index| *index == first || log.time(*index) > first.0;
    let mut nodes: Vec<_> = entry.before.get().filter(late).map(Node::Event).into_iter().collect();
    nodes.extend(log.instance(index).map(|(which, _)| Node::Instance(which)));
    if let SiteAction::Atomic { .. } = log.data(index).action {
        let source =
            entry.source.get().filter(late).filter(|&write| purpose == Purpose::Repair || log.mutual(write, index));
        nodes.extend(source.map(Node::Event));
        nodes.extend(continues(log, index)?.into_iter().filter(late).map(Node::Event));
    }
    Ok(nodes)
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
