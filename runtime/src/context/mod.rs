//! The context: a command stream of a device. The files of this folder have its public methods by topic; methods that
//! record are in `dispatch.rs` and `transfer/`.

mod builder;
mod create;
mod inner;
mod inspect;
mod invalidate;
mod renaming;
mod resize;
mod sets;
mod slots;

use std::fmt;
use std::sync::Arc;

use spelter_driver::Device;

pub use builder::ContextBuilder;
pub use create::BufferBuilder;
pub(crate) use inner::ContextInner;
pub(crate) use renaming::{Attempt, Renaming};

use crate::error::{Error, rule};
use crate::fence::Fence;
use crate::resource::Resource;
use crate::share::{Member, Share};
use crate::submission::TimelinePoint;

/// A command stream of a device. A handle: clones refer to the same context, and may be used from other threads.
///
/// Results are as if commands ran one after another in the order in which they were recorded; commands that do not
/// depend on each other may overlap. Commands start when a batch of them is full, at [`Context::flush`], or when the
/// host reads a result. Contexts of one device ([`Context::sibling`]) share resources, and the same order holds for the
/// commands of all of them.
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
    inner: Arc<ContextInner>,
}

impl Context {
    fn on(share: &Arc<Share>) -> Self {
        Self { inner: ContextInner::new(share) }
    }

    /// Another context on the same device, with its own slots and command stream: for another thread, say. Both share
    /// buffers and programs. A command of one context sees the effects of all commands that the other one recorded
    /// before, flushed or not.
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

    /// Submits all recorded commands and returns at once. The fence is signalled when they are done.
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
        let point = TimelinePoint { clock: Arc::clone(&self.inner.clock), serial };
        Ok(Fence::new(&self.inner.share, point, &self.inner.log))
    }

    /// Returns when all commands recorded in this context are done; executes them on this thread meanwhile.
    /// [`Error::DeviceLost`] if a kernel took too long.
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
        self.inner.drop_retired(self.inner.lock());
        Ok(())
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

    pub(crate) fn inner(&self) -> &Arc<ContextInner> {
        &self.inner
    }

    /// Checks that the resource was made by a context of this device.
    pub(crate) fn check_device(&self, what: &str, resource: &Resource) -> Result<(), Error> {
        if resource.is_of(&self.inner.share) {
            return Ok(());
        }
        let problem = format!("{what}: {} is of another context's device", resource.described());
        Err(Error::resource(problem, rule::DEVICE))
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Context({}, {:?})", self.inner.clock.id(), self.inner.share.device())
    }
}
