//! Samplers.

use ash::vk;
use spelter_driver as driver;

use crate::c::entry::entry_points;
use crate::c::{In, Out};
use crate::device::Device;
use crate::error::{Error, require};
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreateSampler(
        device: vk::Device, p_create_info: *const vk::SamplerCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_sampler: *mut vk::Sampler,
    ) -> vk::Result => create;
    PFN_vkDestroySampler(
        device: vk::Device, sampler: vk::Sampler, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkCreateSamplerYcbcrConversion(
        device: vk::Device, p_create_info: *const vk::SamplerYcbcrConversionCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_ycbcr_conversion: *mut vk::SamplerYcbcrConversion,
    ) -> vk::Result => create_conversion;
    PFN_vkDestroySamplerYcbcrConversion(
        device: vk::Device, ycbcr_conversion: vk::SamplerYcbcrConversion,
        p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_conversion;
}

/// `VkSampler`.
pub(crate) struct Sampler {
    pub(crate) driver: driver::Sampler,
}

object!(Sampler: vk::Sampler);

fn create(
    device: Ref<Device>,
    info: In<'_, vk::SamplerCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Sampler>,
) -> Result<(), Error> {
    let at = "vkCreateSampler";
    require(info.anisotropy_enable == vk::FALSE, at, "VUID-VkSamplerCreateInfo-anisotropyEnable-01070", || {
        "anisotropyEnable without the feature samplerAnisotropy".into()
    })?;
    let driver = device.driver.create_sampler(&driver::SamplerInfo {
        mag_filter: info.mag_filter,
        min_filter: info.min_filter,
        mipmap_mode: info.mipmap_mode,
        address_modes: [info.address_mode_u, info.address_mode_v, info.address_mode_w],
        mip_lod_bias: info.mip_lod_bias,
        compare: (info.compare_enable != vk::FALSE).then_some(info.compare_op),
        min_lod: info.min_lod,
        max_lod: info.max_lod,
        border_color: info.border_color,
        unnormalized_coordinates: info.unnormalized_coordinates != vk::FALSE,
    })?;
    out.put(Sampler { driver }.insert()?);
    Ok(())
}

fn destroy(_: Ref<Device>, sampler: vk::Sampler, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    Sampler::remove(sampler, "vkDestroySampler-sampler").map(|_| ())
}

fn create_conversion(
    _: Ref<Device>,
    _: In<'_, vk::SamplerYcbcrConversionCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    _: Out<'_, vk::SamplerYcbcrConversion>,
) -> Result<(), Error> {
    let (problem, vuid) =
        ("the feature samplerYcbcrConversion is not supported", "VUID-vkCreateSamplerYcbcrConversion-None-01648");
    Err(Error::misuse("vkCreateSamplerYcbcrConversion", problem, vuid))
}

/// Only null can be destroyed.
fn destroy_conversion(
    _: Ref<Device>,
    _: vk::SamplerYcbcrConversion,
    _: *const vk::AllocationCallbacks<'_>,
) -> Result<(), Error> {
    Ok(())
}
