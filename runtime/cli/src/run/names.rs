//! The slots of the options: names of variables are looked up, and the sizes of arrays follow.

use std::collections::BTreeMap;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::names;
use crate::shader::Shader;

/// The options with the slots of their names.
pub(crate) fn resolved(args: &RunArgs, shader: &Shader) -> Result<RunArgs, Failure> {
    let mut args = args.clone();
    let binds = args.bind.iter_mut().map(|bind| ("--bind", &bind.name, &mut bind.slot));
    let uniforms = args.uniform.iter_mut().map(|bind| ("--uniform", &bind.name, &mut bind.slot));
    let images = args.images.image.iter_mut().map(|image| ("--image", &image.name, &mut image.slot));
    let samplers = args.images.sampler.iter_mut().map(|sampler| ("--sampler", &sampler.name, &mut sampler.slot));
    let texels = args.images.texels.iter_mut().map(|texels| ("--texels", &texels.name, &mut texels.slot));
    let outs = args.out.iter_mut().map(|print| ("--out", &print.name, &mut print.slot));
    let saves = args.save.iter_mut().map(|save| ("--save", &save.name, &mut save.slot));
    names::look_up(shader, binds.chain(uniforms).chain(images).chain(samplers).chain(texels).chain(outs).chain(saves))?;
    Ok(args)
}

/// By group and binding, the elements that options name: one more than the highest.
pub(super) fn elements(args: &RunArgs) -> BTreeMap<(u32, u32), u32> {
    let buffers = args.bind.iter().chain(&args.uniform).map(|bind| bind.slot);
    let images = args.images.image.iter().map(|image| image.slot);
    let samplers = args.images.sampler.iter().map(|sampler| sampler.slot);
    let texels = args.images.texels.iter().map(|texels| texels.slot);
    names::elements(buffers.chain(images).chain(samplers).chain(texels))
}
