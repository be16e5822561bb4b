//! Functions of the program's that the driver calls.
//!
//! # Safety
//!
//! A program promises that a callback may be called with its user data until its messenger is destroyed, from any thread.

use std::ffi::{CString, c_void};

use ash::vk::{self, ObjectType};

/// A label of the program's.
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

/// Something to tell.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    pub(crate) types: vk::DebugUtilsMessageTypeFlagsEXT,
    /// The rule that was broken, or who speaks.
    pub(crate) id: String,
    pub(crate) text: String,
    pub(crate) objects: Vec<About>,
    /// Labels that are open, the outermost first: of the queue, and of the command buffer.
    pub(crate) queue_labels: Vec<Label>,
    pub(crate) command_labels: Vec<Label>,
}

impl Message {
    /// About nothing in particular.
    pub(crate) fn new(
        severity: vk::DebugUtilsMessageSeverityFlagsEXT,
        types: vk::DebugUtilsMessageTypeFlagsEXT,
        id: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let (objects, queue_labels, command_labels) = Default::default();
        Self { severity, types, id: id.into(), text: text.into(), objects, queue_labels, command_labels }
    }
}

/// Who listens.
#[derive(Clone, Copy)]
pub(crate) enum Callback {
    /// `VkDebugUtilsMessengerEXT`: of such severities and types.
    Utils {
        function: vk::PFN_vkDebugUtilsMessengerCallbackEXT,
        user_data: *mut c_void,
        severities: vk::DebugUtilsMessageSeverityFlagsEXT,
        types: vk::DebugUtilsMessageTypeFlagsEXT,
    },
    /// `VkDebugReportCallbackEXT`.
    Report { function: vk::PFN_vkDebugReportCallbackEXT, user_data: *mut c_void, flags: vk::DebugReportFlagsEXT },
}

// SAFETY: the user data is the program's, which says that it may be handed to the callback on any thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

impl Callback {
    /// Whether the program wants to hear this.
    pub(crate) fn wants(&self, message: &Message) -> bool {
        match self {
            Self::Utils { severities, types, .. } => {
                severities.contains(message.severity) && types.intersects(message.types)
            }
            Self::Report { flags, .. } => flags.intersects(report_flags(message.severity)),
        }
    }

    /// Tells it. The answer, whether the call should be abandoned, is for layers.
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
                unsafe { function(flags, kind, handle, 0, 0, c"spelter".as_ptr(), text.as_ptr(), user_data) };
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

/// The innermost label comes first.
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
