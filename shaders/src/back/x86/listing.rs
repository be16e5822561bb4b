//! Machine code as text.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Formatter, Instruction, IntelFormatter};

/// Disassembles an image: the code from `entry` on with labels where branches lead, then the constants before it.
pub(super) fn listing(bytes: &[u8], entry: usize) -> String {
    let code = &bytes[entry..];
    let instructions: Vec<Instruction> =
        Decoder::with_ip(64, code, entry as u64, DecoderOptions::NONE).into_iter().collect();
    let branches = instructions.iter().filter(|instruction| is_branch(instruction));
    let labels: BTreeSet<u64> = branches.map(Instruction::near_branch_target).collect();
    let label = |address: u64| labels.range(..address).count();
    let mut formatter = IntelFormatter::new();
    let mut text = String::new();
    let mut line = String::new();
    for instruction in &instructions {
        if labels.contains(&instruction.ip()) {
            let _ = writeln!(text, "L{}:", label(instruction.ip()));
        }
        line.clear();
        if is_branch(instruction) {
            formatter.format_mnemonic(instruction, &mut line);
            let _ = write!(line, " L{}", label(instruction.near_branch_target()));
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
