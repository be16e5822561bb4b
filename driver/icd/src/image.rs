//! Images and image views.

use ash::vk;
use spelter_driver as driver;

use crate::buffer::{bind_each, put_requirements};
use crate::c::entry::entry_points;
use crate::c::{In, InOut, Many, Out, OutChain, OutMany, Plain, list};
use crate::device::Device;
use crate::error::{Error, require};
use crate::memory::DeviceMemory;
use crate::options::Options;
use crate::physical_device::formats::ATTACHMENT;
use crate::physical_device::memory_types::{self, IMPORTED};
use crate::table::{Object, Ref, object};

entry_points! {
    PFN_vkCreateImage(
        device: vk::Device, p_create_info: *const vk::ImageCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_image: *mut vk::Image,
    ) -> vk::Result => create;
    PFN_vkDestroyImage(
        device: vk::Device, image: vk::Image, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy;
    PFN_vkGetImageMemoryRequirements(
        device: vk::Device, image: vk::Image, p_memory_requirements: *mut vk::MemoryRequirements,
    ) => requirements;
    PFN_vkGetImageMemoryRequirements2(
        device: vk::Device, p_info: *const vk::ImageMemoryRequirementsInfo2<'_>,
        p_memory_requirements: *mut vk::MemoryRequirements2<'_>,
    ) => requirements2;
    PFN_vkGetDeviceImageMemoryRequirements(
        device: vk::Device, p_info: *const vk::DeviceImageMemoryRequirements<'_>,
        p_memory_requirements: *mut vk::MemoryRequirements2<'_>,
    ) => device_requirements;
    PFN_vkBindImageMemory(
        device: vk::Device, image: vk::Image, memory: vk::DeviceMemory, memory_offset: vk::DeviceSize,
    ) -> vk::Result => bind;
    PFN_vkBindImageMemory2(
        device: vk::Device, bind_info_count: u32, p_bind_infos: *const vk::BindImageMemoryInfo<'_>,
    ) -> vk::Result => bind2;
    PFN_vkGetImageSubresourceLayout(
        device: vk::Device, image: vk::Image, p_subresource: *const vk::ImageSubresource,
        p_layout: *mut vk::SubresourceLayout,
    ) => layout;
    PFN_vkGetImageSubresourceLayout2KHR(
        device: vk::Device, image: vk::Image, p_subresource: *const vk::ImageSubresource2KHR<'_>,
        p_layout: *mut vk::SubresourceLayout2KHR<'_>,
    ) => layout2;
    PFN_vkGetDeviceImageSubresourceLayoutKHR(
        device: vk::Device, p_info: *const vk::DeviceImageSubresourceInfoKHR<'_>,
        p_layout: *mut vk::SubresourceLayout2KHR<'_>,
    ) => device_layout;
    PFN_vkGetImageSparseMemoryRequirements(
        device: vk::Device, image: vk::Image, p_sparse_memory_requirement_count: *mut u32,
        p_sparse_memory_requirements: *mut vk::SparseImageMemoryRequirements,
    ) => sparse;
    PFN_vkGetImageSparseMemoryRequirements2(
        device: vk::Device, p_info: *const vk::ImageSparseMemoryRequirementsInfo2<'_>,
        p_sparse_memory_requirement_count: *mut u32,
        p_sparse_memory_requirements: *mut vk::SparseImageMemoryRequirements2<'_>,
    ) => sparse2;
    PFN_vkGetDeviceImageSparseMemoryRequirements(
        device: vk::Device, p_info: *const vk::DeviceImageMemoryRequirements<'_>,
        p_sparse_memory_requirement_count: *mut u32,
        p_sparse_memory_requirements: *mut vk::SparseImageMemoryRequirements2<'_>,
    ) => device_sparse;
    PFN_vkCreateImageView(
        device: vk::Device, p_create_info: *const vk::ImageViewCreateInfo<'_>,
        p_allocator: *const vk::AllocationCallbacks<'_>, p_view: *mut vk::ImageView,
    ) -> vk::Result => create_view;
    PFN_vkDestroyImageView(
        device: vk::Device, image_view: vk::ImageView, p_allocator: *const vk::AllocationCallbacks<'_>,
    ) => destroy_view;
}

/// `VkImage`.
pub(crate) struct Image {
    pub(crate) driver: driver::Image,
    is_attachment: bool,
}

/// The format and usage of the driver's image for an attachment: texels of the same size. It is never copied
/// ([`Image::of_host`]).
const STAND_IN: (vk::Format, vk::ImageUsageFlags) = (vk::Format::R32G32_UINT, vk::ImageUsageFlags::HOST_TRANSFER_EXT);

object!(Image: vk::Image);

/// `VkImageView`.
pub(crate) struct ImageView {
    /// `None` for an attachment, which no shader accesses.
    pub(crate) driver: Option<driver::ImageView>,
}

object!(ImageView: vk::ImageView);

fn is_attachment(info: &vk::ImageCreateInfo<'_>) -> bool {
    let so = info.usage == vk::ImageUsageFlags::DEPTH_STENCIL_ATTACHMENT && info.tiling == vk::ImageTiling::OPTIMAL;
    so && info.format == ATTACHMENT && Options::get().graphics
}

fn new(device: &Device, info: In<'_, vk::ImageCreateInfo<'_>>) -> Result<driver::Image, Error> {
    let at = "vkCreateImage";
    require(info.samples == vk::SampleCountFlags::TYPE_1, at, "VUID-VkImageCreateInfo-samples-02258", || {
        format!("samples {:?}: only VK_SAMPLE_COUNT_1_BIT is supported", info.samples)
    })?;
    let known = vk::ImageCreateFlags::CUBE_COMPATIBLE
        | vk::ImageCreateFlags::MUTABLE_FORMAT
        | vk::ImageCreateFlags::EXTENDED_USAGE
        | vk::ImageCreateFlags::ALIAS;
    require(known.contains(info.flags), at, "VUID-VkImageCreateInfo-imageCreateMaxMipLevels-02251", || {
        format!("flags {:?} are not supported", info.flags & !known)
    })?;
    let external = info.next::<vk::ExternalMemoryImageCreateInfo<'_>>();
    let external = external.map(|external| external.handle_types).unwrap_or_default();
    require(IMPORTED.contains(external), at, "VUID-VkImageCreateInfo-pNext-00990", || {
        format!("handleTypes {external:?}: only {IMPORTED:?} can be imported")
    })?;
    let (format, usage) = if is_attachment(&info) { STAND_IN } else { (info.format, info.usage) };
    let info = driver::ImageInfo {
        flags: info.flags,
        ty: info.image_type,
        format,
        extent: info.extent,
        levels: info.mip_levels,
        layers: info.array_layers,
        tiling: info.tiling,
        usage,
    };
    Ok(device.driver.create_image(&info)?)
}

fn create(
    device: Ref<Device>,
    info: In<'_, vk::ImageCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::Image>,
) -> Result<(), Error> {
    let driver = new(&device, info)?;
    out.put(Image { driver, is_attachment: is_attachment(&info) }.insert()?);
    Ok(())
}

impl Image {
    /// The image of a handle, if its usage permits host copies.
    pub(crate) fn of_host(handle: vk::Image, at: &str) -> Result<Ref<Self>, Error> {
        let image = Self::get(handle, at)?;
        require(!image.is_attachment, at, "VUID-VkCopyMemoryToImageInfo-dstImage-09113", || {
            "the image's usage DEPTH_STENCIL_ATTACHMENT lacks HOST_TRANSFER".into()
        })?;
        Ok(image)
    }
}

fn destroy(_: Ref<Device>, image: vk::Image, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    Image::remove(image, "vkDestroyImage-image").map(|_| ())
}

fn needs(image: &driver::Image) -> vk::MemoryRequirements {
    vk::MemoryRequirements { memory_type_bits: memory_types::ALL, ..image.requirements() }
}

fn requirements(_: Ref<Device>, image: Ref<Image>, mut out: Out<'_, vk::MemoryRequirements>) -> Result<(), Error> {
    out.put(needs(&image.driver));
    Ok(())
}

fn requirements2(
    _: Ref<Device>,
    info: In<'_, vk::ImageMemoryRequirementsInfo2<'_>>,
    mut out: OutChain<'_, vk::MemoryRequirements2<'_>>,
) -> Result<(), Error> {
    put_requirements(&mut out, needs(&Image::get(info.image, "VkImageMemoryRequirementsInfo2-image")?.driver));
    Ok(())
}

fn device_requirements(
    device: Ref<Device>,
    info: In<'_, vk::DeviceImageMemoryRequirements<'_>>,
    mut out: OutChain<'_, vk::MemoryRequirements2<'_>>,
) -> Result<(), Error> {
    let at = "vkGetDeviceImageMemoryRequirements";
    let create = info.create().ok_or_else(|| {
        Error::misuse(at, "pCreateInfo is null", "VUID-VkDeviceImageMemoryRequirements-pCreateInfo-parameter")
    })?;
    put_requirements(&mut out, needs(&new(&device, create)?));
    Ok(())
}

fn bind(_: Ref<Device>, image: Ref<Image>, memory: Ref<DeviceMemory>, offset: u64) -> Result<(), Error> {
    Ok(image.driver.bind_memory(&memory.driver, offset)?)
}

fn bind2(_: Ref<Device>, count: u32, infos: Many<'_, vk::BindImageMemoryInfo<'_>>) -> Result<(), Error> {
    bind_each(infos.of(count as usize), |info| {
        let image = Image::get(info.image, "VkBindImageMemoryInfo-image")?;
        let memory = DeviceMemory::get(info.memory, "VkBindImageMemoryInfo-pNext-01632")?;
        Ok(image.driver.bind_memory(&memory.driver, info.memory_offset)?)
    })
}

fn layout(
    _: Ref<Device>,
    image: Ref<Image>,
    subresource: Plain<'_, vk::ImageSubresource>,
    mut out: Out<'_, vk::SubresourceLayout>,
) -> Result<(), Error> {
    out.put(image.driver.subresource_layout(subresource.mip_level, subresource.array_layer));
    Ok(())
}

/// Returns the layout of a subresource, and its size in a host copy with `MEMCPY`.
fn write_layout(
    image: &driver::Image,
    of: &vk::ImageSubresource,
    call: &str,
    rules: [&'static str; 2],
    out: &mut OutChain<'_, vk::SubresourceLayout2KHR<'_>>,
) -> Result<(), Error> {
    let info = image.info();
    out.head(|all| all.subresource_layout = image.subresource_layout(of.mip_level, of.array_layer));
    require(of.mip_level < info.levels, call, rules[0], || format!("mipLevel {} of {}", of.mip_level, info.levels))?;
    require(of.array_layer < info.layers, call, rules[1], || {
        format!("arrayLayer {} of {}", of.array_layer, info.layers)
    })?;
    let [width, height, depth] = image.size_of_level(of.mip_level).map(u64::from);
    out.fill(|copy: &mut vk::SubresourceHostMemcpySizeEXT<'_>| {
        copy.size = width * height * depth * image.texel_bytes();
    });
    Ok(())
}

fn layout2(
    _: Ref<Device>,
    image: Ref<Image>,
    of: In<'_, vk::ImageSubresource2KHR<'_>>,
    mut out: OutChain<'_, vk::SubresourceLayout2KHR<'_>>,
) -> Result<(), Error> {
    let rules =
        ["VUID-vkGetImageSubresourceLayout2-mipLevel-01716", "VUID-vkGetImageSubresourceLayout2-arrayLayer-01717"];
    write_layout(&image.driver, &of.image_subresource, "vkGetImageSubresourceLayout2KHR", rules, &mut out)
}

/// The same for an image that is described but not created.
fn device_layout(
    device: Ref<Device>,
    info: In<'_, vk::DeviceImageSubresourceInfoKHR<'_>>,
    mut out: OutChain<'_, vk::SubresourceLayout2KHR<'_>>,
) -> Result<(), Error> {
    let call = "vkGetDeviceImageSubresourceLayoutKHR";
    let create = info.create().ok_or_else(|| {
        Error::misuse(call, "pCreateInfo is null", "VUID-VkDeviceImageSubresourceInfo-pCreateInfo-parameter")
    })?;
    let of = info.subresource().ok_or_else(|| {
        Error::misuse(call, "pSubresource is null", "VUID-VkDeviceImageSubresourceInfo-pSubresource-parameter")
    })?;
    let rules =
        ["VUID-VkDeviceImageSubresourceInfo-mipLevel-01716", "VUID-VkDeviceImageSubresourceInfo-arrayLayer-01717"];
    write_layout(&new(&device, create)?, &of.image_subresource, call, rules, &mut out)
}

/// No image is sparse.
fn sparse(
    _: Ref<Device>,
    _: Ref<Image>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::SparseImageMemoryRequirements>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

fn sparse2(
    _: Ref<Device>,
    _: In<'_, vk::ImageSparseMemoryRequirementsInfo2<'_>>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::SparseImageMemoryRequirements2<'_>>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

fn device_sparse(
    _: Ref<Device>,
    _: In<'_, vk::DeviceImageMemoryRequirements<'_>>,
    count: InOut<'_, u32>,
    out: OutMany<'_, vk::SparseImageMemoryRequirements2<'_>>,
) -> Result<vk::Result, Error> {
    Ok(list(count, out, std::iter::empty()))
}

fn create_view(
    device: Ref<Device>,
    info: In<'_, vk::ImageViewCreateInfo<'_>>,
    _: *const vk::AllocationCallbacks<'_>,
    mut out: Out<'_, vk::ImageView>,
) -> Result<(), Error> {
    let image = Image::get(info.image, "VkImageViewCreateInfo-image")?;
    if image.is_attachment {
        require(info.format == ATTACHMENT, "vkCreateImageView", "VUID-VkImageViewCreateInfo-image-01762", || {
            format!("format {:?} of an image of {ATTACHMENT:?}", info.format)
        })?;
        out.put(ImageView { driver: None }.insert()?);
        return Ok(());
    }
    let driver = device.driver.create_image_view(&driver::ImageViewInfo {
        image: &image.driver,
        ty: info.view_type,
        format: info.format,
        components: info.components,
        range: info.subresource_range,
    })?;
    out.put(ImageView { driver: Some(driver) }.insert()?);
    Ok(())
}

fn destroy_view(_: Ref<Device>, view: vk::ImageView, _: *const vk::AllocationCallbacks<'_>) -> Result<(), Error> {
    ImageView::remove(view, "vkDestroyImageView-imageView").map(|_| ())
}
