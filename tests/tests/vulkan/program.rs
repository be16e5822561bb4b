//! The pipeline of a test file, with its layouts.

use std::collections::BTreeMap;

use ash::vk;
use spelter_driver::descriptor_type;
use spelter_shaders::ir::{BindingKind, Kernel};
use spelter_tests::case::{Case, Slot};

use crate::gpu::Gpu;
use crate::run::Mode;

/// Elements of a variable-count binding in the layout beyond those of its sets.
const MISSING: u32 = 3;

/// A pipeline with its layouts.
pub(crate) struct Program {
    module: vk::ShaderModule,
    pub(crate) sets: Vec<vk::DescriptorSetLayout>,
    pub(crate) layout: vk::PipelineLayout,
    pub(crate) pipeline: vk::Pipeline,
}

/// Type and element count of each binding, by set and number.
pub(crate) type Bindings = BTreeMap<(u32, u32), (vk::DescriptorType, u32)>;

/// Creates the program of a kernel whose bindings are known.
pub(crate) fn program(gpu: &Gpu, case: &Case, kernel: &Kernel, words: &[u32], mode: Mode) -> Result<Program, String> {
    let mut bindings = Bindings::new();
    for data in kernel.bindings.values() {
        let slot = Slot { set: data.set, binding: data.binding, element: 0 };
        let inline = (mode == Mode::Inline && data.kind == BindingKind::UniformBuffer && data.count == 1)
            .then(|| block(case, slot))
            .flatten();
        let binding = match inline {
            Some(bytes) => (vk::DescriptorType::INLINE_UNIFORM_BLOCK, bytes),
            None => (descriptor_type(data.kind), data.count),
        };
        bindings.insert((data.set, data.binding), binding);
    }
    Program::new(gpu, case, words, &bindings, mode).map_err(|code| format!("creating the pipeline failed: {code:?}"))
}

/// Maximum bytes of a uniform buffer that may be an inline uniform block.
pub(crate) fn block(case: &Case, slot: Slot) -> Option<u32> {
    let bytes = case.binds.get(&slot)?.len() as u32 * 4;
    (1..=4096).contains(&bytes).then_some(bytes)
}

impl Program {
    pub(crate) fn new(
        gpu: &Gpu,
        case: &Case,
        words: &[u32],
        bindings: &Bindings,
        mode: Mode,
    ) -> Result<Self, vk::Result> {
        let device = &gpu.device;
        unsafe {
            let module = device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None)?;
            let count = bindings.keys().map(|(set, _)| set + 1).max().unwrap_or(0);
            // Only one set may have push descriptors.
            let pushed = bindings.keys().map(|(set, _)| *set).min();
            let mode_of = |set| if mode == Mode::Pushed && Some(set) != pushed { Mode::Plain } else { mode };
            let sets: Vec<_> = (0..count).map(|set| set_layout(gpu, set, bindings, mode_of(set))).collect();
            let ranges = [vk::PushConstantRange { stage_flags: vk::ShaderStageFlags::COMPUTE, offset: 0, size: 128 }];
            let info = vk::PipelineLayoutCreateInfo::default().set_layouts(&sets).push_constant_ranges(&ranges);
            let layout = device.create_pipeline_layout(&info, None)?;
            let (entries, data) = specialization(case);
            let constants = vk::SpecializationInfo::default().map_entries(&entries).data(&data);
            let entry = case.entry.clone().unwrap_or_else(|| entry_point(words));
            let name = std::ffi::CString::new(entry).unwrap();
            let stage = vk::PipelineShaderStageCreateInfo::default()
                .stage(vk::ShaderStageFlags::COMPUTE)
                .module(module)
                .name(&name)
                .specialization_info(&constants);
            let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
            let pipeline = device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None);
            let mut program = Self { module, sets, layout, pipeline: vk::Pipeline::null() };
            match pipeline {
                Ok(pipelines) => {
                    program.pipeline = pipelines[0];
                    Ok(program)
                }
                Err((_, code)) => {
                    program.destroy(gpu);
                    Err(code)
                }
            }
        }
    }

    pub(crate) fn destroy(&self, gpu: &Gpu) {
        unsafe {
            gpu.device.destroy_pipeline(self.pipeline, None);
            gpu.device.destroy_pipeline_layout(self.layout, None);
            self.sets.iter().for_each(|&set| gpu.device.destroy_descriptor_set_layout(set, None));
            gpu.device.destroy_shader_module(self.module, None);
        }
    }
}

fn set_layout(gpu: &Gpu, set: u32, bindings: &Bindings, mode: Mode) -> vk::DescriptorSetLayout {
    let own = bindings.iter().filter(|((of, _), _)| *of == set);
    let last = own.clone().map(|((_, binding), _)| *binding).max();
    let more = |binding: u32| if mode == Mode::Variable && Some(binding) == last { MISSING } else { 0 };
    let list: Vec<_> = own
        .map(|((_, binding), (ty, count))| {
            vk::DescriptorSetLayoutBinding::default()
                .binding(*binding)
                .descriptor_type(*ty)
                .descriptor_count(*count + more(*binding))
                .stage_flags(vk::ShaderStageFlags::COMPUTE)
        })
        .collect();
    use vk::{DescriptorBindingFlags as B, DescriptorSetLayoutCreateFlags as L};
    let late = if mode.is_late() { B::UPDATE_AFTER_BIND } else { B::empty() };
    let variable = |binding| if more(binding) > 0 { B::VARIABLE_DESCRIPTOR_COUNT } else { B::empty() };
    let flags: Vec<_> = list.iter().map(|b| B::PARTIALLY_BOUND | late | variable(b.binding)).collect();
    let mut flags = vk::DescriptorSetLayoutBindingFlagsCreateInfo::default().binding_flags(&flags);
    let of_layout = match mode {
        Mode::Late | Mode::Inline => L::UPDATE_AFTER_BIND_POOL,
        Mode::Pushed => L::PUSH_DESCRIPTOR_KHR,
        Mode::Plain | Mode::Variable | Mode::Imported => L::empty(),
    };
    let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&list).flags(of_layout).push_next(&mut flags);
    unsafe { gpu.device.create_descriptor_set_layout(&info, None).unwrap() }
}

/// The name of the first entry point.
fn entry_point(words: &[u32]) -> String {
    let module = spelter_shaders::compile::Module::from_spirv(words);
    module.ok().and_then(|module| module.entry_points().next().map(str::to_owned)).unwrap_or("main".into())
}

/// Specialization constants of 8 bytes each, of which the shader's type uses the first ones. Those of WGSL are already
/// applied.
fn specialization(case: &Case) -> (Vec<vk::SpecializationMapEntry>, Vec<u8>) {
    if case.is_wgsl() {
        return Default::default();
    }
    let (mut entries, mut data) = (Vec::new(), Vec::new());
    for (&constant_id, bits) in &case.specialization {
        entries.push(vk::SpecializationMapEntry { constant_id, offset: data.len() as u32, size: 8 });
        data.extend(bits.to_le_bytes());
    }
    (entries, data)
}
