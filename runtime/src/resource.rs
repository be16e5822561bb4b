//! What a program holds: a resource, which names the object that stores it.

use std::sync::Arc;

use crate::object::ResourceObject;

/// A buffer in device memory. A handle: clones name the same bytes. The memory is freed when the last handle is gone
/// and the last dispatch that uses it has ended.
///
/// One buffer may be bound as storage and as uniform, and be the source or target of transfers.
#[derive(Clone, Debug)]
pub struct Buffer {
    resource: Arc<Resource>,
}

#[derive(Debug)]
struct Resource {
    context: u64,
    object: Arc<ResourceObject>,
}

impl Buffer {
    pub(crate) fn new(context: u64, object: ResourceObject) -> Self {
        Self { resource: Arc::new(Resource { context, object: Arc::new(object) }) }
    }

    /// Size in bytes.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// assert_eq!(context.buffer_from(&[1u32, 2, 3])?.size(), 12);
    /// # Ok(())
    /// # }
    /// ```
    pub fn size(&self) -> u64 {
        self.resource.object.size()
    }

    pub(crate) fn object(&self) -> &Arc<ResourceObject> {
        &self.resource.object
    }

    /// Whether the buffer was made by the context of this number.
    pub(crate) fn is_of(&self, context: u64) -> bool {
        self.resource.context == context
    }
}
