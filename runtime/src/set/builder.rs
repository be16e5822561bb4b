//! Building of descriptor sets: their layouts, and what they name.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::{DescriptorSet, Write, described};
use crate::bind::Bind;
use crate::buffer::Buffer;
use crate::error::{Error, rule};
use crate::ids::SlotKind;
use crate::program::{BindingKind, Declared, Program};
use crate::share::Share;

/// A binding of a set with a layout of its own: see [`Context::descriptor_set_of`](crate::Context::descriptor_set_of).
///
/// ```
/// use spelter::{BindingKind, SetBinding};
///
/// let textures = SetBinding::new(3, BindingKind::SampledImage).array(8);
/// assert_eq!((textures.binding, textures.kind, textures.count), (3, BindingKind::SampledImage, 8));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetBinding {
    /// The binding's number.
    pub binding: u32,
    /// The kind of its descriptors.
    pub kind: BindingKind,
    /// The number of elements of an array of descriptors; 1 for a single one.
    pub count: u32,
}

impl SetBinding {
    /// A single descriptor.
    ///
    /// ```
    /// use spelter::{BindingKind, SetBinding};
    ///
    /// assert_eq!(SetBinding::new(0, BindingKind::Sampler).count, 1);
    /// ```
    pub fn new(binding: u32, kind: BindingKind) -> Self {
        Self { binding, kind, count: 1 }
    }

    /// The same as an array of `count` descriptors.
    ///
    /// ```
    /// use spelter::{BindingKind, SetBinding};
    ///
    /// assert_eq!(SetBinding::new(0, BindingKind::StorageBuffer).array(4).count, 4);
    /// ```
    #[must_use]
    pub fn array(self, count: u32) -> Self {
        Self { count, ..self }
    }
}

/// Builds a [`DescriptorSet`]: see [`Context::descriptor_set`](crate::Context::descriptor_set).
///
/// ```
/// use spelter::{Bind, SamplerInfo, vk};
///
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let program = context.program_wgsl(
///     "@group(0) @binding(0) var image: texture_2d<f32>;
///      @group(0) @binding(1) var linear: sampler;
///      @group(0) @binding(2) var<storage, read_write> to: vec4<f32>;
///      @compute @workgroup_size(1) fn main() { to = textureSampleLevel(image, linear, vec2(0.5), 0.0); }",
/// )?;
/// let image = context.image(vk::Format::R8G8B8A8_UNORM, [2, 1, 1]).build()?;
/// context.write_image(&image, 0, 0, &[[255u8, 0, 0, 255], [255, 0, 0, 255]])?;
/// let to = context.buffer_zeroed(16)?;
/// let sampler = context.sampler(&SamplerInfo::default())?;
/// let set = context.descriptor_set(&program, 0);
/// let set = set.with(0, Bind::sampled(&image)).with(1, Bind::sampler(&sampler)).bind(2, &to).build()?;
/// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
/// assert_eq!(context.read::<f32>(&to)?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct DescriptorSetBuilder<'a> {
    share: &'a Arc<Share>,
    layout: LayoutSource<'a>,
    label: Option<Box<str>>,
    updatable: bool,
    /// By binding and element.
    given: BTreeMap<(u32, u32), DescriptorSource>,
}

#[derive(Clone, Copy, Debug)]
enum LayoutSource<'a> {
    /// That of a program's group.
    Program(&'a Program, u32),
    /// Its own.
    Own(&'a [SetBinding]),
}

#[derive(Clone, Debug)]
enum DescriptorSource {
    /// Bytes of a buffer, as the kind that the layout has.
    Bytes(Buffer, Option<Range<u64>>),
    /// Of the given kind.
    Bind(Bind),
}

impl<'a> DescriptorSetBuilder<'a> {
    fn new(share: &'a Arc<Share>, layout: LayoutSource<'a>) -> Self {
        Self { share, layout, label: None, updatable: false, given: BTreeMap::new() }
    }

    pub(crate) fn of_program(share: &'a Arc<Share>, program: &'a Program, group: u32) -> Self {
        Self::new(share, LayoutSource::Program(program, group))
    }

    pub(crate) fn of_layout(share: &'a Arc<Share>, layout: &'a [SetBinding]) -> Self {
        Self::new(share, LayoutSource::Own(layout))
    }

    /// Names the set in messages.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let data = context.buffer(16).label("data").zeroed()?;
    /// let set = context.descriptor_set(&program, 0).label("frame").bind(0, &data).build()?;
    /// data.destroy();
    /// let error = context.dispatch(&program).set(0, &set).groups([1, 1, 1]).unwrap_err().to_string();
    /// assert!(error.starts_with("binding 0.0 (data): descriptor set `frame`: buffer `data` of 16 bytes"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into().into_boxed_str());
        self
    }

    /// Allows [`DescriptorSet::write`]. Such a set may be built with descriptors missing.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let set = context.descriptor_set(&program, 0).updatable().build()?;
    /// set.write(0, Bind::storage(&context.buffer_zeroed(16)?))?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn updatable(mut self) -> Self {
        self.updatable = true;
        self
    }

    /// Names a whole buffer, as storage or as uniform buffer: whichever the layout has.
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
    /// let set = context.descriptor_set(&program, 0).bind(0, &data).build()?;
    /// assert_eq!(set.objects().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind(mut self, binding: u32, buffer: &Buffer) -> Self {
        self.given.insert((binding, 0), DescriptorSource::Bytes(buffer.clone(), None));
        self
    }

    /// Names the bytes `range` of a buffer: see [`Dispatch::bind_range`](crate::Dispatch::bind_range).
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
    /// let set = context.descriptor_set(&program, 0).bind_range(0, &data, 16..32).build()?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&data)?, [1, 1, 1, 1, 2, 2, 2, 2]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn bind_range(mut self, binding: u32, buffer: &Buffer, range: Range<u64>) -> Self {
        self.given.insert((binding, 0), DescriptorSource::Bytes(buffer.clone(), Some(range)));
        self
    }

    /// Names anything that [`Context::bind`](crate::Context::bind) accepts: images, texel buffers, samplers.
    ///
    /// ```
    /// use spelter::{Bind, BindingKind, SetBinding, vk};
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let table = context.buffer_from(&[0u8, 51, 102, 255])?;
    /// let layout = [SetBinding::new(0, BindingKind::UniformTexelBuffer)];
    /// let set = context.descriptor_set_of(&layout).with(0, Bind::texels(&table, vk::Format::R8_UNORM)).build()?;
    /// assert_eq!(set.objects()[0].binding, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with(self, binding: u32, what: Bind) -> Self {
        self.with_array(binding, 0, [what])
    }

    /// The same for consecutive elements of an array of descriptors, from `first` on.
    ///
    /// ```
    /// use spelter::Bind;
    ///
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "enable wgpu_binding_array;
    ///     struct Words { w: array<u32> }
    ///     @group(0) @binding(0) var<storage, read> parts: binding_array<Words, 2>;
    ///     @group(0) @binding(1) var<storage, read_write> to: u32;
    ///     @compute @workgroup_size(1) fn main() { to = parts[0].w[0] + parts[1].w[0]; }";
    /// let program = context.program_wgsl(text)?;
    /// let (a, b) = (context.buffer_from(&[40u32])?, context.buffer_from(&[2u32])?);
    /// let to = context.buffer_zeroed(4)?;
    /// let parts = [Bind::storage(&a), Bind::storage(&b)];
    /// let set = context.descriptor_set(&program, 0).with_array(0, 0, parts).bind(1, &to).build()?;
    /// context.dispatch(&program).set(0, &set).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&to)?, [42]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_array(mut self, binding: u32, first: u32, what: impl IntoIterator<Item = Bind>) -> Self {
        for (at, what) in (0u32..).zip(what) {
            self.given.insert((binding, first.saturating_add(at)), DescriptorSource::Bind(what));
        }
        self
    }

    /// The set.
    ///
    /// [`Error::Set`] if the program has no bindings in the group or is of another device; if the layout has no
    /// bindings, one of them twice, or more descriptors than the device allows; if something is bound that the layout
    /// does not have, or of another kind; if a descriptor is missing and the set is not updatable; and for the reasons
    /// of [`DescriptorSet::write`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// # let program = context.program_wgsl(
    /// #     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
    /// #      @compute @workgroup_size(4)
    /// #      fn main(@builtin(global_invocation_id) id: vec3<u32>) { data[id.x] *= 2u; }",
    /// # )?;
    /// let error = context.descriptor_set(&program, 0).label("empty").build().unwrap_err().to_string();
    /// assert!(error.starts_with("descriptor set `empty`, binding 0: no storage buffer is bound to it"));
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<DescriptorSet, Error> {
        let layout = self.checked_layout()?;
        let Self { share, label, updatable, given, .. } = self;
        let writes = given.into_iter().map(|((binding, element), given)| {
            let info = layout.iter().find(|info| info.binding == binding);
            given.into_write(binding, element, info)
        });
        let writes: Vec<Write> = writes.collect();
        let set = DescriptorSet::new(share, label, layout, updatable);
        set.inner.put(writes)?;
        match set.inner.first_missing().filter(|_| !updatable) {
            None => Ok(set),
            Some((info, element)) => {
                let to = if element == 0 { "it".to_owned() } else { format!("its element {element}") };
                let problem = format!("no {} is bound to {to}", info.takes_name());
                Err(set.inner.broken(info.binding, problem, rule::SET_COMPLETE))
            }
        }
    }

    /// The bindings of the layout by number.
    fn checked_layout(&self) -> Result<Vec<Declared>, Error> {
        let described = described(self.label.as_deref());
        let wrong = |problem: String, rule: &str| Err(Error::Set(format!("{described}: {problem} (rule: {rule})")));
        let bindings = match self.layout {
            LayoutSource::Program(program, group) => {
                if !program.is_of(self.share) {
                    return wrong(format!("{program} is a program of another context's device"), rule::DEVICE);
                }
                let layout = program.sets().get(group as usize).filter(|layout| !layout.bindings.is_empty());
                let Some(layout) = layout else {
                    return wrong(format!("{program} has no bindings in group {group}"), rule::SET_LAYOUT_BINDINGS);
                };
                return Ok(layout.bindings.clone());
            }
            LayoutSource::Own(bindings) => bindings,
        };
        let mut infos: Vec<_> = bindings.iter().map(info_of).collect();
        infos.sort_by_key(|info| info.binding);
        let twice = infos.windows(2).find(|pair| pair[0].binding == pair[1].binding);
        let none = infos.iter().find(|info| info.count == 0);
        let (total, max_descriptors) = (
            infos.iter().map(|info| u64::from(info.count)).sum::<u64>(),
            self.share.device().limits().max_per_set_descriptors,
        );
        let problem = match (twice, none) {
            _ if infos.is_empty() => "the layout has no bindings".to_owned(),
            (Some(pair), _) => format!("the layout has binding {} twice", pair[0].binding),
            (_, Some(info)) => format!("binding {} of the layout has no elements", info.binding),
            _ if total > u64::from(max_descriptors) => {
                format!("the layout has {total} descriptors, at most {max_descriptors} are possible")
            }
            _ => return Ok(infos),
        };
        wrong(problem, rule::SET_LAYOUT_BINDINGS)
    }
}

impl DescriptorSource {
    /// The write of a descriptor; the layout has `info` for its binding.
    fn into_write(self, binding: u32, element: u32, info: Option<&Declared>) -> Write {
        let bind = match self {
            Self::Bytes(buffer, range) => {
                let slice = range.map_or_else(|| (&buffer).into(), |range| buffer.slice(range));
                match info.map(Declared::slot_kind) {
                    Some(SlotKind::UniformBuffer) => Bind::uniform(slice),
                    _ => Bind::storage(slice),
                }
            }
            Self::Bind(bind) => bind,
        };
        (binding, element, bind)
    }
}

/// What a set requires of a descriptor of its own layout: only the kind.
fn info_of(binding: &SetBinding) -> Declared {
    let SetBinding { binding, kind, count } = *binding;
    Declared { group: 0, binding, kind, count, min_bytes: 0, element_bytes: 0, read_only: false, image: None }
}
