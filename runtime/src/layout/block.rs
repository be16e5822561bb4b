//! A block that a shader declares, and the check of a Rust type against it.

use std::fmt;

use super::difference::{difference, difference_within, name_of, uniform};
use super::names::{misplaced, misplaced_from};
use super::{BufferType, DataLayout, DataMember, ElementType, Layout};
use crate::error::{Error, rule};

/// The data that a program declares in a buffer ([`Program::block`](crate::Program::block)) or as push constants
/// ([`Program::push_block`](crate::Program::push_block)): its layout, with names, offsets and strides.
///
/// ```
/// #[repr(C)]
/// struct Params {
///     count: u32,
///     direction: [f32; 3],
/// }
/// spelter::layout!(Params { count, direction });
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "struct Params { count: u32, direction: vec3f }
///      @group(0) @binding(0) var<uniform> params: Params;
///      @group(0) @binding(1) var<storage, read_write> to: f32;
///      @compute @workgroup_size(1) fn main() { to = params.direction.x * f32(params.count); }",
/// )?;
/// // `vec3f` begins at a multiple of 16 bytes, `[f32; 3]` does not.
/// assert_eq!(
///     program.block(0, 0)?.check::<Params>().unwrap_err().to_string(),
///     "binding 0.0: the shader has `direction` (vec3<f32>) at byte 16, `Params` has `direction` at byte 4 \
///      (rule: a Rust type for a block has each number where the shader has it)"
/// );
/// # Ok(())
/// # }
/// ```
///
/// [`Context::typed_buffer`](crate::Context::typed_buffer) and [`Dispatch::push_typed`](crate::Dispatch::push_typed)
/// check by themselves. The crate `encase` writes values as WGSL lays them out, whatever Rust's layout is, and needs no
/// check: its buffers are bytes.
///
/// ```ignore
/// #[derive(encase::ShaderType)]
/// struct Params { count: u32, direction: glam::Vec3 }
///
/// let mut bytes = encase::UniformBuffer::new(Vec::<u8>::new());
/// bytes.write(&Params { count: 3, direction: glam::Vec3::X })?;
/// let params = context.buffer_from(bytes.as_ref())?;
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The place, for messages.
    place: BlockPlace,
    layout: DataLayout,
}

/// Where a program has a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockPlace {
    Binding(u32, u32),
    Push,
}

impl BlockPlace {
    pub(crate) fn error(self, problem: String) -> Error {
        match self {
            Self::Binding(group, binding) => Error::binding(group, binding, problem),
            Self::Push => Error::Push(problem),
        }
    }
}

impl Block {
    pub(crate) fn new(place: BlockPlace, layout: DataLayout) -> Self {
        Self { place, layout }
    }

    /// The layout that the shader declares.
    ///
    /// ```
    /// use spelter::DataLayout;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct Step { a: f32, b: vec3f }
    ///      @group(0) @binding(0) var<uniform> step: Step;
    ///      @group(0) @binding(1) var<storage, read_write> to: f32;
    ///      @compute @workgroup_size(1) fn main() { to = step.a + step.b.z; }",
    /// )?;
    /// let block = program.block(0, 0)?;
    /// let DataLayout::Struct { members, .. } = block.layout() else { panic!("a struct") };
    /// assert_eq!((members[1].name.as_str(), members[1].offset), ("b", 16));
    /// # Ok(())
    /// # }
    /// ```
    pub fn layout(&self) -> &DataLayout {
        &self.layout
    }

    /// Checks that `T` has each number of the block where the shader has it, of the same type, and no others but in
    /// fields whose name begins with `_`. Of a block that is a runtime-sized array, `T` is an element; of one that ends
    /// with such an array, the part before it. Signed and unsigned integers are different types. Names may differ, but
    /// a field whose name the shader has at another byte is an error: numbers of one type would be swapped.
    ///
    /// [`Error::Binding`] or [`Error::Push`] with the first difference.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "@group(0) @binding(0) var<storage, read_write> points: array<vec4f>;
    ///      @compute @workgroup_size(1) fn main() { points[0].x = 1.0; }",
    /// )?;
    /// program.block(0, 0)?.check::<[f32; 4]>()?;
    /// assert!(program.block(0, 0)?.check::<[f32; 3]>().is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn check<T: Layout>(&self) -> Result<(), Error> {
        let size = size_of::<T>() as u64;
        self.refused(match &self.layout {
            DataLayout::Array { element, count: None, stride } => of_element(element, *stride, (size, &T::layout())),
            layout => difference(layout, &T::layout()),
        })
    }

    /// Checks the elements of the runtime-sized array at the end of the block, as [`Block::check`] checks the rest.
    /// [`Error::Binding`] also if there is no such array.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct List { count: atomic<u32>, items: array<vec2<u32>> }
    ///      @group(0) @binding(0) var<storage, read_write> list: List;
    ///      @compute @workgroup_size(1) fn main() { list.items[atomicAdd(&list.count, 1u)] = vec2(7u); }",
    /// )?;
    /// let list = program.block(0, 0)?;
    /// list.check::<u32>()?;
    /// list.check_elements::<[u32; 2]>()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn check_elements<T: Layout>(&self) -> Result<(), Error> {
        let size = size_of::<T>() as u64;
        self.refused(match self.layout.tail() {
            Some((_, DataLayout::Array { element, stride, .. })) => of_element(element, *stride, (size, &T::layout())),
            _ => Some("it does not end with an array without a size".to_owned()),
        })
    }

    fn refused(&self, problem: Option<String>) -> Result<(), Error> {
        problem.map_or(Ok(()), |problem| Err(self.place.error(with_rule(&problem))))
    }
}

/// A problem of a layout, with the rule.
pub(crate) fn with_rule(problem: &str) -> String {
    format!("{problem} (rule: {})", rule::LAYOUT)
}

/// Why a buffer with these contents cannot be the block; [`Buffer::typed`](crate::Buffer::typed) and
/// [`Buffer::typed_with_tail`](crate::Buffer::typed_with_tail) have the rules.
pub(crate) fn of_buffer(block: &DataLayout, ty: BufferType) -> Option<String> {
    let BufferType { head, tail: Some(tail) } = ty else { return of_values(block, ty.head) };
    let (first, element, stride) = match block.tail() {
        Some((first, DataLayout::Array { element, stride, .. })) if first > 0 => (first, element, *stride),
        _ => return Some("it does not end with an array without a size after other members".to_owned()),
    };
    if let Some(problem) = difference(block, &head.layout()) {
        return Some(problem);
    }
    if first != tail.start {
        let of = name_of(&head.layout());
        let start = tail.start;
        return Some(format!("the shader's array begins at byte {first}, the one after {of} at byte {start}"));
    }
    of_element(element, stride, (tail.element.size(), &tail.element.layout()))
}

/// Why a buffer of values of this type cannot be the block.
fn of_values(block: &DataLayout, ty: ElementType) -> Option<String> {
    let (block, rust, size) = (data(block), ty.layout(), ty.size());
    if let (Some(a), Some(b)) = (uniform(block), uniform(&rust)) {
        if a != b {
            return Some(format!("the shader has numbers of type {a}, {} has {b}", name_of(&rust)));
        }
        let unit = if let DataLayout::Array { stride, .. } = block { *stride } else { block.bytes() };
        if unit.max(size).checked_rem(unit.min(size)) == Some(0) {
            // The values follow each other in the buffer, and so does the block where they are longer.
            let each =
                |layout: DataLayout, stride| DataLayout::Array { element: Box::new(layout), count: None, stride };
            return match block {
                DataLayout::Array { .. } => misplaced(block, &each(rust, size)),
                block => misplaced(&each(block.clone(), unit), &each(rust, size)),
            };
        }
    }
    match block {
        DataLayout::Array { element, count: None, stride } => of_element(element, *stride, (size, &rust)),
        DataLayout::Array { element, count: Some(count), stride } => {
            let whole = difference(block, &rust)?;
            let each = of_element(element, *stride, (size, &rust))?;
            Some(if size < count.saturating_mul(*stride) { each } else { whole })
        }
        block => difference(block, &rust),
    }
}

/// Why these push constants cannot be the bytes of the block from `start` on; without a start they are all of it.
pub(crate) fn of_push(block: &DataLayout, start: Option<u64>, ty: ElementType) -> Option<String> {
    let Some(start) = start else { return difference(block, &ty.layout()) };
    let rust = ty.layout();
    difference_within(block, &rust, start..start.saturating_add(ty.size()))
        .or_else(|| misplaced_from(block, start, &rust))
}

/// The array in a structure that has nothing else, as GLSL declares it, or the whole.
fn data(block: &DataLayout) -> &DataLayout {
    match block {
        DataLayout::Struct { members, .. } => match &members[..] {
            [DataMember { offset: 0, layout: array @ DataLayout::Array { .. }, .. }] => array,
            _ => block,
        },
        _ => block,
    }
}

/// Why the elements of an array of the shader are not values of this type.
fn of_element(element: &DataLayout, stride: u64, (size, rust): (u64, &DataLayout)) -> Option<String> {
    let of = name_of(rust);
    let strides = || format!("elements of the shader's array are {stride} bytes apart, {of} has {size} bytes");
    match difference(element, rust) {
        Some(problem) if size != stride => Some(format!("{problem}; {}", strides())),
        None if size != stride => Some(strides()),
        problem => problem,
    }
}

/// As WGSL writes its type.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layout.fmt(f)
    }
}
