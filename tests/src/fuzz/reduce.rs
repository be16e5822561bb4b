//! Reduces a failing program beyond what the tape allows: single instructions of the IR.
//!
//! Changes must not introduce data races: stores are removed, and values on which no address, condition or barrier
//! depends become constants.

use std::collections::HashSet;

use spelter_shaders::ir::{AtomicOp, BlockCall, Inst, InstData, Kernel, Merge, Place, Type, Value, ValueDef, verify};

use spelter_shaders::opt;

use super::program::Program;

/// Searches a smaller program that still `fails`, in at most `most` attempts.
pub fn reduce(program: Program, most: u32, fails: &mut dyn FnMut(&Program) -> bool) -> Program {
    let mut reducer = Reducer { best: program, left: most, fails };
    loop {
        let before = size(&reducer.best.kernel);
        reducer.memory();
        reducer.skip();
        reducer.tidy();
        reducer.remove();
        reducer.flatten();
        if size(&reducer.best.kernel) >= before || reducer.left == 0 {
            return reducer.best;
        }
    }
}

fn size(kernel: &Kernel) -> usize {
    kernel.layout.iter().map(|&block| kernel.blocks[block].insts.len()).sum()
}

struct Reducer<'a> {
    best: Program,
    left: u32,
    fails: &'a mut dyn FnMut(&Program) -> bool,
}

impl Reducer<'_> {
    fn accept(&mut self, program: Program) -> bool {
        if self.left == 0 || verify(&program.kernel).is_err() {
            return false;
        }
        self.left -= 1;
        let fails = (self.fails)(&program);
        if fails {
            self.best = program;
        }
        fails
    }

    /// Merges blocks, removes unused code.
    fn tidy(&mut self) {
        for pass in [opt::CFG, opt::DCE] {
            let mut tidied = self.best.clone();
            (pass.run)(&mut tidied.kernel);
            self.accept(tidied);
        }
    }

    /// Fewer workgroups, zeros in buffers.
    fn memory(&mut self) {
        let mut one = self.best.clone();
        one.groups = [1; 3];
        self.accept(one);
        for at in 0..self.best.buffers.len() {
            if self.best.buffers[at].bytes.iter().any(|&byte| byte != 0) {
                let mut zeros = self.best.clone();
                zeros.buffers[at].bytes.fill(0);
                self.accept(zeros);
            }
        }
    }

    /// Removes stores, atomics and fences that the failure does not need, then their unused operands.
    fn remove(&mut self) {
        let candidates = |kernel: &Kernel| {
            let used = used(kernel);
            let insts = kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.clone());
            let fits = |inst: &Inst| {
                let removable =
                    !kernel.insts[*inst].is_terminator() && !matches!(kernel.insts[*inst], InstData::Barrier { .. });
                removable && kernel.results[*inst].is_none_or(|value| !used.contains(&value))
            };
            insts.filter(fits).collect::<Vec<Inst>>()
        };
        let mut size = candidates(&self.best.kernel).len();
        while size > 0 && self.left > 0 {
            let mut at = 0;
            loop {
                let list = candidates(&self.best.kernel);
                let Some(part) = list.get(at..(at + size).min(list.len())).filter(|part| !part.is_empty()) else {
                    break;
                };
                let mut without = self.best.clone();
                for block in without.kernel.layout.clone() {
                    without.kernel.blocks[block].insts.retain(|inst| !part.contains(inst));
                }
                if !self.accept(without) {
                    at += size;
                }
                if self.left == 0 {
                    return;
                }
            }
            size /= 2;
        }
    }

    /// Removes whole constructs: their heads jump to their merges. Barriers are removed for all invocations together.
    fn skip(&mut self) {
        for block in self.best.kernel.layout.clone() {
            let kernel = &self.best.kernel;
            let Some(Merge::Selection { merge } | Merge::Loop { merge, .. }) = kernel.blocks[block].merge else {
                continue;
            };
            let Some(&last) = kernel.blocks[block].insts.last() else { continue };
            let lasts = kernel.layout.iter().filter_map(|&from| kernel.blocks[from].insts.last());
            let edges = lasts.flat_map(|&last| kernel.insts[last].targets()).filter(|call| call.block == merge);
            let edges: Vec<BlockCall> = edges.cloned().collect();
            for to in edges {
                let mut shorter = self.best.clone();
                shorter.kernel.insts[last] = InstData::Jump { to };
                shorter.kernel.blocks[block].merge = None;
                drop_unreachable(&mut shorter.kernel);
                if self.accept(shorter) {
                    break;
                }
            }
        }
    }

    /// Replaces an instruction by a constant.
    fn constant(&mut self, inst: Inst, ty: Type) -> bool {
        [0, 1].into_iter().any(|bits| {
            let mut constant = self.best.clone();
            constant.kernel.insts[inst] = InstData::Const { ty, bits };
            self.accept(constant)
        })
    }

    /// Replaces values by constants or by their operands.
    fn flatten(&mut self) {
        let fixed = fixed(&self.best.kernel);
        let insts: Vec<Inst> = {
            let kernel = &self.best.kernel;
            kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.clone()).collect()
        };
        for inst in insts.into_iter().rev() {
            let kernel = &self.best.kernel;
            let Some(value) = kernel.results[inst] else { continue };
            let plain = matches!(
                kernel.insts[inst],
                InstData::Pure { .. }
                    | InstData::Select { .. }
                    | InstData::Load { .. }
                    | InstData::BuiltIn { .. }
                    | InstData::Element { .. }
                    | InstData::BufferSize { .. }
            );
            let ty = kernel.ty(value);
            if !plain || fixed.contains(&value) || ty == Type::Buffer {
                continue;
            }
            if self.constant(inst, ty) {
                continue;
            }
            let mut operands = Vec::new();
            self.best.kernel.insts[inst].for_each_use(|operand| operands.push(operand));
            operands.retain(|&operand| self.best.kernel.ty(operand) == ty);
            for operand in operands {
                let mut forwarded = self.best.clone();
                replace(&mut forwarded.kernel, value, operand);
                if self.accept(forwarded) {
                    break;
                }
            }
        }
    }
}

/// Removes blocks from the layout that are unreachable and not named.
fn drop_unreachable(kernel: &mut Kernel) {
    let mut seen = HashSet::new();
    let mut work = vec![kernel.layout[0]];
    while let Some(block) = work.pop() {
        if !seen.insert(block) {
            continue;
        }
        let data = &kernel.blocks[block];
        match data.merge {
            Some(Merge::Selection { merge }) => work.push(merge),
            Some(Merge::Loop { merge, continuing }) => work.extend([merge, continuing]),
            None => {}
        }
        if let Some(&last) = data.insts.last() {
            work.extend(kernel.insts[last].targets().iter().map(|call| call.block));
        }
    }
    kernel.layout.retain(|block| seen.contains(block));
}

/// Replaces all uses of `value` by `by`, and removes the value's instruction.
fn replace(kernel: &mut Kernel, value: Value, by: Value) {
    for block in kernel.layout.clone() {
        for inst in kernel.blocks[block].insts.clone() {
            kernel.insts[inst].for_each_use_mut(|operand| {
                if *operand == value {
                    *operand = by;
                }
            });
        }
        let results = &kernel.results;
        kernel.blocks[block].insts.retain(|&inst| results[inst] != Some(value));
    }
}

fn used(kernel: &Kernel) -> HashSet<Value> {
    let mut used = HashSet::new();
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            kernel.insts[inst].for_each_use(|value| _ = used.insert(value));
        }
    }
    used
}

/// Values on which addresses of writes, conditions and operands of atomics depend.
fn fixed(kernel: &Kernel) -> HashSet<Value> {
    let used = used(kernel);
    let mut work: Vec<Value> = Vec::new();
    for &block in &kernel.layout {
        for &inst in &kernel.blocks[block].insts {
            match &kernel.insts[inst] {
                InstData::Store { place, .. } => work.extend(addresses(place)),
                InstData::Load { place: place @ Place::Variable { .. }, .. } => work.extend(addresses(place)),
                InstData::Load { place: place @ Place::Buffer { .. }, .. } => work.extend(addresses(place)),
                InstData::Atomic { op, place, value, .. } => {
                    work.extend(addresses(place));
                    // A ticket's number.
                    let ticket = kernel.results[inst].is_some_and(|old| used.contains(&old));
                    work.extend(value.filter(|_| *op == AtomicOp::Add && ticket));
                }
                InstData::Branch { condition, .. } => work.push(*condition),
                InstData::Switch { selector, .. } => work.push(*selector),
                _ => {}
            }
        }
    }
    let mut fixed = HashSet::new();
    while let Some(value) = work.pop() {
        if !fixed.insert(value) {
            continue;
        }
        match kernel.values[value] {
            ValueDef::Result { inst, .. } => kernel.insts[inst].for_each_use(|operand| work.push(operand)),
            ValueDef::Param { block, index, .. } => work.extend(arguments(kernel, block, index as usize)),
        }
    }
    fixed
}

fn addresses(place: &Place) -> Vec<Value> {
    match *place {
        Place::Buffer { buffer, offset, .. } => vec![buffer, offset],
        Place::Push { offset } | Place::Variable { offset, .. } => vec![offset],
    }
}

fn arguments(kernel: &Kernel, block: spelter_shaders::ir::Block, index: usize) -> Vec<Value> {
    let lasts = kernel.layout.iter().filter_map(|&from| kernel.blocks[from].insts.last());
    let calls = lasts.flat_map(|&last| kernel.insts[last].targets());
    calls.filter(|call| call.block == block).filter_map(|call| call.args.get(index).copied()).collect()
}
