//! The table of formats that have a name in both wgpu and Vulkan. Only with the feature `wgpu-types`.

use ash::vk::Format as Vulkan;
use wgpu_types::{AstcBlock, AstcChannel, TextureFormat as Wgpu};

/// Defines both directions from one table, with a second one for the blocks of ASTC.
macro_rules! formats {
    ({ $($wgpu:ident = $vulkan:ident,)* } { $($block:ident = $unorm:ident, $srgb:ident, $float:ident,)* }) => {
        /// The Vulkan format of a wgpu format. All formats of wgpu have one; devices may not support it. A format with
        /// "at least 24 bits" of depth becomes one with 32.
        pub fn vulkan(format: Wgpu) -> Vulkan {
            match format {
                $(Wgpu::$wgpu => Vulkan::$vulkan,)*
                Wgpu::Depth24Plus => Vulkan::D32_SFLOAT,
                Wgpu::Depth24PlusStencil8 => Vulkan::D32_SFLOAT_S8_UINT,
                $(Wgpu::Astc { block: AstcBlock::$block, channel } => match channel {
                    AstcChannel::Unorm => Vulkan::$unorm,
                    AstcChannel::UnormSrgb => Vulkan::$srgb,
                    AstcChannel::Hdr => Vulkan::$float,
                },)*
            }
        }

        /// The wgpu format of a Vulkan format, if there is one.
        pub fn wgpu(format: Vulkan) -> Option<Wgpu> {
            let astc = |block, channel| Some(Wgpu::Astc { block, channel });
            match format {
                $(Vulkan::$vulkan => Some(Wgpu::$wgpu),)*
                $(Vulkan::$unorm => astc(AstcBlock::$block, AstcChannel::Unorm),
                Vulkan::$srgb => astc(AstcBlock::$block, AstcChannel::UnormSrgb),
                Vulkan::$float => astc(AstcBlock::$block, AstcChannel::Hdr),)*
                _ => None,
            }
        }
    };
}

formats! {{
    R8Unorm = R8_UNORM,
    R8Snorm = R8_SNORM,
    R8Uint = R8_UINT,
    R8Sint = R8_SINT,
    R16Uint = R16_UINT,
    R16Sint = R16_SINT,
    R16Unorm = R16_UNORM,
    R16Snorm = R16_SNORM,
    R16Float = R16_SFLOAT,
    Rg8Unorm = R8G8_UNORM,
    Rg8Snorm = R8G8_SNORM,
    Rg8Uint = R8G8_UINT,
    Rg8Sint = R8G8_SINT,
    R32Uint = R32_UINT,
    R32Sint = R32_SINT,
    R32Float = R32_SFLOAT,
    Rg16Uint = R16G16_UINT,
    Rg16Sint = R16G16_SINT,
    Rg16Unorm = R16G16_UNORM,
    Rg16Snorm = R16G16_SNORM,
    Rg16Float = R16G16_SFLOAT,
    Rgba8Unorm = R8G8B8A8_UNORM,
    Rgba8UnormSrgb = R8G8B8A8_SRGB,
    Rgba8Snorm = R8G8B8A8_SNORM,
    Rgba8Uint = R8G8B8A8_UINT,
    Rgba8Sint = R8G8B8A8_SINT,
    Bgra8Unorm = B8G8R8A8_UNORM,
    Bgra8UnormSrgb = B8G8R8A8_SRGB,
    Rgb9e5Ufloat = E5B9G9R9_UFLOAT_PACK32,
    Rgb10a2Uint = A2B10G10R10_UINT_PACK32,
    Rgb10a2Unorm = A2B10G10R10_UNORM_PACK32,
    Rg11b10Ufloat = B10G11R11_UFLOAT_PACK32,
    R64Uint = R64_UINT,
    Rg32Uint = R32G32_UINT,
    Rg32Sint = R32G32_SINT,
    Rg32Float = R32G32_SFLOAT,
    Rgba16Uint = R16G16B16A16_UINT,
    Rgba16Sint = R16G16B16A16_SINT,
    Rgba16Unorm = R16G16B16A16_UNORM,
    Rgba16Snorm = R16G16B16A16_SNORM,
    Rgba16Float = R16G16B16A16_SFLOAT,
    Rgba32Uint = R32G32B32A32_UINT,
    Rgba32Sint = R32G32B32A32_SINT,
    Rgba32Float = R32G32B32A32_SFLOAT,
    Stencil8 = S8_UINT,
    Depth16Unorm = D16_UNORM,
    Depth32Float = D32_SFLOAT,
    Depth32FloatStencil8 = D32_SFLOAT_S8_UINT,
    NV12 = G8_B8R8_2PLANE_420_UNORM,
    P010 = G10X6_B10X6R10X6_2PLANE_420_UNORM_3PACK16,
    Bc1RgbaUnorm = BC1_RGBA_UNORM_BLOCK,
    Bc1RgbaUnormSrgb = BC1_RGBA_SRGB_BLOCK,
    Bc2RgbaUnorm = BC2_UNORM_BLOCK,
    Bc2RgbaUnormSrgb = BC2_SRGB_BLOCK,
    Bc3RgbaUnorm = BC3_UNORM_BLOCK,
    Bc3RgbaUnormSrgb = BC3_SRGB_BLOCK,
    Bc4RUnorm = BC4_UNORM_BLOCK,
    Bc4RSnorm = BC4_SNORM_BLOCK,
    Bc5RgUnorm = BC5_UNORM_BLOCK,
    Bc5RgSnorm = BC5_SNORM_BLOCK,
    Bc6hRgbUfloat = BC6H_UFLOAT_BLOCK,
    Bc6hRgbFloat = BC6H_SFLOAT_BLOCK,
    Bc7RgbaUnorm = BC7_UNORM_BLOCK,
    Bc7RgbaUnormSrgb = BC7_SRGB_BLOCK,
    Etc2Rgb8Unorm = ETC2_R8G8B8_UNORM_BLOCK,
    Etc2Rgb8UnormSrgb = ETC2_R8G8B8_SRGB_BLOCK,
    Etc2Rgb8A1Unorm = ETC2_R8G8B8A1_UNORM_BLOCK,
    Etc2Rgb8A1UnormSrgb = ETC2_R8G8B8A1_SRGB_BLOCK,
    Etc2Rgba8Unorm = ETC2_R8G8B8A8_UNORM_BLOCK,
    Etc2Rgba8UnormSrgb = ETC2_R8G8B8A8_SRGB_BLOCK,
    EacR11Unorm = EAC_R11_UNORM_BLOCK,
    EacR11Snorm = EAC_R11_SNORM_BLOCK,
    EacRg11Unorm = EAC_R11G11_UNORM_BLOCK,
    EacRg11Snorm = EAC_R11G11_SNORM_BLOCK,
} {
    B4x4 = ASTC_4X4_UNORM_BLOCK, ASTC_4X4_SRGB_BLOCK, ASTC_4X4_SFLOAT_BLOCK,
    B5x4 = ASTC_5X4_UNORM_BLOCK, ASTC_5X4_SRGB_BLOCK, ASTC_5X4_SFLOAT_BLOCK,
    B5x5 = ASTC_5X5_UNORM_BLOCK, ASTC_5X5_SRGB_BLOCK, ASTC_5X5_SFLOAT_BLOCK,
    B6x5 = ASTC_6X5_UNORM_BLOCK, ASTC_6X5_SRGB_BLOCK, ASTC_6X5_SFLOAT_BLOCK,
    B6x6 = ASTC_6X6_UNORM_BLOCK, ASTC_6X6_SRGB_BLOCK, ASTC_6X6_SFLOAT_BLOCK,
    B8x5 = ASTC_8X5_UNORM_BLOCK, ASTC_8X5_SRGB_BLOCK, ASTC_8X5_SFLOAT_BLOCK,
    B8x6 = ASTC_8X6_UNORM_BLOCK, ASTC_8X6_SRGB_BLOCK, ASTC_8X6_SFLOAT_BLOCK,
    B8x8 = ASTC_8X8_UNORM_BLOCK, ASTC_8X8_SRGB_BLOCK, ASTC_8X8_SFLOAT_BLOCK,
    B10x5 = ASTC_10X5_UNORM_BLOCK, ASTC_10X5_SRGB_BLOCK, ASTC_10X5_SFLOAT_BLOCK,
    B10x6 = ASTC_10X6_UNORM_BLOCK, ASTC_10X6_SRGB_BLOCK, ASTC_10X6_SFLOAT_BLOCK,
    B10x8 = ASTC_10X8_UNORM_BLOCK, ASTC_10X8_SRGB_BLOCK, ASTC_10X8_SFLOAT_BLOCK,
    B10x10 = ASTC_10X10_UNORM_BLOCK, ASTC_10X10_SRGB_BLOCK, ASTC_10X10_SFLOAT_BLOCK,
    B12x10 = ASTC_12X10_UNORM_BLOCK, ASTC_12X10_SRGB_BLOCK, ASTC_12X10_SFLOAT_BLOCK,
    B12x12 = ASTC_12X12_UNORM_BLOCK, ASTC_12X12_SRGB_BLOCK, ASTC_12X12_SFLOAT_BLOCK,
}}
