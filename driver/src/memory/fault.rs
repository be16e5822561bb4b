//! The signals that an access to a closed page of a host's view raises (`host_view.rs`).
//!
//! The page is opened, and if it must be closed again, the instruction runs alone, with the processor's trap flag:
//! after it the page is closed, and the program continues. Signals that are not of a view go to the handler that the
//! program had, or have their default effect.
//!
//! # Safety
//!
//! `sigaction` has the layout of glibc and musl on x86-64. A handler gets pointers to a `siginfo_t` and a `ucontext_t`
//! that live until it returns. See `host_view.rs` for what it may do.

use std::cell::Cell;
use std::ffi::c_int;
use std::io;
use std::sync::{Arc, Weak};

use spelter_locks::{Computed, PerProcess, RwLock};

use super::host_view::HostView;
use crate::symbol;

/// `SIGTRAP` and `SIGSEGV`.
const TRAP: c_int = 5;
const SEGV: c_int = 11;

/// `SA_SIGINFO | SA_NODEFER`. Without `SA_ONSTACK`: reports need more than the few KiB of an alternate stack.
const FLAGS: c_int = SIGINFO | 0x4000_0000;
const SIGINFO: c_int = 4;

/// The trap flag of `RFLAGS`.
const TRAP_FLAG: i64 = 0x100;

/// The bit of a page fault's error code that says that it is a write.
const WRITES: i64 = 2;

/// Views, at most: those of devices that are gone make room.
const MAX_VIEWS: usize = 1024;

/// `struct sigaction` of `<signal.h>`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    /// A function, `SIG_DFL` (0) or `SIG_IGN` (1).
    handler: usize,
    mask: [u64; 16],
    flags: c_int,
    restorer: usize,
}

/// `siginfo_t` of a fault.
#[repr(C)]
struct SignalInfo {
    signal: c_int,
    errno: c_int,
    code: c_int,
    padding: c_int,
    address: usize,
}

/// `ucontext_t` up to the registers.
#[repr(C)]
struct Context {
    flags: u64,
    link: usize,
    stack: [u64; 3],
    registers: [i64; 23],
}

/// `REG_RIP`, `REG_EFL` and `REG_ERR` of `<ucontext.h>`.
const RIP: usize = 16;
const EFL: usize = 17;
const ERR: usize = 19;

unsafe extern "C" {
    fn sigaction(signal: c_int, new: *const Action, old: *mut Action) -> c_int;
}

/// A handler with three arguments.
type Handler = extern "C" fn(c_int, *mut SignalInfo, *mut Context);

/// The program's actions for the two signals.
static OTHERS: Computed<[Action; 2]> = Computed::new();

/// A forked process has the views of its parent, and may access their pages.
static VIEWS: PerProcess<RwLock<Vec<Weak<HostView>>>> = PerProcess::inheriting(RwLock::default, RwLock::inherit);

/// Pages that the instruction of this thread has open: an instruction accesses two places of two pages at most.
const MAX_OPEN: usize = 4;

thread_local! {
    /// Addresses; 0 is none.
    static OPEN: Cell<[usize; MAX_OPEN]> = const { Cell::new([0; MAX_OPEN]) };
}

/// Has accesses to closed pages of a view reported from now on.
pub(super) fn watch(view: &Arc<HostView>) -> io::Result<()> {
    let mut views = VIEWS.get().write();
    views.retain(|view| view.strong_count() > 0);
    if views.len() >= MAX_VIEWS {
        return Err(io::Error::other("too many devices"));
    }
    if OTHERS.get().is_none() {
        let others = [install(SEGV, on_fault)?, install(TRAP, on_trap)?];
        let _ = OTHERS.set(others);
    }
    views.push(Arc::downgrade(view));
    Ok(())
}

/// Sets the action for a signal. Returns the one before.
fn install(signal: c_int, handler: Handler) -> io::Result<Action> {
    let none = Action { handler: 0, mask: [0; 16], flags: 0, restorer: 0 };
    let new = Action { handler: handler as usize, flags: FLAGS, ..none };
    let mut old = none;
    // SAFETY: both structures have the library's layout, and the handler is a function that stays loaded: a driver with
    // such a device is pinned, since its findings are reported at the end of the process.
    match unsafe { sigaction(signal, &raw const new, &raw mut old) } {
        // A process that was forked between this and `OTHERS.set` does it again.
        0 if old.handler == new.handler => Ok(none),
        0 => Ok(old),
        _ => Err(io::Error::last_os_error()),
    }
}

fn view_of(address: usize) -> Option<(Arc<HostView>, usize)> {
    let views = VIEWS.get().read();
    views.iter().filter_map(Weak::upgrade).find_map(|view| view.offset(address).map(|offset| (view, offset)))
}

extern "C" fn on_fault(signal: c_int, info: *mut SignalInfo, context: *mut Context) {
    // SAFETY: the system passes a pointer to this structure, which is the handler's.
    let address = unsafe { (*info).address };
    // SAFETY: so it does for the context, and nothing else uses it while the handler runs.
    let registers = unsafe { &mut (*context).registers };
    let Some((view, offset)) = view_of(address) else { return pass_on(0, signal, info, context) };
    let again = view.faulted(offset, registers[ERR] & WRITES != 0, registers[RIP] as usize);
    let mut open = OPEN.get();
    let place = open.iter_mut().find(|place| **place == 0);
    if let (true, Some(place)) = (again, place) {
        *place = address;
        OPEN.set(open);
        registers[EFL] |= TRAP_FLAG;
    }
}

extern "C" fn on_trap(signal: c_int, info: *mut SignalInfo, context: *mut Context) {
    let open = OPEN.replace([0; MAX_OPEN]);
    if open == [0; MAX_OPEN] {
        return pass_on(1, signal, info, context);
    }
    for address in open.into_iter().filter(|address| *address != 0) {
        if let Some((view, offset)) = view_of(address) {
            view.accessed(offset);
        }
    }
    // SAFETY: as above.
    unsafe { (*context).registers[EFL] &= !TRAP_FLAG };
}

/// A signal that is not of a view.
fn pass_on(number: usize, signal: c_int, info: *mut SignalInfo, context: *mut Context) {
    let Some(other) = OTHERS.get().map(|others| others[number]) else { return };
    match other.handler {
        // The default action, when the instruction runs again.
        0 | 1 => {
            // SAFETY: it is the action that the program had.
            unsafe { sigaction(signal, &raw const other, std::ptr::null_mut()) };
        }
        handler if other.flags & SIGINFO != 0 => {
            // SAFETY: the program installed a function with these arguments.
            let handler = unsafe { std::mem::transmute::<usize, Handler>(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: the program installed a function with this argument.
            let handler = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(handler) };
            handler(signal);
        }
    }
}

/// The place of an instruction: its function, if the library exports it, its library or program, and the offset there,
/// as `addr2line` takes it.
pub(crate) fn place_of(instruction: usize) -> String {
    let Some(symbol) = symbol::of(instruction) else { return format!("{instruction:#x}") };
    let file = symbol.file.to_string_lossy();
    let file = file.rsplit('/').next().unwrap_or_default();
    let offset = instruction.wrapping_sub(symbol.base);
    match symbol.name {
        Some(name) => format!("`{}` ({file}+{offset:#x})", name.to_string_lossy()),
        None => format!("{file}+{offset:#x}"),
    }
}
