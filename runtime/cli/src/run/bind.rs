//! Buffers for the bindings of the program, from `--bind` and `--uniform`.

use std::collections::BTreeSet;

use spelter::{BindingInfo, BindingKind, Buffer, Context, Program};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::file;
use crate::slot::{Bind, Slot};
use crate::value::Value;

/// A buffer and its slot.
pub(super) struct BoundBuffer {
    pub(super) slot: Slot,
    /// The slot as text, with its element if the binding is an array.
    pub(super) name: String,
    pub(super) buffer: Buffer,
}

/// One buffer for each descriptor of the program. An error if one is missing, too many or too small.
pub(super) fn all(context: &Context, program: &Program, args: &RunArgs) -> Result<Vec<BoundBuffer>, Failure> {
    only_buffers(program)?;
    let given = kinds(args);
    let mut seen = BTreeSet::new();
    for (option, kind, bind) in &given {
        check(option, *kind, bind.slot, program)?;
        if !seen.insert(bind.slot) {
            return Err(Failure(format!("binding {} is given twice", bind.slot)));
        }
    }
    for info in program.bindings() {
        check_filled(info, &seen)?;
    }
    given.into_iter().map(|(option, _, bind)| filled(context, program, option, bind)).collect()
}

/// The bindings of all options, with the kind of each option.
fn kinds(args: &RunArgs) -> Vec<(&'static str, BindingKind, &Bind)> {
    let storage = args.bind.iter().map(|bind| ("--bind", BindingKind::StorageBuffer, bind));
    let uniform = args.uniform.iter().map(|bind| ("--uniform", BindingKind::UniformBuffer, bind));
    storage.chain(uniform).collect()
}

/// The binding that a program declares at a slot.
pub(super) fn info_of(program: &Program, slot: Slot) -> Option<&BindingInfo> {
    program.bindings().iter().find(|info| (info.group, info.binding) == (slot.group, slot.binding))
}

/// Checks that all bindings of the program are buffers that options can fill.
fn only_buffers(program: &Program) -> Result<(), Failure> {
    match program.bindings().iter().find(|info| option_for(info.kind).is_none()) {
        Some(info) => {
            let (group, binding, kind) = (info.group, info.binding, kind_name(info.kind));
            Err(Failure(format!("binding {group}.{binding} is a {kind}: {ONLY_BUFFERS}")))
        }
        None => Ok(()),
    }
}

fn check(option: &str, kind: BindingKind, slot: Slot, program: &Program) -> Result<(), Failure> {
    let Some(info) = info_of(program, slot) else {
        return Err(Failure(format!("{option} {slot}: {:?} does not use it; {}", program.entry(), used(program))));
    };
    if slot.element >= info.count {
        return Err(Failure(format!("{option} {slot}: the binding has {} elements", info.count)));
    }
    if kind == info.kind {
        return Ok(());
    }
    let (is, right) = (kind_name(info.kind), option_for(info.kind).unwrap_or_default());
    Err(Failure(format!("{option} {slot}: it is a {is}: use {right}")))
}

fn check_filled(info: &BindingInfo, seen: &BTreeSet<Slot>) -> Result<(), Failure> {
    let slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
    for slot in slots {
        if !seen.contains(&slot) {
            let (kind, slot) = (kind_name(info.kind), shown(slot, Some(info)));
            let option = option_for(info.kind).unwrap_or_default();
            let bytes = match info.min_bytes {
                0 => String::new(),
                least => format!(" of at least {least} bytes"),
            };
            let problem = format!("binding {slot}, a {kind}{bytes}, has no buffer: use {option} {slot}=VALUE");
            return Err(Failure(format!("{problem} (VUID-vkCmdDispatch-None-08114)")));
        }
    }
    Ok(())
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
    Ok(BoundBuffer { slot, name: shown(slot, info_of(program, slot)), buffer })
}

/// The slot as text, with its element if the binding is an array.
fn shown(slot: Slot, info: Option<&BindingInfo>) -> String {
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
    info_of(program, Slot { group, binding, element: 0 }).and_then(|info| option_for(info.kind))
}

/// The bindings that a program has, for messages.
fn used(program: &Program) -> String {
    let list: Vec<_> = program
        .bindings()
        .iter()
        .map(|info| format!("{}.{} ({})", info.group, info.binding, kind_name(info.kind)))
        .collect();
    if list.is_empty() { "it uses no bindings".into() } else { format!("it uses {}", list.join(", ")) }
}

/// The hint for programs with images.
const ONLY_BUFFERS: &str = "this command fills buffers only; use the library or a script of `spelter test` for images";

fn kind_name(kind: BindingKind) -> &'static str {
    match kind {
        BindingKind::StorageBuffer => "storage buffer",
        BindingKind::UniformBuffer => "uniform buffer",
        BindingKind::Sampler => "sampler",
        BindingKind::SampledImage => "sampled image",
        BindingKind::CombinedImageSampler => "combined image and sampler",
        BindingKind::StorageImage => "storage image",
        BindingKind::UniformTexelBuffer => "uniform texel buffer",
        BindingKind::StorageTexelBuffer => "storage texel buffer",
    }
}

fn option_for(kind: BindingKind) -> Option<&'static str> {
    match kind {
        BindingKind::StorageBuffer => Some("--bind"),
        BindingKind::UniformBuffer => Some("--uniform"),
        _ => None,
    }
}
