//! Introspection: counters, cached descriptor sets, the timeline, the profile.

use spelter_driver::check::{CheckStats, Finding};
use spelter_driver::profile::ProfileReport;

use super::Context;
use crate::error::Error;
use crate::events::Event;
use crate::ids::ContextId;
use crate::outcome::Outcomes;
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

    /// What invalidations, host writes, mappings and respecifications through this context did, counted.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (buffer, other) = (context.buffer_from(&[1u32])?, context.sibling());
    /// other.invalidate(&buffer)?;
    /// assert_eq!((context.outcomes().forgotten, other.outcomes().forgotten), (0, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn outcomes(&self) -> Outcomes {
        self.inner.outcomes.read()
    }

    /// Takes what checked mode ([`ContextBuilder::check`](crate::ContextBuilder::check)) found on the device since the
    /// last call, the commands of this context included: submits them and waits for them. Empty if checked mode is off.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().check(Default::default()).build()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
    /// assert_eq!(context.findings()?, []);
    /// # Ok(())
    /// # }
    /// ```
    pub fn findings(&self) -> Result<Vec<Finding>, Error> {
        self.finish()?;
        Ok(self.device().take_findings())
    }

    /// What checked mode did so far, in numbers; zeros if it is off.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().check(Default::default()).build()?;
    /// assert_eq!(context.check_stats().dispatches, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_stats(&self) -> CheckStats {
        self.device().check_stats()
    }

    /// The number of this context in its device.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// assert!(context.id() == context.clone().id() && context.id() != context.sibling().id());
    /// # Ok(())
    /// # }
    /// ```
    pub fn id(&self) -> ContextId {
        ContextId(self.inner.clock.id())
    }

    /// Switches the log of this context on or off ([`Context::events`]); it is off at first.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// context.fill(&context.buffer_zeroed(4)?, 1)?;
    /// context.flush()?;
    /// assert!(context.events().is_empty()); // it was off
    /// # Ok(())
    /// # }
    /// ```
    pub fn record_events(&self, on: bool) {
        self.inner.log.record(on, self.inner.share.journal().count());
    }

    /// Removes and returns what the tracker did for this context since the last call, in order: renames, slots and
    /// sets that were rebound, barriers, staged copies, waits. Empty unless [`Context::record_events`] switched the log
    /// on. It keeps the latest 65,536 events; [`Event::Lost`] tells how many were dropped.
    ///
    /// A rename by another context is noted there; here its slots are noted when they are rebound, at the next command,
    /// and the descriptors of a set at the next dispatch with it.
    ///
    /// ```
    /// use spelter::Event;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// context.record_events(true);
    /// let buffer = context.buffer_zeroed(8)?;
    /// context.fill(&buffer, 1)?;
    /// context.write(&buffer, 4, &[2u32])?; // staged, and copied after the fill
    /// let events = context.events();
    /// assert!(matches!(events[..], [Event::Staged { bytes: 4, .. }, Event::Barrier { .. }]));
    /// assert!(context.events().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn events(&self) -> Vec<Event> {
        self.inner.log.drain()
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

    /// What the device's workers did: for each program the number of dispatches and workgroups and the time of the
    /// workers, and for each of the latest 65536 dispatches the times at which its first workgroup began and its last
    /// one ended, as GPUs report by timestamps. A program is one shader, entry point and set of specialization
    /// constants; it has the name of [`ProgramBuilder::label`](crate::ProgramBuilder::label), or of its entry point.
    /// Work of batches that are not done is not included. `None` unless the device was made with
    /// [`ContextBuilder::profile`](crate::ContextBuilder::profile).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().profile(true).build()?;
    /// let text = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    ///     @compute @workgroup_size(4)
    ///     fn double(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }";
    /// let (program, data) = (context.program_wgsl(text)?, context.buffer_zeroed(64)?);
    /// for _ in 0..3 {
    ///     context.dispatch(&program).bind(0, 0, &data).groups([4, 1, 1])?;
    /// }
    /// context.finish()?;
    /// let profile = context.profile().expect("the device measures");
    /// let double = &profile.programs[0];
    /// assert_eq!((double.name.as_str(), double.calls, double.workgroups), ("double", 3, 12));
    /// assert!(double.busy >= double.shortest);
    /// let [first, second, _] = &profile.dispatches[..] else { panic!("three dispatches") };
    /// assert!(first.end <= second.start); // the second one reads what the first one writes
    /// # Ok(())
    /// # }
    /// ```
    pub fn profile(&self) -> Option<ProfileReport> {
        self.inner.share.profile().map(|profile| profile.report())
    }

    /// Forgets what [`Context::profile`] reported; its times count from now on.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().profile(true).build()?;
    /// let buffer = context.buffer_zeroed(64)?;
    /// context.fill(&buffer, 1)?;
    /// context.finish()?;
    /// assert_eq!(context.profile().expect("the device measures").programs.len(), 1); // "fill"
    /// context.reset_profile();
    /// assert!(context.profile().expect("the device measures").programs.is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset_profile(&self) {
        if let Some(profile) = self.inner.share.profile() {
            profile.reset();
        }
    }
}
