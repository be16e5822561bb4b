//! The values that may be used at a place of a program under construction, and what is known about each.

use cranelift_entity::SecondaryMap;
use spelter_shaders::ir::{Builder, Type, Value};

/// The scope in which a value, or control flow, is uniform.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Not uniform.
    #[default]
    Invocation,
    /// The invocations of a subgroup.
    Subgroup,
    /// The invocations of a workgroup.
    Workgroup,
}

/// Buffers that one value may name: those whose words have one ownership rule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Class {
    /// Read-only storage.
    #[default]
    ReadOnly,
    /// Uniform buffers.
    Uniform,
    /// Each invocation owns words.
    Own,
    /// As `Own`, but readable for the workgroup between two barriers.
    Exchange,
}

/// Kinds of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `bool`.
    Bool,
    /// `i32`.
    Int,
    /// `f32`, never a NaN.
    Float,
    /// `buffer` of a class.
    Buffer(Class),
}

impl Kind {
    /// The type of the IR.
    pub(super) fn ty(self) -> Type {
        match self {
            Self::Bool => Type::Bool,
            Self::Int => Type::I32,
            Self::Float => Type::F32,
            Self::Buffer(_) => Type::Buffer,
        }
    }

    /// The kind of values of a type that is no buffer.
    pub(super) fn of(ty: Type) -> Self {
        match ty {
            Type::Bool => Self::Bool,
            Type::I32 => Self::Int,
            Type::F32 => Self::Float,
            Type::Buffer => Self::Buffer(Class::ReadOnly),
        }
    }
}

/// All values that dominate the current place, oldest first.
#[derive(Debug, Default)]
pub(super) struct Scope {
    values: Vec<Value>,
    known: SecondaryMap<Value, Known>,
}

/// What is known about a value.
#[derive(Clone, Copy, Debug, Default)]
struct Known {
    class: Option<Class>,
    level: Level,
    /// Its level never decreases.
    constant: bool,
}

impl Scope {
    /// Adds a value, unless it is in scope already: folding returns operands, whose properties are those of their
    /// definition.
    pub(super) fn define(&mut self, value: Value, class: Option<Class>, level: Level) {
        if self.values.contains(&value) {
            return;
        }
        if !self.known[value].constant {
            self.known[value] = Known { class, level, constant: false };
        }
        self.values.push(value);
    }

    /// Records the level of a value that does not enter the scope.
    pub(super) fn note(&mut self, value: Value, level: Level) {
        if !self.known[value].constant {
            self.known[value] = Known { class: None, level, constant: false };
        }
    }

    /// Records that a value is a constant.
    pub(super) fn constant(&mut self, value: Value) {
        self.known[value] = Known { class: None, level: Level::Workgroup, constant: true };
    }

    /// The scope in which a value is uniform.
    pub(super) fn level(&self, value: Value) -> Level {
        self.known[value].level
    }

    /// Number of values.
    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    /// The values in scope, oldest first.
    pub(super) fn values(&self) -> &[Value] {
        &self.values
    }

    /// Removes all but the first `len`.
    pub(super) fn truncate(&mut self, len: usize) {
        self.values.truncate(len);
    }

    /// Restores a copy of [`Scope::values`].
    pub(super) fn restore(&mut self, values: &[Value]) {
        self.values.clear();
        self.values.extend_from_slice(values);
    }

    /// Limits the level of values from index `from` on.
    pub(super) fn lower(&mut self, from: usize, level: Level) {
        for &value in self.values.get(from..).unwrap_or_default() {
            let known = &mut self.known[value];
            if !known.constant {
                known.level = known.level.min(level);
            }
        }
    }

    /// Values of a kind that are uniform at `level` at least, latest first.
    pub(super) fn find(&self, builder: &Builder, kind: Kind, level: Level) -> Vec<Value> {
        let fits = |value: &Value| {
            let class = match kind {
                Kind::Buffer(class) => Some(class),
                _ => None,
            };
            builder.ty(*value) == kind.ty() && self.known[*value].class == class && self.level(*value) >= level
        };
        self.values.iter().rev().copied().filter(fits).collect()
    }
}

/// The common prefix of two lists.
pub(super) fn common(one: &[Value], other: &[Value]) -> Vec<Value> {
    one.iter().zip(other).take_while(|(a, b)| a == b).map(|(&value, _)| value).collect()
}
