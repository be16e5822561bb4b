//! Flags of mappings, and the check of their combinations.

use crate::buffer::Buffer;
use crate::error::Error;

bitflags::bitflags! {
    /// The purpose of a mapping, and the synchronization that it may skip.
    ///
    /// ```
    /// use spelter::MapFlags;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let frame = context.buffer(16).zeroed()?;
    /// context.fill(&frame, 1)?; // recorded: the buffer is in use
    /// let map = context.map(&frame, MapFlags::WRITE | MapFlags::DISCARD_WHOLE)?; // new storage: no wait
    /// map.write(0, &[2u32; 4])?;
    /// map.unmap()?;
    /// assert_eq!(context.read::<u32>(&frame)?, [2; 4]);
    /// # Ok(())
    /// # }
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct MapFlags: u32 {
        /// The bytes are read: the mapping waits for commands that write them.
        const READ = 1;
        /// The bytes are written. Without `READ` the mapping does not wait: if the buffer is in use, the bytes are
        /// copied in order when it is unmapped.
        const WRITE = 2;
        /// The old contents of the mapped range become undefined.
        const DISCARD_RANGE = 4;
        /// The old contents of the whole buffer become undefined: it gets new storage if it is in use.
        const DISCARD_WHOLE = 8;
        /// No wait and no ordering: the program guarantees that host and commands do not access the same bytes.
        const UNSYNCHRONIZED = 16;
        /// Commands may use the buffer while it is mapped. It keeps its storage while it is mapped.
        const PERSISTENT = 32;
        /// Writes by host or commands are visible to the other without [`Mapped::flush`]. Only with `PERSISTENT`.
        const COHERENT = 64;
    }
}

/// Checks the combination of flags (OpenGL's rules for `glMapBufferRange`).
pub(super) fn check_flags(buffer: &Buffer, flags: MapFlags) -> Result<(), Error> {
    let (read, write) = (flags.contains(MapFlags::READ), flags.contains(MapFlags::WRITE));
    let discards = flags.intersects(MapFlags::DISCARD_RANGE | MapFlags::DISCARD_WHOLE);
    let rule = if flags.bits() & !MapFlags::all().bits() != 0 {
        "a mapping has only known flags"
    } else if !read && !write {
        "a mapping reads or writes"
    } else if discards && (read || !write) {
        "a mapping that discards contents is for writing only"
    } else if flags.contains(MapFlags::COHERENT) && !flags.contains(MapFlags::PERSISTENT) {
        "a coherent mapping is persistent"
    } else {
        return Ok(());
    };
    Err(Error::resource(format!("map: {} with {flags:?}", buffer.resource().described()), rule))
}
