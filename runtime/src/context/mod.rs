//! The context: a line of work on a device, and everything that is made of it.

mod builder;
mod inner;

use std::fmt;
use std::sync::Arc;

use ash::vk;
use bytemuck::NoUninit;
use spelter_driver::{Device, Sampler, SamplerInfo};

pub use builder::ContextBuilder;
pub(crate) use inner::{Inner, State};

use crate::batch::Moment;
use crate::dispatch::Dispatch;
use crate::error::{Error, rule};
use crate::fence::Fence;
use crate::image::{ImageBuilder, ImagePart};
use crate::program::{Program, ProgramBuilder, Source};
use crate::replace::{self, Invalidated, Reason, Room};
use crate::resource::{Buffer, BufferBuilder, Resource};
use crate::share::Share;
use crate::slot::{Bind, Slot};
use crate::stats::Stats;

/// A line of work on a device. A handle: clones name the same context, also from other threads.
///
/// Commands run in the order in which they were given, as far as one can tell from the resources. They start when enough
/// have come together, at [`Context::flush`], or when their results are asked for. Contexts of one device
/// ([`Context::sibling`]) share resources, and keep that order among each other.
///
/// ```
/// use spelter::Context;
///
/// # fn main() -> Result<(), spelter::Error> {
/// let context = Context::new()?;
/// let program = context.program_wgsl(
///     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
///      @compute @workgroup_size(4)
///      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
/// )?;
/// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
/// context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
/// assert_eq!(context.read::<u32>(&data)?, [2, 4, 6, 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Context {
    inner: Arc<Inner>,
}

impl Context {
    /// A context on a device of its own, with default options. Errors as [`ContextBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// assert!(context.device().properties().workers >= 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// A context on a device of its own, with options.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let limit = std::time::Duration::from_secs(5);
    /// let context = spelter::Context::builder().workers(1).time_limit(limit).build()?;
    /// assert_eq!(context.device().properties().workers, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn builder() -> ContextBuilder {
        ContextBuilder::new()
    }

    fn on(share: &Arc<Share>) -> Self {
        Self { inner: Inner::new(share) }
    }

    /// Another context on the same device, with slots and a line of work of its own: for another thread, say. Both share
    /// buffers and programs; what one records before the other is seen by the other, flushed or not.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let other = context.sibling();
    /// let buffer = context.buffer(8).zeroed()?;
    /// context.fill(&buffer, 7)?;
    /// assert_eq!(other.read::<u32>(&buffer)?, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn sibling(&self) -> Self {
        Self::on(&self.inner.share)
    }

    /// Begins a buffer of so many bytes, with a label and contents.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let ones = context.buffer(16).label("ones").holding(&[1u32; 4])?;
    /// assert_eq!((ones.label(), ones.size()), (Some("ones"), 16));
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer(&self, bytes: u64) -> BufferBuilder<'_> {
        BufferBuilder::new(self, bytes)
    }

    /// A buffer that holds these values. [`Error::Misuse`] if there are none.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1.5f32, 2.5])?;
    /// assert_eq!(context.read::<f32>(&buffer)?, [1.5, 2.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer_from<T: NoUninit>(&self, values: &[T]) -> Result<Buffer, Error> {
        self.buffer(size_of_val(values) as u64).holding(values)
    }

    /// A buffer of so many bytes, all zero. [`Error::Misuse`] if it is none or too many, [`Error::OutOfMemory`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// assert_eq!(context.read::<u64>(&buffer)?, [0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer_zeroed(&self, bytes: u64) -> Result<Buffer, Error> {
        self.buffer(bytes).zeroed()
    }

    /// Begins an image of that format and so many texels: width, height, depth.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R8G8B8A8_UNORM, [2, 1, 1]).label("icon").build()?;
    /// context.write_image(&image, 0, 0, &[[255u8, 0, 0, 255], [0, 0, 255, 255]])?;
    /// assert_eq!(context.read_image::<[u8; 4]>(&image, 0, 0)?[1], [0, 0, 255, 255]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn image(&self, format: vk::Format, size: [u32; 3]) -> ImageBuilder<'_> {
        ImageBuilder::new(self, format, size)
    }

    /// A sampler. [`Error::Misuse`] if it breaks a rule of Vulkan.
    ///
    /// ```
    /// use spelter::{Bind, SamplerInfo, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let info = SamplerInfo { mag_filter: vk::Filter::LINEAR, ..SamplerInfo::default() };
    /// let sampler = context.sampler(&info)?;
    /// context.bind((0, 1), Bind::sampler(&sampler))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sampler(&self, info: &SamplerInfo) -> Result<Sampler, Error> {
        Ok(self.device().create_sampler(info)?)
    }

    /// A program from WGSL text with one compute entry point. Errors as [`ProgramBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl("@compute @workgroup_size(8, 4) fn nothing() {}")?;
    /// assert_eq!((program.entry(), program.workgroup_size()), ("nothing", [8, 4, 1]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn program_wgsl(&self, text: &str) -> Result<Program, Error> {
        self.program(Source::Wgsl(text)).build()
    }

    /// A program from SPIR-V words with one compute entry point. Errors as [`ProgramBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let words = [0x0723_0203, 0x0001_0300]; // the beginning of a module, and no more
    /// assert!(matches!(context.program_spirv(&words), Err(spelter::Error::Shader(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn program_spirv(&self, words: &[u32]) -> Result<Program, Error> {
        self.program(Source::Spirv(words)).build()
    }

    /// A program with a named entry point or with specialization constants.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let text = "@compute @workgroup_size(8) fn one() {} @compute @workgroup_size(9) fn other() {}";
    /// let program = context.program(text).entry("other").build()?;
    /// assert_eq!(program.workgroup_size(), [9, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn program<'a>(&'a self, source: impl Into<Source<'a>>) -> ProgramBuilder<'a> {
        ProgramBuilder::new(self, source.into())
    }

    /// Puts a resource into a slot, where dispatches find it until something else is put there. The slot keeps the
    /// resource alive. Bytes that kernels can write through it count as holding data from now on.
    ///
    /// [`Error::Binding`] if the slot is outside the device's limits, or the range outside the buffer or not aligned, or if
    /// the resource is destroyed or of another device.
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
    /// context.bind((0, 0), Bind::uniform(&step))?;
    /// context.bind((0, 1), Bind::storage(&sum))?;
    /// for _ in 0..3 {
    ///     context.dispatch(&program).groups([1, 1, 1])?;
    /// }
    /// assert_eq!(context.read::<u32>(&sum)?, [15]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind(&self, slot: impl Into<Slot>, what: Bind) -> Result<(), Error> {
        let slot = slot.into();
        self.check_slot(slot, what.resource.as_deref())?;
        let mut state = self.inner.lock();
        let id = state.bindings.id(slot);
        if let (Some(current), Some(resource)) = (state.bindings.bound(id), &what.resource)
            && current.is(&what)
        {
            // As it was; but what kernels can write may have been forgotten since.
            let mut inner = resource.state();
            let ids = [&inner.object, &current.object].map(|object| object.as_ref().map(|object| object.id()));
            // Without an object it is destroyed: that is told below.
            if ids[0].is_some() && ids[0] == ids[1] {
                if what.kind.can_write() {
                    current.ranges.iter().for_each(|range| inner.valid.add(range.clone()));
                }
                return Ok(());
            }
        }
        let bound = crate::dispatch::bound(&self.inner.share, slot, &what)?;
        if let Some(resource) = bound.resource.as_ref().filter(|_| bound.kind.can_write()) {
            let mut inner = resource.state();
            bound.ranges.iter().for_each(|range| inner.valid.add(range.clone()));
        }
        let old = state.bindings.put(id, Some(bound));
        drop(state);
        drop((old, what)); // when no lock is held
        Ok(())
    }

    /// Empties a slot. [`Error::Binding`] if it is outside the device's limits.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.bind((0, 0), spelter::Bind::storage(&buffer))?;
    /// context.unbind((0, 0))?;
    /// assert_eq!(context.occupied_slots(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn unbind(&self, slot: impl Into<Slot>) -> Result<(), Error> {
        let slot = slot.into();
        self.check_slot(slot, None)?;
        let mut state = self.inner.lock();
        let id = state.bindings.id(slot);
        let old = if state.bindings.bound(id).is_some() { state.bindings.put(id, None) } else { None };
        drop(state);
        drop(old); // when no lock is held
        Ok(())
    }

    /// Forgets what a buffer holds: its bytes are not defined any more, and nothing waits for those who use the old ones.
    /// If it is in use it gets new storage behind the same handle, in all slots that it occupies. A hint: where it
    /// cannot be followed (the buffer is mapped, memory is used up) the contents stay.
    ///
    /// [`Error::Resource`] if the buffer is destroyed or of another device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let (frame, copy) = (context.buffer_from(&[1u32])?, context.buffer(4).build()?);
    /// context.copy(&frame, 0, &copy, 0, 4)?; // recorded, not run: the buffer is in use
    /// context.invalidate(&frame)?;
    /// context.write(&frame, 0, &[2u32])?; // does not wait
    /// assert_eq!((frame.generation(), context.read::<u32>(&copy)?), (1, vec![1]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn invalidate(&self, buffer: &Buffer) -> Result<(), Error> {
        self.check_device("invalidate", buffer)?;
        self.invalidate_all(buffer.resource())
    }

    fn invalidate_all(&self, resource: &Resource) -> Result<(), Error> {
        let mut room = Room::Wanted;
        loop {
            let mut state = self.inner.lock();
            let done = replace::invalidate(&self.inner.share, &mut state, (resource, resource.state()), room);
            drop(state);
            match done? {
                Invalidated::Kept(Reason::Room) => room = self.inner.room_for(resource.size())?,
                // What it replaced goes here, when no lock is held.
                _ => return Ok(()),
            }
        }
    }

    /// Forgets what an image, or levels and layers of it, hold. As [`Context::invalidate`]. If a part of an image that is in
    /// use is forgotten, and the rest holds data, the image gets new storage if that rest is the smaller part: it is copied
    /// over. Else nothing is forgotten.
    ///
    /// [`Error::Range`] if there are no such levels or layers, [`Error::Resource`] as for buffers.
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 2, 1]).levels(2).build()?;
    /// context.clear_image(&image, ClearColor::Uint([7; 4]))?;
    /// context.finish()?;
    /// context.invalidate_image(image.level(0))?;
    /// assert_eq!(image.valid_subresources(), [(1, 0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn invalidate_image<'a>(&self, what: impl Into<ImagePart<'a>>) -> Result<(), Error> {
        let ImagePart { image, part } = what.into();
        self.check_part("invalidate", image, &part)?;
        let (share, resource, info) = (&self.inner.share, image.resource(), image.info());
        let ranges = part.ranges(info.levels);
        if ranges[..] == [resource.whole()] {
            return self.invalidate_all(resource);
        }
        let mut room = Room::Wanted;
        loop {
            let done = |state: &mut State| replace::invalidate_part(share, state, (resource, info), &ranges, room);
            match self.inner.record(done)? {
                Invalidated::Kept(Reason::Room) => room = self.inner.room_for(resource.size())?,
                // What it replaced goes here, when no lock is held.
                _ => return Ok(()),
            }
        }
    }

    /// Begins a dispatch of a program; [`Dispatch::groups`] or [`Dispatch::invocations`] records it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [2, 4, 6, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch<'a>(&'a self, program: &'a Program) -> Dispatch<'a> {
        Dispatch::new(self, program)
    }

    /// Hands all that was recorded to the workers and returns at once. The fence tells when it is done.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer(1 << 20).build()?;
    /// context.fill(&buffer, 1)?;
    /// let fence = context.flush()?;
    /// fence.wait()?;
    /// assert!(fence.is_done());
    /// # Ok(())
    /// # }
    /// ```
    pub fn flush(&self) -> Result<Fence, Error> {
        let serial = self.inner.flush()?;
        self.inner.retire();
        Ok(Fence::new(&self.inner.share, Moment { clock: Arc::clone(&self.inner.clock), serial }))
    }

    /// Returns when all that was recorded in this context is done; works on it meanwhile. [`Error::DeviceLost`] if a
    /// kernel took too long.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(1 << 20)?;
    /// context.fill(&buffer, 5)?;
    /// context.finish()?;
    /// assert_eq!(context.stats().batches_submitted, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn finish(&self) -> Result<(), Error> {
        self.flush()?.wait()?;
        self.inner.let_go(self.inner.lock());
        Ok(())
    }

    /// Another name of [`Context::finish`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.fill(&buffer, 5)?;
    /// context.wait()?;
    /// assert!(context.flush()?.is_done());
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait(&self) -> Result<(), Error> {
        self.finish()
    }

    /// What the tracker did so far, in all contexts of the device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (frame, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
    /// let before = context.stats();
    /// context.copy(&frame, 0, &copy, 0, 4)?;
    /// context.upload(&frame, &[2u32])?; // in use: it gets new storage
    /// assert_eq!(context.stats().since(&before).renames, 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stats(&self) -> Stats {
        self.inner.share.stats()
    }

    /// The slots that are occupied.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.bind((0, 0), spelter::Bind::storage(&buffer))?;
    /// context.bind((0, 1), spelter::Bind::uniform(&buffer))?;
    /// assert_eq!(context.occupied_slots(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn occupied_slots(&self) -> usize {
        self.inner.lock().bindings.occupied()
    }

    /// The descriptor sets that are kept for states that may come again.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let [a, b] = [context.buffer_zeroed(16)?, context.buffer_zeroed(16)?];
    /// for buffer in [&a, &b, &a, &b] {
    ///     context.dispatch(&program).bind(0, 0, buffer).groups([1, 1, 1])?;
    /// }
    /// assert_eq!(context.cached_sets(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cached_sets(&self) -> usize {
        self.inner.lock().sets.len()
    }

    /// Writes the timeline so far as JSON in Chrome's trace format, which Perfetto (<https://ui.perfetto.dev>) and
    /// `chrome://tracing` open: a track for each worker, queue and context. Empty unless the device was made with
    /// [`ContextBuilder::trace`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let mut json = Vec::new();
    /// context.write_trace(&mut json).expect("a vector takes everything");
    /// assert_eq!(json, b"{\"traceEvents\":[]}\n"); // nobody asked for a timeline
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_trace(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        match self.inner.share.trace() {
            Some(trace) => trace.write(&self.stats(), to),
            None => to.write_all(b"{\"traceEvents\":[]}\n"),
        }
    }

    /// The driver's device: properties, limits, memory.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let limits = context.device().limits();
    /// assert!(limits.max_bound_descriptor_sets >= 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn device(&self) -> &Device {
        self.inner.share.device()
    }

    pub(crate) fn share(&self) -> &Arc<Share> {
        &self.inner.share
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The resource was made by a context of this device.
    pub(crate) fn check_device(&self, what: &str, buffer: &Buffer) -> Result<(), Error> {
        if buffer.resource().is_of(&self.inner.share) {
            return Ok(());
        }
        let problem = format!("{what}: {} is of another context's device", buffer.resource().described());
        Err(Error::resource(problem, rule::DEVICE))
    }

    /// The slot is one of the device's; `what` is to be put there.
    fn check_slot(&self, slot: Slot, what: Option<&Resource>) -> Result<(), Error> {
        let limits = self.device().limits();
        let (groups, most) = (limits.max_bound_descriptor_sets, limits.max_per_set_descriptors);
        let of = || what.map(|resource| format!("{}: ", resource.described())).unwrap_or_default();
        if slot.group >= groups {
            let problem = format!("{}groups are numbered 0 to {}", of(), groups - 1);
            return Err(Error::slot_rule(slot, problem, rule::SLOT));
        }
        if slot.element >= most {
            let problem = format!("{}there are at most {most} elements", of());
            return Err(Error::slot_rule(Slot { element: 0, ..slot }, problem, rule::SLOT));
        }
        Ok(())
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, {:?})", self.inner.clock.id(), self.inner.share.device())
    }
}
