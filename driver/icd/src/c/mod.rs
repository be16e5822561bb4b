//! The C interface: safe types for the parameters of Vulkan commands.
//!
//! # The contract
//!
//! Vulkan's "valid usage (implicit)" says of every pointer that a caller passes, in a parameter or in a structure, that
//! it is null where that is allowed, or points to as many objects of its type as the registry's `len` says, that a
//! `pNext` chain consists of structures with the `sType` of their type, and that no other thread accesses what a call
//! writes. C cannot check this; everything else is checked.
//!
//! The types here wrap pointers under that contract. Only `unsafe` code in this folder creates them (from the
//! parameters of an entry point, in [`entry`]; from fields of structures, in [`arrays`] and [`chain`]); the command
//! functions use no raw pointer. Where a length is another parameter, the command function passes the one that the
//! registry names.

pub(crate) mod arrays;
pub(crate) mod callback;
pub(crate) mod chain;
pub(crate) mod dispatchable;
pub(crate) mod emergency;
pub(crate) mod host;
#[macro_use]
pub(crate) mod entry;
pub(crate) mod exit;
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
