//! Instructions of fragment shaders only: rejected by name if a kernel reaches one, and listed as such in the
//! documentation.

use spirv::Op;

/// Instructions that need derivatives, or end fragments.
const OF_FRAGMENTS: &[Op] = &[
    Op::ImageSampleImplicitLod,
    Op::ImageSampleDrefImplicitLod,
    Op::ImageSampleProjImplicitLod,
    Op::ImageSampleProjDrefImplicitLod,
    Op::ImageQueryLod,
    Op::DPdx,
    Op::DPdy,
    Op::Fwidth,
    Op::DPdxFine,
    Op::DPdyFine,
    Op::FwidthFine,
    Op::DPdxCoarse,
    Op::DPdyCoarse,
    Op::FwidthCoarse,
    Op::Kill,
    Op::TerminateInvocation,
    Op::DemoteToHelperInvocation,
    Op::IsHelperInvocationEXT,
];

/// Whether an instruction is for fragment shaders only.
pub(super) fn is_of_fragments(op: Op) -> bool {
    OF_FRAGMENTS.contains(&op)
}
