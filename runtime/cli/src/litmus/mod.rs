//! `spelter litmus`: decides litmus tests of the Vulkan memory model, and generates them.

mod derive;
mod expected;
mod export;
mod files;
mod generate;
mod json;
mod picture;
mod report;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use serde_json::json;
use spelter_jobs::{JobArray, earlier, jobs_left};
use spelter_memory_model::answer::{
    Answer, Execution, Options, Summary, answer, asked_locations, depends_on, find_race, summarize_with,
};
use spelter_memory_model::event::Scope;
use spelter_memory_model::explain::{Explanation, explain};
use spelter_memory_model::format::{Format, QuestionKind, Test};
use spelter_memory_model::program::{Bound, Program, TooLarge};
use spelter_memory_model::repair::{Effort, Repair, Rewritten, repair, rewrite, words};
use spelter_memory_model::search::Limits;
use spelter_shaders::ir::MemoryModel;

use crate::args::LitmusArgs;
use crate::bar::styled;
use crate::failure::Failure;
use crate::file;
use crate::output::{self, Output};
use crate::shader;

use derive::Derived;
use expected::Expected;

/// The largest test or list, in bytes.
const MAX_FILE: u64 = 1 << 24;

/// The largest number of executions that are counted; the report says whether there are more.
const MAX_EXECUTIONS: u64 = 200_000;

/// A test with its results.
struct Decided {
    test: Test,
    /// The threads of a shader's launch in text form; empty for a test.
    listing: Vec<String>,
    /// The language of a shader; `None` for a test.
    language: Option<MemoryModel>,
    answers: Vec<Result<Answer, String>>,
    /// Whether it races.
    races: Result<bool, String>,
    /// Whether a list of expected results says that it is race-free.
    expected_race_free: Option<bool>,
    summary: Result<Summary, String>,
    explanation: Option<Explanation>,
    /// Ambiguities of the model that decide whether it races: name, switch, value. Only with `--explain`.
    depends_on: Option<Vec<(&'static str, &'static str, &'static str)>>,
    /// `None` if no repair was requested or needed.
    repair: Option<Result<Option<Repair>, String>>,
    /// Whether the invocations of the race are in different workgroups.
    between_workgroups: bool,
    /// The repair in the text of the test, or why it has none.
    rewritten: Option<Result<Rewritten, String>>,
    duration: Duration,
}

impl Decided {
    fn differences(&self) -> usize {
        let answers = self.answers.iter().filter(|answer| answer.as_ref().is_ok_and(Answer::differs)).count();
        let races = matches!((&self.races, self.expected_race_free), (Ok(races), Some(free)) if *races == free);
        answers + usize::from(races)
    }

    fn undecided(&self) -> usize {
        self.answers.iter().filter(|answer| answer.is_err()).count() + usize::from(self.races.is_err())
    }

    /// Questions with an answer but without an expectation.
    fn open(&self) -> usize {
        let open = |answer: &&Result<Answer, String>| answer.as_ref().is_ok_and(|answer| answer.expected.is_none());
        self.answers.iter().filter(open).count()
    }

    fn expectations(&self) -> usize {
        let stated = |answer: &&Result<Answer, String>| answer.as_ref().is_ok_and(|answer| answer.expected.is_some());
        let races = self.races.is_ok() && self.expected_race_free.is_some();
        self.answers.iter().filter(stated).count() + usize::from(races)
    }

    /// Whether an answer is not the expected one, or there is none: as [`Total::verdict`] says of all tests.
    fn failed(&self) -> bool {
        self.differences() + self.undecided() > 0
    }
}

/// The sums over all tests.
#[derive(Default)]
struct Total {
    tests: usize,
    questions: usize,
    expectations: usize,
    differences: usize,
    open: usize,
    undecided: usize,
    unreadable: usize,
    racy: usize,
    /// The number of rows of lists that name no test of this run.
    unused_rows: usize,
    deciding: Duration,
}

/// The exit status if a test races and `--deny-races` is given.
const RACY: u8 = 3;

/// Decides the tests, or generates some. Returns the exit status.
pub(crate) fn run(args: &LitmusArgs, output: &mut Output) -> Result<u8, Failure> {
    let options = options(args)?;
    if args.generate {
        return generate::run(args, &options, output).map(|()| 0);
    }
    let files = files::find(&args.paths)?;
    for (option, given) in [("--write-repair", &args.write_repair), ("--write-test", &args.write_test)] {
        if given.is_some() && files.len() != 1 {
            return Err(Failure::new(format!("{option} takes one test, not {}", files.len())));
        }
    }
    let expected = Expected::read(args, &files)?;
    let names = picture::names(&files);
    let mut total = Total { unused_rows: expected.unused(&files), ..Total::default() };
    let array = job_array(&files, args, &options);
    let wrong = |error: spelter_jobs::Error| Failure::new(error.to_string());
    let mut results = args.array.open(&array).map_err(wrong)?;
    let jobs: Vec<u64> = jobs_left(results.as_ref(), &array, args.array.shard).collect();
    let before = earlier(results.as_ref(), |result| total.add_result(result)).map_err(wrong)?.len();
    if before > 0 {
        output::note(format_args!("{before} tests are in the file of results, and count"));
    }
    let mut all = files.into_iter().zip(names).map(Some).collect::<Vec<_>>();
    let taken = jobs.iter().filter_map(|job| all.get_mut(*job as usize)?.take());
    let (files, names): (Vec<_>, Vec<_>) = taken.unzip();
    if let Some(folder) = &args.dot {
        std::fs::create_dir_all(folder).map_err(|error| Failure::file(folder, error))?;
    }
    let alone = files.len() == 1 && before == 0;
    let progress = progress(files.len());
    for ((path, name), &job) in files.iter().zip(&names).zip(&jobs) {
        let decided = decide(path, args, &options, &expected);
        if let Some(results) = &mut results {
            let result = match &decided {
                Ok(decided) => json::result(path, decided, &options),
                Err(failure) => json!({ "error": failure.to_string() }),
            };
            let failed = decided.as_ref().map_or(true, Decided::failed);
            results.record(job, &result, failed).map_err(wrong)?;
        }
        match decided {
            Ok(decided) => {
                total.add(&decided);
                if let Some(path) = &args.write_test {
                    write_test(path, &decided)?;
                }
                if let Some(path) = &args.write_repair {
                    write_repair(path, &decided)?;
                }
                if let (Some(folder), Ok(summary)) = (&args.dot, &decided.summary) {
                    picture::write(folder, name, &decided.test, summary, options.model)?;
                }
                progress.suspend(|| {
                    if args.json {
                        output.json(&json::test(path, &decided, &options))
                    } else {
                        report::test(path, &decided, args, alone, output)
                    }
                })?;
            }
            Err(failure) if alone => return Err(failure),
            Err(failure) => {
                total.unreadable += 1;
                progress.suspend(|| {
                    if args.json {
                        output.json(&json!({ "file": path.display().to_string(), "error": failure.to_string() }))
                    } else {
                        output.line(format!("{failure}"))
                    }
                })?;
            }
        }
        progress.inc(1);
    }
    progress.finish_and_clear();
    if args.json {
        output.json(&json::total(&total, &options))?;
    } else if !alone {
        report::total(&total, output)?;
    }
    if let Err(failure) = total.verdict() {
        // The total, which is printed, has what this says.
        output.flush()?;
        output::report(&failure);
        return Ok(failure.status());
    }
    if !args.deny_races || total.racy == 0 {
        return Ok(0);
    }
    output.flush()?;
    let tests = if total.racy == 1 { "1 test races".to_owned() } else { format!("{} tests race", total.racy) };
    output::report(&Failure::new(format!("{tests} (--deny-races)")));
    Ok(RACY)
}

/// The decisions of the tests, in their order: of these files, and with these lists of expectations.
fn job_array(files: &[PathBuf], args: &LitmusArgs, options: &Options) -> JobArray {
    let lists = [&args.expected, &args.expected_races];
    let all = files.iter().chain(lists.into_iter().flatten());
    let named = all.map(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, path.as_path())
    });
    let settings = json!({ "model": options.model.to_string(), "unroll": args.unroll, "steps": args.steps,
        "explain": args.explain, "repair": args.repair, "tests": file::digest(named, MAX_FILE) });
    JobArray { name: "litmus".to_owned(), settings, jobs: files.len() as u64 }
}

/// Writes the text with the repair; a test that does not race stays as it is.
fn write_repair(path: &Path, decided: &Decided) -> Result<(), Failure> {
    let not_written = |problem: &str| Err(Failure::new(format!("--write-repair: {problem}")));
    match (&decided.rewritten, &decided.repair) {
        (Some(Ok(rewritten)), _) => std::fs::write(path, &rewritten.text).map_err(|error| Failure::file(path, error)),
        (Some(Err(problem)), _) => not_written(problem),
        (None, Some(Err(problem))) => not_written(problem),
        // The repaired test of a shader.
        (None, Some(Ok(Some(repair)))) => export::write("--write-repair", path, &repair.program, Some(false)),
        (None, Some(Ok(None))) => not_written("no repair was found"),
        (None, None) => not_written("there is nothing to repair, since no race was found"),
    }
}

/// Writes the test that was derived from a shader.
fn write_test(path: &Path, decided: &Decided) -> Result<(), Failure> {
    if decided.language.is_none() {
        return Err(Failure::new("--write-test: the file is a test already, not a shader".to_owned()));
    }
    export::write("--write-test", path, &decided.test.program, decided.races.as_ref().ok().copied())
}

impl Total {
    fn add(&mut self, decided: &Decided) {
        self.tests += 1;
        self.questions += decided.answers.len();
        self.expectations += decided.expectations();
        self.differences += decided.differences();
        self.open += decided.open();
        self.undecided += decided.undecided();
        self.racy += usize::from(matches!(decided.races, Ok(true)));
        self.deciding += decided.duration;
    }

    /// Adds a test by what a file of results has of it; `None` if that is something else.
    fn add_result(&mut self, result: &serde_json::Value) -> Option<()> {
        if result["error"].is_string() {
            self.unreadable += 1;
            return Some(());
        }
        let questions = result["questions"].as_array()?;
        self.tests += 1;
        for question in questions {
            self.questions += 1;
            match (question["holds"].as_bool(), question["expected"].as_bool()) {
                (None, _) => self.undecided += 1,
                (Some(_), None) => self.open += 1,
                (Some(holds), Some(expected)) => {
                    self.expectations += 1;
                    self.differences += usize::from(holds != expected);
                }
            }
        }
        let races = result["races"].as_bool();
        self.undecided += usize::from(races.is_none());
        self.racy += usize::from(races == Some(true));
        if let (Some(races), Some(free)) = (races, result["expected_race_free"].as_bool()) {
            self.expectations += 1;
            self.differences += usize::from(races == free);
        }
        Some(())
    }

    /// A failure if an answer differs, or something could not be read or decided.
    fn verdict(&self) -> Result<(), Failure> {
        let counted = |count: usize, one: &str, many: &str| {
            (count > 0).then(|| format!("{count} {}", if count == 1 { one } else { many }))
        };
        let parts = [
            counted(self.differences, "answer differs from what is expected", "answers differ from what is expected"),
            counted(self.undecided, "verdict is undecided", "verdicts are undecided"),
            counted(self.unreadable, "file cannot be read", "files cannot be read"),
        ];
        let parts: Vec<_> = parts.into_iter().flatten().collect();
        if parts.is_empty() { Ok(()) } else { Err(Failure::new(parts.join(", "))) }
    }
}

fn options(args: &LitmusArgs) -> Result<Options, Failure> {
    let mut model = args.profile;
    for switch in &args.switch {
        let Some((name, value)) = switch.split_once('=') else {
            // The model's error for an empty value lists the values of the switch, or all switches.
            let hint = model.set(switch, "").err().unwrap_or_default();
            return Err(Failure::new(format!("--switch takes NAME=VALUE: {}", hint.trim_end_matches(", not ``"))));
        };
        model.set(name, value).map_err(Failure::new)?;
    }
    Ok(Options { model, unroll: args.unroll, limits: Limits { steps: args.steps, ..Limits::default() } })
}

/// A progress bar on a terminal, if there are many files.
fn progress(files: usize) -> ProgressBar {
    if files < 20 {
        return ProgressBar::hidden();
    }
    styled(files as u64, "{bar:30} {pos}/{len} tests {elapsed}")
}

/// A test that was read, or derived from a shader.
struct Read {
    test: Test,
    listing: Vec<String>,
    language: Option<MemoryModel>,
    /// The format and the text of a test.
    source: Option<(Format, String)>,
}

fn read(path: &Path, args: &LitmusArgs) -> Result<Read, Failure> {
    if shader::is_shader(path) {
        let Derived { test, listing, language } = derive::derive(path, &args.launch)?;
        return Ok(Read { test, listing, language: Some(language), source: None });
    }
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    let format = Format::of_extension(extension).ok_or_else(|| {
        Failure::file(
            path,
            "a litmus test ends in .test (Khronos) or .litmus (Dat3M), a shader in .wgsl, .spv or .comp",
        )
    })?;
    let text = String::from_utf8(file::read(path, 1 << 20)?).map_err(|_| Failure::file(path, "not a text"))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let test = format.read(&name, &text).map_err(|error| Failure::new(format!("{}:{error}", path.display())))?;
    Ok(Read { test, listing: Vec::new(), language: None, source: Some((format, text)) })
}

/// The objects whose final values outcomes show: those that questions ask for; in a shader, those that it writes.
fn shown_objects(test: &Test, is_shader: bool) -> Vec<u32> {
    const MAX_OBJECTS: usize = 16;
    if !is_shader {
        return asked_locations(&test.questions);
    }
    let written = test.program.operations().filter_map(|(_, operation)| operation.access().filter(|of| of.writes));
    let written: std::collections::BTreeSet<u32> = written.map(|access| access.location.object).collect();
    written.into_iter().take(MAX_OBJECTS).collect()
}

fn decide(path: &Path, args: &LitmusArgs, options: &Options, expected: &Expected) -> Result<Decided, Failure> {
    let Read { test, listing, language, source } = read(path, args)?;
    let start = Instant::now();
    let mut answers: Vec<_> = test
        .questions
        .iter()
        .map(|question| answer(&test.program, question, options).map_err(|bound| undecided(&bound)))
        .collect();
    let deciding = start.elapsed();
    for answer in answers.iter_mut().flatten().filter(|answer| answer.expected.is_none()) {
        answer.expected = expected.holds(path);
    }
    let filter = test.questions.iter().find_map(|question| match &question.kind {
        QuestionKind::Final { filter, .. } => filter.as_ref(),
        QuestionKind::Satisfiable { .. } => None,
    });
    let race = find_race(&test.program, filter, options).map_err(|bound| undecided(&bound));
    let races = race.as_ref().map(Option::is_some).map_err(Clone::clone);
    let asked = shown_objects(&test, language.is_some());
    let summary = summarize_with(&test.program, options, MAX_EXECUTIONS, &asked).map_err(|bound| undecided(&bound));
    let racing = race.ok().flatten();
    let explanation = racing.as_ref().filter(|_| args.explain);
    let explanation = explanation.and_then(|race| explain(&test.program, race, options.model, 0));
    let depends_on = args.explain.then(|| depends_on(&test.program, filter, options).ok()).flatten();
    let wanted = (args.repair || args.write_repair.is_some()) && racing.is_some();
    // WGSL has no words for other repairs.
    let only_barriers = language == Some(MemoryModel::Wgsl);
    let effort = Effort { steps: args.steps, only_barriers, ..Effort::default() };
    let repair = wanted.then(|| repair(&test.program, filter, options, effort).map_err(|bound| undecided(&bound)));
    let rewritten = match &repair {
        Some(Ok(Some(repair))) => source.as_ref().map(|(format, text)| {
            rewrite(*format, text, &test, repair, options).map_err(|problem| problem.to_string())
        }),
        _ => None,
    };
    let expected_race_free = expected.is_race_free(path);
    let between_workgroups = racing.as_ref().is_some_and(|race| are_apart(&test.program, race));
    Ok(Decided {
        test,
        listing,
        language,
        between_workgroups,
        answers,
        races,
        expected_race_free,
        summary,
        explanation,
        depends_on,
        repair,
        rewritten,
        duration: deciding,
    })
}

/// Whether the accesses of the first race are of different workgroups.
fn are_apart(program: &Program, race: &Execution) -> bool {
    let agent = |event: usize| program.threads[race.instance.origins[event].0].agent;
    race.races.first().is_some_and(|&(a, b)| !agent(a).shares(agent(b), Scope::Workgroup))
}

/// The edits as text: those of a shader in terms of its source.
fn edits(decided: &Decided, repair: &Repair) -> Vec<String> {
    let program = &decided.test.program;
    match decided.language {
        Some(language) => derive::edit_words(program, &repair.edits, language),
        None => repair.edits.iter().map(|edit| words(program, &[*edit])).collect(),
    }
}

/// The message for an exceeded bound, with the option that raises it.
fn undecided(bound: &TooLarge) -> String {
    match bound.on {
        Bound::Steps => format!("{bound}: raise it with --steps"),
        Bound::Unroll => format!("{bound}: raise it with --unroll"),
        Bound::Fixed => bound.to_string(),
    }
}
