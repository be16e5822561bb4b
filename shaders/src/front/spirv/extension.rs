//! Extensions that a module must declare: those of its capabilities and storage classes, unless its version of SPIR-V
//! has them.
//!
//! The rules are those of the grammar (`spirv.core.grammar.json`, "extensions" and "version"). Other drivers do not
//! check them, so a module that breaks one is translated all the same; the caller decides.

use spirv::{Capability, Op, StorageClass};

use super::mixed_dot;
use super::words::{InstResult, Words, string};

/// A minor version of SPIR-V 1: that which has a feature in its core.
type Minor = u8;

/// What enables a feature: one of the extensions, or the version.
struct Enabled(&'static [&'static str], Option<Minor>);

const INDEXING: Enabled = Enabled(&["SPV_EXT_descriptor_indexing"], Some(5));
const POINTERS: Enabled = Enabled(&["SPV_KHR_variable_pointers"], Some(3));
const BYTES: Enabled = Enabled(&["SPV_KHR_8bit_storage"], Some(5));
const HALVES: Enabled = Enabled(&["SPV_KHR_16bit_storage"], Some(3));
const FLOAT_CONTROLS: Enabled = Enabled(&["SPV_KHR_float_controls"], Some(4));
const DOT_PRODUCT: Enabled = Enabled(&["SPV_KHR_integer_dot_product"], Some(6));
const MIN_MAX: Enabled = Enabled(&["SPV_EXT_shader_atomic_float_min_max"], None);
const MEMORY_MODEL: Enabled = Enabled(&["SPV_KHR_vulkan_memory_model"], Some(5));
const MIXED_DOT: Enabled = Enabled(&["SPV_VALVE_mixed_float_dot_product"], None);
const LAYOUT: Enabled = Enabled(&["SPV_KHR_workgroup_memory_explicit_layout"], None);
const ADDRESSES: Enabled = Enabled(&["SPV_KHR_physical_storage_buffer", "SPV_EXT_physical_storage_buffer"], Some(5));

/// Storage class `StorageBuffer`. `SPV_KHR_variable_pointers` depends on the first extension, so declaring it implies
/// the first.
const STORAGE_BUFFER: Enabled =
    Enabled(&["SPV_KHR_storage_buffer_storage_class", "SPV_KHR_variable_pointers"], Some(3));

/// What enables a supported capability; `None` if SPIR-V 1.0 has it. Capabilities that need a newer version, and for
/// which there is no extension, are accepted in all versions.
fn enabling(capability: Capability) -> Option<Enabled> {
    use Capability as C;
    Some(match capability {
        C::VariablePointers | C::VariablePointersStorageBuffer => POINTERS,
        C::StorageBuffer8BitAccess | C::UniformAndStorageBuffer8BitAccess | C::StoragePushConstant8 => BYTES,
        C::StorageBuffer16BitAccess | C::UniformAndStorageBuffer16BitAccess | C::StoragePushConstant16 => HALVES,
        C::ShaderNonUniform
        | C::RuntimeDescriptorArray
        | C::UniformTexelBufferArrayDynamicIndexing
        | C::StorageTexelBufferArrayDynamicIndexing
        | C::UniformBufferArrayNonUniformIndexing
        | C::SampledImageArrayNonUniformIndexing
        | C::StorageBufferArrayNonUniformIndexing
        | C::StorageImageArrayNonUniformIndexing
        | C::UniformTexelBufferArrayNonUniformIndexing
        | C::StorageTexelBufferArrayNonUniformIndexing => INDEXING,
        C::VulkanMemoryModel | C::VulkanMemoryModelDeviceScope => MEMORY_MODEL,
        C::PhysicalStorageBufferAddresses => ADDRESSES,
        C::DenormPreserve | C::SignedZeroInfNanPreserve | C::RoundingModeRTE => FLOAT_CONTROLS,
        C::DotProduct | C::DotProductInputAll | C::DotProductInput4x8Bit | C::DotProductInput4x8BitPacked => {
            DOT_PRODUCT
        }
        C::WorkgroupMemoryExplicitLayoutKHR
        | C::WorkgroupMemoryExplicitLayout8BitAccessKHR
        | C::WorkgroupMemoryExplicitLayout16BitAccessKHR => LAYOUT,
        C::AtomicFloat16MinMaxEXT | C::AtomicFloat32MinMaxEXT | C::AtomicFloat64MinMaxEXT => MIN_MAX,
        C::AtomicFloat32AddEXT | C::AtomicFloat64AddEXT => Enabled(&["SPV_EXT_shader_atomic_float_add"], None),
        C::AtomicFloat16AddEXT => Enabled(&["SPV_EXT_shader_atomic_float16_add"], None),
        C::SubgroupBallotKHR => Enabled(&["SPV_KHR_shader_ballot"], None),
        C::SubgroupVoteKHR => Enabled(&["SPV_KHR_subgroup_vote"], None),
        C::GroupNonUniformRotateKHR => Enabled(&["SPV_KHR_subgroup_rotate"], None),
        C::GroupNonUniformPartitionedEXT => {
            Enabled(&["SPV_EXT_shader_subgroup_partitioned", "SPV_NV_shader_subgroup_partitioned"], None)
        }
        C::QuadControlKHR => Enabled(&["SPV_KHR_quad_control"], None),
        C::ShaderClockKHR => Enabled(&["SPV_KHR_shader_clock"], None),
        C::ExpectAssumeKHR => Enabled(&["SPV_KHR_expect_assume"], None),
        C::DeviceGroup => Enabled(&["SPV_KHR_device_group"], Some(3)),
        C::DemoteToHelperInvocation => Enabled(&["SPV_EXT_demote_to_helper_invocation"], Some(6)),
        _ => return None,
    })
}

/// The first feature before instruction `end` that neither an `OpExtension` nor the version enables: its word, and what
/// is missing.
pub(super) fn missing(words: &Words, end: usize) -> InstResult<Option<(u32, String)>> {
    let globals = &words.insts[..end];
    let mut declared = Vec::new();
    for inst in globals.iter().filter(|inst| inst.op == Op::Extension) {
        declared.push(string(words.operands(inst))?.0);
    }
    let (major, minor) = words.version();
    for inst in globals {
        let (feature, Enabled(extensions, since)) = match (inst.op, words.operands(inst)) {
            (Op::Capability, &[word, ..]) => match Capability::from_u32(word).and_then(|c| Some((c, enabling(c)?))) {
                Some((capability, enabled)) => (format!("capability {capability:?}"), enabled),
                None if mixed_dot::capability(word).is_some() => (format!("capability {word}"), MIXED_DOT),
                None => continue,
            },
            (Op::TypePointer, &[class, ..]) if class == StorageClass::StorageBuffer as u32 => {
                ("storage class StorageBuffer".to_owned(), STORAGE_BUFFER)
            }
            _ => continue,
        };
        let is_core = since.is_some_and(|since| minor >= since);
        if is_core || declared.iter().any(|name| extensions.contains(&name.as_str())) {
            continue;
        }
        let newer = since.map_or(String::new(), |since| format!(", or SPIR-V {major}.{since}"));
        let needs = extensions.iter().map(|name| format!("OpExtension {name:?}")).collect::<Vec<_>>().join(" or ");
        return Ok(Some((inst.word, format!("{feature} needs {needs}{newer}; this is SPIR-V {major}.{minor}"))));
    }
    Ok(None)
}
