//! Tables of live objects by handle. A stale handle, or one of another type, is detected and refers to no object.
//!
//! A 64-bit handle is a tag of its type, a generation and an index into the table of its type; each object of a type
//! gets the next generation. A dispatchable handle is the address of a block (see `c::dispatchable`) that holds
//! these 64 bits.

use std::ops::Deref;
use std::sync::Arc;

use ash::vk::{Handle, ObjectType};
use slab::Slab;
use spelter_driver::host_memory::{self, OutOfHostMemory};
use spelter_locks::{PerProcess, ProcessId, RwLock};

use crate::c::callback::Message;
use crate::c::entry::{FromC, Place};
use crate::current_call::{self, Owner};
use crate::error::Error;
use crate::{names, private_data};

/// Types of objects that have handles.
pub(crate) trait Object: Sized + Send + Sync + 'static {
    type Handle: Handle + Copy;

    fn table() -> &'static Table<Self>;

    /// The key of a handle.
    fn key(handle: Self::Handle) -> u64;

    /// A new handle for a key.
    fn handle(key: u64) -> Self::Handle;

    /// Called when the handle becomes invalid.
    fn retire(_handle: Self::Handle) {}

    /// The instance that the object belongs to; 0 if unknown.
    fn owner(&self) -> Owner {
        0
    }

    /// Adds what the object knows to a message about it: its open labels.
    fn describe(&self, message: &mut Message);

    /// Inserts the object and returns its handle. The object is dropped if the host has no memory for its slot.
    fn insert(self) -> Result<Self::Handle, OutOfHostMemory> {
        let key = Self::table().insert(const { tag(Self::Handle::TYPE) }, Arc::new(self))?;
        Ok(Self::handle(key))
    }

    /// Inserts all objects, or none, and returns their handles.
    fn insert_all(objects: impl IntoIterator<Item = Self>) -> Result<Vec<Self::Handle>, OutOfHostMemory> {
        let mut handles = Vec::new();
        for object in objects {
            let inserted = host_memory::reserve(&mut handles, 1).and_then(|()| object.insert());
            match inserted {
                Ok(handle) => handles.push(handle),
                Err(refused) => {
                    Self::take_back(&handles);
                    return Err(refused);
                }
            }
        }
        Ok(handles)
    }

    /// Removes objects whose handles were not returned to the program.
    fn take_back(handles: &[Self::Handle]) {
        for &handle in handles {
            drop(Self::table().remove(Self::key(handle)));
            Self::retire(handle);
        }
    }

    /// The object; `None` if the handle is invalid.
    fn find(handle: Self::Handle) -> Option<Ref<Self>> {
        current_call::add_object(Self::Handle::TYPE, handle.as_raw(), describe::<Self>);
        let found = Self::table().get(Self::key(handle)).map(Ref);
        if let Some(found) = &found {
            current_call::set_owner(found.owner());
        }
        found
    }

    /// The object; an error with the valid-usage ID if the handle is invalid.
    fn get(handle: Self::Handle, at: &str) -> Result<Ref<Self>, Error> {
        Self::find(handle).ok_or_else(|| {
            let kind = Self::Handle::TYPE;
            misuse(at, &no_live(handle.as_raw(), kind))
        })
    }

    /// Removes the object. `Ok(None)` for a null handle.
    fn remove(handle: Self::Handle, at: &str) -> Result<Option<Arc<Self>>, Error> {
        if handle.as_raw() == 0 {
            return Ok(None);
        }
        current_call::add_object(Self::Handle::TYPE, handle.as_raw(), describe::<Self>);
        // The call has noted the object before: a message about a stale handle names it, too.
        let removed = Self::table().remove(Self::key(handle));
        if let Some(removed) = &removed {
            current_call::set_owner(removed.owner());
        }
        Self::retire(handle);
        names::forget(Self::Handle::TYPE, handle.as_raw());
        private_data::forget(Self::Handle::TYPE, handle.as_raw());
        removed.map(Some).ok_or_else(|| {
            let kind = Self::Handle::TYPE;
            let problem = format!("{:#x} is no live {kind:?}: destroyed twice, or never created", handle.as_raw());
            misuse(at, &problem)
        })
    }
}

/// [`Object::describe`], for the live object of a handle.
fn describe<T: Object>(handle: u64, message: &mut Message) {
    if let Some(object) = T::table().get(T::key(T::Handle::from_raw(handle))) {
        object.describe(message);
    }
}

/// The message about a handle without an object.
fn no_live(handle: u64, kind: ObjectType) -> String {
    match handle {
        0 => format!("VK_NULL_HANDLE where a {kind:?} is needed: did its creation fail?"),
        _ => format!("{handle:#x} is no live {kind:?}: it was destroyed, or never created"),
    }
}

/// The error about a handle, at a call or structure and its parameter: `vkDestroyFence-fence`.
fn misuse(at: &str, problem: &str) -> Error {
    let mut parts = at.split('-');
    let (call, parameter) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    Error::misuse(call, format!("{parameter} is wrong: {problem}"), rule(at))
}

/// The valid-usage ID that a handle is valid: implicit by its place, unless the place has a number
/// (`vkFreeDescriptorSets-pDescriptorSets-00310`).
fn rule(at: &str) -> String {
    let has_number = at.ends_with(|last: char| last.is_ascii_digit());
    if has_number { format!("VUID-{at}") } else { format!("VUID-{at}-parameter") }
}

/// The tag of a handle type in 8 bits. Vulkan numbers core types from 1, and those of extensions from 1,000,000,000 in
/// steps of a thousand for each extension.
const fn tag(ty: ObjectType) -> u32 {
    let number = ty.as_raw().cast_unsigned();
    if number < 1 << 7 {
        return number;
    }
    let mut place = 0;
    while place < OF_EXTENSIONS.len() {
        if OF_EXTENSIONS[place].as_raw() == ty.as_raw() {
            return 1 << 7 | place as u32;
        }
        place += 1;
    }
    panic!("a handle type without a tag")
}

/// Handle types that were introduced by extensions.
const OF_EXTENSIONS: [ObjectType; 4] = [
    ObjectType::DEBUG_REPORT_CALLBACK_EXT,
    ObjectType::DEBUG_UTILS_MESSENGER_EXT,
    ObjectType::DESCRIPTOR_UPDATE_TEMPLATE,
    ObjectType::PRIVATE_DATA_SLOT,
];

/// Makes a type the object of a handle type: `object!(Buffer: vk::Buffer)`, or `dispatchable`, with a function that
/// returns the instance that the object belongs to, and optionally one that describes it in messages
/// ([`Object::describe`]).
macro_rules! object {
    ($object:ty: $handle:ty) => {
        object!(
            @impl $object, $handle, |handle| ash::vk::Handle::as_raw(handle), ash::vk::Handle::from_raw, |_| (), |_| 0,
            |_, _| ()
        );
    };
    (dispatchable $object:ty: $handle:ty, $owner:expr) => {
        object!(dispatchable $object: $handle, $owner, |_, _| ());
    };
    (dispatchable $object:ty: $handle:ty, $owner:expr, $describe:expr) => {
        object!(
            @impl $object, $handle, $crate::c::dispatchable::key, $crate::c::dispatchable::make,
            $crate::c::dispatchable::retire, $owner, $describe
        );
    };
    (@impl $object:ty, $handle:ty, $key:expr, $make:expr, $retire:expr, $owner:expr, $describe:expr) => {
        impl $crate::table::Object for $object {
            type Handle = $handle;

            fn table() -> &'static $crate::table::Table<Self> {
                static TABLE: $crate::table::Table<$object> = $crate::table::Table::new();
                &TABLE
            }

            fn key(handle: $handle) -> u64 {
                let key: fn($handle) -> u64 = $key;
                key(handle)
            }

            fn handle(key: u64) -> $handle {
                $make(key)
            }

            fn retire(handle: $handle) {
                let retire: fn($handle) = $retire;
                retire(handle);
            }

            fn owner(&self) -> $crate::current_call::Owner {
                let owner: fn(&$object) -> $crate::current_call::Owner = $owner;
                owner(self)
            }

            fn describe(&self, message: &mut $crate::c::callback::Message) {
                let describe: fn(&$object, &mut $crate::c::callback::Message) = $describe;
                describe(self, message);
            }
        }
    };
}

pub(crate) use object;

/// A live object, which is kept alive for the duration of a call.
pub(crate) struct Ref<T>(Arc<T>);

impl<T> Ref<T> {
    pub(crate) fn share(&self) -> Arc<T> {
        Arc::clone(&self.0)
    }
}

impl<T> Deref for Ref<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Object<Handle = H>, H: Handle + Copy> FromC<H> for Ref<T> {
    unsafe fn from_c(raw: H, place: Place) -> Result<Self, Error> {
        T::find(raw).ok_or_else(|| place.invalid(&format!("is wrong: {}", no_live(raw.as_raw(), H::TYPE))))
    }
}

/// A live object, or `None` for a null handle.
pub(crate) struct Maybe<T>(pub(crate) Option<Ref<T>>);

impl<T: Object<Handle = H>, H: Handle + Copy> FromC<H> for Maybe<T> {
    unsafe fn from_c(raw: H, place: Place) -> Result<Self, Error> {
        if raw.as_raw() == 0 {
            return Ok(Self(None));
        }
        // SAFETY: by the trait's contract.
        unsafe { FromC::from_c(raw, place) }.map(|found| Self(Some(found)))
    }
}

/// The objects of one type. A forked process has those of its parent, unless a thread was creating or destroying one at
/// the fork: then these are unknown to it, and it has only its own.
pub(crate) struct Table<T: 'static> {
    entries: PerProcess<RwLock<Entries<T>>>,
}

/// Each object with the upper half of its key.
struct Entries<T> {
    all: Slab<(u32, Arc<T>)>,
    /// The generation of the latest object.
    generation: u32,
}

/// Entries that are added at once, at least.
const MIN_GROWTH: usize = 256;

/// Generations are modulo this number: a stale handle is detected unless exactly a multiple of this many objects of its
/// type were created since, and the last of them has its place.
const GENERATIONS: u32 = 1 << 24;

impl<T: Send + Sync> Table<T> {
    pub(crate) const fn new() -> Self {
        Self { entries: PerProcess::inheriting(RwLock::default, RwLock::inherit) }
    }

    fn insert(&self, tag: u32, object: Arc<T>) -> Result<u64, OutOfHostMemory> {
        let mut entries = self.entries.get().write();
        entries.grow()?;
        entries.generation = (entries.generation + 1) % GENERATIONS;
        // The upper bits are the tag, so that the key differs from those of other types.
        let upper = entries.generation | (tag << 24);
        let lower = u32::try_from(entries.all.vacant_key() + 1).map_err(|_| OutOfHostMemory { bytes: u64::MAX })?;
        entries.all.insert((upper, object));
        Ok(u64::from(upper) << 32 | u64::from(lower))
    }

    fn get(&self, key: u64) -> Option<Arc<T>> {
        let entries = self.entries.get().read();
        let (upper, object) = entries.all.get(place(key))?;
        (u64::from(*upper) == key >> 32).then(|| Arc::clone(object))
    }

    fn remove(&self, key: u64) -> Option<Arc<T>> {
        let mut entries = self.entries.get().write();
        let (upper, _) = entries.all.get(place(key))?;
        if u64::from(*upper) != key >> 32 {
            return None;
        }
        entries.all.try_remove(place(key)).map(|(_, object)| object)
    }

    /// Calls `visit` with all objects. It must not create or destroy objects of this table.
    pub(crate) fn each(&self, mut visit: impl FnMut(&T)) {
        let entries = self.entries.get().read();
        entries.all.iter().for_each(|(_, (_, object))| visit(object));
    }

    /// The key of the first object that `wanted` finds.
    pub(crate) fn key_of(&self, wanted: impl Fn(&T) -> bool) -> Option<u64> {
        let entries = self.entries.get().read();
        let mut keys = entries.all.iter().filter(|(_, (_, object))| wanted(object));
        keys.next().map(|(place, (upper, _))| u64::from(*upper) << 32 | (place as u64 + 1))
    }
}

impl<T> Default for Entries<T> {
    /// A forked process that knows no objects of its parent gives other keys than the parent did, which it may still
    /// have: unless that made a million objects of the type.
    fn default() -> Self {
        let depth = ProcessId::current().depth() as u32;
        Self { all: Slab::new(), generation: depth.wrapping_mul(1 << 20) % GENERATIONS }
    }
}

impl<T> Clone for Entries<T> {
    fn clone(&self) -> Self {
        Self { all: self.all.clone(), generation: self.generation }
    }
}

/// The place of a key's object: the lower half, less 1.
fn place(key: u64) -> usize {
    (key as u32).wrapping_sub(1) as usize
}

impl<T> Entries<T> {
    /// Makes room for one entry. `Slab` ends the process if the host has no memory for its list, so that is checked
    /// before, and the list does not grow at other times.
    fn grow(&mut self) -> Result<(), OutOfHostMemory> {
        if self.all.len() < self.all.capacity() {
            return Ok(());
        }
        let more = self.all.len().max(MIN_GROWTH);
        // An entry has at most two words more than its value.
        let bytes = (self.all.len() + more) * (size_of::<(u32, Arc<T>)>() + 2 * size_of::<usize>());
        let room = host_memory::Room::of(bytes as u64)?;
        self.all.reserve_exact(more);
        drop(room);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_its_own_tag() {
        let core = 1..=ObjectType::COMMAND_POOL.as_raw();
        let all = core.map(ObjectType::from_raw).chain(OF_EXTENSIONS);
        let mut tags: Vec<_> = all.map(tag).collect();
        assert!(tags.iter().all(|tag| (1..256).contains(tag)), "{tags:?}");
        tags.sort_unstable();
        assert!(tags.windows(2).all(|pair| pair[0] != pair[1]), "{tags:?}");
    }

    #[test]
    fn messages_describe_invalid_handles() {
        let null = no_live(0, ObjectType::DEVICE);
        assert_eq!(null, "VK_NULL_HANDLE where a DEVICE is needed: did its creation fail?");
        assert_eq!(no_live(0x1f, ObjectType::IMAGE), "0x1f is no live IMAGE: it was destroyed, or never created");
    }

    #[test]
    fn a_handle_is_invalid_after_its_object_is_removed() {
        let table = Table::new();
        let first = table.insert(5, Arc::new("a")).unwrap();
        let second = table.insert(5, Arc::new("b")).unwrap();
        assert_eq!(table.get(first).as_deref(), Some(&"a"));
        assert_eq!(table.remove(first).as_deref(), Some(&"a"));
        assert_eq!((table.get(first), table.remove(first)), (None, None));
        let third = table.insert(5, Arc::new("c")).unwrap();
        assert_ne!(first, third);
        assert_eq!(table.get(first), None);
        let mut all = Vec::new();
        table.each(|object| all.push(*object));
        assert_eq!(all, ["c", "b"]);
        assert_eq!(table.get(second ^ (1 << 56)), None, "a handle of another type");
        assert_eq!(table.get(0), None);
        assert_eq!(table.get(u64::MAX), None);
    }

    #[test]
    fn many_objects_keep_their_handles() {
        let table = Table::new();
        let insert = |number: usize| table.insert(5, Arc::new(number)).unwrap();
        let mut keys: Vec<_> = (0..3 * MIN_GROWTH + 1).map(insert).collect();
        for number in (0..keys.len()).step_by(3) {
            assert_eq!(table.remove(keys[number]).as_deref(), Some(&number));
        }
        let capacity = table.entries.get().read().all.capacity();
        for number in (0..keys.len()).step_by(3) {
            assert_eq!(table.get(keys[number]), None);
            keys[number] = insert(number);
        }
        assert_eq!(table.entries.get().read().all.capacity(), capacity, "free places are used first");
        assert!((0..).zip(&keys).all(|(number, &key)| table.get(key).as_deref() == Some(&number)));
        keys.sort_unstable();
        assert!(keys.windows(2).all(|pair| pair[0] != pair[1]));
    }
}
