//! Tests of the protocols in README.md under every interleaving that loom explores. A lost wake-up shows as a deadlock.

#![cfg(loom)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize as Plain, Ordering::Relaxed};
use std::time::Duration;

use loom::thread;

use super::board::{Board, Job, Spawn};
use super::crew::Crew;
use super::line::Line;
use super::watchdog::Nap;
use crate::sync::Loss;
use crate::sync::primitives::Mutex;
use crate::sync::{Counter, FenceState, Helper, TaskRegistration, Until, Wake, wait};

type TestBoard = Board<u32, Units, u8>;

/// Payload of a crew: a counter per unit, outside of the model.
#[derive(Debug)]
struct Units([Plain; 3]);

impl Units {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::array::from_fn(|_| Plain::new(0))))
    }

    fn run(&self, range: std::ops::Range<u64>) {
        range.for_each(|unit| {
            self.0[unit as usize].fetch_add(1, Relaxed);
        });
    }
}

/// Explores all interleavings, or those with at most this many `preemptions` (involuntary switches).
fn model(preemptions: Option<usize>, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = preemptions;
    builder.check(run);
}

fn board(slots: usize) -> Arc<TestBoard> {
    Arc::new(Board::new(vec![0; slots], Duration::ZERO))
}

/// Runs the batches of a line as a conductor does; counts in `run` and checks the order.
fn serve(line: &Line<u64>, run: &Plain) {
    let Some(role) = line.claim() else { return };
    while let Some(batch) = role.front() {
        assert_eq!(run.fetch_add(1, Relaxed) as u64 + 1, *batch);
        role.pop();
        role.retire(*batch);
        role.settle(*batch);
    }
}

#[test]
fn hand_over_leaves_no_batch_pending() {
    model(None, || {
        let (line, run) = (Arc::new(Line::new()), Arc::new(Plain::new(0)));
        let submit = |line: &Line<u64>, run: &Plain| {
            if line.push(Arc::new).was_idle {
                serve(line, run);
            }
        };
        let other = thread::spawn({
            let (line, run) = (Arc::clone(&line), Arc::clone(&run));
            move || (0..2).for_each(|_| submit(&line, &run))
        });
        submit(&line, &run);
        line.wait_settled(line.submitted());
        other.join().unwrap();
        assert_eq!((run.load(Relaxed), line.retired()), (3, 3));
    });
}

#[test]
fn a_conductor_that_leaves_is_followed_by_one_other() {
    model(None, || {
        let (line, run) = (Arc::new(Line::new()), Arc::new(Plain::new(0)));
        line.push(Arc::new);
        line.push(Arc::new);
        let other = thread::spawn({
            let (line, run) = (Arc::clone(&line), Arc::clone(&run));
            move || serve(&line, &run)
        });
        if let Some(role) = line.claim() {
            if let Some(batch) = role.front() {
                assert_eq!(run.fetch_add(1, Relaxed) as u64 + 1, *batch);
                role.pop();
                role.retire(*batch);
                role.settle(*batch);
            }
            if role.leave() {
                serve(&line, &run);
            }
        }
        line.wait_settled(2);
        other.join().unwrap();
        assert_eq!((run.load(Relaxed), line.retired()), (2, 2));
    });
}

/// A batch of two phases, and the phase to continue with.
#[derive(Debug)]
struct TwoPhaseBatch {
    at: Mutex<usize>,
    run: Arc<[Plain; 2]>,
}

/// Runs the rest of a line's batch, if no other thread does.
fn finish(line: &Line<TwoPhaseBatch>) {
    let Some(role) = line.claim() else { return };
    while let Some(batch) = role.front() {
        let at = std::mem::take(&mut *batch.at.lock());
        batch.run[at..].iter().for_each(|phase| assert_eq!(phase.fetch_add(1, Relaxed), 0));
        role.pop();
        assert_eq!(Arc::strong_count(&batch), 1, "another thread holds what the batch owns");
        role.retire(1);
        role.settle(1);
    }
}

#[test]
fn a_batch_that_a_visitor_leaves_is_finished_by_one_other() {
    model(Some(3), || {
        let (board, line) = (board(1), Arc::new(Line::new()));
        let worker = thread::spawn({
            let (board, line) = (Arc::clone(&board), Arc::clone(&line));
            move || {
                while let Some((job, slot, _)) = board.next() {
                    drop(job);
                    finish(&line);
                    let Spawn(_) = board.release(slot);
                }
            }
        });
        let run = Arc::new([Plain::new(0), Plain::new(0)]);
        let pushed = line.push(|_| Arc::new(TwoPhaseBatch { at: Mutex::default(), run: Arc::clone(&run) }));
        assert!(pushed.was_idle);
        // The visitor.
        let (slot, role) = (board.claim().unwrap(), line.claim().unwrap());
        let batch = role.front().unwrap();
        batch.run[0].fetch_add(1, Relaxed);
        *batch.at.lock() = 1;
        drop(batch);
        let wanted = role.leave();
        let Spawn(_) = board.release(slot);
        assert!(wanted);
        let Spawn(_) = board.post(&Arc::new(1));
        // The same thread waits, and works meanwhile.
        if let Some(slot) = board.claim() {
            finish(&line);
            let Spawn(_) = board.release(slot);
        }
        line.wait_settled(1);
        board.shut();
        worker.join().unwrap();
        assert!(run.iter().all(|phase| phase.load(Relaxed) == 1));
    });
}

#[test]
fn a_post_finds_a_sleeper_or_is_found() {
    model(None, || {
        let board = board(1);
        let worker = thread::spawn({
            let board = Arc::clone(&board);
            move || {
                let mut seen = 0;
                while let Some((job, slot, _)) = board.next() {
                    seen += matches!(job, Job::Conduct(_)) as usize;
                    drop(job);
                    let Spawn(_) = board.release(slot);
                }
                seen
            }
        });
        // The first call counts a thread that is to be started: the one above. Later ones must wake it.
        let Spawn(_) = board.post(&Arc::new(1));
        let Spawn(_) = board.post(&Arc::new(2));
        board.shut();
        assert_eq!(worker.join().unwrap(), 2);
    });
}

#[test]
fn a_released_slot_finds_the_worker_that_lacked_it() {
    model(None, || {
        let board = board(1);
        let slot = board.claim().unwrap();
        let worker = thread::spawn({
            let board = Arc::clone(&board);
            move || {
                let (job, slot, _) = board.next().unwrap();
                drop(job);
                let Spawn(_) = board.release(slot);
            }
        });
        let Spawn(_) = board.post(&Arc::new(1));
        let Spawn(_) = board.release(slot);
        worker.join().unwrap();
        assert!(board.claim().is_some());
    });
}

#[test]
fn late_joiners_run_nothing_twice_and_keep_nothing() {
    model(None, || {
        let (board, units) = (board(2), Units::new());
        let slot = board.claim().unwrap();
        let crew = Crew::new(0..3, 2, Arc::clone(&units));
        let Spawn(_) = board.open(&crew, 1, 7);
        let joiner = thread::spawn({
            let board = Arc::clone(&board);
            move || {
                let Some(member) = board.join(7) else { return };
                while let Some(range) = member.crew().take() {
                    member.payload().unwrap().run(range);
                }
            }
        });
        while let Some(range) = crew.take() {
            units.run(range);
        }
        board.close(&crew);
        crew.disband();
        // From here on the conductor's own handle is the only one, and all units have run.
        assert_eq!(Arc::strong_count(&units), 1);
        assert!(units.0.iter().all(|count| count.load(Relaxed) == 1));
        let Spawn(_) = board.release(slot);
        joiner.join().unwrap();
    });
}

#[test]
fn a_vacated_seat_is_taken_again() {
    model(Some(3), || {
        let (board, units) = (board(2), Units::new());
        let crew = Crew::new(0..3, 2, Arc::clone(&units));
        let Spawn(_) = board.open(&crew, 1, 7);
        let members: Vec<_> = (0..2)
            .map(|_| {
                let board = Arc::clone(&board);
                thread::spawn(move || {
                    let Some(member) = board.join(7) else { return };
                    if let Some(range) = member.crew().take() {
                        member.payload().unwrap().run(range);
                    }
                    board.vacate(member.crew());
                })
            })
            .collect();
        while let Some(range) = crew.take() {
            units.run(range);
        }
        board.close(&crew);
        crew.disband();
        assert_eq!(Arc::strong_count(&units), 1);
        assert!(units.0.iter().all(|count| count.load(Relaxed) == 1));
        members.into_iter().for_each(|member| member.join().unwrap());
    });
}

#[test]
fn the_watchdog_does_not_sleep_through_a_conductor() {
    model(None, || {
        let nap = Arc::new(Nap::new());
        nap.begin(); // starts the watchdog
        nap.end();
        let watchdog = thread::spawn({
            let nap = Arc::clone(&nap);
            move || {
                nap.doze();
                assert!(nap.is_active());
            }
        });
        nap.begin();
        watchdog.join().unwrap();
        nap.end();
    });
}

#[test]
fn a_settled_fence_wakes_its_waiters() {
    model(Some(3), || {
        let fence = Arc::new(FenceState::new(false, &Arc::default()));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let fence = Arc::clone(&fence);
                thread::spawn(move || assert_eq!(fence.wait(None), Ok(true)))
            })
            .collect();
        fence.settle(Ok(()));
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// Counts its wake-ups.
#[derive(Default)]
struct CountedWake(Plain);

impl std::task::Wake for CountedWake {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Relaxed);
    }
}

/// A task polls with one waker and again with another. If the second poll is pending, too, its waker is woken; the
/// fence has been settled by then.
#[test]
fn a_settled_fence_wakes_the_waker_of_the_latest_poll() {
    model(Some(3), || {
        let fence = Arc::new(FenceState::new(false, &Arc::default()));
        fence.attach(NoQueue::weak());
        let settling = Arc::clone(&fence);
        let settler = thread::spawn(move || settling.settle(Ok(())));
        let (mut task, wakes) = (TaskRegistration::default(), [(); 2].map(|()| Arc::new(CountedWake::default())));
        let pending = wakes.each_ref().map(|wake| task.poll(&fence, &Arc::clone(wake).into()).is_pending());
        settler.join().unwrap();
        let woken = wakes.each_ref().map(|wake| wake.0.load(Relaxed) > 0);
        match pending {
            [_, true] => assert!(woken[1], "{woken:?}"),
            [true, false] | [false, false] => {}
        }
        assert_eq!(task.poll(&fence, std::task::Waker::noop()), std::task::Poll::Ready(Ok(())));
    });
}

/// The queue of a fence in a line.
#[derive(Debug)]
struct NoQueue;

impl NoQueue {
    fn weak() -> std::sync::Weak<dyn Helper> {
        std::sync::Weak::<Self>::new()
    }
}

impl Helper for NoQueue {
    fn help(self: Arc<Self>, _: &dyn Fn() -> bool) -> bool {
        false
    }
}

#[test]
fn a_lost_device_wakes_the_tasks_of_a_fence_in_no_line() {
    model(Some(3), || {
        let loss = Arc::new(Loss::default());
        let fence = Arc::new(FenceState::new(false, &loss));
        let losing = Arc::clone(&loss);
        let loser = thread::spawn(move || losing.lose("why".to_owned()));
        let (mut task, wake) = (TaskRegistration::default(), Arc::new(CountedWake::default()));
        let poll = task.poll(&fence, &Arc::clone(&wake).into());
        loser.join().unwrap();
        assert!(poll.is_ready() || wake.0.load(Relaxed) > 0);
        assert!(matches!(task.poll(&fence, std::task::Waker::noop()), std::task::Poll::Ready(Err(_))));
    });
}

#[test]
fn a_lost_device_wakes_the_waiters_of_a_fence_in_no_line() {
    model(Some(3), || {
        let loss = Arc::new(Loss::default());
        let fence = Arc::new(FenceState::new(false, &loss));
        let waiters: Vec<_> = (0..2)
            .map(|_| {
                let fence = Arc::clone(&fence);
                thread::spawn(move || assert!(fence.wait(None).is_err()))
            })
            .collect();
        loss.lose("why".to_owned());
        waiters.into_iter().for_each(|waiter| waiter.join().unwrap());
    });
}

/// A queue with a line, and a recursive call in place of the board: the thread that resumes the line becomes conductor.
#[derive(Debug)]
struct SuspendableQueue {
    line: Line<u64>,
    run: Plain,
}

impl SuspendableQueue {
    /// Runs the line as a conductor does; the batch in front starts when the counter has reached 1.
    fn serve(self: &Arc<Self>, counter: &Counter) {
        let Some(mut role) = self.line.claim() else { return };
        while let Some(batch) = role.front() {
            if counter.reached(1) {
                self.run.fetch_add(1, Relaxed);
                role.pop();
                role.retire(*batch);
                role.settle(*batch);
                continue;
            }
            role.suspend();
            let waker = Arc::clone(self) as Arc<dyn Wake>;
            if counter.watch(1, &waker) || !self.line.resume() {
                return;
            }
            let Some(again) = self.line.claim() else { return };
            role = again;
        }
    }
}

impl Wake for SuspendableQueue {
    fn wake(self: Arc<Self>) {
        if self.line.resume() {
            self.serve(&Counter::new(1));
        }
    }
}

#[test]
fn a_batch_that_waits_is_run_once_whenever_it_is_released() {
    model(None, || {
        let counter = Counter::new(0);
        let queue = Arc::new(SuspendableQueue { line: Line::new(), run: Plain::new(0) });
        let release = thread::spawn({
            let counter = Arc::clone(&counter);
            move || counter.raise(1)
        });
        if queue.line.push(Arc::new).was_idle {
            queue.serve(&counter);
        }
        queue.line.wait_settled(1);
        release.join().unwrap();
        assert_eq!((queue.run.load(Relaxed), queue.line.retired()), (1, 1));
    });
}

#[test]
fn a_batch_pushed_after_one_that_waits_is_not_forgotten() {
    model(Some(3), || {
        let counter = Counter::new(0);
        let queue = Arc::new(SuspendableQueue { line: Line::new(), run: Plain::new(0) });
        let push = |queue: &Arc<SuspendableQueue>, counter: &Counter| {
            if queue.line.push(Arc::new).was_idle {
                queue.serve(counter);
            }
        };
        let other = thread::spawn({
            let (counter, queue) = (Arc::clone(&counter), Arc::clone(&queue));
            move || {
                push(&queue, &counter);
                counter.raise(1);
            }
        });
        push(&queue, &counter);
        queue.line.wait_settled(2);
        other.join().unwrap();
        assert_eq!((queue.run.load(Relaxed), queue.line.retired()), (2, 2));
    });
}

#[test]
fn a_host_that_waits_for_two_counters_sees_both_or_the_loss() {
    model(Some(3), || {
        let (a, b, loss) = (Counter::new(0), Counter::new(0), Arc::new(Loss::default()));
        let raise = thread::spawn({
            let (a, b) = (Arc::clone(&a), Arc::clone(&b));
            move || [a, b].iter().for_each(|counter| counter.raise(2))
        });
        let lose = thread::spawn({
            let loss = Arc::clone(&loss);
            move || loss.lose("why".to_owned())
        });
        let waited = wait(&[(Arc::clone(&a), 1), (Arc::clone(&b), 2)], Until::All, None, &loss);
        let reached = a.reached(1) && b.reached(2);
        assert!(if waited.is_ok() { waited == Ok(true) && reached } else { loss.is_lost() });
        raise.join().unwrap();
        lose.join().unwrap();
    });
}
