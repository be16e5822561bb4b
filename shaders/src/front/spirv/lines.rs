//! Debug lines: source positions of words, from `OpString` with `OpLine` or from `DebugLine` of
//! `NonSemantic.Shader.DebugInfo.100`.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use spirv::Op;

use super::words::{Id, Words, string, text};
use crate::ir::SourceLine;

/// The positions that a module names.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// First word offset → the position from there on; `None` where a position ends.
    lines: BTreeMap<u32, Option<SourceLine>>,
    table: OnceLock<Arc<BTreeMap<u32, SourceLine>>>,
}

impl Lines {
    /// Collects the module's debug lines. They only improve messages, so invalid ones are skipped.
    pub(super) fn collect(words: &Words) -> Self {
        let mut files: HashMap<Id, Arc<str>> = HashMap::default();
        let mut lines = BTreeMap::new();
        let mut active = false;
        let mut debug = DebugInfo::default();
        for inst in &words.insts {
            let operands = words.operands(inst);
            let ends_block = is_terminator(inst.op) || inst.op == Op::FunctionEnd;
            match (inst.op, operands) {
                (Op::String, _) => {
                    if let Ok(text) = text(operands) {
                        files.insert(inst.id, text.into());
                    }
                }
                (Op::Line, &[file, line, column]) => {
                    if let Some(file) = files.get(&file) {
                        lines.insert(inst.word, Some(SourceLine { file: file.clone(), line, column }));
                        active = true;
                    }
                }
                (Op::ExtInstImport, _) => debug.import(inst.id, operands),
                (Op::Constant, &[number]) => _ = debug.numbers.insert(inst.id, number),
                (Op::ExtInst, _) => match debug.take(inst.id, operands, &files) {
                    Some(Some(line)) => {
                        lines.insert(inst.word, Some(line));
                        active = true;
                    }
                    Some(None) if active => {
                        lines.insert(inst.word + 1, None);
                        active = false;
                    }
                    _ => {}
                },
                _ if active && (ends_block || inst.op == Op::NoLine) => {
                    lines.insert(inst.word + 1, None);
                    active = false;
                }
                _ => {}
            }
        }
        Self { lines, table: OnceLock::new() }
    }

    /// The position of a word.
    pub(super) fn at(&self, word: u32) -> Option<&SourceLine> {
        self.lines.range(..=word).next_back().and_then(|(_, line)| line.as_ref())
    }

    /// The position of a word, or the first one after it: most compilers emit none at the start of a loop.
    pub(super) fn from(&self, word: u32) -> Option<&SourceLine> {
        self.at(word).or_else(|| self.lines.range(word..).find_map(|(_, line)| line.as_ref()))
    }

    /// The table as kernels keep it.
    pub(super) fn table(&self) -> Arc<BTreeMap<u32, SourceLine>> {
        let known = |(&word, line): (&u32, &Option<SourceLine>)| line.clone().map(|line| (word, line));
        Arc::clone(self.table.get_or_init(|| Arc::new(self.lines.iter().filter_map(known).collect())))
    }
}

/// The instructions of `NonSemantic.Shader.DebugInfo.100` that define positions.
#[derive(Debug, Default)]
struct DebugInfo {
    set: Option<Id>,
    /// Constants that positions are built from.
    numbers: HashMap<Id, u32>,
    /// `DebugSource` → its file.
    sources: HashMap<Id, Id>,
}

impl DebugInfo {
    const SOURCE: u32 = 35;
    const LINE: u32 = 103;
    const NO_LINE: u32 = 104;

    fn import(&mut self, id: Id, operands: &[u32]) {
        if string(operands).is_ok_and(|(name, _)| name == "NonSemantic.Shader.DebugInfo.100") {
            self.set = Some(id);
        }
    }

    /// The position that an instruction starts, or `None` if it ends one.
    fn take(&mut self, id: Id, operands: &[u32], files: &HashMap<Id, Arc<str>>) -> Option<Option<SourceLine>> {
        let [set, number, rest @ ..] = operands else { return None };
        if self.set != Some(*set) {
            return None;
        }
        match (*number, rest) {
            (Self::SOURCE, [file, ..]) => {
                self.sources.insert(id, *file);
                None
            }
            (Self::LINE, [source, line, _, column, ..]) => {
                let file = files.get(self.sources.get(source)?)?.clone();
                let line = *self.numbers.get(line)?;
                Some(Some(SourceLine { file, line, column: self.numbers.get(column).copied().unwrap_or(0) }))
            }
            (Self::NO_LINE, _) => Some(None),
            _ => None,
        }
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
