//! Buffers for the bindings of the program, from `--bind` and `--uniform`.

use std::collections::BTreeSet;

use spelter::{BindingInfo, BindingKind, Buffer, Context, Program};

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::slot::{Bind, Slot};
use crate::value::Value;

/// A buffer and where it is bound.
pub(super) struct Bound {
    pub(super) slot: Slot,
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
    given.into_iter().map(|(_, _, bind)| filled(context, program, bind)).collect()
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
    if kind != info.kind {
        let (is, right) = (kind_name(info.kind), option_for(info.kind));
        return Err(Failure(format!("{option} {slot}: it is a {is}: use {right}")));
    }
    Ok(())
}

fn check_filled(info: &BindingInfo, seen: &BTreeSet<Slot>) -> Result<(), Failure> {
    let slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
    for slot in slots {
        if !seen.contains(&slot) {
            let (kind, option) = (kind_name(info.kind), option_for(info.kind));
            return Err(Failure(format!("binding {slot}, a {kind}, has no buffer: use {option} {slot}=VALUE")));
        }
    }
    Ok(())
}

fn filled(context: &Context, program: &Program, bind: &Bind) -> Result<Bound, Failure> {
    let at_slot = |error: spelter::Error| Failure(format!("binding {}: {error}", bind.slot));
    let buffer = match &bind.value {
        Value::Zeros(bytes) => context.buffer_zeroed(*bytes).map_err(at_slot)?,
        Value::Words(words) => context.buffer_from(words).map_err(at_slot)?,
        Value::File(path) => {
            let bytes = std::fs::read(path).map_err(|error| Failure::file(path, error))?;
            context.buffer_from(&bytes).map_err(at_slot)?
        }
    };
    check_size(program, bind.slot, &buffer)?;
    Ok(Bound { slot: bind.slot, buffer })
}

/// A buffer smaller than the block is legal, as what lies beyond it reads as 0; on a command line it is a mistake.
fn check_size(program: &Program, slot: Slot, buffer: &Buffer) -> Result<(), Failure> {
    let least = info_of(program, slot).map_or(0, |info| info.min_bytes);
    if buffer.size() < u64::from(least) {
        let problem = format!("{} bytes are too few: its block takes at least {least}", buffer.size());
        return Err(Failure(format!("binding {slot}: {problem}")));
    }
    Ok(())
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

fn kind_name(kind: BindingKind) -> &'static str {
    match kind {
        BindingKind::StorageBuffer => "storage buffer",
        BindingKind::UniformBuffer => "uniform buffer",
    }
}

fn option_for(kind: BindingKind) -> &'static str {
    match kind {
        BindingKind::StorageBuffer => "--bind",
        BindingKind::UniformBuffer => "--uniform",
    }
}
