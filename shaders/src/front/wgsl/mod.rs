//! WGSL front end: naga parses, validates and specializes the text and writes SPIR-V, which the SPIR-V front end
//! translates.

mod adapt;
mod capabilities;
mod caught;
mod conversions;
mod declared;
mod errors;
mod fault;
mod guard;
mod initializers;
mod invalid;
mod lexer;
mod lines;
mod measure;
mod numbered;
mod overrides;
mod size;
#[cfg(test)]
mod tests;
mod type_errors;
mod type_place;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use naga::back::pipeline_constants::{self, PipelineConstantError};
use naga::back::{PipelineConstants, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{EntryPointError, ModuleInfo, OverrideError, ValidationError, ValidationFlags, Validator};
use naga::{Scalar, ScalarKind, ShaderStage, TypeInner, WithSpan};

use caught::caught;
pub use caught::is_catching;
pub use conversions::mended as mended_conversions;
use errors::{FILE, in_file, line_of, refused, refused_at};
use numbered::Numbered;

use super::room::HasRoom;
use super::spirv::SpirvModule;
use super::{Blocks, ConstantType, Error, SpecializationConstant};
use crate::ir::{Kernel, MemoryModel, SourceLine};

/// A validated WGSL module. Overrides (WGSL's specialization constants) are applied when a kernel is requested.
#[derive(Debug)]
pub struct WgslModule {
    source: String,
    /// The file name in messages and source lines.
    file: Arc<str>,
    module: naga::Module,
    info: ModuleInfo,
}

impl WgslModule {
    /// Parses and validates. Messages and source lines call the text `wgsl`.
    pub fn parse(source: &str) -> Result<Self, Error> {
        Self::parse_named(source, FILE)
    }

    /// As [`WgslModule::parse`], with the name of the text's file for messages and source lines.
    pub fn parse_named(source: &str, file: &str) -> Result<Self, Error> {
        Self::parse_measured(MeasuredText::new(source).map_err(|error| in_file(error, file))?, Some(file))
    }

    /// As [`WgslModule::parse`], or [`WgslModule::parse_named`], for a text that was measured before.
    pub fn parse_measured(text: MeasuredText<'_>, file: Option<&str>) -> Result<Self, Error> {
        let file = file.unwrap_or(FILE);
        Self::parsed(text.source, file).map_err(|error| in_file(error, file))
    }

    fn parsed(source: &str, file: &str) -> Result<Self, Error> {
        caught("reading the text", || {
            let mut module = naga::front::wgsl::parse_str(&adapt::adapted(source))
                .map_err(|error| refused(&error.emit_to_string_with_path(source, FILE)))?;
            initializers::store(&mut module);
            declared::check(&module, source)?;
            let info = Validator::new(ValidationFlags::all(), capabilities::accepted()).validate(&module).map_err(
                |error| {
                    let words = || invalid::worded(&error, &module, source).emit_to_string_with_path(source, FILE);
                    with_position(&error, &module, source).unwrap_or_else(|| refused(&words()))
                },
            )?;
            Ok(Self { source: source.to_owned(), file: file.into(), module, info })
        })
    }

    /// Names of the compute entry points, in the order of the text.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        self.module
            .entry_points
            .iter()
            .filter(|entry| entry.stage == ShaderStage::Compute)
            .map(|entry| entry.name.as_str())
    }

    /// The source line of the declaration with this group and binding number.
    pub fn declared(&self, group: u32, binding: u32) -> Option<SourceLine> {
        let is_there = |data: &naga::GlobalVariable| {
            data.binding.as_ref().is_some_and(|resource| (resource.group, resource.binding) == (group, binding))
        };
        let (variable, _) = self.module.global_variables.iter().find(|(_, data)| is_there(data))?;
        let span = self.module.global_variables.get_span(variable).to_range()?;
        Some(SourceLine { file: Arc::clone(&self.file), ..line_of(span.start, &self.source) })
    }

    /// Group, binding and name of each variable that has them.
    pub fn binding_names(&self) -> Vec<(u32, u32, String)> {
        let named = |data: &naga::GlobalVariable| {
            let place = data.binding.as_ref()?;
            Some((place.group, place.binding, data.name.clone()?))
        };
        self.module.global_variables.iter().filter_map(|(_, data)| named(data)).collect()
    }

    /// Whether it has runtime-sized binding arrays.
    pub fn may_have_runtime_arrays(&self) -> bool {
        let is_unsized =
            |inner: &TypeInner| matches!(inner, TypeInner::BindingArray { size: naga::ArraySize::Dynamic, .. });
        self.module.types.iter().any(|(_, ty)| is_unsized(&ty.inner))
    }

    /// The overrides, in the order of the text.
    pub fn specialization_constants(&self) -> impl Iterator<Item = SpecializationConstant> {
        self.module.overrides.iter().filter_map(|(handle, constant)| {
            let TypeInner::Scalar(scalar) = self.module.types[constant.ty].inner else { return None };
            let bits = u32::from(scalar.width) * 8;
            let ty = match scalar.kind {
                ScalarKind::Bool => ConstantType::Bool,
                ScalarKind::Sint => ConstantType::Int(bits),
                ScalarKind::Uint => ConstantType::Uint(bits),
                ScalarKind::Float => ConstantType::Float(bits),
                ScalarKind::AbstractInt | ScalarKind::AbstractFloat => return None,
            };
            Some(SpecializationConstant {
                id: constant.id.map(u32::from),
                key: overrides::key(handle, constant),
                name: constant.name.clone().unwrap_or_default(),
                ty,
            })
        })
    }

    /// Specializes an entry point. The SPIR-V front end reports unknown names, with a list of the known ones.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Kernel, Error> {
        self.kernel_within(entry, specialization, true, &|_| true)
    }

    /// As [`WgslModule::kernel`], with source lines only if they are wanted; asks whether there is room for the kernel
    /// while it grows.
    pub fn kernel_within(
        &self,
        entry: &str,
        specialization: &BTreeMap<u32, u64>,
        lines: bool,
        has_room: HasRoom<'_>,
    ) -> Result<Kernel, Error> {
        let lined = || self.kernel_with_lines(entry, specialization, has_room);
        let read = if lines {
            lined()
        } else {
            // On an error with a place, translates again for its source line.
            match self.spirv(entry, specialization, false) {
                Ok(words) => self
                    .read(entry, &words, has_room)
                    .or_else(|error| if error.word.is_some() { lined() } else { Err(error) }),
                Err(_) => lined(),
            }
        };
        read.map_err(|error| in_file(error, &self.file))
    }

    fn kernel_with_lines(
        &self,
        entry: &str,
        specialization: &BTreeMap<u32, u64>,
        has_room: HasRoom<'_>,
    ) -> Result<Kernel, Error> {
        if !self.entry_points().any(|name| name == entry) {
            return Err(Error::no_entry_point(entry, self.entry_points()));
        }
        self.read(entry, &self.to_spirv(entry, specialization)?, has_room)
    }

    /// The layouts of the buffers and push constants that an entry point uses, after specialization; as
    /// [`SpirvModule::blocks`], an error if they are too large.
    pub fn blocks(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Blocks, Error> {
        SpirvModule::parse(&self.to_spirv(entry, specialization)?)?.blocks(&BTreeMap::new())
    }

    /// The text, if that is the name that its lines have.
    pub fn source_text(&self, file: &str) -> Option<&str> {
        (file == &*self.file).then_some(&*self.source)
    }

    /// The source line of a word of the module that [`WgslModule::kernel_within`] translates without lines.
    pub fn line_of(&self, entry: &str, specialization: &BTreeMap<u32, u64>, word: u32) -> Option<SourceLine> {
        let lined = self.spirv(entry, specialization, true).ok()?;
        let word = lines::counterpart(&self.spirv(entry, specialization, false).ok()?, word, &lined)?;
        SpirvModule::parse(&lined).ok()?.line_of(word)
    }

    fn read(&self, entry: &str, words: &[u32], has_room: HasRoom<'_>) -> Result<Kernel, Error> {
        let module = SpirvModule::parse(words);
        let kernel = module.and_then(|module| module.kernel_within(entry, &BTreeMap::new(), has_room));
        let kernel = kernel.map(|kernel| Kernel { memory_model: MemoryModel::Wgsl, ..kernel });
        // Word offsets of a module that the caller does not have are useless.
        kernel.map_err(|error| {
            let at = error.word.and_then(|word| declared::declaration_offset(&self.module, words, word));
            let line = at.map(|at| line_of(at, &self.source)).or(error.line);
            // Errors without a line, such as exceeded limits of the module, get the line of their function.
            let function = || declared::function(words, error.word?, &self.source).map(|at| line_of(at, &self.source));
            Error { word: None, line: line.or_else(function), message: error.message }
        })
    }

    /// The SPIR-V that [`WgslModule::kernel`] translates: one entry point, with overrides applied.
    pub fn to_spirv(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Vec<u32>, Error> {
        self.spirv(entry, specialization, true).map_err(|error| in_file(error, &self.file))
    }

    /// The SPIR-V, optionally with source lines, which take longer.
    fn spirv(&self, entry: &str, specialization: &BTreeMap<u32, u64>, lines: bool) -> Result<Vec<u32>, Error> {
        caught("making SPIR-V of the text", || self.written(entry, specialization, lines)).map(conversions::mended)
    }

    fn written(&self, entry: &str, specialization: &BTreeMap<u32, u64>, lines: bool) -> Result<Vec<u32>, Error> {
        let constants = self.constants(specialization);
        self.check_finite(&constants)?;
        let only = Some((ShaderStage::Compute, entry));
        let (module, info) = pipeline_constants::process_overrides(&self.module, &self.info, only, &constants)
            .map_err(|error| match error {
                PipelineConstantError::NegativeWorkgroupSize => size::overridden(entry, &self.source),
                // The numbers in it are those of the module after specialization, which naga does not give.
                PipelineConstantError::ValidationError(error) => {
                    let shown = || error.emit_to_string_with_path(&self.source, FILE);
                    with_position(&error, &self.module, &self.source).unwrap_or_else(|| refused(&shown()))
                }
                PipelineConstantError::MissingValue(key) => self.has_no_value(&key),
                PipelineConstantError::ConstantEvaluatorError(error) => {
                    self.fails(entry, &constants, &error.to_string())
                }
                error => refused(&error.to_string()),
            })?;
        size::check(&module, entry, &self.source)?;
        let pipeline = spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: entry.to_owned() };
        let write = |module: &naga::Module, debug_info: Option<spv::DebugInfo<'_>>| {
            let words = spv::write_vec(module, &info, &Self::options(debug_info), Some(&pipeline));
            words.map_err(|error| refused(&error.to_string()))
        };
        if !lines {
            return write(&module, None);
        }
        let numbered = Numbered::new(module.into_owned(), &self.source);
        let text = numbered.text();
        let language = ::spirv::SourceLanguage::WGSL;
        let words =
            write(&numbered.module, Some(spv::DebugInfo { source_code: &text, file_name: &self.file, language }))?;
        Ok(numbered.restored(&words, &self.source))
    }

    /// How naga writes SPIR-V: with source lines if there is a text for them.
    fn options(debug_info: Option<spv::DebugInfo<'_>>) -> spv::Options<'_> {
        spv::Options {
            lang_version: (1, 3),
            flags: if debug_info.is_some() { spv::WriterFlags::DEBUG } else { spv::WriterFlags::empty() },
            // No extra checks: the device bounds-checks every access and zeroes shared memory.
            bounds_check_policies: unchecked(),
            zero_initialize_workgroup_memory: spv::ZeroInitializeWorkgroupMemoryMode::None,
            force_loop_bounding: false,
            // A capability for 16-bit inputs and outputs, which kernels do not have.
            use_storage_input_output_16: false,
            debug_info,
            ..spv::Options::default()
        }
    }

    /// Values for the overrides that the module has and the caller sets, as numbers of the override's type.
    fn constants(&self, specialization: &BTreeMap<u32, u64>) -> PipelineConstants {
        let value = |(handle, constant): (_, &naga::Override)| {
            let bits = *specialization.get(&overrides::key(handle, constant))?;
            let TypeInner::Scalar(scalar) = self.module.types[constant.ty].inner else { return None };
            // naga's numbers are doubles, which can hold the integers of every override type.
            let number = match (scalar.kind, scalar.width) {
                (ScalarKind::Sint, 2) => f64::from((bits as u16).cast_signed()),
                (ScalarKind::Sint, _) => f64::from((bits as u32).cast_signed()),
                (ScalarKind::Float, 2) => f64::from(half::f16::from_bits(bits as u16)),
                (ScalarKind::Float, 8) => f64::from_bits(bits),
                (ScalarKind::Float, _) => f64::from(f32::from_bits(bits as u32)),
                (ScalarKind::Bool, _) => f64::from(u8::from(bits != 0)),
                (_, 2) => f64::from(bits as u16),
                _ => f64::from(bits as u32),
            };
            Some((overrides::name(constant)?, number))
        };
        self.module.overrides.iter().filter_map(value).collect()
    }
}

/// A text that is not too deep, and takes naga neither too long nor too much memory.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredText<'a> {
    pub(super) source: &'a str,
    /// The number of parts of constants that naga writes out where they are used.
    pub(super) parts: u64,
}

impl<'a> MeasuredText<'a> {
    /// Measures a text.
    ///
    /// # Errors
    ///
    /// The text is refused before it is read.
    pub fn new(source: &'a str) -> Result<Self, Error> {
        let checked = guard::check(source).and_then(|()| measure::check(source));
        let parts = checked.map_err(|(problem, at)| refused_at(&problem, at, source))?;
        Ok(Self { source, parts })
    }
}

fn unchecked() -> BoundsCheckPolicies {
    BoundsCheckPolicies {
        index: BoundsCheckPolicy::Unchecked,
        buffer: BoundsCheckPolicy::Unchecked,
        image_load: BoundsCheckPolicy::Unchecked,
        binding_array: BoundsCheckPolicy::Unchecked,
    }
}

/// Validation errors for which naga reports neither the value nor the position.
fn with_position(error: &WithSpan<ValidationError>, module: &naga::Module, source: &str) -> Option<Error> {
    Some(match error.as_inner() {
        ValidationError::EntryPoint { name, source: EntryPointError::OutOfRangeWorkgroupSize, .. } => {
            size::check(module, name, source).err().unwrap_or_else(|| size::overridden(name, source))
        }
        ValidationError::Override { handle, name, source: OverrideError::TypeNotScalar } => {
            let at = module.overrides.get_span(*handle).to_range().map_or(0, |range| range.start);
            let ty = match module.types[module.overrides[*handle].ty].inner {
                TypeInner::Scalar(Scalar::I64) => "i64",
                TypeInner::Scalar(Scalar::U64) => "u64",
                _ => "not a scalar",
            };
            let why = "overrides are of type bool, i16, u16, i32, u32, f16, f32 or f64";
            refused_at(&format!("the type of the override `{name}` is {ty}: {why}"), at, source)
        }
        _ => return None,
    })
}
