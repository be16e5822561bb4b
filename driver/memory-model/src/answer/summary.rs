//! Summaries: counts of a program's executions, and its outcomes as text.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use super::cut::{self, Wanted};
use super::{Execution, Options, each_execution, final_values};
use crate::format::{Question, QuestionKind, Term};
use crate::program::{Instance, Program, TooLarge};
use crate::relations::Source;
use crate::search::{Found, Values};

/// Summary of a program's executions.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// Consistent executions.
    pub executions: u64,
    /// Number of them that finish.
    pub finished: u64,
    /// Number of them, finished or not, with a race.
    pub racy: u64,
    /// Outcomes of finished executions, as text, each with whether an execution that gives it races.
    pub outcomes: BTreeMap<String, bool>,
    /// Whether there are more executions than were counted.
    pub more: bool,
    /// Whether there are more outcomes than were stored.
    pub more_outcomes: bool,
    /// The bound on loops, if it hides executions, so that there may be further outcomes and races.
    pub cut: Option<TooLarge>,
    /// A racing execution.
    pub race: Option<Execution>,
    /// Any execution.
    pub example: Option<Execution>,
}

/// Counts executions and outcomes, up to `limit` executions.
///
/// # Errors
///
/// If the program is too large to decide.
pub fn summarize(program: &Program, options: &Options, limit: u64) -> Result<Summary, TooLarge> {
    summarize_within(program, options, limit, &[], &mut 0)
}

/// As [`summarize`]; outcomes include the final values of `objects`, which [`asked_locations`] lists.
///
/// # Errors
///
/// If the program is too large to decide.
pub fn summarize_with(program: &Program, options: &Options, limit: u64, objects: &[u32]) -> Result<Summary, TooLarge> {
    summarize_within(program, options, limit, objects, &mut 0)
}

/// The objects whose final values a test's questions name, in order of their numbers.
pub fn asked_locations(questions: &[Question]) -> Vec<u32> {
    let mut objects = BTreeSet::new();
    for question in questions {
        let QuestionKind::Final { filter, condition, .. } = &question.kind else { continue };
        for condition in filter.iter().chain([condition]) {
            condition.terms(&mut |term| {
                if let Term::Location(object) = term {
                    objects.insert(*object);
                }
            });
        }
    }
    objects.into_iter().collect()
}

/// As [`summarize`]; adds steps to `spent`.
pub(crate) fn summarize_within(
    program: &Program,
    options: &Options,
    limit: u64,
    objects: &[u32],
    spent: &mut u64,
) -> Result<Summary, TooLarge> {
    const MAX_OUTCOMES: usize = 1000;
    let mut summary = Summary::default();
    each_execution(program, options, true, spent, &mut |instance, found| {
        if summary.executions == limit {
            summary.more = true;
            return ControlFlow::Break(());
        }
        let racy = !found.races.is_empty();
        summary.executions += 1;
        summary.racy += u64::from(racy);
        if instance.complete {
            summary.finished += 1;
            let mut parts = vec![outcome(program, instance, found.sources, found.values)];
            parts.extend(objects.iter().map(|&object| final_text(program, instance, found, object)));
            parts.retain(|part| part != NOTHING_READ || objects.is_empty());
            let outcome = parts.join(" ");
            if summary.outcomes.len() < MAX_OUTCOMES || summary.outcomes.contains_key(&outcome) {
                *summary.outcomes.entry(outcome).or_default() |= racy;
            } else {
                summary.more_outcomes = true;
            }
        }
        if racy && summary.race.is_none() {
            summary.race = Some(Execution::of(instance, found));
        }
        if summary.example.is_none() {
            summary.example = Some(Execution::of(instance, found));
        }
        ControlFlow::Continue(())
    })?;
    summary.cut = [Wanted::FinalStates, Wanted::Races]
        .into_iter()
        .find_map(|wanted| cut::complete(program, options, wanted, spent).err());
    Ok(summary)
}

const NOTHING_READ: &str = "nothing is read";

/// An outcome as text: the final values of registers, or of reads if there are no registers.
pub fn outcome(program: &Program, instance: &Instance, sources: &[Option<Source>], values: &Values) -> String {
    let shown = |value: Option<i64>| value.map_or("?".to_owned(), |value| value.to_string());
    let mut parts = Vec::new();
    for (thread, registers) in instance.registers.iter().enumerate() {
        // A name that no text can have is that of a temporary.
        for (register, value) in registers.iter().filter(|(register, _)| !register.0.starts_with('.')) {
            let value = value.evaluate(&mut |read| values.read[read]);
            parts.push(format!("{}:{}={}", program.threads[thread].name, register.0, shown(value)));
        }
    }
    if parts.is_empty() {
        let reads: Vec<_> =
            (0..instance.trace.len()).filter(|&event| instance.trace.operation(event).reads()).collect();
        let name = |event: usize| {
            let access = instance.trace.operation(event).access();
            access.map_or("", |access| &program.references[access.reference as usize])
        };
        for &read in &reads {
            let alone = reads.iter().filter(|&&other| name(other) == name(read)).count() == 1;
            let (thread, at) = instance.origins[read];
            let label = if alone { String::new() } else { format!("{}:{} ", program.threads[thread].name, at + 1) };
            let value = match sources[read] {
                Some(Source::Write(write)) if values.read[read].is_none() => {
                    let (thread, at) = instance.origins[write];
                    format!("({}:{})", program.threads[thread].name, at + 1)
                }
                _ => shown(values.read[read]),
            };
            parts.push(format!("{label}{}={value}", name(read)));
        }
    }
    if values.out_of_thin_air {
        parts.push("(out of thin air)".to_owned());
    }
    if parts.is_empty() { NOTHING_READ.to_owned() } else { parts.join(" ") }
}

/// `[x]=1`: the final value of an object, or several if racing writes leave one of them.
fn final_text(program: &Program, instance: &Instance, found: &Found<'_>, object: u32) -> String {
    let values: BTreeSet<_> = final_values(instance, found, object).into_iter().collect();
    let values = values.into_iter().map(|value| value.map_or("?".to_owned(), |value| value.to_string()));
    let name = program.locations.get(object as usize).map_or("", |(name, _)| name);
    format!("[{name}]={}", values.collect::<Vec<_>>().join("/"))
}
