//! Copies from and to images.

use ash::vk;

use super::CommandBuffer;
use super::recorder::CommandRecorder;
use super::transfer::{OVERLAP, overlap};
use crate::error::{Error, Misuse, require};
use crate::exec::{Grid, RowsWork, Work};
use crate::host_memory::{self, OutOfHostMemory, Room};
use crate::resource::{Buffer, BufferRules, Image, ImageRules};

/// The VUIDs of one side of a copy.
pub(super) struct CopySideRules {
    pub(super) name: &'static str,
    pub(super) image: ImageRules,
    pub(super) level: &'static str,
    pub(super) layers: &'static str,
    pub(super) x: &'static str,
    pub(super) y: &'static str,
    pub(super) z: &'static str,
}

const COPY: &str = "vkCmdCopyImage";
const UPLOAD: &str = "vkCmdCopyBufferToImage";
const DOWNLOAD: &str = "vkCmdCopyImageToBuffer";

const COPY_FROM: CopySideRules = CopySideRules {
    name: "srcImage",
    image: ImageRules {
        at: "srcImage",
        usage: vk::ImageUsageFlags::TRANSFER_SRC,
        usage_vuid: "VUID-vkCmdCopyImage-aspect-06662",
        memory_vuid: "VUID-vkCmdCopyImage-srcImage-07966",
        parent_vuid: "VUID-vkCmdCopyImage-commonparent",
    },
    level: "VUID-vkCmdCopyImage-srcSubresource-07967",
    layers: "VUID-vkCmdCopyImage-srcSubresource-07968",
    x: "VUID-vkCmdCopyImage-srcOffset-00144",
    y: "VUID-vkCmdCopyImage-srcOffset-00145",
    z: "VUID-vkCmdCopyImage-srcOffset-00147",
};

const COPY_TO: CopySideRules = CopySideRules {
    name: "dstImage",
    image: ImageRules {
        at: "dstImage",
        usage: vk::ImageUsageFlags::TRANSFER_DST,
        usage_vuid: "VUID-vkCmdCopyImage-aspect-06663",
        memory_vuid: "VUID-vkCmdCopyImage-dstImage-07966",
        parent_vuid: "VUID-vkCmdCopyImage-commonparent",
    },
    level: "VUID-vkCmdCopyImage-dstSubresource-07967",
    layers: "VUID-vkCmdCopyImage-dstSubresource-07968",
    x: "VUID-vkCmdCopyImage-dstOffset-00150",
    y: "VUID-vkCmdCopyImage-dstOffset-00151",
    z: "VUID-vkCmdCopyImage-dstOffset-00153",
};

const UPLOAD_TO: CopySideRules = CopySideRules {
    name: "dstImage",
    image: ImageRules {
        at: "dstImage",
        usage: vk::ImageUsageFlags::TRANSFER_DST,
        usage_vuid: "VUID-vkCmdCopyBufferToImage-dstImage-00177",
        memory_vuid: "VUID-vkCmdCopyBufferToImage-dstImage-07966",
        parent_vuid: "VUID-vkCmdCopyBufferToImage-commonparent",
    },
    level: "VUID-vkCmdCopyBufferToImage-imageSubresource-07967",
    layers: "VUID-vkCmdCopyBufferToImage-imageSubresource-07968",
    x: "VUID-vkCmdCopyBufferToImage-imageSubresource-07971",
    y: "VUID-vkCmdCopyBufferToImage-imageSubresource-07972",
    z: "VUID-vkCmdCopyBufferToImage-imageOffset-09104",
};

const DOWNLOAD_FROM: CopySideRules = CopySideRules {
    name: "srcImage",
    image: ImageRules {
        at: "srcImage",
        usage: vk::ImageUsageFlags::TRANSFER_SRC,
        usage_vuid: "VUID-vkCmdCopyImageToBuffer-srcImage-00186",
        memory_vuid: "VUID-vkCmdCopyImageToBuffer-srcImage-07966",
        parent_vuid: "VUID-vkCmdCopyImageToBuffer-commonparent",
    },
    level: "VUID-vkCmdCopyImageToBuffer-imageSubresource-07967",
    layers: "VUID-vkCmdCopyImageToBuffer-imageSubresource-07968",
    x: "VUID-vkCmdCopyImageToBuffer-imageSubresource-07971",
    y: "VUID-vkCmdCopyImageToBuffer-imageSubresource-07972",
    z: "VUID-vkCmdCopyImageToBuffer-imageOffset-09104",
};

const UPLOAD_FROM: BufferRules = BufferRules {
    at: "srcBuffer",
    usage: vk::BufferUsageFlags::TRANSFER_SRC,
    usage_vuid: "VUID-vkCmdCopyBufferToImage-srcBuffer-00174",
    memory_vuid: "VUID-vkCmdCopyBufferToImage-srcBuffer-00176",
    parent_vuid: "VUID-vkCmdCopyBufferToImage-commonparent",
};

const DOWNLOAD_TO: BufferRules = BufferRules {
    at: "dstBuffer",
    usage: vk::BufferUsageFlags::TRANSFER_DST,
    usage_vuid: "VUID-vkCmdCopyImageToBuffer-dstBuffer-00191",
    memory_vuid: "VUID-vkCmdCopyImageToBuffer-dstBuffer-00192",
    parent_vuid: "VUID-vkCmdCopyImageToBuffer-commonparent",
};

impl CommandBuffer {
    /// `vkCmdCopyBufferToImage`.
    pub fn copy_buffer_to_image(
        &self,
        from: &Buffer,
        to: &Image,
        regions: &[vk::BufferImageCopy],
    ) -> Result<(), Error> {
        let mut recorder = self.recorder(UPLOAD, "VUID-vkCmdCopyBufferToImage-commandBuffer-recording")?;
        let source = from.checked(&recorder.device, &UPLOAD_FROM)?;
        let target = to.checked(&recorder.device, &UPLOAD_TO.image)?;
        some(UPLOAD, "VUID-vkCmdCopyBufferToImage-regionCount-arraylength", regions.len())?;
        let mut all = host_memory::list(regions.len())?;
        for (index, region) in regions.iter().enumerate() {
            let at = format!("pRegions[{index}]");
            let texels =
                texels(&at, to, &UPLOAD_TO, &region.image_subresource, region.image_offset, region.image_extent)?;
            let bytes = buffer_grid(&at, UPLOAD, from, source.slice, to, region, &texels)?;
            all.push(RowsWork { from: bytes, to: texels.grid, row_bytes: texels.row_bytes });
        }
        add(&mut recorder, all, (UPLOAD, "VUID-vkCmdCopyBufferToImage-pRegions-00173"))?;
        recorder.keep(&source.allocation);
        recorder.keep(&target.allocation);
        Ok(())
    }

    /// `vkCmdCopyImageToBuffer`.
    pub fn copy_image_to_buffer(
        &self,
        from: &Image,
        to: &Buffer,
        regions: &[vk::BufferImageCopy],
    ) -> Result<(), Error> {
        let mut recorder = self.recorder(DOWNLOAD, "VUID-vkCmdCopyImageToBuffer-commandBuffer-recording")?;
        let source = from.checked(&recorder.device, &DOWNLOAD_FROM.image)?;
        let target = to.checked(&recorder.device, &DOWNLOAD_TO)?;
        some(DOWNLOAD, "VUID-vkCmdCopyImageToBuffer-regionCount-arraylength", regions.len())?;
        let mut all = host_memory::list(regions.len())?;
        for (index, region) in regions.iter().enumerate() {
            let at = format!("pRegions[{index}]");
            let texels =
                texels(&at, from, &DOWNLOAD_FROM, &region.image_subresource, region.image_offset, region.image_extent)?;
            let bytes = buffer_grid(&at, DOWNLOAD, to, target.slice, from, region, &texels)?;
            all.push(RowsWork { from: texels.grid, to: bytes, row_bytes: texels.row_bytes });
        }
        add(&mut recorder, all, (DOWNLOAD, "VUID-vkCmdCopyImageToBuffer-pRegions-00184"))?;
        recorder.keep(&source.allocation);
        recorder.keep(&target.allocation);
        Ok(())
    }

    /// `vkCmdCopyImage`: between images with texels of equal size. Layers of one may become slices of the other.
    pub fn copy_image(&self, from: &Image, to: &Image, regions: &[vk::ImageCopy]) -> Result<(), Error> {
        let mut recorder = self.recorder(COPY, "VUID-vkCmdCopyImage-commandBuffer-recording")?;
        let source = from.checked(&recorder.device, &COPY_FROM.image)?;
        let target = to.checked(&recorder.device, &COPY_TO.image)?;
        some(COPY, "VUID-vkCmdCopyImage-regionCount-arraylength", regions.len())?;
        require(from.format().bytes() == to.format().bytes(), COPY, "VUID-vkCmdCopyImage-srcImage-01548", || {
            format!("{:?} and {:?} have texels of different sizes", from.info().format, to.info().format)
        })?;
        let mut all = host_memory::list(regions.len())?;
        for (index, region) in regions.iter().enumerate() {
            let at = format!("pRegions[{index}]");
            let (a, b) = slices(region, from, to);
            let read = texels(&at, from, &COPY_FROM, &region.src_subresource, region.src_offset, a)?;
            let write = texels(&at, to, &COPY_TO, &region.dst_subresource, region.dst_offset, b)?;
            require(read.grid.rows == write.grid.rows, &at, "VUID-vkCmdCopyImage-srcImage-08793", || {
                "source and destination have different numbers of layers".into()
            })?;
            all.push(RowsWork { from: read.grid, to: write.grid, row_bytes: write.row_bytes });
        }
        add(&mut recorder, all, (COPY, "VUID-vkCmdCopyImage-pRegions-00124"))?;
        recorder.keep(&source.allocation);
        recorder.keep(&target.allocation);
        Ok(())
    }
}

/// Adds the regions of a copy, whose sources and destinations must have no byte in common by this rule.
fn add(recorder: &mut CommandRecorder, all: Vec<RowsWork>, (at, vuid): (&str, &'static str)) -> Result<(), Error> {
    require(!rows_overlap(&all)?, at, vuid, || OVERLAP.into())?;
    recorder.make_room(all.len())?;
    let _room = Room::of((all.len() * size_of::<RowsWork>()) as u64)?;
    recorder.add_regions(all.into_iter().map(|rows| Work::Rows(Box::new(rows))));
    Ok(())
}

/// Whether any row that is read shares a byte with any row that is written. Rows are looked at one by one only if the
/// memory between the first and the last row of a source meets that of a destination.
fn rows_overlap(all: &[RowsWork]) -> Result<bool, OutOfHostMemory> {
    let extent = |grid: &Grid, bytes: u64| {
        let last = grid.at(grid.rows.saturating_sub(1)).saturating_add(bytes);
        (grid.slice.address() as u64 + grid.first, last - grid.first)
    };
    let sources = all.iter().map(|work| extent(&work.from, work.row_bytes));
    if !overlap(sources, all.iter().map(|work| extent(&work.to, work.row_bytes)))? {
        return Ok(false);
    }
    let rows =
        |grid: Grid, bytes: u64| (0..grid.rows).map(move |row| (grid.slice.address() as u64 + grid.at(row), bytes));
    let sources = all.iter().flat_map(|work| rows(Grid { rows: work.to.rows, ..work.from }, work.row_bytes));
    overlap(sources, all.iter().flat_map(|work| rows(work.to, work.row_bytes)))
}

fn some(at: &str, vuid: &'static str, count: usize) -> Result<(), Misuse> {
    require(count > 0, at, vuid, || "regionCount is 0".into())
}

/// The extents on both sides: between a 3D image and an array, the depth of one is the layer count of the other.
fn slices(region: &vk::ImageCopy, from: &Image, to: &Image) -> (vk::Extent3D, vk::Extent3D) {
    let extent = region.extent;
    let volume = |image: &Image| image.info().ty == vk::ImageType::TYPE_3D;
    match (volume(from), volume(to)) {
        (true, false) => (extent, vk::Extent3D { depth: 1, ..extent }),
        (false, true) => (vk::Extent3D { depth: 1, ..extent }, extent),
        _ => (extent, extent),
    }
}

/// Texels of an image as rows of bytes.
pub(super) struct Texels {
    pub(super) grid: Grid,
    pub(super) row_bytes: u64,
}

pub(super) fn texels(
    at: &str,
    image: &Image,
    side: &CopySideRules,
    of: &vk::ImageSubresourceLayers,
    offset: vk::Offset3D,
    extent: vk::Extent3D,
) -> Result<Texels, Misuse> {
    let info = image.info();
    let name = side.name;
    require(of.mip_level < info.levels, at, side.level, || {
        format!("{name}: mipLevel {} of {}", of.mip_level, info.levels)
    })?;
    let left = info.layers.saturating_sub(of.base_array_layer);
    let layers = if of.layer_count == vk::REMAINING_ARRAY_LAYERS { left } else { of.layer_count };
    require(layers > 0 && layers <= left, at, side.layers, || {
        format!("{name}: {layers} layers from {}, of {}", of.base_array_layer, info.layers)
    })?;
    let size = image.extent().level(of.mip_level);
    let parts = [
        (offset.x, extent.width, size[0], side.x),
        (offset.y, extent.height, size[1], side.y),
        (offset.z, extent.depth, size[2], side.z),
    ];
    for (first, count, size, vuid) in parts {
        let end = u64::try_from(first).ok().map(|first| first + u64::from(count));
        require(count > 0 && end.is_some_and(|end| end <= size.into()), at, vuid, || {
            format!("{name}: {count} texels from {first}, of {size}")
        })?;
    }
    let [x, y, z] = [offset.x, offset.y, offset.z].map(i32::unsigned_abs);
    Ok(texel_box(
        image,
        of.mip_level,
        [of.base_array_layer, layers],
        [x, y, z],
        [extent.width, extent.height, extent.depth],
    ))
}

/// A box of texels in one level: of some layers, or of some slices of a 3D image.
pub(super) fn texel_box(image: &Image, level: u32, [layer, layers]: [u32; 2], at: [u32; 3], size: [u32; 3]) -> Texels {
    let place = image.subresource_layout(level, layer);
    let texel = u64::from(image.format().bytes());
    let [x, y, z] = at.map(u64::from);
    let volume = image.info().ty == vk::ImageType::TYPE_3D;
    let slices = if volume { size[2] } else { layers };
    let grid = Grid {
        slice: image.storage().map(|storage| storage.slice).unwrap_or(spelter_shaders::guest::GuestSlice::EMPTY),
        first: place.offset + z * place.depth_pitch + y * place.row_pitch + x * texel,
        row_pitch: place.row_pitch,
        slice_pitch: if volume { place.depth_pitch } else { place.array_pitch },
        height: u64::from(size[1]).max(1),
        rows: u64::from(size[1]) * u64::from(slices),
    };
    Texels { grid, row_bytes: u64::from(size[0]) * texel }
}

/// The buffer side of a copy, as rows.
fn buffer_grid(
    at: &str,
    command: &str,
    buffer: &Buffer,
    slice: spelter_shaders::guest::GuestSlice,
    image: &Image,
    region: &vk::BufferImageCopy,
    texels: &Texels,
) -> Result<Grid, Misuse> {
    let upload = command == UPLOAD;
    let pick = |up: &'static str, down: &'static str| if upload { up } else { down };
    let texel = u64::from(image.format().bytes());
    let vuid = pick("VUID-vkCmdCopyBufferToImage-dstImage-07975", "VUID-vkCmdCopyImageToBuffer-srcImage-07975");
    let offset = region.buffer_offset;
    require(offset.is_multiple_of(texel), at, vuid, || {
        format!("bufferOffset {offset} is not a multiple of the texels' {texel} bytes")
    })?;
    let extent = region.image_extent;
    let (length, height) = (region.buffer_row_length, region.buffer_image_height);
    require(length == 0 || length >= extent.width, at, "VUID-VkBufferImageCopy-bufferRowLength-09101", || {
        format!("bufferRowLength {length} for rows of {} texels", extent.width)
    })?;
    require(height == 0 || height >= extent.height, at, "VUID-VkBufferImageCopy-bufferImageHeight-09102", || {
        format!("bufferImageHeight {height} for {} rows", extent.height)
    })?;
    let row_pitch = u64::from(if length == 0 { extent.width } else { length }) * texel;
    let slice_pitch = u64::from(if height == 0 { extent.height } else { height }).saturating_mul(row_pitch);
    let grid = Grid { slice, first: offset, row_pitch, slice_pitch, ..texels.grid };
    let vuid = pick("VUID-vkCmdCopyBufferToImage-pRegions-00171", "VUID-vkCmdCopyImageToBuffer-pRegions-00183");
    let last = grid.rows - 1;
    let end = u128::from(offset)
        + u128::from(last / grid.height) * u128::from(slice_pitch)
        + u128::from(last % grid.height) * u128::from(row_pitch)
        + u128::from(texels.row_bytes);
    require(end <= buffer.size().into(), at, vuid, || {
        format!("the region ends at byte {end} of a buffer of {} bytes", buffer.size())
    })?;
    Ok(grid)
}
