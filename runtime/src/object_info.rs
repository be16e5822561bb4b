//! Public information about a resource's object: its identity and its unfinished users.

use std::fmt;

use crate::buffer::Buffer;
use crate::error::Error;
use crate::ids::{BatchId, ContextId, ObjectId, ResourceId, Serial};
use crate::image::Image;
use crate::object::ResourceObject;
use crate::outcome::Outcomes;
use crate::resource::Resource;
use crate::valid::Valid;

/// The object of a buffer or image at the time of the call: [`Buffer::object`](crate::Buffer::object),
/// [`Image::object`](crate::Image::object).
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::new()?;
/// let (frame, copy) = (context.buffer_from(&[1u32])?, context.buffer_zeroed(4)?);
/// context.copy(&frame, 0, &copy, 0, 4)?;
/// let (read, written) = (frame.object()?, copy.object()?);
/// assert_eq!((read.readers.len(), read.writers.len()), (1, 0));
/// assert_eq!((written.readers.len(), written.writers.len()), (0, 1));
/// context.finish()?;
/// assert!(!frame.object()?.is_busy());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ObjectInfo {
    /// Its identity.
    pub id: ObjectId,
    /// How often the resource's object had been replaced when it got this one.
    pub generation: u64,
    /// Bytes of its storage.
    pub bytes: u64,
    /// Whether its storage was that of an earlier object, from the pool of spare storage.
    pub recycled: bool,
    /// By context, the last batch that reads it, if that has not retired.
    pub readers: Vec<BatchId>,
    /// By context, the last batch that writes it, if that has not retired.
    pub writers: Vec<BatchId>,
}

impl ObjectInfo {
    pub(crate) fn of(object: &ResourceObject, generation: u64) -> Self {
        let unfinished = object.usage.unfinished();
        let batch = |clock, serial: Serial| BatchId { context: ContextId(clock), serial };
        let mut readers: Vec<_> =
            unfinished.iter().filter_map(|of| of.read.map(|serial| batch(of.clock, serial))).collect();
        let mut writers: Vec<_> =
            unfinished.iter().filter_map(|of| of.write.map(|serial| batch(of.clock, serial))).collect();
        readers.sort_unstable();
        writers.sort_unstable();
        let (id, bytes, recycled) = (object.id(), object.size(), object.is_recycled());
        Self { id, generation, bytes, recycled, readers, writers }
    }

    /// Whether a batch that has not retired uses it: an invalidation would replace it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(4)?;
    /// assert!(!buffer.object()?.is_busy());
    /// context.fill(&buffer, 1)?; // recorded
    /// assert!(buffer.object()?.is_busy());
    /// # Ok(())
    /// # }
    /// ```
    pub fn is_busy(&self) -> bool {
        !(self.readers.is_empty() && self.writers.is_empty())
    }
}

/// For people: "object 7 of 64 bytes, generation 1, read by batch 3 of context 1".
impl fmt::Display for ObjectInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, generation, bytes, recycled, readers, writers } = self;
        write!(f, "{id} of {bytes} bytes{}, generation {generation}", if *recycled { ", recycled" } else { "" })?;
        for (how, batches) in [("read", readers), ("written", writers)] {
            let mut separator = format!(", {how} by ");
            for batch in batches {
                write!(f, "{separator}{batch}")?;
                " and ".clone_into(&mut separator);
            }
        }
        if self.is_busy() { Ok(()) } else { f.write_str(", idle") }
    }
}

impl Resource {
    /// The current object; an error if the resource is destroyed.
    pub(crate) fn object_info(&self) -> Result<ObjectInfo, Error> {
        let state = self.state();
        let object = state.object(self, "object")?;
        Ok(ObjectInfo::of(object, state.generation()))
    }

    /// Whether an unfinished batch uses the object.
    pub(crate) fn is_busy(&self) -> bool {
        self.state().is_busy()
    }

    /// For `Debug` of its handles: what it is, its object, and what holds data.
    pub(crate) fn fmt_handle(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        valid: impl Fn(&Valid) -> String,
    ) -> fmt::Result {
        let state = self.state();
        let object = state.storage().map(|object| ObjectInfo::of(object, state.generation()));
        let valid = valid(state.valid());
        drop(state);
        let what = self.described();
        match object {
            Some(object) => write!(f, "{name}({what}: {object}, valid {valid})"),
            None => write!(f, "{name}({what}: destroyed)"),
        }
    }
}

/// The queries that buffers and images share, with examples that make, use and invalidate one.
macro_rules! queries {
    ($handle:ident, $what:literal, $make:literal, $use:literal, $invalidate:literal) => {
        impl $handle {
            #[doc = concat!("Its identity: the same for all handles of the ", $what, ", whatever its storage.")]
            ///
            /// ```
            /// # fn main() -> Result<(), spelter::Error> {
            /// # let context = spelter::Context::new()?;
            #[doc = concat!("let ", $what, " = ", $make, ";")]
            #[doc = concat!("assert_eq!(", $what, ".id(), ", $what, ".clone().id());")]
            /// # Ok(())
            /// # }
            /// ```
            pub fn id(&self) -> ResourceId {
                self.resource().id()
            }

            #[doc = concat!("The object that is the ", $what, "'s storage now, and the batches that use it.")]
            #[doc = concat!("[`Error::Resource`] if the ", $what, " is destroyed.")]
            ///
            /// ```
            /// # fn main() -> Result<(), spelter::Error> {
            /// # let context = spelter::Context::new()?;
            #[doc = concat!("let ", $what, " = ", $make, ";")]
            #[doc = concat!($use, ";")]
            #[doc = concat!("let object = ", $what, ".object()?;")]
            /// assert_eq!((object.generation, object.recycled), (0, false));
            /// assert_eq!(object.writers[0].to_string(), "batch 1 of context 1");
            /// # Ok(())
            /// # }
            /// ```
            pub fn object(&self) -> Result<ObjectInfo, Error> {
                self.resource().object_info()
            }

            #[doc = concat!("Whether a batch that has not retired uses the ", $what, ": then an invalidation would")]
            /// replace its object. False if it is destroyed.
            ///
            /// ```
            /// # fn main() -> Result<(), spelter::Error> {
            /// # let context = spelter::Context::new()?;
            #[doc = concat!("let ", $what, " = ", $make, ";")]
            #[doc = concat!($use, ";")]
            #[doc = concat!("assert!(", $what, ".is_busy());")]
            /// context.finish()?;
            #[doc = concat!("assert!(!", $what, ".is_busy());")]
            /// # Ok(())
            /// # }
            /// ```
            pub fn is_busy(&self) -> bool {
                self.resource().is_busy()
            }

            #[doc = concat!("What invalidations, host writes, mappings and respecifications of this ", $what, " did,")]
            /// counted.
            ///
            /// ```
            /// # fn main() -> Result<(), spelter::Error> {
            /// # let context = spelter::Context::new()?;
            #[doc = concat!("let ", $what, " = ", $make, ";")]
            #[doc = concat!($invalidate, ";")]
            #[doc = concat!("assert_eq!(", $what, ".outcomes().nothing_valid, 1);")]
            /// # Ok(())
            /// # }
            /// ```
            pub fn outcomes(&self) -> Outcomes {
                self.resource().outcomes.read()
            }
        }
    };
}

queries!(Buffer, "buffer", "context.buffer(4).build()?", "context.fill(&buffer, 1)?", "context.invalidate(&buffer)?");

queries!(
    Image,
    "image",
    "context.image(spelter::vk::Format::R32_UINT, [1, 1, 1]).build()?",
    "context.clear_image(&image, spelter::ClearColor::Uint([1; 4]))?",
    "context.invalidate_image(&image)?"
);

/// What it is, its object, the batches that use it, and the bytes that hold data.
impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resource().fmt_handle(f, "Buffer", |valid| format!("{:?}", valid.iter().collect::<Vec<_>>()))
    }
}

/// What it is, its object, the batches that use it, and the subresources that hold data, as `(level, layer)`.
impl fmt::Debug for Image {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.resource().fmt_handle(f, "Image", |valid| format!("{:?}", self.subresources(valid)))
    }
}
