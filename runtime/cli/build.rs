//! Lets optimised builds of `spelter` carry the driver's library, so that `cargo install` needs one file (ADR 16).

#![allow(clippy::print_stdout, reason = "build scripts talk to cargo this way")]

use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(carries_library)");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    // A build without optimisation finds the library beside itself: 80 MB more for each test program would be a waste.
    let wanted = std::env::var_os("CARGO_FEATURE_CARRY_LIBRARY").is_some() && is("PROFILE", "release");
    let library = std::env::var_os("OUT_DIR").map(PathBuf::from).and_then(|out| library(&out));
    if let Some(library) = library.filter(|_| wanted && is("CARGO_CFG_TARGET_OS", "linux")) {
        println!("cargo::rustc-cfg=carries_library");
        println!("cargo::rustc-env=SPELTER_CARRIED_LIBRARY={}", library.display());
    }
}

/// Where cargo puts the library of the dependency `spelter-icd`, before it compiles the program: in the folder `deps`
/// beside the folder `build` that `OUT_DIR` is in.
fn library(out: &Path) -> Option<PathBuf> {
    let build = out.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"))?;
    Some(build.with_file_name("deps").join("libvulkan_spelter.so"))
}
