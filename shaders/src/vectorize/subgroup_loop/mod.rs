//! Loops that run each part of the code between barriers for all subgroups.
//!
//! Parts that have blocks in common share a loop, a *turn*; others have one of their own. Where all subgroups come to each
//! barrier together, as Vulkan demands, the last subgroup knows which part is next, and hands on what all of them have in
//! common; should data races have sent another one elsewhere, the workgroup ends there, as nobody may go on from a barrier
//! that it was not at. Else each subgroup has a state in memory, the part it waits for, and a turn skips those that wait
//! for others.

mod bound;
mod context_slots;
pub(super) mod regions;

use cranelift_entity::{EntitySet, SecondaryMap};
use foldhash::HashMap;
use smallvec::SmallVec;

use self::bound::needed;
use super::{Block, Type, Value};
use crate::ir::Op;
use crate::simd::builder::{ALL, Builder};
use crate::simd::ssa::Carried;
use crate::simd::{Address, BlockCall, Field, InstData, Kernel};

/// State of a subgroup that has ended.
const ENDED: u32 = u32::MAX;

/// Parts of a kernel whose subgroups have states, above which turns do not each choose the next for themselves.
const MAX_CASES: usize = 12;

/// Code from where subgroups begin, or go on after a barrier, to where they stop.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Its first block.
    pub(super) block: Block,
    /// The block at whose end subgroups stop before they come here; none for the first part.
    pub(super) stop: Option<Block>,
}

/// What the loops are made from.
#[derive(Debug)]
pub(super) struct Turns {
    pub(super) parts: Vec<Part>,
    /// Where subgroups end.
    pub(super) end: Block,
    /// What every turn begins with, as far as it needs it.
    pub(super) pattern: Block,
    /// The subgroup's number in there.
    pub(super) number: Value,
    /// Subgroups.
    pub(super) count: u32,
    /// Whether all subgroups come to each barrier together.
    pub(super) together: bool,
}

/// What is carried to each part, by its first block.
type AllCarried = HashMap<Block, SmallVec<[Carried; 4]>>;

/// One loop over the subgroups.
#[derive(Debug)]
struct Turn {
    parts: Vec<usize>,
    /// In the layout's order.
    blocks: Vec<Block>,
    /// The parts that subgroups wait for after this turn.
    exits: Vec<usize>,
    /// Whether subgroups may end in it.
    ends: bool,
    /// Before the first subgroup: what all have in common are its parameters.
    before: Block,
    /// Where each subgroup begins.
    head: Block,
    /// Where each subgroup leaves.
    latch: Block,
}

impl Turn {
    /// Whether a subgroup leaves word for the next one where it stopped: there are several places, or each has its own.
    fn has_states(&self, together: bool) -> bool {
        !together || self.exits.len() + usize::from(self.ends) > 1
    }
}

impl Turns {
    /// Builds the loops. All blocks are there; where subgroups stop they return.
    pub(super) fn build(self, builder: &mut Builder) {
        let mut carried = AllCarried::default();
        let all: Vec<Carried> = builder.variables.carried().collect();
        all.into_iter().for_each(|value| carried.entry(value.resume).or_default().push(value));
        let turns = self.turns(builder);
        let entry = builder.kernel.layout[0];
        builder.kernel.layout = vec![entry];
        let which: Vec<Option<Value>> = turns.iter().map(|turn| self.before(builder, turn, &carried)).collect();
        let (nothing, mut choice) = (HashMap::default(), None);
        for (turn, which) in turns.iter().zip(which) {
            let [number, least] = self.begin(builder, turn, which);
            builder.kernel.layout.extend(&turn.blocks);
            let (next, values) = self.leave(builder, turn, number, &carried);
            // What is carried on is known to the last subgroup.
            let count = if self.together && next.is_none() && values.is_empty() {
                needed(builder, turn.head, turn.latch, number, self.count)
            } else {
                self.count
            };
            let next = self.repeat(builder, turn, [number, least], count, next);
            match next {
                Some(state) if !self.together && self.parts.len() > MAX_CASES => {
                    self.choose(builder, state, &mut choice, |builder, part| {
                        self.call(builder, &turns, &carried, part, &nothing)
                    });
                }
                _ => {
                    self.go_on(builder, turn, next, |builder, part| self.call(builder, &turns, &carried, part, &values))
                }
            }
        }
        let to = self.call(builder, &turns, &carried, 0, &nothing);
        builder.terminate_at(entry, InstData::Jump { to });
    }

    /// Finds which parts share blocks.
    fn turns(&self, builder: &mut Builder) -> Vec<Turn> {
        let mut part_of: SecondaryMap<Block, Option<usize>> = SecondaryMap::new();
        let mut first: Vec<usize> = (0..self.parts.len()).collect();
        let find = |first: &[usize], mut part: usize| {
            while first[part] != part {
                part = first[part];
            }
            part
        };
        for (number, part) in self.parts.iter().enumerate() {
            let mut stack = vec![part.block];
            while let Some(block) = stack.pop() {
                if let Some(other) = part_of[block] {
                    let [a, b] = [other, number].map(|part| find(&first, part));
                    first[a.max(b)] = a.min(b);
                    continue;
                }
                part_of[block] = Some(number);
                stack.extend(targets(&builder.kernel, block).filter(|&target| target != self.end));
            }
        }
        let layout = builder.kernel.layout.clone();
        let mut turns = Vec::new();
        for number in (0..self.parts.len()).filter(|&part| first[part] == part) {
            let belongs = |part: usize| find(&first, part) == number;
            let holds = |block: Block| part_of[block].is_some_and(belongs);
            let blocks: Vec<Block> = layout.iter().copied().filter(|&block| holds(block)).collect();
            turns.push(Turn {
                parts: (0..self.parts.len()).filter(|&part| belongs(part)).collect(),
                exits: (0..self.parts.len()).filter(|&part| self.parts[part].stop.is_some_and(holds)).collect(),
                ends: blocks.iter().any(|&block| targets(&builder.kernel, block).any(|target| target == self.end)),
                blocks,
                before: builder.create_block(),
                head: builder.create_block(),
                latch: builder.create_block(),
            });
        }
        turns
    }

    /// Gives a turn the parameters that hold for all subgroups: which part is meant, if there are several, and what is
    /// carried to them.
    fn before(&self, builder: &mut Builder, turn: &Turn, carried: &AllCarried) -> Option<Value> {
        let several = self.together && turn.parts.len() > 1;
        let which = several.then(|| builder.param(turn.before, Type::S32));
        for value in self.carried_to(turn, carried) {
            builder.adopt_param(turn.before, value.1.param);
        }
        which
    }

    /// All that is carried to parts of a turn, with the part.
    fn carried_to<'a>(&'a self, turn: &'a Turn, carried: &'a AllCarried) -> impl Iterator<Item = (usize, &'a Carried)> {
        let of =
            |&part: &usize| carried.get(&self.parts[part].block).into_iter().flatten().map(move |value| (part, value));
        turn.parts.iter().flat_map(of)
    }

    /// The way to a part, given what is known of the values that are carried to it.
    fn call(
        &self,
        builder: &mut Builder,
        turns: &[Turn],
        carried: &AllCarried,
        part: usize,
        values: &HashMap<Value, Value>,
    ) -> BlockCall {
        let Some(turn) = turns.iter().find(|turn| turn.parts.contains(&part)) else {
            unreachable!("a part has a turn")
        };
        let mut args = SmallVec::new();
        if self.together && turn.parts.len() > 1 {
            args.push(builder.s32(part as u32));
        }
        for (of, value) in self.carried_to(turn, carried) {
            let arg = values.get(&value.param).copied().filter(|_| of == part);
            args.push(arg.unwrap_or_else(|| {
                let ty = builder.ty(value.param);
                builder.emit_one(InstData::Undef { ty })
            }));
        }
        BlockCall { block: turn.before, args }
    }

    /// Begins a turn, and the part of each subgroup: gives its number, and the least state so far, or that of the subgroup
    /// before, if there are several.
    fn begin(&self, builder: &mut Builder, turn: &Turn, which: Option<Value>) -> [Value; 2] {
        builder.switch_to(turn.before);
        let (zero, none) = (builder.s32(0), builder.s32(ENDED));
        let states = turn.has_states(self.together);
        let args = if states { SmallVec::from_slice(&[zero, none]) } else { SmallVec::from_slice(&[zero]) };
        builder.emit(InstData::Jump { to: BlockCall { block: turn.head, args } });
        builder.switch_to(turn.head);
        let number = builder.param(turn.head, Type::S32);
        let least = if states { builder.param(turn.head, Type::S32) } else { none };
        self.copy_pattern(builder, turn, number);
        let call = |part: usize| BlockCall::new(self.parts[part].block);
        let cases = |parts: &[usize]| parts.iter().map(|&part| (part as u32, call(part))).collect();
        if !self.together {
            // Those that wait for a part of another turn are skipped.
            let address = self.state(builder, number);
            let selector = builder.emit_value(InstData::Load { ty: Type::S32, address });
            let skip = builder.create_block();
            builder.emit(InstData::Switch { selector, default: BlockCall::new(skip), cases: cases(&turn.parts) });
            builder.switch_to(skip);
            let args = SmallVec::from_slice(&[selector]);
            builder.emit(InstData::Jump { to: BlockCall { block: turn.latch, args } });
            return [number, least];
        }
        match (which, turn.parts.split_last()) {
            (Some(selector), Some((&last, others))) => {
                builder.emit(InstData::Switch { selector, default: call(last), cases: cases(others) })
            }
            _ => builder.emit(InstData::Jump { to: call(turn.parts[0]) }),
        };
        [number, least]
    }

    /// Copies what a turn needs of the subgroup's values to its head.
    fn copy_pattern(&self, builder: &mut Builder, turn: &Turn, number: Value) {
        let kernel = &mut builder.kernel;
        let mut needed = EntitySet::new();
        for &block in &turn.blocks {
            for &inst in &kernel.blocks[block].insts {
                kernel.insts[inst].for_each_use(|value| _ = needed.insert(value));
            }
        }
        let lanes = kernel.blocks[self.pattern].exec;
        lanes.into_iter().for_each(|value| _ = needed.insert(value));
        let pattern = kernel.blocks[self.pattern].insts.clone();
        for &inst in pattern.iter().rev() {
            if kernel.results[inst].iter().any(|&result| needed.contains(result)) {
                kernel.insts[inst].for_each_use(|value| _ = needed.insert(value));
            }
        }
        let mut copies: HashMap<Value, Value> = [(self.number, number)].into_iter().collect();
        let rename = |copies: &HashMap<Value, Value>, value: &mut Value| {
            if let Some(&copy) = copies.get(value) {
                *value = copy;
            }
        };
        for inst in pattern {
            let [result] = *builder.kernel.results[inst].as_slice() else { continue };
            if needed.contains(result) {
                let mut data = builder.kernel.insts[inst].clone();
                data.for_each_use_mut(|value| rename(&copies, value));
                copies.insert(result, builder.emit_value(data));
            }
        }
        let kernel = &mut builder.kernel;
        kernel.blocks[turn.head].exec = lanes;
        kernel.blocks[turn.head].begins = true;
        for &block in turn.blocks.iter().chain([&turn.head]) {
            if let Some(exec) = &mut kernel.blocks[block].exec {
                rename(&copies, exec);
            }
            if block != turn.head {
                for &inst in &kernel.blocks[block].insts {
                    kernel.insts[inst].for_each_use_mut(|value| rename(&copies, value));
                }
            }
        }
    }

    /// Where a subgroup's state is.
    fn state(&self, builder: &mut Builder, number: Value) -> Address {
        let base = builder.emit_one(InstData::Context { field: Field::Frames });
        let limit = builder.s32(self.count);
        Address { base, index: Some((number, limit)), scale: 4, disp: 0 }
    }

    /// Leads all ways out of a turn to its latch: gives the part that waits there, if there are several, and what is
    /// known after it of the values that are carried.
    fn leave(
        &self,
        builder: &mut Builder,
        turn: &Turn,
        number: Value,
        carried: &AllCarried,
    ) -> (Option<Value>, HashMap<Value, Value>) {
        let mut ways: Vec<(u32, Block)> =
            turn.exits.iter().filter_map(|&part| Some((part as u32, self.parts[part].stop?))).collect();
        for &(_, stop) in &ways {
            builder.kernel.blocks[stop].insts.pop();
        }
        if turn.ends {
            let end = builder.create_block();
            self.end_at(builder, turn, end);
            builder.switch_to(end);
            ways.push((ENDED, end));
        }
        let several = ways.len() > 1;
        let mut args: Vec<SmallVec<[Value; 4]>> = vec![SmallVec::new(); ways.len()];
        let mut next = None;
        if several || !self.together {
            next = Some(builder.param(turn.latch, Type::S32));
            for (args, way) in args.iter_mut().zip(&ways) {
                args.push(builder.s32(way.0));
            }
        }
        let mut values = HashMap::default();
        for (way, &part) in turn.exits.iter().enumerate() {
            for value in carried.get(&self.parts[part].block).into_iter().flatten() {
                if !several {
                    values.insert(value.param, value.arg);
                    continue;
                }
                let ty = builder.ty(value.param);
                values.insert(value.param, builder.param(turn.latch, ty));
                let undef = builder.emit_one(InstData::Undef { ty });
                for (other, args) in args.iter_mut().enumerate() {
                    args.push(if other == way { value.arg } else { undef });
                }
            }
        }
        for ((state, stop), args) in ways.into_iter().zip(args) {
            if !self.together {
                let address = self.state(builder, number);
                let (value, mask) = (builder.s32(state), builder.constant(Type::Mask, ALL));
                builder.terminate_at(stop, InstData::Store { address, value, mask });
            }
            builder.terminate_at(stop, InstData::Jump { to: BlockCall { block: turn.latch, args } });
        }
        (next, values)
    }

    /// Subgroups that end in a turn do so in a block of its own.
    fn end_at(&self, builder: &mut Builder, turn: &Turn, end: Block) {
        let kernel = &mut builder.kernel;
        for &block in &turn.blocks {
            if let Some(&last) = kernel.blocks[block].insts.last() {
                let calls = kernel.insts[last].targets_mut().into_iter();
                calls.filter(|call| call.block == self.end).for_each(|call| call.block = end);
            }
        }
    }

    /// The next subgroup, if there is one; gives what the next turn is known by.
    fn repeat(
        &self,
        builder: &mut Builder,
        turn: &Turn,
        [number, least]: [Value; 2],
        count: u32,
        next: Option<Value>,
    ) -> Option<Value> {
        builder.switch_to(turn.latch);
        let pure = |builder: &mut Builder, op, args: [Value; 2]| {
            builder.emit_value(InstData::Pure { op, args: args.into_iter().collect() })
        };
        let next = next.map(|state| {
            if !self.together {
                return pure(builder, Op::UMin, [least, state]);
            }
            let zero = builder.s32(0);
            let same = pure(builder, Op::IEq, [least, state]);
            let first = pure(builder, Op::IEq, [number, zero]);
            let fine = pure(builder, Op::LOr, [same, first]);
            let [goes_on, quits] = [builder.create_block(), builder.create_block()];
            let (then, otherwise) = (BlockCall::new(goes_on), BlockCall::new(quits));
            builder.emit(InstData::Branch { condition: fine, then, otherwise });
            builder.switch_to(quits);
            builder.emit(InstData::Return);
            builder.switch_to(goes_on);
            state
        });
        let (one, count) = (builder.s32(1), builder.s32(count));
        let number = pure(builder, Op::IAdd, [number, one]);
        let condition = pure(builder, Op::ULt, [number, count]);
        let least = next.filter(|_| turn.has_states(self.together));
        let then = BlockCall { block: turn.head, args: [number].into_iter().chain(least).collect() };
        let after = builder.create_block();
        builder.emit(InstData::Branch { condition, then, otherwise: BlockCall::new(after) });
        builder.switch_to(after);
        next
    }

    /// After a turn, where subgroups may wait for any of many parts: one block for all turns goes on with the least.
    fn choose(
        &self,
        builder: &mut Builder,
        state: Value,
        choice: &mut Option<Block>,
        mut call: impl FnMut(&mut Builder, usize) -> BlockCall,
    ) {
        let known = *choice;
        let block = known.unwrap_or_else(|| builder.create_block());
        builder.emit(InstData::Jump { to: BlockCall { block, args: SmallVec::from_slice(&[state]) } });
        if known.is_some() {
            return;
        }
        *choice = Some(block);
        builder.switch_to(block);
        let selector = builder.param(block, Type::S32);
        let done = builder.create_block();
        let cases = (1..self.parts.len()).map(|part| (part as u32, call(builder, part))).collect();
        builder.emit(InstData::Switch { selector, default: BlockCall::new(done), cases });
        builder.switch_to(done);
        builder.emit(InstData::Return);
    }

    /// After a turn: the part that subgroups wait for, or the end.
    fn go_on(
        &self,
        builder: &mut Builder,
        turn: &Turn,
        next: Option<Value>,
        mut call: impl FnMut(&mut Builder, usize) -> BlockCall,
    ) {
        let mut parts = if self.together { turn.exits.clone() } else { (1..self.parts.len()).collect() };
        let last = if turn.ends || !self.together { None } else { parts.pop() };
        let default = match last {
            Some(part) => call(builder, part),
            None => BlockCall::new(builder.create_block()),
        };
        let done = default.block;
        match next.filter(|_| !parts.is_empty()) {
            Some(selector) => {
                let cases = parts.into_iter().map(|part| (part as u32, call(builder, part))).collect();
                builder.emit(InstData::Switch { selector, default, cases });
            }
            None => _ = builder.emit(InstData::Jump { to: default }),
        }
        if last.is_none() {
            builder.switch_to(done);
            builder.emit(InstData::Return);
        }
    }
}

fn targets(kernel: &Kernel, block: Block) -> impl Iterator<Item = Block> {
    kernel.targets(block).into_iter().map(|call| call.block).collect::<SmallVec<[Block; 4]>>().into_iter()
}
