//! Dead code elimination: removes instructions without effect whose results are unused, and unused block parameters.
//!
//! Marks live values from instructions with an effect backwards through operands. A block argument is live only if its
//! parameter is, so values that only circulate in a loop are removed too.

use cranelift_entity::{EntitySet, SecondaryMap};
use smallvec::SmallVec;

use crate::ir::{Block, Inst, InstData, Kernel, Value, ValueDef};

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let live = live_values(kernel);
    drop_params(kernel, &live);
    let Kernel { layout, blocks, insts, results, .. } = kernel;
    for &block in &*layout {
        blocks[block]
            .insts
            .retain(|&inst| insts[inst].has_effect() || results[inst].is_some_and(|value| live.contains(value)));
    }
}

fn live_values(kernel: &Kernel) -> EntitySet<Value> {
    let mut marker = Marker { live: EntitySet::with_capacity(kernel.values.len()), stack: Vec::new() };
    let calls = calls(kernel);
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            marker.mark_root(&kernel.insts[inst]);
        }
    }
    while let Some(value) = marker.stack.pop() {
        match kernel.values[value] {
            ValueDef::Result { inst, .. } => kernel.insts[inst].for_each_use(|operand| marker.mark(operand)),
            ValueDef::Param { block, index, .. } => {
                for &(inst, number) in &calls[block] {
                    let call = kernel.insts[inst].target(number as usize);
                    if let Some(&arg) = call.and_then(|call| call.args.get(index as usize)) {
                        marker.mark(arg);
                    }
                }
            }
        }
    }
    marker.live
}

struct Marker {
    live: EntitySet<Value>,
    /// Live values whose operands are not marked yet.
    stack: Vec<Value>,
}

impl Marker {
    fn mark(&mut self, value: Value) {
        if self.live.insert(value) {
            self.stack.push(value);
        }
    }

    /// Marks the operands of an instruction with an effect. Branch arguments are marked through their parameters.
    fn mark_root(&mut self, data: &InstData) {
        match data {
            InstData::Branch { condition: value, .. } | InstData::Switch { selector: value, .. } => self.mark(*value),
            InstData::Jump { .. } => {}
            data if data.has_effect() => data.for_each_use(|value| self.mark(value)),
            _ => {}
        }
    }
}

/// Every edge to a block: the terminator, and the index of the target in it.
fn calls(kernel: &Kernel) -> SecondaryMap<Block, SmallVec<[(Inst, u32); 2]>> {
    let mut calls: SecondaryMap<Block, SmallVec<[(Inst, u32); 2]>> = SecondaryMap::new();
    for inst in kernel.layout.iter().filter_map(|&block| kernel.blocks[block].insts.last().copied()) {
        for (number, call) in kernel.insts[inst].targets().iter().enumerate() {
            calls[call.block].push((inst, number as u32));
        }
    }
    calls
}

/// Removes dead parameters from their blocks, and their arguments from the branches.
fn drop_params(kernel: &mut Kernel, live: &EntitySet<Value>) {
    let Kernel { layout, blocks, insts, values, .. } = kernel;
    for inst in layout.iter().filter_map(|&block| blocks[block].insts.last().copied()) {
        for call in insts[inst].targets_mut() {
            let mut params = blocks[call.block].params.iter();
            call.args.retain(|_| params.next().is_none_or(|&param| live.contains(param)));
        }
    }
    for &block in &*layout {
        let params = &mut blocks[block].params;
        params.retain(|param| live.contains(*param));
        for (position, &param) in params.iter().enumerate() {
            if let ValueDef::Param { index, .. } = &mut values[param] {
                *index = position as u32;
            }
        }
    }
}
