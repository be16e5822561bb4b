//! The SPIR-V reader: words to the scalar IR, one chapter of the instruction set in each file.
//!
//! `words` and `module` cut the stream into sections once; `kernel` then evaluates types and constants for a specialization
//! and translates the entry point, inlining every call. Nothing here trusts the module: whatever the grammar does not
//! promise is checked where it is used.

mod arithmetic;
mod atomics;
mod body;
mod capability;
mod composite;
mod constants;
mod control_flow;
mod decorations;
mod entry;
mod function;
mod glsl450;
mod layout;
mod lines;
mod memory;
mod module;
mod pointer;
mod translate;
mod types;
mod variables;
mod words;

use std::collections::BTreeMap;

use super::Error;
use crate::ir::{self, Builder, Kernel};
use function::{Exit, Frame};
use module::{EntryPoint, Sections};
use translate::Translator;

/// A parsed module.
#[derive(Debug)]
pub struct Module {
    sections: Box<Sections>,
}

impl Module {
    /// Cuts the words into instructions, sections and functions, and checks what does not depend on a specialization.
    pub fn parse(words: &[u32]) -> Result<Self, Error> {
        Ok(Self { sections: Box::new(Sections::parse(words)?) })
    }

    /// Names of the compute entry points.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.sections.entry_points.iter().map(|entry| entry.name.as_str())
    }

    /// The `SpecId`s, in the order in which the constants are declared.
    pub fn specialization_ids(&self) -> impl Iterator<Item = u32> {
        let annotations = &self.sections.annotations;
        self.sections.declarations.iter().filter_map(|inst| annotations.of(inst.id)?.spec_id)
    }

    /// Specializes an entry point and translates it.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u32>) -> Result<Kernel, Error> {
        let sections = &self.sections;
        let entry = self.entry_point(entry)?;
        let (mut types, constants) = constants::declare(sections, specialization)?;
        let size = entry::workgroup_size(sections, &mut types, &constants, entry)?;
        let function = &sections.functions[&entry.function];
        if function.blocks.is_empty() {
            return Err(sections.error(function.word, "the entry point's function has no body"));
        }
        let builder = Builder::new(Kernel::new(entry.name.clone(), size));
        let mut translator = Translator::new(sections, types, constants, builder, Frame::new(function, Exit::Kernel));
        for inst in sections.declarations.iter().filter(|inst| inst.op == spirv::Op::Variable) {
            translator.variables.declare(inst);
        }
        translator.entry()?;
        let mut kernel = translator.builder.finish();
        variables::sort_bindings(&mut kernel);
        kernel.lines = sections.lines.table();
        self.verify(&kernel)?;
        Ok(kernel)
    }

    /// What the reader does not check itself, above all that definitions dominate their uses.
    fn verify(&self, kernel: &Kernel) -> Result<(), Error> {
        ir::verify(kernel).map_err(|error| match error.inst.map(|inst| kernel.origins[inst]) {
            Some(word) if word != 0 => self.sections.error(word, error.message),
            _ => Error { message: error.message, word: None, line: None },
        })
    }

    fn entry_point(&self, name: &str) -> Result<&EntryPoint, Error> {
        let found = self.sections.entry_points.iter().find(|entry| entry.name == name);
        found.ok_or_else(|| Error::no_entry_point(name, self.entry_points()))
    }
}
