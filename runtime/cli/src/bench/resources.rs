//! The resources of a point: buffers, and images and samplers from `--image` and `--sampler` as for `spelter run`.

use spelter::{Bind as Binding, Buffer, Context};

use super::buffers::{self, Size};
use super::inputs::{Declared, Inputs};
use crate::failure::Failure;
use crate::image::Source;
use crate::run::bind::info_of;
use crate::run::images::{self, BoundImage, BoundSampler};
use crate::slot::Slot;

/// Resources that are bound to the slots of a context.
pub(super) struct BenchResources {
    /// Keep them alive.
    _buffers: Vec<Option<Buffer>>,
    _images: Vec<BoundImage>,
    _samplers: Vec<BoundSampler>,
    /// Bytes of all buffers, and of the texels of all images, together.
    pub(super) bytes: u64,
}

/// Makes and binds a resource for each descriptor.
pub(super) fn bind(
    context: &Context,
    declared: Declared<'_>,
    inputs: &Inputs,
    size: Size,
) -> Result<BenchResources, Failure> {
    let empty = inputs.check(declared)?;
    let at = |Slot { group, binding, element }| spelter::Slot { group, binding, element };
    for (slot, info) in empty {
        context.bind(at(slot), Binding::null(info.kind))?;
    }
    for option in inputs.images.image.iter().filter(|option| option.source == Source::Null) {
        if let Some(info) = info_of(declared.infos, option.slot) {
            context.bind(at(option.slot), Binding::null(info.kind))?;
        }
    }
    let mut buffers = Vec::new();
    let mut bytes = 0;
    for (slot, buffer, binding) in buffers::make(context, declared.infos, inputs, size)? {
        context.bind(at(slot), binding)?;
        bytes += buffer.as_ref().map_or(0, Buffer::size);
        buffers.push(buffer);
    }
    let images = images::images(context, declared.infos, &inputs.images)?;
    let samplers = images::samplers(context, declared.infos, &inputs.images)?;
    images.iter().try_for_each(|image| context.bind(at(image.slot), image.bind()))?;
    samplers.iter().try_for_each(|sampler| context.bind(at(sampler.slot), sampler.bind()))?;
    bytes += images.iter().map(BoundImage::bytes).sum::<u64>();
    Ok(BenchResources { _buffers: buffers, _images: images, _samplers: samplers, bytes })
}
