//! Resources for the bindings of the program, from `--bind`, `--uniform`, `--texels`, `--image` and `--sampler`; null
//! descriptors for elements of arrays that no option names.

use std::collections::BTreeSet;

use spelter::{Bind as Binding, BindingInfo, BindingKind, Buffer, Context, Dispatch, Program, vk};

use super::images::{self, BoundImage, BoundSampler};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::file;
use crate::image::{self, Source};
use crate::slot::{Slot, named};
use crate::value::Value;

/// All that is bound.
pub(super) struct BoundResources {
    pub(super) buffers: Vec<BoundBuffer>,
    pub(super) images: Vec<BoundImage>,
    samplers: Vec<BoundSampler>,
    nulls: Vec<(Slot, BindingKind)>,
    /// Notes on arrays that are not full.
    pub(super) notes: Vec<String>,
}

/// A buffer and its slot.
pub(super) struct BoundBuffer {
    pub(super) slot: Slot,
    /// The slot as text, with its element if the binding is an array.
    pub(super) name: String,
    pub(super) buffer: Buffer,
    /// The format of a texel buffer.
    format: Option<vk::Format>,
    kind: BindingKind,
}

impl BoundBuffer {
    fn bind(&self) -> Binding {
        match (self.kind, self.format) {
            (BindingKind::StorageTexelBuffer, Some(format)) => Binding::storage_texels(&self.buffer, format),
            (_, Some(format)) => Binding::texels(&self.buffer, format),
            (BindingKind::UniformBuffer, None) => Binding::uniform(&self.buffer),
            (_, None) => Binding::storage(&self.buffer),
        }
    }
}

impl BoundResources {
    /// The dispatch with all bindings.
    pub(super) fn to<'a>(&self, dispatch: Dispatch<'a>) -> Dispatch<'a> {
        let buffers = self.buffers.iter().map(|buffer| (buffer.slot, buffer.bind()));
        let nulls = self.nulls.iter().map(|(slot, kind)| (*slot, Binding::null(*kind)));
        let images = self.images.iter().map(|image| (image.slot, image.bind()));
        let samplers = self.samplers.iter().map(|sampler| (sampler.slot, sampler.bind()));
        let all = buffers.chain(nulls).chain(images).chain(samplers);
        all.fold(dispatch, |dispatch, (Slot { group, binding, element }, bind)| {
            dispatch.with((group, binding, element), bind)
        })
    }

    /// The contents of all buffers and images.
    pub(super) fn contents(&self, context: &Context) -> Result<Vec<Vec<u8>>, Failure> {
        let buffers = self.buffers.iter().map(|bound| Ok(context.read(&bound.buffer)?));
        let images = self.images.iter().map(|image| image.texels(context));
        buffers.chain(images).collect()
    }
}

/// One resource for each descriptor of the program. The error names all options and bindings that are wrong: missing,
/// given twice, of another kind.
pub(super) fn all(context: &Context, program: &Program, args: &RunArgs) -> Result<BoundResources, Failure> {
    let infos = program.bindings();
    let (mut seen, mut refused, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for (option, slot, name) in given(args) {
        if let Err(failure) = check((option, slot, name), program) {
            refused.insert((slot.group, slot.binding));
            wrong.push(failure);
        }
        if !seen.insert((slot, option == "--sampler")) {
            wrong.push(Failure::misuse(format!("binding {} is given twice", named(slot, name))));
        }
    }
    let (mut nulls, mut notes) = (Vec::new(), Vec::new());
    // A binding whose option is wrong is not said to lack one.
    for info in infos.iter().filter(|info| !refused.contains(&(info.group, info.binding))) {
        let empty = match empty_elements(info, &seen) {
            Ok(empty) => empty,
            Err(failure) => {
                wrong.push(failure);
                continue;
            }
        };
        if !empty.is_empty() {
            let binding = named(format_args!("{}.{}", info.group, info.binding), variable(info));
            let problem = format!("{} of {} elements have no resource and are null", empty.len(), info.count);
            notes.push(format!("binding {binding}: {problem}: reads give 0, writes are dropped"));
        }
        let given = given_nulls(args).filter(|slot| (slot.group, slot.binding) == (info.group, info.binding));
        nulls.extend(given.chain(empty).map(|slot| (slot, info.kind)));
    }
    Failure::all(&wrong)?;
    let (images, samplers) =
        (images::images(context, infos, &args.images)?, images::samplers(context, infos, &args.images)?);
    Ok(BoundResources { buffers: buffers(context, infos, args)?, images, samplers, nulls, notes })
}

/// The buffers of `--bind`, `--uniform` and `--texels`.
fn buffers(context: &Context, infos: &[BindingInfo], args: &RunArgs) -> Result<Vec<BoundBuffer>, Failure> {
    let storage = args.bind.iter().map(|bind| (("--bind", bind.slot, bind.name.as_deref()), &bind.value, None));
    let uniform = args.uniform.iter().map(|bind| (("--uniform", bind.slot, bind.name.as_deref()), &bind.value, None));
    let texels = args.images.texels.iter().filter_map(|texels| {
        let (format, value) = texels.contents.as_ref()?;
        Some((("--texels", texels.slot, texels.name.as_deref()), value, Some(image::vulkan(*format))))
    });
    let all = storage.chain(uniform).chain(texels).filter(|(_, value, _)| **value != Value::Null);
    // Those with contents first, which others name.
    let (same, filling): (Vec<_>, Vec<_>) = all.partition(|(_, value, _)| matches!(value, Value::Same(_)));
    let mut made: Vec<BoundBuffer> = Vec::new();
    for ((option, slot, name), value, format) in filling.into_iter().chain(same) {
        let wrong = |failure: Failure| failure.of(format_args!("{option} {}", named(slot, name)));
        let info = info_of(infos, slot).ok_or_else(|| wrong(Failure::misuse("the program does not use it")))?;
        let buffer = match value {
            Value::Same(other) => of_slot(&made, *other),
            _ => filled(context, value),
        };
        let buffer = buffer.map_err(wrong)?;
        made.push(BoundBuffer { slot, name: shown(slot, Some(info)), buffer, format, kind: info.kind });
    }
    Ok(made)
}

/// The buffer that another option made.
fn of_slot(made: &[BoundBuffer], slot: Slot) -> Result<Buffer, Failure> {
    let found = made.iter().find(|bound| bound.slot == slot).map(|bound| bound.buffer.clone());
    found.ok_or_else(|| Failure::misuse(format!("no option gives binding {slot} contents")))
}

/// The slots of options whose value is `null`.
fn given_nulls(args: &RunArgs) -> impl Iterator<Item = Slot> {
    let buffers = args.bind.iter().chain(&args.uniform).filter(|bind| bind.value == Value::Null).map(|bind| bind.slot);
    let images = args.images.image.iter().filter(|image| image.source == Source::Null).map(|image| image.slot);
    let texels = args.images.texels.iter().filter(|texels| texels.contents.is_none()).map(|texels| texels.slot);
    buffers.chain(images).chain(texels)
}

/// An option, its slot, and the name that the user wrote for it.
type SlotOption<'a> = (&'static str, Slot, Option<&'a str>);

/// All options.
pub(super) fn given(args: &RunArgs) -> impl Iterator<Item = SlotOption<'_>> {
    let storage = args.bind.iter().map(|bind| ("--bind", bind.slot, bind.name.as_deref()));
    let uniform = args.uniform.iter().map(|bind| ("--uniform", bind.slot, bind.name.as_deref()));
    let image = args.images.image.iter().map(|image| ("--image", image.slot, image.name.as_deref()));
    let sampler = args.images.sampler.iter().map(|sampler| ("--sampler", sampler.slot, sampler.name.as_deref()));
    let texels = args.images.texels.iter().map(|texels| ("--texels", texels.slot, texels.name.as_deref()));
    storage.chain(uniform).chain(image).chain(sampler).chain(texels)
}

/// The binding that is declared at a slot.
pub(crate) fn info_of(infos: &[BindingInfo], slot: Slot) -> Option<&BindingInfo> {
    infos.iter().find(|info| (info.group, info.binding) == (slot.group, slot.binding))
}

fn check((option, slot, name): SlotOption<'_>, program: &Program) -> Result<(), Failure> {
    let wrong = |problem: String| Err(Failure::misuse(format!("{option} {}: {problem}", named(slot, name))));
    let Some(info) = info_of(program.bindings(), slot) else {
        return wrong(format!("{:?} does not use it; {}", program.entry(), used(program)));
    };
    if slot.element >= info.count {
        return wrong(format!("the binding has {} elements", info.count));
    }
    let options = options_for(info.kind);
    if options.contains(&option) {
        return Ok(());
    }
    wrong(format!("it is a {}: use {}", info.kind.description(), options.join(" and ")))
}

/// The elements of an array that no option names: they become null descriptors. It is an error if no element has a
/// resource, or if one lacks its sampler, which cannot be null (VUID-vkCmdDispatch-None-08114); a combined image and
/// sampler may do without `--sampler`.
pub(crate) fn empty_elements(info: &BindingInfo, seen: &BTreeSet<(Slot, bool)>) -> Result<Vec<Slot>, Failure> {
    let slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
    let wants_sampler = info.kind == BindingKind::Sampler;
    let empty: Vec<Slot> = slots.filter(|&slot| !seen.contains(&(slot, wants_sampler))).collect();
    let filled = info.count as usize - empty.len();
    let Some(first) = empty.first().filter(|_| wants_sampler || filled == 0) else { return Ok(empty) };
    let (kind, slot) = (info.kind.description(), shown(*first, Some(info)));
    let bytes = match info.min_bytes {
        0 => String::new(),
        least => format!(" of at least {least} bytes"),
    };
    let (lacks, hint) = match info.kind {
        BindingKind::StorageBuffer => ("buffer", format!("--bind {slot}=VALUE")),
        BindingKind::UniformBuffer => ("buffer", format!("--uniform {slot}=VALUE")),
        BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => {
            ("buffer", format!("--texels {slot}=FORMAT:VALUE"))
        }
        BindingKind::Sampler => ("sampler", format!("--sampler {slot}=linear,repeat, or other words")),
        _ => ("image", format!("--image {slot}=FILE.png or --image {slot}=FORMAT:WIDTHxHEIGHT")),
    };
    let of = match filled {
        0 => String::new(),
        filled => format!("; {filled} of {} elements have one, and each must", info.count),
    };
    let named = named(slot, variable(info));
    let problem = format!("binding {named}, a {kind}{bytes}, has no {lacks}: use {hint}{of}");
    Err(Failure::misuse(format!("{problem} (VUID-vkCmdDispatch-None-08114)")))
}

/// A buffer with these contents.
pub(crate) fn filled(context: &Context, value: &Value) -> Result<Buffer, Failure> {
    let nothing = || Err(Failure::misuse("a buffer needs at least one byte"));
    let of_bytes = |bytes: &[u8]| if bytes.is_empty() { nothing() } else { Ok(context.buffer_from(bytes)?) };
    match value {
        Value::Null | Value::Zeros(0) => nothing(),
        Value::Same(_) => Err(Failure::misuse("only `spelter run` binds a buffer twice")),
        Value::Zeros(bytes) => Ok(context.buffer_zeroed(*bytes)?),
        Value::Bytes(bytes) => of_bytes(bytes),
        Value::File(path) => of_bytes(&file::read(path, context.device().limits().max_storage_buffer_range.into())?),
    }
}

/// The slot as text, with its element if the binding is an array.
pub(super) fn shown(slot: Slot, info: Option<&BindingInfo>) -> String {
    if info.is_some_and(|info| info.count > 1) { slot.with_element() } else { slot.to_string() }
}

/// The name of a binding's variable, if the shader has it.
pub(super) fn variable(info: &BindingInfo) -> Option<&str> {
    Some(info.name.as_str()).filter(|name| !name.is_empty())
}

/// The option that fills a binding of the program.
pub(super) fn option_of(program: &Program, group: u32, binding: u32) -> Option<&'static str> {
    let info = info_of(program.bindings(), Slot { group, binding, element: 0 })?;
    options_for(info.kind).first().copied()
}

/// The bindings that a program has, for messages: each as `spelter reflect` begins with it.
fn used(program: &Program) -> String {
    let one = |info: &BindingInfo| {
        let name = variable(info).map(|name| format!(" {name}")).unwrap_or_default();
        format!("{}.{}{name}: {}", info.group, info.binding, info.kind.description())
    };
    let list: Vec<_> = program.bindings().iter().map(one).collect();
    if list.is_empty() { "it uses no bindings".into() } else { format!("it uses {}", list.join(", ")) }
}

/// The options that fill a binding.
pub(crate) fn options_for(kind: BindingKind) -> &'static [&'static str] {
    match kind {
        BindingKind::StorageBuffer => &["--bind"],
        BindingKind::UniformBuffer => &["--uniform"],
        BindingKind::SampledImage | BindingKind::StorageImage => &["--image"],
        BindingKind::CombinedImageSampler => &["--image", "--sampler"],
        BindingKind::Sampler => &["--sampler"],
        BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => &["--texels"],
    }
}
