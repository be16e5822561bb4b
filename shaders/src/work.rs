//! Budget for compile work, counted in visited blocks, instructions, block arguments and live values rather than
//! seconds, so that compilation of a kernel is given up at the same point on every machine.
//!
//! Passes with superlinear cost count their work themselves; [`opt::optimize`](crate::opt::optimize) and
//! [`compile`](crate::compile) count the others by the kernel's size. Register allocation, which is not ours, is
//! counted before it starts. A pass that finds the budget spent may stop early
//! if it leaves a valid kernel; the pipeline checks after each step and falls back to the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Work for one kernel and one instruction set, at most: a hundred times what large kernels of games and models need. A
/// step takes 5 to 50 ns, so that the worst case is some seconds; passes that are linear in the kernel add to that at
/// most what the largest kernel takes ([`compile`](crate::compile) limits its instructions).
pub const MAX_WORK: u64 = 1 << 27;

/// A work counter, shared by all forms of a kernel in the pipeline.
#[derive(Clone, Debug, Default)]
pub struct Work {
    done: Arc<AtomicU64>,
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compiling it takes more than {MAX_WORK} steps")]
pub struct Spent;

impl Work {
    /// Counts `count` visited blocks or instructions.
    pub fn visit(&self, count: usize) {
        self.done.fetch_add(count as u64, Relaxed);
    }

    /// Work so far.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Whether compilation is to be given up.
    pub fn is_spent(&self) -> bool {
        self.done() > MAX_WORK
    }

    /// An error if compilation is to be given up.
    pub fn check(&self) -> Result<(), Spent> {
        if self.is_spent() { Err(Spent) } else { Ok(()) }
    }
}
