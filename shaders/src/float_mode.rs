//! Rounding to nearest with denormals, whatever the floating-point mode of the caller's thread.
//!
//! A C program may have set its thread to flush denormals or to round differently. Machine code sets the mode itself
//! (`back/x86/encode/float_mode.rs`). Rust code that computes for a kernel, the interpreter and constant folding, runs
//! inside [`with_default`].
//!
//! # Safety
//!
//! The two instructions read and write MXCSR, the control and status register for floats. Rust code may rely on the
//! default mode, so setting it is always sound. The previous mode is restored only for the caller, which had set it.

/// Runs `work` in the default floating-point mode, then restores the caller's mode.
pub(crate) fn with_default<R>(work: impl FnOnce() -> R) -> R {
    let found = machine::read();
    if found & !machine::FLAGS == machine::DEFAULT { work() } else { in_other_mode(found, work) }
}

#[cold]
#[inline(never)]
fn in_other_mode<R>(found: u32, work: impl FnOnce() -> R) -> R {
    struct Restore(u32);
    impl Drop for Restore {
        fn drop(&mut self) {
            machine::write(self.0);
        }
    }
    let _restore = Restore(found);
    machine::write(machine::DEFAULT);
    work()
}

#[cfg(target_arch = "x86_64")]
mod machine {
    use std::arch::asm;

    /// All exceptions masked, nothing else.
    pub(super) const DEFAULT: u32 = 0x1f80;
    /// Exception flags.
    pub(super) const FLAGS: u32 = 0x3f;

    pub(super) fn read() -> u32 {
        let mut word = 0u32;
        // SAFETY: the instruction stores the control word in the variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: u32) {
        // SAFETY: the word is the default or was read before, so no reserved bit is set.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod machine {
    //! The modes of other machines are not managed.

    pub(super) const DEFAULT: u32 = 0;
    pub(super) const FLAGS: u32 = 0;

    pub(super) fn read() -> u32 {
        DEFAULT
    }

    pub(super) fn write(_: u32) {}
}
