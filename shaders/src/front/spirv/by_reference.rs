//! Large composites passed by reference: kept in memory, since exploding them would give too many scalars.
//!
//! A loaded composite that is only stored, passed or returned is copied to a private variable; so is the result of a
//! call. Only the defining instruction writes such a variable. Components of results and parameters are loaded where
//! they are used. Calls are inlined one after the other, so each instruction needs one variable: a result is copied out
//! of the callee's variables.

use foldhash::HashMap;
use spirv::{Op, StorageClass};

use super::body::FunctionBody;
use super::composite::{Composite, expect_type};
use super::copies::is_plain;
use super::pointer::Pointer;
use super::translate::{IdDefinition, Translator};
use super::types::SpirvType;
use super::words::{Id, Inst, InstResult};
use crate::ir::Access;

/// Number of uses of an id in a function's instructions; literals equal to the id are counted, too.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mentions {
    /// All uses.
    pub(super) all: usize,
    /// Uses by stores, calls and returns.
    moves: usize,
    /// Uses by `OpCompositeExtract`.
    parts: usize,
}

impl Translator<'_> {
    /// The uses of a load, parameter or call result of a large type in the current function.
    pub(super) fn mentions(&mut self, id: Id) -> Mentions {
        if self.frame.mentions.is_none() {
            self.frame.mentions = Some(self.count_mentions(self.frame.function));
        }
        self.frame.mentions.as_ref().and_then(|all| all.get(&id)).copied().unwrap_or_default()
    }

    /// Counts the uses of all large values of a function.
    pub(super) fn count_mentions(&self, function: &FunctionBody) -> HashMap<Id, Mentions> {
        let blocks = &function.blocks;
        let insts = || blocks.iter().flat_map(|block| block.phis.iter().chain(&block.body).chain([&block.terminator]));
        let made = insts().filter(|inst| matches!(inst.op, Op::Load | Op::FunctionCall)).map(|inst| (inst.id, inst.ty));
        let all = made.chain(function.params.iter().copied()).filter(|(_, ty)| self.is_large(*ty));
        let mut counts: HashMap<Id, Mentions> = all.map(|(id, _)| (id, Mentions::default())).collect();
        if counts.is_empty() {
            return counts;
        }
        for inst in insts() {
            let operands = self.sections.words.operands(inst);
            for word in operands {
                counts.entry(*word).and_modify(|mentions| mentions.all += 1);
            }
            let moved = match inst.op {
                Op::Store => operands.get(1..2),
                Op::FunctionCall => operands.get(1..),
                Op::ReturnValue => operands.get(..1),
                _ => None,
            };
            for id in moved.unwrap_or_default() {
                counts.entry(*id).and_modify(|mentions| mentions.moves += 1);
            }
            if let (Op::CompositeExtract, Some(&from)) = (inst.op, operands.first()) {
                counts.entry(from).and_modify(|mentions| mentions.parts += 1);
            }
        }
        counts
    }

    /// Copies a loaded value that is only passed on to a variable; returns whether it did.
    pub(super) fn load_by_reference(&mut self, load: &Inst, source: &Pointer, access: Access) -> InstResult<bool> {
        if !self.is_large(load.ty) || source.pointee() != load.ty || !is_plain(source) {
            return Ok(false);
        }
        let Mentions { all, moves, .. } = self.mentions(load.id);
        if moves == 0 || moves != all {
            return Ok(false);
        }
        let memory = self.storage(load.id, StorageClass::Function, load.ty)?;
        self.copy_memory_to(&memory, Access::default(), source, access)?;
        self.define_by_reference(load.id, memory);
        Ok(true)
    }

    /// The variable for the result of a call, if that is passed by reference.
    pub(super) fn result_by_reference(&mut self, call: &Inst) -> InstResult<Option<Pointer>> {
        if !self.is_large(call.ty) || !self.mentions(call.id).is_by_reference() {
            return Ok(None);
        }
        self.storage(call.id, StorageClass::Function, call.ty).map(Some)
    }

    /// Defines an id as a value in memory.
    pub(super) fn define_by_reference(&mut self, id: Id, place: Pointer) {
        self.frame.values.insert(id, IdDefinition::ByReference(place));
    }

    /// The variable of a value in memory.
    pub(super) fn by_reference(&self, id: Id) -> Option<&Pointer> {
        match self.frame.values.get(&id) {
            Some(IdDefinition::ByReference(place)) => Some(place),
            _ => None,
        }
    }

    /// Stores a value by copying memory, if it is in memory; returns whether it did.
    pub(super) fn store_by_reference(&mut self, target: &Pointer, value: Id, access: Access) -> InstResult<bool> {
        let Some(memory) = self.by_reference(value).filter(|_| is_plain(target)).cloned() else { return Ok(false) };
        expect_type(target.pointee(), memory.pointee())?;
        target.check_writable()?;
        self.copy_memory_to(target, access, &memory, Access::default())?;
        Ok(true)
    }

    /// Whether the operand of a store is a value in memory.
    pub(super) fn stores_by_reference(&self, store: &Inst) -> bool {
        self.sections.words.operands(store).get(1).is_some_and(|&value| self.by_reference(value).is_some())
    }

    /// Copies the returned value to the variable for the result.
    pub(super) fn return_by_reference(&mut self, place: &Pointer, value: Id) -> InstResult<()> {
        let access = Access::default();
        if self.store_null(place, value, access)? || self.store_by_reference(place, value, access)? {
            return Ok(());
        }
        let value = self.value(value)?;
        self.store(place, &value, access)
    }

    /// `OpCompositeExtract` from a value in memory.
    pub(super) fn extract_by_reference(&mut self, memory: Pointer, ty: Id, operands: &[u32]) -> InstResult<Composite> {
        let mut part = memory;
        for &index in operands {
            let pointee = part.pointee();
            // Checks that the component exists.
            self.types.component(pointee, index)?;
            let info = self.types.get(pointee)?;
            part = match &info.ty {
                SpirvType::Struct { members } => {
                    let member = members.get(index as usize).ok_or("there is no such member")?;
                    self.member(&part, member, index)?
                }
                _ => {
                    let index = self.builder.constant(index);
                    self.element(&part, index)?
                }
            };
        }
        let value = self.load(&part, Access::default())?;
        expect_type(ty, value.ty)?;
        Ok(value)
    }
}

impl Mentions {
    /// Whether a value that is in memory can stay there: all of its uses support that.
    pub(super) fn is_by_reference(self) -> bool {
        self.all > 0 && self.moves + self.parts == self.all
    }
}
