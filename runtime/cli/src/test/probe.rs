//! Tests which capabilities the SPIR-V reader supports, so that no list of them can become stale.

use spelter_shaders::compile::Module;
use spelter_shaders::front::spvasm;

/// Whether modules may declare these capabilities, with these lines before the entry point's function.
pub(super) fn supports(capabilities: &[&str], declarations: &str) -> bool {
    let capabilities: String = capabilities.iter().map(|name| format!("OpCapability {name}\n")).collect();
    let text = format!(
        "; Version: 1.6
        OpCapability Shader
        {capabilities}
        OpMemoryModel Logical GLSL450
        OpEntryPoint GLCompute %main \"main\"
        OpExecutionMode %main LocalSize 1 1 1
        %void = OpTypeVoid
        %of_main = OpTypeFunction %void
        {declarations}
        %main = OpFunction %void None %of_main
        %entry = OpLabel
        OpReturn
        OpFunctionEnd"
    );
    spvasm::assemble(&text).is_ok_and(|words| Module::from_spirv(&words).is_ok())
}

/// Whether workgroup variables may have an initializer of zeros.
pub(super) fn supports_zeroed_workgroup_memory() -> bool {
    let variable = "%uint = OpTypeInt 32 0
        %pointer = OpTypePointer Workgroup %uint
        %zero = OpConstantNull %uint
        %shared = OpVariable %pointer Workgroup %zero";
    supports(&[], variable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_probe_itself_is_a_valid_module() {
        assert!(supports(&[], ""));
        assert!(supports(&["VulkanMemoryModel"], ""));
        assert!(!supports(&["Geometry"], ""));
        assert!(!supports(&["NoSuchCapability"], ""));
        assert!(!supports(&[], "%x = OpTypeNothing"));
    }
}
