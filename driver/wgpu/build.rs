//! Passes the optimisation level on to the crate: a hint names the remedy if it is 0 (`src/hint.rs`).

fn main() {
    let level = std::env::var("OPT_LEVEL").unwrap_or_default();
    println!("cargo::rustc-env=SPELTER_WGPU_OPT_LEVEL={level}");
    println!("cargo::rerun-if-changed=build.rs");
}
