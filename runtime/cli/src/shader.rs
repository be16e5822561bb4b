//! Reads a shader file, by its extension.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use spelter::{Context, Program, Source, SpecializationConstant};
use spelter_driver::host_memory::{GrowingRoom, Room};
use spelter_jobs::digest;
use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm::{self, Positions};
use spelter_shaders::front::wgsl::MeasuredText;
use spelter_shaders::front::{self, room};
use spelter_shaders::ir::Kernel;

use crate::failure::Failure;
use crate::file;
use crate::glsl;
use crate::structured::{Spec, SpecName};

/// The largest shader file in bytes: more than the reader accepts in any form.
const MAX_BYTES: u64 = 64 << 20;

/// The magic number of SPIR-V in the other byte order.
const SWAPPED_MAGIC: u32 = spirv_magic().swap_bytes();

const fn spirv_magic() -> u32 {
    0x0723_0203
}

/// What is wrong with a shader of other stages.
pub(crate) const NOT_COMPUTE: &str = "the shader has no compute entry point: Spelter runs compute shaders only, \
     no vertex, fragment or other stages; in WGSL that is a function with `@compute @workgroup_size(…)`";

/// Extensions of GLSL shaders of other stages.
const OTHER_STAGES: [&str; 13] =
    ["vert", "frag", "geom", "tesc", "tese", "mesh", "task", "rgen", "rint", "rahit", "rchit", "rmiss", "rcall"];

/// A shader in memory.
pub(crate) struct Shader {
    path: PathBuf,
    contents: ShaderCode,
    /// The host memory that reading the module takes, once it is known.
    bytes_to_read: OnceLock<u64>,
}

enum ShaderCode {
    Wgsl(String),
    /// The words, with the text if they were assembled from one.
    Spirv(Vec<u32>, Option<Assembly>),
}

/// SPIR-V as text, and the positions of its words.
struct Assembly {
    text: Arc<str>,
    positions: Positions,
}

/// The languages of shader files.
enum Language {
    Wgsl,
    Spirv,
    Assembly,
    Glsl,
}

impl Language {
    fn of_extension(extension: &str) -> Option<Self> {
        match extension {
            "wgsl" => Some(Self::Wgsl),
            "spv" => Some(Self::Spirv),
            "spvasm" => Some(Self::Assembly),
            "comp" | "glsl" => Some(Self::Glsl),
            _ => None,
        }
    }
}

fn extension(path: &Path) -> Option<String> {
    path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase)
}

/// Whether a file has the name of a shader that can be read.
pub(crate) fn is_shader(path: &Path) -> bool {
    extension(path).is_some_and(|extension| Language::of_extension(&extension).is_some())
}

/// Reads a shader: a `.wgsl`, `.spv`, `.spvasm`, `.comp` or `.glsl` file, or standard input.
pub(crate) fn load(path: &Path) -> Result<Shader, Failure> {
    let extension = extension(path);
    let known = extension.as_deref().and_then(Language::of_extension);
    let language = match (known, extension.as_deref()) {
        _ if file::is_stdin(path) => return of_stdin(path),
        (Some(language), _) => language,
        (_, Some("hlsl")) => {
            let hint = "compile it first: glslc -x hlsl -fshader-stage=compute FILE -o FILE.spv";
            return Err(Failure::file(path, hint));
        }
        (_, Some(other)) if OTHER_STAGES.contains(&other) => return Err(Failure::shader(path, NOT_COMPUTE)),
        _ => {
            let names = ".wgsl, .spv, .spvasm, .comp or .glsl";
            return Err(Failure::file(path, format!("not a shader: the name must end with {names}")));
        }
    };
    let bytes = bytes(path)?;
    let bytes = if matches!(language, Language::Glsl) { glsl::compile(path)? } else { bytes };
    Ok(Shader::new(path, contents(path, &language, bytes)?))
}

/// The shader in standard input, whose language its first bytes show.
fn of_stdin(path: &Path) -> Result<Shader, Failure> {
    let bytes = bytes(path)?;
    let magic = bytes.first_chunk().map(|word| u32::from_le_bytes(*word));
    let language = match magic {
        Some(magic) if [spirv_magic(), SWAPPED_MAGIC].contains(&magic) => Language::Spirv,
        _ if has_line(&bytes, "#version") => {
            let bytes = glsl::compile_text(&bytes)?;
            return Ok(Shader::new(path, contents(path, &Language::Glsl, bytes)?));
        }
        _ if has_line(&bytes, "OpCapability") => Language::Assembly,
        _ => Language::Wgsl,
    };
    Ok(Shader::new(path, contents(path, &language, bytes)?))
}

/// Whether a line of a text starts with that word.
fn has_line(text: &[u8], word: &str) -> bool {
    text.split(|&byte| byte == b'\n').any(|line| line.trim_ascii_start().starts_with(word.as_bytes()))
}

fn contents(path: &Path, language: &Language, bytes: Vec<u8>) -> Result<ShaderCode, Failure> {
    Ok(match language {
        Language::Wgsl => ShaderCode::Wgsl(text(path, bytes)?),
        Language::Spirv | Language::Glsl => {
            let words = words(&bytes).map_err(|problem| Failure::shader(path, problem))?;
            ShaderCode::Spirv(words, None)
        }
        Language::Assembly => {
            let text = text(path, bytes)?;
            let _room = Room::of(room::of_assembly(text.as_bytes())).map_err(|error| Failure::file(path, error))?;
            let (words, positions) = spvasm::assemble_with_positions(&text).map_err(|error| refused(path, error))?;
            ShaderCode::Spirv(words, Some(Assembly { text: text.into(), positions }))
        }
    })
}

impl Shader {
    fn new(path: &Path, contents: ShaderCode) -> Self {
        Self { path: path.to_owned(), contents, bytes_to_read: OnceLock::new() }
    }

    /// A short text that differs for other contents.
    pub(crate) fn digest(&self) -> String {
        match &self.contents {
            ShaderCode::Wgsl(text) => digest(text),
            ShaderCode::Spirv(words, _) => digest(&format!("{words:x?}")),
        }
    }

    /// The program of the chosen entry point, specialized. Arrays of descriptors that the shader declares without a
    /// size have the number of elements that `elements` gives for their group and binding.
    pub(crate) fn program_with_arrays(
        &self,
        context: &Context,
        entry: Option<&str>,
        specs: &[Spec],
        elements: &BTreeMap<(u32, u32), u32>,
    ) -> Result<Program, Failure> {
        check_once(specs)?;
        let source = match &self.contents {
            ShaderCode::Wgsl(text) => Source::Wgsl(text),
            ShaderCode::Spirv(words, _) => Source::Spirv(words),
        };
        let mut builder = context.program(source);
        if let Some(entry) = entry {
            builder = builder.entry(entry);
        }
        for spec in specs {
            builder = match &spec.name {
                SpecName::Id(id) => builder.specialize(*id, spec.value),
                SpecName::Name(name) => builder.specialize_named(name, spec.value),
            };
        }
        for (group, binding) in self.arrays_without_size(entry, specs)? {
            let Some(&count) = elements.get(&(group, binding)) else {
                let problem = "the shader declares an array without a size: options for its elements give the size";
                return Err(self.problem(format!("binding {group}.{binding}: {problem}, as in {group}.{binding}[0]=…")));
            };
            builder = builder.array(group, binding, count);
        }
        builder.build().map_err(|error| self.refused(error))
    }

    /// Group and binding of the arrays of descriptors without a size.
    fn arrays_without_size(&self, entry: Option<&str>, specs: &[Spec]) -> Result<Vec<(u32, u32)>, Failure> {
        let module = self.module()?;
        if !module.may_have_runtime_arrays() {
            return Ok(Vec::new());
        }
        let entry = spelter::choose_entry(module.entry_points(), entry).map_err(|error| self.refused(error))?;
        let kernel = self.kernel(&module, &entry, &specialization(&module, specs)?)?;
        let unsized_arrays = kernel.bindings.values().filter(|binding| binding.count == 0);
        Ok(unsized_arrays.map(|binding| (binding.set, binding.binding)).collect())
    }

    /// The shader as the reader's module.
    pub(crate) fn module(&self) -> Result<Module, Failure> {
        let module = match &self.contents {
            ShaderCode::Wgsl(text) => {
                let text = MeasuredText::new(text).map_err(|error| self.refused(error))?;
                let _room = self.room(*self.bytes_to_read.get_or_init(|| room::of_wgsl(text)))?;
                Module::from_measured_wgsl(text, None)
            }
            ShaderCode::Spirv(words, _) => {
                let _room = self.room_to_read()?;
                Module::from_spirv(words)
            }
        };
        module.map_err(|error| self.refused(error))
    }

    /// A kernel of the module, if the host has the memory to translate it.
    pub(crate) fn kernel(
        &self,
        module: &Module,
        entry: &str,
        specialization: &BTreeMap<u32, u64>,
    ) -> Result<Kernel, Failure> {
        let _room = self.room_to_read()?;
        let growing = GrowingRoom::default();
        let kernel = module.kernel_within(entry, specialization, true, &|bytes| growing.has(bytes));
        growing.result(kernel.map_err(spelter::Error::from)).map_err(|error| self.refused(error))
    }

    /// Promises the host memory to read the module, or to translate a kernel of it.
    pub(crate) fn room_to_read(&self) -> Result<Room, Failure> {
        let bytes = match (self.bytes_to_read.get(), &self.contents) {
            (Some(bytes), _) => *bytes,
            (None, ShaderCode::Wgsl(text)) => {
                room::of_wgsl(MeasuredText::new(text).map_err(|error| self.refused(error))?)
            }
            (None, ShaderCode::Spirv(words, _)) => room::of_spirv(words),
        };
        self.room(*self.bytes_to_read.get_or_init(|| bytes))
    }

    fn room(&self, bytes: u64) -> Result<Room, Failure> {
        Room::of(bytes).map_err(|refused| Failure::file(&self.path, refused))
    }

    /// Whether it has no entry point of a compute shader.
    fn has_no_entry_point(&self) -> bool {
        self.module().is_ok_and(|module| module.entry_points().next().is_none())
    }

    /// A listing with the file's path in its comments on source lines: the reader calls a WGSL text `wgsl`.
    pub(crate) fn listing(&self, text: String) -> String {
        match &self.contents {
            ShaderCode::Wgsl(_) => {
                let file = format!("    ; {}:", self.path.display());
                let mut shown = String::with_capacity(text.len());
                for line in text.split_inclusive('\n') {
                    match line.strip_prefix("    ; wgsl:") {
                        Some(place) => [&*file, place].into_iter().for_each(|part| shown.push_str(part)),
                        None => shown.push_str(line),
                    }
                }
                shown
            }
            ShaderCode::Spirv(..) => text,
        }
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The text of which its words were assembled.
    pub(crate) fn assembled_text(&self) -> Option<&Arc<str>> {
        let ShaderCode::Spirv(_, assembly) = &self.contents else { return None };
        assembly.as_ref().map(|assembly| &assembly.text)
    }

    /// The line of a word in assembled text.
    pub(crate) fn line_of_word(&self, word: u32) -> Option<u32> {
        let ShaderCode::Spirv(_, Some(Assembly { positions, .. })) = &self.contents else { return None };
        let of_word = front::Error { message: String::new(), word: Some(word as usize), line: None };
        positions.in_terms_of_the_text(of_word).line.map(|line| line.line)
    }

    /// A failure with the shader's path.
    pub(crate) fn problem(&self, problem: impl fmt::Display) -> Failure {
        refused(&self.path, problem)
    }

    /// The failure for a shader that is rejected. Places in assembled words become lines and names of the text, and a
    /// broken rule of Vulkan is reported without the name of a call.
    pub(crate) fn refused(&self, error: impl Into<spelter::Error>) -> Failure {
        match (error.into(), &self.contents) {
            (spelter::Error::Shader(error), ShaderCode::Spirv(_, Some(Assembly { positions, .. }))) => {
                self.problem(positions.in_terms_of_the_text(error))
            }
            (error @ spelter::Error::Shader(_), _) => self.problem(error),
            (spelter::Error::EntryPoint(_), _) if self.has_no_entry_point() => self.problem(NOT_COMPUTE),
            (spelter::Error::EntryPoint(why), _) if why.starts_with("several entry points") => {
                Failure::from(spelter::Error::EntryPoint(format!("{why} with --entry"))).of(self.path.display())
            }
            // An option does not fit the shader, or memory is exhausted.
            (error, _) => Failure::from(error).of(self.path.display()),
        }
    }

    /// The failure of a run. If the device was lost in a loop of the shader, the loop's place is given in the file.
    pub(crate) fn failed(&self, error: spelter::Error) -> Failure {
        let spelter::Error::DeviceLost(why) = error else { return error.into() };
        let mut why = why.replace(" at wgsl:", &format!(" at {}:", self.path.display()));
        if let ShaderCode::Spirv(_, Some(Assembly { positions, .. })) = &self.contents
            && let Some((before, after)) = why.split_once(" at SPIR-V word ")
        {
            let (word, rest) = after.split_once(' ').unwrap_or((after, ""));
            let of_word = front::Error { message: String::new(), word: word.parse().ok(), line: None };
            if let Some(line) = positions.in_terms_of_the_text(of_word).line {
                why = format!("{before} at {}:{} {rest}", self.path.display(), line.line);
            }
        }
        spelter::Error::DeviceLost(why).into()
    }
}

/// The bits of specialization constants by their keys.
pub(crate) fn specialization(module: &Module, specs: &[Spec]) -> Result<BTreeMap<u32, u64>, Failure> {
    check_once(specs)?;
    let constants = module.specialization_constants();
    let bits = |spec: &Spec| {
        let constant = find(&spec.name, &constants)?;
        Ok((constant.key, spec.value.bits_for(constant)?))
    };
    specs.iter().map(bits).collect()
}

/// The failure for a shader that is rejected. The reader does not know the file and calls a text `wgsl` or `spvasm`;
/// these names are replaced by the file's path, so that an editor finds the place.
fn refused(path: &Path, error: impl fmt::Display) -> Failure {
    let mut message = error.to_string();
    for text in ["wgsl", "spvasm"] {
        for before in ["┌─ ", " at "] {
            message = message.replace(&format!("{before}{text}:"), &format!("{before}{}:", path.display()));
        }
    }
    Failure::shader(path, message)
}

fn check_once(specs: &[Spec]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match specs.iter().find(|spec| !seen.insert(&spec.name)) {
        Some(twice) => Err(Failure::misuse(format!("--spec {} is given twice", twice.name))),
        None => Ok(()),
    }
}

/// The constant with this id or name, or an error that names the option.
fn find<'a>(name: &SpecName, constants: &'a [SpecializationConstant]) -> Result<&'a SpecializationConstant, Failure> {
    let mut found = constants.iter().filter(|constant| match name {
        SpecName::Id(id) => constant.id == Some(*id),
        SpecName::Name(name) => constant.name == *name,
    });
    match (found.next(), found.next()) {
        (Some(_), Some(_)) if matches!(name, SpecName::Name(_)) => {
            Err(Failure::misuse(format!("--spec {name}: several specialization constants have that name: use the ids")))
        }
        (Some(constant), _) => Ok(constant),
        (None, _) => {
            let list: Vec<_> = constants.iter().map(ToString::to_string).collect();
            let has = if list.is_empty() { "none".into() } else { list.join(", ") };
            Err(Failure::misuse(format!("--spec {name}: the shader has no such specialization constant; it has {has}")))
        }
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = file::read(path, MAX_BYTES)?;
    if bytes.is_empty() { Err(Failure::shader(path, "the file is empty")) } else { Ok(bytes) }
}

/// The text of a file, without the byte order mark that some editors put before it.
fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Failure> {
    let text = String::from_utf8(bytes).map_err(|error| Failure::shader(path, format!("not a text: {error}")))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

fn words(bytes: &[u8]) -> Result<Vec<u32>, String> {
    let (words, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(format!("not SPIR-V: {} bytes are not a whole number of words", bytes.len()));
    }
    let words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
    // SPIR-V may be stored in either byte order, which the magic number shows.
    let swapped = words[0] == SWAPPED_MAGIC;
    Ok(if swapped { words.into_iter().map(u32::swap_bytes).collect() } else { words })
}
