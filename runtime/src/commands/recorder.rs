//! The recorder of a command buffer: what the closure of [`Context::record`] gets. Each command is checked and recorded
//! for the driver at once, so the call that breaks a rule returns the error.

use std::ops::Range;
use std::sync::Arc;

use ash::vk;
use smallvec::SmallVec;
use spelter_driver::ClearColor;

use super::command::Command;
use super::contents::{Parts, Step, TO_END};
use super::recording::{PartUse, Recording, within};
use super::{CommandBuffer, CommandBufferState, MAX_DEPTH};
use crate::buffer::Buffer;
use crate::context::Context;
use crate::dispatch::Dispatch;
use crate::error::{Error, rule};
use crate::ids::{Access, CommandBufferId, CommandKind};
use crate::image::{Image, ImagePart};
use crate::program::Program;
use crate::transfer::{Direction, LevelOf, TexelRegion, check_color, extent};

/// Records commands in a command buffer: see [`Context::record`]. Each call checks the command at once; a call that
/// fails records nothing.
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let (from, to) = (context.buffer_from(&[1u32, 2])?, context.buffer_zeroed(8)?);
/// let commands = context.record(|commands| {
///     commands.copy(&from, 0, &to, 0, 8)?;
///     commands.fill_range(&from, 0..4, 9)
/// })?;
/// context.submit(&commands)?;
/// assert_eq!((context.read::<u32>(&from)?, context.read::<u32>(&to)?), (vec![9, 2], vec![1, 2]));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Recorder {
    context: Context,
    pub(super) recording: Recording,
}

impl Recorder {
    pub(super) fn new(context: &Context, id: CommandBufferId, target: Option<&Arc<CommandBufferState>>) -> Self {
        Self { context: context.clone(), recording: Recording::new(id, target) }
    }

    /// Names the command buffer in messages. [`CommandBuffer::label`] returns the last name that a recording gave.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer(8).label("tmp").zeroed()?;
    /// let commands = context.record(|commands| {
    ///     commands.label("frame");
    ///     commands.group("clear", |commands| commands.fill(&buffer, 9))
    /// })?;
    /// assert_eq!(commands.label().as_deref(), Some("frame"));
    /// buffer.destroy();
    /// let error = context.submit(&commands).unwrap_err().to_string();
    /// let at = "submit: command buffer `frame`: command 0, fill in group `clear`";
    /// assert!(error.starts_with(&format!("{at}: buffer `tmp` of 8 bytes is destroyed")), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(&mut self, label: impl Into<String>) {
        self.recording.parts.label = Some(label.into().into());
    }

    /// A builder for a dispatch of a program; [`Dispatch::groups`], [`Dispatch::invocations`] or [`Dispatch::indirect`]
    /// records it. The dispatch has all its bindings of its own, or takes those of a group from a set
    /// ([`Dispatch::set`]); the slots and sets of contexts do not matter to a command buffer. If the set is written
    /// later, submissions from then on use what it names then. Errors are those of [`Context::dispatch`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32, 2, 3, 4])?;
    /// let double = context.record(|commands| commands.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1]))?;
    /// for _ in 0..3 {
    ///     context.submit(&double)?;
    /// }
    /// assert_eq!(context.read::<u32>(&data)?, [8, 16, 24, 32]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch<'a>(&'a mut self, program: &'a Program) -> Dispatch<'a> {
        Dispatch::recorded(&self.context, program, &mut self.recording)
    }

    /// Records a copy of `bytes` bytes from one buffer to another, or between disjoint ranges of one: see
    /// [`Context::copy`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (from, to) = (context.buffer_from(&[1u32, 2, 3])?, context.buffer_zeroed(8)?);
    /// let commands = context.record(|commands| commands.copy(&from, 4, &to, 0, 8))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&to)?, [2, 3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy(&mut self, from: &Buffer, start: u64, to: &Buffer, offset: u64, bytes: u64) -> Result<(), Error> {
        self.context.check_copy(from, start, to, offset, bytes)?;
        let (from, to) = (from.resource(), to.resource());
        let uses = [(from, start..start + bytes, Access::Read), (to, offset..offset + bytes, Access::Write)];
        let region = vk::BufferCopy { src_offset: start, dst_offset: offset, size: bytes };
        self.recording.add(&self.context, CommandKind::Copy, &uses, bytes > 0, |number| Command::Copy {
            from: number(from),
            to: number(to),
            region,
        })
    }

    /// Records a fill of the whole buffer, of the size that it has when this is submitted, with a repeated word: see
    /// [`Context::fill`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// let commands = context.record(|commands| commands.fill(&buffer, 9))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [9, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill(&mut self, buffer: &Buffer, word: u32) -> Result<(), Error> {
        self.context.check_fill(buffer, &(0..0))?;
        let to = buffer.resource();
        self.recording.add(&self.context, CommandKind::Fill, &[(to, 0..TO_END, Access::Write)], true, |number| {
            Command::Fill { to: number(to), range: None, word }
        })
    }

    /// Records a fill of the bytes `range` of a buffer with a repeated word: see [`Context::fill_range`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(16)?;
    /// let commands = context.record(|commands| commands.fill_range(&buffer, 4..12, 7))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [0, 7, 7, 0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn fill_range(&mut self, buffer: &Buffer, range: Range<u64>, word: u32) -> Result<(), Error> {
        self.context.check_fill(buffer, &range)?;
        let to = buffer.resource();
        let uses = [(to, range.clone(), Access::Write)];
        self.recording.add(&self.context, CommandKind::Fill, &uses, !range.is_empty(), |number| Command::Fill {
            to: number(to),
            range: Some(range.clone()),
            word,
        })
    }

    /// Records a copy of one level of one layer, `(image, level, layer)`, to a level of the same size: see
    /// [`Context::copy_image`].
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).layers(2).build()?;
    /// let commands = context.record(|commands| commands.copy_image((&image, 0, 0), (&image, 0, 1)))?;
    /// context.write_image(&image, 0, 0, &[7u32, 8])?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 1)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image(&mut self, from: (&Image, u32, u32), to: (&Image, u32, u32)) -> Result<(), Error> {
        let (from, to) = (LevelOf::from(from), LevelOf::from(to));
        let (source, target) = self.context.check_copy_image(from, to)?;
        let levels = [from, to].map(|level| level.of.info().levels);
        let read = source.ranges(levels[0]).into_iter().map(|range| (from.of.resource(), range, Access::Read));
        let write = target.ranges(levels[1]).into_iter().map(|range| (to.of.resource(), range, Access::Write));
        // A level of a layer is one range.
        let uses: SmallVec<[PartUse<'_>; 2]> = read.chain(write).collect();
        self.recording.add(&self.context, CommandKind::Copy, &uses, true, |number| Command::CopyImage {
            from: from.map(|image| number(image.resource())),
            to: to.map(|image| number(image.resource())),
        })
    }

    /// Records a copy from a buffer, from byte `start` on, to texels of an image: see
    /// [`Context::copy_buffer_to_image`]. It is an error of the submission if the image has another size then and the
    /// region has no [extent](crate::TexelRegion::extent), or if the box is not in the level then.
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// let texels = context.buffer_from(&[7u32, 8])?;
    /// let commands = context.record(|commands| commands.copy_buffer_to_image(&texels, 0, (&image, 0, 0)))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_buffer_to_image<'a>(
        &mut self,
        from: &Buffer,
        start: u64,
        to: impl Into<TexelRegion<'a>>,
    ) -> Result<(), Error> {
        self.copy_texels(Direction::ToImage, (from, start), to.into(), None)
    }

    /// Records a copy of texels of an image to a buffer, from byte `offset` on: see [`Context::copy_image_to_buffer`].
    /// Errors of the submission are those of [`Recorder::copy_buffer_to_image`].
    ///
    /// ```
    /// use spelter::vk;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (image, texels) = (context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?, context.buffer_zeroed(8)?);
    /// let commands = context.record(|commands| commands.copy_image_to_buffer((&image, 0, 0), &texels, 0))?;
    /// context.write_image(&image, 0, 0, &[7u32, 8])?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&texels)?, [7, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn copy_image_to_buffer<'a>(
        &mut self,
        from: impl Into<TexelRegion<'a>>,
        to: &Buffer,
        offset: u64,
    ) -> Result<(), Error> {
        self.copy_texels(Direction::ToBuffer, (to, offset), from.into(), None)
    }

    /// `size`: that of the level, if the command was recorded before.
    pub(super) fn copy_texels(
        &mut self,
        direction: Direction,
        (buffer, offset): (&Buffer, u64),
        region: TexelRegion<'_>,
        size: Option<vk::Extent3D>,
    ) -> Result<(), Error> {
        let (part, bytes) = self.context.check_copy_texels((buffer, offset), region)?;
        let TexelRegion { image, area } = region;
        let info = image.info();
        let size = size.unwrap_or_else(|| extent(&info, area.level));
        let [on_buffer, on_image] = direction.accesses();
        let numbers = part.ranges(info.levels).into_iter().map(|range| (image.resource(), range, on_image));
        let uses: SmallVec<[PartUse<'_>; 2]> =
            std::iter::once((buffer.resource(), offset..offset + bytes, on_buffer)).chain(numbers).collect();
        self.recording.add(&self.context, CommandKind::Copy, &uses, true, |number| Command::CopyTexels {
            direction,
            buffer: (number(buffer.resource()), offset),
            image: number(image.resource()),
            area,
            size,
        })
    }

    /// Records a clear of levels and layers of an image to one colour: see [`Context::clear_image`].
    ///
    /// ```
    /// use spelter::{ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// let commands = context.record(|commands| commands.clear_image(&image, ClearColor::Uint([7, 0, 0, 0])))?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [7, 7]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn clear_image<'a>(&mut self, what: impl Into<ImagePart<'a>>, color: ClearColor) -> Result<(), Error> {
        let ImagePart { image, part } = what.into();
        self.context.check_part("clear", image, &part)?;
        check_color(image, image.resource().object_for_command("clear")?.image()?, color)?;
        let ranges = part.ranges(image.info().levels).into_iter();
        let uses: SmallVec<[_; 2]> = ranges.map(|range| (image.resource(), range, Access::Write)).collect();
        self.recording.add(&self.context, CommandKind::Clear, &uses, true, |number| Command::ClearImage {
            to: number(image.resource()),
            color,
            range: part.range(),
        })
    }

    /// Names the commands that the closure records, in timelines and in the reasons of a lost device. Groups nest:
    /// names are separated by `/`.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(8)?;
    /// let commands = context.record(|commands| {
    ///     commands.group("frame", |commands| {
    ///         commands.group("clear", |commands| commands.fill(&buffer, 9)) // `frame/clear`
    ///     })
    /// })?;
    /// context.submit(&commands)?;
    /// assert_eq!(context.read::<u32>(&buffer)?, [9, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn group<T>(&mut self, name: &str, record: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        let outer = self.recording.group.clone();
        self.recording.group = Some(within(outer.as_deref(), name));
        let result = record(self);
        self.recording.group = outer;
        result
    }

    /// Records a timestamp: the time when all commands before it are done. Each submission has its own, which its fence
    /// returns ([`Fence::timestamps`](crate::Fence::timestamps)).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let buffer = context.buffer_zeroed(1 << 16)?;
    /// let commands = context.record(|commands| {
    ///     commands.timestamp("begin");
    ///     commands.fill(&buffer, 9)?;
    ///     commands.timestamp("end");
    ///     Ok(())
    /// })?;
    /// let times = context.submit(&commands)?.timestamps()?;
    /// assert_eq!((&*times[0].label, &*times[1].label), ("begin", "end"));
    /// assert!(times[0].nanoseconds <= times[1].nanoseconds);
    /// # Ok(())
    /// # }
    /// ```
    pub fn timestamp(&mut self, label: &str) {
        self.recording.add_step(Step::Timestamp(label.into()));
    }

    /// Executes another command buffer at this point: the commands that it has when this one is submitted.
    ///
    /// [`Error::Resource`] if it is of another device, if it executes the command buffer that is being recorded, or if
    /// it is nested too deep.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let (a, b) = (context.buffer_zeroed(4)?, context.buffer_zeroed(4)?);
    /// let fill = context.record(|commands| commands.fill(&a, 3))?;
    /// let both = context.record(|commands| {
    ///     commands.execute(&fill)?;
    ///     commands.copy(&a, 0, &b, 0, 4)
    /// })?;
    /// context.submit(&both)?;
    /// assert_eq!(context.read::<u32>(&b)?, [3]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn execute(&mut self, commands: &CommandBuffer) -> Result<(), Error> {
        commands.check_device("execute", self.context.share())?;
        if let Some(target) = &self.recording.target {
            commands.check_no_cycle(target)?;
        }
        let depth = commands.contents().depth + 1;
        if depth > MAX_DEPTH {
            return Err(Error::resource(format!("execute: {commands:?} is nested {depth} deep"), rule::NESTED));
        }
        self.recording.parts.depth = self.recording.parts.depth.max(depth);
        self.recording.add_step(Step::Execute(commands.clone()));
        Ok(())
    }

    pub(super) fn finish(self) -> Parts {
        self.recording.finish()
    }
}
