//! Invalidation: the contents of a resource become undefined, without a wait for its users.

use super::{Context, Renaming};
use crate::buffer::Buffer;
use crate::error::Error;
use crate::image::ImagePart;
use crate::outcome::{Outcome, Waits};
use crate::replace;
use crate::resource::Resource;

impl Context {
    /// Makes the contents of a buffer undefined, without a wait for commands that use the old contents. A buffer in use
    /// gets new storage; handle and slots stay the same. If there is no memory for that, the call waits for the
    /// commands that use the old storage ([`Stats::renames_without_memory`](crate::Stats) counts it). A mapped buffer
    /// keeps its contents ([`Stats::invalidations_refused`](crate::Stats)).
    ///
    /// The [`Outcome`] tells which it was. [`Error::Resource`] if the buffer is destroyed or of another device.
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
    pub fn invalidate(&self, buffer: &Buffer) -> Result<Outcome, Error> {
        self.check_device("invalidate", buffer.resource())?;
        self.invalidate_all(buffer.resource())
    }

    pub(super) fn invalidate_all(&self, resource: &Resource) -> Result<Outcome, Error> {
        Renaming::new(&self.inner, resource, true).run(|room, _| {
            let mut state = self.inner.lock();
            replace::invalidate(&self.inner.share, &mut state, (resource, &mut resource.state()), room)
        })
    }

    /// Makes the contents of an image, or of some of its levels and layers, undefined: see [`Context::invalidate`].
    ///
    /// If the image is in use and the rest of it holds data, there are two cases, and neither waits. If the rest is no
    /// larger than the invalidated part, the image gets new storage and the rest is copied over in order. Otherwise
    /// that copy would cost more than it gains: the image keeps its storage, and later writes to the part are ordered
    /// after its current users ([`Stats::invalidations_in_order`](crate::Stats)).
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
    pub fn invalidate_image<'a>(&self, what: impl Into<ImagePart<'a>>) -> Result<Outcome, Error> {
        let ImagePart { image, part } = what.into();
        self.check_part("invalidate", image, &part)?;
        let (share, resource, info) = (&self.inner.share, image.resource(), image.info());
        let ranges = part.ranges(info.levels);
        if ranges[..] == [resource.whole()] {
            return self.invalidate_all(resource);
        }
        let junk = if share.memory().poison {
            let (_, bytes) = self.check_level("invalidate", image, part.levels.start, part.layers.start)?;
            self.inner.staging(resource, bytes, &mut Waits::empty()).ok()
        } else {
            None
        };
        Renaming::new(&self.inner, resource, true).run(|room, waits| {
            let what = (&ranges[..], junk.as_ref());
            self.inner.record_noting(waits, |state| replace::invalidate_part(share, state, resource, what, room))
        })
    }
}
