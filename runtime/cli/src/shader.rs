//! Reads a shader file, by its extension.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use spelter::{Context, Program, Source, SpecializationConstant};
use spelter_shaders::compile::Module;
use spelter_shaders::front;
use spelter_shaders::front::spvasm::{self, Places};

use crate::failure::Failure;
use crate::file;
use crate::slot::Spec;

/// The largest shader file in bytes: more than the reader accepts in any form.
const MAX_BYTES: u64 = 64 << 20;

/// The magic number of SPIR-V in the other byte order.
const SWAPPED_MAGIC: u32 = spirv_magic().swap_bytes();

const fn spirv_magic() -> u32 {
    0x0723_0203
}

/// A shader in memory.
pub(crate) struct Shader {
    path: PathBuf,
    contents: Contents,
}

enum Contents {
    Wgsl(String),
    /// The words, with their places in the text if they were assembled from one.
    Spirv(Vec<u32>, Option<Places>),
}

/// Reads a `.wgsl`, `.spv` or `.spvasm` file.
pub(crate) fn load(path: &Path) -> Result<Shader, Failure> {
    let extension = path.extension().and_then(OsStr::to_str).map(str::to_ascii_lowercase);
    let contents = match extension.as_deref() {
        Some("wgsl") => Contents::Wgsl(text(path)?),
        Some("spv") => {
            let words = words(&bytes(path)?).map_err(|problem| Failure::file(path, problem))?;
            Contents::Spirv(words, None)
        }
        Some("spvasm") => {
            let (words, places) = spvasm::assemble_with_places(&text(path)?).map_err(|error| refused(path, error))?;
            Contents::Spirv(words, Some(places))
        }
        Some("comp" | "glsl" | "hlsl") => {
            return Err(Failure::file(path, "compile it first: glslc -fshader-stage=compute FILE -o FILE.spv"));
        }
        _ => return Err(Failure::file(path, "not a shader: the name must end with .wgsl, .spv or .spvasm")),
    };
    Ok(Shader { path: path.to_owned(), contents })
}

impl Shader {
    /// The program of the chosen entry point, specialized.
    pub(crate) fn program(&self, context: &Context, entry: Option<&str>, specs: &[Spec]) -> Result<Program, Failure> {
        check_once(specs)?;
        let source = match &self.contents {
            Contents::Wgsl(text) => Source::Wgsl(text),
            Contents::Spirv(words, _) => Source::Spirv(words),
        };
        let mut builder = context.program(source);
        if let Some(entry) = entry {
            builder = builder.entry(entry);
        }
        for spec in specs {
            builder = builder.specialize(spec.id, spec.value);
        }
        builder.build().map_err(|error| self.refused(error))
    }

    /// The shader as the reader's module.
    pub(crate) fn module(&self) -> Result<Module, Failure> {
        let module = match &self.contents {
            Contents::Wgsl(text) => Module::from_wgsl(text),
            Contents::Spirv(words, _) => Module::from_spirv(words),
        };
        module.map_err(|error| self.refused(error))
    }

    /// A failure with the shader's path.
    pub(crate) fn problem(&self, problem: impl fmt::Display) -> Failure {
        refused(&self.path, problem)
    }

    /// The failure for a shader that is rejected. Places in assembled words become lines and names of the text, and a
    /// broken rule of Vulkan is reported without the name of a call.
    pub(crate) fn refused(&self, error: impl Into<spelter::Error>) -> Failure {
        match (error.into(), &self.contents) {
            (spelter::Error::Shader(error), Contents::Spirv(_, Some(places))) => {
                self.problem(places.in_terms_of_the_text(error))
            }
            (error, _) => self.problem(Failure::from(error)),
        }
    }

    /// The failure of a run. If the device was lost in a loop of the shader, the loop's place is given in the file.
    pub(crate) fn failed(&self, error: spelter::Error) -> Failure {
        let spelter::Error::DeviceLost(why) = error else { return error.into() };
        let mut why = why.replace(" at wgsl:", &format!(" at {}:", self.path.display()));
        if let Contents::Spirv(_, Some(places)) = &self.contents
            && let Some((before, after)) = why.split_once(" at SPIR-V word ")
        {
            let (word, rest) = after.split_once(' ').unwrap_or((after, ""));
            let of_word = front::Error { message: String::new(), word: word.parse().ok(), line: None };
            if let Some(line) = places.in_terms_of_the_text(of_word).line {
                why = format!("{before} at {}:{} {rest}", self.path.display(), line.line);
            }
        }
        spelter::Error::DeviceLost(why).into()
    }
}

/// The bits of specialization constants by their ids.
pub(crate) fn specialization(module: &Module, specs: &[Spec]) -> Result<BTreeMap<u32, u64>, Failure> {
    check_once(specs)?;
    let constants = module.specialization_constants();
    specs.iter().map(|spec| Ok((spec.id, spec.value.bits_for(find(spec.id, &constants)?)?))).collect()
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
    Failure::file(path, message)
}

fn check_once(specs: &[Spec]) -> Result<(), Failure> {
    let mut seen = BTreeSet::new();
    match specs.iter().find(|spec| !seen.insert(spec.id)) {
        Some(twice) => Err(Failure(format!("--spec {} is given twice", twice.id))),
        None => Ok(()),
    }
}

/// The constant with this id, or an error that names the option.
fn find(id: u32, constants: &[SpecializationConstant]) -> Result<&SpecializationConstant, Failure> {
    if let Some(constant) = constants.iter().find(|constant| constant.id == Some(id)) {
        return Ok(constant);
    }
    let list: Vec<_> = constants.iter().map(ToString::to_string).collect();
    let has = if list.is_empty() { "none".into() } else { list.join(", ") };
    Err(Failure(format!("--spec {id}: the shader has no such specialization constant; it has {has}")))
}

fn bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = file::read(path, MAX_BYTES)?;
    if bytes.is_empty() { Err(Failure::file(path, "the file is empty")) } else { Ok(bytes) }
}

/// The text of a file, without the byte order mark that some editors put before it.
fn text(path: &Path) -> Result<String, Failure> {
    let text = String::from_utf8(bytes(path)?).map_err(|error| Failure::file(path, format!("not a text: {error}")))?;
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
