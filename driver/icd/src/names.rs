//! The names that programs give objects (`vkSetDebugUtilsObjectNameEXT`), for messages and timelines.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};

use ash::vk::{Handle, ObjectType};
use spelter_driver::host_memory::{self, OutOfHostMemory};
use spelter_locks::Mutex;

/// Names by type and handle.
static NAMES: LazyLock<Mutex<HashMap<(ObjectType, u64), String>>> = LazyLock::new(Mutex::default);

/// Whether any object was ever named: most programs name none, and their calls do without the lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// Names an object; an empty name, or none, removes the one that it has.
pub(crate) fn set(ty: ObjectType, handle: u64, name: Option<&str>) -> Result<(), OutOfHostMemory> {
    ANY.store(true, Ordering::Relaxed);
    let mut names = NAMES.lock();
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
    if ANY.load(Ordering::Relaxed) { NAMES.lock().get(&(ty, handle)).cloned() } else { None }
}

/// The name of an object in quotes, after a space; empty if it has none.
pub(crate) fn suffix<H: Handle>(handle: H) -> String {
    get(H::TYPE, handle.as_raw()).map(|name| format!(" `{name}`")).unwrap_or_default()
}

/// Removes the name of an object that is destroyed.
pub(crate) fn forget(ty: ObjectType, handle: u64) {
    NAMES.lock().remove(&(ty, handle));
}
