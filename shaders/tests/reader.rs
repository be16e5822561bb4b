//! What the SPIR-V reader tells about a kernel beside its instructions: bindings, variables, memory operands, lines.

use std::collections::BTreeMap;

use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;
use spelter_shaders::ir::{Access, BindingData, BindingKind, Inst, InstData, Kernel, Merge, Scope, VariableSpace};

fn wgsl(source: &str) -> Kernel {
    let module = Module::from_wgsl(source).unwrap_or_else(|error| panic!("{error}"));
    let entry = module.entry_points().next().expect("an entry point").to_owned();
    module.kernel(&entry, &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"))
}

fn assembled(text: &str) -> Vec<u32> {
    spvasm::assemble(text).unwrap_or_else(|error| panic!("{error}"))
}

fn spirv(text: &str) -> Kernel {
    let module = Module::from_spirv(&assembled(text)).unwrap_or_else(|error| panic!("{error}"));
    module.kernel("main", &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"))
}

fn insts(kernel: &Kernel) -> impl Iterator<Item = Inst> {
    kernel.layout.iter().flat_map(|&block| kernel.blocks[block].insts.iter().copied())
}

/// A module with one entry point: its capabilities and memory model, decorations, what it declares, its body.
fn module([capabilities, model]: [&str; 2], decorations: &str, declarations: &str, body: &str) -> String {
    format!(
        "OpCapability Shader
        {capabilities}
        OpMemoryModel Logical {model}
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        OpDecorate %words ArrayStride 4
        OpDecorate %Block Block
        OpMemberDecorate %Block 0 Offset 0
        OpDecorate %buffer DescriptorSet 0
        OpDecorate %buffer Binding 0
        {decorations}
        %void = OpTypeVoid
        %fn = OpTypeFunction %void
        %u32 = OpTypeInt 32 0
        %0 = OpConstant %u32 0
        %1 = OpConstant %u32 1
        %2 = OpConstant %u32 2
        {declarations}
        %main = OpFunction %void None %fn
        %entry = OpLabel
        {body}
        OpReturn
        OpFunctionEnd"
    )
}

/// A module with one buffer of words at 0.0 and a body.
fn with_body(capabilities: &str, model: &str, decorations: &str, body: &str) -> String {
    let declarations = "%5 = OpConstant %u32 5
        %words = OpTypeRuntimeArray %u32
        %Block = OpTypeStruct %words
        %ptr_Block = OpTypePointer StorageBuffer %Block
        %ptr_word = OpTypePointer StorageBuffer %u32
        %buffer = OpVariable %ptr_Block StorageBuffer";
    module([capabilities, model], decorations, declarations, body)
}

/// A module with these bytes in the place of each `~` of its strings.
fn with_bytes(text: &str, bytes: &[u8]) -> Vec<u32> {
    let mut next = bytes.iter().cycle();
    let replaced = |byte: u8| if byte == b'~' { *next.next().expect("there are bytes") } else { byte };
    let all: Vec<u8> = assembled(text).iter().flat_map(|word| word.to_le_bytes()).map(replaced).collect();
    all.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

#[test]
fn names_may_hold_any_bytes() {
    let names = "%file = OpString \"f~~\"
        OpSource GLSL 450 %file \"~~~~~~~\"
        OpSourceContinued \"~~\"
        OpName %main \"ma~~~~~in\"
        OpName %buffer \"\u{416}~~~\"
        OpMemberName %Block 0 \"~~\"
        OpModuleProcessed \"~~~~~~~~\"";
    let body = "OpLine %file 1 2
        %p = OpAccessChain %ptr_word %buffer %0 %1
        OpStore %p %5";
    let text = with_body("", "GLSL450", names, body);
    for bytes in [&b"\xff"[..], b"\xc0\x80", b"\xed\xad\xbf", b"\xf0\x82\x82", b"\x80"] {
        let module = Module::from_spirv(&with_bytes(&text, bytes)).unwrap_or_else(|error| panic!("{error}"));
        let kernel = module.kernel("main", &BTreeMap::new()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kernel.bindings.len(), 1);
    }
}

#[test]
fn messages_show_names_that_are_not_utf8() {
    let body = "%lost = OpUndef %ptr_word
        OpStore %lost %5";
    let text = with_body("", "GLSL450", "OpName %lost \"lo~~st\"", body);
    let module = Module::from_spirv(&with_bytes(&text, b"\xff")).unwrap_or_else(|error| panic!("{error}"));
    let error = module.kernel("main", &BTreeMap::new()).expect_err("a store to nowhere");
    assert!(error.to_string().contains("lo\u{fffd}\u{fffd}st"), "{error}");
}

#[test]
fn names_that_mean_something_are_utf8() {
    let text = with_body("", "GLSL450", "", "").replace("%main \"main\"", "%main \"ma~~\"");
    let error = Module::from_spirv(&with_bytes(&text, b"\xff")).expect_err("an entry point without a name");
    assert!(error.to_string().contains("OpEntryPoint"), "{error}");
}

#[test]
fn bindings_are_those_that_are_used_in_order() {
    let kernel = wgsl(
        "struct Params { scale: f32, matrix: mat3x3<f32> }
        struct List { count: u32, items: array<vec4<f32>> }
        @group(1) @binding(0) var<uniform> params: Params;
        @group(0) @binding(7) var<storage, read> source: List;
        @group(0) @binding(2) var<storage, read_write> destination: array<f32, 4>;
        @group(0) @binding(3) var<storage, read_write> unused: array<f32>;
        fn never() { unused[0] = 1.0; }
        @compute @workgroup_size(2, 3, 4)
        fn main() { destination[1] = params.matrix[1].y + source.items[source.count].x; }",
    );
    let binding = |set, binding, kind, (min_bytes, element_bytes), read_only| BindingData {
        set,
        binding,
        kind,
        count: 1,
        min_bytes,
        element_bytes,
        read_only,
        image: None,
    };
    let expected = [
        binding(0, 2, BindingKind::StorageBuffer, (16, 0), false),
        binding(0, 7, BindingKind::StorageBuffer, (16, 16), true),
        binding(1, 0, BindingKind::UniformBuffer, (60, 0), true),
    ];
    assert_eq!(kernel.bindings.values().cloned().collect::<Vec<_>>(), expected);
    assert_eq!(kernel.workgroup_size, [2, 3, 4]);
}

#[test]
fn a_function_has_its_variables_once_however_often_it_is_called() {
    let kernel = wgsl(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        var<workgroup> tile: array<vec3<u32>, 10>;
        fn pick(i: u32) -> u32 { var table = array<u32, 16>(); table[i] = i; return table[i * i % 16u]; }
        @compute @workgroup_size(1)
        fn main() { tile[0] = vec3<u32>(data[0]); data[1] = pick(data[0]) + pick(data[2]) + pick(tile[0].x); }",
    );
    let sizes = |space| kernel.variables.values().filter(|v| v.space == space).map(|v| v.bytes).collect::<Vec<_>>();
    assert_eq!(sizes(VariableSpace::Private).iter().filter(|&&bytes| bytes == 64).count(), 1);
    assert_eq!(sizes(VariableSpace::Workgroup), [120]);
}

#[test]
fn instructions_know_their_source_line() {
    let source = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
@compute @workgroup_size(1)
fn main() {
    let a = data[0];

    data[1] = a;
}";
    let kernel = wgsl(source);
    let line = |wanted: fn(&InstData) -> bool| {
        let inst = insts(&kernel).find(|&inst| wanted(&kernel.insts[inst])).unwrap();
        kernel.line_of(inst).map(|line| line.line)
    };
    assert_eq!(line(|data| matches!(data, InstData::Load { .. })), Some(4));
    assert_eq!(line(|data| matches!(data, InstData::Store { .. })), Some(6));
}

#[test]
fn memory_operands_are_kept() {
    let kernel = spirv(&with_body(
        "OpCapability VulkanMemoryModel
        OpExtension \"SPV_KHR_vulkan_memory_model\"",
        "Vulkan",
        "",
        "%p = OpAccessChain %ptr_word %buffer %0 %0
        %a = OpLoad %u32 %p Aligned|MakePointerVisible|NonPrivatePointer 4 %5
        %b = OpLoad %u32 %p Volatile
        OpStore %p %a MakePointerAvailable|NonPrivatePointer %2",
    ));
    let accesses: Vec<Access> = insts(&kernel)
        .filter_map(|inst| match kernel.insts[inst] {
            InstData::Load { access, .. } | InstData::Store { access, .. } => Some(access),
            _ => None,
        })
        .collect();
    let shared = |scope| Access { volatile: false, non_private: true, available_visible: Some(scope) };
    let volatile = Access { volatile: true, ..Access::default() };
    assert_eq!(accesses, [shared(Scope::QueueFamily), volatile, shared(Scope::Workgroup)]);
}

#[test]
fn coherent_and_volatile_variables_are_accessed_so() {
    let kernel = spirv(&with_body(
        "",
        "GLSL450",
        "OpDecorate %buffer Coherent\n OpMemberDecorate %Block 0 Volatile",
        "%p = OpAccessChain %ptr_word %buffer %0 %0\n OpStore %p %5",
    ));
    let access = insts(&kernel).find_map(|inst| match kernel.insts[inst] {
        InstData::Store { access, .. } => Some(access),
        _ => None,
    });
    assert_eq!(access, Some(Access { volatile: true, non_private: true, available_visible: None }));
}

#[test]
fn constructs_are_kept() {
    let kernel = wgsl(
        "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
        @compute @workgroup_size(1)
        fn main() { for (var i = 0u; i < data[0]; i++) { if data[i] == 3u { data[i] = 4u; } } }",
    );
    let merges: Vec<Merge> = kernel.layout.iter().filter_map(|&block| kernel.blocks[block].merge).collect();
    assert_eq!(merges.iter().filter(|merge| matches!(merge, Merge::Loop { .. })).count(), 1);
    for merge in merges {
        let (Merge::Selection { merge } | Merge::Loop { merge, .. }) = merge;
        assert!(kernel.layout.contains(&merge));
    }
}

#[test]
fn constants_that_nothing_uses_are_left_out() {
    let kernel = spirv(&with_body("", "GLSL450", "", "%x = OpIAdd %u32 %5 %2"));
    assert_eq!(insts(&kernel).count(), 1, "only the return is left");
}

#[test]
fn every_prefix_is_refused() {
    let words = assembled(&with_body("", "GLSL450", "", "%p = OpAccessChain %ptr_word %buffer %0 %0\n OpStore %p %5"));
    for length in 0..words.len() {
        let kernel = Module::from_spirv(&words[..length]).and_then(|module| module.kernel("main", &BTreeMap::new()));
        let error = kernel.expect_err("a module cut short");
        assert!(!error.message.is_empty());
    }
}

#[test]
fn no_contraction_marks_all_that_an_instruction_becomes() {
    let types = "%f32 = OpTypeFloat 32\n%v2 = OpTypeVector %f32 2\n%0 = OpConstant %u32 0";
    let body = "
        %p = OpAccessChain %ptr_word %buffer %0 %0
        %word = OpLoad %u32 %p
        %x = OpConvertUToF %f32 %word
        %pair = OpCompositeConstruct %v2 %x %x
        %exact = OpDot %f32 %pair %pair
        %product = OpFMul %f32 %exact %x
        %sum = OpFAdd %f32 %product %x
        %back = OpConvertFToU %u32 %sum
        OpStore %p %back";
    let text = with_body("", "GLSL450", "OpDecorate %exact NoContraction", body);
    let text = spirv(&text.replace("%0 = OpConstant %u32 0", types)).to_string();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("= fmul") || line.contains("= fadd")).collect();
    let marked: Vec<bool> = lines.iter().map(|line| line.ends_with(" no_contraction")).collect();
    assert_eq!(marked, [true, true, true, false, false], "{text}");
}

#[test]
fn large_copies_within_an_array_of_descriptors_go_by_value_unless_the_descriptor_is_the_same() {
    let declarations = "%300 = OpConstant %u32 300
        %words = OpTypeArray %u32 %300
        %Block = OpTypeStruct %words %words
        %Blocks = OpTypeArray %Block %2
        %ptr_Blocks = OpTypePointer StorageBuffer %Blocks
        %ptr_words = OpTypePointer StorageBuffer %words
        %buffer = OpVariable %ptr_Blocks StorageBuffer";
    let loads = |from: &str, to: &str| {
        let body = format!(
            "%from = OpAccessChain %ptr_words %buffer {from} %0
            %to = OpAccessChain %ptr_words %buffer {to} %1
            OpCopyMemory %to %from"
        );
        let kernel = spirv(&module(["", "GLSL450"], "OpMemberDecorate %Block 1 Offset 1200", declarations, &body));
        insts(&kernel).filter(|&inst| matches!(kernel.insts[inst], InstData::Load { .. })).count()
    };
    assert_eq!(loads("%1", "%1"), 1, "one descriptor: a loop");
    assert_eq!(loads("%0", "%1"), 300, "two that may overlap");
}

/// The remark on a module of SPIR-V 1.`minor`, as valid-usage ID and message.
fn remark(minor: u32, text: &str) -> Option<(&'static str, String)> {
    let module = Module::from_spirv(&assembled(&format!("; Version: 1.{minor}\n{text}")));
    let module = module.unwrap_or_else(|error| panic!("{error}"));
    module.remark().map(|remark| (remark.vuid, remark.error.message.clone()))
}

/// Each capability of an extension: without it in the version before it entered the core, with it, and in that version.
#[test]
fn capabilities_need_their_extension_or_a_version_that_has_them() {
    let cases: &[(&str, &str, Option<u32>)] = &[
        ("VariablePointersStorageBuffer", "SPV_KHR_variable_pointers", Some(3)),
        ("VariablePointers", "SPV_KHR_variable_pointers", Some(3)),
        ("StorageBuffer16BitAccess", "SPV_KHR_16bit_storage", Some(3)),
        ("UniformAndStorageBuffer8BitAccess", "SPV_KHR_8bit_storage", Some(5)),
        ("RuntimeDescriptorArray", "SPV_EXT_descriptor_indexing", Some(5)),
        ("VulkanMemoryModelDeviceScope", "SPV_KHR_vulkan_memory_model", Some(5)),
        ("PhysicalStorageBufferAddresses", "SPV_EXT_physical_storage_buffer", Some(5)),
        ("PhysicalStorageBufferAddresses", "SPV_KHR_physical_storage_buffer", Some(5)),
        ("SignedZeroInfNanPreserve", "SPV_KHR_float_controls", Some(4)),
        ("DotProduct", "SPV_KHR_integer_dot_product", Some(6)),
        ("DemoteToHelperInvocation", "SPV_EXT_demote_to_helper_invocation", Some(6)),
        ("DeviceGroup", "SPV_KHR_device_group", Some(3)),
        ("WorkgroupMemoryExplicitLayoutKHR", "SPV_KHR_workgroup_memory_explicit_layout", None),
        ("AtomicFloat32AddEXT", "SPV_EXT_shader_atomic_float_add", None),
        ("AtomicFloat16AddEXT", "SPV_EXT_shader_atomic_float16_add", None),
        ("AtomicFloat64MinMaxEXT", "SPV_EXT_shader_atomic_float_min_max", None),
        ("SubgroupBallotKHR", "SPV_KHR_shader_ballot", None),
        ("SubgroupVoteKHR", "SPV_KHR_subgroup_vote", None),
        ("GroupNonUniformRotateKHR", "SPV_KHR_subgroup_rotate", None),
        ("GroupNonUniformPartitionedEXT", "SPV_NV_shader_subgroup_partitioned", None),
        ("QuadControlKHR", "SPV_KHR_quad_control", None),
        ("ShaderClockKHR", "SPV_KHR_shader_clock", None),
        ("ExpectAssumeKHR", "SPV_KHR_expect_assume", None),
    ];
    let buffers = "OpExtension \"SPV_KHR_storage_buffer_storage_class\"";
    for (capability, extension, core) in cases {
        let text = |extensions: &str| {
            with_body(&format!("OpCapability {capability}\n{buffers}\n{extensions}"), "GLSL450", "", "")
        };
        let before = core.map_or(6, |core| core - 1);
        let (vuid, message) = remark(before, &text("")).unwrap_or_else(|| panic!("{capability} in 1.{before}"));
        assert_eq!(vuid, "VUID-VkShaderModuleCreateInfo-pCode-08737");
        assert!(message.starts_with(&format!("capability {capability} needs OpExtension \"SPV_")), "{message}");
        assert!(message.contains(extension) && message.ends_with(&format!("this is SPIR-V 1.{before}")), "{message}");
        assert_eq!(remark(before, &text(&format!("OpExtension {extension:?}"))), None);
        if let Some(core) = core {
            assert!(message.contains(&format!(", or SPIR-V 1.{core};")), "{message}");
            assert_eq!(remark(*core, &text("")), None);
        }
    }
}

/// `SPV_KHR_variable_pointers` requires the extension for storage buffers, and stands for it.
#[test]
fn storage_buffers_need_their_extension_before_version_1_3() {
    let text = |extensions: &str| with_body(extensions, "GLSL450", "", "");
    for minor in 0..3 {
        let (_, message) = remark(minor, &text("")).expect("no extension");
        assert!(message.starts_with("storage class StorageBuffer needs"), "{message}");
        for extension in ["SPV_KHR_storage_buffer_storage_class", "SPV_KHR_variable_pointers"] {
            assert_eq!(remark(minor, &text(&format!("OpExtension {extension:?}"))), None);
        }
    }
    assert_eq!(remark(3, &text("")), None);
}

/// Some compilers write sequentially consistent barriers, which other drivers execute, too.
#[test]
fn sequential_consistency_is_remarked_on_and_kept() {
    let body = |instruction: &str| {
        with_body(
            "",
            "GLSL450",
            "",
            &format!(
                "%p = OpAccessChain %ptr_word %buffer %0 %0\n%q = OpAccessChain %ptr_word %buffer %0 %1\n{instruction}"
            ),
        )
        .replace(
            "%5 = OpConstant %u32 5",
            "%5 = OpConstant %u32 5\n%order = OpConstant %u32 0x50\n%unordered = OpConstant %u32 0",
        )
    };
    for instruction in [
        "OpControlBarrier %2 %2 %order",
        "OpMemoryBarrier %1 %order",
        "%x = OpAtomicLoad %u32 %p %1 %order",
        "OpAtomicStore %p %1 %order %5",
        "%x = OpAtomicIAdd %u32 %p %1 %order %5",
        "%x = OpAtomicIIncrement %u32 %p %1 %order",
        "%x = OpAtomicCompareExchange %u32 %p %1 %order %unordered %5 %5",
        "%x = OpAtomicCompareExchange %u32 %p %1 %unordered %order %5 %5",
    ] {
        let text = body(instruction);
        let (vuid, message) = remark(3, &text).unwrap_or_else(|| panic!("{instruction}"));
        assert_eq!(vuid, "VUID-StandaloneSpirv-MemorySemantics-10866");
        assert!(message.contains("SequentiallyConsistent"), "{message}");
        spirv(&text);
    }
    let kernel = spirv(&body("OpMemoryBarrier %1 %order"));
    let fences = insts(&kernel).filter_map(|inst| match kernel.insts[inst] {
        InstData::Fence { semantics, .. } => Some(semantics.0),
        _ => None,
    });
    assert_eq!(fences.collect::<Vec<_>>(), [0x50]);
    // A value and an operand that happen to be the same number.
    assert_eq!(remark(3, &body("OpStore %p %order")), None);
}
