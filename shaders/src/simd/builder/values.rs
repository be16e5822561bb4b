//! Emits values with simplification: folds constants and masks, drops neutral operands, and hoists what all subgroups
//! share.

use smallvec::SmallVec;

use super::{ALL, Builder};
use crate::ir::Op;
use crate::simd::{InstData, Type, Value, WideOp, pure_result};

/// Operations that are hoisted to the entry for one vector, at most.
const MAX_HOISTED: usize = 4;

impl Builder {
    /// A constant; for a vector, the same in all lanes.
    pub(crate) fn constant(&mut self, ty: Type, bits: u64) -> Value {
        self.emit_one(InstData::Const { ty, bits })
    }

    /// A uniform 32-bit constant.
    pub(crate) fn s32(&mut self, value: u32) -> Value {
        self.constant(Type::S32, u64::from(value))
    }

    /// A uniform 64-bit constant.
    pub(crate) fn s64(&mut self, value: u64) -> Value {
        self.constant(Type::S64, value)
    }

    /// A pure operation, on scalars or on vectors.
    pub(crate) fn pure(&mut self, op: Op, args: &[Value]) -> Value {
        let bits: Option<SmallVec<[u64; 4]>> = args.iter().map(|&arg| self.kernel.constant(arg)).collect();
        let vector = args.iter().any(|&arg| self.ty(arg).is_vector());
        if let Some(bits) = bits {
            return self.fold(op, &bits, vector);
        }
        if let (Op::IAdd, &[a, b]) = (op, args)
            && let Some(sum) = [(a, b), (b, a)].into_iter().find(|&(_, b)| self.kernel.constant(b) == Some(0))
        {
            return sum.0;
        }
        if let (Op::And, &[a, b]) = (op, args)
            && [(a, b), (b, a)].into_iter().any(|(value, mask)| self.is_masked_out(value, mask))
        {
            return self.fold(op, &[0, 0], vector);
        }
        // Vectors that are the same in all subgroups: masks are used often, and a register costs less than a division
        // per subgroup.
        let worth = vector && (compares(op) || matches!(op, Op::LAnd | Op::FDiv | Op::Sqrt));
        if let Some(value) = worth.then(|| self.lifted_pure(op, args)).flatten() {
            return value;
        }
        self.emit_one(InstData::Pure { op, args: SmallVec::from_slice(args) })
    }

    /// Whether a constant mask clears all bits of a product, as in the remainder by 16 of a subgroup's first
    /// invocation.
    fn is_masked_out(&self, value: Value, mask: Value) -> bool {
        let (Some(mask), Some(InstData::Pure { op: Op::IMul, args })) =
            (self.kernel.constant(mask), self.kernel.definition(value))
        else {
            return false;
        };
        let factors = args.iter().filter_map(|&arg| self.kernel.constant(arg));
        mask >> factors.map(u64::trailing_zeros).max().unwrap_or(0).min(63) == 0
    }

    /// Hoists a vector to the entry if it is computed from the workgroup's scalars by few operations; otherwise returns
    /// it unchanged. The vector then occupies a register in the whole kernel, so it must be worth that.
    pub(crate) fn lift(&mut self, vector: Value) -> Value {
        if self.can_be_lifted(vector, MAX_HOISTED) { self.lifted(vector) } else { vector }
    }

    /// A pure operation in the entry, if its operands are available there.
    fn lifted_pure(&mut self, op: Op, args: &[Value]) -> Option<Value> {
        let all = args.iter().all(|&arg| self.can_be_lifted(arg, MAX_HOISTED));
        all.then(|| {
            let args = args.iter().map(|&arg| self.lifted(arg)).collect();
            self.emit_in_entry(InstData::Pure { op, args })
        })
    }

    fn can_be_lifted(&self, value: Value, steps: usize) -> bool {
        if self.is_workgroups(value) {
            return true;
        }
        let Some(data) = self.kernel.definition(value).filter(|_| steps > 0) else { return false };
        let mut can = match data {
            InstData::Splat { .. } => true,
            InstData::Pure { op, .. } => matches!(
                op,
                Op::SIntToFloat
                    | Op::UIntToFloat
                    | Op::FDiv
                    | Op::Sqrt
                    | Op::IAdd
                    | Op::ISub
                    | Op::SMin
                    | Op::SMax
                    | Op::UMin
                    | Op::UMax
            ),
            _ => false,
        };
        if can {
            data.for_each_use(|value| can = can && self.can_be_lifted(value, steps - 1));
        }
        can
    }

    /// A value that can be hoisted, as computed in the entry.
    fn lifted(&mut self, value: Value) -> Value {
        let Some(data) = self.kernel.definition(value).filter(|_| !self.is_workgroups(value)) else { return value };
        let mut data = data.clone();
        data.for_each_use_mut(|value| *value = self.lifted(*value));
        self.emit_in_entry(data)
    }

    /// Appends an instruction without effects to the entry, or reuses an equal one; its operands are available there.
    fn emit_in_entry(&mut self, data: InstData) -> Value {
        if let Some(&value) = self.outer.get(&data) {
            return value;
        }
        let inst = self.add(data.clone());
        let entry = self.levels[0];
        self.kernel.blocks[entry].insts.push(inst);
        let value = self.kernel.results[inst][0];
        self.level[value] = 2;
        self.outer.insert(data, value);
        value
    }

    /// Folds an operation on constants; constant masks have a bit for each lane.
    fn fold(&mut self, op: Op, bits: &[u64], vector: bool) -> Value {
        let ty = pure_result(op, vector);
        let result = match (op, bits) {
            (Op::LAnd, [a, b]) => a & b,
            (Op::LOr, [a, b]) => a | b,
            (Op::LXor, [a, b]) => a ^ b,
            (Op::LNot, [a]) => !a & if vector { ALL } else { 1 },
            (Op::BoolToInt, [a]) if vector && *a != 0 && *a != ALL => {
                let values = Box::new(std::array::from_fn(|lane| (*a >> lane & 1) as u32));
                return self.emit_one(InstData::Lanes { values });
            }
            _ => {
                let bits: SmallVec<[u64; 4]> = bits
                    .iter()
                    .zip(op.params())
                    .map(|(&a, &ty)| if ty == crate::ir::Type::Bool { a & 1 } else { a })
                    .collect();
                let result = op.fold(&bits);
                if ty == Type::Mask { result * ALL } else { result }
            }
        };
        self.constant(ty, result)
    }

    /// 64-bit arithmetic.
    pub(crate) fn wide(&mut self, op: WideOp, args: &[Value]) -> Value {
        let bits: Option<SmallVec<[u64; 2]>> = args.iter().map(|&arg| self.kernel.constant(arg)).collect();
        if let Some(bits) = bits {
            return self.constant(op.result(), op.fold(&bits));
        }
        let nothing = |value: Value| self.kernel.constant(value) == Some(0);
        match (op, args) {
            // Constants are second operands, so that address modes can absorb them.
            (WideOp::Add, &[a, b]) if self.kernel.constant(a).is_some() => self.wide(op, &[b, a]),
            (WideOp::Add, &[a, b]) if nothing(b) => a,
            (WideOp::Add, &[a, b]) if nothing(a) => b,
            (WideOp::SubSat, &[a, b]) if nothing(b) => a,
            (WideOp::Shr, &[a, b]) if nothing(b) => a,
            (WideOp::Mul, &[a, b]) if self.kernel.constant(b) == Some(1) => a,
            _ => self.emit_one(InstData::Wide { op, args: SmallVec::from_slice(args) }),
        }
    }

    /// Splits an address into a base and the constant that is added to it last.
    pub(crate) fn constant_apart(&self, address: Value) -> (Value, u64) {
        match self.kernel.definition(address) {
            Some(InstData::Wide { op: WideOp::Add, args }) if self.kernel.constant(args[1]).is_some() => {
                (args[0], self.kernel.constant(args[1]).unwrap_or_default())
            }
            _ => (address, 0),
        }
    }

    /// Broadcasts a scalar to all lanes.
    pub(crate) fn splat(&mut self, value: Value) -> Value {
        match (self.ty(value), self.kernel.constant(value)) {
            (Type::S1, Some(bits)) => self.constant(Type::Mask, bits * ALL),
            (_, Some(bits)) => self.constant(Type::V32, bits),
            _ => self.emit_one(InstData::Splat { value }),
        }
    }

    /// The lane numbers 0 to 15, `v32`.
    pub(crate) fn lane_ids(&mut self) -> Value {
        self.emit_one(InstData::Lanes { values: Box::new(std::array::from_fn(|lane| lane as u32)) })
    }

    /// The sum of a 32-bit value and a constant.
    pub(crate) fn plus(&mut self, value: Value, constant: u32) -> Value {
        let constant = self.constant(self.ty(value), u64::from(constant));
        self.pure(Op::IAdd, &[value, constant])
    }

    /// The product of a vector and a constant.
    pub(crate) fn times(&mut self, vector: Value, factor: u32) -> Value {
        if factor == 1 {
            return vector;
        }
        if factor.is_power_of_two() {
            let amount = self.constant(Type::V32, u64::from(factor.trailing_zeros()));
            return self.pure(Op::Shl, &[vector, amount]);
        }
        let factor = self.constant(Type::V32, u64::from(factor));
        self.pure(Op::IMul, &[vector, factor])
    }

    /// A value as a vector: a scalar is broadcast.
    pub(crate) fn as_vector(&mut self, value: Value) -> Value {
        if self.ty(value).is_vector() { value } else { self.splat(value) }
    }

    /// Intersection of two masks.
    pub(crate) fn and(&mut self, a: Value, b: Value) -> Value {
        match (self.kernel.constant(a), self.kernel.constant(b)) {
            (Some(ALL), _) => b,
            (_, Some(ALL)) => a,
            (Some(0), _) => a,
            (_, Some(0)) => b,
            _ if a == b => a,
            _ => self.pure(Op::LAnd, &[a, b]),
        }
    }

    /// Difference of two masks: lanes of the first that are not in the second.
    pub(crate) fn and_not(&mut self, a: Value, b: Value) -> Value {
        match self.kernel.constant(b) {
            Some(0) => a,
            Some(ALL) => self.constant(Type::Mask, 0),
            _ => {
                let not = self.pure(Op::LNot, &[b]);
                self.and(a, not)
            }
        }
    }

    /// Union of two masks.
    pub(crate) fn or(&mut self, a: Value, b: Value) -> Value {
        match (self.kernel.constant(a), self.kernel.constant(b)) {
            (Some(0), _) => b,
            (_, Some(0)) => a,
            (Some(ALL), _) => a,
            (_, Some(ALL)) => b,
            _ if a == b => a,
            _ => self.pure(Op::LOr, &[a, b]),
        }
    }

    /// Whether a mask is not empty.
    pub(crate) fn any(&mut self, mask: Value) -> Value {
        match self.kernel.constant(mask) {
            Some(bits) => self.constant(Type::S1, u64::from(bits != 0)),
            None => self.emit_one(InstData::Any { mask }),
        }
    }

    /// The bits of a mask, one for each lane.
    pub(crate) fn mask_bits(&mut self, mask: Value) -> Value {
        match self.kernel.constant(mask) {
            Some(bits) => self.s32((bits & ALL) as u32),
            None => self.emit_one(InstData::MaskBits { mask }),
        }
    }

    /// A value that matters only in the lanes of a mask; later selects fill in the other lanes. For words, the other
    /// lanes are unspecified. For booleans they are false, since a scalar may be made of the value before each lane has
    /// its own.
    pub(crate) fn only_in(&mut self, lanes: Value, value: Value) -> Value {
        let is_mask = self.ty(value) == Type::Mask && self.ty(lanes) == Type::Mask;
        if is_mask && self.kernel.constant(value).is_none() { self.and(lanes, value) } else { value }
    }

    /// `then` where the condition holds, else `otherwise`.
    pub(crate) fn select(&mut self, condition: Value, then: Value, otherwise: Value) -> Value {
        let all = if self.ty(condition) == Type::Mask { ALL } else { 1 };
        match self.kernel.constant(condition) {
            Some(0) => otherwise,
            Some(bits) if bits == all => then,
            _ if then == otherwise => then,
            _ if matches!(self.kernel.definition(otherwise), Some(InstData::Undef { .. })) => {
                self.only_in(condition, then)
            }
            _ => self.emit_one(InstData::Select { condition, then, otherwise }),
        }
    }
}

/// Whether an operation compares integers.
fn compares(op: Op) -> bool {
    matches!(op, Op::IEq | Op::INe | Op::ULt | Op::ULe | Op::SLt | Op::SLe)
}
