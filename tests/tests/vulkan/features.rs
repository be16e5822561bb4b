//! The test of each feature and extension through the C API. `docs/vulkan.md` lists the advertised ones, as a test of
//! the driver checks; here each has a line, and a line whose test does not exist fails.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use spelter_tests::case::Case;
use spelter_tests::corpus;

/// A test that uses a feature or an extension.
#[derive(Clone, Copy, Debug)]
enum Use {
    /// The kernels that declare the capability, at least one: each is run through the C API.
    Capability(&'static str),
    /// A kernel.
    Kernel(&'static str),
    /// A kernel in a mode of passing descriptors ([`crate::run::Mode`]).
    Mode(&'static str, &'static str),
    /// A test, by file and function.
    Test(&'static str, &'static str),
}

use Use::{Capability as C, Kernel as K, Mode as M, Test as T};

const COMPUTE: &str = "driver/icd/tests/compute.rs";
const DESCRIPTORS: &str = "driver/icd/tests/compute/descriptors.rs";
const OBJECTS: &str = "driver/icd/tests/objects.rs";

/// Each advertised feature, by its name in `ash`.
const FEATURES: &[(&str, Use)] = &[
    ("conditional_rendering", T(COMPUTE, "imported_memory_and_conditions")),
    ("robust_buffer_access", K("memory/out_of_bounds.spvasm")),
    ("image_cube_array", K("images/compare_and_cube.wgsl")),
    ("shader_image_gather_extended", C("ImageGatherExtended")),
    ("shader_storage_image_extended_formats", C("StorageImageExtendedFormats")),
    ("shader_storage_image_read_without_format", C("StorageImageReadWithoutFormat")),
    ("shader_storage_image_write_without_format", C("StorageImageWriteWithoutFormat")),
    ("shader_uniform_buffer_array_dynamic_indexing", C("UniformBufferArrayDynamicIndexing")),
    ("shader_sampled_image_array_dynamic_indexing", C("SampledImageArrayDynamicIndexing")),
    ("shader_storage_buffer_array_dynamic_indexing", C("StorageBufferArrayDynamicIndexing")),
    ("shader_storage_image_array_dynamic_indexing", C("StorageImageArrayDynamicIndexing")),
    ("shader_float64", C("Float64")),
    ("shader_int64", C("Int64")),
    ("shader_int16", C("Int16")),
    ("shader_resource_min_lod", C("MinLod")),
    ("shader_maximal_reconvergence", K("subgroups/rotate.spvasm")),
    ("shader_subgroup_uniform_control_flow", K("subgroups/uniform_control_flow.spvasm")),
    ("shader_image_float32_atomics", K("images/float_atomics.spvasm")),
    ("shader_image_float32_atomic_add", K("images/float_atomics.spvasm")),
    ("shader_image_float32_atomic_min_max", K("images/float_atomics.spvasm")),
    ("pipeline_executable_info", T("driver/icd/tests/messages.rs", "executables_have_statistics_and_representations")),
    ("robust_buffer_access2", K("memory/out_of_bounds.spvasm")),
    ("robust_image_access2", K("images/atomics.spvasm")),
    ("null_descriptor", T(DESCRIPTORS, "copied_and_null_descriptors")),
    ("shader_buffer_float16_atomics", K("types/half_atomics.spvasm")),
    ("shader_buffer_float16_atomic_add", C("AtomicFloat16AddEXT")),
    ("shader_buffer_float16_atomic_min_max", C("AtomicFloat16MinMaxEXT")),
    ("shader_shared_float16_atomics", K("types/half_atomics.spvasm")),
    ("shader_shared_float16_atomic_add", K("types/half_atomics.spvasm")),
    ("shader_shared_float16_atomic_min_max", K("types/half_atomics.spvasm")),
    ("shader_buffer_float32_atomic_min_max", C("AtomicFloat32MinMaxEXT")),
    ("shader_buffer_float64_atomic_min_max", C("AtomicFloat64MinMaxEXT")),
    ("shader_shared_float32_atomic_min_max", K("types/atomics.spvasm")),
    ("shader_shared_float64_atomic_min_max", K("types/atomics.spvasm")),
    ("shader_buffer_float32_atomics", K("types/atomics.spvasm")),
    ("shader_buffer_float32_atomic_add", C("AtomicFloat32AddEXT")),
    ("shader_buffer_float64_atomics", K("types/atomics.spvasm")),
    ("shader_buffer_float64_atomic_add", C("AtomicFloat64AddEXT")),
    ("shader_shared_float32_atomics", K("types/atomics.spvasm")),
    ("shader_shared_float32_atomic_add", K("types/atomics.spvasm")),
    ("shader_shared_float64_atomics", K("types/atomics.spvasm")),
    ("shader_shared_float64_atomic_add", K("types/atomics.spvasm")),
    ("shader_subgroup_clock", C("ShaderClockKHR")),
    ("shader_device_clock", C("ShaderClockKHR")),
    ("shader_expect_assume", C("ExpectAssumeKHR")),
    ("shader_subgroup_rotate", C("GroupNonUniformRotateKHR")),
    ("shader_subgroup_rotate_clustered", K("subgroups/rotate.spvasm")),
    ("storage_buffer16_bit_access", C("StorageBuffer16BitAccess")),
    ("uniform_and_storage_buffer16_bit_access", C("UniformAndStorageBuffer16BitAccess")),
    ("storage_push_constant16", C("StoragePushConstant16")),
    ("variable_pointers_storage_buffer", C("VariablePointersStorageBuffer")),
    ("variable_pointers", C("VariablePointers")),
    ("sampler_mirror_clamp_to_edge", K("images/mirror_once.spvasm")),
    ("storage_buffer8_bit_access", C("StorageBuffer8BitAccess")),
    ("uniform_and_storage_buffer8_bit_access", C("UniformAndStorageBuffer8BitAccess")),
    ("storage_push_constant8", C("StoragePushConstant8")),
    ("shader_buffer_int64_atomics", C("Int64Atomics")),
    ("shader_shared_int64_atomics", K("types/atomics.spvasm")),
    ("shader_float16", C("Float16")),
    ("shader_int8", C("Int8")),
    ("descriptor_indexing", C("RuntimeDescriptorArray")),
    ("shader_uniform_texel_buffer_array_dynamic_indexing", C("UniformTexelBufferArrayDynamicIndexing")),
    ("shader_storage_texel_buffer_array_dynamic_indexing", C("StorageTexelBufferArrayDynamicIndexing")),
    ("shader_uniform_buffer_array_non_uniform_indexing", C("UniformBufferArrayNonUniformIndexing")),
    ("shader_sampled_image_array_non_uniform_indexing", C("SampledImageArrayNonUniformIndexing")),
    ("shader_storage_buffer_array_non_uniform_indexing", C("StorageBufferArrayNonUniformIndexing")),
    ("shader_storage_image_array_non_uniform_indexing", C("StorageImageArrayNonUniformIndexing")),
    ("shader_uniform_texel_buffer_array_non_uniform_indexing", C("UniformTexelBufferArrayNonUniformIndexing")),
    ("shader_storage_texel_buffer_array_non_uniform_indexing", C("StorageTexelBufferArrayNonUniformIndexing")),
    ("descriptor_binding_uniform_buffer_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    ("descriptor_binding_sampled_image_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    ("descriptor_binding_storage_image_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    ("descriptor_binding_storage_buffer_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    ("descriptor_binding_uniform_texel_buffer_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    ("descriptor_binding_storage_texel_buffer_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    (
        "descriptor_binding_update_unused_while_pending",
        T(OBJECTS, "unused_bindings_are_written_while_a_set_is_pending"),
    ),
    ("descriptor_binding_partially_bound", K("memory/runtime_descriptors.spvasm")),
    ("descriptor_binding_variable_descriptor_count", M("variable", "memory/runtime_descriptors.spvasm")),
    ("runtime_descriptor_array", C("RuntimeDescriptorArray")),
    ("scalar_block_layout", K("types/layout.spvasm")),
    ("uniform_buffer_standard_layout", K("types/layout.spvasm")),
    ("shader_subgroup_extended_types", K("subgroups/extended_types.spvasm")),
    ("separate_depth_stencil_layouts", T(OBJECTS, "depth_has_separate_layouts")),
    ("host_query_reset", T(COMPUTE, "timestamps_count_nanoseconds")),
    ("timeline_semaphore", T(COMPUTE, "timelines_order_queues_and_the_host")),
    ("buffer_device_address", C("PhysicalStorageBufferAddresses")),
    ("vulkan_memory_model", C("VulkanMemoryModel")),
    ("vulkan_memory_model_device_scope", C("VulkanMemoryModelDeviceScope")),
    ("vulkan_memory_model_availability_visibility_chains", K("atomics/availability_chain.spvasm")),
    ("subgroup_broadcast_dynamic_id", K("subgroups/extended_types.spvasm")),
    ("robust_image_access", K("images/atomics.spvasm")),
    ("inline_uniform_block", T(DESCRIPTORS, "push_descriptors_templates_and_inline_blocks")),
    ("descriptor_binding_inline_uniform_block_update_after_bind", M("late", "memory/indexed_arrays.spvasm")),
    ("pipeline_creation_cache_control", T("driver/icd/tests/caches.rs", "cached_pipelines_are_not_compiled_again")),
    ("private_data", T(OBJECTS, "objects_have_private_data")),
    ("shader_demote_to_helper_invocation", C("DemoteToHelperInvocation")),
    ("shader_terminate_invocation", K("builtins/fragment_beside.spvasm")),
    ("subgroup_size_control", T(OBJECTS, "subgroups_are_full_and_have_the_required_size")),
    ("compute_full_subgroups", T(OBJECTS, "subgroups_are_full_and_have_the_required_size")),
    ("synchronization2", T(COMPUTE, "copies_fills_and_updates_agree")),
    ("shader_zero_initialize_workgroup_memory", K("memory/workgroup_null.spvasm")),
    ("shader_integer_dot_product", C("DotProduct")),
    ("maintenance4", K("constants/local_size_id.spvasm")),
    ("workgroup_memory_explicit_layout", C("WorkgroupMemoryExplicitLayoutKHR")),
    ("workgroup_memory_explicit_layout_scalar_block_layout", K("types/workgroup_blocks.spvasm")),
    ("workgroup_memory_explicit_layout8_bit_access", C("WorkgroupMemoryExplicitLayout8BitAccessKHR")),
    ("maintenance5", T(NEWER, "maintenance5_has_wider_flags")),
    ("host_image_copy", T(NEWER, "the_host_copies_from_and_to_images")),
    ("global_priority_query", T(NEWER, "queues_have_one_global_priority")),
    ("push_descriptor", M("pushed", "memory/indexed_arrays.spvasm")),
    ("maintenance6", T(COMPUTE, "newer_commands_act_as_older_ones")),
    ("pipeline_robustness", T(COMPUTE, "all_pipelines_are_robust")),
    ("texel_buffer_alignment", T(CHAINS, "texel_buffers_have_the_reported_alignment")),
    ("workgroup_memory_explicit_layout16_bit_access", K("types/workgroup_blocks.spvasm")),
];

const CACHES: &str = "driver/icd/tests/caches.rs";
const TRIALS: &str = "tests/tests/vulkan/main.rs";
const NEWER: &str = "driver/icd/tests/newer.rs";
const CHAINS: &str = "driver/icd/tests/chains.rs";
const MESSAGES: &str = "driver/icd/tests/messages.rs";

/// Each advertised extension, of the instance and of the device.
const EXTENSIONS: &[(&str, Use)] = &[
    ("VK_EXT_debug_report", T(MESSAGES, "debug_report_callbacks_receive_messages")),
    ("VK_EXT_debug_utils", T(MESSAGES, "messages_name_objects_and_labels_and_stay_in_their_instance")),
    ("VK_KHR_device_group_creation", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_external_memory_capabilities", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_get_physical_device_properties2", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_external_fence_capabilities", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_external_semaphore_capabilities", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_EXT_calibrated_timestamps", T(CHAINS, "clocks_are_read_together")),
    ("VK_EXT_pipeline_robustness", T(COMPUTE, "all_pipelines_are_robust")),
    ("VK_EXT_texel_buffer_alignment", T(CHAINS, "texel_buffers_have_the_reported_alignment")),
    ("VK_KHR_calibrated_timestamps", T(CHAINS, "clocks_are_read_together")),
    ("VK_KHR_external_fence", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_external_semaphore", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_maintenance5", T(NEWER, "maintenance5_reports_layouts_of_images_that_are_not_created")),
    ("VK_EXT_host_image_copy", T(NEWER, "the_host_copies_from_and_to_images")),
    ("VK_EXT_global_priority", T(NEWER, "queues_have_one_global_priority")),
    ("VK_EXT_global_priority_query", T(NEWER, "queues_have_one_global_priority")),
    ("VK_KHR_global_priority", T(NEWER, "queues_have_one_global_priority")),
    ("VK_KHR_maintenance6", T(COMPUTE, "newer_commands_act_as_older_ones")),
    ("VK_KHR_map_memory2", T(COMPUTE, "newer_commands_act_as_older_ones")),
    ("VK_KHR_shader_subgroup_uniform_control_flow", T(TRIALS, "uniform_control_flow")),
    ("VK_EXT_conditional_rendering", T(COMPUTE, "imported_memory_and_conditions")),
    ("VK_EXT_descriptor_indexing", C("RuntimeDescriptorArray")),
    ("VK_EXT_external_memory_host", M("imported", "pointers/address_list.spvasm")),
    ("VK_EXT_host_query_reset", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_EXT_image_robustness", K("images/atomics.spvasm")),
    ("VK_EXT_inline_uniform_block", M("inline", "memory/indexed_arrays.spvasm")),
    ("VK_EXT_memory_budget", T(CHAINS, "the_memory_budget_includes_usage")),
    ("VK_EXT_pipeline_creation_cache_control", T(CACHES, "cached_pipelines_are_not_compiled_again")),
    ("VK_EXT_pipeline_creation_feedback", T(CACHES, "cached_pipelines_are_not_compiled_again")),
    ("VK_EXT_private_data", T(OBJECTS, "objects_have_private_data")),
    ("VK_EXT_robustness2", K("memory/out_of_bounds.spvasm")),
    ("VK_EXT_scalar_block_layout", K("types/layout.spvasm")),
    ("VK_EXT_shader_atomic_float", C("AtomicFloat32AddEXT")),
    ("VK_EXT_shader_atomic_float2", C("AtomicFloat32MinMaxEXT")),
    ("VK_EXT_shader_demote_to_helper_invocation", C("DemoteToHelperInvocation")),
    ("VK_EXT_subgroup_size_control", T(OBJECTS, "subgroups_are_full_and_have_the_required_size")),
    ("VK_EXT_tooling_info", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_16bit_storage", C("StorageBuffer16BitAccess")),
    ("VK_KHR_8bit_storage", C("StorageBuffer8BitAccess")),
    ("VK_KHR_bind_memory2", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_buffer_device_address", C("PhysicalStorageBufferAddresses")),
    ("VK_KHR_copy_commands2", T(COMPUTE, "copies_fills_and_updates_agree")),
    ("VK_KHR_dedicated_allocation", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_descriptor_update_template", T(DESCRIPTORS, "push_descriptors_templates_and_inline_blocks")),
    ("VK_KHR_device_group", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_driver_properties", T(CHAINS, "chains_are_filled_and_stay_chains")),
    ("VK_KHR_external_memory", T(COMPUTE, "imported_memory_and_conditions")),
    ("VK_KHR_format_feature_flags2", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_get_memory_requirements2", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_image_format_list", T(OBJECTS, "image_views_have_the_formats_of_the_image_format_list")),
    ("VK_KHR_maintenance1", T(CHAINS, "extension_commands_act_as_their_core_versions")),
    ("VK_KHR_maintenance2", T(OBJECTS, "image_views_have_the_formats_of_the_image_format_list")),
    ("VK_KHR_maintenance3", T(OBJECTS, "the_last_inline_block_of_a_set_has_a_variable_size")),
    ("VK_KHR_maintenance4", K("constants/local_size_id.spvasm")),
    ("VK_KHR_pipeline_executable_properties", T(MESSAGES, "executables_have_statistics_and_representations")),
    ("VK_KHR_push_descriptor", M("pushed", "memory/indexed_arrays.spvasm")),
    ("VK_KHR_relaxed_block_layout", K("types/layout.spvasm")),
    ("VK_KHR_sampler_mirror_clamp_to_edge", K("images/mirror_once.spvasm")),
    ("VK_KHR_separate_depth_stencil_layouts", T(OBJECTS, "depth_has_separate_layouts")),
    ("VK_KHR_shader_atomic_int64", C("Int64Atomics")),
    ("VK_KHR_shader_clock", C("ShaderClockKHR")),
    ("VK_KHR_shader_expect_assume", C("ExpectAssumeKHR")),
    ("VK_KHR_shader_float16_int8", C("Float16")),
    ("VK_KHR_shader_float_controls", C("DenormPreserve")),
    ("VK_KHR_shader_integer_dot_product", C("DotProduct")),
    ("VK_KHR_shader_maximal_reconvergence", T(TRIALS, "maximal_reconvergence")),
    ("VK_KHR_shader_non_semantic_info", T(TRIALS, "kernel_prints_are_reported")),
    ("VK_KHR_shader_subgroup_extended_types", K("subgroups/extended_types.spvasm")),
    ("VK_KHR_shader_subgroup_rotate", C("GroupNonUniformRotateKHR")),
    ("VK_KHR_shader_terminate_invocation", K("builtins/fragment_beside.spvasm")),
    ("VK_KHR_spirv_1_4", K("constants/local_size_id.spvasm")),
    ("VK_KHR_storage_buffer_storage_class", K("memory/out_of_bounds.spvasm")),
    ("VK_KHR_synchronization2", T(COMPUTE, "copies_fills_and_updates_agree")),
    ("VK_KHR_timeline_semaphore", T(COMPUTE, "timelines_order_queues_and_the_host")),
    ("VK_KHR_uniform_buffer_standard_layout", K("types/layout.spvasm")),
    ("VK_KHR_variable_pointers", C("VariablePointers")),
    ("VK_KHR_vulkan_memory_model", C("VulkanMemoryModel")),
    ("VK_KHR_workgroup_memory_explicit_layout", C("WorkgroupMemoryExplicitLayoutKHR")),
    ("VK_KHR_zero_initialize_workgroup_memory", K("memory/workgroup_null.spvasm")),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names between backticks of the paragraphs of docs/vulkan.md that start with one of these.
fn names_of(starts: &[&str]) -> BTreeSet<String> {
    let page = std::fs::read_to_string(root().join("docs/vulkan.md")).unwrap();
    let paragraphs = page.split("\n\n").filter(|text| starts.iter().any(|start| text.starts_with(start)));
    paragraphs.flat_map(|text| text.split('`').skip(1).step_by(2)).map(str::to_owned).collect()
}

/// The supported features in the page's lists.
fn advertised() -> BTreeSet<String> {
    names_of(&["There: "])
}

/// Kernels by the capabilities that they declare (WGSL translated to SPIR-V), without those that must fail.
fn by_capability() -> BTreeMap<u32, BTreeSet<String>> {
    let mut all: BTreeMap<u32, BTreeSet<String>> = BTreeMap::new();
    for path in corpus::files() {
        let Ok(case) = Case::read(&path) else { continue };
        let (None, Ok(words)) = (&case.error, corpus::spirv(&case)) else { continue };
        let mut at = 5;
        // OpCapability comes first.
        while words.get(at).is_some_and(|word| word & 0xffff == 17) {
            all.entry(words[at + 1]).or_default().insert(corpus::name(&path));
            at += 2;
        }
    }
    all
}

/// The reason why a use does not exist, if it does not.
fn problem(of: Use, kernels: &BTreeMap<u32, BTreeSet<String>>) -> Option<String> {
    match of {
        Use::Capability(name) => {
            let text = format!("OpCapability {name}\nOpMemoryModel Logical GLSL450");
            let word = spelter_shaders::front::spvasm::assemble(&text).ok().and_then(|words| words.get(6).copied());
            let used = word.is_some_and(|word| kernels.contains_key(&word));
            (!used).then(|| format!("no kernel declares {name}"))
        }
        Use::Kernel(name) => {
            let there = corpus::files().iter().any(|path| corpus::name(path) == name);
            (!there).then(|| format!("there is no kernel {name}"))
        }
        Use::Mode(mode, name) => {
            let known = crate::run::Mode::ALL.iter().any(|(known, _)| *known == mode);
            if known { problem(Use::Kernel(name), kernels) } else { Some(format!("there is no mode {mode}")) }
        }
        Use::Test(file, test) => {
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            let mut after = text.split("#[test]\n").skip(1);
            let there = after.any(|rest| rest.lines().take(2).any(|line| line.starts_with(&format!("fn {test}()"))))
                || (file == TRIALS && text.contains(&format!("\"{test}\", ")));
            (!there).then(|| format!("there is no test {test} in {file}"))
        }
    }
}

/// The names in the page's lists of extensions.
fn extensions() -> BTreeSet<String> {
    names_of(&["Of the instance: ", "Of the device: "])
}

/// Checks that each advertised feature has an existing test, and that each line has an advertised feature.
pub(crate) fn check() -> Result<(), String> {
    check_list(&advertised(), FEATURES, 80)
}

/// The same for extensions.
pub(crate) fn check_extensions() -> Result<(), String> {
    check_list(&extensions(), EXTENSIONS, 60)
}

fn check_list(advertised: &BTreeSet<String>, list: &[(&str, Use)], least: usize) -> Result<(), String> {
    let kernels = by_capability();
    let listed: BTreeMap<_, _> = list.iter().map(|&(name, of)| (name.to_owned(), of)).collect();
    let mut wrong: Vec<String> = Vec::new();
    wrong.extend(advertised.iter().filter(|name| !listed.contains_key(*name)).map(|name| format!("{name}: no test")));
    wrong
        .extend(listed.keys().filter(|name| !advertised.contains(*name)).map(|name| format!("{name}: not advertised")));
    let problems = listed.iter().filter_map(|(name, of)| Some(format!("{name}: {}", problem(*of, &kernels)?)));
    wrong.extend(problems);
    if advertised.len() < least {
        wrong.push(format!("docs/vulkan.md names {} only", advertised.len()));
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}
