//! Tests that cross crates, by what a user does.
//!
//! `kernels/**` holds shaders with their input and answers in comments; [`case`] reads them, [`engine`] lists what runs
//! them, [`check`] compares. The tests themselves are in `tests/`.

pub mod case;
pub mod check;
pub mod children;
pub mod corpus;
pub mod engine;
pub mod fuzz;
pub mod images;
pub mod mangle;
pub mod mirror;
pub mod modules;
pub mod mutate;
pub mod program;
pub mod range_checks;
pub mod trial;
pub mod values;
pub mod watch;
pub mod words;
