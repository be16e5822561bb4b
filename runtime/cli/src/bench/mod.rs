//! `spelter bench`: measures a kernel over a sweep of workgroups, sizes of buffers and workers; and `spelter profile`.

mod baseline;
mod buffers;
mod check;
mod inputs;
mod limits;
mod measure;
mod plot;
mod profile;
mod report;
mod resources;
mod work;

use std::path::Path;
use std::time::Instant;

use indicatif::ProgressBar;
use spelter::{Context, ContextBuilder, Program};
use spelter_jobs::digest;

pub(crate) use profile::run as profile;

use crate::args::{BenchArgs, GroupSweep, push_bytes};
use crate::bar::bar;
use crate::failure::Failure;
use crate::output::{self, Output};
use crate::shader::{self, Shader};
use crate::statistics::Samples;
use inputs::{Declared, Inputs};
use limits::Limits;
use measure::MeasuredDispatch;
use report::{About, Point};
use work::{OperationCounts, position};

/// Points of a bench, at most: more would take hours.
const MAX_POINTS: usize = 10_000;

/// Times that the pipeline is made.
const PIPELINES: usize = 5;

/// The part of the measuring time that goes to the busy time of workers.
const BUSY_PART: f64 = 0.2;

/// Runs the bench.
pub(crate) fn run(args: &BenchArgs, output: &mut Output) -> Result<(), Failure> {
    let shader = shader::load(&args.file)?;
    if let Some(path) = &args.plot {
        check_plot(path)?;
    }
    let programs = (&[args.entry.as_deref()][..], &args.spec[..]);
    let inputs = Inputs::new(&shader, programs, (&args.bind, &args.uniform), args.images.clone())?;
    let old = args.baseline.as_ref().map(|name| baseline::load(&args.out, name)).transpose()?;
    let default = GroupSweep((0..7).map(|power| [1 << (2 * power), 1, 1]).collect());
    let sweeps = if args.groups.is_empty() { std::slice::from_ref(&default) } else { &args.groups[..] };
    let groups: Vec<[u32; 3]> = sweeps.iter().flat_map(|sweep| sweep.0.iter().copied()).collect();
    let sizes: Vec<Option<u64>> =
        args.bytes.as_ref().map_or(vec![None], |sweep| sweep.0.iter().copied().map(Some).collect());
    let workers: Vec<Option<usize>> = args
        .workers
        .as_ref()
        .map_or(vec![None], |sweep| sweep.0.iter().map(|&workers| Some(workers as usize)).collect());
    let count = groups.len().saturating_mul(sizes.len()).saturating_mul(workers.len());
    if count > MAX_POINTS {
        return Err(Failure::misuse(format!("the sweeps have {count} points: at most {MAX_POINTS}")));
    }
    let bar = progress(("bench", "points"), count as u64, args.json);
    let (mut points, mut about, mut unstated) = (Vec::with_capacity(count), None, Vec::new());
    let measure = || -> Result<(), Failure> {
        for workers in workers {
            let mut bench = Bench::new(&shader, args, &inputs, workers)?;
            if about.is_none() {
                check::all(&bench, &groups, &sizes)?;
                about = Some(bench.about());
                unstated = inputs.notes(bench.program.bindings());
            }
            for bytes in &sizes {
                for groups in &groups {
                    points.push(bench.point(*groups, *bytes)?);
                    bar.inc(1);
                }
            }
        }
        Ok(())
    };
    let ended = measure();
    bar.finish_and_clear();
    // What was measured before a failure is kept.
    let Some(about) = about.filter(|_| !points.is_empty()) else { return ended };
    let mut notes = notes(&about, &points);
    notes.append(&mut unstated);
    if ended.is_err() {
        notes.push(format!("the sweep ended early: {} of {count} points were measured", points.len()));
    }
    let subject = baseline::Subject {
        file: args.file.display().to_string(),
        entry: about.entry.clone(),
        backend: about.backend.clone(),
        digest: digest(&format!("{} {:?}", shader.digest(), args.spec)),
    };
    if let (Some(name), Some(old)) = (&args.baseline, &old) {
        notes.extend(subject.difference(name, &old.subject));
        points.iter_mut().for_each(|point| point.changes = old.changes(point));
    }
    if let Some(name) = &args.save_baseline {
        baseline::save(&args.out, name, &subject, &points)?;
    }
    if let Some(path) = &args.plot {
        plot::draw(&format!("{} on {}", about.entry, about.backend), &points).save(path)?;
    }
    report::print(&about, &points, &notes, args, output)?;
    notes.iter().for_each(output::note);
    ended
}

/// Checks the name of a picture before a long run.
fn check_plot(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match () {
        () if path.is_dir() => Err(Failure::file(path, "is a folder")),
        () if folder.is_some_and(|folder| !folder.is_dir()) => Err(Failure::file(path, "its folder does not exist")),
        () if path.extension().is_none_or(|end| end != "png") => {
            Err(Failure::file(path, "the name must end with .png"))
        }
        () => Ok(()),
    }
}

/// A progress bar on standard error if that is a terminal, hidden otherwise.
fn progress((what, units): (&str, &str), length: u64, quiet: bool) -> ProgressBar {
    if quiet {
        return ProgressBar::hidden();
    }
    bar(length, &format!("{what} {{bar:32}} {{pos}}/{{len}} {units} {{elapsed}}, {{eta}} left"))
}

fn notes(about: &About, points: &[Point]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(reason) = &about.fallback {
        notes.push(format!("the kernel is interpreted, which is slow: it has no machine code ({reason})"));
    }
    let noisy = points.iter().filter(|point| point.measured.dispatch.spread() > 0.1).count();
    if noisy > 0 {
        let of = points.len();
        notes.push(format!(
            "{noisy} of {of} points have a spread above 10 %: other programs use the processors, or --seconds is short"
        ));
    }
    let above = points.iter().filter(|point| point.position.is_some_and(|position| position.share > 1.0)).count();
    if above > 0 {
        let of = points.len();
        notes.push(format!(
            "{above} of {of} points are above 100 % of their limit: a limit is measured, and a kernel counts with all \
             bytes and operations that it may have, also those that it skips or finds in caches"
        ));
    }
    notes
}

/// A kernel on devices with one number of workers: one that is measured, and one that measures itself.
struct Bench<'a> {
    shader: &'a Shader,
    args: &'a BenchArgs,
    inputs: &'a Inputs,
    work: OperationCounts,
    context: Context,
    program: Program,
    profiled: Context,
    profiled_program: Program,
    pipeline: Samples,
    limits: Limits,
}

impl<'a> Bench<'a> {
    fn new(
        shader: &'a Shader,
        args: &'a BenchArgs,
        inputs: &'a Inputs,
        workers: Option<usize>,
    ) -> Result<Self, Failure> {
        let context = builder(args, workers).build()?;
        let build = |context: &Context| {
            shader.program_with_arrays(context, args.entry.as_deref(), &args.spec, &inputs.elements())
        };
        let times: Vec<f64> = (0..PIPELINES)
            .map(|_| {
                let start = Instant::now();
                // Dropped with its code, so that the next one is compiled again.
                build(&context)?;
                Ok(start.elapsed().as_secs_f64())
            })
            .collect::<Result<_, Failure>>()?;
        let pipeline = Samples::new(times).ok_or_else(too_short)?;
        let program = build(&context)?;
        let profiled = builder(args, workers).profile(true).build()?;
        let profiled_program = build(&profiled)?;
        let work =
            OperationCounts::new(shader, (args.entry.as_deref(), &args.spec), context.device().properties().backend)?;
        let limits = Limits::default();
        Ok(Self { shader, args, inputs, work, context, program, profiled, profiled_program, pipeline, limits })
    }

    fn about(&self) -> About {
        About {
            entry: self.program.entry().to_owned(),
            backend: self.context.device().properties().backend.name().to_owned(),
            workgroup_size: self.program.workgroup_size(),
            fallback: self.program.fallback().map(str::to_owned),
            pipeline: self.pipeline.clone(),
        }
    }

    /// Measures one point.
    fn point(&mut self, groups: [u32; 3], bytes: Option<u64>) -> Result<Point, Failure> {
        let Self { shader, args, inputs, .. } = *self;
        let size = self.program.workgroup_size();
        let (invocations_per_dimension, invocations) = invocations(groups, size)?;
        let by = format!("{:?}", self.program.entry());
        let push = push_bytes(&args.push, invocations_per_dimension).map_err(Failure::misuse)?;
        let failed = |error| failure(shader, error);
        let (measured, bound) = {
            let bound = resources::bind(&self.context, declared(&self.program, &by), inputs, (bytes, invocations))?;
            let dispatch = MeasuredDispatch { context: &self.context, program: &self.program, push: &push, groups };
            let measured = measure::measure(&dispatch, args.warm_up, args.seconds).map_err(failed)?;
            (measured.ok_or_else(too_short)?, bound.bytes)
        };
        let busy = {
            let _bound = resources::bind(&self.profiled, declared(&self.program, &by), inputs, (bytes, invocations))?;
            let dispatch =
                MeasuredDispatch { context: &self.profiled, program: &self.profiled_program, push: &push, groups };
            measure::busy(&dispatch, args.seconds.mul_f64(BUSY_PART)).map_err(failed)?
        };
        let operations = self.work.of(&push);
        let position = if args.no_limits {
            None
        } else {
            // Another context: the kernel's buffers stay bound to this one.
            let other = self.context.sibling();
            let dispatch = (bound, measured.dispatch.median());
            Some(position(&other, &mut self.limits, (operations.max, invocations), dispatch)?)
        };
        let workers = self.context.device().properties().workers;
        Ok(Point { groups, workers, bytes: bound, invocations, operations, measured, busy, position, changes: None })
    }
}

fn declared<'a>(program: &'a Program, by: &'a str) -> Declared<'a> {
    Declared { infos: program.bindings(), by }
}

/// The number of invocations per dimension, and in total.
fn invocations(groups: [u32; 3], size: [u32; 3]) -> Result<([u64; 3], u64), Failure> {
    let invocations_per_dimension: [u64; 3] =
        std::array::from_fn(|axis| u64::from(groups[axis]) * u64::from(size[axis]));
    let total = invocations_per_dimension.iter().try_fold(1u64, |total, each| total.checked_mul(*each));
    Ok((
        invocations_per_dimension,
        total.ok_or_else(|| Failure::misuse("--groups: more than 2^64 invocations".to_owned()))?,
    ))
}

/// The failure of a dispatch, with the option that caused it.
fn failure(shader: &Shader, error: spelter::Error) -> Failure {
    match error {
        spelter::Error::Misuse(misuse) if misuse.vuid.starts_with("VUID-vkCmdDispatch-groupCount") => {
            Failure::misuse(format!("--groups: {} ({})", misuse.problem, misuse.vuid))
        }
        spelter::Error::Push(problem) => Failure::misuse(format!(
            "--push: {problem}; `--push u32:invocations` is the number of invocations of a point, `u32:width` that in X"
        )),
        error => shader.failed(error),
    }
}

fn too_short() -> Failure {
    Failure::new("a sample took no time: the clock is too coarse".to_owned())
}

fn builder(args: &BenchArgs, workers: Option<usize>) -> ContextBuilder {
    let builder = Context::builder()
        .checked_by_environment(false)
        .time_limit(args.time_limit())
        .time_limit_is_set_by("--time-limit or SPELTER_TIME_LIMIT")
        .printer(output::printer());
    let builder = workers.into_iter().fold(builder, ContextBuilder::workers);
    args.backend.into_iter().fold(builder, ContextBuilder::backend)
}
