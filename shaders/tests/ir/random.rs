//! Random kernels with structured control flow: valid by construction, made from a tape of numbers so that proptest can
//! shrink them. Loops are bounded; barriers stand where control may diverge.

use spelter_shaders::ir::{
    Access, AtomicOp, BindingData, Block, BlockCall, BufferSpace, Builder, BuiltIn, InstData, Kernel, Merge, Op, Place,
    Scope, Semantics, Type, Value, Variable, VariableData, VariableSpace, Width,
};

/// Words of `binding0` that a kernel reads and writes, more or less.
pub(crate) const BUFFER_WORDS: u32 = 32;

/// A kernel with 5 invocations. An empty tape gives the smallest.
pub(crate) fn kernel(tape: &[u32], barriers: bool) -> Kernel {
    let mut kernel = Kernel::new("random \"kernel\"\n", [5, 1, 1]);
    let binding = kernel.bindings.push(BindingData::storage(1, 2));
    let variables = [VariableSpace::Workgroup, VariableSpace::Private]
        .map(|space| kernel.variables.push(VariableData { space, bytes: 32, name: "ünï".into(), words: Vec::new() }));
    let mut builder = Builder::new(kernel);
    let zero = builder.constant(0u32);
    let index = builder.builtin(BuiltIn::LocalInvocationIndex, 0);
    let truth = builder.constant(true);
    let float = builder.constant(1.5f32);
    let buffer = builder.push_value(InstData::Buffer { binding, index: zero }, Type::Buffer);
    let scope = vec![zero, index, truth, float];
    let mut maker = Maker { builder, tape: tape.iter(), scope, buffer, variables, barriers };
    maker.region(4);
    maker.store_all();
    maker.builder.push(InstData::Return);
    maker.builder.finish()
}

struct Maker<'a> {
    builder: Builder,
    tape: std::slice::Iter<'a, u32>,
    /// Values that may be used.
    scope: Vec<Value>,
    buffer: Value,
    variables: [Variable; 2],
    barriers: bool,
}

impl Maker<'_> {
    /// The next number below `limit`; 0 when the tape has run out.
    fn pick(&mut self, limit: u32) -> u32 {
        self.tape.next().map_or(0, |number| number % limit)
    }

    /// A value of the type: from the scope, mostly the latest.
    fn value(&mut self, ty: Type) -> Value {
        let found: Vec<Value> =
            self.scope.iter().rev().copied().filter(|&value| self.builder.ty(value) == ty).collect();
        let place = self.pick(found.len() as u32) as usize;
        found[place]
    }

    fn define(&mut self, value: Value) {
        self.scope.push(value);
    }

    fn ty(&mut self) -> Type {
        [Type::I32, Type::Bool, Type::F32][self.pick(3) as usize]
    }

    /// Statements until the tape says 0.
    fn region(&mut self, depth: u32) {
        loop {
            match self.pick(12) {
                0 => return,
                1..=4 => self.pure(),
                5 => self.load(),
                6 => self.store(),
                7 => self.various(),
                8 if depth > 0 => self.branch(depth - 1),
                9 if depth > 0 => self.repeat(depth - 1),
                10 if depth > 0 => self.switch(depth - 1),
                _ => self.leave(depth),
            }
        }
    }

    fn pure(&mut self) {
        let op = Op::ALL[self.pick(Op::ALL.len() as u32) as usize];
        let args: Vec<Value> = op.params().iter().map(|&ty| self.value(ty)).collect();
        let mut value = self.builder.pure(op, &args);
        if op.result() == Type::F32 {
            // Which NaN an operation gives is unspecified: no NaN goes on from here.
            let number = self.builder.pure(Op::FOrdEq, &[value, value]);
            let instead = self.builder.constant(0.25f32);
            value = self.builder.select(number, value, instead);
        }
        self.define(value);
    }

    /// An offset that is known, or an element of an array.
    fn offset(&mut self) -> Value {
        let first = self.pick(12) * 4;
        match self.pick(8) {
            0..4 => self.builder.constant(first),
            which => {
                let index = self.value(Type::I32);
                let mask = self.builder.constant(BUFFER_WORDS * 2 - 1);
                let index = self.builder.pure(Op::And, &[index, mask]);
                let base = self.builder.constant(if which == 4 { 0 } else { first });
                self.builder.element(base, index, 4)
            }
        }
    }

    fn place(&mut self) -> Place {
        let offset = self.offset();
        match self.pick(3) {
            0 => Place::Buffer { space: BufferSpace::Storage, buffer: self.buffer, offset },
            which => Place::Variable { variable: self.variables[which as usize - 1], offset },
        }
    }

    /// A sub-word in the buffer.
    fn part(&mut self) -> (Width, Place) {
        let offset = self.offset();
        let (width, first) =
            if self.pick(2) == 0 { (Width::Byte, self.pick(4)) } else { (Width::Half, self.pick(2) * 2) };
        let byte = self.builder.constant(first);
        let offset = self.builder.element(offset, byte, 1);
        (width, Place::Buffer { space: BufferSpace::Storage, buffer: self.buffer, offset })
    }

    fn load(&mut self) {
        if self.pick(5) == 4 {
            let (width, place) = self.part();
            let value = self.builder.load_bytes(width, place, Access::default());
            return self.define(value);
        }
        let place = self.place();
        let ty = [Type::I32, Type::F32][self.pick(2) as usize];
        let volatile = self.pick(4) == 1;
        let value = self.builder.load(ty, place, Access { volatile, ..Access::default() });
        self.define(value);
    }

    fn store(&mut self) {
        if self.pick(5) == 4 {
            let (width, place) = self.part();
            let value = self.value(Type::I32);
            return self.builder.store_bytes(width, place, value, Access::default());
        }
        let place = self.place();
        let ty = [Type::I32, Type::F32][self.pick(2) as usize];
        let value = self.value(ty);
        let non_private = self.pick(2) == 1;
        let available_visible = (self.pick(3) == 1).then_some(Scope::Device);
        self.builder.store(place, value, Access { volatile: false, non_private, available_visible });
    }

    fn various(&mut self) {
        match self.pick(4) {
            0 => {
                let ty = self.ty();
                let (condition, then, otherwise) = (self.value(Type::Bool), self.value(ty), self.value(ty));
                let value = self.builder.select(condition, then, otherwise);
                self.define(value);
            }
            1 => {
                let (place, value) = (self.place(), self.value(Type::I32));
                let op = [AtomicOp::Add, AtomicOp::UMax, AtomicOp::Exchange, AtomicOp::SMin][self.pick(4) as usize];
                let (scope, semantics) = (Scope::Device, Semantics(0x8 | 0x40));
                let (value, comparator, unequal) = (Some(value), None, Semantics(0));
                let data = InstData::Atomic { op, place, value, comparator, wide: None, scope, semantics, unequal };
                let value = self.builder.push_value(data, Type::I32);
                self.define(value);
            }
            2 if self.barriers => {
                let execution = [Scope::Workgroup, Scope::Subgroup][self.pick(2) as usize];
                let semantics = Semantics(0x108);
                self.builder.push(InstData::Barrier { execution, memory: Scope::Workgroup, semantics });
            }
            _ => {
                let value = self.builder.push_value(InstData::BufferSize { buffer: self.buffer }, Type::I32);
                self.define(value);
            }
        }
    }

    fn call(&mut self, block: Block, types: &[Type]) -> BlockCall {
        BlockCall { block, args: types.iter().map(|&ty| self.value(ty)).collect() }
    }

    fn jump(&mut self, block: Block, types: &[Type]) {
        let to = self.call(block, types);
        self.builder.push(InstData::Jump { to });
    }

    fn types(&mut self) -> Vec<Type> {
        (0..self.pick(4)).map(|_| self.ty()).collect()
    }

    /// Makes `block` the current one, with parameters of these types.
    fn enter(&mut self, block: Block, types: &[Type]) {
        self.builder.switch_to(block);
        for &ty in types {
            let param = self.builder.add_param(block, ty);
            self.scope.push(param);
        }
    }

    fn branch(&mut self, depth: u32) {
        let types = self.types();
        let [then, otherwise, merge] = std::array::from_fn(|_| self.builder.create_block());
        let condition = self.value(Type::Bool);
        self.builder.set_merge(Merge::Selection { merge });
        let direct = self.pick(3) == 1;
        let to_otherwise = if direct { self.call(merge, &types) } else { BlockCall::new(otherwise) };
        self.builder.push(InstData::Branch { condition, then: BlockCall::new(then), otherwise: to_otherwise });
        let outside = self.scope.len();
        for block in [then, otherwise].into_iter().take(if direct { 1 } else { 2 }) {
            self.enter(block, &[]);
            self.region(depth);
            self.jump(merge, &types);
            self.scope.truncate(outside);
        }
        self.enter(merge, &types);
    }

    /// A loop of up to three iterations that may end early and hands values around and out.
    fn repeat(&mut self, depth: u32) {
        let (types, out) = (self.types(), self.types());
        let [header, body, continuing, merge] = std::array::from_fn(|_| self.builder.create_block());
        let (zero, one) = (self.builder.constant(0u32), self.builder.constant(1u32));
        let iterations = self.pick(4);
        let iterations = self.builder.constant(iterations);
        let mut first = self.call(header, &types);
        first.args.insert(0, zero);
        self.builder.push(InstData::Jump { to: first });
        let outside = self.scope.len();
        self.enter(header, &[&[Type::I32][..], &types].concat());
        let iteration = self.scope[outside];
        let more = self.builder.pure(Op::ULt, &[iteration, iterations]);
        let leave = self.call(merge, &out);
        self.builder.set_merge(Merge::Loop { merge, continuing });
        self.builder.push(InstData::Branch { condition: more, then: BlockCall::new(body), otherwise: leave });
        let inside = self.scope.len();
        self.enter(body, &[]);
        self.region(depth);
        let (condition, leave) = (self.value(Type::Bool), self.call(merge, &out));
        let go_on = self.call(continuing, &types);
        self.builder.push(InstData::Branch { condition, then: go_on, otherwise: leave });
        self.scope.truncate(inside);
        self.enter(continuing, &types);
        let next = self.builder.pure(Op::IAdd, &[iteration, one]);
        let mut again = self.call(header, &types);
        again.args.insert(0, next);
        self.builder.push(InstData::Jump { to: again });
        self.scope.truncate(outside);
        self.enter(merge, &out);
    }

    /// Three cases, of which the first falls through into the second.
    fn switch(&mut self, depth: u32) {
        let types = self.types();
        let [first, second, third, merge] = std::array::from_fn(|_| self.builder.create_block());
        let selector = self.value(Type::I32);
        let default = self.call(merge, &types);
        let to_second = self.call(second, &types);
        self.builder.set_merge(Merge::Selection { merge });
        let cases = vec![(0, BlockCall::new(first)), (u32::MAX, BlockCall::new(third)), (self.pick(5) + 1, to_second)];
        self.builder.push(InstData::Switch { selector, default, cases });
        let outside = self.scope.len();
        for (block, params, next) in [(first, &[][..], second), (second, &types[..], merge), (third, &[][..], merge)] {
            self.enter(block, params);
            self.region(depth);
            self.jump(next, &types);
            self.scope.truncate(outside);
        }
        self.enter(merge, &types);
    }

    /// An early return under a condition.
    fn leave(&mut self, depth: u32) {
        let [end, on] = std::array::from_fn(|_| self.builder.create_block());
        let condition = self.value(Type::Bool);
        let last = if depth.is_multiple_of(2) { InstData::Return } else { InstData::Unreachable };
        self.builder.set_merge(Merge::Selection { merge: on });
        let (then, otherwise) = (BlockCall::new(end), BlockCall::new(on));
        self.builder.push(InstData::Branch { condition, then, otherwise });
        self.enter(end, &[]);
        self.builder.push(last);
        self.enter(on, &[]);
    }

    /// Everything that can be used ends up in memory, so that no wrong value goes unseen.
    fn store_all(&mut self) {
        let base = self.builder.constant(4u32);
        let index = self.builder.builtin(BuiltIn::LocalInvocationIndex, 0);
        let offset = self.builder.element(base, index, 4);
        let place = Builder::buffer_place(BufferSpace::Storage, self.buffer, offset);
        for value in self.scope.clone() {
            let word = match self.builder.ty(value) {
                Type::Bool => self.builder.pure(Op::BoolToInt, &[value]),
                Type::F32 => self.builder.pure(Op::FloatBits, &[value]),
                _ => value,
            };
            let data = InstData::Atomic {
                op: AtomicOp::Xor,
                place,
                value: Some(word),
                comparator: None,
                wide: None,
                scope: Scope::Device,
                semantics: Semantics(0),
                unequal: Semantics(0),
            };
            let old = self.builder.push_value(data, Type::I32);
            let factor = self.builder.constant(0x9e37_79b1_u32);
            let mixed = self.builder.pure(Op::IMul, &[old, factor]);
            self.builder.store(place, mixed, Access::default());
        }
    }
}
