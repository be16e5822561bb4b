//! The table of compiled kernels in `docs/precision.md`.

use std::path::PathBuf;

use spelter_shaders::ir::{InstData, Kernel, Op};

use crate::math::errors::Case;
use crate::math::{EXACT, lowered, parse, text_of};

const BEGIN: &str = "<!-- compiled: written by BLESS=1 cargo test -p spelter-shaders --test compiler math:: -->\n";
const END: &str = "<!-- end of compiled -->\n";

/// One line of the table.
pub(crate) fn row(case: &Case, largest: f64) -> String {
    format!("| `{}` | {} | {largest:.2} | {:.1} | {} |\n", case.op.name(), case.rule, case.bound, instructions(case.op))
}

/// How many instructions the operation becomes, without those of a branch that is rarely taken.
fn instructions(op: Op) -> usize {
    let before = parse(&text_of(op));
    let after = lowered(before.clone(), EXACT);
    let rare: Vec<_> = after.layout.iter().filter_map(|&block| rare_target(&after, block)).collect();
    let count = |kernel: &Kernel| {
        let blocks = kernel.layout.iter().filter(|block| !rare.contains(block));
        let insts = blocks.flat_map(|&block| &kernel.blocks[block].insts).map(|&inst| &kernel.insts[inst]);
        // Views of the same bits cost nothing.
        let free = |data: &InstData| {
            matches!(data, InstData::Const { .. } | InstData::Jump { .. })
                || matches!(data, InstData::Pure { op: Op::FloatBits | Op::FloatFromBits, .. })
        };
        insts.filter(|data| !free(data)).count()
    };
    count(&after) - (count(&before) - 1)
}

fn rare_target(kernel: &Kernel, block: spelter_shaders::ir::Block) -> Option<spelter_shaders::ir::Block> {
    match &kernel.insts[*kernel.blocks[block].insts.last()?] {
        InstData::Branch { then, .. } => Some(then.block),
        _ => None,
    }
}

/// Compares the table with the one in the book, or writes it there.
pub(crate) fn check(rows: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/precision.md");
    let text = std::fs::read_to_string(&path).expect("docs/precision.md");
    let (head, rest) = text.split_once(BEGIN).expect("where the table begins");
    let (old, tail) = rest.split_once(END).expect("where the table ends");
    let heads = "| Operation | Vulkan asks | Found | Bound | Instructions |\n| --- | --- | --- | --- | --- |\n";
    let table = format!("\n{heads}{}\n", rows.concat());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, [head, BEGIN, &table, END, tail].concat()).expect("docs/precision.md can be written");
    } else {
        let same = old.lines().count() == table.lines().count() && old.lines().zip(table.lines()).all(agree);
        assert!(same, "docs/precision.md is out of date, run with BLESS=1; measured:\n{table}");
    }
}

/// Whether two rows tell the same. The references come from the platform's mathematics, so the last digit may differ.
fn agree((old, new): (&str, &str)) -> bool {
    let split = |row: &str| {
        let mut columns = row.split(" | ").map(str::to_owned).collect::<Vec<_>>();
        let error = (columns.len() == 4).then(|| columns.remove(2).parse::<f64>().ok()).flatten();
        (columns, error)
    };
    let ((old_rest, was), (new_rest, is)) = (split(old), split(new));
    let close = match (was, is) {
        (Some(was), Some(is)) => (was - is).abs() < 0.02,
        _ => was == is,
    };
    old_rest == new_rest && close
}
