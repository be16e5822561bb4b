//! The driver's library inside of this program (ADR 16).
//!
//! # Safety
//!
//! `.incbin` puts the bytes of the file between two symbols of a read-only section, which nothing else names.

/// The bytes of the library, if this build carries it.
#[cfg(not(carries_library))]
pub(super) fn library() -> Option<&'static [u8]> {
    None
}

#[cfg(carries_library)]
std::arch::global_asm!(
    ".pushsection .rodata.spelter_carried_library, \"a\", @progbits",
    ".balign 16",
    ".hidden spelter_carried_library",
    ".hidden spelter_carried_library_end",
    ".globl spelter_carried_library",
    ".globl spelter_carried_library_end",
    "spelter_carried_library:",
    concat!(".incbin \"", env!("SPELTER_CARRIED_LIBRARY"), "\""),
    "spelter_carried_library_end:",
    ".byte 0",
    ".popsection",
    options(raw)
);

/// The bytes of the library, if this build carries it.
#[cfg(carries_library)]
pub(super) fn library() -> Option<&'static [u8]> {
    // SAFETY: the two symbols are those of the assembly above.
    unsafe extern "C" {
        #[link_name = "spelter_carried_library"]
        safe static START: u8;
        #[link_name = "spelter_carried_library_end"]
        safe static END: u8;
    }
    let (start, end) = (&raw const START, &raw const END);
    // SAFETY: the bytes between the symbols are one object, which is never written.
    Some(unsafe { std::slice::from_raw_parts(start, end.addr() - start.addr()) })
}
