//! Textures' formats and enums of wgpu in Vulkan's terms.

use spelter_driver::{FormatProperties, format_properties, vk, wgpu_formats};
use wgpu_hal::{FormatAspects, TextureFormatCapabilities as Capabilities};
use wgpu_types::{
    AddressMode, CompareFunction, Features, FilterMode, MipmapFilterMode, SamplerBorderColor, TextureDimension,
    TextureFormat, TextureFormatFeatureFlags as FormatFlags, TextureFormatFeatures, TextureUsages, TextureUses,
    TextureViewDimension,
};

/// The Vulkan format.
pub(crate) fn vulkan(format: TextureFormat) -> vk::Format {
    wgpu_formats::vulkan(format)
}

/// What a texture of a format can be used for on an adapter with these features: no attachment and no multisampled
/// texture. wgpu asks for this also where a device does not enable `TEXTURE_ADAPTER_SPECIFIC_FORMAT_FEATURES`, since
/// the adapter does not have all of WebGPU's formats.
pub(crate) fn capabilities(format: TextureFormat, features: Features) -> Capabilities {
    let own = own_capabilities(format);
    if features.contains(Features::TEXTURE_ADAPTER_SPECIFIC_FORMAT_FEATURES) {
        return own;
    }
    let TextureFormatFeatures { allowed_usages, flags } = format.guaranteed_format_features(features);
    let storage = allowed_usages.contains(TextureUsages::STORAGE_BINDING);
    let guaranteed = [
        (allowed_usages.contains(TextureUsages::TEXTURE_BINDING), Capabilities::SAMPLED),
        (flags.contains(FormatFlags::FILTERABLE), Capabilities::SAMPLED_LINEAR),
        (storage && flags.contains(FormatFlags::STORAGE_READ_ONLY), Capabilities::STORAGE_READ_ONLY),
        (storage && flags.contains(FormatFlags::STORAGE_WRITE_ONLY), Capabilities::STORAGE_WRITE_ONLY),
        (storage && flags.contains(FormatFlags::STORAGE_READ_WRITE), Capabilities::STORAGE_READ_WRITE),
        (allowed_usages.contains(TextureUsages::STORAGE_ATOMIC), Capabilities::STORAGE_ATOMIC),
        (allowed_usages.contains(TextureUsages::COPY_SRC), Capabilities::COPY_SRC),
        (allowed_usages.contains(TextureUsages::COPY_DST), Capabilities::COPY_DST),
    ];
    let kept = guaranteed.into_iter().filter(|(is, _)| *is);
    own & kept.fold(Capabilities::empty(), |all, (_, capability)| all | capability)
}

/// What the device can do.
fn own_capabilities(format: TextureFormat) -> Capabilities {
    use vk::FormatFeatureFlags as F;
    const USES: [(F, Capabilities); 6] = [
        (F::SAMPLED_IMAGE, Capabilities::SAMPLED),
        (F::SAMPLED_IMAGE_FILTER_LINEAR, Capabilities::SAMPLED_LINEAR),
        (
            F::STORAGE_IMAGE,
            Capabilities::STORAGE_READ_ONLY
                .union(Capabilities::STORAGE_WRITE_ONLY)
                .union(Capabilities::STORAGE_READ_WRITE),
        ),
        (F::STORAGE_IMAGE_ATOMIC, Capabilities::STORAGE_ATOMIC),
        (F::TRANSFER_SRC, Capabilities::COPY_SRC),
        (F::TRANSFER_DST, Capabilities::COPY_DST),
    ];
    let FormatProperties { optimal, .. } = format_properties(vulkan(format));
    let found = USES.iter().filter(|(vulkan, _)| optimal.contains(*vulkan));
    found.fold(Capabilities::empty(), |all, (_, wgpu)| all | *wgpu)
}

/// Uses of an image. Copies are permitted if the format has them: wgpu clears textures by copies.
pub(crate) fn image_usage(uses: TextureUses, format: vk::Format) -> vk::ImageUsageFlags {
    use vk::ImageUsageFlags as U;
    let storage = TextureUses::STORAGE_READ_ONLY
        | TextureUses::STORAGE_WRITE_ONLY
        | TextureUses::STORAGE_READ_WRITE
        | TextureUses::STORAGE_ATOMIC;
    let mut usage = U::empty();
    let has = format_properties(format).optimal;
    for (wanted, flag) in [
        (uses.contains(TextureUses::RESOURCE), U::SAMPLED),
        (uses.intersects(storage), U::STORAGE),
        (has.contains(vk::FormatFeatureFlags::TRANSFER_SRC), U::TRANSFER_SRC),
        (has.contains(vk::FormatFeatureFlags::TRANSFER_DST), U::TRANSFER_DST),
    ] {
        usage |= if wanted { flag } else { U::empty() };
    }
    usage
}

pub(crate) fn image_type(dimension: TextureDimension) -> vk::ImageType {
    match dimension {
        TextureDimension::D1 => vk::ImageType::TYPE_1D,
        TextureDimension::D2 => vk::ImageType::TYPE_2D,
        TextureDimension::D3 => vk::ImageType::TYPE_3D,
    }
}

pub(crate) fn view_type(dimension: TextureViewDimension) -> vk::ImageViewType {
    match dimension {
        TextureViewDimension::D1 => vk::ImageViewType::TYPE_1D,
        TextureViewDimension::D2 => vk::ImageViewType::TYPE_2D,
        TextureViewDimension::D2Array => vk::ImageViewType::TYPE_2D_ARRAY,
        TextureViewDimension::Cube => vk::ImageViewType::CUBE,
        TextureViewDimension::CubeArray => vk::ImageViewType::CUBE_ARRAY,
        TextureViewDimension::D3 => vk::ImageViewType::TYPE_3D,
    }
}

pub(crate) fn aspects(aspects: FormatAspects) -> vk::ImageAspectFlags {
    use vk::ImageAspectFlags as A;
    const ASPECTS: [(FormatAspects, A); 3] =
        [(FormatAspects::COLOR, A::COLOR), (FormatAspects::DEPTH, A::DEPTH), (FormatAspects::STENCIL, A::STENCIL)];
    ASPECTS.iter().filter(|(wgpu, _)| aspects.contains(*wgpu)).fold(A::empty(), |all, (_, vulkan)| all | *vulkan)
}

pub(crate) fn filter(filter: FilterMode) -> vk::Filter {
    match filter {
        FilterMode::Nearest => vk::Filter::NEAREST,
        FilterMode::Linear => vk::Filter::LINEAR,
    }
}

pub(crate) fn mipmap_mode(filter: MipmapFilterMode) -> vk::SamplerMipmapMode {
    match filter {
        MipmapFilterMode::Nearest => vk::SamplerMipmapMode::NEAREST,
        MipmapFilterMode::Linear => vk::SamplerMipmapMode::LINEAR,
    }
}

pub(crate) fn address_mode(mode: AddressMode) -> vk::SamplerAddressMode {
    match mode {
        AddressMode::ClampToEdge => vk::SamplerAddressMode::CLAMP_TO_EDGE,
        AddressMode::Repeat => vk::SamplerAddressMode::REPEAT,
        AddressMode::MirrorRepeat => vk::SamplerAddressMode::MIRRORED_REPEAT,
        AddressMode::ClampToBorder => vk::SamplerAddressMode::CLAMP_TO_BORDER,
    }
}

pub(crate) fn border_color(color: SamplerBorderColor) -> vk::BorderColor {
    match color {
        SamplerBorderColor::TransparentBlack | SamplerBorderColor::Zero => vk::BorderColor::FLOAT_TRANSPARENT_BLACK,
        SamplerBorderColor::OpaqueBlack => vk::BorderColor::FLOAT_OPAQUE_BLACK,
        SamplerBorderColor::OpaqueWhite => vk::BorderColor::FLOAT_OPAQUE_WHITE,
    }
}

pub(crate) fn compare_op(function: CompareFunction) -> vk::CompareOp {
    match function {
        CompareFunction::Never => vk::CompareOp::NEVER,
        CompareFunction::Less => vk::CompareOp::LESS,
        CompareFunction::Equal => vk::CompareOp::EQUAL,
        CompareFunction::LessEqual => vk::CompareOp::LESS_OR_EQUAL,
        CompareFunction::Greater => vk::CompareOp::GREATER,
        CompareFunction::NotEqual => vk::CompareOp::NOT_EQUAL,
        CompareFunction::GreaterEqual => vk::CompareOp::GREATER_OR_EQUAL,
        CompareFunction::Always => vk::CompareOp::ALWAYS,
    }
}
