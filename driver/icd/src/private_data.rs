//! Private data: numbers that programs and layers attach to objects.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use ash::vk;
use spelter_driver::host_memory;
use spelter_locks::{Mutex, ProcessId};

use crate::c::entry::entry_points;
use crate::c::{In, Out};
use crate::device::Device;
use crate::error::Error;
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreatePrivateDataSlot(
        device: vk::Device, p_create_info: *const vk::PrivateDataSlotCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_private_data_slot: *mut vk::PrivateDataSlot,
    ) -> vk::Result => create;
    PFN_vkDestroyPrivateDataSlot(
        device: vk::Device, private_data_slot: vk::PrivateDataSlot, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkSetPrivateData(
        device: vk::Device, object_type: vk::ObjectType, object_handle: u64, private_data_slot: vk::PrivateDataSlot,
        data: u64,
    ) -> vk::Result => set;
    PFN_vkGetPrivateData(
        device: vk::Device, object_type: vk::ObjectType, object_handle: u64, private_data_slot: vk::PrivateDataSlot,
        p_data: *mut u64,
    ) => get;
}

/// `VkPrivateDataSlot`: a map of objects to numbers.
pub(crate) struct PrivateDataSlot {
    /// Where the threads are that may hold the lock.
    process: ProcessId,
    numbers: Mutex<HashMap<(vk::ObjectType, u64), u64>>,
}

object!(PrivateDataSlot: vk::PrivateDataSlot);

/// Numbers in all slots. If there are none, removing an object does not search the slots.
static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Drop for PrivateDataSlot {
    fn drop(&mut self) {
        COUNT.fetch_sub(self.numbers.get_mut().len(), Ordering::Relaxed);
    }
}

/// Removes the numbers of a destroyed object, whose handle may be reused.
pub(crate) fn forget(ty: vk::ObjectType, handle: u64) {
    // Relaxed: destruction is externally synchronized, so a number of the object was set before.
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    PrivateDataSlot::table().each(|slot| {
        // The parent's device is lost in a forked process.
        if slot.process.is_current() && slot.numbers.lock().remove(&(ty, handle)).is_some() {
            COUNT.fetch_sub(1, Ordering::Relaxed);
        }
    });
}

fn create(
    _: Ref<Device>,
    _: In<'_, vk::PrivateDataSlotCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::PrivateDataSlot>,
) -> Result<(), Error> {
    out.put(PrivateDataSlot { process: ProcessId::current(), numbers: Mutex::default() }.insert()?);
    Ok(())
}

fn destroy(_: Ref<Device>, slot: vk::PrivateDataSlot, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    PrivateDataSlot::remove(slot, "vkDestroyPrivateDataSlot-privateDataSlot").map(|_| ())
}

fn set(_: Ref<Device>, ty: vk::ObjectType, handle: u64, slot: Ref<PrivateDataSlot>, data: u64) -> Result<(), Error> {
    let mut numbers = slot.numbers.lock();
    host_memory::reserve_map(&mut numbers, 1)?;
    if numbers.insert((ty, handle), data).is_none() {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

fn get(
    _: Ref<Device>,
    ty: vk::ObjectType,
    handle: u64,
    slot: Ref<PrivateDataSlot>,
    mut out: Out<'_, u64>,
) -> Result<(), Error> {
    out.put(slot.numbers.lock().get(&(ty, handle)).copied().unwrap_or(0));
    Ok(())
}
