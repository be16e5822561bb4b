//! Loop-invariant code motion.
//!
//! An instruction moves before the outermost loop in which neither its operands nor, for a load, the memory it reads
//! can change (`analysis/clobbers.rs`). It moves to the loop's preheader (`preheader`). A moved result occupies a
//! register throughout the loop, so the number of cheap operations moved out of a loop is limited.

mod preheader;

use cranelift_entity::SecondaryMap;

use crate::analysis::{Clobbers, Dominators, Loops};
use crate::ir::{Block, Inst, InstData, Kernel, Op, Type, Value};

/// Maximum number of loop levels that an instruction moves out of, and that are compared: keeps deep nests linear.
const MAX_LEVELS: usize = 24;

/// Maximum number of cheap results kept in registers throughout one loop.
const MAX_CHEAP_RESULTS: u32 = 24;

/// The same for truth values: machines have few mask registers.
const MAX_TRUTH_VALUES: u32 = 4;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    if loops.all.is_empty() {
        return;
    }
    let mut motion = Motion::new(kernel, &loops);
    for position in 0..motion.kernel.layout.len() {
        let block = motion.kernel.layout[position];
        motion.visit(block, dominators.is_reachable(block));
    }
    let moved = motion.moved;
    preheader::insert(kernel, &loops, &dominators, moved);
}

struct Motion<'a> {
    kernel: &'a mut Kernel,
    loops: &'a Loops,
    clobbers: Vec<Clobbers>,
    depths: Vec<u32>,
    /// The innermost loop that defines each value, after motion.
    defining_loops: SecondaryMap<Value, Option<u32>>,
    /// Instructions that move before each loop, in order.
    moved: Vec<Vec<Inst>>,
    /// Number of cheap results and of truth values that are live throughout each loop.
    live_through: Vec<[u32; 2]>,
}

impl<'a> Motion<'a> {
    fn new(kernel: &'a mut Kernel, loops: &'a Loops) -> Self {
        let count = loops.all.len();
        let mut depths = vec![0; count];
        for (number, found) in loops.all.iter().enumerate() {
            depths[number] = found.parent.map_or(1, |parent| depths[parent] + 1);
        }
        Self {
            clobbers: Clobbers::of_loops(kernel, loops),
            kernel,
            loops,
            depths,
            defining_loops: SecondaryMap::new(),
            moved: vec![Vec::new(); count],
            live_through: vec![[0; 2]; count],
        }
    }

    fn visit(&mut self, block: Block, reachable: bool) {
        let innermost = self.loops.of(block);
        for &param in &self.kernel.blocks[block].params {
            self.defining_loops[param] = innermost.map(|innermost| innermost as u32);
        }
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        insts.retain(|&inst| {
            let to = innermost.filter(|_| reachable).and_then(|innermost| self.destination(inst, innermost));
            let now = match to {
                Some(to) => {
                    self.moved[to].push(inst);
                    self.loops.all[to].parent
                }
                None => innermost,
            };
            if let Some(value) = self.kernel.results[inst] {
                self.defining_loops[value] = now.map(|now| now as u32);
            }
            to.is_none()
        });
        self.kernel.blocks[block].insts = insts;
    }

    /// The loop that an instruction moves before; `innermost` is the loop that it is in.
    fn destination(&mut self, inst: Inst, innermost: usize) -> Option<usize> {
        let data = &self.kernel.insts[inst];
        let register_cost = register_cost(data)?;
        // The innermost loop that must still contain the instruction, since an operand is defined there.
        let mut limit = None;
        data.for_each_use(|value| {
            let around = self.defining_loops[value].and_then(|other| self.common(innermost, other as usize));
            limit = limit.max(around.map(|around| (self.depths[around], around)));
        });
        let limit = limit.map(|(_, around)| around);
        let is_invariant = |number: usize| match data {
            InstData::Load { place, access, .. } => !self.clobbers[number].may_change(place, *access),
            _ => true,
        };
        let mut best = None;
        let mut next = Some(innermost);
        for _ in 0..MAX_LEVELS {
            match next {
                Some(number) if next != limit && is_invariant(number) => {
                    best = next;
                    next = self.loops.all[number].parent;
                }
                _ => break,
            }
        }
        self.reserve(best?, register_cost)
    }

    /// The innermost loop that contains both; the first itself if they are many levels apart.
    fn common(&self, first: usize, second: usize) -> Option<usize> {
        let (mut a, mut b) = (Some(first), Some(second));
        for _ in 0..2 * MAX_LEVELS {
            let (Some(one), Some(other)) = (a, b) else { return None };
            if one == other {
                return a;
            }
            if self.depths[one] >= self.depths[other] {
                a = self.loops.all[one].parent;
            } else {
                b = self.loops.all[other].parent;
            }
        }
        Some(first)
    }

    /// Counts a result that becomes live throughout a loop, if the limit allows it.
    fn reserve(&mut self, number: usize, register_cost: RegisterCost) -> Option<usize> {
        let (index, max) = match register_cost {
            RegisterCost::Free => return Some(number),
            RegisterCost::Register => (0, MAX_CHEAP_RESULTS),
            RegisterCost::TruthValue => (1, MAX_TRUTH_VALUES),
        };
        let live_through = &mut self.live_through[number][index];
        *live_through += 1;
        (*live_through <= max).then_some(number)
    }
}

/// The register that a moved result occupies.
#[derive(Clone, Copy, PartialEq)]
enum RegisterCost {
    /// None: back ends rematerialize it at each use, or it is so expensive that the register is well spent.
    Free,
    Register,
    TruthValue,
}

/// `None` for instructions that must not move.
fn register_cost(data: &InstData) -> Option<RegisterCost> {
    match data {
        InstData::Const { .. } | InstData::BuiltIn { .. } => Some(RegisterCost::Free),
        InstData::Buffer { .. } | InstData::BufferSize { .. } | InstData::ImageField { .. } => Some(RegisterCost::Free),
        InstData::BufferNumber { .. } | InstData::BufferOf { .. } | InstData::BufferOffset { .. } => {
            Some(RegisterCost::Register)
        }
        InstData::BufferAt { .. } | InstData::BufferNear { .. } => Some(RegisterCost::Free),
        InstData::Reaches { .. } => Some(RegisterCost::TruthValue),
        InstData::Load { .. } => Some(RegisterCost::Free),
        InstData::Pure { op, .. } if is_dear(*op) => Some(RegisterCost::Free),
        InstData::Pure { op, .. } if op.result() == Type::Bool => Some(RegisterCost::TruthValue),
        InstData::Pure { .. } | InstData::Select { .. } | InstData::Element { .. } => Some(RegisterCost::Register),
        _ => None,
    }
}

/// Whether recomputing the operation takes longer than reloading its result.
fn is_dear(op: Op) -> bool {
    use Op::*;
    let groups = [
        matches!(op, UDiv | SDiv | UMod | SRem | SMod | UMulHigh | SMulHigh | FDiv | FRem | FMod | Sqrt | InverseSqrt),
        matches!(op, Exp | Exp2 | Log | Log2 | Pow | Sin | Cos | Tan | Asin | Acos | Atan | Atan2),
        matches!(op, Sinh | Cosh | Tanh | Asinh | Acosh | Atanh | FMix | SmoothStep | BitReverse | BitCount),
        matches!(op, ModfFract | FrexpSignificand | FrexpExponent | Ldexp | HalfBits | HalfFromBits | QuantizeF16),
    ];
    groups.contains(&true)
}
