//! The image declarations of a module's words: their dimensions and formats are not in the kernel.

use std::collections::BTreeMap;
use std::ops::Range;

use spelter_shaders::front::spirv::image_format;
use spelter_shaders::image::Format;
use spirv::{Decoration, Dim, ExecutionMode, Op};

/// An image as its `OpTypeImage` declares it.
#[derive(Clone, Copy, Debug)]
pub struct ImageType {
    /// Dimensions.
    pub dim: Dim,
    /// Whether it has layers.
    pub arrayed: bool,
    /// The format that it names, or one that fits the type of its texels.
    pub format: Format,
}

/// The images of a module by set and binding. Invalid declarations are omitted: the reader rejects them.
pub fn images(words: &[u32]) -> BTreeMap<(u32, u32), ImageType> {
    let mut module = Declarations::default();
    for inst in instructions(words) {
        module.note(words[inst.start] & 0xffff, &words[inst][1..]);
    }
    let place = |variable: &u32| Some((*module.sets.get(variable)?, *module.bindings.get(variable)?));
    let found = module.variables.iter().filter_map(|(variable, ty)| Some((place(variable)?, module.image(*ty)?)));
    found.collect()
}

/// The words with another size in each `LocalSize`.
pub fn resized(words: &[u32], size: [u32; 3]) -> Vec<u32> {
    let mut resized = words.to_vec();
    for inst in instructions(words) {
        if let (Some(Op::ExecutionMode), &[_, _, LOCAL_SIZE, _, _, _]) =
            (Op::from_u32(words[inst.start] & 0xffff), &words[inst.clone()])
        {
            resized[inst.end - 3..inst.end].copy_from_slice(&size);
        }
    }
    resized
}

const LOCAL_SIZE: u32 = ExecutionMode::LocalSize as u32;

/// The word ranges of instructions.
fn instructions(words: &[u32]) -> impl Iterator<Item = Range<usize>> {
    let next = |from: usize| {
        let length = (words.get(from)? >> 16).max(1) as usize;
        Some(from..(from + length).min(words.len()))
    };
    std::iter::successors(next(5), move |inst| next(inst.end))
}

#[derive(Default)]
struct Declarations {
    sets: BTreeMap<u32, u32>,
    bindings: BTreeMap<u32, u32>,
    /// Types that contain one other type: pointers, arrays, sampled images.
    inner: BTreeMap<u32, u32>,
    images: BTreeMap<u32, ImageType>,
    integers: BTreeMap<u32, bool>,
    variables: BTreeMap<u32, u32>,
}

impl Declarations {
    fn note(&mut self, op: u32, operands: &[u32]) {
        match (Op::from_u32(op), operands) {
            (Some(Op::Decorate), &[id, decoration, value, ..]) => match Decoration::from_u32(decoration) {
                Some(Decoration::DescriptorSet) => _ = self.sets.insert(id, value),
                Some(Decoration::Binding) => _ = self.bindings.insert(id, value),
                _ => {}
            },
            (Some(Op::TypeInt), &[id, _, signed]) => _ = self.integers.insert(id, signed != 0),
            (Some(Op::TypeImage), &[id, texel, dim, _, arrayed, _, _, format, ..]) => {
                let Some(dim) = Dim::from_u32(dim) else { return };
                let any = match self.integers.get(&texel) {
                    None => Format::R8G8B8A8_UNORM,
                    Some(false) => Format::R32G32B32A32_UINT,
                    Some(true) => Format::R16G16B16A16_SINT,
                };
                let format = image_format(format).ok().flatten().unwrap_or(any);
                self.images.insert(id, ImageType { dim, arrayed: arrayed != 0, format });
            }
            (Some(Op::TypePointer), &[id, _, inner])
            | (Some(Op::TypeArray), &[id, inner, _])
            | (Some(Op::TypeRuntimeArray | Op::TypeSampledImage), &[id, inner]) => _ = self.inner.insert(id, inner),
            (Some(Op::Variable), &[ty, id, ..]) => _ = self.variables.insert(id, ty),
            _ => {}
        }
    }

    /// The image inside a type.
    fn image(&self, ty: u32) -> Option<ImageType> {
        // A pointer to an array of sampled images.
        let mut ty = ty;
        for _ in 0..4 {
            match self.images.get(&ty) {
                Some(image) => return Some(*image),
                None => ty = *self.inner.get(&ty)?,
            }
        }
        self.images.get(&ty).copied()
    }
}
