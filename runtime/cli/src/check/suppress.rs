//! Suppressions: findings that are known and not to be reported.
//!
//! A suppression is `KIND:PATTERN`, in which `*` stands for any text: `rule:SPELTER-RACE-*`, `line:scan.comp:41`,
//! `kernel:main`, `memory:*partial*`. A finding is suppressed if either of its accesses matches. A file has one on each
//! line, and comments after `#`.

use std::path::PathBuf;
use std::str::FromStr;

use spelter::check::{Finding, FoundAccess};

use crate::failure::Failure;

/// What a pattern is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Rule,
    Line,
    Kernel,
    Memory,
}

/// One suppression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Suppression {
    field: Field,
    pattern: String,
}

impl FromStr for Suppression {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let kinds = "rule:, line:, kernel: or memory: and a pattern";
        let (field, pattern) = text.split_once(':').ok_or_else(|| format!("a suppression is {kinds}"))?;
        let field = match field.trim() {
            "rule" => Field::Rule,
            "line" => Field::Line,
            "kernel" => Field::Kernel,
            "memory" => Field::Memory,
            other => return Err(format!("`{other}:` is unknown: a suppression is {kinds}")),
        };
        let pattern = pattern.trim();
        if pattern.is_empty() {
            return Err(format!("the pattern is empty: a suppression is {kinds}"));
        }
        Ok(Self { field, pattern: pattern.to_owned() })
    }
}

impl Suppression {
    fn has(&self, finding: &Finding) -> bool {
        let of_access = |access: &FoundAccess| match self.field {
            Field::Line => access.line.as_ref().is_some_and(|line| {
                // With or without the column.
                matches(&self.pattern, &line.to_string())
                    || matches(&self.pattern, &format!("{}:{}", line.file, line.line))
            }),
            Field::Kernel => matches(&self.pattern, &access.kernel),
            Field::Rule | Field::Memory => false,
        };
        match self.field {
            Field::Rule => matches(&self.pattern, finding.rule.name()),
            Field::Memory => {
                finding.memory.as_ref().is_some_and(|memory| matches(&self.pattern, &memory.place.to_string()))
            }
            Field::Line | Field::Kernel => finding.first.iter().chain([&finding.second]).any(of_access),
        }
    }
}

/// Whether a text matches a pattern, in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// All suppressions of a run.
#[derive(Debug)]
pub(crate) struct Suppressions(Vec<Suppression>);

impl Suppressions {
    /// Those of the options, and those of files.
    pub(crate) fn new(given: &[Suppression], files: &[PathBuf]) -> Result<Self, Failure> {
        let mut all = given.to_vec();
        for path in files {
            let text = std::fs::read_to_string(path).map_err(|error| Failure::file(path, error))?;
            for (number, line) in text.lines().enumerate() {
                let line = line.split('#').next().unwrap_or_default().trim();
                if !line.is_empty() {
                    let problem = |problem| Failure::file(path, format_args!("line {}: {problem}", number + 1));
                    all.push(line.parse().map_err(problem)?);
                }
            }
        }
        Ok(Self(all))
    }

    /// Whether a finding is suppressed.
    pub(crate) fn has(&self, finding: &Finding) -> bool {
        self.0.iter().any(|suppression| suppression.has(finding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stars_stand_for_any_text() {
        for (pattern, text, expected) in [
            ("main", "main", true),
            ("main", "mains", false),
            ("m*n", "main", true),
            ("*", "", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-c", false),
            ("*partial*", "`partial` (set 0, binding 1)", true),
            ("ab*ba", "aba", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn a_suppression_names_a_field() {
        assert!("line:scan.comp:41".parse::<Suppression>().is_ok());
        assert!("scan.comp".parse::<Suppression>().unwrap_err().contains("rule:, line:"));
        assert!("color:red".parse::<Suppression>().unwrap_err().contains("`color:`"));
        assert!("rule: ".parse::<Suppression>().unwrap_err().contains("empty"));
    }
}
