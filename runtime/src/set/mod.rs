//! Descriptor sets that programs hold: the descriptors of a group, bound together.
//!
//! A set names resources, as a slot does. `inner.rs` has its state, and `names.rs` follows the objects; `place.rs` and
//! `driver_sets.rs` write a driver set when a dispatch needs one; `program_state.rs` is what a context knows of a
//! program whose groups take their descriptors from sets. A set belongs to no context: threads may use it in several
//! at once.

mod builder;
mod driver_sets;
mod groups;
mod inner;
mod names;
mod place;
mod program_state;

pub use builder::{DescriptorSetBuilder, SetBinding};
pub(crate) use driver_sets::Wanted;
pub(crate) use groups::GroupSets;
pub(crate) use inner::SetInner;
pub(crate) use names::Names;
#[cfg(all(test, loom))]
pub(crate) use place::{FillTarget, Place};
pub(crate) use program_state::{Looked, SetStates};

use std::fmt;
use std::sync::Arc;

use crate::bind::Bind;
use crate::error::{Error, rule};
use crate::ids::{ObjectId, ResourceId, SetId};
use crate::program::Declared;
use crate::share::Share;
use crate::slot_state::SlotState;
use inner::{Write, described};

/// The descriptors of a group, bound to a dispatch in one call. A handle: clones refer to the same set, and contexts of
/// one device may use it from several threads.
///
/// A set names resources, not their storage: when a buffer or image of it is invalidated, or gets new contents or
/// another size, the next dispatch uses the new storage. [`Context::descriptor_set`](crate::Context::descriptor_set)
/// makes one for a group of a program; [`Dispatch::set`](crate::Dispatch::set) and
/// [`Context::bind_set`](crate::Context::bind_set) use it. It keeps its resources alive.
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
/// assert_eq!((named.binding, named.resource, named.id), (0, data.id(), None));
/// assert_eq!(named.label.as_deref(), Some("data"));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetObject {
    /// The binding.
    pub binding: u32,
    /// The element, for an array of descriptors; else 0.
    pub element: u32,
    /// The resource.
    pub resource: ResourceId,
    /// Its label.
    pub label: Option<String>,
    /// The resource's object, its storage, as [`ObjectInfo::id`](crate::ObjectInfo). `None` if the resource was
    /// destroyed, or has become too small for what the set names ([`Context::resize`](crate::Context::resize)).
    pub id: Option<ObjectId>,
    /// How often the resource got another object.
    pub generation: u64,
}

impl DescriptorSet {
    fn new(share: &Arc<Share>, label: Option<Box<str>>, layout: Vec<Declared>, updatable: bool) -> Self {
        Self { inner: SetInner::new(share, label, layout, updatable) }
    }

    pub(crate) fn inner(&self) -> &SetInner {
        &self.inner
    }

    /// Its identity: the same for all handles of the set, whatever it names.
    ///
    /// ```
    /// use spelter::{BindingKind, SetBinding};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let layout = [SetBinding::new(0, BindingKind::StorageBuffer)];
    /// let set = context.descriptor_set_of(&layout).updatable().build()?;
    /// assert_eq!(set.id(), set.clone().id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> SetId {
        self.inner.id()
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

    /// Makes a descriptor of an updatable set name something else. Dispatches that a context recorded before use what
    /// it named then. Those of a command buffer use what it names when the command buffer is submitted: the next
    /// submission records the commands again ([`CommandBuffer`](crate::CommandBuffer)).
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
    /// assert_eq!(before[0].id, Some(data.object()?.id));
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// context.invalidate(&data)?; // in use: it gets another object
    /// assert_ne!(set.objects()[0].id, before[0].id);
    /// assert_eq!(set.objects()[0].generation, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn objects(&self) -> Vec<SetObject> {
        let (names, _) = self.inner.look();
        let named = |(binding, element, state): (u32, u32, &SlotState)| {
            let resource = state.resource.as_ref()?;
            let (label, id) = (resource.label().map(str::to_owned), state.object.as_ref().map(|object| object.id()));
            let generation = resource.state().generation();
            Some(SetObject { binding, element, resource: resource.id(), label, id, generation })
        };
        self.inner.descriptors(&names).filter_map(named).collect()
    }
}

impl fmt::Debug for DescriptorSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.inner.fmt(f)
    }
}
