//! Enumerants and mask bits by name: their values, and the operands that they require.

use rspirv::dr::Operand;
use rspirv::grammar::{LogicalOperand, OperandKind};

/// A value with the operands that must follow it.
pub(super) type Named = (u32, Vec<LogicalOperand>);

/// The value of `name` as an operand of `kind`; masks have the form `Volatile|Aligned`. The outer `None`: `kind` is
/// neither an enumeration nor a mask; the inner one: the name is unknown.
pub(super) fn value(kind: OperandKind, name: &str) -> Option<Option<Named>> {
    // Rust's names of `2D` and `Cube` start with the kind.
    let name = if kind == OperandKind::Dim { format!("Dim{name}") } else { name.into() };
    enumerant(kind, &name).or_else(|| mask(kind, &name))
}

macro_rules! enumerants {
    ($kind:ident, $name:ident: $($enumeration:ident)*) => {
        match $kind {
            $(OperandKind::$enumeration => Some($name.parse::<spirv::$enumeration>().ok().map(|value| {
                (value as u32, Operand::$enumeration(value).additional_operands())
            })),)*
            _ => None,
        }
    };
}

fn enumerant(kind: OperandKind, name: &str) -> Option<Option<Named>> {
    enumerants!(kind, name:
        SourceLanguage ExecutionModel AddressingModel MemoryModel ExecutionMode StorageClass Dim SamplerAddressingMode
        SamplerFilterMode ImageFormat ImageChannelOrder ImageChannelDataType FPRoundingMode FPDenormMode
        QuantizationModes FPOperationMode OverflowModes LinkageType AccessQualifier HostAccessQualifier
        FunctionParameterAttribute Decoration BuiltIn Scope GroupOperation KernelEnqueueFlags Capability
        RayQueryIntersection RayQueryCommittedIntersectionType RayQueryCandidateIntersectionType PackedVectorFormat
        CooperativeMatrixLayout CooperativeMatrixUse TensorClampMode InitializationModeQualifier LoadCacheControl
        StoreCacheControl NamedMaximumNumberOfRegisters FPEncoding CooperativeVectorMatrixLayout ComponentType)
}

macro_rules! masks {
    ($kind:ident, $name:ident: $($mask:ident)*) => {
        match $kind {
            $(OperandKind::$mask => {
                let flags = || spirv::$mask::all().iter_names().map(|(name, flag)| (name, flag.bits()));
                let operands = |bit| Operand::$mask(spirv::$mask::from_bits_retain(bit)).additional_operands();
                Some(union($name, flags).map(|bits| (bits, each_bit(bits).flat_map(operands).collect())))
            })*
            _ => None,
        }
    };
}

fn mask(kind: OperandKind, name: &str) -> Option<Option<Named>> {
    masks!(kind, name:
        ImageOperands FPFastMathMode SelectionControl LoopControl FunctionControl MemorySemantics MemoryAccess
        KernelProfilingInfo RayFlags FragmentShadingRate RawAccessChainOperands CooperativeMatrixOperands
        CooperativeMatrixReduce TensorAddressingOperands MatrixMultiplyAccumulateOperands TensorOperands)
}

/// The bits of `A|B`, given the names of the mask's bits.
fn union<I: Iterator<Item = (&'static str, u32)>>(names: &str, flags: impl Fn() -> I) -> Option<u32> {
    names.split('|').try_fold(0, |bits, name| {
        let bit = match name {
            "None" | "Relaxed" => 0,
            _ => flags().find(|(flag, _)| same(flag, name) || same(flag, name.trim_end_matches("KHR")))?.1,
        };
        Some(bits | bit)
    })
}

/// Rust spells `DontUnroll` as `DONT_UNROLL`.
fn same(flag: &str, name: &str) -> bool {
    let flag = flag.chars().filter(|c| *c != '_');
    flag.eq(name.chars().map(|c| c.to_ascii_uppercase()))
}

/// The operands of a mask's bits follow in the order of the bits.
fn each_bit(bits: u32) -> impl Iterator<Item = u32> {
    (0..u32::BITS).map(|at| 1 << at).filter(move |bit| bits & bit != 0)
}
