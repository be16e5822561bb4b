//! A generated program: a kernel with its dispatch and memory.

use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::Descriptor;
use spelter_shaders::ir::Kernel;

use super::feature::Features;
use super::texture::Texture;
use crate::mutate::Rng;

/// A kernel with its dispatch and memory.
#[derive(Clone, Debug)]
pub struct Program {
    /// The kernel.
    pub kernel: Kernel,
    /// Workgroups.
    pub groups: [u32; 3],
    /// The first workgroup's id.
    pub base: [u32; 3],
    /// Push constants; at most as many bytes as a device supports.
    pub push: Vec<u8>,
    /// The buffer that holds the addresses of all buffers, if there is one.
    pub addresses: Option<usize>,
    /// One for each descriptor, in the kernel's order.
    pub buffers: Vec<Buffer>,
    /// The buffers that hold texels.
    pub textures: Vec<Texture>,
}

impl Program {
    /// The images and samplers of all descriptors, whose memory is `buffers`. As in descriptor sets, the memory of an
    /// image begins with its view afterwards.
    pub(super) fn images(&self, buffers: &mut [GuestSlice]) -> Vec<Descriptor> {
        let mut images = vec![Descriptor::NULL; self.buffers.len()];
        for texture in &self.textures {
            if let (Some(image), Some(memory)) = (images.get_mut(texture.buffer), buffers.get_mut(texture.buffer)) {
                *image = texture.descriptor(*memory);
                *memory = image.view.memory;
            }
        }
        images
    }
}

/// The memory of a descriptor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buffer {
    /// Byte offset of the first byte from a multiple of 64.
    pub lead: u32,
    /// Initial contents.
    pub bytes: Vec<u8>,
}

/// A program with the features that it contains.
#[derive(Clone, Debug)]
pub struct Generated {
    /// The program.
    pub program: Program,
    /// Its features.
    pub features: Features,
}

/// Contents for a buffer, the same for the same seed and style: 0 is zeros, 1 small integers, 2 random bits, 3 small
/// floats, and any other style words of all these kinds.
pub fn fill(bytes: usize, seed: u32, style: u32) -> Vec<u8> {
    let mut rng = Rng::new(u64::from(seed));
    let mut word = |at: usize| {
        let bits = rng.bits();
        let small = (bits >> 40) as u32 % 16;
        match (style, bits & 3) {
            (0, _) => 0,
            (1, _) => small,
            (2, _) | (4, 0) => (bits >> 32) as u32,
            (3, _) | (4, 1) => ((small as f32 - 7.5) * 0.375 * (at % 5) as f32).to_bits(),
            (_, 2) => small.wrapping_sub(8),
            _ => at as u32,
        }
    };
    let mut filled: Vec<u8> = (0..bytes.div_ceil(4)).flat_map(|at| word(at).to_le_bytes()).collect();
    filled.truncate(bytes);
    filled
}
