//! Scalars of every type as 64 bits, and operations on them.

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ty {
    Bool,
    Int(u32),
    Float(u32),
}

impl Ty {
    /// All types.
    pub(super) const ALL: [Self; 8] = [
        Self::Bool,
        Self::Int(8),
        Self::Int(16),
        Self::Int(32),
        Self::Int(64),
        Self::Float(16),
        Self::Float(32),
        Self::Float(64),
    ];

    /// The id of the type in the modules.
    pub(super) fn id(self) -> String {
        match self {
            Self::Bool => "%bool".into(),
            Self::Int(bits) => format!("%u{bits}"),
            Self::Float(bits) => format!("%f{bits}"),
        }
    }

    /// A number from two words, as the modules make it: small integers by truncation, small floats by rounding.
    pub(super) fn of_words(self, [low, high]: [u32; 2]) -> u64 {
        match self {
            Self::Bool => (low != 0).into(),
            Self::Int(64) | Self::Float(64) => u64::from(low) | u64::from(high) << 32,
            Self::Int(bits) => u64::from(low) & (u64::MAX >> (64 - bits)),
            // The tests use floats that halves can represent.
            Self::Float(_) => low.into(),
        }
    }

    /// The words that the modules store for it.
    pub(super) fn words(self, bits: u64) -> [u32; 2] {
        [bits as u32, (bits >> 32) as u32]
    }

    fn signed(self, bits: u64) -> i64 {
        let Self::Int(width) = self else { return 0 };
        (bits << (64 - width)).cast_signed() >> (64 - width)
    }

    /// A float's value.
    fn float(self, bits: u64) -> f64 {
        if self == Self::Float(64) { f64::from_bits(bits) } else { f64::from(f32::from_bits(bits as u32)) }
    }

    /// The bits of a float.
    pub(super) fn of_float(self, value: f64) -> u64 {
        if self == Self::Float(64) { value.to_bits() } else { u64::from((value as f32).to_bits()) }
    }

    fn cut(self, bits: u64) -> u64 {
        let Self::Int(width) = self else { return bits };
        bits & (u64::MAX >> (64 - width))
    }

    /// The group operations of the type, with their identities.
    pub(super) fn ops(self) -> Vec<(&'static str, u64)> {
        match self {
            Self::Bool => vec![("LogicalAnd", 1), ("LogicalOr", 0), ("LogicalXor", 0)],
            Self::Int(width) => {
                let all = u64::MAX >> (64 - width);
                vec![
                    ("IAdd", 0),
                    ("IMul", 1),
                    ("SMin", all >> 1),
                    ("UMin", all),
                    ("SMax", all ^ all >> 1),
                    ("UMax", 0),
                    ("BitwiseAnd", all),
                    ("BitwiseOr", 0),
                    ("BitwiseXor", 0),
                ]
            }
            Self::Float(_) => vec![
                ("FAdd", self.of_float(0.0)),
                ("FMul", self.of_float(1.0)),
                ("FMin", self.of_float(f64::INFINITY)),
                ("FMax", self.of_float(f64::NEG_INFINITY)),
            ],
        }
    }

    /// The operation on two numbers.
    pub(super) fn apply(self, op: &str, a: u64, b: u64) -> u64 {
        let floats = |f: fn(f64, f64) -> f64| self.of_float(f(self.float(a), self.float(b)));
        match op {
            "IAdd" => self.cut(a.wrapping_add(b)),
            "IMul" => self.cut(a.wrapping_mul(b)),
            "SMin" => {
                if self.signed(a) < self.signed(b) {
                    a
                } else {
                    b
                }
            }
            "SMax" => {
                if self.signed(a) > self.signed(b) {
                    a
                } else {
                    b
                }
            }
            "UMin" => a.min(b),
            "UMax" => a.max(b),
            "BitwiseAnd" | "LogicalAnd" => a & b,
            "BitwiseOr" | "LogicalOr" => a | b,
            "BitwiseXor" | "LogicalXor" => a ^ b,
            "FAdd" => floats(|a, b| a + b),
            "FMul" => floats(|a, b| a * b),
            "FMin" => floats(f64::min),
            "FMax" => floats(f64::max),
            _ => panic!("{op} is no operation"),
        }
    }
}

/// Pseudo-random numbers, the same each time.
pub(super) struct Random(pub(super) u64);

impl Random {
    /// The next word.
    pub(super) fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32 ^ (self.0 >> 59) as u32
    }

    /// A number of a type, as words: floats from a small set whose sums and products are exact.
    pub(super) fn number(&mut self, ty: Ty) -> [u32; 2] {
        let word = self.word();
        match ty {
            Ty::Bool => [word & 1, 0],
            Ty::Int(_) => [word, self.word()],
            Ty::Float(_) => {
                let value = [1.0, -1.0, 1.0, 2.0, -0.5, 1.0, 1.0, -1.0][word as usize % 8];
                ty.words(ty.of_float(value))
            }
        }
    }
}
