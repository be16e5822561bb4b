//! Copies between images and host memory that the host performs at once (`VK_EXT_host_image_copy`).

use ash::vk;

use super::dependency::image_ranges;
use super::image::{CopySideRules, texels};
use crate::device::Device;
use crate::error::{Error, Misuse, require};
use crate::exec::Grid;
use crate::resource::{Image, ImageRules};

/// A region of texels in host memory and in an image (`VkMemoryToImageCopyEXT`, `VkImageToMemoryCopyEXT`).
#[derive(Clone, Copy, Debug, Default)]
pub struct HostRegion {
    /// Texels from one row to the next; 0 if rows are tightly packed.
    pub row_length: u32,
    /// Rows from one slice or layer to the next; 0 if they are tightly packed.
    pub image_height: u32,
    /// Level and layers.
    pub subresource: vk::ImageSubresourceLayers,
    /// The first texel.
    pub offset: vk::Offset3D,
    /// Texels in each dimension.
    pub extent: vk::Extent3D,
}

const USAGE: vk::ImageUsageFlags = vk::ImageUsageFlags::HOST_TRANSFER_EXT;

const UPLOAD: CopySideRules = CopySideRules {
    name: "dstImage",
    image: ImageRules {
        at: "dstImage",
        usage: USAGE,
        usage_vuid: "VUID-VkCopyMemoryToImageInfo-dstImage-09113",
        memory_vuid: "VUID-VkCopyMemoryToImageInfo-dstImage-07966",
        parent_vuid: "VUID-VkCopyMemoryToImageInfo-dstImage-parameter",
    },
    level: "VUID-VkCopyMemoryToImageInfo-imageSubresource-07967",
    layers: "VUID-VkCopyMemoryToImageInfo-imageSubresource-07968",
    x: "VUID-VkCopyMemoryToImageInfo-imageSubresource-07971",
    y: "VUID-VkCopyMemoryToImageInfo-imageSubresource-07972",
    z: "VUID-VkCopyMemoryToImageInfo-imageOffset-09104",
};

const DOWNLOAD: CopySideRules = CopySideRules {
    name: "srcImage",
    image: ImageRules {
        at: "srcImage",
        usage: USAGE,
        usage_vuid: "VUID-VkCopyImageToMemoryInfo-srcImage-09113",
        memory_vuid: "VUID-VkCopyImageToMemoryInfo-srcImage-07966",
        parent_vuid: "VUID-VkCopyImageToMemoryInfo-srcImage-parameter",
    },
    level: "VUID-VkCopyImageToMemoryInfo-imageSubresource-07967",
    layers: "VUID-VkCopyImageToMemoryInfo-imageSubresource-07968",
    x: "VUID-VkCopyImageToMemoryInfo-imageSubresource-07971",
    y: "VUID-VkCopyImageToMemoryInfo-imageSubresource-07972",
    z: "VUID-VkCopyImageToMemoryInfo-imageOffset-09104",
};

const COPY_FROM: CopySideRules = CopySideRules {
    name: "srcImage",
    image: ImageRules {
        at: "srcImage",
        usage: USAGE,
        usage_vuid: "VUID-VkCopyImageToImageInfo-srcImage-09113",
        memory_vuid: "VUID-VkCopyImageToImageInfo-srcImage-07966",
        parent_vuid: "VUID-VkCopyImageToImageInfo-srcImage-parameter",
    },
    level: "VUID-VkCopyImageToImageInfo-srcSubresource-07967",
    layers: "VUID-VkCopyImageToImageInfo-srcSubresource-07968",
    x: "VUID-VkCopyImageToImageInfo-srcSubresource-07971",
    y: "VUID-VkCopyImageToImageInfo-srcSubresource-07972",
    z: "VUID-VkCopyImageToImageInfo-srcOffset-09104",
};

const COPY_TO: CopySideRules = CopySideRules {
    name: "dstImage",
    image: ImageRules {
        at: "dstImage",
        usage: USAGE,
        usage_vuid: "VUID-VkCopyImageToImageInfo-dstImage-09113",
        memory_vuid: "VUID-VkCopyImageToImageInfo-dstImage-07966",
        parent_vuid: "VUID-VkCopyImageToImageInfo-dstImage-parameter",
    },
    level: "VUID-VkCopyImageToImageInfo-dstSubresource-07967",
    layers: "VUID-VkCopyImageToImageInfo-dstSubresource-07968",
    x: "VUID-VkCopyImageToImageInfo-dstSubresource-07971",
    y: "VUID-VkCopyImageToImageInfo-dstSubresource-07972",
    z: "VUID-VkCopyImageToImageInfo-dstOffset-09104",
};

/// VUIDs of the host side of a copy: row length, image height.
const UPLOAD_FROM: [&str; 2] =
    ["VUID-VkMemoryToImageCopy-memoryRowLength-09101", "VUID-VkMemoryToImageCopy-memoryImageHeight-09102"];
const DOWNLOAD_TO: [&str; 2] =
    ["VUID-VkImageToMemoryCopy-memoryRowLength-09101", "VUID-VkImageToMemoryCopy-memoryImageHeight-09102"];

/// A valid region: its rows in the image and in host memory.
pub struct HostRows {
    device: Device,
    image: Grid,
    host: Grid,
    row_bytes: u64,
}

impl HostRows {
    fn new(
        device: &Device,
        image: &Image,
        side: &CopySideRules,
        host: [&'static str; 2],
        region: &HostRegion,
    ) -> Result<Self, Misuse> {
        image.checked(device, &side.image)?;
        let at = "pRegions";
        let HostRegion { row_length, image_height, subresource, offset, extent } = *region;
        let texels = texels(at, image, side, &subresource, offset, extent)?;
        require(row_length == 0 || row_length >= extent.width, at, host[0], || {
            format!("memoryRowLength {row_length} for rows of {} texels", extent.width)
        })?;
        require(image_height == 0 || image_height >= extent.height, at, host[1], || {
            format!("memoryImageHeight {image_height} for {} rows", extent.height)
        })?;
        let texel = u64::from(image.format().bytes());
        let row_pitch = u64::from(if row_length == 0 { extent.width } else { row_length }) * texel;
        let rows = u64::from(if image_height == 0 { extent.height } else { image_height });
        let slice_pitch = rows.saturating_mul(row_pitch);
        let host = Grid { first: 0, row_pitch, slice_pitch, ..texels.grid };
        Ok(Self { device: device.clone(), image: texels.grid, host, row_bytes: texels.row_bytes })
    }

    /// Size of the region in host memory, from the first byte to the last.
    pub fn bytes(&self) -> u64 {
        self.host.at(self.host.rows - 1).saturating_add(self.row_bytes)
    }

    /// Writes those bytes ([`HostRows::bytes`] of them) into the image.
    pub fn write(&self, from: &[u8]) {
        for row in 0..self.image.rows {
            let (first, len) = (self.host.at(row) as usize, self.row_bytes as usize);
            if let Some(bytes) = from.get(first..first + len) {
                host_accesses(&self.device, &self.image, row, self.row_bytes, true);
                self.image.slice.write(self.image.at(row), bytes);
            }
        }
    }

    /// Passes each row to `put`, with the offset of its first byte in host memory; bytes between rows stay untouched.
    pub fn read(&self, mut put: impl FnMut(usize, &[u8])) {
        let mut bytes = vec![0; self.row_bytes as usize];
        for row in 0..self.image.rows {
            host_accesses(&self.device, &self.image, row, self.row_bytes, false);
            self.image.slice.read(self.image.at(row), &mut bytes);
            put(self.host.at(row) as usize, &bytes);
        }
    }
}

/// Tells checked mode that the host accesses a row.
fn host_accesses(device: &Device, of: &Grid, row: u64, bytes: u64, writes: bool) {
    let checker = device.checker();
    checker.inspect(|checker| checker.host_accesses(of.slice, of.at(row), bytes, writes));
}

impl Image {
    /// `vkTransitionImageLayoutEXT`, for one range of subresources. Layouts do not change where texels are stored: the
    /// transition is an access that checked mode sees.
    pub fn transition_on_host(&self, device: &Device, range: &vk::ImageSubresourceRange) {
        let Some(storage) = self.storage() else { return };
        let base = storage.slice.address() as u64;
        device.checker().inspect(|checker| {
            for bytes in image_ranges(self, range).iter() {
                checker.host_accesses(storage.slice, bytes.start - base, bytes.end - bytes.start, true);
            }
        });
    }

    /// `vkCopyMemoryToImageEXT`, for one region. The caller must not access those texels meanwhile: their values are
    /// undefined.
    pub fn rows_from_host(&self, device: &Device, region: &HostRegion) -> Result<HostRows, Error> {
        Ok(HostRows::new(device, self, &UPLOAD, UPLOAD_FROM, region)?)
    }

    /// `vkCopyImageToMemoryEXT`, for one region.
    pub fn rows_to_host(&self, device: &Device, region: &HostRegion) -> Result<HostRows, Error> {
        Ok(HostRows::new(device, self, &DOWNLOAD, DOWNLOAD_TO, region)?)
    }

    /// `vkCopyImageToImageEXT`: copies all regions, or none if one breaks a rule.
    pub fn copy_on_host(&self, device: &Device, to: &Self, regions: &[vk::ImageCopy]) -> Result<(), Error> {
        let at = "vkCopyImageToImageEXT";
        self.checked(device, &COPY_FROM.image)?;
        to.checked(device, &COPY_TO.image)?;
        require(self.info() == to.info(), at, "VUID-VkCopyImageToImageInfo-srcImage-09069", || {
            format!("the images were created differently: {:?} and {:?}", self.info(), to.info())
        })?;
        let mut all = Vec::new();
        for (index, region) in regions.iter().enumerate() {
            let at = format!("pRegions[{index}]");
            let read = texels(&at, self, &COPY_FROM, &region.src_subresource, region.src_offset, region.extent)?;
            let write = texels(&at, to, &COPY_TO, &region.dst_subresource, region.dst_offset, region.extent)?;
            require(read.grid.rows == write.grid.rows, &at, "VUID-VkImageCopy2-apiVersion-07941", || {
                "source and destination have different numbers of layers".into()
            })?;
            all.push((read, write));
        }
        for (read, write) in all {
            for row in 0..write.grid.rows {
                let (from, place) = (read.grid.at(row), write.grid.at(row));
                host_accesses(device, &read.grid, row, write.row_bytes, false);
                host_accesses(device, &write.grid, row, write.row_bytes, true);
                write.grid.slice.copy_from(place, read.grid.slice, from, write.row_bytes);
            }
        }
        Ok(())
    }
}
