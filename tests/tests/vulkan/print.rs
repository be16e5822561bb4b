//! Kernel prints (`NonSemantic.DebugPrintf`) are sent to the program's messenger as information.

use std::ffi::{CStr, c_void};
use std::sync::Mutex;

use ash::vk;
use spelter_shaders::front::spvasm::assemble;

use crate::gpu::Gpu;

/// Every second invocation prints its number and half of it.
const KERNEL: &str = r#"OpCapability Shader
    OpExtension "SPV_KHR_non_semantic_info"
    %printf = OpExtInstImport "NonSemantic.DebugPrintf"
    OpMemoryModel Logical GLSL450
    OpEntryPoint GLCompute %main "main" %gid
    OpExecutionMode %main LocalSize 20 1 1
    %text = OpString "invocation %u, half %1.2f"
    OpDecorate %gid BuiltIn GlobalInvocationId
    %void = OpTypeVoid
    %fn = OpTypeFunction %void
    %bool = OpTypeBool
    %u32 = OpTypeInt 32 0
    %f32 = OpTypeFloat 32
    %v3u = OpTypeVector %u32 3
    %ptr_v3u = OpTypePointer Input %v3u
    %gid = OpVariable %ptr_v3u Input
    %c0 = OpConstant %u32 0
    %c1 = OpConstant %u32 1
    %half = OpConstant %f32 0.5
    %main = OpFunction %void None %fn
    %entry = OpLabel
    %id = OpLoad %v3u %gid
    %i = OpCompositeExtract %u32 %id 0
    %odd = OpBitwiseAnd %u32 %i %c1
    %even = OpIEqual %bool %odd %c0
    OpSelectionMerge %join None
    OpBranchConditional %even %then %join
    %then = OpLabel
    %f = OpConvertUToF %f32 %i
    %halved = OpFMul %f32 %f %half
    %none = OpExtInst %void %printf 1 %text %i %halved
    OpBranch %join
    %join = OpLabel
    OpReturn
    OpFunctionEnd"#;

/// The message IDs and texts.
type Heard = Mutex<Vec<(String, String)>>;

unsafe extern "system" fn listen(
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    to: *mut c_void,
) -> vk::Bool32 {
    let (id, text) = unsafe { (CStr::from_ptr((*data).p_message_id_name), CStr::from_ptr((*data).p_message)) };
    let heard = unsafe { &*to.cast::<Heard>() };
    if severity == vk::DebugUtilsMessageSeverityFlagsEXT::INFO {
        heard.lock().unwrap().push((id.to_string_lossy().into_owned(), text.to_string_lossy().into_owned()));
    }
    vk::FALSE
}

/// Two workgroups print; a messenger of another instance receives nothing.
pub(crate) fn run() -> Result<(), String> {
    let (gpu, other) = (Gpu::new(), Gpu::new());
    let (mut heard, mut others): (Box<Heard>, Box<Heard>) = Default::default();
    let words = assemble(KERNEL).map_err(|error| error.to_string())?;
    let device = &gpu.device;
    unsafe {
        let listeners = [(&gpu, &raw mut *heard), (&other, &raw mut *others)].map(|(gpu, to)| {
            let utils = ash::ext::debug_utils::Instance::new(&gpu.entry, &gpu.instance);
            let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
                .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::INFO)
                .message_type(vk::DebugUtilsMessageTypeFlagsEXT::GENERAL)
                .pfn_user_callback(Some(listen))
                .user_data(to.cast());
            let messenger = utils.create_debug_utils_messenger(&info, None).unwrap();
            (utils, messenger)
        });
        let module = device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(&words), None).unwrap();
        let layout = device.create_pipeline_layout(&vk::PipelineLayoutCreateInfo::default(), None).unwrap();
        let stage = vk::PipelineShaderStageCreateInfo::default()
            .stage(vk::ShaderStageFlags::COMPUTE)
            .module(module)
            .name(c"main");
        let info = vk::ComputePipelineCreateInfo::default().stage(stage).layout(layout);
        let pipeline = device.create_compute_pipelines(vk::PipelineCache::null(), &[info], None).unwrap()[0];
        let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&info).unwrap();
        device.begin_command_buffer(commands[0], &vk::CommandBufferBeginInfo::default()).unwrap();
        device.cmd_bind_pipeline(commands[0], vk::PipelineBindPoint::COMPUTE, pipeline);
        device.cmd_dispatch(commands[0], 2, 1, 1);
        device.end_command_buffer(commands[0]).unwrap();
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        let queue = *gpu.queue.lock().unwrap();
        device.queue_submit(queue, &[submit], vk::Fence::null()).unwrap();
        device.queue_wait_idle(queue).unwrap();
        device.destroy_command_pool(pool, None);
        device.destroy_pipeline(pipeline, None);
        device.destroy_pipeline_layout(layout, None);
        device.destroy_shader_module(module, None);
        listeners.iter().for_each(|(utils, messenger)| utils.destroy_debug_utils_messenger(*messenger, None));
    }
    let mut heard = std::mem::take(&mut *heard.lock().unwrap());
    let mut wanted: Vec<_> = (0..40u32)
        .step_by(2)
        .map(|i| ("spelter-printf".to_owned(), format!("invocation {i}, half {:.2}", f64::from(i) / 2.0)))
        .collect();
    heard.sort_unstable();
    wanted.sort_unstable();
    if heard != wanted {
        return Err(format!("{heard:#?}"));
    }
    if others.lock().unwrap().is_empty() {
        Ok(())
    } else {
        Err("a messenger of another instance received prints".into())
    }
}
