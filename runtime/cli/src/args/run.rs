//! Further options of `spelter run`: images, samplers and texel buffers, as other commands take them; the number of
//! workgroups.

use std::path::Path;

use clap::Args;

use super::RunArgs;
use crate::image::{Contents, Source};
use crate::structured::{ImageOption, SamplerOption, TexelsOption};
use crate::value::Value;

/// Images, samplers and texel buffers.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ImageArgs {
    /// Fill a sampled or storage image, or the image of a combined image and sampler.
    #[arg(long, value_name = "G.B=SOURCE", allow_hyphen_values = true)]
    pub(crate) image: Vec<ImageOption>,
    /// Set a sampler, or that of a combined image and sampler; `nearest,clamp` is the default there.
    #[arg(long, value_name = "G.B=WORD,…", allow_hyphen_values = true)]
    pub(crate) sampler: Vec<SamplerOption>,
    /// Fill a uniform or storage texel buffer: a format, and VALUE.
    #[arg(long, value_name = "G.B=FORMAT:VALUE", allow_hyphen_values = true)]
    pub(crate) texels: Vec<TexelsOption>,
}

impl RunArgs {
    /// The files with the contents of buffers, images and texel buffers.
    pub(crate) fn input_files(&self) -> Vec<&Path> {
        let values = self.bind.iter().chain(&self.uniform).map(|bind| &bind.value);
        let texels = self.images.texels.iter().filter_map(|texels| Some(&texels.contents.as_ref()?.1));
        let of_values = values.chain(texels).filter_map(|value| match value {
            Value::File(path) => Some(path.as_path()),
            _ => None,
        });
        let of_images = self.images.image.iter().filter_map(|image| match &image.source {
            Source::Picture { path, .. } | Source::Texels { contents: Contents::File(path), .. } => {
                Some(path.as_path())
            }
            _ => None,
        });
        of_values.chain(of_images).collect()
    }

    /// The number of workgroups in each direction, of this size.
    pub(crate) fn groups(&self, size: [u32; 3]) -> [u32; 3] {
        match self.invocations {
            Some(invocations) => std::array::from_fn(|axis| invocations.0[axis].div_ceil(size[axis].max(1))),
            None => self.groups.map_or([1; 3], |groups| groups.0),
        }
    }

    /// The option that gives the number of workgroups, or would.
    pub(crate) fn size_option(&self) -> &'static str {
        if self.invocations.is_some() { "--invocations" } else { "--groups" }
    }

    /// Whether an option gives the number of workgroups.
    pub(crate) fn states_groups(&self) -> bool {
        self.groups.is_some() || self.invocations.is_some()
    }
}
