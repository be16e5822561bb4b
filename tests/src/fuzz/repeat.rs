//! Loops.

use spelter_shaders::ir::{BlockCall, InstData, Merge, Op, Value};

use super::feature::Feature;
use super::flow::{Role, Shape, Target};
use super::maker::Maker;
use super::scope::{Kind, Level};

/// Maximal product of the trip counts of nested loops.
pub(super) const MAX_ITERATIONS: u32 = 72;

/// The header of a loop, and its parameters.
struct Header {
    block: spelter_shaders::ir::Block,
    counter: Value,
    kinds: Vec<Kind>,
    levels: Vec<Level>,
}

impl Maker {
    /// A trip count: as a value, and its upper bound.
    fn trip_count(&mut self) -> (Value, u32) {
        let most = [2u32, 1, 3, 5, 18, 34].map(|most| most.min(MAX_ITERATIONS / self.work).max(1));
        let most = self.tape.of(&most);
        let level = match self.tape.pick(5) {
            0 => return (self.constant(most), most),
            1 => Level::Workgroup,
            2 => Level::Subgroup,
            _ => Level::Invocation,
        };
        let value = match self.tape.pick(3) {
            0 if level == Level::Invocation => self.lane(),
            _ => self.value_at(Kind::Int, level),
        };
        (self.op_with(Op::UMod, value, most + 1), most)
    }

    pub(super) fn repeat(&mut self, depth: u32) {
        let (iterations, most) = self.trip_count();
        let mut level = self.ctx.min(self.scope.level(iterations));
        if self.tape.chance(3) {
            // Some invocations may leave earlier than others.
            level = Level::Invocation;
        }
        self.mark_loop(level, most);
        let work = self.work;
        self.work *= most;
        match self.tape.pick(8) {
            0..=2 => self.counted_loop(iterations, level, depth, false),
            3 | 4 => self.counted_loop(iterations, level, depth, true),
            5 | 6 => self.tested_last(iterations, level, depth),
            _ => self.one_block(iterations, level),
        }
        self.work = work;
    }

    fn mark_loop(&mut self, level: Level, most: u32) {
        self.mark(match level {
            Level::Workgroup => Feature::LoopUniform,
            Level::Subgroup => Feature::LoopSubgroup,
            Level::Invocation => Feature::LoopDivergent,
        });
        if most > 16 {
            self.mark(Feature::LoopLong);
        }
        if self.constructs.iter().any(|construct| construct.shape == Shape::Loop) {
            self.mark(Feature::LoopNested);
        }
        if self.constructs.iter().any(|construct| construct.shape == Shape::Switch) {
            self.mark(Feature::LoopInSwitch);
        }
    }

    /// Jumps to a loop's header with the counter and the other loop-carried values.
    fn enter_loop(&mut self) -> Header {
        let kinds = self.kinds();
        let block = self.builder.create_block();
        let zero = self.constant(0u32);
        let mut call = BlockCall::new(block);
        call.args.push(zero);
        let mut levels = Vec::new();
        for &kind in &kinds {
            let arg = self.value(kind);
            call.args.push(arg);
            // Loop-carried values must keep their uniformity level.
            levels.push(if self.tape.pick(2) == 0 { Level::Invocation } else { self.scope.level(arg) });
        }
        self.builder.push(InstData::Jump { to: call });
        self.builder.switch_to(block);
        let counter = self.builder.add_param(block, Kind::Int.ty());
        self.define(counter, Kind::Int, Level::Workgroup);
        for (&kind, &level) in kinds.iter().zip(&levels) {
            let param = self.builder.add_param(block, kind.ty());
            self.define(param, kind, level);
        }
        Header { block, counter, kinds, levels }
    }

    /// The edge back to the header.
    fn round(&mut self, header: &Header, next: Value) -> BlockCall {
        let mut call = BlockCall::new(header.block);
        call.args.push(next);
        for (&kind, &level) in header.kinds.iter().zip(&header.levels) {
            let arg = self.value_at(kind, level);
            call.args.push(arg);
        }
        call
    }

    /// Opens a loop whose header is the current block.
    fn open_loop(&mut self, level: Level, continuing: Target) -> usize {
        let kinds = self.kinds();
        let merge = self.target(kinds);
        self.builder.set_merge(Merge::Loop { merge: merge.block, continuing: continuing.block });
        let at = self.open(Shape::Loop, level, merge, Some(continuing));
        self.ctx = level;
        at
    }

    /// The exit test is in the header, or, if `endless` as far as the header is concerned, in the body.
    fn counted_loop(&mut self, iterations: Value, level: Level, depth: u32, endless: bool) {
        let outside = self.scope.len();
        let header = self.enter_loop();
        if self.tape.pick(3) == 2 {
            self.straight();
        }
        let kinds = self.kinds();
        let continuing = self.target(kinds);
        let at = self.open_loop(level, continuing);
        self.constructs[at].begins_at(outside);
        if endless {
            self.mark(Feature::LoopEndless);
            let body = BlockCall::new(self.builder.create_block());
            let block = body.block;
            self.builder.push(InstData::Jump { to: body });
            self.builder.switch_to(block);
            self.straight();
        }
        let more = self.op(Op::ULt, &[header.counter, iterations]);
        let leave = self.edge_to(at, Role::Merge);
        let body = BlockCall::new(self.builder.create_block());
        let block = body.block;
        self.builder.push(InstData::Branch { condition: more, then: body, otherwise: leave });
        self.builder.switch_to(block);
        self.region(depth);
        self.finish(Role::Continue);
        if self.arrive_at_continue(level, &header) {
            self.straight();
            let next = self.op_with(Op::IAdd, header.counter, 1);
            let call = self.round(&header, next);
            self.jump(call);
        }
        self.close();
    }

    /// At least one iteration; the continue block has the exit test.
    fn tested_last(&mut self, iterations: Value, level: Level, depth: u32) {
        self.mark(Feature::LoopTestedLast);
        let outside = self.scope.len();
        let header = self.enter_loop();
        let kinds = self.kinds();
        let continuing = self.target(kinds);
        let at = self.open_loop(level, continuing);
        self.constructs[at].begins_at(outside);
        let body = BlockCall::new(self.builder.create_block());
        let block = body.block;
        self.builder.push(InstData::Jump { to: body });
        self.builder.switch_to(block);
        self.region(depth);
        self.finish(Role::Continue);
        if self.arrive_at_continue(level, &header) {
            self.straight();
            self.end_of_iteration(&header, iterations, at);
        }
        self.close();
    }

    fn end_of_iteration(&mut self, header: &Header, iterations: Value, at: usize) {
        let next = self.op_with(Op::IAdd, header.counter, 1);
        let more = self.op(Op::ULt, &[next, iterations]);
        let again = self.round(header, next);
        let leave = self.edge_to(at, Role::Merge);
        self.builder.push(InstData::Branch { condition: more, then: again, otherwise: leave });
        self.dead = true;
    }

    /// The header is its own continue target.
    fn one_block(&mut self, iterations: Value, level: Level) {
        self.mark(Feature::LoopOneBlock);
        let outside = self.scope.len();
        let header = self.enter_loop();
        let kinds = self.kinds();
        let merge = self.target(kinds);
        self.builder.set_merge(Merge::Loop { merge: merge.block, continuing: header.block });
        let at = self.open(Shape::Loop, level, merge, None);
        self.constructs[at].begins_at(outside);
        self.ctx = level;
        self.straight();
        if self.tape.pick(2) == 1 {
            self.own();
        }
        self.end_of_iteration(&header, iterations, at);
        self.close();
    }

    /// Continues in the continue construct. `false` if that is unreachable: then it has the back edge only, as in
    /// shaders.
    fn arrive_at_continue(&mut self, level: Level, header: &Header) -> bool {
        let Some(target) = self.take_continue() else { return false };
        self.ctx = level;
        if let Some(construct) = self.constructs.last() {
            self.phases = construct.phases.clone();
        }
        let comes = self.arrive(&target);
        if !comes {
            self.features.insert(Feature::ContinueUnreachable);
            self.arrive_at_unreachable(&target);
            let call = self.round(header, header.counter);
            self.jump(call);
        }
        comes
    }
}
