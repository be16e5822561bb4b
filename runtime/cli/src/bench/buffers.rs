//! The buffers of a point: those that options fill, and buffers of the point's size for the other bindings.

use std::collections::BTreeMap;

use spelter::{Bind as Binding, BindingInfo, BindingKind, Buffer, Context, TexelClass, vk};
use spelter_shaders::image::Format;

use super::inputs::{Inputs, has_buffer};
use crate::failure::Failure;
use crate::image::{self, Contents};
use crate::random::Random;
use crate::run::bind::filled;
use crate::slot::Slot;
use crate::value::Value;

/// Bytes of a pattern, which is repeated.
const PATTERN: usize = 1 << 20;

/// The size of a point: that of buffers without an option if it is given, and the number of invocations.
pub(super) type Size = (Option<u64>, u64);

/// What an option gives a slot: its name, the format of texels, and the contents.
type SlotContents<'a> = (&'static str, Option<Format>, &'a Value);

/// Makes a buffer for each descriptor of a buffer, and what is bound of it; `None` for null descriptors. Buffers
/// without an option have the point's size.
pub(super) fn make(
    context: &Context,
    infos: &[BindingInfo],
    inputs: &Inputs,
    size: Size,
) -> Result<Vec<(Slot, Option<Buffer>, Binding)>, Failure> {
    let given = given(inputs);
    let mut made = Vec::new();
    for info in infos.iter().filter(|info| has_buffer(info)) {
        for slot in slots(info) {
            let (buffer, format) = match given.get(&slot) {
                Some((_, _, Value::Null)) => {
                    made.push((slot, None, Binding::null(info.kind)));
                    continue;
                }
                Some((option, format, value)) => {
                    let wrong = |failure: Failure| failure.of(format_args!("{option} {slot}"));
                    (filled(context, value).map_err(wrong)?, *format)
                }
                None => (automatic(context, info, slot, inputs, size)?, Some(texel_format(info)?)),
            };
            let format = format.map_or(vk::Format::UNDEFINED, image::vulkan);
            let binding = match info.kind {
                BindingKind::UniformBuffer => Binding::uniform(&buffer),
                BindingKind::UniformTexelBuffer => Binding::texels(&buffer, format),
                BindingKind::StorageTexelBuffer => Binding::storage_texels(&buffer, format),
                _ => Binding::storage(&buffer),
            };
            made.push((slot, Some(buffer), binding));
        }
    }
    Ok(made)
}

fn slots(info: &BindingInfo) -> impl Iterator<Item = Slot> + use<> {
    let (group, binding) = (info.group, info.binding);
    (0..info.count).map(move |element| Slot { group, binding, element })
}

/// By slot, what options give. The options are known to fit the bindings.
fn given(inputs: &Inputs) -> BTreeMap<Slot, SlotContents<'_>> {
    let storage = inputs.bind.iter().map(|bind| (bind.slot, ("--bind", None, &bind.value)));
    let uniform = inputs.uniform.iter().map(|bind| (bind.slot, ("--uniform", None, &bind.value)));
    let texels = inputs.images.texels.iter().map(|texels| match &texels.contents {
        Some((format, value)) => (texels.slot, ("--texels", Some(*format), value)),
        None => (texels.slot, ("--texels", None, &Value::Null)),
    });
    storage.chain(uniform).chain(texels).collect()
}

/// Checks the sizes of the buffers that [`make`] would fill by itself.
pub(super) fn check_sizes(
    context: &Context,
    infos: &[BindingInfo],
    inputs: &Inputs,
    size: Size,
) -> Result<(), Failure> {
    let given = given(inputs);
    for info in infos.iter().filter(|info| has_buffer(info)) {
        slots(info)
            .filter(|slot| !given.contains_key(slot))
            .try_for_each(|slot| automatic_size(context, info, slot, size).map(drop))?;
    }
    Ok(())
}

/// The size of a buffer without an option.
fn automatic_size(
    context: &Context,
    info: &BindingInfo,
    slot: Slot,
    (bytes, invocations): Size,
) -> Result<u64, Failure> {
    let limits = context.device().limits();
    let fixed = u64::from(info.min_bytes);
    let of = |element: u64| bytes.unwrap_or_else(|| fixed.saturating_add(element.saturating_mul(invocations)));
    let (what, size, max_size, limit, option) = match info.kind {
        // Its size is that of the block.
        BindingKind::UniformBuffer => return Ok(fixed.max(4)),
        BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => {
            let texel = u64::from(texel_format(info)?.bytes());
            let max_size = u64::from(limits.max_texel_buffer_elements) * texel;
            ("texel", of(texel) / texel * texel, max_size, "maxTexelBufferElements", "--texels")
        }
        _ => {
            let size = of(info.element_bytes.into()).max(4);
            ("storage", size, limits.max_storage_buffer_range.into(), "maxStorageBufferRange", "--bind")
        }
    };
    let problem = format!("binding {slot}: a {what} buffer of {size} bytes");
    match size {
        0 => Err(Failure::misuse(format!("{problem}: it has at least one texel"))),
        _ if size < fixed => {
            let rule = "VUID-vkCmdDispatch-None-08114";
            Err(Failure::misuse(format!("{problem}, and the program's block has {fixed} ({rule})")))
        }
        _ if size > max_size => {
            Err(Failure::misuse(format!("{problem}: at most {max_size} ({limit}); use --bytes or {option}")))
        }
        size => Ok(size),
    }
}

/// The format of a texel buffer without an option: that of the shader, or one word for each texel.
fn texel_format(info: &BindingInfo) -> Result<Format, Failure> {
    match info.image.map(|image| (image.format, image.class)) {
        Some((Some(format), _)) => {
            image::known(format).ok_or_else(|| Failure::new(format!("the format {format:?} is not supported")))
        }
        Some((None, TexelClass::Uint)) => Ok(Format::R32_UINT),
        Some((None, TexelClass::Sint)) => Ok(Format::R32_SINT),
        Some((None, TexelClass::Float)) | None => Ok(Format::R32_SFLOAT),
    }
}

/// A buffer without an option.
fn automatic(
    context: &Context,
    info: &BindingInfo,
    slot: Slot,
    inputs: &Inputs,
    size: Size,
) -> Result<Buffer, Failure> {
    let bytes = automatic_size(context, info, slot, size)?;
    let mut random = Random::new(u64::from(slot.group) << 32 | u64::from(slot.binding));
    let length = usize::try_from(bytes).unwrap_or(usize::MAX).min(PATTERN);
    let pattern = match info.kind {
        BindingKind::UniformBuffer => uniform(inputs, info, (length, size.1), &mut random),
        BindingKind::UniformTexelBuffer | BindingKind::StorageTexelBuffer => {
            let format = texel_format(info)?;
            let texels = (length as u32).div_ceil(format.bytes());
            image::of_pattern(format, [texels, 1, 1], &Contents::Gradient)
        }
        _ => (0..length.div_ceil(4)).flat_map(|_| random.fraction().to_le_bytes()).collect(),
    };
    let buffer = context.buffer(bytes).build()?;
    let (mut start, step) = (0, pattern.len() as u64);
    while start < bytes {
        let long = (bytes - start).min(step) as usize;
        context.write(&buffer, start, &pattern[..long])?;
        start += step;
    }
    Ok(buffer)
}

/// The contents of a uniform buffer of this number of bytes: random fractions for floats, and for integers the number
/// of invocations, at most the largest signed number of their size.
fn uniform(inputs: &Inputs, info: &BindingInfo, (length, invocations): (usize, u64), random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; length];
    for (offset, scalar) in inputs.scalars(info) {
        let bits = random.scalar(*scalar, invocations);
        let (at, size) = (*offset as usize, scalar.bytes() as usize);
        if let Some(place) = bytes.get_mut(at..at + size) {
            place.copy_from_slice(&bits.to_le_bytes()[..size]);
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::ImageArgs;
    use crate::shader;

    #[test]
    fn uniform_buffers_hold_fractions_and_the_number_of_invocations() {
        let text = "
            struct Part { scale: vec2f, count: u32 }
            @group(0) @binding(1) var<uniform> part: array<Part, 2>;
            @group(0) @binding(0) var<storage, read_write> to: f32;
            @compute @workgroup_size(1) fn main() { to = part[1].scale.x + f32(part[0].count); }";
        let folder = std::env::temp_dir().join(format!("spelter-uniform-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("uniform.wgsl");
        std::fs::write(&path, text).unwrap();
        let shader = shader::load(&path).unwrap();
        let inputs = Inputs::new(&shader, (&[None], &[]), (&[], &[]), ImageArgs::default());
        std::fs::remove_dir_all(&folder).unwrap();
        let info = BindingInfo {
            name: String::new(),
            layout: None,
            group: 0,
            binding: 1,
            kind: BindingKind::UniformBuffer,
            count: 1,
            min_bytes: 28,
            element_bytes: 0,
            read_only: true,
            image: None,
        };
        let bytes = uniform(&inputs.unwrap(), &info, (32, 300), &mut Random::new(1));
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        assert_eq!([words[2], words[6], words[3], words[7]], [300, 300, 0, 0]);
        for at in [0, 1, 4, 5] {
            assert!((0.0..1.0).contains(&f32::from_bits(words[at])) && words[at] != 0, "{words:x?}");
        }
    }
}
