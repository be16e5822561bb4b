//! Conversion of a script's shader to SPIR-V words.

use std::path::Path;

use spelter_shaders::front::spvasm;

use super::tool::{self, ToolResult};
use crate::amber::Stop;
use crate::amber::script::{AmberLanguage, AmberShader, AmberSource, Pipeline, SourceLines};
use crate::file;

/// The largest shader file in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The target environment of a shader that names none.
const DEFAULT_TARGET: &str = "spv1.0";

/// What glslc calls its input.
const INPUT: &str = "<stdin>";

/// The words of a pipeline's shader, optimised if the pipeline asks for it. `script` is the script's file.
pub(super) fn words(shader: &AmberShader, pipeline: &Pipeline, script: &Path) -> Result<Vec<u32>, Stop> {
    let folder = script.parent().unwrap_or(Path::new(""));
    let source = match &shader.source {
        AmberSource::Inline(text) => text.as_bytes().to_vec(),
        AmberSource::File(path) => load(folder, path)?,
    };
    let words = match shader.language {
        AmberLanguage::Glsl => compile(shader, "glsl", (target(shader)?, script), &source)?,
        AmberLanguage::Hlsl => compile(shader, "hlsl", (target(shader)?, script), &source)?,
        AmberLanguage::Assembly => assemble(shader, target(shader)?, &source)?,
        AmberLanguage::Hex => hex(shader, &source)?,
        AmberLanguage::Binary => to_words(shader, &source)?,
    };
    if pipeline.passes.is_empty() { Ok(words) } else { optimize(shader, pipeline, &words) }
}

/// The target environment. One of SPIR-V or Vulkan that does not exist is an error here, so that the error does not
/// depend on the tools of the machine.
fn target(shader: &AmberShader) -> Result<&str, Stop> {
    let target = shader.target.as_deref().unwrap_or(DEFAULT_TARGET);
    if ["spv", "vulkan"].iter().any(|start| target.starts_with(start)) && minor_version(target).is_none() {
        return Err(no_target(shader, target));
    }
    Ok(target)
}

fn fail(shader: &AmberShader, problem: &str) -> Stop {
    Stop::Fail(format!("{}:{}: shader `{}`: {problem}", shader.at.line, shader.at.column, shader.name))
}

fn no_target(shader: &AmberShader, target: &str) -> Stop {
    fail(shader, &format!("there is no target environment `{target}`"))
}

/// A file next to the script. If it is absent, it was left out of a collection, so the script is skipped.
fn load(folder: &Path, path: &str) -> Result<Vec<u8>, Stop> {
    let full = folder.join(path);
    if !full.exists() {
        return Err(Stop::Skip(format!("needs the file `{path}`, which is not there")));
    }
    file::read(&full, MAX_BYTES).map_err(|failure| Stop::Fail(failure.to_string()))
}

/// Compiles with debug lines: those of the script, or of the shader's own file.
fn compile(
    shader: &AmberShader,
    language: &str,
    (target, script): (&str, &Path),
    source: &[u8],
) -> Result<Vec<u32>, Stop> {
    let (before, file) = match &shader.lines {
        SourceLines::Script(before) => (*before, script.display().to_string()),
        SourceLines::File(path) => (0, path.clone()),
    };
    let source = moved_down(source, before as usize);
    let environment = format!("--target-env={}", vulkan(target));
    let mut arguments = vec!["-x", language, "-fshader-stage=compute", "-g", &environment];
    let version = format!("--target-spv={target}");
    if target.starts_with("spv") {
        arguments.push(&version);
    }
    arguments.extend(["-o", "-", "-"]);
    match tool::run("glslc", &arguments, &source)? {
        ToolResult::Output(bytes) => Ok(with_file(&to_words(shader, &bytes)?, &file)),
        ToolResult::Rejected(message) => Err(fail(shader, &message.replace(INPUT, &file))),
        ToolResult::Missing => {
            Err(Stop::Skip(format!("needs glslc, a compiler for {}", language.to_ascii_uppercase())))
        }
    }
}

/// The source with this many more lines in front. A `#version` is in the first of them: in OpenGL ES nothing may come
/// before it.
fn moved_down(source: &[u8], lines: usize) -> Vec<u8> {
    let is_version = |line: &&[u8]| line.trim_ascii_start().starts_with(b"#version");
    let own: Vec<&[u8]> = source.split(|&byte| byte == b'\n').collect();
    let version = own.iter().position(is_version).filter(|_| lines > 0);
    let mut all = vec![&b""[..]; lines];
    all.extend(own);
    if let Some(at) = version {
        all.swap(0, lines + at);
    }
    all.join(&b'\n')
}

/// A module whose debug lines are in this file in place of the compiler's input.
fn with_file(words: &[u32], file: &str) -> Vec<u32> {
    const HEADER: usize = 5;
    const STRING: u32 = 7;
    let text = |text: &str| {
        let mut bytes = text.as_bytes().to_vec();
        bytes.resize((bytes.len() / 4 + 1) * 4, 0);
        bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect::<Vec<_>>()
    };
    let (input, file) = (text(INPUT), text(file));
    let (header, mut rest) = words.split_at(HEADER.min(words.len()));
    let mut out = header.to_vec();
    while let Some(&first) = rest.first() {
        let (inst, after) = rest.split_at((first >> 16).max(1).min(rest.len() as u32) as usize);
        match inst {
            // A name that is too long for an instruction stays as it is.
            &[_, id, ref name @ ..] if first & 0xffff == STRING && *name == input && file.len() < 0xfffe => {
                out.extend([(file.len() as u32 + 2) << 16 | STRING, id]);
                out.extend(&file);
            }
            _ => out.extend_from_slice(inst),
        }
        rest = after;
    }
    out
}

/// The minor version of SPIR-V 1 of a target environment.
fn minor_version(target: &str) -> Option<u32> {
    match target {
        "spv1.0" | "vulkan1.0" | "vulkan" => Some(0),
        "spv1.1" => Some(1),
        "spv1.2" => Some(2),
        "spv1.3" | "vulkan1.1" => Some(3),
        "spv1.4" | "vulkan1.1spv1.4" => Some(4),
        "spv1.5" | "vulkan1.2" => Some(5),
        "spv1.6" | "vulkan1.3" | "vulkan1.4" => Some(6),
        _ => None,
    }
}

/// The oldest version of Vulkan that supports this version of SPIR-V, with an extension for 1.4.
fn vulkan(target: &str) -> &str {
    match target {
        "spv1.0" => "vulkan1.0",
        "spv1.1" | "spv1.2" | "spv1.3" | "spv1.4" => "vulkan1.1",
        "spv1.5" => "vulkan1.2",
        "spv1.6" => "vulkan1.3",
        other => other,
    }
}

fn assemble(shader: &AmberShader, target: &str, source: &[u8]) -> Result<Vec<u32>, Stop> {
    match tool::run("spirv-as", &["--target-env", target, "-o", "-", "-"], source)? {
        ToolResult::Output(bytes) => to_words(shader, &bytes),
        ToolResult::Rejected(message) => Err(fail(shader, &message)),
        ToolResult::Missing => assemble_here(shader, target, source),
    }
}

/// Assembles with Spelter's assembler, which reads the version from a comment; scripts state it outside of the text.
fn assemble_here(shader: &AmberShader, target: &str, source: &[u8]) -> Result<Vec<u32>, Stop> {
    let minor = minor_version(target).ok_or_else(|| no_target(shader, target))?;
    let text = std::str::from_utf8(source).map_err(|_| fail(shader, "the text is not UTF-8"))?;
    let mut words = spvasm::assemble(text).map_err(|error| fail(shader, &error.to_string()))?;
    if let Some(version) = words.get_mut(1) {
        *version = 0x0001_0000 | minor << 8;
    }
    Ok(words)
}

/// Words in hexadecimal, between spaces, commas and line ends.
fn hex(shader: &AmberShader, source: &[u8]) -> Result<Vec<u32>, Stop> {
    let text = std::str::from_utf8(source).map_err(|_| fail(shader, "the text is not UTF-8"))?;
    let words = text.split(|c: char| c.is_ascii_whitespace() || c == ',').filter(|word| !word.is_empty());
    let word = |word: &str| {
        let digits = word.strip_prefix("0x").unwrap_or(word);
        u32::from_str_radix(digits, 16).map_err(|_| fail(shader, &format!("`{word}` is not a hexadecimal word")))
    };
    words.map(word).collect()
}

/// The words of a SPIR-V file, which may have either byte order.
fn to_words(shader: &AmberShader, bytes: &[u8]) -> Result<Vec<u32>, Stop> {
    if bytes.is_empty() || !bytes.len().is_multiple_of(4) {
        return Err(fail(shader, &format!("{} bytes are not a whole number of words", bytes.len())));
    }
    let little = bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    let swapped = bytes[0] == 0x07;
    Ok(little.map(|word| if swapped { word.swap_bytes() } else { word }).collect())
}

fn optimize(shader: &AmberShader, pipeline: &Pipeline, words: &[u32]) -> Result<Vec<u32>, Stop> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    // Only names of passes: an option could name files.
    let passes: Vec<String> =
        pipeline.passes.iter().map(|pass| format!("--{}", pass.trim_start_matches('-'))).collect();
    if let Some(other) = passes.iter().find(|pass| !pass.chars().all(|c| c.is_ascii_alphanumeric() || "-=".contains(c)))
    {
        return Err(fail(shader, &format!("`{other}` is not an optimization")));
    }
    let mut arguments: Vec<&str> = passes.iter().map(String::as_str).collect();
    arguments.extend(["-o", "-", "-"]);
    match tool::run("spirv-opt", &arguments, &bytes)? {
        ToolResult::Output(bytes) => to_words(shader, &bytes),
        ToolResult::Rejected(message) => Err(fail(shader, &message)),
        ToolResult::Missing => Err(Stop::Skip("needs spirv-opt for SHADER_OPTIMIZATION".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amber;

    fn shader(text: &str) -> AmberShader {
        let script = amber::parse(&format!("#!amber\n{text}"), Path::new(""));
        script.unwrap_or_else(|stop| panic!("{stop:?}")).shaders.remove(0)
    }

    #[test]
    fn hexadecimal_words() {
        let shader = shader("SHADER compute s SPIRV-HEX\n0x07230203, 10000\n  ff\nEND");
        let AmberSource::Inline(text) = &shader.source else { panic!("{shader:?}") };
        assert_eq!(hex(&shader, text.as_bytes()), Ok(vec![0x0723_0203, 0x0001_0000, 0xff]));
        assert_eq!(hex(&shader, b"1g"), Err(Stop::Fail("2:1: shader `s`: `1g` is not a hexadecimal word".into())));
    }

    #[test]
    fn debug_lines_have_the_name_of_the_file() {
        let words = |text: &str| spvasm::assemble(text).unwrap_or_default();
        let module = |file: &str| words(&format!("%1 = OpString \"{file}\"\n%2 = OpString \"other\"\nOpLine %1 3 0"));
        for file in ["a.amber", "a folder/another.amber", ""] {
            assert_eq!(with_file(&module(INPUT), file), module(file), "{file}");
        }
        assert_eq!(with_file(&[7], "a"), [7]);
    }

    #[test]
    fn lines_of_a_shader_are_those_of_its_script() {
        let moved = |source: &str, lines| String::from_utf8(moved_down(source.as_bytes(), lines)).unwrap_or_default();
        assert_eq!(moved("a\nb\n", 2), "\n\na\nb\n");
        assert_eq!(moved("#version 310 es\nb", 2), "#version 310 es\n\n\nb");
        assert_eq!(moved("// c\n #version 450\nb", 0), "// c\n #version 450\nb");
    }

    #[test]
    fn words_of_both_byte_orders() {
        let shader = shader("SHADER compute s SPIRV-HEX\nEND");
        assert_eq!(to_words(&shader, &[3, 2, 0x23, 7, 1, 0, 0, 0]), Ok(vec![0x0723_0203, 1]));
        assert_eq!(to_words(&shader, &[7, 0x23, 2, 3, 0, 0, 0, 1]), Ok(vec![0x0723_0203, 1]));
        assert!(to_words(&shader, &[1, 2, 3]).is_err());
    }

    #[test]
    fn assembled_words_have_the_version_of_the_target() {
        let shader = shader("SHADER compute s SPIRV-ASM\nOpNop\nEND");
        for (target, version) in [("spv1.0", 0x0001_0000), ("spv1.5", 0x0001_0500), ("vulkan1.1", 0x0001_0300)] {
            let words = assemble_here(&shader, target, b"OpNop").unwrap_or_default();
            assert_eq!(words.get(1), Some(&version), "{target}");
        }
        assert!(assemble_here(&shader, "opencl2.0", b"OpNop").is_err());
    }
}
