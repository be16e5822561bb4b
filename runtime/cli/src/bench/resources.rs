//! Images and samplers of a bench, from `--image` and `--sampler` as for `spelter run`.

use std::collections::BTreeSet;

use spelter::{BindingInfo, BindingKind, Context, Program};

use crate::args::{BenchArgs, ImageArgs};
use crate::failure::Failure;
use crate::names;
use crate::run::images::{self, BoundImage, BoundSampler};
use crate::shader::Shader;
use crate::slot::Slot;

/// Images and samplers that are bound to the slots of a context.
pub(super) struct Images {
    /// Keep them alive.
    _images: Vec<BoundImage>,
    _samplers: Vec<BoundSampler>,
    /// Bytes of the texels of all images.
    pub(super) bytes: u64,
}

/// Makes and binds what the options describe. An error if an image or sampler of the program has no option.
pub(super) fn bind(context: &Context, program: &Program, shader: &Shader, args: &BenchArgs) -> Result<Images, Failure> {
    let options = options(shader, args)?;
    check(program.bindings(), &options)?;
    let images = images::images(context, program.bindings(), &options)?;
    let samplers = images::samplers(context, program.bindings(), &options)?;
    let at = |Slot { group, binding, element }| spelter::Slot { group, binding, element };
    images.iter().try_for_each(|image| context.bind(at(image.slot), image.bind()))?;
    samplers.iter().try_for_each(|sampler| context.bind(at(sampler.slot), sampler.bind()))?;
    let bytes = images.iter().map(BoundImage::bytes).sum();
    Ok(Images { _images: images, _samplers: samplers, bytes })
}

/// The options with the slots of their names.
fn options(shader: &Shader, args: &BenchArgs) -> Result<ImageArgs, Failure> {
    let mut options = ImageArgs { image: args.image.clone(), sampler: args.sampler.clone(), invocations: None };
    let images = options.image.iter_mut().map(|image| ("--image", &image.name, &mut image.slot));
    let samplers = options.sampler.iter_mut().map(|sampler| ("--sampler", &sampler.name, &mut sampler.slot));
    names::look_up(shader, images.chain(samplers))?;
    Ok(options)
}

/// Checks that each option has a binding that takes it, and each image and sampler an option.
fn check(infos: &[BindingInfo], options: &ImageArgs) -> Result<(), Failure> {
    let mut given = BTreeSet::new();
    let images = options.image.iter().map(|image| ("--image", image.slot));
    let samplers = options.sampler.iter().map(|sampler| ("--sampler", sampler.slot));
    for (option, slot) in images.chain(samplers) {
        let wrong = |problem: &str| Err(Failure(format!("{option} {slot}: {problem}")));
        let is_it = |info: &&BindingInfo| (info.group, info.binding) == (slot.group, slot.binding);
        match infos.iter().find(is_it) {
            None => return wrong("the kernel does not use it"),
            Some(info) if slot.element >= info.count => {
                return wrong(&format!("the binding has {} elements", info.count));
            }
            Some(info) if !takes(info.kind, option) => return wrong("the binding takes something else"),
            Some(_) if !given.insert((slot, option)) => return wrong("it is given twice"),
            Some(_) => {}
        }
    }
    for info in infos {
        let (option, what, value) = match info.kind {
            BindingKind::Sampler => ("--sampler", "sampler", "linear,repeat, or other words"),
            kind if takes(kind, "--image") => ("--image", "image", "FILE.png or FORMAT:WIDTHxHEIGHT"),
            _ => continue,
        };
        let mut slots = (0..info.count).map(|element| Slot { group: info.group, binding: info.binding, element });
        if let Some(slot) = slots.find(|slot| !given.contains(&(*slot, option))) {
            return Err(Failure(format!("binding {slot} has no {what}: use {option} {slot}={value}")));
        }
    }
    Ok(())
}

fn takes(kind: BindingKind, option: &str) -> bool {
    match kind {
        BindingKind::SampledImage | BindingKind::StorageImage => option == "--image",
        BindingKind::Sampler => option == "--sampler",
        BindingKind::CombinedImageSampler => true,
        BindingKind::StorageBuffer
        | BindingKind::UniformBuffer
        | BindingKind::UniformTexelBuffer
        | BindingKind::StorageTexelBuffer => false,
    }
}
