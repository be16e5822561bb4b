//! Reads of variables: block parameters at joins, removal of those with one argument, and values that are saved or
//! carried across barriers.

use super::{Barrier, BlockHead, Carried, Kept, Only, Phi, SsaVariableData, Unwritten, Variable};
use crate::ir::Op;
use crate::simd::builder::{ALL, Builder};
use crate::simd::{Block, InstData, Type, Value};

impl Builder {
    /// Reads a variable at the current end of a block.
    pub(crate) fn read(&mut self, variable: Variable, block: Block) -> Value {
        let value = self.find(variable, block);
        while let Some(phi) = self.variables.unfilled.pop() {
            self.fill(phi);
        }
        self.variables.resolve(value)
    }

    /// Seals a block: all its predecessors are known.
    pub(crate) fn seal(&mut self, block: Block) {
        if self.variables.heads[block] != BlockHead::Open {
            return;
        }
        self.variables.heads[block] = BlockHead::Sealed;
        let open = self.variables.open.remove(&block).unwrap_or_default();
        self.variables.unfilled.extend(open);
        while let Some(phi) = self.variables.unfilled.pop() {
            self.fill(phi);
        }
    }

    /// As [`Builder::seal`], for a join; between `above` and the block no variable is written.
    pub(crate) fn seal_join(&mut self, block: Block, above: Block) {
        self.variables.predecessors[block] = vec![above];
        self.variables.dominance.set_predecessors(block, &[above]);
        self.seal(block);
    }

    /// The reaching definition; creates a parameter at a join.
    fn find(&mut self, variable: Variable, from: Block) -> Value {
        let mut block = from;
        let value = loop {
            self.kernel.work.visit(1);
            let (at, forgets) = self.variables.source(variable, block);
            if let Some(&value) = self.variables.values.get(&(at, variable)) {
                break value;
            }
            let value = match (self.variables.heads[at], self.variables.predecessors[at].as_slice()) {
                _ if forgets => self.default_of(variable),
                (BlockHead::Sealed, &[only]) => {
                    block = only;
                    continue;
                }
                (BlockHead::Sealed, []) | (BlockHead::Start, _) => self.default_of(variable),
                (BlockHead::Resume, _) => self.keep(variable, at),
                (BlockHead::Sealed | BlockHead::Open, _) => self.make_phi(variable, at),
            };
            self.variables.values.insert((at, variable), value);
            break value;
        };
        self.variables.values.insert((from, variable), value);
        value
    }

    fn default_of(&mut self, variable: Variable) -> Value {
        let SsaVariableData { ty, default, .. } = self.variables.all[variable];
        match default {
            Unwritten::Undef => self.emit_one(InstData::Undef { ty }),
            Unwritten::Empty => self.constant(ty, 0),
        }
    }

    fn make_phi(&mut self, variable: Variable, block: Block) -> Value {
        let ty = self.variables.all[variable].ty;
        let value = self.param_later(block, ty);
        let number = self.variables.phis.len();
        self.variables.phis.push(Phi { block, variable, value, operands: Vec::new() });
        self.variables.phi_of.insert(value, number);
        self.variables.values.insert((block, variable), value);
        if self.variables.heads[block] == BlockHead::Open {
            self.variables.open.entry(block).or_default().push(number);
        } else {
            self.variables.unfilled.push(number);
        }
        value
    }

    fn fill(&mut self, number: usize) {
        let (block, variable, value) = {
            let phi = &self.variables.phis[number];
            (phi.block, phi.variable, phi.value)
        };
        let predecessors = self.variables.predecessors[block].clone();
        self.kernel.work.visit(predecessors.len());
        for predecessor in predecessors {
            let operand = self.find(variable, predecessor);
            let operand = self.variables.aliases.shorten(operand);
            self.variables.phis[number].operands.push(operand);
            if self.variables.phi_of.contains_key(&operand) && operand != value {
                self.variables.phi_users.entry(operand).or_default().push(number);
            }
        }
        self.simplify(number);
    }

    /// A parameter whose arguments are all one value or itself becomes an alias of that value; then parameters that it
    /// was passed to may become aliases, too.
    fn simplify(&mut self, number: usize) {
        let mut work = vec![number];
        while let Some(number) = work.pop() {
            let Phi { value, block, ref operands, .. } = self.variables.phis[number];
            let count = operands.len();
            self.kernel.work.visit(1 + count);
            if self.variables.aliases.has(value) || count != self.variables.predecessors[block].len() {
                continue;
            }
            let mut only = None;
            let several = (0..count).any(|position| {
                let operand = self.variables.phis[number].operands[position];
                let operand = self.variables.aliases.shorten(operand);
                operand != value && *only.get_or_insert(operand) != operand
            });
            let (Some(only), false) = (only, several) else { continue };
            self.variables.aliases.set(value, only);
            let mut users = self.variables.phi_users.remove(&value).unwrap_or_default();
            users.sort_unstable();
            users.dedup();
            // Aliases are no users any more: kept in the list, they would be visited again and again.
            users.retain(|&user| !self.variables.aliases.has(self.variables.phis[user].value));
            if self.variables.phi_of.contains_key(&only) {
                self.variables.phi_users.entry(only).or_default().extend(&users);
            }
            work.extend(users);
        }
    }

    /// Loads a variable from the frame in a resume block, or records that it is carried; [`Builder::keep_all`] adds the
    /// store at the barrier.
    fn keep(&mut self, variable: Variable, resume: Block) -> Value {
        let SsaVariableData { ty, common, .. } = self.variables.all[variable];
        let value = if common {
            self.param_later(resume, ty)
        } else {
            let Barrier { frame, lanes, .. } = self.variables.barriers[&resume];
            let at = self.variables.slot(variable);
            let kept = self.emit_at_head(resume, InstData::FrameLoad { ty, frame, at });
            self.variables.loaded.insert(kept, variable);
            if ty == Type::Mask && self.kernel.constant(lanes) != Some(ALL) {
                // A mask in the frame may hold stale lanes: only those of the subgroup count.
                let args = [kept, lanes].into_iter().collect();
                self.emit_at_head(resume, InstData::Pure { op: Op::LAnd, args })
            } else {
                kept
            }
        };
        self.variables.kept.push(Kept { variable, resume, value });
        value
    }

    /// Adds the stores to frames of all values read after barriers, and finds the carried values.
    pub(crate) fn keep_all(&mut self) {
        while let Some(Kept { variable, resume, value }) = self.variables.kept.pop() {
            let Barrier { stop, frame, ref loops, .. } = self.variables.barriers[&resume];
            if self.variables.all[variable].common {
                let arg = self.read(variable, stop);
                if self.is_outer(arg) {
                    self.variables.aliases.set(value, arg);
                } else {
                    self.variables.carried.push(Carried { resume, param: value, arg });
                }
                continue;
            }
            if let Some(only) = self.variables.all[variable].only
                && only.within.is_none_or(|number| loops.contains(&number))
                && !self.is_outer(self.variables.resolve(only.value))
            {
                if !only.stored {
                    self.variables.all[variable].only = Some(Only { stored: true, ..only });
                    let at = self.variables.slot(variable);
                    let kept = self.variables.resolve(only.value);
                    self.emit_after(kept, InstData::FrameStore { frame, at, value: kept });
                }
                continue;
            }
            let kept = self.read(variable, stop);
            let at = self.variables.slot(variable);
            // The frame holds the value already if it was loaded from this slot. Results of calls are loads, too, but
            // from the call area.
            let same = self.variables.loaded.get(&kept) == Some(&variable);
            let undef = matches!(self.kernel.definition(kept), Some(InstData::Undef { .. }));
            if !same && !undef {
                self.emit_before_end(stop, InstData::FrameStore { frame, at, value: kept });
            }
            debug_assert!(!self.variables.aliases.has(value));
        }
    }

    /// Adds block parameters and branch arguments, and replaces aliases.
    pub(crate) fn finish_variables(&mut self) {
        let phis = std::mem::take(&mut self.variables.phis);
        for phi in &phis {
            if self.variables.aliases.has(phi.value) {
                continue;
            }
            self.place_param(phi.block, phi.value);
            let predecessors = self.variables.predecessors[phi.block].clone();
            for (predecessor, &operand) in predecessors.into_iter().zip(&phi.operands) {
                let operand = self.variables.aliases.shorten(operand);
                self.pass(predecessor, phi.block, operand);
            }
        }
        let variables = &mut self.variables;
        for data in self.kernel.insts.values_mut() {
            // An undefined mask that no alias replaced may be read next to lanes that hold a value: it becomes empty.
            if let InstData::Undef { ty: Type::Mask } = *data {
                *data = InstData::Const { ty: Type::Mask, bits: 0 };
            }
            data.for_each_use_mut(|value| *value = variables.aliases.shorten(*value));
        }
        for data in self.kernel.blocks.values_mut() {
            data.exec = data.exec.map(|exec| variables.aliases.shorten(exec));
        }
    }
}
