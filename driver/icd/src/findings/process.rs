//! The findings of a process: each is reported once, and again only if it was confirmed since.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use ash::vk;
use serde_json::{Value as Json, json};
use spelter_driver::check::report::{self, ShownGroups, fingerprint};
use spelter_driver::check::{CheckStats, Finding, FindingIdentity, Rule, Severity};
use spelter_locks::{Mutex, PerProcess, ProcessId};

use super::device::{DeviceFindings, SubmissionPart};
use super::lines::{self, Lines};
use crate::c::callback::{Label, Message};
use crate::c::exit;
use crate::current_call::Owner;
use crate::message::{self, print_line, print_text};
use crate::options::{CheckSettings, EXIT_STATUS, Options};

/// How long the end of a process waits for submissions that have not run, and for a thread that is writing a report. A
/// submission may wait for something that never comes.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// The state of the process. It begins by opening a file, which two threads must not do.
static PROCESS: PerProcess<OnceLock<Process>> = PerProcess::new(OnceLock::new);

/// What was found in one process.
#[derive(Debug)]
pub(super) struct Process {
    id: ProcessId,
    /// The system's number of it.
    number: u32,
    settings: &'static CheckSettings,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    lines: Option<Lines>,
    /// Why lines are missing from the file.
    failed: Option<String>,
    /// Fingerprints of findings that are not printed again, and whether they were confirmed.
    printed: HashMap<String, bool>,
    groups: ShownGroups,
    found: HashMap<FindingIdentity, CountedFinding>,
    /// Findings that the messengers of an instance have.
    delivered: HashSet<(Owner, FindingIdentity, Severity)>,
    devices: Vec<Arc<DeviceFindings>>,
    /// The counts of destroyed devices.
    ended: CheckStats,
    suppressed: usize,
    /// Findings of other rules than those that are asked for.
    not_shown: usize,
    /// Notes on memory that the host reads without a barrier to it: a program that reads back has one for each buffer,
    /// and the first says what all do.
    host_notes: usize,
    /// Messages that wait for a call of their instance.
    messages: Vec<Waiting>,
    /// The summary that the file has.
    summary: Option<Json>,
}

/// A message without its objects, which are looked up when it is sent.
type Waiting = (Arc<DeviceFindings>, Option<SubmissionPart>, Message);

#[derive(Debug)]
struct CountedFinding {
    fingerprint: String,
    severity: Severity,
    count: u64,
}

impl Process {
    fn new(settings: &'static CheckSettings) -> Self {
        let printed = settings.known.as_deref().map(lines::known).unwrap_or_default();
        let mut state = State { printed, ..State::default() };
        if let Some(path) = &settings.json {
            match Lines::open(path) {
                Ok(lines) => state.lines = Some(lines),
                Err(error) => state.fail(settings, &error),
            }
        }
        let number = std::process::id();
        let program = std::env::args_os().next().map(|name| name.to_string_lossy().into_owned());
        state.write(settings, &json!({ "started": { "process": number, "program": program } }));
        exit::on_exit(at_exit);
        Self { id: ProcessId::current(), number, settings, state: Mutex::new(state) }
    }

    /// This process's state, if it has had a checked device. It takes no lock.
    pub(super) fn current() -> Option<&'static Self> {
        PROCESS.existing().and_then(OnceLock::get)
    }

    /// This process's state, which the first device creates.
    pub(super) fn current_or_new() -> &'static Self {
        PROCESS.get().get_or_init(|| Self::new(&Options::get().check))
    }

    /// Whether this is not the copy of a parent's state.
    pub(super) fn is_current(&self) -> bool {
        self.id.is_current()
    }

    /// A device was created.
    pub(super) fn add(&self, device: &Arc<DeviceFindings>) {
        self.state.lock().devices.push(Arc::clone(device));
    }

    /// A device was destroyed.
    pub(super) fn remove(&self, device: &Arc<DeviceFindings>) {
        let findings = device.take();
        let mut state = self.state.lock();
        state.report(self.settings, device, None, findings);
        state.devices.retain(|other| !Arc::ptr_eq(other, device));
        state.ended += device.stats();
        state.summarize(self);
    }

    /// Takes what was found on devices outside of submissions. A device that runs some reports at their ends, with the
    /// dispatch to which a finding belongs.
    pub(super) fn collect(&self) {
        self.state.lock().collect(self.settings, |device| !device.is_busy());
    }

    /// Findings of a device.
    pub(super) fn report(&self, device: &DeviceFindings, place: Option<&SubmissionPart>, findings: Vec<Finding>) {
        let mut state = self.state.lock();
        // Not yet in the list while it is being created: then it has run nothing.
        let device = state.devices.iter().find(|other| std::ptr::eq(Arc::as_ptr(other), device)).cloned();
        if let Some(device) = device {
            state.report(self.settings, &device, place, findings);
        }
    }

    /// Calls the messengers of an instance, on the calling thread.
    pub(super) fn call_messengers(&self, owner: Owner) {
        let (now, failed) = {
            let mut state = self.state.lock();
            let of_owner = |(device, ..): &mut Waiting| device.owner == owner;
            (state.messages.extract_if(.., of_owner).collect::<Vec<_>>(), state.failed.take())
        };
        // Without the lock: a callback may call Vulkan.
        if let Some(problem) = failed {
            message::warn(owner, "spelter-check", problem);
        }
        for (device, place, mut message) in now {
            place.iter().for_each(|place| device.describe(place, &mut message));
            message::send_to_messengers(owner, &message);
        }
    }

    /// The end of the process. Its other threads run on until it has returned. A dispatch is repeated after it has
    /// written its results, so a program that has them may be here before the findings are.
    fn end(&self) {
        let until = Instant::now() + MAX_WAIT;
        let is_busy = || {
            let state = self.state.try_lock_for(MAX_WAIT);
            state.is_some_and(|state| state.devices.iter().any(|device| device.is_busy()))
        };
        while is_busy() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        let Some(mut state) = self.state.try_lock_for(MAX_WAIT) else { return };
        state.collect(self.settings, |_| true);
        state.summarize(self);
        state.failed.take().inspect(|problem| print_line(&format!("spelter: {problem}")));
        let (errors, stats, host_notes) = (state.count(Severity::Error), state.stats(), state.host_notes);
        let is_unfinished = state.devices.iter().any(|device| device.is_busy());
        drop(state);
        // `spelter check`, which sets the file, prints this of all processes. The status stays, since a handler does
        // not know the program's own.
        if stats.is_partial() && self.settings.json.is_none() && !Options::get().quiet {
            report::gaps(&stats, "SPELTER_CHECK_MEMORY").iter().for_each(|gap| print_line(&format!("spelter: {gap}")));
        }
        if is_unfinished && self.settings.json.is_none() && !Options::get().quiet {
            print_line("spelter: the process ends before all that it submitted has run and was checked");
        }
        if host_notes > 1 && self.settings.json.is_none() && !Options::get().quiet {
            print_line(&format!(
                "spelter: {host_notes} notes of SPELTER-HOST, of which the first is printed; SPELTER_CHECK_JSON has all"
            ));
        }
        let status = self.settings.exit_status.unwrap_or(EXIT_STATUS);
        if errors > 0 && status != 0 {
            exit::change_status(status);
        }
    }
}

fn at_exit() {
    // In a process that was forked without a device of its own there is nothing to report.
    Process::current().inspect(|process| process.end());
}

impl State {
    fn collect(&mut self, settings: &CheckSettings, which: impl Fn(&DeviceFindings) -> bool) {
        for device in self.devices.clone().into_iter().filter(|device| which(device)) {
            let findings = device.take();
            self.report(settings, &device, None, findings);
        }
    }

    fn report(
        &mut self,
        settings: &CheckSettings,
        device: &Arc<DeviceFindings>,
        place: Option<&SubmissionPart>,
        findings: Vec<Finding>,
    ) {
        for finding in findings {
            if !settings.filter.wants(&finding) {
                self.not_shown += 1;
                continue;
            }
            if settings.filter.suppresses(&finding) {
                self.suppressed += 1;
                continue;
            }
            let text = report::text(&finding, &notes(&finding, place), false);
            if self.is_news(&finding) {
                self.show(settings, place, &finding, &text);
            }
            if self.delivered.insert((device.owner, finding.identity(), finding.severity)) {
                self.messages.push((Arc::clone(device), place.cloned(), message_of(&finding, &text)));
            }
        }
    }

    /// Counts a finding. Whether it is a new one, or worse than before.
    fn is_news(&mut self, finding: &Finding) -> bool {
        let new = || CountedFinding { fingerprint: fingerprint(finding), severity: finding.severity, count: 0 };
        let found = self.found.entry(finding.identity()).or_insert_with(new);
        let news = found.count == 0 || finding.severity > found.severity;
        found.severity = found.severity.max(finding.severity);
        found.count = found.count.saturating_add(finding.count);
        news
    }

    /// Writes a finding to the file and to standard error.
    fn show(&mut self, settings: &CheckSettings, place: Option<&SubmissionPart>, finding: &Finding, text: &str) {
        let mut object = report::json(finding);
        object["process"] = std::process::id().into();
        object["submission"] = json!(place.map(|place| json!({
            "queue": place.submission.queue,
            "serial": place.submission.serial,
            "command_buffer": place.dispatch.as_ref().map(|(recording, ..)| recording),
            "label": place.dispatch.as_ref().and_then(|(_, label, _)| label.as_ref()),
        })));
        self.write(settings, &object);
        let confirmed = finding.severity == Severity::Error;
        let printed = self.printed.get(&fingerprint(finding));
        if Options::get().quiet || printed.is_some_and(|&before| before || !confirmed) {
            return;
        }
        if !self.groups.shows(finding) {
            return;
        }
        if (finding.rule, finding.severity) == (Rule::Host, Severity::Note) {
            self.host_notes += 1;
            if self.host_notes > 1 {
                return;
            }
        }
        let stderr = std::io::stderr();
        let colored = stderr.is_terminal() && spelter_driver::environment::variable("NO_COLOR").is_none();
        let colored = colored.then(|| report::text(finding, &notes(finding, place), true));
        print_text(colored.as_deref().unwrap_or(text));
    }

    /// Number of findings of this severity.
    fn count(&self, severity: Severity) -> usize {
        self.found.values().filter(|found| found.severity == severity).count()
    }

    /// What was checked so far.
    fn stats(&self) -> CheckStats {
        let mut stats = self.ended;
        self.devices.iter().for_each(|device| stats += device.stats());
        stats
    }

    /// Writes the counts so far, if they are not the last that were written: the last ones of a process count.
    fn summarize(&mut self, process: &Process) {
        let stats = self.stats();
        let counts: HashMap<&String, u64> =
            self.found.values().map(|found| (&found.fingerprint, found.count)).collect();
        let summary = json!({ "summary": {
            "process": process.number,
            "errors": self.count(Severity::Error),
            "warnings": self.count(Severity::Warning),
            "notes": self.count(Severity::Note),
            "suppressed": self.suppressed,
            "not_shown": self.not_shown,
            "unfinished": self.devices.iter().any(|device| device.is_busy()),
            "counts": counts,
            "checked": report::stats_json(&stats),
        } });
        if self.summary.as_ref() != Some(&summary) {
            self.write(process.settings, &summary);
            self.summary = Some(summary);
        }
    }

    fn write(&mut self, settings: &CheckSettings, object: &Json) {
        if let Some(Err(error)) = self.lines.as_mut().map(|lines| lines.add(object)) {
            self.lines = None;
            self.fail(settings, &error);
        }
    }

    fn fail(&mut self, settings: &CheckSettings, error: &std::io::Error) {
        let path = settings.json.as_deref().map(|path| path.display().to_string()).unwrap_or_default();
        self.failed = Some(format!("SPELTER_CHECK_JSON: {path} cannot be written: {error}"));
    }
}

/// The submission in which a finding was made, for its report; findings about one dispatch, or several commands, name
/// it themselves.
fn notes(finding: &Finding, place: Option<&SubmissionPart>) -> Vec<String> {
    let names_it = finding.dispatch.is_some() || finding.second.command.is_some();
    let place = place.filter(|_| !names_it);
    place
        .map(|SubmissionPart { submission, .. }| {
            format!("in submission {} of queue {}", submission.serial, submission.queue)
        })
        .into_iter()
        .collect()
}

/// The labels of a path, the outermost first.
pub(super) fn labels(path: &str) -> Vec<Label> {
    path.split('/').map(|name| Label { name: name.to_owned(), color: [0.0; 4] }).collect()
}

/// The message about a finding, without the objects.
fn message_of(finding: &Finding, text: &str) -> Message {
    type S = vk::DebugUtilsMessageSeverityFlagsEXT;
    let severity = match finding.severity {
        Severity::Error => S::ERROR,
        Severity::Warning => S::WARNING,
        Severity::Note => S::INFO,
    };
    let name = finding.rule.name();
    let types = vk::DebugUtilsMessageTypeFlagsEXT::VALIDATION;
    Message { number: report::message_number(name), ..Message::new(severity, types, name, text.trim_end()) }
}
