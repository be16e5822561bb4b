//! Loads and stores, where the rules of `layout` allow them.

use spelter_shaders::ir::{BufferSpace, InstData, Op, Place, Type, Value};

use super::feature::Feature;
use super::layout::{Home, Region, SLOTS};
use super::maker::Maker;
use super::scope::{Class, Kind, Level};

impl Maker {
    /// A load of a word, with NaN replaced.
    pub(super) fn load(&mut self, place: Place, level: Level) -> Value {
        let ty = self.tape.of(&[Type::I32, Type::I32, Type::F32]);
        let access = self.access();
        let value = self.builder.load(ty, place, access);
        self.scope.note(value, level);
        let value = if ty == Type::F32 { self.number(value) } else { value };
        self.define(value, Kind::of(ty), level)
    }

    pub(super) fn store(&mut self, place: Place) {
        let kind = self.tape.of(&[Kind::Int, Kind::Int, Kind::Float]);
        let (value, access) = (self.value(kind), self.access());
        self.builder.store(place, value, access);
    }

    /// A load of read-only memory.
    pub(super) fn read(&mut self) {
        match self.tape.pick(6) {
            0 => self.read_push(),
            1 => self.read_vector(),
            which => {
                let class = if which < 4 { Class::ReadOnly } else { Class::Uniform };
                let buffer = self.value(Kind::Buffer(class));
                let offset = self.offset();
                self.read_buffer(class, buffer, offset);
            }
        }
    }

    fn read_buffer(&mut self, class: Class, buffer: Value, offset: Value) {
        let level = self.level(&[buffer, offset]);
        let space = if class == Class::Uniform { BufferSpace::Uniform } else { BufferSpace::Storage };
        if class == Class::Uniform {
            self.mark(Feature::LoadUniformBuffer);
        }
        self.load_any(Place::Buffer { space, buffer, offset }, level);
    }

    fn read_push(&mut self) {
        self.mark(Feature::LoadPush);
        let offset = match self.tape.pick(3) {
            0 => {
                let word = self.tape.pick(20) * 4;
                self.constant(word)
            }
            _ => self.offset(),
        };
        let level = self.level(&[offset]);
        self.load_any(Place::Push { offset }, level);
    }

    /// Components of one element, as of a shader's vector load.
    fn read_vector(&mut self) {
        self.mark(Feature::LoadVector);
        let class = self.tape.of(&[Class::ReadOnly, Class::ReadOnly, Class::Uniform]);
        let buffer = self.value(Kind::Buffer(class));
        let (index, _) = self.index();
        let stride = self.tape.of(&[16u32, 8, 12, 4]);
        let base = 4 * self.tape.pick(4);
        let base = self.constant(base);
        let element = self.element(base, index, stride);
        for component in 0..(stride / 4).max(2) {
            let delta = self.constant(component * 4);
            let offset = self.element(element, delta, 1);
            self.read_buffer(class, buffer, offset);
        }
    }

    /// A region in which invocations may access their own words now.
    pub(super) fn closed_region(&mut self) -> Option<Region> {
        let regions = self.memory.regions.iter().copied().filter(|region| self.is_writable(region.phase));
        let regions: Vec<Region> = regions.collect();
        (!regions.is_empty()).then(|| self.tape.of(&regions))
    }

    /// Loads or stores the invocation's own words.
    pub(super) fn own(&mut self) {
        let Some(region) = self.closed_region() else { return };
        match self.tape.pick(5) {
            0..=2 => {
                let place = self.own_place(region, true);
                self.store_any(place);
            }
            3 => {
                let place = self.own_place(region, false);
                self.load_any(place, Level::Invocation);
            }
            _ => {
                let places = self.own_vector(region);
                if places.len() > 1 {
                    self.mark(Feature::StoreVector);
                }
                let loads = self.tape.pick(3) == 2;
                for place in places {
                    if loads {
                        self.load(place, Level::Invocation);
                    } else {
                        self.store(place);
                    }
                }
            }
        }
    }

    /// Stores an own word of a region that is not open.
    pub(super) fn store_own(&mut self, region: Region) {
        let place = self.own_place(region, true);
        self.store(place);
    }

    /// Loads any word of an open region.
    pub(super) fn read_shown(&mut self, region: Region) {
        let (place, level) = self.shown_place(region);
        let feature = match (region.home, level) {
            (Home::Buffers(_), _) => Feature::ExchangeStorage,
            (_, Level::Workgroup) => Feature::ReadUniformShared,
            _ => Feature::Exchange,
        };
        self.mark(feature);
        self.load_any(place, level);
    }

    /// Loads or stores the invocation's private memory, at any index.
    pub(super) fn private(&mut self) {
        if self.memory.private.is_empty() {
            return;
        }
        let private = self.memory.private.clone();
        let (variable, words) = self.tape.of(&private);
        let offset = match self.tape.pick(4) {
            0 | 1 => {
                self.mark(Feature::PrivateConstant);
                let word = self.tape.pick(words + 1) * 4;
                self.constant(word)
            }
            2 => {
                self.mark(Feature::PrivateDynamic);
                let (index, base) = (self.value(Kind::Int), self.constant(0u32));
                let index = self.op_with(Op::UMod, index, words + 1);
                self.element(base, index, 4)
            }
            _ => {
                self.mark(Feature::PrivateDynamic);
                let offset = self.offset();
                // Private memory has words only.
                self.op_with(Op::And, offset, !3u32)
            }
        };
        let place = Place::Variable { variable, offset };
        if self.tape.pick(2) == 0 { self.store(place) } else { _ = self.load(place, Level::Invocation) }
    }

    /// A buffer of a descriptor, possibly of an array.
    pub(super) fn descriptor(&mut self) {
        let bindings = self.memory.bindings.clone();
        let (binding, count, class) = self.tape.of(&bindings);
        let (index, feature) = match self.tape.pick(5) {
            0 | 1 => {
                let number = self.tape.pick(count);
                (self.constant(number), Feature::DescriptorUniform)
            }
            2 => {
                let value = self.value_at(Kind::Int, Level::Workgroup);
                (self.op_with(Op::UMod, value, count), Feature::DescriptorUniform)
            }
            3 => {
                let value = self.value(Kind::Int);
                (self.op_with(Op::UMod, value, count), Feature::DescriptorDivergent)
            }
            _ => {
                let value = self.value(Kind::Int);
                (self.op_with(Op::And, value, 3), Feature::DescriptorOutOfRange)
            }
        };
        self.mark(feature);
        let level = self.level(&[index]);
        let value = self.builder.push_value(InstData::Buffer { binding, index }, Type::Buffer);
        self.define(value, Kind::Buffer(class), level);
    }

    /// The size of a buffer in bytes.
    pub(super) fn size(&mut self) {
        let class = self.tape.of(&[Class::ReadOnly, Class::Own, Class::Uniform, Class::Exchange]);
        let buffer = self.value(Kind::Buffer(class));
        let level = self.level(&[buffer]);
        let value = self.builder.push_value(InstData::BufferSize { buffer }, Type::I32);
        self.define(value, Kind::Int, level);
    }

    /// The place of a word of the workgroup in the slots' buffer.
    pub(super) fn slot(&mut self, number: Value) -> Option<Place> {
        let (buffer, group) = (self.memory.slots?, self.memory.group?);
        let first = self.op_with(Op::IMul, group, SLOTS);
        let word = self.op(Op::IAdd, &[first, number]);
        let base = self.constant(0u32);
        let offset = self.element(base, word, 4);
        Some(Place::Buffer { space: BufferSpace::Storage, buffer, offset })
    }

    /// A store of one value to one place by all invocations that arrive.
    pub(super) fn uniform_store(&mut self) {
        let number = self.value_at(Kind::Int, Level::Workgroup);
        let number = self.op_with(Op::And, number, 3);
        let number = self.op_with(Op::IAdd, number, SLOTS - 4);
        let Some(place) = self.slot(number) else { return };
        self.mark(Feature::UniformStore);
        let value = self.value_at(Kind::Int, Level::Workgroup);
        self.builder.store(place, value, Default::default());
    }
}
