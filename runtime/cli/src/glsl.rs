//! GLSL to SPIR-V, by `glslc` or `glslangValidator` if one is installed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::failure::Failure;

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
    let path = scratch.0.join("stdin.comp");
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

/// The result of a compiler; `None` if it is not installed.
fn run(program: &str, options: &[&str], scratch: &Scratch, path: &Path) -> Result<Option<Output>, Failure> {
    match Command::new(program).args(options).arg(scratch.module()).arg(path).output() {
        Ok(output) => Ok(Some(output)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::file(path, format!("{program}: {error}"))),
    }
}

fn finish(path: &Path, scratch: &Scratch, output: &Output) -> Result<Vec<u8>, Failure> {
    if output.status.success() {
        return std::fs::read(scratch.module()).map_err(|error| Failure::file(path, error));
    }
    let messages = [&output.stdout[..], &output.stderr[..]].concat();
    let messages = String::from_utf8_lossy(&messages);
    Err(Failure::file(path, format!("the compiler rejects it:\n{}", messages.trim())))
}

/// A folder for the compiler's output, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Self, Failure> {
        let parent = std::env::temp_dir();
        // Another process may have left a folder, so a name that exists is not used.
        for number in 0..1000 {
            let path = parent.join(format!("spelter-{}-{number}", std::process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Self(path)),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(Failure::file(&path, error)),
            }
        }
        Err(Failure::file(&parent, "no name for a temporary folder is free"))
    }

    fn module(&self) -> PathBuf {
        self.0.join("module.spv")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed is left to the system.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
