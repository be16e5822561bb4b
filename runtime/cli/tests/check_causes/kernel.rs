//! Kernels in two versions in one file: with a mistake, and repaired. Marks at the lines tell them apart
//! (`../causes/README.md`).

use std::path::PathBuf;

/// In which of the two versions a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum In {
    Both,
    Mistake,
    Repaired,
}

#[derive(Debug)]
struct Line {
    text: String,
    of: In,
    /// Whether the report names it.
    named: bool,
}

/// A kernel in both versions.
#[derive(Debug)]
pub(super) struct Marked(Vec<Line>);

/// Where the kernels are.
pub(super) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/causes")
}

impl Marked {
    pub(super) fn read(name: &str, extension: &str) -> Self {
        let text = std::fs::read_to_string(folder().join(format!("{name}.{extension}"))).unwrap();
        Self(text.lines().map(|line| Line::of(line, if extension == "spvasm" { ";" } else { "//" })).collect())
    }

    fn text(&self, without: In) -> String {
        self.0.iter().filter(|line| line.of != without).map(|line| format!("{}\n", line.text)).collect()
    }

    pub(super) fn with_mistake(&self) -> String {
        self.text(In::Repaired)
    }

    pub(super) fn repaired(&self) -> String {
        self.text(In::Mistake)
    }

    /// The numbers of the lines that the report names, in the version with the mistake.
    pub(super) fn named_lines(&self) -> Vec<u64> {
        let lines = self.0.iter().filter(|line| line.of != In::Repaired);
        (1..).zip(lines).filter(|(_, line)| line.named).map(|(number, _)| number).collect()
    }

    /// The lines that change, as a diff with a line before and after them.
    pub(super) fn diff(&self) -> String {
        let changes = |at: usize| self.0.get(at).is_some_and(|line| line.of != In::Both);
        let is_shown = |at: usize| changes(at) || changes(at + 1) || at > 0 && changes(at - 1);
        let mut out = String::new();
        let mut last = None;
        for (at, line) in self.0.iter().enumerate().filter(|(at, _)| is_shown(*at)) {
            if last.is_some_and(|last| last + 1 < at) {
                out.push_str(" …\n");
            }
            let sign = match line.of {
                In::Both => ' ',
                In::Mistake => '-',
                In::Repaired => '+',
            };
            out.push_str(&format!("{sign}{}\n", line.text));
            last = Some(at);
        }
        out
    }
}

impl Line {
    fn of(line: &str, comment: &str) -> Self {
        let indent = &line[..line.len() - line.trim_start().len()];
        if let Some(text) = line.trim_start().strip_prefix(&format!("{comment}+ ")) {
            let (text, named) = cut(text, &format!(" {comment}!"));
            assert!(!named, "the report is about the kernel with the mistake: {line}");
            return Self { text: format!("{indent}{text}"), of: In::Repaired, named };
        }
        let (line, gone) = cut(line, &format!(" {comment}-"));
        let (text, named) = cut(line, &format!(" {comment}!"));
        Self { text: text.to_owned(), of: if gone { In::Mistake } else { In::Both }, named }
    }
}

/// A text without a mark at its end, and whether it had it.
fn cut<'a>(text: &'a str, mark: &str) -> (&'a str, bool) {
    text.strip_suffix(mark).map_or((text, false), |text| (text, true))
}

#[test]
fn marks_are_taken_off() {
    let lines = ["a //!", "  b //! //-", "  //+ c", "d"].map(|line| Line::of(line, "//"));
    let kernel = Marked(lines.into());
    assert_eq!(kernel.with_mistake(), "a\n  b\nd\n");
    assert_eq!(kernel.repaired(), "a\n  c\nd\n");
    assert_eq!(kernel.named_lines(), [1, 2]);
    assert_eq!(kernel.diff(), " a\n-  b\n+  c\n d\n");
}
