//! The heap of device memory, and its allocations.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use spelter_locks::{Mutex, ProcessId};
use spelter_shaders::free_ranges::FreeRanges;
use spelter_shaders::guest::GuestSlice;

use super::addresses::Addresses;
use super::host_view::HostView;
use super::reserve::Reservation;
use crate::error::DeviceError;

/// Allocations begin and end on multiples of this: whole pages on every system, and at least every alignment that
/// Vulkan requests.
const GRANULE: usize = 64 << 10;

/// Minimum size of a heap in bytes.
const MIN_HEAP: usize = 16 << 20;

/// Memory that allocations are taken from.
#[derive(Debug)]
pub(crate) struct Heap {
    reservation: Reservation,
    /// The host's mapping of the memory, if it has one of its own.
    view: Option<Arc<HostView>>,
    /// In granules. A leaf lock: nothing else is locked while it is held.
    free: Mutex<FreeRanges>,
    /// The address ranges that kernels may access.
    addresses: Arc<Addresses>,
    /// The process in which the lock's owners exist.
    process: ProcessId,
}

impl Heap {
    /// A heap of `bytes`, rounded up to 64 KiB. If the system refuses that many addresses, the heap is smaller
    /// ([`Heap::size`]). [`DeviceError::OutOfMemory`] if even 16 MiB are refused.
    pub(crate) fn new(bytes: u64) -> Result<Arc<Self>, DeviceError> {
        let reservation = reserve(bytes).ok_or(DeviceError::OutOfMemory)?;
        Ok(Self::of(reservation, None))
    }

    /// A heap of `bytes`, rounded up to 64 KiB, with a mapping for the host whose pages can be closed.
    pub(crate) fn with_host_view(bytes: u64) -> io::Result<Arc<Self>> {
        let (reservation, view) = Reservation::with_host_view(rounded(bytes))?;
        Ok(Self::of(reservation, Some(view)))
    }

    fn of(reservation: Reservation, view: Option<Arc<HostView>>) -> Arc<Self> {
        let free = Mutex::new(FreeRanges::of(0..reservation.len() / GRANULE));
        let addresses = Arc::new(Addresses::new(reservation.slice()));
        Arc::new(Self { reservation, view, free, addresses, process: ProcessId::current() })
    }

    /// The host's mapping, with the address of the heap for commands.
    pub(crate) fn host_view(&self) -> Option<(&Arc<HostView>, u64)> {
        self.view.as_ref().map(|view| (view, self.reservation.slice().address() as u64))
    }

    /// The address ranges that kernels may access; the slices are valid as long as the heap exists.
    pub(crate) fn addresses(&self) -> &Arc<Addresses> {
        &self.addresses
    }

    /// Its addresses.
    pub(crate) fn range(&self) -> Range<u64> {
        let start = self.reservation.slice().address() as u64;
        start..start + self.size()
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.reservation.len() as u64
    }

    /// `size` bytes, all zero, aligned to 64 KiB; freed when the last handle drops.
    pub(crate) fn allocate(self: &Arc<Self>, size: u64) -> Result<Arc<Allocation>, DeviceError> {
        if size > self.size() {
            return Err(DeviceError::OutOfMemory);
        }
        let granules = (size as usize).div_ceil(GRANULE).max(1);
        let granules = self.free.lock().take(granules).ok_or(DeviceError::OutOfMemory)?;
        let slice = self.reservation.slice().slice((granules.start * GRANULE) as u64, size);
        let piece = HeapRange { heap: Arc::clone(self), granules };
        Ok(Arc::new(Allocation::new(slice, Owner::Heap(piece))))
    }
}

/// A number of bytes as whole granules, at least one.
fn rounded(bytes: u64) -> usize {
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX / 2).min(usize::MAX / 2);
    bytes.max(1).next_multiple_of(GRANULE)
}

/// Reserves `bytes`. If the system has fewer addresses (`RLIMIT_AS`), tries half, a quarter and so on, so that as many
/// remain for the rest of the process.
fn reserve(bytes: u64) -> Option<Reservation> {
    let wanted = rounded(bytes);
    let mut bytes = wanted;
    loop {
        if let Ok(reservation) = Reservation::new(bytes) {
            if bytes == wanted {
                return Some(reservation);
            }
            drop(reservation);
            return Reservation::new((bytes / 2).max(MIN_HEAP).next_multiple_of(GRANULE)).ok();
        }
        bytes = (bytes / 2).next_multiple_of(GRANULE);
        if bytes < MIN_HEAP {
            return None;
        }
    }
}

/// The default size of a heap: three quarters of the machine's memory, or 2 GiB if that is unknown.
pub(crate) fn default_bytes() -> u64 {
    physical_bytes().map_or(2 << 30, |bytes| bytes / 4 * 3)
}

#[cfg(target_os = "linux")]
fn physical_bytes() -> Option<u64> {
    let info = rustix::system::sysinfo();
    let unit = u64::from(info.mem_unit.max(1));
    (info.totalram as u64).checked_mul(unit).filter(|&bytes| bytes > 0)
}

#[cfg(not(target_os = "linux"))]
fn physical_bytes() -> Option<u64> {
    None
}

/// Memory of a device. The slice is valid as long as a handle exists.
#[derive(Debug)]
pub(crate) struct Allocation {
    slice: GuestSlice,
    /// Frees the memory on drop.
    owner: Owner,
}

/// The owner of an allocation's bytes.
#[derive(Debug)]
pub(crate) enum Owner {
    /// The heap.
    Heap(HeapRange),
    /// The program: nothing is freed.
    Host,
}

/// An allocated range of a heap.
#[derive(Debug)]
pub(crate) struct HeapRange {
    heap: Arc<Heap>,
    granules: Range<usize>,
}

impl Allocation {
    pub(crate) fn new(slice: GuestSlice, owner: Owner) -> Self {
        Self { slice, owner }
    }

    /// The bytes of the allocation.
    pub(crate) fn slice(&self) -> GuestSlice {
        self.slice
    }

    /// The first byte, for the host.
    pub(crate) fn host_pointer(&self) -> *mut u8 {
        match &self.owner {
            Owner::Heap(HeapRange { heap, granules }) => match &heap.view {
                Some(view) => view.pointer(granules.start * GRANULE),
                None => self.slice.pointer(),
            },
            Owner::Host => self.slice.pointer(),
        }
    }

    /// Its range in the heap, in granules.
    #[cfg(test)]
    fn place(&self) -> Range<usize> {
        match &self.owner {
            Owner::Heap(piece) => piece.granules.clone(),
            Owner::Host => 0..0,
        }
    }
}

impl Drop for HeapRange {
    fn drop(&mut self) {
        // In a forked process, a thread that does not exist may hold the lock.
        if !self.heap.process.is_current() {
            return;
        }
        // The pages first, then the range: the next allocation must find zeros.
        let (start, len) = (self.granules.start * GRANULE, self.granules.len() * GRANULE);
        self.heap.reservation.decommit(start, len);
        self.heap.view.iter().for_each(|view| view.open(start as u64..(start + len) as u64));
        self.heap.free.lock().give(self.granules.clone());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A step of a random program: allocate a number of bytes, or drop one of the live allocations.
    #[derive(Clone, Debug)]
    enum Step {
        Allocate(u64),
        Free(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..400_000u64).prop_map(Step::Allocate),
            2 => any::<usize>().prop_map(Step::Free),
        ];
        proptest::collection::vec(step, 1..60)
    }

    fn check_disjoint(live: &[Arc<Allocation>]) {
        let mut ranges: Vec<_> = live.iter().map(|a| a.place()).collect();
        ranges.sort_unstable_by_key(|range| range.start);
        for pair in ranges.windows(2) {
            assert!(pair[0].end <= pair[1].start, "{pair:?} overlap");
        }
    }

    fn is_zero(slice: GuestSlice) -> bool {
        (0..slice.len().div_ceil(4)).all(|i| slice.load_u32(i * 4) == 0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn allocations_are_disjoint_zero_and_merge_again(steps in steps()) {
            let heap = Heap::new(2 << 20).unwrap();
            let mut live: Vec<Arc<Allocation>> = Vec::new();
            for step in steps {
                match step {
                    Step::Allocate(size) => if let Ok(allocation) = heap.allocate(size) {
                        let slice = allocation.slice();
                        prop_assert_eq!(slice.len(), size);
                        prop_assert!(size == 0 || slice.address() % GRANULE == 0);
                        prop_assert!(is_zero(slice));
                        slice.fill(0, size, 0xdead_beef);
                        live.push(allocation);
                    },
                    Step::Free(which) => if !live.is_empty() {
                        live.swap_remove(which % live.len());
                    },
                }
                check_disjoint(&live);
                let free = heap.free.lock().total();
                let used: usize = live.iter().map(|a| a.place().len()).sum();
                prop_assert_eq!(free + used, 32);
            }
            live.clear();
            prop_assert_eq!(&*heap.free.lock(), &FreeRanges::of(0..32));
        }
    }

    #[test]
    fn a_full_heap_says_so_and_recovers() {
        let heap = Heap::new(1 << 20).unwrap();
        let all = heap.allocate(1 << 20).unwrap();
        assert!(matches!(heap.allocate(1), Err(DeviceError::OutOfMemory)));
        assert!(matches!(heap.allocate(u64::MAX), Err(DeviceError::OutOfMemory)));
        drop(all);
        assert!(heap.allocate(1 << 20).is_ok());
    }

    #[test]
    fn an_absurd_size_becomes_a_smaller_heap_or_an_error() {
        if let Ok(heap) = Heap::new(u64::MAX) {
            assert!(heap.size() >= MIN_HEAP as u64);
            assert!(heap.allocate(4096).is_ok());
        }
    }

    #[test]
    fn the_default_size_is_sensible() {
        assert!(default_bytes() >= MIN_HEAP as u64);
    }
}
