//! Names of variables from `DebugGlobalVariable` of `NonSemantic.Shader.DebugInfo.100`, for those without `OpName`.

use foldhash::HashMap;
use spirv::Op;

use super::decorations::Annotations;
use super::words::{Id, Words, string, text};

/// `DebugGlobalVariable`: its name, type, source, line, column, scope, linkage name, and variable.
const GLOBAL_VARIABLE: u32 = 18;

/// Adds the names. They only improve messages, so invalid ones are skipped.
pub(super) fn add(words: &Words, annotations: &mut Annotations) {
    let (mut debug_set, mut named): (_, HashMap<Id, Vec<Id>>) = (None, HashMap::default());
    let declarations = || words.insts.iter().take_while(|inst| inst.op != Op::Function);
    for inst in declarations() {
        match (inst.op, words.operands(inst)) {
            (Op::ExtInstImport, operands)
                if string(operands).is_ok_and(|(name, _)| name == "NonSemantic.Shader.DebugInfo.100") =>
            {
                debug_set = Some(inst.id);
            }
            (Op::ExtInst, &[set, GLOBAL_VARIABLE, name, _, _, _, _, _, _, variable, ..])
                if Some(set) == debug_set && annotations.name(variable).is_empty() =>
            {
                named.entry(name).or_default().push(variable);
            }
            _ => {}
        }
    }
    if named.is_empty() {
        return;
    }
    for inst in declarations().filter(|inst| inst.op == Op::String) {
        if let (Some(variables), Ok(name)) = (named.get(&inst.id), text(words.operands(inst))) {
            variables.iter().for_each(|&variable| annotations.add_name(variable, name.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::front::spirv::SpirvModule;
    use crate::front::spvasm::assemble;

    /// A module of clspv, whose reflection names instructions of a set with a version.
    fn module(name: &str) -> SpirvModule {
        let text = format!(
            "OpCapability Shader
             OpExtension \"SPV_KHR_non_semantic_info\"
             %clspv = OpExtInstImport \"NonSemantic.ClspvReflection.5\"
             %debug = OpExtInstImport \"NonSemantic.Shader.DebugInfo.100\"
             OpMemoryModel Logical GLSL450
             OpEntryPoint GLCompute %main \"main\"
             OpExecutionMode %main LocalSize 1 1 1
             %file = OpString \"a.hlsl\"
             %total = OpString \"total\"
             %linkage = OpString \"\"
             {name}
             OpDecorate %words ArrayStride 4
             OpDecorate %Block Block
             OpMemberDecorate %Block 0 Offset 0
             OpDecorate %out DescriptorSet 0
             OpDecorate %out Binding 0
             %void = OpTypeVoid
             %fn = OpTypeFunction %void
             %u32 = OpTypeInt 32 0
             %words = OpTypeRuntimeArray %u32
             %Block = OpTypeStruct %words
             %ptr_Block = OpTypePointer StorageBuffer %Block
             %ptr_word = OpTypePointer StorageBuffer %u32
             %out = OpVariable %ptr_Block StorageBuffer
             %c0 = OpConstant %u32 0
             %none = OpExtInst %void %debug DebugInfoNone
             %source = OpExtInst %void %debug DebugSource %file
             %global = OpExtInst %void %debug DebugGlobalVariable %total %none %source %c0 %c0 %none %linkage %out %c0
             %main = OpFunction %void None %fn
             %entry = OpLabel
             %word = OpAccessChain %ptr_word %out %c0 %c0
             OpStore %word %c0
             OpReturn
             OpFunctionEnd
             %k = OpExtInst %void %clspv Kernel %main %total"
        );
        SpirvModule::parse(&assemble(&text).unwrap()).unwrap()
    }

    #[test]
    fn a_variable_without_a_name_has_that_of_its_debug_information() {
        let names = |module: &SpirvModule| -> Vec<String> {
            module.binding_names().into_iter().map(|(_, _, name)| name.to_owned()).collect()
        };
        assert_eq!(names(&module("")), ["total"]);
        assert_eq!(names(&module("OpName %out \"sums\"")), ["sums"]);
    }
}
