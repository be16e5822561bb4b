//! Modules of both languages, with one interface to what they declare and to their kernels.

use std::collections::BTreeMap;

use crate::float_mode;
use crate::front::room::HasRoom;
use crate::front::spirv::SpirvModule;
use crate::front::wgsl::{MeasuredText, WgslModule};
use crate::front::{Blocks, Error, Language, Remark, SpecializationConstant};
use crate::ir::{Kernel, SourceLine};

/// A module that has been read and validated as far as this does not depend on entry point and specialization.
#[derive(Debug)]
pub enum Module {
    /// From SPIR-V words.
    Spirv(SpirvModule),
    /// From WGSL text.
    Wgsl(Box<WgslModule>),
}

impl Module {
    /// Reads a SPIR-V module.
    pub fn from_spirv(words: &[u32]) -> Result<Self, Error> {
        float_mode::with_default(|| SpirvModule::parse(words).map(Self::Spirv))
    }

    /// Reads WGSL text. It is translated to SPIR-V when a kernel is requested, since override values must be known by
    /// then.
    pub fn from_wgsl(source: &str) -> Result<Self, Error> {
        float_mode::with_default(|| WgslModule::parse(source).map(|module| Self::Wgsl(Box::new(module))))
    }

    /// As [`Module::from_wgsl`], with the name of the text's file for messages and source lines.
    pub fn from_wgsl_named(source: &str, file: &str) -> Result<Self, Error> {
        float_mode::with_default(|| WgslModule::parse_named(source, file).map(|module| Self::Wgsl(Box::new(module))))
    }

    /// As [`Module::from_wgsl`], or [`Module::from_wgsl_named`], for a text that was measured before.
    pub fn from_measured_wgsl(text: MeasuredText<'_>, file: Option<&str>) -> Result<Self, Error> {
        float_mode::with_default(|| WgslModule::parse_measured(text, file).map(|module| Self::Wgsl(Box::new(module))))
    }

    /// A rule that a SPIR-V module breaks although it can be translated, and which other drivers do not enforce.
    pub fn remark(&self) -> Option<&Remark> {
        match self {
            Self::Spirv(module) => module.remark(),
            Self::Wgsl(_) => None,
        }
    }

    /// Names of the compute entry points, in the module's order.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        let names: Vec<&str> = match self {
            Self::Spirv(module) => module.entry_points().collect(),
            Self::Wgsl(module) => module.entry_points().collect(),
        };
        names.into_iter()
    }

    /// The specialization constants, in the module's order.
    pub fn specialization_constants(&self) -> Vec<SpecializationConstant> {
        match self {
            Self::Spirv(module) => module.specialization_constants().collect(),
            Self::Wgsl(module) => module.specialization_constants().collect(),
        }
    }

    /// Source line of the declaration at a group and a binding number; `None` for SPIR-V modules.
    pub fn declared(&self, group: u32, binding: u32) -> Option<SourceLine> {
        match self {
            Self::Spirv(_) => None,
            Self::Wgsl(module) => module.declared(group, binding),
        }
    }

    /// Names of the variables with a descriptor set (WGSL: group) and a binding: `(set, binding, name)`, in ascending
    /// order. Variables of one binding may have several names; a block without an instance name has that of its type.
    pub fn binding_names(&self) -> Vec<(u32, u32, String)> {
        let mut names = match self {
            Self::Spirv(module) => module.binding_names(),
            Self::Wgsl(module) => module.binding_names(),
        };
        names.sort();
        names.dedup();
        names
    }

    /// The name of the workgroup variable that an instruction of a SPIR-V module accesses, by its word: that of a
    /// kernel's variable is one of several, where variables share their memory.
    pub fn workgroup_variable(&self, word: u32) -> Option<&str> {
        match self {
            Self::Spirv(module) => module.workgroup_variable(word),
            Self::Wgsl(_) => None,
        }
    }

    /// The layouts of the buffers and push constants of an entry point: names, offsets and strides of members. Of a
    /// SPIR-V module also those that the entry point does not use. An error if a list of all these members would be
    /// larger than 4 MiB.
    pub fn blocks(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Blocks, Error> {
        float_mode::with_default(|| match self {
            Self::Spirv(module) => module.blocks(specialization),
            Self::Wgsl(module) => module.blocks(entry, specialization),
        })
    }

    /// Whether kernels may have descriptor arrays whose size only the pipeline layout gives
    /// ([`Kernel::size_runtime_arrays`]).
    pub fn may_have_runtime_arrays(&self) -> bool {
        match self {
            Self::Spirv(module) => module.may_have_runtime_arrays(),
            Self::Wgsl(module) => module.may_have_runtime_arrays(),
        }
    }

    /// Like [`Module::kernel`] for a host with little memory: `has_room` is asked for numbers of bytes as the kernel
    /// grows, and where it denies one, translation ends with an error. It is faster without `lines`: then a kernel from
    /// WGSL has no source lines; errors still have them.
    pub fn kernel_within(
        &self,
        entry: &str,
        specialization: &BTreeMap<u32, u64>,
        lines: bool,
        has_room: HasRoom<'_>,
    ) -> Result<Kernel, Error> {
        float_mode::with_default(|| match self {
            Self::Spirv(module) => module.kernel_within(entry, specialization, has_room),
            Self::Wgsl(module) => module.kernel_within(entry, specialization, lines, has_room),
        })
    }

    /// Source line of a SPIR-V word that a kernel without lines ([`Module::kernel_within`]) reported
    /// ([`Stop::word`](crate::abi::Stop::word)), if the module has line information.
    pub fn line_of(&self, entry: &str, specialization: &BTreeMap<u32, u64>, word: u32) -> Option<SourceLine> {
        match self {
            Self::Spirv(module) => module.line_of(word),
            Self::Wgsl(module) => module.line_of(entry, specialization, word),
        }
    }

    /// The language from which the module was compiled.
    pub fn language(&self) -> Language {
        match self {
            Self::Spirv(module) => module.language(),
            Self::Wgsl(_) => Language::Wgsl,
        }
    }

    /// The text of a source file that a [`SourceLine`] names, if the module has it.
    pub fn source_text(&self, file: &str) -> Option<String> {
        match self {
            Self::Spirv(module) => module.source_text(file),
            Self::Wgsl(module) => module.source_text(file).map(str::to_owned),
        }
    }

    /// Specializes an entry point and translates it to verified scalar IR. `specialization` maps `SpecId` to the
    /// constant's bits; ids that the module lacks are ignored, as Vulkan requires.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Kernel, Error> {
        self.kernel_within(entry, specialization, true, &|_| true)
    }
}
