//! Messages to whoever writes the program: to the messengers that it made, or to standard error.

use std::collections::HashMap;
use std::sync::LazyLock;

use ash::vk;
use parking_lot::Mutex;
use spelter_driver::Misuse;

use crate::c::callback::{Callback, Message};
use crate::debug::Messenger;
use crate::error::Error;
use crate::options::Options;
use crate::table::Object;

/// The same message goes to standard error so many times.
const REPEATS: u32 = 5;

/// Tells of a call that failed.
pub(crate) fn error(call: &str, error: &Error) {
    let text = error.to_string();
    if matches!(error, Error::Quiet(_)) {
        return;
    }
    let text = if text.starts_with(call) { text } else { format!("{call}: {text}") };
    let validation = error.vuid().is_some();
    let types = if validation {
        vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION
    } else {
        vk::DebugUtilsMessageTypeFlagsEXT::GENERAL
    };
    let severity = vk::DebugUtilsMessageSeverityFlagsEXT::ERROR;
    send(&Message { severity, types, id: error.vuid().unwrap_or("spelter"), text: &text });
}

/// Tells of a broken rule in a call that succeeded all the same: to messengers only.
pub(crate) fn remark(call: &str, remark: &Misuse) {
    let text = remark.to_string();
    let text = if text.starts_with(call) { text } else { format!("{call}: {text}") };
    let (severity, types) =
        (vk::DebugUtilsMessageSeverityFlagsEXT::WARNING, vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION);
    send(&Message { severity, types, id: remark.vuid, text: &text });
}

/// To every messenger that listens. There is no telling whose instance a message is about, so all hear it.
pub(crate) fn send(message: &Message<'_>) {
    let listeners: Vec<Callback> =
        Messenger::table().all().iter().map(|messenger| messenger.callback).filter(|to| to.wants(message)).collect();
    if listeners.is_empty() {
        print(message);
    }
    // Outside of any lock: a callback may call Vulkan.
    for listener in listeners {
        listener.call(message);
    }
}

static PRINTED: LazyLock<Mutex<HashMap<String, u32>>> = LazyLock::new(Mutex::default);

#[allow(clippy::print_stderr, reason = "there is nobody else to tell")]
fn print(message: &Message<'_>) {
    if Options::get().quiet || !message.severity.contains(vk::DebugUtilsMessageSeverityFlagsEXT::ERROR) {
        return;
    }
    let mut printed = PRINTED.lock();
    if printed.len() > 1000 {
        printed.clear();
    }
    let times = printed.entry(message.text.to_owned()).or_insert(0);
    *times += 1;
    match *times {
        ..REPEATS => eprintln!("spelter: {}", message.text),
        REPEATS => eprintln!("spelter: {} (said {REPEATS} times, and no more)", message.text),
        _ => {}
    }
}

/// Repeated messages may be printed anew.
pub(crate) fn flush() {
    PRINTED.lock().clear();
}
