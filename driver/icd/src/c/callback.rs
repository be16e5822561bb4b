//! Functions of the program's that the driver calls.
//!
//! # Safety
//!
//! A program promises that a callback may be called with its user data until its messenger is destroyed, from any thread.

use std::ffi::{CString, c_void};

use ash::vk;

/// Something to tell.
pub(crate) struct Message<'a> {
    pub(crate) severity: vk::DebugUtilsMessageSeverityFlagsEXT,
    pub(crate) types: vk::DebugUtilsMessageTypeFlagsEXT,
    /// The rule that was broken, or who speaks.
    pub(crate) id: &'a str,
    pub(crate) text: &'a str,
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
    pub(crate) fn wants(&self, message: &Message<'_>) -> bool {
        match self {
            Self::Utils { severities, types, .. } => {
                severities.contains(message.severity) && types.intersects(message.types)
            }
            Self::Report { flags, .. } => flags.intersects(report_flags(message.severity)),
        }
    }

    /// Tells it. The answer, whether the call should be abandoned, is for layers.
    pub(crate) fn call(&self, message: &Message<'_>) {
        let text = CString::new(message.text.replace('\0', " ")).unwrap_or_default();
        let id = CString::new(message.id.replace('\0', " ")).unwrap_or_default();
        match *self {
            Self::Utils { function: Some(function), user_data, .. } => {
                let data = vk::DebugUtilsMessengerCallbackDataEXT::default().message(&text).message_id_name(&id);
                // SAFETY: by this module's contract.
                unsafe { function(message.severity, message.types, &raw const data, user_data) };
            }
            Self::Report { function: Some(function), user_data, .. } => {
                let (flags, kind) = (report_flags(message.severity), vk::DebugReportObjectTypeEXT::UNKNOWN);
                // SAFETY: by this module's contract.
                unsafe { function(flags, kind, 0, 0, 0, c"spelter".as_ptr(), text.as_ptr(), user_data) };
            }
            _ => {}
        }
    }
}

fn report_flags(severity: vk::DebugUtilsMessageSeverityFlagsEXT) -> vk::DebugReportFlagsEXT {
    match severity {
        vk::DebugUtilsMessageSeverityFlagsEXT::ERROR => vk::DebugReportFlagsEXT::ERROR,
        vk::DebugUtilsMessageSeverityFlagsEXT::WARNING => vk::DebugReportFlagsEXT::WARNING,
        vk::DebugUtilsMessageSeverityFlagsEXT::INFO => vk::DebugReportFlagsEXT::INFORMATION,
        _ => vk::DebugReportFlagsEXT::DEBUG,
    }
}
