//! Names of variables from `DebugGlobalVariable` of `NonSemantic.Shader.DebugInfo.100`, for those without `OpName`.

use foldhash::{HashMap, HashSet};
use spirv::Op;

use super::decorations::{self, Annotations};
use super::words::{Id, Words, string};

/// `DebugGlobalVariable`: its name, type, source, line, column, scope, linkage name, and variable.
const GLOBAL_VARIABLE: u32 = 18;

/// Adds the names. They only improve messages, so invalid ones are skipped.
pub(super) fn add(words: &Words, annotations: &mut Annotations) {
    let declarations =
        |op: Op| words.insts.iter().take_while(|inst| inst.op != Op::Function).filter(move |inst| inst.op == op);
    let is_debug_set = |operands| string(operands).is_ok_and(|(name, _)| name == "NonSemantic.Shader.DebugInfo.100");
    let Some(debug_set) = declarations(Op::ExtInstImport).find(|inst| is_debug_set(words.operands(inst))) else {
        return;
    };
    let variables: HashSet<Id> = declarations(Op::Variable).map(|inst| inst.id).collect();
    let mut named: HashMap<Id, Vec<Id>> = HashMap::default();
    for inst in declarations(Op::ExtInst) {
        if let &[set, GLOBAL_VARIABLE, name, _, _, _, _, _, _, variable, ..] = words.operands(inst)
            && set == debug_set.id
            && variables.contains(&variable)
        {
            named.entry(name).or_default().push(variable);
        }
    }
    for inst in declarations(Op::String) {
        if let (Some(variables), Ok(name)) = (named.get(&inst.id), decorations::name_of(words.operands(inst))) {
            variables.iter().for_each(|&variable| annotations.add_name(variable, &name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    /// A module whose variables have one name of debug information, all of them.
    fn with_one_name(name: &str, variables: u32) -> (SpirvModule, usize) {
        let each = |line: &dyn Fn(u32) -> String| (0..variables).map(line).collect::<String>();
        let text = format!(
            "OpCapability Shader
             OpExtension \"SPV_KHR_non_semantic_info\"
             %debug = OpExtInstImport \"NonSemantic.Shader.DebugInfo.100\"
             OpMemoryModel Logical GLSL450
             OpEntryPoint GLCompute %main \"main\"
             OpExecutionMode %main LocalSize 1 1 1
             %name = OpString \"{name}\"
             {}
             %void = OpTypeVoid
             %fn = OpTypeFunction %void
             %u32 = OpTypeInt 32 0
             %Block = OpTypeStruct %u32
             %ptr_Block = OpTypePointer StorageBuffer %Block
             %c0 = OpConstant %u32 0
             %none = OpExtInst %void %debug DebugInfoNone
             {}
             %main = OpFunction %void None %fn
             %entry = OpLabel
             OpReturn
             OpFunctionEnd",
            each(&|n| format!("OpDecorate %v{n} DescriptorSet 0\nOpDecorate %v{n} Binding {n}\n")),
            each(&|n| format!(
                "%v{n} = OpVariable %ptr_Block StorageBuffer
                 %g{n} = OpExtInst %void %debug DebugGlobalVariable %name %none %none %c0 %c0 %none %name %v{n} %c0
                 %h{n} = OpExtInst %void %debug DebugGlobalVariable %name %none %none %c0 %c0 %none %name %g{n} %c0\n"
            )),
        );
        let words = assemble(&text).unwrap();
        (SpirvModule::parse(&words).unwrap(), 4 * words.len())
    }

    #[test]
    fn one_name_of_many_variables_is_kept_once() {
        let (module, _) = with_one_name("total", 100);
        let annotations = &module.sections.annotations;
        let variables = module.sections.declarations.iter().filter(|inst| inst.op == Op::Variable);
        let names: HashSet<_> = variables.map(|inst| annotations.name(inst.id).as_ptr()).collect();
        assert_eq!((names.len(), module.binding_names().len()), (1, 100));
        // Only variables have names.
        let others = module.sections.words.insts.iter().filter(|inst| inst.op == Op::ExtInst);
        assert!(others.into_iter().all(|inst| annotations.name(inst.id).is_empty()));
    }

    #[test]
    fn the_names_of_a_module_are_not_far_larger_than_it() {
        for length in [5, 1_000, 100_000] {
            let (module, bytes) = with_one_name(&"x".repeat(length), 1_000);
            let names: usize = module.binding_names().iter().map(|(_, _, name)| name.len()).sum();
            assert!(names < 8 * bytes, "{names} bytes of names in a module of {bytes}");
        }
    }

    #[test]
    fn of_a_long_name_the_first_kibibyte_is_kept() {
        let first = "x".repeat(1023);
        for (name, kept) in [(format!("{first}yz"), format!("{first}y")), (format!("{first}\u{e9}z"), first.clone())] {
            let names = |module: &SpirvModule| module.binding_names().into_iter().map(|(.., name)| name).collect();
            let named: Vec<String> = names(&with_one_name(&name, 1).0);
            assert_eq!(named, [kept.as_str()]);
            // Neither the name of the debug information nor that of the type is in its place.
            let own: Vec<String> = names(&module(&format!("OpName %out \"{name}\"\nOpName %Block \"Block\"")));
            assert_eq!(own, [kept.as_str()]);
        }
    }
}
