//! Steps for atomics and fences.
//!
//! Buffers are shared with other workers, so they get real atomics. Workgroup memory belongs to the worker that runs
//! the workgroup, one invocation at a time: plain operations are atomic there.

use std::sync::atomic::{AtomicU32, Ordering, fence as memory_fence};

use super::code::{AtomicStep, Step};
use super::env::Env;
use crate::guest::GuestSlice;
use crate::ir::op::{convert, float};
use crate::ir::{AtomicOp, Scope, Semantics};

/// Bits of SPIR-V's `Memory Semantics` that order memory.
const ACQUIRE: u32 = 0x2;
const RELEASE: u32 = 0x4;
const ACQUIRE_RELEASE: u32 = 0x8;
const SEQUENTIALLY_CONSISTENT: u32 = 0x10;

/// The Rust ordering for SPIR-V memory semantics.
pub(super) fn order_of(semantics: Semantics) -> Ordering {
    let bits = semantics.0;
    let acquire = bits & (ACQUIRE | ACQUIRE_RELEASE) != 0;
    let release = bits & (RELEASE | ACQUIRE_RELEASE) != 0;
    match (bits & SEQUENTIALLY_CONSISTENT != 0, acquire, release) {
        (true, ..) => Ordering::SeqCst,
        (_, true, true) => Ordering::AcqRel,
        (_, true, false) => Ordering::Acquire,
        (_, false, true) => Ordering::Release,
        (_, false, false) => Ordering::Relaxed,
    }
}

/// The ordering of a fence; `None` if it orders nothing or no other thread can observe it.
pub(super) fn fence_order(scope: Scope, semantics: Semantics) -> Option<Ordering> {
    let wide = matches!(scope, Scope::CrossDevice | Scope::Device | Scope::QueueFamily);
    let order = order_of(semantics);
    // A workgroup runs on one thread: program order is enough within it.
    (wide && order != Ordering::Relaxed).then_some(order)
}

/// The ordering for an operation that only reads: without its release part.
fn reading(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel => Ordering::Acquire,
        Ordering::Release => Ordering::Relaxed,
        other => other,
    }
}

/// The ordering for an operation that only writes: without its acquire part.
fn writing(order: Ordering) -> Ordering {
    match order {
        Ordering::AcqRel => Ordering::Release,
        Ordering::Acquire => Ordering::Relaxed,
        other => other,
    }
}

/// Fence number `extra`.
pub(super) fn fence(step: &Step, _: &mut [u64], env: &mut Env<'_>) {
    memory_fence(env.tables.fences[step.extra as usize]);
}

/// Atomic number `extra` on the buffer operand 0 at operand 1, with value operand 2 and comparator operand 3.
pub(super) fn on_buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = env.tables.atomics[step.extra as usize];
    let buffer = env.buffer(step.arg(regs, 0));
    let (value, comparator) = (step.word(regs, 2), step.word(regs, 3));
    let at = step.word(regs, 1).into();
    let old = if what.op.is_half() {
        shared_half(what, buffer, at, value)
    } else {
        buffer.atomic_u32(at).map_or(0, |word| shared_word(what, word, value, comparator))
    };
    step.set(regs, u64::from(old));
}

fn shared_half(what: AtomicStep, buffer: GuestSlice, at: u64, value: u32) -> u32 {
    let new = |old: u16| (!what.op.is_load()).then(|| modified(what.op, old.into(), value, 0) as u16);
    buffer.update_u16(at, [what.order, reading(what.order)], new).map_or(0, u32::from)
}

/// Performs an atomic on a word of guest memory. Guest memory is little-endian, as are all supported hosts; a
/// big-endian host would need a compare-exchange loop for arithmetic.
fn shared_word(what: AtomicStep, word: &AtomicU32, value: u32, comparator: u32) -> u32 {
    let order = what.order;
    match what.op {
        AtomicOp::Load => word.load(reading(order)),
        AtomicOp::Store => {
            word.store(value, writing(order));
            0
        }
        AtomicOp::Exchange => word.swap(value, order),
        AtomicOp::CompareExchange => {
            let result = word.compare_exchange(comparator, value, order, reading(what.failure));
            result.unwrap_or_else(|old| old)
        }
        AtomicOp::Add => word.fetch_add(value, order),
        AtomicOp::Sub => word.fetch_sub(value, order),
        AtomicOp::UMin => word.fetch_min(value, order),
        AtomicOp::UMax => word.fetch_max(value, order),
        AtomicOp::And => word.fetch_and(value, order),
        AtomicOp::Or => word.fetch_or(value, order),
        AtomicOp::Xor => word.fetch_xor(value, order),
        _ => {
            let update =
                word.fetch_update(order, reading(order), |old| Some(modified(what.op, old, value, comparator)));
            update.unwrap_or_else(|old| old)
        }
    }
}

/// Atomic number `extra` on a variable at operand 0, with value operand 1 and comparator operand 2.
pub(super) fn on_variable(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = env.tables.atomics[step.extra as usize];
    let (value, comparator) = (step.word(regs, 1), step.word(regs, 2));
    let at = step.word(regs, 0);
    // A half float is modified in place inside the aligned word that contains it.
    let (around, place, mask) = if what.op.is_half() { (at & !2, (at & 2) * 8, 0xffff) } else { (at, 0, u32::MAX) };
    let word = what.variable.and_then(|variable| env.variable_word(variable, around));
    let old = word.map_or(0, |word| {
        let old = *word >> place & mask;
        *word = *word & !(mask << place) | (modified(what.op, old, value, comparator) & mask) << place;
        old
    });
    step.set(regs, u64::from(old));
}

/// The new value of the word.
fn modified(op: AtomicOp, old: u32, value: u32, comparator: u32) -> u32 {
    match op {
        AtomicOp::Load | AtomicOp::HalfLoad => old,
        AtomicOp::Store | AtomicOp::Exchange | AtomicOp::HalfStore | AtomicOp::HalfExchange => value,
        AtomicOp::CompareExchange if old == comparator => value,
        AtomicOp::CompareExchange => old,
        AtomicOp::Add => old.wrapping_add(value),
        AtomicOp::Sub => old.wrapping_sub(value),
        AtomicOp::SMin => old.cast_signed().min(value.cast_signed()).cast_unsigned(),
        AtomicOp::UMin => old.min(value),
        AtomicOp::SMax => old.cast_signed().max(value.cast_signed()).cast_unsigned(),
        AtomicOp::UMax => old.max(value),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::FAdd => (f32::from_bits(old) + f32::from_bits(value)).to_bits(),
        AtomicOp::FMin => float::fmin(f32::from_bits(old), f32::from_bits(value)).to_bits(),
        AtomicOp::FMax => float::fmax(f32::from_bits(old), f32::from_bits(value)).to_bits(),
        AtomicOp::FAddHalf => convert::round_half(f32::from_bits(old) + f32::from_bits(value)).to_bits(),
        AtomicOp::HalfAdd | AtomicOp::HalfMin | AtomicOp::HalfMax => {
            let [old, value] = [old, value].map(convert::half_from_bits);
            convert::half_bits(match op {
                AtomicOp::HalfAdd => old + value,
                AtomicOp::HalfMin => float::fmin(old, value),
                _ => float::fmax(old, value),
            })
        }
    }
}
