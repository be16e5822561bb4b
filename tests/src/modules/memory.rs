//! Random contents for a kernel's bindings, shaped after its loads: floats where it loads floats, small numbers where
//! it loads integers, addresses of memory where it uses addresses.

use std::collections::{BTreeMap, BTreeSet};

use spelter_shaders::abi::{MAX_PUSH_BYTES, address_ranges};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::image::{Class, Descriptor, Extent, Filter, Layout, Numeric, Rows, Sampler, TexelView, Wrap};
use spelter_shaders::ir::{BindingData, BindingKind, InstData, Kernel, Op, Place, Type, Value, ValueDef, Width};
use spirv::Dim;

use super::Subject;
use super::families::{Settings, apply};
use super::interface::ImageType;
use crate::mutate::Rng;

/// Number of scales of random integers; seeds alternate between them.
pub const SCALES: u64 = 6;

/// Bytes of all memory.
const ARENA: usize = 16 << 20;

/// Bytes of a storage buffer, and of the target of an address.
const BUFFER: usize = 32 << 10;

/// Bytes between buffers, which must stay unchanged.
const GUARD: usize = 128;

/// A memory from which a kernel loads at known offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Home {
    Push,
    /// A binding, by its number in the kernel.
    Binding(usize),
}

/// The type of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Int,
    Float,
    Half,
    Byte,
}

/// A kernel's loads.
#[derive(Debug, Default)]
struct Shape {
    /// Loads at known offsets.
    known: BTreeMap<(Home, u32), Kind>,
    /// Count of each kind of load at other offsets.
    others: BTreeMap<Home, BTreeMap<Kind, usize>>,
    /// Offsets of the low words of addresses.
    addresses: Vec<(Home, u32)>,
}

/// The memory of all modules, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct Arena(GuestSlice);

/// A kernel's memory before it runs, and its bindings.
#[derive(Debug)]
pub struct Memory {
    arena: GuestSlice,
    bytes: Vec<u8>,
    /// Push constants.
    pub push: [u8; MAX_PUSH_BYTES],
    /// For `DispatchArgs`.
    pub buffers: Vec<GuestSlice>,
    /// For `DispatchArgs`.
    pub images: Vec<Descriptor>,
    /// First byte and end of each buffer.
    places: Vec<(usize, usize)>,
}

impl Default for Arena {
    fn default() -> Self {
        Self(GuestSlice::leak(ARENA))
    }
}

impl Memory {
    /// Memory for a kernel, with its settings: the same for the same seed. `None` if it does not fit.
    pub fn new(arena: Arena, subject: &Subject, settings: &Settings, seed: u64) -> Option<Self> {
        let Subject { kernel, images } = subject;
        let shape = Shape::of(kernel);
        let mut memory = Self {
            arena: arena.0,
            bytes: Vec::new(),
            push: [0; MAX_PUSH_BYTES],
            buffers: Vec::new(),
            images: Vec::new(),
            places: Vec::new(),
        };
        let mut rng = Rng::new(seed ^ 0x5eed);
        // A separate generator, so that settings do not change the other random words.
        let mut drawn = Rng::new(seed ^ 0xfa);
        for (number, data) in kernel.bindings.values().enumerate() {
            let home = Home::Binding(number);
            let place = (data.set, data.binding);
            let rules = settings.bindings.get(&place).map_or(&[][..], Vec::as_slice);
            for _ in 0..data.count {
                memory.descriptor(data, images.get(&place).copied(), |bytes, large| {
                    let mut contents = shape.fill(home, bytes, large, seed, &mut rng);
                    apply(rules, &mut contents, &mut drawn);
                    contents
                })?;
            }
        }
        let push = shape.fill(Home::Push, MAX_PUSH_BYTES, false, seed, &mut rng);
        memory.push.copy_from_slice(&push);
        apply(&settings.push, &mut memory.push, &mut drawn);
        if kernel.has_addresses() {
            memory.addresses(kernel, &shape, &mut rng)?;
        }
        memory.gap();
        (memory.bytes.len() <= ARENA).then_some(memory)
    }

    /// Writes the initial contents.
    pub fn load(&self) {
        self.arena.write(0, &self.bytes);
    }

    /// The present contents.
    pub fn read(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.bytes.len()];
        self.arena.read(0, &mut bytes);
        bytes
    }

    /// Copies the bytes that differ from the initial contents.
    pub fn take_changes(&self, into: &mut [u8]) {
        let changes = into.iter_mut().zip(self.read()).zip(&self.bytes).filter(|((_, now), then)| now != *then);
        changes.for_each(|((into, now), _)| *into = now);
    }

    /// The descriptor that contains a byte, with the first byte of its memory; `None` between descriptors.
    pub fn descriptor_of(&self, byte: usize) -> Option<(usize, usize)> {
        let number = self.places.iter().position(|&(first, end)| (first..end).contains(&byte))?;
        Some((number, self.places[number].0))
    }

    /// Whether these bytes differ from the initial contents.
    pub fn differs(&self, bytes: &[u8]) -> bool {
        self.bytes != bytes
    }

    fn gap(&mut self) {
        let end = (self.bytes.len() + GUARD).next_multiple_of(64);
        self.bytes.extend((self.bytes.len()..end).map(|at| (at * 37 + 101) as u8));
    }

    /// Allocates memory with these contents.
    fn place(&mut self, contents: &[u8]) -> Option<GuestSlice> {
        self.gap();
        let first = self.bytes.len();
        self.bytes.extend_from_slice(contents);
        self.places.push((first, first + contents.len()));
        (self.bytes.len() <= ARENA).then(|| self.arena.slice(first as u64, contents.len() as u64))
    }

    fn descriptor(
        &mut self,
        data: &BindingData,
        image: Option<ImageType>,
        mut fill: impl FnMut(usize, bool) -> Vec<u8>,
    ) -> Option<()> {
        let mut descriptor = Descriptor::NULL;
        let number = self.buffers.len();
        let slice = match (data.kind, image) {
            (BindingKind::StorageBuffer, _) => self.place(&fill(BUFFER, true))?,
            (BindingKind::UniformBuffer, _) => {
                self.place(&fill((data.min_bytes as usize).next_multiple_of(16).max(256), false))?
            }
            (_, Some(image)) if image.dim == Dim::DimBuffer => {
                let bytes = fill(1000 * image.format.bytes() as usize, true);
                let slice = self.place(&bytes)?;
                descriptor.view = TexelView::of_buffer(slice, image.format, 1 << 27);
                slice
            }
            (_, Some(image)) => {
                let (extent, volume) = extent(image, number);
                let layout = Layout::new(&extent, image.format.bytes(), Rows::Spread)?;
                let mut bytes = fill(layout.bytes as usize, true);
                if image.format.class() == Class::Float && image.format.numeric() != Numeric::Sfloat {
                    let mut rng = Rng::new(number as u64);
                    bytes.fill_with(|| rng.bits() as u8);
                }
                let slice = self.place(&bytes)?;
                let (levels, layers) = ([0, extent.levels], [0, extent.layers]);
                descriptor.view = TexelView::of_image(slice, image.format, &extent, &layout, levels, layers, volume);
                slice
            }
            _ => GuestSlice::EMPTY,
        };
        if slice.is_empty() {
            self.places.push((0, 0));
        }
        descriptor.sampler = sampler(number);
        self.buffers.push(slice);
        self.images.push(descriptor);
        Some(())
    }

    /// Memory for addresses, and its address wherever the kernel loads one.
    fn addresses(&mut self, kernel: &Kernel, shape: &Shape, rng: &mut Rng) -> Option<()> {
        let mut contents = Vec::with_capacity(BUFFER);
        contents.resize_with(BUFFER, || rng.bits() as u8 & 0x3f);
        let heap = self.place(&contents)?;
        let firsts: Vec<usize> = kernel
            .bindings
            .values()
            .scan(0, |next, data| {
                let first = *next;
                *next += data.count as usize;
                Some(first)
            })
            .collect();
        for (number, &(home, offset)) in shape.addresses.iter().enumerate() {
            // Each has a part of its own, so that reads and writes do not overlap.
            let part = number * 4096 % BUFFER;
            let address = ((heap.address() + part) as u64).to_le_bytes();
            let to = match home {
                Home::Push => self.push.get_mut(offset as usize..offset as usize + 8),
                Home::Binding(binding) => firsts.get(binding).and_then(|&first| {
                    let at = self.places.get(first)?.0 + offset as usize;
                    self.bytes.get_mut(at..at + 8)
                }),
            };
            to.into_iter().for_each(|to| to.copy_from_slice(&address));
        }
        let mut all: Vec<GuestSlice> = self.buffers.iter().copied().filter(|slice| !slice.is_empty()).collect();
        all.push(heap);
        all.sort_by_key(|slice| slice.address());
        self.buffers.extend(address_ranges(all));
        Some(())
    }
}

/// A small image with more than one of each dimension that it may have.
fn extent(image: ImageType, number: usize) -> (Extent, bool) {
    let width = 19 + number as u32 % 3;
    let (size, volume) = match image.dim {
        Dim::Dim1D => ([width, 1, 1], false),
        Dim::Dim3D => ([width, 9, 5], true),
        Dim::DimCube => ([16, 16, 1], false),
        _ => ([width, 13, 1], false),
    };
    let layers = match (image.dim, image.arrayed) {
        (Dim::DimCube, arrayed) => 6 + 6 * u32::from(arrayed),
        (_, arrayed) => 1 + 2 * u32::from(arrayed),
    };
    (Extent { size, levels: 3, layers }, volume)
}

fn sampler(number: usize) -> Sampler {
    let filter = [Filter::Linear, Filter::Nearest][number % 2];
    let wrap = [Wrap::Repeat, Wrap::ClampToEdge, Wrap::MirroredRepeat][number % 3];
    Sampler { mag: filter, min: filter, mip: filter, wrap: [wrap; 3], max_lod: 1000.0, ..Sampler::DEFAULT }
}

impl Shape {
    fn of(kernel: &Kernel) -> Self {
        let mut shape = Self::default();
        let all = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        for &inst in all {
            match &kernel.insts[inst] {
                InstData::Load { ty, width, place, .. } => {
                    let kind = match (width, ty) {
                        (Width::Byte, _) => Kind::Byte,
                        (Width::Half, _) => Kind::Half,
                        (_, Type::F32) => Kind::Float,
                        _ => Kind::Int,
                    };
                    let Some((home, offset)) = home(kernel, place) else { continue };
                    match offset {
                        Some(offset) => _ = shape.known.insert((home, offset), kind),
                        None => *shape.others.entry(home).or_default().entry(kind).or_default() += 1,
                    }
                }
                InstData::BufferAt { low, .. } | InstData::BufferNear { low, .. } => {
                    shape.trace(kernel, *low, &mut BTreeSet::new());
                }
                _ => {}
            }
        }
        shape
    }

    /// Records the source of an address, if it is a sum of loaded values, also one that grows in a loop.
    fn trace(&mut self, kernel: &Kernel, value: Value, seen: &mut BTreeSet<Value>) {
        if !seen.insert(value) {
            return;
        }
        let inst = match kernel.values[value] {
            ValueDef::Result { inst, .. } => inst,
            ValueDef::Param { block, index, .. } => {
                let all = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
                let calls = all.flat_map(|&inst| kernel.insts[inst].targets());
                for call in calls.filter(|call| call.block == block) {
                    self.trace(kernel, call.args[index as usize], seen);
                }
                return;
            }
        };
        match &kernel.insts[inst] {
            InstData::Load { place, .. } => {
                if let Some((home, Some(offset))) = home(kernel, place) {
                    self.addresses.push((home, offset));
                }
            }
            // A scaled operand is an offset.
            InstData::Pure { op: Op::IMul | Op::Shl, .. } => {}
            InstData::Pure { args, .. } => args.iter().for_each(|&arg| self.trace(kernel, arg, seen)),
            _ => {}
        }
    }

    /// Contents of a memory. Seeds alternate between scales of integers.
    fn fill(&self, home: Home, bytes: usize, large: bool, seed: u64, rng: &mut Rng) -> Vec<u8> {
        let most = self.others.get(&home).and_then(|kinds| kinds.iter().max_by_key(|kind| kind.1));
        let other = most.map_or(Kind::Int, |(kind, _)| *kind);
        let mut contents = Vec::with_capacity(bytes + 4);
        while contents.len() < bytes {
            let offset = contents.len() as u32;
            let kind = self.known.get(&(home, offset)).copied().unwrap_or(other);
            contents.extend(word(kind, large, seed, rng).to_le_bytes());
        }
        contents.truncate(bytes);
        contents
    }
}

fn word(kind: Kind, large: bool, seed: u64, rng: &mut Rng) -> u32 {
    let bits = (rng.bits() >> 20) as u32;
    match (kind, seed % SCALES) {
        (Kind::Float, _) if bits.is_multiple_of(16) => [0f32, 1.0, -1.0, 3.0][bits as usize / 16 % 4].to_bits(),
        (Kind::Float, _) => ((bits % 65_536) as f32 / 16_384.0 - 2.0).to_bits(),
        // Random sign and mantissa, exponents around 0.
        (Kind::Half, _) => {
            let half = |bits: u32| bits & 0x83ff | (12 + (bits >> 10) % 4) << 10;
            half(bits & 0xffff) | half(bits >> 16) << 16
        }
        (Kind::Byte, _) => bits,
        (Kind::Int, 0) => 1 + bits % 4,
        (Kind::Int, 1) => bits % 17,
        (Kind::Int, 2) if large => bits,
        (Kind::Int, 2) => bits % 64,
        (Kind::Int, 3) => bits % 9,
        (Kind::Int, 4) => 1 << (bits % 10),
        // A few large ones.
        (Kind::Int, _) if bits.is_multiple_of(8) => 64 + bits % 1024,
        (Kind::Int, _) => 1 + bits % 2,
    }
}

/// The memory of a place, and its offset, if that is known.
fn home(kernel: &Kernel, place: &Place) -> Option<(Home, Option<u32>)> {
    let offset = kernel.constant(place.offset()).map(|bits| bits as u32);
    let home = match *place {
        Place::Push { .. } => Home::Push,
        Place::Variable { .. } => return None,
        Place::Buffer { buffer, .. } => match kernel.values[buffer] {
            ValueDef::Result { inst, .. } => match kernel.insts[inst] {
                InstData::Buffer { binding, .. } => Home::Binding(kernel.bindings.keys().position(|b| b == binding)?),
                _ => return None,
            },
            ValueDef::Param { .. } => return None,
        },
    };
    Some((home, offset))
}
