//! Messages to whoever writes the program: to the messengers of the instance that it is about, or to standard error.

use std::collections::HashMap;
use std::io::Write;
use std::sync::LazyLock;

use ash::vk::{self, Handle, ObjectType};
use parking_lot::Mutex;
use spelter_driver::{Misuse, Printed, Printer};

use crate::c::callback::{About, Callback, Message};
use crate::command::CommandBuffer;
use crate::context::{self, Owner};
use crate::debug::{self, Messenger};
use crate::device::Queue;
use crate::error::Error;
use crate::options::Options;
use crate::table::Object;

type Severity = vk::DebugUtilsMessageSeverityFlagsEXT;
type Types = vk::DebugUtilsMessageTypeFlagsEXT;

/// The same message goes to standard error so many times.
const REPEATS: u32 = 5;

/// Messages of kernels that a device prints at most.
const MAX_PRINTED: u64 = 100_000;

/// Tells of a call that failed, or of a rule that it broke.
pub(crate) fn error(call: &str, error: &Error) {
    let text = error.to_string();
    if matches!(error, Error::Quiet(_)) {
        return;
    }
    let text = if text.starts_with(call) { text } else { format!("{call}: {text}") };
    let types = if error.vuid().is_some() { Types::VALIDATION } else { Types::GENERAL };
    let mut message = Message::new(Severity::ERROR, types, error.vuid().unwrap_or("spelter"), text);
    for (ty, handle) in context::objects() {
        message.objects.push(About { ty, handle, name: debug::name(ty, handle) });
        match ty {
            ObjectType::COMMAND_BUFFER => {
                let found = CommandBuffer::find(vk::CommandBuffer::from_raw(handle));
                message.command_labels = found.map(|commands| commands.labels.lock().open()).unwrap_or_default();
            }
            ObjectType::QUEUE => {
                let found = Queue::find(vk::Queue::from_raw(handle));
                message.queue_labels = found.map(|queue| queue.labels.lock().open()).unwrap_or_default();
            }
            _ => {}
        }
    }
    send(context::owner(), &message);
}

/// Tells of a broken rule in a call that succeeded all the same: to messengers only.
pub(crate) fn remark(call: &str, remark: &Misuse) {
    let text = remark.to_string();
    let text = if text.starts_with(call) { text } else { format!("{call}: {text}") };
    send(context::owner(), &Message::new(Severity::WARNING, Types::VALIDATION, remark.vuid, text));
}

/// To every messenger of that instance that wants it; to all that there are where nobody knows whose it is.
pub(crate) fn send(owner: Owner, message: &Message) {
    if !tell(owner, message) {
        print(message);
    }
}

/// Tells of something that is no call's fault, and that users should know: to messengers, or to standard error.
pub(crate) fn warn(owner: Owner, id: &str, text: String) {
    let message = Message::new(Severity::WARNING, Types::GENERAL, id, text);
    if !tell(owner, &message) && !Options::get().quiet {
        say(&format!("spelter: {}", message.text));
    }
}

/// Whether somebody listened.
fn tell(owner: Owner, message: &Message) -> bool {
    let hears = |messenger: &Messenger| owner == 0 || messenger.owner == owner;
    let mut listeners: Vec<Callback> = Vec::new();
    Messenger::table().each(|messenger| {
        if hears(messenger) && messenger.callback.wants(message) {
            listeners.push(messenger.callback);
        }
    });
    // Outside of any lock: a callback may call Vulkan.
    listeners.iter().for_each(|listener| listener.call(message));
    !listeners.is_empty()
}

/// Takes what the kernels of an instance print: to its messengers as information, or to standard error.
pub(crate) fn printer(owner: Owner) -> Printer {
    Printer::new(MAX_PRINTED, move |printed| print_of_kernel(owner, printed))
}

fn print_of_kernel(owner: Owner, printed: &Printed) {
    let message = Message::new(Severity::INFO, Types::GENERAL, "spelter-printf", printed.text.as_str());
    if !tell(owner, &message) && !Options::get().quiet {
        say(&printed.text);
    }
}

/// A line on standard error, which may be closed: nobody else could be told.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

static PRINTED: LazyLock<Mutex<HashMap<String, u32>>> = LazyLock::new(Mutex::default);

fn print(message: &Message) {
    if Options::get().quiet || !message.severity.contains(Severity::ERROR) {
        return;
    }
    let mut printed = PRINTED.lock();
    if printed.len() > 1000 {
        printed.clear();
    }
    let times = printed.entry(message.text.clone()).or_insert(0);
    *times += 1;
    match *times {
        ..REPEATS => say(&format!("spelter: {}", message.text)),
        REPEATS => say(&format!("spelter: {} (said {REPEATS} times, and no more)", message.text)),
        _ => {}
    }
}

/// Repeated messages may be printed anew.
pub(crate) fn flush() {
    PRINTED.lock().clear();
}
