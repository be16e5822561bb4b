//! Causes of a lost device: an overrun, a panic, no memory; and cases that must not lose it.

use std::time::Instant;

use super::*;

/// Uses CPU time, which the limit counts (sleep is not counted).
fn work(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

#[test]
fn a_kernel_over_the_limit_loses_the_device_and_only_that() {
    let lost = limited(2, 100);
    let (queue, other) = (lost.queue(), lost.queue());
    let (first, first_fence) = batch(&lost, vec![vec![one("spin_forever", &endless())]]);
    let (second, second_fence) = batch(&lost, vec![vec![one("never", &kernel(|_, _| ()))]]);
    queue.submit(first).unwrap();
    let _ = queue.submit(second);
    for fence in [&first_fence, &second_fence] {
        let Err(DeviceError::DeviceLost(why)) = fence.wait(None) else { panic!("not lost") };
        assert_eq!(why, "kernel `spin_forever` ran longer than the time limit of 100ms, which the test sets");
        assert!(matches!(fence.wait(Some(Duration::ZERO)), Err(DeviceError::DeviceLost(_))));
        assert!(!fence.is_signaled());
    }
    assert!(lost.loss().is_lost());
    assert!(queue.wait_idle().is_err());
    assert_eq!(queue.retired(), 2);
    let (late, late_fence) = batch(&lost, vec![]);
    assert!(other.submit(late).is_err());
    assert!(late_fence.wait(None).is_err());

    let executor = executor(1);
    let (batch, fence) = batch(&executor, vec![vec![one("fine", &kernel(|_, _| ()))]]);
    executor.queue().submit(batch).unwrap();
    assert_eq!(fence.wait(None), Ok(true));
}

#[test]
fn the_time_limit_counts_for_each_command_of_a_phase() {
    let slow = kernel(|_, _| work(Duration::from_millis(20)));
    let fast = kernel(|_, _| ());
    for (workers, fasts) in [(1, 0), (2, 0), (2, 112)] {
        // With 112 fast commands after them, all slow ones are in the first chunk: the others start later and end
        // earlier.
        let executor = limited(workers, 250);
        let slows = if fasts == 0 { 40 } else { 16 };
        let phase = (0..slows).map(|_| one("slow", &slow)).chain((0..fasts).map(|_| one("fast", &fast))).collect();
        let (batch, fence) = batch(&executor, vec![phase]);
        executor.queue().submit(batch).unwrap();
        assert_eq!(fence.wait(None), Ok(true));
    }
}

/// The same holds for a process that is stopped or that gets a small share of its machine.
#[test]
#[cfg(target_os = "linux")]
fn a_kernel_that_sleeps_longer_than_the_limit_is_not_an_overrun() {
    let executor = limited(2, 100);
    let (batch, fence) =
        batch(&executor, vec![vec![one("waits", &kernel(|_, _| std::thread::sleep(Duration::from_secs(1))))]]);
    executor.queue().submit(batch).unwrap();
    assert_eq!(fence.wait(None), Ok(true));
}

#[test]
fn a_huge_grid_is_one_command() {
    let executor = limited(2, 100);
    let run = |args: &DispatchArgs<'_>, _| {
        work(Duration::from_micros(50));
        if args.stop.load(SeqCst) == 0 { Outcome::Done } else { Outcome::Stopped }
    };
    let code: Arc<dyn Code> = Arc::new(Kernel(run, None));
    let before = (0..4).map(|_| one("before", &code));
    let phase =
        before.chain([dispatch("huge", &code, &[], Groups::Direct([MAX_WORKGROUPS, MAX_WORKGROUPS, 1]))]).collect();
    let (batch, fence) = batch(&executor, vec![phase]);
    executor.queue().submit(batch).unwrap();
    let Err(DeviceError::DeviceLost(why)) = fence.wait(None) else { panic!("not lost") };
    assert!(why.contains("huge"), "{why}");
}

#[test]
fn a_panic_in_a_kernel_loses_the_device_and_hangs_no_thread() {
    let executor = executor(2);
    let queue = executor.queue();
    let code = kernel(|_, [x, ..]| assert!(x != 70, "seventy"));
    let (batch, fence) = batch(&executor, vec![vec![dispatch("buggy", &code, &[], Groups::Direct([100, 1, 1]))]]);
    queue.submit(batch).unwrap();
    let Err(DeviceError::DeviceLost(why)) = fence.wait(None) else { panic!("not lost") };
    assert!(why.contains("buggy") && why.contains("seventy"), "{why}");
}

#[test]
fn a_kernel_without_memory_loses_the_device_and_says_so() {
    let executor = executor(2);
    let code: Arc<dyn Code> = Arc::new(Kernel(|_: &DispatchArgs<'_>, _| Outcome::OutOfMemory, None));
    let (batch, fence) = batch(&executor, vec![vec![one("huge", &code)]]);
    executor.queue().submit(batch).unwrap();
    let lost = DeviceError::DeviceLost("no memory for a worker to run kernel `huge`".to_owned());
    assert_eq!(fence.wait(None), Err(lost));
}
