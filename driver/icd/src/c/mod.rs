//! The C edge: what is unsafe about Vulkan's calling conventions, turned into safe types.
//!
//! # The contract
//!
//! Vulkan's "valid usage (implicit)" says of every pointer that a caller passes, in a parameter or in a structure, that it
//! is null where that is allowed, or points to so many objects of its type as the registry's `len` says, that a `pNext`
//! chain consists of structures with the `sType` of their type, and that nobody else touches what a call writes meanwhile.
//! C has no way to check this; all else can be checked, and is.
//!
//! The types here stand for pointers under that contract. They are made by `unsafe` code in this folder only (from the
//! parameters of an entry point, in [`entry`]; from fields of structures, in [`arrays`] and [`chain`]), and nowhere else
//! do chapters touch a raw pointer. Where a length is another parameter, a chapter hands it over: the one that the
//! registry names.

pub(crate) mod arrays;
pub(crate) mod callback;
pub(crate) mod chain;
pub(crate) mod dispatchable;
pub(crate) mod emergency;
pub(crate) mod host;
#[macro_use]
pub(crate) mod entry;
pub(crate) mod import;
pub(crate) mod listing;
pub(crate) mod pointer;
pub(crate) mod text;
pub(crate) mod version_1_4;

pub(crate) use chain::OutChain;
pub(crate) use entry::{EntryPoint, Function};
pub(crate) use listing::{list, list_chains};
pub(crate) use pointer::{In, InOut, Many, Out, OutMany, Plain, Slice};
pub(crate) use text::{Text, fixed};
