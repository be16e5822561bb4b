//! Debug messages with names and labels, to the messengers of the right instance; timelines; pipeline executables.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Mutex;

use crate::common::{Gpu, rerun, spirv, stage};
use ash::vk::{self, Handle};

const STORAGE: vk::DescriptorType = vk::DescriptorType::STORAGE_BUFFER;

/// A message that a messenger received.
#[derive(Clone, Debug, Default, PartialEq)]
struct Heard {
    id: String,
    text: String,
    objects: Vec<(vk::ObjectType, u64, String)>,
    command_labels: Vec<String>,
    queue_labels: Vec<String>,
}

fn text(at: *const c_char) -> String {
    if at.is_null() { String::new() } else { unsafe { CStr::from_ptr(at) }.to_string_lossy().into_owned() }
}

unsafe extern "system" fn receive(
    _: vk::DebugUtilsMessageSeverityFlagsEXT,
    _: vk::DebugUtilsMessageTypeFlagsEXT,
    data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    to: *mut c_void,
) -> vk::Bool32 {
    let (data, to) = unsafe { (&*data, &*to.cast::<Mutex<Vec<Heard>>>()) };
    let array = |at: *const vk::DebugUtilsLabelEXT<'_>, count: u32| -> Vec<String> {
        (0..count as usize).map(|index| text(unsafe { (*at.add(index)).p_label_name })).collect()
    };
    let object = |index| {
        let about = unsafe { &*data.p_objects.add(index) };
        (about.object_type, about.object_handle, text(about.p_object_name))
    };
    to.lock().unwrap().push(Heard {
        id: text(data.p_message_id_name),
        text: text(data.p_message),
        objects: (0..data.object_count as usize).map(object).collect(),
        command_labels: array(data.p_cmd_buf_labels, data.cmd_buf_label_count),
        queue_labels: array(data.p_queue_labels, data.queue_label_count),
    });
    vk::FALSE
}

/// A messenger that receives all messages.
struct Listener<'a> {
    gpu: &'a Gpu,
    utils: ash::ext::debug_utils::Instance,
    messenger: vk::DebugUtilsMessengerEXT,
    heard: Box<Mutex<Vec<Heard>>>,
}

impl<'a> Listener<'a> {
    fn new(gpu: &'a Gpu) -> Self {
        let utils = ash::ext::debug_utils::Instance::new(&gpu.entry, &gpu.instance);
        let mut heard = Box::<Mutex<Vec<Heard>>>::default();
        type S = vk::DebugUtilsMessageSeverityFlagsEXT;
        type T = vk::DebugUtilsMessageTypeFlagsEXT;
        let info = vk::DebugUtilsMessengerCreateInfoEXT::default()
            .message_severity(S::ERROR | S::WARNING | S::INFO)
            .message_type(T::GENERAL | T::VALIDATION | T::PERFORMANCE)
            .pfn_user_callback(Some(receive))
            .user_data((&raw mut *heard).cast());
        let messenger = unsafe { utils.create_debug_utils_messenger(&info, None).unwrap() };
        Self { gpu, utils, messenger, heard }
    }

    fn take(&self) -> Vec<Heard> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }
}

impl Drop for Listener<'_> {
    fn drop(&mut self) {
        let _ = self.gpu;
        unsafe { self.utils.destroy_debug_utils_messenger(self.messenger, None) };
    }
}

#[test]
fn messages_name_objects_and_labels_and_stay_in_their_instance() {
    let (gpu, other) = (Gpu::new(), Gpu::new());
    let (mine, others) = (Listener::new(&gpu), Listener::new(&other));
    let utils = ash::ext::debug_utils::Device::new(&gpu.instance, &gpu.device);
    let a = gpu.buffer(4);
    let label = |name| vk::DebugUtilsLabelEXT::default().label_name(name);
    unsafe {
        let name = vk::DebugUtilsObjectNameInfoEXT::default().object_handle(a.raw).object_name(c"the sums");
        utils.set_debug_utils_object_name(&name).unwrap();
        let mut recorded = vk::CommandBuffer::null();
        let failed = gpu.record(|device, commands| {
            recorded = commands;
            utils.cmd_begin_debug_utils_label(commands, &label(c"frame"));
            utils.cmd_begin_debug_utils_label(commands, &label(c"ended"));
            utils.cmd_end_debug_utils_label(commands);
            utils.cmd_insert_debug_utils_label(commands, &label(c"fill"));
            device.cmd_fill_buffer(commands, a.raw, 1 << 20, 4, 0);
        });
        assert!(failed.is_err());
        let heard = mine.take();
        let fill = heard.iter().find(|heard| heard.id == "VUID-vkCmdFillBuffer-dstOffset-00024").unwrap();
        assert!(fill.objects.contains(&(vk::ObjectType::BUFFER, a.raw.as_raw(), "the sums".into())), "{fill:?}");
        assert!(fill.objects.contains(&(vk::ObjectType::COMMAND_BUFFER, recorded.as_raw(), String::new())), "{fill:?}");
        assert_eq!(fill.command_labels, ["fill", "frame"]);
        assert_eq!(others.take(), [], "a messenger receives messages about its own instance only");

        let bytes = vec![0; 70_000];
        let _ = gpu.record(|device, commands| device.cmd_update_buffer(commands, a.raw, 0, &bytes)).unwrap_err();
        let heard = mine.take();
        let update = heard.iter().find(|heard| heard.id == "VUID-vkCmdUpdateBuffer-dataSize-00037").unwrap();
        assert!(update.text.contains("dataSize 70000 above 65536"), "{update:?}");

        utils.queue_begin_debug_utils_label(gpu.queue, &label(c"upload"));
        let commands = [recorded];
        let submit = vk::SubmitInfo::default().command_buffers(&commands);
        assert!(gpu.device.queue_submit(gpu.queue, &[submit], vk::Fence::null()).is_err());
        let heard = mine.take();
        assert!(heard.iter().any(|heard| heard.queue_labels == ["upload"]), "{heard:?}");
        utils.queue_end_debug_utils_label(gpu.queue);
        utils.queue_end_debug_utils_label(gpu.queue);
        assert_eq!(mine.take()[0].id, "VUID-vkQueueEndDebugUtilsLabelEXT-None-01911");

        // A message of the program is delivered unchanged.
        let objects = [vk::DebugUtilsObjectNameInfoEXT::default().object_handle(a.raw)];
        let labels = [label(c"inner"), label(c"outer")];
        let data = vk::DebugUtilsMessengerCallbackDataEXT::default()
            .message_id_name(c"mine")
            .message(c"hello")
            .objects(&objects)
            .cmd_buf_labels(&labels);
        let (severity, ty) = (vk::DebugUtilsMessageSeverityFlagsEXT::INFO, vk::DebugUtilsMessageTypeFlagsEXT::GENERAL);
        mine.utils.submit_debug_utils_message(severity, ty, &data);
        let heard = mine.take();
        assert_eq!((heard[0].id.as_str(), heard[0].text.as_str()), ("mine", "hello"));
        assert_eq!(heard[0].objects, [(vk::ObjectType::BUFFER, a.raw.as_raw(), "the sums".into())]);
        assert_eq!(heard[0].command_labels, ["inner", "outer"]);
    }
    gpu.destroy_buffer(a);
    drop((mine, others));
}

#[test]
fn a_failed_creation_is_reported_to_the_messenger_in_the_chain() {
    let entry = common::entry();
    let mut heard = Box::<Mutex<Vec<Heard>>>::default();
    let mut chained = vk::DebugUtilsMessengerCreateInfoEXT::default()
        .message_severity(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR)
        .message_type(vk::DebugUtilsMessageTypeFlagsEXT::GENERAL)
        .pfn_user_callback(Some(receive))
        .user_data((&raw mut *heard).cast());
    let names = [c"VK_KHR_surface".as_ptr()];
    let info = vk::InstanceCreateInfo::default().enabled_extension_names(&names).push_next(&mut chained);
    let made = unsafe { entry.create_instance(&info, None) };
    assert_eq!(made.err(), Some(vk::Result::ERROR_EXTENSION_NOT_PRESENT));
    let heard = heard.lock().unwrap();
    assert!(heard.len() == 1 && heard[0].text.contains("VK_KHR_surface"), "{heard:?}");
}

#[test]
fn barriers_with_invalid_scopes_are_reported_and_recorded() {
    let gpu = Gpu::new();
    let mine = Listener::new(&gpu);
    let commands = gpu.record(|device, commands| unsafe {
        let none = vk::DependencyFlags::empty();
        let (compute, fragment) = (vk::PipelineStageFlags::COMPUTE_SHADER, vk::PipelineStageFlags::FRAGMENT_SHADER);
        device.cmd_pipeline_barrier(commands, compute, fragment, none, &[], &[], &[]);
        let wrong = [vk::MemoryBarrier::default().src_access_mask(vk::AccessFlags::TRANSFER_WRITE)];
        device.cmd_pipeline_barrier(commands, compute, compute, none, &wrong, &[], &[]);
        let wrong = [vk::MemoryBarrier2::default()
            .src_stage_mask(vk::PipelineStageFlags2::COPY)
            .src_access_mask(vk::AccessFlags2::SHADER_STORAGE_WRITE)];
        device.cmd_pipeline_barrier2(commands, &vk::DependencyInfo::default().memory_barriers(&wrong));
        let right = [vk::MemoryBarrier2::default()
            .src_stage_mask(vk::PipelineStageFlags2::COMPUTE_SHADER)
            .src_access_mask(vk::AccessFlags2::SHADER_STORAGE_WRITE)
            .dst_stage_mask(vk::PipelineStageFlags2::HOST)
            .dst_access_mask(vk::AccessFlags2::HOST_READ)];
        device.cmd_pipeline_barrier2(commands, &vk::DependencyInfo::default().memory_barriers(&right));
    });
    let ids: Vec<_> = mine.take().into_iter().map(|heard| heard.id).collect();
    let wanted = [
        "VUID-vkCmdPipelineBarrier-dstStageMask-06462",
        "VUID-vkCmdPipelineBarrier-srcAccessMask-02815",
        "VUID-VkMemoryBarrier2-srcAccessMask-03907",
    ];
    assert_eq!(ids, wanted);
    gpu.run(commands.unwrap());
}

#[test]
fn events_with_invalid_scopes_are_reported_and_recorded() {
    use vk::{PipelineStageFlags as S, PipelineStageFlags2 as S2};
    let gpu = Gpu::new();
    let mine = Listener::new(&gpu);
    let event = unsafe { gpu.device.create_event(&vk::EventCreateInfo::default(), None).unwrap() };
    let commands = gpu.record(|device, commands| unsafe {
        device.cmd_set_event(commands, event, S::FRAGMENT_SHADER);
        device.cmd_set_event(commands, event, S::HOST);
        device.cmd_wait_events(commands, &[event], S::COMPUTE_SHADER, S::VERTEX_SHADER, &[], &[], &[]);
        let wrong = [vk::MemoryBarrier::default().src_access_mask(vk::AccessFlags::TRANSFER_WRITE)];
        device.cmd_wait_events(commands, &[event], S::COMPUTE_SHADER, S::HOST, &wrong, &[], &[]);
        device.cmd_reset_event(commands, event, S::FRAGMENT_SHADER);
        device.cmd_reset_event(commands, event, S::HOST);
        let barrier = vk::MemoryBarrier2::default().src_stage_mask(S2::COPY);
        let wrong = [barrier.dst_stage_mask(S2::FRAGMENT_SHADER)];
        device.cmd_set_event2(commands, event, &vk::DependencyInfo::default().memory_barriers(&wrong));
        let wrong = [barrier.dst_stage_mask(S2::HOST)];
        device.cmd_set_event2(commands, event, &vk::DependencyInfo::default().memory_barriers(&wrong));
        let wrong = [barrier.src_access_mask(vk::AccessFlags2::SHADER_WRITE)];
        device.cmd_wait_events2(commands, &[event], &[vk::DependencyInfo::default().memory_barriers(&wrong)]);
        device.cmd_reset_event2(commands, event, S2::HOST);
    });
    let ids: Vec<_> = mine.take().into_iter().map(|heard| heard.id).collect();
    let wanted = [
        "VUID-vkCmdSetEvent-stageMask-06457",
        "VUID-vkCmdSetEvent-stageMask-01149",
        "VUID-vkCmdWaitEvents-dstStageMask-06460",
        "VUID-vkCmdWaitEvents-srcAccessMask-02815",
        "VUID-vkCmdResetEvent-stageMask-06458",
        "VUID-vkCmdResetEvent-stageMask-01153",
        "VUID-vkCmdSetEvent2-dstStageMask-03828",
        "VUID-vkCmdSetEvent2-dstStageMask-09392",
        "VUID-VkMemoryBarrier2-srcAccessMask-03909",
        "VUID-vkCmdResetEvent2-stageMask-03830",
    ];
    assert_eq!(ids, wanted);
    gpu.run(commands.unwrap());
    assert_eq!(unsafe { gpu.device.get_event_status(event) }, Ok(false));
    // The objects in the barriers of a wait must exist.
    let gone = [vk::BufferMemoryBarrier::default().buffer(vk::Buffer::from_raw(77)).size(vk::WHOLE_SIZE)];
    let commands = gpu.record(|device, commands| unsafe {
        device.cmd_wait_events(commands, &[event], S::TRANSFER, S::TRANSFER, &[], &gone, &[]);
    });
    assert!(commands.is_err());
    unsafe { gpu.device.destroy_event(event, None) };
}

unsafe extern "system" fn receive_report(
    _: vk::DebugReportFlagsEXT,
    _: vk::DebugReportObjectTypeEXT,
    _: u64,
    _: usize,
    _: i32,
    _: *const c_char,
    message: *const c_char,
    to: *mut c_void,
) -> vk::Bool32 {
    unsafe { &*to.cast::<Mutex<Vec<String>>>() }.lock().unwrap().push(text(message));
    vk::FALSE
}

#[test]
#[allow(deprecated, reason = "the extension is, and programs use it")]
fn debug_report_callbacks_receive_messages() {
    let gpu = Gpu::new();
    let report = ash::ext::debug_report::Instance::new(&gpu.entry, &gpu.instance);
    let mut heard = Box::<Mutex<Vec<String>>>::default();
    let info = vk::DebugReportCallbackCreateInfoEXT::default()
        .flags(vk::DebugReportFlagsEXT::ERROR)
        .pfn_callback(Some(receive_report))
        .user_data((&raw mut *heard).cast());
    unsafe {
        let callback = report.create_debug_report_callback(&info, None).unwrap();
        let info = vk::BufferCreateInfo::default().usage(vk::BufferUsageFlags::STORAGE_BUFFER);
        assert!(gpu.device.create_buffer(&info, None).is_err());
        let send = |flags, message: &CStr| {
            let of = vk::DebugReportObjectTypeEXT::INSTANCE;
            (report.fp().debug_report_message_ext)(
                gpu.instance.handle(),
                flags,
                of,
                0,
                0,
                0,
                c"test".as_ptr(),
                message.as_ptr(),
            );
        };
        send(vk::DebugReportFlagsEXT::ERROR, c"mine");
        send(vk::DebugReportFlagsEXT::INFORMATION, c"not asked for");
        report.destroy_debug_report_callback(callback, None);
        send(vk::DebugReportFlagsEXT::ERROR, c"too late");
    }
    let heard = std::mem::take(&mut *heard.lock().unwrap());
    assert_eq!(heard.len(), 2, "{heard:?}");
    assert!(heard[0].contains("VUID-VkBufferCreateInfo-size-00912") && heard[1].contains("mine"), "{heard:?}");
}

#[test]
fn timelines_have_labels_and_names() {
    // In a separate process: the file comes from the environment.
    let test = "timelines_have_labels_and_names";
    let Some(file) = std::env::var_os("SPELTER_TRACE") else {
        let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("timeline.json");
        let output =
            rerun(std::env::current_exe().unwrap(), module_path!(), test).env("SPELTER_TRACE", &file).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        return;
    };
    let gpu = Gpu::new();
    let source = "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
        @compute @workgroup_size(1) fn main() { a[0] = 1u; }";
    let program = gpu.program(source, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::empty());
    let (a, pool) = (gpu.buffer(64), gpu.descriptor_pool());
    let set = gpu.set(pool, &program, &[&a]);
    let utils = ash::ext::debug_utils::Device::new(&gpu.instance, &gpu.device);
    let label = |name| vk::DebugUtilsLabelEXT::default().label_name(name);
    unsafe {
        let of = vk::DebugUtilsObjectNameInfoEXT::default();
        utils.set_debug_utils_object_name(&of.object_handle(program.pipeline).object_name(c"first step")).unwrap();
        utils.set_debug_utils_object_name(&of.object_handle(gpu.queue).object_name(c"the main queue")).unwrap();
        let info = vk::CommandBufferAllocateInfo::default()
            .command_pool(gpu.pool)
            .level(vk::CommandBufferLevel::SECONDARY)
            .command_buffer_count(1);
        let secondary = gpu.device.allocate_command_buffers(&info).unwrap()[0];
        let inheritance = vk::CommandBufferInheritanceInfo::default();
        let info = vk::CommandBufferBeginInfo::default().inheritance_info(&inheritance);
        gpu.device.begin_command_buffer(secondary, &info).unwrap();
        utils.cmd_begin_debug_utils_label(secondary, &label(c"inside"));
        gpu.device.cmd_update_buffer(secondary, a.raw, 0, &[0; 4]);
        utils.cmd_end_debug_utils_label(secondary);
        gpu.device.end_command_buffer(secondary).unwrap();
        let commands = gpu.record(|device, commands| {
            utils.cmd_begin_debug_utils_label(commands, &label(c"clear"));
            device.cmd_fill_buffer(commands, a.raw, 0, vk::WHOLE_SIZE, 0);
            utils.cmd_end_debug_utils_label(commands);
            let region = vk::BufferCopy { src_offset: 0, dst_offset: 128, size: 64 };
            device.cmd_copy_buffer(commands, a.raw, a.raw, &[region]);
            device.cmd_execute_commands(commands, &[secondary]);
            let point = vk::PipelineBindPoint::COMPUTE;
            device.cmd_bind_pipeline(commands, point, program.pipeline);
            device.cmd_bind_descriptor_sets(commands, point, program.layout, 0, &[set], &[]);
            utils.cmd_begin_debug_utils_label(commands, &label(c"frame"));
            device.cmd_dispatch(commands, 1, 1, 1);
        });
        gpu.run(commands.unwrap());
        gpu.device.destroy_descriptor_pool(pool, None);
    }
    gpu.destroy_program(program);
    gpu.destroy_buffer(a);
    drop(gpu);
    let text = std::fs::read_to_string(&file).unwrap();
    for name in ["\"clear: fill\"", "\"inside: update\"", "\"frame: first step\"", "the main queue"] {
        assert!(text.contains(name), "no `{name}` in {text}");
    }
    assert!(text.contains("\"name\":\"copy\""), "a copy without a label: {text}");
    let dispatch = "\"ph\":\"X\",\"cat\":\"dispatch\",\"name\":\"frame: first step\"";
    assert!(text.contains(dispatch) && text.contains("\"groups\":[1,1,1]"), "a slice for the dispatch: {text}");
}

#[test]
fn a_program_that_never_destroys_its_device_leaves_its_timeline_and_profile() {
    // In a separate process, which aborts.
    let test = "a_program_that_never_destroys_its_device_leaves_its_timeline_and_profile";
    if std::env::var_os("SPELTER_TRACE").is_some() {
        let gpu = Gpu::new();
        let a = gpu.buffer(64);
        let fill = |device: &ash::Device, commands| unsafe { device.cmd_fill_buffer(commands, a.raw, 0, 256, 1) };
        gpu.run(gpu.record(fill).unwrap());
        let second = Gpu::new();
        second.run(second.record(|_, _| ()).unwrap());
        std::process::abort();
    }
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("aborted.json");
    let run = |file: &std::path::Path| {
        let mut child = rerun(std::env::current_exe().unwrap(), module_path!(), test);
        child.env("SPELTER_TRACE", file).env("SPELTER_PROFILE", file.with_extension("profile")).output().unwrap()
    };
    let output = run(&file);
    assert!(!output.status.success(), "the child should abort");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("[\n{") && text.ends_with("}\n]\n"), "{text}");
    assert!(text.contains("\"name\":\"fill\"") && text.contains("submission 1"), "{text}");
    assert!(text.contains("queues of device 2"), "{text}");
    // So does the profile.
    let profile = std::fs::read_to_string(file.with_extension("profile")).unwrap();
    assert!(profile.contains("{\"name\":\"fill\",\"pipeline\":null,\"calls\":1,"), "{profile}");
    // A file that cannot be written is reported, not as a bug of the driver, and the device works.
    let output = run(std::path::Path::new("/no/such/folder/timeline.json"));
    let errors = String::from_utf8_lossy(&output.stderr);
    let warning = "spelter: SPELTER_TRACE: the timeline /no/such/folder/timeline.json cannot be written: ";
    assert!(errors.contains("spelter: SPELTER_PROFILE: the profile /no/such/folder/"), "{errors}");
    assert!(errors.contains(warning) && !errors.contains("fault of the driver"), "{errors}");
}

#[test]
fn executables_have_statistics_and_representations() {
    let gpu = Gpu::with_extensions(&[c"VK_KHR_pipeline_executable_properties"]);
    let source = "@group(0) @binding(0) var<storage, read_write> a: array<f32>;
        @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3<u32>) {
            a[id.x] = sqrt(a[id.x]);
        }";
    let program = gpu.program(source, &[STORAGE], vk::DescriptorSetLayoutCreateFlags::empty());
    let executables = ash::khr::pipeline_executable_properties::Device::new(&gpu.instance, &gpu.device);
    unsafe {
        let flags = vk::PipelineCreateFlags::CAPTURE_STATISTICS_KHR
            | vk::PipelineCreateFlags::CAPTURE_INTERNAL_REPRESENTATIONS_KHR;
        let info = vk::ComputePipelineCreateInfo::default();
        let info = info.stage(stage(program.module)).layout(program.layout).flags(flags);
        let pipeline = gpu.pipeline(vk::PipelineCache::null(), &info).unwrap();
        let info = vk::PipelineExecutableInfoKHR::default().pipeline(pipeline);
        let statistics = executables.get_pipeline_executable_statistics(&info).unwrap();
        let value = |name: &CStr| {
            let found = statistics.iter().find(|statistic| statistic.name_as_c_str() == Ok(name));
            found.map(|statistic| statistic.value.u64)
        };
        assert_eq!((value(c"workgroup x"), value(c"subgroup size")), (Some(32), Some(16)));
        let call = executables.fp().get_pipeline_executable_internal_representations_khr;
        let mut count = 0;
        let get = |count: &mut u32, to: *mut vk::PipelineExecutableInternalRepresentationKHR<'_>| {
            call(gpu.device.handle(), &raw const info, count, to)
        };
        assert_eq!(get(&mut count, std::ptr::null_mut()), vk::Result::SUCCESS);
        let mut forms = vec![vk::PipelineExecutableInternalRepresentationKHR::default(); count as usize];
        assert_eq!(get(&mut count, forms.as_mut_ptr()), vk::Result::SUCCESS);
        let mut texts: Vec<Vec<u8>> = forms.iter().map(|form| vec![0; form.data_size]).collect();
        for (form, text) in forms.iter_mut().zip(&mut texts) {
            form.p_data = text.as_mut_ptr().cast();
        }
        assert_eq!(get(&mut count, forms.as_mut_ptr()), vk::Result::SUCCESS);
        for (form, text) in forms.iter().zip(&texts) {
            let text = CStr::from_bytes_with_nul(text).unwrap().to_str().unwrap();
            assert!(form.is_text == vk::TRUE && text.contains("sqrt"), "{:?}: {text}", form.name_as_c_str());
        }
        // Interpreted kernels have one representation.
        if forms.len() > 1 {
            assert!(value(c"machine instructions") > Some(10) && value(c"spill slots").is_some(), "{statistics:?}");
            forms[2].data_size = 8;
            assert_eq!(get(&mut count, forms.as_mut_ptr()), vk::Result::INCOMPLETE);
            assert_eq!((forms[2].data_size, texts[2][8] != 0), (8, true), "no more bytes than the buffer has");
        }
        gpu.device.destroy_pipeline(pipeline, None);
    }
    gpu.destroy_program(program);
}

/// Mistakes that most drivers do not notice are reported, and the call succeeds.
#[test]
fn wrong_types_and_null_arrays_are_reported() {
    let gpu = Gpu::new();
    let listener = Listener::new(&gpu);
    unsafe {
        let info = vk::FenceCreateInfo { s_type: vk::StructureType::EVENT_CREATE_INFO, ..Default::default() };
        let fence = gpu.device.create_fence(&info, None).unwrap();
        let heard = listener.take();
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].id, "VUID-VkFenceCreateInfo-sType-sType");
        assert!(heard[0].text.contains("sType is EVENT_CREATE_INFO, and not FENCE_CREATE_INFO"), "{heard:?}");

        // A wrong `sType` in an array of structures, and a null array in one of them.
        let s_type = vk::StructureType::SUBMIT_INFO_2;
        let submit = vk::SubmitInfo { s_type, command_buffer_count: 3, ..Default::default() };
        gpu.device.queue_submit(gpu.queue, &[submit], fence).unwrap();
        let heard = listener.take();
        let ids: Vec<&str> = heard.iter().map(|heard| heard.id.as_str()).collect();
        assert_eq!(ids, ["VUID-VkSubmitInfo-sType-sType", "VUID-VkSubmitInfo-pCommandBuffers-parameter"]);
        assert!(heard[1].text.contains("pCommandBuffers is null, and should be 3 elements"), "{heard:?}");
        gpu.device.device_wait_idle().unwrap();

        // A wrong `sType` of a structure that the call fills: it is filled all the same.
        let s_type = vk::StructureType::EVENT_CREATE_INFO;
        let mut features = vk::PhysicalDeviceFeatures2 { s_type, ..Default::default() };
        gpu.instance.get_physical_device_features2(gpu.physical, &mut features);
        assert_eq!((features.s_type, features.features.robust_buffer_access), (s_type, vk::TRUE));
        let mut memory = vk::PhysicalDeviceMemoryProperties2 { s_type, ..Default::default() };
        gpu.instance.get_physical_device_memory_properties2(gpu.physical, &mut memory);
        let mut format = vk::FormatProperties2 { s_type, ..Default::default() };
        gpu.instance.get_physical_device_format_properties2(gpu.physical, vk::Format::R32_UINT, &mut format);
        let mut support = vk::DescriptorSetLayoutSupport { s_type, ..Default::default() };
        gpu.device.get_descriptor_set_layout_support(&Default::default(), &mut support);
        let buffer = gpu.buffer(4);
        let info = vk::BufferMemoryRequirementsInfo2::default().buffer(buffer.raw);
        let mut needs = vk::MemoryRequirements2 { s_type, ..Default::default() };
        gpu.device.get_buffer_memory_requirements2(&info, &mut needs);
        assert!(needs.memory_requirements.size >= 16);
        gpu.destroy_buffer(buffer);
        let heard = listener.take();
        let ids: Vec<&str> = heard.iter().map(|heard| heard.id.as_str()).collect();
        let named = [
            "PhysicalDeviceFeatures2",
            "PhysicalDeviceMemoryProperties2",
            "FormatProperties2",
            "DescriptorSetLayoutSupport",
            "MemoryRequirements2",
        ];
        assert_eq!(ids, named.map(|name| format!("VUID-Vk{name}-sType-sType")));

        // A null array of what is to be created is an error, not a success without objects.
        let create = gpu.device.fp_v1_0().create_compute_pipelines;
        let mut made = [vk::Pipeline::from_raw(1); 3];
        let cache = vk::PipelineCache::null();
        let created = create(gpu.device.handle(), cache, 3, std::ptr::null(), std::ptr::null(), made.as_mut_ptr());
        assert_eq!((created, made), (vk::Result::ERROR_VALIDATION_FAILED_EXT, [vk::Pipeline::null(); 3]));
        assert_eq!(listener.take().len(), 1);

        // Each mistake has one message: a null array, a handle of nothing, a pool that no device has.
        let info = vk::DescriptorPoolCreateInfo { max_sets: 1, pool_size_count: 3, ..Default::default() };
        let _ =
            gpu.device.create_descriptor_pool(&info, None).map(|pool| gpu.device.destroy_descriptor_pool(pool, None));
        let heard = listener.take();
        let null = heard.iter().filter(|heard| heard.id == "VUID-VkDescriptorPoolCreateInfo-pPoolSizes-parameter");
        assert_eq!(null.count(), 1, "{heard:?}");
        gpu.device.destroy_fence(vk::Fence::from_raw(77), None);
        let heard = listener.take();
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert!(heard[0].text.starts_with("vkDestroyFence: fence is wrong: 0x4d is no live FENCE"), "{heard:?}");
        let sizes = [vk::DescriptorPoolSize { ty: vk::DescriptorType::STORAGE_BUFFER, descriptor_count: u32::MAX }];
        let info = vk::DescriptorPoolCreateInfo::default().max_sets(u32::MAX).pool_sizes(&sizes);
        let created = gpu.device.create_descriptor_pool(&info, None);
        assert_eq!(created, Err(vk::Result::ERROR_OUT_OF_DEVICE_MEMORY));
        let heard = listener.take();
        assert!(heard[0].text.contains("a pool of 4294967295 sets and 4294967295 descriptors"), "{heard:?}");

        // An array that is a parameter.
        let reset = gpu.device.fp_v1_0().reset_fences;
        assert_eq!(reset(gpu.device.handle(), 2, std::ptr::null()), vk::Result::SUCCESS);
        let heard = listener.take();
        assert_eq!(heard.len(), 1, "{heard:?}");
        assert_eq!(heard[0].id, "VUID-vkResetFences-pFences-parameter");
        assert!(heard[0].text.contains("pFences is null, and should be 2 elements"), "{heard:?}");

        // Null arrays with a length are valid if the array is optional.
        let binding = vk::DescriptorSetLayoutBinding::default()
            .descriptor_type(vk::DescriptorType::SAMPLER)
            .descriptor_count(2)
            .stage_flags(vk::ShaderStageFlags::COMPUTE);
        let bindings = [binding];
        let info = vk::DescriptorSetLayoutCreateInfo::default().bindings(&bindings);
        let layout = gpu.device.create_descriptor_set_layout(&info, None).unwrap();
        assert_eq!(listener.take(), []);
        gpu.device.destroy_descriptor_set_layout(layout, None);
        gpu.device.destroy_fence(fence, None);
    }
}

/// All memory is coherent, so a range that cuts atoms does no harm here: a warning, for the sake of other devices.
#[test]
fn ranges_that_cut_atoms_are_reported_and_accepted() {
    let gpu = Gpu::new();
    let listener = Listener::new(&gpu);
    let none = vk::MemoryMapFlags::empty();
    let [offset, whole, size] = ["offset-00687", "size-01389", "size-01390"];
    let check = |memory, cases: &[(u64, u64, Option<&str>)]| {
        for &(offset, size, rule) in cases {
            let ranges = [vk::MappedMemoryRange::default().memory(memory).offset(offset).size(size)];
            for call in ["vkFlushMappedMemoryRanges", "vkInvalidateMappedMemoryRanges"] {
                match call {
                    "vkFlushMappedMemoryRanges" => unsafe { gpu.device.flush_mapped_memory_ranges(&ranges).unwrap() },
                    _ => unsafe { gpu.device.invalidate_mapped_memory_ranges(&ranges).unwrap() },
                }
                let heard = listener.take();
                let ids: Vec<_> = heard.iter().map(|heard| heard.id.as_str()).collect();
                let wanted: Vec<_> = rule.map(|rule| format!("VUID-VkMappedMemoryRange-{rule}")).into_iter().collect();
                assert_eq!(ids, wanted, "{offset} {size}");
                assert!(heard.iter().all(|heard| heard.text.starts_with(call)), "{heard:?}");
            }
        }
    };
    unsafe {
        let info = vk::MemoryAllocateInfo::default().allocation_size(1000).memory_type_index(1);
        let memory = gpu.device.allocate_memory(&info, None).unwrap();
        gpu.device.map_memory(memory, 0, vk::WHOLE_SIZE, none).unwrap();
        check(
            memory,
            &[
                (0, 64, None),
                (64, 128, None),
                (0, vk::WHOLE_SIZE, None),
                // Up to the end of the memory, which is not the end of an atom.
                (960, 40, None),
                (32, 64, Some(offset)),
                (1, vk::WHOLE_SIZE, Some(offset)),
                (0, 65, Some(size)),
                (64, 935, Some(size)),
            ],
        );
        gpu.device.unmap_memory(memory);
        gpu.device.map_memory(memory, 0, 100, none).unwrap();
        check(memory, &[(0, 64, None), (0, 100, Some(size)), (64, vk::WHOLE_SIZE, Some(whole))]);
        gpu.device.unmap_memory(memory);
        gpu.device.map_memory(memory, 0, 128, none).unwrap();
        check(memory, &[(64, vk::WHOLE_SIZE, None)]);
        gpu.device.free_memory(memory, None);
    }
}

/// Rules of modules that no driver enforces: the module is accepted, and works.
#[test]
fn modules_that_break_rules_of_validators_only_are_reported_and_accepted() {
    let gpu = Gpu::new();
    let listener = Listener::new(&gpu);
    let create = |words: &[u32]| {
        let module =
            unsafe { gpu.device.create_shader_module(&vk::ShaderModuleCreateInfo::default().code(words), None) };
        unsafe { gpu.device.destroy_shader_module(module.unwrap(), None) };
        listener.take().into_iter().map(|heard| heard.id).collect::<Vec<_>>()
    };
    let words = spirv(
        "@group(0) @binding(0) var<storage, read_write> words: array<u32>;
        var<workgroup> shared_word: u32;
        @compute @workgroup_size(2) fn main() { shared_word = 1u; workgroupBarrier(); words[0] = shared_word; }",
    );
    assert_eq!(create(&words), Vec::<String>::new());
    // AcquireRelease and WorkgroupMemory become SequentiallyConsistent and WorkgroupMemory.
    let consistent: Vec<_> = words.iter().map(|&word| if word == 0x108 { 0x110 } else { word }).collect();
    assert_ne!(consistent, words);
    assert_eq!(create(&consistent), ["VUID-StandaloneSpirv-MemorySemantics-10866"]);
    // Without OpExtension, as SPIR-V 1.0.
    let (mut bare, mut at) = (vec![words[0], 0x1_0000, words[2], words[3], words[4]], 5);
    while at < words.len() {
        let (count, op) = ((words[at] >> 16) as usize, words[at] & 0xffff);
        if op != 10 {
            bare.extend(&words[at..at + count]);
        }
        at += count;
    }
    assert_eq!(create(&bare), ["VUID-VkShaderModuleCreateInfo-pCode-08737"]);
}
