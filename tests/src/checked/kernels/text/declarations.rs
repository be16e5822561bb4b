//! Capabilities, decorations, types and variables of a random kernel.

use super::super::super::operations::Rules;
use super::super::{Home, PUSH_WORDS, Second, WORDS};
use super::{OUT, Writer, name, push};

impl Writer<'_> {
    /// All that comes before the function. To be called after it was written.
    pub(super) fn head(&self, text: &mut String) {
        let used: Vec<Home> = Home::ALL.into_iter().filter(|&home| self.kernel.uses(home)).collect();
        self.capabilities(&used, text);
        push(text, "OpEntryPoint GLCompute %main \"main\" %local %group");
        push(text, format_args!("OpExecutionMode %main LocalSize {} 1 1", self.kernel.size()));
        self.decorations(&used, text);
        self.types(&used, text);
        for home in used {
            let ty = match home {
                Home::Second if self.element_bytes().is_some() => "%p_elementblock StorageBuffer",
                Home::First | Home::Second => "%p_block StorageBuffer",
                Home::Texels => "%p_image UniformConstant",
                Home::Tile | Home::Other => "%p_array Workgroup",
            };
            push(text, format_args!("%{} = OpVariable {ty}", name(home)));
        }
    }

    /// Bytes of the second buffer's elements, if they are no words.
    pub(super) fn element_bytes(&self) -> Option<u32> {
        match self.kernel.second {
            Second::Elements(bytes) | Second::ElementsApart(bytes) if self.kernel.uses(Home::Second) => Some(bytes),
            _ => None,
        }
    }

    fn capabilities(&self, used: &[Home], text: &mut String) {
        push(text, "; Version: 1.3\nOpCapability Shader");
        let vulkan = self.kernel.rules == Rules::Vulkan;
        if vulkan {
            push(text, "OpCapability VulkanMemoryModel\nOpCapability VulkanMemoryModelDeviceScope");
        }
        if used.contains(&Home::Texels) && self.kernel.texel_buffer {
            push(text, "OpCapability ImageBuffer");
        }
        match self.element_bytes() {
            Some(1) => push(text, "OpCapability StorageBuffer8BitAccess\nOpExtension \"SPV_KHR_8bit_storage\""),
            Some(2) => push(text, "OpCapability StorageBuffer16BitAccess\nOpExtension \"SPV_KHR_16bit_storage\""),
            Some(_) => push(text, "OpCapability Int64\nOpCapability Int64Atomics"),
            None => {}
        }
        if vulkan {
            push(text, "OpExtension \"SPV_KHR_vulkan_memory_model\"");
        }
        push(text, format_args!("OpMemoryModel Logical {}", if vulkan { "Vulkan" } else { "GLSL450" }));
    }

    fn decorations(&self, used: &[Home], text: &mut String) {
        let kernel = self.kernel;
        push(text, "%file = OpString \"kernel\"\nOpDecorate %local BuiltIn LocalInvocationIndex");
        push(text, "OpDecorate %group BuiltIn WorkgroupId\nOpDecorate %words ArrayStride 4");
        push(text, "OpDecorate %block Block\nOpMemberDecorate %block 0 Offset 0");
        push(text, "OpDecorate %pushed ArrayStride 4\nOpDecorate %pushblock Block");
        push(text, "OpMemberDecorate %pushblock 0 Offset 0");
        if let Some(bytes) = self.element_bytes() {
            push(text, format_args!("OpDecorate %elements ArrayStride {bytes}\nOpDecorate %elementblock Block"));
            push(text, "OpMemberDecorate %elementblock 0 Offset 0");
        }
        push(text, format_args!("OpDecorate %out DescriptorSet 0\nOpDecorate %out Binding {OUT}"));
        for (binding, home) in [Home::First, Home::Second, Home::Texels].into_iter().enumerate() {
            if !used.contains(&home) {
                continue;
            }
            let name = name(home);
            push(text, format_args!("OpDecorate %{name} DescriptorSet 0\nOpDecorate %{name} Binding {binding}"));
            if !matches!(kernel.second, Second::Apart | Second::ElementsApart(_)) {
                push(text, format_args!("OpDecorate %{name} Aliased"));
            }
            if kernel.rules != Rules::Vulkan && kernel.coherent[binding] {
                push(text, format_args!("OpDecorate %{name} Coherent"));
            }
        }
    }

    fn types(&self, used: &[Home], text: &mut String) {
        push(text, "%void = OpTypeVoid\n%fn = OpTypeFunction %void\n%bool = OpTypeBool\n%u32 = OpTypeInt 32 0");
        push(text, "%u32x2 = OpTypeVector %u32 2\n%u32x3 = OpTypeVector %u32 3\n%u32x4 = OpTypeVector %u32 4");
        for number in &self.constants {
            push(text, format_args!("%c{number} = OpConstant %u32 {number}"));
        }
        push(text, "%in_u32 = OpTypePointer Input %u32\n%in_u32x3 = OpTypePointer Input %u32x3");
        push(text, "%local = OpVariable %in_u32 Input\n%group = OpVariable %in_u32x3 Input");
        push(text, "%p_function = OpTypePointer Function %u32\n%words = OpTypeRuntimeArray %u32");
        push(text, "%block = OpTypeStruct %words\n%p_block = OpTypePointer StorageBuffer %block");
        push(text, "%p_word = OpTypePointer StorageBuffer %u32\n%out = OpVariable %p_block StorageBuffer");
        push(text, format_args!("%pushed = OpTypeArray %u32 %c{PUSH_WORDS}\n%pushblock = OpTypeStruct %pushed"));
        push(text, "%p_pushblock = OpTypePointer PushConstant %pushblock\n%p_push = OpTypePointer PushConstant %u32");
        push(text, "%push = OpVariable %p_pushblock PushConstant");
        push(text, format_args!("%array = OpTypeArray %u32 %c{WORDS}\n%p_array = OpTypePointer Workgroup %array"));
        push(text, "%p_tile = OpTypePointer Workgroup %u32");
        if let Some(bytes) = self.element_bytes() {
            push(text, format_args!("%element = OpTypeInt {} 0", 8 * bytes));
            push(text, "%elements = OpTypeRuntimeArray %element\n%elementblock = OpTypeStruct %elements");
            push(text, "%p_elementblock = OpTypePointer StorageBuffer %elementblock");
            push(text, "%p_element = OpTypePointer StorageBuffer %element");
        }
        if used.contains(&Home::Texels) {
            let dim = if self.kernel.texel_buffer { "Buffer" } else { "2D" };
            push(text, format_args!("%image = OpTypeImage %u32 {dim} 0 0 0 2 R32ui"));
            push(text, "%p_image = OpTypePointer UniformConstant %image\n%p_texel = OpTypePointer Image %u32");
        }
    }
}
