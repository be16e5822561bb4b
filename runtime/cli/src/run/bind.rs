//! Buffers for the bindings of the program, from `--bind` and `--uniform`.

use std::collections::BTreeSet;

use spelter::bytemuck::NoUninit;
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
            let kind = kind_name(info.kind);
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
        Value::Zeros(bytes) => context.buffer_zeroed(*bytes).map_err(|error| error.to_string()),
        Value::Words(words) => from_values(context, words),
        Value::File(path) => {
            let most = context.device().limits().max_storage_buffer_range;
            from_values(context, &file::read(path, most.into())?)
        }
    };
    let buffer = buffer.map_err(wrong)?;
    let info = info_of(program, slot);
    check_size(info, &buffer).map_err(wrong)?;
    let is_array = info.is_some_and(|info| info.count > 1);
    let name = if is_array { slot.with_element() } else { slot.to_string() };
    Ok(Bound { slot, name, buffer })
}

fn from_values<T: NoUninit>(context: &Context, values: &[T]) -> Result<Buffer, String> {
    if values.is_empty() { Err(nothing()) } else { context.buffer_from(values).map_err(|error| error.to_string()) }
}

fn nothing() -> String {
    "a buffer needs at least one byte".into()
}

/// A buffer smaller than the block is legal, as what lies beyond it reads as 0; on a command line it is a mistake.
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
