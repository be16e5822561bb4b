//! Debug callbacks: functions of the program that the driver calls with messages.
//!
//! # Safety
//!
//! A program promises that a callback may be called with its user data until its messenger is destroyed, from any
//! thread.

use std::ffi::{CString, c_void};

use ash::vk::{self, ObjectType};

/// A debug label.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Label {
    pub(crate) name: String,
    pub(crate) color: [f32; 4],
}

/// An object that a message is about, with the program's name for it.
#[derive(Clone, Debug)]
pub(crate) struct About {
    pub(crate) ty: ObjectType,
    pub(crate) handle: u64,
    pub(crate) name: Option<String>,
}

/// A message to debug callbacks.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    pub(crate) types: vk::DebugUtilsMessageTypeFlagsEXT,
    /// The valid-usage ID that was broken, or the source of the message.
    pub(crate) id: String,
    /// `messageIdNumber`; 0 if the id has no number.
    pub(crate) number: i32,
    pub(crate) text: String,
    pub(crate) objects: Vec<About>,
    /// Open labels, the outermost first: of the queue, and of the command buffer.
    pub(crate) queue_labels: Vec<Label>,
    pub(crate) command_labels: Vec<Label>,
}

impl Message {
    /// A message without objects and labels.
    pub(crate) fn new(
        severity: vk::DebugUtilsMessageSeverityFlagsEXT,
        types: vk::DebugUtilsMessageTypeFlagsEXT,
        id: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let (objects, queue_labels, command_labels) = Default::default();
        Self { severity, types, id: id.into(), number: 0, text: text.into(), objects, queue_labels, command_labels }
    }
}

/// A registered callback.
#[derive(Clone, Copy)]
pub(crate) enum Callback {
    /// `VkDebugUtilsMessengerEXT`, for these severities and types.
    Utils {
        function: vk::PFN_vkDebugUtilsMessengerCallbackEXT,
        user_data: *mut c_void,
        severities: vk::DebugUtilsMessageSeverityFlagsEXT,
        types: vk::DebugUtilsMessageTypeFlagsEXT,
    },
    /// `VkDebugReportCallbackEXT`.
    Report { function: vk::PFN_vkDebugReportCallbackEXT, user_data: *mut c_void, flags: vk::DebugReportFlagsEXT },
}

// SAFETY: by this module's contract the user data may be passed to the callback on any thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    /// Whether the callback is registered for this message.
    pub(crate) fn wants(&self, message: &Message) -> bool {
        match self {
            Self::Utils { severities, types, .. } => {
                severities.contains(message.severity) && types.intersects(message.types)
            }
            Self::Report { flags, .. } => flags.intersects(report_flags(message.severity)),
        }
    }

    /// Calls the callback. The value that it returns, whether to abort the call, is for layers only.
    pub(crate) fn call(&self, message: &Message) {
        let (text, id) = (c_string(&message.text), c_string(&message.id));
        match *self {
            Self::Utils { function: Some(function), user_data, .. } => {
                let names: Vec<_> = message.objects.iter().map(|about| about.name.as_deref().map(c_string)).collect();
                let objects: Vec<_> =
                    message.objects.iter().zip(&names).map(|(about, name)| object(about, name)).collect();
                let (of_queue, of_commands) = (names_of(&message.queue_labels), names_of(&message.command_labels));
                let queue_labels = labels(&message.queue_labels, &of_queue);
                let command_labels = labels(&message.command_labels, &of_commands);
                let data = vk::DebugUtilsMessengerCallbackDataEXT::default()
                    .message(&text)
                    .message_id_name(&id)
                    .message_id_number(message.number)
                    .objects(&objects)
                    .queue_labels(&queue_labels)
                    .cmd_buf_labels(&command_labels);
                // SAFETY: by this module's contract.
                unsafe { function(message.severity, message.types, &raw const data, user_data) };
            }
            Self::Report { function: Some(function), user_data, .. } => {
                let about = message.objects.first().filter(|about| (1..=25).contains(&about.ty.as_raw()));
                // Objects of Vulkan 1.0 have the same numbers in both.
                let (kind, handle) = about.map_or((0, 0), |about| (about.ty.as_raw(), about.handle));
                let (flags, kind) = (report_flags(message.severity), vk::DebugReportObjectTypeEXT::from_raw(kind));
                // SAFETY: by this module's contract.
                unsafe {
                    function(flags, kind, handle, 0, message.number, c"spelter".as_ptr(), text.as_ptr(), user_data)
                };
            }
            _ => {}
        }
    }
}

fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

fn object<'a>(about: &About, name: &'a Option<CString>) -> vk::DebugUtilsObjectNameInfoEXT<'a> {
    let p_object_name = name.as_ref().map_or(std::ptr::null(), |name| name.as_ptr());
    vk::DebugUtilsObjectNameInfoEXT {
        object_type: about.ty,
        object_handle: about.handle,
        p_object_name,
        ..Default::default()
    }
}

fn names_of(labels: &[Label]) -> Vec<CString> {
    labels.iter().map(|label| c_string(&label.name)).collect()
}

/// The labels as Vulkan orders them, the innermost first.
fn labels<'a>(labels: &[Label], names: &'a [CString]) -> Vec<vk::DebugUtilsLabelEXT<'a>> {
    let one =
        |(label, name): (&Label, &'a CString)| vk::DebugUtilsLabelEXT::default().label_name(name).color(label.color);
    labels.iter().zip(names).rev().map(one).collect()
}

fn report_flags(severity: vk::DebugUtilsMessageSeverityFlagsEXT) -> vk::DebugReportFlagsEXT {
    match severity {
        vk::DebugUtilsMessageSeverityFlagsEXT::ERROR => vk::DebugReportFlagsEXT::ERROR,
        vk::DebugUtilsMessageSeverityFlagsEXT::WARNING => vk::DebugReportFlagsEXT::WARNING,
        vk::DebugUtilsMessageSeverityFlagsEXT::INFO => vk::DebugReportFlagsEXT::INFORMATION,
        _ => vk::DebugReportFlagsEXT::DEBUG,
    }
}
