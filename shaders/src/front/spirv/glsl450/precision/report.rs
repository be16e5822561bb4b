//! The table in `docs/precision.md`.

use std::path::PathBuf;

use super::{AnyInst, Case};

const BEGIN: &str = "<!-- errors: written by BLESS=1 cargo test -p spelter-shaders precision -->\n";
const END: &str = "<!-- end of errors -->\n";

/// One line of the table.
pub(super) fn row(case: &Case, largest: f64) -> String {
    let name = match case.which {
        AnyInst::Core(op) => format!("`Op{op:?}`"),
        AnyInst::Glsl(instruction) => format!("`{instruction:?}`"),
    };
    let size = match case.operands.first().map(|&(shape, _)| shape) {
        Some(super::ArithmeticType::Matrix { columns, rows, .. }) => format!(" {columns}×{rows}"),
        _ => String::new(),
    };
    let found = if largest == 0.0 { "exact".into() } else { format!("{largest:.2}") };
    format!("| {name}{size} | {} | {found} |\n", case.rule)
}

/// Compares the table with the one in the documentation, or writes it there.
pub(super) fn check(rows: &[String]) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/precision.md");
    let text = std::fs::read_to_string(&path).expect("docs/precision.md");
    let (head, rest) = text.split_once(BEGIN).expect("where the table begins");
    let (old, tail) = rest.split_once(END).expect("where the table ends");
    let table = format!("\n| Instruction | Vulkan asks | Largest error |\n| --- | --- | --- |\n{}\n", rows.concat());
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, [head, BEGIN, &table, END, tail].concat()).expect("docs/precision.md can be written");
    } else {
        let same = old.lines().count() == table.lines().count() && old.lines().zip(table.lines()).all(agree);
        assert!(same, "docs/precision.md is out of date, run with BLESS=1; measured:\n{table}");
    }
}

/// Whether two rows agree. The references use the platform's mathematical functions, so the last digit may differ.
fn agree((old, new): (&str, &str)) -> bool {
    let split = |row: &str| {
        let (text, error) = row.trim_end_matches(" |").rsplit_once(" | ")?;
        Some((text.to_owned(), error.parse::<f64>().ok()?))
    };
    match (split(old), split(new)) {
        (Some((old, was)), Some((new, is))) => old == new && (was - is).abs() < 0.02,
        _ => old == new,
    }
}
