//! Repairs by barriers in words: where they must be, and what invocations do that do not come there.

use spelter_shaders::ir::{Inst, InstData, Kernel, Scope, SourceLine};

use super::barrier::{Attempt, BarrierForm, UnrepairedRace};
use super::place::{Around, Before, Gap, Text};
use crate::check::finding::{FoundAccess, Repair};

/// What a repair says of its barriers, apart from their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BarrierWords {
    /// The barrier in the words of the language.
    pub(super) barrier: &'static str,
    /// What those do that do not come to it.
    pub(super) around: String,
}

impl UnrepairedRace<'_> {
    pub(super) fn repair(&self, attempt: &Attempt, kind: &BarrierForm) -> Repair {
        let mut places: Vec<_> = attempt.gaps.iter().map(|(gap, order)| self.words(gap, *order)).collect();
        let text = Text::new(self.kernel);
        let wider = attempt.wider.and_then(|at| text.inst(at));
        let replaced = attempt.replaced.iter().filter_map(|site| text.inst(*text.of_site(site).first()?));
        let named = |inst| barrier_at(self.kernel, inst);
        let replaced: Vec<String> = wider.into_iter().chain(replaced).map(named).collect();
        if let Some((last, others)) = replaced.split_last() {
            let others = others.iter().map(|other| format!("{other} and ")).collect::<String>();
            places.push(format!("in place of {others}{last}"));
        }
        let coherent = if kind.coherent { self.coherent() } else { String::new() };
        let places = match &attempt.gaps[..] {
            [_] => places.join(", "),
            _ => places.join(", and "),
        };
        let around = around(&attempt.around);
        let text =
            format!("{} {places}, where all invocations of the workgroup execute it{around}{coherent}", kind.text);
        let line = match attempt.gaps.first() {
            Some((Gap::Between { .. }, order)) => self.sides[order[1]].accesses[0].line.clone(),
            Some((Gap::After { .. }, order)) => self.sides[order[0]].accesses[1].line.clone(),
            Some((Gap::LoopEnd { last, .. }, _)) => last.clone(),
            None => wider.and_then(|inst| self.kernel.line_of(inst)).cloned(),
        };
        Repair { text, line }
    }

    /// A place in words. `order` is that of the accesses in the text.
    fn words(&self, gap: &Gap, order: [usize; 2]) -> String {
        let accesses = [&self.sides[order[0]].accesses[1], &self.sides[order[1]].accesses[0]];
        let [earlier, later] = apart(accesses).unwrap_or_else(|| accesses.map(named));
        let in_one_line = statements_of_line(accesses);
        match gap {
            Gap::Between { splits: true, before: Some(before), .. } if in_one_line != Some(Statements::Two) => format!(
                "between {earlier} and {} that has {later}: the condition first reads into a variable",
                outer(before)
            ),
            // A branch may be within an expression, so that the place is not within the instructions of the statement.
            Gap::Between { splits, before: None, .. }
                if in_one_line == Some(Statements::One) || *splits && in_one_line.is_none() =>
            {
                format!("between {earlier} and {later}, which must be two statements")
            }
            Gap::Between { before: None, .. } => format!("after {earlier} and before {later}"),
            Gap::Between { before: Some(before), .. } => {
                format!("after {earlier} and before {later}: before {}", outer(before))
            }
            Gap::After { .. } => format!("directly after {earlier}"),
            Gap::LoopEnd { condition: Some(number), .. } => format!(
                "at the end of the loop, between {} and the next iteration: the condition first reads into a variable",
                named(&self.sides[*number].accesses[0])
            ),
            Gap::LoopEnd { last, .. } => {
                let last = last.as_ref().map_or(String::new(), |line| format!(", after line {}", line.line));
                format!("at the end of the loop{last}, before the next iteration")
            }
        }
    }
}

/// The statements of two accesses in one line of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Statements {
    /// One, as far as lines without columns tell.
    One,
    Two,
}

/// Whether two accesses in one line are of one statement; `None` if they are not in one line.
fn statements_of_line([one, other]: [&FoundAccess; 2]) -> Option<Statements> {
    let (a, b) = (one.line.as_ref()?, other.line.as_ref()?);
    if (&a.file, a.line, &one.inlined_at) != (&b.file, b.line, &other.inlined_at) {
        return None;
    }
    let between = || {
        let (start, end) = (a.column.min(b.column).checked_sub(1)?, a.column.max(b.column).checked_sub(1)?);
        one.quoted()?.get(start as usize..end as usize)
    };
    Some(if between().is_some_and(|text| text.contains(';')) { Statements::Two } else { Statements::One })
}

/// Two accesses of one line in a sentence, if two calls of a function make them.
fn apart([one, other]: [&FoundAccess; 2]) -> Option<[String; 2]> {
    let calls = || one.inlined_at.iter().zip(&other.inlined_at);
    let (a, b) = calls().find(|(a, b)| a != b).filter(|_| one.line.is_some() && one.line == other.line)?;
    Some([a, b].map(|call| format!("the call at {call}")))
}

/// A branch, loop or call in a sentence.
fn outer(before: &Before) -> String {
    format!("the {} at {}", if before.call { "call" } else { "branch or loop" }, before.line)
}

/// What those do that do not come to a barrier, in words.
pub(super) fn around(around: &Around) -> String {
    let listed = |lines: &[SourceLine]| lines.iter().map(ToString::to_string).collect::<Vec<_>>().join(" and at ");
    let branches = (!around.branches.is_empty())
        .then(|| format!("the branch at {} ends before it, and begins again after it", listed(&around.branches)));
    let returns = (!around.returns.is_empty()).then(|| {
        format!(
            "instead of the return at {}, put the code before the barrier and the code after it each into an `if`",
            listed(&around.returns)
        )
    });
    let words: Vec<String> = branches.into_iter().chain(returns).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", and ")) }
}

/// A barrier of the kernel in a sentence.
pub(super) fn barrier_at(kernel: &Kernel, inst: Inst) -> String {
    let what = match kernel.insts[inst] {
        InstData::Barrier { execution: Scope::Subgroup, .. } => "the subgroup barrier",
        _ => "the barrier",
    };
    match kernel.line_of(inst) {
        Some(line) => format!("{what} at {line}"),
        None => format!("{what} at SPIR-V word {}", kernel.origins[inst]),
    }
}

/// An access in a sentence.
pub(super) fn named(access: &FoundAccess) -> String {
    let position = access.position().map(|position| format!(" at {position}")).unwrap_or_default();
    format!("the {}{position}", access.action)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(column: u32, text: &str) -> FoundAccess {
        FoundAccess {
            line: Some(SourceLine { file: "a.comp".into(), line: 1, column }),
            source: Some(text.into()),
            ..FoundAccess::default()
        }
    }

    #[test]
    fn two_statements_of_a_line_are_known_by_their_columns() {
        let text = "s[l] = l; a[l] = s[63u - l];";
        let of = |columns: [u32; 2]| {
            let [one, other] = columns.map(|column| access(column, text));
            statements_of_line([&one, &other])
        };
        assert_eq!(of([1, 18]), Some(Statements::Two));
        assert_eq!(of([18, 1]), Some(Statements::Two));
        assert_eq!(of([11, 18]), Some(Statements::One));
        assert_eq!(of([0, 0]), Some(Statements::One));
        let (one, other) = (access(1, text), access(1, text));
        let elsewhere = FoundAccess { line: Some(SourceLine { line: 2, ..other.line.clone().unwrap() }), ..other };
        assert_eq!(statements_of_line([&one, &elsewhere]), None);
        assert_eq!(statements_of_line([&one, &FoundAccess::default()]), None);
    }
}
