//! A dispatch: program, push constants, number of workgroups, and the resources that are bound for this dispatch only.

mod all_errors;
mod bound;
mod push;
mod recorded;
mod sets;
mod slots;

pub(crate) use recorded::{Counts, INDIRECT_BYTES, RecordsDispatches};

use std::collections::BTreeMap;
use std::ops::Range;

use bytemuck::NoUninit;
use smallvec::SmallVec;

use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::error::{Error, rule};
use crate::ids::Slot;
use crate::layout::{ElementType, Layout};
use crate::program::Program;
use crate::set::GroupSets;
use bound::DispatchBinding;

/// Builds a dispatch: see [`Context::dispatch`].
///
/// Resources that are bound here are bound for this dispatch only. All other bindings of the program are taken from
/// the set of their group, of the dispatch ([`Dispatch::set`]) or of the context ([`Context::bind_set`]), and from the
/// slots of the context if the group has no set ([`Context::bind`]).
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "var<immediate> step: u32;
///      @group(0) @binding(0) var<storage, read_write> out: array<u32>;
///      @compute @workgroup_size(64)
///      fn main(@builtin(global_invocation_id) id: vec3<u32>) {
///          if id.x < arrayLength(&out) { out[id.x] = id.x * step; }
///      }",
/// )?;
/// let out = context.buffer_zeroed(100 * 4)?;
/// context.dispatch(&program).bind(0, 0, &out).push(&3u32).invocations([100, 1, 1])?;
/// assert_eq!(context.read::<u32>(&out)?[99], 297);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing runs until `groups` or `invocations`"]
pub struct Dispatch<'a> {
    context: &'a Context,
    program: &'a Program,
    bound: BTreeMap<Slot, DispatchBinding>,
    sets: GroupSets,
    push: SmallVec<[u8; 64]>,
    /// The types of push constants, by their first byte.
    push_types: SmallVec<[(u64, ElementType); 1]>,
    label: Option<&'a str>,
    /// The command buffer that gets the dispatch, if it is not for the context.
    recording: Option<&'a mut dyn RecordsDispatches>,
}

impl Context {
    /// A builder for a dispatch of a program; [`Dispatch::groups`] or [`Dispatch::invocations`] records it.
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
    /// context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [2, 4, 6, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dispatch<'a>(&'a self, program: &'a Program) -> Dispatch<'a> {
        Dispatch::new(self, program)
    }
}

impl<'a> Dispatch<'a> {
    fn new(context: &'a Context, program: &'a Program) -> Self {
        let (bound, sets) = (BTreeMap::new(), GroupSets::default());
        let (push, push_types) = (SmallVec::new(), SmallVec::new());
        Self { context, program, bound, sets, push, push_types, label: None, recording: None }
    }

    /// Binds a whole buffer, as storage or as uniform buffer: whichever the program declares.
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
    /// context.dispatch(&program).bind(0, 0, &data).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [2, 4, 6, 8]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind(self, group: u32, binding: u32, buffer: &Buffer) -> Self {
        self.bound_bytes(Slot::from((group, binding)), buffer, None)
    }

    /// Binds the bytes `range` of a buffer. It holds at least one byte and starts at a multiple of 16.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 8])?;
    /// context.dispatch(&program).bind_range(0, 0, &data, 16..32).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [1, 1, 1, 1, 2, 2, 2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind_range(self, group: u32, binding: u32, buffer: &Buffer, range: Range<u64>) -> Self {
        self.bind_element(group, binding, 0, buffer, range)
    }

    /// Binds the bytes `range` of a buffer to one element of an array of buffers.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 4])?;
    /// // A binding that is not an array has the element 0 only.
    /// context.dispatch(&program).bind_element(0, 0, 0, &data, 0..16).groups([1, 1, 1])?;
    /// let error = context.dispatch(&program).bind_element(0, 0, 3, &data, 0..16).groups([1, 1, 1]).unwrap_err();
    /// assert!(error.to_string().contains("it has 1 elements, there is no element 3"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind_element(self, group: u32, binding: u32, element: u32, buffer: &Buffer, range: Range<u64>) -> Self {
        self.bound_bytes(Slot { group, binding, element }, buffer, Some(range))
    }

    fn bound_bytes(mut self, slot: Slot, buffer: &Buffer, range: Option<Range<u64>>) -> Self {
        self.bound.insert(slot, DispatchBinding::Bytes(buffer.clone(), range));
        self
    }

    /// Binds anything that [`Context::bind`] accepts: images, texel buffers, samplers.
    ///
    /// ```
    /// use spelter::{Bind, ClearColor, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "@group(0) @binding(0) var image: texture_storage_2d<r32uint, write>;
    ///      @compute @workgroup_size(1) fn main() { textureStore(image, vec2(1u, 0u), vec4(9u)); }",
    /// )?;
    /// let image = context.image(vk::Format::R32_UINT, [2, 1, 1]).build()?;
    /// context.clear_image(&image, ClearColor::Uint([0; 4]))?;
    /// context.dispatch(&program).with((0, 0), Bind::storage_image(&image)).groups([1, 1, 1])?;
    /// assert_eq!(context.read_image::<u32>(&image, 0, 0)?, [0, 9]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with(mut self, slot: impl Into<Slot>, what: Bind) -> Self {
        self.bound.insert(slot.into(), DispatchBinding::Bind(what));
        self
    }

    /// Appends push constants. All together must have the size that the program declares; the trailing padding of a
    /// struct may follow and is dropped. A struct needs the derives of [`bytemuck`]:
    ///
    /// ```
    /// use spelter::bytemuck::NoUninit;
    ///
    /// #[derive(Clone, Copy, NoUninit)]
    /// #[bytemuck(crate = "spelter::bytemuck")]
    /// #[repr(C)]
    /// struct Push {
    ///     factor: f32,
    ///     shift: f32,
    /// }
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "struct Push { factor: f32, shift: f32 }
    /// #      var<immediate> push: Push;
    /// #      @group(0) @binding(0) var<storage, read_write> out: array<f32>;
    /// #      @compute @workgroup_size(1) fn main() { out[0] = out[0] * push.factor + push.shift; }",
    /// # )?;
    /// # let out = context.buffer_from(&[1.5f32])?;
    /// context.dispatch(&program).bind(0, 0, &out).push(&Push { factor: 2.0, shift: 0.5 }).groups([1, 1, 1])?;
    /// # assert_eq!(context.read::<f32>(&out)?, [3.5]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn push<T: NoUninit>(mut self, value: &T) -> Self {
        self.push.extend_from_slice(bytemuck::bytes_of(value));
        self
    }

    /// As [`Dispatch::push`], of a type whose layout is known: it is an error of the dispatch if the program does not
    /// declare each number of it at that place, with that type, as by [`Block::check`](crate::Block::check). The types
    /// are compared once for each program.
    ///
    /// ```
    /// use spelter::bytemuck::NoUninit;
    ///
    /// spelter::layout! {
    ///     #[derive(Clone, Copy, NoUninit)]
    ///     #[bytemuck(crate = "spelter::bytemuck")]
    ///     #[repr(C)]
    ///     struct Push {
    ///         size: u32,
    ///         move_by: [f32; 3],
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let program = context.program_wgsl(
    ///     "struct Push { size: u32, move_by: vec3f }
    ///      var<immediate> push: Push;
    ///      @group(0) @binding(0) var<storage, read_write> at: vec3f;
    ///      @compute @workgroup_size(1) fn main() { at += push.move_by * f32(push.size); }",
    /// )?;
    /// let push = Push { size: 2, move_by: [1.0, 2.0, 3.0] };
    /// let at = context.buffer_zeroed(16)?;
    /// let error = context.dispatch(&program).bind(0, 0, &at).push_typed(&push).groups([1, 1, 1]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "push constants: the shader has `move_by` (vec3<f32>) at byte 16, `Push` has `move_by` at byte 4 \
    ///      (rule: a Rust type for a block has each number where the shader has it)"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn push_typed<T: NoUninit + Layout>(mut self, value: &T) -> Self {
        self.push_types.push((self.push.len() as u64, ElementType::of::<T>()));
        self.push(value)
    }

    /// Names this dispatch in its errors, in timelines and in the reasons of a loss; in timelines the name of the
    /// program follows. Errors of a dispatch without a label have that of its program. In a command buffer the names of
    /// the groups precede it.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// assert_eq!(
    ///     context.dispatch(&program).label("second pass").groups([1, 1, 1]).unwrap_err().to_string(),
    ///     "binding 0.0 (data): dispatch `second pass`: no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: &'a str) -> Self {
        self.label = Some(label);
        self
    }

    /// Records the dispatch, with enough workgroups for this number of invocations in each direction. The last
    /// workgroups may have more invocations, so programs must check their index.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 6])?;
    /// // Two workgroups of four. The last two invocations write out of bounds: that is dropped.
    /// context.dispatch(&program).bind(0, 0, &data).invocations([6, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [2; 6]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn invocations(self, invocations: [u32; 3]) -> Result<(), Error> {
        let size = self.program.workgroup_size();
        self.groups(std::array::from_fn(|i| invocations[i].div_ceil(size[i].max(1))))
    }

    /// Records the dispatch of this number of workgroups in each direction. If one is 0, nothing runs: the dispatch is
    /// only checked, and uses no resource.
    ///
    /// - [`Error::Binding`] if a buffer or image is missing, from another device, destroyed, mapped, of another kind
    ///   than the program declares, smaller than the fixed part of its block
    ///   ([`BindingInfo::min_bytes`](crate::BindingInfo)), not used by the program, or if its dimensions, numeric type
    ///   or format are not those that the program declares ([`BindingInfo::image`](crate::BindingInfo)), or the values
    ///   of a typed buffer ([`Buffer::typed`](crate::Buffer::typed)) have another layout.
    /// - [`Error::Push`] if there are too few or too many push constants, or typed ones have another layout.
    /// - [`Error::Misuse`] for other rules that the driver checks, such as the number of workgroups.
    /// - [`Error::Several`] with all of these, if there are several.
    ///
    /// The kernel runs later, so a later call may report its failure, such as [`Error::DeviceLost`]. On a lost device
    /// commands are still recorded, as in Vulkan; each call that submits them or reads results fails.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer_from(&[1u32; 8])?;
    /// context.dispatch(&program).bind(0, 0, &data).groups([2, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [2; 8]);
    /// assert_eq!(
    ///     context.dispatch(&program).groups([1, 1, 1]).unwrap_err().to_string(),
    ///     "binding 0.0 (data): no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn groups(mut self, groups: [u32; 3]) -> Result<(), Error> {
        self.run(Counts::Direct(groups))
    }

    /// Records it, or returns all its errors.
    fn run(&mut self, counts: Counts<'_>) -> Result<(), Error> {
        self.record(counts).map_err(|error| self.refused(counts, error))
    }

    #[cold]
    fn refused(&mut self, counts: Counts<'_>, error: Error) -> Error {
        let name_of = |group, binding| {
            let mut infos = self.program.bindings().iter();
            let info = infos.find(|info| (info.group, info.binding) == (group, binding));
            info.map(|info| info.name.clone()).unwrap_or_default()
        };
        let error = self.all_errors(counts, error).with_names(&name_of);
        match (self.label, self.program.label()) {
            (Some(label), _) => error.within(|| format!("dispatch `{label}`")),
            (None, Some(label)) => error.within(|| format!("program `{label}`")),
            (None, None) => error,
        }
    }

    fn check_program(&self) -> Result<(), Error> {
        if self.program.is_of(self.context.share()) {
            return Ok(());
        }
        let problem = format!("dispatch: {} is a program of another context's device", self.program);
        Err(Error::resource(problem, rule::DEVICE))
    }

    /// Records it where it belongs.
    fn record(&mut self, counts: Counts<'_>) -> Result<(), Error> {
        self.check_push()?;
        self.check_program()?;
        self.sets.iter().try_for_each(|(group, set)| self.check_set(*group, set))?;
        self.bound.iter().try_for_each(|(slot, own)| self.check_known(*slot, own))?;
        counts.check(self.context)?;
        if let Some(recording) = self.recording.take() {
            let recorded = recording.dispatch(self, counts);
            self.recording = Some(recording);
            return recorded;
        }
        let mut looked = None; // dropped when no lock is held
        match counts {
            Counts::Direct(groups) if self.bound.is_empty() && self.label.is_none() && !counts.run_nothing() => {
                let (program, push, sets) = (self.program, &self.push, &self.sets);
                self.context.inner().record(|state| state.dispatch(program, push, groups, sets, &mut looked))
            }
            _ => {
                self.context.inner().record(|state| self.dispatch_bound(state, counts, looked.get_or_insert_default()))
            }
        }
    }
}
