//! `PIPELINE` and `DERIVE_PIPELINE`; `BIND` is in `bind.rs`.

use std::collections::BTreeMap;

use super::{Parser, declare, find};
use crate::amber::Stop;
use crate::amber::number::AmberScalar;
use crate::amber::script::{Need, Pipeline, Subgroup, SubgroupSize};
use crate::amber::text::{SourcePosition, Word};

/// Statements of graphics and ray-tracing pipelines.
const GRAPHICS: [&str; 10] = [
    "VERTEX_DATA",
    "INDEX_DATA",
    "POLYGON_MODE",
    "DEPTH",
    "STENCIL",
    "BLEND",
    "VIEWPORT",
    "PATCH_CONTROL_POINTS",
    "SHADER_GROUP",
    "SHADER_BINDING_TABLE",
];

impl<'t> Parser<'t> {
    pub(super) fn pipeline(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let kind = self.cursor.expect("a pipeline type")?;
        match kind.text {
            "compute" => {}
            "graphics" => return Err(kind.at.skip("needs a graphics pipeline")),
            "ray_tracing" => return Err(kind.at.skip("needs ray tracing")),
            text => return Err(kind.fail(format!("there is no pipeline type `{text}`"))),
        }
        let name = self.cursor.expect("the pipeline's name")?;
        let pipeline = Pipeline {
            name: name.text.to_owned(),
            shader: None,
            entry: "main".to_owned(),
            specialization: BTreeMap::new(),
            passes: Vec::new(),
            subgroup: Subgroup::default(),
            render_size: [250, 250],
            bindings: BTreeMap::new(),
            push: None,
        };
        self.body(at, name, pipeline)
    }

    pub(super) fn derive_pipeline(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let name = self.cursor.expect("the pipeline's name")?;
        self.cursor.keyword("FROM")?;
        let parent = self.cursor.expect("a pipeline's name")?;
        let parent = &self.script.pipelines[find(&self.names.pipelines, "pipeline", parent)?];
        let pipeline = Pipeline { name: name.text.to_owned(), ..parent.clone() };
        self.body(at, name, pipeline)
    }

    fn body(&mut self, at: SourcePosition, name: Word<'t>, mut pipeline: Pipeline) -> Result<(), Stop> {
        self.cursor.line_end()?;
        while let Some(word) = self.cursor.in_block("PIPELINE", at)? {
            match word.text {
                "ATTACH" => self.attach(&mut pipeline)?,
                "BIND" => self.bind(&mut pipeline)?,
                "SUBGROUP" => self.subgroup(word.at, &mut pipeline)?,
                "SHADER_OPTIMIZATION" => pipeline.passes = self.words_of_shader(word, &pipeline)?,
                "COMPILE_OPTIONS" => return Err(word.fail("COMPILE_OPTIONS are for OPENCL-C shaders")),
                "SET" => return Err(word.fail("SET is for OPENCL-C shaders")),
                "FRAMEBUFFER_SIZE" => {
                    pipeline.render_size = [self.cursor.integer("width")?, self.cursor.integer("height")?];
                }
                text if GRAPHICS.contains(&text) => {
                    return Err(word.fail(format!("{text} is not for compute pipelines")));
                }
                text => return Err(word.fail(format!("unexpected `{text}` in a pipeline"))),
            }
            self.cursor.line_end()?;
        }
        if pipeline.shader.is_none() {
            return Err(name.fail(format!("the pipeline `{}` has no shader", name.text)));
        }
        declare(&mut self.names.pipelines, "pipeline", name, self.script.pipelines.len())?;
        self.script.pipelines.push(pipeline);
        self.cursor.line_end()
    }

    fn attach(&mut self, pipeline: &mut Pipeline) -> Result<(), Stop> {
        let name = self.cursor.expect("a shader's name")?;
        let shader = find(&self.names.shaders, "shader", name)?;
        if pipeline.shader.is_some_and(|other| other != shader) {
            return Err(name.fail("a compute pipeline has one shader"));
        }
        pipeline.shader = Some(shader);
        while let Some(word) = self.cursor.word() {
            match word.text {
                "TYPE" => {
                    self.cursor.keyword("compute")?;
                }
                "ENTRY_POINT" => pipeline.entry = self.cursor.expect("an entry point")?.text.to_owned(),
                "SPECIALIZE" => self.specialize(pipeline)?,
                text => return Err(word.fail(format!("unexpected `{text}` in ATTACH"))),
            }
        }
        Ok(())
    }

    /// `SPECIALIZE id AS type value`, with 32 bits.
    fn specialize(&mut self, pipeline: &mut Pipeline) -> Result<(), Stop> {
        let id = self.cursor.integer("specialization id")?;
        self.cursor.keyword("AS")?;
        let ty = self.cursor.expect("a data type")?;
        let scalar = AmberScalar::named(ty.text).filter(|scalar| scalar.bits == 32);
        let scalar = scalar.ok_or_else(|| ty.fail("specialization constants are uint32, int32 or float"))?;
        let word = self.cursor.expect("a value")?;
        // A bool is 0 or 1, in any of the integer types.
        let value = super::number(word)?;
        let bits = scalar.encode(value).map_err(|problem| word.fail(problem))?;
        pipeline.specialization.insert(id, bits);
        Ok(())
    }

    fn subgroup(&mut self, at: SourcePosition, pipeline: &mut Pipeline) -> Result<(), Stop> {
        self.attached_shader(pipeline)?;
        while let Some(word) = self.cursor.in_block("SUBGROUP", at)? {
            let full = word.text == "FULLY_POPULATED";
            let feature = if full { "computeFullSubgroups" } else { "subgroupSizeControl" };
            let needed = Need::Feature(format!("SubgroupSizeControl.{feature}"));
            if !self.script.needs.contains(&needed) {
                return Err(word.fail(format!("needs DEVICE_FEATURE SubgroupSizeControl.{feature}")));
            }
            match word.text {
                // Invocations always fill subgroups in order. Some scripts require full subgroups although their
                // workgroups do not fill them, so nothing is checked.
                "FULLY_POPULATED" => _ = self.switch()?,
                // There is one subgroup size, so a varying size needs nothing.
                "VARYING_SIZE" => {
                    self.switch()?;
                }
                "REQUIRED_SIZE" => pipeline.subgroup.required = Some(self.subgroup_size()?),
                text => return Err(word.fail(format!("unexpected `{text}` in SUBGROUP"))),
            }
        }
        Ok(())
    }

    fn subgroup_size(&mut self) -> Result<SubgroupSize, Stop> {
        if self.cursor.take("MIN") || self.cursor.take("MAX") {
            return Ok(SubgroupSize::Any);
        }
        self.cursor.integer("subgroup size").map(SubgroupSize::Exactly)
    }

    /// The words of a block that names the attached shader.
    fn words_of_shader(&mut self, block: Word<'_>, pipeline: &Pipeline) -> Result<Vec<String>, Stop> {
        self.attached_shader(pipeline)?;
        let mut words = Vec::new();
        while let Some(word) = self.cursor.in_block(block.text, block.at)? {
            words.push(word.text.to_owned());
        }
        Ok(words)
    }

    fn attached_shader(&mut self, pipeline: &Pipeline) -> Result<(), Stop> {
        let name = self.cursor.expect("a shader's name")?;
        let shader = find(&self.names.shaders, "shader", name)?;
        if pipeline.shader == Some(shader) {
            return Ok(());
        }
        Err(name.fail(format!("the shader `{}` is not attached", name.text)))
    }
}
