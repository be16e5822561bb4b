//! Store-to-load and load-to-load forwarding, and dead store elimination.
//!
//! An invocation may reuse a word that it loaded or stored, as long as it stores to no word that may overlap, and no
//! barrier, fence, ordering atomic or volatile access makes stores of other invocations visible. `address` compares
//! addresses; `known` keeps the known words at a point: they propagate from block to block, and a join keeps those on
//! which all incoming edges agree. Non-private loads stay, since they are meant to see stores of other invocations. A
//! store out of bounds has no effect, so a stored word is known only under a bounds check.

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
use known::{KnownWord, KnownWords};

/// Maximum loop depth; the pass leaves kernels with deeper nests as they are.
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
    /// At the head of each block: the words that the visited incoming edges agree on, and the number of these edges.
    states: SecondaryMap<Block, Option<(Rc<KnownWords>, usize)>>,
}

impl Forwarder<'_> {
    fn walk(&mut self, loops: &Loops, effects: &Effects) {
        let predecessors = predecessors(self.kernel);
        for position in 0..self.kernel.layout.len() {
            let block = self.kernel.layout[position];
            let mut state = match self.states[block].take() {
                // In reverse postorder every other incoming edge has been visited; if one has not, nothing is known.
                Some((state, visited)) => {
                    let back = loops.headed_by(block).map_or(0, |found| found.latches.len());
                    if visited + back == predecessors[block].len() {
                        Rc::unwrap_or_clone(state)
                    } else {
                        KnownWords::default()
                    }
                }
                None => KnownWords::default(),
            };
            if loops.headed_by(block).is_some()
                && let Some(number) = loops.of(block)
            {
                effects.apply(number, &mut state);
            }
            self.block(block, &mut state);
            self.propagate(block, state);
        }
    }

    /// Propagates the state to the successors.
    fn propagate(&mut self, block: Block, state: KnownWords) {
        let Some(last) = self.kernel.last_inst(block) else { return };
        let state = Rc::new(state);
        let mut targets: Vec<Block> = self.kernel.insts[last].targets().iter().map(|call| call.block).collect();
        targets.sort_unstable();
        targets.dedup();
        for target in targets {
            let met = match self.states[target].take() {
                None => (Rc::clone(&state), 1),
                Some((mut other, visited)) => {
                    if !Rc::ptr_eq(&other, &state) {
                        Rc::make_mut(&mut other).meet(&state);
                    }
                    (other, visited + 1)
                }
            };
            self.states[target] = Some(met);
        }
    }

    fn block(&mut self, block: Block, state: &mut KnownWords) {
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
                state.add(KnownWord { address, value: *value, stored: true });
            }
        }
        self.kernel.blocks[block].insts = after;
    }

    /// The value that replaces a load. The result of a load of an unknown word becomes known.
    fn load(&mut self, inst: Inst, state: &mut KnownWords, after: &mut Vec<Inst>) -> Option<Value> {
        let InstData::Load { ty, width: Width::Word, place, access } = self.kernel.insts[inst] else { return None };
        if access != Default::default() {
            return None;
        }
        let address = self.addresses.of(self.kernel, &place)?;
        let Some(known) = state.find(address) else {
            let value = self.kernel.results[inst]?;
            state.add(KnownWord { address, value, stored: false });
            return None;
        };
        let value = self.converted(inst, known.value, ty, after);
        if !known.stored {
            return Some(value);
        }
        let value = self.in_bounds(inst, &place, value, after)?;
        state.forget(address);
        state.add(KnownWord { address, value, stored: false });
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

    /// The bits as a value of another type.
    fn converted(&mut self, inst: Inst, value: Value, ty: Type, after: &mut Vec<Inst>) -> Value {
        match (self.kernel.ty(value), ty) {
            (Type::I32, Type::F32) => self.pure(inst, Op::FloatFromBits, &[value], after),
            (Type::F32, Type::I32) => self.pure(inst, Op::FloatBits, &[value], after),
            _ => value,
        }
    }

    /// The value if the address is in bounds, otherwise 0. `None` if it is never in bounds.
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

/// Whether other invocations can access the object.
fn is_shared(kernel: &Kernel, object: Object) -> bool {
    match object {
        Object::Variable(variable) => kernel.variables[variable].space == crate::ir::VariableSpace::Workgroup,
        Object::Storage(_) => true,
    }
}
