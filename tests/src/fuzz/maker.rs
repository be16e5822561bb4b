//! The state of a program under construction, and the small steps that all parts of the generator share.

use spelter_shaders::ir::{
    Access, AtomicOp, BufferSpace, Builder, InstData, Op, Place, ScalarValue, Scope as Reach, Semantics, Value,
};

use super::feature::{Feature, Features};
use super::flow::Construct;
use super::layout::Memory;
use super::scope::{Class, Kind, Level, Scope};
use super::tape::Tape;

/// Options of the generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Operations with inexact results: engines can be compared only after lowering.
    pub transcendental: bool,
    /// Barriers after some invocations have returned.
    pub loose_returns: bool,
    /// Offsets that are not multiples of 4.
    pub unaligned: bool,
    /// Atomics; without them results are stored.
    pub atomics: bool,
    /// Makes the program count, in an additional last buffer, how often control reaches each feature.
    pub marks: bool,
}

impl Options {
    /// Everything on which all engines must agree.
    pub const ALL: Self =
        Self { transcendental: true, loose_returns: true, unaligned: true, atomics: true, marks: false };
}

/// A program under construction.
pub(super) struct Maker {
    pub(super) builder: Builder,
    pub(super) tape: Tape,
    pub(super) options: Options,
    pub(super) features: Features,
    pub(super) scope: Scope,
    pub(super) memory: Memory,
    /// The invocations that reach the current place together.
    pub(super) ctx: Level,
    /// Whether the current place is unreachable.
    pub(super) dead: bool,
    /// Constructs around the current place, outermost first.
    pub(super) constructs: Vec<Construct>,
    /// By phase number: whether the memory is open, that is, readable for all and not writable.
    pub(super) phases: Vec<bool>,
    /// Statements that may still be generated.
    pub(super) fuel: u32,
    /// Product of the trip counts of the enclosing loops.
    pub(super) work: u32,
}

impl Maker {
    /// Records a feature, and emits its mark here.
    pub(super) fn mark(&mut self, feature: Feature) {
        self.features.insert(feature);
        if let (Some(buffer), false) = (self.memory.marks, self.dead) {
            let [one, offset] = [1, feature as u32 * 4].map(|number: u32| self.constant(number));
            let place = Place::Buffer { space: BufferSpace::Storage, buffer, offset };
            // Not through `atomic`: marks must not take numbers from the tape.
            self.builder.push_value(
                InstData::Atomic {
                    op: AtomicOp::Add,
                    place,
                    value: Some(one),
                    comparator: None,
                    wide: None,
                    scope: Reach::Device,
                    semantics: Semantics(0),
                    unequal: Semantics(0),
                },
                Kind::Int.ty(),
            );
        }
    }

    pub(super) fn constant<T: ScalarValue>(&mut self, value: T) -> Value {
        let value = self.builder.constant(value);
        self.scope.constant(value);
        value
    }

    pub(super) fn define(&mut self, value: Value, kind: Kind, level: Level) -> Value {
        let class = match kind {
            Kind::Buffer(class) => Some(class),
            _ => None,
        };
        self.scope.define(value, class, level);
        value
    }

    /// The least level of some values.
    pub(super) fn level(&self, values: &[Value]) -> Level {
        values.iter().map(|&value| self.scope.level(value)).min().unwrap_or(Level::Workgroup)
    }

    /// A pure operation that does not enter the scope.
    pub(super) fn op(&mut self, op: Op, args: &[Value]) -> Value {
        let level = self.level(args);
        let value = self.builder.pure(op, args);
        if self.builder.kernel().constant(value).is_some() {
            self.scope.constant(value);
        } else {
            self.scope.note(value, level);
        }
        value
    }

    /// A pure operation on a value and a constant.
    pub(super) fn op_with(&mut self, op: Op, value: Value, number: u32) -> Value {
        let number = self.constant(number);
        self.op(op, &[value, number])
    }

    /// `base + index * stride`, saturating, outside of the scope.
    pub(super) fn element(&mut self, base: Value, index: Value, stride: u32) -> Value {
        let level = self.level(&[base, index]);
        let value = self.builder.element(base, index, stride);
        if self.builder.kernel().constant(value).is_some() {
            self.scope.constant(value);
        } else {
            self.scope.note(value, level);
        }
        value
    }

    /// A value of a kind, mostly one of the latest.
    pub(super) fn value(&mut self, kind: Kind) -> Value {
        self.value_at(kind, Level::Invocation)
    }

    /// A value of a kind that is uniform at `level`. There is always one: the first values of the scope.
    pub(super) fn value_at(&mut self, kind: Kind, level: Level) -> Value {
        let found = self.scope.find(&self.builder, kind, level);
        let among = match self.tape.pick(4) {
            0 => 3,
            1 | 2 => 10,
            _ => u32::MAX,
        };
        let at = self.tape.pick(among.min(found.len() as u32));
        found[at as usize]
    }

    /// A kind of value that can be passed along an edge.
    pub(super) fn kind(&mut self) -> Kind {
        self.tape.of(&[
            Kind::Int,
            Kind::Bool,
            Kind::Float,
            Kind::Int,
            Kind::Buffer(Class::ReadOnly),
            Kind::Int,
            Kind::Float,
            Kind::Buffer(Class::Own),
        ])
    }

    /// Memory operands, which have no effect.
    pub(super) fn access(&mut self) -> Access {
        let choice = self.tape.pick(24);
        Access {
            volatile: choice == 1,
            non_private: matches!(choice, 2 | 3),
            available_visible: (choice == 3).then_some(Reach::Device),
        }
    }

    /// An atomic with some scope and order, which do not change the result.
    pub(super) fn atomic(
        &mut self,
        op: AtomicOp,
        place: Place,
        value: Option<Value>,
        comparator: Option<Value>,
    ) -> Option<Value> {
        let (scope, semantics) = self.tape.of(&[
            (Reach::Device, Semantics(0)),
            (Reach::Workgroup, Semantics(0)),
            (Reach::Device, Semantics(0x8 | 0x40)),
            (Reach::Workgroup, Semantics(0x8 | 0x100)),
            (Reach::QueueFamily, Semantics(0x40 | 0x4)),
        ]);
        // Loads do not release and stores do not acquire.
        let semantics = match op {
            _ if op.is_load() && semantics.0 != 0 => Semantics(0x2 | 0x40),
            _ if op.is_store() && semantics.0 != 0 => Semantics(0x4 | 0x40),
            _ => semantics,
        };
        let data =
            InstData::Atomic { op, place, value, comparator, wide: None, scope, semantics, unequal: Semantics(0) };
        if op.is_store() {
            self.builder.push(data);
            return None;
        }
        Some(self.builder.push_value(data, Kind::Int.ty()))
    }
}
