//! Runs the commands of a script, each script on its own device.
//!
//! Between commands, contents are in host memory: a `RUN` copies them to new device objects and back. Pipelines are
//! compiled once.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::time::Duration;

use spelter::check::CheckOptions;
use spelter_driver::vk::{self, DescriptorType as D};
use spelter_driver::{
    Binding, BufferInfo, CommandBuffer, ComputePipeline, DescriptorImageInfo, DescriptorSet, DescriptorSetLayout,
    Device, MemoryBarrier, PipelineLayout, PushRange, Sampler,
};

use super::launch::JobFindings;
use super::objects::{ImageOnDevice, OnDevice, refused};
use super::{compare, shader};
use crate::amber::Stop;
use crate::amber::script::{Action, AmberCommand, BoundDescriptors, Item, Pipeline, Script, SubgroupSize};
use crate::args::DeviceArgs;
use crate::device;

/// Runs all commands of a script. What checked mode found is in `found`, also after a failure.
pub(super) fn script(
    script: &Script,
    path: &Path,
    (args, check): (&DeviceArgs, Option<CheckOptions>),
    found: &mut JobFindings,
) -> Result<(), Stop> {
    // A script may raise the time limit, but not lower it.
    let asked = script.fence_timeout_ms.map_or(Duration::ZERO, |ms| Duration::from_millis(ms.into()));
    let args = DeviceArgs { time_limit: Some(args.time_limit().max(asked)), ..*args };
    let context = device::for_scripts(&args, check).map_err(|failure| Stop::Fail(failure.to_string()))?;
    let device = context.device();
    let samplers = script.samplers.iter().map(|info| device.create_sampler(info)).collect::<Result<_, _>>();
    let mut runner = ScriptRunner {
        script,
        path,
        device,
        contents: script.buffers.iter().map(|buffer| buffer.bytes.clone()).collect(),
        samplers: samplers.map_err(refused)?,
        compiled: HashMap::new(),
        has_run: false,
    };
    let ended = script.commands.iter().try_for_each(|command| runner.command(command));
    found.has_run = runner.has_run;
    found.findings = device.take_findings();
    found.stats = device.check_stats();
    ended
}

struct ScriptRunner<'s> {
    script: &'s Script,
    /// The file that it was read from.
    path: &'s Path,
    device: &'s Device,
    /// Bytes of each buffer.
    contents: Vec<Vec<u8>>,
    samplers: Vec<Sampler>,
    /// Pipelines that are compiled already.
    compiled: HashMap<usize, CompiledPipeline>,
    /// Whether a kernel ran.
    has_run: bool,
}

/// A compiled pipeline with its layouts.
#[derive(Clone)]
struct CompiledPipeline {
    sets: Vec<DescriptorSetLayout>,
    layout: PipelineLayout,
    pipeline: ComputePipeline,
}

/// The objects of a run, by the buffer's index.
#[derive(Default)]
struct Objects {
    buffers: BTreeMap<usize, OnDevice>,
    images: BTreeMap<usize, ImageOnDevice>,
}

impl ScriptRunner<'_> {
    fn command(&mut self, command: &AmberCommand) -> Result<(), Stop> {
        let place = format!("{}:{}", command.at.line, command.at.column);
        let at = |problem: String| Stop::Fail(format!("{place}: {problem}"));
        let buffers = &self.script.buffers;
        match &command.what {
            Action::Run { pipeline, groups } => self.run(*pipeline, *groups).map_err(|stop| match stop {
                Stop::Fail(problem) => at(format!("RUN {}: {problem}", self.script.pipelines[*pipeline].name)),
                skip => skip,
            }),
            Action::Copy { from, to } => {
                self.contents[*to] = self.contents[*from].clone();
                Ok(())
            }
            Action::Repeat(count, inside) => {
                (0..*count).try_for_each(|_| inside.iter().try_for_each(|command| self.command(command)))
            }
            Action::ExpectValues(expect) => {
                compare::values(&buffers[expect.buffer], &self.contents[expect.buffer], expect).map_err(at)
            }
            Action::ExpectTexels(expect) => {
                compare::texels(&buffers[expect.buffer], &self.contents[expect.buffer], expect).map_err(at)
            }
            Action::ExpectBuffer(expect) => {
                let (left, right) = (&self.contents[expect.left], &self.contents[expect.right]);
                compare::buffers(&buffers[expect.left], left, right, expect.likeness).map_err(at)
            }
        }
    }

    fn run(&mut self, index: usize, groups: [u32; 3]) -> Result<(), Stop> {
        let compiled = match self.compiled.get(&index) {
            Some(compiled) => compiled.clone(),
            None => {
                let compiled = self.compile(&self.script.pipelines[index])?;
                self.compiled.insert(index, compiled.clone());
                compiled
            }
        };
        let pipeline = &self.script.pipelines[index];
        let objects = self.objects(pipeline)?;
        let sets = self.sets(pipeline, &compiled, &objects)?;
        let command = self.device.create_command_pool().allocate();
        self.record(&command, pipeline, &compiled, &objects, &sets, groups).map_err(refused)?;
        self.has_run = true;
        let queue = self.device.queue();
        queue.submit(&[&command], None).and_then(|_| queue.wait_idle()).map_err(refused)?;
        for (buffer, object) in &objects.buffers {
            object.read(&mut self.contents[*buffer])?;
        }
        for (image, object) in &objects.images {
            object.texels.read(&mut self.contents[*image])?;
        }
        Ok(())
    }

    fn compile(&self, pipeline: &Pipeline) -> Result<CompiledPipeline, Stop> {
        let limits = self.device.limits();
        if let Some(SubgroupSize::Exactly(size)) = pipeline.subgroup.required
            && size != limits.subgroup_size
        {
            let has = limits.subgroup_size;
            return Err(Stop::Skip(format!("needs subgroups of {size}; the device has subgroups of {has}")));
        }
        let max_sets = limits.max_bound_descriptor_sets;
        let count = pipeline.bindings.keys().map(|(set, _)| u64::from(*set) + 1).max().unwrap_or(0);
        if count > max_sets.into() {
            return Err(Stop::Fail(format!("descriptor set {} of at most {max_sets}", count - 1)));
        }
        let shader = &self.script.shaders[pipeline.shader.unwrap_or(0)];
        let words = shader::words(shader, pipeline, self.path)?;
        let module = self.device.create_shader_module(&words).map_err(refused)?;
        let sets = (0..count as u32).map(|set| self.set_layout(pipeline, set)).collect::<Result<Vec<_>, _>>()?;
        let push = pipeline.push.map(|buffer| PushRange { offset: 0, size: self.push_bytes(buffer).len() as u32 });
        let layout = self.device.create_pipeline_layout(&sets.iter().collect::<Vec<_>>(), push.as_slice());
        let layout = layout.map_err(refused)?;
        let made = self.device.create_compute_pipeline(&module, &pipeline.entry, &pipeline.specialization, &layout);
        let made = made.map_err(refused)?;
        Ok(CompiledPipeline { sets, layout, pipeline: made })
    }

    fn set_layout(&self, pipeline: &Pipeline, set: u32) -> Result<DescriptorSetLayout, Stop> {
        let bindings: Vec<Binding> = of_set(pipeline, set)
            .map(|(binding, bound)| Binding { binding, ty: bound.ty, count: bound.items.len() as u32 })
            .collect();
        self.device.create_descriptor_set_layout(&bindings).map_err(refused)
    }

    /// The push constants, padded to whole words as Vulkan requires.
    fn push_bytes(&self, buffer: usize) -> Vec<u8> {
        let mut bytes = self.contents[buffer].clone();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// New objects with the contents of all bound buffers and images.
    fn objects(&self, pipeline: &Pipeline) -> Result<Objects, Stop> {
        let mut objects = Objects::default();
        for bound in pipeline.bindings.values() {
            for index in bound.items.iter().filter_map(|item| item.buffer) {
                let bytes = &self.contents[index];
                if is_image(bound.ty) {
                    if let Entry::Vacant(free) = objects.images.entry(index) {
                        free.insert(ImageOnDevice::new(self.device, &self.script.buffers[index], bytes)?);
                    }
                } else if let Entry::Vacant(free) = objects.buffers.entry(index) {
                    free.insert(OnDevice::new(self.device, bytes)?);
                }
            }
        }
        Ok(objects)
    }

    fn sets(
        &self,
        pipeline: &Pipeline,
        compiled: &CompiledPipeline,
        objects: &Objects,
    ) -> Result<Vec<DescriptorSet>, Stop> {
        if compiled.sets.is_empty() {
            return Ok(Vec::new());
        }
        let sizes: Vec<_> = pipeline.bindings.values().map(|bound| (bound.ty, bound.items.len() as u32)).collect();
        let pool = self.device.create_descriptor_pool(compiled.sets.len() as u32, &sizes).map_err(refused)?;
        let mut sets = Vec::new();
        for (number, layout) in (0..).zip(&compiled.sets) {
            let set = pool.allocate(layout).map_err(refused)?;
            for (binding, bound) in of_set(pipeline, number) {
                for (element, item) in (0..).zip(&bound.items) {
                    self.write(&set, binding, element, bound.ty, item, objects)?;
                }
            }
            sets.push(set);
        }
        Ok(sets)
    }

    /// Writes one descriptor.
    fn write(
        &self,
        set: &DescriptorSet,
        binding: u32,
        element: u32,
        ty: D,
        item: &Item,
        objects: &Objects,
    ) -> Result<(), Stop> {
        let sampler = item.sampler.map(|sampler| &self.samplers[sampler]);
        let Some(index) = item.buffer else {
            let info = DescriptorImageInfo { sampler, view: None };
            return set.write_images(binding, element, ty, &[info]).map_err(refused);
        };
        if let Some(image) = objects.images.get(&index).filter(|_| is_image(ty)) {
            let view = image.view(self.device, item, ty == D::STORAGE_IMAGE)?;
            let info = DescriptorImageInfo { sampler, view: Some(&view) };
            return set.write_images(binding, element, ty, &[info]).map_err(refused);
        }
        let Some(object) = objects.buffers.get(&index) else { return Ok(()) };
        if ty == D::UNIFORM_TEXEL_BUFFER || ty == D::STORAGE_TEXEL_BUFFER {
            let view = object.view(self.device, &self.script.buffers[index], ty == D::STORAGE_TEXEL_BUFFER)?;
            return set.write_texel_buffers(binding, element, ty, &[&view]).map_err(refused);
        }
        // VK_WHOLE_SIZE does not account for the dynamic offset, so the rest of the buffer is given.
        let rest = object.buffer.size().saturating_sub(item.offset).saturating_sub(item.dynamic_offset.into());
        let range = item.range.unwrap_or(rest);
        set.write(binding, element, ty, &[BufferInfo { buffer: &object.buffer, offset: item.offset, range }])
            .map_err(refused)
    }

    fn record(
        &self,
        command: &CommandBuffer,
        pipeline: &Pipeline,
        compiled: &CompiledPipeline,
        objects: &Objects,
        sets: &[DescriptorSet],
        groups: [u32; 3],
    ) -> Result<(), spelter_driver::Error> {
        command.begin(vk::CommandBufferUsageFlags::ONE_TIME_SUBMIT)?;
        for image in objects.images.values() {
            command.copy_buffer_to_image(&image.texels.buffer, &image.image, &[image.region()])?;
        }
        barrier(command, vk::PipelineStageFlags::ALL_COMMANDS)?;
        command.bind_pipeline(&compiled.pipeline)?;
        if !sets.is_empty() {
            let dynamic =
                |bound: &&BoundDescriptors| [D::UNIFORM_BUFFER_DYNAMIC, D::STORAGE_BUFFER_DYNAMIC].contains(&bound.ty);
            let items = pipeline.bindings.values().filter(dynamic).flat_map(|bound| &bound.items);
            let offsets: Vec<u32> = items.map(|item| item.dynamic_offset).collect();
            command.bind_descriptor_sets(&compiled.layout, 0, &sets.iter().collect::<Vec<_>>(), &offsets)?;
        }
        if let Some(buffer) = pipeline.push {
            command.push_constants(&compiled.layout, 0, &self.push_bytes(buffer))?;
        }
        let [x, y, z] = groups;
        command.dispatch(x, y, z)?;
        barrier(command, vk::PipelineStageFlags::ALL_COMMANDS)?;
        for image in objects.images.values() {
            command.copy_image_to_buffer(&image.image, &image.texels.buffer, &[image.region()])?;
        }
        barrier(command, vk::PipelineStageFlags::HOST)?;
        command.end()
    }
}

/// What commands wrote before it is visible to the accesses of these stages after it.
fn barrier(command: &CommandBuffer, to: vk::PipelineStageFlags) -> Result<(), spelter_driver::Error> {
    let all = vk::PipelineStageFlags::ALL_COMMANDS;
    let dst_access = match to {
        vk::PipelineStageFlags::HOST => vk::AccessFlags::HOST_READ,
        _ => vk::AccessFlags::MEMORY_READ | vk::AccessFlags::MEMORY_WRITE,
    };
    let memory = MemoryBarrier { src_access: vk::AccessFlags::MEMORY_WRITE, dst_access };
    command.pipeline_barrier(all, to, &[memory], &[])
}

/// The bindings of a set, in order.
fn of_set(pipeline: &Pipeline, set: u32) -> impl Iterator<Item = (u32, &BoundDescriptors)> {
    pipeline.bindings.range((set, 0)..=(set, u32::MAX)).map(|((_, binding), bound)| (*binding, bound))
}

fn is_image(ty: D) -> bool {
    [D::STORAGE_IMAGE, D::SAMPLED_IMAGE, D::COMBINED_IMAGE_SAMPLER].contains(&ty)
}
