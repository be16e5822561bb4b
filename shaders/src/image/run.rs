//! Runs an image instruction for one invocation.

use std::cell::RefCell;

use super::address::layer;
use super::cube;
use super::descriptor::{Descriptor, Sampler, TexelView};
use super::filter::{Fetch, FromMemory, SampleSource, Telling, Texel, lerp};
use super::format::Class;
use super::lod;
use super::op::{Dim, ImageOp, Kind, LodOperand, Offsets};
use super::texel::{encode, store_raw};

/// Iterator over the operands.
struct OperandWords<'a>(&'a [u32]);

impl OperandWords<'_> {
    fn word(&mut self) -> u32 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn float(&mut self) -> f32 {
        f32::from_bits(self.word())
    }

    fn floats(&mut self, count: usize) -> [f32; 3] {
        let mut floats = [0.0; 3];
        floats.iter_mut().take(count).for_each(|float| *float = self.float());
        floats
    }

    fn integers(&mut self, count: usize) -> [i32; 3] {
        let mut integers = [0; 3];
        integers.iter_mut().take(count).for_each(|integer| *integer = self.word().cast_signed());
        integers
    }
}

/// Runs an instruction; `operands` are the bits of [`ImageOp::params`]. The result is the whole texel, for a gather one
/// component of four texels, for a write 0.
pub fn run(op: &ImageOp, image: &Descriptor, sampler: &Descriptor, operands: &[u32]) -> Texel {
    run_with(op, image, sampler, operands, FromMemory)
}

fn run_with(op: &ImageOp, image: &Descriptor, sampler: &Descriptor, operands: &[u32], fetch: impl Fetch) -> Texel {
    let mut operands = OperandWords(operands);
    match op.kind {
        Kind::Read => read(op, &image.view, &mut operands, fetch),
        Kind::Write => {
            write(op, &image.view, &mut operands);
            [0; 4]
        }
        Kind::Sample | Kind::Gather if image.view.layers == 0 => [0; 4],
        Kind::Sample => sample(op, &image.view, &sampler.sampler, &mut operands, fetch),
        Kind::Gather => gather(op, &image.view, &sampler.sampler, &mut operands, fetch),
    }
}

/// The texels that an instruction reads or writes: calls `visit` with the byte offset of each that is in the image,
/// once for each time that the instruction uses it.
pub fn texels(op: &ImageOp, image: &Descriptor, sampler: &Descriptor, operands: &[u32], visit: impl FnMut(u64)) {
    if op.kind == Kind::Write {
        let (level, at, layer) = address(op, &mut OperandWords(operands));
        return image.view.texel(level, at, layer).into_iter().for_each(visit);
    }
    let visit = RefCell::new(visit);
    run_with(op, image, sampler, operands, Telling(&|offset| (visit.borrow_mut())(offset)));
}

/// Texel coordinates and layer.
fn texel_coordinates(op: &ImageOp, operands: &mut OperandWords<'_>) -> ([i32; 3], u32) {
    let at = operands.integers(op.dim.coordinates());
    let layer = if op.arrayed { operands.word() } else { 0 };
    (at, layer)
}

/// Level, coordinates and layer of the texel that a read or write is on.
fn address(op: &ImageOp, operands: &mut OperandWords<'_>) -> (u32, [u32; 3], u32) {
    let (mut at, layer) = texel_coordinates(op, operands);
    let level = if op.lod == LodOperand::Lod { operands.word() } else { 0 };
    if op.offsets == Offsets::One {
        let offset = operands.integers(op.dim.coordinates());
        at = [0, 1, 2].map(|dim| at[dim].wrapping_add(offset[dim]));
    }
    (level, at.map(i32::cast_unsigned), layer)
}

fn read(op: &ImageOp, view: &TexelView, operands: &mut OperandWords<'_>, fetch: impl Fetch) -> Texel {
    let (level, at, layer) = address(op, operands);
    let source = SampleSource {
        fetch,
        view,
        sampler: &Sampler::DEFAULT,
        dims: op.dim.coordinates(),
        layer,
        face: None,
        reference: None,
        codes: false,
    };
    source.load(level, at, layer)
}

fn write(op: &ImageOp, view: &TexelView, operands: &mut OperandWords<'_>) {
    let (level, at, layer) = address(op, operands);
    let texel = [(); 4].map(|()| operands.word());
    if let Some(offset) = view.texel(level, at, layer) {
        store_raw(view.memory, offset, view.format.bytes(), encode(view.format, texel));
    }
}

/// The source of a sample and the coordinates on it (for a cube, on its face).
fn source<'a, F>(
    op: &ImageOp,
    view: &'a TexelView,
    sampler: &'a Sampler,
    operands: &mut OperandWords<'_>,
    fetch: F,
) -> (SampleSource<'a, F>, [f32; 3], [f32; 3]) {
    let given = operands.floats(op.dim.coordinates());
    let number = if op.arrayed { operands.float() } else { 0.0 };
    let reference = op.dref.then(|| operands.float());
    let dims = if op.dim == Dim::Cube { 2 } else { op.dim.coordinates() };
    let mut source = SampleSource { fetch, view, sampler, dims, layer: 0, face: None, reference, codes: false };
    let mut coordinates = given;
    if op.dim == Dim::Cube {
        let spot = cube::project(given);
        source.layer = 6 * layer(number, view.layers / 6);
        source.face = Some(spot.face);
        coordinates = [spot.at[0], spot.at[1], 0.0];
    } else {
        source.layer = layer(number, view.layers);
    }
    (source, coordinates, given)
}

fn sample(
    op: &ImageOp,
    view: &TexelView,
    sampler: &Sampler,
    operands: &mut OperandWords<'_>,
    fetch: impl Fetch,
) -> Texel {
    let (source, coordinates, given) = source(op, view, sampler, operands, fetch);
    let lod = match op.lod {
        LodOperand::None => 0.0,
        LodOperand::Lod => operands.float(),
        LodOperand::Grad => {
            let [x, y] = [(); 2].map(|()| operands.floats(op.dim.coordinates()));
            let size = view.size.map(|size| size as f32);
            let [x, y] = [x, y].map(|change| {
                let change = if op.dim == Dim::Cube {
                    let [s, t] = cube::derivatives(given, change);
                    [s, t, 0.0]
                } else {
                    change
                };
                [0, 1, 2].map(|dim| change[dim] * size[dim])
            });
            lod::of_derivatives(x, y)
        }
    };
    let offset = if op.offsets == Offsets::One { operands.integers(op.dim.coordinates()) } else { [0; 3] };
    let min_lod = if op.min_lod { operands.float() } else { f32::NEG_INFINITY };
    let levels = lod::select(sampler, lod, min_lod, view.levels);
    let first = source.sample(levels.filter, levels.first, coordinates, offset);
    match levels.second {
        Some((level, weight)) if view.format.class() == Class::Float => {
            lerp(first, source.sample(levels.filter, level, coordinates, offset), weight)
        }
        _ => first,
    }
}

fn gather(
    op: &ImageOp,
    view: &TexelView,
    sampler: &Sampler,
    operands: &mut OperandWords<'_>,
    fetch: impl Fetch,
) -> Texel {
    let (source, coordinates, _) = source(op, view, sampler, operands, fetch);
    let component = if op.dref { 0 } else { operands.word().min(3) as usize };
    match op.offsets {
        Offsets::None => source.footprint(coordinates, [0; 3]).map(|texel| texel[component]),
        Offsets::One => {
            let offset = operands.integers(2);
            source.footprint(coordinates, offset).map(|texel| texel[component])
        }
        Offsets::Four => {
            let offsets = [(); 4].map(|()| operands.integers(2));
            offsets.map(|offset| source.footprint(coordinates, offset)[3][component])
        }
    }
}
