//! The start of a program: its workgroups, its memories and their rules, its first values.

use spelter_shaders::abi::MAX_PUSH_BYTES;
use spelter_shaders::front::preserve_convergence;
use spelter_shaders::ir::{
    AtomicOp, Binding, BindingData, BindingKind, Builder, BuiltIn, InstData, Kernel, Op, Type, Value, VariableData,
    VariableSpace, Width,
};

use super::feature::{Feature, Features};
use super::layout::{Counter, CounterHome, CounterKind, Home, Memory, Region, Rule, SLOTS};
use super::maker::{Maker, Options};
use super::narrow::Packed;
use super::program::{Buffer, Generated, Program, fill};
use super::scope::{Class, Kind, Level, Scope};
use super::tape::Tape;
use super::texture::Texture;

/// Maximal nesting of constructs.
const DEPTH: u32 = 4;

const SIZES: [[u32; 3]; 13] = [
    [1, 1, 1],
    [5, 1, 1],
    [16, 1, 1],
    [17, 1, 1],
    [32, 1, 1],
    [3, 7, 1],
    [8, 8, 1],
    [64, 1, 1],
    [4, 4, 4],
    [16, 1, 1],
    [100, 1, 1],
    [32, 2, 1],
    [256, 1, 1],
];

const GROUPS: [[u32; 3]; 8] = [[1, 1, 1], [1, 1, 1], [2, 1, 1], [1, 1, 1], [3, 1, 1], [2, 2, 1], [1, 3, 2], [2, 1, 2]];

const BASES: [[u32; 3]; 6] = [[0; 3], [0; 3], [0; 3], [1, 0, 0], [5, 0, 2], [1000, 3, 65_000]];

/// Operations that commute with themselves.
const COMMUTING: [AtomicOp; 9] = [
    AtomicOp::Add,
    AtomicOp::Sub,
    AtomicOp::UMax,
    AtomicOp::UMin,
    AtomicOp::SMax,
    AtomicOp::SMin,
    AtomicOp::Xor,
    AtomicOp::Or,
    AtomicOp::And,
];

/// Generates a program from a tape.
pub fn generate(tape: Tape, options: Options) -> (Generated, Tape) {
    let mut setup = Setup::new(tape);
    let workgroup_size = setup.tape.of(&SIZES);
    let mut groups = setup.tape.of(&GROUPS);
    let invocations = workgroup_size.iter().product::<u32>();
    if invocations > 128 {
        groups = [groups[0], 1, 1];
    }
    let base = setup.tape.of(&BASES);
    setup.kernel.workgroup_size = workgroup_size;
    setup.memory.invocations = invocations;
    setup.memory.groups = groups.iter().product();
    setup.shape(groups, base);
    let (out, slots) = setup.answers();
    let storage = setup.inputs();
    let own = setup.own_buffers();
    let sums = setup.sums();
    setup.variables();
    let push = setup.push();
    setup.packed();
    setup.pictures();
    let addresses = Some(setup.addresses());
    // The last buffer: `Bench::reached` reads it.
    let marks =
        options.marks.then(|| setup.binding(BindingKind::StorageBuffer, 1, false, |_| plain(Feature::ALL.len() * 4)));
    let Setup { kernel, memory, mut tape, buffers, textures, phases, features } = setup;
    let loose_returns = options.loose_returns && tape.pick(2) == 1;
    let mut maker = Maker {
        builder: Builder::new(kernel),
        tape,
        options: Options { loose_returns, ..options },
        features,
        scope: Scope::default(),
        memory,
        ctx: Level::Workgroup,
        dead: false,
        constructs: Vec::new(),
        phases: vec![false; phases],
        fuel: 0,
        work: 1,
    };
    maker.begin(workgroup_size, groups, base);
    maker.name([out, slots], storage, own, &sums, marks);
    maker.first_values();
    maker.fuel = maker.tape.of(&[60u32, 20, 40, 80, 140]);
    maker.region(DEPTH);
    if !maker.dead {
        maker.end(usize::MAX);
    }
    let mut kernel = maker.builder.finish();
    preserve_convergence(&mut kernel).expect("constructs nest a few times only");
    let program = Program { kernel, groups, base, push, addresses, buffers, textures };
    (Generated { program, features: maker.features }, maker.tape)
}

/// A zeroed buffer.
fn plain(bytes: usize) -> Buffer {
    Buffer { lead: 0, bytes: vec![0; bytes] }
}

/// A program before its first instruction.
pub(super) struct Setup {
    pub(super) kernel: Kernel,
    pub(super) memory: Memory,
    pub(super) tape: Tape,
    pub(super) buffers: Vec<Buffer>,
    pub(super) textures: Vec<Texture>,
    /// Number of phases.
    phases: usize,
    features: Features,
}

impl Setup {
    fn new(tape: Tape) -> Self {
        let kernel = Kernel::new("random", [1; 3]);
        Self {
            kernel,
            memory: Memory::default(),
            tape,
            buffers: Vec::new(),
            textures: Vec::new(),
            phases: 0,
            features: Features::default(),
        }
    }

    fn shape(&mut self, groups: [u32; 3], base: [u32; 3]) {
        if groups != [1; 3] {
            self.features.insert(Feature::Groups);
        }
        if base != [0; 3] {
            self.features.insert(Feature::Base);
        }
    }

    /// Declares a binding with the buffers of its elements.
    fn binding(
        &mut self,
        kind: BindingKind,
        count: u32,
        read_only: bool,
        mut buffer: impl FnMut(&mut Self) -> Buffer,
    ) -> Binding {
        for _ in 0..count {
            let buffer = buffer(self);
            if buffer.bytes.is_empty() {
                self.features.insert(Feature::BufferEmpty);
            } else if !buffer.bytes.len().is_multiple_of(4) {
                self.features.insert(Feature::BufferOdd);
            }
            self.buffers.push(buffer);
        }
        let binding = self.kernel.bindings.len() as u32;
        self.kernel.bindings.push(BindingData { kind, count, read_only, ..BindingData::storage(0, binding) })
    }

    pub(super) fn contents(&mut self, bytes: u32) -> Buffer {
        let (seed, style) = (self.tape.word(), self.tape.of(&[2u32, 1, 3, 4, 0, 4]));
        let lead = self.tape.of(&[0u32, 0, 4, 16, 60]);
        Buffer { lead, bytes: fill(bytes as usize, seed, style) }
    }

    /// The buffer of results, and the one with a few words for each workgroup.
    fn answers(&mut self) -> (Binding, Binding) {
        let all = self.memory.invocations * self.memory.groups;
        let slots = self.memory.groups * SLOTS;
        let out = self.binding(BindingKind::StorageBuffer, 1, false, |_| plain(all as usize * 4));
        let slots = self.binding(BindingKind::StorageBuffer, 1, false, |_| plain(slots as usize * 4));
        (out, slots)
    }

    /// Read-only memory: storage and uniform buffers of all sizes, also empty ones.
    fn inputs(&mut self) -> [Vec<Binding>; 2] {
        [(BindingKind::StorageBuffer, Class::ReadOnly), (BindingKind::UniformBuffer, Class::Uniform)].map(
            |(kind, class)| {
                let bindings = if class == Class::ReadOnly { self.tape.pick(2) + 1 } else { 1 };
                let declare = |_| {
                    let count = self.tape.of(&[1u32, 1, 2, 3]);
                    let binding = self.binding(kind, count, true, |setup| {
                        let all = setup.memory.invocations * setup.memory.groups;
                        let bytes = setup.tape.of(&[
                            256,
                            64,
                            all * 4,
                            all * 16,
                            1024,
                            260,
                            255,
                            100,
                            60,
                            7,
                            4,
                            3,
                            1,
                            0,
                            all * 12 - 4,
                        ]);
                        setup.contents(bytes)
                    });
                    self.memory.bindings.push((binding, count, class));
                    binding
                };
                (0..bindings).map(declare).collect()
            },
        )
    }

    fn rule(&mut self, sharers: u32, sections: bool, global: bool) -> Rule {
        Rule {
            per: self.tape.of(&[1u32, 2, 3, 4, 1, 4]),
            apart: self.tape.pick(3) == 1,
            reversed: self.tape.chance(4),
            shift: self.tape.of(&[0i32, 0, 4, 64, 0, -8]),
            sharers,
            sections,
            global,
        }
    }

    /// Buffers in which invocations own words; some are too short for all invocations.
    fn own_buffers(&mut self) -> [Vec<Binding>; 2] {
        let (invocations, groups) = (self.memory.invocations, self.memory.groups);
        [Class::Own, Class::Exchange].map(|class| {
            let rule = match class {
                Class::Own => self.rule(invocations * groups, false, true),
                _ => self.rule(invocations, true, false),
            };
            let phase = (class == Class::Exchange).then_some(self.phases);
            self.phases += usize::from(phase.is_some());
            self.memory.regions.push(Region { home: Home::Buffers(class), rule, phase });
            let full = (rule.words(groups) * 4).saturating_add_signed(rule.shift);
            let bindings = self.tape.pick(2) + 1;
            let declare = |_| {
                let count = self.tape.of(&[1u32, 1, 2, 3]);
                let binding = self.binding(BindingKind::StorageBuffer, count, false, |setup| {
                    let less = setup.tape.of(&[0, 0, 0, 1, 4, 30, 70, full / 2]);
                    if less > 0 {
                        setup.features.insert(Feature::StorePartial);
                    }
                    setup.contents(full.saturating_sub(less))
                });
                self.memory.bindings.push((binding, count, class));
                binding
            };
            (0..bindings).map(declare).collect()
        })
    }

    /// Storage buffers for atomics; the first is for sums.
    fn sums(&mut self) -> Vec<(Binding, CounterKind, u32)> {
        let kinds = [
            CounterKind::Any(AtomicOp::Add),
            CounterKind::Any(self.tape.of(&COMMUTING)),
            self.tickets(),
            CounterKind::Wide(self.tape.of(&COMMUTING)),
        ];
        kinds
            .map(|kind| {
                let words = self.tape.of(&[4u32, 1, 16, 33]);
                let binding = self.binding(BindingKind::StorageBuffer, 1, false, |setup| setup.contents(words * 4));
                (binding, kind, words)
            })
            .to_vec()
    }

    /// Storage buffers with sub-words, some too short for all invocations.
    fn packed(&mut self) {
        let sharers = self.memory.invocations * self.memory.groups;
        for width in [Width::Half, Width::Byte] {
            let per = self.tape.of(&[1u32, 2, 1, 3, 4]);
            let (apart, reversed) = (self.tape.pick(3) == 1, self.tape.chance(4));
            let shift = self.tape.of(&[0u32, 0, 4, 1, 2]) * width.bytes();
            let bytes = shift + per * sharers * width.bytes();
            let less = self.tape.of(&[0u32, 0, 1, 2, 5, 16, bytes / 2]);
            let contents = |setup: &mut Self| setup.contents(bytes.saturating_sub(less));
            let binding = self.binding(BindingKind::StorageBuffer, 1, false, contents);
            self.memory.packed.push(Packed { binding, width, per, apart, reversed, shift });
        }
    }

    /// The table of addresses, and its index among the buffers. It is read-only.
    fn addresses(&mut self) -> usize {
        let bytes = (self.buffers.len() + 1) * 8;
        self.memory.addresses = Some(self.binding(BindingKind::StorageBuffer, 1, true, |_| plain(bytes)));
        self.buffers.len() - 1
    }

    fn tickets(&mut self) -> CounterKind {
        CounterKind::Ticket(self.tape.of(&[1, 3, 0x1001]))
    }

    fn variable(&mut self, space: VariableSpace, bytes: u32) -> spelter_shaders::ir::Variable {
        self.kernel.variables.push(VariableData { space, bytes, name: String::new(), words: Vec::new() })
    }

    fn variables(&mut self) {
        for _ in 0..self.tape.pick(3) {
            let mut rule = self.rule(self.memory.invocations, false, false);
            rule.shift = rule.shift.min(16);
            let full = (rule.words(1) * 4).saturating_add_signed(rule.shift);
            let less = self.tape.of(&[0u32, 0, 0, 4, 20]);
            let variable = self.variable(VariableSpace::Workgroup, full.saturating_sub(less));
            self.memory.regions.push(Region { home: Home::Variable(variable), rule, phase: Some(self.phases) });
            self.phases += 1;
        }
        for _ in 0..self.tape.pick(3) {
            let words = self.tape.of(&[4u32, 1, 16, 64]);
            let kind = match self.tape.pick(8) {
                0 | 1 => self.tickets(),
                2 => CounterKind::Wide(self.tape.of(&COMMUTING)),
                _ => CounterKind::Any(self.tape.of(&COMMUTING)),
            };
            let home = CounterHome::Variable(self.variable(VariableSpace::Workgroup, words * 4));
            self.memory.counters.push(Counter { home, words, kind, phase: Some(self.phases) });
            self.phases += 1;
        }
        for _ in 0..self.tape.pick(3) {
            let words = self.tape.of(&[4u32, 1, 8, 33]);
            let variable = self.variable(VariableSpace::Private, words * 4);
            self.memory.private.push((variable, words));
        }
    }

    fn push(&mut self) -> Vec<u8> {
        let bytes = self.tape.of(&[16, 0, 4, 64, 128, MAX_PUSH_BYTES as u32]);
        self.kernel.push_bytes = bytes;
        self.contents(bytes).bytes
    }
}

impl Maker {
    /// Defines the invocation's numbers in the workgroup and in the dispatch, and the number of its workgroup.
    fn begin(&mut self, size: [u32; 3], groups: [u32; 3], base: [u32; 3]) {
        // Folds to constants wherever a dimension is 1.
        let component = |maker: &mut Self, builtin, at: usize, count: u32, base: u32, level| {
            if count == 1 {
                return maker.constant(0u32);
            }
            let value = maker.builder.builtin(builtin, at as u8);
            maker.scope.note(value, level);
            maker.op_with(Op::ISub, value, base)
        };
        let mut group = self.constant(0u32);
        for at in (0..3).rev() {
            let part = component(self, BuiltIn::WorkgroupId, at, groups[at], base[at], Level::Workgroup);
            let before = self.op_with(Op::IMul, group, groups[at]);
            group = self.op(Op::IAdd, &[before, part]);
        }
        let local = match self.tape.pick(3) {
            1 => {
                let mut local = self.constant(0u32);
                for at in (0..3).rev() {
                    let part = component(self, BuiltIn::LocalInvocationId, at, size[at], 0, Level::Invocation);
                    let before = self.op_with(Op::IMul, local, size[at]);
                    local = self.op(Op::IAdd, &[before, part]);
                }
                local
            }
            _ => self.builder.builtin(BuiltIn::LocalInvocationIndex, 0),
        };
        let row = size[1] * size[2] == 1 && groups[1] * groups[2] == 1;
        let global = if row && self.tape.pick(2) == 0 {
            let global = self.builder.builtin(BuiltIn::GlobalInvocationId, 0);
            self.op_with(Op::ISub, global, base[0] * size[0])
        } else {
            let before = self.op_with(Op::IMul, group, self.memory.invocations);
            self.op(Op::IAdd, &[before, local])
        };
        (self.memory.group, self.memory.local, self.memory.global) = (Some(group), Some(local), Some(global));
    }

    pub(super) fn buffer(&mut self, binding: Binding) -> Value {
        let index = self.constant(0u32);
        self.builder.push_value(InstData::Buffer { binding, index }, Type::Buffer)
    }

    /// Defines the first buffer of each binding.
    fn name(
        &mut self,
        answers: [Binding; 2],
        inputs: [Vec<Binding>; 2],
        own: [Vec<Binding>; 2],
        sums: &[(Binding, CounterKind, u32)],
        marks: Option<Binding>,
    ) {
        let [out, slots] = answers.map(|binding| self.buffer(binding));
        (self.memory.out, self.memory.slots) = (Some(out), Some(slots));
        let classes = [Class::ReadOnly, Class::Uniform, Class::Own, Class::Exchange];
        for (class, bindings) in classes.into_iter().zip(inputs.into_iter().chain(own)) {
            for binding in bindings {
                let buffer = self.buffer(binding);
                self.define(buffer, Kind::Buffer(class), Level::Workgroup);
            }
        }
        for &(binding, kind, words) in sums {
            let home = CounterHome::Buffer(self.buffer(binding));
            self.memory.counters.push(Counter { home, words, kind, phase: None });
        }
        let is_sum = |counter: &&Counter| matches!(counter.home, CounterHome::Buffer(_));
        self.memory.sum = self.memory.counters.iter().find(is_sum).copied();
        self.memory.marks = marks.map(|binding| self.buffer(binding));
    }

    /// Values that are always in scope: some of each type, uniform and varying.
    fn first_values(&mut self) {
        let truth = self.constant(true);
        self.define(truth, Kind::Bool, Level::Workgroup);
        let float = self.constant(1.5f32);
        self.define(float, Kind::Float, Level::Workgroup);
        let one = self.constant(1u32);
        self.define(one, Kind::Int, Level::Workgroup);
        if let (Some(local), Some(global), Some(group)) = (self.memory.local, self.memory.global, self.memory.group) {
            self.define(group, Kind::Int, Level::Workgroup);
            self.define(global, Kind::Int, Level::Invocation);
            self.define(local, Kind::Int, Level::Invocation);
        }
        for _ in 0..self.tape.pick(4) {
            self.read();
        }
        for _ in 0..self.tape.pick(4) {
            self.fresh();
        }
    }
}
