//! `BIND`: the buffers, images and samplers of a pipeline's descriptors.

use spelter_driver::vk::DescriptorType as D;

use super::{Parser, find};
use crate::amber::Stop;
use crate::amber::script::{BoundDescriptors, Item, Pipeline};
use crate::amber::text::Word;

/// The descriptor types after `AS`.
const TYPES: [(&str, D); 9] = [
    ("uniform", D::UNIFORM_BUFFER),
    ("storage", D::STORAGE_BUFFER),
    ("uniform_dynamic", D::UNIFORM_BUFFER_DYNAMIC),
    ("storage_dynamic", D::STORAGE_BUFFER_DYNAMIC),
    ("uniform_texel_buffer", D::UNIFORM_TEXEL_BUFFER),
    ("storage_texel_buffer", D::STORAGE_TEXEL_BUFFER),
    ("storage_image", D::STORAGE_IMAGE),
    ("sampled_image", D::SAMPLED_IMAGE),
    ("combined_image_sampler", D::COMBINED_IMAGE_SAMPLER),
];

const NOTHING: Item = Item { buffer: None, sampler: None, level: 0, dynamic_offset: 0, offset: 0, range: None };

impl<'t> Parser<'t> {
    pub(super) fn bind(&mut self, pipeline: &mut Pipeline) -> Result<(), Stop> {
        let what = self.cursor.expect("`BUFFER` or `SAMPLER`")?;
        match what.text {
            "BUFFER" => self.bind_buffers(pipeline, false),
            "BUFFER_ARRAY" => self.bind_buffers(pipeline, true),
            "SAMPLER" => self.bind_samplers(pipeline, false),
            "SAMPLER_ARRAY" => self.bind_samplers(pipeline, true),
            "ACCELERATION_STRUCTURE" => Err(what.at.skip("needs ray tracing")),
            text => Err(what.fail(format!("`{text}` cannot be bound"))),
        }
    }

    /// Names up to a keyword; one, or several of an array.
    fn names(&mut self, array: bool) -> Result<Vec<Word<'t>>, Stop> {
        let mut names = vec![self.cursor.expect("a name")?];
        while array
            && let Some(word) = self.cursor.peek()
            && !["AS", "KERNEL", "DESCRIPTOR_SET"].contains(&word.text)
        {
            self.cursor.word();
            names.push(word);
        }
        if array && names.len() < 2 {
            return Err(names[0].fail("an array has two elements or more"));
        }
        Ok(names)
    }

    fn bind_buffers(&mut self, pipeline: &mut Pipeline, array: bool) -> Result<(), Stop> {
        let names = self.names(array)?;
        let buffers =
            names.iter().map(|name| find(&self.names.buffers, "buffer", *name)).collect::<Result<Vec<_>, _>>()?;
        for buffer in &buffers {
            self.size_to_render(*buffer, pipeline);
        }
        if self.cursor.take("KERNEL") {
            return Err(names[0].fail("KERNEL arguments are for OPENCL-C shaders"));
        }
        self.cursor.keyword("AS")?;
        let kind = self.cursor.expect("a descriptor type")?;
        if kind.text == "push_constant" {
            if array || pipeline.push.replace(buffers[0]).is_some() {
                return Err(kind.fail("a pipeline has one push constant buffer"));
            }
            return Ok(());
        }
        if ["color", "depth_stencil", "resolve"].contains(&kind.text) {
            return Err(kind.fail(format!("`{}` is not for compute pipelines", kind.text)));
        }
        let ty = TYPES.iter().find(|(name, _)| *name == kind.text).map(|(_, ty)| *ty);
        let ty = ty.ok_or_else(|| kind.fail(format!("there is no descriptor type `{}`", kind.text)))?;
        let mut items: Vec<Item> = buffers.iter().map(|&buffer| Item { buffer: Some(buffer), ..NOTHING }).collect();
        if ty == D::COMBINED_IMAGE_SAMPLER {
            self.cursor.keyword("SAMPLER")?;
            let name = self.cursor.expect("a sampler's name")?;
            let sampler = find(&self.names.samplers, "sampler", name)?;
            items.iter_mut().for_each(|item| item.sampler = Some(sampler));
        }
        let slot = self.slot()?;
        self.options(ty, &mut items)?;
        pipeline.bindings.insert(slot, BoundDescriptors { ty, items });
        Ok(())
    }

    /// A `BUFFER … FORMAT` gets the framebuffer size of the first pipeline that binds it.
    fn size_to_render(&mut self, buffer: usize, pipeline: &Pipeline) {
        let buffer = &mut self.script.buffers[buffer];
        if buffer.image.size == [0, 0, 1] {
            let [width, height] = pipeline.render_size;
            // At most the size of the largest image; the device rejects larger ones.
            buffer.image.size = [width.min(1 << 14), height.min(1 << 14), 1];
            buffer.count = buffer.image.size.iter().map(|&size| size as usize).product();
            buffer.bytes = vec![0; buffer.count * buffer.layout.stride as usize];
        }
    }

    /// The options after the binding.
    fn options(&mut self, ty: D, items: &mut [Item]) -> Result<(), Stop> {
        let image = [D::STORAGE_IMAGE, D::SAMPLED_IMAGE, D::COMBINED_IMAGE_SAMPLER].contains(&ty);
        if image && self.cursor.take("BASE_MIP_LEVEL") {
            for item in items.iter_mut() {
                let word = self.cursor.expect("a level")?;
                let levels = item.buffer.map_or(1, |buffer| self.script.buffers[buffer].image.levels);
                let level = word.text.parse().ok().filter(|level| *level < levels);
                item.level =
                    level.ok_or_else(|| word.fail(format!("`{}` is not one of {levels} levels", word.text)))?;
                // A single level is for all elements of an array.
                if self.cursor.peek().is_none() {
                    break;
                }
            }
        }
        if [D::UNIFORM_BUFFER_DYNAMIC, D::STORAGE_BUFFER_DYNAMIC].contains(&ty) {
            self.cursor.keyword("OFFSET")?;
            for item in items.iter_mut() {
                item.dynamic_offset = self.cursor.integer("offset")?;
            }
        }
        let buffer = !image && ![D::UNIFORM_TEXEL_BUFFER, D::STORAGE_TEXEL_BUFFER].contains(&ty);
        if buffer && self.cursor.take("DESCRIPTOR_OFFSET") {
            for item in items.iter_mut() {
                item.offset = self.cursor.integer("offset")?;
            }
        }
        if buffer && self.cursor.take("DESCRIPTOR_RANGE") {
            for item in items.iter_mut() {
                // -1 is VK_WHOLE_SIZE.
                item.range = if self.cursor.take("-1") { None } else { Some(self.cursor.integer("range")?) };
            }
        }
        Ok(())
    }

    fn bind_samplers(&mut self, pipeline: &mut Pipeline, array: bool) -> Result<(), Stop> {
        let names = self.names(array)?;
        let sampler = |name: &Word<'t>| find(&self.names.samplers, "sampler", *name);
        let items = names.iter().map(|name| Ok(Item { sampler: Some(sampler(name)?), ..NOTHING }));
        let items = items.collect::<Result<Vec<_>, Stop>>()?;
        if self.cursor.take("KERNEL") {
            return Err(names[0].fail("KERNEL arguments are for OPENCL-C shaders"));
        }
        let slot = self.slot()?;
        pipeline.bindings.insert(slot, BoundDescriptors { ty: D::SAMPLER, items });
        Ok(())
    }

    /// `DESCRIPTOR_SET set BINDING binding`.
    fn slot(&mut self) -> Result<(u32, u32), Stop> {
        self.cursor.keyword("DESCRIPTOR_SET")?;
        let set = self.cursor.integer("descriptor set")?;
        self.cursor.keyword("BINDING")?;
        Ok((set, self.cursor.integer("binding")?))
    }
}
