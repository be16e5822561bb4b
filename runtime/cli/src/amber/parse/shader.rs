//! `SHADER`.

use super::{Parser, declare};
use crate::amber::Stop;
use crate::amber::script::{AmberLanguage, AmberShader, AmberSource, SourceLines};
use crate::amber::text::SourcePosition;

/// The other stages, which a compute device does not support.
const GRAPHICS: [&str; 5] = ["vertex", "fragment", "geometry", "tessellation_evaluation", "tessellation_control"];
const RAY_TRACING: [&str; 6] = ["ray_generation", "any_hit", "closest_hit", "miss", "intersection", "callable"];

impl Parser<'_> {
    pub(super) fn shader(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let stage = self.cursor.expect("a shader type")?;
        match stage.text {
            // A compute pipeline uses the compute entry points of a module for several stages.
            "compute" | "multi" => {}
            text if GRAPHICS.contains(&text) => return Err(stage.at.skip("needs a graphics pipeline")),
            text if RAY_TRACING.contains(&text) => return Err(stage.at.skip("needs ray tracing")),
            text => return Err(stage.fail(format!("there is no shader type `{text}`"))),
        }
        let name = self.cursor.expect("the shader's name")?;
        let format = self.cursor.expect("a shader format")?;
        let language = match format.text {
            "GLSL" => AmberLanguage::Glsl,
            "HLSL" => AmberLanguage::Hlsl,
            "SPIRV-ASM" => AmberLanguage::Assembly,
            "SPIRV-HEX" => AmberLanguage::Hex,
            "SPIRV-BIN" => AmberLanguage::Binary,
            "OPENCL-C" => return Err(format.at.skip("needs clspv, a compiler for OPENCL-C")),
            text => return Err(format.fail(format!("there is no shader format `{text}`"))),
        };
        let spirv = matches!(language, AmberLanguage::Assembly | AmberLanguage::Hex | AmberLanguage::Binary);
        if stage.text == "multi" && !spirv {
            return Err(format.fail("a shader for several stages is SPIR-V"));
        }
        let target = if self.cursor.take("TARGET_ENV") {
            Some(self.cursor.expect("a target environment")?.text.to_owned())
        } else {
            None
        };
        let (source, lines) = self.source(at, language)?;
        self.cursor.line_end()?;
        declare(&mut self.names.shaders, "shader", name, self.script.shaders.len())?;
        self.script.shaders.push(AmberShader { name: name.text.to_owned(), at, language, source, lines, target });
        Ok(())
    }

    fn source(&mut self, at: SourcePosition, language: AmberLanguage) -> Result<(AmberSource, SourceLines), Stop> {
        if self.cursor.take("FILE") {
            let path = self.cursor.expect("a path")?.text.to_owned();
            return Ok((AmberSource::File(path.clone()), SourceLines::File(path)));
        }
        if language == AmberLanguage::Binary {
            return Err(self.cursor.place().fail("SPIRV-BIN is read from a FILE"));
        }
        if self.cursor.take("VIRTUAL_FILE") {
            let path = self.cursor.expect("a path")?;
            let text = self.script.virtual_files.get(path.text);
            let text = text.ok_or_else(|| path.fail(format!("there is no virtual file `{}`", path.text)))?;
            return Ok((AmberSource::Inline(text.clone()), SourceLines::File(path.text.to_owned())));
        }
        let lines = SourceLines::Script(self.cursor.place().line);
        Ok((AmberSource::Inline(self.cursor.raw_block("SHADER", at)?.to_owned()), lines))
    }
}
