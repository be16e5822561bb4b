//! Promotable words of private variables.

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;
use foldhash::fast::RandomState;

use super::variable_of;
use crate::ir::{Block, InstData, Kernel, Place, Type, Value, ValueDef, Variable, VariableSpace};

/// A word that is promoted to SSA values.
#[derive(Debug, Default)]
pub(super) struct PromotedWord {
    /// Blocks with a store to the word, in layout order.
    pub(super) stored_in: Vec<Block>,
    /// Whether a block loads the word before it stores to it, so that the value comes from a predecessor.
    pub(super) is_live_in: bool,
    /// Number of loads and stores as `f32`, minus the number of those as `i32`.
    floats: i32,
    /// The word stays in memory: it would need too many parameters.
    pub(super) is_kept: bool,
}

impl PromotedWord {
    /// The type of its values: the more frequent one.
    pub(super) fn ty(&self) -> Type {
        if self.floats > 0 { Type::F32 } else { Type::I32 }
    }
}

/// The promotion of an access to a private variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promotion {
    /// The access stays.
    Memory,
    /// Accesses the promoted word with this number.
    Word(usize),
    /// Has no effect: out of bounds, or nothing loads from the variable.
    Dead,
}

/// The promotable words of all private variables.
#[derive(Debug, Default)]
pub(super) struct PromotableWords {
    pub(super) all: Vec<PromotedWord>,
    numbers: HashMap<(Variable, u32), usize, RandomState>,
    usages: SecondaryMap<Variable, Usage>,
}

/// Accesses to one variable.
#[derive(Clone, Debug, Default)]
struct Usage {
    /// Lower bound of the byte offsets of accesses at unknown offsets; `None` if there are none.
    unknown_from: Option<u32>,
    /// Whether anything loads from the variable.
    is_read: bool,
}

impl PromotableWords {
    /// Collects the words, and where they are accessed.
    pub(super) fn find(kernel: &Kernel) -> Self {
        let mut words = Self { usages: usages(kernel), ..Self::default() };
        // The last block with a store to each word.
        let mut stored: Vec<Option<Block>> = Vec::new();
        for &block in &kernel.layout {
            for &inst in &kernel.blocks[block].insts {
                let data = &kernel.insts[inst];
                let Some((number, is_store, ty)) = words.access(kernel, data) else { continue };
                stored.resize(words.all.len(), None);
                let word = &mut words.all[number];
                word.floats += if ty == Type::F32 { 1 } else { -1 };
                if is_store && stored[number] != Some(block) {
                    stored[number] = Some(block);
                    word.stored_in.push(block);
                }
                word.is_live_in |= !is_store && stored[number] != Some(block);
            }
        }
        words
    }

    /// The number of the word that an instruction accesses, whether it stores, and the type.
    fn access(&mut self, kernel: &Kernel, data: &InstData) -> Option<(usize, bool, Type)> {
        let (is_store, ty) = match data {
            InstData::Load { ty, .. } => (false, *ty),
            InstData::Store { value, .. } => (true, kernel.ty(*value)),
            _ => return None,
        };
        let (variable, offset) = self.word_offset(kernel, data)?;
        let next = self.all.len();
        let number = *self.numbers.entry((variable, offset)).or_insert(next);
        if number == next {
            self.all.push(PromotedWord::default());
        }
        Some((number, is_store, ty))
    }

    /// The variable and the byte offset of a promotable word.
    fn word_offset(&self, kernel: &Kernel, data: &InstData) -> Option<(Variable, u32)> {
        let (variable, offset) = private_address(kernel, data)?;
        let offset = kernel.constant(offset)? as u32;
        let known = self.usages[variable].unknown_from.is_none_or(|from| offset < from);
        let inside = offset.is_multiple_of(4) && offset < kernel.variables[variable].bytes;
        (known && inside && self.usages[variable].is_read).then_some((variable, offset))
    }

    /// The promotion of an instruction; `None` if it does not access a private variable.
    pub(super) fn promotion(&self, kernel: &Kernel, data: &InstData) -> Option<Promotion> {
        let (variable, offset) = private_address(kernel, data)?;
        if is_fixed(data) {
            return Some(Promotion::Memory);
        }
        if !self.usages[variable].is_read {
            return Some(Promotion::Dead);
        }
        if let Some(key) = self.word_offset(kernel, data)
            && let Some(&number) = self.numbers.get(&key)
        {
            return Some(if self.all[number].is_kept { Promotion::Memory } else { Promotion::Word(number) });
        }
        let last = kernel.variables[variable].bytes.checked_sub(4);
        let outside = kernel.constant(offset).is_some_and(|offset| last.is_none_or(|last| offset > u64::from(last)));
        Some(if outside { Promotion::Dead } else { Promotion::Memory })
    }
}

/// Variable and byte offset of an access to a private variable.
fn private_address(kernel: &Kernel, data: &InstData) -> Option<(Variable, Value)> {
    let (InstData::Load { place, .. } | InstData::Store { place, .. } | InstData::Atomic { place, .. }) = data else {
        return None;
    };
    match *place {
        Place::Variable { variable, offset } if kernel.variables[variable].space == VariableSpace::Private => {
            Some((variable, offset))
        }
        _ => None,
    }
}

/// Whether the access must stay: volatile and atomic ones.
fn is_fixed(data: &InstData) -> bool {
    match data {
        InstData::Load { access, .. } | InstData::Store { access, .. } => access.volatile,
        _ => true,
    }
}

fn usages(kernel: &Kernel) -> SecondaryMap<Variable, Usage> {
    let mut usages: SecondaryMap<Variable, Usage> = SecondaryMap::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let data = &kernel.insts[inst];
        let Some((_, offset)) = private_address(kernel, data) else { continue };
        let Some(variable) = variable_of(data) else { continue };
        let usage = &mut usages[variable];
        usage.is_read |= is_fixed(data) || !matches!(data, InstData::Store { .. });
        let unknown_from = match kernel.constant(offset) {
            _ if is_fixed(data) => 0,
            Some(offset) if offset.is_multiple_of(4) => continue,
            Some(offset) => offset as u32 & !3,
            None => least_offset(kernel, offset) & !3,
        };
        usage.unknown_from = Some(usage.unknown_from.map_or(unknown_from, |from| from.min(unknown_from)));
    }
    usages
}

/// Lower bound of a byte offset: an array element is never before its array.
fn least_offset(kernel: &Kernel, mut offset: Value) -> u32 {
    // Follows 16 levels of nested arrays and structures.
    for _ in 0..16 {
        if let Some(bits) = kernel.constant(offset) {
            return bits as u32;
        }
        match kernel.values[offset] {
            ValueDef::Result { inst, .. } => match kernel.insts[inst] {
                InstData::Element { base, .. } => offset = base,
                _ => return 0,
            },
            ValueDef::Param { .. } => return 0,
        }
    }
    0
}
