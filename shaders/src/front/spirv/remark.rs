//! Rules that a module breaks although its kernels can be translated: other drivers accept such modules, and compilers
//! in wide use write some of them.

use foldhash::HashMap;
use spirv::Op;

use super::super::{Error, Remark};
use super::atomics::SEQUENTIALLY_CONSISTENT;
use super::extension;
use super::module::Sections;
use super::words::{Id, Inst, op_name};

/// `pCode` must adhere to the validation rules of SPIR-V.
const VALID: &str = "VUID-VkShaderModuleCreateInfo-pCode-08737";
/// The memory order that Vulkan does not have.
const ORDER: &str = "VUID-StandaloneSpirv-MemorySemantics-10866";

/// The first such rule; `end` is the first instruction of the functions.
pub(super) fn find(sections: &Sections, end: usize) -> Result<Option<Remark>, Error> {
    let remark = |word, message: String, vuid| Remark { error: sections.error(word, message), vuid };
    let missing = extension::missing(&sections.words, end).map_err(|message| sections.error(5, message))?;
    if let Some((word, message)) = missing {
        return Ok(Some(remark(word, message, VALID)));
    }
    // TVM and old versions of glslang and clspv write it for barriers. It is obeyed.
    let message = "SequentiallyConsistent memory semantics, which Vulkan does not have";
    let found = sequentially_consistent(sections, end);
    Ok(found.map(|inst| remark(inst.word, format!("{}: {message}", op_name(inst.op)), ORDER)))
}

/// The first atomic or barrier in a function with such semantics.
fn sequentially_consistent(sections: &Sections, end: usize) -> Option<&Inst> {
    let words = &sections.words;
    let constants: HashMap<Id, u32> = sections
        .declarations
        .iter()
        .filter(|inst| matches!(inst.op, Op::Constant | Op::SpecConstant))
        .filter_map(|inst| Some((inst.id, *words.operands(inst).first()?)))
        .filter(|(_, bits)| bits & SEQUENTIALLY_CONSISTENT != 0)
        .collect();
    if constants.is_empty() {
        return None;
    }
    words.insts[end..].iter().find(|inst| {
        let operands = words.operands(inst);
        let semantics = match inst.op {
            Op::MemoryBarrier => operands.get(1..2),
            Op::AtomicCompareExchange => operands.get(2..4),
            Op::ControlBarrier
            | Op::AtomicStore
            | Op::AtomicLoad
            | Op::AtomicExchange
            | Op::AtomicIAdd
            | Op::AtomicISub
            | Op::AtomicSMin
            | Op::AtomicUMin
            | Op::AtomicSMax
            | Op::AtomicUMax
            | Op::AtomicAnd
            | Op::AtomicOr
            | Op::AtomicXor
            | Op::AtomicFAddEXT
            | Op::AtomicFMinEXT
            | Op::AtomicFMaxEXT
            | Op::AtomicIIncrement
            | Op::AtomicIDecrement => operands.get(2..3),
            _ => None,
        };
        semantics.is_some_and(|ids| ids.iter().any(|id| constants.contains_key(id)))
    })
}
