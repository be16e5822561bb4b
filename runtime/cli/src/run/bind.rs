//! Resources for the bindings of the program, from `--bind`, `--uniform`, `--image` and `--sampler`.

use std::collections::BTreeSet;

use spelter::{BindingInfo, BindingKind, Buffer, Context, Dispatch, Program};

use super::images::{self, BoundImage, BoundSampler};
use crate::args::RunArgs;
use crate::failure::Failure;
use crate::file;
use crate::slot::{Bind, Slot};
use crate::value::Value;

/// All that is bound.
pub(super) struct Bound {
    pub(super) buffers: Vec<BoundBuffer>,
    pub(super) images: Vec<BoundImage>,
    samplers: Vec<BoundSampler>,
}

/// A buffer and its slot.
pub(super) struct BoundBuffer {
    pub(super) slot: Slot,
    /// The slot as text, with its element if the binding is an array.
    pub(super) name: String,
    pub(super) buffer: Buffer,
}

impl Bound {
    /// The dispatch with all bindings.
    pub(super) fn to<'a>(&self, mut dispatch: Dispatch<'a>) -> Dispatch<'a> {
        for BoundBuffer { slot, buffer, .. } in &self.buffers {
            dispatch = dispatch.bind_element(slot.group, slot.binding, slot.element, buffer, 0..buffer.size());
        }
        let images = self.images.iter().map(|image| (image.slot, image.bind()));
        let samplers = self.samplers.iter().map(|sampler| (sampler.slot, sampler.bind()));
        images.chain(samplers).fold(dispatch, |dispatch, (Slot { group, binding, element }, bind)| {
            dispatch.with((group, binding, element), bind)
        })
    }
}

/// One resource for each descriptor of the program. An error if one is missing, too many or too small.
pub(super) fn all(context: &Context, program: &Program, args: &RunArgs) -> Result<Bound, Failure> {
    let infos = program.bindings();
    only_known(infos)?;
    let mut seen = BTreeSet::new();
    for (option, slot) in given(args) {
        check(option, slot, program)?;
        if !seen.insert((slot, option == "--sampler")) {
            return Err(Failure(format!("binding {slot} is given twice")));
        }
    }
    infos.iter().try_for_each(|info| check_filled(info, &seen))?;
    let storage = args.bind.iter().map(|bind| ("--bind", bind));
    let uniform = args.uniform.iter().map(|bind| ("--uniform", bind));
    let buffers = storage.chain(uniform).map(|(option, bind)| filled(context, program, option, bind));
    Ok(Bound {
        buffers: buffers.collect::<Result<_, _>>()?,
        images: images::images(context, infos, args)?,
        samplers: images::samplers(context, infos, args)?,
    })
}

/// The slots of all options.
fn given(args: &RunArgs) -> impl Iterator<Item = (&'static str, Slot)> {
    let storage = args.bind.iter().map(|bind| ("--bind", bind.slot));
    let uniform = args.uniform.iter().map(|bind| ("--uniform", bind.slot));
    let image = args.images.image.iter().map(|image| ("--image", image.slot));
    let sampler = args.images.sampler.iter().map(|sampler| ("--sampler", sampler.slot));
    storage.chain(uniform).chain(image).chain(sampler)
}

/// The binding that is declared at a slot.
pub(super) fn info_of(infos: &[BindingInfo], slot: Slot) -> Option<&BindingInfo> {
    infos.iter().find(|info| (info.group, info.binding) == (slot.group, slot.binding))
}

/// Checks that all bindings of the program are of kinds that options can fill.
fn only_known(infos: &[BindingInfo]) -> Result<(), Failure> {
    match infos.iter().find(|info| options_for(info.kind).is_empty()) {
        Some(info) => {
            let (group, binding, kind) = (info.group, info.binding, info.kind.description());
            Err(Failure(format!("binding {group}.{binding} is a {kind}: {NO_TEXEL_BUFFERS}")))
        }
        None => Ok(()),
    }
}

fn check(option: &str, slot: Slot, program: &Program) -> Result<(), Failure> {
    let Some(info) = info_of(program.bindings(), slot) else {
        return Err(Failure(format!("{option} {slot}: {:?} does not use it; {}", program.entry(), used(program))));
    };
    if slot.element >= info.count {
        return Err(Failure(format!("{option} {slot}: the binding has {} elements", info.count)));
    }
    let options = options_for(info.kind);
    if options.contains(&option) {
        return Ok(());
    }
    let (is, right) = (info.kind.description(), options.join(" and "));
    Err(Failure(format!("{option} {slot}: it is a {is}: use {right}")))
}

/// Checks that every element has what it needs (VUID-vkCmdDispatch-None-08114); a combined image and sampler may do
/// without `--sampler`.
fn check_filled(info: &BindingInfo, seen: &BTreeSet<(Slot, bool)>) -> Result<(), Failure> {
    let slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
    let wants_sampler = info.kind == BindingKind::Sampler;
    let Some(empty) = slots.clone().find(|&slot| !seen.contains(&(slot, wants_sampler))) else { return Ok(()) };
    let (kind, slot) = (info.kind.description(), shown(empty, Some(info)));
    let bytes = match info.min_bytes {
        0 => String::new(),
        least => format!(" of at least {least} bytes"),
    };
    let (lacks, hint) = match info.kind {
        BindingKind::StorageBuffer => ("buffer", format!("--bind {slot}=VALUE")),
        BindingKind::UniformBuffer => ("buffer", format!("--uniform {slot}=VALUE")),
        BindingKind::Sampler => ("sampler", format!("--sampler {slot}=linear,repeat, or other words")),
        _ => ("image", format!("--image {slot}=FILE.png or --image {slot}=FORMAT:WIDTHxHEIGHT")),
    };
    let of = match slots.filter(|&slot| seen.contains(&(slot, wants_sampler))).count() {
        0 => String::new(),
        filled => format!("; {filled} of {} elements have one, and each must", info.count),
    };
    let problem = format!("binding {slot}, a {kind}{bytes}, has no {lacks}: use {hint}{of}");
    Err(Failure(format!("{problem} (VUID-vkCmdDispatch-None-08114)")))
}

fn filled(context: &Context, program: &Program, option: &str, bind: &Bind) -> Result<BoundBuffer, Failure> {
    let slot = bind.slot;
    let wrong = |problem: String| Failure(format!("{option} {slot}: {problem}"));
    let buffer = match &bind.value {
        Value::Zeros(0) => Err(nothing()),
        Value::Zeros(bytes) => context.buffer_zeroed(*bytes).map_err(message),
        Value::Bytes(bytes) => from_bytes(context, bytes),
        Value::File(path) => {
            let most = context.device().limits().max_storage_buffer_range;
            file::read(path, most.into()).map_err(|error| error.0).and_then(|bytes| from_bytes(context, &bytes))
        }
    };
    let buffer = buffer.map_err(wrong)?;
    Ok(BoundBuffer { slot, name: shown(slot, info_of(program.bindings(), slot)), buffer })
}

/// The slot as text, with its element if the binding is an array.
pub(super) fn shown(slot: Slot, info: Option<&BindingInfo>) -> String {
    if info.is_some_and(|info| info.count > 1) { slot.with_element() } else { slot.to_string() }
}

fn from_bytes(context: &Context, bytes: &[u8]) -> Result<Buffer, String> {
    if bytes.is_empty() { Err(nothing()) } else { context.buffer_from(bytes).map_err(message) }
}

fn message(error: spelter::Error) -> String {
    Failure::from(error).0
}

fn nothing() -> String {
    "a buffer needs at least one byte".into()
}

/// The option that fills a binding of the program.
pub(super) fn option_of(program: &Program, group: u32, binding: u32) -> Option<&'static str> {
    let info = info_of(program.bindings(), Slot { group, binding, element: 0 })?;
    options_for(info.kind).first().copied()
}

/// The bindings that a program has, for messages.
fn used(program: &Program) -> String {
    let list: Vec<_> = program
        .bindings()
        .iter()
        .map(|info| format!("{}.{} ({})", info.group, info.binding, info.kind.description()))
        .collect();
    if list.is_empty() { "it uses no bindings".into() } else { format!("it uses {}", list.join(", ")) }
}

/// The hint for programs with texel buffers.
const NO_TEXEL_BUFFERS: &str =
    "this command has no option for texel buffers; use the library or a script of `spelter test`";

/// The options that fill a binding.
fn options_for(kind: BindingKind) -> &'static [&'static str] {
    match kind {
        BindingKind::StorageBuffer => &["--bind"],
        BindingKind::UniformBuffer => &["--uniform"],
        BindingKind::SampledImage | BindingKind::StorageImage => &["--image"],
        BindingKind::CombinedImageSampler => &["--image", "--sampler"],
        BindingKind::Sampler => &["--sampler"],
        BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => &[],
    }
}
