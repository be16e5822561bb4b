//! Debugging: messengers, names of objects, labels.

use std::collections::HashMap;
use std::ffi::c_char;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk::{self, Handle};
use parking_lot::Mutex;

use crate::c::callback::{Callback, Message};
use crate::c::entry::entry_points;
use crate::c::{In, Out, Text};
use crate::command::CommandBuffer;
use crate::device::{Device, Queue};
use crate::error::Error;
use crate::instance::Instance;
use crate::message;
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreateDebugUtilsMessengerEXT(
        instance: vk::Instance, p_create_info: *const vk::DebugUtilsMessengerCreateInfoEXT<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_messenger: *mut vk::DebugUtilsMessengerEXT,
    ) -> vk::Result => create;
    PFN_vkDestroyDebugUtilsMessengerEXT(
        instance: vk::Instance, messenger: vk::DebugUtilsMessengerEXT, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkSubmitDebugUtilsMessageEXT(
        instance: vk::Instance, message_severity: vk::DebugUtilsMessageSeverityFlagsEXT,
        message_types: vk::DebugUtilsMessageTypeFlagsEXT,
        p_callback_data: *const vk::DebugUtilsMessengerCallbackDataEXT<'_>,
    ) => submit;
    PFN_vkSetDebugUtilsObjectNameEXT(
        device: vk::Device, p_name_info: *const vk::DebugUtilsObjectNameInfoEXT<'_>,
    ) -> vk::Result => set_name;
    PFN_vkSetDebugUtilsObjectTagEXT(
        device: vk::Device, p_tag_info: *const vk::DebugUtilsObjectTagInfoEXT<'_>,
    ) -> vk::Result => set_tag;
    PFN_vkQueueBeginDebugUtilsLabelEXT(
        queue: vk::Queue, p_label_info: *const vk::DebugUtilsLabelEXT<'_>,
    ) => queue_label;
    PFN_vkQueueEndDebugUtilsLabelEXT(queue: vk::Queue) => queue_label_end;
    PFN_vkQueueInsertDebugUtilsLabelEXT(
        queue: vk::Queue, p_label_info: *const vk::DebugUtilsLabelEXT<'_>,
    ) => queue_label;
    PFN_vkCmdBeginDebugUtilsLabelEXT(
        command_buffer: vk::CommandBuffer, p_label_info: *const vk::DebugUtilsLabelEXT<'_>,
    ) => command_label;
    PFN_vkCmdEndDebugUtilsLabelEXT(command_buffer: vk::CommandBuffer) => command_label_end;
    PFN_vkCmdInsertDebugUtilsLabelEXT(
        command_buffer: vk::CommandBuffer, p_label_info: *const vk::DebugUtilsLabelEXT<'_>,
    ) => command_label;
    PFN_vkCreateDebugReportCallbackEXT(
        instance: vk::Instance, p_create_info: *const vk::DebugReportCallbackCreateInfoEXT<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_callback: *mut vk::DebugReportCallbackEXT,
    ) -> vk::Result => create_report;
    PFN_vkDestroyDebugReportCallbackEXT(
        instance: vk::Instance, callback: vk::DebugReportCallbackEXT, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_report;
    PFN_vkDebugReportMessageEXT(
        instance: vk::Instance, flags: vk::DebugReportFlagsEXT, object_type: vk::DebugReportObjectTypeEXT,
        object: u64, location: usize, message_code: i32, p_layer_prefix: *const c_char, p_message: *const c_char,
    ) => report;
}

/// `VkDebugUtilsMessengerEXT` and `VkDebugReportCallbackEXT`.
pub(crate) struct Messenger {
    pub(crate) callback: Callback,
}

object!(Messenger: vk::DebugUtilsMessengerEXT);

fn create(
    _: Ref<Instance>,
    info: In<'_, vk::DebugUtilsMessengerCreateInfoEXT<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DebugUtilsMessengerEXT>,
) -> Result<(), Error> {
    let callback = Callback::Utils {
        function: info.pfn_user_callback,
        user_data: info.p_user_data,
        severities: info.message_severity,
        types: info.message_type,
    };
    out.put(Messenger { callback }.insert());
    Ok(())
}

fn destroy(
    _: Ref<Instance>,
    messenger: vk::DebugUtilsMessengerEXT,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    Messenger::remove(messenger, "vkDestroyDebugUtilsMessengerEXT-messenger").map(|_| ())
}

fn create_report(
    _: Ref<Instance>,
    info: In<'_, vk::DebugReportCallbackCreateInfoEXT<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DebugReportCallbackEXT>,
) -> Result<(), Error> {
    let callback = Callback::Report { function: info.pfn_callback, user_data: info.p_user_data, flags: info.flags };
    out.put(vk::DebugReportCallbackEXT::from_raw(Messenger { callback }.insert().as_raw()));
    Ok(())
}

fn destroy_report(
    _: Ref<Instance>,
    callback: vk::DebugReportCallbackEXT,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    let messenger = vk::DebugUtilsMessengerEXT::from_raw(callback.as_raw());
    Messenger::remove(messenger, "vkDestroyDebugReportCallbackEXT-callback").map(|_| ())
}

fn submit(
    _: Ref<Instance>,
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: In<'_, vk::DebugUtilsMessengerCallbackDataEXT<'_>>,
) -> Result<(), Error> {
    let (id, text) = (data.id().map(Text::as_str), data.text().map(Text::as_str));
    message::send(&Message { severity, types, id: id.unwrap_or_default(), text: text.unwrap_or_default() });
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn report(
    _: Ref<Instance>,
    flags: vk::DebugReportFlagsEXT,
    _: vk::DebugReportObjectTypeEXT,
    _: u64,
    _: usize,
    _: i32,
    prefix: *const c_char,
    text: Text<'_>,
) -> Result<(), Error> {
    let _ = prefix;
    let severity = if flags.contains(vk::DebugReportFlagsEXT::ERROR) {
        vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
    } else {
        vk::DebugUtilsMessageSeverityFlagsEXT::INFO
    };
    let types = vk::DebugUtilsMessageTypeFlagsEXT::GENERAL;
    message::send(&Message { severity, types, id: "program", text: text.as_str() });
    Ok(())
}

/// Names by type and handle.
static NAMES: LazyLock<Mutex<HashMap<(vk::ObjectType, u64), String>>> = LazyLock::new(Mutex::default);

/// Whether anything was ever named: most programs name nothing, and destroy much.
static ANY: AtomicBool = AtomicBool::new(false);

/// What the program calls an object, after a space; nothing if it has no name.
pub(crate) fn name_of<H: Handle>(handle: H) -> String {
    NAMES.lock().get(&(H::TYPE, handle.as_raw())).map(|name| format!(" `{name}`")).unwrap_or_default()
}

/// The object is gone, and its name with it.
pub(crate) fn forget<H: Handle>(handle: H) {
    if ANY.load(Ordering::Relaxed) {
        NAMES.lock().remove(&(H::TYPE, handle.as_raw()));
    }
}

fn set_name(_: Ref<Device>, info: In<'_, vk::DebugUtilsObjectNameInfoEXT<'_>>) -> Result<(), Error> {
    ANY.store(true, Ordering::Relaxed);
    let key = (info.object_type, info.object_handle);
    match info.name().map(Text::as_str).filter(|name| !name.is_empty()) {
        Some(name) => NAMES.lock().insert(key, name.to_owned()),
        None => NAMES.lock().remove(&key),
    };
    Ok(())
}

/// Nobody here reads tags.
fn set_tag(_: Ref<Device>, _: In<'_, vk::DebugUtilsObjectTagInfoEXT<'_>>) -> Result<(), Error> {
    Ok(())
}

fn queue_label(_: Ref<Queue>, _: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Result<(), Error> {
    Ok(())
}

fn queue_label_end(_: Ref<Queue>) -> Result<(), Error> {
    Ok(())
}

fn command_label(_: Ref<CommandBuffer>, _: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Result<(), Error> {
    Ok(())
}

fn command_label_end(_: Ref<CommandBuffer>) -> Result<(), Error> {
    Ok(())
}
