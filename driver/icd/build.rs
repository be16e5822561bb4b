//! The name by which the dynamic linker knows the library, and how it binds its own symbols.

#![allow(clippy::print_stdout, reason = "build scripts talk to cargo this way")]

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        // Not `libvulkan.so.1`: a later search for the loader would find the driver that the loader has opened.
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libvulkan_spelter.so");
        // A rule of the loader for drivers that export commands of Vulkan (`src/exports.rs`).
        println!("cargo::rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    }
}
