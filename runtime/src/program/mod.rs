//! Programs: a shader with an entry point and specialization constants, compiled to a pipeline.

mod binding;
mod builder;
mod compared;
mod constant;
mod declared;

use std::fmt;
use std::sync::{Arc, OnceLock};

use spelter_driver::{ComputePipeline, DescriptorSetLayout};

pub use binding::BindingInfo;
pub use builder::{ProgramBuilder, choose_entry};
pub use constant::Constant;
pub(crate) use declared::Declared;
use spelter_shaders::front::Blocks;
pub use spelter_shaders::front::SpecializationConstant;
pub use spelter_shaders::ir::BindingKind;

use crate::error::Error;
use crate::layout::{Block, BlockPlace};
use crate::share::Share;
use compared::Compared;

/// The source of a shader.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let text = "@compute @workgroup_size(2) fn main() {}";
/// let program = context.program(spelter::Source::Wgsl(text)).build()?; // or `context.program(text)`
/// assert_eq!(program.workgroup_size(), [2, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// WGSL text. Push constants are `var<immediate>`.
    Wgsl(&'a str),
    /// SPIR-V words.
    Spirv(&'a [u32]),
}

impl<'a> From<&'a str> for Source<'a> {
    fn from(text: &'a str) -> Self {
        Self::Wgsl(text)
    }
}

impl<'a> From<&'a [u32]> for Source<'a> {
    fn from(words: &'a [u32]) -> Self {
        Self::Spirv(words)
    }
}

/// A compiled entry point. A handle: clones refer to the same program.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "@group(0) @binding(0) var<storage, read_write> to: u32;
///      @compute @workgroup_size(1) fn answer() { to = 42u; }",
/// )?;
/// let to = context.buffer_zeroed(4)?;
/// context.dispatch(&program).bind(0, 0, &to).groups([1, 1, 1])?;
/// assert_eq!(context.read::<u32>(&to)?, [42]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    inner: Arc<ProgramInner>,
}

#[derive(Debug)]
struct ProgramInner {
    id: u64,
    share: Arc<Share>,
    entry: String,
    label: Option<String>,
    workgroup_size: [u32; 3],
    push_bytes: u32,
    specialization: Vec<SpecializationConstant>,
    bindings: Vec<Declared>,
    /// The same with names and layouts, made at the first request.
    infos: OnceLock<Vec<BindingInfo>>,
    sets: Vec<SetLayout>,
    pipeline: ComputePipeline,
    /// Read at the first request.
    blocks: OnceLock<Blocks>,
    /// Rust types that were compared with the blocks.
    compared: Compared,
}

/// The layout of one descriptor set, with its bindings in order.
#[derive(Debug)]
pub(crate) struct SetLayout {
    pub(crate) layout: DescriptorSetLayout,
    pub(crate) bindings: Vec<Declared>,
}

impl Program {
    /// The name of the entry point.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// assert_eq!(context.program_wgsl("@compute @workgroup_size(1) fn blur() {}")?.entry(), "blur");
    /// # Ok(())
    /// # }
    /// ```
    pub fn entry(&self) -> &str {
        &self.inner.entry
    }

    /// The workgroup size in each direction, after specialization.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl("@compute @workgroup_size(8, 8) fn main() {}")?;
    /// assert_eq!(program.workgroup_size(), [8, 8, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn workgroup_size(&self) -> [u32; 3] {
        self.inner.workgroup_size
    }

    /// Why the kernel is interpreted although the device compiles kernels; `None` if it is compiled. Some kernels
    /// cannot be compiled to machine code.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl("@compute @workgroup_size(1) fn main() {}")?;
    /// assert_eq!(program.fallback(), None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fallback(&self) -> Option<&str> {
        self.inner.pipeline.fallback()
    }

    /// The size of the push constants that the program declares, in bytes.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "var<immediate> n: vec2<u32>;
    ///      @group(0) @binding(0) var<storage, read_write> to: u32;
    ///      @compute @workgroup_size(1) fn main() { to = n.x + n.y; }",
    /// )?;
    /// assert_eq!(program.push_bytes(), 8);
    /// # Ok(())
    /// # }
    /// ```
    pub fn push_bytes(&self) -> u32 {
        self.inner.push_bytes
    }

    /// The bindings that the entry point uses, by group and binding. The shader is read again for the first request,
    /// for names and layouts; if there is no memory for that, they are missing.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let all: Vec<_> = program.bindings().iter().map(|info| (info.group, info.binding)).collect();
    /// assert_eq!(all, [(0, 0)]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bindings(&self) -> &[BindingInfo] {
        self.inner.infos.get_or_init(|| {
            let unknown = Blocks::default();
            let blocks = self.blocks().unwrap_or(&unknown);
            self.declared().iter().map(|declared| BindingInfo::new(declared, blocks)).collect()
        })
    }

    /// The bindings, as dispatches check them.
    pub(crate) fn declared(&self) -> &[Declared] {
        &self.inner.bindings
    }

    /// The layout of the data in the buffer of a binding: names, offsets and strides of members, after specialization.
    /// The shader is read again for the first request.
    ///
    /// [`Error::Binding`] if the program has no buffer at that binding.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "@group(0) @binding(0) var<storage, read_write> data: array<vec2<u32>>;
    ///      @compute @workgroup_size(1) fn main() { data[0].y = 1u; }",
    /// )?;
    /// assert_eq!(program.block(0, 0)?.to_string(), "array<vec2<u32>>");
    /// program.block(0, 0)?.check::<[u32; 2]>()?; // an element of what `buffer_from` takes
    /// assert!(program.block(0, 1).is_err());
    /// # Ok(())
    /// # }
    /// ```
    pub fn block(&self, group: u32, binding: u32) -> Result<Block, Error> {
        let is_it = |info: &&Declared| (info.group, info.binding) == (group, binding);
        let place = BlockPlace::Binding(group, binding);
        let layout = match self.declared().iter().find(is_it) {
            Some(info) if info.takes_buffer() => self.blocks()?.buffers.get(&(group, binding)),
            Some(info) => return Err(place.error(format!("it is a {}, which has no layout", info.takes_name()))),
            None => return Err(place.error(format!("{self} does not use it"))),
        };
        match layout {
            Some(layout) => Ok(Block::new(place, layout.clone())),
            None => Err(place.error("the shader has no layout for it".to_owned())),
        }
    }

    /// The layout of the push constants; [`Error::Push`] if the program declares none.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "var<immediate> n: vec2<u32>;
    ///      @group(0) @binding(0) var<storage, read_write> to: u32;
    ///      @compute @workgroup_size(1) fn main() { to = n.x + n.y; }",
    /// )?;
    /// program.push_block()?.check::<[u32; 2]>()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn push_block(&self) -> Result<Block, Error> {
        let push = if self.push_bytes() == 0 { None } else { self.blocks()?.push.clone() };
        let layout = push.ok_or_else(|| BlockPlace::Push.error(format!("{self} declares none")))?;
        Ok(Block::new(BlockPlace::Push, layout))
    }

    fn blocks(&self) -> Result<&Blocks, Error> {
        match self.inner.blocks.get() {
            Some(blocks) => Ok(blocks),
            None => {
                let blocks = self.inner.pipeline.blocks()?;
                Ok(self.inner.blocks.get_or_init(|| blocks))
            }
        }
    }

    /// The shader's specialization constants: in WGSL, its overrides.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "@id(3) override size: u32 = 4u; @compute @workgroup_size(size) fn main() {}";
    /// let program = context.program_wgsl(text)?;
    /// assert_eq!(program.specialization_constants()[0].to_string(), "3 (size: u32)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn specialization_constants(&self) -> &[SpecializationConstant] {
        &self.inner.specialization
    }

    pub(crate) fn id(&self) -> u64 {
        self.inner.id
    }

    /// Whether the program was made by a context of that device.
    pub(crate) fn is_of(&self, share: &Arc<Share>) -> bool {
        Arc::ptr_eq(&self.inner.share, share)
    }

    /// The name in timelines, if it is not that of the entry point.
    pub(crate) fn label(&self) -> Option<&str> {
        self.inner.label.as_deref()
    }

    pub(crate) fn pipeline(&self) -> &ComputePipeline {
        &self.inner.pipeline
    }

    /// The layouts of sets 0, 1, …; a set that the program does not use has no bindings.
    pub(crate) fn sets(&self) -> &[SetLayout] {
        &self.inner.sets
    }
}

/// For messages: the entry point, and the label if there is one.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let text = "@compute @workgroup_size(1) fn main() {}";
/// assert_eq!(context.program(text).build()?.to_string(), "\"main\"");
/// assert_eq!(context.program(text).label("warm up").build()?.to_string(), "\"main\" of program `warm up`");
/// # Ok(())
/// # }
/// ```
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.entry())?;
        match self.label() {
            Some(label) => write!(f, " of program `{label}`"),
            None => Ok(()),
        }
    }
}
