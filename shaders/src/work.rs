//! How much work went into a kernel: counted in blocks and instructions that passes look at, not in seconds, so that the same kernel
//! is given up at the same place on every machine.
//!
//! Passes whose work grows faster than the kernel count it where it is done; [`opt::optimize`](crate::opt::optimize) and
//! [`compile`](crate::compile) count the others by the kernel's size. Whoever finds the budget spent may stop early, as long as what it leaves
//! is a kernel; the pipeline asks after each step and hands the kernel to the interpreter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Most work for one kernel and one instruction set: some seconds at the worst, a hundred times what large kernels of games and models
/// need.
pub const MAX_WORK: u64 = 1 << 27;

/// A count of work, which the forms of a kernel share on its way through the pipeline.
#[derive(Clone, Debug, Default)]
pub struct Work {
    done: Arc<AtomicU64>,
}

/// The budget is spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("compiling it takes more than {MAX_WORK} steps")]
pub struct Spent;

impl Work {
    /// So many blocks or instructions are looked at.
    pub fn visit(&self, count: usize) {
        self.done.fetch_add(count as u64, Relaxed);
    }

    /// How many were.
    pub fn done(&self) -> u64 {
        self.done.load(Relaxed)
    }

    /// Whether it is time to give up.
    pub fn is_spent(&self) -> bool {
        self.done() > MAX_WORK
    }

    /// An error if it is time to give up.
    pub fn check(&self) -> Result<(), Spent> {
        if self.is_spent() { Err(Spent) } else { Ok(()) }
    }
}
