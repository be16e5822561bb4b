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
    Err(Failure::shader(path, format!("the compiler rejects it:\n{}", last_lines(messages.trim()))))
}

/// Lines of a compiler that are shown.
const MAX_LINES: usize = 40;

/// The last lines: before them, glslc may list all built-in functions.
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
}
