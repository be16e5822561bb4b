//! A dispatch: program, push constants, number of workgroups, and the resources that are bound for this dispatch only.

mod recorded;
mod sets;

pub(crate) use recorded::{Counts, INDIRECT_BYTES, RecordsDispatches};

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::NoUninit;
use smallvec::SmallVec;

use crate::barrier::{Fresh, Use};
use crate::batch::Refusal;
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::context::Context;
use crate::context_state::ContextState;
use crate::descriptors::{check_mapped, checked, resolve, used, wrong_kind};
use crate::error::{Error, rule};
use crate::ids::{Access, CommandKind, Slot, SlotKind};
use crate::program::{BindingInfo, Program};
use crate::set::{DescriptorSet, GroupSets, Looked};
use crate::share::Share;
use crate::slot_state::SlotState;
use crate::transfer::check_inside;
use sets::{Resolved, SetOfGroup};

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
        let (bound, sets, push) = (BTreeMap::new(), GroupSets::default(), SmallVec::new());
        Self { context, program, bound, sets, push, recording: None }
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
    ///   or format are not those that the program declares ([`BindingInfo::image`](crate::BindingInfo)).
    /// - [`Error::Push`] if there are too few or too many push constants.
    /// - [`Error::Misuse`] for other rules that the driver checks, such as the number of workgroups.
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
    ///     "binding 0.0: no buffer is bound to it (VUID-vkCmdDispatch-None-08114)"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn groups(self, groups: [u32; 3]) -> Result<(), Error> {
        self.run(Counts::Direct(groups))
    }

    /// Records it where it belongs.
    fn run(mut self, counts: Counts<'_>) -> Result<(), Error> {
        self.check_push()?;
        if !self.program.is_of(self.context.share()) {
            let problem = format!("dispatch: {:?} is a program of another context's device", self.program.entry());
            return Err(Error::resource(problem, rule::DEVICE));
        }
        self.sets.iter().try_for_each(|(group, set)| self.check_set(*group, set))?;
        self.bound.iter().try_for_each(|(slot, own)| self.check_known(*slot, own))?;
        if let Counts::Direct(groups) = counts {
            spelter_driver::CommandBuffer::check_groups(groups)?;
        }
        if let Some(recording) = self.recording.take() {
            return recording.dispatch(&self, counts);
        }
        let mut looked = None; // dropped when no lock is held
        match counts {
            Counts::Direct(groups) if self.bound.is_empty() && !counts.run_nothing() => {
                let (program, push, sets) = (self.program, &self.push, &self.sets);
                self.context.inner().record(|state| state.dispatch(program, push, groups, sets, &mut looked))
            }
            _ => {
                self.context.inner().record(|state| self.dispatch_bound(state, counts, looked.get_or_insert_default()))
            }
        }
    }

    /// Checks the size of the push constants and cuts them to the declared size.
    fn check_push(&mut self) -> Result<(), Error> {
        let (given, wanted) = (self.push.len(), self.program.push_bytes() as usize);
        if given != wanted && !paddings(wanted).any(|padded| given == padded) {
            let entry = self.program.entry();
            let declared = if wanted == 0 { "none".to_owned() } else { format!("bytes 0..{wanted}") };
            let (missing, rule) = match given < wanted {
                true => (format!(", bytes {given}..{wanted} are missing"), rule::PUSH_SET),
                false => (String::new(), rule::PUSH_DECLARED),
            };
            return Err(Error::Push(format!(
                "{entry:?} declares {declared}, {given} bytes were given{missing} ({rule})"
            )));
        }
        self.push.resize(wanted.next_multiple_of(4), 0);
        Ok(())
    }

    /// Records the dispatch with its own bindings, and for the others the groups' sets and the context's slots.
    fn dispatch_bound(&self, state: &mut ContextState, counts: Counts<'_>, looked: &mut Looked) -> Result<(), Refusal> {
        let program = self.program;
        let share = Arc::clone(&state.share);
        let mut sets = SmallVec::<[SmallVec<[SlotState; 4]>; 4]>::new();
        let mut accesses = SmallVec::<[Access; 8]>::new();
        let mut resolved = SmallVec::<[(u32, Resolved); 1]>::new();
        let mut of_groups = SmallVec::<[Option<DescriptorSet>; 4]>::new();
        if !self.sets.is_empty() || !state.group_sets.is_empty() {
            of_groups.extend(self.sets.of_program(&state.group_sets, program).into_iter().map(|set| set.cloned()));
            looked.restart();
        }
        for (group, set) in (0u32..).zip(program.sets()) {
            let from = of_groups.get(group as usize).and_then(Option::as_ref);
            let from = from.map(|from| SetOfGroup::look(from, (program, group, set), looked)).transpose()?;
            let mut found = SmallVec::new();
            let slots = set.bindings.iter().flat_map(|info| info.slots().map(move |slot| (info, slot)));
            for (at, (info, slot)) in slots.enumerate() {
                found.push(self.found(state, *info, slot, from.as_ref().map(|from| (from, at)))?);
                accesses.push(info.access());
            }
            sets.push(found);
            let is_whole = || !self.bound.keys().any(|slot| slot.group == group);
            if let Some(from) = from.filter(|_| !counts.run_nothing() && is_whole()) {
                let serial = state.timeline.batch()?.serial();
                resolved.push((group, from.resolve(set, (&state.clock, serial))?));
            }
        }
        if counts.run_nothing() {
            return Ok(()); // checked; a dispatch that runs nothing uses nothing
        }
        let indirect = match counts {
            Counts::Direct(_) => None,
            Counts::Indirect(buffer, offset) => {
                let (resource, range) = (buffer.resource(), offset..offset + INDIRECT_BYTES);
                let object = resource.object_for_command("dispatch")?;
                check_inside("dispatch", resource, &object, &range)?;
                Some((resource, object, offset))
            }
        };
        let counted = indirect.as_ref().map(|(resource, object, offset)| {
            Use::of(resource, object, *offset..offset + INDIRECT_BYTES, Access::Read)
        });
        let uses = || sets.iter().flatten().zip(accesses.iter().copied()).flat_map(used).chain(counted.clone());
        let batch = state.timeline.batch()?;
        let entries = batch.enter(&state.clock, uses())?;
        let (fresh, set_cache) = (entries.fresh, &mut state.sets);
        let mut record = || -> Result<(), Error> {
            batch.bind_program(program, &self.push)?;
            for (group, (layout, found)) in (0u32..).zip(program.sets().iter().zip(&sets)) {
                match resolved.iter().find(|(at, _)| *at == group) {
                    _ if found.is_empty() => {}
                    Some((_, (_, number))) if batch.has_set(group, *number) => {}
                    Some((_, (set, number))) => batch.bind_set(program, group, set, *number)?,
                    None => {
                        let set = resolve(layout, found, set_cache, &share)?;
                        if !batch.has_set(group, set.number) {
                            batch.bind_set(program, group, &set.set, set.number)?;
                        }
                    }
                }
            }
            batch.order(CommandKind::Dispatch, uses().map(Use::touch), fresh)?;
            match (counts, &indirect) {
                (Counts::Direct(groups), _) => batch.dispatch(groups, None),
                (_, Some((_, object, offset))) => batch.dispatch_indirect(object.buffer()?, *offset),
                (_, None) => Ok(()),
            }
        };
        Ok(record().inspect_err(|_| entries.take_back())?)
    }

    /// The checked state of a descriptor: its own binding, or that of the group's set, or the context's slot. `from` is
    /// the set, with the number of the descriptor in the group.
    fn found(
        &self,
        state: &mut ContextState,
        info: BindingInfo,
        slot: Slot,
        from: Option<(&SetOfGroup<'_>, usize)>,
    ) -> Result<SlotState, Error> {
        let bound = match (self.bound.get(&slot), from) {
            (Some(own), _) => Some(own.bound(&state.share, slot, (self.program, info))?),
            (None, Some((from, at))) => return from.found(self.program, info, slot, at),
            (None, None) => {
                let id = state.bindings.id(slot);
                state.bindings.slot_state(id).cloned()
            }
        };
        checked(self.program, slot, info, bound.as_ref())?;
        check_mapped(slot, bound.as_ref())?;
        bound.ok_or_else(|| Error::slot(slot, "nothing is bound to it"))
    }

    fn check_known(&self, slot: Slot, own: &DispatchBinding) -> Result<(), Error> {
        let Slot { group, binding, element } = slot;
        let bindings = self.program.bindings();
        let problem = match bindings.iter().find(|b| (b.group, b.binding) == (group, binding)) {
            None => self.unknown(),
            Some(info) if element >= info.count => {
                format!("it has {} elements, there is no element {element}", info.count)
            }
            Some(_) => return Ok(()),
        };
        let problem = format!("{}: {problem}", own.described());
        Err(Error::slot_rule(Slot { element: 0, ..slot }, problem, rule::DECLARED))
    }

    fn unknown(&self) -> String {
        let list: Vec<_> = self.program.bindings().iter().map(|b| format!("{}.{}", b.group, b.binding)).collect();
        match list.as_slice() {
            [] => format!("{:?} uses no bindings", self.program.entry()),
            _ => format!("{:?} does not use it; it uses {}", self.program.entry(), list.join(", ")),
        }
    }
}

/// A binding for one dispatch.
#[derive(Debug)]
enum DispatchBinding {
    /// Bytes of a buffer, or all of them, as the kind that the program declares.
    Bytes(Buffer, Option<Range<u64>>),
    /// Of the given kind.
    Bind(Bind),
}

impl DispatchBinding {
    /// The resource, for messages.
    fn described(&self) -> String {
        match self {
            Self::Bytes(buffer, _) => buffer.resource().described(),
            Self::Bind(bind) => bind.described(),
        }
    }

    fn bound(
        &self,
        share: &Arc<Share>,
        slot: Slot,
        (program, info): (&Program, BindingInfo),
    ) -> Result<SlotState, Error> {
        match self {
            Self::Bytes(..) => SlotState::new(share, slot, &self.bind(slot, (program, info))?),
            Self::Bind(bind) => SlotState::new(share, slot, bind),
        }
    }

    /// What is bound, as the kind that the program declares.
    fn bind(&self, slot: Slot, (program, info): (&Program, BindingInfo)) -> Result<Bind, Error> {
        match self {
            Self::Bytes(buffer, range) => {
                let slice = range.as_ref().map_or_else(|| buffer.into(), |range| buffer.slice(range.clone()));
                match info.slot_kind() {
                    SlotKind::StorageBuffer => Ok(Bind::storage(slice)),
                    SlotKind::UniformBuffer => Ok(Bind::uniform(slice)),
                    _ => Err(wrong_kind(slot, info, program, &self.described(), "buffer")),
                }
            }
            Self::Bind(bind) => Ok(bind.clone()),
        }
    }
}

impl ContextState {
    /// Records a dispatch with the resources in the slots, and in the sets of the groups that have one: `own`, or the
    /// context's. It may be called again for the same command: sets and slots are looked at each time.
    pub(crate) fn dispatch(
        &mut self,
        program: &Program,
        push: &[u8],
        groups: [u32; 3],
        own: &GroupSets,
        looked: &mut Option<Looked>,
    ) -> Result<(), Refusal> {
        if own.is_empty() && self.group_sets.is_empty() {
            self.dispatch_slots(program, push, groups)
        } else {
            self.dispatch_sets((program, push, groups), own, looked.get_or_insert_default())
        }
    }

    /// Records a dispatch with the resources in the slots.
    fn dispatch_slots(&mut self, program: &Program, push: &[u8], groups: [u32; 3]) -> Result<(), Refusal> {
        let Self { share, clock, timeline, bindings, sets, programs, journal_seen, .. } = self;
        let batch = timeline.batch()?;
        let state = programs.of(program, bindings, sets);
        if state.is_current(bindings, batch.serial())
            && batch.repeats(state.number)
            && batch.has_program(program, push)
            && !share.has_mappings()
        {
            // The same dispatch again: no object, set or hazard has to be looked at.
            if state.writes {
                batch.barrier(CommandKind::Dispatch, || state.touches().find(|touch| touch.2.writes()))?;
            }
            return Ok(batch.dispatch(groups, Some(state.number))?);
        }
        state.update(program, bindings, share)?;
        // Ranges that kernels can write through slots are valid since they were bound, so no use is fresh, and there is
        // nothing to take back if the command is refused.
        let _ = batch.enter(clock, state.new_uses(bindings, batch.serial()))?;
        if share.journal().count() != *journal_seen {
            // An object that the batch entered earlier may have been replaced before the last one was entered.
            return Err(Refusal::Again);
        }
        state.entered(batch.serial());
        batch.bind_program(program, push)?;
        for (group, layout) in program.sets().iter().enumerate() {
            let bound = state.set_number(group).is_some_and(|number| batch.has_set(group as u32, number));
            if state.uses_group(group) && !bound {
                let set = state.set((group, layout), bindings, sets, share)?;
                batch.bind_set(program, group as u32, &set.set, set.number)?;
            }
        }
        let barrier = batch.order(CommandKind::Dispatch, state.touches(), Fresh::default())?;
        let alone = barrier || !state.writes;
        Ok(batch.dispatch(groups, alone.then_some(state.number))?)
    }
}

/// Sizes of structs whose last member ends after `bytes` bytes, for the alignments of scalars, two-component vectors,
/// three- and four-component vectors, and such vectors of doubles.
fn paddings(bytes: usize) -> impl Iterator<Item = usize> {
    let alignments = [(4, 1), (8, 8), (16, 12), (32, 24)];
    alignments
        .into_iter()
        .filter(move |&(_, least)| bytes >= least)
        .map(move |(alignment, _)| bytes.next_multiple_of(alignment))
}
