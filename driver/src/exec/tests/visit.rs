//! Which work a submission runs on its own thread, and which it leaves to workers.

use std::thread::{ThreadId, current};

use super::*;

/// State of a test kernel: whether it is slow, and which thread ran its workgroups.
struct Visited {
    slow: AtomicBool,
    here: ThreadId,
    /// Number of workgroups that ran on the submitting thread.
    inside: AtomicU64,
    /// Number of workgroups that ran.
    ran: AtomicU64,
}

impl Visited {
    fn new() -> Arc<Self> {
        let (here, inside, ran) = (current().id(), AtomicU64::new(0), AtomicU64::new(0));
        Arc::new(Self { slow: AtomicBool::new(false), here, inside, ran })
    }

    fn kernel(self: &Arc<Self>, max_steps: Option<u64>) -> Arc<dyn Code> {
        let visited = Arc::clone(self);
        bounded(max_steps, move |args, _| {
            visited.inside.fetch_add(u64::from(current().id() == visited.here), SeqCst);
            // Phases run one after the other, each with one more buffer.
            let groups: u64 = args.num_workgroups.map(u64::from).iter().product();
            assert_eq!(visited.ran.fetch_add(1, SeqCst) / groups, args.buffers.len() as u64);
            if visited.slow.load(SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
        })
    }

    /// Submits these phases. Number of their workgroups that ran on the submitting thread.
    fn submit(&self, executor: &Executor, queue: &Arc<QueueState>, code: &Arc<dyn Code>, groups: &[[u32; 3]]) -> u64 {
        self.inside.store(0, SeqCst);
        self.ran.store(0, SeqCst);
        let phase = |(i, &groups)| vec![dispatch("visited", code, &vec![GuestSlice::EMPTY; i], Groups::Direct(groups))];
        let (batch, fence) = batch(executor, groups.iter().enumerate().map(phase).collect());
        queue.submit(batch).unwrap();
        // With a timeout, so that this thread does not work meanwhile.
        assert_eq!(fence.wait(Some(Duration::from_secs(600))), Ok(true));
        let all = groups.iter().map(|groups| groups.iter().product::<u32>()).sum::<u32>();
        assert_eq!(self.ran.load(SeqCst), u64::from(all));
        self.inside.load(SeqCst)
    }
}

/// Retries, since even a tiny kernel may be measured as long on a busy machine.
const TRIES: usize = 1000;

#[test]
fn submissions_run_only_what_cannot_take_long() {
    let executor = executor(2);
    let queue = executor.queue();
    let visited = Visited::new();
    for (max_steps, may) in [(Some(1), true), (Some(20_000), true), (Some(1 << 20), false), (None, false)] {
        let code = visited.kernel(max_steps);
        let ran = (0..TRIES).any(|_| visited.submit(&executor, &queue, &code, &[[1; 3], [1; 3]]) == 2);
        assert_eq!(ran, may, "{max_steps:?}");
    }
}

#[test]
fn work_that_takes_longer_than_estimated_is_left_to_a_worker() {
    for workers in [1, 2, 5] {
        let executor = executor(workers);
        let queue = executor.queue();
        let visited = Visited::new();
        for groups in [&[[4; 3]][..], &[[1; 3]; 6], &[[2; 3]; 3], &[[2, 1, 1]]] {
            let code = visited.kernel(Some(1));
            let seen = (0..TRIES).any(|_| {
                visited.slow.store(false, SeqCst);
                if visited.submit(&executor, &queue, &code, groups) == 0 {
                    return false;
                }
                visited.slow.store(true, SeqCst);
                let inside = visited.submit(&executor, &queue, &code, groups);
                // Now it is known to take long.
                assert_eq!((inside.min(1), visited.submit(&executor, &queue, &code, groups)), (inside, 0));
                inside == 1
            });
            assert!(seen, "{workers} workers, {groups:?}");
        }
    }
}
