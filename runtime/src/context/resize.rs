//! Respecification of buffers and images with another size.

use ash::vk;

use super::Context;
use crate::buffer::Buffer;
use crate::error::{Error, rule};
use crate::image::{Image, with_size};
use crate::memory::Template;
use crate::outcome::{Outcome, Waits};
use crate::replace;
use crate::resource::Resource;

impl Context {
    /// Respecifies a buffer with another size, in bytes: it gets a new object with undefined contents, as by
    /// `glBufferData` without data. Handles stay the same, commands that are recorded already use the old object, and
    /// slots of all contexts, descriptor sets and command buffers name the new one. Does not wait, unless replaced
    /// objects take too much memory or there is none. With the size that it has this is [`Context::invalidate`].
    ///
    /// A slot whose range has no end (`&buffer`, `buffer.slice(16..)`) then has the new size. A range with an end stays
    /// as it is; if it does not lie in the buffer any more, dispatches that use the slot are errors. The same holds for
    /// the descriptors of sets, and for the commands of command buffers, whose submission is the error.
    ///
    /// [`Error::Resource`] if the buffer is destroyed, mapped, lent or of another device, [`Error::Misuse`] if the size
    /// is 0 or more than the device allows, [`Error::OutOfMemory`] if there is no memory for the new object beside the
    /// old one. After an error nothing has changed.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1u32, 2])?;
    /// context.bind((0, 0), Bind::storage(&buffer))?;
    /// assert!(context.resize(&buffer, 64)?.action.is_replaced());
    /// assert_eq!((buffer.size(), buffer.generation()), (64, 1));
    /// assert_eq!(context.slots_of(&buffer)[0].ranges, [0..64]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn resize(&self, buffer: &Buffer, bytes: u64) -> Result<Outcome, Error> {
        self.respecify(buffer.resource(), Template::Buffer(bytes))
    }

    /// Respecifies an image with another size in texels: width, height, depth. Format, levels, layers and number of
    /// dimensions stay. See [`Context::resize`]; slots show the same levels and layers of the new object.
    ///
    /// Errors as for buffers, and [`Error::Misuse`] if an image of that size cannot have that many levels.
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 2, 1]).build()?;
    /// context.resize_image(&image, [3, 1, 1])?;
    /// context.clear_image(&image, ClearColor::Uint([7; 4]))?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [7; 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn resize_image(&self, image: &Image, [width, height, depth]: [u32; 3]) -> Result<Outcome, Error> {
        let info = with_size(image.info(), vk::Extent3D { width, height, depth });
        self.respecify(image.resource(), Template::Image(info))
    }

    fn respecify(&self, resource: &Resource, template: Template) -> Result<Outcome, Error> {
        self.check_device("resize", resource)?;
        let (share, inner) = (&self.inner.share, resource.state());
        inner.object(resource, "resize")?;
        if inner.mappings.any() {
            return Err(Error::resource(format!("resize: {} is mapped", resource.described()), rule::RESIZED));
        }
        let busy = inner.is_busy();
        drop(inner);
        if resource.template() == template {
            return self.invalidate_all(resource);
        }
        let mut waits = Waits::empty();
        if busy {
            // The old object becomes pending memory.
            waits.note(Waits::BUDGET, self.inner.room_for(resource, resource.size())?);
        }
        let mut pressed = false;
        let made = share.noting_pressure(&mut pressed, || resource.object_like(&template));
        waits.note(Waits::PRESSURE, pressed);
        let made = made?;
        let mut state = self.inner.lock();
        state.timeline.retire();
        let (action, garbage) = replace::respecify(share, &mut state, resource, template, made)?;
        drop(state);
        drop(garbage); // when no lock is held
        if waits.stalls() {
            share.memory().counters.stalls_taken.one();
        }
        Ok(self.inner.outcome(resource, action, waits))
    }
}
