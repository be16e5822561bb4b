//! The options that fill descriptors, with the slots of their names, and the checks of them against the bindings.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use spelter::{BindingInfo, choose_entry};
use spelter_shaders::front::{DataLayout, ScalarType};

use crate::args::ImageArgs;
use crate::failure::Failure;
use crate::names;
use crate::run::bind::{empty_elements, info_of, options_for};
use crate::shader::{self, Shader};
use crate::slot::Slot;
use crate::structured::{Bind, Spec};

/// Scalars of a block that are looked at, at most: a uniform buffer has 64 KiB.
const MAX_SCALARS: usize = 1 << 16;

/// The offset of a scalar in its block, in bytes, and its type.
pub(super) type PlacedType = (u64, ScalarType);

/// The options that fill descriptors.
pub(super) struct Inputs {
    pub(super) bind: Vec<Bind>,
    pub(super) uniform: Vec<Bind>,
    pub(super) images: ImageArgs,
    /// By group and binding, the scalars of blocks.
    scalars: BTreeMap<(u32, u32), Vec<PlacedType>>,
}

/// Bindings that programs declare, and the names of the programs.
#[derive(Clone, Copy)]
pub(super) struct Declared<'a> {
    pub(super) infos: &'a [BindingInfo],
    pub(super) by: &'a str,
}

impl Inputs {
    /// The options with the slots of their names.
    pub(super) fn new(
        shader: &Shader,
        (entries, specs): (&[Option<&str>], &[Spec]),
        (bind, uniform): (&[Bind], &[Bind]),
        images: ImageArgs,
    ) -> Result<Self, Failure> {
        let (mut bind, mut uniform, mut images) = (bind.to_vec(), uniform.to_vec(), images);
        let binds = bind.iter_mut().map(|bind| ("--bind", &bind.name, &mut bind.slot));
        let uniforms = uniform.iter_mut().map(|bind| ("--uniform", &bind.name, &mut bind.slot));
        let pictures = images.image.iter_mut().map(|image| ("--image", &image.name, &mut image.slot));
        let samplers = images.sampler.iter_mut().map(|sampler| ("--sampler", &sampler.name, &mut sampler.slot));
        let texels = images.texels.iter_mut().map(|texels| ("--texels", &texels.name, &mut texels.slot));
        names::look_up(shader, binds.chain(uniforms).chain(pictures).chain(samplers).chain(texels))?;
        let mut scalars = BTreeMap::new();
        for entry in entries {
            // What is wrong with the shader is reported when its program is made.
            scalars.extend(scalars_of_blocks(shader, *entry, specs).unwrap_or_default());
        }
        Ok(Self { bind, uniform, images, scalars })
    }

    /// By group and binding, the elements that they name.
    pub(super) fn elements(&self) -> BTreeMap<(u32, u32), u32> {
        names::elements(self.given().map(|(_, slot)| slot))
    }

    /// The scalars of a block, if they are known.
    pub(super) fn scalars(&self, info: &BindingInfo) -> &[PlacedType] {
        self.scalars.get(&(info.group, info.binding)).map_or(&[], |scalars| &scalars[..])
    }

    /// Notes on uniform buffers without an option, whose contents may decide what a kernel does.
    pub(super) fn notes(&self, infos: &[BindingInfo]) -> Vec<String> {
        let given: BTreeSet<_> = self.uniform.iter().map(|bind| (bind.slot.group, bind.slot.binding)).collect();
        let uniform = infos.iter().filter(|info| info.kind == spelter::BindingKind::UniformBuffer);
        let unstated = uniform.filter(|info| !given.contains(&(info.group, info.binding)));
        let note = |info: &BindingInfo| {
            let what = "its floats are random from 0 up to 1, its integers are the number of invocations";
            format!("binding {}.{}, a uniform buffer, has no --uniform: {what}", info.group, info.binding)
        };
        unstated.map(note).collect()
    }

    /// The slots of all options.
    pub(super) fn given(&self) -> impl Iterator<Item = (&'static str, Slot)> {
        let storage = self.bind.iter().map(|bind| ("--bind", bind.slot));
        let uniform = self.uniform.iter().map(|bind| ("--uniform", bind.slot));
        let image = self.images.image.iter().map(|image| ("--image", image.slot));
        let sampler = self.images.sampler.iter().map(|sampler| ("--sampler", sampler.slot));
        let texels = self.images.texels.iter().map(|texels| ("--texels", texels.slot));
        storage.chain(uniform).chain(image).chain(sampler).chain(texels)
    }

    /// Checks that each option fits a binding, and that images and samplers have options. Returns the image elements of
    /// arrays that no option names: they are null.
    pub(super) fn check<'a>(&self, declared: Declared<'a>) -> Result<Vec<(Slot, &'a BindingInfo)>, Failure> {
        let mut seen = BTreeSet::new();
        for (option, slot) in self.given() {
            check(declared, option, slot)?;
            if !seen.insert((slot, option == "--sampler")) {
                return Err(Failure::misuse(format!("binding {slot} is given twice")));
            }
        }
        let mut empty = Vec::new();
        for info in declared.infos.iter().filter(|info| !has_buffer(info)) {
            empty.extend(empty_elements(info, &seen)?.into_iter().map(|slot| (slot, info)));
        }
        Ok(empty)
    }
}

fn scalars_of_blocks(
    shader: &Shader,
    entry: Option<&str>,
    specs: &[Spec],
) -> Result<BTreeMap<(u32, u32), Vec<PlacedType>>, Failure> {
    let module = shader.module()?;
    let entry = choose_entry(module.entry_points(), entry).map_err(|error| shader.refused(error))?;
    let specialization = shader::specialization(&module, specs)?;
    let blocks = module.blocks(&entry, &specialization).map_err(|error| shader.refused(error))?;
    let scalars = |layout: &DataLayout| {
        let mut scalars = Vec::new();
        let _ = layout.visit(MAX_SCALARS as u64, &mut |placed| {
            scalars.push((placed.offset, placed.scalar));
            if scalars.len() < MAX_SCALARS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        scalars
    };
    Ok(blocks.buffers.iter().map(|(place, layout)| (*place, scalars(layout))).collect())
}

/// Whether the binding takes buffers, which need no option.
pub(super) fn has_buffer(info: &BindingInfo) -> bool {
    use spelter::BindingKind as Kind;
    matches!(info.kind, Kind::StorageBuffer | Kind::UniformBuffer | Kind::UniformTexelBuffer | Kind::StorageTexelBuffer)
}

/// Checks that an option fits the declared binding.
fn check(declared: Declared<'_>, option: &str, slot: Slot) -> Result<(), Failure> {
    let problem = match info_of(declared.infos, slot) {
        None => format!("{} does not use it", declared.by),
        Some(info) if slot.element >= info.count => format!("the binding has {} elements", info.count),
        Some(info) if options_for(info.kind).contains(&option) => return Ok(()),
        Some(info) => {
            format!("it is a {}: use {}", info.kind.description(), options_for(info.kind).join(" and "))
        }
    };
    Err(Failure::misuse(format!("{option} {slot}: {problem}")))
}
