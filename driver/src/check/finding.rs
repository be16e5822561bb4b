//! Findings of checked mode: what was found where, why it is wrong, and what repairs it.

use std::fmt;
use std::sync::Arc;

use super::found_command::FoundCommand;
use super::found_memory::FoundMemory;
use super::group::FindingGroup;
use super::step::FoundStep;
use spelter_shaders::ir::SourceLine;
use spelter_shaders::schedule::Schedule;

/// One result of checked mode.
#[derive(Clone, PartialEq, Eq)]
pub struct Finding {
    /// The rule that is broken.
    pub rule: Rule,
    /// How bad it is.
    pub severity: Severity,
    /// The memory in conflict; `None` for rules of control flow.
    pub memory: Option<FoundMemory>,
    /// The earlier access, if the rule is about two: in the execution that was observed; of two commands, or a command
    /// and the host, that ran in another order than that of their submission by chance, the one that was submitted
    /// first.
    pub first: Option<FoundAccess>,
    /// The access, or the barrier, that breaks the rule.
    pub second: FoundAccess,
    /// The dispatch in which it was found first, in findings about one; accesses of several commands have their own.
    pub dispatch: Option<Arc<FoundCommand>>,
    /// Between two commands, or a command and the host: the dependencies that the program has there, in order; of many
    /// the last ones.
    pub between: Vec<FoundStep>,
    /// Why the accesses are not ordered: the first condition of the memory model that fails, in a sentence each.
    pub reasons: Vec<String>,
    /// Changes that repair it, the smallest first. Barriers of kernels, and one barrier of commands of a queue, were
    /// verified on the execution that was observed; semaphores, fences, atomic functions for lost updates, and two
    /// dispatches in place of one are advice.
    pub repairs: Vec<Repair>,
    /// How often it occurred in the run; it is reported once. Of two commands, the number of pairs of commands of which
    /// it is true; of invocations of a dispatch, the number of accesses that raced.
    pub count: u64,
    /// The order of workgroups, subgroups and lanes in which it occurred: the same order finds it again.
    pub schedule: Schedule,
    /// The races of the dispatch that have one cause and one repair with this one; reports show the first one of them.
    pub group: Option<Arc<FindingGroup>>,
    /// The part of the execution that decides, as a litmus test that asks for the race; `None` if there is none, or the
    /// format cannot express it.
    pub replay: Option<Arc<str>>,
}

/// The rule that a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// A data race: Vulkan memory model, "Data Race".
    Race(Hazard),
    /// A control barrier that not all invocations of its scope execute: SPIR-V `OpControlBarrier`, Vulkan "Control
    /// barriers must be in uniform control flow".
    Barrier,
    /// A value of the device that the host reads, or is about to read, without a dependency that makes it visible to
    /// the host: Vulkan, "Host Access to Device Memory Objects", `VK_ACCESS_2_HOST_READ_BIT`.
    Host,
    /// Code that the memory model calls a data race and that compilers emit for code that is right in its language.
    Note,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 6] = [
        Self::Race(Hazard::ReadAfterWrite),
        Self::Race(Hazard::WriteAfterRead),
        Self::Race(Hazard::WriteAfterWrite),
        Self::Barrier,
        Self::Host,
        Self::Note,
    ];

    /// The name in reports and suppressions: `SPELTER-RACE-RAW`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Race(Hazard::ReadAfterWrite) => "SPELTER-RACE-RAW",
            Self::Race(Hazard::WriteAfterRead) => "SPELTER-RACE-WAR",
            Self::Race(Hazard::WriteAfterWrite) => "SPELTER-RACE-WAW",
            Self::Barrier => "SPELTER-BARRIER",
            Self::Host => "SPELTER-HOST",
            Self::Note => "SPELTER-NOTE",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The kinds of the two accesses of a data race, in the order of [`Finding::first`] and [`Finding::second`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Hazard {
    /// A read after a write.
    ReadAfterWrite,
    /// A write after a read.
    WriteAfterRead,
    /// A write after a write.
    WriteAfterWrite,
}

impl Hazard {
    /// That of the same two accesses in the other order.
    pub(super) fn reversed(self) -> Self {
        match self {
            Self::ReadAfterWrite => Self::WriteAfterRead,
            Self::WriteAfterRead => Self::ReadAfterWrite,
            Self::WriteAfterWrite => Self::WriteAfterWrite,
        }
    }
}

impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadAfterWrite => "read after write",
            Self::WriteAfterRead => "write after read",
            Self::WriteAfterWrite => "write after write",
        })
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Not an error in the profile that was chosen.
    Note,
    /// A suspicion that the axioms of the memory model could not be asked about: the reason says why.
    Warning,
    /// The axioms of the memory model say that it is wrong.
    Error,
}

impl Severity {
    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One access in a finding: of an instruction of a kernel, of a transfer, of the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FoundAccess {
    /// What it does: `write`, `read`, `atomic update`, `barrier`.
    pub action: String,
    /// The command, in findings about several.
    pub command: Option<Arc<FoundCommand>>,
    /// The kernel; empty if it is no dispatch.
    pub kernel: Arc<str>,
    /// A hash of the kernel's module, of its words or its text, equal in all processes: most entry points are named
    /// `main`. 0 if it is no dispatch.
    pub module: u64,
    /// The position in the source, if the module has debug lines.
    pub line: Option<SourceLine>,
    /// The positions of the calls through which it was inlined, the outermost first.
    pub inlined_at: Vec<SourceLine>,
    /// The SPIR-V word of the instruction; 0 if unknown.
    pub word: u32,
    /// The invocation, in findings about two of one dispatch.
    pub invocation: Option<FoundInvocation>,
    /// The text of the source file, if the module has it.
    pub source: Option<Arc<str>>,
}

/// An invocation in a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundInvocation {
    /// `WorkgroupId`.
    pub workgroup: [u32; 3],
    /// `LocalInvocationId`.
    pub local: [u32; 3],
}

impl fmt::Display for FoundInvocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let triple = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        write!(f, "workgroup {}, invocation {}", triple(self.workgroup), triple(self.local))
    }
}

impl FoundAccess {
    /// An access that no instruction makes.
    pub(super) fn of_command(action: &str) -> Self {
        Self { action: action.to_owned(), ..Self::default() }
    }

    /// The position as text: `scan.comp:41:5`, or the word of the module; nothing if no instruction makes the access.
    pub fn position(&self) -> Option<String> {
        match &self.line {
            Some(line) => Some(line.to_string()),
            None => (!self.kernel.is_empty()).then(|| format!("SPIR-V word {}", self.word)),
        }
    }

    /// What makes the access: the command and the invocation, as far as they are known.
    pub fn agent(&self) -> Option<String> {
        match (&self.command, self.invocation) {
            (Some(command), None) => Some(command.to_string()),
            (None, Some(invocation)) => Some(invocation.to_string()),
            (Some(command), Some(invocation)) => Some(format!("{invocation} of {command}")),
            (None, None) => None,
        }
    }

    /// The line of source text, if the module has it.
    pub fn quoted(&self) -> Option<&str> {
        let line = self.line.as_ref()?.line;
        self.source.as_ref()?.lines().nth((line as usize).checked_sub(1)?)
    }

    /// The lines of source text from this one's to that of a later access in the same file.
    pub(super) fn quoted_up_to(&self, later: &Self) -> Option<Vec<&str>> {
        let (first, last) = (self.line.as_ref()?, later.line.as_ref()?);
        let (skipped, end) = ((first.line as usize).checked_sub(1)?, last.line as usize);
        let is_later = first.file == last.file && skipped < end;
        is_later.then_some(self.source.as_ref()?.lines().skip(skipped).take(end - skipped).collect())
    }
}

impl fmt::Display for FoundAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.action)?;
        if let Some(position) = self.position() {
            write!(f, " at {position}")?;
        }
        match self.agent() {
            Some(agent) => write!(f, " by {agent}"),
            None => Ok(()),
        }
    }
}

/// A change that makes the accesses ordered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The change, in a sentence.
    pub text: String,
    /// Where to make it.
    pub line: Option<SourceLine>,
}

/// One paragraph without quoted source: `error[SPELTER-RACE-RAW]: …`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.rule, self.title())?;
        if let Some(first) = &self.first {
            write!(f, "\n  {first}")?;
        }
        write!(f, "\n  {}", self.second)?;
        for reason in &self.reasons {
            write!(f, "\n  because {reason}")?;
        }
        for repair in &self.repairs {
            write!(f, "\n  repair: {}", repair.text)?;
        }
        match &self.dispatch {
            Some(dispatch) => write!(f, "\n  {}", dispatch.place()),
            None => Ok(()),
        }
    }
}

/// As [`Display`](fmt::Display): `assert!(findings.is_empty(), "{findings:?}")` is how tests print findings, and
/// the fields have the text of the source file twice.
impl fmt::Debug for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Finding {
    /// What is wrong, in a phrase: `data race, read after write, in workgroup variable `tile`, bytes 4..8`.
    pub fn title(&self) -> String {
        let memory = self.memory.as_ref().map(|memory| format!(" in {memory}")).unwrap_or_default();
        match (self.rule, self.severity) {
            (Rule::Race(hazard), Severity::Warning) => format!("possible data race ({hazard}){memory}"),
            (Rule::Race(hazard), _) => format!("data race ({hazard}){memory}"),
            (Rule::Host, _) => format!("value of the device that is not visible to the host{memory}"),
            (Rule::Barrier, _) => "barrier that not all invocations of its scope reach".to_owned(),
            (Rule::Note, _) => format!("not a data race in this profile{memory}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::found_memory::FoundPlace;
    use super::*;

    fn access(action: &str, line: u32, local: u32) -> FoundAccess {
        FoundAccess {
            action: action.into(),
            kernel: "main".into(),
            module: 1,
            line: Some(SourceLine { file: "scan.wgsl".into(), line, column: 5 }),
            inlined_at: Vec::new(),
            word: 7,
            command: None,
            invocation: Some(FoundInvocation { workgroup: [1, 0, 0], local: [local, 0, 0] }),
            source: Some("one\ntwo\nthree".into()),
        }
    }

    #[test]
    fn the_calls_of_two_accesses_at_one_position_are_said_once_or_of_each() {
        let call = |line: u32| vec![SourceLine { file: "scan.wgsl".into(), line, column: 3 }];
        let text = |first: u32, second: u32| {
            let finding = Finding {
                rule: Rule::Race(Hazard::WriteAfterWrite),
                severity: Severity::Error,
                memory: None,
                first: Some(FoundAccess { inlined_at: call(first), ..access("write", 2, 1) }),
                second: FoundAccess { inlined_at: call(second), ..access("write", 2, 2) },
                dispatch: None,
                between: Vec::new(),
                reasons: Vec::new(),
                repairs: Vec::new(),
                count: 1,
                schedule: Schedule::Ascending,
                group: None,
                replay: None,
            };
            super::super::report::text(&finding, &[], false)
        };
        let same = text(3, 3);
        assert_eq!(same.matches("was inlined from a call at scan.wgsl:3:3").count(), 1, "{same}");
        assert!(same.contains("= scan.wgsl:2:5 was inlined"), "{same}");
        let different = text(3, 1);
        for (invocation, line) in [(1, 3), (2, 1)] {
            let part = format!("invocation ({invocation}, 0, 0) was inlined from a call at scan.wgsl:{line}:3");
            assert!(different.contains(&part), "{part}: {different}");
        }
    }

    #[test]
    fn a_finding_is_a_paragraph() {
        let finding = Finding {
            rule: Rule::Race(Hazard::ReadAfterWrite),
            severity: Severity::Error,
            memory: Some(FoundMemory::new(FoundPlace::Variable { name: "tile".into() }, 4..8)),
            first: Some(access("write", 2, 1)),
            second: access("read", 3, 2),
            dispatch: None,
            between: Vec::new(),
            reasons: vec!["nothing orders the write before the read".into()],
            repairs: vec![Repair { text: "a workgroupBarrier() before scan.wgsl:3".into(), line: None }],
            count: 3,
            schedule: Schedule::Ascending,
            group: None,
            replay: None,
        };
        let expected = "\
error[SPELTER-RACE-RAW]: data race (read after write) in workgroup variable `tile`, bytes 4..8
  write at scan.wgsl:2:5 by workgroup (1, 0, 0), invocation (1, 0, 0)
  read at scan.wgsl:3:5 by workgroup (1, 0, 0), invocation (2, 0, 0)
  because nothing orders the write before the read
  repair: a workgroupBarrier() before scan.wgsl:3";
        assert_eq!(finding.to_string(), expected);
        assert_eq!(finding.second.quoted(), Some("three"));
        // Without lines the report has the accesses in the order in which they happened, too.
        let bare = |access: &FoundAccess| FoundAccess { line: None, source: None, ..access.clone() };
        let first = finding.first.as_ref().map(bare);
        let text = super::super::report::text(
            &Finding { first, second: bare(&finding.second), ..finding.clone() },
            &[],
            false,
        );
        let at = |part| text.find(part).unwrap_or_else(|| panic!("{part}\n{text}"));
        assert!(at("= write by") < at("= read by"), "{text}");
        assert_eq!(FoundAccess { line: None, ..finding.second.clone() }.position().unwrap(), "SPIR-V word 7");
        let other = Finding { second: FoundAccess { module: 2, ..finding.second.clone() }, ..finding.clone() };
        assert_ne!(finding.identity(), other.identity(), "two modules with an entry point `main`");
        let on_this_line = Finding { second: FoundAccess { word: 8, ..finding.second.clone() }, ..finding.clone() };
        assert_eq!(finding.identity(), on_this_line.identity(), "two instructions of a line");
        let place = FoundPlace::Variable { name: "other".into() };
        let elsewhere = Finding { memory: Some(FoundMemory::new(place, 4..8)), ..finding.clone() };
        assert_ne!(finding.identity(), elsewhere.identity(), "two variables");
        let by = |command_buffer: &str, queue: u32| {
            let (name, command_buffer) = ("copy".into(), Some(command_buffer.into()));
            let command = FoundCommand {
                name,
                module: None,
                pipeline: None,
                number: 0,
                command_buffer,
                index: 0,
                submission: 1,
                queue,
            };
            let second = FoundAccess { command: Some(command.into()), ..finding.second.clone() };
            Finding { second, ..finding.clone() }.identity()
        };
        assert_ne!(by("one", 0), by("two", 0), "two command buffers with names");
        assert_eq!(by("one", 0), by("one", 1), "the first access is of no command");
        assert_eq!(FoundAccess { source: None, ..finding.second.clone() }.quoted(), None);
        // Two modules whose texts come from no files.
        let unnamed = |access: &FoundAccess, kernel: &str, text: &str| {
            let line = access.line.clone().map(|line| SourceLine { file: "".into(), ..line });
            FoundAccess { line, source: Some(text.into()), kernel: kernel.into(), ..access.clone() }
        };
        let first = finding.first.as_ref().map(|access| unnamed(access, "blur", "a\nbbbbb1\nc"));
        let second = unnamed(&finding.second, "sum", "d\ne\nfffff2");
        assert_eq!(second.position().unwrap(), "line 3:5");
        let text = super::super::report::text(&Finding { first, second, ..finding }, &[], false);
        for part in ["source of `sum`:3:5", "fffff2", "source of `blur`:2:5", "bbbbb1"] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
