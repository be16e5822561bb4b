//! Debug messages: sent to the messengers of the instance that they are about, or printed to standard error.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use spelter_driver::host_memory::{self, OutOfHostMemory};
use spelter_driver::{Misuse, Printed, Printer};
use spelter_locks::{Mutex, PerProcess, RwLock};

use crate::c::callback::{About, Callback, Message};
use crate::current_call::{self, Named, Owner};
use crate::error::Error;
use crate::names;
use crate::options::Options;

type Severity = vk::DebugUtilsMessageSeverityFlagsEXT;
type Types = vk::DebugUtilsMessageTypeFlagsEXT;

/// Times that one message is printed to standard error.
const MAX_REPEATS: u32 = 5;

/// Messages that the kernels of one device may print.
const MAX_PRINTED: u64 = 100_000;

/// A registered callback with its instance. Dropping it unregisters the callback.
pub(crate) struct Listener {
    number: u64,
}

/// A callback that receives the messages of one instance.
#[derive(Clone)]
struct Registered {
    number: u64,
    owner: Owner,
    callback: Callback,
}

/// A forked process has the messengers of its parent, unless a thread was adding or removing one at the fork.
static LISTENERS: PerProcess<RwLock<Vec<Registered>>> = PerProcess::inheriting(RwLock::default, RwLock::inherit);

impl Listener {
    pub(crate) fn new(owner: Owner, callback: Callback) -> Result<Self, OutOfHostMemory> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut listeners = LISTENERS.get().write();
        host_memory::reserve(&mut listeners, 1)?;
        listeners.push(Registered { number, owner, callback });
        Ok(Self { number })
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        LISTENERS.get().write().retain(|listener| listener.number != self.number);
    }
}

/// Reports a call that failed, or broken valid usage.
pub(crate) fn error(call: &str, error: &Error) {
    let text = error.to_string();
    if matches!(error, Error::Quiet(_)) {
        return;
    }
    let text = if text.starts_with(call) { text } else { format!("{call}: {text}") };
    let types = if error.vuid().is_some() { Types::VALIDATION } else { Types::GENERAL };
    let mut message = Message::new(Severity::ERROR, types, error.vuid().unwrap_or("spelter"), text);
    for Named { ty, handle, describe } in current_call::objects() {
        message.objects.push(About { ty, handle, name: names::get(ty, handle) });
        describe(handle, &mut message);
    }
    send(current_call::owner(), &message);
}

/// Reports broken valid usage of a call that succeeded, to messengers only.
pub(crate) fn remark(call: &str, remark: &Misuse) {
    let text = remark.to_string();
    let text = if text.starts_with(call) { text } else { format!("{call}: {text}") };
    send(current_call::owner(), &Message::new(Severity::WARNING, Types::VALIDATION, remark.vuid, text));
}

/// Sends a message to every messenger of the instance that wants it (of all instances, if the owner is unknown), or
/// prints it.
pub(crate) fn send(owner: Owner, message: &Message) {
    if !notify(owner, message) {
        print(message);
    }
}

/// Sends a message to the messengers of the instance that want it; never prints it.
pub(crate) fn send_to_messengers(owner: Owner, message: &Message) {
    notify(owner, message);
}

/// Sends or prints a warning that is independent of what a call does.
pub(crate) fn warn(owner: Owner, id: &str, text: String) {
    let message = Message::new(Severity::WARNING, Types::GENERAL, id, text);
    if !notify(owner, &message) && !Options::get().quiet {
        print_line(&format!("spelter: {}", message.text));
    }
}

/// Calls the messengers that want the message. Returns false if there are none.
fn notify(owner: Owner, message: &Message) -> bool {
    let wants = |listener: &&Registered| (owner == 0 || listener.owner == owner) && listener.callback.wants(message);
    let callbacks: Vec<Callback> =
        LISTENERS.get().read().iter().filter(wants).map(|listener| listener.callback).collect();
    // Called without the lock: a callback may call Vulkan.
    callbacks.iter().for_each(|callback| callback.call(message));
    !callbacks.is_empty()
}

/// The receiver of what the kernels of an instance print: messengers get it as information, else it goes to standard
/// error.
pub(crate) fn printer(owner: Owner) -> Printer {
    Printer::new(MAX_PRINTED, move |printed| print_of_kernel(owner, printed))
}

fn print_of_kernel(owner: Owner, printed: &Printed) {
    let message = Message::new(Severity::INFO, Types::GENERAL, "spelter-printf", printed.text.as_str());
    if !notify(owner, &message) && !Options::get().quiet {
        print_line(&printed.text);
    }
}

/// Prints a line to standard error.
pub(crate) fn print_line(line: &str) {
    print_text(&format!("{line}\n"));
}

/// Prints a text to standard error in one write, so that texts of several threads and processes do not mix. Without the
/// lock of the standard library, which in a forked process a thread may hold that is not there. Errors are ignored: it
/// may be closed, and there is nowhere to report that.
pub(crate) fn print_text(text: &str) {
    let stderr = std::io::stderr();
    let mut left = text.as_bytes();
    while !left.is_empty() {
        match rustix::io::retry_on_intr(|| rustix::io::write(stderr.as_fd(), left)) {
            Ok(written @ 1..) => left = &left[written..],
            _ => return,
        }
    }
}

static PRINTED: PerProcess<Mutex<HashMap<String, u32>>> = PerProcess::inheriting(Mutex::default, Mutex::inherit);

fn print(message: &Message) {
    if Options::get().quiet || !message.severity.contains(Severity::ERROR) {
        return;
    }
    let mut printed = PRINTED.get().lock();
    if printed.len() > 1000 {
        printed.clear();
    }
    let times = printed.entry(message.text.clone()).or_insert(0);
    *times += 1;
    match *times {
        ..MAX_REPEATS => print_line(&format!("spelter: {}", message.text)),
        MAX_REPEATS => print_line(&format!("spelter: {} (printed {MAX_REPEATS} times, and no more)", message.text)),
        _ => {}
    }
}

/// Forgets which messages were printed, so that they are printed again.
pub(crate) fn flush() {
    PRINTED.get().lock().clear();
}
