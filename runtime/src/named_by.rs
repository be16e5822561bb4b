//! Where a resource is named beside the slots of contexts: in descriptor sets and command buffers, which keep it alive.

use crate::ids::{CommandBufferId, SetId};

/// A descriptor set or command buffer that names a buffer or image: see [`Buffer::named_by`](crate::Buffer::named_by).
///
/// ```
/// use spelter::NamedBy;
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// # let program = context.program_wgsl(
/// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
/// #      @compute @workgroup_size(4)
/// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
/// # )?;
/// let data = context.buffer_zeroed(16)?;
/// let set = context.descriptor_set(&program, 0).bind(0, &data).label("frame").build()?;
/// let commands = context.record(|commands| commands.fill(&data, 1))?;
/// let (label, id) = (Some("frame".to_owned()), commands.id());
/// let by_set = NamedBy::Set { set: set.id(), label, binding: 0, element: 0 };
/// let by_commands = NamedBy::Commands { commands: id, label: None, count: 1 };
/// assert_eq!(data.named_by(), [by_set, by_commands]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedBy {
    /// A descriptor of a set.
    Set {
        /// The set.
        set: SetId,
        /// Its label.
        label: Option<String>,
        /// The binding.
        binding: u32,
        /// The element of an array of descriptors; else 0.
        element: u32,
    },
    /// Commands of a command buffer.
    Commands {
        /// The command buffer.
        commands: CommandBufferId,
        /// Its label.
        label: Option<String>,
        /// The number of its commands that name the resource, without those of nested command buffers.
        count: usize,
    },
}
