//! Floats rounded to nearest, with denormals, whatever mode the caller's thread is in.
//!
//! A program in C may have told its thread to flush denormals or to round otherwise. Machine code sees to the mode itself
//! (`back/x86/encode/float_mode.rs`); Rust code that computes for a kernel, be it the interpreter or the folding of
//! constants, runs in here.
//!
//! # Safety
//!
//! The two instructions read and write the processor's control word for floats. Rust code may rely on its default, so
//! setting that is always right; the word that was found is restored only for the caller, who had set it.

/// Runs `work` with floats as Rust expects them, then restores the caller's mode.
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
    /// Exceptions that there were.
    pub(super) const FLAGS: u32 = 0x3f;

    pub(super) fn read() -> u32 {
        let mut word = 0u32;
        // SAFETY: the instruction stores the control word in the variable.
        unsafe { asm!("stmxcsr [{}]", in(reg) &raw mut word, options(nostack, preserves_flags)) };
        word
    }

    pub(super) fn write(word: u32) {
        // SAFETY: the word is the default or was read before, so that it has no bits that the processor refuses.
        unsafe { asm!("ldmxcsr [{}]", in(reg) &raw const word, options(nostack, preserves_flags)) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod machine {
    //! Other machines' modes are not looked at.

    pub(super) const DEFAULT: u32 = 0;
    pub(super) const FLAGS: u32 = 0;

    pub(super) fn read() -> u32 {
        DEFAULT
    }

    pub(super) fn write(_: u32) {}
}
