//! Creation of buffers, images, samplers and programs.

use ash::vk;
use bytemuck::NoUninit;
use spelter_driver::{Sampler, SamplerInfo};

use super::Context;
use crate::buffer::Buffer;
use crate::error::Error;
use crate::image::ImageBuilder;
use crate::layout::Layout;
use crate::object::InitialContents;
use crate::program::{Program, ProgramBuilder, Source};

impl Context {
    /// A builder for a buffer of `bytes` bytes, with an optional label and contents.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let ones = context.buffer(16).label("ones").holding(&[1u32; 4])?;
    /// assert_eq!((ones.label(), ones.size()), (Some("ones"), 16));
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer(&self, bytes: u64) -> BufferBuilder<'_> {
        BufferBuilder::new(self, bytes)
    }

    /// A buffer that holds `values`. [`Error::Misuse`] if there are none.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_from(&[1.5f32, 2.5])?;
    /// assert_eq!(context.read::<f32>(&buffer)?, [1.5, 2.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer_from<T: NoUninit>(&self, values: &[T]) -> Result<Buffer, Error> {
        self.buffer(size_of_val(values) as u64).holding(values)
    }

    /// A buffer that holds these values, of a type whose layout is known: a number, an array of them, or a struct by
    /// [`layout!`](crate::layout!). It is `buffer_from(values)?.typed::<T>()`: a dispatch that binds it for other data
    /// is an error that says where the layouts differ ([`Buffer::typed`]). Errors are those of
    /// [`Context::buffer_from`].
    ///
    /// ```
    /// use spelter::bytemuck::NoUninit;
    ///
    /// spelter::layout! {
    ///     #[derive(Clone, Copy, NoUninit)]
    ///     #[bytemuck(crate = "spelter::bytemuck")]
    ///     #[repr(C)]
    ///     struct Params {
    ///         count: u32,
    ///         _padding: [u32; 3],
    ///         direction: [f32; 3],
    ///         scale: f32,
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct Params { count: u32, direction: vec3f, scale: f32 }
    ///      @group(0) @binding(0) var<uniform> params: Params;
    ///      @group(0) @binding(1) var<storage, read_write> to: array<f32>;
    ///      @compute @workgroup_size(1) fn main() {
    ///          for (var i = 0u; i < params.count; i++) { to[i] = params.direction[i] * params.scale; }
    ///      }",
    /// )?;
    /// let params = Params { count: 3, _padding: [0; 3], direction: [1.0, 2.0, 3.0], scale: 2.0 };
    /// let (params, to) = (context.typed_buffer(&[params])?, context.typed_buffer(&[0.0f32; 3])?);
    /// context.dispatch(&program).bind(0, 0, &params).bind(0, 1, &to).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<f32>(&to)?, [2.0, 4.0, 6.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed_buffer<T: NoUninit + Layout>(&self, values: &[T]) -> Result<Buffer, Error> {
        Ok(self.buffer_from(values)?.typed::<T>())
    }

    /// A buffer that holds one value and an array after it, as a block does that ends with an array without a size, of
    /// types whose layouts are known: its handle is that of [`Buffer::typed_with_tail`]. Errors are those of
    /// [`Context::buffer_from`].
    ///
    /// ```
    /// use spelter::bytemuck::NoUninit;
    ///
    /// spelter::layout! {
    ///     #[derive(Clone, Copy, NoUninit)]
    ///     #[bytemuck(crate = "spelter::bytemuck")]
    ///     #[repr(C)]
    ///     struct Head {
    ///         count: u32,
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct List { count: u32, data: array<f32> }
    ///      @group(0) @binding(0) var<storage, read_write> list: List;
    ///      @compute @workgroup_size(1) fn main() {
    ///          for (var i = 0u; i < list.count; i++) { list.data[i] *= 2.0; }
    ///      }",
    /// )?;
    /// let list = context.typed_buffer_with_tail(&Head { count: 2 }, &[1.0f32, 2.0, 3.0])?;
    /// context.dispatch(&program).bind(0, 0, &list).groups([1, 1, 1])?;
    /// assert_eq!(context.read_range::<f32>(&list, 4..16)?, [2.0, 4.0, 3.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn typed_buffer_with_tail<H: NoUninit + Layout, T: NoUninit + Layout>(
        &self,
        head: &H,
        tail: &[T],
    ) -> Result<Buffer, Error> {
        let mut bytes = bytemuck::bytes_of(head).to_vec();
        bytes.resize(size_of::<H>().next_multiple_of(align_of::<T>()), 0);
        bytes.extend_from_slice(bytemuck::cast_slice(tail));
        Ok(self.buffer_from(&bytes)?.typed_with_tail::<H, T>())
    }

    /// A buffer of `bytes` bytes, all zero. [`Error::Misuse`] if that is 0 or more than the device allows,
    /// [`Error::OutOfMemory`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// assert_eq!(context.read::<u64>(&buffer)?, [0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn buffer_zeroed(&self, bytes: u64) -> Result<Buffer, Error> {
        self.buffer(bytes).zeroed()
    }

    /// A builder for an image of that format and size in texels: width, height, depth.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R8G8B8A8_UNORM, [2, 1, 1]).label("icon").build()?;
    /// context.write_image(&image, 0, 0, &[[255u8, 0, 0, 255], [0, 0, 255, 255]])?;
    /// assert_eq!(context.read_image::<[u8; 4]>(&image, 0, 0)?[1], [0, 0, 255, 255]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn image(&self, format: vk::Format, size: [u32; 3]) -> ImageBuilder<'_> {
        ImageBuilder::new(self.share(), format, size)
    }

    /// A sampler. [`Error::Misuse`] if it breaks a rule of Vulkan.
    ///
    /// ```
    /// use spelter::{Bind, SamplerInfo, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let info = SamplerInfo { mag_filter: vk::Filter::LINEAR, ..SamplerInfo::default() };
    /// let sampler = context.sampler(&info)?;
    /// context.bind((0, 1), Bind::sampler(&sampler))?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn sampler(&self, info: &SamplerInfo) -> Result<Sampler, Error> {
        Ok(self.device().create_sampler(info)?)
    }

    /// A program from WGSL text with one compute entry point. Errors are those of [`ProgramBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl("@compute @workgroup_size(8, 4) fn nothing() {}")?;
    /// assert_eq!((program.entry(), program.workgroup_size()), ("nothing", [8, 4, 1]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn program_wgsl(&self, text: &str) -> Result<Program, Error> {
        self.program(Source::Wgsl(text)).build()
    }

    /// A program from SPIR-V words with one compute entry point. Errors are those of [`ProgramBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let words = [0x0723_0203, 0x0001_0300]; // a truncated module
    /// assert!(matches!(context.program_spirv(&words), Err(spelter::Error::Shader(_))));
    /// # Ok(())
    /// # }
    /// ```
    pub fn program_spirv(&self, words: &[u32]) -> Result<Program, Error> {
        self.program(Source::Spirv(words)).build()
    }

    /// A builder for a program with a named entry point or with specialization constants.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::new()?;
    /// let text = "@compute @workgroup_size(8) fn one() {} @compute @workgroup_size(9) fn other() {}";
    /// let program = context.program(text).entry("other").build()?;
    /// assert_eq!(program.workgroup_size(), [9, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn program<'a>(&'a self, source: impl Into<Source<'a>>) -> ProgramBuilder<'a> {
        ProgramBuilder::new(self.share(), source.into())
    }
}

/// Builds a [`Buffer`]: see [`Context::buffer`].
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let table = context.buffer(64).label("table").holding(&[1u32, 2, 3])?;
/// assert_eq!((table.size(), table.valid_ranges()), (64, vec![0..12]));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`, `zeroed` or `holding`"]
pub struct BufferBuilder<'a> {
    context: &'a Context,
    size: u64,
    label: Option<Box<str>>,
}

impl<'a> BufferBuilder<'a> {
    fn new(context: &'a Context, size: u64) -> Self {
        Self { context, size, label: None }
    }

    /// Names the buffer in messages and traces.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(4).label("seed").zeroed()?;
    /// let error = context.write(&buffer, 4, &[1u32]).unwrap_err().to_string();
    /// assert!(error.contains("buffer `seed` of 4 bytes"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into().into_boxed_str());
        self
    }

    /// A buffer with undefined contents. [`Error::Misuse`] if its size is 0 or more than the device allows,
    /// [`Error::OutOfMemory`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(1 << 20).label("frame").build()?;
    /// assert!(buffer.valid_ranges().is_empty());
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<Buffer, Error> {
        Buffer::new(self.context.share(), self.size, self.label, InitialContents::Undefined)
    }

    /// A buffer that holds zeros. Errors are those of [`BufferBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(8).zeroed()?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn zeroed(self) -> Result<Buffer, Error> {
        Buffer::new(self.context.share(), self.size, self.label, InitialContents::Zero)
    }

    /// A buffer that begins with `values`; the rest is undefined. [`Error::Range`] if they do not fit; else the errors
    /// of [`BufferBuilder::build`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(8).holding(&[1u32, 2])?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [1, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn holding<T: NoUninit>(self, values: &[T]) -> Result<Buffer, Error> {
        let context = self.context;
        let buffer = self.build()?;
        context.write(&buffer, 0, values)?;
        Ok(buffer)
    }
}
