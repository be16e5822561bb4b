//! A program that breaks two rules of valid usage, through the loader: a validation layer has to report both.

use std::ffi::{CStr, c_char, c_int, c_void};

use ash::vk;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}

/// `RTLD_NOW`.
const NOW: c_int = 2;

/// The entry of the loader, if it is installed.
fn loader() -> Option<ash::Entry> {
    let symbol = |library: *mut c_void, name: &CStr| unsafe { dlsym(library, name.as_ptr()) };
    let library = unsafe { dlopen(c"libvulkan.so.1".as_ptr(), NOW) };
    let found = (!library.is_null()).then(|| symbol(library, c"vkGetInstanceProcAddr")).filter(|at| !at.is_null())?;
    let get_instance_proc_addr = unsafe { std::mem::transmute::<*mut c_void, vk::PFN_vkGetInstanceProcAddr>(found) };
    Some(unsafe { ash::Entry::from_static_fn(ash::StaticFn { get_instance_proc_addr }) })
}

/// Two writes of the same bytes without a barrier between them, and a buffer of no bytes.
pub(crate) fn run() {
    let entry = loader().unwrap();
    let app = vk::ApplicationInfo::default().api_version(vk::API_VERSION_1_3);
    unsafe {
        let info = vk::InstanceCreateInfo::default().application_info(&app);
        let instance = entry.create_instance(&info, None).unwrap();
        let physical = instance.enumerate_physical_devices().unwrap()[0];
        let queues = [vk::DeviceQueueCreateInfo::default().queue_priorities(&[1.0])];
        let info = vk::DeviceCreateInfo::default().queue_create_infos(&queues);
        let device = instance.create_device(physical, &info, None).unwrap();
        let usage = vk::BufferUsageFlags::TRANSFER_DST;
        let info = vk::BufferCreateInfo::default().size(64).usage(usage);
        let _ = device.create_buffer(&info.size(0), None);
        let buffer = device.create_buffer(&info, None).unwrap();
        let needs = device.get_buffer_memory_requirements(buffer);
        let info = vk::MemoryAllocateInfo::default().allocation_size(needs.size);
        let memory = device.allocate_memory(&info, None).unwrap();
        device.bind_buffer_memory(buffer, memory, 0).unwrap();
        let pool = device.create_command_pool(&vk::CommandPoolCreateInfo::default(), None).unwrap();
        let info = vk::CommandBufferAllocateInfo::default().command_pool(pool).command_buffer_count(1);
        let commands = device.allocate_command_buffers(&info).unwrap()[0];
        device.begin_command_buffer(commands, &vk::CommandBufferBeginInfo::default()).unwrap();
        device.cmd_fill_buffer(commands, buffer, 0, 64, 1);
        device.cmd_fill_buffer(commands, buffer, 0, 64, 2);
        device.end_command_buffer(commands).unwrap();
        device.destroy_command_pool(pool, None);
        device.destroy_buffer(buffer, None);
        device.free_memory(memory, None);
        device.destroy_device(None);
        instance.destroy_instance(None);
    }
}
