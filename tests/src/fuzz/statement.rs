//! Statements: sequences, selections and switches.

use spelter_shaders::ir::{BlockCall, InstData, Merge, Op, Value};

use super::feature::Feature;
use super::flow::{Role, Shape, Target};
use super::maker::Maker;
use super::scope::{Kind, Level};

impl Maker {
    /// Statements until the tape says 0, fuel is exhausted, or the place is unreachable.
    pub(super) fn region(&mut self, depth: u32) {
        loop {
            let nested = !self.constructs.is_empty();
            if self.fuel == 0 || self.dead || self.tape.pick(if nested { 6 } else { 60 }) == 0 {
                return;
            }
            let choice = self.tape.pick(57) + 1;
            self.fuel -= 1;
            self.statement(choice, depth);
        }
    }

    fn statement(&mut self, choice: u32, depth: u32) {
        match choice {
            1..=8 => self.pure(),
            9 | 10 => self.fresh(),
            11 => self.compare(),
            12 => self.select(),
            13 | 14 => self.chain(),
            15..=17 => self.read(),
            18 => self.descriptor(),
            19..=21 => self.own(),
            22 => self.private(),
            23 if self.options.atomics => self.atomic_own(),
            24 | 25 if self.options.atomics => self.count(),
            26..=28 => self.synchronise(),
            29 => self.shown(),
            // Invocations that have returned would have made fewer stores than the others.
            30 if self.ctx == Level::Workgroup && !self.options.loose_returns => self.uniform_store(),
            30 => self.size(),
            31 => self.leader(),
            32 | 33 if depth > 0 => self.branch(depth - 1),
            34 | 35 if depth > 0 => self.repeat(depth - 1),
            36 if depth > 0 => self.switch(depth - 1),
            37 if !self.constructs.is_empty() => self.leave_if(),
            38 | 39 => self.guarded_leave(),
            40..=43 => self.together(),
            44 | 45 => self.packed(),
            46 if self.options.atomics => self.own_wide(),
            47 => self.numbered(),
            48 => self.addressed(),
            49 => self.look_up(),
            50 | 51 => self.sums(),
            52 if self.options.atomics => self.own_half(),
            53..=57 => self.picture(),
            _ => self.pure(),
        }
    }

    /// Statements without control flow.
    pub(super) fn straight(&mut self) {
        for _ in 0..self.tape.pick(4) {
            match self.tape.pick(5) {
                0 | 1 => self.pure(),
                2 => self.fresh(),
                3 => self.read(),
                _ => self.chain(),
            }
        }
    }

    /// A condition: uniform, or true for some.
    pub(super) fn condition(&mut self) -> Value {
        match self.tape.pick(8) {
            0..=2 => self.divergent_bool(),
            3 | 4 => self.value_at(Kind::Bool, Level::Workgroup),
            5 => {
                let value = self.value_at(Kind::Int, Level::Workgroup);
                let bit = 1 << self.tape.pick(4);
                let bit = self.op_with(Op::And, value, bit);
                let condition = self.op_with(Op::INe, bit, 0);
                let level = self.scope.level(condition);
                self.define(condition, Kind::Bool, level)
            }
            6 => self.value_at(Kind::Bool, Level::Subgroup),
            _ => self.value(Kind::Bool),
        }
    }

    fn branch(&mut self, depth: u32) {
        let condition = self.condition();
        self.branch_on(condition, |maker, arm| {
            maker.region(depth);
            if arm < 2 && !maker.dead && maker.tape.chance(10) {
                maker.leave();
            }
        });
    }

    /// An early exit for invocations for which a condition holds.
    fn guarded_leave(&mut self) {
        let condition = self.condition();
        let kinds = Vec::new();
        self.selection(condition, kinds, true, |maker, _| {
            maker.straight();
            maker.leave();
        });
    }

    fn branch_on(&mut self, condition: Value, arm: impl FnMut(&mut Self, u32)) {
        let kinds = self.kinds();
        let one_arm = self.tape.pick(3) == 1;
        self.selection(condition, kinds, one_arm, arm);
    }

    fn selection(&mut self, condition: Value, kinds: Vec<Kind>, one_arm: bool, mut arm: impl FnMut(&mut Self, u32)) {
        let merge = self.target(kinds);
        let merge_block = merge.block;
        let feature = match (self.builder.kernel().constant(condition), self.scope.level(condition)) {
            (Some(_), _) => Feature::BranchConstant,
            (_, Level::Workgroup) => Feature::BranchUniform,
            _ => Feature::BranchDivergent,
        };
        self.mark(feature);
        if one_arm {
            self.mark(Feature::BranchOneArm);
        }
        let at = self.open(Shape::Selection, self.ctx, merge, None);
        let inside = self.ctx.min(self.scope.level(condition));
        self.ctx = inside;
        let [then, otherwise] = std::array::from_fn(|_| self.builder.create_block());
        let to_otherwise = if one_arm { self.edge_to(at, Role::Merge) } else { BlockCall::new(otherwise) };
        self.builder.set_merge(Merge::Selection { merge: merge_block });
        let flip = one_arm && self.tape.pick(4) == 3;
        let (first, second) = (BlockCall::new(then), to_otherwise);
        let (first, second) = if flip { (second, first) } else { (first, second) };
        self.builder.push(InstData::Branch { condition, then: first, otherwise: second });
        let values = self.scope.values().to_vec();
        let phases = self.phases.clone();
        for (number, block) in [then, otherwise].into_iter().enumerate().take(if one_arm { 1 } else { 2 }) {
            self.builder.switch_to(block);
            self.scope.restore(&values);
            (self.ctx, self.dead) = (inside, false);
            self.phases.clone_from(&phases);
            arm(self, number as u32);
            self.finish(Role::Merge);
        }
        self.close();
    }

    fn switch(&mut self, depth: u32) {
        let selector = self.selector();
        let count = self.tape.of(&[1, 2, 3, 4, 2, 3, 0]);
        let feature = match self.scope.level(selector) {
            Level::Workgroup => Feature::SwitchUniform,
            _ => Feature::SwitchDivergent,
        };
        self.mark(feature);
        let kinds = self.kinds();
        let merge = self.target(kinds);
        let merge_block = merge.block;
        let at = self.open(Shape::Switch, self.ctx, merge, None);
        let inside = self.ctx.min(self.scope.level(selector));
        self.ctx = inside;
        let falls: Vec<bool> = (0..count).map(|number| number + 1 < count && self.tape.pick(3) == 1).collect();
        let mut cases = Vec::new();
        for number in 0..count {
            let kinds = if number > 0 && falls[number - 1] { self.kinds() } else { Vec::new() };
            cases.push(self.target(kinds));
        }
        self.builder.set_merge(Merge::Selection { merge: merge_block });
        let data = self.targets(selector, at, &mut cases);
        self.builder.push(data);
        let phases = self.phases.clone();
        for number in 0..count {
            self.ctx = inside.min(cases[number].spread());
            self.phases.clone_from(&phases);
            if !self.arrive(&cases[number]) {
                continue;
            }
            self.region(depth);
            if !self.dead && falls[number] {
                self.settle(&phases);
                self.mark(Feature::SwitchFallthrough);
                let call = self.edge(&mut cases[number + 1]);
                self.jump(call);
            }
            self.finish(Role::Merge);
        }
        self.close();
    }

    fn selector(&mut self) -> Value {
        let level = if self.tape.pick(3) == 1 { Level::Workgroup } else { Level::Invocation };
        let value = self.value_at(Kind::Int, level);
        match self.tape.pick(4) {
            0 => self.op_with(Op::And, value, 3),
            1 => self.op_with(Op::UMod, value, 5),
            2 => {
                let lane = self.lane();
                self.op_with(Op::UMod, lane, 6)
            }
            _ => value,
        }
    }

    /// The switch: its literals and targets.
    fn targets(&mut self, selector: Value, at: usize, cases: &mut [Target]) -> InstData {
        let mut calls = Vec::new();
        let mut literal: u32 = self.tape.of(&[0, 0, 0, u32::MAX - 1]);
        for case in cases.iter_mut() {
            for again in 0..2 {
                if again == 1 {
                    if self.tape.pick(4) != 1 {
                        break;
                    }
                    self.mark(Feature::SwitchSharedTarget);
                }
                let call = self.edge(case);
                calls.push((literal, call));
                literal = literal.wrapping_add(1 + self.tape.pick(2));
            }
        }
        if self.tape.chance(8)
            && let Some((exit, role)) = self.exit_of_loop()
        {
            self.mark(Feature::SwitchExit);
            self.escape_to(exit);
            let call = self.edge_to(exit, role);
            calls.push((literal, call));
        }
        let default = match self.tape.pick(3) {
            0 => self.edge_to(at, Role::Merge),
            _ if cases.is_empty() => self.edge_to(at, Role::Merge),
            _ => {
                let number = self.tape.pick(cases.len() as u32) as usize;
                self.edge(&mut cases[number])
            }
        };
        InstData::Switch { selector, default, cases: calls }
    }
}
