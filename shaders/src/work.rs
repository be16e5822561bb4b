//! Budget for compile work, counted in visited blocks, instructions, block arguments and live values rather than
//! seconds, so that compilation of a kernel is given up at the same point on every machine.
//!
//! Passes with superlinear cost count their work themselves; [`opt::optimize`](crate::opt::optimize) and
//! [`compile`](crate::compile) count the others by the kernel's size. Register allocation, which is not ours, is
//! counted before it starts. A pass that finds the budget spent may stop early
//! if it leaves a valid kernel; the pipeline checks after each step and falls back to the interpreter.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Work for one kernel and one instruction set, at most: a hundred times what large kernels of games and models need. A
/// step takes 5 to 50 ns, so that the worst case is some seconds; passes that are linear in the kernel add to that at
/// most what the largest kernel takes ([`compile`](crate::compile) limits its instructions).
pub const MAX_WORK: u64 = 1 << 27;

/// A work counter, shared by all forms of a kernel in the pipeline.
#[derive(Clone, Default)]
pub struct Work {
    done: Arc<AtomicU64>,
    is_cancelled: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
}

/// Compilation is to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// The budget is spent.
    #[error("compiling it takes more than {MAX_WORK} steps")]
    Steps,
    /// The caller does not want the code any more.
    #[error("compiling it was cancelled")]
    Cancelled,
}

impl Work {
    /// A counter of compilations that a caller may cancel: once `is_cancelled` is true, it must stay so.
    pub fn cancelled_by(is_cancelled: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { is_cancelled: Some(Arc::new(is_cancelled)), ..Self::default() }
    }

    /// A counter at 0, cancelled by the same caller.
    pub fn anew(&self) -> Self {
        Self { is_cancelled: self.is_cancelled.clone(), ..Self::default() }
    }

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
        self.check().is_err()
    }

    /// An error if compilation is to be given up.
    pub fn check(&self) -> Result<(), Spent> {
        if self.done() > MAX_WORK {
            Err(Spent::Steps)
        } else if self.is_cancelled.as_ref().is_some_and(|is_cancelled| is_cancelled()) {
            Err(Spent::Cancelled)
        } else {
            Ok(())
        }
    }
}

impl fmt::Debug for Work {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Work").field("done", &self.done()).finish_non_exhaustive()
    }
}
