//! Tests that are written to files: those that are derived from shaders, and their repairs.

use std::path::Path;

use spelter_memory_model::format::{Format, write_dartagnan, write_khronos};
use spelter_memory_model::program::Program;

use crate::failure::Failure;

/// Writes a program as a test in the format that the name of the file tells. Khronos tests state whether it races.
pub(super) fn write(option: &str, path: &Path, program: &Program, races: Option<bool>) -> Result<(), Failure> {
    let failed = |problem: String| Failure::new(format!("{option} {}: {problem}", path.display()));
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let text = match Format::of_extension(extension) {
        Some(Format::Khronos) => {
            let other = path.with_extension("litmus");
            let hint = "which has registers, branches, initial values and computed values";
            let cannot = |error| failed(format!("{error}: name the file {}, {hint}", other.display()));
            let program = write_khronos(program).map_err(cannot)?;
            let questions = match races {
                Some(true) => "SATISFIABLE consistent[X] && #dr>0\n",
                Some(false) => "SATISFIABLE consistent[X] && #dr=0\nNOSOLUTION consistent[X] && #dr>0\n",
                None => "",
            };
            format!("// derived from a shader\n{program}{questions}")
        }
        Some(Format::Dartagnan) => write_dartagnan(program).map_err(|error| failed(error.to_string()))?,
        None => return Err(failed("the name must end with .test (Khronos) or .litmus (Dat3M)".to_owned())),
    };
    std::fs::write(path, text).map_err(|error| Failure::file(path, error))
}
