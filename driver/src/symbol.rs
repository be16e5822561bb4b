//! Symbol of an address, from the dynamic linker: its library or program, and the function that this exports there.
//!
//! # Safety
//!
//! `dladdr` is called as its manual says; `Dl_info` has this layout in glibc and musl.

use std::ffi::{CStr, CString, c_char, c_int, c_void};

/// `Dl_info` of `<dlfcn.h>`.
#[repr(C)]
struct SymbolInfo {
    file: *const c_char,
    base: *mut c_void,
    name: *const c_char,
    address: *mut c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, info: *mut SymbolInfo) -> c_int;
}

/// The place of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// The path of the library or program, as it was loaded.
    pub file: CString,
    /// The address at which that begins in memory.
    pub base: usize,
    /// The exported function or variable that the address is nearest to.
    pub name: Option<CString>,
}

/// The place of an address of code or of a static; `None` if it is in no library and not in the program.
///
/// ```
/// let own = spelter_driver::symbol::of(main as *const () as usize).expect("the program has it");
/// assert!(!own.file.is_empty() && own.base > 0);
/// assert_eq!(spelter_driver::symbol::of(0), None);
/// ```
pub fn of(address: usize) -> Option<Symbol> {
    let null = std::ptr::null();
    let mut info = SymbolInfo { file: null, base: std::ptr::null_mut(), name: null, address: std::ptr::null_mut() };
    // SAFETY: the address is not read through; the result is written to `info`.
    let found = unsafe { dladdr(std::ptr::without_provenance(address), &raw mut info) };
    if found == 0 {
        return None;
    }
    let text = |text: *const c_char| {
        // SAFETY: a text of the linker's ends with 0 and lives as long as its library is loaded. That one has the
        // address, which the caller runs or is.
        (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_owned())
    };
    Some(Symbol { file: text(info.file)?, base: info.base.addr(), name: text(info.name) })
}
