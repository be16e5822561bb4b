//! Criterion benches, one file for each question: `benches/interp.rs` and `benches/dispatch.rs`. Ratios within one run.
