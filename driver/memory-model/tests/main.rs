//! Tests of the memory model, in one program.

mod bytes;
mod common;
mod compact;
mod dartagnan;
mod generate;
mod host;
mod khronos;
mod malformed;
mod own;
mod properties;
mod repair;
mod search;
mod slices;
mod sparse;
mod traces;
