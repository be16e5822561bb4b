//! Descriptor sets that programs hold: the descriptors of a group, bound together.
//!
//! A set names resources, as a slot does. `names.rs` follows their objects; `place.rs` and `driver_sets.rs` write a
//! driver set when a dispatch needs one; `program_state.rs` is what a context knows of a program whose groups take
//! their descriptors from sets. A set belongs to no context: threads may use it in several at once.

mod builder;
mod driver_sets;
mod groups;
mod names;
mod place;
mod program_state;

pub use builder::{DescriptorSetBuilder, SetBinding};
pub(crate) use driver_sets::Wanted;
pub(crate) use groups::GroupSets;
pub(crate) use names::Names;
#[cfg(all(test, loom))]
pub(crate) use place::{Place, Target};
pub(crate) use program_state::{Looked, SetStates};

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use crate::batch::{Clock, Refusal};
use crate::bind::Bind;
use crate::error::{Error, rule};
use crate::ids::{Serial, Slot};
use crate::program::{BindingInfo, Program, SetLayout};
use crate::share::{Holder, Share};
use crate::slot_state::SlotState;
use driver_sets::DriverSets;
use names::{Replaced, Tracked};

/// The descriptors of a group, bound to a dispatch in one call. A handle: clones refer to the same set, and contexts of
/// one device may use it from several threads.
///
/// A set names resources, not their storage: when a buffer or image of it is invalidated, or gets new contents, the
/// next dispatch uses the new storage. [`Context::descriptor_set`](crate::Context::descriptor_set) makes one for a
/// group of a program; [`Dispatch::set`](crate::Dispatch::set) and [`Context::bind_set`](crate::Context::bind_set) use
/// it. It keeps its resources alive.
///
/// ```
/// use spelter::Bind;
///
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "@group(0) @binding(0) var<uniform> step: u32;
///      @group(0) @binding(1) var<storage, read_write> sum: u32;
///      @compute @workgroup_size(1) fn main() { sum += step; }",
/// )?;
/// let (step, sum) = (context.buffer_from(&[5u32])?, context.buffer_zeroed(4)?);
/// let set = context.descriptor_set(&program, 0).bind(0, &step).bind(1, &sum).label("frame").build()?;
/// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
/// context.upload(&step, &[7u32])?; // in use: new storage, and the set names it
/// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
/// assert_eq!(context.read::<u32>(&sum)?, [12]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct DescriptorSet {
    inner: Arc<SetInner>,
}

/// What a descriptor of a set names now: see [`DescriptorSet::objects`].
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// # let program = context.program_wgsl(
/// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
/// #      @compute @workgroup_size(4)
/// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
/// # )?;
/// let data = context.buffer(16).label("data").zeroed()?;
/// let set = context.descriptor_set(&program, 0).bind(0, &data).build()?;
/// data.destroy();
/// let named = &set.objects()[0];
/// assert_eq!((named.binding, named.label.as_deref(), named.id), (0, Some("data"), None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetObject {
    /// The binding.
    pub binding: u32,
    /// The element, for an array of descriptors; else 0.
    pub element: u32,
    /// The label of the resource.
    pub label: Option<String>,
    /// The number of the resource's object, its storage; unique on the device. `None` if the resource was destroyed.
    pub id: Option<u64>,
    /// How often the resource got another object.
    pub generation: u64,
}

/// The shared part of a set's handles.
pub(crate) struct SetInner {
    /// Unique.
    id: u64,
    share: Arc<Share>,
    label: Option<Box<str>>,
    /// By binding, each with the place of its element 0.
    layout: Vec<(BindingInfo, u32)>,
    updatable: bool,
    /// [`Names::now`], for contexts that do not lock the set.
    now: AtomicU64,
    /// Locked after a context's state, before any resource; a thread never locks two sets.
    state: Mutex<SetState>,
}

#[derive(Debug)]
struct SetState {
    tracked: Tracked,
    driver: DriverSets,
}

/// A descriptor to be written: binding, element, contents.
type Write = (u32, u32, Bind);

impl DescriptorSet {
    fn new(share: &Arc<Share>, label: Option<Box<str>>, layout: Vec<BindingInfo>, updatable: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let mut count = 0;
        let first = |info: BindingInfo| {
            let first = count;
            count += info.count;
            (info, first)
        };
        let layout = layout.into_iter().map(first).collect();
        let tracked = Tracked::new(count as usize, share.journal().count());
        let state = Mutex::new(SetState { tracked, driver: DriverSets::default() });
        // Relaxed: numbers only have to differ.
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        let inner = Arc::new(SetInner {
            id,
            share: Arc::clone(share),
            label,
            layout,
            updatable,
            now: AtomicU64::new(0),
            state,
        });
        let holder: Weak<SetInner> = Arc::downgrade(&inner);
        share.register_set(id, holder);
        Self { inner }
    }

    pub(crate) fn inner(&self) -> &SetInner {
        &self.inner
    }

    /// The label of the set, for messages.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_zeroed(16)?;
    /// let set = context.descriptor_set(&program, 0).bind(0, &data).label("frame").build()?;
    /// assert_eq!(set.label(), Some("frame"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(&self) -> Option<&str> {
        self.inner.label.as_deref()
    }

    /// Whether [`DescriptorSet::write`] is allowed: [`DescriptorSetBuilder::updatable`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// use spelter::{BindingKind, SetBinding};
    ///
    /// let layout = [SetBinding::new(0, BindingKind::StorageBuffer)];
    /// let set = context.descriptor_set_of(&layout).updatable().build()?;
    /// assert!(set.is_updatable());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_updatable(&self) -> bool {
        self.inner.updatable
    }

    /// Makes a descriptor of an updatable set name something else. Dispatches that were recorded before use what it
    /// named then.
    ///
    /// [`Error::Set`] if the set is not updatable, has no such binding, or takes another kind there; if the range is
    /// outside the buffer or not aligned; or if the resource is destroyed or of another device. The set is then as it
    /// was.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let (a, b) = (context.buffer_from(&[1u32; 4])?, context.buffer_from(&[3u32; 4])?);
    /// let set = context.descriptor_set(&program, 0).bind(0, &a).updatable().build()?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// set.write(0, Bind::storage(&b))?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// assert_eq!((context.read::<u32>(&a)?, context.read::<u32>(&b)?), (vec![2; 4], vec![6; 4]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn write(&self, binding: u32, what: Bind) -> Result<(), Error> {
        self.write_array(binding, 0, [what])
    }

    /// As [`DescriptorSet::write`], for consecutive elements of an array of descriptors, from `first` on. All of them
    /// are written, or, after an error, none; no dispatch finds some written and others not.
    ///
    /// ```
    /// use spelter::{Bind, BindingKind, SetBinding};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let layout = [SetBinding::new(0, BindingKind::StorageBuffer).array(3)];
    /// let set = context.descriptor_set_of(&layout).updatable().build()?;
    /// let parts = context.buffer_zeroed(48)?;
    /// set.write_array(0, 1, [Bind::storage(parts.slice(..16)), Bind::storage(parts.slice(16..))])?;
    /// assert_eq!(set.objects().iter().map(|named| named.element).collect::<Vec<_>>(), [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_array(&self, binding: u32, first: u32, what: impl IntoIterator<Item = Bind>) -> Result<(), Error> {
        if !self.inner.updatable {
            return Err(self.inner.broken(binding, "it cannot be written after it was built", rule::UPDATABLE));
        }
        let elements = (0u32..).map(|at| first.saturating_add(at));
        self.inner.put(elements.zip(what).map(|(element, what)| (binding, element, what)).collect())
    }

    /// A number that grows whenever the set names something else: after a write, and after a resource got another
    /// object or was destroyed. While it is the same, [`DescriptorSet::objects`] is.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 4])?;
    /// let set = context.descriptor_set(&program, 0).bind(0, &data).build()?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// let before = set.generation();
    /// context.invalidate(&data)?; // in use: it gets another object
    /// assert_eq!(set.generation(), before + 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn generation(&self) -> u64 {
        self.inner.look().0.generation()
    }

    /// The objects that the set names now, by binding and element. Samplers and descriptors that were never written
    /// have none.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 4])?;
    /// let set = context.descriptor_set(&program, 0).bind(0, &data).build()?;
    /// let before = set.objects();
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// context.invalidate(&data)?; // in use: it gets another object
    /// assert_ne!(set.objects()[0].id, before[0].id);
    /// assert_eq!(set.objects()[0].generation, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn objects(&self) -> Vec<SetObject> {
        let (names, _) = self.inner.look();
        let places = self
            .inner
            .layout
            .iter()
            .flat_map(|(info, first)| (0..info.count).map(move |element| (info.binding, element, first + element)));
        let named = |(binding, element, place): (u32, u32, u32)| {
            let state = names.state(place)?;
            let resource = state.resource.as_ref()?;
            let (label, id) = (resource.label().map(str::to_owned), state.object.as_ref().map(|object| object.id().0));
            Some(SetObject { binding, element, label, id, generation: resource.state().generation() })
        };
        places.filter_map(named).collect()
    }
}

impl SetInner {
    /// Its unique number.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// [`Names::now`] when the set was last written, or looked at after an event.
    pub(crate) fn now(&self) -> u64 {
        // Acquire: pairs with the Release in `publish`; a thread that finds the old number runs before the change.
        self.now.load(Ordering::Acquire)
    }

    /// Publishes a change of the names. The caller holds the lock.
    fn publish(&self, names: &Names) {
        // Release: pairs with the Acquire in `now`.
        self.now.store(names.now(), Ordering::Release);
    }

    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.share, share)
    }

    /// "descriptor set `label`", or "a descriptor set".
    pub(crate) fn described(&self) -> String {
        described(self.label.as_deref())
    }

    /// The same error, with the set before the problem.
    pub(crate) fn named(&self, error: Error) -> Error {
        match error {
            Error::Binding { group, binding, problem } => {
                Error::Binding { group, binding, problem: format!("{}: {problem}", self.described()) }
            }
            error => error,
        }
    }

    /// What the set names now, and states that it does not name any more, to be dropped when no lock is held.
    pub(crate) fn look(&self) -> (Arc<Names>, Replaced) {
        let mut state = self.state.lock();
        let replaced = state.tracked.catch_up(&self.share);
        let names = state.tracked.names();
        self.publish(names);
        (Arc::clone(names), replaced)
    }

    /// The driver set with these names for a group of a program, with its number, for a command of the open batch
    /// `serial`. If another thread has changed the set since it was looked at, the caller looks again.
    pub(crate) fn resolve(
        &self,
        names: &Names,
        wanted: Wanted<'_>,
        batch: (&Arc<Clock>, Serial),
    ) -> Result<(spelter_driver::DescriptorSet, u64), Refusal> {
        let mut state = self.state.lock();
        let SetState { tracked, driver } = &mut *state;
        if tracked.names().last_change() != names.last_change() {
            return Err(Refusal::Again);
        }
        Ok(driver.take(&self.share, names, wanted, batch).map_err(|error| self.named(error))?)
    }

    /// For each descriptor of a program's group, its place in the set. [`Error::Binding`] if the set lacks one.
    pub(crate) fn places(&self, program: &Program, group: u32, layout: &SetLayout) -> Result<Box<[u32]>, Error> {
        let mut places = Vec::new();
        for info in &layout.bindings {
            let slot = Slot::from((group, info.binding));
            let wrong =
                |problem| Err(Error::slot(slot, format!("{}{problem} ({})", self.described(), rule::SET_LAYOUT)));
            let Some((own, first)) = self.layout.iter().find(|(own, _)| own.binding == info.binding) else {
                let list: Vec<_> = self.layout.iter().map(|(own, _)| own.binding.to_string()).collect();
                return wrong(format!(" has no such binding; it has {}", list.join(", ")));
            };
            let takes = || format!("{:?} takes", program.entry());
            if own.kind != info.kind {
                return wrong(format!(" has a {} there, {} a {}", own.takes_name(), takes(), info.takes_name()));
            }
            if own.count < info.count {
                return wrong(format!(" has {} elements there, {} {}", own.count, takes(), info.count));
            }
            places.extend((0..info.count).map(|element| first + element));
        }
        Ok(places.into_boxed_slice())
    }

    /// Writes all of these descriptors, or none.
    fn put(&self, writes: Vec<Write>) -> Result<(), Error> {
        let mut old = Replaced::new();
        let mut state = self.state.lock();
        let tracked = &mut state.tracked;
        old.extend(tracked.catch_up(&self.share));
        // Made under the lock, so that events of their resources from now on are still to come.
        let made = writes.iter().map(|write| self.made(tracked.names(), write)).collect::<Result<Vec<_>, _>>();
        let put = |made: Vec<_>| {
            let made = made.into_iter().flatten();
            made.for_each(|(place, new)| old.extend(tracked.put(place, new)));
        };
        let result = made.map(put);
        self.publish(state.tracked.names());
        drop(state);
        drop((old, writes)); // when no lock is held
        result
    }

    /// The new state of a descriptor, with its place; `None` if it has that state.
    fn made(&self, names: &Names, (binding, element, what): &Write) -> Result<Option<(u32, SlotState)>, Error> {
        let described = what.described();
        let Some((info, first)) = self.layout.iter().find(|(info, _)| info.binding == *binding) else {
            let list: Vec<_> = self.layout.iter().map(|(info, _)| info.binding.to_string()).collect();
            let problem = format!("{described}: its layout has no such binding; it has {}", list.join(", "));
            return Err(self.broken(*binding, problem, rule::SET_DECLARED));
        };
        if *element >= info.count {
            let problem = format!("{described}: it has {} elements, there is no element {element}", info.count);
            return Err(self.broken(*binding, problem, rule::SET_DECLARED));
        }
        let place = first + element;
        let is_current = |state: &SlotState| state.is(what) && (state.resource.is_none() || state.object.is_some());
        if names.state(place).is_some_and(is_current) {
            return Ok(None);
        }
        let slot = Slot { group: 0, binding: *binding, element: *element };
        let state = SlotState::new(&self.share, slot, what).map_err(|error| self.refused(error))?;
        if state.kind != info.slot_kind() || !info.takes(&state) {
            let problem = format!("{described} is bound as a {}, the set takes a {}", state.kind, info.takes_name());
            return Err(self.broken(*binding, problem, rule::SET_KIND));
        }
        info.check(slot, &state).map_err(|error| self.refused(error))?;
        Ok(Some((place, state)))
    }

    /// The first descriptor that was never written, as binding and element.
    fn first_missing(&self) -> Option<(&BindingInfo, u32)> {
        let state = self.state.lock();
        let all = self.layout.iter().flat_map(|(info, first)| (0..info.count).map(move |at| (info, at, first + at)));
        let mut missing = all.filter(|(.., place)| state.tracked.names().state(*place).is_none());
        missing.next().map(|(info, element, _)| (info, element))
    }

    /// A binding of the set breaks a rule.
    fn broken(&self, binding: u32, problem: impl fmt::Display, rule: &str) -> Error {
        Error::Set(format!("{}, binding {binding}: {problem} (rule: {rule})", self.described()))
    }

    /// The error for a slot as one of this set.
    fn refused(&self, error: Error) -> Error {
        match error {
            Error::Binding { binding, problem, .. } => {
                Error::Set(format!("{}, binding {binding}: {problem}", self.described()))
            }
            error => error,
        }
    }
}

fn described(label: Option<&str>) -> String {
    label.map_or_else(|| "a descriptor set".to_owned(), |label| format!("descriptor set `{label}`"))
}

impl Holder for SetInner {
    fn drop_lost(&self) {
        let Some(mut state) = self.state.try_lock() else { return };
        let replaced = state.tracked.catch_up(&self.share);
        let SetState { tracked, driver } = &mut *state;
        driver.drop_older(tracked.names(), &self.share);
        self.publish(tracked.names());
        drop(state);
        drop(replaced); // when no lock is held
    }
}

impl Drop for SetInner {
    fn drop(&mut self) {
        self.share.forget_set(self.id);
    }
}

impl fmt::Debug for SetInner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.described())
    }
}

impl fmt::Debug for DescriptorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
