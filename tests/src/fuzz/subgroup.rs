//! Subgroup operations, at any place.

use spelter_shaders::ir::{Op, SubgroupOp, Value};

use super::feature::Feature;
use super::flow::Shape;
use super::maker::Maker;
use super::scope::{Kind, Level};

/// Operations of reductions and scans.
const OPS: [Op; 13] = [
    Op::IAdd,
    Op::FAdd,
    Op::UMin,
    Op::SMax,
    Op::Or,
    Op::And,
    Op::Xor,
    Op::IMul,
    Op::FMul,
    Op::SMin,
    Op::UMax,
    Op::FMin,
    Op::FMax,
];

impl Maker {
    /// A subgroup operation of the invocations that are here together.
    pub(super) fn together(&mut self) {
        if self.constructs.iter().any(|construct| construct.shape == Shape::Loop) {
            self.mark(Feature::TogetherInLoop);
        }
        if self.ctx == Level::Invocation {
            self.mark(Feature::TogetherDivergent);
        }
        // The result is uniform among the invocations that are here together; in the subgroup only if all of it is
        // here.
        let shared = self.ctx.min(Level::Subgroup);
        match self.tape.pick(8) {
            0 | 1 => {
                self.mark(Feature::Ballot);
                let condition = self.condition();
                let ballot = self.builder.subgroup(SubgroupOp::Ballot, &[condition]);
                self.define(ballot, Kind::Int, shared);
            }
            2..=4 => self.shuffle(shared),
            5 | 6 => {
                self.mark(Feature::Reduce);
                let cluster = self.tape.of(&[16, 16, 4, 2, 8, 1]);
                let level = if cluster == 16 { shared } else { Level::Invocation };
                self.put_together(|op| SubgroupOp::Reduce(op, cluster), level);
            }
            _ => {
                self.mark(Feature::Scan);
                let inclusive = self.tape.pick(2) == 0;
                let make = |op| if inclusive { SubgroupOp::Inclusive(op) } else { SubgroupOp::Exclusive(op) };
                self.put_together(make, Level::Invocation);
            }
        }
    }

    fn shuffle(&mut self, shared: Level) {
        self.mark(Feature::Shuffle);
        let kind = self.tape.of(&[Kind::Int, Kind::Float]);
        let value = self.value(kind);
        let (from, level) = match self.tape.pick(5) {
            0 => {
                let number = self.tape.pick(16);
                (self.constant(number), shared)
            }
            1 => {
                let (lane, number) = (self.lane(), self.tape.pick(16));
                let op = self.tape.of(&[Op::Xor, Op::IAdd, Op::ISub]);
                (self.op_with(op, lane, number), Level::Invocation)
            }
            2 => (self.value_at(Kind::Int, Level::Subgroup), shared),
            _ => (self.value(Kind::Int), Level::Invocation),
        };
        let word = self.builder.subgroup(SubgroupOp::Shuffle(kind.ty()), &[value, from]);
        self.define(word, kind, level);
    }

    fn put_together(&mut self, make: impl Fn(Op) -> SubgroupOp, level: Level) {
        let op = self.tape.of(&OPS);
        let kind = Kind::of(op.result());
        let value = self.value(kind);
        let result: Value = self.builder.subgroup(make(op), &[value]);
        self.scope.note(result, level);
        let result = if kind == Kind::Float { self.number(result) } else { result };
        self.define(result, kind, level);
    }
}
