//! Steps for results wider than a register of the IR: clocks, messages, and 64-bit atomics, which access their two
//! words one after the other under a global lock.
//!
//! Guest memory is accessed as 32-bit words only (ADR 2), so 32-bit accesses of other threads can observe a 64-bit
//! atomic between its two words.

use spelter_locks::{Mutex, PerProcess};

use super::code::{AtomicStep, Step};
use super::env::Env;
use crate::ir::AtomicOp;

/// Held while an atomic accesses its two words.
static WORD_PAIR_LOCK: PerProcess<Mutex<()>> = PerProcess::new(Mutex::default);

/// Atomic number `extra` on the buffer operand 0 at operand 1; value in operands 2 and 4, comparator in 3 and 5.
pub(super) fn on_buffer(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = env.tables.atomics[step.extra as usize];
    let buffer = env.buffer(step.arg(regs, 0));
    let (value, comparator) = (pair(step, regs, [2, 4]), pair(step, regs, [3, 5]));
    let at = u64::from(step.word(regs, 1));
    let words = (buffer.atomic_u32(at), buffer.atomic_u32(at + 4));
    let old = match words {
        (Some(low), Some(high)) => {
            let guard = WORD_PAIR_LOCK.get().lock();
            let order = std::sync::atomic::Ordering::SeqCst;
            let old = u64::from(low.load(order)) | u64::from(high.load(order)) << 32;
            let new = modified(what, old, value, comparator);
            if what.op != AtomicOp::Load {
                low.store(new as u32, order);
                high.store((new >> 32) as u32, order);
            }
            drop(guard);
            old
        }
        _ => 0,
    };
    step.set(regs, old);
}

/// Atomic number `extra` on a variable at operand 0; value in operands 1 and 3, comparator in 2 and 4.
pub(super) fn on_variable(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let what = env.tables.atomics[step.extra as usize];
    let (value, comparator) = (pair(step, regs, [1, 3]), pair(step, regs, [2, 4]));
    let Some(variable) = what.variable else { return };
    let at = step.word(regs, 0);
    let words = (env.read_variable(variable, at), at.checked_add(4).and_then(|at| env.read_variable(variable, at)));
    let old = match words {
        (Some(low), Some(high)) => {
            let old = u64::from(low) | u64::from(high) << 32;
            let new = modified(what, old, value, comparator);
            for (at, word) in [(at, new as u32), (at + 4, (new >> 32) as u32)] {
                if let Some(place) = env.variable_word(variable, at) {
                    *place = word;
                }
            }
            old
        }
        _ => 0,
    };
    step.set(regs, old);
}

/// The time.
pub(super) fn clock(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    step.set(regs, (env.host.clock)());
}

/// Message number `extra` of those that are printed.
pub(super) fn print(step: &Step, regs: &mut [u64], env: &mut Env<'_>) {
    let (message, words) = &env.tables.prints[step.extra as usize];
    let words: smallvec::SmallVec<[u32; 16]> = words.iter().map(|&slot| regs[slot as usize] as u32).collect();
    env.host.print(&env.tables.messages, *message, &words);
}

/// The high word of the result of a 64-bit atomic; its register holds all 64 bits.
pub(super) fn high_word(step: &Step, regs: &mut [u64], _: &mut Env<'_>) {
    step.set(regs, step.arg(regs, 0) >> 32);
}

fn pair(step: &Step, regs: &[u64], operands: [usize; 2]) -> u64 {
    let [low, high] = operands.map(|operand| u64::from(step.word(regs, operand)));
    low | high << 32
}

/// The new value of the two words.
fn modified(what: AtomicStep, old: u64, value: u64, comparator: u64) -> u64 {
    let signed = |bits: u64| bits.cast_signed();
    let (old_float, float) = (f64::from_bits(old), f64::from_bits(value));
    match what.op {
        AtomicOp::Load => old,
        AtomicOp::Store | AtomicOp::Exchange => value,
        AtomicOp::CompareExchange if old == comparator => value,
        AtomicOp::CompareExchange => old,
        AtomicOp::Add => old.wrapping_add(value),
        AtomicOp::Sub => old.wrapping_sub(value),
        AtomicOp::SMin => signed(old).min(signed(value)).cast_unsigned(),
        AtomicOp::UMin => old.min(value),
        AtomicOp::SMax => signed(old).max(signed(value)).cast_unsigned(),
        AtomicOp::UMax => old.max(value),
        AtomicOp::And => old & value,
        AtomicOp::Or => old | value,
        AtomicOp::Xor => old ^ value,
        AtomicOp::FAdd => number(old_float + float),
        AtomicOp::FMin if float < old_float || old_float.is_nan() => value,
        AtomicOp::FMax if float > old_float || old_float.is_nan() => value,
        // `FMin` and `FMax` keep the old value; the remaining operations have no 64-bit form.
        _ => old,
    }
}

/// The bits of a double; every NaN is canonicalized, as in `ir/op/double.rs`.
fn number(a: f64) -> u64 {
    if a.is_nan() { 0x7ff8_0000_0000_0000 } else { a.to_bits() }
}
