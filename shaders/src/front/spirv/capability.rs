//! Supported capabilities.

use spirv::{AddressingModel, Capability, MemoryModel};

use super::mixed_dot;
use super::words::{InstResult, operand};
use crate::ir;

/// Checks an `OpCapability`.
pub(super) fn check(operands: &[u32]) -> InstResult<Capability> {
    let word = operand(operands, 0)?;
    let known = Capability::from_u32(word).or_else(|| mixed_dot::capability(word));
    let capability = known.ok_or_else(|| format!("unknown capability {word}"))?;
    if is_supported(capability) {
        return Ok(capability);
    }
    Err(format!("capability {capability:?} is not supported"))
}

/// Whether modules may declare the capability.
pub(super) fn is_supported(capability: Capability) -> bool {
    use Capability as C;
    matches!(
        capability,
        C::Matrix
            // Needed by entry points of other stages only: no feature is required.
            | C::DerivativeControl
            | C::InputAttachment
            | C::Shader
            | C::DeviceGroup
            | C::GroupNonUniform
            | C::GroupNonUniformVote
            | C::GroupNonUniformArithmetic
            | C::GroupNonUniformBallot
            | C::GroupNonUniformShuffle
            | C::GroupNonUniformShuffleRelative
            | C::GroupNonUniformClustered
            | C::GroupNonUniformQuad
            | C::GroupNonUniformRotateKHR
            | C::GroupNonUniformPartitionedEXT
            | C::QuadControlKHR
            | C::SubgroupBallotKHR
            | C::SubgroupVoteKHR
            | C::VulkanMemoryModel
            | C::VulkanMemoryModelDeviceScope
            | C::VariablePointersStorageBuffer
            | C::VariablePointers
            | C::PhysicalStorageBufferAddresses
            | C::RuntimeDescriptorArray
            | C::Sampled1D
            | C::Image1D
            | C::SampledBuffer
            | C::ImageBuffer
            | C::SampledCubeArray
            | C::ImageCubeArray
            | C::ImageGatherExtended
            | C::ImageQuery
            | C::MinLod
            | C::StorageImageExtendedFormats
            | C::StorageImageReadWithoutFormat
            | C::StorageImageWriteWithoutFormat
            | C::UniformTexelBufferArrayDynamicIndexing
            | C::StorageTexelBufferArrayDynamicIndexing
            | C::SampledImageArrayNonUniformIndexing
            | C::StorageImageArrayNonUniformIndexing
            | C::UniformTexelBufferArrayNonUniformIndexing
            | C::StorageTexelBufferArrayNonUniformIndexing
            | C::UniformBufferArrayDynamicIndexing
            | C::StorageBufferArrayDynamicIndexing
            | C::SampledImageArrayDynamicIndexing
            | C::StorageImageArrayDynamicIndexing
            | C::ShaderNonUniform
            | C::UniformBufferArrayNonUniformIndexing
            | C::StorageBufferArrayNonUniformIndexing
            // Numbers and memory accesses of all widths.
            | C::Int8
            | C::Int16
            | C::Int64
            | C::Float16
            | C::Float64
            | C::StorageBuffer8BitAccess
            | C::UniformAndStorageBuffer8BitAccess
            | C::StoragePushConstant8
            | C::StorageBuffer16BitAccess
            | C::UniformAndStorageBuffer16BitAccess
            | C::StoragePushConstant16
            | C::Int64Atomics
            | C::AtomicFloat16AddEXT
            | C::AtomicFloat16MinMaxEXT
            | C::AtomicFloat32AddEXT
            | C::AtomicFloat32MinMaxEXT
            | C::AtomicFloat64AddEXT
            | C::AtomicFloat64MinMaxEXT
            | C::WorkgroupMemoryExplicitLayoutKHR
            | C::WorkgroupMemoryExplicitLayout8BitAccessKHR
            | C::WorkgroupMemoryExplicitLayout16BitAccessKHR
            | C::ShaderClockKHR
            // Needed by entry points of other stages only.
            | C::DemoteToHelperInvocation
            // Hints.
            | C::ExpectAssumeKHR
            | C::UniformDecoration
            | C::DotProduct
            | C::DotProductInputAll
            | C::DotProductInput4x8Bit
            | C::DotProductInput4x8BitPacked
            // Floats always keep denormals, signed zeros, infinities and NaN, and round to nearest even.
            | C::DenormPreserve
            | C::SignedZeroInfNanPreserve
            | C::RoundingModeRTE
    )
}

/// `OpMemoryModel`.
pub(super) fn memory_model(operands: &[u32]) -> InstResult<ir::MemoryModel> {
    let addressing = operand(operands, 0)?;
    let models = [AddressingModel::Logical, AddressingModel::PhysicalStorageBuffer64];
    if !models.iter().any(|&model| model as u32 == addressing) {
        let name = AddressingModel::from_u32(addressing).map_or_else(|| addressing.to_string(), |m| format!("{m:?}"));
        return Err(format!("addressing model {name} is not supported"));
    }
    let memory = operand(operands, 1)?;
    match MemoryModel::from_u32(memory) {
        // Allowed by Vulkan; `Simple` guarantees less than `GLSL450`.
        Some(MemoryModel::GLSL450 | MemoryModel::Simple) => Ok(ir::MemoryModel::Glsl450),
        Some(MemoryModel::Vulkan) => Ok(ir::MemoryModel::Vulkan),
        Some(other) => Err(format!("memory model {other:?} is not supported")),
        None => Err(format!("memory model {memory} is not supported")),
    }
}
