//! The names that programs give objects (`vkSetDebugUtilsObjectNameEXT`), for messages and timelines.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk::{Handle, ObjectType};
use spelter_driver::host_memory::{self, OutOfHostMemory};
use spelter_locks::{Mutex, PerProcess};

/// Names by type and handle. A forked process has those of its parent, unless a thread was using them at the fork.
static NAMES: PerProcess<Mutex<Names>> = PerProcess::inheriting(Mutex::default, Mutex::inherit);

type Names = HashMap<(ObjectType, u64), String>;

/// Whether any object was ever named: most programs name none, and their calls do without the lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// Names an object; an empty name, or none, removes the one that it has.
pub(crate) fn set(ty: ObjectType, handle: u64, name: Option<&str>) -> Result<(), OutOfHostMemory> {
    ANY.store(true, Ordering::Relaxed);
    let mut names = NAMES.get().lock();
    match name.filter(|name| !name.is_empty()) {
        Some(name) => {
            host_memory::reserve_map(&mut names, 1)?;
            names.insert((ty, handle), name.to_owned())
        }
        None => names.remove(&(ty, handle)),
    };
    Ok(())
}

/// The name of an object.
pub(crate) fn get(ty: ObjectType, handle: u64) -> Option<String> {
    if ANY.load(Ordering::Relaxed) { NAMES.get().lock().get(&(ty, handle)).cloned() } else { None }
}

/// The name of an object in quotes, after a space; empty if it has none.
pub(crate) fn suffix<H: Handle>(handle: H) -> String {
    get(H::TYPE, handle.as_raw()).map(|name| format!(" `{name}`")).unwrap_or_default()
}

/// Removes the name of an object that is destroyed.
pub(crate) fn forget(ty: ObjectType, handle: u64) {
    // Relaxed: destruction is externally synchronized, so a name of the object was set before.
    if ANY.load(Ordering::Relaxed) {
        NAMES.get().lock().remove(&(ty, handle));
    }
}
