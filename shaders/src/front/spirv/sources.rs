//! Source texts that a module has: `OpSource` with `OpSourceContinued`, and `DebugSource` of
//! `NonSemantic.Shader.DebugInfo.100`.

use std::collections::BTreeMap;

use spirv::{Op, SourceLanguage};

use super::words::{Id, Words, string, text};
use crate::front::Language;

/// `DebugSource` and `DebugSourceContinued`.
const DEBUG_SOURCE: u32 = 35;
const DEBUG_SOURCE_CONTINUED: u32 = 102;

/// The tools that translate one language only, by their numbers in Khronos' registry of generators.
const TINT: u32 = 23;
const NAGA: u32 = 28;

/// The language of the first source instruction, or else of the tool that made the module.
pub(super) fn language_of(words: &Words) -> Language {
    let source = words.insts.iter().take_while(|inst| inst.op != Op::Function).find(|inst| inst.op == Op::Source);
    let named = source.and_then(|inst| words.operands(inst).first().copied()).and_then(SourceLanguage::from_u32);
    match (named, words.generator() >> 16) {
        (Some(SourceLanguage::GLSL | SourceLanguage::ESSL), _) => Language::Glsl,
        (Some(SourceLanguage::WGSL), _) => Language::Wgsl,
        (None | Some(SourceLanguage::Unknown), TINT | NAGA) => Language::Wgsl,
        _ => Language::Spirv,
    }
}

/// The text of a source file, if the module has it. Texts only improve messages, so invalid ones count as absent.
pub(super) fn text_of(words: &Words, file: &str) -> Option<String> {
    let mut strings: BTreeMap<Id, String> = BTreeMap::new();
    let mut found: Option<String> = None;
    // Whether the text of the last source instruction is that of the file, so that its continuations are, too.
    let mut continues = false;
    let mut debug_set = None;
    for inst in &words.insts {
        let operands = words.operands(inst);
        match (inst.op, operands) {
            (Op::String, _) => _ = strings.insert(inst.id, text(operands).unwrap_or_default()),
            (Op::Source, [_, _, name, source @ ..]) if !source.is_empty() => {
                continues = found.is_none() && strings.get(name).is_some_and(|name| name == file);
                if continues {
                    found = text(source).ok();
                }
            }
            (Op::SourceContinued, _) if continues => found.as_mut()?.push_str(&text(operands).ok()?),
            (Op::ExtInstImport, _) if string(operands).is_ok_and(|(name, _)| name == DEBUG_INFO) => {
                debug_set = Some(inst.id);
            }
            (Op::ExtInst, &[set, number, ref rest @ ..]) if Some(set) == debug_set => match (number, rest) {
                (DEBUG_SOURCE, [name, source, ..]) => {
                    continues = found.is_none() && strings.get(name).is_some_and(|name| name == file);
                    if continues {
                        found = strings.get(source).cloned();
                    }
                }
                (DEBUG_SOURCE_CONTINUED, [source, ..]) if continues => found.as_mut()?.push_str(strings.get(source)?),
                _ => {}
            },
            (Op::Function, _) => break,
            _ => {}
        }
    }
    found.map(without_prologue)
}

/// The name of the extended instruction set.
const DEBUG_INFO: &str = "NonSemantic.Shader.DebugInfo.100";

/// glslang puts a prologue of comments and a `#line` directive before the text: lines are counted after it.
fn without_prologue(text: String) -> String {
    match text.find("#line 1\n") {
        Some(at) if text[..at].lines().all(|line| line.is_empty() || line.starts_with("//")) => {
            text[at + "#line 1\n".len()..].to_owned()
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use crate::front::Language;
    use crate::front::spirv::SpirvModule;
    use crate::front::spvasm::assemble;

    fn module(sources: &str) -> SpirvModule {
        let text = format!(
            "OpCapability Shader
             %debug = OpExtInstImport \"NonSemantic.Shader.DebugInfo.100\"
             OpMemoryModel Logical GLSL450
             OpEntryPoint GLCompute %main \"main\"
             OpExecutionMode %main LocalSize 1 1 1
             %a = OpString \"a.comp\"
             %b = OpString \"b.comp\"
             %text = OpString \"from debug info\"
             {sources}
             %void = OpTypeVoid
             %type = OpTypeFunction %void
             %main = OpFunction %void None %type
             %entry = OpLabel
             OpReturn
             OpFunctionEnd"
        );
        SpirvModule::parse(&assemble(&text).expect("it is valid")).expect("it is valid")
    }

    #[test]
    fn the_language_is_that_of_the_source_or_of_the_tool() {
        assert_eq!(module("OpSource GLSL 450").language(), Language::Glsl);
        assert_eq!(module("OpSource ESSL 310").language(), Language::Glsl);
        assert_eq!(module("OpSource HLSL 600").language(), Language::Spirv);
        assert_eq!(module("").language(), Language::Spirv);
    }

    #[test]
    fn texts_are_found_by_their_files() {
        let module = module("OpSource GLSL 450 %a \"one\n\" OpSourceContinued \"two\" OpSource GLSL 450 %b \"three\"");
        assert_eq!(module.source_text("a.comp").as_deref(), Some("one\ntwo"));
        assert_eq!(module.source_text("b.comp").as_deref(), Some("three"));
        assert_eq!(module.source_text("c.comp"), None);
    }

    #[test]
    fn lines_begin_after_the_prologue_of_a_compiler() {
        let module = module("OpSource GLSL 450 %a \"// OpModuleProcessed x\n#line 1\n#version 450\n\"");
        assert_eq!(module.source_text("a.comp").as_deref(), Some("#version 450\n"));
    }
}
