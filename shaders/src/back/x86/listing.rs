//! Disassembly of machine code.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter};

use crate::ir::SourceLine;

/// Disassembles an image: the code from `entry` on with labels at branch targets, then the constants before it. `lines`
/// has the source lines by the address from which they apply.
pub(super) fn listing(bytes: &[u8], entry: usize, lines: &BTreeMap<u64, &SourceLine>) -> String {
    let code = &bytes[entry..];
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, code, entry as u64, DecoderOptions::NONE).into_iter().collect();
    let branches = instructions.iter().filter(|instruction| is_branch(instruction));
    let mut labels: BTreeMap<u64, usize> = branches.map(|branch| (branch.near_branch_target(), 0)).collect();
    labels.values_mut().enumerate().for_each(|(number, label)| *label = number);
    let mut formatter = IntelFormatter::new();
    let mut text = String::new();
    let mut line = String::new();
    let mut last = None;
    for instruction in &instructions {
        if let Some(source) = lines.get(&instruction.ip())
            && last.replace(source.place()) != Some(source.place())
        {
            let _ = writeln!(text, "    ; {source}");
        }
        if let Some(label) = labels.get(&instruction.ip()) {
            let _ = writeln!(text, "L{label}:");
        }
        line.clear();
        if is_branch(instruction) {
            formatter.format_mnemonic(instruction, &mut line);
            let _ = write!(line, " L{}", labels[&instruction.near_branch_target()]);
        } else {
            formatter.format(instruction, &mut line);
        }
        let _ = writeln!(text, "    {line}");
    }
    for (number, row) in bytes[..entry].chunks(16).enumerate() {
        let words = row.chunks(4).map(|word| word.iter().rev().map(|byte| format!("{byte:02x}")).collect::<String>());
        let _ = writeln!(text, "{:04x}h: {}", number * 16, words.collect::<Vec<_>>().join(" "));
    }
    text
}

fn is_branch(instruction: &Instruction) -> bool {
    matches!(instruction.flow_control(), FlowControl::ConditionalBranch | FlowControl::UnconditionalBranch)
}
