//! The SPIR-V reader.

#[allow(dead_code, reason = "until the reader calls it")]
mod arithmetic;
#[allow(dead_code, reason = "until the reader calls it")]
mod glsl450;

use std::collections::BTreeMap;

use super::Error;
use crate::ir::Kernel;

/// A parsed module.
#[derive(Debug)]
pub struct Module {}

impl Module {
    /// Parses.
    pub fn parse(_words: &[u32]) -> Result<Self, Error> {
        unimplemented!()
    }
    /// Names of the compute entry points.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        [].into_iter()
    }
    /// `SpecId`s.
    pub fn specialization_ids(&self) -> impl Iterator<Item = u32> {
        [].into_iter()
    }
    /// Specializes and translates.
    pub fn kernel(&self, _entry: &str, _specialization: &BTreeMap<u32, u32>) -> Result<Kernel, Error> {
        unimplemented!()
    }
}
