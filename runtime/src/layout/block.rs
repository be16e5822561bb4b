//! A block that a shader declares, and the check of a Rust type against it.

use std::fmt;
use std::ops::ControlFlow;

use spelter_shaders::front::PlacedScalar;

use super::{DataLayout, Layout};
use crate::error::{Error, rule};

/// Elements of an array whose numbers are compared one by one, before the last one. The numbers of two arrays of
/// different strides or lengths cannot agree that long and in the last element, unless the strides are far larger than
/// those of any vertex or particle.
const MAX_ELEMENTS: u64 = 1 << 12;

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
/// The crate `encase` writes values as WGSL lays them out, whatever Rust's layout is, and needs no check: its buffers
/// are bytes.
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
    /// with such an array, the part before it. Signed and unsigned integers are different types.
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
        match &self.layout {
            DataLayout::Array { element, count: None, stride } => self.check_element::<T>(element, *stride),
            layout => self.compare(layout, &T::layout()),
        }
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
        match self.layout.tail() {
            Some((_, DataLayout::Array { element, stride, .. })) => self.check_element::<T>(element, *stride),
            _ => Err(self.error("it does not end with an array without a size".to_owned())),
        }
    }

    fn check_element<T: Layout>(&self, element: &DataLayout, stride: u64) -> Result<(), Error> {
        self.compare(element, &T::layout())?;
        let size = size_of::<T>() as u64;
        if size == stride {
            return Ok(());
        }
        let of = name_of(&T::layout());
        Err(self.error(format!("elements of the shader's array are {stride} bytes apart, {of} has {size} bytes")))
    }

    /// Compares the numbers of both.
    fn compare(&self, shader: &DataLayout, rust: &DataLayout) -> Result<(), Error> {
        match difference(shader, rust) {
            Some(problem) => Err(self.error(problem)),
            None => Ok(()),
        }
    }

    fn error(&self, problem: String) -> Error {
        self.place.error(format!("{problem} (rule: {})", rule::LAYOUT))
    }
}

/// As WGSL writes its type.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.layout.fmt(f)
    }
}

/// The first number that only one of them has, or that has another type in the other.
fn difference(shader: &DataLayout, rust: &DataLayout) -> Option<String> {
    // Arrays of equal strides and lengths agree if their elements do, however many there are.
    if let (
        DataLayout::Array { element: a, count: Some(m), stride: s },
        DataLayout::Array { element: b, count: Some(n), stride: t },
    ) = (shader, rust)
        && (m, s) == (n, t)
    {
        return difference(a, b);
    }
    let of = name_of(rust);
    let missing = shader.visit(MAX_ELEMENTS, &mut |number| {
        let PlacedScalar { offset, scalar, of: whole, path } = number;
        let has = match rust.at(offset) {
            Some(there) if there == scalar => return ControlFlow::Continue(()),
            Some(there) => format!("{of} has {there}"),
            None => match offset_of(rust, path) {
                Some(other) if Some(other) != offset_of(shader, path) => format!("{of} has `{path}` at byte {other}"),
                _ => format!("{of} has no number there"),
            },
        };
        ControlFlow::Break(format!("the shader has {}{whole}{} at byte {offset}, {has}", quoted(path), close(path)))
    });
    if let ControlFlow::Break(problem) = missing {
        return Some(problem);
    }
    let surplus = rust.visit(MAX_ELEMENTS, &mut |number| {
        let PlacedScalar { offset, scalar, path, .. } = number;
        let is_padding = path.split('.').any(|name| name.starts_with('_'));
        if is_padding || shader.at(offset).is_some() {
            return ControlFlow::Continue(());
        }
        let has = format!("{of} has {}{scalar}{} at byte {offset}", quoted(path), close(path));
        ControlFlow::Break(format!("{has}, the shader has no number there (padding needs a name with `_`)"))
    });
    surplus.break_value()
}

/// `path` and an opening bracket for the type after it; nothing for the whole.
fn quoted(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("`{path}` (") }
}

fn close(path: &str) -> &'static str {
    if path.is_empty() { "" } else { ")" }
}

/// The first byte of the member with these names.
fn offset_of(layout: &DataLayout, path: &str) -> Option<u64> {
    let found = layout.visit(MAX_ELEMENTS, &mut |number| match number.path == path || is_in(number.path, path) {
        true => ControlFlow::Break(number.offset),
        false => ControlFlow::Continue(()),
    });
    found.break_value()
}

/// Whether a path goes on from another: a vector of the shader is an array of the host.
fn is_in(path: &str, whole: &str) -> bool {
    !whole.is_empty() && path.strip_prefix(whole).is_some_and(|rest| rest.starts_with('['))
}

/// A type of Rust, for messages.
fn name_of(layout: &DataLayout) -> String {
    match layout {
        DataLayout::Struct { name, .. } => format!("`{name}`"),
        DataLayout::Array { element, count: Some(count), .. } => {
            format!("`[{}; {count}]`", name_of(element).trim_matches('`'))
        }
        layout => format!("`{layout}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{DataMember, ScalarType};
    use super::*;

    const F32: ScalarType = ScalarType::Float(32);

    fn member(name: &str, offset: u64, layout: DataLayout) -> DataMember {
        DataMember { name: name.into(), offset, layout }
    }

    fn structure(members: Vec<DataMember>) -> DataLayout {
        DataLayout::Struct { name: "Params".into(), members }
    }

    #[test]
    fn each_difference_is_named() {
        let vec3 = || DataLayout::Vector { scalar: F32, count: 3, stride: 4 };
        let shader = structure(vec![member("count", 0, u32::layout()), member("at", 16, vec3())]);
        let of = |members| difference(&shader, &structure(members));
        let count = || member("count", 0, u32::layout());
        assert_eq!(of(vec![count(), member("at", 16, <[f32; 3]>::layout())]), None);
        // Names may differ: only places and types count.
        assert_eq!(
            of(vec![count(), member("_hole", 4, <[u32; 3]>::layout()), member("b", 16, <[f32; 3]>::layout())]),
            None
        );
        for (members, expected) in [
            (
                vec![count(), member("at", 4, <[f32; 3]>::layout())],
                "the shader has `at` (vec3<f32>) at byte 16, `Params` has `at` at byte 4",
            ),
            (
                vec![member("count", 0, f32::layout()), member("at", 16, <[f32; 3]>::layout())],
                "the shader has `count` (u32) at byte 0, `Params` has f32",
            ),
            (
                vec![count(), member("at", 16, <[f32; 2]>::layout())],
                "the shader has `at` (vec3<f32>) at byte 24, `Params` has no number there",
            ),
            (
                vec![count(), member("at", 16, <[f32; 4]>::layout())],
                "`Params` has `at[3]` (f32) at byte 28, the shader has no number there \
                 (padding needs a name with `_`)",
            ),
        ] {
            assert_eq!(of(members).as_deref(), Some(expected));
        }
    }

    #[test]
    fn matrices_and_large_arrays_are_arrays_of_the_host() {
        let matrix = |row_major| DataLayout::Matrix { scalar: F32, columns: 4, rows: 4, stride: 16, row_major };
        assert_eq!(difference(&matrix(false), &<[[f32; 4]; 4]>::layout()), None);
        assert_eq!(difference(&matrix(true), &<[f32; 16]>::layout()), None);
        let vec4 = DataLayout::Vector { scalar: F32, count: 4, stride: 4 };
        let many = DataLayout::Array { element: Box::new(vec4), count: Some(1 << 30), stride: 16 };
        assert_eq!(difference(&many, &<[[f32; 4]; 1 << 30]>::layout()), None);
        // Elements of three floats follow each other without the hole that the shader does not have, up to the end.
        let short = <[[f32; 4]; 3]>::layout();
        assert_eq!(
            difference(&many, &short).as_deref(),
            Some("the shader has `[3]` (vec4<f32>) at byte 48, `[[f32; 4]; 3]` has no number there")
        );
    }
}
