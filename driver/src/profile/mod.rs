//! A profile: timestamps of dispatches, and the time that each pipeline took.
//!
//! A timestamp is the time at which a worker began the first workgroup of a dispatch, or ended the last: what GPUs
//! write at the top and bottom of the pipe (`vkCmdWriteTimestamp`), without commands and barriers for it. Commands of
//! one phase overlap, so times of commands may add up to more than the time of their submission; *busy* time is that
//! of workers and adds up.

mod json;
mod spans;
mod times;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use spelter_locks::Mutex;

use crate::exec::{Chunk, Observer, SubmissionId};
pub(crate) use spans::{CommandSpan, CommandSpans};
pub use times::CallTimes;

/// The time that one pipeline, or one kind of transfer, took.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProgramTime {
    /// The kernel or the kind of transfer, after the label of the command buffer if there is one.
    pub name: String,
    /// Identifies the pipeline by its shader, entry point and specialization constants; `None` for transfers.
    pub pipeline: Option<u64>,
    /// The number of dispatches or transfers.
    pub calls: u64,
    /// The number of workgroups; of transfers, the number of 256 KiB units.
    pub workgroups: u64,
    /// Bytes that were bound to the dispatches, or moved.
    pub bytes: u64,
    /// The time of all workers together.
    pub busy: Duration,
    /// The sum of the times of the calls, each from the begin of its first workgroup to the end of its last.
    pub elapsed: Duration,
    /// The shortest call.
    pub shortest: Duration,
    /// The longest call.
    pub longest: Duration,
    /// The times of all calls, for quantiles.
    pub times: CallTimes,
}

impl ProgramTime {
    /// The mean time of a call.
    pub fn mean(&self) -> Duration {
        self.elapsed / u32::try_from(self.calls.max(1)).unwrap_or(u32::MAX)
    }

    fn add(&mut self, span: &CommandSpan) {
        let elapsed = span.elapsed();
        self.calls += 1;
        self.workgroups += span.units;
        self.bytes = self.bytes.saturating_add(span.bytes);
        self.busy += span.busy;
        self.elapsed += elapsed;
        self.shortest = self.shortest.min(elapsed);
        self.longest = self.longest.max(elapsed);
        self.times.add(elapsed, 1);
    }
}

/// The timestamps of one dispatch, in time since the profile began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DispatchTime {
    /// The kernel, after the label of the command buffer if there is one.
    pub name: String,
    /// Identifies the pipeline by its shader, entry point and specialization constants.
    pub pipeline: u64,
    /// The submission.
    pub submission: SubmissionId,
    /// Workgroups in each direction.
    pub groups: [u32; 3],
    /// When a worker began the first workgroup.
    pub start: Duration,
    /// When a worker ended the last workgroup.
    pub end: Duration,
    /// The time of all workers together.
    pub busy: Duration,
}

/// Measures the work of a device: pass it to [`Device::with_observer`](crate::Device::with_observer).
#[derive(Debug)]
pub struct Profile {
    keep: usize,
    /// A leaf lock.
    state: Mutex<ProfileState>,
}

#[derive(Debug)]
struct ProfileState {
    began: Instant,
    running: CommandSpans,
    programs: BTreeMap<(Option<u64>, String), ProgramTime>,
    dispatches: VecDeque<DispatchTime>,
    dropped: u64,
    workers: Vec<Duration>,
}

impl ProfileState {
    fn new() -> Self {
        Self {
            began: Instant::now(),
            running: CommandSpans::default(),
            programs: BTreeMap::new(),
            dispatches: VecDeque::new(),
            dropped: 0,
            workers: Vec::new(),
        }
    }

    fn ended(&mut self, span: CommandSpan, keep: usize) {
        let key = (span.dispatch.map(|dispatch| dispatch.pipeline), span.name);
        let program = self.programs.entry(key.clone()).or_insert_with(|| ProgramTime {
            name: key.1.clone(),
            pipeline: key.0,
            calls: 0,
            workgroups: 0,
            bytes: 0,
            busy: Duration::ZERO,
            elapsed: Duration::ZERO,
            shortest: Duration::MAX,
            longest: Duration::ZERO,
            times: CallTimes::default(),
        });
        let (_, name) = key;
        let span = CommandSpan { name, ..span };
        program.add(&span);
        let Some(dispatch) = span.dispatch.filter(|_| keep > 0) else { return };
        if self.dispatches.len() == keep {
            self.dispatches.pop_front();
            self.dropped += 1;
        }
        self.dispatches.push_back(DispatchTime {
            pipeline: dispatch.pipeline,
            submission: span.id.submission,
            groups: dispatch.groups,
            start: span.start.saturating_duration_since(self.began),
            end: span.end.saturating_duration_since(self.began),
            busy: span.busy,
            name: span.name,
        });
    }
}

/// What a [`Profile`] measured since it began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProfileReport {
    /// The time since the profile began.
    pub elapsed: Duration,
    /// Pipelines and kinds of transfers, the one with the most busy time first.
    pub programs: Vec<ProgramTime>,
    /// The latest dispatches, in the order in which their submissions ended.
    pub dispatches: Vec<DispatchTime>,
    /// The number of earlier dispatches whose timestamps were dropped.
    pub dropped: u64,
    /// By worker, the time that it was busy.
    pub workers: Vec<Duration>,
}

impl Profile {
    /// A profile that keeps the timestamps of at most `keep` dispatches, the latest ones.
    pub fn new(keep: usize) -> Arc<Self> {
        Arc::new(Self { keep, state: Mutex::new(ProfileState::new()) })
    }

    /// What was measured so far. A submission that has not ended is not part of it.
    pub fn report(&self) -> ProfileReport {
        let state = self.state.lock();
        let mut programs: Vec<ProgramTime> = state.programs.values().cloned().collect();
        programs.sort_by(|a, b| b.busy.cmp(&a.busy).then_with(|| a.name.cmp(&b.name)));
        ProfileReport {
            elapsed: state.began.elapsed(),
            programs,
            dispatches: state.dispatches.iter().cloned().collect(),
            dropped: state.dropped,
            workers: state.workers.clone(),
        }
    }

    /// Forgets what was measured; time counts from now on.
    pub fn reset(&self) {
        let mut state = self.state.lock();
        let running = std::mem::take(&mut state.running);
        *state = ProfileState { running, ..ProfileState::new() };
    }
}

impl Observer for Profile {
    fn worked(&self, chunk: &Chunk<'_>) {
        let mut state = self.state.lock();
        state.running.add(chunk);
        if state.workers.len() <= chunk.worker {
            state.workers.resize(chunk.worker + 1, Duration::ZERO);
        }
        state.workers[chunk.worker] += chunk.end.saturating_duration_since(chunk.start);
    }

    fn ran(&self, submission: SubmissionId, done: bool, _: Instant, _: Instant) {
        if done {
            let mut state = self.state.lock();
            for span in state.running.take(submission) {
                state.ended(span, self.keep);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exec::{CommandId, DispatchInfo};

    fn at(profile: &Profile, micros: u64) -> Instant {
        profile.state.lock().began + Duration::from_micros(micros)
    }

    /// A chunk of a command of submission `serial`, from `times.0` to `times.1` in microseconds.
    fn chunk(profile: &Profile, (serial, command): (u64, usize), worker: usize, times: (u64, u64)) {
        let submission = SubmissionId { queue: 0, serial };
        profile.worked(&Chunk {
            worker,
            command: CommandId { submission, recording: 0, phase: 0, command },
            name: if command == 2 { "copy" } else { "scan" },
            dispatch: (command != 2).then_some(DispatchInfo { pipeline: 7, groups: [8, 1, 1] }),
            bytes: 100,
            units: 4,
            start: at(profile, times.0),
            end: at(profile, times.1),
        });
    }

    fn done(profile: &Profile, serial: u64) {
        let now = Instant::now();
        profile.ran(SubmissionId { queue: 0, serial }, true, now, now);
    }

    #[test]
    fn chunks_become_calls_when_their_submission_ends() {
        let profile = Profile::new(2);
        // Two workers share the first dispatch; a copy overlaps it.
        chunk(&profile, (1, 0), 0, (10, 40));
        chunk(&profile, (1, 0), 1, (20, 60));
        chunk(&profile, (1, 2), 0, (40, 45));
        chunk(&profile, (2, 0), 0, (70, 80));
        assert!(profile.report().programs.is_empty(), "nothing has ended");
        let now = Instant::now();
        profile.ran(SubmissionId { queue: 0, serial: 1 }, false, now, now);
        assert!(profile.report().programs.is_empty(), "the submission is suspended");
        done(&profile, 1);
        let report = profile.report();
        let [scan, copy] = &report.programs[..] else { panic!("{report:?}") };
        let micros = Duration::from_micros;
        assert_eq!((scan.name.as_str(), scan.calls, scan.workgroups, scan.pipeline), ("scan", 1, 8, Some(7)));
        assert_eq!((scan.busy, scan.elapsed, scan.mean()), (micros(70), micros(50), micros(50)));
        assert_eq!((copy.name.as_str(), copy.pipeline, copy.busy), ("copy", None, micros(5)));
        assert_eq!(report.workers, [micros(45), micros(40)]);
        let [first] = &report.dispatches[..] else { panic!("{report:?}") };
        assert_eq!((first.start, first.end, first.groups), (micros(10), micros(60), [8, 1, 1]));
        done(&profile, 2);
        let scan = &profile.report().programs[0];
        assert_eq!((scan.calls, scan.shortest, scan.longest), (2, micros(10), micros(50)));
        let [median, longest] = [0.5, 1.0].map(|part| scan.times.quantile(part));
        assert!(median.abs_diff(micros(10)) < micros(1) && longest.abs_diff(micros(50)) < micros(1), "{scan:?}");
    }

    #[test]
    fn the_latest_dispatches_are_kept_and_a_reset_forgets_all() {
        let profile = Profile::new(2);
        for serial in 1..=3 {
            chunk(&profile, (serial, 0), 0, (serial * 10, serial * 10 + 5));
            done(&profile, serial);
        }
        let report = profile.report();
        let serials: Vec<u64> = report.dispatches.iter().map(|dispatch| dispatch.submission.serial).collect();
        assert_eq!((serials, report.dropped), (vec![2, 3], 1));
        profile.reset();
        let report = profile.report();
        assert!(report.programs.is_empty() && report.dispatches.is_empty() && report.workers.is_empty());
    }
}
