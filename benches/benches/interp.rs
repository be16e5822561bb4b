//! IR operations per second of the interpreter on one thread: criterion's elements are operations.

use std::sync::atomic::AtomicU32;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use spelter_shaders::abi::{DispatchArgs, MAX_PUSH_BYTES};
use spelter_shaders::back::{Code, Scratch, interp::Program};
use spelter_shaders::guest::GuestSlice;
use spelter_shaders::ir::{
    Access, BindingData, Block, BlockCall, BufferSpace, Builder, BuiltIn, InstData, Kernel, Merge, Op, Place, Scope,
    Semantics, Type, Value, Variable, VariableData, VariableSpace,
};

/// Trip count of each loop.
const ITERATIONS: u32 = 1000;
const INVOCATIONS: u32 = 64;
/// Words of the buffer, a power of two.
const WORDS: u32 = 1 << 14;

/// A kernel under construction, and the values that its body uses.
struct Loop {
    builder: Builder,
    zero: Value,
    global: Value,
    buffer: Value,
    variable: Variable,
}

impl Loop {
    fn new(name: &str) -> Self {
        let mut kernel = Kernel::new(name, [INVOCATIONS, 1, 1]);
        let binding = kernel.bindings.push(BindingData::storage(0, 0));
        let space = VariableSpace::Workgroup;
        let (bytes, name, words) = (4 * INVOCATIONS, String::new(), Vec::new());
        let variable = kernel.variables.push(VariableData { space, bytes, name, words });
        let mut builder = Builder::new(kernel);
        let zero = builder.constant(0u32);
        let global = builder.builtin(BuiltIn::GlobalInvocationId, 0);
        let buffer = builder.push_value(InstData::Buffer { binding, index: zero }, Type::Buffer);
        Self { builder, zero, global, buffer, variable }
    }

    /// Wraps `body` in a counting loop that carries one value and stores it at the end. Returns the kernel and the
    /// number of operations per invocation.
    fn build(mut self, initial: Value, body: impl FnOnce(&mut Self, Value, Value) -> Value) -> (Kernel, u64) {
        let [header, inside, after] = std::array::from_fn(|_| self.builder.create_block());
        let (iterations, one) = (self.builder.constant(ITERATIONS), self.builder.constant(1u32));
        let entry = self.builder.current();
        jump(&mut self.builder, header, &[self.zero, initial]);
        self.builder.switch_to(header);
        let iteration = self.builder.add_param(header, Type::I32);
        let ty = self.builder.ty(initial);
        let carried = self.builder.add_param(header, ty);
        let more = self.builder.pure(Op::ULt, &[iteration, iterations]);
        self.builder.set_merge(Merge::Loop { merge: after, continuing: inside });
        let (then, otherwise) = (BlockCall::new(inside), BlockCall::new(after));
        self.builder.push(InstData::Branch { condition: more, then, otherwise });
        self.builder.switch_to(inside);
        let next = body(&mut self, iteration, carried);
        let next_iteration = self.builder.pure(Op::IAdd, &[iteration, one]);
        jump(&mut self.builder, header, &[next_iteration, next]);
        self.builder.switch_to(after);
        let offset = self.builder.element(self.zero, self.global, 4);
        self.store(offset, carried);
        self.builder.push(InstData::Return);
        let per_iteration = self.count(header) + self.count(inside);
        let around = self.count(entry) + self.count(header) + self.count(after);
        (self.builder.finish(), around + u64::from(ITERATIONS) * per_iteration)
    }

    /// Number of instructions of a block, which has no constants yet.
    fn count(&mut self, block: Block) -> u64 {
        self.builder.kernel().blocks[block].insts.len() as u64
    }

    fn place(&self, offset: Value) -> Place {
        Builder::buffer_place(BufferSpace::Storage, self.buffer, offset)
    }

    fn store(&mut self, offset: Value, value: Value) {
        let place = self.place(offset);
        self.builder.store(place, value, Access::default());
    }
}

fn jump(builder: &mut Builder, block: Block, args: &[Value]) {
    builder.push(InstData::Jump { to: BlockCall { block, args: args.into() } });
}

/// Iterates a hash function.
fn integers() -> (Kernel, u64) {
    let mut kernel = Loop::new("integers");
    let [factor, shift] = [0x9e37_79b1_u32, 15].map(|bits| kernel.builder.constant(bits));
    let initial = kernel.global;
    kernel.build(initial, |kernel, iteration, carried| {
        let builder = &mut kernel.builder;
        let product = builder.pure(Op::IMul, &[carried, factor]);
        let high = builder.pure(Op::LShr, &[product, shift]);
        let mixed = builder.pure(Op::Xor, &[product, high]);
        builder.pure(Op::IAdd, &[mixed, iteration])
    })
}

/// Iterates the logistic map.
fn floats() -> (Kernel, u64) {
    let mut kernel = Loop::new("floats");
    let [rate, one, initial, bias] = [3.7f32, 1.0, 0.3, 1e-9].map(|value| kernel.builder.constant(value));
    kernel.build(initial, |kernel, _, carried| {
        let builder = &mut kernel.builder;
        let rest = builder.pure(Op::FSub, &[one, carried]);
        let product = builder.pure(Op::FMul, &[carried, rest]);
        let scaled = builder.pure(Op::FMul, &[product, rate]);
        builder.pure(Op::FAdd, &[scaled, bias])
    })
}

/// Loads a word, stores a changed word, and uses it as the next index.
fn memory() -> (Kernel, u64) {
    let mut kernel = Loop::new("memory");
    let mask = kernel.builder.constant(WORDS - 1);
    let initial = kernel.global;
    kernel.build(initial, |kernel, iteration, carried| {
        let index = kernel.builder.pure(Op::And, &[carried, mask]);
        let offset = kernel.builder.element(kernel.zero, index, 4);
        let place = kernel.place(offset);
        let word = kernel.builder.load(Type::I32, place, Access::default());
        let sum = kernel.builder.pure(Op::IAdd, &[word, iteration]);
        kernel.store(offset, sum);
        kernel.builder.pure(Op::IAdd, &[carried, sum])
    })
}

/// Each invocation reads what a neighbour wrote, between barriers.
fn barriers() -> (Kernel, u64) {
    let mut kernel = Loop::new("barriers");
    let mask = kernel.builder.constant(INVOCATIONS - 1);
    let local = kernel.builder.builtin(BuiltIn::LocalInvocationIndex, 0);
    let mine = kernel.builder.element(kernel.zero, local, 4);
    let variable = kernel.variable;
    kernel.build(local, |kernel, iteration, carried| {
        let builder = &mut kernel.builder;
        builder.store(Place::Variable { variable, offset: mine }, carried, Access::default());
        barrier(builder);
        let sum = builder.pure(Op::IAdd, &[local, iteration]);
        let neighbour = builder.pure(Op::And, &[sum, mask]);
        let offset = builder.element(kernel.zero, neighbour, 4);
        let word = builder.load(Type::I32, Place::Variable { variable, offset }, Access::default());
        barrier(builder);
        builder.pure(Op::Xor, &[word, carried])
    })
}

fn barrier(builder: &mut Builder) {
    let (execution, memory) = (Scope::Workgroup, Scope::Workgroup);
    // AcquireRelease | WorkgroupMemory.
    builder.push(InstData::Barrier { execution, memory, semantics: Semantics(0x108) });
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("interp");
    for (kernel, per_invocation) in [integers(), floats(), memory(), barriers()] {
        let program = Program::new(&kernel);
        let mut scratch = Scratch::default();
        let stop = AtomicU32::new(0);
        let buffers = [GuestSlice::leak(4 * WORDS as usize)];
        let args = DispatchArgs {
            buffers: &buffers,
            push: &[0; MAX_PUSH_BYTES],
            images: &[],
            num_workgroups: [1; 3],
            stop: &stop,
        };
        group.throughput(Throughput::Elements(per_invocation * u64::from(INVOCATIONS)));
        group.bench_function(kernel.name.as_str(), |b| b.iter(|| program.run(&args, [0; 3], &mut scratch)));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
