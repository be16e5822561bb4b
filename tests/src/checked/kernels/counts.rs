//! The counts of a comparison, and what was wrong.

use spelter_shaders::compile::Backend;

/// Defects that are kept with their texts, at most.
const MAX_DEFECTS: usize = 16;

/// What was compared.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Programs: kernels with push constants and an order.
    pub programs: u64,
    /// Kernels.
    pub kernels: u64,
    /// Executions: a program runs once on each engine, and again for the detector and for reports.
    pub executions: u64,
    /// Those of machine code.
    pub compiled: u64,
    /// Events of all executions.
    pub events: u64,
    /// Executions in which accesses race.
    pub racy: u64,
    /// Races: pairs of accesses.
    pub races: u64,
    /// Errors that were reported.
    pub errors: u64,
    /// Candidates of the detector.
    pub candidates: u64,
    /// Executions with a suspicion that was not decided.
    pub undecided: u64,
    /// Executions in which machine code judged memory of several descriptors.
    pub aliased: u64,
    /// Programs that two engines executed in the same order, each pair of engines once.
    pub same_order: u64,
    /// Programs of which all engines report the same pairs of lines.
    pub same_lines: u64,
    /// Races without a candidate: the detector's defect.
    pub missed: u64,
    /// Racy executions without an error.
    pub unreported: u64,
    /// Errors about accesses that do not race.
    pub false_errors: u64,
    /// Pairs of engines with other errors about executions in the same order.
    pub different: u64,
    /// Executions that are not the program's, and kernels that did not run.
    pub wrong: u64,
    /// The first defects.
    pub list: Vec<Defect>,
}

/// A defect.
#[derive(Clone, Debug)]
pub struct Defect {
    /// The number of the program.
    pub program: u64,
    /// The engine's name; none if it is of all.
    pub engine: Option<String>,
    /// What is wrong.
    pub problem: String,
}

impl Counts {
    /// The number of defects.
    pub fn defects(&self) -> u64 {
        self.missed + self.unreported + self.false_errors + self.different + self.wrong
    }

    /// Adds the counts of others.
    pub fn join(&mut self, other: Self) {
        for ((_, mine), (_, others)) in self.numbers_mut().into_iter().zip(other.numbers()) {
            *mine += others;
        }
        self.list.extend(other.list);
        self.list.truncate(MAX_DEFECTS);
    }

    /// The names and values of the counts.
    pub fn numbers(&self) -> [(&'static str, u64); 18] {
        self.clone().numbers_mut().map(|(name, number)| (name, *number))
    }

    /// Counts from their names and values, with the first defects; `None` if one has no value.
    pub fn of_numbers(number: impl Fn(&str) -> Option<u64>, list: Vec<Defect>) -> Option<Self> {
        let mut counts = Self { list, ..Self::default() };
        for (name, value) in counts.numbers_mut() {
            *value = number(name)?;
        }
        Some(counts)
    }

    fn numbers_mut(&mut self) -> [(&'static str, &mut u64); 18] {
        [
            ("programs", &mut self.programs),
            ("kernels", &mut self.kernels),
            ("executions", &mut self.executions),
            ("compiled", &mut self.compiled),
            ("events", &mut self.events),
            ("racy", &mut self.racy),
            ("races", &mut self.races),
            ("errors", &mut self.errors),
            ("candidates", &mut self.candidates),
            ("undecided", &mut self.undecided),
            ("aliased", &mut self.aliased),
            ("same_order", &mut self.same_order),
            ("same_lines", &mut self.same_lines),
            ("missed", &mut self.missed),
            ("unreported", &mut self.unreported),
            ("false_errors", &mut self.false_errors),
            ("different", &mut self.different),
            ("wrong", &mut self.wrong),
        ]
    }

    pub(super) fn defect(&mut self, program: u64, engine: Option<Backend>, problem: String) {
        if self.list.len() < MAX_DEFECTS {
            self.list.push(Defect { program, engine: engine.map(|engine| engine.name().to_owned()), problem });
        }
    }
}
