//! Shapes of compute shaders that hardly arise at random: loops that load words at loaded indices, as products with
//! sparse matrices have them, and sums of subgroup reductions.

use spelter_shaders::ir::{Access, BlockCall, BufferSpace, InstData, Merge, Op, Place, SubgroupOp, Type, Value};

use super::feature::Feature;
use super::maker::Maker;
use super::repeat::MAX_ITERATIONS;
use super::scope::{Class, Kind, Level};

/// Integer operations that are associative and commutative.
const OPS: [Op; 9] = [Op::IAdd, Op::UMin, Op::SMax, Op::Or, Op::Xor, Op::And, Op::IMul, Op::SMin, Op::UMax];

/// A counting loop and the value that it carries.
struct Walk {
    header: spelter_shaders::ir::Block,
    body: spelter_shaders::ir::Block,
    merge: spelter_shaders::ir::Block,
    counter: Value,
    carried: Vec<Value>,
}

impl Maker {
    /// A loop over words that are indices of other words: a row of a sparse matrix.
    pub(super) fn look_up(&mut self) {
        self.mark(Feature::LookUp);
        let class = Kind::Buffer(Class::ReadOnly);
        let [walked, looked] = std::array::from_fn(|_| self.value(class));
        let (swaps, most) = (self.tape.chance(4), self.most_iterations(&[3, 1, 6, 18, 40]));
        let value = if self.tape.chance(2) { self.lane() } else { self.value(Kind::Int) };
        let length = self.op_with(Op::UMod, value, most + 1);
        let start = match self.tape.pick(3) {
            0 => self.constant(0u32),
            1 => self.lane(),
            _ => self.value(Kind::Int),
        };
        let limit = self.op(Op::IAdd, &[start, length]);
        let sum = self.value(Kind::Int);
        let buffers = [walked, looked];
        let carried: &[Value] = if swaps { &[sum, walked, looked] } else { &[sum] };
        let walk = self.begin_walk(start, limit, carried);
        let (sum, [walked, looked]) = match walk.carried[..] {
            [sum, walked, looked] => (sum, [walked, looked]),
            _ => (walk.carried[0], buffers),
        };
        let place = self.word_at(walked, walk.counter);
        let word = self.builder.load(Type::I32, place, Access::default());
        let words = self.tape.of(&[16u32, 7, 64, 1000]);
        let index = match self.tape.pick(4) {
            0 => word,
            1 => {
                let last = self.constant(words - 1);
                self.builder.pure(Op::UMin, &[word, last])
            }
            _ => {
                let words = self.constant(words);
                self.builder.pure(Op::UMod, &[word, words])
            }
        };
        let place = self.word_at(looked, index);
        let mut found = self.builder.load(Type::I32, place, Access::default());
        if self.tape.chance(2) {
            found = self.builder.pure(Op::IMul, &[found, word]);
        }
        let op = self.tape.of(&[Op::IAdd, Op::Xor, Op::UMax, Op::ISub]);
        let sum = self.builder.pure(op, &[sum, found]);
        let next: &[Value] = if swaps { &[sum, looked, walked] } else { &[sum] };
        let sum = walk.carried[0];
        self.end_walk(walk, next);
        self.define(sum, Kind::Int, Level::Invocation);
    }

    /// Subgroup reductions that are summed in any order, in a loop or not.
    pub(super) fn sums(&mut self) {
        self.mark(Feature::ReductionSum);
        let op = self.tape.of(&OPS);
        let cluster = self.tape.of(&[16, 16, 4, 2]);
        let how = match self.tape.pick(4) {
            3 => SubgroupOp::Inclusive(op),
            _ => SubgroupOp::Reduce(op, cluster),
        };
        let level = if how.is_uniform() { self.ctx.min(Level::Subgroup) } else { Level::Invocation };
        if self.tape.chance(3) {
            return self.carried_sum(op, how, level);
        }
        let count = self.tape.pick(4) + 2;
        let mut summands: Vec<Value> = (0..count)
            .map(|_| {
                let value = self.value(Kind::Int);
                self.builder.subgroup(how, &[value])
            })
            .collect();
        if self.tape.chance(4) {
            summands.push(self.value(Kind::Int));
        }
        // Another summand makes the sum varying.
        let level = if summands.len() > count as usize { Level::Invocation } else { level };
        while summands.len() > 1 {
            let [a, b] = std::array::from_fn(|_| {
                let at = self.tape.pick(summands.len() as u32) as usize;
                summands.swap_remove(at)
            });
            summands.push(self.builder.pure(op, &[a, b]));
        }
        self.define(summands[0], Kind::Int, level);
    }

    /// `sum = sum + reduction` in a loop that all invocations that are here leave together.
    fn carried_sum(&mut self, op: Op, how: SubgroupOp, level: Level) {
        let most = self.most_iterations(&[3, 1, 6, 18]);
        let length = match self.tape.pick(3) {
            0 => self.constant(most),
            _ => {
                let value = self.value_at(Kind::Int, self.ctx);
                self.op_with(Op::UMod, value, most + 1)
            }
        };
        let level = level.min(self.scope.level(length));
        let (start, first, value) = (self.constant(0u32), self.constant(0u32), self.value(Kind::Int));
        let walk = self.begin_walk(start, length, &[first]);
        let mixed = self.tape.of(&[Op::IAdd, Op::IMul, Op::Xor]);
        let mixed = self.builder.pure(mixed, &[value, walk.counter]);
        let reduced = self.builder.subgroup(how, &[mixed]);
        let sum = self.builder.pure(op, &[walk.carried[0], reduced]);
        let result = walk.carried[0];
        self.end_walk(walk, &[sum]);
        self.define(result, Kind::Int, level);
    }

    fn most_iterations(&mut self, among: &[u32]) -> u32 {
        self.tape.of(among).min(MAX_ITERATIONS / self.work).max(1)
    }

    fn word_at(&mut self, buffer: Value, index: Value) -> Place {
        let zero = self.constant(0u32);
        let offset = self.builder.element(zero, index, 4);
        Place::Buffer { space: BufferSpace::Storage, buffer, offset }
    }

    fn begin_walk(&mut self, start: Value, limit: Value, carried: &[Value]) -> Walk {
        let [header, body, merge] = std::array::from_fn(|_| self.builder.create_block());
        let mut call = BlockCall::new(header);
        call.args.push(start);
        call.args.extend(carried.iter().copied());
        self.builder.push(InstData::Jump { to: call });
        self.builder.switch_to(header);
        let counter = self.builder.add_param(header, Type::I32);
        let types: Vec<Type> = carried.iter().map(|&value| self.builder.ty(value)).collect();
        let carried = types.into_iter().map(|ty| self.builder.add_param(header, ty)).collect();
        self.builder.set_merge(Merge::Loop { merge, continuing: body });
        let condition = self.builder.pure(Op::ULt, &[counter, limit]);
        let (then, otherwise) = (BlockCall::new(body), BlockCall::new(merge));
        self.builder.push(InstData::Branch { condition, then, otherwise });
        self.builder.switch_to(body);
        Walk { header, body, merge, counter, carried }
    }

    fn end_walk(&mut self, walk: Walk, next: &[Value]) {
        debug_assert_eq!(self.builder.current(), walk.body);
        let one = self.constant(1u32);
        let counter = self.builder.pure(Op::IAdd, &[walk.counter, one]);
        let mut call = BlockCall::new(walk.header);
        call.args.push(counter);
        call.args.extend(next.iter().copied());
        self.builder.push(InstData::Jump { to: call });
        self.builder.switch_to(walk.merge);
    }
}
