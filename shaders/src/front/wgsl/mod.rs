//! WGSL front end: naga parses, validates and specializes the text and writes SPIR-V, which the SPIR-V front end
//! translates.

mod adapt;
mod caught;
mod conversions;
mod declared;
mod fault;
mod guard;
mod initializers;
mod lexer;
mod lines;
mod measure;
mod numbered;
mod overrides;
mod size;
mod window;

use std::collections::BTreeMap;
use std::sync::Arc;

use naga::back::pipeline_constants::{self, PipelineConstantError};
use naga::back::{PipelineConstants, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{
    Capabilities, EntryPointError, ModuleInfo, OverrideError, ValidationError, ValidationFlags, Validator,
};
use naga::{Scalar, ScalarKind, ShaderStage, TypeInner, WithSpan};

use caught::caught;
pub use caught::is_catching;
pub use conversions::mended as mended_conversions;
use numbered::Numbered;

use super::room::HasRoom;
use super::{Blocks, ConstantType, Error, SpecializationConstant, spirv};
use crate::ir::{Kernel, MemoryModel, SourceLine};

/// File name of a text whose real one the caller does not give.
const FILE: &str = "wgsl";

/// A validated WGSL module. Overrides (WGSL's specialization constants) are applied when a kernel is requested.
#[derive(Debug)]
pub struct Module {
    source: String,
    /// The file name in messages and source lines.
    file: Arc<str>,
    module: naga::Module,
    info: ModuleInfo,
}

impl Module {
    /// Parses and validates. Messages and source lines call the text `wgsl`.
    pub fn parse(source: &str) -> Result<Self, Error> {
        Self::parse_named(source, FILE)
    }

    /// As [`Module::parse`], with the name of the text's file for messages and source lines.
    pub fn parse_named(source: &str, file: &str) -> Result<Self, Error> {
        Self::parsed(source, file).map_err(|error| in_file(error, file))
    }

    fn parsed(source: &str, file: &str) -> Result<Self, Error> {
        measured(source)?;
        caught("reading the text", || {
            let mut module = naga::front::wgsl::parse_str(&adapt::adapted(source))
                .map_err(|error| refused(&error.emit_to_string_with_path(source, FILE)))?;
            initializers::store(&mut module);
            declared::check(&module, source)?;
            let info = Validator::new(ValidationFlags::all(), accepted())
                .validate(&module)
                .map_err(|error| invalid(&error, &module, source))?;
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
            data.binding.as_ref().is_some_and(|place| (place.group, place.binding) == (group, binding))
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
        self.module.overrides.iter().filter_map(|(place, constant)| {
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
                key: overrides::key(place, constant),
                name: constant.name.clone().unwrap_or_default(),
                ty,
            })
        })
    }

    /// Specializes an entry point. The SPIR-V front end reports unknown names, with a list of the known ones.
    pub fn kernel(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Kernel, Error> {
        self.kernel_within(entry, specialization, true, &|_| true)
    }

    /// As [`Module::kernel`], with source lines only if they are wanted; asks whether there is room for the kernel
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
            let words = self.spirv(entry, specialization, false);
            // On an error, translates again for its source line.
            words.and_then(|words| self.read(entry, &words, has_room)).or_else(|_| lined())
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

    /// The layouts of the buffers and push constants that an entry point uses, after specialization.
    pub fn blocks(&self, entry: &str, specialization: &BTreeMap<u32, u64>) -> Result<Blocks, Error> {
        spirv::Module::parse(&self.to_spirv(entry, specialization)?)?.blocks(&BTreeMap::new())
    }

    /// The text, if that is the name that its lines have.
    pub fn source_text(&self, file: &str) -> Option<&str> {
        (file == &*self.file).then_some(&*self.source)
    }

    /// The source line of a word of the module that [`Module::kernel_within`] translates without lines.
    pub fn line_of(&self, entry: &str, specialization: &BTreeMap<u32, u64>, word: u32) -> Option<SourceLine> {
        let lined = self.spirv(entry, specialization, true).ok()?;
        let word = lines::counterpart(&self.spirv(entry, specialization, false).ok()?, word, &lined)?;
        spirv::Module::parse(&lined).ok()?.line_of(word)
    }

    fn read(&self, entry: &str, words: &[u32], has_room: HasRoom<'_>) -> Result<Kernel, Error> {
        let module = spirv::Module::parse(words);
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

    /// The SPIR-V that [`Module::kernel`] translates: one entry point, with overrides applied.
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
                PipelineConstantError::ValidationError(error) => invalid(&error, &self.module, &self.source),
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
        let numbered = Numbered::new(module.into_owned());
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
        let value = |(place, constant): (_, &naga::Override)| {
            let bits = *specialization.get(&overrides::key(place, constant))?;
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

/// The same error of a text in that file.
fn in_file(mut error: Error, file: &str) -> Error {
    if file != FILE {
        error.message = error.message.replace(&format!("┌─ {FILE}:"), &format!("┌─ {file}:"));
        if let Some(line) = error.line.as_mut().filter(|line| &*line.file == FILE) {
            line.file = file.into();
        }
    }
    error
}

/// The number of parts of constants that naga writes out where they are used; an error if the text is too deep, or
/// takes naga too long or too much memory.
pub(super) fn measured(source: &str) -> Result<u64, Error> {
    let checked = guard::check(source).and_then(|()| measure::check(source));
    checked.map_err(|(problem, at)| refused_at(&problem, at, source))
}

/// Capabilities of naga that are supported beyond the base language.
fn accepted() -> Capabilities {
    // Capabilities of other stages: their entry points are never translated.
    let other_stages = Capabilities::PRIMITIVE_INDEX
        | Capabilities::CLIP_DISTANCES
        | Capabilities::CULL_DISTANCE
        | Capabilities::MULTIVIEW
        | Capabilities::EARLY_DEPTH_TEST
        | Capabilities::MULTISAMPLED_SHADING
        | Capabilities::DUAL_SOURCE_BLENDING
        | Capabilities::SUBGROUP_VERTEX_STAGE
        | Capabilities::SHADER_BARYCENTRICS;
    let numbers = Capabilities::FLOAT64
        | Capabilities::SHADER_FLOAT16
        | Capabilities::SHADER_INT16
        | Capabilities::SHADER_INT64
        | Capabilities::SHADER_INT64_ATOMIC_MIN_MAX
        | Capabilities::SHADER_INT64_ATOMIC_ALL_OPS
        | Capabilities::SHADER_FLOAT32_ATOMIC;
    let not_uniform = Capabilities::TEXTURE_AND_SAMPLER_BINDING_ARRAY_NON_UNIFORM_INDEXING
        | Capabilities::BUFFER_BINDING_ARRAY_NON_UNIFORM_INDEXING
        | Capabilities::STORAGE_TEXTURE_BINDING_ARRAY_NON_UNIFORM_INDEXING
        | Capabilities::STORAGE_BUFFER_BINDING_ARRAY_NON_UNIFORM_INDEXING;
    other_stages
        | numbers
        | not_uniform
        | Capabilities::STORAGE_TEXTURE_BINDING_ARRAY
        | Capabilities::IMMEDIATES
        | Capabilities::SHADER_FLOAT16_IN_FLOAT32
        | Capabilities::BUFFER_BINDING_ARRAY
        | Capabilities::STORAGE_BUFFER_BINDING_ARRAY
        | Capabilities::MEMORY_DECORATION_COHERENT
        | Capabilities::MEMORY_DECORATION_VOLATILE
        | Capabilities::CUBE_ARRAY_TEXTURES
        | Capabilities::STORAGE_TEXTURE_16BIT_NORM_FORMATS
        | Capabilities::TEXTURE_AND_SAMPLER_BINDING_ARRAY
        | Capabilities::TEXTURE_ATOMIC
        | Capabilities::SUBGROUP
        | Capabilities::SUBGROUP_BARRIER
}

fn unchecked() -> BoundsCheckPolicies {
    BoundsCheckPolicies {
        index: BoundsCheckPolicy::Unchecked,
        buffer: BoundsCheckPolicy::Unchecked,
        image_load: BoundsCheckPolicy::Unchecked,
        binding_array: BoundsCheckPolicy::Unchecked,
    }
}

/// An error at a position that naga does not report: line and column are part of the message.
fn refused_at(problem: &str, at: usize, source: &str) -> Error {
    Error { message: problem.to_owned(), word: None, line: Some(line_of(at, source)) }
}

fn line_of(at: usize, source: &str) -> SourceLine {
    let before = &source[..at.min(source.len())];
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = before.matches('\n').count() as u32 + 1;
    let column = before[line_start..].chars().count() as u32 + 1;
    SourceLine { file: FILE.into(), line, column }
}

/// A validation error. For workgroup sizes, naga reports neither the value nor the position.
fn invalid(error: &WithSpan<ValidationError>, module: &naga::Module, source: &str) -> Error {
    match error.as_inner() {
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
        _ => refused(&error.emit_to_string_with_path(source, FILE)),
    }
}

/// naga's message shows position and line itself.
fn refused(message: &str) -> Error {
    let message = message.trim();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    Error { message: window::windowed(message), word: None, line: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::front::data_layout::DataLayout;

    #[test]
    fn a_parse_error_shows_the_line() {
        let error = Module::parse("fn main() {\n  let x = ;\n}").unwrap_err();
        assert!(error.to_string().starts_with("expected expression"), "{error}");
        assert!(error.to_string().contains("wgsl:2:11"), "{error}");
    }

    #[test]
    fn subgroups_may_be_enabled_and_immediates_have_their_older_name() {
        let text = "enable subgroups;
            var<push_constant> n: u32;
            @group(0) @binding(0) var<storage, read_write> to: u32;
            @compute @workgroup_size(16) fn main() { to = subgroupAdd(n); }";
        let module = Module::parse(text).unwrap();
        assert_eq!(module.kernel("main", &BTreeMap::new()).unwrap().push_bytes, 4);
        let error = Module::parse(&text.replace("to = ", "two = ")).unwrap_err().to_string();
        assert!(error.contains("wgsl:4:54") && error.contains("fn main() { two = subgroupAdd(n); }"), "{error}");
    }

    #[test]
    fn a_validation_error_shows_the_line() {
        let error = Module::parse("@compute @workgroup_size(1) fn main() {\n  let x: u32 = 1.5;\n}").unwrap_err();
        assert!(error.to_string().contains("wgsl:2:7"), "{error}");
    }

    #[test]
    fn an_override_without_a_value_is_named() {
        for (declared, expected) in [
            (
                "@id(3) override m: u32;",
                "`m` has no value: set specialization constant 3, or give it a default at wgsl:2:",
            ),
            ("override n: u32;", "`n` has no value: set it by its name, or give it a default at wgsl:2:"),
        ] {
            let used = declared.split(' ').find(|word| word.ends_with(':')).unwrap_or_default().trim_end_matches(':');
            let text =
                format!("\n{declared} var<workgroup> a: u32;\n@compute @workgroup_size(1) fn main() {{ a = {used}; }}");
            let error = Module::parse(&text).unwrap().kernel("main", &BTreeMap::new()).unwrap_err().to_string();
            assert!(error.starts_with("the override ") && error.contains(expected), "{error}");
        }
    }

    /// Texts that the guard accepts must fit the stack of an ordinary thread, on which the tests run.
    #[test]
    fn the_longest_chains_fit_the_stack() {
        let declare = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;";
        let body = |text: &str| format!("{declare} @compute @workgroup_size(1) fn main() {{ {text} }}");
        let links: String = (0..2000).map(|i| format!("const c{i} = c{} + 1u;", i + 1)).collect();
        for source in [
            body(&format!("o[0] = {}1u;", "o[1]+".repeat(499))),
            body(&format!("o[0] = u32({}1i);", "- ".repeat(990))),
            body(&format!("if o[0] == 1u {{}} {}", "else if o[1] == 2u { o[2] = 3u; }".repeat(400))),
            format!("{links} const c2000 = 1u; {}", body("o[0] = c0;")),
        ] {
            let module = Module::parse(&source).unwrap();
            assert!(module.kernel("main", &BTreeMap::new()).is_ok());
        }
        let error = Module::parse(&body(&format!("\no[0] = {}1u;", "1u+".repeat(16_000)))).unwrap_err();
        assert_eq!(error.to_string(), "more than 1000 operators and brackets in one expression at wgsl:2:3004");
    }

    #[test]
    fn the_name_of_the_file_is_in_errors_and_lines() {
        let parse = |text: &str| Module::parse_named(text, "blur.wgsl");
        let error = parse("@compute @workgroup_size(1) fn main() { nonsense }").unwrap_err().to_string();
        assert!(error.contains("blur.wgsl:1:") && !error.contains(" wgsl:"), "{error}");
        let error = parse("@compute @workgroup_size(1) fn main() { let x: f32 = 1u; }").unwrap_err().to_string();
        assert!(error.contains("blur.wgsl:1:") && !error.contains(" wgsl:"), "{error}");
        let text = "\n@group(0) @binding(0) var<storage, read_write> out: u32;
            @compute @workgroup_size(1) fn main() { out = 1u; }";
        let module = parse(text).unwrap();
        assert_eq!(module.declared(0, 0).unwrap().to_string(), "blur.wgsl:2:23");
        let kernel = module.kernel("main", &BTreeMap::new()).unwrap();
        assert!(kernel.lines.values().all(|line| &*line.file == "blur.wgsl"), "{:?}", kernel.lines);
        assert_eq!(module.source_text("blur.wgsl"), Some(text));
        let error = module.kernel("other", &BTreeMap::new()).unwrap_err();
        assert_eq!(error.message, "no compute entry point `other`; the module has `main`");
    }

    #[test]
    fn blocks_have_the_names_and_offsets_of_their_members() {
        let text = "struct Light { color: vec3f, kind: u32 }
            struct Scene { count: u32, at: vec3f, turn: mat3x3f, lights: array<Light> }
            @group(0) @binding(0) var<storage, read_write> scene: Scene;
            @group(0) @binding(1) var<storage, read> list: array<vec2<i32>>;
            @group(1) @binding(0) var<uniform> rows: array<vec4f, 3>;
            var<immediate> step: f32;
            @compute @workgroup_size(1) fn main() { scene.at.x = rows[1].x + step + f32(list[0].y); }";
        let blocks = Module::parse(text).unwrap().blocks("main", &BTreeMap::new()).unwrap();
        let shown: Vec<_> = blocks.buffers.values().map(ToString::to_string).collect();
        assert_eq!(shown, ["Scene", "array<vec2<i32>>", "array<vec4<f32>, 3>"]);
        let names: Vec<_> = blocks.names.values().map(String::as_str).collect();
        assert_eq!(names, ["scene", "list", "rows"]);
        let DataLayout::Struct { members, .. } = &blocks.buffers[&(0, 0)] else { panic!("{blocks:?}") };
        let members = members.iter().map(|member| format!("{} {} {}", member.offset, member.name, member.layout));
        assert_eq!(
            members.collect::<Vec<_>>(),
            ["0 count u32", "16 at vec3<f32>", "32 turn mat3x3<f32>", "80 lights array<Light>"]
        );
        assert_eq!(blocks.buffers[&(0, 0)].tail().unwrap().0, 80);
        assert_eq!(blocks.push.unwrap().to_string(), "f32");
    }

    #[test]
    fn what_is_not_supported_is_named() {
        let text = "@compute @workgroup_size(1) fn main() { }
            @group(0) @binding(0) var tex: texture_external;";
        let error = Module::parse(text).unwrap_err().to_string();
        assert!(error.contains("TEXTURE_EXTERNAL"), "{error}");
    }

    #[test]
    fn overrides_take_their_values_by_id_or_without_one_by_a_number_above() {
        let source = "@id(7) override a: i32 = 1; @id(8) override b: f32; override c: bool = true; override d: u32 = 1;
            @group(0) @binding(0) var<storage, read_write> out: array<f32>;
            @compute @workgroup_size(1) fn main() { out[0] = select(0.0, f32(a) + b, c); }";
        let module = Module::parse(source).unwrap();
        let constants: Vec<_> = module.specialization_constants().map(|constant| constant.to_string()).collect();
        assert_eq!(constants, ["7 (a: i32)", "8 (b: f32)", "c (bool)", "d (u32)"]);
        let keys: Vec<_> = module.specialization_constants().map(|constant| constant.key).collect();
        assert_eq!(keys, [7, 8, 65536 + 2, 65536 + 3]);
        let mut values =
            BTreeMap::from([(7, (-3i32).cast_unsigned().into()), (8, 0.5f32.to_bits().into()), (99, 1u64)]);
        assert_eq!(module.constants(&values), PipelineConstants::from_iter([("7".into(), -3.0), ("8".into(), 0.5)]));
        values.insert(keys[3], 40);
        assert_eq!(module.constants(&values).get("d"), Some(&40.0));
        let missing = module.to_spirv("main", &BTreeMap::new()).unwrap_err();
        assert!(missing.to_string().contains('b'), "{missing}");
        assert_eq!(module.to_spirv("main", &values).unwrap()[0], 0x0723_0203);
    }

    #[test]
    fn every_entry_point_can_be_asked_for() {
        let source = "@compute @workgroup_size(1) fn one() {} @compute @workgroup_size(2) fn two() {}";
        let module = Module::parse(source).unwrap();
        assert_eq!(module.entry_points().collect::<Vec<_>>(), ["one", "two"]);
        for name in ["one", "two"] {
            assert!(module.to_spirv(name, &BTreeMap::new()).is_ok());
        }
        let error = module.kernel("three", &BTreeMap::new()).unwrap_err();
        assert_eq!(error.message, "no compute entry point `three`; the module has `one`, `two`");
    }
}
