//! Steps for addresses, loads and stores. An out-of-bounds load yields 0, an out-of-bounds store is dropped.

use super::code::{Step, StepFn};
use super::env::Env;
use crate::abi::{self, MAX_PUSH_BYTES};
use crate::ir::{self, Place, Width};

/// A register value that names no buffer.
const NO_BUFFER: u64 = u64::MAX;

/// Copies operand 0: block arguments.
pub(super) fn copy(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    step.set(regs, step.arg(regs, 0));
}

/// Counts iterations of a loop: resets the counter if `extra` is not 0, else increments operand 0.
pub(super) fn count(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    step.set(regs, if step.extra == 0 { step.arg(regs, 0) + 1 } else { 0 });
}

/// Operand 1 if operand 0 is true, else operand 2.
pub(super) fn select(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    let (then, otherwise) = (step.arg(regs, 1), step.arg(regs, 2));
    step.set(regs, if step.arg(regs, 0) != 0 { then } else { otherwise });
}

/// The built-in number `extra`.
pub(super) fn builtin(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    step.set(regs, u64::from(env.builtins[step.extra as usize]));
}

/// Operand 0 plus operand 1 times `extra`.
pub(super) fn element(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    step.set(regs, u64::from(ir::element(step.word(regs, 0), step.word(regs, 1), step.extra)));
}

/// Element operand 0 of the binding `extra`.
pub(super) fn buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let binding = env.tables.bindings[step.extra as usize];
    let index = step.word(regs, 0);
    step.set(regs, if index < binding.count { binding.first + u64::from(index) } else { NO_BUFFER });
}

/// Bytes of the buffer operand 0.
pub(super) fn buffer_size(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let bytes = env.buffer(step.arg(regs, 0)).len();
    step.set(regs, bytes.min(u64::from(u32::MAX)));
}

/// The index of the buffer operand 0.
pub(super) fn buffer_number(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    step.set(regs, u64::from((step.arg(regs, 0) as u32).wrapping_add(1)));
}

/// The buffer with the index operand 0.
pub(super) fn buffer_of(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    step.set(regs, step.word(regs, 0).checked_sub(1).map_or(NO_BUFFER, u64::from));
}

/// The address range of device memory that contains the address (operands 0 and 1, low and high word).
pub(super) fn buffer_at(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let address = u64::from(step.word(regs, 0)) | u64::from(step.word(regs, 1)) << 32;
    step.set(regs, abi::address_range_at(env.buffers, env.tables.descriptors, address).map_or(NO_BUFFER, u64::from));
}

/// Byte offset of the address (operands 1 and 2) in the buffer operand 0.
pub(super) fn buffer_offset(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let address = u64::from(step.word(regs, 1)) | u64::from(step.word(regs, 2)) << 32;
    let start = env.buffer(step.arg(regs, 0)).address() as u64;
    let bytes = address.checked_sub(start).and_then(|bytes| u32::try_from(bytes).ok());
    step.set(regs, u64::from(bytes.unwrap_or(u32::MAX)));
}

/// Whether the offset operand 1 is less than the size of the buffer operand 0.
pub(super) fn reaches(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let bytes = env.buffer(step.arg(regs, 0)).len();
    step.set(regs, u64::from(u64::from(step.word(regs, 1)) < bytes));
}

/// The function that loads from a kind of place. Operands: the place's; `extra`: the variable.
pub(super) fn load_from(place: &Place, width: Width) -> StepFn {
    match (place, width) {
        (Place::Buffer { .. }, Width::Word) => load_buffer,
        (Place::Buffer { .. }, Width::Half) => {
            |step, regs, env| step.set(regs, env.buffer(step.arg(regs, 0)).load_u16(step.word(regs, 1).into()).into())
        }
        (Place::Buffer { .. }, Width::Byte) => {
            |step, regs, env| step.set(regs, env.buffer(step.arg(regs, 0)).load_u8(step.word(regs, 1).into()).into())
        }
        (Place::Push { .. }, Width::Word) => load_push::<4>,
        (Place::Push { .. }, Width::Half) => load_push::<2>,
        (Place::Push { .. }, Width::Byte) => load_push::<1>,
        (Place::Variable { .. }, Width::Word) => load_variable,
        (Place::Variable { .. }, Width::Half) => load_part::<2>,
        (Place::Variable { .. }, Width::Byte) => load_part::<1>,
    }
}

/// The function that stores to a kind of place. Operands: the place's, then the value; `extra`: the variable.
pub(super) fn store_to(place: &Place, width: Width) -> StepFn {
    match (place, width) {
        (Place::Buffer { .. }, Width::Word) => store_buffer,
        (Place::Buffer { .. }, Width::Half) => |step, regs, env| {
            env.buffer(step.arg(regs, 0)).store_u16(step.word(regs, 1).into(), step.arg(regs, 2) as u16);
        },
        (Place::Buffer { .. }, Width::Byte) => |step, regs, env| {
            env.buffer(step.arg(regs, 0)).store_u8(step.word(regs, 1).into(), step.arg(regs, 2) as u8);
        },
        (Place::Push { .. }, _) => nothing,
        (Place::Variable { .. }, Width::Word) => store_variable,
        (Place::Variable { .. }, Width::Half) => store_part::<2>,
        (Place::Variable { .. }, Width::Byte) => store_part::<1>,
    }
}

/// Push constants are read-only.
fn nothing(_: &Step, _: &mut [u64], _: &mut Env<'_>) {}

fn load_buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let word = env.buffer(step.arg(regs, 0)).load_u32(step.word(regs, 1).into());
    step.set(regs, u64::from(word));
}

fn store_buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    env.buffer(step.arg(regs, 0)).store_u32(step.word(regs, 1).into(), step.word(regs, 2));
}

fn load_push<const BYTES: usize>(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let offset = step.word(regs, 0) as usize;
    let bytes: Option<&[u8; BYTES]> = (offset < MAX_PUSH_BYTES).then(|| env.push[offset..].first_chunk()).flatten();
    let number = |bytes: &[u8; BYTES]| bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte));
    step.set(regs, bytes.map_or(0, number));
}

/// Sub-word load from a variable: byte by byte, since it may cross a word boundary.
fn load_part<const BYTES: u32>(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let variable = env.tables.variables[step.extra as usize];
    let offset = step.word(regs, 0);
    let mut byte = |at: u32| {
        let at = offset.checked_add(at)?;
        Some(u64::from(env.read_variable(variable, at & !3)? >> (8 * (at % 4)) & 0xff))
    };
    let number = (0..BYTES).rev().try_fold(0, |number, at| Some(number << 8 | byte(at)?));
    step.set(regs, number.unwrap_or(0));
}

/// Sub-word store to a variable; the other bytes of the word are kept.
fn store_part<const BYTES: u32>(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let variable = env.tables.variables[step.extra as usize];
    let (offset, value) = (step.word(regs, 0), step.word(regs, 1));
    if offset.checked_add(BYTES).is_none_or(|end| end > variable.bytes) {
        return;
    }
    for byte in 0..BYTES {
        let at = offset + byte;
        if let Some(word) = env.variable_word(variable, at & !3) {
            let shift = 8 * (at % 4);
            *word = *word & !(0xff << shift) | (value >> (8 * byte) & 0xff) << shift;
        }
    }
}

fn load_variable(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let variable = env.tables.variables[step.extra as usize];
    let offset = step.word(regs, 0);
    let word = match env.read_variable(variable, offset) {
        Some(word) => word,
        None if !offset.is_multiple_of(4) => load_unaligned(env, step.extra, offset),
        None => 0,
    };
    step.set(regs, u64::from(word));
}

fn store_variable(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let variable = env.tables.variables[step.extra as usize];
    let (offset, value) = (step.word(regs, 0), step.word(regs, 1));
    match env.variable_word(variable, offset) {
        Some(word) => *word = value,
        None if !offset.is_multiple_of(4) => store_unaligned(env, step.extra, offset, value),
        None => {}
    }
}

/// The two words that an unaligned word overlaps, as one little-endian number; `None` unless all four bytes are in
/// bounds.
fn around(env: &mut Env<'_>, variable: u32, offset: u32) -> Option<u64> {
    let variable = env.tables.variables[variable as usize];
    let low = env.read_variable(variable, offset & !3)?;
    let high = env.read_variable(variable, (offset & !3).checked_add(4)?)?;
    Some(u64::from(low) | u64::from(high) << 32)
}

#[cold]
fn load_unaligned(env: &mut Env<'_>, variable: u32, offset: u32) -> u32 {
    around(env, variable, offset).map_or(0, |both| (both >> (8 * (offset % 4))) as u32)
}

#[cold]
fn store_unaligned(env: &mut Env<'_>, variable: u32, offset: u32, value: u32) {
    let Some(both) = around(env, variable, offset) else { return };
    let shift = 8 * (offset % 4);
    let both = both & !(u64::from(u32::MAX) << shift) | u64::from(value) << shift;
    let variable = env.tables.variables[variable as usize];
    for (at, half) in [(offset & !3, both as u32), ((offset & !3) + 4, (both >> 32) as u32)] {
        if let Some(word) = env.variable_word(variable, at) {
            *word = half;
        }
    }
}
