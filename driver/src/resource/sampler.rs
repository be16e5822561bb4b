//! Samplers: filtering, addressing and comparison.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ash::vk;
use spelter_shaders::image::{Compare, Filter, Sampler as Record, Wrap};

use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::limits::Limits;

const AT: &str = "vkCreateSampler";

/// Parameters of a sampler (`VkSamplerCreateInfo`). Anisotropic filtering is not supported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplerInfo {
    /// Magnification filter.
    pub mag_filter: vk::Filter,
    /// Minification filter.
    pub min_filter: vk::Filter,
    /// Filter between mip levels.
    pub mipmap_mode: vk::SamplerMipmapMode,
    /// Addressing mode for coordinates outside the image, in each dimension.
    pub address_modes: [vk::SamplerAddressMode; 3],
    /// Added to the level of detail.
    pub mip_lod_bias: f32,
    /// The comparison with a reference value, if any.
    pub compare: Option<vk::CompareOp>,
    /// Lowest level of detail.
    pub min_lod: f32,
    /// Highest level of detail.
    pub max_lod: f32,
    /// The colour of the border.
    pub border_color: vk::BorderColor,
    /// Whether coordinates are in texels.
    pub unnormalized_coordinates: bool,
}

impl Default for SamplerInfo {
    fn default() -> Self {
        Self {
            mag_filter: vk::Filter::NEAREST,
            min_filter: vk::Filter::NEAREST,
            mipmap_mode: vk::SamplerMipmapMode::NEAREST,
            address_modes: [vk::SamplerAddressMode::CLAMP_TO_EDGE; 3],
            mip_lod_bias: 0.0,
            compare: None,
            min_lod: 0.0,
            max_lod: vk::LOD_CLAMP_NONE,
            border_color: vk::BorderColor::FLOAT_TRANSPARENT_BLACK,
            unnormalized_coordinates: false,
        }
    }
}

/// A sampler (`VkSampler`). A handle.
#[derive(Clone, Debug)]
pub struct Sampler {
    inner: Arc<SamplerInner>,
}

#[derive(Debug)]
struct SamplerInner {
    device: Device,
    record: Record,
    /// Whether it compares with a reference; if not, `record.compare` is `Never`.
    compares: bool,
    number: u64,
}

impl Device {
    /// `vkCreateSampler`.
    pub fn create_sampler(&self, info: &SamplerInfo) -> Result<Sampler, Error> {
        Sampler::new(self, info)
    }
}

impl Sampler {
    fn new(device: &Device, info: &SamplerInfo) -> Result<Self, Error> {
        check(info)?;
        let [u, v, w] = info.address_modes.map(wrap);
        let record = Record {
            mag: filter(info.mag_filter)?,
            min: filter(info.min_filter)?,
            mip: mipmap_mode(info.mipmap_mode)?,
            wrap: [u?, v?, w?],
            unnormalized: info.unnormalized_coordinates,
            compare: info.compare.map_or(Ok(Compare::Never), compare)?,
            lod_bias: info.mip_lod_bias,
            min_lod: info.min_lod,
            max_lod: info.max_lod,
            border: border(info.border_color)?,
        };
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Ok(Self {
            inner: Arc::new(SamplerInner { device: device.clone(), record, compares: info.compare.is_some(), number }),
        })
    }

    /// A number that is unique among all samplers of the process.
    pub fn number(&self) -> u64 {
        self.inner.number
    }

    pub(crate) fn device(&self) -> &Device {
        &self.inner.device
    }

    pub(crate) fn record(&self) -> &Record {
        &self.inner.record
    }

    pub(crate) fn compares(&self) -> bool {
        self.inner.compares
    }
}

/// Samplers with the same parameters are equal (identical definitions, "Pipeline Layout Compatibility").
impl PartialEq for Sampler {
    fn eq(&self, other: &Self) -> bool {
        let what = |sampler: &Self| (sampler.inner.record, sampler.inner.compares);
        Arc::ptr_eq(&self.inner, &other.inner) || what(self) == what(other)
    }
}

fn check(info: &SamplerInfo) -> Result<(), Misuse> {
    let max = Limits::DEVICE.max_sampler_lod_bias;
    require(info.mip_lod_bias.abs() <= max, AT, "VUID-VkSamplerCreateInfo-mipLodBias-01069", || {
        format!("mipLodBias {} above the limit {max}", info.mip_lod_bias)
    })?;
    require(info.max_lod >= info.min_lod, AT, "VUID-VkSamplerCreateInfo-maxLod-01973", || {
        format!("maxLod {} below minLod {}", info.max_lod, info.min_lod)
    })?;
    if !info.unnormalized_coordinates {
        return Ok(());
    }
    let edges = [vk::SamplerAddressMode::CLAMP_TO_EDGE, vk::SamplerAddressMode::CLAMP_TO_BORDER];
    let rules = [
        (info.mag_filter == info.min_filter, "VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01072", "two filters"),
        (
            info.mipmap_mode == vk::SamplerMipmapMode::NEAREST,
            "VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01073",
            "linear filtering between levels",
        ),
        (
            info.min_lod == 0.0 && info.max_lod == 0.0,
            "VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01074",
            "levels of detail",
        ),
        (
            info.address_modes[..2].iter().all(|mode| edges.contains(mode)),
            "VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01075",
            "an address mode that does not clamp",
        ),
        (info.compare.is_none(), "VUID-VkSamplerCreateInfo-unnormalizedCoordinates-01077", "a comparison"),
    ];
    for (holds, vuid, problem) in rules {
        require(holds, AT, vuid, || format!("unnormalized coordinates with {problem}"))?;
    }
    Ok(())
}

fn filter(filter: vk::Filter) -> Result<Filter, Misuse> {
    match filter {
        vk::Filter::NEAREST => Ok(Filter::Nearest),
        vk::Filter::LINEAR => Ok(Filter::Linear),
        other => Err(Misuse::new(
            AT,
            format!("filter {other:?} is not supported"),
            "VUID-VkSamplerCreateInfo-magFilter-parameter",
        )),
    }
}

fn mipmap_mode(mode: vk::SamplerMipmapMode) -> Result<Filter, Misuse> {
    match mode {
        vk::SamplerMipmapMode::NEAREST => Ok(Filter::Nearest),
        vk::SamplerMipmapMode::LINEAR => Ok(Filter::Linear),
        other => {
            let problem = format!("mipmap mode {other:?} is not supported");
            Err(Misuse::new(AT, problem, "VUID-VkSamplerCreateInfo-mipmapMode-parameter"))
        }
    }
}

fn wrap(mode: vk::SamplerAddressMode) -> Result<Wrap, Misuse> {
    Ok(match mode {
        vk::SamplerAddressMode::REPEAT => Wrap::Repeat,
        vk::SamplerAddressMode::MIRRORED_REPEAT => Wrap::MirroredRepeat,
        vk::SamplerAddressMode::CLAMP_TO_EDGE => Wrap::ClampToEdge,
        vk::SamplerAddressMode::CLAMP_TO_BORDER => Wrap::ClampToBorder,
        vk::SamplerAddressMode::MIRROR_CLAMP_TO_EDGE => Wrap::MirrorClampToEdge,
        other => {
            let problem = format!("address mode {other:?} is not supported");
            return Err(Misuse::new(AT, problem, "VUID-VkSamplerCreateInfo-addressModeU-parameter"));
        }
    })
}

fn compare(op: vk::CompareOp) -> Result<Compare, Misuse> {
    Ok(match op {
        vk::CompareOp::NEVER => Compare::Never,
        vk::CompareOp::LESS => Compare::Less,
        vk::CompareOp::EQUAL => Compare::Equal,
        vk::CompareOp::LESS_OR_EQUAL => Compare::LessOrEqual,
        vk::CompareOp::GREATER => Compare::Greater,
        vk::CompareOp::NOT_EQUAL => Compare::NotEqual,
        vk::CompareOp::GREATER_OR_EQUAL => Compare::GreaterOrEqual,
        vk::CompareOp::ALWAYS => Compare::Always,
        other => {
            let problem = format!("comparison {other:?} is not supported");
            return Err(Misuse::new(AT, problem, "VUID-VkSamplerCreateInfo-compareEnable-01080"));
        }
    })
}

fn border(color: vk::BorderColor) -> Result<[u32; 4], Misuse> {
    let one = 1f32.to_bits();
    Ok(match color {
        vk::BorderColor::FLOAT_TRANSPARENT_BLACK | vk::BorderColor::INT_TRANSPARENT_BLACK => [0; 4],
        vk::BorderColor::FLOAT_OPAQUE_BLACK => [0, 0, 0, one],
        vk::BorderColor::INT_OPAQUE_BLACK => [0, 0, 0, 1],
        vk::BorderColor::FLOAT_OPAQUE_WHITE => [one; 4],
        vk::BorderColor::INT_OPAQUE_WHITE => [1; 4],
        other => {
            let problem = format!("border colour {other:?} is not supported");
            return Err(Misuse::new(AT, problem, "VUID-VkSamplerCreateInfo-addressModeU-01078"));
        }
    })
}
