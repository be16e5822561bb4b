//! The order of instructions in long blocks: chains of results side by side.
//!
//! A processor looks ahead some hundred instructions, and less after each branch that it guessed wrong. In a long block it sees one chain after the other, each of which
//! waits for itself, and none of those that could run meanwhile. Here every block that is long and waits gets the order of
//! a list scheduler: the instruction goes first whose results the longest chain waits for, unless the registers are full;
//! then one that frees some. What touches memory, and what is scalar, stays in order among itself.

use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use foldhash::HashMap;
use smallvec::SmallVec;

use super::cost::{busy, latency};
use super::{Block, Inst, InstData, Kernel, Type, Value};

/// Instructions of a block that is worth it: shorter ones are seen at once. And of one that may take as long as it takes.
const MIN_LENGTH: usize = 30;
const MAX_LENGTH: usize = 1500;

/// Registers that may be full: of vectors, and of masks.
const FULL: [i32; 2] = [26, 5];

/// Which blocks get a new order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduled {
    /// Long blocks whose chains wait.
    WhereProfitable,
    /// All that are not huge: for tests.
    Everywhere,
}

/// Puts instructions into the order in which they wait least, as far as can be estimated.
pub fn schedule(kernel: &mut Kernel, which: Scheduled) {
    let always = which == Scheduled::Everywhere;
    let shortest = if always { 0 } else { MIN_LENGTH };
    let long = |block: &Block| (shortest..=MAX_LENGTH).contains(&kernel.blocks[*block].insts.len());
    let blocks: Vec<Block> = kernel.layout.iter().copied().filter(long).collect();
    if blocks.is_empty() {
        return;
    }
    let uses = all_uses(kernel);
    for block in blocks {
        let insts = &kernel.blocks[block].insts;
        let Some((&terminator, insts)) = insts.split_last() else { continue };
        let (mut order, moved): (Vec<Inst>, Vec<Inst>) =
            insts.iter().partition(|&&inst| is_constant(&kernel.insts[inst]));
        let nodes = Nodes::of(kernel, moved, &uses);
        // Where chains are short beside the work, order does not matter.
        if always || nodes.longest() * 2 >= busy(kernel, &[block]) {
            order.extend(nodes.order());
            order.push(terminator);
            kernel.blocks[block].insts = order;
        }
    }
}

/// How many instructions use each value.
fn all_uses(kernel: &Kernel) -> SecondaryMap<Value, u32> {
    let mut uses: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(kernel.values.len());
    // A branch may pass one value many times, among as many others as there are blocks.
    let mut last_user: SecondaryMap<Value, PackedOption<Inst>> = SecondaryMap::with_capacity(kernel.values.len());
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        kernel.insts[inst].for_each_use(|value| {
            if last_user[value].expand() != Some(inst) {
                last_user[value] = inst.into();
                uses[value] += 1;
            }
        });
    }
    uses
}

/// An instruction among others.
#[derive(Default)]
struct Node {
    /// Those that wait for it.
    next: SmallVec<[u32; 4]>,
    /// How many it waits for.
    waits: u32,
    /// Cycles to the end of the block.
    height: u32,
    /// Cycles to its results.
    latency: u32,
    /// When its operands are there.
    ready: u32,
    /// Cycles of the units that work on vectors.
    turn: u32,
    /// Vectors and masks that it makes.
    makes: [i32; 2],
    /// Vectors and masks that it uses, by their numbers in the block.
    uses: SmallVec<[u32; 4]>,
}

/// A vector or a mask.
struct Held {
    /// Its kind of register.
    kind: usize,
    /// Instructions that still use it. Those outside of the block count, too: they keep it to the end.
    left: u32,
}

/// The instructions of a block, but its constants and its terminator.
struct Nodes {
    insts: Vec<Inst>,
    all: Vec<Node>,
    held: Vec<Held>,
    /// Vectors and masks that are live.
    live: [i32; 2],
}

impl Nodes {
    fn of(kernel: &Kernel, insts: Vec<Inst>, uses: &SecondaryMap<Value, u32>) -> Self {
        let mut nodes =
            Self { insts: Vec::new(), all: Vec::with_capacity(insts.len()), held: Vec::new(), live: [0, 0] };
        // As large as the block, not as the kernel: there may be as many long blocks as it likes.
        let mut numbers: HashMap<Value, u32> = HashMap::default();
        let mut definer: HashMap<Value, u32> = HashMap::default();
        let mut last_in_order = None;
        for (number, &inst) in (0u32..).zip(&insts) {
            let mut node = Node { latency: latency(kernel, inst), ..Node::default() };
            let mut before: SmallVec<[u32; 8]> = SmallVec::new();
            each_used_once(kernel, inst, |value| {
                before.extend(definer.get(&value).copied());
                let Some(kind) = kind(kernel, value) else { return };
                let held = *numbers.entry(value).or_insert_with(|| {
                    // It comes from outside of the block.
                    nodes.live[kind] += 1;
                    nodes.held.push(Held { kind, left: uses[value] });
                    nodes.held.len() as u32 - 1
                });
                node.uses.push(held);
            });
            if stays(kernel, inst) {
                before.extend(last_in_order.replace(number));
            }
            for &result in &kernel.results[inst] {
                definer.insert(result, number);
                if let Some(kind) = kind(kernel, result).filter(|_| uses[result] > 0) {
                    node.makes[kind] += 1;
                    numbers.insert(result, nodes.held.len() as u32);
                    nodes.held.push(Held { kind, left: uses[result] });
                }
            }
            node.turn = u32::from(node.makes[0] > 0);
            node.waits = before.len() as u32;
            before.iter().for_each(|&before| nodes.all[before as usize].next.push(number));
            nodes.all.push(node);
        }
        for number in (0..nodes.all.len()).rev() {
            let behind = nodes.all[number].next.iter().map(|&next| nodes.all[next as usize].height).max();
            nodes.all[number].height = behind.unwrap_or(0) + nodes.all[number].latency;
        }
        nodes.insts = insts;
        nodes
    }

    fn longest(&self) -> u32 {
        self.all.iter().map(|node| node.height).max().unwrap_or(0)
    }

    fn order(mut self) -> Vec<Inst> {
        let mut order = Vec::with_capacity(self.insts.len());
        let mut waiting: Vec<u32> =
            (0u32..).zip(&self.all).filter(|(_, node)| node.waits == 0).map(|(number, _)| number).collect();
        let mut now = 0;
        while !waiting.is_empty() {
            let number = waiting.swap_remove(self.choose(&waiting, now)) as usize;
            order.push(self.insts[number]);
            let grows = self.grows(&self.all[number]);
            (0..2).for_each(|kind| self.live[kind] += grows[kind]);
            let node = std::mem::take(&mut self.all[number]);
            node.uses.iter().for_each(|&held| self.held[held as usize].left -= 1);
            now = node.ready.max(now + node.turn);
            for next in node.next {
                let after = &mut self.all[next as usize];
                after.ready = after.ready.max(now + node.latency);
                after.waits -= 1;
                if after.waits == 0 {
                    waiting.push(next);
                }
            }
        }
        order
    }

    /// Which of those whose operands are on their way goes next.
    fn choose(&self, waiting: &[u32], now: u32) -> usize {
        let rank = |&number: &u32| {
            let node = &self.all[number as usize];
            (self.overflows(node), node.ready.saturating_sub(now), std::cmp::Reverse(node.height), number)
        };
        (0..waiting.len()).min_by_key(|&place| rank(&waiting[place])).unwrap_or(0)
    }

    /// Whether there are no registers for what it makes.
    fn overflows(&self, node: &Node) -> bool {
        let near = |kind: usize| self.live[kind] + node.makes[kind] > FULL[kind];
        if node.makes == [0, 0] || !(near(0) || near(1)) {
            return false;
        }
        let grows = self.grows(node);
        (0..2).any(|kind| grows[kind] > 0 && self.live[kind] + grows[kind] > FULL[kind])
    }

    /// Vectors and masks that live longer for the instruction, less those that end with it.
    fn grows(&self, node: &Node) -> [i32; 2] {
        let mut grows = node.makes;
        let ends = node.uses.iter().map(|&held| &self.held[held as usize]).filter(|held| held.left == 1);
        ends.for_each(|held| grows[held.kind] -= 1);
        grows
    }
}

/// Calls `visit` with each value that an instruction uses, once for each.
fn each_used_once(kernel: &Kernel, inst: Inst, mut visit: impl FnMut(Value)) {
    let mut seen: SmallVec<[Value; 8]> = SmallVec::new();
    kernel.insts[inst].for_each_use(|value| {
        if !seen.contains(&value) {
            seen.push(value);
            visit(value);
        }
    });
}

/// Constants come from memory where they are used: they need no register, and no place in the order.
fn is_constant(data: &InstData) -> bool {
    matches!(data, InstData::Const { .. } | InstData::Lanes { .. } | InstData::Undef { .. })
}

/// Registers of vectors are of kind 0, those of masks of kind 1.
fn kind(kernel: &Kernel, value: Value) -> Option<usize> {
    let kind = match kernel.ty(value) {
        Type::V32 => 0,
        Type::Mask => 1,
        _ => return None,
    };
    (!kernel.definition(value).is_some_and(is_constant)).then_some(kind)
}

/// Whether an instruction keeps its place among others that do: all but operations on vectors alone.
fn stays(kernel: &Kernel, inst: Inst) -> bool {
    let moves = matches!(
        kernel.insts[inst],
        InstData::Pure { .. } | InstData::Select { .. } | InstData::Pick { .. } | InstData::Permute { .. }
    );
    let vectors = kernel.results[inst].iter().all(|&result| matches!(kernel.ty(result), Type::V32 | Type::Mask));
    !(moves && vectors)
}
