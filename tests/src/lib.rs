//! Tests across crates, from a user's point of view.
//!
//! `kernels/**` holds shaders with their input and expected output in comments; [`case`] reads them, [`engine`] lists
//! the engines, [`check`] compares. The tests themselves are in `tests/`.

pub mod case;
pub mod check;
pub mod checked;
pub mod children;
pub mod commands;
pub mod corpus;
pub mod engine;
pub mod expression;
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
