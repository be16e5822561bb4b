//! Runs a workgroup subgroup by subgroup, and stops each at barriers until all are there.
//!
//! Without barriers that is a loop. With barriers, each subgroup has a state: how far it is. A round lets every
//! subgroup that has not ended run to its next barrier; what lives longer than that is in the subgroup's frame. So it
//! does not matter whether all subgroups wait at the same barrier, which Vulkan demands and nobody checks.

use super::{Block, Type, Value, Widen};
use crate::ir::{self, InstData as Scalar, Op, Scope};
use crate::simd::builder::{ALL, Builder};
use crate::simd::{Address, BlockCall, Field, Inst, InstData, LANES, WideOp};

/// State of a subgroup that has ended.
const ENDED: u32 = u32::MAX;

/// The subgroup that runs.
#[derive(Debug)]
pub(super) struct Subgroup {
    /// Its number, `s32`.
    pub(super) number: Value,
    /// Its lanes that are invocations.
    pub(super) lanes: Value,
    count: u32,
    /// Where a subgroup begins or goes on.
    turn: Block,
    rounds: Option<Rounds>,
}

/// What barriers need.
#[derive(Debug)]
struct Rounds {
    /// Whether a subgroup waits at a barrier, in this round: `s32`.
    waiting: Value,
    /// Where a subgroup gives way to the next.
    next: Block,
    /// Address of the subgroup's frame.
    frame: Value,
    /// The constant that says how large a frame is.
    frame_bytes: Inst,
    /// Where subgroups go on, by state from 1 on.
    resumes: Vec<Block>,
}

/// Whether a barrier makes subgroups wait for each other.
fn waits(data: &Scalar) -> bool {
    matches!(data, Scalar::Barrier { execution, .. } if !matches!(execution, Scope::Subgroup | Scope::Invocation))
}

impl Subgroup {
    pub(super) fn new(builder: &mut Builder, kernel: &ir::Kernel) -> Self {
        let count = kernel.invocations().div_ceil(LANES);
        let insts = kernel.layout.iter().flat_map(|&block| &kernel.blocks[block].insts);
        let barriers = count > 1 && insts.into_iter().any(|&inst| waits(&kernel.insts[inst]));
        let turn = builder.create_block();
        let frame_bytes = barriers.then(|| builder.placeholder());
        let entry = builder.current();
        if kernel.shared_bytes() > 0 {
            let base = builder.emit_one(InstData::Context { field: Field::Shared });
            builder.emit(InstData::Zero { base, bytes: kernel.shared_bytes() });
        }
        if barriers {
            let base = builder.emit_one(InstData::Context { field: Field::Frames });
            builder.emit(InstData::Zero { base, bytes: count * 4 });
        }
        debug_assert_eq!(builder.current(), entry);
        let number = if count > 1 { builder.param(turn, Type::S32) } else { builder.s32(0) };
        let waiting = barriers.then(|| builder.param(turn, Type::S32));
        builder.switch_to(turn);
        let params: Vec<Value> = (count > 1).then_some(number).into_iter().chain(waiting).collect();
        builder.begin_subgroup(&params);
        let lanes = lanes(builder, kernel, number);
        // Here the subgroup begins: the verifier holds all later masks against this one.
        builder.kernel.blocks[turn].exec = Some(lanes);
        let rounds = waiting.zip(frame_bytes).map(|(waiting, frame_bytes)| Rounds {
            waiting,
            next: builder.create_block(),
            frame: frame(builder, number, count, frame_bytes),
            frame_bytes,
            resumes: Vec::new(),
        });
        Self { number, lanes, count, turn, rounds }
    }

    /// Whether subgroups wait for each other.
    pub(super) fn has_rounds(&self) -> bool {
        self.rounds.is_some()
    }
}

/// The lanes of a subgroup that are invocations: all but those after the last.
fn lanes(builder: &mut Builder, kernel: &ir::Kernel, number: Value) -> Value {
    let invocations = kernel.invocations();
    if invocations.is_multiple_of(LANES) {
        return builder.constant(Type::Mask, ALL);
    }
    if invocations < LANES {
        return builder.constant(Type::Mask, (1 << invocations) - 1);
    }
    let total = builder.s32(invocations);
    let sixteen = builder.s32(LANES);
    let first = builder.pure(Op::IMul, &[number, sixteen]);
    let rest = builder.pure(Op::ISub, &[total, first]);
    let rest = builder.splat(rest);
    let ids = builder.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) });
    let lanes = builder.pure(Op::ULt, &[ids, rest]);
    builder.make_outer(lanes);
    lanes
}

/// Bytes of the states, before the frames.
fn state_bytes(count: u32) -> u32 {
    (count * 4).next_multiple_of(64)
}

fn frame(builder: &mut Builder, number: Value, count: u32, frame_bytes: Inst) -> Value {
    let frames = builder.emit_one(InstData::Context { field: Field::Frames });
    let skip = builder.s64(u64::from(state_bytes(count)));
    let first = builder.wide(WideOp::Add, &[frames, skip]);
    let number = builder.wide(WideOp::Extend, &[number]);
    let bytes = builder.kernel.results[frame_bytes][0];
    let offset = builder.wide(WideOp::Mul, &[number, bytes]);
    builder.wide(WideOp::Add, &[first, offset])
}

impl Widen<'_> {
    /// Builds everything: what comes before the subgroups, their blocks, and what comes after.
    pub(super) fn subgroups(&mut self) {
        let [start, end] = [self.builder.create_block(), self.builder.create_block()];
        self.builder.variables.mark_start(start);
        self.builder.switch_to(start);
        self.zero_private();
        self.region(end);
        self.builder.switch_to(end);
        self.builder.seal(end);
        self.end_subgroup();
        self.builder.fill_frames();
        self.dispatch(start);
        let first: Vec<Value> = match (self.subgroup.count, &self.subgroup.rounds) {
            (1, _) => Vec::new(),
            (_, None) => vec![self.builder.s32(0)],
            (_, Some(_)) => vec![self.builder.s32(0); 2],
        };
        let to = BlockCall { block: self.subgroup.turn, args: first.into() };
        let entry = self.builder.kernel.layout[0];
        self.builder.terminate_at(entry, InstData::Jump { to });
        self.sizes();
    }

    fn sizes(&mut self) {
        let copies = if self.subgroup.has_rounds() { self.subgroup.count } else { 1 };
        let kernel = &mut self.builder.kernel;
        kernel.private_bytes = self.kernel.private_bytes() * LANES * copies;
        if let Some(rounds) = &self.subgroup.rounds {
            let bytes = self.builder.variables.frame_bytes.next_multiple_of(64);
            kernel.insts[rounds.frame_bytes] = InstData::Const { ty: Type::S64, bits: u64::from(bytes) };
            kernel.frame_bytes = state_bytes(self.subgroup.count) + bytes * self.subgroup.count;
        }
    }

    /// Each invocation's private memory begins with zeros.
    fn zero_private(&mut self) {
        let bytes = self.kernel.private_bytes() * LANES;
        if bytes > 0 {
            let base = self.private_base();
            self.builder.emit(InstData::Zero { base, bytes });
        }
    }

    /// Address of the subgroup's private memory.
    pub(super) fn private_base(&mut self) -> Value {
        let base = self.builder.emit_one(InstData::Context { field: Field::Private });
        if !self.subgroup.has_rounds() {
            return base;
        }
        let bytes = self.builder.s64(u64::from(self.kernel.private_bytes() * LANES));
        let number = self.builder.wide(WideOp::Extend, &[self.subgroup.number]);
        let offset = self.builder.wide(WideOp::Mul, &[number, bytes]);
        self.builder.wide(WideOp::Add, &[base, offset])
    }

    /// Where the state of the subgroup is.
    fn state(&mut self) -> Address {
        let base = self.builder.emit_one(InstData::Context { field: Field::Frames });
        let limit = self.builder.s32(self.subgroup.count);
        Address { base, index: Some((self.subgroup.number, limit)), scale: 4, disp: 0 }
    }

    fn set_state(&mut self, state: u32) {
        let (address, value) = (self.state(), self.builder.s32(state));
        let mask = self.builder.constant(Type::Mask, ALL);
        self.builder.emit(InstData::Store { address, value, mask });
    }

    /// A barrier: the subgroup waits, if it is not the only one.
    pub(super) fn barrier(&mut self, data: &Scalar) {
        if !waits(data) || self.subgroup.rounds.is_none() {
            return;
        }
        let resume = self.builder.create_block();
        let stop = self.builder.current();
        let Some(rounds) = &mut self.subgroup.rounds else { return };
        rounds.resumes.push(resume);
        let (state, next, frame) = (rounds.resumes.len() as u32, rounds.next, rounds.frame);
        self.set_state(state);
        let one = self.builder.s32(1);
        self.builder.terminate(InstData::Jump { to: BlockCall { block: next, args: [one].into_iter().collect() } });
        let loops = &self.uniformity.loops;
        let around = std::iter::successors(loops.of(self.block), |&number| loops.all[number].parent).collect();
        self.builder.variables.mark_resume(resume, stop, frame, around);
        self.builder.switch_to(resume);
        self.resume();
    }

    /// After a subgroup's last instruction.
    fn end_subgroup(&mut self) {
        let Some(rounds) = &self.subgroup.rounds else {
            return self.next_subgroup(Vec::new(), None);
        };
        let (next, waiting) = (rounds.next, rounds.waiting);
        self.set_state(ENDED);
        self.builder.terminate(InstData::Jump { to: BlockCall { block: next, args: [waiting].into_iter().collect() } });
        let waiting = self.builder.param(next, Type::S32);
        self.builder.switch_to(next);
        let again = self.builder.create_block();
        self.next_subgroup(vec![waiting], Some(again));
        // All subgroups had their turn: another round, if one waits.
        self.builder.switch_to(again);
        let zero = self.builder.s32(0);
        let done = self.builder.pure(Op::IEq, &[waiting, zero]);
        let last = self.builder.create_block();
        let otherwise = BlockCall { block: self.subgroup.turn, args: [zero, zero].into_iter().collect() };
        self.builder.terminate(InstData::Branch { condition: done, then: BlockCall::new(last), otherwise });
        self.builder.switch_to(last);
        self.builder.emit(InstData::Return);
    }

    /// Goes on with the next subgroup; after the last one with `after`, or returns.
    fn next_subgroup(&mut self, args: Vec<Value>, after: Option<Block>) {
        if self.subgroup.count == 1 {
            self.builder.emit(InstData::Return);
            return;
        }
        let (one, count) = (self.builder.s32(1), self.builder.s32(self.subgroup.count));
        let number = self.subgroup.number;
        let next = self.builder.emit_value(InstData::Pure { op: Op::IAdd, args: [number, one].into_iter().collect() });
        let condition =
            self.builder.emit_value(InstData::Pure { op: Op::ULt, args: [next, count].into_iter().collect() });
        let then = BlockCall { block: self.subgroup.turn, args: [next].into_iter().chain(args).collect() };
        let last = after.unwrap_or_else(|| self.builder.create_block());
        self.builder.terminate(InstData::Branch { condition, then, otherwise: BlockCall::new(last) });
        if after.is_none() {
            self.builder.switch_to(last);
            self.builder.emit(InstData::Return);
        }
    }

    /// Ends the block where a subgroup begins or goes on.
    fn dispatch(&mut self, start: Block) {
        let turn = self.subgroup.turn;
        if !self.subgroup.has_rounds() {
            self.builder.terminate_at(turn, InstData::Jump { to: BlockCall::new(start) });
            return;
        }
        let address = self.state();
        let Some(rounds) = &self.subgroup.rounds else { return };
        let resumes = rounds.resumes.iter().enumerate().map(|(at, &block)| (at as u32 + 1, BlockCall::new(block)));
        let cases = [(0, BlockCall::new(start))].into_iter().chain(resumes).collect();
        let default = BlockCall { block: rounds.next, args: [rounds.waiting].into_iter().collect() };
        let selector = self.builder.emit_last(turn, InstData::Load { ty: Type::S32, address });
        self.builder.terminate_at(turn, InstData::Switch { selector, default, cases });
    }
}
