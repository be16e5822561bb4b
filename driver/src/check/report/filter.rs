//! Which findings are reported: those of some rules only, and not those that suppressions name.
//!
//! A suppression is `KIND:PATTERN`, in which `*` stands for any text: `rule:SPELTER-RACE-*`, `line:scan.comp:41`,
//! `kernel:main`, `memory:*partial*`. A finding is suppressed if either of its accesses matches; a kernel is its entry
//! point, its pipeline or its shader module, by the names that the program gave these. A file has one on each line, and
//! comments after `#`.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::super::{Finding, FoundAccess, Rule};

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
pub struct Suppression {
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
        // A file of suppressions could not have it.
        if pattern.contains(['#', '\n']) {
            return Err(format!("a pattern has no `#`, which begins a comment: a suppression is {kinds}"));
        }
        match field {
            Field::Rule => _ = pattern.parse::<RulePattern>()?,
            Field::Line if !has_number(pattern) => {
                return Err(format!(
                    "`{pattern}` has no number of a line: a pattern of lines is FILE:LINE or FILE:LINE:COLUMN, in which \
                     * stands for any text"
                ));
            }
            Field::Line | Field::Kernel | Field::Memory => {}
        }
        Ok(Self { field, pattern: pattern.to_owned() })
    }
}

impl fmt::Display for Suppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let field = match self.field {
            Field::Rule => "rule",
            Field::Line => "line",
            Field::Kernel => "kernel",
            Field::Memory => "memory",
        };
        write!(f, "{field}:{}", self.pattern)
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
            Field::Kernel => {
                // A finding about one dispatch has the command beside its accesses.
                let is_of_kernel = !access.kernel.is_empty();
                let command = access.command.as_ref().or(finding.dispatch.as_ref()).filter(|_| is_of_kernel);
                let mut names = command.into_iter().flat_map(|command| command.kernel_names());
                matches(&self.pattern, &access.kernel) || names.any(|name| matches(&self.pattern, name))
            }
            Field::Rule | Field::Memory => false,
        };
        match self.field {
            Field::Rule => matches_rule(&self.pattern, finding.rule),
            Field::Memory => finding.memory.as_ref().is_some_and(|memory| {
                let names =
                    [memory.place.name(), memory.resource.as_ref().and_then(|resource| resource.name.as_deref())];
                names.into_iter().flatten().any(|name| matches(&self.pattern, name))
                    || matches(&self.pattern, &memory.place.to_string())
            }),
            Field::Line | Field::Kernel => finding.first.iter().chain([&finding.second]).any(of_access),
        }
    }
}

/// Whether a pattern may match the position of a line: `scan.comp:41`, or `line 41` where the module names no file.
fn has_number(pattern: &str) -> bool {
    match pattern.contains('*') {
        true => pattern.ends_with(|last: char| last == '*' || last.is_ascii_digit()),
        false => pattern.rsplit_once([':', ' ']).is_some_and(|(_, number)| number.parse::<u32>().is_ok()),
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

/// Whether the name of a rule matches a pattern, with or without its prefix `SPELTER-`.
fn matches_rule(pattern: &str, rule: Rule) -> bool {
    let name = rule.name();
    matches(pattern, name) || name.strip_prefix("SPELTER-").is_some_and(|name| matches(pattern, name))
}

/// Rules by their names, in which `*` stands for any text: `SPELTER-RACE-*`. The prefix `SPELTER-` may be left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePattern(String);

impl FromStr for RulePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let pattern = Self(text.to_owned());
        if Rule::ALL.iter().any(|rule| pattern.has(*rule)) {
            return Ok(pattern);
        }
        let names: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
        Err(format!("`{text}` is not a rule; the rules are {}", names.join(", ")))
    }
}

impl fmt::Display for RulePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl RulePattern {
    fn has(&self, rule: Rule) -> bool {
        matches_rule(&self.0, rule)
    }

    /// Patterns that are separated by commas.
    ///
    /// # Errors
    ///
    /// A sentence about a pattern that matches no rule.
    pub fn list(text: &str) -> Result<Vec<Self>, String> {
        text.split(',').map(str::parse).collect()
    }
}

/// Which findings are reported; all by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Only findings of these rules; empty for all.
    pub only: Vec<RulePattern>,
    /// Findings that are left out.
    pub suppressions: Vec<Suppression>,
}

impl Filter {
    /// Adds the suppressions of a file, one on each line.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or a line is no suppression: a sentence without the file's name.
    pub fn add_file(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
        for (number, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if !line.is_empty() {
                let suppression = line.parse().map_err(|problem| format!("line {}: {problem}", number + 1))?;
                self.suppressions.push(suppression);
            }
        }
        Ok(())
    }

    /// Whether a finding is of the rules that are asked for.
    pub fn wants(&self, finding: &Finding) -> bool {
        self.only.is_empty() || self.only.iter().any(|pattern| pattern.has(finding.rule))
    }

    /// Whether a finding is suppressed.
    pub fn suppresses(&self, finding: &Finding) -> bool {
        self.suppressions.iter().any(|suppression| suppression.has(finding))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Hazard;

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
        assert_eq!("line: scan.comp:41".parse::<Suppression>().unwrap().to_string(), "line:scan.comp:41");
        assert!("line:a#1".parse::<Suppression>().unwrap_err().contains("no `#`"));
        assert!("scan.comp".parse::<Suppression>().unwrap_err().contains("rule:, line:"));
        assert!("color:red".parse::<Suppression>().unwrap_err().contains("`color:`"));
        assert!("rule: ".parse::<Suppression>().unwrap_err().contains("empty"));
    }

    #[test]
    fn a_suppression_that_matches_nothing_is_refused() {
        for text in ["line:a.comp", "line:a.comp:x", "line:*.comp", "line:41", "line:a.comp:4:"] {
            let problem = text.parse::<Suppression>().unwrap_err();
            assert!(problem.contains("a pattern of lines is FILE:LINE"), "{text}: {problem}");
        }
        for text in ["line:a.comp:4", "line:a.comp:4:7", "line:a.comp*", "line:*:4", "line:line 4:7", "line:*"] {
            assert_eq!(text.parse::<Suppression>().unwrap().to_string(), text);
        }
        let problem = "rule:SPELTER-RACE-XYZ".parse::<Suppression>().unwrap_err();
        assert!(problem.starts_with("`SPELTER-RACE-XYZ` is not a rule; the rules are SPELTER-RACE-RAW"), "{problem}");
        assert!("rule:*-WAR".parse::<Suppression>().is_ok() && "rule:RACE-*".parse::<Suppression>().is_ok());
    }

    #[test]
    fn a_rule_has_its_name_or_a_pattern() {
        let patterns = RulePattern::list("SPELTER-RACE-RAW, barrier").unwrap_err();
        assert!(patterns.starts_with("`barrier` is not a rule; the rules are SPELTER-RACE-RAW"), "{patterns}");
        let patterns = RulePattern::list("RACE-*,SPELTER-NOTE").unwrap();
        let wanted: Vec<_> = Rule::ALL.into_iter().filter(|rule| patterns.iter().any(|p| p.has(*rule))).collect();
        assert_eq!(wanted.len(), 4, "{wanted:?}");
        assert!(!wanted.contains(&Rule::Barrier));
        // Options and suppressions take the same patterns.
        for (pattern, rule, expected) in [
            ("SPELTER-RACE-*", Rule::Race(Hazard::ReadAfterWrite), true),
            ("RACE-*", Rule::Race(Hazard::ReadAfterWrite), true),
            ("*-RAW", Rule::Race(Hazard::ReadAfterWrite), true),
            ("RAW", Rule::Race(Hazard::ReadAfterWrite), false),
            ("*", Rule::Barrier, true),
        ] {
            assert_eq!(matches_rule(pattern, rule), expected, "{pattern}");
            assert!(!expected || pattern.parse::<RulePattern>().unwrap().has(rule), "{pattern}");
        }
    }
}
