//! Reflection of the bindings of a program.

use spelter_driver::ImageDeclaration;
use spelter_shaders::front::{Blocks, DataLayout};
use spelter_shaders::ir::BindingKind;

use super::declared::Declared;

/// A binding that a program declares.
///
/// ```
/// use spelter::{BindingKind, DataLayout};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "struct Step { a: f32, b: vec3<f32> }
///      @group(2) @binding(5) var<uniform> step: Step;
///      @group(0) @binding(1) var<storage, read_write> sums: array<f32>;
///      @compute @workgroup_size(1) fn main() { sums[0] = step.a + step.b.z; }",
/// )?;
/// let [sums, step] = program.bindings() else { panic!("two bindings") };
/// assert_eq!((sums.group, sums.binding, sums.kind, sums.read_only), (0, 1, BindingKind::StorageBuffer, false));
/// assert_eq!((step.group, step.kind, step.min_bytes), (2, BindingKind::UniformBuffer, 28));
/// assert_eq!(sums.image, None); // for images: dimensions, numeric type, format
/// assert_eq!((&*sums.name, &*step.name), ("sums", "step"));
/// let Some(DataLayout::Struct { name, members }) = &step.layout else { panic!("a structure") };
/// assert_eq!((&**name, &*members[1].name, members[1].offset), ("Step", "b", 16));
/// let Some(DataLayout::Array { stride, count, .. }) = &sums.layout else { panic!("an array") };
/// assert_eq!((*stride, *count), (4, None));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindingInfo {
    /// The descriptor set; `@group` in WGSL.
    pub group: u32,
    /// The binding in it.
    pub binding: u32,
    /// The name of the variable; empty if the module does not have it. A block without an instance name has that of its
    /// type, as GLSL programs know it. With several variables at the binding, the first.
    pub name: String,
    /// The kind of descriptor.
    pub kind: BindingKind,
    /// The number of elements of an array of descriptors; 1 for a single one.
    pub count: u32,
    /// The size of the fixed part of the block in bytes, without a runtime-sized array at its end. A dispatch needs a
    /// buffer of at least this size.
    pub min_bytes: u32,
    /// The size in bytes of an element of the runtime-sized array at the end of the block; 0 if there is no such array.
    /// A buffer may have no room for an element: the array is then empty.
    pub element_bytes: u32,
    /// Whether the shader declares it as read only, as uniform buffers always are.
    pub read_only: bool,
    /// The view that the shader requires of an image or texel buffer. `None` for buffers and samplers, and if variables
    /// that share the binding require different views.
    pub image: Option<ImageDeclaration>,
    /// The data in a buffer: types, names, offsets and strides in bytes, after specialization. `None` for what is no
    /// buffer. [`Program::block`](crate::Program::block) compares Rust types with it.
    pub layout: Option<DataLayout>,
}

impl BindingInfo {
    pub(super) fn new(declared: &Declared, blocks: &Blocks) -> Self {
        let Declared { group, binding, kind, count, min_bytes, element_bytes, read_only, image } = *declared;
        let place = (group, binding);
        let name = blocks.names.get(&place).cloned().unwrap_or_default();
        let layout = if declared.takes_buffer() { blocks.buffers.get(&place).cloned() } else { None };
        Self { group, binding, name, kind, count, min_bytes, element_bytes, read_only, image, layout }
    }
}
