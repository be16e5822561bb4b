//! Debugging: messengers, object names, labels.

use std::ffi::c_char;

use ash::vk::{self, Handle};

use crate::buffer::Buffer;
use crate::c::callback::{About, Callback, Label, Message};
use crate::c::entry::entry_points;
use crate::c::{In, Out, Text};
use crate::command::CommandBuffer;
use crate::current_call::Owner;
use crate::device::{Device, Queue};
use crate::error::Error;
use crate::findings;
use crate::image::Image;
use crate::instance::Instance;
use crate::labels::{self, Labels};
use crate::message::{self, Listener};
use crate::names;
use crate::pipeline::Pipeline;
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
    ) => queue_label_insert;
    PFN_vkCmdBeginDebugUtilsLabelEXT(
        command_buffer: vk::CommandBuffer, p_label_info: *const vk::DebugUtilsLabelEXT<'_>,
    ) => command_label;
    PFN_vkCmdEndDebugUtilsLabelEXT(command_buffer: vk::CommandBuffer) => command_label_end;
    PFN_vkCmdInsertDebugUtilsLabelEXT(
        command_buffer: vk::CommandBuffer, p_label_info: *const vk::DebugUtilsLabelEXT<'_>,
    ) => command_label_insert;
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
    /// Receives messages until the messenger is dropped.
    _listener: Listener,
}

impl Messenger {
    /// A messenger that receives the messages of one instance.
    fn new(owner: Owner, callback: Callback) -> Result<Self, Error> {
        Ok(Self { _listener: Listener::new(owner, callback)? })
    }

    pub(crate) fn of(owner: Owner, info: In<'_, vk::DebugUtilsMessengerCreateInfoEXT<'_>>) -> Result<Self, Error> {
        let callback = Callback::Utils {
            function: info.pfn_user_callback,
            user_data: info.p_user_data,
            severities: info.message_severity,
            types: info.message_type,
        };
        Self::new(owner, callback)
    }
}

object!(Messenger: vk::DebugUtilsMessengerEXT);

fn create(
    instance: Ref<Instance>,
    info: In<'_, vk::DebugUtilsMessengerCreateInfoEXT<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DebugUtilsMessengerEXT>,
) -> Result<(), Error> {
    out.put(Messenger::of(instance.owner, info)?.insert()?);
    Ok(())
}

fn destroy(
    instance: Ref<Instance>,
    messenger: vk::DebugUtilsMessengerEXT,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    findings::deliver(instance.owner);
    Messenger::remove(messenger, "vkDestroyDebugUtilsMessengerEXT-messenger").map(|_| ())
}

fn create_report(
    instance: Ref<Instance>,
    info: In<'_, vk::DebugReportCallbackCreateInfoEXT<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::DebugReportCallbackEXT>,
) -> Result<(), Error> {
    let callback = Callback::Report { function: info.pfn_callback, user_data: info.p_user_data, flags: info.flags };
    let messenger = Messenger::new(instance.owner, callback)?.insert()?;
    out.put(vk::DebugReportCallbackEXT::from_raw(messenger.as_raw()));
    Ok(())
}

fn destroy_report(
    instance: Ref<Instance>,
    callback: vk::DebugReportCallbackEXT,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    findings::deliver(instance.owner);
    let messenger = vk::DebugUtilsMessengerEXT::from_raw(callback.as_raw());
    Messenger::remove(messenger, "vkDestroyDebugReportCallbackEXT-callback").map(|_| ())
}

fn submit(
    instance: Ref<Instance>,
    severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    types: vk::DebugUtilsMessageTypeFlagsEXT,
    data: In<'_, vk::DebugUtilsMessengerCallbackDataEXT<'_>>,
) -> Result<(), Error> {
    let (id, text) = (data.id().map(Text::as_str), data.text().map(Text::as_str));
    let object = |about: In<'_, vk::DebugUtilsObjectNameInfoEXT<'_>>| About {
        ty: about.object_type,
        handle: about.object_handle,
        name: about
            .name()
            .map(|name| name.as_str().to_owned())
            .or_else(|| names::get(about.object_type, about.object_handle)),
    };
    let message = Message {
        objects: data.about().each().map(object).collect(),
        // `Message` has the outermost label first.
        queue_labels: data.queue_labels().each().map(label).rev().collect(),
        command_labels: data.command_labels().each().map(label).rev().collect(),
        ..Message::new(severity, types, id.unwrap_or_default(), text.unwrap_or_default())
    };
    message::send(instance.owner, &message);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the prototype is Vulkan's")]
fn report(
    instance: Ref<Instance>,
    flags: vk::DebugReportFlagsEXT,
    ty: vk::DebugReportObjectTypeEXT,
    handle: u64,
    _: usize,
    _: i32,
    prefix: *const c_char,
    text: Text<'_>,
) -> Result<(), Error> {
    let _ = prefix;
    let severity = if flags.contains(vk::DebugReportFlagsEXT::ERROR) {
        vk::DebugUtilsMessageSeverityFlagsEXT::ERROR
    } else if flags.intersects(vk::DebugReportFlagsEXT::WARNING | vk::DebugReportFlagsEXT::PERFORMANCE_WARNING) {
        vk::DebugUtilsMessageSeverityFlagsEXT::WARNING
    } else {
        vk::DebugUtilsMessageSeverityFlagsEXT::INFO
    };
    let types = vk::DebugUtilsMessageTypeFlagsEXT::GENERAL;
    let ty = vk::ObjectType::from_raw(ty.as_raw());
    let objects = vec![About { ty, handle, name: names::get(ty, handle) }];
    message::send(instance.owner, &Message { objects, ..Message::new(severity, types, "program", text.as_str()) });
    Ok(())
}

/// Names an object; an empty name, or none, removes the one that it has.
fn set_name(_: Ref<Device>, info: In<'_, vk::DebugUtilsObjectNameInfoEXT<'_>>) -> Result<(), Error> {
    let name = info.name().map(Text::as_str).filter(|name| !name.is_empty());
    if info.object_type == vk::ObjectType::QUEUE
        && let Some(queue) = Queue::find(vk::Queue::from_raw(info.object_handle))
        && let (Some((trace, number)), Some(name)) = (&queue.trace, name)
    {
        trace.name_queue(*number, name);
    }
    if info.object_type == vk::ObjectType::COMMAND_BUFFER
        && let Some(commands) = CommandBuffer::find(vk::CommandBuffer::from_raw(info.object_handle))
    {
        commands.driver.set_debug_name(name);
    }
    if info.object_type == vk::ObjectType::BUFFER
        && let Some(buffer) = Buffer::find(vk::Buffer::from_raw(info.object_handle))
    {
        buffer.driver.set_debug_name(name);
    }
    if info.object_type == vk::ObjectType::IMAGE
        && let Some(image) = Image::find(vk::Image::from_raw(info.object_handle))
    {
        image.driver.set_debug_name(name);
    }
    if info.object_type == vk::ObjectType::PIPELINE
        && let Some(pipeline) = Pipeline::find(vk::Pipeline::from_raw(info.object_handle))
    {
        pipeline.driver.set_debug_name(name);
    }
    Ok(names::set(info.object_type, info.object_handle, name)?)
}

/// Tags are accepted and ignored.
fn set_tag(_: Ref<Device>, _: In<'_, vk::DebugUtilsObjectTagInfoEXT<'_>>) -> Result<(), Error> {
    Ok(())
}

/// The label as a value, with a name of bounded length.
fn label(info: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Label {
    Label { name: labels::kept(info.name().map_or("", Text::as_str)).to_owned(), color: info.color }
}

fn queue_label(queue: Ref<Queue>, info: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Result<(), Error> {
    queue.labels.lock().begin(label(info));
    Ok(())
}

fn queue_label_end(queue: Ref<Queue>) -> Result<(), Error> {
    let ended = queue.labels.lock().end();
    let Some((label, start)) = ended else {
        let vuid = "VUID-vkQueueEndDebugUtilsLabelEXT-None-01911";
        return Err(Error::misuse("vkQueueEndDebugUtilsLabelEXT", "no label is open", vuid));
    };
    if let Some((trace, number)) = &queue.trace {
        trace.label(*number, &label.name, start);
    }
    Ok(())
}

fn queue_label_insert(queue: Ref<Queue>, info: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Result<(), Error> {
    let label = label(info);
    if let Some((trace, number)) = &queue.trace {
        trace.mark(*number, &label.name);
    }
    queue.labels.lock().insert(label);
    Ok(())
}

/// Changes the labels of a command buffer, after which the following dispatches are named.
fn relabel(commands: &CommandBuffer, change: impl FnOnce(&mut Labels)) -> Result<(), Error> {
    commands.add(|into| {
        let mut labels = commands.labels.lock();
        change(&mut labels);
        Ok(into.set_label(labels.path().as_deref())?)
    })
}

fn command_label(commands: Ref<CommandBuffer>, info: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Result<(), Error> {
    relabel(&commands, |labels| labels.begin(label(info)))
}

/// A label may end that was begun in another command buffer: then there is nothing to do.
fn command_label_end(commands: Ref<CommandBuffer>) -> Result<(), Error> {
    relabel(&commands, |labels| {
        labels.end();
    })
}

fn command_label_insert(commands: Ref<CommandBuffer>, info: In<'_, vk::DebugUtilsLabelEXT<'_>>) -> Result<(), Error> {
    relabel(&commands, |labels| labels.insert(label(info)))
}
