//! Counters of the state tracker: renames, rebinds, waits and avoided waits.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::ids::SlotKind;

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)*) => {
        /// The counters of a device, for all of its contexts together.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)*
        }

        /// Counters of the state tracker since the device was made, for all contexts of the device together.
        ///
        /// ```
        /// # fn main() -> Result<(), spelter::Error> {
        /// let context = spelter::Context::new()?;
        /// let buffer = context.buffer_from(&[1u32, 2, 3])?;
        /// assert_eq!(context.stats().objects_created, 1);
        /// drop(buffer);
        /// assert_eq!(context.stats().objects_alive(), 0);
        /// # Ok(())
        /// # }
        /// ```
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Stats {
            $($(#[doc = $doc])+ pub $name: u64,)*
        }

        impl Counters {
            pub(crate) fn read(&self) -> Stats {
                Stats { $($name: self.$name.get(),)* }
            }
        }

        impl Stats {
            /// All counters with their names, in the documented order.
            ///
            /// ```
            /// # fn main() -> Result<(), spelter::Error> {
            /// # let context = spelter::Context::new()?;
            /// let _buffer = context.buffer_zeroed(4)?;
            /// let made = context.stats().iter().find(|(name, _)| *name == "objects_created");
            /// assert_eq!(made, Some(("objects_created", 1)));
            /// # Ok(())
            /// # }
            /// ```
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }

            /// The differences from `earlier`.
            ///
            /// ```
            /// # fn main() -> Result<(), spelter::Error> {
            /// # let context = spelter::Context::new()?;
            /// let before = context.stats();
            /// let buffer = context.buffer_zeroed(4)?;
            /// context.fill(&buffer, 1)?;
            /// let done = context.stats().since(&before);
            /// assert_eq!((done.objects_created, done.transfers), (1, 1));
            /// # Ok(())
            /// # }
            /// ```
            #[must_use]
            pub fn since(&self, earlier: &Self) -> Self {
                Self { $($name: self.$name.wrapping_sub(earlier.$name),)* }
            }
        }
    };
}

counters! {
    /// Resource objects created: storage for new resources, for renames and for staging.
    objects_created,
    /// Resource objects destroyed.
    objects_destroyed,
    /// Objects created from the storage of an object that had retired.
    objects_recycled,
    /// Invalidations of resources without valid ranges.
    invalidations_empty,
    /// Invalidations of idle resources: the contents were forgotten, the object stayed.
    invalidations_idle,
    /// Invalidations of resources in use that kept their object, so that later writes there are ordered after the
    /// current users: of levels and layers of images of which more texels would have to be copied than are forgotten,
    /// or of resources for which there was no memory and which were in use again after a wait.
    invalidations_in_order,
    /// Resources that got a new object because the old one was in use.
    renames,
    /// Resources that were respecified with another size, and so got a new object.
    resizes,
    /// Invalidations that were ignored, since the host has the resource mapped or it is lent to the driver's API.
    invalidations_refused,
    /// Renames without memory for a new object, so that the host waited for the old one.
    renames_without_memory,
    /// Renames and staged copies that waited for earlier ones to retire, to limit the memory of replaced objects and
    /// staging buffers.
    renames_throttled,
    /// Uniform-buffer slots that were rebound, and such descriptors of sets; so for the other kinds.
    rebinds_uniform,
    /// Storage-buffer slots that were rebound.
    rebinds_storage,
    /// Sampler-view slots (texel buffers and image views) that were rebound.
    rebinds_sampler_view,
    /// Storage-image slots (storage texel buffers and image views) that were rebound.
    rebinds_image,
    /// Views created: of texel buffers and of images.
    views_created,
    /// Descriptor sets allocated and written.
    sets_allocated,
    /// Driver sets of a `DescriptorSet` that were written again in place: no batch used them.
    sets_rewritten,
    /// Descriptor sets found in the cache when state changed.
    sets_reused,
    /// Descriptor sets dropped, since one of their objects was lost or another set took their place, or the cache was
    /// full.
    sets_dropped,
    /// Host writes and mappings that found the object in use and did not wait, because of a rename, a staged copy, or a
    /// range without defined data.
    stalls_avoided,
    /// Host writes, mappings and invalidations that waited: for the object, for memory of replaced objects, or for
    /// memory for staging. Each is counted once, and not in `stalls_avoided`.
    stalls_taken,
    /// Host waits for results that it reads.
    read_waits,
    /// Host waits for a batch that have begun, for whatever reason.
    waits_begun,
    /// Host waits for a batch that have ended.
    waits_ended,
    /// Semaphore waits of a queue for a batch of a context on another queue. The host does not wait.
    context_waits,
    /// Dispatches recorded.
    dispatches,
    /// Copies, fills and clears recorded.
    transfers,
    /// Barriers inserted.
    barriers,
    /// Dispatches submitted: those of batches once, those of a command buffer as often as a submission executes it.
    dispatches_submitted,
    /// Copies, fills and clears submitted, counted in the same way.
    transfers_submitted,
    /// Barriers submitted, counted in the same way.
    barriers_submitted,
    /// Bytes that the host wrote in place.
    bytes_written,
    /// Bytes that the host wrote to a staging buffer, to be copied in order.
    bytes_staged,
    /// Bytes that the host read.
    bytes_read,
    /// Command buffers recorded.
    command_buffers_recorded,
    /// Submissions of command buffers; a nested one belongs to the submission that executes it.
    command_buffers_submitted,
    /// Commands of command buffers that a submission recorded again: a resource of theirs, or of commands near them,
    /// had another object than before.
    commands_rerecorded,
    /// Commands of command buffers that a submission ran as they had been recorded. A nested command buffer counts
    /// once, however often it is executed.
    commands_reused,
    /// Batches submitted.
    batches_submitted,
    /// Batches that had retired and were recycled for later ones.
    batches_recycled,
    /// Host waits because too many batches were in flight.
    batches_throttled,
    /// Batches submitted early to free memory.
    pressure_flushes,
    /// Waits for a context's batches because memory was exhausted.
    pressure_waits,
}

impl Stats {
    /// Resource objects that exist now.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// assert_eq!(context.stats().objects_alive(), 1);
    /// drop(buffer);
    /// assert_eq!(context.stats().objects_alive(), 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn objects_alive(&self) -> u64 {
        self.objects_created.wrapping_sub(self.objects_destroyed)
    }

    /// Host waits for batches that are in progress now.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let _hold = spelter::testing::hold(&context)?;
    /// context.fill(&context.buffer_zeroed(4)?, 1)?;
    /// context.finish()?;
    /// let stats = context.stats();
    /// assert_eq!((stats.waits_begun, stats.waits_in_progress()), (1, 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn waits_in_progress(&self) -> u64 {
        self.waits_begun.wrapping_sub(self.waits_ended)
    }

    /// Rebinds of all kinds.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (buffer, copy) = (context.buffer_zeroed(64)?, context.buffer_zeroed(64)?);
    /// context.bind((0, 0), spelter::Bind::uniform(&buffer))?;
    /// context.bind((0, 1), spelter::Bind::storage(&buffer))?;
    /// context.copy(&buffer, 0, &copy, 0, 64)?;
    /// context.invalidate(&buffer)?; // in use: both slots get the new storage
    /// assert_eq!(context.stats().rebinds(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn rebinds(&self) -> u64 {
        self.rebinds_uniform + self.rebinds_storage + self.rebinds_sampler_view + self.rebinds_image
    }
}

impl fmt::Display for Stats {
    /// One counter per line, without those that are 0.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.iter().filter(|(_, count)| *count > 0).try_for_each(|(name, count)| writeln!(f, "{name:24} {count}"))
    }
}

impl Counters {
    /// Counts a slot, or a descriptor of a set, that names another object.
    pub(crate) fn rebound(&self, kind: SlotKind) {
        match kind {
            SlotKind::UniformBuffer => self.rebinds_uniform.one(),
            SlotKind::StorageBuffer => self.rebinds_storage.one(),
            SlotKind::SamplerView => self.rebinds_sampler_view.one(),
            SlotKind::StorageImage => self.rebinds_image.one(),
            SlotKind::Sampler => {}
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn add(&self, count: u64) {
        // Relaxed: a statistic that orders nothing.
        self.0.fetch_add(count, Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
