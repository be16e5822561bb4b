//! Debug lines: from `OpString` and `OpLine` to the source position of a word.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use spirv::Op;

use super::words::{Id, Words, string};
use crate::ir::SourceLine;

/// First word offset → position from there on; `None` where a position ends.
#[derive(Debug, Default)]
pub(super) struct Lines(BTreeMap<u32, Option<SourceLine>>);

impl Lines {
    /// Collects the module's debug lines. They help messages only, so a line that names no string is skipped.
    pub(super) fn collect(words: &Words) -> Self {
        let mut files: HashMap<Id, Arc<str>> = HashMap::new();
        let mut lines = BTreeMap::new();
        let mut active = false;
        for inst in &words.insts {
            let operands = words.operands(inst);
            let ends_block = is_terminator(inst.op) || inst.op == Op::FunctionEnd;
            match (inst.op, operands) {
                (Op::String, _) => {
                    if let Ok((text, _)) = string(operands) {
                        files.insert(inst.id, text.into());
                    }
                }
                (Op::Line, &[file, line, column]) => {
                    if let Some(file) = files.get(&file) {
                        lines.insert(inst.word, Some(SourceLine { file: file.clone(), line, column }));
                        active = true;
                    }
                }
                _ if active && (ends_block || inst.op == Op::NoLine) => {
                    lines.insert(inst.word + 1, None);
                    active = false;
                }
                _ => {}
            }
        }
        Self(lines)
    }

    /// The position that holds at a word.
    pub(super) fn at(&self, word: u32) -> Option<&SourceLine> {
        self.0.range(..=word).next_back().and_then(|(_, line)| line.as_ref())
    }

    /// The table as a kernel keeps it.
    pub(super) fn table(&self) -> BTreeMap<u32, SourceLine> {
        self.0.iter().filter_map(|(&word, line)| line.clone().map(|line| (word, line))).collect()
    }
}

/// Whether an instruction ends a block.
pub(super) fn is_terminator(op: Op) -> bool {
    matches!(
        op,
        Op::Branch
            | Op::BranchConditional
            | Op::Switch
            | Op::Return
            | Op::ReturnValue
            | Op::Unreachable
            | Op::Kill
            | Op::TerminateInvocation
            | Op::IgnoreIntersectionKHR
            | Op::TerminateRayKHR
            | Op::EmitMeshTasksEXT
    )
}
