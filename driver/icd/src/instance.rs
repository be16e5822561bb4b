//! Instances.

use std::collections::HashSet;
use std::ffi::c_char;
use std::sync::Arc;

use ash::vk;

use crate::c::emergency;
use crate::c::entry::{entry_points, exhausted};
use crate::c::{In, InOut, Out, OutChain, OutMany, Text, list, list_chains};
use crate::current_call::{self, Owner};
use crate::debug::Messenger;
use crate::error::Error;
use crate::options::Options;
use crate::physical_device::{PhysicalDevice, extensions};
use crate::table::{Object, Ref, object};
use crate::{loader, message};

entry_points! {
    PFN_vkCreateInstance(
        p_create_info: *const vk::InstanceCreateInfo<'_>, p_allocator: *const vk::AllocationCallbacks<'_>,
        p_instance: *mut vk::Instance,
    ) -> vk::Result => create;
    PFN_vkDestroyInstance(instance: vk::Instance, p_allocator: *const vk::AllocationCallbacks<'_>) => destroy;
    PFN_vkEnumerateInstanceVersion(p_api_version: *mut u32) -> vk::Result => version;
    PFN_vkEnumerateInstanceExtensionProperties(
        p_layer_name: *const c_char, p_property_count: *mut u32, p_properties: *mut vk::ExtensionProperties,
    ) -> vk::Result => instance_extensions;
    PFN_vkEnumerateInstanceLayerProperties(
        p_property_count: *mut u32, p_properties: *mut vk::LayerProperties,
    ) -> vk::Result => layers;
    PFN_vkEnumeratePhysicalDevices(
        instance: vk::Instance, p_physical_device_count: *mut u32, p_physical_devices: *mut vk::PhysicalDevice,
    ) -> vk::Result => physical_devices;
    PFN_vkEnumeratePhysicalDeviceGroups(
        instance: vk::Instance, p_physical_device_group_count: *mut u32,
        p_physical_device_group_properties: *mut vk::PhysicalDeviceGroupProperties<'_>,
    ) -> vk::Result => groups;
    PFN_vkGetInstanceProcAddr(
        instance: vk::Instance, p_name: *const c_char,
    ) -> vk::PFN_vkVoidFunction => loader::get_instance_proc_addr;
}

/// `VkInstance`.
pub(crate) struct Instance {
    /// The only physical device.
    physical: vk::PhysicalDevice,
    /// The number by which messengers refer to the instance.
    pub(crate) owner: Owner,
    extensions: Arc<HashSet<String>>,
}

object!(dispatchable Instance: vk::Instance, |instance| instance.owner);

impl Instance {
    /// Whether the instance or one of its devices has a command of this name.
    pub(crate) fn offers(&self, name: &str) -> bool {
        let of_device = extensions::of_device(Options::get()).any(|(_, _, commands)| commands.contains(&name));
        of_device || extensions::offers(extensions::INSTANCE, &self.extensions, name)
    }
}

fn version(mut version: Out<'_, u32>) -> Result<(), Error> {
    version.put(vk::make_api_version(0, 1, 3, vk::HEADER_VERSION));
    Ok(())
}

fn layers(count: InOut<'_, u32>, out: OutMany<'_, vk::LayerProperties>) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

fn instance_extensions(
    layer: *const c_char,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::ExtensionProperties>,
) -> Result<vk::Result, Error> {
    // The loader queries layers by itself.
    let _ = layer;
    Ok(list(count, out, extensions::list(extensions::INSTANCE.iter())))
}

fn create(
    info: In<'_, vk::InstanceCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Instance>,
) -> Result<(), Error> {
    // A forked process has a copy of the hint that there is a reserve, and makes its own here.
    if !emergency::replenish() {
        return Err(exhausted());
    }
    let owner = current_call::new_owner();
    current_call::set_owner(owner);
    let made = new(info, owner);
    // A messenger in the chain receives messages of this call, and of the instance's destruction, which sends none.
    if let (Err(error), Some(chained)) = (&made, info.next::<vk::DebugUtilsMessengerCreateInfoEXT<'_>>()) {
        let messenger = Messenger::of(owner, chained)?.insert()?;
        message::error("vkCreateInstance", error);
        Messenger::remove(messenger, "vkCreateInstance-pCreateInfo")?;
        return Err(Error::Quiet(error.code()));
    }
    let made = made?;
    let physical = made.physical;
    out.put(made.insert().inspect_err(|_| PhysicalDevice::take_back(&[physical]))?);
    Ok(())
}

fn new(info: In<'_, vk::InstanceCreateInfo<'_>>, owner: Owner) -> Result<Instance, Error> {
    let mut enabled = HashSet::new();
    for extension in info.extensions().into_iter().map(Text::as_str) {
        if !extensions::INSTANCE.iter().any(|(name, ..)| *name == extension) {
            let what = format!("there is no instance extension `{extension}`");
            return Err(Error::Code(vk::Result::ERROR_EXTENSION_NOT_PRESENT, what));
        }
        enabled.insert(extension.to_owned());
    }
    let extensions = Arc::new(enabled);
    // Without `VkApplicationInfo` the version is 1.0.
    let application = info.application();
    let minor = application.map_or(0, |application| vk::api_version_minor(application.api_version));
    let engine = application.and_then(|application| application.engine()).map_or("", Text::as_str);
    let physical = PhysicalDevice::new(owner, Arc::clone(&extensions), minor, engine).insert()?;
    Ok(Instance { physical, owner, extensions })
}

fn destroy(instance: vk::Instance, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    if let Some(instance) = Instance::remove(instance, "vkDestroyInstance-instance")? {
        PhysicalDevice::remove(instance.physical, "vkDestroyInstance-instance")?;
    }
    message::flush();
    Ok(())
}

fn physical_devices(
    instance: Ref<Instance>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::PhysicalDevice>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::once(instance.physical)))
}

fn groups(
    instance: Ref<Instance>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::PhysicalDeviceGroupProperties<'_>>,
) -> Result<vk::Result, Error> {
    Ok(list_chains(count, out, std::iter::once(instance.physical), |chain: &mut OutChain<'_, _>, device| {
        chain.head(|group: &mut vk::PhysicalDeviceGroupProperties<'_>| {
            group.physical_device_count = 1;
            group.physical_devices[0] = device;
            group.subset_allocation = vk::FALSE;
        });
    }))
}
