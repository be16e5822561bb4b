//! Programs without a loader: they open `libvulkan.so.1`, which is the driver, and find commands as its symbols.

#![allow(
    clippy::unwrap_used,
    clippy::undocumented_unsafe_blocks,
    clippy::multiple_unsafe_ops_per_block,
    reason = "every call of Vulkan is unsafe; a failing test panics"
)]

use crate::common;
use std::ffi::{CStr, c_void};
use std::path::Path;

use crate::common::Gpu;
use ash::vk;

/// Makes the test the program that computes.
const PROGRAM: &str = "SPELTER_TEST_NO_LOADER";

#[test]
fn a_program_computes_without_a_loader() {
    if std::env::var_os(PROGRAM).is_some() {
        return compute();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports");
    let test = std::env::current_exe().unwrap();
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(test.with_file_name("libvulkan_spelter.so"), folder.join("libvulkan.so.1")).unwrap();
    let mut program = common::rerun(&test, module_path!(), "a_program_computes_without_a_loader");
    let ended = program.env(PROGRAM, "1").env("LD_LIBRARY_PATH", &folder).output().unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

/// Doubles numbers. Every call below the creation of the instance goes through an exported symbol.
fn compute() {
    let library = unsafe { libloading::Library::new("libvulkan.so.1") }.unwrap();
    let find = |name: &CStr| {
        let symbol = unsafe { library.get::<*const c_void>(name.to_bytes_with_nul()) };
        symbol.map_or(std::ptr::null(), |symbol| *symbol)
    };
    let get = unsafe { library.get::<vk::PFN_vkGetInstanceProcAddr>(b"vkGetInstanceProcAddr\0") }.unwrap();
    let entry = unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr: *get }) };
    let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    let gpu = unsafe {
        let made = entry.create_instance(&vk::InstanceCreateInfo::default().application_info(&app), None).unwrap();
        let instance = ash::Instance::load_with(find, made.handle());
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let name = instance.get_physical_device_properties(physical).device_name_as_c_str().unwrap().to_owned();
        assert!(name.to_str().unwrap().starts_with("Spelter ("), "{name:?}");
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        let made = instance.create_device(physical, &info, None).unwrap();
        let device = ash::Device::load_with(find, made.handle());
        let queue = device.get_device_queue(0, 0);
        let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
        Gpu { entry, instance, physical, device, queue, pool }
    };
    let program = gpu.program(
        "@group(0) @binding(0) var<storage, read_write> a: array<u32>;
         @compute @workgroup_size(4) fn main(@builtin(global_invocation_id) id: vec3<u32>) { a[id.x] *= 2u; }",
        &[vk::DescriptorType::STORAGE_BUFFER],
        vk::DescriptorSetLayoutCreateFlags::empty(),
    );
    let (buffer, pool) = (gpu.buffer(8), gpu.descriptor_pool());
    buffer.write(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let set = gpu.set(pool, &program, &[&buffer]);
    gpu.run(gpu.dispatch(program.pipeline, program.layout, set, 2));
    assert_eq!(buffer.read(), [2, 4, 6, 8, 10, 12, 14, 16]);
}
