//! The context: one device, one line of work, and everything that is made of it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytemuck::NoUninit;
use parking_lot::Mutex;
use spelter_driver::{Backend, Device, DeviceOptions};

use crate::batch::Timeline;
use crate::dispatch::Dispatch;
use crate::error::Error;
use crate::object::ResourceObject;
use crate::program::{Program, ProgramBuilder, Source};
use crate::resource::Buffer;

/// A device and the work that was given to it. A handle: clones name the same context, also from other threads.
///
/// Commands run in the order in which they were given, as far as one can tell from the buffers. They start when enough
/// have come together, at [`Context::flush`], or when their results are asked for.
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

struct Inner {
    id: u64,
    device: Device,
    timeline: Mutex<Timeline>,
}

/// How a context is made: see [`Context::builder`].
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ContextBuilder {
    options: DeviceOptions,
}

impl ContextBuilder {
    /// Worker threads; as many as the machine runs at once by default. 0 counts as 1.
    pub fn workers(mut self, workers: usize) -> Self {
        self.options.workers = workers;
        self
    }

    /// How long one dispatch or transfer may run before the context is lost; 60 seconds by default.
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

    /// Starts the workers. [`Error::OutOfMemory`] if the address range for device memory cannot be had.
    pub fn build(self) -> Result<Context, Error> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let device = Device::new(self.options)?;
        let timeline = Mutex::new(Timeline::new(&device));
        let id = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Context { inner: Arc::new(Inner { id, device, timeline }) })
    }
}

impl Context {
    /// A context with default options. Errors as [`ContextBuilder::build`].
    pub fn new() -> Result<Self, Error> {
        Self::builder().build()
    }

    /// A context with options.
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
        ContextBuilder { options: DeviceOptions::default() }
    }

    /// A buffer that holds these values. [`Error::Misuse`] if there are none.
    pub fn buffer_from<T: NoUninit>(&self, values: &[T]) -> Result<Buffer, Error> {
        let bytes: &[u8] = bytemuck::cast_slice(values);
        let object = ResourceObject::new(self.device(), bytes.len() as u64)?;
        object.memory().write(0, bytes)?;
        Ok(Buffer::new(self.inner.id, object))
    }

    /// A buffer of so many bytes, all zero. [`Error::Misuse`] if it is none or too many, [`Error::OutOfMemory`].
    pub fn buffer_zeroed(&self, bytes: u64) -> Result<Buffer, Error> {
        Ok(Buffer::new(self.inner.id, ResourceObject::new(self.device(), bytes)?))
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

    /// Begins a dispatch of a program; [`Dispatch::groups`] or [`Dispatch::invocations`] records it.
    pub fn dispatch<'a>(&'a self, program: &'a Program) -> Dispatch<'a> {
        Dispatch::new(self, program)
    }

    /// Hands all that was recorded to the workers and returns at once.
    pub fn flush(&self) -> Result<(), Error> {
        self.inner.timeline.lock().flush().map(drop)
    }

    /// Returns when all that was recorded is done. [`Error::DeviceLost`] if a kernel took too long.
    pub fn wait(&self) -> Result<(), Error> {
        let last = self.inner.timeline.lock().flush()?;
        self.wait_for(last)
    }

    /// The driver's device: properties, limits, memory.
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// A number that no other context has.
    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    pub(crate) fn timeline(&self) -> &Mutex<Timeline> {
        &self.inner.timeline
    }

    /// Returns when the batch `serial` and all before it are done.
    pub(crate) fn wait_for(&self, serial: u64) -> Result<(), Error> {
        let fences = self.inner.timeline.lock().fences_until(serial)?;
        for fence in fences {
            fence.wait(None)?;
        }
        self.inner.timeline.lock().retire();
        Ok(())
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, {:?})", self.inner.id, self.inner.device)
    }
}
