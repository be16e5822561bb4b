//! A dispatch: which buffers, which push constants, how many workgroups.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use bytemuck::NoUninit;

use crate::batch::Batch;
use crate::context::Context;
use crate::descriptors::Bound;
use crate::error::Error;
use crate::object::{Access, ResourceObject};
use crate::program::{BindingInfo, Program};
use crate::resource::Buffer;

/// A dispatch being put together: see [`Context::dispatch`].
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
    bound: BTreeMap<(u32, u32, u32), (Buffer, Range<u64>)>,
    push: Vec<u8>,
}

impl<'a> Dispatch<'a> {
    pub(crate) fn new(context: &'a Context, program: &'a Program) -> Self {
        Self { context, program, bound: BTreeMap::new(), push: Vec::new() }
    }

    /// Binds a whole buffer. Whether as storage or as uniform follows from the program.
    pub fn bind(self, group: u32, binding: u32, buffer: &Buffer) -> Self {
        self.bind_element(group, binding, 0, buffer, 0..buffer.size())
    }

    /// Binds the bytes `range` of a buffer. It holds at least one byte and starts at a multiple of 16.
    pub fn bind_range(self, group: u32, binding: u32, buffer: &Buffer, range: Range<u64>) -> Self {
        self.bind_element(group, binding, 0, buffer, range)
    }

    /// Binds the bytes `range` of a buffer to one element of an array of buffers.
    pub fn bind_element(mut self, group: u32, binding: u32, element: u32, buffer: &Buffer, range: Range<u64>) -> Self {
        self.bound.insert((group, binding, element), (buffer.clone(), range));
        self
    }

    /// Appends push constants. All together must be as many bytes as the program declares; bytes above that, up to the
    /// next multiple of 16, are padding and are dropped. A struct takes the derives of [`bytemuck`]:
    ///
    /// ```
    /// use spelter::bytemuck::{self, NoUninit};
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

    /// Records the dispatch, with enough workgroups for so many invocations in each direction. The last workgroups may
    /// have more: programs check.
    pub fn invocations(self, invocations: [u32; 3]) -> Result<(), Error> {
        let size = self.program.workgroup_size();
        self.groups(std::array::from_fn(|i| invocations[i].div_ceil(size[i].max(1))))
    }

    /// Records the dispatch of so many workgroups in each direction; with 0 nothing runs.
    ///
    /// [`Error::Binding`] if a buffer is missing, from another context or not in the program, [`Error::Push`] if there
    /// are too few or too many push constants, [`Error::Misuse`] for what the driver refuses: too many workgroups, say.
    /// The kernel runs later, so what goes wrong then, [`Error::DeviceLost`] for one, may come from a later call.
    pub fn groups(self, groups: [u32; 3]) -> Result<(), Error> {
        let push = self.checked_push()?;
        let bound = self.checked_bindings()?;
        let uses: Vec<_> = bound.iter().flatten().map(|(bound, access)| (&bound.object, *access)).collect();
        let mut timeline = self.context.timeline().lock();
        let batch = timeline.batch()?;
        self.bind_state(batch, &bound, &push)?;
        batch.record(&merged(&uses), |commands| commands.dispatch(groups[0], groups[1], groups[2]))
    }

    /// Pipeline, descriptor sets and push constants, ready for the dispatch.
    fn bind_state(&self, batch: &mut Batch, sets: &[Vec<(Bound, Access)>], push: &[u8]) -> Result<(), Error> {
        let pipeline = self.program.pipeline();
        batch.commands().bind_pipeline(pipeline)?;
        for (group, bound) in (0u32..).zip(sets) {
            if !bound.is_empty() {
                let bound: Vec<_> = bound.iter().map(|(bound, _)| bound.clone()).collect();
                let set = batch.sets.set(self.context.device(), self.program, group, &bound)?;
                batch.commands().bind_descriptor_sets(pipeline.layout(), group, &[&set], &[])?;
            }
        }
        if !push.is_empty() {
            batch.commands().push_constants(pipeline.layout(), 0, push)?;
        }
        Ok(())
    }

    /// The push constants, cut to what the program declares: a struct may end with padding, to an alignment of 16 at most.
    fn checked_push(&self) -> Result<Vec<u8>, Error> {
        let (given, wanted) = (self.push.len(), self.program.push_bytes() as usize);
        if given < wanted || given > wanted.next_multiple_of(16) {
            let entry = self.program.entry();
            return Err(Error::Push(format!("{entry:?} declares {wanted} bytes, {given} were given")));
        }
        let mut push = self.push.clone();
        push.resize(wanted.next_multiple_of(4), 0);
        Ok(push)
    }

    /// For each set the buffers of its descriptors in order, and how they are used.
    fn checked_bindings(&self) -> Result<Vec<Vec<(Bound, Access)>>, Error> {
        if !self.program.is_of(self.context.id()) {
            return Err(Error::EntryPoint(format!("{:?} is a program of another context", self.program.entry())));
        }
        for &(group, binding, element) in self.bound.keys() {
            self.check_known(group, binding, element)?;
        }
        let sets = self.program.sets().iter();
        sets.map(|set| set.bindings.iter().flat_map(|info| self.bound_of(info)).collect()).collect()
    }

    fn bound_of(&self, info: &BindingInfo) -> impl Iterator<Item = Result<(Bound, Access), Error>> {
        let info = *info;
        (0..info.count).map(move |element| {
            let access = if info.read_only { Access::Read } else { Access::Write };
            Ok((self.bound_element(&info, element)?, access))
        })
    }

    fn bound_element(&self, info: &BindingInfo, element: u32) -> Result<Bound, Error> {
        let error = |problem: &str| Err(Error::binding(info.group, info.binding, problem));
        let Some((buffer, range)) = self.bound.get(&(info.group, info.binding, element)) else {
            return match element {
                0 => error("no buffer is bound to it"),
                _ => error(&format!("no buffer is bound to its element {element}")),
            };
        };
        if !buffer.is_of(self.context.id()) {
            return error("the buffer is of another context");
        }
        let size = buffer.size();
        if range.start >= range.end || range.end > size {
            let rule = if range.end > size { "range-00342" } else { "range-00341" };
            let Range { start, end } = range;
            let vuid = format!("VUID-VkDescriptorBufferInfo-{rule}");
            return error(&format!("bytes {start}..{end} of a buffer of {size} bytes ({vuid})"));
        }
        Ok(Bound { object: Arc::clone(buffer.object()), offset: range.start, bytes: range.end - range.start })
    }

    fn check_known(&self, group: u32, binding: u32, element: u32) -> Result<(), Error> {
        let bindings = self.program.bindings();
        let Some(info) = bindings.iter().find(|b| (b.group, b.binding) == (group, binding)) else {
            return Err(Error::binding(group, binding, self.unknown()));
        };
        if element >= info.count {
            let problem = format!("it has {} elements, there is no element {element}", info.count);
            return Err(Error::binding(group, binding, problem));
        }
        Ok(())
    }

    fn unknown(&self) -> String {
        let list: Vec<_> = self.program.bindings().iter().map(|b| format!("{}.{}", b.group, b.binding)).collect();
        match list.as_slice() {
            [] => format!("{:?} uses no bindings", self.program.entry()),
            _ => format!("{:?} does not use it; it uses {}", self.program.entry(), list.join(", ")),
        }
    }
}

/// Each object once; a write covers reads. Parts of one buffer count as the whole.
fn merged<'a>(uses: &[(&'a Arc<ResourceObject>, Access)]) -> Vec<(&'a Arc<ResourceObject>, Access)> {
    let mut by_id: BTreeMap<u64, (&Arc<ResourceObject>, Access)> = BTreeMap::new();
    for &(object, access) in uses {
        let entry = by_id.entry(object.id()).or_insert((object, access));
        if access.writes() {
            entry.1 = access;
        }
    }
    by_id.into_values().collect()
}
