//! The section of `docs/race-causes.md`: its text, and the comparison with the page.

use super::kernel::Marked;
use super::root;
use super::table::{Cause, Version};

/// The columns of a line in the page.
const COLUMNS: usize = 116;

/// Prose in lines.
fn paragraph(text: &str) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split_whitespace() {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > COLUMNS {
            out.push('\n');
            column = 0;
        }
        if column > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

/// A report whose long lines go on in the next one, indented.
fn wrapped(report: &str) -> String {
    let line = |line: &str| {
        if line.chars().count() <= COLUMNS {
            return format!("{line}\n");
        }
        let indent = " ".repeat(line.len() - line.trim_start().len() + 4);
        let (mut out, mut column) = (String::new(), 0);
        for word in line.split_inclusive(' ') {
            let length = word.chars().count();
            if column + length > COLUMNS {
                out.truncate(out.trim_end().len());
                out.push_str(&format!("\n{indent}"));
                column = indent.len();
            }
            out.push_str(word);
            column += length;
        }
        format!("{out}\n")
    };
    report.lines().map(line).collect()
}

/// The section of a cause: the kernel with the mistake and its report in one language, and what repairs it in each.
pub(super) fn of_cause(
    cause: &Cause,
    (shown, kernel, report): &(&Version, String, String),
    versions: &[(&Version, Marked)],
) -> String {
    let Cause { name, title, text, options, profile, repair, without, .. } = cause;
    let (extension, language) = (shown.extension, shown.markdown());
    let mut out = format!("\n## {title}\n\n{}\n```{language}\n{kernel}```\n\n", paragraph(text));
    out += &format!("```text\n$ spelter run {name}.{extension} {options} {profile}\n{}```\n\n", wrapped(report));
    out += &format!("{}\n", paragraph(&format!("Repair: {repair}")));
    for (version, kernel) in versions {
        let (language, diff) = (version.language(), kernel.diff());
        let how = if version.how.is_empty() { String::new() } else { format!(" {}", version.how) };
        out += &format!("{}\n```diff\n{diff}```\n\n", paragraph(&format!("In {language}:{how}")));
    }
    if !without.is_empty() {
        out += &paragraph(without);
    }
    format!("{}\n", out.trim_end())
}

const BEGIN: &str = "<!-- runtime/cli/tests/check_causes writes what follows -->\n";
const END: &str = "\n<!-- end of what check_causes writes -->\n";

/// Compares the section with that of the page, or writes it.
pub(super) fn compare(section: &str) {
    let path = root().join("docs/race-causes.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (present, after) = rest.split_once(END).unwrap();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{section}{END}{after}")).unwrap();
    } else {
        assert_eq!(present, section, "BLESS=1 writes the page");
    }
}
