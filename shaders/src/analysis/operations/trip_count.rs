//! Exact trip counts: the loop's counters are followed from iteration to iteration, for loops whose counters start at
//! constants or push constants and depend on nothing else. Any step will do: sums, shifts, products.

use std::collections::HashMap;

use smallvec::SmallVec;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, InstData, Kernel, Op, Place, Type, Value, Width};

/// Iterations that are followed, at most.
const MAX_ITERATIONS: u64 = 1 << 20;

/// Operands that lead to a value, at most.
const MAX_DEPTH: usize = 64;

/// How often a loop's back edge is taken, and whether other exits may end the loop earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TripCount {
    pub(super) back_edges: u64,
    pub(super) may_end_earlier: bool,
}

/// The trip count of a loop (an index into [`Loops::all`]), if it is known.
pub(super) fn trip_count(
    (kernel, push): (&Kernel, &[u8]),
    (loops, dominators): (&Loops, &Dominators),
    number: usize,
) -> Option<TripCount> {
    let found = &loops.all[number];
    let every_iteration = |block: Block| found.latches.iter().all(|&latch| dominators.dominates(block, latch));
    let mut counters = Counters::of(kernel, push, loops, number);
    // Tests that every iteration makes: the node of the condition, and the outcome that stays in the loop.
    let mut tests: SmallVec<[(usize, bool); 2]> = SmallVec::new();
    let mut other_exits = false;
    for &block in &found.blocks {
        let leaves = |target: Block| !loops.contains(number, target);
        let exits = kernel.targets(block).iter().any(|call| leaves(call.block));
        let test = match kernel.terminator(block) {
            Some(InstData::Branch { condition, then, otherwise })
                if leaves(then.block) != leaves(otherwise.block)
                    && loops.of(block) == Some(number)
                    && every_iteration(block) =>
            {
                counters.node(*condition, 0).map(|node| (node, leaves(otherwise.block)))
            }
            Some(InstData::Return | InstData::Unreachable) => {
                other_exits = true;
                None
            }
            _ => None,
        };
        other_exits |= exits && test.is_none();
        tests.extend(test);
    }
    let back_edges = counters.count(&tests)?;
    Some(TripCount { back_edges, may_end_earlier: other_exits })
}

/// The value of a node, which may depend on the counters.
#[derive(Clone, Debug)]
enum Node {
    Known(u64),
    Counter(usize),
    Pure(Op, SmallVec<[usize; 4]>),
    Select([usize; 3]),
}

/// Parameters of a loop's header that are known in every iteration, and the values that follow from them.
struct Counters<'k> {
    kernel: &'k Kernel,
    push: &'k [u8],
    /// With the values of the first iteration.
    params: Vec<(Value, u64)>,
    /// The nodes of the values of the next iteration.
    next: Vec<usize>,
    nodes: Vec<Node>,
    known: HashMap<Value, Option<usize>>,
}

impl<'k> Counters<'k> {
    fn of(kernel: &'k Kernel, push: &'k [u8], loops: &Loops, number: usize) -> Self {
        let found = &loops.all[number];
        let header = found.header;
        let calls = |inside: bool| {
            kernel
                .layout
                .iter()
                .filter(move |&&block| loops.contains(number, block) == inside)
                .flat_map(move |&block| kernel.targets(block).into_iter().filter(move |call| call.block == header))
        };
        let mut this =
            Self { kernel, push, params: Vec::new(), next: Vec::new(), nodes: Vec::new(), known: HashMap::new() };
        let mut candidates: Vec<(usize, Value, u64)> = Vec::new();
        for (index, &param) in kernel.blocks[header].params.iter().enumerate() {
            let mut starts = calls(false).map(|call| this.constant(*call.args.get(index)?));
            if let Some(Some(start)) = starts.next()
                && starts.all(|other| other == Some(start))
            {
                candidates.push((index, param, start));
            }
        }
        // Counters that depend on something unknown are removed until all others depend on each other only.
        loop {
            this.reset(&candidates);
            let next = |this: &mut Self, index: usize| {
                let mut nodes = calls(true).map(|call| call.args.get(index).and_then(|&arg| this.node(arg, 0)));
                let first = nodes.next()??;
                nodes.all(|other| other == Some(first)).then_some(first)
            };
            let nodes: Vec<Option<usize>> = candidates.iter().map(|&(index, ..)| next(&mut this, index)).collect();
            let before = candidates.len();
            let mut stays = nodes.iter().map(Option::is_some);
            candidates.retain(|_| stays.next() == Some(true));
            if candidates.len() == before {
                this.next = nodes.into_iter().flatten().collect();
                return this;
            }
        }
    }

    fn reset(&mut self, candidates: &[(usize, Value, u64)]) {
        self.params = candidates.iter().map(|&(_, param, start)| (param, start)).collect();
        (self.nodes, self.known) = (Vec::new(), HashMap::new());
    }

    /// A value that no iteration changes.
    fn constant(&mut self, value: Value) -> Option<u64> {
        self.reset(&[]);
        let node = self.node(value, 0)?;
        Some(self.values(&[])[node])
    }

    /// The node of a value, if it depends on constants, push constants and counters only.
    fn node(&mut self, value: Value, depth: usize) -> Option<usize> {
        if let Some(&known) = self.known.get(&value) {
            return known;
        }
        let node = if depth < MAX_DEPTH { self.made(value, depth) } else { None };
        let node = node.map(|node| {
            self.nodes.push(node);
            self.nodes.len() - 1
        });
        self.known.insert(value, node);
        node
    }

    fn made(&mut self, value: Value, depth: usize) -> Option<Node> {
        if let Some(counter) = self.params.iter().position(|(param, _)| *param == value) {
            return Some(Node::Counter(counter));
        }
        let kernel = self.kernel;
        match kernel.definition(value)? {
            InstData::Const { bits, .. } => Some(Node::Known(*bits)),
            InstData::Pure { op, args } => {
                let args = args.iter().map(|&arg| self.node(arg, depth + 1)).collect::<Option<_>>()?;
                Some(Node::Pure(*op, args))
            }
            InstData::Select { condition, then, otherwise } => {
                let [a, b, c] = [condition, then, otherwise].map(|&arg| self.node(arg, depth + 1));
                Some(Node::Select([a?, b?, c?]))
            }
            InstData::Load { ty: Type::I32 | Type::F32, width: Width::Word, place: Place::Push { offset }, .. } => {
                let offset = self.node(*offset, depth + 1)?;
                let Node::Known(offset) = self.nodes[offset] else { return None };
                let bytes = self.push.get(usize::try_from(offset).ok()?..)?.first_chunk::<4>()?;
                Some(Node::Known(u32::from_le_bytes(*bytes).into()))
            }
            _ => None,
        }
    }

    /// The values of all nodes in an iteration with these counters.
    fn values(&self, counters: &[u64]) -> Vec<u64> {
        let mut values = Vec::with_capacity(self.nodes.len());
        self.fill(counters, &mut values);
        values
    }

    fn fill(&self, counters: &[u64], values: &mut Vec<u64>) {
        values.clear();
        for node in &self.nodes {
            let value = match node {
                Node::Known(bits) => *bits,
                Node::Counter(number) => counters[*number],
                Node::Pure(op, args) => {
                    let args: SmallVec<[u64; 4]> = args.iter().map(|&arg| values[arg]).collect();
                    op.fold(&args)
                }
                Node::Select([condition, then, otherwise]) => {
                    values[if values[*condition] != 0 { *then } else { *otherwise }]
                }
            };
            values.push(value);
        }
    }

    /// The number of iterations that pass all tests before one fails.
    fn count(&self, tests: &[(usize, bool)]) -> Option<u64> {
        if tests.is_empty() {
            return None;
        }
        let mut counters: SmallVec<[u64; 4]> = self.params.iter().map(|&(_, start)| start).collect();
        let mut values = Vec::new();
        for iteration in 0..MAX_ITERATIONS {
            self.fill(&counters, &mut values);
            if tests.iter().any(|&(node, stays)| (values[node] != 0) != stays) {
                return Some(iteration);
            }
            counters = self.next.iter().map(|&node| values[node]).collect();
        }
        None
    }
}
