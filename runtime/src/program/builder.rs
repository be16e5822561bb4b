//! Builds a program: entry point, specialization constants, sizes of binding arrays, and layouts.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use spelter_driver::{Device, PipelineLayout, PushRange, Specialization, SpecializedShader};

use super::compared::Compared;
use super::{Constant, Declared, Program, ProgramInner, SetLayout, Source, SpecializationConstant};
use crate::error::Error;
use crate::share::Share;

/// Builds a [`Program`]: see [`Context::program`](crate::Context::program).
///
/// ```
/// # fn main() -> Result<(), spelter::Error> {
/// # let context = spelter::Context::new()?;
/// let text = "@id(0) override size: u32; @compute @workgroup_size(size) fn main() {}";
/// let program = context.program(text).specialize(0, 32u32).build()?;
/// assert_eq!(program.workgroup_size(), [32, 1, 1]);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder makes nothing until `build`"]
pub struct ProgramBuilder<'a> {
    share: &'a Arc<Share>,
    source: Source<'a>,
    entry: Option<&'a str>,
    label: Option<&'a str>,
    file: Option<&'a str>,
    constants: BTreeMap<u32, Constant>,
    named_constants: BTreeMap<&'a str, Constant>,
    /// By group and binding, the number of elements of arrays that the shader declares without a size.
    arrays: BTreeMap<(u32, u32), u32>,
}

impl<'a> ProgramBuilder<'a> {
    pub(crate) fn new(share: &'a Arc<Share>, source: Source<'a>) -> Self {
        Self {
            share,
            source,
            entry: None,
            label: None,
            file: None,
            constants: BTreeMap::new(),
            named_constants: BTreeMap::new(),
            arrays: BTreeMap::new(),
        }
    }

    /// Chooses the entry point; not needed if the shader has only one.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "@compute @workgroup_size(1) fn up() {} @compute @workgroup_size(2) fn down() {}";
    /// assert_eq!(context.program(text).entry("down").build()?.workgroup_size(), [2, 1, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn entry(mut self, name: &'a str) -> Self {
        self.entry = Some(name);
        self
    }

    /// Names the program in errors, and in timelines, profiles and the reasons of a loss, where it otherwise has the
    /// name of its entry point.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// let context = spelter::Context::builder().profile(true).build()?;
    /// let text = "@compute @workgroup_size(1) fn main() {}";
    /// let program = context.program(text).label("warm up").build()?;
    /// context.dispatch(&program).groups([2, 1, 1])?;
    /// context.finish()?;
    /// assert_eq!(context.profile().expect("the device measures").programs[0].name, "warm up");
    /// # Ok(())
    /// # }
    /// ```
    pub fn label(mut self, label: &'a str) -> Self {
        self.label = Some(label);
        self
    }

    /// The name of the file of a WGSL text, which errors, reasons of a loss and findings of checked mode then have with
    /// the line; otherwise they call the text `wgsl`. SPIR-V has the names of its debug information.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "@compute @workgroup_size(1) fn main() { nonsense }";
    /// let error = context.program(text).file("shaders/blur.wgsl").build().unwrap_err();
    /// assert!(error.to_string().contains("shaders/blur.wgsl:1:50"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn file(mut self, name: &'a str) -> Self {
        self.file = Some(name);
        self
    }

    /// Sets a specialization constant by its `SpecId`, in WGSL its `@id`. `build` returns [`Error::Constant`] for a
    /// value that the constant's type does not have, and for an id that the shader does not have (which Vulkan
    /// ignores).
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "@id(7) override size: u32 = 1u; @compute @workgroup_size(size) fn main() {}";
    /// assert_eq!(context.program(text).specialize(7, 16u32).build()?.workgroup_size(), [16, 1, 1]);
    /// assert!(context.program(text).specialize(7, 1.5f32).build().is_err());
    /// let error = context.program(text).specialize(8, 16u32).build().unwrap_err().to_string();
    /// assert_eq!(error, "specialization constant 8: the shader has no constant with this id; it has 7 (size: u32)");
    /// # Ok(())
    /// # }
    /// ```
    pub fn specialize(mut self, id: u32, value: impl Into<Constant>) -> Self {
        self.constants.insert(id, value.into());
        self
    }

    /// Sets a specialization constant by its name, which a WGSL override without an `@id` needs. `build` returns
    /// [`Error::Constant`] as for [`ProgramBuilder::specialize`], and if several constants have the name.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "override size: u32 = 1u; @compute @workgroup_size(size) fn main() {}";
    /// assert_eq!(context.program(text).specialize_named("size", 16u32).build()?.workgroup_size(), [16, 1, 1]);
    /// let error = context.program(text).specialize_named("width", 16u32).build().unwrap_err().to_string();
    /// assert!(error.ends_with("width: the shader has no constant with this name; it has size (u32)"), "{error}");
    /// # Ok(())
    /// # }
    /// ```
    pub fn specialize_named(mut self, name: &'a str, value: impl Into<Constant>) -> Self {
        self.named_constants.insert(name, value.into());
        self
    }

    /// Sets the number of elements of a binding array that the shader declares without a size.
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let text = "enable wgpu_binding_array;
    ///     struct Words { w: array<u32> }
    ///     @group(0) @binding(0) var<storage, read> parts: binding_array<Words>;
    ///     @group(0) @binding(1) var<storage, read_write> to: u32;
    ///     @compute @workgroup_size(1) fn main() { to = parts[0].w[0] + parts[1].w[0]; }";
    /// let program = context.program(text).array(0, 0, 2).build()?;
    /// let (a, b) = (context.buffer_from(&[40u32])?, context.buffer_from(&[2u32])?);
    /// let to = context.buffer_zeroed(4)?;
    /// let dispatch = context.dispatch(&program).bind(0, 0, &a).bind_element(0, 0, 1, &b, 0..4);
    /// dispatch.bind(0, 1, &to).groups([1, 1, 1])?;
    /// assert_eq!(context.read::<u32>(&to)?, [42]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn array(mut self, group: u32, binding: u32, elements: u32) -> Self {
        self.arrays.insert((group, binding), elements);
        self
    }

    /// Reads, specializes and compiles the shader.
    ///
    /// [`Error::Shader`] if the shader is rejected, [`Error::EntryPoint`] if it does not have the entry point, or has
    /// several and none was chosen, [`Error::Binding`] if a binding array has no size, or a size other than that of
    /// [`ProgramBuilder::array`].
    ///
    /// ```
    /// # fn main() -> Result<(), spelter::Error> {
    /// # let context = spelter::Context::new()?;
    /// let error = context.program("@compute @workgroup_size(1) fn main() { nonsense }").build().unwrap_err();
    /// assert!(matches!(error, spelter::Error::Shader(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn build(self) -> Result<Program, Error> {
        let label = self.label;
        self.built().map_err(|error| match label {
            Some(label) => error.of_program(label),
            None => error,
        })
    }

    fn built(self) -> Result<Program, Error> {
        let device = self.share.device();
        let module = match (self.source, self.file) {
            (Source::Wgsl(text), None) => device.create_shader_module_wgsl(text)?,
            (Source::Wgsl(text), Some(file)) => device.create_shader_module_wgsl_named(text, file)?,
            (Source::Spirv(words), _) => device.create_shader_module(words)?,
        };
        let entry = choose_entry(module.entry_points(), self.entry)?;
        let declared = module.specialization_constants();
        let shader = module.specialize(&entry, &self.specialization(&declared)?)?;
        create(self.share, (entry, self.label), (&shader, &self.arrays), declared).map_err(|error| match error {
            Error::Binding { group, binding, problem, .. } => match module.declared(group, binding) {
                Some(line) => Error::binding(group, binding, format!("{problem} at {line}")),
                None => Error::binding(group, binding, problem),
            },
            error => error,
        })
    }
}

impl ProgramBuilder<'_> {
    /// The bits of the constants that are set, by their keys.
    fn specialization(&self, declared: &[SpecializationConstant]) -> Result<Specialization, Error> {
        let unknown = |what: &dyn Display, by: &str| {
            let list: Vec<_> = declared.iter().map(ToString::to_string).collect();
            let has = if list.is_empty() { "no constants".to_owned() } else { list.join(", ") };
            Error::Constant(format!("{what}: the shader has no constant with this {by}; it has {has}"))
        };
        let mut all = Specialization::new();
        for (&id, value) in &self.constants {
            let constant = declared.iter().find(|constant| constant.id == Some(id));
            let constant = constant.ok_or_else(|| unknown(&id, "id"))?;
            all.insert(constant.key, value.bits_for(constant)?);
        }
        for (&name, value) in &self.named_constants {
            let mut named = declared.iter().filter(|constant| constant.name == name && !name.is_empty());
            let constant = named.next().ok_or_else(|| unknown(&name, "name"))?;
            if named.next().is_some() {
                return Err(Error::Constant(format!("{name}: several constants have this name: use their ids")));
            }
            if all.insert(constant.key, value.bits_for(constant)?).is_some() {
                return Err(Error::Constant(format!("{constant} is set twice, by its id and by its name")));
            }
        }
        Ok(all)
    }
}

/// The entry point `name` of a shader; without a name, its only entry point. [`Error::EntryPoint`] if there is none, or
/// several and no name.
///
/// ```
/// use spelter::choose_entry;
///
/// # fn main() -> Result<(), spelter::Error> {
/// let names = ["blur", "sharpen"];
/// assert_eq!(choose_entry(names.into_iter(), Some("blur"))?, "blur");
/// assert!(choose_entry(names.into_iter(), None).unwrap_err().to_string().contains("name one of blur, sharpen"));
/// # Ok(())
/// # }
/// ```
pub fn choose_entry<'a>(names: impl Iterator<Item = &'a str>, name: Option<&str>) -> Result<String, Error> {
    let names: Vec<&str> = names.collect();
    let list = names.join(", ");
    match (name, names.as_slice()) {
        (_, []) => Err(Error::EntryPoint(
            "the shader has no compute entry point (in WGSL, a function with `@compute @workgroup_size(…)`)".into(),
        )),
        (Some(name), names) if names.contains(&name) => Ok(name.to_owned()),
        (Some(name), _) => Err(Error::EntryPoint(format!("no entry point {name:?}; the shader has {list}"))),
        (None, [only]) => Ok((*only).to_owned()),
        (None, _) => Err(Error::EntryPoint(format!("several entry points: name one of {list}"))),
    }
}

fn create(
    share: &Arc<Share>,
    (entry, label): (String, Option<&str>),
    (shader, arrays): (&SpecializedShader, &BTreeMap<(u32, u32), u32>),
    specialization: Vec<SpecializationConstant>,
) -> Result<Program, Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (device, kernel) = (share.device(), shader.kernel());
    let mut bindings: Vec<_> = kernel.bindings.values().map(Declared::from).collect();
    bindings.sort_by_key(|b| (b.group, b.binding));
    size_arrays(&mut bindings, arrays)?;
    let sets = set_layouts(device, &bindings)?;
    let layout = pipeline_layout(device, &sets, kernel.push_bytes)?;
    // Out of memory here is the kernel's code, or private memory of a workgroup beyond what the driver allows.
    let pipeline = device.create_compute_pipeline_from(shader, &layout).map_err(|error| match Error::from(error) {
        Error::OutOfMemory(what) if what.is_empty() => Error::OutOfMemory(format!("the program {entry:?}: its code")),
        Error::OutOfMemory(what) => Error::OutOfMemory(format!("the program {entry:?}: {what}")),
        error => error,
    })?;
    // Relaxed: numbers only have to differ.
    let inner = ProgramInner {
        id: NEXT.fetch_add(1, Ordering::Relaxed),
        share: Arc::clone(share),
        entry,
        label: label.map(str::to_owned),
        workgroup_size: kernel.workgroup_size,
        push_bytes: kernel.push_bytes,
        specialization,
        bindings,
        infos: OnceLock::new(),
        sets,
        pipeline,
        blocks: OnceLock::new(),
        compared: Compared::default(),
    };
    Ok(Program { inner: Arc::new(inner) })
}

/// Gives binding arrays without a declared size the size that the caller has set, and checks the sizes of others.
fn size_arrays(bindings: &mut [Declared], given: &BTreeMap<(u32, u32), u32>) -> Result<(), Error> {
    for Declared { group, binding, count, .. } in bindings.iter_mut().filter(|info| info.count == 0) {
        *count = given.get(&(*group, *binding)).copied().filter(|count| *count > 0).ok_or_else(|| {
            Error::binding(
                *group,
                *binding,
                "the shader declares the array without a size: set it with `ProgramBuilder::array`",
            )
        })?;
    }
    let has =
        |place: (u32, u32), count| bindings.iter().any(|b| (b.group, b.binding, b.count) == (place.0, place.1, count));
    match given.iter().find(|(place, count)| !has(**place, **count)) {
        Some(((group, binding), count)) => {
            let problem = format!("the shader declares no array there that can have {count} elements");
            Err(Error::binding(*group, *binding, problem))
        }
        None => Ok(()),
    }
}

/// One layout for each set up to the last that the program uses.
fn set_layouts(device: &Device, bindings: &[Declared]) -> Result<Vec<SetLayout>, Error> {
    let max_groups = device.limits().max_bound_descriptor_sets;
    if let Some(binding) = bindings.iter().find(|b| b.group >= max_groups) {
        let problem = format!("groups are numbered 0 to {}", max_groups - 1);
        return Err(Error::binding(binding.group, binding.binding, problem));
    }
    let sets = bindings.iter().map(|b| b.group + 1).max().unwrap_or(0);
    (0..sets)
        .map(|set| {
            let bindings: Vec<_> = bindings.iter().filter(|b| b.group == set).copied().collect();
            let entries: Vec<_> = bindings
                .iter()
                .map(|b| spelter_driver::Binding { binding: b.binding, ty: b.ty(), count: b.count })
                .collect();
            Ok(SetLayout { layout: device.create_descriptor_set_layout(&entries)?, bindings })
        })
        .collect()
}

fn pipeline_layout(device: &Device, sets: &[SetLayout], push_bytes: u32) -> Result<PipelineLayout, Error> {
    let layouts: Vec<_> = sets.iter().map(|set| &set.layout).collect();
    let push = PushRange { offset: 0, size: push_bytes.next_multiple_of(4) };
    let push = if push_bytes == 0 { &[][..] } else { &[push][..] };
    Ok(device.create_pipeline_layout(&layouts, push)?)
}
