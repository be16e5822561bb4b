//! Operands of instructions, with one walk for reading and for replacing them, and the types of results.

use smallvec::SmallVec;

use super::{Address, BoundedIndex, Elements, InstData, LaneAddress, Row, Type, Value, pure_result};

/// The single list of operands, for both walks: `$iter` is `iter` or `iter_mut`, `$walk` walks addresses, and
/// `$targets` gives the branch targets.
macro_rules! walk_operands {
    ($data:ident, $visit:ident, $iter:ident, $walk:ident, $targets:ident) => {
        match $data {
            Self::Const { .. }
            | Self::Lanes { .. }
            | Self::Undef { .. }
            | Self::Context { .. }
            | Self::Fence
            | Self::NextWorkgroup
            | Self::Jump { .. }
            | Self::Return => {}
            Self::Poll { lanes, .. } => lanes.$iter().flatten().for_each(&mut $visit),
            Self::Pure { args, .. } => args.$iter().for_each(&mut $visit),
            Self::Wide { args, .. } => args.$iter().for_each(&mut $visit),
            Self::Select { condition, then, otherwise } => {
                [condition, then, otherwise].into_iter().for_each(&mut $visit)
            }
            Self::Splat { value } => $visit(value),
            Self::Extract { vector, lane } => [vector, lane].into_iter().for_each(&mut $visit),
            Self::Pick { first, second, .. } => [first, second].into_iter().for_each(&mut $visit),
            Self::Permute { vector, lanes } => [vector, lanes].into_iter().for_each(&mut $visit),
            Self::FirstLane { mask } | Self::MaskBits { mask } | Self::Any { mask } => $visit(mask),
            Self::BufferBase { buffer } | Self::BufferLen { buffer } => $visit(buffer),
            Self::BufferAt { low, high } => [low, high].into_iter().for_each(&mut $visit),
            Self::ImageField { image, .. } => $visit(image),
            Self::Call { area, mask, .. } => [area, mask].into_iter().for_each(&mut $visit),
            Self::Load { address, .. } => address.$walk(&mut $visit),
            Self::Store { address, value, mask, .. } => {
                address.$walk(&mut $visit);
                [value, mask].into_iter().for_each(&mut $visit);
            }
            Self::LoadRow { row } => row.$walk(&mut $visit),
            Self::StoreRow { row, value, mask } => {
                row.$walk(&mut $visit);
                [value, mask].into_iter().for_each(&mut $visit);
            }
            Self::LoadElements { elements } => elements.$walk(&mut $visit),
            Self::StoreElements { elements, values, mask } => {
                elements.$walk(&mut $visit);
                values.$iter().chain([mask]).for_each(&mut $visit);
            }
            Self::Gather { lanes, mask } => {
                lanes.$walk(&mut $visit);
                $visit(mask);
            }
            Self::GatherElements { base, index, masks } => {
                [base, index].into_iter().chain(masks).for_each(&mut $visit);
            }
            Self::Scatter { lanes, value, mask, .. } => {
                lanes.$walk(&mut $visit);
                [value, mask].into_iter().for_each(&mut $visit);
            }
            Self::Atomic { lanes, value, comparator, wide, mask, .. } => {
                lanes.$walk(&mut $visit);
                value.$iter().chain(comparator).for_each(&mut $visit);
                wide.$iter().flatten().flatten().for_each(&mut $visit);
                $visit(mask);
            }
            Self::FrameLoad { frame, .. } => $visit(frame),
            Self::FrameStore { frame, value, .. } => [frame, value].into_iter().for_each(&mut $visit),
            Self::Zero { base, .. } => $visit(base),
            Self::Branch { condition, .. } => $visit(condition),
            Self::Switch { selector, .. } => $visit(selector),
        }
        for call in $data.$targets() {
            call.args.$iter().for_each(&mut $visit);
        }
    };
}

/// As [`walk_operands`], for the parts of addresses.
macro_rules! walk_addresses {
    ($walk:ident, $value:ty, $($reference:tt)+) => {
        impl Address {
            fn $walk($($reference)+ self, visit: &mut impl FnMut($value)) {
                visit($($reference)+ self.base);
                if let Some(BoundedIndex { index, limit }) = $($reference)+ self.index {
                    visit(index);
                    visit(limit);
                }
            }
        }

        impl Row {
            fn $walk($($reference)+ self, visit: &mut impl FnMut($value)) {
                [$($reference)+ self.base, $($reference)+ self.index, $($reference)+ self.limit].into_iter().for_each(visit);
            }
        }

        impl Elements {
            fn $walk($($reference)+ self, visit: &mut impl FnMut($value)) {
                [$($reference)+ self.base, $($reference)+ self.index].into_iter().for_each(&mut *visit);
                if let Some(segments) = $($reference)+ self.segments {
                    visit($($reference)+ segments.step);
                }
                ($($reference)+ self.limits).into_iter().for_each(visit);
            }
        }

        impl LaneAddress {
            fn $walk($($reference)+ self, visit: &mut impl FnMut($value)) {
                [$($reference)+ self.base, $($reference)+ self.index].into_iter().for_each(visit);
            }
        }
    };
}

walk_addresses!(for_each_use, &Value, &);
walk_addresses!(for_each_use_mut, &mut Value, &mut);

impl InstData {
    /// Calls `visit` with every value used, block arguments included, in the order they are printed.
    pub fn for_each_use(&self, mut visit: impl FnMut(Value)) {
        let mut visit = |value: &Value| visit(*value);
        walk_operands!(self, visit, iter, for_each_use, targets);
    }

    /// Calls `visit` with a mutable reference to every value used.
    pub fn for_each_use_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        walk_operands!(self, visit, iter_mut, for_each_use_mut, targets_mut);
    }

    /// Types of the results; `type_of` gives the types of operands.
    pub fn result_types(&self, type_of: impl Fn(Value) -> Type) -> SmallVec<[Type; 4]> {
        let one = |ty| SmallVec::from_slice(&[ty]);
        match self {
            Self::Const { ty, .. } | Self::Undef { ty } | Self::Load { ty, .. } | Self::FrameLoad { ty, .. } => {
                one(*ty)
            }
            Self::Lanes { .. } | Self::Pick { .. } | Self::LoadRow { .. } | Self::Gather { .. } => one(Type::V32),
            Self::Pure { op, args } => one(pure_result(*op, args.iter().any(|&arg| type_of(arg).is_vector()))),
            Self::Select { then, .. } => one(type_of(*then)),
            Self::Wide { op, .. } => one(op.result()),
            Self::Splat { value } => one(type_of(*value).widened().unwrap_or(Type::V32)),
            Self::Permute { .. } => one(Type::V32),
            Self::Extract { .. }
            | Self::FirstLane { .. }
            | Self::MaskBits { .. }
            | Self::BufferAt { .. }
            | Self::ImageField { .. } => one(Type::S32),
            Self::Any { .. } => one(Type::S1),
            Self::Context { field } => one(field.ty()),
            Self::BufferBase { .. } | Self::BufferLen { .. } => one(Type::S64),
            Self::GatherElements { masks, .. } => masks.iter().map(|_| Type::V32).collect(),
            Self::LoadElements { elements } => elements.limits.iter().map(|_| Type::V32).collect(),
            Self::Atomic { op, .. } if op.is_store() => SmallVec::new(),
            Self::Atomic { wide: Some(_), .. } => SmallVec::from_slice(&[Type::V32; 2]),
            Self::Atomic { .. } => one(Type::V32),
            Self::Call { .. }
            | Self::Store { .. }
            | Self::StoreRow { .. }
            | Self::StoreElements { .. }
            | Self::Scatter { .. }
            | Self::Fence
            | Self::FrameStore { .. }
            | Self::Zero { .. }
            | Self::Poll { .. }
            | Self::NextWorkgroup
            | Self::Jump { .. }
            | Self::Branch { .. }
            | Self::Switch { .. }
            | Self::Return => SmallVec::new(),
        }
    }
}
