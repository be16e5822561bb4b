//! A launch for a shader of which only the text is known: buffers that fit the invocations, with contents that make it
//! do something.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use clap::Parser;
use spelter_shaders::front::{DataLayout, ScalarType};
use spelter_shaders::ir::{BindingData, BindingKind};

use crate::args::{Cli, Command, RunArgs};
use crate::failure::Failure;
use crate::random::Random;
use crate::shader::Shader;
use crate::slot::Slot;
use crate::structured::{Bind, Push};
use crate::value::Value;

/// Numbers of a block's fixed part that are filled, at most.
const MAX_SCALARS: usize = 1 << 16;

/// The largest buffer in bytes.
const MAX_BYTES: u64 = 256 << 20;

/// The launch of an entry point, or why there is none.
pub(crate) fn launch(shader: &Shader, entry: &str, groups: [u32; 3]) -> Result<Result<RunArgs, String>, Failure> {
    let module = shader.module()?;
    let blocks = module.blocks(entry, &BTreeMap::new()).map_err(|error| shader.refused(error))?;
    let kernel = shader.kernel(&module, entry, &BTreeMap::new())?;
    let all = groups.into_iter().chain(kernel.workgroup_size).map(u64::from);
    let Some(invocations) = all.into_iter().try_fold(1u64, u64::checked_mul) else {
        return Ok(Err("it has more than 2^64 invocations".to_owned()));
    };
    let mut args = options(shader, entry, groups)?;
    for data in kernel.bindings.values() {
        let layout = blocks.buffers.get(&(data.set, data.binding));
        for element in 0..data.count.max(1) {
            let slot = Slot { group: data.set, binding: data.binding, element };
            let bytes = match data.kind {
                BindingKind::StorageBuffer | BindingKind::UniformBuffer => contents(data, layout, (slot, invocations)),
                _ => Err("images, samplers and texel buffers need options, in a list of launches".to_owned()),
            };
            let value = match bytes {
                Ok(bytes) => Value::Bytes(bytes),
                Err(problem) => return Ok(Err(format!("binding {slot}: {problem}"))),
            };
            let bind = Bind { slot, name: None, value };
            if data.kind == BindingKind::UniformBuffer { args.uniform.push(bind) } else { args.bind.push(bind) }
        }
    }
    if kernel.push_bytes > 0 {
        let mut bytes = vec![0; kernel.push_bytes as usize];
        fill(&mut bytes, blocks.push.as_ref(), (invocations, true), &mut Random::new(u64::MAX));
        args.push.push(Push(bytes));
    }
    Ok(Ok(args))
}

/// The options of a run without resources.
fn options(shader: &Shader, entry: &str, groups: [u32; 3]) -> Result<RunArgs, Failure> {
    let groups = format!("--groups={}", groups.map(|count| count.to_string()).join(","));
    let words = ["spelter", "run", &groups, "--"].map(Into::into).into_iter().chain([shader.path().as_os_str().into()]);
    let words: Vec<std::ffi::OsString> = words.collect();
    match Cli::try_parse_from(words) {
        Ok(Cli { command: Command::Run(args), .. }) => Ok(RunArgs { entry: Some(entry.to_owned()), ..args }),
        _ => Err(Failure::file(shader.path(), "its name does not end like that of a shader")),
    }
}

/// The contents of a buffer.
fn contents(
    data: &BindingData,
    layout: Option<&DataLayout>,
    (slot, invocations): (Slot, u64),
) -> Result<Vec<u8>, String> {
    let elements = u64::from(data.element_bytes).checked_mul(invocations);
    let size = elements.and_then(|bytes| bytes.checked_add(data.min_bytes.into())).filter(|size| *size <= MAX_BYTES);
    let size = size.ok_or_else(|| format!("a buffer for {invocations} invocations has more than {MAX_BYTES} bytes"))?;
    let mut bytes = vec![0; (size as usize).max(4)];
    // Another stream for each descriptor.
    let seed = u64::from(slot.group) << 48 ^ u64::from(slot.binding) << 16 ^ u64::from(slot.element);
    let is_uniform = data.kind == BindingKind::UniformBuffer;
    fill(&mut bytes, layout, (invocations, is_uniform), &mut Random::new(seed));
    Ok(bytes)
}

/// Fills a block: floats are random fractions; integers are the number of invocations if `is_count`, and otherwise
/// random numbers below it, which are indices of elements.
fn fill(bytes: &mut [u8], layout: Option<&DataLayout>, (invocations, is_count): (u64, bool), random: &mut Random) {
    let Some(layout) = layout else { return };
    let mut put = |offset: u64, scalar: ScalarType| {
        let integer = if is_count { invocations } else { u64::from(random.word()) % invocations.max(1) };
        let value = random.scalar(scalar, integer).to_le_bytes();
        let (at, size) = (offset as usize, scalar.bytes() as usize);
        if let Some(place) = bytes.get_mut(at..at + size) {
            place.copy_from_slice(&value[..size]);
        }
    };
    scalars(layout).into_iter().for_each(|(offset, scalar)| put(offset, scalar));
    if let Some((start, DataLayout::Array { element, stride, .. })) = layout.tail() {
        let element = scalars(element);
        for at in 0..invocations {
            element.iter().for_each(|(offset, scalar)| put(start + at * stride + offset, *scalar));
        }
    }
}

/// The numbers of the fixed part.
fn scalars(layout: &DataLayout) -> Vec<(u64, ScalarType)> {
    let mut scalars = Vec::new();
    let _ = layout.visit(MAX_SCALARS as u64, &mut |placed| {
        scalars.push((placed.offset, placed.scalar));
        if scalars.len() < MAX_SCALARS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    scalars
}
