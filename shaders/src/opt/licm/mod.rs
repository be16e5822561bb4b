//! Loop-invariant code motion: what a loop computes anew on every trip, though it is always the same, is computed before it.
//!
//! An instruction goes before the outermost loop that changes neither its operands nor, for a load, the memory it reads
//! (`clobbers`). It goes to the loop's preheader, the block through which alone control enters the loop (`preheader`).
//! What waits in a register through the whole loop has its price: cheap operations go out only up to a limit.

mod clobbers;
mod preheader;

use cranelift_entity::SecondaryMap;

use crate::analysis::{Dominators, Loops};
use crate::ir::{Block, Inst, InstData, Kernel, Op, Type, Value};
pub(crate) use clobbers::Clobbers;

/// How many levels of loops an instruction may leave, and how far apart loops are compared: keeps deep nests linear.
const LEVELS: usize = 24;

/// Results of cheap operations that may wait through a loop.
const CHEAP_RESULTS: u32 = 24;

/// Of these truth values, for which machines have few registers.
const TRUTH_VALUES: u32 = 4;

/// Runs the pass.
pub(super) fn run(kernel: &mut Kernel) {
    let dominators = Dominators::new(kernel);
    let loops = Loops::new(kernel, &dominators);
    if loops.all.is_empty() {
        return;
    }
    let mut motion = Motion::new(kernel, &loops);
    for place in 0..motion.kernel.layout.len() {
        let block = motion.kernel.layout[place];
        motion.visit(block, dominators.is_reachable(block));
    }
    let moved = motion.moved;
    preheader::place(kernel, &loops, &dominators, moved);
}

struct Motion<'a> {
    kernel: &'a mut Kernel,
    loops: &'a Loops,
    clobbers: Vec<Clobbers>,
    depths: Vec<u32>,
    /// The innermost loop that a value is defined in, where it is now.
    homes: SecondaryMap<Value, Option<u32>>,
    /// What goes before each loop, in order.
    moved: Vec<Vec<Inst>>,
    /// Cheap results and truth values that wait through each loop.
    waiting: Vec<[u32; 2]>,
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
            homes: SecondaryMap::new(),
            moved: vec![Vec::new(); count],
            waiting: vec![[0; 2]; count],
        }
    }

    fn visit(&mut self, block: Block, reachable: bool) {
        let home = self.loops.of(block);
        for &param in &self.kernel.blocks[block].params {
            self.homes[param] = home.map(|home| home as u32);
        }
        let mut insts = std::mem::take(&mut self.kernel.blocks[block].insts);
        insts.retain(|&inst| {
            let to = home.filter(|_| reachable).and_then(|home| self.destination(inst, home));
            let now = match to {
                Some(to) => {
                    self.moved[to].push(inst);
                    self.loops.all[to].parent
                }
                None => home,
            };
            if let Some(value) = self.kernel.results[inst] {
                self.homes[value] = now.map(|now| now as u32);
            }
            to.is_none()
        });
        self.kernel.blocks[block].insts = insts;
    }

    /// The loop before which an instruction in loop `home` can go.
    fn destination(&mut self, inst: Inst, home: usize) -> Option<usize> {
        let data = &self.kernel.insts[inst];
        let price = price(data)?;
        // The innermost loop that must go on around the instruction, since an operand changes there.
        let mut limit = None;
        data.for_each_use(|value| {
            let around = self.homes[value].and_then(|other| self.common(home, other as usize));
            limit = limit.max(around.map(|around| (self.depths[around], around)));
        });
        let limit = limit.map(|(_, around)| around);
        let is_free = |number: usize| match data {
            InstData::Load { place, access, .. } => !self.clobbers[number].may_change(place, *access),
            _ => true,
        };
        let mut best = None;
        let mut next = Some(home);
        for _ in 0..LEVELS {
            match next {
                Some(number) if next != limit && is_free(number) => {
                    best = next;
                    next = self.loops.all[number].parent;
                }
                _ => break,
            }
        }
        self.pay(best?, price)
    }

    /// The innermost loop around both; the first itself if they are far apart.
    fn common(&self, first: usize, second: usize) -> Option<usize> {
        let (mut a, mut b) = (Some(first), Some(second));
        for _ in 0..2 * LEVELS {
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

    /// Counts a result that waits through a loop, if there is room for it.
    fn pay(&mut self, number: usize, price: Price) -> Option<usize> {
        let (place, most) = match price {
            Price::Nothing => return Some(number),
            Price::Register => (0, CHEAP_RESULTS),
            Price::TruthValue => (1, TRUTH_VALUES),
        };
        let waiting = &mut self.waiting[number][place];
        *waiting += 1;
        (*waiting <= most).then_some(number)
    }
}

/// What it takes to keep a result instead of computing it again.
#[derive(Clone, Copy, PartialEq)]
enum Price {
    /// Nothing: back ends make it anew where it is used; or nothing that counts, since it is dear to compute.
    Nothing,
    Register,
    TruthValue,
}

/// `None` for what has to stay in its place.
fn price(data: &InstData) -> Option<Price> {
    match data {
        InstData::Const { .. } | InstData::BuiltIn { .. } => Some(Price::Nothing),
        InstData::Buffer { .. } | InstData::BufferSize { .. } | InstData::ImageField { .. } => Some(Price::Nothing),
        InstData::BufferNumber { .. } | InstData::BufferOf { .. } | InstData::BufferOffset { .. } => {
            Some(Price::Register)
        }
        InstData::BufferAt { .. } | InstData::BufferNear { .. } => Some(Price::Nothing),
        InstData::Reaches { .. } => Some(Price::TruthValue),
        InstData::Load { .. } => Some(Price::Nothing),
        InstData::Pure { op, .. } if is_dear(*op) => Some(Price::Nothing),
        InstData::Pure { op, .. } if op.result() == Type::Bool => Some(Price::TruthValue),
        InstData::Pure { .. } | InstData::Select { .. } | InstData::Element { .. } => Some(Price::Register),
        _ => None,
    }
}

/// Whether an operation takes longer than loading its result would.
fn is_dear(op: Op) -> bool {
    use Op::*;
    let chapters = [
        matches!(op, UDiv | SDiv | UMod | SRem | SMod | UMulHigh | SMulHigh | FDiv | FRem | FMod | Sqrt | InverseSqrt),
        matches!(op, Exp | Exp2 | Log | Log2 | Pow | Sin | Cos | Tan | Asin | Acos | Atan | Atan2),
        matches!(op, Sinh | Cosh | Tanh | Asinh | Acosh | Atanh | FMix | SmoothStep | BitReverse | BitCount),
        matches!(op, ModfFract | FrexpSignificand | FrexpExponent | Ldexp | HalfBits | HalfFromBits | QuantizeF16),
    ];
    chapters.contains(&true)
}
