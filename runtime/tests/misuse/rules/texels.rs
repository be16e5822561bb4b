//! Images and transfers of texels.

use spelter::{ClearColor, vk};

use super::{Case, GONE, INSIDE, MAPPED};

const TEXEL: &str =
    "(rule: values of an image have its numeric type, or are unsigned and have the bits of a channel or of a texel)";

const BOX: &str = "(rule: a copied box has texels, and lies within its level)";

pub(super) const CASES: &[Case] = &[
    (
        "a level is written as a whole",
        |s| s.context.write_image(&s.sheet, 1, 0, &[1u32; 3]).map(drop),
        "write: 12 bytes for the 16 of level 1 of image `sheet` of 4x4x1 R32_UINT",
        "(rule: a level is written as a whole)",
    ),
    (
        "there is such a level",
        |s| s.context.read_image::<u32>(&s.sheet, 2, 0).map(drop),
        "read: levels 2..3 of 2 of image `sheet` of 4x4x1 R32_UINT",
        INSIDE,
    ),
    (
        "copied texels lie in their buffer",
        |s| s.context.copy_buffer_to_image(&s.source, 4, (&s.sheet, 0, 0)),
        "copy: bytes 4..68 of buffer `source` of 64 bytes",
        INSIDE,
    ),
    (
        "recorded texels lie in their buffer",
        |s| s.context.record(|c| c.copy_image_to_buffer((&s.sheet, 0, 0), &s.to, u64::MAX)).map(drop),
        "copy: bytes 18446744073709551615..18446744073709551615 of buffer `to` of 64 bytes",
        INSIDE,
    ),
    (
        "a box of texels lies in its level",
        |s| s.context.copy_buffer_to_image(&s.source, 0, s.sheet.texels(0, 0).origin([3, 0, 0]).extent([2, 1, 1])),
        "copy: 2 texels from 3 of 4 in x of level 0 of image `sheet` of 4x4x1 R32_UINT",
        BOX,
    ),
    (
        "a box of texels is not empty",
        |s| s.context.copy_image_to_buffer(s.sheet.texels(0, 0).extent([1, 0, 1]), &s.to, 0),
        "copy: 0 texels from 0 of 4 in y of level 0 of image `sheet` of 4x4x1 R32_UINT",
        BOX,
    ),
    (
        "a box of texels has an origin in its level",
        |s| s.context.record(|c| c.copy_image_to_buffer(s.sheet.texels(1, 0).origin([0, 0, 1]), &s.to, 0)).map(drop),
        "copy: 0 texels from 1 of 1 in z of level 1 of image `sheet` of 4x4x1 R32_UINT",
        BOX,
    ),
    (
        "rows of texels in a buffer do not overlap",
        |s| s.context.copy_buffer_to_image(&s.source, 0, s.sheet.texels(1, 0).row_bytes(4)),
        "copy: rows of 8 bytes, 4 bytes apart, with texels of 4 bytes, for image `sheet` of 4x4x1 R32_UINT",
        "bufferRowLength-09101))",
    ),
    (
        "rows of texels in a buffer begin at whole texels",
        |s| s.context.copy_buffer_to_image(&s.source, 0, s.sheet.texels(1, 0).row_bytes(10)),
        "copy: rows of 8 bytes, 10 bytes apart, with texels of 4 bytes, for image `sheet` of 4x4x1 R32_UINT",
        "bufferRowLength-09101))",
    ),
    (
        "slices of texels in a buffer do not overlap",
        |s| s.context.copy_buffer_to_image(&s.source, 0, s.sheet.texels(1, 0).slice_rows(1)),
        "copy: slices of 2 rows, 1 rows apart, for image `sheet` of 4x4x1 R32_UINT",
        "bufferImageHeight-09102))",
    ),
    (
        "there are such layers to be copied",
        |s| s.context.copy_buffer_to_image(&s.source, 0, s.sheet.texels(1, 0).layers(0)),
        "copy: layers 0..0 of 1 of image `sheet` of 4x4x1 R32_UINT",
        INSIDE,
    ),
    (
        "texels are copied from where a texel begins",
        |s| s.context.copy_buffer_to_image(&s.source, 2, (&s.sheet, 1, 0)),
        "",
        "07975)",
    ),
    (
        "texels are recorded where a texel begins",
        |s| s.context.record(|c| c.copy_image_to_buffer((&s.sheet, 1, 0), &s.to, 6)).map(drop),
        "",
        "07975)",
    ),
    (
        "there is such a level to be copied",
        |s| s.context.copy_image_to_buffer((&s.sheet, 2, 0), &s.to, 0),
        "copy: levels 2..3 of 2 of image `sheet` of 4x4x1 R32_UINT",
        INSIDE,
    ),
    (
        "a destroyed image is not copied to a buffer",
        |s| s.context.record(|c| c.copy_image_to_buffer((&s.lost, 1, 0), &s.to, 0)).map(drop),
        "copy: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a mapped buffer is not copied to an image",
        |s| s.context.copy_buffer_to_image(&s.mapped, 0, (&s.sheet, 0, 0)),
        "copy: buffer `mapped` of 64 bytes is mapped",
        MAPPED,
    ),
    (
        "there is such a layer",
        |s| s.context.clear_image(s.sheet.all().layers(1..2), ClearColor::Uint([0; 4])),
        "clear: layers 1..2 of 1 of image `sheet` of 4x4x1 R32_UINT",
        INSIDE,
    ),
    (
        "a level is read as whole elements",
        |s| s.context.read_image::<[u32; 3]>(&s.sheet, 0, 0).map(drop),
        "read: 64 bytes for elements of 12 bytes of image `sheet` of 4x4x1 R32_UINT",
        "(rule: bytes are read as a whole number of elements)",
    ),
    (
        "a value has a part of a texel, or texels",
        |s| s.context.read_image::<[u8; 3]>(&s.sheet, 0, 0).map(drop),
        "read: values of `[u8; 3]` of 3 bytes for texels of 4 bytes of R32_UINT of image `sheet` of 4x4x1 R32_UINT",
        TEXEL,
    ),
    (
        "values have the numeric type of the image",
        |s| s.context.read_image::<f32>(&s.sheet, 0, 0).map(drop),
        "read: values of `f32` for texels of R32_UINT of image `sheet` of 4x4x1 R32_UINT",
        TEXEL,
    ),
    (
        "long arrays have the numeric type of the image",
        |s| s.context.read_image::<[f32; 8]>(&s.sheet, 0, 0).map(drop),
        "read: values of `[f32; 8]` for texels of R32_UINT of image `sheet` of 4x4x1 R32_UINT",
        TEXEL,
    ),
    (
        "arrays of arrays have the numeric type of the image",
        |s| s.context.start_read_image::<[[f32; 4]; 2]>(&s.sheet, 0, 0).map(drop),
        "read: values of `[[f32; 4]; 2]` for texels of R32_UINT of image `sheet` of 4x4x1 R32_UINT",
        TEXEL,
    ),
    (
        "written values have the numeric type of the image",
        |s| s.context.write_image(&s.sheet, 0, 0, &[[1i32; 2]; 8]).map(drop),
        "write: values of `[i32; 2]` for texels of R32_UINT of image `sheet`",
        TEXEL,
    ),
    (
        "a slice for a level has its size",
        |s| s.context.read_image_into(&s.sheet, 1, 0, &mut [0u32; 5]),
        "read: 20 bytes for the 16 of level 1 of image `sheet` of 4x4x1 R32_UINT",
        "(rule: a slice that is read into has one place for each value)",
    ),
    (
        "a copied level is as large as the other",
        |s| s.context.copy_image((&s.sheet, 0, 0), (&s.drawn, 1, 0)),
        "copy: from level 0 of layer 0, 4x4x1 texels, of image `sheet` of 4x4x1 R32_UINT to level 1 of layer 0, 2x2x1 texels, of image `drawn` of 4x4x1 R32_UINT",
        "(rule: source and target of a copy have the same size)",
    ),
    (
        "a level is not copied to itself",
        |s| s.context.copy_image((&s.sheet, 0, 0), (&s.sheet, 0, 0)),
        "copy: from level 0 of layer 0, 4x4x1 texels, of image `sheet`",
        "(rule: source and target of a copy do not overlap)",
    ),
    (
        "a destroyed image is not written",
        |s| s.context.write_image(&s.lost, 0, 0, &[0u32; 16]).map(drop),
        "write: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a destroyed image is not cleared",
        |s| s.context.clear_image(&s.lost, ClearColor::Uint([0; 4])),
        "clear: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "a colour has the numbers of its image",
        |s| s.context.clear_image(&s.drawn, ClearColor::Float([1.0; 4])),
        "clear: image `drawn` of 4x4x1 R32_UINT holds unsigned integers, the colour is of floats",
        "(rule: a clear colour has the numeric type of the format, as for VkClearColorValue)",
    ),
    (
        "a destroyed image is not invalidated",
        |s| s.context.invalidate_image(&s.lost).map(drop),
        "invalidate: image `lost` of 4x4x1 R32_UINT is destroyed",
        GONE,
    ),
    (
        "an image has texels",
        |s| s.context.image(vk::Format::R32_UINT, [0, 1, 1]).label("flat").build().map(drop),
        "",
        "-extent-00944)",
    ),
];
