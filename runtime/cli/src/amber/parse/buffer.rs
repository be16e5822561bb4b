//! `BUFFER` and `IMAGE`, and their initializers.

use std::path::Path;

use spelter_driver::vk;

use super::picture::PictureTexels;
use super::{Parser, declare, number};
use crate::amber::Stop;
use crate::amber::layout::{Layout, Rules};
use crate::amber::number::{Kind, Number};
use crate::amber::script::{Buffer, Shape};
use crate::amber::texel::Texel;
use crate::amber::text::{Cursor, SourcePosition, Word};
use crate::amber::types::Type;
use crate::file;

/// The largest buffer in bytes: a larger one is a mistake in a script.
const MAX_BYTES: u64 = 1 << 30;

/// A buffer without contents.
const PLAIN: Shape = Shape { ty: vk::ImageType::TYPE_2D, size: [0, 1, 1], levels: 1, samples: 1 };

/// The elements of a buffer during initialization.
struct Filling {
    layout: Layout,
    count: Option<usize>,
    bytes: Vec<u8>,
}

impl<'t> Parser<'t> {
    pub(super) fn buffer(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let name = self.cursor.expect("the buffer's name")?;
        let kind = self.cursor.expect("`DATA_TYPE` or `FORMAT`")?;
        match kind.text {
            "DATA_TYPE" => self.typed_buffer(name, at),
            "FORMAT" => self.format_buffer(name),
            text => Err(kind.fail(format!("expected `DATA_TYPE` or `FORMAT`, found `{text}`"))),
        }
    }

    /// `BUFFER name DATA_TYPE …`.
    fn typed_buffer(&mut self, name: Word<'t>, at: SourcePosition) -> Result<(), Stop> {
        let ty = self.data_type()?;
        let rules = if self.cursor.take("STD140") { Rules::Std140 } else { Rules::Std430 };
        if rules == Rules::Std430 {
            self.cursor.take("STD430");
        }
        let mut shape = PLAIN;
        let mut count = None;
        if self.cursor.take("SIZE") {
            count = Some(self.cursor.integer::<u32>("number of elements")? as usize);
        } else if self.cursor.take("WIDTH") {
            shape.size[0] = self.cursor.integer("width")?;
            self.cursor.keyword("HEIGHT")?;
            shape.size[1] = self.cursor.integer("height")?;
            count = Some(texels(shape.size, name)?);
        }
        let layout = Layout::new(&ty, rules).map_err(|problem| name.fail(problem))?;
        let mut filling = Filling { layout, count, bytes: Vec::new() };
        self.initializer(&mut filling, &ty, at)?;
        if shape.size[0] == 0 {
            shape.size[0] = filling.count.unwrap_or(0).try_into().unwrap_or(u32::MAX);
        }
        self.add_buffer(name, ty, filling, shape)
    }

    /// `BUFFER name FORMAT …`: an image with the size of the pipeline's framebuffer, or of the picture in its file.
    fn format_buffer(&mut self, name: Word<'t>) -> Result<(), Stop> {
        let ty = Type::Texel(self.format()?);
        let layout = Layout::new(&ty, Rules::Std430).map_err(|problem| name.fail(problem))?;
        let mut filling = Filling { layout, count: Some(0), bytes: Vec::new() };
        let mut shape = Shape { size: [0, 0, 1], ..PLAIN };
        while let Some(word) = self.cursor.word() {
            match word.text {
                "MIP_LEVELS" => shape.levels = self.cursor.integer("number of levels")?,
                "SAMPLES" => shape.samples = self.samples()?,
                "FILE" => {
                    self.cursor.keyword("PNG")?;
                    let [width, height] = self.picture(&mut filling, &ty)?;
                    shape.size = [width, height, 1];
                }
                text => return Err(word.fail(format!("unexpected `{text}` in a buffer"))),
            }
        }
        self.add_buffer(name, ty, filling, shape)
    }

    pub(super) fn image(&mut self, at: SourcePosition) -> Result<(), Stop> {
        let name = self.cursor.expect("the image's name")?;
        let (mut ty, mut dimensions) = (None, None);
        let mut shape = Shape { size: [0; 3], ..PLAIN };
        while let Some(word) = self.cursor.peek() {
            if ["DATA", "FILL", "SERIES_FROM"].contains(&word.text) {
                break;
            }
            self.cursor.word();
            match word.text {
                "DATA_TYPE" => ty = Some(self.data_type()?),
                "FORMAT" => ty = Some(Type::Texel(self.format()?)),
                "MIP_LEVELS" => shape.levels = self.cursor.integer("number of levels")?,
                "SAMPLES" => shape.samples = self.samples()?,
                "DIM_1D" => dimensions = Some(1),
                "DIM_2D" => dimensions = Some(2),
                "DIM_3D" => dimensions = Some(3),
                "WIDTH" => shape.size[0] = self.cursor.integer("width")?,
                "HEIGHT" => shape.size[1] = self.cursor.integer("height")?,
                "DEPTH" => shape.size[2] = self.cursor.integer("depth")?,
                text => return Err(word.fail(format!("unexpected `{text}` in an image"))),
            }
        }
        let ty = ty.ok_or_else(|| name.fail("the image has neither FORMAT nor DATA_TYPE"))?;
        let dimensions = dimensions.unwrap_or(2);
        for (size, what) in shape.size.iter().zip(["WIDTH", "HEIGHT", "DEPTH"]).take(dimensions) {
            if *size == 0 {
                return Err(name.fail(format!("the image needs a {what} of 1 or more")));
            }
        }
        shape.size[dimensions..].fill(1);
        shape.ty = [vk::ImageType::TYPE_1D, vk::ImageType::TYPE_2D, vk::ImageType::TYPE_3D][dimensions - 1];
        let layout = Layout::new(&ty, Rules::Std430).map_err(|problem| name.fail(problem))?;
        let count = texels(shape.size, name)?;
        let mut filling = Filling { layout, count: Some(count), bytes: Vec::new() };
        if self.cursor.peek().is_some() {
            self.initializer(&mut filling, &ty, at)?;
        } else {
            filling.bytes = zeros(&filling.layout, count, at)?;
        }
        self.add_buffer(name, ty, filling, shape)
    }

    fn add_buffer(&mut self, name: Word<'t>, ty: Type, filling: Filling, image: Shape) -> Result<(), Stop> {
        self.cursor.line_end()?;
        declare(&mut self.names.buffers, "buffer", name, self.script.buffers.len())?;
        let Filling { layout, count, bytes } = filling;
        let name = name.text.to_owned();
        self.script.buffers.push(Buffer { name, ty, layout, count: count.unwrap_or(0), bytes, image });
        Ok(())
    }

    fn data_type(&mut self) -> Result<Type, Stop> {
        let word = self.cursor.expect("a data type")?;
        Type::parse(word.text, &self.structs).ok_or_else(|| word.fail(format!("there is no type `{}`", word.text)))
    }

    fn format(&mut self) -> Result<Texel, Stop> {
        let word = self.cursor.expect("an image format")?;
        Texel::named(word.text).ok_or_else(|| word.fail(format!("there is no image format `{}`", word.text)))
    }

    fn samples(&mut self) -> Result<u32, Stop> {
        let word = self.cursor.peek();
        let samples: u32 = self.cursor.integer("number of samples")?;
        match word {
            Some(word) if !samples.is_power_of_two() || samples > 64 => {
                Err(word.fail(format!("{samples} samples; the number must be 1, 2, 4, 8, 16, 32 or 64")))
            }
            _ => Ok(samples),
        }
    }

    /// `DATA`, `FILL`, `SERIES_FROM` or `FILE`.
    fn initializer(&mut self, filling: &mut Filling, ty: &Type, at: SourcePosition) -> Result<(), Stop> {
        let word = self.cursor.expect("what the buffer is filled with")?;
        let sized = |filling: &Filling| filling.count.ok_or_else(|| word.fail(format!("{} needs a SIZE", word.text)));
        match word.text {
            "DATA" => {
                let mut words = Vec::new();
                while let Some(value) = self.cursor.in_block("DATA", at)? {
                    words.push(value);
                }
                filling.data(&words, word.at)
            }
            "FILL" => {
                let count = sized(filling)?;
                let value = self.number("a value")?;
                filling.series(count, value, Number::Int(0), word)
            }
            "SERIES_FROM" => {
                let count = sized(filling)?;
                let first = self.number("a value")?;
                self.cursor.keyword("INC_BY")?;
                let step = self.number("a value")?;
                if filling.layout.slots.len() != 1 {
                    return Err(word.fail("SERIES_FROM fills scalars only"));
                }
                filling.series(count, first, step, word)
            }
            "FILE" => self.file(filling, ty),
            text => Err(word.fail(format!("`{text}` does not fill a buffer"))),
        }
    }

    /// Reads the path and texels of a picture. Returns width and height.
    fn picture(&mut self, filling: &mut Filling, ty: &Type) -> Result<[u32; 2], Stop> {
        let path = self.cursor.expect("a path")?;
        let PictureTexels { size, bytes } =
            PictureTexels::read(&read(self.folder, path)?, ty).map_err(|problem| path.fail(problem))?;
        let count = texels([size[0], size[1], 1], path)?;
        if let Some(wanted) = filling.count.filter(|&wanted| wanted != 0 && wanted != count) {
            return Err(path.fail(format!("a picture of {count} texels instead of {wanted}")));
        }
        (filling.count, filling.bytes) = (Some(count), bytes);
        Ok(size)
    }

    /// `FILE TEXT path`, `FILE BINARY path`, `FILE PNG path`.
    fn file(&mut self, filling: &mut Filling, ty: &Type) -> Result<(), Stop> {
        let kind = self.cursor.expect("`TEXT`, `BINARY` or `PNG`")?;
        let path = match kind.text {
            "TEXT" | "BINARY" => self.cursor.expect("a path")?,
            "PNG" => return self.picture(filling, ty).map(|_| ()),
            text => return Err(kind.fail(format!("expected `TEXT`, `BINARY` or `PNG`, found `{text}`"))),
        };
        let bytes = read(self.folder, path)?;
        if kind.text == "BINARY" {
            let stride = filling.layout.stride as usize;
            if !bytes.len().is_multiple_of(stride) {
                return Err(
                    path.fail(format!("{} bytes are not a whole number of elements of {stride} bytes", bytes.len()))
                );
            }
            filling.count = Some(bytes.len() / stride);
            filling.bytes = bytes;
            return Ok(());
        }
        let text = String::from_utf8(bytes).map_err(|_| path.fail("the file is not UTF-8"))?;
        let mut cursor = Cursor::new(&text);
        let mut words = Vec::new();
        while let Some(word) = cursor.any_word() {
            words.push(word);
        }
        filling.data(&words, path.at)
    }
}

/// A file next to the script. If it is absent, it was left out of a collection, so the script is skipped.
fn read(folder: &Path, path: Word<'_>) -> Result<Vec<u8>, Stop> {
    let full = folder.join(path.text);
    if !full.exists() {
        return Err(path.at.skip(format!("needs the file `{}`, which is not there", path.text)));
    }
    file::read(&full, MAX_BYTES).map_err(|failure| path.fail(failure.to_string()))
}

impl Filling {
    /// Fills the elements with values in the order of the slots. The values determine the number of elements.
    fn data(&mut self, words: &[Word<'_>], at: SourcePosition) -> Result<(), Stop> {
        let each = self.layout.slots.len();
        if words.is_empty() || !words.len().is_multiple_of(each) {
            return Err(at.fail(format!("{} values are not a whole number of elements of {each}", words.len())));
        }
        let count = words.len() / each;
        if let Some(wanted) = self.count.filter(|wanted| *wanted != count) {
            return Err(at.fail(format!("values for {count} elements instead of {wanted}")));
        }
        self.count = Some(count);
        self.bytes = zeros(&self.layout, count, at)?;
        words.iter().enumerate().try_for_each(|(index, word)| self.put(index, number(*word)?, *word))
    }

    /// Fills the elements with `first`, `first + step` and so on; all scalars of an element get the same value.
    fn series(&mut self, count: usize, first: Number, step: Number, word: Word<'_>) -> Result<(), Stop> {
        self.bytes = zeros(&self.layout, count, word.at)?;
        let float = self.layout.slots.iter().any(|slot| slot.scalar.kind == Kind::Float);
        let mut value = if float { Number::Real(first.real()) } else { first };
        for element in 0..count {
            let slots = self.layout.slots.len();
            (element * slots..(element + 1) * slots).try_for_each(|index| self.put(index, value, word))?;
            value = value.plus(step);
        }
        Ok(())
    }

    fn put(&mut self, index: usize, value: Number, word: Word<'_>) -> Result<(), Stop> {
        let Some((at, scalar)) = self.layout.slot(index) else { return Ok(()) };
        let bits = scalar.encode(value).map_err(|problem| word.fail(problem))?;
        scalar.write(&mut self.bytes, at, bits);
        Ok(())
    }
}

/// The number of texels of an image.
fn texels(size: [u32; 3], name: Word<'_>) -> Result<usize, Stop> {
    let texels: u128 = size.iter().map(|&size| u128::from(size)).product();
    usize::try_from(texels).map_err(|_| name.fail(format!("{texels} texels")))
}

/// Zeroed bytes for `count` elements.
fn zeros(layout: &Layout, count: usize, at: SourcePosition) -> Result<Vec<u8>, Stop> {
    let bytes = u128::from(layout.stride) * count as u128;
    if bytes > MAX_BYTES.into() {
        return Err(at.fail(format!("{bytes} bytes; a buffer has at most {MAX_BYTES}")));
    }
    Ok(vec![0; bytes as usize])
}
