//! Work at the end of the process: many programs end without destroying their devices.
//!
//! # Safety
//!
//! The functions of the C library are called as its manual says. A handler of `atexit` that a library registers is
//! called when the library is unloaded, or when the process ends; the loader unloads a driver with the last instance.
//! So the library is pinned first, and the handler runs at the end of the process only.

use std::ffi::{c_char, c_int, c_void};

use spelter_driver::symbol;
use spelter_locks::Computed;

unsafe extern "C" {
    fn atexit(handler: extern "C" fn()) -> c_int;
    fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
    #[cfg(target_env = "gnu")]
    fn exit(status: c_int) -> !;
}

/// `RTLD_LAZY`, `RTLD_NOLOAD` and `RTLD_NODELETE` of `<dlfcn.h>`.
const PIN: c_int = 0x1 | 0x4 | 0x1000;

static HANDLER: Computed<fn()> = Computed::new();

extern "C" fn at_end() {
    if let Some(handler) = HANDLER.get() {
        // A panic must not leave a function of C.
        let _ = std::panic::catch_unwind(handler);
    }
}

/// Calls a function when the process ends by `exit` or by a return from `main`; only the first one that is passed.
pub(crate) fn on_exit(handler: fn()) {
    if HANDLER.set(handler).is_ok() {
        pin();
        // SAFETY: the handler is a function of this library, which stays loaded. A failure means that it is not called.
        unsafe { atexit(at_end) };
    }
}

/// Keeps this library loaded. In a program that is linked with the driver there is nothing to do.
fn pin() {
    if let Some(own) = symbol::of((&raw const HANDLER).addr()) {
        // SAFETY: the name under which this library is loaded. `RTLD_NOLOAD` loads nothing; the handle is kept.
        unsafe { dlopen(own.file.as_ptr(), PIN) };
    }
}

/// Changes the exit status, in a handler of [`on_exit`]. The handlers that are left run after it, and streams are
/// flushed: the C library of GNU takes the status of the last call of `exit`, also from handlers. Others do not, and
/// keep the status.
pub(crate) fn change_status(status: u8) {
    #[cfg(target_env = "gnu")]
    // SAFETY: a call in a handler continues with the handlers that are left (`__run_exit_handlers` of glibc).
    unsafe {
        exit(status.into())
    };
    #[cfg(not(target_env = "gnu"))]
    let _ = status;
}
