//! Forgetting what resources hold.

use super::Context;
use crate::buffer::Buffer;
use crate::error::Error;
use crate::image::ImagePart;
use crate::replace::{self, Invalidated, KeptReason, Room};
use crate::resource::Resource;

impl Context {
    /// Forgets what a buffer holds: its bytes are not defined any more, and nothing waits for those who use the old
    /// ones. If it is in use it gets new storage behind the same handle, in all slots that it occupies; if no memory
    /// can be had for that, the commands that use the old storage are waited for, and
    /// [`Stats::renames_without_memory`](crate::Stats) tells. The contents of a mapped buffer stay, since the host has
    /// them ([`Stats::invalidations_refused`](crate::Stats)).
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
        self.check_device("invalidate", buffer.resource())?;
        self.invalidate_all(buffer.resource())
    }

    fn invalidate_all(&self, resource: &Resource) -> Result<(), Error> {
        self.invalidate_with(resource, |room| {
            let mut state = self.inner.lock();
            replace::invalidate(&self.inner.share, &mut state, (resource, &mut resource.state()), room)
        })
    }

    /// Tries to invalidate until it is done: waits where there is no memory, and when no lock is held.
    fn invalidate_with(
        &self,
        resource: &Resource,
        mut run: impl FnMut(Room) -> Result<Invalidated, Error>,
    ) -> Result<(), Error> {
        let (mut room, mut waited) = (Room::Wanted, false);
        loop {
            match run(room)? {
                Invalidated::Kept(KeptReason::Room) => {
                    waited |= self.inner.room_for(resource.size())?;
                    room = Room::Made;
                }
                Invalidated::Kept(KeptReason::Memory(object)) => {
                    waited |= self.inner.wait_without_memory(&object)?;
                    room = Room::Never;
                }
                Invalidated::Kept(KeptReason::Mapped) => break,
                Invalidated::Done(garbage) => {
                    drop(garbage); // no lock is held
                    break;
                }
            }
        }
        if waited {
            self.inner.share.memory().counters.stalls_taken.one();
        }
        Ok(())
    }

    /// Forgets what an image, or levels and layers of it, hold. As [`Context::invalidate`]. If a part of an image that
    /// is in use is forgotten and the rest holds data, there are two ways, and nobody waits in either: if the rest is
    /// no larger than what is forgotten the image gets new storage, and the rest is copied over in order; else the
    /// image keeps its storage, the part holds nothing from now on, and what is written there next comes after those
    /// who use it now ([`Stats::invalidations_in_order`](crate::Stats)), since the copy would cost more than it gains.
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
        let junk = if share.memory().poison {
            let (_, bytes) = self.check_level("invalidate", image, part.levels.start, part.layers.start)?;
            self.inner.staging(bytes, &mut false).ok()
        } else {
            None
        };
        self.invalidate_with(resource, |room| {
            let what = (&ranges[..], junk.as_ref());
            self.inner.record(|state| replace::invalidate_part(share, state, (resource, info), what, room))
        })
    }
}
