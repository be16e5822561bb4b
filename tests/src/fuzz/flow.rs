//! Control flow: targets with the values that dominate them, and the rules for jumps.
//!
//! Jumps follow SPIR-V's rules: to the merge and the continue target of the innermost loop, to the merge of the
//! innermost switch if no loop is between, to the next case. Values are in scope wherever they dominate, so
//! definitions of a loop or an arm are used after it whenever the graph allows.

use spelter_shaders::ir::{Access, AtomicOp, Block, BlockCall, BufferSpace, InstData, Op, Place, Value};

use super::feature::Feature;
use super::maker::Maker;
use super::scope::{Kind, Level, common};

/// Kinds of constructs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Selection,
    Switch,
    Loop,
}

/// A construct around the current place.
#[derive(Debug)]
pub(super) struct Construct {
    pub(super) shape: Shape,
    /// The invocations that reach its head together; for a loop, that iterate together.
    pub(super) level: Level,
    /// By role.
    targets: [Option<Target>; 2],
    /// The least level at which a jump left it for a target beyond its merge.
    escape: Level,
    /// Phases at its head, and again at its merge.
    pub(super) phases: Vec<bool>,
    /// How many values were in scope before it.
    outside: usize,
    /// The invocations that reached the current place together before it.
    before: Level,
}

/// A block with several incoming edges.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) block: Block,
    pub(super) kinds: Vec<Kind>,
    /// Least level of the arguments so far.
    levels: Vec<Level>,
    /// Values that dominate all edges so far; `None` before the first.
    scope: Option<Vec<Value>>,
    /// Least level of the edges so far.
    spread: Level,
}

impl Construct {
    /// The loop's own values start before the end of its header: with its parameters.
    pub(super) fn begins_at(&mut self, outside: usize) {
        self.outside = outside;
    }
}

impl Target {
    /// The invocations that reach it together.
    pub(super) fn spread(&self) -> Level {
        self.spread
    }
}

/// Which target of a construct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Merge,
    Continue,
}

/// An exit from the current place.
#[derive(Clone, Copy, Debug)]
enum Way {
    To(usize, Role),
    Return,
}

impl Maker {
    pub(super) fn target(&mut self, kinds: Vec<Kind>) -> Target {
        for kind in &kinds {
            match kind {
                Kind::Buffer(_) => self.features.insert(Feature::PhiBuffer),
                Kind::Bool => self.features.insert(Feature::PhiBool),
                Kind::Float => self.features.insert(Feature::PhiFloat),
                Kind::Int => {}
            }
        }
        let levels = vec![Level::Workgroup; kinds.len()];
        Target { block: self.builder.create_block(), kinds, levels, scope: None, spread: Level::Workgroup }
    }

    /// Kinds of the values that are passed.
    pub(super) fn kinds(&mut self) -> Vec<Kind> {
        (0..self.tape.pick(4)).map(|_| self.kind()).collect()
    }

    /// An edge from the current place, with values of the scope as arguments.
    pub(super) fn edge(&mut self, target: &mut Target) -> BlockCall {
        let kinds = target.kinds.clone();
        let args: Vec<Value> = kinds.into_iter().map(|kind| self.value(kind)).collect();
        for (level, &arg) in target.levels.iter_mut().zip(&args) {
            *level = (*level).min(self.scope.level(arg));
        }
        target.spread = target.spread.min(self.ctx);
        target.scope = Some(match target.scope.take() {
            Some(scope) => common(&scope, self.scope.values()),
            None => self.scope.values().to_vec(),
        });
        BlockCall { block: target.block, args: args.into_iter().collect() }
    }

    /// An edge to a target of a construct.
    pub(super) fn edge_to(&mut self, at: usize, role: Role) -> BlockCall {
        let slot = role as usize;
        let mut target = self.constructs[at].targets[slot].take();
        let call = target.as_mut().map(|target| self.edge(target));
        self.constructs[at].targets[slot] = target;
        call.unwrap_or_else(|| BlockCall::new(self.builder.current()))
    }

    /// Ends the current block with a jump.
    pub(super) fn jump(&mut self, to: BlockCall) {
        self.builder.push(InstData::Jump { to });
        self.dead = true;
    }

    /// Makes a target the current place, with its parameters in scope; `false` if it is unreachable.
    pub(super) fn arrive(&mut self, target: &Target) -> bool {
        let Some(scope) = &target.scope else {
            self.dead = true;
            return false;
        };
        self.dead = false;
        self.builder.switch_to(target.block);
        self.scope.restore(scope);
        for (&kind, &level) in target.kinds.iter().zip(&target.levels) {
            let param = self.builder.add_param(target.block, kind.ty());
            self.define(param, kind, level.min(target.spread));
        }
        true
    }

    /// Opens a construct at the current place. `level`: the invocations that go through it together.
    pub(super) fn open(&mut self, shape: Shape, level: Level, merge: Target, continuing: Option<Target>) -> usize {
        self.constructs.push(Construct {
            shape,
            level,
            targets: [Some(merge), continuing],
            escape: Level::Workgroup,
            phases: self.phases.clone(),
            outside: self.scope.len(),
            before: self.ctx,
        });
        self.constructs.len() - 1
    }

    /// Makes an unreachable continue target the current place.
    pub(super) fn arrive_at_unreachable(&mut self, target: &Target) {
        self.builder.switch_to(target.block);
        let outside = self.constructs.last().map_or(0, |construct| construct.outside);
        self.scope.truncate(outside);
    }

    /// Takes the continue target of the innermost construct.
    pub(super) fn take_continue(&mut self) -> Option<Target> {
        self.constructs.last_mut()?.targets[Role::Continue as usize].take()
    }

    /// Ends the innermost construct and continues at its merge.
    pub(super) fn close(&mut self) {
        let Some(mut construct) = self.constructs.pop() else { return };
        let Some(merge) = construct.targets[Role::Merge as usize].take() else { return };
        if construct.shape == Shape::Loop {
            // The lanes that entered together leave with values of different iterations.
            if let Some(scope) = merge.scope.clone() {
                self.scope.restore(&scope);
                self.scope.lower(construct.outside, construct.level);
            }
        }
        self.ctx = construct.before.min(construct.escape);
        self.phases = construct.phases;
        if !self.arrive(&merge) {
            // A shader has a block here anyway.
            self.builder.switch_to(merge.block);
            self.builder.push(InstData::Unreachable);
            return;
        }
        if merge.scope.is_some_and(|scope| scope.len() > construct.outside) {
            let feature = if construct.shape == Shape::Loop { Feature::LiveOut } else { Feature::MaskedLiveOut };
            self.mark(feature);
        }
    }

    /// An edge from the end of an arm or a body to a target of the innermost construct.
    pub(super) fn finish(&mut self, role: Role) {
        if self.dead {
            return;
        }
        let at = self.constructs.len() - 1;
        let phases = self.constructs[at].phases.clone();
        self.settle(&phases);
        let call = self.edge_to(at, role);
        self.jump(call);
    }

    /// All exits that the rules allow at `level`.
    fn ways(&self, level: Level) -> Vec<Way> {
        let mut ways = Vec::new();
        let mut through_loop = false;
        for (at, construct) in self.constructs.iter().enumerate().rev() {
            match construct.shape {
                Shape::Selection => continue,
                Shape::Switch if through_loop => continue,
                Shape::Switch => ways.push(Way::To(at, Role::Merge)),
                Shape::Loop => {
                    ways.push(Way::To(at, Role::Merge));
                    // Not from the continue construct itself.
                    if construct.targets[Role::Continue as usize].is_some() {
                        ways.push(Way::To(at, Role::Continue));
                    }
                    through_loop = true;
                }
            }
            // A switch allows its own merge, and targets of the enclosing loop.
            if through_loop {
                break;
            }
        }
        let inner_switch = self.constructs.iter().rposition(|construct| construct.shape != Shape::Selection);
        ways.retain(|way| match *way {
            Way::To(at, Role::Merge) if self.constructs[at].shape == Shape::Switch => Some(at) == inner_switch,
            _ => true,
        });
        ways.push(Way::Return);
        ways.retain(|&way| self.allows(way, level));
        ways
    }

    /// Whether an exit is allowed at `level`: loops keep their level, and phases must not change where not all
    /// invocations arrive.
    fn allows(&self, way: Way, level: Level) -> bool {
        let same = |construct: &Construct| construct.phases == self.phases;
        match way {
            Way::To(at, _) => {
                let construct = &self.constructs[at];
                let together = construct.shape != Shape::Loop || construct.level <= level;
                together && (level == Level::Workgroup || self.constructs[at..].iter().all(same))
            }
            Way::Return if self.options.loose_returns => true,
            Way::Return if level == Level::Workgroup => true,
            Way::Return => {
                let loops = self.constructs.iter().filter(|construct| construct.shape == Shape::Loop);
                let closed = self.phases.iter().all(|&open| !open);
                loops.clone().all(|construct| construct.level <= level) && closed && self.constructs.iter().all(same)
            }
        }
    }

    /// Leaves by a random exit.
    pub(super) fn leave(&mut self) {
        let ways = self.ways(self.ctx);
        if ways.is_empty() {
            return;
        }
        let way = self.tape.of(&ways);
        self.mark_way(way);
        match way {
            Way::To(at, role) => {
                let phases = self.constructs[at].phases.clone();
                self.settle(&phases);
                self.escape_to(at);
                let call = self.edge_to(at, role);
                self.jump(call);
            }
            Way::Return => self.end(12),
        }
    }

    /// Leaves by a random exit if a condition holds, without a selection: the branch names both targets.
    pub(super) fn leave_if(&mut self) {
        let condition = self.condition();
        let together = self.ctx.min(self.scope.level(condition));
        let mut ways = self.ways(together);
        ways.retain(|way| matches!(way, Way::To(at, _) if self.constructs[*at].phases == self.phases));
        if ways.is_empty() {
            return;
        }
        let Way::To(at, role) = self.tape.of(&ways) else { return };
        self.mark_way(Way::To(at, role));
        self.ctx = together;
        self.escape_to(at);
        let leave = self.edge_to(at, role);
        let on = BlockCall::new(self.builder.create_block());
        let block = on.block;
        let (then, otherwise) = if self.tape.pick(2) == 0 { (leave, on) } else { (on, leave) };
        self.builder.push(InstData::Branch { condition, then, otherwise });
        self.builder.switch_to(block);
    }

    /// Records that the invocations that are here together leave all constructs inside number `at`.
    pub(super) fn escape_to(&mut self, at: usize) {
        for construct in &mut self.constructs[at + 1..] {
            construct.escape = construct.escape.min(self.ctx);
        }
    }

    /// Targets of the innermost loop that a case may name directly.
    pub(super) fn exit_of_loop(&mut self) -> Option<(usize, Role)> {
        let ways = self.ways(self.ctx);
        let exits = ways.into_iter().filter_map(|way| match way {
            Way::To(at, role) if self.constructs[at].shape == Shape::Loop => Some((at, role)),
            _ => None,
        });
        let exits: Vec<_> = exits.filter(|&(at, _)| self.constructs[at].phases == self.phases).collect();
        (!exits.is_empty()).then(|| self.tape.of(&exits))
    }

    fn mark_way(&mut self, way: Way) {
        let inside = |at: usize| &self.constructs[at + 1..];
        let (feature, deep) = match way {
            Way::Return => {
                let in_loop = self.constructs.iter().any(|construct| construct.shape == Shape::Loop);
                if in_loop {
                    self.mark(Feature::ReturnInLoop);
                }
                if self.ctx != Level::Workgroup {
                    self.mark(Feature::ReturnDivergent);
                }
                return self.mark(Feature::Return);
            }
            Way::To(at, Role::Merge) if self.constructs[at].shape == Shape::Switch => (Feature::BreakSwitch, None),
            Way::To(at, role) => {
                let switch = inside(at).iter().any(|construct| construct.shape == Shape::Switch);
                let deep = inside(at).len() > 1;
                match role {
                    Role::Merge if switch => (Feature::BreakInSwitch, Some(Feature::Break)),
                    Role::Merge => (Feature::Break, deep.then_some(Feature::BreakDeep)),
                    Role::Continue if switch => (Feature::ContinueInSwitch, Some(Feature::Continue)),
                    Role::Continue => (Feature::Continue, deep.then_some(Feature::ContinueDeep)),
                }
            }
        };
        self.mark(feature);
        if let Some(deep) = deep {
            self.mark(deep);
        }
        if self.ctx != Level::Workgroup {
            self.mark(Feature::JumpDivergent);
        }
    }

    /// Ends the invocation, and stores its latest values.
    pub(super) fn end(&mut self, answers: usize) {
        if self.ctx != Level::Workgroup {
            self.memory.returned = true;
        }
        if !self.options.loose_returns {
            for construct in &mut self.constructs {
                construct.escape = construct.escape.min(self.ctx);
            }
        }
        self.answer(answers);
        let last = if self.tape.chance(8) {
            self.mark(Feature::Unreachable);
            InstData::Unreachable
        } else {
            InstData::Return
        };
        self.builder.push(last);
        self.dead = true;
    }

    /// Stores a combination of the latest values, so that wrong ones are detected.
    pub(super) fn answer(&mut self, most: usize) {
        let values: Vec<Value> = self.scope.values().iter().rev().take(most).copied().collect();
        let mut sum = self.constant(0x2545_f491_u32);
        for value in values {
            let word = match self.builder.ty(value).name() {
                "bool" => self.op(Op::BoolToInt, &[value]),
                "f32" => self.op(Op::FloatBits, &[value]),
                "buffer" => self.builder.push_value(InstData::BufferSize { buffer: value }, Kind::Int.ty()),
                _ => value,
            };
            sum = self.op(Op::Xor, &[sum, word]);
            sum = self.op_with(Op::IMul, sum, 0x9e37_79b1);
        }
        let (Some(buffer), Some(global)) = (self.memory.out, self.memory.global) else { return };
        let base = self.constant(0u32);
        let offset = self.element(base, global, 4);
        let place = Place::Buffer { space: BufferSpace::Storage, buffer, offset };
        if self.options.atomics {
            // An invocation that arrives twice has a wrong result.
            self.atomic(AtomicOp::Add, place, Some(sum), None);
        } else {
            self.builder.store(place, sum, Access::default());
        }
    }
}
