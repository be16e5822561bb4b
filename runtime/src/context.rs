//! The context: a line of work on a device, and everything that is made of it.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ash::vk;
use bytemuck::NoUninit;
use parking_lot::{Mutex, MutexGuard};
use spelter_driver::{Backend, Device, DeviceOptions, Observer, Printer, Sampler, SamplerInfo};

use crate::batch::{Clock, Moment, Refusal, Timeline};
use crate::bindings::Bindings;
use crate::descriptors::{ProgramStates, SetCache};
use crate::dispatch::Dispatch;
use crate::error::{Error, rule};
use crate::fence::Fence;
use crate::image::{ImageBuilder, ImagePart};
use crate::program::{Program, ProgramBuilder, Source};
use crate::replace::{self, Invalidated, Reason, Room};
use crate::resource::{Buffer, BufferBuilder, Resource};
use crate::serial::{Access, Serial};
use crate::share::Share;
use crate::slot::{Bind, Slot};
use crate::stats::Stats;
use crate::trace::Trace;

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

/// What the handles of a context name.
pub(crate) struct Inner {
    pub(crate) share: Arc<Share>,
    pub(crate) clock: Arc<Clock>,
    /// Locked before any resource.
    state: Mutex<State>,
}

/// The part of a context that changes.
pub(crate) struct State {
    pub(crate) share: Arc<Share>,
    pub(crate) clock: Arc<Clock>,
    pub(crate) timeline: Timeline,
    pub(crate) bindings: Bindings,
    pub(crate) sets: SetCache,
    pub(crate) programs: ProgramStates,
    /// The number of the last event that was taken notice of.
    pub(crate) journal_seen: u64,
}

/// How a context is made: see [`Context::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ContextBuilder {
    options: DeviceOptions,
    poison: bool,
    trace: bool,
}

impl ContextBuilder {
    /// Worker threads; as many as the machine runs at once by default. 0 counts as 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// How long one dispatch or transfer may run before the device is lost; 60 seconds by default.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.options.time_limit = limit;
        self
    }

    /// The most bytes of device memory; three quarters of the machine's by default. Only what is used is taken.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.options.heap_size = bytes;
        self
    }

    /// What runs kernels: by default the fastest back end that the machine has.
    pub fn backend(mut self, backend: Backend) -> Self {
        self.options.backend = backend;
        self
    }

    /// Fills contents that are not defined, of new and of invalidated resources, with junk: a program that relies on them
    /// is found out. Costs time; off by default.
    pub fn poison(mut self, on: bool) -> Self {
        self.poison = on;
        self
    }

    /// Takes what kernels print (`NonSemantic.DebugPrintf`); by default nobody does.
    pub fn printer(mut self, printer: Printer) -> Self {
        self.options.printer = Some(printer);
        self
    }

    /// Keeps a timeline of what contexts, queues and workers do: see [`Context::write_trace`]. Off by default.
    pub fn trace(mut self, on: bool) -> Self {
        self.trace = on;
        self
    }

    /// Starts the device. [`Error::OutOfMemory`] if the address range for its memory cannot be had.
    pub fn build(self) -> Result<Context, Error> {
        let (trace, heap) = (self.trace.then(Trace::new), self.options.heap_size);
        let device = match &trace {
            Some(trace) => Device::with_observer(self.options, Arc::clone(trace) as Arc<dyn Observer>),
            None => Device::new(self.options),
        };
        let device = device.map_err(|error| Error::from(error).for_want_of(|| format!("a heap of {heap} bytes")))?;
        Ok(Context::on(&Share::new(device, self.poison, trace)))
    }
}

impl Context {
    /// A context on a device of its own, with default options. Errors as [`ContextBuilder::build`].
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
        ContextBuilder { options: DeviceOptions::default(), poison: false, trace: false }
    }

    fn on(share: &Arc<Share>) -> Self {
        let (clock, queue) = share.clock();
        let state = State {
            share: Arc::clone(share),
            clock: Arc::clone(&clock),
            timeline: Timeline::new(share, queue, &clock),
            bindings: Bindings::default(),
            sets: SetCache::default(),
            programs: ProgramStates::default(),
            journal_seen: share.journal().count(),
        };
        let id = clock.id();
        let inner = Arc::new(Inner { share: Arc::clone(share), clock, state: Mutex::new(state) });
        share.register(id, &Arc::downgrade(&inner));
        Self { inner }
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
    pub fn buffer_from<T: NoUninit>(&self, values: &[T]) -> Result<Buffer, Error> {
        self.buffer(size_of_val(values) as u64).holding(values)
    }

    /// A buffer of so many bytes, all zero. [`Error::Misuse`] if it is none or too many, [`Error::OutOfMemory`].
    pub fn buffer_zeroed(&self, bytes: u64) -> Result<Buffer, Error> {
        self.buffer(bytes).zeroed()
    }

    /// Begins an image of that format and so many texels: width, height, depth.
    pub fn image(&self, format: vk::Format, size: [u32; 3]) -> ImageBuilder<'_> {
        ImageBuilder::new(self, format, size)
    }

    /// A sampler. [`Error::Misuse`] if it breaks a rule of Vulkan.
    pub fn sampler(&self, info: &SamplerInfo) -> Result<Sampler, Error> {
        Ok(self.device().create_sampler(info)?)
    }

    /// A program from WGSL text with one compute entry point. Errors as [`ProgramBuilder::build`].
    pub fn program_wgsl(&self, text: &str) -> Result<Program, Error> {
        self.program(Source::Wgsl(text)).build()
    }

    /// A program from SPIR-V words with one compute entry point. Errors as [`ProgramBuilder::build`].
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
        let old = state.bindings.put(slot, Some(bound));
        drop(state);
        drop((old, what)); // when no lock is held
        Ok(())
    }

    /// Empties a slot. [`Error::Binding`] if it is outside the device's limits.
    pub fn unbind(&self, slot: impl Into<Slot>) -> Result<(), Error> {
        let slot = slot.into();
        self.check_slot(slot, None)?;
        let mut state = self.inner.lock();
        let id = state.bindings.id(slot);
        let old = if state.bindings.bound(id).is_some() { state.bindings.put(slot, None) } else { None };
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
    pub fn finish(&self) -> Result<(), Error> {
        self.flush()?.wait()?;
        self.inner.let_go(self.inner.lock());
        Ok(())
    }

    /// Another name of [`Context::finish`].
    pub fn wait(&self) -> Result<(), Error> {
        self.finish()
    }

    /// What the tracker did so far, in all contexts of the device.
    pub fn stats(&self) -> Stats {
        self.inner.share.stats()
    }

    /// The slots that are occupied.
    pub fn occupied_slots(&self) -> usize {
        self.inner.lock().bindings.occupied()
    }

    /// The descriptor sets that are kept for states that may come again.
    pub fn cached_sets(&self) -> usize {
        self.inner.lock().sets.len()
    }

    /// Writes the timeline so far as JSON in Chrome's trace format, which Perfetto (<https://ui.perfetto.dev>) and
    /// `chrome://tracing` open: a track for each worker, queue and context. Empty unless the device was made with
    /// [`ContextBuilder::trace`].
    pub fn write_trace(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        match self.inner.share.trace() {
            Some(trace) => trace.write(&self.stats(), to),
            None => to.write_all(b"{\"traceEvents\":[]}\n"),
        }
    }

    /// The driver's device: properties, limits, memory.
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

impl Inner {
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Records commands, after what other contexts must have done before them. `record` may be called several times; only
    /// its last call records.
    pub(crate) fn record<T>(&self, mut record: impl FnMut(&mut State) -> Result<T, Refusal>) -> Result<T, Error> {
        loop {
            let mut state = self.state.lock();
            let garbage = replace::catch_up(&self.share, &mut state);
            let result = record(&mut state);
            drop(state);
            drop(garbage);
            match result {
                Ok(value) => return Ok(value),
                Err(Refusal::Error(error)) => return Err(error),
                Err(Refusal::Behind(moment)) => self.come_after(&moment)?,
                Err(Refusal::Unsubmitted(moment)) => self.share.submit(&moment)?,
                Err(Refusal::Again) => {}
            }
        }
    }

    /// Sees to it that what is submitted from now on runs after a batch of another context.
    fn come_after(&self, moment: &Moment) -> Result<(), Error> {
        self.share.submit(moment)?;
        if moment.clock.line.queue != self.clock.line.queue {
            self.share.memory().counters.context_waits.one();
            self.state.lock().timeline.come_after(moment)?;
        }
        Ok(())
    }

    /// Submits what was recorded; the serial of the last batch.
    pub(crate) fn flush(&self) -> Result<Serial, Error> {
        self.state.lock().timeline.flush()
    }

    /// Lets go of what retired batches own, and of what slots and descriptor sets name that is gone, unless somebody else
    /// is at work here: he does so when he next records or submits.
    pub(crate) fn retire(&self) {
        if let Some(state) = self.state.try_lock() {
            self.let_go(state);
        }
    }

    fn let_go(&self, mut state: MutexGuard<'_, State>) {
        state.timeline.retire();
        let garbage = replace::catch_up(&self.share, &mut state);
        drop(state);
        drop(garbage); // when no lock is held
    }

    /// Waits until so many bytes more may be pending, or until nothing that is pending can be waited for. Oldest objects
    /// first, whichever context's batches use them. No context is locked by the caller.
    pub(crate) fn room_for(&self, bytes: u64) -> Result<Room, Error> {
        let memory = self.share.memory();
        if memory.has_room(bytes) {
            return Ok(Room::Made);
        }
        self.flush()?;
        self.share.retire_all();
        let start = Instant::now();
        let mut waited = false;
        for object in memory.leaving() {
            if memory.has_room(bytes) {
                break;
            }
            let Some(object) = object.upgrade() else { continue };
            let moments = object.usage.in_the_way(Access::Write);
            drop(object); // the batch may be all that keeps it besides
            for moment in &moments {
                waited = true;
                self.share.wait(moment)?;
            }
            self.share.retire_all();
        }
        if waited {
            memory.counters.renames_throttled.one();
            if let Some(trace) = self.share.trace() {
                let args = serde_json::json!({ "bytes": bytes });
                trace.span(self.clock.id(), "wait: memory of replaced objects".to_owned(), start, args);
            }
        }
        Ok(Room::Made)
    }

    /// Submits and waits for everything, and keeps nothing that could be made again.
    pub(crate) fn relieve(&self) -> Result<(), Error> {
        let (serial, counters) = (self.flush()?, &self.share.memory().counters);
        if self.clock.retired() < serial {
            counters.pressure_waits.one();
            let start = Instant::now();
            self.share.wait(&Moment { clock: Arc::clone(&self.clock), serial })?;
            if let Some(trace) = self.share.trace() {
                trace.span(self.clock.id(), "wait: memory is used up".to_owned(), start, serde_json::Value::Null);
            }
        }
        let mut state = self.state.lock();
        state.sets.clear(counters);
        self.let_go(state);
        Ok(())
    }
}

impl State {
    /// Marks a moment on the context's track.
    pub(crate) fn trace_instant(&self, name: impl FnOnce() -> String) {
        if let Some(trace) = self.share.trace() {
            trace.instant(self.clock.id(), name());
        }
    }
}

impl Drop for Inner {
    /// Submits what was recorded, since others may share its results, and waits for it: what batches own is theirs until
    /// they have retired.
    fn drop(&mut self) {
        let serial = self.flush();
        if let Ok(serial) = serial {
            // An error is the loss of the device, which everybody else is told of.
            let _ = self.share.wait(&Moment { clock: Arc::clone(&self.clock), serial });
        }
        self.share.forget(self.clock.id());
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, {:?})", self.inner.clock.id(), self.inner.share.device())
    }
}
