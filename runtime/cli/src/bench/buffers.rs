//! The buffers of a point: those that options fill, and storage buffers of the point's size for the other bindings.

use std::collections::BTreeMap;

use spelter::{Bind as Binding, BindingInfo, BindingKind, Buffer, Context};

use crate::failure::Failure;
use crate::file;
use crate::names;
use crate::random::Random;
use crate::shader::Shader;
use crate::slot::{Bind, Slot};
use crate::value::Value;

/// Bytes of random floats, which are repeated.
const PATTERN: usize = 1 << 20;

/// The options that fill buffers.
pub(super) struct Inputs {
    bind: Vec<Bind>,
    uniform: Vec<Bind>,
}

impl Inputs {
    /// The options with the slots of their names.
    pub(super) fn new(shader: &Shader, bind: &[Bind], uniform: &[Bind]) -> Result<Self, Failure> {
        let mut inputs = Self { bind: bind.to_vec(), uniform: uniform.to_vec() };
        let binds = inputs.bind.iter_mut().map(|bind| ("--bind", &bind.name, &mut bind.slot));
        let uniforms = inputs.uniform.iter_mut().map(|bind| ("--uniform", &bind.name, &mut bind.slot));
        names::look_up(shader, binds.chain(uniforms))?;
        Ok(inputs)
    }

    /// By group and binding, the elements that they name.
    pub(super) fn elements(&self) -> BTreeMap<(u32, u32), u32> {
        names::elements(self.bind.iter().chain(&self.uniform).map(|bind| bind.slot))
    }
}

/// Bindings that programs declare, and the names of the programs.
#[derive(Clone, Copy)]
pub(super) struct Declared<'a> {
    pub(super) infos: &'a [BindingInfo],
    pub(super) by: &'a str,
}

/// Buffers that are bound to the slots of a context.
pub(super) struct BoundBuffers {
    /// Keeps them alive.
    pub(super) buffers: Vec<(Slot, Buffer)>,
    /// Bytes of all of them together.
    pub(super) bytes: u64,
}

/// Fills and binds a buffer for each descriptor. `bytes` is the size of those without an option, by
/// default that of one element for each invocation.
pub(super) fn bind(
    context: &Context,
    declared: Declared<'_>,
    inputs: &Inputs,
    (bytes, invocations): (Option<u64>, u64),
) -> Result<BoundBuffers, Failure> {
    let mut given: BTreeMap<Slot, (&str, BindingKind, &Value)> = BTreeMap::new();
    let storage = inputs.bind.iter().map(|bind| ("--bind", BindingKind::StorageBuffer, bind));
    let uniform = inputs.uniform.iter().map(|bind| ("--uniform", BindingKind::UniformBuffer, bind));
    for (option, kind, bind) in storage.chain(uniform) {
        check(declared, option, kind, bind.slot)?;
        if given.insert(bind.slot, (option, kind, &bind.value)).is_some() {
            return Err(Failure::new(format!("binding {} is given twice", bind.slot)));
        }
    }
    let mut bound = BoundBuffers { buffers: Vec::new(), bytes: 0 };
    for info in declared.infos {
        for element in 0..info.count {
            let slot = Slot { group: info.group, binding: info.binding, element };
            let buffer = match given.get(&slot) {
                Some((_, _, Value::Null)) => {
                    context.bind(at(slot), Binding::null(info.kind))?;
                    continue;
                }
                Some((option, _, value)) => {
                    from_value(context, value).map_err(|failure| Failure::new(format!("{option} {slot}: {failure}")))?
                }
                None => automatic(context, info, slot, (bytes, invocations))?,
            };
            let what = match info.kind {
                BindingKind::UniformBuffer => Binding::uniform(&buffer),
                _ => Binding::storage(&buffer),
            };
            context.bind(at(slot), what)?;
            bound.bytes += buffer.size();
            bound.buffers.push((slot, buffer));
        }
    }
    Ok(bound)
}

fn at(Slot { group, binding, element }: Slot) -> spelter::Slot {
    spelter::Slot { group, binding, element }
}

/// Checks that an option fits the declared binding.
fn check(declared: Declared<'_>, option: &str, kind: BindingKind, slot: Slot) -> Result<(), Failure> {
    let is_it = |info: &&BindingInfo| (info.group, info.binding) == (slot.group, slot.binding);
    let problem = match declared.infos.iter().find(is_it) {
        None => format!("{} does not use it", declared.by),
        Some(info) if slot.element >= info.count => format!("the binding has {} elements", info.count),
        Some(info) if info.kind == kind => return Ok(()),
        Some(BindingInfo { kind: BindingKind::StorageBuffer, .. }) => "it is a storage buffer: use --bind".to_owned(),
        Some(BindingInfo { kind: BindingKind::UniformBuffer, .. }) => {
            "it is a uniform buffer: use --uniform".to_owned()
        }
        Some(_) => "it is not a buffer".to_owned(),
    };
    Err(Failure::new(format!("{option} {slot}: {problem}")))
}

/// Checks the sizes of the buffers that [`bind`] would fill by itself.
pub(super) fn check_sizes(
    context: &Context,
    infos: &[BindingInfo],
    inputs: &Inputs,
    point: (Option<u64>, u64),
) -> Result<(), Failure> {
    let is_given = |slot: &Slot| inputs.bind.iter().any(|bind| bind.slot == *slot);
    for info in infos.iter().filter(|info| info.kind == BindingKind::StorageBuffer) {
        let slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
        for slot in slots.filter(|slot| !is_given(slot)) {
            automatic_size(context, info, slot, point)?;
        }
    }
    Ok(())
}

/// The size of a storage buffer without an option.
fn automatic_size(
    context: &Context,
    info: &BindingInfo,
    slot: Slot,
    (bytes, invocations): (Option<u64>, u64),
) -> Result<u64, Failure> {
    let (fixed, element) = (u64::from(info.min_bytes), u64::from(info.element_bytes));
    let size = bytes.unwrap_or_else(|| fixed.saturating_add(element.saturating_mul(invocations))).max(4);
    let most: u64 = context.device().limits().max_storage_buffer_range.into();
    let problem = format!("binding {slot}: a storage buffer of {size} bytes");
    match size {
        _ if size < fixed => {
            let rule = "VUID-vkCmdDispatch-None-08114";
            Err(Failure::new(format!("{problem}, and the program's block has {fixed} ({rule})")))
        }
        _ if size > most => {
            Err(Failure::new(format!("{problem}: at most {most} (maxStorageBufferRange); use --bytes or --bind")))
        }
        size => Ok(size),
    }
}

fn from_value(context: &Context, value: &Value) -> Result<Buffer, Failure> {
    let most: u64 = context.device().limits().max_storage_buffer_range.into();
    match value {
        Value::Null | Value::Zeros(0) => Err(Failure::new("a buffer needs at least one byte".to_owned())),
        Value::Zeros(bytes) => Ok(context.buffer_zeroed(*bytes)?),
        Value::Bytes(bytes) => from_bytes(context, bytes),
        Value::File(path) => from_bytes(context, &file::read(path, most)?),
    }
}

fn from_bytes(context: &Context, bytes: &[u8]) -> Result<Buffer, Failure> {
    match bytes {
        [] => Err(Failure::new("a buffer needs at least one byte".to_owned())),
        bytes => Ok(context.buffer_from(bytes)?),
    }
}

/// A storage buffer with random floats.
fn automatic(
    context: &Context,
    info: &BindingInfo,
    slot: Slot,
    (bytes, invocations): (Option<u64>, u64),
) -> Result<Buffer, Failure> {
    match info.kind {
        BindingKind::StorageBuffer => {}
        BindingKind::UniformBuffer => {
            let problem = format!("binding {slot}, a uniform buffer, has no contents: use --uniform {slot}=VALUE");
            return Err(Failure::new(problem));
        }
        _ => {
            let problem =
                "is not a buffer: this command runs kernels on buffers only; `spelter run --trace` measures others";
            return Err(Failure::new(format!("binding {slot} {problem}")));
        }
    }
    let size = automatic_size(context, info, slot, (bytes, invocations))?;
    let mut random = Random::new(u64::from(slot.group) << 32 | u64::from(slot.binding));
    let length = usize::try_from(size).unwrap_or(usize::MAX).min(PATTERN);
    let pattern: Vec<u8> = (0..length.div_ceil(4)).flat_map(|_| random.fraction().to_le_bytes()).collect();
    let buffer = context.buffer(size).build()?;
    for start in (0..size).step_by(PATTERN) {
        let long = (size - start).min(PATTERN as u64) as usize;
        context.write(&buffer, start, &pattern[..long])?;
    }
    Ok(buffer)
}
