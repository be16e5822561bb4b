//! Which words of private variables can be values.

use std::collections::HashMap;

use cranelift_entity::SecondaryMap;
use foldhash::fast::RandomState;

use super::variable_of;
use crate::ir::{Block, InstData, Kernel, Place, Type, Value, ValueDef, Variable, VariableSpace};

/// One word that becomes values.
#[derive(Debug, Default)]
pub(super) struct Word {
    /// Blocks with a store, in the layout's order.
    pub(super) stored_in: Vec<Block>,
    /// Whether a block loads the word before it stores to it, so that the value comes from elsewhere.
    pub(super) comes_in: bool,
    /// Loads and stores as `f32`, less those as `i32`.
    floats: i32,
    /// The word stays in memory: there would be too many parameters.
    pub(super) stays: bool,
}

impl Word {
    /// The type that its values have.
    pub(super) fn ty(&self) -> Type {
        if self.floats > 0 { Type::F32 } else { Type::I32 }
    }
}

/// What becomes of an access to a private variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It stays.
    Memory,
    /// It is one of the word of that number.
    Word(usize),
    /// It is out of bounds, or nothing ever loads from the variable.
    Nothing,
}

/// The words that become values.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) all: Vec<Word>,
    numbers: HashMap<(Variable, u32), usize, RandomState>,
    limits: SecondaryMap<Variable, Limit>,
}

/// What is known about a variable.
#[derive(Clone, Debug, Default)]
struct Limit {
    /// Accesses at unknown offsets begin here or after, in bytes; `None` if there are none.
    unknown_from: Option<u32>,
    is_read: bool,
}

impl Words {
    /// Finds the words.
    pub(super) fn find(kernel: &Kernel) -> Self {
        let mut words = Self { limits: limits(kernel), ..Self::default() };
        // The last block that stored to the word.
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
                word.comes_in |= !is_store && stored[number] != Some(block);
            }
        }
        words
    }

    /// The word that an instruction accesses, whether it stores, and as what.
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
            self.all.push(Word::default());
        }
        Some((number, is_store, ty))
    }

    /// The variable and the offset of a word in it that can be a value.
    fn word_offset(&self, kernel: &Kernel, data: &InstData) -> Option<(Variable, u32)> {
        let (variable, offset) = private_place(kernel, data)?;
        let offset = kernel.constant(offset)? as u32;
        let known = self.limits[variable].unknown_from.is_none_or(|from| offset < from);
        let inside = offset.is_multiple_of(4) && offset < kernel.variables[variable].bytes;
        (known && inside && self.limits[variable].is_read).then_some((variable, offset))
    }

    /// What becomes of an instruction; `None` if it is no access to a private variable.
    pub(super) fn fate(&self, kernel: &Kernel, data: &InstData) -> Option<Fate> {
        let (variable, offset) = private_place(kernel, data)?;
        if is_fixed(data) {
            return Some(Fate::Memory);
        }
        if !self.limits[variable].is_read {
            return Some(Fate::Nothing);
        }
        if let Some(key) = self.word_offset(kernel, data)
            && let Some(&number) = self.numbers.get(&key)
        {
            return Some(if self.all[number].stays { Fate::Memory } else { Fate::Word(number) });
        }
        let last = kernel.variables[variable].bytes.checked_sub(4);
        let outside = kernel.constant(offset).is_some_and(|offset| last.is_none_or(|last| offset > u64::from(last)));
        Some(if outside { Fate::Nothing } else { Fate::Memory })
    }
}

/// Place of an access to a private variable.
fn private_place(kernel: &Kernel, data: &InstData) -> Option<(Variable, Value)> {
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

/// Accesses that stay accesses.
fn is_fixed(data: &InstData) -> bool {
    match data {
        InstData::Load { access, .. } | InstData::Store { access, .. } => access.volatile,
        _ => true,
    }
}

fn limits(kernel: &Kernel) -> SecondaryMap<Variable, Limit> {
    let mut limits: SecondaryMap<Variable, Limit> = SecondaryMap::new();
    for &inst in kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts) {
        let data = &kernel.insts[inst];
        let Some((_, offset)) = private_place(kernel, data) else { continue };
        let Some(variable) = variable_of(data) else { continue };
        let limit = &mut limits[variable];
        limit.is_read |= is_fixed(data) || !matches!(data, InstData::Store { .. });
        let unknown_from = match kernel.constant(offset) {
            _ if is_fixed(data) => 0,
            Some(offset) if offset.is_multiple_of(4) => continue,
            Some(offset) => offset as u32 & !3,
            None => least_offset(kernel, offset) & !3,
        };
        limit.unknown_from = Some(limit.unknown_from.map_or(unknown_from, |from| from.min(unknown_from)));
    }
    limits
}

/// A bound from below: elements never lie before their array.
fn least_offset(kernel: &Kernel, mut offset: Value) -> u32 {
    // Arrays inside arrays inside structures: deeper ones are given up.
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
