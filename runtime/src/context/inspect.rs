//! Introspection: counters, cached descriptor sets, the timeline.

use super::Context;
use crate::stats::Stats;

impl Context {
    /// The tracker's counters, for all contexts of the device.
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

    /// The number of descriptor sets that this context caches.
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
    /// [`ContextBuilder::trace`](crate::ContextBuilder::trace).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let mut json = Vec::new();
    /// context.write_trace(&mut json).expect("a vector takes everything");
    /// assert_eq!(json, b"{\"traceEvents\":[]}\n"); // the device was made without a timeline
    /// # Ok(())
    /// # }
    /// ```
    pub fn write_trace(&self, to: &mut dyn std::io::Write) -> std::io::Result<()> {
        match self.inner.share.trace() {
            Some(trace) => trace.write(&self.stats(), to),
            None => to.write_all(b"{\"traceEvents\":[]}\n"),
        }
    }
}
