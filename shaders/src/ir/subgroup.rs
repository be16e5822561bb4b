//! Subgroup operations: three kinds, of which the front end makes all of SPIR-V's.
//!
//! The invocations that execute one dynamic instance of the instruction take part: they are in the same iteration of
//! each loop around it. Loops are the natural ones of the control flow graph, so a block from which no path leads back
//! to the loop's header is not in the loop, and invocations converge there after the last iteration.

use super::{Op, Type};

/// Invocations of a subgroup.
const LANES: usize = 16;

/// A subgroup operation. Invocations are numbered within the subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SubgroupOp {
    /// `subgroup.ballot v0`: an `i32` with a bit for each active invocation in which the bool is true.
    Ballot,
    /// `subgroup.shuffle.f32 v0, v1`: the value of invocation `v1` (modulo 16); 0 if that is inactive.
    Shuffle(Type),
    /// `subgroup.reduce.iadd.16 v0`: all values of the invocation's cluster (of that many invocations, aligned)
    /// combined, in a tree whose leaves are the invocations in order.
    Reduce(Op, u8),
    /// `subgroup.inclusive.iadd v0`: inclusive scan, in the order of Hillis and Steele.
    Inclusive(Op),
    /// `subgroup.exclusive.iadd v0`: exclusive scan; the identity for the first invocation.
    Exclusive(Op),
}

impl SubgroupOp {
    /// The name in the text form, after `subgroup.`.
    pub fn name(self) -> String {
        match self {
            Self::Ballot => "ballot".into(),
            Self::Shuffle(ty) => format!("shuffle.{ty}"),
            Self::Reduce(op, cluster) => format!("reduce.{}.{cluster}", op.name()),
            Self::Inclusive(op) => format!("inclusive.{}", op.name()),
            Self::Exclusive(op) => format!("exclusive.{}", op.name()),
        }
    }

    /// The operation with this [`SubgroupOp::name`].
    pub fn from_name(name: &str) -> Option<Self> {
        let (kind, rest) = name.split_once('.').unwrap_or((name, ""));
        Some(match kind {
            "ballot" if rest.is_empty() => Self::Ballot,
            "shuffle" => Self::Shuffle(Type::from_name(rest)?),
            "reduce" => {
                let (op, cluster) = rest.split_once('.')?;
                Self::Reduce(Op::from_name(op)?, cluster.parse().ok()?)
            }
            "inclusive" => Self::Inclusive(Op::from_name(rest)?),
            "exclusive" => Self::Exclusive(Op::from_name(rest)?),
            _ => return None,
        })
    }

    /// Types of the operands.
    pub fn params(self) -> [Option<Type>; 2] {
        match self {
            Self::Ballot => [Some(Type::Bool), None],
            Self::Shuffle(ty) => [Some(ty), Some(Type::I32)],
            Self::Reduce(..) | Self::Inclusive(_) | Self::Exclusive(_) => [Some(self.result()), None],
        }
    }

    /// Type of the result.
    pub fn result(self) -> Type {
        match self {
            Self::Ballot => Type::I32,
            Self::Shuffle(ty) => ty,
            Self::Reduce(op, _) | Self::Inclusive(op) | Self::Exclusive(op) => op.result(),
        }
    }

    /// Checks the operation's parameters.
    pub fn check(self) -> Result<(), String> {
        match self {
            Self::Ballot | Self::Shuffle(Type::I32 | Type::F32) => {}
            Self::Shuffle(ty) => return Err(format!("there is no shuffle of {ty}")),
            Self::Reduce(_, cluster) if !(cluster.is_power_of_two() && usize::from(cluster) <= LANES) => {
                return Err(format!("there are no clusters of {cluster}"));
            }
            Self::Reduce(op, _) | Self::Inclusive(op) | Self::Exclusive(op) => {
                identity(op).ok_or_else(|| format!("{} does not combine the values of a subgroup", op.name()))?;
            }
        }
        Ok(())
    }

    /// Whether all active invocations get the same result.
    pub fn is_uniform(self) -> bool {
        matches!(self, Self::Ballot) || matches!(self, Self::Reduce(_, cluster) if usize::from(cluster) == LANES)
    }

    /// The results by invocation, from the operands of the active invocations: used by the interpreter, and the
    /// reference for all back ends.
    pub fn run(self, active: u16, first: &[u64; LANES], second: &[u64; LANES]) -> [u64; LANES] {
        let is_active = |lane: usize| active >> lane & 1 != 0;
        match self {
            Self::Ballot => {
                [(0..LANES).filter(|&lane| is_active(lane) && first[lane] != 0).map(|lane| 1 << lane).sum(); LANES]
            }
            Self::Shuffle(_) => std::array::from_fn(|lane| {
                let from = second[lane] as usize % LANES;
                if is_active(from) { first[from] } else { 0 }
            }),
            Self::Reduce(op, cluster) => {
                let mut values = with_identity(op, active, first);
                for distance in (0..4).map(|step| 1 << step).take_while(|&distance| distance < usize::from(cluster)) {
                    let before = values;
                    values = std::array::from_fn(|lane| op.fold(&[before[lane & !distance], before[lane | distance]]));
                }
                values
            }
            Self::Inclusive(op) => inclusive(op, active, first),
            Self::Exclusive(op) => {
                let values = inclusive(op, active, first);
                std::array::from_fn(|lane| lane.checked_sub(1).map_or(identity_of(op), |below| values[below]))
            }
        }
    }
}

fn inclusive(op: Op, active: u16, values: &[u64; LANES]) -> [u64; LANES] {
    let mut values = with_identity(op, active, values);
    for distance in [1, 2, 4, 8] {
        let before = values;
        let below = |lane: usize| lane.checked_sub(distance).map_or(identity_of(op), |below| before[below]);
        values = std::array::from_fn(|lane| op.fold(&[below(lane), before[lane]]));
    }
    values
}

fn with_identity(op: Op, active: u16, values: &[u64; LANES]) -> [u64; LANES] {
    std::array::from_fn(|lane| if active >> lane & 1 != 0 { values[lane] } else { identity_of(op) })
}

fn identity_of(op: Op) -> u64 {
    identity(op).unwrap_or(0).into()
}

/// The identity of a reduction's operation, as in SPIR-V's table of group operations; `None` for operations without
/// one.
pub fn identity(op: Op) -> Option<u32> {
    Some(match op {
        Op::IAdd | Op::Or | Op::Xor | Op::UMax => 0,
        Op::IMul => 1,
        Op::And | Op::UMin => u32::MAX,
        Op::SMin => i32::MAX.cast_unsigned(),
        Op::SMax => i32::MIN.cast_unsigned(),
        Op::FAdd => 0f32.to_bits(),
        Op::FMul => 1f32.to_bits(),
        Op::FMin => f32::INFINITY.to_bits(),
        Op::FMax => f32::NEG_INFINITY.to_bits(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_combined_as_by_a_loop() {
        let values: [u64; LANES] = std::array::from_fn(|lane| (lane as u64 * 0x9e37 + 3) & 0xffff);
        for op in [Op::IAdd, Op::IMul, Op::And, Op::Or, Op::Xor, Op::UMin, Op::UMax, Op::SMin, Op::SMax] {
            for active in [0xffff, 0x0001, 0x8000, 0x5a3c, 0x0fff, 0xfffe] {
                let lanes: Vec<usize> = (0..LANES).filter(|lane| active >> lane & 1 != 0).collect();
                let together = |of: &dyn Fn(usize) -> bool| {
                    let values = lanes.iter().filter(|&&lane| of(lane)).map(|&lane| values[lane]);
                    values.fold(identity_of(op), |a, b| op.fold(&[a, b]))
                };
                let inclusive = SubgroupOp::Inclusive(op).run(active, &values, &values);
                let exclusive = SubgroupOp::Exclusive(op).run(active, &values, &values);
                for &lane in &lanes {
                    assert_eq!(inclusive[lane], together(&|other| other <= lane), "{op:?} {active:x} {lane}");
                    assert_eq!(exclusive[lane], together(&|other| other < lane), "{op:?} {active:x} {lane}");
                    for cluster in [1usize, 2, 4, 8, 16] {
                        let reduced = SubgroupOp::Reduce(op, cluster as u8).run(active, &values, &values);
                        let same = |other: usize| other / cluster == lane / cluster;
                        assert_eq!(reduced[lane], together(&same), "{op:?} {active:x} {lane} {cluster}");
                    }
                }
            }
        }
    }

    #[test]
    fn inactive_invocations_have_zero() {
        let values = std::array::from_fn(|lane| lane as u64 + 1);
        let from = std::array::from_fn(|lane| lane as u64 + 15);
        let got = SubgroupOp::Shuffle(Type::I32).run(0x7ffe, &values, &from);
        assert_eq!(got, [0, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
        assert_eq!(SubgroupOp::Ballot.run(0x00f1, &[1; LANES], &values)[4], 0xf1);
    }
}
