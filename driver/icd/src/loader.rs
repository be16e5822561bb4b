//! The interface to the loader: three exported functions, and the lookup of commands by name.
//!
//! # Safety
//!
//! The three functions are called by the loader, or by tests in its place, as Vulkan's LoaderDriverInterface.md says:
//! names are strings that end in a zero, `version` points to a number.

use std::collections::HashMap;
use std::ffi::c_char;

use ash::vk;
use spelter_locks::Computed;

use crate::c::entry::{FromC, Place, entry_points, guard};
use crate::c::{EntryPoint, Function, InOut, Text};
use crate::device::Device;
use crate::error::Error;
use crate::instance::Instance;
use crate::physical_device::extensions;
use crate::table::{Object, Ref};
use crate::{
    buffer, command, debug, descriptor, device, graphics, host_copy, image, instance, memory, physical_device,
    pipeline, private_data, query, sampler, sync,
};

/// The versions of the loader interface that this driver supports, lowest and highest.
const VERSIONS: [u32; 2] = [5, 7];

entry_points! {
    PFN_vkGetDeviceProcAddr(
        device: vk::Device, p_name: *const c_char,
    ) -> vk::PFN_vkVoidFunction => get_device_proc_addr;
}

/// The level of a command: which object it is dispatched on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    Global,
    Instance,
    PhysicalDevice,
    Device,
}

fn level(entry: &EntryPoint) -> Level {
    match entry.of.trim_start_matches("vk::").trim_start_matches("vk :: ") {
        "Instance" => Level::Instance,
        "PhysicalDevice" => Level::PhysicalDevice,
        "Device" | "Queue" | "CommandBuffer" => Level::Device,
        _ => Level::Global,
    }
}

/// The tables of all commands.
pub(crate) const TABLES: [&[&[EntryPoint]]; 4] = [
    &[
        ENTRY_POINTS,
        instance::ENTRY_POINTS,
        physical_device::ENTRY_POINTS,
        device::ENTRY_POINTS,
        memory::ENTRY_POINTS,
        buffer::ENTRY_POINTS,
        image::ENTRY_POINTS,
        host_copy::ENTRY_POINTS,
        sampler::ENTRY_POINTS,
        descriptor::ENTRY_POINTS,
        pipeline::ENTRY_POINTS,
        command::ENTRY_POINTS,
        sync::ENTRY_POINTS,
        query::ENTRY_POINTS,
        debug::ENTRY_POINTS,
        private_data::ENTRY_POINTS,
        graphics::ENTRY_POINTS,
    ],
    &command::CHAPTERS,
    &descriptor::CHAPTERS,
    &pipeline::CHAPTERS,
];

/// Every command by its name.
fn commands() -> &'static HashMap<&'static str, (Level, Function)> {
    static COMMANDS: Computed<HashMap<&'static str, (Level, Function)>> = Computed::new();
    COMMANDS.get_or_compute(|| {
        let entries = TABLES.into_iter().flatten().copied().flatten();
        entries.map(|entry| (entry.name(), (level(entry), entry.function))).collect()
    })
}

/// A command by its name, or by the name of its extension before it became part of Vulkan.
fn find(name: &str) -> Option<(Level, Function)> {
    let plain = || extensions::plain(name);
    let of_vulkan = || commands().get(plain()?);
    // Commands of EXT extensions that KHR extensions replaced.
    let of_khronos = || commands().get(format!("{}KHR", plain()?).as_str());
    commands().get(name).or_else(of_vulkan).or_else(of_khronos).copied()
}

/// `vkGetInstanceProcAddr`. Without an instance it returns global commands only; with one, the commands of its enabled
/// extensions and of all device extensions.
pub(crate) fn get_instance_proc_addr(instance: vk::Instance, name: Text<'_>) -> Result<vk::PFN_vkVoidFunction, Error> {
    let without = vk::Handle::is_null(instance);
    let found = find(name.as_str()).filter(|(level, _)| match Instance::find(instance) {
        _ if without => *level == Level::Global || is_loaders(name),
        Some(instance) => instance.offers(name.as_str()),
        None => extensions::plain(name.as_str()).is_none(),
    });
    Ok(found.map(|(_, function)| function))
}

/// Whether the command is returned without an instance, although its first parameter is one.
fn is_loaders(name: Text<'_>) -> bool {
    name.as_str() == "vkGetInstanceProcAddr"
}

/// `vkGetDeviceProcAddr`: device-level commands of core versions and enabled extensions.
fn get_device_proc_addr(device: Ref<Device>, name: Text<'_>) -> Result<vk::PFN_vkVoidFunction, Error> {
    let name = name.as_str();
    let found = find(name).filter(|(level, _)| *level == Level::Device && device.offers(name));
    Ok(found.map(|(_, function)| function))
}

/// `vkGetInstanceProcAddr`, for the loader.
///
/// # Safety
///
/// `name` is a string that ends in a zero.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the loader looks for this name")]
pub unsafe extern "system" fn vk_icdGetInstanceProcAddr(
    instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    guard("vk_icdGetInstanceProcAddr", || {
        let own: Option<Function> = match text(name)?.as_str() {
            // SAFETY: function pointers are of one size; the loader casts this one back.
            "vk_icdNegotiateLoaderICDInterfaceVersion" => Some(unsafe {
                std::mem::transmute::<unsafe extern "system" fn(*mut u32) -> vk::Result, Function>(
                    vk_icdNegotiateLoaderICDInterfaceVersion,
                )
            }),
            // SAFETY: as above.
            "vk_icdGetPhysicalDeviceProcAddr" => Some(unsafe {
                std::mem::transmute::<
                    unsafe extern "system" fn(vk::Instance, *const c_char) -> vk::PFN_vkVoidFunction,
                    Function,
                >(vk_icdGetPhysicalDeviceProcAddr)
            }),
            _ => None,
        };
        if own.is_some() { Ok(own) } else { get_instance_proc_addr(instance, text(name)?) }
    })
}

/// Physical-device commands, for the loader, which creates trampolines for those that it does not know.
///
/// # Safety
///
/// `name` is a string that ends in a zero.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the loader looks for this name")]
pub unsafe extern "system" fn vk_icdGetPhysicalDeviceProcAddr(
    _instance: vk::Instance,
    name: *const c_char,
) -> vk::PFN_vkVoidFunction {
    guard("vk_icdGetPhysicalDeviceProcAddr", || {
        let found = find(text(name)?.as_str()).filter(|(level, _)| *level == Level::PhysicalDevice);
        Ok(found.map(|(_, function)| function))
    })
}

/// Negotiates the version of the interface with the loader.
///
/// # Safety
///
/// `version` points to a number that may be written.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the loader looks for this name")]
pub unsafe extern "system" fn vk_icdNegotiateLoaderICDInterfaceVersion(version: *mut u32) -> vk::Result {
    guard("vk_icdNegotiateLoaderICDInterfaceVersion", || {
        let place = Place { call: "vk_icdNegotiateLoaderICDInterfaceVersion", parameter: "version" };
        // SAFETY: by this function's contract.
        let mut version: InOut<'_, u32> = unsafe { InOut::from_c(version, place) }?;
        let [min, max] = VERSIONS;
        if version.get() < min {
            return Err(Error::Code(
                vk::Result::ERROR_INCOMPATIBLE_DRIVER,
                format!("the loader supports version {} of the interface, {min} is needed", version.get()),
            ));
        }
        version.put(version.get().min(max));
        Ok(())
    })
}

/// The string parameter of the exported functions.
fn text<'a>(name: *const c_char) -> Result<Text<'a>, Error> {
    // SAFETY: by the contract of the three.
    unsafe { Text::from_c(name, Place { call: "vk_icdGetInstanceProcAddr", parameter: "p_name" }) }
}
