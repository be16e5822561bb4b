//! Answers: whether a question's condition holds, whether a program races, and which outcomes it has.

mod cut;
mod summary;

use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) use self::summary::summarize_within;
pub use self::summary::{Summary, asked_locations, outcome, summarize, summarize_with};
use crate::format::{Atom, Condition, Quantifier, Question, QuestionKind, Term};
use crate::model::{Chains, Model};
use crate::program::{Instance, Program, TooLarge, combinations, unroll};
use crate::relation::Relation;
use crate::relations::{Choice, Frame, Order, Source, conflicts, races, release_sequences};
use crate::row::Row;
use crate::search::{Found, Limits, Statistics, Values, brute_force, resume};
use cut::Wanted;

/// Options of all answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The reading of the model.
    pub model: Model,
    /// Maximum number of times that an instruction may run on one path.
    pub unroll: u32,
    /// Bounds on the cost of a search.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self { model: Model::SPEC, unroll: 2, limits: Limits::default() }
    }
}

/// An execution that was found, with copies of all its data.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The path.
    pub instance: Arc<Instance>,
    /// For each event that reads, its source.
    pub sources: Vec<Option<Source>>,
    /// The scoped modification orders.
    pub modification_order: Vec<(usize, usize)>,
    /// The races, the lower event first.
    pub races: Vec<(usize, usize)>,
    /// The values that events read and write.
    pub values: Values,
}

impl Execution {
    fn of(instance: &Arc<Instance>, found: &Found<'_>) -> Self {
        Self {
            instance: instance.clone(),
            sources: found.sources.to_vec(),
            modification_order: found.modification_order.to_vec(),
            races: found.races.to_vec(),
            values: found.values.clone(),
        }
    }

    /// All relations of the model for this execution. A search never finds executions of more than 128 events.
    pub fn relations(&self, model: Model) -> (Frame<u128>, Choice<u128>, Order<u128>) {
        let frame = Frame::new(&self.instance.trace, model);
        let mut modification_order = Relation::new(frame.n);
        self.modification_order.iter().for_each(|&(a, b)| modification_order.insert(a, b));
        let choice = Choice { sources: self.sources.clone(), modification_order };
        let order = frame.order(&choice);
        (frame, choice, order)
    }
}

/// The answer to a question.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Whether an execution as asked for was found, or the condition holds by its quantifier.
    pub holds: bool,
    /// The answer that the text expects, if it states one.
    pub expected: Option<bool>,
    /// An execution that was asked for, or a counterexample to `forall` or `~exists`.
    pub witness: Option<Execution>,
}

impl Answer {
    /// Whether the answer differs from the text's expectation.
    pub fn differs(&self) -> bool {
        self.expected.is_some_and(|expected| expected != self.holds)
    }
}

/// Visits every execution of every instance of a program, until `visit` breaks. Adds steps to `spent`: those of the
/// search, and one for each combination of paths and each event of an instance, since those cost time, too.
fn each_execution(
    program: &Program,
    options: &Options,
    unfinished: bool,
    spent: &mut u64,
    visit: &mut dyn FnMut(&Arc<Instance>, &Found<'_>) -> ControlFlow<()>,
) -> Result<(), TooLarge> {
    // All paths share one bound on steps.
    let (instances, combinations) = combinations(program, options.unroll, unfinished)?;
    let mut statistics = Statistics { steps: *spent + combinations, ..Statistics::default() };
    for instance in instances {
        let instance = Arc::new(instance);
        let mut stopped = false;
        statistics.steps += instance.trace.len() as u64;
        statistics = resume(&instance, options.model, options.limits, statistics, &mut |found| {
            let flow = visit(&instance, found);
            stopped |= flow.is_break();
            flow
        })?;
        *spent = statistics.steps;
        if stopped {
            return Ok(());
        }
    }
    if statistics.guessed > 0 {
        let what = "a value depends on itself by more than a copy or a sum, and any number would be to try";
        return Err(TooLarge::new(what, statistics.guessed));
    }
    Ok(())
}

/// The first execution that passes; `unfinished` ones count, too, if the flag says so.
///
/// # Errors
///
/// If the program is too large to decide, or if none passes and the bound on loops hides executions of the wanted kind.
fn first_execution(
    program: &Program,
    options: &Options,
    (unfinished, wanted): (bool, Wanted),
    spent: &mut u64,
    passes: impl Fn(&Instance, &Found<'_>) -> Result<bool, TooLarge>,
) -> Result<Option<Execution>, TooLarge> {
    let mut witness = None;
    let mut error = Ok(());
    each_execution(program, options, unfinished, spent, &mut |instance, found| {
        match passes(instance, found) {
            Ok(false) => return ControlFlow::Continue(()),
            Ok(true) => witness = Some(Execution::of(instance, found)),
            Err(bound) => error = Err(bound),
        }
        ControlFlow::Break(())
    })?;
    error?;
    if witness.is_none() {
        cut::complete(program, options, wanted, spent)?;
    }
    Ok(witness)
}

/// Answers a question about `program`.
///
/// # Errors
///
/// If the program is too large to decide, or if nothing was found and the bound on loops hides executions.
pub fn answer(program: &Program, question: &Question, options: &Options) -> Result<Answer, TooLarge> {
    match &question.kind {
        QuestionKind::Satisfiable { expected, no_chains, atoms } => {
            let mut options = *options;
            if *no_chains {
                options.model.chains = Chains::Single;
            }
            let witness = satisfy(program, atoms, &options)?;
            Ok(Answer { holds: witness.is_some(), expected: Some(*expected), witness })
        }
        QuestionKind::Final { quantifier, filter, condition } => {
            let negate = *quantifier == Quantifier::Forall;
            let passes = |instance: &Instance, found: &Found<'_>| {
                let filtered = match filter {
                    Some(filter) => possible(instance, found, filter, true)?,
                    None => true,
                };
                Ok(filtered && possible(instance, found, condition, !negate)?)
            };
            let witness = first_execution(program, options, (false, Wanted::FinalStates), &mut 0, passes)?;
            let holds = witness.is_some() == (*quantifier == Quantifier::Exists);
            Ok(Answer { holds, expected: None, witness })
        }
    }
}

/// Finds an execution for which all atoms hold.
fn satisfy(program: &Program, atoms: &[Atom], options: &Options) -> Result<Option<Execution>, TooLarge> {
    let hold = |races: usize, sequences: usize| {
        atoms.iter().all(|atom| match *atom {
            Atom::Consistent => true,
            Atom::Races(comparison, number) => comparison.holds(2 * races as i64, number),
            Atom::ReleaseSequences(comparison, number) => comparison.holds(sequences as i64, number),
        })
    };
    let mut witness = None;
    let mut spent = 0;
    if atoms.contains(&Atom::Consistent) {
        each_execution(program, options, false, &mut spent, &mut |instance, found| {
            if hold(found.races.len(), found.release_sequences) {
                witness = Some(Execution::of(instance, found));
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })?;
        if witness.is_none() {
            cut::complete(program, options, Wanted::Races, &mut spent)?;
        }
        return Ok(witness);
    }
    for instance in unroll(program, options.unroll, false)? {
        let candidates = brute_force(&instance, options.model, false, 1 << 20)?;
        let instance = Arc::new(instance);
        let frame = Frame::<u64>::new(&instance.trace, options.model);
        let conflicts = conflicts(&frame);
        let heads = frame.sets.releases.and(&frame.sets.atomics);
        for (sources, pairs) in candidates {
            let mut modification_order = Relation::new(frame.n);
            pairs.iter().for_each(|&(a, b)| modification_order.insert(a, b));
            let sequences = release_sequences(&frame, &modification_order).from(&heads).len();
            let choice = Choice { sources, modification_order };
            let races: Vec<_> = races(&conflicts, &frame.order(&choice).location_order).iter().collect();
            if hold(races.len(), sequences) {
                let values = Values { read: vec![None; frame.n], out_of_thin_air: false };
                let sources = choice.sources;
                return Ok(Some(Execution { instance, sources, modification_order: pairs, races, values }));
            }
        }
    }
    cut::complete(program, options, Wanted::Races, &mut spent)?;
    Ok(None)
}

/// Whether `condition` may have the value `wanted` in the final state. Racing writes may leave one of several final
/// values.
fn possible(instance: &Instance, found: &Found<'_>, condition: &Condition, wanted: bool) -> Result<bool, TooLarge> {
    const MAX_STATES: u64 = 1 << 12;
    let mut objects = Vec::new();
    condition.terms(&mut |term| {
        if let Term::Location(object) = term
            && !objects.contains(object)
        {
            objects.push(*object);
        }
    });
    let finals: Vec<Vec<Option<i64>>> = objects.iter().map(|&object| final_values(instance, found, object)).collect();
    let states = finals.iter().try_fold(1u64, |product, values| product.checked_mul(values.len() as u64));
    if states.is_none_or(|states| states > MAX_STATES) {
        let what = "an execution's racing writes leave too many final states".to_owned();
        return Err(TooLarge::new(what, MAX_STATES));
    }
    let mut chosen = vec![0; objects.len()];
    loop {
        let mut value = |term: &Term| match term {
            Term::Constant(number) => Some(*number),
            Term::Register(thread, register) => found.values.register(instance, *thread, register),
            Term::Location(object) => {
                let at = objects.iter().position(|known| known == object)?;
                finals[at][chosen[at]]
            }
        };
        if condition.holds(&mut value).unwrap_or(false) == wanted {
            return Ok(true);
        }
        let Some(at) = (0..chosen.len()).find(|&at| chosen[at] + 1 < finals[at].len()) else { return Ok(false) };
        chosen[at] += 1;
        chosen[..at].fill(0);
    }
}

/// Possible final values of an object: those of its last writes, or its initial value.
fn final_values(instance: &Instance, found: &Found<'_>, object: u32) -> Vec<Option<i64>> {
    let writes = (0..instance.trace.len()).filter(|&event| {
        let access = instance.trace.operation(event).access();
        access.is_some_and(|access| access.writes && access.location.object == object) && !found.overwritten[event]
    });
    let values: Vec<_> = writes.map(|write| found.values.written(instance, write)).collect();
    if values.is_empty() { vec![instance.initial.get(object as usize).copied()] } else { values }
}

/// Finds a racing execution among those that pass `filter`. Without a filter, unfinished paths count, too.
///
/// # Errors
///
/// If the program is too large to decide, or if no race was found and the bound on loops hides executions.
pub fn find_race(
    program: &Program,
    filter: Option<&Condition>,
    options: &Options,
) -> Result<Option<Execution>, TooLarge> {
    find_race_within(program, filter, options, &mut 0)
}

/// As [`find_race`]; adds steps to `spent`.
pub(crate) fn find_race_within(
    program: &Program,
    filter: Option<&Condition>,
    options: &Options,
    spent: &mut u64,
) -> Result<Option<Execution>, TooLarge> {
    let passes = |instance: &Instance, found: &Found<'_>| {
        let passes = || filter.map_or(Ok(true), |filter| possible(instance, found, filter, true));
        if found.races.is_empty() { Ok(false) } else { passes() }
    };
    first_execution(program, options, (filter.is_none(), Wanted::Races), spent, passes)
}

/// The ambiguities that decide whether `program` races: name, switch, and the value that gives the other verdict.
///
/// # Errors
///
/// If the program is too large to decide.
pub fn depends_on(
    program: &Program,
    filter: Option<&Condition>,
    options: &Options,
) -> Result<Vec<(&'static str, &'static str, &'static str)>, TooLarge> {
    let racy = find_race(program, filter, options)?.is_some();
    let mut found = Vec::new();
    for (name, switch, value) in Model::AMBIGUITIES {
        let mut other = *options;
        let known = other.model.set(switch, value).is_ok();
        if known && find_race(program, filter, &other)?.is_some() != racy {
            found.push((name, switch, value));
        }
    }
    Ok(found)
}
