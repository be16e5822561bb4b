//! The features, properties and extensions that the device offers, by their names in scripts.
//!
//! Capabilities of shaders are tested with the reader (`probe.rs`); the rest is the tables below.

use super::probe;
use crate::amber::Stop;
use crate::amber::script::Need;

/// The condition under which something is offered.
#[derive(Clone, Copy)]
enum Offer {
    /// Always.
    Always,
    /// Never: the reason.
    Never(&'static str),
    /// If shaders may declare these capabilities.
    Capabilities(&'static [&'static str]),
    /// If workgroup variables may be initialized with zeros.
    ZeroedWorkgroupMemory,
}

use Offer::{Always, Capabilities, Never};

const GRAPHICS: Offer = Never("the device has no graphics");
const SPARSE: Offer = Never("the device has no sparse memory");
const RAYS: Offer = Never("the device has no ray tracing");
const COMPRESSED: Offer = Never("the device has no compressed textures");

/// `DEVICE_FEATURE`.
const FEATURES: &[(&[&str], Offer)] = &[
    // An access out of bounds reads 0 and writes nothing.
    (&["robustBufferAccess"], Always),
    (
        &[
            "fullDrawIndexUint32",
            "independentBlend",
            "geometryShader",
            "tessellationShader",
            "sampleRateShading",
            "dualSrcBlend",
            "logicOp",
            "multiDrawIndirect",
            "drawIndirectFirstInstance",
            "depthClamp",
            "depthBiasClamp",
            "fillModeNonSolid",
            "depthBounds",
            "wideLines",
            "largePoints",
            "alphaToOne",
            "multiViewport",
            "occlusionQueryPrecise",
            "pipelineStatisticsQuery",
            "vertexPipelineStoresAndAtomics",
            "fragmentStoresAndAtomics",
            "shaderTessellationAndGeometryPointSize",
            "shaderClipDistance",
            "shaderCullDistance",
            "variableMultisampleRate",
            "inheritedQueries",
            "DepthClampZeroOneFeatures.depthClampZeroOne",
            "IndexTypeUint8Features.indexTypeUint8",
            "Storage16BitFeatures.storageInputOutput16",
            "SubgroupSupportedStages.vertex",
            "SubgroupSupportedStages.tessellationControl",
            "SubgroupSupportedStages.tessellationEvaluation",
            "SubgroupSupportedStages.geometry",
            "SubgroupSupportedStages.fragment",
        ],
        GRAPHICS,
    ),
    (&["textureCompressionETC2", "textureCompressionASTC_LDR", "textureCompressionBC"], COMPRESSED),
    (
        &[
            "sparseBinding",
            "sparseResidencyBuffer",
            "sparseResidencyImage2D",
            "sparseResidencyImage3D",
            "sparseResidency2Samples",
            "sparseResidency4Samples",
            "sparseResidency8Samples",
            "sparseResidency16Samples",
            "sparseResidencyAliased",
        ],
        SPARSE,
    ),
    (&["samplerAnisotropy"], Never("the device has no anisotropic filtering")),
    (&["imageCubeArray"], Capabilities(&["SampledCubeArray"])),
    (&["shaderImageGatherExtended"], Capabilities(&["ImageGatherExtended"])),
    (&["shaderStorageImageExtendedFormats"], Capabilities(&["StorageImageExtendedFormats"])),
    (&["shaderStorageImageMultisample"], Capabilities(&["StorageImageMultisample"])),
    (&["shaderStorageImageReadWithoutFormat"], Capabilities(&["StorageImageReadWithoutFormat"])),
    (&["shaderStorageImageWriteWithoutFormat"], Capabilities(&["StorageImageWriteWithoutFormat"])),
    (&["shaderUniformBufferArrayDynamicIndexing"], Capabilities(&["UniformBufferArrayDynamicIndexing"])),
    (&["shaderSampledImageArrayDynamicIndexing"], Capabilities(&["SampledImageArrayDynamicIndexing"])),
    (&["shaderStorageBufferArrayDynamicIndexing"], Capabilities(&["StorageBufferArrayDynamicIndexing"])),
    (&["shaderStorageImageArrayDynamicIndexing"], Capabilities(&["StorageImageArrayDynamicIndexing"])),
    (&["shaderFloat64"], Capabilities(&["Float64"])),
    (&["shaderInt64"], Capabilities(&["Int64"])),
    (&["shaderInt16"], Capabilities(&["Int16"])),
    (&["shaderResourceResidency"], Capabilities(&["SparseResidency"])),
    (&["shaderResourceMinLod"], Capabilities(&["MinLod"])),
    (&["VariablePointerFeatures.variablePointers"], Capabilities(&["VariablePointers"])),
    (&["VariablePointerFeatures.variablePointersStorageBuffer"], Capabilities(&["VariablePointersStorageBuffer"])),
    (&["Float16Int8Features.shaderFloat16"], Capabilities(&["Float16"])),
    (&["Float16Int8Features.shaderInt8"], Capabilities(&["Int8"])),
    (&["VulkanMemoryModelFeatures.vulkanMemoryModel"], Capabilities(&["VulkanMemoryModel"])),
    (
        &["VulkanMemoryModelFeatures.vulkanMemoryModelDeviceScope"],
        Capabilities(&["VulkanMemoryModel", "VulkanMemoryModelDeviceScope"]),
    ),
    (&["ZeroInitializeWorkgroupMemoryFeatures.shaderZeroInitializeWorkgroupMemory"], Offer::ZeroedWorkgroupMemory),
    (&["Storage8BitFeatures.storageBuffer8BitAccess"], Capabilities(&["StorageBuffer8BitAccess"])),
    (&["Storage8BitFeatures.uniformAndStorageBuffer8BitAccess"], Capabilities(&["UniformAndStorageBuffer8BitAccess"])),
    (&["Storage8BitFeatures.storagePushConstant8"], Capabilities(&["StoragePushConstant8"])),
    (&["Storage16BitFeatures.storageBuffer16BitAccess"], Capabilities(&["StorageBuffer16BitAccess"])),
    (
        &["Storage16BitFeatures.uniformAndStorageBuffer16BitAccess"],
        Capabilities(&["UniformAndStorageBuffer16BitAccess"]),
    ),
    (&["Storage16BitFeatures.storagePushConstant16"], Capabilities(&["StoragePushConstant16"])),
    // Vulkan 1.3 has both; minSubgroupSize and maxSubgroupSize are one size, and invocations fill subgroups in order.
    (&["SubgroupSizeControl.subgroupSizeControl", "SubgroupSizeControl.computeFullSubgroups"], Always),
    (&["SubgroupSupportedOperations.basic"], Capabilities(&["GroupNonUniform"])),
    (&["SubgroupSupportedOperations.vote"], Capabilities(&["GroupNonUniformVote"])),
    (&["SubgroupSupportedOperations.arithmetic"], Capabilities(&["GroupNonUniformArithmetic"])),
    (&["SubgroupSupportedOperations.ballot"], Capabilities(&["GroupNonUniformBallot"])),
    (&["SubgroupSupportedOperations.shuffle"], Capabilities(&["GroupNonUniformShuffle"])),
    (&["SubgroupSupportedOperations.shuffleRelative"], Capabilities(&["GroupNonUniformShuffleRelative"])),
    (&["SubgroupSupportedOperations.clustered"], Capabilities(&["GroupNonUniformClustered"])),
    (&["SubgroupSupportedOperations.quad"], Capabilities(&["GroupNonUniformQuad"])),
    (&["SubgroupSupportedStages.compute"], Capabilities(&["GroupNonUniform"])),
    (
        &["ShaderSubgroupExtendedTypesFeatures.shaderSubgroupExtendedTypes"],
        Capabilities(&["GroupNonUniformArithmetic", "Int8", "Int16", "Int64", "Float16"]),
    ),
    (&["BufferDeviceAddressFeatures.bufferDeviceAddress"], Capabilities(&["PhysicalStorageBufferAddresses"])),
    (&["CooperativeMatrixFeaturesKHR.cooperativeMatrix"], Capabilities(&["CooperativeMatrixKHR"])),
    (&["ShaderLongVectorFeaturesEXT.longVector"], Never("the device has no long vectors")),
    (
        &["RayTracingPipelineFeaturesKHR.rayTracingPipeline", "AccelerationStructureFeaturesKHR.accelerationStructure"],
        RAYS,
    ),
];

/// `DEVICE_EXTENSION`: extensions that scripts use and the device supports, or whose functionality is in its core
/// version.
const EXTENSIONS: &[(&[&str], Offer)] = &[
    (
        &[
            "VK_KHR_storage_buffer_storage_class",
            "VK_KHR_get_physical_device_properties2",
            "VK_KHR_relaxed_block_layout",
            "VK_KHR_uniform_buffer_standard_layout",
            "VK_KHR_spirv_1_4",
            "VK_KHR_shader_float_controls",
            "VK_KHR_shader_non_semantic_info",
            "VK_EXT_scalar_block_layout",
            "VK_EXT_subgroup_size_control",
            "VK_KHR_maintenance1",
            "VK_KHR_maintenance2",
            "VK_KHR_maintenance3",
        ],
        Always,
    ),
    (&["VK_KHR_8bit_storage"], Capabilities(&["StorageBuffer8BitAccess"])),
    (&["VK_KHR_16bit_storage"], Capabilities(&["StorageBuffer16BitAccess"])),
    (&["VK_KHR_shader_float16_int8"], Capabilities(&["Float16", "Int8"])),
    (&["VK_KHR_variable_pointers"], Capabilities(&["VariablePointersStorageBuffer"])),
    (&["VK_KHR_vulkan_memory_model"], Capabilities(&["VulkanMemoryModel"])),
    (&["VK_KHR_buffer_device_address"], Capabilities(&["PhysicalStorageBufferAddresses"])),
    (&["VK_KHR_shader_atomic_int64"], Capabilities(&["Int64", "Int64Atomics"])),
    (&["VK_KHR_shader_clock"], Capabilities(&["ShaderClockKHR"])),
    (&["VK_KHR_shader_integer_dot_product"], Capabilities(&["DotProduct"])),
    (&["VK_KHR_shader_subgroup_rotate"], Capabilities(&["GroupNonUniformRotateKHR"])),
    (&["VK_KHR_shader_expect_assume"], Capabilities(&["ExpectAssumeKHR"])),
    (&["VK_EXT_shader_image_atomic_int64"], Capabilities(&["Int64", "Int64ImageEXT"])),
    (&["VK_EXT_descriptor_indexing"], Capabilities(&["ShaderNonUniform", "RuntimeDescriptorArray"])),
    (&["VK_KHR_zero_initialize_workgroup_memory"], Offer::ZeroedWorkgroupMemory),
    (&["VK_KHR_workgroup_memory_explicit_layout"], Capabilities(&["WorkgroupMemoryExplicitLayoutKHR"])),
];

/// Names after `FloatControlsProperties.` and before the width, with the capability that shaders declare for them.
const FLOAT_CONTROLS: [(&str, &str); 5] = [
    ("shaderSignedZeroInfNanPreserveFloat", "SignedZeroInfNanPreserve"),
    ("shaderDenormPreserveFloat", "DenormPreserve"),
    ("shaderDenormFlushToZeroFloat", "DenormFlushToZero"),
    ("shaderRoundingModeRTEFloat", "RoundingModeRTE"),
    ("shaderRoundingModeRTZFloat", "RoundingModeRTZ"),
];

/// Checks all needs of a script. The first one that is not offered is the reason to skip the script.
pub(super) fn check(needs: &[Need]) -> Result<(), Stop> {
    needs.iter().try_for_each(|need| match need {
        Need::Feature(name) => match find(FEATURES, name) {
            Some(offer) => offer.check(name),
            None => Err(Stop::Fail(format!("there is no feature `{name}`"))),
        },
        Need::Property(name) => float_control(name),
        Need::DeviceExtension(name) => match find(EXTENSIONS, name) {
            Some(offer) => offer.check(name),
            None => Err(Stop::Skip(format!("needs the extension {name}"))),
        },
        // Scripts run without an instance; extensions that are part of Vulkan 1.3 are supported.
        Need::InstanceExtension(name) if name == "VK_KHR_get_physical_device_properties2" => Ok(()),
        Need::InstanceExtension(name) => Err(Stop::Skip(format!("needs the instance extension {name}"))),
    })
}

fn find(table: &[(&[&str], Offer)], name: &str) -> Option<Offer> {
    table.iter().find(|(names, _)| names.contains(&name)).map(|(_, offer)| *offer)
}

impl Offer {
    fn check(self, name: &str) -> Result<(), Stop> {
        let missing = match self {
            Always => return Ok(()),
            Never(reason) => return Err(Stop::Skip(format!("needs {name}: {reason}"))),
            Capabilities(capabilities) => capabilities.iter().find(|one| !probe::supports(&[one], "")).copied(),
            Self::ZeroedWorkgroupMemory => {
                (!probe::supports_zeroed_workgroup_memory()).then_some("initializers of workgroup variables")
            }
        };
        match missing {
            None => Ok(()),
            Some(capability) => Err(Stop::Skip(format!("needs {name}: shaders may not use {capability}"))),
        }
    }
}

fn float_control(name: &str) -> Result<(), Stop> {
    let unknown = || Stop::Fail(format!("there is no property `{name}`"));
    let control = name.strip_prefix("FloatControlsProperties.").ok_or_else(unknown)?;
    let found = FLOAT_CONTROLS.iter().find_map(|(start, capability)| Some((*capability, control.strip_prefix(start)?)));
    let (capability, width) = found.ok_or_else(unknown)?;
    let float = match width {
        "16" => "Float16",
        "32" => "Shader",
        "64" => "Float64",
        _ => return Err(unknown()),
    };
    match [capability, float].into_iter().find(|one| !probe::supports(&[one], "")) {
        None => Ok(()),
        Some(capability) => Err(Stop::Skip(format!("needs {name}: shaders may not use {capability}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skipped(need: Need) -> Option<String> {
        match check(&[need]) {
            Err(Stop::Skip(reason)) => Some(reason),
            _ => None,
        }
    }

    #[test]
    fn every_capability_of_the_tables_is_one() {
        let lists = FEATURES.iter().chain(EXTENSIONS).filter_map(|(_, offer)| match offer {
            Capabilities(list) => Some(list.iter().copied()),
            _ => None,
        });
        for name in lists.flatten().chain(FLOAT_CONTROLS.map(|(_, capability)| capability)) {
            let assembled = spelter_shaders::front::spvasm::assemble(&format!("OpCapability {name}"));
            assert!(assembled.is_ok(), "{name}: {assembled:?}");
        }
    }

    #[test]
    fn what_the_device_offers_is_not_skipped() {
        assert_eq!(check(&[Need::Feature("robustBufferAccess".into())]), Ok(()));
        assert_eq!(check(&[Need::Feature("VulkanMemoryModelFeatures.vulkanMemoryModel".into())]), Ok(()));
        assert_eq!(check(&[Need::Property("FloatControlsProperties.shaderDenormPreserveFloat32".into())]), Ok(()));
        assert_eq!(check(&[Need::DeviceExtension("VK_KHR_storage_buffer_storage_class".into())]), Ok(()));
    }

    #[test]
    fn what_it_lacks_is_the_reason() {
        let reason = "needs geometryShader: the device has no graphics";
        assert_eq!(skipped(Need::Feature("geometryShader".into())).as_deref(), Some(reason));
        let reason = "needs the extension VK_EXT_mesh_shader";
        assert_eq!(skipped(Need::DeviceExtension("VK_EXT_mesh_shader".into())).as_deref(), Some(reason));
        for unknown in [Need::Feature("fluxCapacitor".into()), Need::Property("Foo.bar".into())] {
            assert!(matches!(check(std::slice::from_ref(&unknown)), Err(Stop::Fail(_))), "{unknown:?}");
        }
    }
}
