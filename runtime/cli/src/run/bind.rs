//! Buffers for the bindings of the program, from `--bind` and `--uniform`.

use std::collections::BTreeSet;

use spelter::{BindingInfo, BindingKind, Buffer, Context, Program};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::file;
use crate::slot::{Bind, Slot};
use crate::value::Value;

/// A buffer and where it is bound.
pub(super) struct Bound {
    pub(super) slot: Slot,
    /// The slot as it is shown: with its element if the binding is an array.
    pub(super) name: String,
    pub(super) buffer: Buffer,
}

/// One buffer for each descriptor of the program: none missing, none too many, each large enough.
pub(super) fn all(context: &Context, program: &Program, args: &RunArgs) -> Result<Vec<Bound>, Failure> {
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

/// What the options bind, with the kind that each stands for.
fn kinds(args: &RunArgs) -> Vec<(&'static str, BindingKind, &Bind)> {
    let storage = args.bind.iter().map(|bind| ("--bind", BindingKind::StorageBuffer, bind));
    let uniform = args.uniform.iter().map(|bind| ("--uniform", BindingKind::UniformBuffer, bind));
    storage.chain(uniform).collect()
}

fn info_of(program: &Program, slot: Slot) -> Option<&BindingInfo> {
    program.bindings().iter().find(|info| (info.group, info.binding) == (slot.group, slot.binding))
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
    let is = kind_name(info.kind);
    let instead = option_for(info.kind).map_or_else(|| ONLY_BUFFERS.into(), |right| format!("use {right}"));
    Err(Failure(format!("{option} {slot}: it is a {is}: {instead}")))
}

fn check_filled(info: &BindingInfo, seen: &BTreeSet<Slot>) -> Result<(), Failure> {
    let slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
    for slot in slots {
        if !seen.contains(&slot) {
            let (kind, slot) = (kind_name(info.kind), shown(slot, Some(info)));
            return Err(Failure(match option_for(info.kind) {
                Some(option) => format!("binding {slot}, a {kind}, has no buffer: use {option} {slot}=VALUE"),
                None => format!("binding {slot} is a {kind}: {ONLY_BUFFERS}"),
            }));
        }
    }
    Ok(())
}

fn filled(context: &Context, program: &Program, option: &str, bind: &Bind) -> Result<Bound, Failure> {
    let slot = bind.slot;
    let wrong = |problem: String| Failure(format!("{option} {slot}: {problem}"));
    let buffer = match &bind.value {
        Value::Zeros(0) => Err(nothing()),
        Value::Zeros(bytes) => context.buffer_zeroed(*bytes).map_err(told),
        Value::Bytes(bytes) => from_bytes(context, bytes),
        Value::File(path) => {
            let most = context.device().limits().max_storage_buffer_range;
            file::read(path, most.into()).map_err(|error| error.0).and_then(|bytes| from_bytes(context, &bytes))
        }
    };
    let buffer = buffer.map_err(wrong)?;
    let info = info_of(program, slot);
    check_size(info, &buffer).map_err(wrong)?;
    Ok(Bound { slot, name: shown(slot, info), buffer })
}

/// With its element if the binding is an array.
fn shown(slot: Slot, info: Option<&BindingInfo>) -> String {
    if info.is_some_and(|info| info.count > 1) { slot.with_element() } else { slot.to_string() }
}

fn from_bytes(context: &Context, bytes: &[u8]) -> Result<Buffer, String> {
    if bytes.is_empty() { Err(nothing()) } else { context.buffer_from(bytes).map_err(told) }
}

fn told(error: spelter::Error) -> String {
    Failure::from(error).0
}

fn nothing() -> String {
    "a buffer needs at least one byte".into()
}

/// The rule of a dispatch, told of the option.
fn check_size(info: Option<&BindingInfo>, buffer: &Buffer) -> Result<(), String> {
    let (bytes, least) = (buffer.size(), info.map_or(0, |info| info.min_bytes));
    if bytes < u64::from(least) {
        return Err(format!("{bytes} bytes are too few: its block takes at least {least}"));
    }
    Ok(())
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

/// What to do about images.
const ONLY_BUFFERS: &str = "this command fills buffers only; scripts of `spelter test` have images, too";

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
