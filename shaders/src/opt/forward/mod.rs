//! Loads of what is known already, and stores that nobody sees.
//!
//! An invocation may go on with what it loaded or stored itself, as long as it does not store to a place that may be the
//! same one, and nothing (barrier, fence, atomic with an order, volatile access) makes another invocation's stores show.
//! `address` says which places may be one, `known` keeps what is known at a point: from block to block, and what all ways
//! agree on where they meet. Loads that are not private are left alone, since their writer wants to see others' stores.
//! A store that is out of bounds is dropped, so what it stored is known under a condition only.

mod address;
mod dead;
mod effects;
mod known;

use std::rc::Rc;

use cranelift_entity::SecondaryMap;

use super::aliases::Aliases;
use super::cfg;
use crate::analysis::{Dominators, Loops, predecessors};
use crate::ir::{Block, Inst, InstData, Kernel, Op, Place, Type, Value, Width};
use address::{Addresses, Object};
use effects::{Effect, Effects};
use known::{Known, State};

/// Nests of loops that are deeper are not looked at.
const MAX_LOOP_DEPTH: usize = 64;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let is_memory = |data: &InstData| matches!(data, InstData::Load { .. } | InstData::Store { .. });
    if !kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts).any(|&inst| is_memory(&kernel.insts[inst]))
    {
        return;
    }
    cfg::prune(kernel);
    let loops = Loops::new(kernel, &Dominators::new(kernel));
    if kernel.layout.iter().any(|&block| loops.depth(block) > MAX_LOOP_DEPTH) {
        return;
    }
    let mut addresses = Addresses::default();
    let effects = Effects::of_loops(kernel, &loops, &mut addresses);
    let mut forwarder = Forwarder { kernel, addresses, aliases: Aliases::default(), states: SecondaryMap::new() };
    forwarder.walk(&loops, &effects);
    let Forwarder { aliases, mut addresses, .. } = forwarder;
    aliases.apply(kernel);
    dead::drop_stores(kernel, &mut addresses);
}

struct Forwarder<'a> {
    kernel: &'a mut Kernel,
    addresses: Addresses,
    aliases: Aliases,
    /// What the ways that were walked agree on at the head of each block, and how many they are.
    states: SecondaryMap<Block, Option<(Rc<State>, usize)>>,
}

impl Forwarder<'_> {
    fn walk(&mut self, loops: &Loops, effects: &Effects) {
        let predecessors = predecessors(self.kernel);
        for place in 0..self.kernel.layout.len() {
            let block = self.kernel.layout[place];
            let mut state = match self.states[block].take() {
                // Ways that come later must be back edges.
                Some((state, ways)) => {
                    let back = loops.headed_by(block).map_or(0, |found| found.latches.len());
                    if ways + back == predecessors[block].len() { Rc::unwrap_or_clone(state) } else { State::default() }
                }
                None => State::default(),
            };
            if loops.headed_by(block).is_some()
                && let Some(number) = loops.of(block)
            {
                effects.apply(number, &mut state);
            }
            self.block(block, &mut state);
            self.hand_on(block, state);
        }
    }

    /// Gives the state to the blocks that come next.
    fn hand_on(&mut self, block: Block, state: State) {
        let Some(last) = cfg::terminator(self.kernel, block) else { return };
        let state = Rc::new(state);
        let mut targets: Vec<Block> = self.kernel.insts[last].targets().iter().map(|call| call.block).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let met = match self.states[target].take() {
                None => (Rc::clone(&state), 1),
                Some((mut other, ways)) => {
                    if !Rc::ptr_eq(&other, &state) {
                        Rc::make_mut(&mut other).meet(&state);
                    }
                    (other, ways + 1)
                }
            };
            self.states[target] = Some(met);
        }
    }

    fn block(&mut self, block: Block, state: &mut State) {
        let before = std::mem::take(&mut self.kernel.blocks[block].insts);
        let mut after = Vec::with_capacity(before.len());
        for inst in before {
            let aliases = &mut self.aliases;
            self.kernel.insts[inst].for_each_use_mut(|value| *value = aliases.shorten(*value));
            if let Some(value) = self.load(inst, state, &mut after)
                && let Some(result) = self.kernel.results[inst]
            {
                self.aliases.replace(result, value);
                continue;
            }
            after.push(inst);
            let effect = effects::of(self.kernel, inst, &mut self.addresses);
            state.apply(&effect);
            if let (Effect::Store { address, .. }, InstData::Store { width: Width::Word, value, access, .. }) =
                (effect, &self.kernel.insts[inst])
                && !access.volatile
            {
                state.add(Known { address, value: *value, stored: true });
            }
        }
        self.kernel.blocks[block].insts = after;
    }

    /// The value that a load need not load. A load of something new becomes known.
    fn load(&mut self, inst: Inst, state: &mut State, after: &mut Vec<Inst>) -> Option<Value> {
        let InstData::Load { ty, width: Width::Word, place, access } = self.kernel.insts[inst] else { return None };
        if access != Default::default() {
            return None;
        }
        let address = self.addresses.of(self.kernel, &place)?;
        let Some(known) = state.find(address) else {
            let value = self.kernel.results[inst]?;
            state.add(Known { address, value, stored: false });
            return None;
        };
        let value = self.converted(inst, known.value, ty, after);
        if !known.stored {
            return Some(value);
        }
        let value = self.in_bounds(inst, &place, value, after)?;
        state.forget(address);
        state.add(Known { address, value, stored: false });
        Some(value)
    }

    fn create(&mut self, like: Inst, data: InstData, ty: Type, after: &mut Vec<Inst>) -> Value {
        let (inst, value) = cfg::create(self.kernel, data, ty, self.kernel.origins[like]);
        after.push(inst);
        value
    }

    fn pure(&mut self, like: Inst, op: Op, args: &[Value], after: &mut Vec<Inst>) -> Value {
        self.create(like, InstData::Pure { op, args: args.into() }, op.result(), after)
    }

    /// The bits as another type.
    fn converted(&mut self, inst: Inst, value: Value, ty: Type, after: &mut Vec<Inst>) -> Value {
        match (self.kernel.ty(value), ty) {
            (Type::I32, Type::F32) => self.pure(inst, Op::FloatFromBits, &[value], after),
            (Type::F32, Type::I32) => self.pure(inst, Op::FloatBits, &[value], after),
            _ => value,
        }
    }

    /// The value if the place is in bounds, else 0. `None` if it never is.
    fn in_bounds(&mut self, inst: Inst, place: &Place, value: Value, after: &mut Vec<Inst>) -> Option<Value> {
        let constant = |bits: u32| InstData::Const { ty: Type::I32, bits: u64::from(bits) };
        let (limit, offset) = match *place {
            Place::Variable { variable, offset } => {
                let limit = self.kernel.variables[variable].bytes.checked_sub(3)?;
                match self.kernel.constant(offset) {
                    Some(offset) => return (offset < u64::from(limit)).then_some(value),
                    None => (self.create(inst, constant(limit), Type::I32, after), offset),
                }
            }
            Place::Buffer { buffer, offset, .. } => {
                let size = self.create(inst, InstData::BufferSize { buffer }, Type::I32, after);
                let three = self.create(inst, constant(3), Type::I32, after);
                let size = self.pure(inst, Op::UMax, &[size, three], after);
                (self.pure(inst, Op::ISub, &[size, three], after), offset)
            }
            Place::Push { .. } => return None,
        };
        let condition = self.pure(inst, Op::ULt, &[offset, limit], after);
        let ty = self.kernel.ty(value);
        let zero = self.create(inst, InstData::Const { ty, bits: 0 }, ty, after);
        let data = InstData::Select { condition, then: value, otherwise: zero };
        Some(self.create(inst, data, ty, after))
    }
}

/// Whether others can see the object's memory.
fn is_shared(kernel: &Kernel, object: Object) -> bool {
    match object {
        Object::Variable(variable) => kernel.variables[variable].space == crate::ir::VariableSpace::Workgroup,
        Object::Storage(_) => true,
    }
}
