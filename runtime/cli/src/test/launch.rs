//! Runs shaders: each of their entry points, or the launch of a list.

use spelter::check::{CheckStats, Finding};
use spelter::choose_entry;

use super::cases::{Case, CaseKind};
use super::report::BY_ORDER;
use crate::amber::Stop;
use crate::args::{RunArgs, TestArgs};
use crate::failure::Failure;
use crate::output;
use crate::run::{self, Ran, automatic};
use crate::shader::{self, Shader};

/// Workgroups of a shader without a launch.
const GROUPS: [u32; 3] = [4, 1, 1];

/// What the jobs of a case have in common.
pub(super) struct Launches {
    shader: Shader,
    runs: Vec<RunArgs>,
    /// Entry points that are not run, and why.
    without: Vec<String>,
    /// The results in the usual order, once they were needed; `None` for a run that fails in it.
    expected: Option<Vec<Option<Vec<Vec<u8>>>>>,
}

/// What the runs of a job found.
#[derive(Default)]
pub(super) struct JobFindings {
    pub(super) findings: Vec<Finding>,
    pub(super) stats: CheckStats,
    /// Something to know about a success.
    pub(super) note: Option<String>,
    /// Whether the latest kernel ran, instead of being refused before.
    pub(super) has_run: bool,
    /// Whether a kernel of the file did not run, or no invocation of it.
    pub(super) is_unchecked: bool,
}

impl Launches {
    /// Reads the shader of a case.
    pub(super) fn new(case: &Case, args: &TestArgs, found: &mut JobFindings) -> Result<Self, Stop> {
        let shader = shader::load(&case.path).map_err(failed)?;
        let (mut runs, mut without) = (Vec::new(), Vec::new());
        if let CaseKind::Launch(launch, _) = &case.kind {
            runs.push(run::names::resolved(launch, &shader).map_err(failed)?);
        } else {
            let module = shader.module().map_err(failed)?;
            let entries: Vec<&str> = module.entry_points().collect();
            if entries.is_empty() {
                return Err(Stop::Skip("it has no compute entry point".to_owned()));
            }
            let groups = args.check.groups.map_or(GROUPS, |groups| groups.0);
            for entry in entries {
                // A name that several entry points have selects none.
                if let Err(error) = choose_entry(module.entry_points(), Some(entry)) {
                    return Err(failed(shader.refused(error)));
                }
                match automatic::launch(&shader, entry, groups).map_err(failed)? {
                    Ok(run) => runs.push(run),
                    Err(why) => without.push(format!("{entry}: {why}")),
                }
            }
        }
        if runs.is_empty() {
            found.is_unchecked = true;
            return Err(Stop::Skip(without.join("; ")));
        }
        Ok(Self { shader, runs, without, expected: None })
    }

    /// The shader.
    pub(super) fn shader(&self) -> &Shader {
        &self.shader
    }

    /// Runs all in an order. What was found before a failure is in `found`.
    pub(super) fn run(&mut self, order: u64, args: &TestArgs, found: &mut JobFindings) -> Result<(), Stop> {
        if order > 0 && self.expected.is_none() {
            // Unchecked: only the results count. A run that fails says so in the usual order.
            let contents = |run| self.once(run, 0, args, false).ok().map(|ran| ran.contents);
            self.expected = Some(self.runs.iter().map(contents).collect());
        }
        let (mut differences, mut notes) = (Vec::new(), Vec::new());
        for (at, run) in self.runs.iter().enumerate() {
            found.has_run = false;
            let ran = self.once(run, order, args, true)?;
            found.has_run = true;
            found.findings.extend(ran.findings);
            found.stats += ran.stats;
            if let Some(failure) = ran.failure {
                return Err(failed(failure));
            }
            if run.groups([1; 3]).contains(&0) {
                found.is_unchecked = true;
                notes.push(format!("no invocation ran: {} has a 0", run.size_option()));
            }
            let expected = self.expected.as_ref().and_then(|expected| expected.get(at)?.as_ref());
            if let Some(difference) = expected.and_then(|expected| run::difference(&ran.names, expected, &ran.contents))
            {
                differences.push(format!("{BY_ORDER}{difference}"));
            }
        }
        if args.check.deny_order && !differences.is_empty() {
            return Err(Stop::Fail(differences.join("\n")));
        }
        notes.append(&mut differences);
        if !self.without.is_empty() {
            found.is_unchecked = true;
            notes.push(format!("not run: {}", self.without.join("; ")));
        }
        found.note = (!notes.is_empty()).then(|| notes.join("; "));
        Ok(())
    }

    fn once(&self, run: &RunArgs, order: u64, args: &TestArgs, is_checked: bool) -> Result<Ran, Stop> {
        let mut run = run.clone();
        run.device = args.device.clone();
        if order > 0 {
            run.device.schedule = Some(super::schedule(order));
        }
        if is_checked {
            run.check.check = args.check.check;
            run.check.check_memory = args.check.check_memory;
        } else {
            // As in checked mode: with several workers, the order of workgroups would differ from run to run.
            run.device.workers = Some(1);
        }
        let ran = run::once(&self.shader, &run, output::silent()).map_err(failed)?;
        match ran.failure {
            Some(failure) if !is_checked => Err(failed(failure)),
            _ => Ok(ran),
        }
    }
}

fn failed(failure: Failure) -> Stop {
    Stop::Fail(failure.to_string())
}
