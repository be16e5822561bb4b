//! What mappings are for, and which flags make sense together.

use crate::buffer::Buffer;
use crate::error::Error;

bitflags::bitflags! {
    /// What a mapping is for, and what it may skip.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let frame = context.buffer(16).zeroed()?;
    /// context.fill(&frame, 1)?; // recorded: the buffer is in use
    /// let map = context.map(&frame, MapFlags::WRITE | MapFlags::DISCARD_WHOLE)?; // new storage: nobody waits
    /// map.write(0, &[2u32; 4])?;
    /// map.unmap()?;
    /// assert_eq!(context.read::<u32>(&frame)?, [2; 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MapFlags: u32 {
        /// The bytes are read: waits for what writes them.
        const READ = 1;
        /// The bytes are written. Without `READ` it does not wait: what is in use is written in order when it is
        /// unmapped.
        const WRITE = 2;
        /// What the mapped bytes held is not wanted.
        const DISCARD_RANGE = 4;
        /// What the whole buffer held is not wanted: it gets new storage if it is in use.
        const DISCARD_WHOLE = 8;
        /// No waiting, no ordering: the program knows that commands and host do not meet.
        const UNSYNCHRONIZED = 16;
        /// Commands may use the buffer while it is mapped. It keeps its storage meanwhile.
        const PERSISTENT = 32;
        /// What either side of a persistent mapping writes the other sees without [`Mapped::flush`].
        const COHERENT = 64;
    }
}

/// Flags that make sense together (OpenGL's rules for `glMapBufferRange`).
pub(super) fn check_flags(buffer: &Buffer, flags: MapFlags) -> Result<(), Error> {
    let (read, write) = (flags.contains(MapFlags::READ), flags.contains(MapFlags::WRITE));
    let discards = flags.intersects(MapFlags::DISCARD_RANGE | MapFlags::DISCARD_WHOLE);
    let rule = if flags.bits() & !MapFlags::all().bits() != 0 {
        "a mapping has no flags but those that there are"
    } else if !read && !write {
        "a mapping reads or writes"
    } else if discards && (read || !write) {
        "a mapping that discards writes, and does not read"
    } else if flags.contains(MapFlags::COHERENT) && !flags.contains(MapFlags::PERSISTENT) {
        "a coherent mapping is persistent"
    } else {
        return Ok(());
    };
    Err(Error::resource(format!("map: {} with {flags:?}", buffer.resource().described()), rule))
}
