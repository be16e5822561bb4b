//! The SPIR-V front end: translates words to the scalar IR, one file per chapter of the instruction set.
//!
//! `words` and `module` split the stream into sections once; `kernel` then evaluates types and constants for a
//! specialization and translates the entry point, inlining every call. No code here trusts the module: everything that
//! the grammar does not guarantee is checked where it is used.

mod arithmetic;
mod atomics;
mod blocks;
mod body;
mod by_reference;
mod capability;
mod composite;
mod constants;
mod control_flow;
mod copies;
#[cfg(test)]
mod coverage;
mod debug_names;
mod decorations;
mod dispatch;
mod entry;
#[cfg(test)]
mod enumerants;
mod extension;
mod function;
mod glsl450;
mod group;
mod host;
mod image;
mod layout;
mod lines;
mod memory;
mod mixed_dot;
mod module;
mod physical;
mod pointer;
mod pointer_value;
mod remark;
mod scalar;
mod sources;
mod stages;
mod translate;
mod types;
mod universal;
mod variables;
mod words;

use std::collections::BTreeMap;
use std::collections::hash_map::Entry;

use foldhash::HashMap;
use spirv::Op;

use super::room::{Growth, HasRoom};
use super::{Blocks, ConstantType, Error, Language, Remark, SpecializationConstant};
use crate::ir::{self, Builder, Kernel, SourceLine};
pub(super) use entry::{MAX_INVOCATIONS, check_size};
use function::{InlinedCall, ReturnEffect};
pub use image::format as image_format;
use module::{EntryPoint, Sections};
use translate::Translator;
use words::Id;

/// A parsed module.
#[derive(Debug)]
pub struct SpirvModule {
    sections: Box<Sections>,
}

impl SpirvModule {
    /// Splits the words into instructions, sections and functions, and checks what does not depend on a specialization.
    pub fn parse(words: &[u32]) -> Result<Self, Error> {
        Ok(Self { sections: Box::new(Sections::parse(words)?) })
    }

    /// Whether it may have runtime-sized descriptor arrays.
    pub fn may_have_runtime_arrays(&self) -> bool {
        self.sections.declares(spirv::Capability::RuntimeDescriptorArray)
    }

    /// A rule that the module breaks although it can be translated, and which other drivers do not enforce.
    pub fn remark(&self) -> Option<&Remark> {
        self.sections.remark.as_ref()
    }

    /// Names of the compute entry points.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.sections.entry_points.iter().map(|entry| entry.name.as_str())
    }

    /// The constants with a `SpecId`, in declaration order. Constants that share one are one, as compilers for GLSL
    /// emit the size of a workgroup (`local_size_x_id`) and a constant that the shader declares for it.
    pub fn specialization_constants(&self) -> impl Iterator<Item = SpecializationConstant> {
        let Sections { declarations, annotations, words, .. } = &*self.sections;
        let types: HashMap<_, _> = declarations
            .iter()
            .filter_map(|inst| {
                let ty = match (inst.op, words.operands(inst)) {
                    (Op::TypeBool, _) => ConstantType::Bool,
                    (Op::TypeInt, &[bits, 0, ..]) => ConstantType::Uint(bits),
                    (Op::TypeInt, &[bits, ..]) => ConstantType::Int(bits),
                    (Op::TypeFloat, &[bits, ..]) => ConstantType::Float(bits),
                    _ => return None,
                };
                Some((inst.id, ty))
            })
            .collect();
        let mut constants: Vec<SpecializationConstant> = Vec::new();
        let mut places: HashMap<_, usize> = HashMap::default();
        for inst in declarations {
            let id = annotations.of(inst.id).and_then(|decorations| decorations.spec_id);
            let (Some(id), Some(&ty)) = (id, types.get(&inst.ty)) else { continue };
            let name = annotations.name(inst.id).to_owned();
            match places.entry((id, ty)) {
                Entry::Occupied(place) => {
                    let known = &mut constants[*place.get()].name;
                    if known.is_empty() {
                        *known = name;
                    }
                }
                Entry::Vacant(place) => {
                    place.insert(constants.len());
                    constants.push(SpecializationConstant { id: Some(id), key: id, name, ty });
                }
            }
        }
        constants.into_iter()
    }

    /// Set, binding and `OpName` of each variable that has them. A block's variable without a name, as compilers for
    /// GLSL emit it for a block without an instance name, has that of its type.
    pub fn binding_names(&self) -> Vec<(u32, u32, String)> {
        let Sections { declarations, annotations, words, .. } = &*self.sections;
        let pointers = declarations.iter().filter(|inst| inst.op == Op::TypePointer);
        let pointees: HashMap<Id, Id> =
            pointers.filter_map(|inst| Some((inst.id, words.operands(inst).get(1).copied()?))).collect();
        let named = |inst: &words::Inst| {
            let decorations = annotations.of(inst.id)?;
            let place = (decorations.set?, decorations.binding?);
            let name = match annotations.name(inst.id) {
                "" => annotations.name(*pointees.get(&inst.ty)?),
                name => name,
            };
            (!name.is_empty()).then(|| (place.0, place.1, name.to_owned()))
        };
        declarations.iter().filter(|inst| inst.op == Op::Variable).filter_map(named).collect()
    }

    /// The `OpName` of the workgroup variable that the instruction at a word accesses, if it is known without its
    /// callers: those with an explicit layout share their memory, which has the name of one of them.
    pub fn workgroup_variable(&self, word: u32) -> Option<&str> {
        let Sections { annotations, words, .. } = &*self.sections;
        let at = words.insts.binary_search_by_key(&word, |inst| inst.word).ok()?;
        let accessing = &words.insts[at];
        if matches!(accessing.op, Op::CopyMemory | Op::CopyMemorySized) {
            return None;
        }
        let mut pointer = *words.operands(accessing).first()?;
        for _ in 0..words.insts.len() {
            let inst = words.insts.iter().find(|inst| inst.id == pointer)?;
            let first = *words.operands(inst).first()?;
            match inst.op {
                Op::AccessChain | Op::InBoundsAccessChain | Op::PtrAccessChain | Op::CopyObject => pointer = first,
                Op::Variable if first == spirv::StorageClass::Workgroup as u32 => {
                    return Some(annotations.name(inst.id)).filter(|name| !name.is_empty());
                }
                _ => return None,
            }
        }
        None
    }

    /// The layouts of the module's buffers and push constants, after specialization. An error if a list of all their
    /// members, with names, would be larger than 4 MiB.
    pub fn blocks(&self, specialization: &BTreeMap<u32, u64>) -> Result<Blocks, Error> {
        let (types, _) = constants::declare(&self.sections, specialization)?;
        let mut blocks = blocks::of_module(&self.sections, &types)?;
        for (set, binding, name) in self.binding_names() {
            blocks.names.entry((set, binding)).or_insert(name);
        }
        Ok(blocks)
    }

    /// Specializes an entry point and translates it.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Kernel, Error> {
        self.kernel_within(entry, specialization, &|_| true)
    }

    /// As [`SpirvModule::kernel`]; asks whether there is room for the kernel while it grows.
    pub fn kernel_within(
        &self,
        entry: &str,
        specialization: &BTreeMap<u32, u64>,
        has_room: HasRoom<'_>,
    ) -> Result<Kernel, Error> {
        let sections = &self.sections;
        let entry = self.entry_point(entry)?;
        let (mut types, constants) = constants::declare(sections, specialization)?;
        let size = entry::workgroup_size(sections, &mut types, &constants, entry)?;
        let function = &sections.functions[&entry.function];
        if function.blocks.is_empty() {
            return Err(sections.error(function.word, "the entry point's function has no body"));
        }
        let builder = Builder::new(Kernel::new(entry.name.clone(), size));
        let growth = Growth::new(has_room);
        let frame = InlinedCall::new(function, ReturnEffect::Kernel);
        let mut translator = Translator::new(sections, types, constants, builder, frame, growth);
        for inst in sections.declarations.iter().filter(|inst| inst.op == Op::Variable) {
            translator.variables.declare(inst);
        }
        translator.entry()?;
        let mut kernel = translator.builder.finish();
        growth.ask(kernel.insts.len()).map_err(|message| sections.error(function.word, message))?;
        super::preserve_convergence(&mut kernel).map_err(|message| sections.error(function.word, message))?;
        variables::sort_bindings(&mut kernel);
        kernel.lines = sections.lines.table();
        kernel.memory_model = sections.memory_model;
        kernel.generator = sections.words.generator();
        self.verify(&kernel)?;
        Ok(kernel)
    }

    /// The source line of a word, from debug information.
    pub fn line_of(&self, word: u32) -> Option<SourceLine> {
        self.sections.lines.from(word).cloned()
    }

    /// The language from which the module was compiled: that of `OpSource`, or else of the tool that made the module.
    pub fn language(&self) -> Language {
        sources::language_of(&self.sections.words)
    }

    /// The text of a source file, if the module has it.
    pub fn source_text(&self, file: &str) -> Option<String> {
        sources::text_of(&self.sections.words, file)
    }

    /// Checks the rules that the translator does not check itself, above all that definitions dominate their uses.
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
