//! GLSL to SPIR-V, by `glslc` or `glslangValidator` if one is installed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::failure::Failure;
use crate::scratch::Scratch;

/// The Vulkan version for which GLSL is compiled: that of the device.
const TARGET: &str = "vulkan1.3";

/// The bytes of the SPIR-V module for a compute shader in GLSL, with debug lines. The compiler reads the file, for
/// `#include` and for places in its messages.
pub(crate) fn compile(path: &Path) -> Result<Vec<u8>, Failure> {
    compile_in(&Scratch::new()?, path)
}

/// As [`compile`], for a text from elsewhere.
pub(crate) fn compile_text(text: &[u8]) -> Result<Vec<u8>, Failure> {
    let scratch = Scratch::new()?;
    let path = scratch.path().join("stdin.comp");
    std::fs::write(&path, text).map_err(|error| Failure::file(&path, error))?;
    compile_in(&scratch, &path)
}

fn compile_in(scratch: &Scratch, path: &Path) -> Result<Vec<u8>, Failure> {
    let target = format!("--target-env={TARGET}");
    let options = ["-fshader-stage=compute", &target, "-g", "-o"];
    if let Some(output) = run("glslc", &options, scratch, path)? {
        return finish(path, scratch, &output);
    }
    let options = ["-V", "--target-env", TARGET, "-S", "comp", "-g", "-o"];
    if let Some(output) = run("glslangValidator", &options, scratch, path)? {
        return finish(path, scratch, &output);
    }
    let hint = "install one, or compile the shader elsewhere: glslc -fshader-stage=compute FILE -o FILE.spv";
    Err(Failure::file(path, format!("GLSL needs glslc or glslangValidator, and neither is installed: {hint}")))
}

/// The compiler's output.
fn module(scratch: &Scratch) -> PathBuf {
    scratch.path().join("module.spv")
}

/// The result of a compiler; `None` if it is not installed.
fn run(program: &str, options: &[&str], scratch: &Scratch, path: &Path) -> Result<Option<Output>, Failure> {
    match Command::new(program).args(options).arg(module(scratch)).arg(path).output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::file(path, format!("{program}: {error}"))),
    }
}

fn finish(path: &Path, scratch: &Scratch, output: &Output) -> Result<Vec<u8>, Failure> {
    if output.status.success() {
        return std::fs::read(module(scratch)).map_err(|error| Failure::file(path, error));
    }
    let messages = [&output.stdout[..], &output.stderr[..]].concat();
    let messages = String::from_utf8_lossy(&messages);
    Err(Failure::shader(path, format!("the compiler rejects it:\n{}", about_the_text(messages.trim()))))
}

/// Lines of a compiler that are shown.
const MAX_LINES: usize = 40;

/// The messages about the text: the compilers may list all built-in functions before them, which fail to compile, too,
/// if the version that the text asks for does not have them.
fn about_the_text(messages: &str) -> String {
    let is_message = |line: &&str| {
        let line = line.trim_start_matches("ERROR: ").trim_start_matches("WARNING: ");
        let (place, rest) = line.split_once(": ").unwrap_or((line, ""));
        let (file, number) = place.rsplit_once(':').unwrap_or((place, ""));
        let at_a_line = file != "0" && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        // What has no line: a version that does not exist, say.
        at_a_line || rest.starts_with("error: ") || place == "#version"
    };
    let found: Vec<&str> = messages.lines().filter(is_message).collect();
    let mut text = if found.is_empty() { last_lines(messages) } else { last_lines(&found.join("\n")) };
    if messages.contains("Unable to parse built-ins") {
        text += "\nthe first line of a compute shader has to be `#version 450`, or another version from 420 on";
    }
    text
}

/// The last lines.
fn last_lines(messages: &str) -> String {
    let lines: Vec<&str> = messages.lines().collect();
    match lines.len().checked_sub(MAX_LINES) {
        None | Some(0) => messages.to_owned(),
        Some(before) => format!("({before} lines before)\n{}", lines[before..].join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lines_the_last_ones_are_shown() {
        assert_eq!(last_lines("a\nb"), "a\nb");
        let many: Vec<String> = (0..MAX_LINES + 2).map(|line| line.to_string()).collect();
        let shown = last_lines(&many.join("\n"));
        assert!(shown.starts_with("(2 lines before)\n2\n3\n") && shown.ends_with("\n41"), "{shown}");
    }

    #[test]
    fn messages_are_those_about_the_text() {
        let glslc = "vec4 sin(vec4);\nERROR: 0:350: 'double' : not supported with this profile: none\n\
                     INTERNAL ERROR: Unable to parse built-ins\nfloat radians(float);\n\
                     a.comp: error: #version: too old\na.comp:1: error: '' :  syntax error\n3 errors generated.";
        let shown = about_the_text(glslc);
        assert!(shown.starts_with("a.comp: error: #version: too old\na.comp:1: error: '' :  syntax error\nthe first"));
        let validator = "a.comp\nERROR: a.comp:5: 'max' : no matching overloaded function found\n\
                         ERROR: 1 compilation errors.  No code generated.\n\nSPIR-V is not generated";
        assert_eq!(about_the_text(validator), "ERROR: a.comp:5: 'max' : no matching overloaded function found");
        assert_eq!(about_the_text("glslc: out of memory"), "glslc: out of memory");
    }
}
